//! Runs a child with all its descendants, and ends all of them when it has ended. This includes
//! processes that left its group or its session, whose parents are gone, that ignore a request to
//! end, or that hold its output open.
//!
//! Descendants are found by their group, by their parents, and by a variable in the environment
//! that they were started with. A process for which none of the three holds is found only if this
//! process is their reaper; see [`super::become_reaper`]. On Windows `taskkill` ends descendants; a
//! job object would do all this.

use super::log::LogPipe;
use super::pipes::ChildPipes;
use super::{DueTime, EndedChild, OutputLimits, system};
use std::ffi::{OsStr, OsString};
use std::io;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Environment variable that marks every descendant of a child.
pub const TREE_MARKER_VARIABLE: &str = "TREEBEAM_MARK";

/// Longest wait for the end of processes that were killed.
const MAX_KILL_WAIT: Duration = Duration::from_secs(20);
/// Longest wait for the end of an output that no process holds open any more.
const MAX_DRAIN_WAIT: Duration = Duration::from_secs(20);
/// Longest pause between two looks at a running child.
const CHILD_POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Interval at which adopted processes that have ended are reaped.
const REAP_EVERY: Duration = Duration::from_secs(2);

/// The value of the environment variable that marks a child and its descendants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeMarker(pub(super) OsString);

impl TreeMarker {
    /// Builds the mark of a name, which must be unique on this machine.
    #[must_use]
    pub fn new(name: impl Into<OsString>) -> Self {
        Self(name.into())
    }

    /// Returns a mark that no process has borne before.
    #[must_use]
    pub fn unique() -> Self {
        static MARKER_COUNT: AtomicU64 = AtomicU64::new(0);
        let (count, now) = (MARKER_COUNT.fetch_add(1, Ordering::SeqCst), jiff::Timestamp::now());
        Self(format!("{}-{}-{count}", std::process::id(), now.as_nanosecond()).into())
    }
}

/// A child that is ended with all its descendants, and how.
#[derive(Clone, Debug)]
pub struct ProcessTree {
    marker: TreeMarker,
    grace: Duration,
}

impl ProcessTree {
    /// Builds the tree of all processes with this mark; `grace` is the time between ask and kill.
    #[must_use]
    pub const fn new(mark: TreeMarker, grace: Duration) -> Self {
        Self { marker: mark, grace }
    }

    pub(super) fn marker_variable(&self) -> (&'static OsStr, &OsStr) {
        (OsStr::new(TREE_MARKER_VARIABLE), &self.marker.0)
    }

    /// Waits for the child alone, not for processes that hold its outputs, then ends all its
    /// descendants. `None`: too late. Unless all is well the child is not reaped, so that its
    /// process id stays its own for the caller that ends it.
    pub(super) fn run_child(
        self,
        child: &mut Child,
        input: Arc<[u8]>,
        (keep, log): (OutputLimits, Option<LogPipe>),
        due: &mut DueTime<'_>,
    ) -> io::Result<Option<EndedChild>> {
        let mut pipes = ChildPipes::new(child, input, keep, log)?;
        pipes.watch_exit(child);
        let in_time = await_exit(due, child, &mut pipes);
        end_tree(Some(child), &self.marker, self.grace, |pause| pipes.serve_for(pause))?;
        let Some([stdout, stderr]) = pipes.finish(Some(Instant::now() + MAX_DRAIN_WAIT))? else {
            return Err(io::Error::other("somebody holds its output open"));
        };
        if !in_time? {
            return Ok(None);
        }
        let status = child.wait()?;
        Ok(Some(EndedChild { status, stdout, stderr }))
    }
}

/// Returns true if a child ends in time.
fn await_exit(
    due: &mut DueTime<'_>,
    child: &mut Child,
    pipes: &mut ChildPipes,
) -> io::Result<bool> {
    let (mut pause, mut buried) = (Duration::from_micros(200), Instant::now());
    while !system::has_ended(child)? {
        if due().is_some_and(|due| Instant::now() >= due) {
            return Ok(false);
        }
        if buried.elapsed() >= REAP_EVERY {
            system::reap_adopted();
            buried = Instant::now();
        }
        pipes.serve_for(pause)?;
        pause = (pause * 2).min(CHILD_POLL_INTERVAL);
    }
    Ok(true)
}

/// Ends all processes with a mark, for a child that is no longer watched.
///
/// # Errors
/// When one of them is still there.
pub fn end_marked(mark: &TreeMarker, grace: Duration) -> io::Result<()> {
    end_tree(None, mark, grace, |pause| {
        thread::sleep(pause);
        Ok(())
    })
}

/// Returns true if a process with this mark lives.
#[must_use]
pub fn has_marked_process(mark: &TreeMarker) -> bool {
    !system::find_survivors(None, mark).is_empty()
}

