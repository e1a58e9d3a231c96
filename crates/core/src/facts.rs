//! Facts of a run: plain data that only [`State::apply`](crate::state::State::apply) changes.

mod context;
mod conversation_turns;
mod eval_budget;
mod eval_list;
mod history;
mod lookup;
mod packed;
mod reopen;
mod stored_verdict;

pub use context::StoredContext;
pub use conversation_turns::NodeTurn;
pub use eval_list::EvalList;
pub use history::RunHistory;
pub use stored_verdict::StoredVerdict;

use self::packed::PackedEvals;
use crate::bill::RoleBills;
use crate::conversation::Turn;
use crate::event::{
    Approval, BudgetKind, EvalFailure, Idea, Leftover, PaidStep, RepeatedIdea, StopReason,
    SweepSubject, UserIdeas, WorldKind,
};
use crate::evidence::{Artifact, CandidateScore};
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
    /// Name of the run.
    pub run: RunId,
    /// Kind of world behind the ports.
    pub world: WorldKind,
    /// Time at which the run began.
    pub created_at: Timestamp,
    /// Settings that determine what results mean.
    pub settings: FixedSettings,
    /// Limits of the run, which may change.
    pub limits: RunLimits,
    /// Agents that do the work.
    pub agents: RecordedAgents,
    /// Agents that did the work before, oldest first.
    pub former_agents: Vec<FormerAgents>,
    /// Ideas of the user; `None` if agents generate them.
    pub user_ideas: Option<UserIdeas>,
    /// Run whose recorded replies are used instead of new ones.
    pub replays: Option<RunId>,
    /// Version of the rules that score and judge candidates of the open depth.
    pub rules_version: RulesVersion,
    /// Sweep of the root.
    pub baseline: RootBaseline,
    /// All nodes, by id.
    pub nodes: Vec<Node>,
    /// All evals, by id.
    pub evals: EvalList,
    /// Expansions of the control group: at most one at each depth.
    pub control: Vec<Expansion>,
    /// Open depth, or the next one to open.
    pub depth: Depth,
    /// Nodes that are expanded at this depth, ordered by id.
    pub frontier: Vec<NodeId>,
    /// Closed depths, in order.
    pub closed: Vec<ClosedDepth>,
    /// Current phase of the run.
    pub phase: RunPhase,
    /// Budget that was reached, until the user changes it.
    pub reached_budget: Option<ReachedBudget>,
    /// Files and refs that are on disk and no longer needed.
    pub leftovers: BTreeMap<Leftover, RemovalState>,
    /// Worktrees and refs of nodes that were removed at the user's request.
    pub removed: BTreeSet<Leftover>,
    /// Counts and records that depend only on how often the run was interrupted.
    pub history: RunHistory,
}

/// Agents that were replaced during the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormerAgents {
    /// Settings of the replaced agents.
    pub agents: RecordedAgents,
    /// Bills of all replies of the run up to the replacement.
    pub spent: RoleBills,
}

/// State of the root's own sweep.
#[derive(Clone, Debug, PartialEq)]
pub enum RootBaseline {
    /// No results yet.
    Unmeasured,
    /// The last results cannot serve as a baseline.
    Refused {
        /// Reason for the refusal.
        why: String,
    },
    /// Measured and valid.
    Measured {
        /// Results of the sweep.
        results: Artifact,
        /// Number of selected rows.
        rows: u32,
        /// Results that candidates are compared with as their parent, if from another sweep.
        parent: Option<Artifact>,
        /// Digest of the protected inputs at that time, if there are any.
        protected_inputs: Option<Box<Sha256>>,
        /// Git tree of the root. Older records lack it.
        tree: Option<GitTree>,
        /// Checks that candidates' sweeps must pass. Older records lack them.
        checks: Option<Box<RootChecks>>,
        /// Time of the measurement.
        at: Timestamp,
    },
}

/// Code state that was kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Id of the node.
    pub id: NodeId,
    /// Origin of the node.
    pub origin: NodeOrigin,
    /// Depth in the tree.
    pub depth: Depth,
    /// Commit with the node's code.
    pub commit: Commit,
    /// Time at which the node was created.
    pub created_at: Timestamp,
    /// Expansions of the node: one, more at later depths if the frontier stayed, or more at one
    /// depth if the user requested other ideas.
    pub expansions: Vec<Expansion>,
}

/// Origin of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeOrigin {
    /// The user's commit.
    Root,
    /// A promoted candidate.
    Promoted {
        /// Node that the candidate was tried on.
        parent: NodeId,
        /// Eval of the candidate.
        from: EvalId,
        /// Last turn of the parent at that time, where the node's conversation forks.
        forked_at: TurnId,
    },
}

