//! Planning: the next moves of a run, as a pure function of state and running steps. Nothing waits
//! here, and nothing depends on the order of finishing.

mod accept;
mod close;
mod redo;
pub mod removal;
pub mod user_idea;

pub use accept::accept_outcome;
pub use redo::{RedoKind, SUSPECT_SWEEP_MESSAGE, send_back};

use crate::bill::RoleBills;
use crate::conversation::Turn;
use crate::event::{
    Approval, BudgetKind, ContextPack, EvalFailure, Event, Idea, Leftover, PaidStep, RepeatedIdea,
    StopReason, SweepSubject,
};
use crate::evidence::{Artifact, CandidateScore};
use crate::facts::{Eval, Expansion, Facts, RemovalState, RunPhase, Stage};
use crate::group::IdeaSource;
use crate::id::{Commit, EvalId, GitTree, NodeId, Sha256};
use crate::policy::DedupeScope;
use crate::root_checks::RootChecks;
use crate::state::State;
use jiff::Timestamp;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::num::NonZeroU32;

/// Effect that needs the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Generate ideas for a node or for the control group.
    Propose(IdeaSource),
    /// Turn an idea into a commit.
    Implement(EvalId),
    /// Submit a sweep to the executor.
    Sweep(SweepSubject),
    /// Compare a candidate with its parent and with the root.
    Score(EvalId),
    /// Turn a candidate into a node.
    Promote(EvalId),
    /// Remove a leftover.
    Discard(Leftover),
}

/// Next action of the loop.
#[derive(Clone, Debug, PartialEq)]
pub enum PlanMove {
    /// Start this step.
    Start(Step),
    /// Record this decision, which needs no world.
    Record(Event),
    /// Record that the run is over.
    Stop(StopReason),
}

/// Steps and jobs that are running in this process.
#[derive(Clone, Debug, Default)]
pub struct RunningSteps {
    /// Steps that were started, or whose outcome is not accepted yet.
    pub steps: BTreeSet<Step>,
    /// Sweeps that were submitted to the executor or are being submitted.
    pub jobs: BTreeSet<SweepSubject>,
    /// Deferred leftovers that had their last attempt, at the end of the run.
    pub last_tries: BTreeSet<Leftover>,
}

impl RunningSteps {
    fn has_step(&self, step: Step) -> bool {
        self.steps.contains(&step)
    }
    fn discard_count(&self) -> usize {
        self.steps.iter().filter(|step| matches!(step, Step::Discard(_))).count()
    }
    fn is_searching(&self) -> bool {
        self.steps.len() > self.discard_count()
    }
}

/// Result of a step.
#[derive(Clone, Debug, PartialEq)]
pub enum StepOutcome {
    /// The root's sweep finished and is valid.
    RootMeasured {
        /// Results of the sweep.
        baseline: Artifact,
        /// Number of selected rows.
        rows: u32,
        /// Results that candidates are compared with as their parent, if from another sweep.
        parent: Option<Artifact>,
        /// Digest of the protected inputs at that time, if there are any.
        protected_inputs: Option<Sha256>,
        /// Git tree of the root.
        tree: GitTree,
        /// Checks that candidates' sweeps must pass.
        checks: Box<RootChecks>,
    },
    /// The root's sweep finished, but cannot serve as a baseline.
    RootRefused {
        /// Reason for the refusal.
        why: String,
    },
    /// Ideas were received for a node or for the control group.
    Proposed(IdeaProposal),
    /// No ideas were received for a node or for the control group.
    ProposalFailed {
        /// Node or group concerned.
        source: IdeaSource,
        /// Reason for the failure.
        why: String,
        /// Number of turns used.
        turns: u32,
        /// Bills of the replies.
        bills: RoleBills,
        /// Turns of the conversation, if there is one.
        conversation: Vec<Turn>,
    },
    /// A candidate was committed.
    Implemented {
        /// Eval of the candidate.
        eval: EvalId,
        /// Commit of the candidate.
        commit: Commit,
        /// Git tree of the candidate.
        tree: GitTree,
        /// Number of files changed.
        files_changed: u32,
        /// Number of rounds that the coder needed.
        rounds: u32,
        /// Approval of the candidate.
        approval: Approval,
        /// Bills of the replies.
        bills: RoleBills,
    },
    /// A candidate's sweep finished.
    Swept {
        /// Eval of the candidate.
        eval: EvalId,
        /// Results of the sweep.
        results: Artifact,
    },
    /// A candidate was scored.
    Scored {
        /// Eval of the candidate.
        eval: EvalId,
        /// Figures of the comparison.
        scored: Box<CandidateScore>,
        /// Older twin whose results were compared in place of an own sweep.
        same_code_as: Option<SweepSubject>,
    },
    /// A budget stopped a step before its end.
    OverBudget {
        /// Step that was stopped.
        step: PaidStep,
        /// Budget that was reached.
        budget: BudgetKind,
        /// Bills of the replies so far.
        bills: RoleBills,
    },
    /// An eval failed.
    EvalFailed {
        /// Eval that failed.
        eval: EvalId,
        /// Stage and reason of the failure.
        failure: EvalFailure,
        /// Bills of the replies, if it failed before the commit.
        bills: RoleBills,
    },
    /// A candidate became a node.
    Promoted(EvalId),
    /// A candidate could not be made a node.
    PromotionFailed {
        /// Eval of the candidate.
        eval: EvalId,
        /// Reason for the failure.
        why: String,
    },
    /// A leftover was removed.
    Discarded(Leftover),
    /// A leftover could not be removed.
    DiscardFailed {
        /// Leftover concerned.
        leftover: Leftover,
        /// Reason for the failure.
        why: String,
    },
}

