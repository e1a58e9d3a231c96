//! The run so far: [`Facts`] folded from events, and an index over them that keeps each event cheap.
//! Only [`State::apply`] changes anything; everyone else reads through [`Facts`].

mod apply;
mod check;
mod index;
mod removal;
mod twins;

pub use apply::Unexpected;

use crate::event::{Event, Intent, Leftover, LeftoverKind, RunStarted};
use crate::facts::{Baseline, Evals, Facts, History, Node, Origin, Phase, Removal};
use crate::group::IdeaSource;
use crate::id::{Depth, EvalId, NodeId};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use twins::TwinKey;

/// The state of a run. It reads as its [`Facts`].
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    facts: Facts,
    index: Index,
}

/// Evals by stage and leftovers by time, so that finding the next one does not need a scan.
#[derive(Clone, Debug, Default, PartialEq)]
struct Index {
    /// Those of the control group last: what is short goes to the tree first.
    queued: BTreeMap<IdeaSource, BTreeSet<EvalId>>,
    implementing: BTreeSet<EvalId>,
    implemented: BTreeSet<EvalId>,
    sweeping: BTreeSet<EvalId>,
    swept: BTreeSet<EvalId>,
    /// Candidates that have results, or will have, by their files.
    twins: BTreeSet<TwinKey>,
    /// What is to be removed: at once, or not before this time; worktrees first, which are what takes space.
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
    /// The state of a run that has just begun.
    #[must_use]
    pub fn begin(started: &RunStarted) -> Self {
        let root = Node {
            id: NodeId::ROOT,
            origin: Origin::Root,
            depth: Depth(0),
            commit: started.root.clone(),
            created_at: started.at,
            expansions: Vec::new(),
        };
        let facts = Facts {
            run: started.run.clone(),
            world: started.world,
            created_at: started.at,
            meaning: started.meaning.clone(),
            reach: started.reach.clone(),
            agents: started.agents.clone(),
            given: started.given.clone(),
            former: Vec::new(),
            replays: started.replays.clone(),
            rules_version: started.rules_version,
            baseline: Baseline::Unmeasured,
            nodes: vec![root],
            evals: Evals::default(),
            control: Vec::new(),
            depth: Depth(0),
            frontier: vec![NodeId::ROOT],
            closed: Vec::new(),
            phase: Phase::Measuring,
            reached: None,
            leftovers: BTreeMap::new(),
            removed: BTreeSet::new(),
            history: History::default(),
        };
        Self { facts, index: Index::default() }
    }

    /// The state that these events, from the first on, lead to.
    ///
    /// # Errors
    /// When they are not the events of a run.
    pub fn replay<'a>(events: impl IntoIterator<Item = &'a Event>) -> Result<Self, Unexpected> {
        let mut events = events.into_iter();
        let Some(Event::RunStarted(started)) = events.next() else {
            return Err(Unexpected::new("the first event is not the start of a run"));
        };
        let mut state = Self::begin(started);
        for event in events {
            state.apply(event)?;
        }
        Ok(state)
    }

    /// The state with these facts.
    ///
    /// # Errors
    /// When the facts contradict each other.
    pub fn restore(mut facts: Facts) -> Result<Self, Unexpected> {
        facts.check()?;
        let twins = facts.evals.iter().filter_map(|eval| twins::twin_key(&eval)).collect();
        facts.settle();
        let mut index = Index { twins, ..Index::default() };
        for eval in facts.evals.open() {
            index.enter(eval);
        }
        for (leftover, removal) in &facts.leftovers {
            index.removals.extend(removal_key(*leftover, removal));
        }
        Ok(Self { facts, index })
    }

    /// The facts alone.
    #[must_use]
    pub fn into_facts(self) -> Facts {
        self.facts
    }

    /// Evals that wait to be implemented: by node, the control group last, then by id.
    pub fn queued(&self) -> impl Iterator<Item = (NodeId, &BTreeSet<EvalId>)> {
        self.index.queued.iter().map(|(source, evals)| (source.node(), evals))
    }

    /// Evals that are being implemented.
    #[must_use]
    pub fn implementing(&self) -> &BTreeSet<EvalId> {
        &self.index.implementing
    }

    /// Evals that wait to be swept.
    #[must_use]
    pub fn implemented(&self) -> &BTreeSet<EvalId> {
        &self.index.implemented
    }

    /// Evals that are being swept.
    #[must_use]
    pub fn sweeping(&self) -> &BTreeSet<EvalId> {
        &self.index.sweeping
    }

    /// Evals that wait to be compared.
    #[must_use]
    pub fn swept(&self) -> &BTreeSet<EvalId> {
        &self.index.swept
    }

    /// What may be removed now: first what was not tried yet, then what has waited longest.
    #[must_use]
    pub fn removable(&self, now: Timestamp) -> Option<Leftover> {
        let (not_before, _, leftover) = self.index.removals.first()?;
        not_before.is_none_or(|time| time <= now).then_some(*leftover)
    }

    /// How many worktrees wait to be removed, and were not tried yet.
    #[must_use]
    pub fn worktrees_due(&self) -> usize {
        let due = |(not_before, kind, _): &&RemovalKey| {
            not_before.is_none() && *kind == LeftoverKind::Worktree
        };
        self.index.removals.iter().take_while(due).count()
    }

    /// Of those that are under way, the ones that no budget has stopped.
    pub fn going_on(&self) -> impl Iterator<Item = EvalId> {
        self.under_way().filter(|eval| !self.is_refused(Intent::Implement(*eval)))
    }

    /// Evals between the beginning of their implementation and their end.
    pub fn under_way(&self) -> impl Iterator<Item = EvalId> {
        let index = &self.index;
        [&index.implementing, &index.implemented, &index.sweeping, &index.swept]
            .into_iter()
            .flatten()
            .copied()
    }
}

/// Where a leftover stands among those that are to be removed; nowhere if it is kept.
fn removal_key(leftover: Leftover, removal: &Removal) -> Option<RemovalKey> {
    let not_before = match removal {
        Removal::Kept => return None,
        Removal::Due => None,
        Removal::Deferred { retry_at, .. } => Some(*retry_at),
    };
    Some((not_before, leftover.kind, leftover))
}
