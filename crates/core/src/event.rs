//! What happened. Past tense, append-only, the only thing that a run's state is made of.
//! How an event is written to disk is pinned by snapshot tests of the store; fields are only added.

mod approval;
mod budget;
mod idea;
mod kind;
mod leftover;
mod recorded_files;
mod redo;
mod stop;
mod takeover;
mod user_request;

pub use approval::Approval;
pub use budget::BudgetKind;
pub use idea::{
    ContextPack, FileDigest, Idea, IdeaAdded, IdeasProposed, NewEval, RepeatedIdea, UserIdeas,
};
pub use leftover::{Leftover, LeftoverKind};
pub use recorded_files::{ArtifactsRestored, FilesRecorded};
pub use redo::{EvalRerun, SentBack};
pub use stop::StopReason;
pub use takeover::{RunnerProcess, TakeoverReason};
pub use user_request::{MessageId, UserRequest};

use crate::bill::RoleBills;
use crate::conversation::Turn;
use crate::evidence::{Artifact, CandidateScore};
use crate::gate::GateVerdict;
use crate::group::IdeaSource;
use crate::id::{CodePlace, Commit, Depth, EvalId, GitTree, NodeId, RunId, Sha256};
use crate::policy::{FixedSettings, RecordedAgents, RunLimits};
use crate::root_checks::RootChecks;
use crate::rules_version::RulesVersion;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;

