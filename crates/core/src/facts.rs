//! What is known about a run: plain data, readable by everyone, changed by nobody but
//! [`State::apply`](crate::state::State::apply).

mod barren;
mod context;
mod evals;
mod history;
mod lookup;
mod packed;
mod room;
mod talk;

pub use context::KnownContext;
pub use evals::Evals;
pub use history::History;
pub use talk::KnownTurn;

use self::packed::Packed;
use crate::bill::Bills;
use crate::conversation::Turn;
use crate::event::{
    Approval, BudgetKind, Failure, Given, Idea, Intent, Leftover, Repeat, Stop, Subject, WorldKind,
};
use crate::evidence::{Artifact, Scored};
use crate::gate::Word;
use crate::group::Group;
use crate::id::{Commit, Depth, EvalId, GitTree, NodeId, RunId, Sha256, TurnId};
use crate::policy::{Agents, Meaning, Reach};
use crate::root_checks::RootChecks;
use crate::rules_version::RulesVersion;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Everything that is known about a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// Its name.
    pub run: RunId,
    /// What is behind the ports.
    pub world: WorldKind,
    /// When it began.
    pub created_at: Timestamp,
    /// What its results mean.
    pub meaning: Meaning,
    /// How far it goes.
    pub reach: Reach,
    /// Who does the work.
    pub agents: Agents,
    /// Those who did it before, the first ones first.
    pub former: Vec<Former>,
    /// The ideas that it is about; none where agents are asked for them.
    pub given: Option<Given>,
    /// The run whose answers it goes by, where nobody is asked.
    pub replays: Option<RunId>,
    /// The version of the rules that candidates of the open depth are scored and judged by.
    pub rules_version: RulesVersion,
    /// The root's own sweep.
    pub baseline: Baseline,
    /// All nodes, by id.
    pub nodes: Vec<Node>,
    /// All evals, by id.
    pub evals: Evals,
    /// What was tried on the root for comparison: at most once at each depth.
    pub control: Vec<Expansion>,
    /// The depth that is open, or the next one.
    pub depth: Depth,
    /// The nodes that are expanded at this depth, in the order of their ids.
    pub frontier: Vec<NodeId>,
    /// The depths that are closed, in order.
    pub closed: Vec<ClosedDepth>,
    /// What the run is at.
    pub phase: Phase,
    /// The budget that was reached, until the user says something else.
    pub reached: Option<Reached>,
    /// What is on disk and no longer needed.
    pub leftovers: BTreeMap<Leftover, Removal>,
    /// What nodes had and have no more, because the user wanted it so.
    pub removed: BTreeSet<Leftover>,
    /// What depends on how often the run was interrupted, and on nothing else.
    pub history: History,
}

/// Agents in whose place others came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Former {
    /// Who they were.
    pub agents: Agents,
    /// What all answers of the run had taken by then.
    pub spent: Bills,
}

/// The root's own sweep.
#[derive(Clone, Debug, PartialEq)]
pub enum Baseline {
    /// Not there yet.
    Unmeasured,
    /// The last one could not be compared with.
    Refused {
        /// What was wrong with it.
        why: String,
    },
    /// There, and sound.
    Measured {
        /// The results.
        results: Artifact,
        /// How many rows were selected.
        rows: u32,
        /// What candidates of the root are compared with as their parent, where that is another sweep.
        parent: Option<Artifact>,
        /// What the protected inputs were then, where there are any.
        protected_inputs: Option<Box<Sha256>>,
        /// The root's files. Older runs do not say.
        tree: Option<GitTree>,
        /// What candidates' sweeps are held to. Older runs do not say.
        checks: Option<Box<RootChecks>>,
        /// When.
        at: Timestamp,
    },
}

/// A code state that was kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Its name.
    pub id: NodeId,
    /// Where it comes from.
    pub origin: Origin,
    /// How deep in the tree.
    pub depth: Depth,
    /// Its code.
    pub commit: Commit,
    /// When it became one.
    pub created_at: Timestamp,
    /// What was tried on it: once, again at a later depth where the frontier stayed, or again at the same depth where the
    /// user wanted other ideas.
    pub expansions: Vec<Expansion>,
}

/// Where a node comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The user's commit.
    Root,
    /// A candidate.
    Promoted {
        /// The node that it was tried on.
        parent: NodeId,
        /// The eval that it was.
        from: EvalId,
        /// The parent's last turn at that time: where its conversation forks off.
        forked_at: TurnId,
    },
}

