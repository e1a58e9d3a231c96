//! Starts child processes with an argument list, explicit environment, bounded output and deadline.
//! Nothing else starts processes. It knows no shell, and does not judge how a child ended.
//!
//! A child has a process group of its own, so that an interrupt at the terminal reaches treebeam
//! alone. At a deadline the whole group is killed, and also the processes that left it, unless the
//! parent of such a process is gone already. A child that runs as a [`ProcessTree`] leaves no
//! process behind, however it ends.
//!
//! # Layout
//! [`mod@children`] ends all children at once, [`mod@process_tree`] runs a child with all its
//! descendants, [`mod@pipes`] reads and writes its pipes, [`mod@log`] sends an output to a file,
//! [`mod@detached`] starts a child that outlives this process, [`mod@interrupt`] notes requests to
//! end or to stop, [`mod@memory`] sets up the allocator of this process.

use children::LiveChildren;
use log::LogPipe;
use pipes::ChildPipes;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Seek as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use treebeam_run::port;

mod children;
mod detached;
pub mod interrupt;
mod log;
mod memory;
mod pipes;
mod process_tree;
pub mod runtime_thread;

pub use children::end_all;
pub use detached::{ChildCount, ProcessUsage, become_reaper, lead_session, usage_of_children};
pub use log::ChildLog;
pub use memory::share_memory;
pub use process_tree::{
    ProcessTree, TREE_MARKER_VARIABLE, TreeMarker, end_marked, has_marked_process,
};

#[cfg(unix)]
#[path = "unix.rs"]
mod system;
#[cfg(windows)]
#[path = "windows.rs"]
mod system;

/// `SIGXFSZ`, which ends a program that would make a file larger than its limit.
pub const FILE_SIZE_SIGNAL: i32 = 25;
/// Hangup, interrupt and termination, which a service manager sends to all descendants, too.
const END_SIGNALS: [i32; 3] = [1, 2, 15];

/// The variables of this process's environment that every child gets.
pub const PASSED_VARIABLES: [&str; 16] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    // Windows
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "USERPROFILE",
    "APPDATA",
    "PATHEXT",
];

/// A child process to be run.
#[derive(Debug)]
pub struct ChildProgram {
    path: PathBuf,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    folder: PathBuf,
    input: ChildInput,
    keep: OutputLimits,
    log: Option<ChildLog>,
    deadline: Option<Duration>,
    tree: Option<ProcessTree>,
}

/// The moment by which a child must have ended, asked for again and again; `None` is no limit.
pub type DueTime<'a> = dyn FnMut() -> Option<Instant> + 'a;

/// The standard input of a child.
#[derive(Debug)]
pub enum ChildInput {
    /// No input.
    Null,
    /// Bytes that can be shared.
    Bytes(Arc<[u8]>),
    /// This file. The child holds it, and a lock on it, for as long as it lives.
    Handle(File),
}

/// Number of bytes of a child's output that are kept; the rest is read and dropped.
#[derive(Clone, Copy, Debug)]
pub struct OutputLimits {
    /// Bytes of standard output, from the beginning.
    pub stdout: usize,
    /// Bytes of standard error, from the end.
    pub stderr: usize,
}

/// A child that has ended by itself.
#[derive(Debug)]
pub struct EndedChild {
    /// Exit code or signal.
    pub status: ExitStatus,
    /// The kept part of standard output.
    pub stdout: CapturedOutput,
    /// The kept part of standard error.
    pub stderr: CapturedOutput,
}

/// The kept part of an output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CapturedOutput {
    /// The bytes that were kept.
    pub bytes: Vec<u8>,
    /// Number of bytes that were not kept.
    pub dropped: u64,
}

