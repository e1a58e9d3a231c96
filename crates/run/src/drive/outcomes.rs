//! Handles the reports of the loop's threads, and records the outcomes of steps.

use super::{RunDriver, RunHalt, ThreadReport};
use crate::brief;
use crate::port::RecordedMoment;
use crate::step_files::StepEnd;
use treebeam_core::event::{
    ArtifactsRestored, EvalStage, Event, FailureKind, FileDigest, FilesRecorded, SweepSubject,
};
use treebeam_core::evidence::Artifact;
use treebeam_core::plan::{self, StepOutcome};
use treebeam_core::state::State;

/// Largest number of failures of a promotion in a row before the run halts.
const MAX_PROMOTION_TRIES: u32 = 3;

impl RunDriver<'_, '_> {
    /// Waits for a report, at most until the next look into the inbox, and handles all that came.
    pub(super) fn receive_reports(&mut self) -> Result<(), RunHalt> {
        let Ok(first) = self.receiver.recv_timeout(self.world.inbox.poll_interval()) else {
            return Ok(());
        };
        self.take_report(first)?;
        while let Ok(report) = self.receiver.try_recv() {
            self.take_report(report)?;
        }
        self.accept_held()
    }

    fn take_report(&mut self, report: ThreadReport) -> Result<(), RunHalt> {
        self.threads -= 1;
        match report {
            ThreadReport::Stepped(step, done) => match done? {
                Some(outcome) => self.held.push((Some(step), outcome)),
                None => drop(self.running.steps.remove(&step)),
            },
            ThreadReport::Polled(ended) => {
                self.polling = false;
                for end in ended? {
                    self.collect_job(end)?;
                }
            }
            ThreadReport::Collected(subject, done) => {
                self.collecting.remove(&subject);
                self.running.jobs.remove(&subject);
                let is_void = self.void.remove(&subject).is_some();
                let Some(end) = done? else { return Ok(()) };
                if is_void {
                    self.record_files(end.files)?;
                } else {
                    self.held.push((None, end));
                }
            }
        }
        Ok(())
    }

    /// Accepts outcomes in their planned order, whatever the order in which they came.
    pub(super) fn accept_held(&mut self) -> Result<(), RunHalt> {
        let mut waiting = std::mem::take(&mut self.held);
        self.drop_suspects(&mut waiting)?;
        // First those that found artifacts changed: sweeps that ended beside them are suspect too.
        waiting.sort_by_key(|(_, end)| end.changed_artifacts.is_empty());
        let mut seen = Ok(());
        loop {
            let before = waiting.len();
            for (step, end) in std::mem::take(&mut waiting) {
                let at =
                    self.world.clock.recorded_time_or_now(end_moment(&self.state, &end.outcome));
                let Some(event) = plan::accept_outcome(&self.state, &end.outcome, at) else {
                    waiting.push((step, end));
                    continue;
                };
                let StepEnd { outcome, files, changed_artifacts } = end;
                if !changed_artifacts.is_empty() {
                    self.suspect_sweeps(&changed_artifacts)?;
                }
                // Before the end: a step whose end is on record has its digests on record too.
                self.record_files(files)?;
                self.apply_event(event)?;
                if let Some(step) = step {
                    self.running.steps.remove(&step);
                }
                seen = seen.and(self.react_to_outcome(&outcome));
            }
            if waiting.is_empty() || waiting.len() == before {
                self.held = waiting;
                return seen;
            }
        }
    }

    /// Records the digests of the files that a step has written.
    pub(super) fn record_files(&mut self, files: Vec<FileDigest>) -> Result<(), RunHalt> {
        if files.is_empty() {
            return Ok(());
        }
        self.apply_event(Event::FilesRecorded(Box::new(FilesRecorded { files })))
    }

    /// Records which artifacts were changed, and restores them. Any running sweep can have changed
    /// them: it may have changed others' results as well as its own.
    fn suspect_sweeps(&mut self, changed: &[Artifact]) -> Result<(), RunHalt> {
        let artifacts = changed.iter().map(|artifact| artifact.path.clone()).collect();
        let suspects = self.state.sweeping_evals().iter().copied().collect();
        let at = self.world.clock.now();
        self.apply_event(Event::ArtifactsRestored(Box::new(ArtifactsRestored {
            artifacts,
            suspects,
            at,
        })))?;
        self.record_batch()?;
        Ok(self.world.files.restore_artifacts(changed)?)
    }

    /// Restores artifacts whose change a cut-off process has recorded, together with the suspects.
    pub(super) fn finish_restoring(&self) -> Result<(), RunHalt> {
        if self.state.history.suspects.is_empty() {
            return Ok(());
        }
        Ok(self.world.files.restore_artifacts(&brief::decisive_artifacts(&self.state))?)
    }

    /// Ends the loop after some recorded outcomes: without a root there is nothing to compare with,
    /// and a promotion is not tried again for ever.
    fn react_to_outcome(&mut self, outcome: &StepOutcome) -> Result<(), RunHalt> {
        match outcome {
            StepOutcome::Promoted(_) => self.promotion_failures = 0,
            StepOutcome::PromotionFailed { eval, why } => {
                self.promotion_failures += 1;
                if self.promotion_failures >= MAX_PROMOTION_TRIES {
                    return Err(RunHalt::Promotion { eval: *eval, why: why.clone() });
                }
            }
            StepOutcome::RootRefused { why } => {
                return Err(RunHalt::RootUnsound { why: why.clone() });
            }
            StepOutcome::EvalFailed { eval, failure, .. }
                if failure.kind == FailureKind::Inputs =>
            {
                self.void_other_sweeps(SweepSubject::Eval(*eval))?;
            }
            StepOutcome::RootMeasured { .. }
            | StepOutcome::Proposed(_)
            | StepOutcome::ProposalFailed { .. }
            | StepOutcome::Implemented { .. }
            | StepOutcome::Swept { .. }
            | StepOutcome::Scored { .. }
            | StepOutcome::OverBudget { .. }
            | StepOutcome::EvalFailed { .. }
            | StepOutcome::Discarded(_)
            | StepOutcome::DiscardFailed { .. } => {}
        }
        Ok(())
    }
}

/// Returns the moment by which the end of a step is dated; `None` stands for the wall-clock time.
fn end_moment(state: &State, outcome: &StepOutcome) -> Option<RecordedMoment> {
    let of_eval =
        |eval, stage| Some(RecordedMoment::Eval(eval, stage, brief::attempt_number(state, eval)));
    match outcome {
        StepOutcome::RootMeasured { .. } => Some(RecordedMoment::Start),
        StepOutcome::Proposed(proposal) => {
            Some(brief::expansion_moment(state, proposal.source.node_id()))
        }
        StepOutcome::ProposalFailed { source, .. } => {
            Some(brief::expansion_moment(state, source.node_id()))
        }
        StepOutcome::Implemented { eval, .. } => of_eval(*eval, EvalStage::Implement),
        StepOutcome::Swept { eval, .. } => of_eval(*eval, EvalStage::Sweep),
        StepOutcome::Scored { eval, .. } => of_eval(*eval, EvalStage::Score),
        StepOutcome::EvalFailed { eval, failure, .. } => of_eval(*eval, failure.stage),
        StepOutcome::Promoted(eval) => Some(RecordedMoment::Promotion(*eval)),
        StepOutcome::RootRefused { .. }
        | StepOutcome::OverBudget { .. }
        | StepOutcome::PromotionFailed { .. }
        | StepOutcome::Discarded(_)
        | StepOutcome::DiscardFailed { .. } => None,
    }
}
