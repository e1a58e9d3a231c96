//! The children that are alive, so that a program in a hurry can end them all, and so that they can be told from those
//! that came to us. It knows the groups that were started here, and nothing of what has left them.

use super::system;
use std::collections::BTreeSet;
use std::io;
use std::process::Child;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How long a child that is just being started is waited for.
const MAX_SPAWN_WAIT: Duration = Duration::from_millis(500);
/// How long a child that was asked to end may take.
const CHILD_GRACE: Duration = Duration::from_secs(1);
/// How long the end of a child that was killed is waited for.
const MAX_KILL_WAIT: Duration = Duration::from_millis(500);

/// All of this process.
pub(super) static ALL_CHILDREN: LiveChildren = LiveChildren::new();

/// Ends every child with its whole group, in at most two seconds. From then on none is started, and whoever waits for
/// one waits for ever: nothing may be concluded from how a child ended here. For a program that is about to exit.
pub fn end_all() {
    ALL_CHILDREN.end_children();
}

/// Children that were started and not yet reaped.
pub(super) struct LiveChildren {
    children: Mutex<ChildTable>,
    changed: Condvar,
}

struct ChildTable {
    /// By the process that leads their group.
    leaders: BTreeSet<u32>,
    /// Those that outlive us. They stay here when they have ended.
    detached: BTreeSet<u32>,
    /// How many are being started.
    starting: u32,
    /// The program ends.
    ending: bool,
}

impl LiveChildren {
    pub(super) const fn new() -> Self {
        let children = ChildTable {
            leaders: BTreeSet::new(),
            detached: BTreeSet::new(),
            starting: 0,
            ending: false,
        };
        Self { children: Mutex::new(children), changed: Condvar::new() }
    }

    fn lock_children(&self) -> MutexGuard<'_, ChildTable> {
        self.children.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a child and remembers it.
    pub(super) fn spawn_child(
        &self,
        spawn: impl FnOnce() -> io::Result<Child>,
    ) -> io::Result<Child> {
        self.spawn_and_note(spawn, |children, child| children.leaders.insert(child))
    }

    /// Starts a child that is not to be ended, and remembers that it is ours.
    pub(super) fn spawn_detached(
        &self,
        spawn: impl FnOnce() -> io::Result<Child>,
    ) -> io::Result<Child> {
        self.spawn_and_note(spawn, |children, child| children.detached.insert(child))
    }

    fn spawn_and_note(
        &self,
        spawn: impl FnOnce() -> io::Result<Child>,
        remember: impl FnOnce(&mut ChildTable, u32) -> bool,
    ) -> io::Result<Child> {
        let mut children = self.lock_children();
        if children.ending {
            park_forever(children);
        }
        children.starting += 1;
        drop(children);
        let spawned = spawn();
        let mut children = self.lock_children();
        children.starting -= 1;
        if let Ok(child) = &spawned {
            remember(&mut children, child.id());
        }
        self.changed.notify_all();
        spawned
    }

    /// Those of these that we have not started. None while one is being started: it may be among them.
    #[cfg(unix)]
    pub(super) fn retain_unknown(&self, mut pids: Vec<u32>) -> Vec<u32> {
        let children = self.lock_children();
        let ours = |pid: &u32| children.leaders.contains(pid) || children.detached.contains(pid);
        pids.retain(|pid| children.starting == 0 && !ours(pid));
        pids
    }

    /// Forgets a child that was reaped.
    pub(super) fn forget_child(&self, child: &Child) {
        let mut children = self.lock_children();
        children.leaders.remove(&child.id());
        self.changed.notify_all();
        if children.ending {
            park_forever(children);
        }
    }

    fn end_children(&self) {
        let mut children = self.lock_children();
        children.ending = true;
        let children = self.wait_while(children, MAX_SPAWN_WAIT, |children| children.starting > 0);
        children.leaders.iter().copied().for_each(system::ask_group);
        let alive = |children: &mut ChildTable| !children.leaders.is_empty();
        let children = self.wait_while(children, CHILD_GRACE, alive);
        children.leaders.iter().copied().for_each(system::kill_group);
        drop(self.wait_while(children, MAX_KILL_WAIT, alive));
    }

    fn wait_while<'a>(
        &self,
        children: MutexGuard<'a, ChildTable>,
        most: Duration,
        so: impl FnMut(&mut ChildTable) -> bool,
    ) -> MutexGuard<'a, ChildTable> {
        let waited = self.changed.wait_timeout_while(children, most, so);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Waits for the end of the program.
fn park_forever(children: MutexGuard<'_, ChildTable>) -> ! {
    drop(children);
    loop {
        thread::park();
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::ChildProgram;
    use std::path::Path;
    use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
    use std::time::Instant;

    /// Runs a script among these children, and says when that returns.
    fn run(living: &'static LiveChildren, script: &str) -> Receiver<()> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let shell = ChildProgram::new(Path::new("/bin/sh"), &std::env::temp_dir());
        let shell = shell.args(["-c", script]).envs([("PATH", path)]);
        let (sender, receiver) = channel();
        thread::spawn(move || {
            drop(shell.run_among(living));
            sender.send(())
        });
        receiver
    }

    fn await_children(living: &LiveChildren, count: usize) {
        while living.lock_children().leaders.len() < count {
            thread::yield_now();
        }
        // The shells have to get as far as their traps.
        thread::sleep(Duration::from_millis(200));
    }

    #[test]
    fn all_end_with_their_groups_and_nobody_learns_of_it() {
        static LIVING: LiveChildren = LiveChildren::new();
        let scripts =
            ["sleep 60", "sleep 60 & sleep 60", "trap '' TERM; sleep 60 & wait; sleep 60"];
        let waiting = scripts.map(|script| run(&LIVING, script));
        await_children(&LIVING, scripts.len());
        let begun = Instant::now();
        LIVING.end_children();
        assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
        assert!(LIVING.lock_children().leaders.is_empty(), "all were reaped");
        let late = run(&LIVING, "exit 0");
        for receiver in waiting.into_iter().chain([late]) {
            let heard = receiver.recv_timeout(Duration::from_millis(50));
            assert_eq!(heard, Err(RecvTimeoutError::Timeout));
        }
    }

    #[test]
    fn those_that_do_as_they_are_asked_are_not_waited_for() {
        static LIVING: LiveChildren = LiveChildren::new();
        let waiting = run(&LIVING, "sleep 60");
        await_children(&LIVING, 1);
        let begun = Instant::now();
        LIVING.end_children();
        assert!(begun.elapsed() < CHILD_GRACE, "{:?}", begun.elapsed());
        drop(waiting);
    }

    #[test]
    fn a_child_that_ended_is_forgotten() {
        static LIVING: LiveChildren = LiveChildren::new();
        assert!(run(&LIVING, "exit 0").recv().is_ok());
        assert!(LIVING.lock_children().leaders.is_empty());
    }
}