/// A reason why there is no [`EndedChild`].
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// The child never ran.
    #[error("`{program}` could not be started")]
    Start {
        /// The program.
        program: String,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The child ran, and its output or its end could not be read.
    #[error("lost touch with `{program}`")]
    Lost {
        /// The program.
        program: String,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The child and this program were both asked to end.
    #[error("`{program}` did not get to its end")]
    Interrupted {
        /// The program.
        program: String,
        /// The cause of the interruption.
        #[source]
        source: port::InterruptionCause,
    },
    /// The child took too long and was killed.
    #[error("`{program}` was killed after {} s", .after.as_secs())]
    Deadline {
        /// The program.
        program: String,
        /// The time that the child had.
        after: Duration,
    },
}

impl ChildProgram {
    /// Builds a child for the program at `path`, in `folder`; all else is empty or unlimited.
    #[must_use]
    pub fn new(path: &Path, folder: &Path) -> Self {
        Self {
            path: path.to_owned(),
            arguments: Vec::new(),
            environment: Vec::new(),
            folder: folder.to_owned(),
            input: ChildInput::Null,
            keep: OutputLimits { stdout: 64 << 10, stderr: 64 << 10 },
            log: None,
            deadline: None,
            tree: None,
        }
    }
    /// Adds arguments after those already given.
    #[must_use]
    pub fn args<S: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        self.arguments.extend(arguments.into_iter().map(|a| a.as_ref().to_owned()));
        self
    }
    /// Adds environment variables; the child gets no others.
    #[must_use]
    pub fn envs<K, V>(mut self, variables: impl IntoIterator<Item = (K, V)>) -> Self
    where
        K: Into<OsString>,
        V: Into<OsString>,
    {
        self.environment.extend(variables.into_iter().map(|(k, v)| (k.into(), v.into())));
        self
    }
    /// Sets the standard input.
    #[must_use]
    pub fn input(mut self, input: ChildInput) -> Self {
        self.input = input;
        self
    }
    /// Sets how much of the output is kept.
    #[must_use]
    pub fn keep_output(mut self, keep: OutputLimits) -> Self {
        self.keep = keep;
        self
    }
    /// Writes both outputs to this file as they come; the kept standard output is their end.
    #[must_use]
    pub fn log(mut self, log: ChildLog) -> Self {
        self.log = Some(log);
        self
    }
    /// Kills the child after this long.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }
    /// Ends the child with all its descendants, also where it ends by itself.
    #[must_use]
    pub fn in_tree(mut self, whole: ProcessTree) -> Self {
        self.tree = Some(whole);
        self
    }

    /// Copies the program, with its input from the beginning.
    ///
    /// # Errors
    /// When the handle of its standard input cannot be duplicated.
    pub fn duplicate(&self) -> io::Result<Self> {
        let input = match &self.input {
            ChildInput::Null => ChildInput::Null,
            ChildInput::Bytes(bytes) => ChildInput::Bytes(Arc::clone(bytes)),
            ChildInput::Handle(file) => {
                let mut copy = file.try_clone()?;
                copy.rewind()?;
                ChildInput::Handle(copy)
            }
        };
        let log = self.log.as_ref().map(|log| -> io::Result<ChildLog> {
            Ok(ChildLog { file: log.file.try_clone()?, head: log.head, tail: log.tail })
        });
        Ok(Self {
            path: self.path.clone(),
            arguments: self.arguments.clone(),
            environment: self.environment.clone(),
            folder: self.folder.clone(),
            input,
            keep: self.keep,
            log: log.transpose()?,
            deadline: self.deadline,
            tree: self.tree.clone(),
        })
    }

    /// Runs the child to its end.
    ///
    /// # Errors
    /// When it could not be started or watched, or met its deadline; a failing exit is no error.
    pub fn run(self) -> Result<EndedChild, ProcessError> {
        self.run_among(&children::ALL_CHILDREN)
    }

    /// Runs the child to its end, or kills it at the moment that `due` returns. For a
    /// [`ProcessTree`] `due` is called again and again, so that the moment can move; otherwise
    /// once.
    ///
    /// # Errors
    /// Those of [`ChildProgram::run`].
    pub fn run_until(self, due: &mut DueTime<'_>) -> Result<EndedChild, ProcessError> {
        self.run_among_until(&children::ALL_CHILDREN, due)
    }

    fn run_among(self, living: &LiveChildren) -> Result<EndedChild, ProcessError> {
        let due = self.deadline.map(|after| Instant::now() + after);
        self.run_among_until(living, &mut || due)
    }

    fn run_among_until(
        mut self,
        living: &LiveChildren,
        due: &mut DueTime<'_>,
    ) -> Result<EndedChild, ProcessError> {
        let begun = Instant::now();
        let program = self.path.display().to_string();
        let (stdin, bytes) = std::mem::replace(&mut self.input, ChildInput::Null).into_stdin();
        let (start, log) =
            (|source| ProcessError::Start { program: program.clone(), source }, self.log.take());
        let (log, outputs) = log::open_outputs(log).map_err(start)?;
        let mut child =
            living.spawn_child(|| self.build_command(stdin, outputs).spawn()).map_err(start)?;
        let ended = match self.tree.take() {
            None => exchange_pipes(&mut child, bytes, (self.keep, log), due()),
            Some(whole) => whole.run_child(&mut child, bytes, (self.keep, log), due),
        };
        if !matches!(ended, Ok(Some(_))) {
            kill_and_reap(&mut child);
        }
        living.forget_child(&child);
        match ended {
            Ok(Some(ended))
                if was_asked_to_end(ended.status) && interrupt::is_interrupted_soon() =>
            {
                Err(ProcessError::Interrupted { program, source: port::InterruptionCause })
            }
            Ok(Some(ended)) => Ok(ended),
            Ok(None) => {
                let moved = || Some(due()?.saturating_duration_since(begun));
                let after = self.deadline.or_else(moved).unwrap_or_default();
                Err(ProcessError::Deadline { program, after })
            }
            Err(source) => Err(ProcessError::Lost { program, source }),
        }
    }

    fn build_command(&self, stdin: Stdio, outputs: [Stdio; 2]) -> Command {
        let mut command = self.build_ungrouped(stdin, outputs);
        system::set_own_group(&mut command);
        command
    }

    fn build_ungrouped(&self, stdin: Stdio, [stdout, stderr]: [Stdio; 2]) -> Command {
        let mut command = system::new_command(&self.path, &self.environment);
        command.args(&self.arguments).current_dir(&self.folder);
        command.env_clear().envs(self.environment.iter().map(|(k, v)| (k, v)));
        command.envs(self.tree.iter().map(ProcessTree::marker_variable));
        command.stdin(stdin).stdout(stdout).stderr(stderr);
        command
    }
}

