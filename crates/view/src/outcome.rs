//! Describes the status of an eval in one word and in one line, for all views. It decides nothing:
//! the words follow from the recorded stage and verdict.

use crate::safe_text::{self, one_line};
use crate::words;
use std::fmt;
use treebeam_core::event::EvalFailure;
use treebeam_core::facts::{CandidateFate, Eval, Facts, Stage};
use treebeam_core::group::EvalGroup;
use treebeam_core::id::CodePlace;

/// Status of an eval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EvalStatus {
    /// The eval became a node.
    Promoted,
    /// The eval is in the beam of its depth; its node is being made.
    Chosen,
    /// The eval passed the gate but is not in the beam of its depth.
    Passed,
    /// The eval did not pass the gate.
    Rejected,
    /// The eval ended without a score.
    Failed,
    /// A budget was reached before the eval ended.
    Unfinished,
    /// The eval is scored for comparison only: neither gated nor promoted.
    Control,
    /// The eval is scored and waits for its depth to close.
    Scored,
    /// The eval is being implemented, swept or compared.
    Running,
    /// The eval waits to be implemented.
    Queued,
    /// The idea was evaluated again under another id.
    Superseded,
    /// The eval never began: its node was asked for another idea.
    SetAside,
}

impl EvalStatus {
    /// All statuses, in the order of lists.
    pub const ALL: [Self; 12] = [
        Self::Promoted,
        Self::Chosen,
        Self::Passed,
        Self::Rejected,
        Self::Failed,
        Self::Unfinished,
        Self::Control,
        Self::Scored,
        Self::Running,
        Self::Queued,
        Self::Superseded,
        Self::SetAside,
    ];

    /// Returns the current status of an eval.
    #[must_use]
    pub fn from_eval(eval: &Eval) -> Self {
        match &eval.stage {
            Stage::Queued => Self::Queued,
            Stage::Implementing(_)
            | Stage::Implemented(_)
            | Stage::Sweeping(_)
            | Stage::Swept(..) => Self::Running,
            Stage::Scored(_) => match eval.group {
                EvalGroup::Tree => Self::Scored,
                EvalGroup::Control => Self::Control,
            },
            Stage::Failed { .. } => Self::Failed,
            Stage::Unfinished { .. } => Self::Unfinished,
            Stage::Superseded(..) => Self::Superseded,
            Stage::SetAside => Self::SetAside,
            Stage::Decided(_, _, CandidateFate::Promoted(_)) => Self::Promoted,
            Stage::Decided(_, _, CandidateFate::Chosen) => Self::Chosen,
            Stage::Decided(_, word, CandidateFate::Dropped) if word.has_passed() => Self::Passed,
            Stage::Decided(_, _, CandidateFate::Dropped) => Self::Rejected,
        }
    }

    /// Returns the word for the status.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Promoted => "promoted",
            Self::Chosen => "chosen",
            Self::Passed => "passed",
            Self::Rejected => "rejected",
            Self::Failed => "failed",
            Self::Unfinished => "unfinished",
            Self::Control => "control",
            Self::Scored => "scored",
            Self::Running => "running",
            Self::Queued => "queued",
            Self::Superseded => "superseded",
            Self::SetAside => "set_aside",
        }
    }
}

impl fmt::Display for EvalStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// Returns the reason for the status, or what the eval waits for, in one line.
#[must_use]
pub fn eval_reason(eval: &Eval) -> String {
    match eval.candidate().and_then(|work| work.same_code_as) {
        None => own_reason(eval),
        Some(original) => format!("{}; {}", words::describe_same_code(original), own_reason(eval)),
    }
}