/// One expansion of a node, or what was asked for the control group at one depth.
#[derive(Clone, Debug, PartialEq)]
pub struct Expansion {
    /// At which depth.
    pub depth: Depth,
    /// When it was begun.
    pub started_at: Timestamp,
    /// How it stands.
    pub ideas: Ideas,
    /// The evals that the user's own ideas became, apart from those that were asked for.
    pub added: Vec<EvalId>,
    /// What the answers took.
    pub bills: Bills,
    /// What is known of its turns; nothing where there was no conversation.
    pub conversation: Vec<Turn>,
}

/// The ideas of one expansion.
#[derive(Clone, Debug, PartialEq)]
pub enum Ideas {
    /// Asked for.
    Asked,
    /// There.
    Proposed {
        /// The evals that they became.
        evals: Vec<EvalId>,
        /// Those that the budget left untried.
        untried: Vec<Idea>,
        /// Those that were skipped.
        repeats: Vec<Repeat>,
        /// How many turns it took.
        turns: u32,
        /// What the generator was told.
        context: KnownContext,
    },
    /// None came.
    Failed {
        /// Why.
        why: String,
        /// How many turns it took.
        turns: u32,
    },
}

/// One idea tried on one node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Eval {
    /// Its name.
    pub id: EvalId,
    /// The node that it is tried on.
    pub parent: NodeId,
    /// Whether it may become a node, or is tried for comparison.
    pub group: Group,
    /// The depth at which it is tried.
    pub depth: Depth,
    /// What is tried.
    pub idea: Idea,
    /// Which try of it, counted from 1; interruptions do not count.
    pub attempt: u32,
    /// Why the attempts before this one failed, oldest first.
    pub failures: Vec<Failure>,
    /// A candidate that is there already and is to be measured, where nobody is asked for another. Nothing once that begins.
    pub again: Option<Box<Work>>,
    /// What the answers of each attempt took, the first one first, as far as any took something.
    pub bills: Vec<Bills>,
    /// When it was created.
    #[serde(with = "packed::time")]
    pub queued_at: Timestamp,
    /// How it stands.
    pub stage: Stage,
}

/// How an eval stands. Each stage carries what it knows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Stage {
    /// Waiting.
    Queued,
    /// Being implemented since.
    Implementing(#[serde(with = "packed::time")] Timestamp),
    /// Committed.
    Implemented(Box<Work>),
    /// Being swept.
    Sweeping(Box<Work>),
    /// Swept.
    Swept(Box<Work>, Box<Artifact>),
    /// Compared. An eval of the control group comes no further.
    Scored(Box<Measured>),
    /// Judged, with its depth.
    Decided(Box<Measured>, Word, Fate),
    /// Ended without a score.
    Failed {
        /// When it was begun.
        #[serde(with = "packed::time")]
        started_at: Timestamp,
        /// What it had got to.
        work: Option<Box<Work>>,
        /// Where and why it ended.
        failure: Box<Failure>,
        /// When it ended.
        #[serde(with = "packed::time")]
        at: Timestamp,
    },
    /// Closed with its depth, because a budget was reached before its end.
    Unfinished {
        /// When it was begun, if it was.
        #[serde(with = "packed::time_if_any")]
        started_at: Option<Timestamp>,
        /// Which budget.
        budget: BudgetKind,
    },
    /// Compared, and evaluated again under another id: its figures stay on record and count no more.
    Superseded(Box<Measured>, EvalId),
    /// Never begun: its node was asked for another idea in its place.
    SetAside,
}

/// A candidate's code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// When it was begun.
    #[serde(with = "packed::time")]
    pub started_at: Timestamp,
    /// When it was committed. Manifests of older runs do not say.
    #[serde(with = "packed::time_if_any")]
    pub implemented_at: Option<Timestamp>,
    /// The candidate.
    pub commit: Commit,
    /// How many files it changes against its parent.
    pub files_changed: u32,
    /// How many rounds the coder needed.
    pub rounds: u32,
    /// Who let it through.
    pub approval: Approval,
    /// The attempt that made it. A later one may measure it again.
    pub made_in: u32,
    /// The candidate's files. Older runs do not say.
    pub tree: Option<GitTree>,
    /// The older twin with the same git tree whose results stand for this candidate's own sweep.
    pub same_code_as: Option<Subject>,
}