/// Returns the signal that ended a child, if there was one.
#[must_use]
pub fn exit_signal(status: ExitStatus) -> Option<i32> {
    system::exit_signal(status)
}

/// Returns true if the child was ended by a signal that asks programs to end. A shell that ran
/// another program reports the signal by its exit code.
fn was_asked_to_end(status: ExitStatus) -> bool {
    let signal =
        status.code().map_or_else(|| system::exit_signal(status), |code| code.checked_sub(128));
    signal.is_some_and(|signal| END_SIGNALS.contains(&signal))
}

impl ChildInput {
    /// Builds an input of these bytes.
    #[must_use]
    pub fn from_bytes(bytes: impl Into<Arc<[u8]>>) -> Self {
        Self::Bytes(bytes.into())
    }

    fn into_stdin(self) -> (Stdio, Arc<[u8]>) {
        match self {
            Self::Null => (Stdio::null(), Arc::default()),
            Self::Bytes(bytes) => (Stdio::piped(), bytes),
            Self::Handle(file) => (Stdio::from(file), Arc::default()),
        }
    }
}

/// Waits for the child and for all processes that hold its outputs. `None`: too late.
fn exchange_pipes(
    child: &mut Child,
    input: Arc<[u8]>,
    (keep, log): (OutputLimits, Option<LogPipe>),
    due: Option<Instant>,
) -> io::Result<Option<EndedChild>> {
    let pipes = ChildPipes::new(child, input, keep, log)?;
    let Some([stdout, stderr]) = pipes.finish(due)? else { return Ok(None) };
    let status = wait_until(child, due)?;
    Ok(status.map(|status| EndedChild { status, stdout, stderr }))
}

