//! Acceptance of step outcomes: turns each into the event to record. Pure, and in the order of the
//! record, whatever finishes first.

use super::{IdeaProposal, StepOutcome, redo};
use crate::bill::RoleBills;
use crate::event::{Event, IdeasProposed, Leftover, NewEval, PaidStep};
use crate::facts::{Facts, RemovalState};
use crate::group::IdeaSource;
use crate::id::EvalId;
use crate::state::State;
use jiff::{SignedDuration, Timestamp};

/// Returns the event to record for an outcome; `None` if its turn has not come, because an earlier
/// node's ideas are still missing.
#[must_use]
pub fn accept_outcome(state: &State, outcome: &StepOutcome, at: Timestamp) -> Option<Event> {
    Some(match outcome.clone() {
        StepOutcome::RootMeasured { baseline, rows, parent, protected_inputs, tree, checks } => {
            let protected_inputs = protected_inputs.map(Box::new);
            let (tree, checks) = (Some(tree), Some(checks));
            Event::RootMeasured { baseline, rows, parent, protected_inputs, tree, checks, at }
        }
        StepOutcome::RootRefused { why } => Event::RootRefused { why },
        StepOutcome::Proposed(proposal) => {
            if !is_next_in_line(state, proposal.source) {
                return None;
            }
            Event::IdeasProposed(Box::new(number_ideas(state, proposal, at)))
        }
        StepOutcome::ProposalFailed { source, why, turns, bills, conversation } => {
            if !is_next_in_line(state, source) {
                return None;
            }
            Event::ProposalFailed { source, why, turns, bills, conversation, at }
        }
        StepOutcome::Implemented { eval, commit, tree, files_changed, rounds, approval, bills } => {
            let tree = Some(tree);
            Event::Implemented { eval, commit, tree, files_changed, rounds, approval, bills, at }
        }
        StepOutcome::Swept { eval, .. } if state.history.suspects.contains(&eval) => {
            redo::failure_event(
                state,
                eval,
                redo::suspect_sweep_failure(),
                RoleBills::default(),
                at,
            )
        }
        StepOutcome::Swept { eval, results } => Event::Swept { eval, results, at },
        StepOutcome::Scored { eval, scored, same_code_as } => {
            Event::Scored { eval, scored, same_code_as, at }
        }
        StepOutcome::OverBudget { step, budget, bills } => {
            Event::BudgetReached { budget, step, bills }
        }
        StepOutcome::EvalFailed { eval, failure, bills } => {
            redo::failure_event(state, eval, failure, bills, at)
        }
        StepOutcome::Promoted(from) => Event::NodeAdded { node: state.next_node_id(), from, at },
        StepOutcome::PromotionFailed { eval, why } => Event::PromotionFailed { eval, why },
        StepOutcome::Discarded(leftover) => Event::Discarded { leftover },
        StepOutcome::DiscardFailed { leftover, why } => {
            let retry_at = at.saturating_add(retry_delay(state, &leftover)).unwrap_or(at);
            Event::DiscardDeferred { leftover, why, retry_at }
        }
    })
}

/// Returns true if the source's ideas may be recorded next; the control group's follow all nodes'.
fn is_next_in_line(state: &State, source: IdeaSource) -> bool {
    let mut waiting = state.nodes_awaiting_ideas().map(IdeaSource::Node);
    source == IdeaSource::Control
        || waiting.find(|node| !state.is_stopped_by_budget(PaidStep::Propose(*node)))
            == Some(source)
}

/// Assigns ids to the ideas, as far as the budget allows.
fn number_ideas(state: &State, proposal: IdeaProposal, at: Timestamp) -> IdeasProposed {
    let room =
        usize::try_from(state.remaining_evals_of(proposal.source.group())).unwrap_or(usize::MAX);
    let IdeaProposal { source, mut ideas, repeats, turns, context, bills, conversation } = proposal;
    let untried = ideas.split_off(room.min(ideas.len()));
    let ids = (state.next_eval_id().number()..).map(EvalId::new);
    let queued = ids.zip(ideas).map(|(eval, idea)| NewEval { eval, idea }).collect();
    IdeasProposed { source, queued, untried, repeats, turns, context, bills, conversation, at }
}

/// Returns the delay before the next attempt: 2, 4, 8… seconds, at most about an hour.
fn retry_delay(state: &Facts, leftover: &Leftover) -> SignedDuration {
    let attempts = match state.leftovers.get(leftover) {
        Some(RemovalState::Deferred { attempts, .. }) => *attempts,
        Some(RemovalState::Kept | RemovalState::Due) | None => 0,
    };
    SignedDuration::from_secs(2_i64 << attempts.min(11))
}
