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
const BIRTH: Duration = Duration::from_millis(500);
/// How long a child that was asked to end may take.
const GRACE: Duration = Duration::from_secs(1);
/// How long the end of a child that was killed is waited for.
const DEATH: Duration = Duration::from_millis(500);

/// All of this process.
pub(super) static ALL: Living = Living::new();

/// Ends every child with its whole group, in at most two seconds. From then on none is started, and whoever waits for
/// one waits for ever: nothing may be concluded from how a child ended here. For a program that is about to exit.
pub fn end_all() {
    ALL.end();
}

/// Children that were started and not yet reaped.
pub(super) struct Living {
    children: Mutex<Children>,
    changed: Condvar,
}

struct Children {
    /// By the process that leads their group.
    leaders: BTreeSet<u32>,
    /// Those that outlive us. They stay here when they have ended.
    let_go: BTreeSet<u32>,
    /// How many are being started.
    unborn: u32,
    /// The program ends.
    over: bool,
}

impl Living {
    pub(super) const fn new() -> Self {
        let children =
            Children { leaders: BTreeSet::new(), let_go: BTreeSet::new(), unborn: 0, over: false };
        Self { children: Mutex::new(children), changed: Condvar::new() }
    }

    fn children(&self) -> MutexGuard<'_, Children> {
        self.children.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a child and remembers it.
    pub(super) fn start(&self, spawn: impl FnOnce() -> io::Result<Child>) -> io::Result<Child> {
        self.bear(spawn, |children, child| children.leaders.insert(child))
    }

    /// Starts a child that is not to be ended, and remembers that it is ours.
    pub(super) fn let_go(&self, spawn: impl FnOnce() -> io::Result<Child>) -> io::Result<Child> {
        self.bear(spawn, |children, child| children.let_go.insert(child))
    }

    fn bear(
        &self,
        spawn: impl FnOnce() -> io::Result<Child>,
        remember: impl FnOnce(&mut Children, u32) -> bool,
    ) -> io::Result<Child> {
        let mut children = self.children();
        if children.over {
            rest(children);
        }
        children.unborn += 1;
        drop(children);
        let spawned = spawn();
        let mut children = self.children();
        children.unborn -= 1;
        if let Ok(child) = &spawned {
            remember(&mut children, child.id());
        }
        self.changed.notify_all();
        spawned
    }

    /// Those of these that we have not started. None while one is being started: it may be among them.
    #[cfg(unix)]
    pub(super) fn strangers(&self, mut pids: Vec<u32>) -> Vec<u32> {
        let children = self.children();
        let ours = |pid: &u32| children.leaders.contains(pid) || children.let_go.contains(pid);
        pids.retain(|pid| children.unborn == 0 && !ours(pid));
        pids
    }

    /// Forgets a child that was reaped.
    pub(super) fn forget(&self, child: &Child) {
        let mut children = self.children();
        children.leaders.remove(&child.id());
        self.changed.notify_all();
        if children.over {
            rest(children);
        }
    }

    fn end(&self) {
        let mut children = self.children();
        children.over = true;
        let children = self.wait(children, BIRTH, |children| children.unborn > 0);
        children.leaders.iter().copied().for_each(system::ask_group);
        let alive = |children: &mut Children| !children.leaders.is_empty();
        let children = self.wait(children, GRACE, alive);
        children.leaders.iter().copied().for_each(system::kill_group);
        drop(self.wait(children, DEATH, alive));
    }

    fn wait<'a>(
        &self,
        children: MutexGuard<'a, Children>,
        most: Duration,
        so: impl FnMut(&mut Children) -> bool,
    ) -> MutexGuard<'a, Children> {
        let waited = self.changed.wait_timeout_while(children, most, so);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Waits for the end of the program.
fn rest(children: MutexGuard<'_, Children>) -> ! {
    drop(children);
    loop {
        thread::park();
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::process::Program;
    use std::path::Path;
    use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
    use std::time::Instant;

    /// Runs a script among these children, and says when that returns.
    fn run(living: &'static Living, script: &str) -> Receiver<()> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let shell = Program::new(Path::new("/bin/sh"), &std::env::temp_dir());
        let shell = shell.args(["-c", script]).envs([("PATH", path)]);
        let (sender, receiver) = channel();
        thread::spawn(move || {
            drop(shell.run_among(living));
            sender.send(())
        });
        receiver
    }

    fn await_children(living: &Living, count: usize) {
        while living.children().leaders.len() < count {
            thread::yield_now();
        }
        // The shells have to get as far as their traps.
        thread::sleep(Duration::from_millis(200));
    }

    #[test]
    fn all_end_with_their_groups_and_nobody_learns_of_it() {
        static LIVING: Living = Living::new();
        let scripts =
            ["sleep 60", "sleep 60 & sleep 60", "trap '' TERM; sleep 60 & wait; sleep 60"];
        let waiting = scripts.map(|script| run(&LIVING, script));
        await_children(&LIVING, scripts.len());
        let begun = Instant::now();
        LIVING.end();
        assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
        assert!(LIVING.children().leaders.is_empty(), "all were reaped");
        let late = run(&LIVING, "exit 0");
        for receiver in waiting.into_iter().chain([late]) {
            let heard = receiver.recv_timeout(Duration::from_millis(50));
            assert_eq!(heard, Err(RecvTimeoutError::Timeout));
        }
    }

    #[test]
    fn those_that_do_as_they_are_asked_are_not_waited_for() {
        static LIVING: Living = Living::new();
        let waiting = run(&LIVING, "sleep 60");
        await_children(&LIVING, 1);
        let begun = Instant::now();
        LIVING.end();
        assert!(begun.elapsed() < GRACE, "{:?}", begun.elapsed());
        drop(waiting);
    }

    #[test]
    fn a_child_that_ended_is_forgotten() {
        static LIVING: Living = Living::new();
        assert!(run(&LIVING, "exit 0").recv().is_ok());
        assert!(LIVING.children().leaders.is_empty());
    }
}
