//! What is known about a run: plain data, readable by everyone, changed by nobody but
//! [`State::apply`](crate::state::State::apply).

mod context;
mod conversation_turns;
mod eval_budget;
mod eval_list;
mod history;
mod lookup;
mod packed;
mod reopen;

pub use context::StoredContext;
pub use conversation_turns::NodeTurn;
pub use eval_list::EvalList;
pub use history::RunHistory;

use self::packed::PackedEvals;
use crate::bill::RoleBills;
use crate::conversation::Turn;
use crate::event::{
    Approval, BudgetKind, EvalFailure, Idea, Leftover, PaidStep, RepeatedIdea, StopReason,
    SweepSubject, UserIdeas, WorldKind,
};
use crate::evidence::{Artifact, CandidateScore};
use crate::gate::StoredVerdict;
use crate::group::EvalGroup;
use crate::id::{Commit, Depth, EvalId, GitTree, NodeId, RunId, Sha256, TurnId};
use crate::policy::{FixedSettings, RecordedAgents, RunLimits};
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
    pub settings: FixedSettings,
    /// How far it goes.
    pub limits: RunLimits,
    /// Who does the work.
    pub agents: RecordedAgents,
    /// Those who did it before, the first ones first.
    pub former_agents: Vec<FormerAgents>,
    /// The ideas that it is about; none where agents are asked for them.
    pub user_ideas: Option<UserIdeas>,
    /// The run whose answers it goes by, where nobody is asked.
    pub replays: Option<RunId>,
    /// The version of the rules that candidates of the open depth are scored and judged by.
    pub rules_version: RulesVersion,
    /// The root's own sweep.
    pub baseline: RootBaseline,
    /// All nodes, by id.
    pub nodes: Vec<Node>,
    /// All evals, by id.
    pub evals: EvalList,
    /// What was tried on the root for comparison: at most once at each depth.
    pub control: Vec<Expansion>,
    /// The depth that is open, or the next one.
    pub depth: Depth,
    /// The nodes that are expanded at this depth, in the order of their ids.
    pub frontier: Vec<NodeId>,
    /// The depths that are closed, in order.
    pub closed: Vec<ClosedDepth>,
    /// What the run is at.
    pub phase: RunPhase,
    /// The budget that was reached, until the user says something else.
    pub reached_budget: Option<ReachedBudget>,
    /// What is on disk and no longer needed.
    pub leftovers: BTreeMap<Leftover, RemovalState>,
    /// What nodes had and have no more, because the user wanted it so.
    pub removed: BTreeSet<Leftover>,
    /// What depends on how often the run was interrupted, and on nothing else.
    pub history: RunHistory,
}

/// Agents in whose place others came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormerAgents {
    /// Who they were.
    pub agents: RecordedAgents,
    /// What all answers of the run had taken by then.
    pub spent: RoleBills,
}

/// The root's own sweep.
#[derive(Clone, Debug, PartialEq)]
pub enum RootBaseline {
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
    pub origin: NodeOrigin,
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
pub enum NodeOrigin {
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
    pub ideas: ExpansionIdeas,
    /// The evals that the user's own ideas became, apart from those that were asked for.
    pub added: Vec<EvalId>,
    /// What the answers took.
    pub bills: RoleBills,
    /// What is known of its turns; nothing where there was no conversation.
    pub conversation: Vec<Turn>,
}

/// The ideas of one expansion.
#[derive(Clone, Debug, PartialEq)]
pub enum ExpansionIdeas {
    /// Asked for.
    Asked,
    /// There.
    Proposed {
        /// The evals that they became.
        evals: Vec<EvalId>,
        /// Those that the budget left untried.
        untried: Vec<Idea>,
        /// Those that were skipped.
        repeats: Vec<RepeatedIdea>,
        /// How many turns it took.
        turns: u32,
        /// What the generator was told.
        context: StoredContext,
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
    pub group: EvalGroup,
    /// The depth at which it is tried.
    pub depth: Depth,
    /// What is tried.
    pub idea: Idea,
    /// Which try of it, counted from 1; interruptions do not count.
    pub attempt: u32,
    /// Why the attempts before this one failed, oldest first.
    pub failures: Vec<EvalFailure>,
    /// A candidate that is there already and is to be measured, where nobody is asked for another. Nothing once that begins.
    pub again: Option<Box<Candidate>>,
    /// What the answers of each attempt took, the first one first, as far as any took something.
    pub bills: Vec<RoleBills>,
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
    Implemented(Box<Candidate>),
    /// Being swept.
    Sweeping(Box<Candidate>),
    /// Swept.
    Swept(Box<Candidate>, Box<Artifact>),
    /// Compared. An eval of the control group comes no further.
    Scored(Box<ScoredCandidate>),
    /// Judged, with its depth.
    Decided(Box<ScoredCandidate>, StoredVerdict, CandidateFate),
    /// Ended without a score.
    Failed {
        /// When it was begun.
        #[serde(with = "packed::time")]
        started_at: Timestamp,
        /// What it had got to.
        work: Option<Box<Candidate>>,
        /// Where and why it ended.
        failure: Box<EvalFailure>,
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
    Superseded(Box<ScoredCandidate>, EvalId),
    /// Never begun: its node was asked for another idea in its place.
    SetAside,
}

/// A candidate's code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
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
    pub same_code_as: Option<SweepSubject>,
}

/// A candidate with its figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScoredCandidate {
    /// Its code.
    pub work: Candidate,
    /// Its sweep.
    #[serde(with = "packed::results")]
    pub results: Artifact,
    /// Its figures.
    pub scored: CandidateScore,
    /// When it was compared.
    #[serde(with = "packed::time")]
    pub at: Timestamp,
}

/// What became of a judged candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CandidateFate {
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
pub enum RunPhase {
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
        reason: StopReason,
        /// Since when.
        at: Timestamp,
    },
}

