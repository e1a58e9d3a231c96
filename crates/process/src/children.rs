//! The live children of this process, so that all of them can be ended at once. They can also be
//! told from processes that were adopted. The table knows the process groups that were started
//! here, not processes that left them.

use super::system;
use std::collections::BTreeSet;
use std::io;
use std::process::Child;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Longest wait for a child that is just being started.
const MAX_SPAWN_WAIT: Duration = Duration::from_millis(500);
/// Time between asking a child to end and killing it.
const CHILD_GRACE: Duration = Duration::from_secs(1);
/// Longest wait for the end of a child that was killed.
const MAX_KILL_WAIT: Duration = Duration::from_millis(500);

/// All children of this process.
pub(super) static ALL_CHILDREN: LiveChildren = LiveChildren::new();

/// Ends every child with its whole group, in at most two seconds. From then on no child is started,
/// and a thread that waits for one blocks for ever: nothing may be concluded from how a child ended
/// here. For a program that is about to exit.
pub fn end_all() {
    ALL_CHILDREN.end_children();
}

/// Children that were started and not yet reaped.
pub(super) struct LiveChildren {
    children: Mutex<ChildTable>,
    changed: Condvar,
}

struct ChildTable {
    /// Ids of the processes that lead the children's groups.
    leaders: BTreeSet<u32>,
    /// Ids of the children that outlive this process. They stay here after their end.
    detached: BTreeSet<u32>,
    /// Number of children that are just being started.
    starting: u32,
    /// True once [`end_all`] was called.
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

    /// Starts a child and adds it to the table.
    pub(super) fn spawn_child(
        &self,
        spawn: impl FnOnce() -> io::Result<Child>,
    ) -> io::Result<Child> {
        self.spawn_and_note(spawn, |children, child| children.leaders.insert(child))
    }

    /// Starts a child that [`end_all`] leaves alone, and adds it to the table.
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

    /// Keeps the processes that were not started here. Empty while a child is being started,
    /// because that child may be among them.
    #[cfg(unix)]
    pub(super) fn retain_unknown(&self, mut pids: Vec<u32>) -> Vec<u32> {
        let children = self.lock_children();
        let ours = |pid: &u32| children.leaders.contains(pid) || children.detached.contains(pid);
        pids.retain(|pid| children.starting == 0 && !ours(pid));
        pids
    }

    /// Removes a child that was reaped.
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

/// Blocks this thread until the program ends.
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

    /// Runs a script among these children, and sends a message when that returns.
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
