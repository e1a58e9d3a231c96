//! Events of a run: past tense, append-only, the only input of its state. Snapshot tests of the
//! store pin how an event is written to disk; fields are only added.

mod budget;
mod idea;
mod kind;
mod leftover;
mod recorded_files;
mod redo;
mod stop;
mod takeover;
mod user_request;

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

pub use crate::approval::Approval;
pub use crate::failure::{EvalFailure, EvalStage, FailureKind};
pub use crate::subject::SweepSubject;

use crate::bill::RoleBills;
use crate::conversation::Turn;
use crate::evidence::{Artifact, CandidateScore};
use crate::gate::GateVerdict;
use crate::group::IdeaSource;
use crate::id::{Commit, Depth, EvalId, GitTree, NodeId, RunId, Sha256};
use crate::policy::{FixedSettings, RecordedAgents, RunLimits};
use crate::root_checks::RootChecks;
use crate::rules_version::RulesVersion;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// One transition of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// The run was created.
    RunStarted(Box<RunStarted>),
    /// A step that costs something began; its outcome is a separate event.
    StepStarted {
        /// Step that began.
        step: PaidStep,
        /// Number of the attempt, counted from 1; interruptions do not count.
        attempt: u32,
        /// Time of the event.
        at: Timestamp,
    },
    /// The root's own sweep finished and is valid.
    RootMeasured {
        /// Results of the sweep.
        baseline: Artifact,
        /// Number of selected rows.
        rows: u32,
        /// Results that candidates are compared with as their parent, if from another sweep.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<Artifact>,
        /// Digest of the protected inputs at that time, if there are any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        protected_inputs: Option<Box<Sha256>>,
        /// Git tree of the root. Older records lack it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tree: Option<GitTree>,
        /// Checks that candidates' sweeps must pass; if missing, only protected files and inputs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        checks: Option<Box<RootChecks>>,
        /// Time of the event.
        at: Timestamp,
    },
    /// The root's own sweep cannot serve as a baseline; it has to be repeated.
    RootRefused {
        /// Reason for the refusal.
        why: String,
    },
    /// A node or the control group received its ideas; each that fits the budget becomes an eval.
    IdeasProposed(Box<IdeasProposed>),
    /// A node or the control group received no ideas.
    ProposalFailed {
        /// Node or group concerned.
        #[serde(rename = "node")]
        source: IdeaSource,
        /// Reason for the failure.
        why: String,
        /// Number of turns used in the conversation.
        turns: u32,
        /// Bills of the replies.
        #[serde(default, skip_serializing_if = "RoleBills::is_empty")]
        bills: RoleBills,
        /// Recorded turns; empty without a conversation.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        conversation: Vec<Turn>,
        /// Time of the event.
        at: Timestamp,
    },
    /// An idea became a commit.
    Implemented {
        /// Eval of the idea.
        eval: EvalId,
        /// Commit of the candidate.
        commit: Commit,
        /// Git tree of the candidate. Older records lack it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tree: Option<GitTree>,
        /// Number of files changed against the parent.
        files_changed: u32,
        /// Number of rounds that the coder needed.
        rounds: u32,
        /// Approval of the candidate. Runs of the first treebeam had no reviewer.
        #[serde(default)]
        approval: Approval,
        /// Bills of the replies of this attempt.
        #[serde(default, skip_serializing_if = "RoleBills::is_empty")]
        bills: RoleBills,
        /// Time of the event.
        at: Timestamp,
    },
    /// A sweep is about to be submitted to the executor.
    SweepSubmitted {
        /// Subject of the sweep.
        subject: SweepSubject,
        /// Number of the submission, counted from 1.
        submission: u32,
    },
    /// A candidate's sweep finished.
    Swept {
        /// Eval of the candidate.
        eval: EvalId,
        /// Results of the sweep.
        results: Artifact,
        /// Time of the event.
        at: Timestamp,
    },
    /// A candidate was compared with its parent and with the root.
    Scored {
        /// Eval of the candidate.
        eval: EvalId,
        /// Figures of the comparison.
        scored: Box<CandidateScore>,
        /// Older twin with the same git tree, whose results replace the candidate's own sweep.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        same_code_as: Option<SweepSubject>,
        /// Time of the event.
        at: Timestamp,
    },
    /// An eval ended without a score. The run continues.
    EvalFailed {
        /// Eval that failed.
        eval: EvalId,
        /// Stage and reason of the failure.
        failure: EvalFailure,
        /// Bills of the replies of this attempt, if it failed before the commit.
        #[serde(default, skip_serializing_if = "RoleBills::is_empty")]
        bills: RoleBills,
        /// Time of the event.
        at: Timestamp,
    },
    /// An attempt of an eval failed, and the next one is queued.
    AttemptFailed {
        /// Eval that is retried.
        eval: EvalId,
        /// Number of the failed attempt, counted from 1.
        attempt: u32,
        /// Stage and reason of the failure.
        failure: EvalFailure,
        /// Bills of the replies of this attempt, if it failed before the commit.
        #[serde(default, skip_serializing_if = "RoleBills::is_empty")]
        bills: RoleBills,
        /// Time of the event.
        at: Timestamp,
    },
    /// A budget stopped a step: nothing else that needs an agent begins at this depth.
    BudgetReached {
        /// Kind of the budget.
        budget: BudgetKind,
        /// Step that was stopped: what was paid for is kept.
        step: PaidStep,
        /// Bills of the step so far. If the step continues later, its last event repeats them.
        #[serde(default, skip_serializing_if = "RoleBills::is_empty")]
        bills: RoleBills,
    },
    /// The deadline passed: nothing else begins at this depth, only running sweeps are finished.
    DeadlinePassed {
        /// Time at which this was noticed.
        at: Timestamp,
    },
    /// Work of the open depth is repeated at the user's request.
    SentBack(Box<SentBack>),
    /// Digests of the files that a step wrote; the event that ends the step follows.
    FilesRecorded(Box<FilesRecorded>),
    /// Changed artifacts were restored; evals that were being swept at the time are suspect.
    ArtifactsRestored(Box<ArtifactsRestored>),
    /// All evals of a depth have ended, and their fate is decided.
    DepthClosed {
        /// Depth that is closed.
        depth: Depth,
        /// Gate verdict on every scored eval of the tree, ordered by id.
        verdicts: Vec<(EvalId, GateVerdict)>,
        /// Evals to promote, best first.
        beam: Vec<EvalId>,
        /// True if the budget left ideas or nodes untried.
        cut_short: bool,
    },
    /// A candidate became a node.
    NodeAdded {
        /// Id of the node.
        node: NodeId,
        /// Eval of the candidate.
        from: EvalId,
        /// Time of the event.
        at: Timestamp,
    },
    /// A promotion failed; it will be retried.
    PromotionFailed {
        /// Eval of the candidate.
        eval: EvalId,
        /// Reason for the failure.
        why: String,
    },
    /// A leftover was removed.
    Discarded {
        /// Leftover that was removed.
        leftover: Leftover,
    },
    /// A leftover could not be removed; the removal will be retried.
    DiscardDeferred {
        /// Leftover concerned.
        leftover: Leftover,
        /// Reason for the failure.
        why: String,
        /// Earliest time of the next attempt.
        retry_at: Timestamp,
    },
    /// The user wants these removed, including those of nodes; they are leftovers from now on.
    RemovalAsked {
        /// Things to remove.
        leftovers: Vec<Leftover>,
    },
    /// The run continues with other limits; a stopped run is open again.
    SettingsChanged {
        /// New limits.
        reach: RunLimits,
    },
    /// Other agents do the work from now on.
    AgentsChanged {
        /// New agents.
        agents: RecordedAgents,
    },
    /// Other rules score and judge from now on. Scored evals of the open depth are scored again.
    RulesChanged {
        /// New version of the rules.
        rules_version: RulesVersion,
    },
    /// Another process took over the run, because the one before did not exit cleanly.
    #[serde(rename = "lock_takeover")]
    LockTakenOver {
        /// Process that had the run; `None` if that could not be read.
        from: Option<RunnerProcess>,
        /// Reason why the takeover was allowed.
        because: TakeoverReason,
        /// Wall-clock time of the takeover.
        at: Timestamp,
    },
    /// The journal had lost its name during the run and was restored without loss.
    JournalRestored {
        /// Wall-clock time at which this was noticed.
        at: Timestamp,
    },
    /// The user made a request while the run was active.
    Asked {
        /// Kind of the request.
        wish: UserRequest,
        /// Message with the request; `None` if a resume made it.
        message: Option<MessageId>,
        /// Wall-clock time at which the request was read.
        at: Timestamp,
    },
    /// An idea of the user became an eval.
    IdeaAdded(Box<IdeaAdded>),
    /// An idea of the user no longer fits and was refused.
    IdeaRefused {
        /// Message with the idea.
        message: MessageId,
        /// Title of the idea.
        title: String,
        /// Reason for the refusal.
        why: String,
        /// Wall-clock time at which the message was read.
        at: Timestamp,
    },
    /// The run is over, unless its limits are changed.
    Stopped {
        /// Reason for the stop.
        reason: StopReason,
        /// Time of the event.
        at: Timestamp,
    },
}

