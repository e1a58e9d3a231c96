//! Lets questions through one by one: so many at once, so many in a minute. They go in the order in which they came, and
//! one that waits holds nothing.

use super::bucket::{Limits, Room};
use super::crew::Crew;
use super::question::{Answer, Meter, Question, Spent, Trouble};
use super::wait::{GLANCE, Observer};
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use treebeam_run::port::{PortError, Reply};

/// How many bytes of a prompt are about one token.
const BYTES_PER_TOKEN: usize = 4;

/// A layer that lets through.
pub(super) struct Limited<'a, A> {
    inner: A,
    crew: &'a Crew,
    observer: &'a dyn Observer,
    began: Instant,
    queue: Mutex<Queue>,
    moved: Condvar,
}

struct Queue {
    room: Room,
    waiting: VecDeque<u64>,
    next: u64,
}

impl<'a, A> Limited<'a, A> {
    pub(super) fn new(
        inner: A,
        limits: Limits,
        crew: &'a Crew,
        observer: &'a dyn Observer,
    ) -> Self {
        let queue = Queue { room: Room::new(limits), waiting: VecDeque::new(), next: 0 };
        let (queue, moved) = (Mutex::new(queue), Condvar::new());
        Self { inner, crew, observer, began: Instant::now(), queue, moved }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// About how many tokens a question will take.
    fn about(&self, question: &Question) -> Result<f64, PortError> {
        let Some(model) = self.crew.settings(question.role)?.model() else { return Ok(0.0) };
        let prompt = u32::try_from(question.prompt.len() / BYTES_PER_TOKEN).unwrap_or(u32::MAX);
        Ok(f64::from(prompt) + f64::from(model.max_tokens))
    }

    fn enter(&self, tokens: f64, end: Option<Instant>) -> Result<(), Trouble> {
        let mut queue = self.queue();
        let turn = queue.next;
        queue.next += 1;
        queue.waiting.push_back(turn);
        loop {
            let mut patience = GLANCE;
            if queue.waiting.front() == Some(&turn) {
                match queue.room.enter(tokens, self.began.elapsed()) {
                    Ok(()) => {
                        queue.waiting.pop_front();
                        self.moved.notify_all();
                        return Ok(());
                    }
                    Err(wait) => patience = patience.min(wait.unwrap_or(GLANCE)),
                }
            }
            let over = end.is_some_and(|end| end <= Instant::now());
            let given_up = match (self.observer.wants_to_stop(), over) {
                (true, _) => Some(Trouble::Interrupted),
                (false, true) => Some(Trouble::too_late("it waited for its turn")),
                (false, false) => None,
            };
            if let Some(trouble) = given_up {
                queue.waiting.retain(|other| *other != turn);
                self.moved.notify_all();
                return Err(trouble);
            }
            let patience = patience.max(Duration::from_millis(1));
            let waited = self.moved.wait_timeout(queue, patience);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn leave(&self, thought: f64, took: f64) {
        self.queue().room.leave(thought, took);
        self.moved.notify_all();
    }
}

/// A place inside, given back whatever happens.
struct Inside<'a, 'b, A> {
    layer: &'a Limited<'b, A>,
    thought: f64,
    took: f64,
}

impl<A> Drop for Inside<'_, '_, A> {
    fn drop(&mut self) {
        self.layer.leave(self.thought, self.took);
    }
}

impl<A: Answer> Answer for Limited<'_, A> {
    fn answer(&self, question: &Question, meter: &dyn Meter) -> Result<Reply, Trouble> {
        let thought = self.about(question)?;
        self.enter(thought, meter.end())?;
        let mut inside = Inside { layer: self, thought, took: thought };
        let answer = self.inner.answer(question, meter);
        let took = match &answer {
            Ok(reply) => reply.usage.map(|usage| usage.total()),
            Err(trouble) if trouble.spent() == Spent::Nothing => Some(0),
            Err(_) => None,
        };
        if let Some(tokens) = took {
            inside.took = f64::from(u32::try_from(tokens).unwrap_or(u32::MAX));
        }
        answer
    }
}