/// Asks all processes of a tree to end, waits, kills. The child keeps its id: it is not reaped.
fn end_tree(
    mut child: Option<&mut Child>,
    mark: &TreeMarker,
    grace: Duration,
    mut rest: impl FnMut(Duration) -> io::Result<()>,
) -> io::Result<()> {
    let leader = child.as_ref().map(|child| child.id());
    let begun = Instant::now();
    let mut asked = Vec::new();
    let mut pause = Duration::from_millis(1);
    loop {
        let alive = match &mut child {
            Some(child) => (!system::has_ended(child)?).then(|| child.id()),
            None => None,
        };
        if alive.is_none() && leader.is_some_and(system::has_left_nothing) {
            return Ok(());
        }
        let mut left = system::find_survivors(leader, mark);
        left.extend(alive);
        if left.is_empty() {
            return Ok(());
        }
        if begun.elapsed() < grace {
            let new: Vec<u32> = left.iter().copied().filter(|pid| !asked.contains(pid)).collect();
            system::ask_all(&new);
            asked.extend(new);
        } else if begun.elapsed() < grace + MAX_KILL_WAIT {
            leader.into_iter().for_each(system::kill_group);
            system::kill_all(&left);
        } else {
            let left: Vec<String> = left.iter().map(u32::to_string).collect();
            return Err(io::Error::other(format!("these cannot be ended: {}", left.join(", "))));
        }
        rest(pause)?;
        pause = (pause * 2).min(CHILD_POLL_INTERVAL);
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::{ChildLog, ChildProgram, ProcessError};
    use std::path::Path;
    use treebeam_testkit::hostile;

    const GRACE: Duration = Duration::from_millis(200);

    fn tree(word: &str, stay: &str) -> ChildProgram {
        let path = std::env::var_os("PATH").unwrap_or_default();
        ChildProgram::new(Path::new("/usr/bin/env"), &std::env::temp_dir())
            .args(["python3", "-c", hostile::PROCESS_TREE_SCRIPT, word, stay])
            .envs([("PATH", path)])
            .in_tree(ProcessTree::new(TreeMarker::unique(), GRACE))
    }

    #[test]
    fn nothing_is_left_of_what_does_not_want_to_end() {
        for round in 0..4 {
            let word = format!("whole-late-{}-{round}", std::process::id());
            // The first may not get as far as its children.
            let given = Duration::from_millis([100, 1500, 2000, 3000][round]);
            let late = tree(&word, "wait").deadline(given).run();
            assert!(matches!(late, Err(ProcessError::Deadline { .. })), "{late:?}");
            assert_eq!(hostile::survivors(&word), Vec::<u32>::new(), "round {round}");
        }
    }

    #[test]
    fn what_holds_the_output_open_is_not_waited_for() {
        let word = format!("whole-left-{}", std::process::id());
        let ended = tree(&word, "leave").deadline(Duration::from_mins(2)).run().unwrap();
        assert_eq!(ended.stdout.bytes, b"ready\n");
        assert!(ended.status.success());
        assert_eq!(hostile::survivors(&word), Vec::<u32>::new());
    }

    #[test]
    fn those_who_were_left_by_a_process_that_is_gone_are_found_by_their_mark() {
        let word = format!("whole-mark-{}", std::process::id());
        let mark = TreeMarker::unique();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let child = ChildProgram::new(Path::new("/usr/bin/env"), &std::env::temp_dir())
            .args(["python3", "-c", hostile::PROCESS_TREE_SCRIPT, &word, "leave"])
            .envs([(OsString::from("PATH"), path), (TREE_MARKER_VARIABLE.into(), mark.0.clone())]);
        let null = || std::fs::File::options().read(true).write(true).open("/dev/null").unwrap();
        assert!(child.detach(null(), null()).unwrap().wait().unwrap().success());
        assert!(!hostile::with_word(&word).is_empty());
        end_marked(&mark, GRACE).unwrap();
        assert_eq!(hostile::survivors(&word), Vec::<u32>::new());
    }

    #[test]
    fn one_that_becomes_another_program_is_found_all_the_same() {
        let again = r#"[ "$1" = 0 ] || exec /bin/sh -c "$0" "$0" $(($1 - 1))"#;
        let mark = TreeMarker::unique();
        let program = ChildProgram::new(Path::new("/bin/sh"), &std::env::temp_dir())
            .args(["-c", again, again, "100000"])
            .envs([(OsString::from(TREE_MARKER_VARIABLE), mark.0.clone())]);
        let null = || std::fs::File::options().read(true).write(true).open("/dev/null").unwrap();
        let mut child = program.detach(null(), null()).unwrap();
        for round in 0..500 {
            assert_eq!(system::find_survivors(None, &mark), [child.id()], "round {round}");
        }
        end_marked(&mark, GRACE).unwrap();
        assert!(!child.wait().unwrap().success());
    }

    #[test]
    fn a_log_has_the_beginning_and_the_end() {
        let check = |script: &str, expected: &str, kept: &str| {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("log");
            let log = ChildLog { file: std::fs::File::create(&path).unwrap(), head: 8, tail: 4 };
            let shell = ChildProgram::new(Path::new("/bin/sh"), folder.path()).args(["-c", script]);
            let whole = ProcessTree::new(TreeMarker::unique(), GRACE);
            let ended = shell.in_tree(whole).log(log).run().unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), expected, "{script}");
            assert_eq!(String::from_utf8(ended.stdout.bytes).unwrap(), kept, "{script}");
        };
        check("printf 12345", "12345", "2345");
        check("printf 1234; printf 5678 >&2", "12345678", "5678");
        check("printf 1234567890", "1234567890", "7890");
        check("printf 123456789012", "123456789012", "9012");
        check("printf 1234567890123", "12345678\n[1 bytes are left out here]\n0123", "0123");
        check("true", "", "");
    }

    #[test]
    fn a_log_that_cannot_be_written_stops_nobody() {
        let run = |whole: Option<ProcessTree>| {
            let file = std::fs::File::options().write(true).open("/dev/full").unwrap();
            let shell = ChildProgram::new(Path::new("/bin/sh"), &std::env::temp_dir())
                .args(["-c", "/bin/cat /dev/zero | /usr/bin/head -c 200000; printf 1234"])
                .log(ChildLog { file, head: 300_000, tail: 4 });
            let shell = whole.into_iter().fold(shell, ChildProgram::in_tree);
            shell.run().unwrap().stdout
        };
        for whole in [None, Some(ProcessTree::new(TreeMarker::unique(), GRACE))] {
            let kept = run(whole);
            assert_eq!((kept.bytes.as_slice(), kept.dropped), (b"1234".as_slice(), 200_000));
        }
    }
}