/// One transition of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// The run exists.
    RunStarted(Box<RunStarted>),
    /// A step that costs something begins; its outcome is an event of its own.
    StepStarted {
        /// Which.
        step: PaidStep,
        /// Which try of it, counted from 1; interruptions do not count.
        attempt: u32,
        /// When.
        at: Timestamp,
    },
    /// The root's own sweep is in, and sound.
    RootMeasured {
        /// Its results.
        baseline: Artifact,
        /// How many rows were selected.
        rows: u32,
        /// What candidates of the root are compared with as their parent, where that is another sweep.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<Artifact>,
        /// What the protected inputs were then, where there are any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        protected_inputs: Option<Box<Sha256>>,
        /// The root's files. Older runs do not say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tree: Option<GitTree>,
        /// What its candidates' sweeps are held to. Older runs do not say: protected files and inputs alone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        checks: Option<Box<RootChecks>>,
        /// When.
        at: Timestamp,
    },
    /// The root's own sweep cannot be compared with; it has to be made again.
    RootRefused {
        /// What is wrong with it.
        why: String,
    },
    /// A node, or the control group, has its ideas; each that fits the budget becomes an eval.
    IdeasProposed(Box<IdeasProposed>),
    /// A node, or the control group, got no ideas.
    ProposalFailed {
        /// Which.
        #[serde(rename = "node")]
        source: IdeaSource,
        /// Why.
        why: String,
        /// How many turns its conversation took.
        turns: u32,
        /// What the answers took.
        #[serde(default, skip_serializing_if = "RoleBills::is_empty")]
        bills: RoleBills,
        /// The turns; nothing is known of them where there is no conversation.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        conversation: Vec<Turn>,
        /// When.
        at: Timestamp,
    },
    /// An idea has become a commit.
    Implemented {
        /// Which eval.
        eval: EvalId,
        /// The candidate.
        commit: Commit,
        /// The candidate's files. Older runs do not say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tree: Option<GitTree>,
        /// How many files it changes against its parent.
        files_changed: u32,
        /// How many rounds the coder needed.
        rounds: u32,
        /// Who let it through. Runs of the first treebeam had no reviewer.
        #[serde(default)]
        approval: Approval,
        /// What the answers of this attempt took.
        #[serde(default, skip_serializing_if = "RoleBills::is_empty")]
        bills: RoleBills,
        /// When.
        at: Timestamp,
    },
    /// A sweep is about to be given to the executor.
    SweepSubmitted {
        /// What is swept.
        subject: SweepSubject,
        /// Which submission, counted from 1.
        submission: u32,
    },
    /// A candidate's sweep is in.
    Swept {
        /// Which eval.
        eval: EvalId,
        /// Its results.
        results: Artifact,
        /// When.
        at: Timestamp,
    },
    /// A candidate was compared with its parent and with the root.
    Scored {
        /// Which eval.
        eval: EvalId,
        /// The figures.
        scored: Box<CandidateScore>,
        /// The older twin with the same git tree whose results these are, in place of an own sweep.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        same_code_as: Option<SweepSubject>,
        /// When.
        at: Timestamp,
    },
    /// An eval ended without a score. The run goes on.
    EvalFailed {
        /// Which eval.
        eval: EvalId,
        /// Where and why.
        failure: EvalFailure,
        /// What the answers of this attempt took, where it failed before it was a commit.
        #[serde(default, skip_serializing_if = "RoleBills::is_empty")]
        bills: RoleBills,
        /// When.
        at: Timestamp,
    },
    /// An attempt of an eval failed, and the next one waits for its turn.
    AttemptFailed {
        /// Which eval.
        eval: EvalId,
        /// Which attempt, counted from 1.
        attempt: u32,
        /// Where and why.
        failure: EvalFailure,
        /// What the answers of this attempt took, where it failed before it was a commit.
        #[serde(default, skip_serializing_if = "RoleBills::is_empty")]
        bills: RoleBills,
        /// When.
        at: Timestamp,
    },
    /// A step was stopped by a budget: nothing more that needs an agent begins at this depth.
    BudgetReached {
        /// Which budget.
        budget: BudgetKind,
        /// The step: what it was paid for stays.
        step: PaidStep,
        /// What its answers have taken so far. Where the step goes on later, its end has them again.
        #[serde(default, skip_serializing_if = "RoleBills::is_empty")]
        bills: RoleBills,
    },
    /// The time is over: nothing more begins at this depth, and only sweeps that run come to their end.
    DeadlinePassed {
        /// When that was seen.
        at: Timestamp,
    },
    /// Work of the open depth is done again, because the user wanted it.
    SentBack(Box<SentBack>),
    /// The digests of the files that a step has written; the end of the step follows.
    FilesRecorded(Box<FilesRecorded>),
    /// Artifacts that were changed on disk are what they were again; evals that were swept
    /// meanwhile are suspect.
    ArtifactsRestored(Box<ArtifactsRestored>),
    /// All evals of a depth have ended; this is what becomes of them.
    DepthClosed {
        /// Which depth.
        depth: Depth,
        /// The gate's word on every scored eval of the tree, in id order.
        verdicts: Vec<(EvalId, GateVerdict)>,
        /// The evals to promote, best first.
        beam: Vec<EvalId>,
        /// Whether the budget left ideas or nodes untried.
        cut_short: bool,
    },
    /// A candidate has become a node.
    NodeAdded {
        /// The node.
        node: NodeId,
        /// The eval that it was.
        from: EvalId,
        /// When.
        at: Timestamp,
    },
    /// A promotion did not work; it is tried again.
    PromotionFailed {
        /// Which eval.
        eval: EvalId,
        /// Why.
        why: String,
    },
    /// Something that is not needed any more is gone.
    Discarded {
        /// What.
        leftover: Leftover,
    },
    /// Something that is not needed any more could not be removed; it is tried again.
    DiscardDeferred {
        /// What.
        leftover: Leftover,
        /// Why.
        why: String,
        /// Not before.
        retry_at: Timestamp,
    },
    /// The user wants these gone, worktrees and refs of nodes among them; they are leftovers from now on.
    RemovalAsked {
        /// What.
        leftovers: Vec<Leftover>,
    },
    /// The run goes on with another reach; a stopped run is open again.
    SettingsChanged {
        /// From now on.
        reach: RunLimits,
    },
    /// Others do the work from now on.
    AgentsChanged {
        /// They.
        agents: RecordedAgents,
    },
    /// What is scored and judged from now on goes by other rules. Scored evals of the open depth are to be scored anew.
    RulesChanged {
        /// The version that holds from now on.
        rules_version: RulesVersion,
    },
    /// Another process goes on with the run, because the one before did not leave cleanly.
    #[serde(rename = "lock_takeover")]
    LockTakenOver {
        /// Who had it; nobody where that could not be read.
        from: Option<RunnerProcess>,
        /// Why it could be taken.
        because: TakeoverReason,
        /// When, on the wall.
        at: Timestamp,
    },
    /// The journal had lost its name while the run went on, and has it again: nothing of it is lost.
    JournalRestored {
        /// When that was noticed, on the wall.
        at: Timestamp,
    },
    /// The user asked something of the run while it ran.
    Asked {
        /// What.
        wish: UserRequest,
        /// The message that said so; none where going on with the run said so.
        message: Option<MessageId>,
        /// When it was read, on the wall.
        at: Timestamp,
    },
    /// An idea of the user's has become an eval.
    IdeaAdded(Box<IdeaAdded>),
    /// An idea of the user's no longer fits.
    IdeaRefused {
        /// The message that brought it.
        message: MessageId,
        /// Its title.
        title: String,
        /// Why it is not tried.
        why: String,
        /// When it was read, on the wall.
        at: Timestamp,
    },
    /// The run is over, unless its reach is changed.
    Stopped {
        /// Why.
        reason: StopReason,
        /// When.
        at: Timestamp,
    },
}