fn own_reason(eval: &Eval) -> String {
    match &eval.stage {
        Stage::Queued if eval.again.is_some() => {
            format!("waits to be swept again as committed, attempt {}", eval.attempt)
        }
        Stage::Queued if eval.attempt > 1 => {
            format!("waits to be implemented, attempt {}", eval.attempt)
        }
        Stage::Queued => "waits to be implemented".to_owned(),
        Stage::Implementing(_) => "being implemented".to_owned(),
        Stage::Implemented(_) => "waits to be swept".to_owned(),
        Stage::Sweeping(_) => "being swept".to_owned(),
        Stage::Swept(..) => "being compared".to_owned(),
        Stage::Scored(_) => match eval.group {
            EvalGroup::Tree => "waits for its depth to close".to_owned(),
            EvalGroup::Control => {
                "tried on the root for comparison: neither gated nor promoted".to_owned()
            }
        },
        Stage::Decided(measured, word, CandidateFate::Dropped) if word.has_passed() => {
            one_line(&format!("{}; not in the beam", word.to_verdict(measured).reason()))
        }
        Stage::Decided(measured, word, _) => one_line(&word.to_verdict(measured).reason()),
        Stage::Failed { failure, .. } => {
            one_line(&format!("failed at {}: {}", failure_stage(failure), failure.message))
        }
        Stage::Unfinished { started_at: None, budget } => {
            format!("not tried: {} reached", words::budget_key(*budget))
        }
        Stage::Unfinished { started_at: Some(_), budget } => {
            format!("not tried to its end: {} reached", words::budget_key(*budget))
        }
        Stage::Superseded(_, by) => format!("evaluated again as {}", CodePlace::Candidate(*by)),
        Stage::SetAside => "never begun: its node was asked for another idea".to_owned(),
    }
}

/// Returns the reason in at most `most` characters.
pub(crate) fn brief_reason(eval: &Eval, most: usize) -> String {
    let Stage::Failed { failure, .. } = &eval.stage else {
        return safe_text::shorten_text(&eval_reason(eval), most);
    };
    safe_text::format_failure(
        &format!("failed at {}", failure_stage(failure)),
        &failure.message,
        most,
    )
}

/// Returns the failed stage, with the kind of failure if that says more.
fn failure_stage(failure: &EvalFailure) -> String {
    let (stage, kind) = (failure.stage.to_string(), failure.kind.to_string());
    if stage == kind { stage } else { format!("{stage} ({kind})") }
}

/// Number of evals by status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EvalCounts([u32; EvalStatus::ALL.len()]);

impl EvalCounts {
    /// Counts all evals of a run. It looks at every eval: use it for reports, not for every event.
    #[must_use]
    pub fn overall(facts: &Facts) -> Self {
        Self::from_evals(facts.evals.iter())
    }

    /// Counts the evals of the open depth.
    #[must_use]
    pub fn open_depth(facts: &Facts) -> Self {
        Self::from_evals(facts.open_evals())
    }

    /// Counts these evals.
    #[must_use]
    pub fn from_evals(evals: impl IntoIterator<Item = impl AsRef<Eval>>) -> Self {
        let mut counts = Self::default();
        for eval in evals {
            counts.0[EvalStatus::from_eval(eval.as_ref()) as usize] += 1;
        }
        counts
    }

    /// Returns the number of evals with this status.
    #[must_use]
    pub const fn get(self, outcome: EvalStatus) -> u32 {
        self.0[outcome as usize]
    }

    /// Formats the counts with the unfinished statuses first.
    pub(crate) fn format_open_first(self) -> String {
        const OPEN_STATUSES: [EvalStatus; 3] =
            [EvalStatus::Running, EvalStatus::Queued, EvalStatus::Scored];
        let mut order = EvalStatus::ALL;
        order.sort_by_key(|outcome| {
            OPEN_STATUSES.iter().position(|it| it == outcome).unwrap_or(OPEN_STATUSES.len())
        });
        self.format_in_order(order)
    }

    /// Formats the counts that are not zero, in this order.
    fn format_in_order(self, order: [EvalStatus; EvalStatus::ALL.len()]) -> String {
        let count = |outcome| (self.get(outcome), outcome);
        let some = order.into_iter().map(count).filter(|(number, _)| *number > 0);
        let parts: Vec<_> = some.map(|(number, outcome)| format!("{number} {outcome}")).collect();
        if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
    }

    /// Returns the total number.
    #[must_use]
    pub fn total(self) -> u32 {
        self.0.into_iter().sum()
    }
}

/// Formats as `2 promoted, 1 failed`; zero counts are left out.
impl fmt::Display for EvalCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.format_in_order(EvalStatus::ALL))
    }
}
