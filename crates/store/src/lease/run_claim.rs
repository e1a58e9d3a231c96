//! Terms on which the user lets a run be taken that another process may have.

use std::time::Duration;

/// How long the owner of a run may be silent on another machine, unless the user says otherwise.
pub const DEFAULT_STALE_AFTER: Duration = Duration::from_mins(10);

/// Whether to open a run where only the user can know that nothing is lost.
///
/// That is: from a manifest whose journal is missing or too short, and where a process on another
/// machine may still have the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForcePolicy {
    /// Refuse to open it.
    No,
    /// Open it: an old journal is set aside, and the other process notices before its next write.
    Yes,
}

/// Terms on which a run is taken that another process may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunClaim {
    /// Whether to take it from a process on another machine that may be alive.
    pub force: ForcePolicy,
    /// How long a process on another machine may be silent before it counts as dead.
    pub stale_after: Duration,
}

impl From<ForcePolicy> for RunClaim {
    fn from(force: ForcePolicy) -> Self {
        Self { force, stale_after: DEFAULT_STALE_AFTER }
    }
}