/// How a run begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunStarted {
    /// Its name.
    pub run: RunId,
    /// What is behind the ports.
    pub world: WorldKind,
    /// The commit that the root is.
    pub root: Commit,
    /// What its results mean.
    pub meaning: FixedSettings,
    /// How far it goes.
    pub reach: RunLimits,
    /// Who does the work.
    #[serde(default)]
    pub agents: RecordedAgents,
    /// The ideas that it is about; none where agents are asked for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given: Option<UserIdeas>,
    /// The run whose answers it goes by; none where agents are asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replays: Option<RunId>,
    /// The version of the rules that candidates are scored and judged by. Older runs do not say.
    #[serde(default = "RulesVersion::of_older_records")]
    pub rules_version: RulesVersion,
    /// When.
    pub at: Timestamp,
}

/// What is behind the ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorldKind {
    /// No model and no sweep: both are functions of the seed.
    Dry {
        /// The seed.
        seed: u64,
    },
    /// Agents that are asked and sweeps that are run.
    Real,
}

/// A step whose beginning is recorded, because it is paid for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PaidStep {
    /// Ask for a node's ideas, or for the control group's.
    Propose(IdeaSource),
    /// Implement an eval's idea.
    Implement(EvalId),
}

/// What a sweep measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SweepSubject {
    /// The root.
    Root,
    /// A candidate.
    Eval(EvalId),
}

impl SweepSubject {
    /// Where its worktree is.
    #[must_use]
    pub const fn code_place(self) -> CodePlace {
        match self {
            Self::Root => CodePlace::Node(NodeId::ROOT),
            Self::Eval(eval) => CodePlace::Candidate(eval),
        }
    }
}

impl fmt::Display for SweepSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => f.write_str("root"),
            Self::Eval(eval) => write!(f, "e{eval}"),
        }
    }
}

/// A stage of an eval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EvalStage {
    /// From the idea to a commit.
    Implement,
    /// Tests and sweep.
    Sweep,
    /// Comparing.
    Score,
}

impl fmt::Display for EvalStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Implement => "implement",
            Self::Sweep => "sweep",
            Self::Score => "score",
        })
    }
}

/// Where and why an eval failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvalFailure {
    /// At which stage.
    pub stage: EvalStage,
    /// What kind of failure.
    pub kind: FailureKind,
    /// What happened, for a person.
    pub message: String,
}

/// What kind of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The agent gave no usable answer.
    Agent,
    /// No patch of the coder applied.
    Patch,
    /// The reviewer rejected it to the end.
    Rejected,
    /// The change touches what is protected.
    Protected,
    /// Protected inputs are not what they were for the root. Of several sweeps that ran then, nobody knows whose doing it was.
    Inputs,
    /// Artifacts of the run changed while it was swept. Of several sweeps that ran then, any can
    /// have changed them.
    Artifacts,
    /// The change changes nothing.
    NoChange,
    /// The worktree could not be set up.
    Setup,
    /// The tests failed.
    Tests,
    /// The sweep failed.
    Sweep,
    /// Its answers and commands took too long together.
    Timeout,
    /// The sweep left no results.
    NoResults,
    /// The results cannot be read as a sweep.
    Results,
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Agent => "agent",
            Self::Patch => "patch",
            Self::Rejected => "rejected",
            Self::Protected => "protected",
            Self::Inputs => "inputs",
            Self::Artifacts => "artifacts",
            Self::NoChange => "no_change",
            Self::Setup => "setup",
            Self::Tests => "tests",
            Self::Sweep => "sweep",
            Self::Timeout => "timeout",
            Self::NoResults => "no_results",
            Self::Results => "results",
        })
    }
}
