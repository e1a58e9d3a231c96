//! Repeats the sweeps that were running when inputs were found changed. Each of them may have been
//! measured on other data, or may have changed them. The repetition is recorded at once, as a
//! submission whose job comes later.

use super::{RunDriver, RunHalt};
use crate::port::JobEnd;
use crate::step_files::StepEnd;
use treebeam_core::event::{Event, FailureKind, SweepSubject};
use treebeam_core::plan::{Step, StepOutcome};

impl RunDriver<'_, '_> {
    /// Voids all sweeps that are running or being collected, except the one that found the change.
    pub(super) fn void_other_sweeps(&mut self, subject: SweepSubject) -> Result<(), RunHalt> {
        let is_suspect = |other: &SweepSubject| *other != subject && !self.void.contains_key(other);
        let suspects: Vec<SweepSubject> =
            self.running.jobs.iter().copied().filter(is_suspect).collect();
        for subject in suspects {
            let void = self.state.submission_count(subject);
            self.submit_later(subject)?;
            self.void.insert(subject, void);
        }
        Ok(())
    }

    /// Drops the results that came in together with the report of changed inputs.
    pub(super) fn drop_suspects(
        &mut self,
        held: &mut Vec<(Option<Step>, StepEnd)>,
    ) -> Result<(), RunHalt> {
        let is_notice = |(_, end): &(_, StepEnd)| matches!(&end.outcome, StepOutcome::EvalFailed { failure, .. } if failure.kind == FailureKind::Inputs);
        if !held.iter().any(is_notice) {
            return Ok(());
        }
        let is_result = |(_, end): &(_, StepEnd)| matches!(end.outcome, StepOutcome::Swept { .. });
        let (suspects, kept) = std::mem::take(held).into_iter().partition(is_result);
        *held = kept;
        let suspects: Vec<(Option<Step>, StepEnd)> = suspects;
        suspects.into_iter().try_for_each(|(_, end)| self.void_result(end))
    }

    /// Drops one result. The files that collecting it wrote stay until the next one.
    fn void_result(&mut self, end: StepEnd) -> Result<(), RunHalt> {
        self.record_files(end.files)?;
        if let StepOutcome::Swept { eval, .. } = end.outcome {
            self.submit_later(SweepSubject::Eval(eval))?;
        }
        Ok(())
    }

    fn submit_later(&mut self, subject: SweepSubject) -> Result<(), RunHalt> {
        let submission = self.state.submission_count(subject) + 1;
        self.apply_event(Event::SweepSubmitted { subject, submission })
    }

    /// Lets a sweep be planned again once the job of its void submission has ended.
    pub(super) fn forget_void(&mut self, end: &JobEnd) {
        let subject = end.key.subject;
        if self.void.get(&subject) == Some(&end.key.submission) {
            self.void.remove(&subject);
            self.running.jobs.remove(&subject);
        }
    }
}
