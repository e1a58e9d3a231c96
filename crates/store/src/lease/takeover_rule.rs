//! Decides whether a run whose lock is free may be taken from the process that its note names.
//! Pure: facts about this machine are parameters.
//!
//! On this machine the clock does not count: a process is alive or dead. Only for a process
//! elsewhere, whose lock may be invisible here, the heartbeat's age decides. An unreadable note may
//! be of any machine: it counts as one from elsewhere, with its file's time as its heartbeat.

use super::lock_note::{LockHolder, LockNote};
use super::run_claim::ForcePolicy;
use jiff::Timestamp;
use std::time::Duration;
use treebeam_core::event::TakeoverReason;

/// State of a process of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProcessState {
    /// No process has this id.
    Gone,
    /// A process has this id, and started at this time in the machine's own count.
    Started(u64),
    /// The system does not provide process states.
    Unknown,
}

impl ProcessState {
    pub(super) const fn start_time(self) -> Option<u64> {
        match self {
            Self::Started(start) => Some(start),
            Self::Gone | Self::Unknown => None,
        }
    }
}

/// This machine at this moment.
pub(super) struct LocalMachine<'a> {
    pub(super) hostname: &'a str,
    pub(super) boot_id: Option<&'a str>,
    pub(super) now: Timestamp,
    pub(super) process: &'a dyn Fn(u32) -> ProcessState,
}

/// State of the process that last had the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OwnerState {
    /// No process had the run, or the last one left cleanly.
    Left,
    /// The process was on this machine, and is dead.
    Dead,
    /// The process is on this machine, and alive.
    Alive,
    /// The process is elsewhere and silent for this long; zero for a future or missing heartbeat.
    Elsewhere(Duration),
}

/// Determines the state of the process that last had the run, given that the run's lock is free.
pub(super) fn judge_owner(note: &LockNote, here: &LocalMachine<'_>) -> OwnerState {
    match note {
        LockNote::Missing => OwnerState::Left,
        LockNote::Unreadable(written_at) => {
            OwnerState::Elsewhere(heartbeat_age(*written_at, here.now))
        }
        LockNote::Readable(holder) if is_alive(holder, here) => OwnerState::Alive,
        LockNote::Readable(holder) if is_local(holder, here) => OwnerState::Dead,
        LockNote::Readable(holder) => {
            OwnerState::Elsewhere(heartbeat_age(Some(holder.last_heartbeat_at), here.now))
        }
    }
}

/// Returns true if the process is on this machine, compared by name only, not by boot: containers
/// share the boot of their machine, but not always their locks, and never their processes.
fn is_local(holder: &LockHolder, here: &LocalMachine<'_>) -> bool {
    holder.hostname == here.hostname && here.hostname != "unknown"
}

/// Returns true if the process is provably the writer of the note and still alive although it holds
/// no lock: file locks do not work then.
fn is_alive(holder: &LockHolder, here: &LocalMachine<'_>) -> bool {
    let same_boot = holder.boot_id.is_some() && holder.boot_id.as_deref() == here.boot_id;
    let start = (here.process)(holder.pid).start_time();
    same_boot && start.is_some() && start == holder.start_time
}

fn heartbeat_age(heartbeat: Option<Timestamp>, now: Timestamp) -> Duration {
    heartbeat.and_then(|then| now.duration_since(then).try_into().ok()).unwrap_or_default()
}

/// Decision on taking the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TakeoverVerdict {
    /// The run is free: no process loses it.
    Free,
    /// The run is taken over from the process that had it.
    Over(TakeoverReason),
    /// Refused: the owner is alive on this machine.
    Alive,
    /// Refused: the owner may be alive on another machine.
    Fresh,
}