/// Expansion of a node, or of the control group at one depth.
#[derive(Clone, Debug, PartialEq)]
pub struct Expansion {
    /// Depth of the expansion.
    pub depth: Depth,
    /// Time at which the expansion began.
    pub started_at: Timestamp,
    /// State of the ideas.
    pub ideas: ExpansionIdeas,
    /// Evals of ideas that the user added, apart from the generated ones.
    pub added: Vec<EvalId>,
    /// Bills of the generator's replies.
    pub bills: RoleBills,
    /// Recorded turns; empty without a conversation.
    pub conversation: Vec<Turn>,
}

/// State of the ideas of one expansion.
#[derive(Clone, Debug, PartialEq)]
pub enum ExpansionIdeas {
    /// Requested from the generator.
    Asked,
    /// Received from the generator.
    Proposed {
        /// Evals made from the ideas.
        evals: Vec<EvalId>,
        /// Ideas that the budget left untried.
        untried: Vec<Idea>,
        /// Repeated ideas that were skipped.
        repeats: Vec<RepeatedIdea>,
        /// Number of turns used.
        turns: u32,
        /// Context in the generator's prompt.
        context: StoredContext,
    },
    /// No ideas were received.
    Failed {
        /// Reason for the failure.
        why: String,
        /// Number of turns used.
        turns: u32,
    },
}

/// One idea tried on one node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Eval {
    /// Id of the eval.
    pub id: EvalId,
    /// Node that the idea is tried on.
    pub parent: NodeId,
    /// Part of the run: only evals of the tree may become nodes.
    pub group: EvalGroup,
    /// Depth at which the idea is tried.
    pub depth: Depth,
    /// Idea that is tried.
    pub idea: Idea,
    /// Number of the attempt, counted from 1; interruptions do not count.
    pub attempt: u32,
    /// Failures of the earlier attempts, oldest first.
    pub failures: Vec<EvalFailure>,
    /// Existing candidate to be measured again without calling agents. `None` once that begins.
    pub again: Option<Box<Candidate>>,
    /// Bills of the replies of each attempt, oldest first, up to the last attempt with a bill.
    pub bills: Vec<RoleBills>,
    /// Time at which the eval was created.
    #[serde(with = "packed::time")]
    pub queued_at: Timestamp,
    /// Stage of the eval.
    pub stage: Stage,
}

/// Stage of an eval, with the data known at that stage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Stage {
    /// Waiting to begin.
    Queued,
    /// Being implemented since this time.
    Implementing(#[serde(with = "packed::time")] Timestamp),
    /// Candidate committed.
    Implemented(Box<Candidate>),
    /// Candidate being swept.
    Sweeping(Box<Candidate>),
    /// Sweep finished.
    Swept(Box<Candidate>, Box<Artifact>),
    /// Candidate scored. An eval of the control group ends here.
    Scored(Box<ScoredCandidate>),
    /// Candidate judged, when its depth closed.
    Decided(Box<ScoredCandidate>, StoredVerdict, CandidateFate),
    /// Ended without a score.
    Failed {
        /// Time at which the eval began.
        #[serde(with = "packed::time")]
        started_at: Timestamp,
        /// Candidate, if the eval got that far.
        work: Option<Box<Candidate>>,
        /// Stage and reason of the failure.
        failure: Box<EvalFailure>,
        /// Time at which the eval failed.
        #[serde(with = "packed::time")]
        at: Timestamp,
    },
    /// Closed with its depth, because a budget was reached first.
    Unfinished {
        /// Time at which the eval began, if it did.
        #[serde(with = "packed::time_if_any")]
        started_at: Option<Timestamp>,
        /// Budget that was reached.
        budget: BudgetKind,
    },
    /// Scored, then evaluated again under another id: the figures stay, and no longer count.
    Superseded(Box<ScoredCandidate>, EvalId),
    /// Never begun: another idea was requested in its place.
    SetAside,
}

/// Code of a candidate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// Time at which the implementation began.
    #[serde(with = "packed::time")]
    pub started_at: Timestamp,
    /// Time of the commit. Manifests of older runs lack it.
    #[serde(with = "packed::time_if_any")]
    pub implemented_at: Option<Timestamp>,
    /// Commit of the candidate.
    pub commit: Commit,
    /// Number of files changed against the parent.
    pub files_changed: u32,
    /// Number of rounds that the coder needed.
    pub rounds: u32,
    /// Approval of the candidate.
    pub approval: Approval,
    /// Attempt that made the candidate. A later one may measure it again.
    pub made_in: u32,
    /// Git tree of the candidate. Older records lack it.
    pub tree: Option<GitTree>,
    /// Older twin with the same git tree, whose results replace the candidate's own sweep.
    pub same_code_as: Option<SweepSubject>,
}