/// A budget that was reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReachedBudget {
    /// Which.
    pub budget: BudgetKind,
    /// The steps of the open depth that it stopped.
    pub refused: BTreeSet<PaidStep>,
}

impl ReachedBudget {
    /// It has stopped nothing yet.
    #[must_use]
    pub const fn new(budget: BudgetKind) -> Self {
        Self { budget, refused: BTreeSet::new() }
    }
}

/// How the removal of a leftover stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemovalState {
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
            NodeOrigin::Root => None,
            NodeOrigin::Promoted { parent, .. } => Some(parent),
        }
    }

    /// How many turns its conversation has.
    #[must_use]
    pub fn turn_count(&self) -> u32 {
        self.expansions.iter().map(Expansion::turn_count).sum()
    }

    /// The last turn of its conversation; turn 0 stands for the fork itself.
    #[must_use]
    pub fn latest_turn(&self) -> TurnId {
        TurnId { node: self.id, number: self.turn_count() }
    }

    /// Its expansion at this depth.
    #[must_use]
    pub fn expansion_at(&self, depth: Depth) -> Option<&Expansion> {
        self.expansions.last().filter(|expansion| expansion.depth == depth)
    }

    /// Whether asking for its ideas failed at this depth.
    #[must_use]
    pub fn got_no_ideas_at(&self, depth: Depth) -> bool {
        self.expansion_at(depth).is_some_and(|e| matches!(e.ideas, ExpansionIdeas::Failed { .. }))
    }

    /// Whether its ideas at this depth are there, or known not to come.
    #[must_use]
    pub fn is_expanded_at(&self, depth: Depth) -> bool {
        self.expansion_at(depth).is_some_and(|e| !matches!(e.ideas, ExpansionIdeas::Asked))
    }
}

impl Expansion {
    /// One that has just begun.
    #[must_use]
    pub fn new(depth: Depth, started_at: Timestamp) -> Self {
        let (added, bills, conversation) = (Vec::new(), RoleBills::default(), Vec::new());
        Self { depth, started_at, ideas: ExpansionIdeas::Asked, added, bills, conversation }
    }

    /// The evals that it became, the user's own last.
    #[must_use]
    pub fn eval_ids(&self) -> impl DoubleEndedIterator<Item = &EvalId> {
        let asked_for: &[EvalId] = match &self.ideas {
            ExpansionIdeas::Proposed { evals, .. } => evals,
            ExpansionIdeas::Asked | ExpansionIdeas::Failed { .. } => &[],
        };
        asked_for.iter().chain(&self.added)
    }

    /// How many turns it took.
    #[must_use]
    pub const fn turn_count(&self) -> u32 {
        match self.ideas {
            ExpansionIdeas::Asked => 0,
            ExpansionIdeas::Proposed { turns, .. } | ExpansionIdeas::Failed { turns, .. } => turns,
        }
    }
}
