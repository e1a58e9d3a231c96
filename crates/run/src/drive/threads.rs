//! Starts the loop's threads: for each step, each question to the executor and each collected job.
//! A thread reports back once, and a panic in it does not end the loop.

use super::{RunDriver, RunHalt, ThreadReport};
use crate::brief::{self, JobWatch};
use crate::port::{JobEnd, JobExit, PortError};
use crate::stage;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::Duration;
use treebeam_core::group::IdeaSource;
use treebeam_core::id::CodePlace;
use treebeam_core::plan::Step;

/// Longest wait of one question to the executor for the end of a job.
const EXECUTOR_WAIT_LIMIT: Duration = Duration::from_millis(500);
/// Largest number of lost jobs in a row: a code state that ends its own job is not run for ever.
const MAX_JOB_LOSSES: u32 = 3;
/// Reason why a recorded step cannot begin.
const NO_BRIEF_REASON: &str = "the state has nothing to tell it";

impl RunDriver<'_, '_> {
    pub(super) fn start_step(&mut self, step: Step) -> Result<(), RunHalt> {
        let world = self.world;
        let brief = brief::step_brief(&self.state, step);
        self.spawn_thread(move || {
            let done = catch_panic(step, || match &brief {
                Some(brief) => stage::perform_step(brief, world),
                None => Err(broken_step(step, NO_BRIEF_REASON)),
            });
            let done = done.map_err(|halt| halt.while_doing(&step_activity(step)));
            ThreadReport::Stepped(step, done)
        })
    }

    /// Asks the executor for ended jobs, unless a question is under way or no job can end yet. A
    /// question that began before a job was handed over would not see its end.
    pub(super) fn poll_executor(&mut self) -> Result<(), RunHalt> {
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
        self.spawn_thread(move || {
            let wait = || executor.wait_for_jobs(EXECUTOR_WAIT_LIMIT).map_err(RunHalt::from);
            let ended = catch_panic(Step::Sweep(job), wait);
            ThreadReport::Polled(ended.map_err(|halt| halt.while_doing("waiting for sweeps")))
        })
    }

    /// Collects the results of a job. The late end of an earlier submission is ignored.
    pub(super) fn collect_job(&mut self, end: JobEnd) -> Result<(), RunHalt> {
        let subject = end.key.subject;
        self.forget_void(&end);
        let current = end.key.submission == self.state.submission_count(subject);
        let expected = current && self.running.jobs.contains(&subject);
        if !expected || self.collecting.contains(&subject) || self.rerun_if_lost(&end) {
            return Ok(());
        }
        self.collecting.insert(subject);
        let is_adopted = self.adopted.remove(&subject);
        let watch = if is_adopted { JobWatch::Adopted } else { JobWatch::Own };
        let (world, brief) = (self.world, brief::collect_brief(&self.state, subject, watch));
        self.spawn_thread(move || {
            let step = Step::Sweep(subject);
            let take_in = || match &brief {
                Some(brief) => stage::collect_job(&end, brief, world),
                None => Err(broken_step(step, NO_BRIEF_REASON)),
            };
            let done = catch_panic(step, take_in);
            let doing = format!("taking in the results of {subject}");
            ThreadReport::Collected(subject, done.map_err(|halt| halt.while_doing(&doing)))
        })
    }

    /// Returns true if a lost job is run again. One that is lost each time is collected as failed.
    fn rerun_if_lost(&mut self, end: &JobEnd) -> bool {
        let subject = end.key.subject;
        if !matches!(end.exit, JobExit::Lost { .. }) {
            self.losses.remove(&subject);
            return false;
        }
        let losses = self.losses.entry(subject).or_default();
        *losses += 1;
        let again = *losses < MAX_JOB_LOSSES;
        if again {
            self.running.jobs.remove(&subject);
        } else {
            self.losses.remove(&subject);
        }
        again
    }
}

impl<'scope> RunDriver<'scope, '_> {
    /// Runs a closure on a thread of its own, which reports back once.
    fn spawn_thread(
        &mut self,
        work: impl FnOnce() -> ThreadReport + Send + 'scope,
    ) -> Result<(), RunHalt> {
        let sender = self.sender.clone();
        let thread = thread::Builder::new();
        let report = move || drop(sender.send(work()));
        thread.spawn_scoped(self.scope, report).map_err(|error| {
            let what = "cannot start a thread";
            PortError::new(what).with_hint("lower `--max-parallel-evals`").with_cause(error)
        })?;
        self.threads += 1;
        Ok(())
    }
}

/// Describes the activity of a step, for a message.
fn step_activity(step: Step) -> String {
    match step {
        Step::Propose(IdeaSource::Node(node)) => {
            format!("asking for the ideas of {}", CodePlace::Node(node))
        }
        Step::Propose(IdeaSource::Control) => "asking for the control group's ideas".to_owned(),
        Step::Implement(eval) => format!("implementing {}", CodePlace::Candidate(eval)),
        Step::Sweep(subject) => format!("submitting the sweep of {subject}"),
        Step::Score(eval) => format!("scoring {}", CodePlace::Candidate(eval)),
        Step::Promote(eval) => format!("promoting {}", CodePlace::Candidate(eval)),
        Step::Discard(leftover) => format!("removing {leftover}"),
    }
}

fn catch_panic<T>(step: Step, work: impl FnOnce() -> Result<T, RunHalt>) -> Result<T, RunHalt> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|panic| Err(broken_step(step, &panic_text(&*panic))))
}

fn broken_step(step: Step, why: &str) -> RunHalt {
    RunHalt::Broken { step: format!("{step:?}"), why: why.to_owned() }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("it did not say why").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::{AgentError, InterruptionCause};
    use treebeam_core::id::EvalId;

    #[test]
    fn an_error_of_a_port_says_what_the_run_was_doing() {
        let error = PortError::new("`git apply` failed").with_hint("make room");
        let halt =
            RunHalt::from(error).while_doing(&step_activity(Step::Implement(EvalId::new(3))));
        let RunHalt::Port(error) = halt else { panic!("{halt:?}") };
        assert_eq!(
            error.full_text(),
            "the run stopped while implementing e0003: `git apply` failed"
        );
        assert_eq!(error.hint.as_deref(), Some("make room"));
        let interrupted = PortError::new("no answer").with_cause(InterruptionCause);
        let RunHalt::Port(error) = RunHalt::from(interrupted).while_doing("waiting") else {
            panic!("another")
        };
        assert_eq!(error.what, "no answer");
    }

    #[test]
    fn an_unavailable_agent_says_what_the_run_was_doing_and_stays_one() {
        let error = PortError::new("the server answered 503").with_hint("go on later");
        let halt = RunHalt::from(AgentError::Unavailable(error));
        let halt = halt.while_doing(&step_activity(Step::Implement(EvalId::new(3))));
        let RunHalt::Agent(AgentError::Unavailable(error)) = halt else { panic!("{halt:?}") };
        assert_eq!(
            error.full_text(),
            "the run stopped while implementing e0003: the server answered 503"
        );
        assert_eq!(error.hint.as_deref(), Some("go on later"));
    }
}