/// Candidate with its figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScoredCandidate {
    /// Code of the candidate.
    pub work: Candidate,
    /// Results of the candidate's sweep.
    #[serde(with = "packed::results")]
    pub results: Artifact,
    /// Figures of the candidate.
    pub scored: CandidateScore,
    /// Time at which the candidate was scored.
    #[serde(with = "packed::time")]
    pub at: Timestamp,
}

/// Fate of a judged candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CandidateFate {
    /// Dropped: outside the best of its depth.
    Dropped,
    /// Among the best of its depth; its node is not made yet.
    Chosen,
    /// Promoted to this node.
    Promoted(NodeId),
}

/// Record of a closed depth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosedDepth {
    /// Nodes that were expanded.
    pub expanded: Vec<NodeId>,
    /// Id after the last eval of the depth.
    pub evals_end: EvalId,
    /// Number of failed evals.
    pub failed: u32,
    /// Promoted evals, best first.
    pub beam: Vec<EvalId>,
    /// True if the budget left ideas or nodes untried.
    pub cut_short: bool,
}

/// Phase of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunPhase {
    /// The root is being swept.
    Measuring,
    /// Ideas are generated and tried.
    Searching,
    /// The best candidates of a depth become nodes.
    Promoting {
        /// Evals that are not nodes yet, best first.
        left: Vec<EvalId>,
    },
    /// The run is over.
    Stopped {
        /// Reason for the stop.
        reason: StopReason,
        /// Time of the stop.
        at: Timestamp,
    },
}

/// Budget that was reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReachedBudget {
    /// Kind of the budget.
    pub budget: BudgetKind,
    /// Steps of the open depth that the budget stopped.
    pub refused: BTreeSet<PaidStep>,
}

impl ReachedBudget {
    /// Creates the record of a budget that has stopped no step yet.
    #[must_use]
    pub const fn new(budget: BudgetKind) -> Self {
        Self { budget, refused: BTreeSet::new() }
    }
}

/// State of the removal of a leftover.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemovalState {
    /// The user wants to keep it.
    Kept,
    /// Removal is due.
    Due,
    /// Removal failed and will be retried.
    Deferred {
        /// Number of attempts.
        attempts: u32,
        /// Reason for the last failure.
        why: String,
        /// Earliest time of the next attempt.
        retry_at: Timestamp,
    },
}

impl Node {
    /// Returns the node that this one was tried on.
    #[must_use]
    pub const fn parent(&self) -> Option<NodeId> {
        match self.origin {
            NodeOrigin::Root => None,
            NodeOrigin::Promoted { parent, .. } => Some(parent),
        }
    }

    /// Counts the turns of the node's conversation.
    #[must_use]
    pub fn turn_count(&self) -> u32 {
        self.expansions.iter().map(Expansion::turn_count).sum()
    }

    /// Returns the last turn of the node's conversation; turn 0 is the fork itself.
    #[must_use]
    pub fn latest_turn(&self) -> TurnId {
        TurnId { node: self.id, number: self.turn_count() }
    }

    /// Returns the node's last expansion, if it is of this depth.
    #[must_use]
    pub fn expansion_at(&self, depth: Depth) -> Option<&Expansion> {
        self.expansions.last().filter(|expansion| expansion.depth == depth)
    }

    /// Returns true if generating ideas failed at this depth.
    #[must_use]
    pub fn got_no_ideas_at(&self, depth: Depth) -> bool {
        self.expansion_at(depth).is_some_and(|e| matches!(e.ideas, ExpansionIdeas::Failed { .. }))
    }

    /// Returns true if the node's ideas at this depth were received, or generating them failed.
    #[must_use]
    pub fn is_expanded_at(&self, depth: Depth) -> bool {
        self.expansion_at(depth).is_some_and(|e| !matches!(e.ideas, ExpansionIdeas::Asked))
    }
}

impl Expansion {
    /// Creates an expansion that has just begun.
    #[must_use]
    pub fn new(depth: Depth, started_at: Timestamp) -> Self {
        let (added, bills, conversation) = (Vec::new(), RoleBills::default(), Vec::new());
        Self { depth, started_at, ideas: ExpansionIdeas::Asked, added, bills, conversation }
    }

    /// Returns the evals made from the expansion's ideas, the user's own last.
    #[must_use]
    pub fn eval_ids(&self) -> impl DoubleEndedIterator<Item = &EvalId> {
        let asked_for: &[EvalId] = match &self.ideas {
            ExpansionIdeas::Proposed { evals, .. } => evals,
            ExpansionIdeas::Asked | ExpansionIdeas::Failed { .. } => &[],
        };
        asked_for.iter().chain(&self.added)
    }

    /// Returns the number of turns that the expansion used.
    #[must_use]
    pub const fn turn_count(&self) -> u32 {
        match self.ideas {
            ExpansionIdeas::Asked => 0,
            ExpansionIdeas::Proposed { turns, .. } | ExpansionIdeas::Failed { turns, .. } => turns,
        }
    }
}