/// Ideas of a node or of the control group, before they get ids.
#[derive(Clone, Debug, PartialEq)]
pub struct IdeaProposal {
    /// Node or group that the ideas are for.
    pub source: IdeaSource,
    /// Ideas in the order of their file names.
    pub ideas: Vec<Idea>,
    /// Repeated ideas that were skipped.
    pub repeats: Vec<RepeatedIdea>,
    /// Number of turns used.
    pub turns: u32,
    /// Context in the generator's prompt.
    pub context: ContextPack,
    /// Bills of the replies.
    pub bills: RoleBills,
    /// Turns of the conversation, if there is one.
    pub conversation: Vec<Turn>,
}

/// Returns the moves possible now, most urgent first. Empty means wait or, if idle, the end.
#[must_use]
pub fn next_moves(state: &State, running: &RunningSteps, now: Timestamp) -> Vec<PlanMove> {
    let mut moves = match &state.phase {
        RunPhase::Stopped { .. } => return last_discard_move(state, running).into_iter().collect(),
        // A running sweep counts; none begins any more.
        RunPhase::Measuring
            if is_deadline_overdue(state, now) && !running.jobs.contains(&SweepSubject::Root) =>
        {
            return finish_moves(state, running, StopReason::Deadline);
        }
        RunPhase::Measuring => sweep_moves(state, running),
        RunPhase::Promoting { left } => promote_moves(left, running),
        RunPhase::Searching => match close::stop_before_depth(state) {
            Some(reason) => return finish_moves(state, running, reason),
            None if state.stopped_after().is_some() => {
                return last_discard_move(state, running).into_iter().collect();
            }
            None if is_deadline_overdue(state, now) => {
                return vec![PlanMove::Record(Event::DeadlinePassed { at: now })];
            }
            None => search_moves(state, running),
        },
    };
    moves.extend(discard_move(state, running, now));
    moves
}

/// Returns true if the deadline has passed and this is not recorded yet.
fn is_deadline_overdue(state: &Facts, now: Timestamp) -> bool {
    !state.is_past_deadline() && state.deadline().is_some_and(|deadline| deadline <= now)
}

fn promote_moves(left: &[EvalId], running: &RunningSteps) -> Vec<PlanMove> {
    let first = left.first().map(|eval| Step::Promote(*eval));
    first.filter(|step| !running.has_step(*step)).map(PlanMove::Start).into_iter().collect()
}

fn search_moves(state: &State, running: &RunningSteps) -> Vec<PlanMove> {
    let mut moves = Vec::new();
    let scored = state.swept_evals().iter().copied().chain(state.evals_measured_by_twin());
    moves.extend(scored.map(|eval| PlanMove::Start(Step::Score(eval))));
    moves.extend(sweep_moves(state, running));
    moves.extend(implement_moves(state));
    moves.extend(propose_moves(state));
    moves.retain(|step| !matches!(step, PlanMove::Start(step) if running.has_step(*step)));
    let removing = state.due_worktree_count() > 0;
    if moves.is_empty()
        && !running.is_searching()
        && !has_unfinished_work(state, running)
        && !removing
    {
        moves.extend(state.evals_yielding_to_twin().map(|eval| PlanMove::Start(Step::Score(eval))));
        if moves.is_empty() {
            moves.push(PlanMove::Record(close::close_depth_event(state)));
        }
    }
    moves
}

