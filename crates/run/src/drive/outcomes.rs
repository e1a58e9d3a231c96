//! What comes back to the loop: reports of its threads, and what their outcomes mean for the record.

use super::{Coordinator, Halt, Report};
use crate::brief;
use crate::port::Moment;
use crate::stage::StepEnd;
use treebeam_core::event::{
    ArtifactsRestored, EvalStage, Event, FailureKind, FileDigest, FilesRecorded, Subject,
};
use treebeam_core::evidence::Artifact;
use treebeam_core::plan::{self, Outcome};
use treebeam_core::state::State;

/// How often in a row a promotion may fail before the run halts.
const PROMOTION_TRIES: u32 = 3;

impl Coordinator<'_, '_> {
    /// Waits for something to end, but no longer than until the next look into the inbox, and takes in all that has.
    pub(super) fn receive(&mut self) -> Result<(), Halt> {
        let Ok(first) = self.receiver.recv_timeout(self.world.inbox.rest()) else { return Ok(()) };
        self.take(first)?;
        while let Ok(report) = self.receiver.try_recv() {
            self.take(report)?;
        }
        self.accept_held()
    }

    fn take(&mut self, report: Report) -> Result<(), Halt> {
        self.threads -= 1;
        match report {
            Report::Stepped(step, done) => match done? {
                Some(outcome) => self.held.push((Some(step), outcome)),
                None => drop(self.running.steps.remove(&step)),
            },
            Report::Polled(ended) => {
                self.polling = false;
                for end in ended? {
                    self.collect(end)?;
                }
            }
            Report::Collected(subject, done) => {
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

    /// Accepts outcomes in the order in which their turns come, whatever the order in which they came.
    pub(super) fn accept_held(&mut self) -> Result<(), Halt> {
        let mut waiting = std::mem::take(&mut self.held);
        self.drop_suspects(&mut waiting)?;
        // First those that found artifacts changed: sweeps that ended beside them are suspect too.
        waiting.sort_by_key(|(_, end)| end.changed_artifacts.is_empty());
        let mut seen = Ok(());
        loop {
            let before = waiting.len();
            for (step, end) in std::mem::take(&mut waiting) {
                let at = self.world.clock.at_or_now(ending(&self.state, &end.outcome));
                let Some(event) = plan::accept(&self.state, &end.outcome, at) else {
                    waiting.push((step, end));
                    continue;
                };
                let StepEnd { outcome, files, changed_artifacts } = end;
                if !changed_artifacts.is_empty() {
                    self.suspect_sweeps(&changed_artifacts)?;
                }
                // Before the end: a step whose end is on record has its digests on record too.
                self.record_files(files)?;
                self.apply(event)?;
                if let Some(step) = step {
                    self.running.steps.remove(&step);
                }
                seen = seen.and(self.look_at(&outcome));
            }
            if waiting.is_empty() || waiting.len() == before {
                self.held = waiting;
                return seen;
            }
        }
    }

    /// Records the digests of the files that a step has written.
    pub(super) fn record_files(&mut self, files: Vec<FileDigest>) -> Result<(), Halt> {
        if files.is_empty() {
            return Ok(());
        }
        self.apply(Event::FilesRecorded(Box::new(FilesRecorded { files })))
    }

    /// Records which artifacts were changed, and restores them. Any sweep that is under way can
    /// have changed them: it may have changed others' results as well as its own.
    fn suspect_sweeps(&mut self, changed: &[Artifact]) -> Result<(), Halt> {
        let artifacts = changed.iter().map(|artifact| artifact.path.clone()).collect();
        let suspects = self.state.sweeping().iter().copied().collect();
        let at = self.world.clock.now();
        self.apply(Event::ArtifactsRestored(Box::new(ArtifactsRestored {
            artifacts,
            suspects,
            at,
        })))?;
        self.record()?;
        Ok(self.world.files.restore(changed)?)
    }

    /// Restores what a process that was cut off has recorded as changed: who is suspect is known.
    pub(super) fn finish_restoring(&self) -> Result<(), Halt> {
        if self.state.history.suspects.is_empty() {
            return Ok(());
        }
        Ok(self.world.files.restore(&brief::decisive_artifacts(&self.state))?)
    }

    /// Some outcomes are recorded and end the loop all the same: without a root there is nothing to compare with, and a
    /// promotion is tried again, but not for ever.
    fn look_at(&mut self, outcome: &Outcome) -> Result<(), Halt> {
        match outcome {
            Outcome::Promoted(_) => self.promotion_failures = 0,
            Outcome::PromotionFailed { eval, why } => {
                self.promotion_failures += 1;
                if self.promotion_failures >= PROMOTION_TRIES {
                    return Err(Halt::Promotion { eval: *eval, why: why.clone() });
                }
            }
            Outcome::RootRefused { why } => return Err(Halt::RootUnsound { why: why.clone() }),
            Outcome::EvalFailed { eval, failure, .. } if failure.kind == FailureKind::Inputs => {
                self.void_sweeps_beside(Subject::Eval(*eval))?;
            }
            Outcome::RootMeasured { .. }
            | Outcome::Proposed(_)
            | Outcome::ProposalFailed { .. }
            | Outcome::Implemented { .. }
            | Outcome::Swept { .. }
            | Outcome::Scored { .. }
            | Outcome::OverBudget { .. }
            | Outcome::EvalFailed { .. }
            | Outcome::Discarded(_)
            | Outcome::DiscardFailed { .. } => {}
        }
        Ok(())
    }
}

/// What the end of a step is dated by; nothing where the time on the wall will do.
fn ending(state: &State, outcome: &Outcome) -> Option<Moment> {
    let of_eval = |eval, stage| Some(Moment::Eval(eval, stage, brief::attempt_of(state, eval)));
    match outcome {
        Outcome::RootMeasured { .. } => Some(Moment::Start),
        Outcome::Proposed(proposal) => Some(brief::expansion(state, proposal.source.node())),
        Outcome::ProposalFailed { source, .. } => Some(brief::expansion(state, source.node())),
        Outcome::Implemented { eval, .. } => of_eval(*eval, EvalStage::Implement),
        Outcome::Swept { eval, .. } => of_eval(*eval, EvalStage::Sweep),
        Outcome::Scored { eval, .. } => of_eval(*eval, EvalStage::Score),
        Outcome::EvalFailed { eval, failure, .. } => of_eval(*eval, failure.stage),
        Outcome::Promoted(eval) => Some(Moment::Promotion(*eval)),
        Outcome::RootRefused { .. }
        | Outcome::OverBudget { .. }
        | Outcome::PromotionFailed { .. }
        | Outcome::Discarded(_)
        | Outcome::DiscardFailed { .. } => None,
    }
}