/// Waits for a child whose outputs are closed already: its end is near, so look often at first.
fn wait_until(child: &mut Child, due: Option<Instant>) -> io::Result<Option<ExitStatus>> {
    let Some(due) = due else { return child.wait().map(Some) };
    let mut pause = Duration::from_micros(50);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= due {
            return Ok(None);
        }
        system::wait_for_any(&[child.id()], pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// Waits until one of these children has ended, and at most this long.
pub fn wait_for_any(pids: &[u32], most: Duration) {
    system::wait_for_any(pids, most);
}

/// Kills the child with all its descendants, and reaps it; an ended child is only reaped.
fn kill_and_reap(child: &mut Child) {
    system::kill_tree(child.id());
    if child.kill().is_ok() {
        drop(child.wait());
    }
}

/// Returns the free bytes of the file system of a folder, where the system reports them.
#[must_use]
pub fn free_space(folder: &Path) -> Option<u64> {
    system::free_space(folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(unix)]
    use std::error::Error;

    #[cfg(unix)]
    fn shell(script: &str) -> ChildProgram {
        let folder = std::env::temp_dir();
        ChildProgram::new(Path::new("/bin/sh"), &folder).args(["-c", script])
    }

    #[test]
    #[cfg(unix)]
    fn a_child_sees_only_what_it_is_given() -> Result<(), Box<dyn Error>> {
        let ended = shell("echo ${HOME-none} $A; cat; exit 3").envs([("A", "b c")]).run()?;
        assert_eq!(ended.stdout.bytes, b"none b c\n");
        assert_eq!(ended.status.code(), Some(3));
        Ok(())
    }

    #[test]
    #[cfg(unix)]
    fn full_pipes_stop_nobody_and_memory_is_bounded() -> Result<(), Box<dyn Error>> {
        let keep = OutputLimits { stdout: 10, stderr: 20 };
        let input = ChildInput::from_bytes(vec![b'x'; 1 << 20]);
        let ended = shell("cat; { head -c 200000 /dev/zero; echo 'so it is nothing' ; } >&2")
            .input(input)
            .keep_output(keep)
            .run()?;
        assert_eq!(ended.stdout, CapturedOutput { bytes: vec![b'x'; 10], dropped: (1 << 20) - 10 });
        assert_eq!(ended.stderr.bytes, b"\0\0\0so it is nothing\n", "what was said last");
        assert_eq!(ended.stderr.dropped, 200_017 - 20);
        let deaf = shell("exit 0").input(ChildInput::from_bytes(vec![b'x'; 1 << 20])).run()?;
        assert!(deaf.status.success());
        Ok(())
    }

    #[test]
    #[cfg(unix)]
    fn who_closes_both_outputs_still_gets_all_of_the_input() -> Result<(), Box<dyn Error>> {
        let folder = tempfile::tempdir()?;
        let input = vec![b'x'; 1 << 20];
        let script = "exec >&- 2>&-; sleep 0.1; /bin/cat > all";
        let shell = ChildProgram::new(Path::new("/bin/sh"), folder.path()).args(["-c", script]);
        let path = std::env::var_os("PATH").unwrap_or_default();
        assert!(
            shell
                .envs([("PATH", path)])
                .input(ChildInput::from_bytes(input.clone()))
                .run()?
                .status
                .success()
        );
        assert!(std::fs::read(folder.path().join("all"))? == input);
        Ok(())
    }

    #[test]
    #[cfg(unix)]
    fn a_deadline_ends_a_child_whatever_it_left_behind() {
        let endless = "while :; do echo x; done";
        for script in ["sleep 60", "sleep 5 & sleep 60", "exec >&- 2>&-; sleep 60", endless] {
            let started = Instant::now();
            let most = Duration::from_millis(100);
            let error = shell(script).deadline(most).run();
            let Err(ProcessError::Deadline { after, .. }) = error else { panic!("{error:?}") };
            assert_eq!(after, most, "{script}");
            assert!(started.elapsed() < Duration::from_secs(3), "{script}");
        }
    }

    #[test]
    #[cfg(unix)]
    fn a_deadline_ends_what_the_child_started_too() -> Result<(), Box<dyn Error>> {
        let folder = tempfile::tempdir()?;
        let script = "(sleep 1; touch late) & setsid sh -c 'sleep 1; touch late' & sleep 60";
        let shell = ChildProgram::new(Path::new("/bin/sh"), folder.path()).args(["-c", script]);
        let path = std::env::var_os("PATH").unwrap_or_default();
        assert!(shell.envs([("PATH", path)]).deadline(Duration::from_millis(300)).run().is_err());
        std::thread::sleep(Duration::from_secs(1));
        assert!(!folder.path().join("late").exists());
        Ok(())
    }

    /// The program is found either by this crate or by the system.
    #[test]
    #[cfg(unix)]
    fn a_name_is_looked_for_with_the_path_of_the_child() -> Result<(), Box<dyn Error>> {
        use std::os::unix::fs::PermissionsExt as _;
        let (first, second) = (tempfile::tempdir()?, tempfile::tempdir()?);
        let put = |folder: &Path, name: &str, text: &str, mode: u32| {
            std::fs::write(folder.join(name), text)?;
            std::fs::set_permissions(folder.join(name), std::fs::Permissions::from_mode(mode))
        };
        put(first.path(), "plain", "#!/bin/sh\necho first $0", 0o644)?;
        put(second.path(), "plain", "#!/bin/sh\necho second ${0##*/}", 0o755)?;
        put(first.path(), "bare", "echo bare", 0o755)?;
        put(first.path(), "stale", "#!/no/such/python\nfirst", 0o755)?;
        put(second.path(), "stale", "#! /bin/sh -e\necho second", 0o755)?;
        std::fs::create_dir(first.path().join("sub"))?;
        put(&first.path().join("sub"), "near", "#!/bin/sh\necho near", 0o755)?;
        let path = format!("{}:{}:sub", first.path().display(), second.path().display());
        let run = |name: &str| {
            let program = ChildProgram::new(Path::new(name), first.path()).envs([("PATH", &*path)]);
            program.run().map(|ended| String::from_utf8_lossy(&ended.stdout.bytes).into_owned())
        };
        assert_eq!(run("plain")?, "second plain\n", "what cannot be run is passed over");
        assert_eq!(run("bare")?, "bare\n", "a script that does not say what runs it");
        assert_eq!(run("stale")?, "second\n", "a script whose interpreter is gone is passed over");
        assert_eq!(run("near")?, "near\n", "a folder that lies where the child is");
        assert!(matches!(run("absent"), Err(ProcessError::Start { .. })));
        Ok(())
    }

    #[test]
    fn a_missing_program_is_named() {
        let missing = ChildProgram::new(Path::new("/no/such/program"), &std::env::temp_dir()).run();
        let message = missing.map_or_else(|error| error.to_string(), |_| String::new());
        assert_eq!(message, "`/no/such/program` could not be started");
    }
}