/// Returns true if something still has to finish; after the deadline only running sweeps count.
fn has_unfinished_work(state: &State, running: &RunningSteps) -> bool {
    if state.is_past_deadline() {
        !running.jobs.is_empty()
    } else {
        state.active_evals().next().is_some()
    }
}

/// Before the end every leftover is tried, and deferred ones once more.
fn finish_moves(state: &State, running: &RunningSteps, reason: StopReason) -> Vec<PlanMove> {
    if !running.steps.is_empty() {
        return Vec::new();
    }
    vec![last_discard_move(state, running).unwrap_or(PlanMove::Stop(reason))]
}

fn last_discard_move(state: &State, running: &RunningSteps) -> Option<PlanMove> {
    let worth_a_try = |(leftover, removal): &(&Leftover, &RemovalState)| match removal {
        RemovalState::Kept => false,
        RemovalState::Due => true,
        RemovalState::Deferred { .. } => !running.last_tries.contains(leftover),
    };
    let (leftover, _) = state.leftovers.iter().find(worth_a_try)?;
    running.steps.is_empty().then_some(PlanMove::Start(Step::Discard(*leftover)))
}

/// Returns the deferred leftover for which this step is the last attempt, at the end of the run.
#[must_use]
pub fn last_discard_try(state: &State, step: Step) -> Option<Leftover> {
    let Step::Discard(leftover) = step else { return None };
    let deferred = matches!(state.leftovers.get(&leftover), Some(RemovalState::Deferred { .. }));
    let ending = match state.phase {
        RunPhase::Stopped { .. } => true,
        RunPhase::Searching => {
            close::stop_before_depth(state).is_some() || state.stopped_after().is_some()
        }
        RunPhase::Measuring | RunPhase::Promoting { .. } => false,
    };
    (deferred && ending).then_some(leftover)
}

fn discard_move(state: &State, running: &RunningSteps, now: Timestamp) -> Option<PlanMove> {
    let leftover = state.next_removable(now).filter(|_| running.discard_count() == 0)?;
    Some(PlanMove::Start(Step::Discard(leftover)))
}

/// Returns sweeps that are waiting, and those submitted by an earlier process, up to the limit. A
/// candidate with an older twin waits for the twin's results.
fn sweep_moves(state: &State, running: &RunningSteps) -> Vec<PlanMove> {
    let most = state.limits.sweep_max_parallel.map_or(u32::MAX, NonZeroU32::get);
    let room = usize::try_from(most).unwrap_or(usize::MAX).saturating_sub(running.jobs.len());
    if state.is_past_deadline() {
        return Vec::new();
    }
    let first = (state.phase == RunPhase::Measuring).then_some(SweepSubject::Root);
    let waiting =
        state.implemented_evals().iter().filter(|eval| !state.is_waiting_for_twin(**eval));
    let evals = state.sweeping_evals().iter().chain(waiting).copied().map(SweepSubject::Eval);
    let unknown = |subject: &SweepSubject| !running.jobs.contains(subject);
    let waiting = first.into_iter().chain(evals).filter(unknown).take(room);
    waiting.map(|subject| PlanMove::Start(Step::Sweep(subject))).collect()
}

/// Returns evals whose implementation was interrupted, then new ones while there are slots, ordered
/// by id; no new ones once a budget is reached. A worktree that is due for removal takes a slot, or
/// the disk would fill up.
fn implement_moves(state: &State) -> Vec<PlanMove> {
    if state.is_past_deadline() {
        return Vec::new();
    }
    let goes_on = |eval: &EvalId| !state.is_stopped_by_budget(PaidStep::Implement(*eval));
    let cut_off = state.implementing_evals().iter().copied().filter(goes_on);
    let mut begun: Vec<EvalId> = Vec::new();
    let slots = if state.reached_budget.is_none() { eval_slots(state) } else { 0 };
    let mut free =
        slots.saturating_sub(state.evals_under_way().count() + state.due_worktree_count());
    for (node, queued) in state.queued_evals() {
        let room = free.min(free_slots_on(state, node, &begun));
        begun.extend(queued.iter().take(room));
        free -= room.min(queued.len());
        if free == 0 {
            break;
        }
    }
    cut_off.chain(begun).map(|eval| PlanMove::Start(Step::Implement(eval))).collect()
}

fn eval_slots(state: &State) -> usize {
    usize::try_from(state.limits.max_parallel_evals.get()).unwrap_or(usize::MAX)
}

