//! What the loop lets others do: each step, each question to the executor and each collecting on a thread of its own, which
//! reports back once and never brings the loop down.

use super::{Coordinator, Halt, Report};
use crate::brief::{self, JobWatch};
use crate::port::{JobEnd, JobExit, PortError};
use crate::stage;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::Duration;
use treebeam_core::group::IdeaSource;
use treebeam_core::id::Place;
use treebeam_core::plan::Step;

/// How long one question to the executor may wait for a job to end.
const PATIENCE: Duration = Duration::from_millis(500);
/// How often in a row the job of a code state may be lost: one that ends its own job each time is not run for ever.
const LOSSES: u32 = 3;
/// Why a step cannot begin that is on record.
const NOTHING: &str = "the state has nothing to tell it";

impl Coordinator<'_, '_> {
    pub(super) fn start(&mut self, step: Step) -> Result<(), Halt> {
        let world = self.world;
        let brief = brief::of(&self.state, step);
        self.spawn(move || {
            let done = guarded(step, || match &brief {
                Some(brief) => stage::perform(brief, world),
                None => Err(broken(step, NOTHING)),
            });
            let done = done.map_err(|halt| halt.during(&doing(step)));
            Report::Stepped(step, done)
        })
    }

    /// Asks the executor once more for ended jobs, while it has any that could end. Whoever is asked earlier waits for
    /// something that is not there yet, and does not see it come.
    pub(super) fn poll(&mut self) -> Result<(), Halt> {
        let handed_over = |subject: &&_| {
            let submitting = self.running.steps.contains(&Step::Sweep(**subject));
            !submitting && !self.collecting.contains(subject)
        };
        let Some(job) = self.running.jobs.iter().find(handed_over).copied() else {
            return Ok(());
        };
        if self.polling {
            return Ok(());
        }
        self.polling = true;
        let executor = self.world.executor;
        self.spawn(move || {
            let wait = || executor.wait(PATIENCE).map_err(Halt::from);
            let ended = guarded(Step::Sweep(job), wait);
            Report::Polled(ended.map_err(|halt| halt.during("waiting for sweeps")))
        })
    }

    /// Takes in what a job left behind. The late end of an earlier submission is nobody's any more.
    pub(super) fn collect(&mut self, end: JobEnd) -> Result<(), Halt> {
        let subject = end.key.subject;
        self.forget_void(&end);
        let current = end.key.submission == self.state.submissions(subject);
        let expected = current && self.running.jobs.contains(&subject);
        if !expected || self.collecting.contains(&subject) || self.is_run_again(&end) {
            return Ok(());
        }
        self.collecting.insert(subject);
        let is_adopted = self.adopted.remove(&subject);
        let watch = if is_adopted { JobWatch::Adopted } else { JobWatch::Own };
        let (world, brief) = (self.world, brief::for_collecting(&self.state, subject, watch));
        self.spawn(move || {
            let step = Step::Sweep(subject);
            let take_in = || match &brief {
                Some(brief) => stage::collect(&end, brief, world),
                None => Err(broken(step, NOTHING)),
            };
            let done = guarded(step, take_in);
            let doing = format!("taking in the results of {subject}");
            Report::Collected(subject, done.map_err(|halt| halt.during(&doing)))
        })
    }

    /// Whether a job is run again because it was lost. One that is lost each time is collected like one that failed.
    fn is_run_again(&mut self, end: &JobEnd) -> bool {
        let subject = end.key.subject;
        if !matches!(end.exit, JobExit::Lost { .. }) {
            self.losses.remove(&subject);
            return false;
        }
        let losses = self.losses.entry(subject).or_default();
        *losses += 1;
        let again = *losses < LOSSES;
        if again {
            self.running.jobs.remove(&subject);
        } else {
            self.losses.remove(&subject);
        }
        again
    }
}

impl<'scope> Coordinator<'scope, '_> {
    /// Does something on a thread of its own, which reports back once.
    fn spawn(&mut self, work: impl FnOnce() -> Report + Send + 'scope) -> Result<(), Halt> {
        let sender = self.sender.clone();
        let thread = thread::Builder::new();
        let report = move || drop(sender.send(work()));
        thread.spawn_scoped(self.scope, report).map_err(|error| {
            let what = "cannot start a thread";
            PortError::new(what).hint("lower `--max-parallel-evals`").caused_by(error)
        })?;
        self.threads += 1;
        Ok(())
    }
}

/// What a step does, for a message.
fn doing(step: Step) -> String {
    match step {
        Step::Propose(IdeaSource::Node(node)) => {
            format!("asking for the ideas of {}", Place::Node(node))
        }
        Step::Propose(IdeaSource::Control) => "asking for the control group's ideas".to_owned(),
        Step::Implement(eval) => format!("implementing {}", Place::Candidate(eval)),
        Step::Sweep(subject) => format!("submitting the sweep of {subject}"),
        Step::Score(eval) => format!("scoring {}", Place::Candidate(eval)),
        Step::Promote(eval) => format!("promoting {}", Place::Candidate(eval)),
        Step::Discard(leftover) => format!("removing {leftover}"),
    }
}

fn guarded<T>(step: Step, work: impl FnOnce() -> Result<T, Halt>) -> Result<T, Halt> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(broken(step, &said(&*panic))))
}

fn broken(step: Step, why: &str) -> Halt {
    Halt::Broken { step: format!("{step:?}"), why: why.to_owned() }
}

fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("it did not say why").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::Interrupted;
    use treebeam_core::id::EvalId;

    #[test]
    fn an_error_of_a_port_says_what_the_run_was_doing() {
        let error = PortError::new("`git apply` failed").hint("make room");
        let halt = Halt::from(error).during(&doing(Step::Implement(EvalId::new(3))));
        let Halt::Port(error) = halt else { panic!("{halt:?}") };
        assert_eq!(error.in_full(), "the run stopped while implementing e0003: `git apply` failed");
        assert_eq!(error.hint.as_deref(), Some("make room"));
        let interrupted = PortError::new("no answer").caused_by(Interrupted);
        let Halt::Port(error) = Halt::from(interrupted).during("waiting") else {
            panic!("another")
        };
        assert_eq!(error.what, "no answer");
    }
}
