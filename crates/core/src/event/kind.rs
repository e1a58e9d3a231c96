//! Names of the kinds of events, complete by construction: an event without one doesn't compile.

use super::Event;

macro_rules! kinds {
    ($($variant:ident => $name:literal,)+) => {
        impl Event {
            /// Names of all kinds, which are the `type` of their JSON.
            pub const KINDS: &[&str] = &[$($name),+];

            /// Returns the name of the event's kind.
            #[must_use]
            pub const fn kind(&self) -> &'static str {
                match self {
                    $(Self::$variant { .. } => $name,)+
                }
            }
        }
    };
}

kinds! {
    RunStarted => "run_started",
    StepStarted => "step_started",
    RootMeasured => "root_measured",
    RootRefused => "root_refused",
    IdeasProposed => "ideas_proposed",
    ProposalFailed => "proposal_failed",
    Implemented => "implemented",
    SweepSubmitted => "sweep_submitted",
    Swept => "swept",
    Scored => "scored",
    EvalFailed => "eval_failed",
    AttemptFailed => "attempt_failed",
    BudgetReached => "budget_reached",
    DeadlinePassed => "deadline_passed",
    SentBack => "sent_back",
    FilesRecorded => "files_recorded",
    ArtifactsRestored => "artifacts_restored",
    DepthClosed => "depth_closed",
    NodeAdded => "node_added",
    PromotionFailed => "promotion_failed",
    Discarded => "discarded",
    DiscardDeferred => "discard_deferred",
    RemovalAsked => "removal_asked",
    SettingsChanged => "settings_changed",
    AgentsChanged => "agents_changed",
    RulesChanged => "rules_changed",
    LockTakenOver => "lock_takeover",
    JournalRestored => "journal_restored",
    Asked => "asked",
    IdeaAdded => "idea_added",
    IdeaRefused => "idea_refused",
    Stopped => "stopped",
}
