//! State of a run: [`Facts`] folded from events, and an index that keeps each event cheap. Only
//! [`State::apply`] changes it; all other code reads through [`Facts`].

mod apply;
mod check;
mod index;
mod removal;
mod twins;

pub use apply::StateError;

use crate::event::{Event, Leftover, LeftoverKind, PaidStep, RunStarted};
use crate::facts::{
    EvalList, Facts, Node, NodeOrigin, RemovalState, RootBaseline, RunHistory, RunPhase,
};
use crate::group::IdeaSource;
use crate::id::{Depth, EvalId, NodeId};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use twins::TwinKey;

/// State of a run. Dereferences to its [`Facts`].
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    facts: Facts,
    index: StateIndex,
}

/// Index of evals by stage and of leftovers by time, so that finding the next one needs no scan.
#[derive(Clone, Debug, Default, PartialEq)]
struct StateIndex {
    /// Queued evals, the control group last: scarce budget goes to the tree first.
    queued: BTreeMap<IdeaSource, BTreeSet<EvalId>>,
    implementing: BTreeSet<EvalId>,
    implemented: BTreeSet<EvalId>,
    sweeping: BTreeSet<EvalId>,
    swept: BTreeSet<EvalId>,
    /// Candidates that have results or will have them, by git tree.
    twins: BTreeSet<TwinKey>,
    /// Things to remove by due time, then worktrees first: they take the most space.
    removals: BTreeSet<RemovalKey>,
}

type RemovalKey = (Option<Timestamp>, LeftoverKind, Leftover);

impl Deref for State {
    type Target = Facts;
    fn deref(&self) -> &Facts {
        &self.facts
    }
}

impl State {
    /// Creates the state of a run that has just begun.
    #[must_use]
    pub fn from_run_started(started: &RunStarted) -> Self {
        let root = Node {
            id: NodeId::ROOT,
            origin: NodeOrigin::Root,
            depth: Depth(0),
            commit: started.root.clone(),
            created_at: started.at,
            expansions: Vec::new(),
        };
        let facts = Facts {
            run: started.run.clone(),
            world: started.world,
            created_at: started.at,
            settings: started.meaning.clone(),
            limits: started.reach.clone(),
            agents: started.agents.clone(),
            user_ideas: started.given.clone(),
            former_agents: Vec::new(),
            replays: started.replays.clone(),
            rules_version: started.rules_version,
            baseline: RootBaseline::Unmeasured,
            nodes: vec![root],
            evals: EvalList::default(),
            control: Vec::new(),
            depth: Depth(0),
            frontier: vec![NodeId::ROOT],
            closed: Vec::new(),
            phase: RunPhase::Measuring,
            reached_budget: None,
            leftovers: BTreeMap::new(),
            removed: BTreeSet::new(),
            history: RunHistory::default(),
        };
        Self { facts, index: StateIndex::default() }
    }

    /// Folds the events of a run, from the first on, into its state.
    ///
    /// # Errors
    /// If they are not the events of a run.
    pub fn from_events<'a>(
        events: impl IntoIterator<Item = &'a Event>,
    ) -> Result<Self, StateError> {
        let mut events = events.into_iter();
        let Some(Event::RunStarted(started)) = events.next() else {
            return Err(StateError::new("the first event is not the start of a run"));
        };
        let mut state = Self::from_run_started(started);
        for event in events {
            state.apply(event)?;
        }
        Ok(state)
    }

    /// Creates a state from facts.
    ///
    /// # Errors
    /// If the facts contradict each other.
    pub fn from_facts(mut facts: Facts) -> Result<Self, StateError> {
        facts.check_consistency()?;
        let twins = facts.evals.iter().filter_map(|eval| twins::twin_key(&eval)).collect();
        facts.pack_closed_depths();
        let mut index = StateIndex { twins, ..StateIndex::default() };
        for eval in facts.evals.unpacked_evals() {
            index.insert_eval(eval);
        }
        for (leftover, removal) in &facts.leftovers {
            index.removals.extend(removal_key(*leftover, removal));
        }
        Ok(Self { facts, index })
    }

    /// Returns the facts without the index.
    #[must_use]
    pub fn into_facts(self) -> Facts {
        self.facts
    }

    /// Returns the evals that wait to be implemented: by node, the control group last, then by id.
    pub fn queued_evals(&self) -> impl Iterator<Item = (NodeId, &BTreeSet<EvalId>)> {
        self.index.queued.iter().map(|(source, evals)| (source.node_id(), evals))
    }

    /// Returns the evals that are being implemented.
    #[must_use]
    pub fn implementing_evals(&self) -> &BTreeSet<EvalId> {
        &self.index.implementing
    }

    /// Returns the evals that wait to be swept.
    #[must_use]
    pub fn implemented_evals(&self) -> &BTreeSet<EvalId> {
        &self.index.implemented
    }

    /// Returns the evals that are being swept.
    #[must_use]
    pub fn sweeping_evals(&self) -> &BTreeSet<EvalId> {
        &self.index.sweeping
    }

    /// Returns the evals that wait to be scored.
    #[must_use]
    pub fn swept_evals(&self) -> &BTreeSet<EvalId> {
        &self.index.swept
    }

    /// Returns the next leftover to remove: first those not tried yet, then the one with the
    /// earliest retry time.
    #[must_use]
    pub fn next_removable(&self, now: Timestamp) -> Option<Leftover> {
        let (not_before, _, leftover) = self.index.removals.first()?;
        not_before.is_none_or(|time| time <= now).then_some(*leftover)
    }

    /// Counts the worktrees that wait to be removed and were not tried yet.
    #[must_use]
    pub fn due_worktree_count(&self) -> usize {
        let due = |(not_before, kind, _): &&RemovalKey| {
            not_before.is_none() && *kind == LeftoverKind::Worktree
        };
        self.index.removals.iter().take_while(due).count()
    }

    /// Returns the evals under way that no budget has stopped.
    pub fn active_evals(&self) -> impl Iterator<Item = EvalId> {
        self.evals_under_way().filter(|eval| !self.is_stopped_by_budget(PaidStep::Implement(*eval)))
    }

    /// Returns the evals between the beginning of their implementation and their end.
    pub fn evals_under_way(&self) -> impl Iterator<Item = EvalId> {
        let index = &self.index;
        [&index.implementing, &index.implemented, &index.sweeping, &index.swept]
            .into_iter()
            .flatten()
            .copied()
    }
}

/// Returns the key of a leftover in the removal index; `None` if it is kept.
fn removal_key(leftover: Leftover, removal: &RemovalState) -> Option<RemovalKey> {
    let not_before = match removal {
        RemovalState::Kept => return None,
        RemovalState::Due => None,
        RemovalState::Deferred { retry_at, .. } => Some(*retry_at),
    };
    Some((not_before, leftover.kind, leftover))
}