/// Returns the number of evals that may still begin on a node, besides the running ones and those
/// in `begun`. Control evals count as the root's.
fn free_slots_on(state: &State, node: NodeId, begun: &[EvalId]) -> usize {
    let Some(most) = state.limits.max_parallel_per_node else { return usize::MAX };
    let on_node = |eval: &EvalId| state.eval(*eval).is_some_and(|eval| eval.parent == node);
    let busy = state.evals_under_way().chain(begun.iter().copied()).filter(on_node).count();
    usize::try_from(most.get()).unwrap_or(usize::MAX).saturating_sub(busy)
}

/// Returns frontier nodes without ideas, in order: only those that are certain to fit the budget,
/// whatever the ones before bring. The control group comes last.
fn propose_moves(state: &State) -> Vec<PlanMove> {
    let each = state.settings.ideas_per_node.get();
    let at_once = match state.settings.dedupe_scope {
        DedupeScope::Global => 1,
        DedupeScope::NodePlusAncestors | DedupeScope::None => state.limits.max_parallel_evals.get(),
    };
    let waiting = state.nodes_awaiting_ideas().map(IdeaSource::Node);
    let nodes = (0..at_once)
        .zip(waiting.filter(|source| can_ask(state, *source)))
        .filter(|(before, _)| state.remaining_evals() > before.saturating_mul(each))
        .map(|(_, source)| source);
    let control = state.is_control_awaiting_ideas().then_some(IdeaSource::Control);
    let control = control.filter(|source| can_ask(state, *source));
    nodes.chain(control).map(|source| PlanMove::Start(Step::Propose(source))).collect()
}

/// Returns true if ideas may be requested: once a budget is reached, only requests continue that
/// have begun and that it did not stop.
fn can_ask(state: &State, source: IdeaSource) -> bool {
    if state.is_past_deadline() {
        return false;
    }
    let asked = || state.open_depth_expansion(source).is_some();
    state.reached_budget.is_none()
        || (asked() && !state.is_stopped_by_budget(PaidStep::Propose(source)))
}

/// Returns the event to record before a step is started; `None` if its beginning is recorded
/// already or the step is free.
#[must_use]
pub fn start_event(state: &State, step: Step, at: Timestamp) -> Option<Event> {
    match step {
        Step::Propose(source) => {
            let begun = state.open_depth_expansion(source).is_some();
            let intent = PaidStep::Propose(source);
            (!begun).then_some(Event::StepStarted { step: intent, attempt: 1, at })
        }
        Step::Implement(id) => {
            let begun = state.implementing_evals().contains(&id);
            let attempt = state.eval(id)?.attempt;
            (!begun).then_some(Event::StepStarted { step: PaidStep::Implement(id), attempt, at })
        }
        Step::Sweep(subject) => {
            let submission = state.submission_count(subject) + 1;
            Some(Event::SweepSubmitted { subject, submission })
        }
        Step::Score(_) | Step::Promote(_) | Step::Discard(_) => None,
    }
}

/// Returns the evals whose ideas a new one may not repeat, by the run's dedupe scope, with their
/// fingerprints. An idea that a budget left unfinished may come again. The tree ignores the control
/// group, which in turn ignores all nodes but the root.
#[must_use]
pub fn tried_before(state: &Facts, source: IdeaSource) -> Vec<(EvalId, Sha256)> {
    let tried = |eval: &Cow<'_, Eval>| !matches!(eval.stage, Stage::Unfinished { .. });
    let known = |eval: Cow<'_, Eval>| (eval.id, eval.idea.fingerprint);
    let control = match source {
        IdeaSource::Node(_) => &[],
        IdeaSource::Control => state.control.as_slice(),
    };
    let of_tree = |eval: &Cow<'_, Eval>| eval.group.is_tree() && tried(eval);
    match (state.settings.dedupe_scope, source) {
        (DedupeScope::None, _) => Vec::new(),
        (DedupeScope::Global, IdeaSource::Node(_)) => {
            state.evals.iter().filter(of_tree).map(known).collect()
        }
        (DedupeScope::NodePlusAncestors, _) | (DedupeScope::Global, IdeaSource::Control) => {
            let expansions = state.lineage(source.node_id()).flat_map(|node| &node.expansions);
            let evals = expansions.chain(control).flat_map(Expansion::eval_ids);
            evals.filter_map(|id| state.eval(*id)).filter(tried).map(known).collect()
        }
    }
}