/// First event of a run, with its settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunStarted {
    /// Name of the run.
    pub run: RunId,
    /// Kind of world behind the ports.
    pub world: WorldKind,
    /// Commit of the root.
    pub root: Commit,
    /// Settings that determine what results mean.
    pub meaning: FixedSettings,
    /// Limits of the run, which may change.
    pub reach: RunLimits,
    /// Agents that do the work.
    #[serde(default)]
    pub agents: RecordedAgents,
    /// Ideas of the user; `None` if agents generate them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given: Option<UserIdeas>,
    /// Run whose recorded replies are used; `None` if agents are called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replays: Option<RunId>,
    /// Version of the rules that score and judge candidates. Older records lack it.
    #[serde(default = "RulesVersion::of_older_records")]
    pub rules_version: RulesVersion,
    /// Time of the event.
    pub at: Timestamp,
}

/// Kind of world behind the ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorldKind {
    /// No model and no sweep: both are functions of the seed.
    Dry {
        /// Seed of the dry world.
        seed: u64,
    },
    /// Agents are called and sweeps are run.
    Real,
}

/// Step whose beginning is recorded, because it costs something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PaidStep {
    /// Generate ideas for a node or for the control group.
    Propose(IdeaSource),
    /// Implement the idea of an eval.
    Implement(EvalId),
}
