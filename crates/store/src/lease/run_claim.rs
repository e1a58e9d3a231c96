//! Terms on which the user lets a run be taken that another process may have.

use std::time::Duration;

/// Silence after which an owner on another machine counts as dead, unless the user sets another.
pub const DEFAULT_STALE_AFTER: Duration = Duration::from_mins(10);

/// Policy on continuing where only the user knows that nothing is lost.
///
/// That is: from a manifest whose journal is missing or short, and with a run that another
/// machine's process may still have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForcePolicy {
    /// Refuse to continue.
    No,
    /// Continue; an old journal is set aside, and the other process notices before its next write.
    Yes,
}

/// The user's choices on a run that another process may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunClaim {
    /// Policy on taking the run from a possibly living process elsewhere; see [`ForcePolicy`].
    pub force: ForcePolicy,
    /// Silence after which a process on another machine counts as dead.
    pub stale_after: Duration,
}

impl From<ForcePolicy> for RunClaim {
    fn from(force: ForcePolicy) -> Self {
        Self { force, stale_after: DEFAULT_STALE_AFTER }
    }
}
