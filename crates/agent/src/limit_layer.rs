//! The layer that limits the questions in flight and per minute. Questions enter in the order in
//! which they came, and one that waits holds nothing.

use super::bucket::{AgentLimits, RemainingLimits};
use super::question::{AgentLayer, AgentQuestion, TryCost, TryError, TryMeter};
use super::retry_timer::{DoorObserver, STOP_POLL_INTERVAL};
use super::role_agents::RoleAgents;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use treebeam_run::port::{AgentReply, PortError};

/// Number of bytes of a prompt per token, about.
const BYTES_PER_TOKEN: usize = 4;

/// The limit layer around an inner one.
pub(super) struct LimitLayer<'a, A> {
    inner: A,
    role_agents: &'a RoleAgents,
    observer: &'a dyn DoorObserver,
    began: Instant,
    queue: Mutex<LimitQueue>,
    moved: Condvar,
}

struct LimitQueue {
    room: RemainingLimits,
    waiting: VecDeque<u64>,
    next: u64,
}

impl<'a, A> LimitLayer<'a, A> {
    pub(super) fn new(
        inner: A,
        limits: AgentLimits,
        role_agents: &'a RoleAgents,
        observer: &'a dyn DoorObserver,
    ) -> Self {
        let queue =
            LimitQueue { room: RemainingLimits::new(limits), waiting: VecDeque::new(), next: 0 };
        let (queue, moved) = (Mutex::new(queue), Condvar::new());
        Self { inner, role_agents, observer, began: Instant::now(), queue, moved }
    }

    fn lock_queue(&self) -> MutexGuard<'_, LimitQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Estimates how many tokens a question will take.
    fn estimate_tokens(&self, question: &AgentQuestion) -> Result<f64, PortError> {
        let Some(model) = self.role_agents.settings_for(question.role)?.as_model() else {
            return Ok(0.0);
        };
        let prompt = u32::try_from(question.prompt.len() / BYTES_PER_TOKEN).unwrap_or(u32::MAX);
        Ok(f64::from(prompt) + f64::from(model.max_tokens))
    }

    fn wait_to_enter(&self, tokens: f64, end: Option<Instant>) -> Result<(), TryError> {
        let mut queue = self.lock_queue();
        let turn = queue.next;
        queue.next += 1;
        queue.waiting.push_back(turn);
        loop {
            let mut patience = STOP_POLL_INTERVAL;
            if queue.waiting.front() == Some(&turn) {
                match queue.room.try_enter(tokens, self.began.elapsed()) {
                    Ok(()) => {
                        queue.waiting.pop_front();
                        self.moved.notify_all();
                        return Ok(());
                    }
                    Err(wait) => patience = patience.min(wait.unwrap_or(STOP_POLL_INTERVAL)),
                }
            }
            let over = end.is_some_and(|end| end <= Instant::now());
            let given_up = match (self.observer.wants_to_stop(), over) {
                (true, _) => Some(TryError::Interrupted),
                (false, true) => Some(TryError::too_late("it waited for its turn")),
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
        self.lock_queue().room.leave(thought, took);
        self.moved.notify_all();
    }
}

/// A slot of a question, given back on drop.
struct LimitSlot<'a, 'b, A> {
    layer: &'a LimitLayer<'b, A>,
    thought: f64,
    took: f64,
}

impl<A> Drop for LimitSlot<'_, '_, A> {
    fn drop(&mut self) {
        self.layer.leave(self.thought, self.took);
    }
}

impl<A: AgentLayer> AgentLayer for LimitLayer<'_, A> {
    fn answer_question(
        &self,
        question: &AgentQuestion,
        meter: &dyn TryMeter,
    ) -> Result<AgentReply, TryError> {
        let thought = self.estimate_tokens(question)?;
        self.wait_to_enter(thought, meter.deadline())?;
        let mut inside = LimitSlot { layer: self, thought, took: thought };
        let answer = self.inner.answer_question(question, meter);
        let took = match &answer {
            Ok(reply) => reply.usage.map(|usage| usage.total_tokens()),
            Err(trouble) if trouble.spent() == TryCost::Nothing => Some(0),
            Err(_) => None,
        };
        if let Some(tokens) = took {
            inside.took = f64::from(u32::try_from(tokens).unwrap_or(u32::MAX));
        }
        answer
    }
}