/// A candidate with its figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Its code.
    pub work: Work,
    /// Its sweep.
    #[serde(with = "packed::results")]
    pub results: Artifact,
    /// Its figures.
    pub scored: Scored,
    /// When it was compared.
    #[serde(with = "packed::time")]
    pub at: Timestamp,
}

/// What became of a judged candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fate {
    /// Not among the best of its depth.
    Dropped,
    /// Among the best; its node is being made.
    Chosen,
    /// It is this node now.
    Promoted(NodeId),
}

/// A depth that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosedDepth {
    /// The nodes that were expanded.
    pub expanded: Vec<NodeId>,
    /// The id after its last eval.
    pub evals_end: EvalId,
    /// How many of its evals failed.
    pub failed: u32,
    /// Those that were promoted, best first.
    pub beam: Vec<EvalId>,
    /// Whether the budget left ideas or nodes untried.
    pub cut_short: bool,
}

/// What the run is at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The root's sweep is being made.
    Measuring,
    /// Ideas are asked for and tried.
    Searching,
    /// The best of a depth become nodes.
    Promoting {
        /// Those that are not nodes yet, best first.
        left: Vec<EvalId>,
    },
    /// It is over.
    Stopped {
        /// Why.
        reason: Stop,
        /// Since when.
        at: Timestamp,
    },
}

/// A budget that was reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reached {
    /// Which.
    pub budget: BudgetKind,
    /// The steps of the open depth that it stopped.
    pub refused: BTreeSet<Intent>,
}

impl Reached {
    /// It has stopped nothing yet.
    #[must_use]
    pub const fn of(budget: BudgetKind) -> Self {
        Self { budget, refused: BTreeSet::new() }
    }
}

/// How the removal of a leftover stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Removal {
    /// Not wanted: the user asked to keep it.
    Kept,
    /// To be done.
    Due,
    /// Tried, and to be tried again.
    Deferred {
        /// How often it was tried.
        attempts: u32,
        /// Why it did not work.
        why: String,
        /// Not before.
        retry_at: Timestamp,
    },
}

impl Node {
    /// The node that it was tried on.
    #[must_use]
    pub const fn parent(&self) -> Option<NodeId> {
        match self.origin {
            Origin::Root => None,
            Origin::Promoted { parent, .. } => Some(parent),
        }
    }

    /// How many turns its conversation has.
    #[must_use]
    pub fn turns(&self) -> u32 {
        self.expansions.iter().map(Expansion::turns).sum()
    }

    /// The last turn of its conversation; turn 0 stands for the fork itself.
    #[must_use]
    pub fn latest_turn(&self) -> TurnId {
        TurnId { node: self.id, number: self.turns() }
    }

    /// Its expansion at this depth.
    #[must_use]
    pub fn expansion_at(&self, depth: Depth) -> Option<&Expansion> {
        self.expansions.last().filter(|expansion| expansion.depth == depth)
    }

    /// Whether asking for its ideas failed at this depth.
    #[must_use]
    pub fn got_no_ideas_at(&self, depth: Depth) -> bool {
        self.expansion_at(depth).is_some_and(|e| matches!(e.ideas, Ideas::Failed { .. }))
    }

    /// Whether its ideas at this depth are there, or known not to come.
    #[must_use]
    pub fn is_expanded_at(&self, depth: Depth) -> bool {
        self.expansion_at(depth).is_some_and(|e| !matches!(e.ideas, Ideas::Asked))
    }
}

impl Expansion {
    /// One that has just begun.
    #[must_use]
    pub fn begun(depth: Depth, started_at: Timestamp) -> Self {
        let (added, bills, conversation) = (Vec::new(), Bills::default(), Vec::new());
        Self { depth, started_at, ideas: Ideas::Asked, added, bills, conversation }
    }

    /// The evals that it became, the user's own last.
    #[must_use]
    pub fn evals(&self) -> impl DoubleEndedIterator<Item = &EvalId> {
        let asked_for: &[EvalId] = match &self.ideas {
            Ideas::Proposed { evals, .. } => evals,
            Ideas::Asked | Ideas::Failed { .. } => &[],
        };
        asked_for.iter().chain(&self.added)
    }

    /// How many turns it took.
    #[must_use]
    pub const fn turns(&self) -> u32 {
        match self.ideas {
            Ideas::Asked => 0,
            Ideas::Proposed { turns, .. } | Ideas::Failed { turns, .. } => turns,
        }
    }
}