/// Decides about taking the run; `force` allows it from processes on other machines.
pub(super) fn judge_takeover(
    standing: OwnerState,
    stale_after: Duration,
    force: ForcePolicy,
) -> TakeoverVerdict {
    match standing {
        OwnerState::Left => TakeoverVerdict::Free,
        OwnerState::Dead => TakeoverVerdict::Over(TakeoverReason::OwnerDead),
        OwnerState::Alive => TakeoverVerdict::Alive,
        OwnerState::Elsewhere(silence) if silence >= stale_after => {
            TakeoverVerdict::Over(TakeoverReason::HeartbeatStale)
        }
        OwnerState::Elsewhere(_) if force == ForcePolicy::Yes => {
            TakeoverVerdict::Over(TakeoverReason::Forced)
        }
        OwnerState::Elsewhere(_) => TakeoverVerdict::Fresh,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_790_000_000 + second).unwrap()
    }

    /// Builds a note from `host/boot/pid/start` (`-`: unknown) with a heartbeat `ago` seconds ago.
    fn note(owner: &str, ago: i64) -> LockNote {
        let [host, boot, pid, start] = owner.split('/').collect::<Vec<_>>()[..] else {
            panic!("{owner}")
        };
        LockNote::Readable(LockHolder {
            pid: pid.parse().unwrap(),
            hostname: host.to_owned(),
            boot_id: (boot != "-").then(|| boot.to_owned()),
            start_time: start.parse().ok(),
            created_at: at(-9),
            last_heartbeat_at: at(-ago),
            epoch: 1,
            waiting: Vec::new(),
        })
    }

    /// Judges on machine `vm`, boot `b2`; process 7 started at 70, process 8 is unknown.
    fn word(note: &LockNote, force: ForcePolicy) -> TakeoverVerdict {
        let process = |pid| match pid {
            7 => ProcessState::Started(70),
            8 => ProcessState::Unknown,
            _ => ProcessState::Gone,
        };
        let here =
            LocalMachine { hostname: "vm", boot_id: Some("b2"), now: at(0), process: &process };
        judge_takeover(judge_owner(note, &here), Duration::from_mins(10), force)
    }

    fn check(owner: &str, ago: i64, expected: TakeoverVerdict, by_force: TakeoverVerdict) {
        let note = note(owner, ago);
        assert_eq!(word(&note, ForcePolicy::No), expected, "{owner}, {ago} s ago");
        assert_eq!(word(&note, ForcePolicy::Yes), by_force, "{owner}, {ago} s ago, by force");
    }

    #[test]
    fn on_this_machine_no_clock_counts() {
        let dead = TakeoverVerdict::Over(TakeoverReason::OwnerDead);
        for ago in [-DAY, -1, 0, 5, 599, 600, DAY] {
            check("vm/b2/7/70", ago, TakeoverVerdict::Alive, TakeoverVerdict::Alive);
            check("renamed/b2/7/70", ago, TakeoverVerdict::Alive, TakeoverVerdict::Alive);
            check("vm/b2/9/90", ago, dead, dead);
            check("vm/b2/7/69", ago, dead, dead);
            check("vm/b1/7/70", ago, dead, dead);
        }
    }

    #[test]
    fn what_cannot_be_compared_goes_by_the_lock_which_is_free() {
        let dead = TakeoverVerdict::Over(TakeoverReason::OwnerDead);
        for owner in ["vm/b2/7/-", "vm/b2/8/80", "vm/-/7/70", "vm/-/9/-"] {
            check(owner, 0, dead, dead);
        }
    }

    #[test]
    fn elsewhere_the_heartbeat_counts_or_force() {
        let (stale, forced) = (TakeoverReason::HeartbeatStale, TakeoverReason::Forced);
        for owner in ["box/b9/7/70", "box/-/7/-", "box/b9/9/90", "box/b2/9/90", "box/b2/7/69"] {
            for ago in [-DAY, 0, 599] {
                check(owner, ago, TakeoverVerdict::Fresh, TakeoverVerdict::Over(forced));
            }
            for ago in [600, DAY] {
                check(owner, ago, TakeoverVerdict::Over(stale), TakeoverVerdict::Over(stale));
            }
        }
    }

    #[test]
    fn machines_without_a_name_are_not_the_same() {
        let here = LocalMachine {
            hostname: "unknown",
            boot_id: None,
            now: at(0),
            process: &|_| ProcessState::Unknown,
        };
        let found = judge_owner(&note("unknown/-/7/-", 5), &here);
        assert_eq!(found, OwnerState::Elsewhere(Duration::from_secs(5)));
    }

    #[test]
    fn a_note_that_cannot_be_read_is_as_old_as_its_file() {
        let (stale, forced) = (TakeoverReason::HeartbeatStale, TakeoverReason::Forced);
        for (written_at, expected) in [
            (Some(at(-5)), TakeoverVerdict::Fresh),
            (Some(at(DAY)), TakeoverVerdict::Fresh),
            (None, TakeoverVerdict::Fresh),
            (Some(at(-600)), TakeoverVerdict::Over(stale)),
        ] {
            assert_eq!(word(&LockNote::Unreadable(written_at), ForcePolicy::No), expected);
        }
        assert_eq!(
            word(&LockNote::Unreadable(Some(at(-5))), ForcePolicy::Yes),
            TakeoverVerdict::Over(forced)
        );
        assert_eq!(word(&LockNote::Missing, ForcePolicy::No), TakeoverVerdict::Free);
    }
}
