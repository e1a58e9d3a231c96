//! What to do next, and what an outcome means. Pure: the same state and the same running steps give the same moves.
//! Nothing here waits, and nothing depends on what finished first.

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

/// An effect: the world must be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Ask for a node's ideas, or for the control group's.
    Propose(IdeaSource),
    /// Turn an idea into a commit.
    Implement(EvalId),
    /// Give a sweep to the executor.
    Sweep(SweepSubject),
    /// Compare a candidate with its parent and with the root.
    Score(EvalId),
    /// Turn a candidate into a node.
    Promote(EvalId),
    /// Remove what is no longer needed.
    Discard(Leftover),
}

/// What the loop is to do.
#[derive(Clone, Debug, PartialEq)]
pub enum PlanMove {
    /// Start this.
    Start(Step),
    /// Record this: a decision, which needs no world.
    Record(Event),
    /// Record that the run is over.
    Stop(StopReason),
}

/// What is under way in this process.
#[derive(Clone, Debug, Default)]
pub struct RunningSteps {
    /// Steps that were started, or whose outcome still waits for its turn.
    pub steps: BTreeSet<Step>,
    /// Sweeps that the executor knows, or is being given.
    pub jobs: BTreeSet<SweepSubject>,
    /// Deferred leftovers that had their last try, at the end of the run.
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

/// What a step brought.
#[derive(Clone, Debug, PartialEq)]
pub enum StepOutcome {
    /// The root's sweep is in, and sound.
    RootMeasured {
        /// Its results.
        baseline: Artifact,
        /// How many rows were selected.
        rows: u32,
        /// What its candidates are compared with as their parent, where that is another sweep.
        parent: Option<Artifact>,
        /// What the protected inputs were then, where there are any.
        protected_inputs: Option<Sha256>,
        /// The root's files.
        tree: GitTree,
        /// What candidates' sweeps are held to.
        checks: Box<RootChecks>,
    },
    /// The root's sweep is in, and cannot be compared with.
    RootRefused {
        /// What is wrong with it.
        why: String,
    },
    /// A node's ideas, or the control group's.
    Proposed(IdeaProposal),
    /// No ideas for a node, or for the control group.
    ProposalFailed {
        /// Which.
        source: IdeaSource,
        /// Why.
        why: String,
        /// How many turns it took.
        turns: u32,
        /// What the answers took.
        bills: RoleBills,
        /// The turns, where there is a conversation.
        conversation: Vec<Turn>,
    },
    /// A candidate.
    Implemented {
        /// Which eval.
        eval: EvalId,
        /// The candidate.
        commit: Commit,
        /// The candidate's files.
        tree: GitTree,
        /// How many files it changes.
        files_changed: u32,
        /// How many rounds it took.
        rounds: u32,
        /// Who let it through.
        approval: Approval,
        /// What the answers took.
        bills: RoleBills,
    },
    /// A candidate's sweep.
    Swept {
        /// Which eval.
        eval: EvalId,
        /// Its results.
        results: Artifact,
    },
    /// A candidate's figures.
    Scored {
        /// Which eval.
        eval: EvalId,
        /// The figures.
        scored: Box<CandidateScore>,
        /// The older twin whose results were compared, in place of an own sweep.
        same_code_as: Option<SweepSubject>,
    },
    /// A budget stopped a step before its end.
    OverBudget {
        /// Which step.
        step: PaidStep,
        /// Which budget.
        budget: BudgetKind,
        /// What the answers took that came before.
        bills: RoleBills,
    },
    /// An eval that ends here.
    EvalFailed {
        /// Which.
        eval: EvalId,
        /// Where and why.
        failure: EvalFailure,
        /// What the answers took, where it ends before it is a commit.
        bills: RoleBills,
    },
    /// A node was made.
    Promoted(EvalId),
    /// A node could not be made.
    PromotionFailed {
        /// Which eval.
        eval: EvalId,
        /// Why.
        why: String,
    },
    /// A leftover is gone.
    Discarded(Leftover),
    /// A leftover is still there.
    DiscardFailed {
        /// Which.
        leftover: Leftover,
        /// Why.
        why: String,
    },
}

/// The ideas of a node, or of the control group, before they get ids.
#[derive(Clone, Debug, PartialEq)]
pub struct IdeaProposal {
    /// Whose.
    pub source: IdeaSource,
    /// The ideas, in file-name order.
    pub ideas: Vec<Idea>,
    /// Those that were skipped as repeats.
    pub repeats: Vec<RepeatedIdea>,
    /// How many turns it took.
    pub turns: u32,
    /// What the generator was told.
    pub context: ContextPack,
    /// What the answers took.
    pub bills: RoleBills,
    /// The turns, where there is a conversation.
    pub conversation: Vec<Turn>,
}

/// What may be started or recorded now, the most urgent first. Empty means: wait, or, with nothing running, the end.
#[must_use]
pub fn next_moves(state: &State, running: &RunningSteps, now: Timestamp) -> Vec<PlanMove> {
    let mut moves = match &state.phase {
        RunPhase::Stopped { .. } => return last_discard_move(state, running).into_iter().collect(),
        // One that is being swept counts; none begins any more.
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

/// Whether the time is over and nobody has said so yet.
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

/// Whether something has still to come to its end. Once the time is over, that is what runs already.
fn has_unfinished_work(state: &State, running: &RunningSteps) -> bool {
    if state.is_past_deadline() {
        !running.jobs.is_empty()
    } else {
        state.active_evals().next().is_some()
    }
}

/// Before the end everything that is left behind is tried, and what was deferred once more.
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

/// What a step tries to remove for the last time: something deferred, at the end of the run.
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

/// Sweeps that wait, and those that were submitted by a process that is gone, as far as the limit goes. A candidate with an
/// older twin waits for the twin's results.
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

/// Evals whose implementation was cut off, then new ones while there are slots, in the order of their ids; none of them once
/// a budget is reached. A worktree that is still to be removed takes a slot, or the disk would fill up with them.
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

/// How many more may begin on a node, beside those that are under way and those that begin now. The control group's are the
/// root's too.
fn free_slots_on(state: &State, node: NodeId, begun: &[EvalId]) -> usize {
    let Some(most) = state.limits.max_parallel_per_node else { return usize::MAX };
    let on_node = |eval: &EvalId| state.eval(*eval).is_some_and(|eval| eval.parent == node);
    let busy = state.evals_under_way().chain(begun.iter().copied()).filter(on_node).count();
    usize::try_from(most.get()).unwrap_or(usize::MAX).saturating_sub(busy)
}

/// Frontier nodes without ideas, in order: only those that will surely have room in the budget, whatever the ones before bring.
/// After all of them, the control group.
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

/// Once a budget is reached, only those go on that were asked and that it did not stop.
fn can_ask(state: &State, source: IdeaSource) -> bool {
    if state.is_past_deadline() {
        return false;
    }
    let asked = || state.open_depth_expansion(source).is_some();
    state.reached_budget.is_none()
        || (asked() && !state.is_stopped_by_budget(PaidStep::Propose(source)))
}

/// What is recorded before a step is started; nothing where its beginning is on record, or costs nothing.
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

/// The evals whose ideas a new one may not repeat, by the run's dedupe scope, with the fingerprint of each. One that a budget
/// left unfinished may come again. The tree does not know of the control group, nor that of more than the root.
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
