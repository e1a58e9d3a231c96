//! Whether a run whose lock is free may be taken from the process that its note names. Pure: what is known about this
//! machine comes in, a word comes out.
//!
//! On this machine the clock does not count: a process is alive or dead. Only for a process elsewhere, whose lock may
//! not reach us, the age of its heartbeat decides. A note that cannot be read may be anybody's, so it counts as one from
//! elsewhere, with the time of the file as its heartbeat.

use super::holder::{Holder, Note};
use jiff::Timestamp;
use std::time::Duration;
use treebeam_core::event::Takeover;

/// What is known about a process of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum Process {
    /// There is none of this number.
    Gone,
    /// There is one, which started at this time in the machine's own count.
    Started(u64),
    /// This system does not say.
    Unknown,
}

impl Process {
    pub(super) const fn start(self) -> Option<u64> {
        match self {
            Self::Started(start) => Some(start),
            Self::Gone | Self::Unknown => None,
        }
    }
}

/// This machine, now.
pub(super) struct Here<'a> {
    pub(super) hostname: &'a str,
    pub(super) boot_id: Option<&'a str>,
    pub(super) now: Timestamp,
    pub(super) process: &'a dyn Fn(u32) -> Process,
}

/// How the process stands that had the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Nobody had it, or it left cleanly.
    Left,
    /// On this machine, and dead.
    Dead,
    /// On this machine, and alive.
    Alive,
    /// Somewhere else, and this long silent; not at all where its heartbeat lies in the future or has no time.
    Elsewhere(Duration),
}

/// How the process stands that had the run, given that the run's lock is free.
pub(super) fn standing(note: &Note, here: &Here<'_>) -> Standing {
    match note {
        Note::Missing => Standing::Left,
        Note::Unreadable(written_at) => Standing::Elsewhere(silence(*written_at, here.now)),
        Note::Of(holder) if is_alive(holder, here) => Standing::Alive,
        Note::Of(holder) if is_here(holder, here) => Standing::Dead,
        Note::Of(holder) => Standing::Elsewhere(silence(Some(holder.last_heartbeat_at), here.now)),
    }
}

/// A machine is known by its name, whatever its boot: containers share the boot of their machine, but not always their
/// locks, and never their processes.
fn is_here(holder: &Holder, here: &Here<'_>) -> bool {
    holder.hostname == here.hostname && here.hostname != "unknown"
}

/// A process without its lock is alive only if it is provably the one that wrote the note: its locks do not work then.
fn is_alive(holder: &Holder, here: &Here<'_>) -> bool {
    let same_boot = holder.boot_id.is_some() && holder.boot_id.as_deref() == here.boot_id;
    let start = (here.process)(holder.pid).start();
    same_boot && start.is_some() && start == holder.start_time
}

fn silence(heartbeat: Option<Timestamp>, now: Timestamp) -> Duration {
    heartbeat.and_then(|then| now.duration_since(then).try_into().ok()).unwrap_or_default()
}

/// Whether the run may be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nobody loses it.
    Free,
    /// From the process that had it.
    Over(Takeover),
    /// No: that process is alive, and here.
    Alive,
    /// No: that process may be alive, elsewhere.
    Fresh,
}

/// Whether the run may be taken from a process that stands so; `force` is for those that nobody here can ask.
pub(super) fn verdict(standing: Standing, stale_after: Duration, force: super::Force) -> Verdict {
    match standing {
        Standing::Left => Verdict::Free,
        Standing::Dead => Verdict::Over(Takeover::OwnerDead),
        Standing::Alive => Verdict::Alive,
        Standing::Elsewhere(silence) if silence >= stale_after => {
            Verdict::Over(Takeover::HeartbeatStale)
        }
        Standing::Elsewhere(_) if force == super::Force::Yes => Verdict::Over(Takeover::Forced),
        Standing::Elsewhere(_) => Verdict::Fresh,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Force;

    const DAY: i64 = 86_400;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_790_000_000 + second).unwrap()
    }

    /// `host/boot/pid/start`, as a note has it; `-` for what is unknown. The heartbeat was so many seconds ago.
    fn note(owner: &str, ago: i64) -> Note {
        let [host, boot, pid, start] = owner.split('/').collect::<Vec<_>>()[..] else {
            panic!("{owner}")
        };
        Note::Of(Holder {
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

    /// On the machine `vm`, boot `b2`, process 7 started at 70; nobody knows about process 8.
    fn word(note: &Note, force: Force) -> Verdict {
        let process = |pid| match pid {
            7 => Process::Started(70),
            8 => Process::Unknown,
            _ => Process::Gone,
        };
        let here = Here { hostname: "vm", boot_id: Some("b2"), now: at(0), process: &process };
        verdict(standing(note, &here), Duration::from_mins(10), force)
    }

    fn check(owner: &str, ago: i64, expected: Verdict, by_force: Verdict) {
        let note = note(owner, ago);
        assert_eq!(word(&note, Force::No), expected, "{owner}, {ago} s ago");
        assert_eq!(word(&note, Force::Yes), by_force, "{owner}, {ago} s ago, by force");
    }

    #[test]
    fn on_this_machine_no_clock_counts() {
        let dead = Verdict::Over(Takeover::OwnerDead);
        for ago in [-DAY, -1, 0, 5, 599, 600, DAY] {
            check("vm/b2/7/70", ago, Verdict::Alive, Verdict::Alive);
            check("renamed/b2/7/70", ago, Verdict::Alive, Verdict::Alive);
            check("vm/b2/9/90", ago, dead, dead);
            check("vm/b2/7/69", ago, dead, dead);
            check("vm/b1/7/70", ago, dead, dead);
        }
    }

    #[test]
    fn what_cannot_be_compared_goes_by_the_lock_which_is_free() {
        let dead = Verdict::Over(Takeover::OwnerDead);
        for owner in ["vm/b2/7/-", "vm/b2/8/80", "vm/-/7/70", "vm/-/9/-"] {
            check(owner, 0, dead, dead);
        }
    }

    #[test]
    fn elsewhere_the_heartbeat_counts_or_force() {
        let (stale, forced) = (Takeover::HeartbeatStale, Takeover::Forced);
        for owner in ["box/b9/7/70", "box/-/7/-", "box/b9/9/90", "box/b2/9/90", "box/b2/7/69"] {
            for ago in [-DAY, 0, 599] {
                check(owner, ago, Verdict::Fresh, Verdict::Over(forced));
            }
            for ago in [600, DAY] {
                check(owner, ago, Verdict::Over(stale), Verdict::Over(stale));
            }
        }
    }

    #[test]
    fn machines_without_a_name_are_not_the_same() {
        let here =
            Here { hostname: "unknown", boot_id: None, now: at(0), process: &|_| Process::Unknown };
        let found = standing(&note("unknown/-/7/-", 5), &here);
        assert_eq!(found, Standing::Elsewhere(Duration::from_secs(5)));
    }

    #[test]
    fn a_note_that_cannot_be_read_is_as_old_as_its_file() {
        let (stale, forced) = (Takeover::HeartbeatStale, Takeover::Forced);
        for (written_at, expected) in [
            (Some(at(-5)), Verdict::Fresh),
            (Some(at(DAY)), Verdict::Fresh),
            (None, Verdict::Fresh),
            (Some(at(-600)), Verdict::Over(stale)),
        ] {
            assert_eq!(word(&Note::Unreadable(written_at), Force::No), expected);
        }
        assert_eq!(word(&Note::Unreadable(Some(at(-5))), Force::Yes), Verdict::Over(forced));
        assert_eq!(word(&Note::Missing, Force::No), Verdict::Free);
    }
}
