//! Runs the real program in a repository of its own, with a clean environment and a deadline.
//!
//! Its files on disk are read as text and JSON only, not through treebeam's own code.

use crate::repo::TempRepo;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum time of a call, unless it hangs.
const CALL_TIMEOUT: Duration = Duration::from_mins(2);
/// Interval between polls of a call.
const CALL_POLL_INTERVAL: Duration = Duration::from_millis(3);
/// Name of the run of a [`Site`].
pub const SITE_RUN_ID: &str = "t";

/// Files of the repository.
const SITE_FILES: [(&str, &str); 2] = [("model.py", "x = 1\n"), ("src/lib/part.txt", "a part\n")];

/// A repository and the program in it.
#[derive(Debug)]
pub struct Site {
    /// Repository of the site.
    pub repo: TempRepo,
    binary: PathBuf,
}

/// Result of a call.
#[derive(Clone, Debug)]
pub struct Said {
    /// Exit code; `None` if the call was killed.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Said {
    /// Parses standard output as JSON lines.
    #[must_use]
    pub fn json_lines(&self) -> Vec<Value> {
        let parse = |line: &str| {
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
        };
        self.stdout.lines().map(parse).collect()
    }

    /// Asserts the exit code, and returns the result.
    #[must_use]
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self
    }

    /// Asserts that standard error contains all of these texts, and returns the result.
    #[must_use]
    #[track_caller]
    pub fn says<const N: usize>(self, texts: [&str; N]) -> Self {
        for text in texts {
            assert!(self.stderr.contains(text), "no {text:?} in: {}", self.stderr);
        }
        self
    }
}

impl Site {
    /// Creates a site in a repository with one commit of two files.
    #[must_use]
    pub fn new(binary: &str) -> Self {
        Self::from_repo(TempRepo::with(&SITE_FILES).expect("a repository"), binary)
    }

    /// Creates a site below this folder, on another disk for example.
    #[must_use]
    pub fn new_in(above: &Path, binary: &str) -> Self {
        Self::from_repo(TempRepo::with_in(above, &SITE_FILES).expect("a repository"), binary)
    }

    /// Creates a site in this repository.
    #[must_use]
    pub fn from_repo(repo: TempRepo, binary: &str) -> Self {
        Self { repo, binary: binary.into() }
    }

    /// Returns the path of the program.
    #[must_use]
    pub fn binary(&self) -> &Path {
        &self.binary
    }

    /// Calls the program in the repository.
    #[must_use]
    pub fn call(&self, arguments: &[&str]) -> Said {
        self.call_in(self.repo.path(), arguments)
    }

    /// Calls the program in another folder.
    #[must_use]
    pub fn call_in(&self, folder: &Path, arguments: &[&str]) -> Said {
        self.call_with(folder, self.repo.variables(), arguments)
    }

    /// Calls the program in another folder and environment.
    #[must_use]
    pub fn call_with(
        &self,
        folder: &Path,
        variables: Vec<(OsString, OsString)>,
        arguments: &[&str],
    ) -> Said {
        self.start(folder, variables, arguments).end(CALL_TIMEOUT)
    }

    /// Calls the program and kills it after this time.
    #[must_use]
    pub fn call_and_kill(&self, arguments: &[&str], after: Duration) -> Said {
        self.start(self.repo.path(), self.repo.variables(), arguments).end(after)
    }

    /// Starts the program in the background.
    #[must_use]
    pub fn begin(&self, arguments: &[&str]) -> Call {
        self.start(self.repo.path(), self.repo.variables(), arguments)
    }

    /// Starts the program in the background, in another environment.
    #[must_use]
    pub fn begin_with(&self, variables: Vec<(OsString, OsString)>, arguments: &[&str]) -> Call {
        self.start(self.repo.path(), variables, arguments)
    }

    /// Starts the program in the background, in another environment and with this input.
    #[must_use]
    pub fn begin_reading(
        &self,
        variables: Vec<(OsString, OsString)>,
        arguments: &[&str],
        input: &str,
    ) -> Call {
        let mut file = tempfile::tempfile().expect("a file for the input");
        file.write_all(input.as_bytes()).and_then(|()| file.rewind()).expect("the input");
        self.spawn(self.repo.path(), variables, arguments, None, file.into())
    }

    /// Calls the program with this input.
    #[must_use]
    pub fn call_reading(&self, arguments: &[&str], input: &str) -> Said {
        self.begin_reading(self.repo.variables(), arguments, input).end(CALL_TIMEOUT)
    }

    /// Calls the program with a standard output that is closed at its other end.
    #[must_use]
    pub fn call_unheard(&self, arguments: &[&str]) -> Said {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        self.call_into(writer, arguments)
    }

    /// Calls the program with this as its standard output.
    #[must_use]
    pub fn call_into(&self, stdout: impl Into<Stdio>, arguments: &[&str]) -> Said {
        let stdout = Some(stdout.into());
        self.spawn(self.repo.path(), self.repo.variables(), arguments, stdout, Stdio::null())
            .end(CALL_TIMEOUT)
    }

    fn start(
        &self,
        folder: &Path,
        variables: Vec<(OsString, OsString)>,
        arguments: &[&str],
    ) -> Call {
        self.spawn(folder, variables, arguments, None, Stdio::null())
    }

    fn spawn(
        &self,
        folder: &Path,
        variables: Vec<(OsString, OsString)>,
        arguments: &[&str],
        stdout: Option<Stdio>,
        stdin: Stdio,
    ) -> Call {
        let spoken = tempfile::tempdir().expect("a folder for the output");
        let file = |name| File::create(spoken.path().join(name)).expect("a file for the output");
        let to_file = file("stdout");
        let mut command = Command::new(&self.binary);
        command.args(arguments).current_dir(folder).env_clear().envs(variables);
        command.stdin(stdin).stderr(file("stderr"));
        command.stdout(stdout.unwrap_or_else(|| to_file.into()));
        Call { child: command.spawn().expect("the program"), spoken }
    }

    /// Makes a dry run with these flags, which must succeed.
    #[track_caller]
    #[expect(clippy::must_use_candidate, reason = "called for what it leaves on disk, too")]
    pub fn run(&self, flags: &[&str]) -> Said {
        let said =
            self.call(&[&["run", "--dry-run", "--run-id", SITE_RUN_ID], flags].concat()).exits(0);
        self.must_be_sound();
        said
    }

    /// Resumes the run with these flags, which must succeed.
    #[track_caller]
    #[expect(clippy::must_use_candidate, reason = "called for what it leaves on disk, too")]
    pub fn resume(&self, flags: &[&str]) -> Said {
        let said = self.call(&[&["resume", SITE_RUN_ID], flags].concat()).exits(0);
        self.must_be_sound();
        said
    }

    /// Asserts that validation finds nothing.
    #[track_caller]
    pub fn must_be_sound(&self) {
        let said = self.call(&["validate", SITE_RUN_ID]).exits(0);
        assert!(said.stderr.contains(&format!("run {SITE_RUN_ID} is sound")), "{}", said.stderr);
        assert!(self.text("VALIDATION_REPORT.md").contains("Nothing found."));
    }

    /// Returns the path of a file of the run.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.repo.path().join(".treebeam/runs").join(SITE_RUN_ID).join(name)
    }

    /// Returns the text of a file of the run.
    #[must_use]
    #[track_caller]
    pub fn text(&self, name: &str) -> String {
        let path = self.path(name);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Returns the run's manifest.
    #[must_use]
    #[track_caller]
    pub fn manifest(&self) -> Value {
        serde_json::from_str(&self.text("manifest.json")).expect("a manifest in JSON")
    }

    /// Returns the events of the run's journal.
    #[must_use]
    #[track_caller]
    pub fn events(&self) -> Vec<Value> {
        let journal = self.text("journal.jsonl");
        let event = |line: &str| {
            let mut line: Value = serde_json::from_str(line).expect("a line in JSON");
            line["event"].take()
        };
        journal.lines().map(event).collect()
    }

    /// Returns all refs of the repository but those of journals, which depend on the time.
    #[must_use]
    pub fn refs(&self) -> String {
        self.repo.git(["for-each-ref", "--exclude=refs/treebeam/**"]).expect("the refs")
    }

    /// Asserts that both runs are the same but for their history: reports, refs, manifest, and all
    /// accepted files.
    #[track_caller]
    pub fn must_equal(&self, other: &Self) {
        for report in ["TREE_SUMMARY.md", "TREE_GRAPH.md", "results.tsv", "VALIDATION_REPORT.md"] {
            assert_eq!(self.text(report), other.text(report));
        }
        // The page contains times, and only those of the dry world are the same each time.
        if self.manifest()["run_config"]["world"]["dry"].is_object() {
            let page = "report.html";
            assert!(self.text(page) == other.text(page), "{page} differs");
        }
        assert_eq!(self.refs(), other.refs());
        assert_eq!(self.lasting(), other.lasting());
        for folder in ["artifacts", "node_ideas", "conversations", "eval", "cand"] {
            let (ours, theirs) = (self.accepted(folder), other.accepted(folder));
            assert!(ours.keys().eq(theirs.keys()), "{:?}\n{:?}", ours.keys(), theirs.keys());
            for (path, bytes) in ours {
                assert!(theirs.get(&path) == Some(&bytes), "{path} differs");
            }
        }
    }

    /// Returns the part of a manifest that must be the same.
    fn lasting(&self) -> Value {
        let mut manifest = self.manifest();
        let document = manifest.as_object_mut().expect("an object");
        for name in ["history", "checksum"] {
            assert!(document.remove(name).is_some(), "no `{name}`");
        }
        let setting = document["run_config"]["max_parallel_evals"].take();
        assert!(setting.is_u64(), "{setting}");
        manifest
    }

    /// Returns the files below a folder, without those of single submissions: an interrupted run
    /// may have more of them.
    #[must_use]
    pub fn accepted(&self, folder: &str) -> BTreeMap<String, Vec<u8>> {
        let submission =
            |part: &str| part.strip_prefix('s').is_some_and(|n| n.parse::<u32>().is_ok());
        let mut files = self.files(folder);
        files.retain(|path, _| !path.split('/').any(submission));
        files
    }

    /// Returns all files below a folder of the run, by path; none if there is no such folder.
    #[must_use]
    pub fn files(&self, folder: &str) -> BTreeMap<String, Vec<u8>> {
        let mut found = BTreeMap::new();
        collect(&self.path(folder), folder, &mut found);
        found
    }

    /// Returns the sorted names in a folder of the run; none if there is no such folder.
    #[must_use]
    pub fn names(&self, folder: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.path(folder)) else { return Vec::new() };
        let name = |entry: std::io::Result<fs::DirEntry>| {
            entry.expect("an entry").file_name().to_string_lossy().into_owned()
        };
        let mut names: Vec<_> = entries.map(name).collect();
        names.sort();
        names
    }
}

fn collect(folder: &Path, name: &str, found: &mut BTreeMap<String, Vec<u8>>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries {
        let entry = entry.expect("an entry");
        let name = format!("{name}/{}", entry.file_name().to_string_lossy());
        if entry.file_type().expect("a kind of file").is_dir() {
            collect(&entry.path(), &name, found);
        } else {
            found.insert(name, fs::read(entry.path()).expect("a file"));
        }
    }
}

/// A call in the background, killed on drop.
#[derive(Debug)]
pub struct Call {
    child: Child,
    /// Output goes to files, because a child of the child could keep a pipe open forever.
    spoken: tempfile::TempDir,
}

/// Signal to a process.
#[cfg(unix)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Signal of Ctrl-C.
    Interrupt,
    /// Signal of a plain `kill`.
    Terminate,
    /// Signal for a lost terminal.
    Hangup,
    /// Immediate end.
    Kill,
    /// Suspends a process.
    Stop,
    /// Resumes a suspended process.
    Continue,
}

#[cfg(unix)]
impl Signal {
    const fn number(self) -> rustix::process::Signal {
        use rustix::process::Signal as Number;
        match self {
            Self::Interrupt => Number::INT,
            Self::Terminate => Number::TERM,
            Self::Hangup => Number::HUP,
            Self::Kill => Number::KILL,
            Self::Stop => Number::STOP,
            Self::Continue => Number::CONT,
        }
    }
}

/// Sends a signal to a process, and returns true if the process exists.
#[cfg(unix)]
#[must_use]
pub fn send(pid: u32, signal: Signal) -> bool {
    use rustix::process::{Pid, kill_process};
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| kill_process(pid, signal.number()).is_ok())
}

/// Sends a signal to a process group, which has the number of its first process.
#[cfg(unix)]
#[must_use]
pub fn send_group(pid: u32, signal: Signal) -> bool {
    use rustix::process::{Pid, kill_process_group};
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| kill_process_group(pid, signal.number()).is_ok())
}

impl Drop for Call {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Call {
    /// Returns the process id of the call.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the end of the call, and kills it after a long time.
    #[must_use]
    pub fn wait(self) -> Said {
        self.end(CALL_TIMEOUT)
    }

    /// Kills the call at once. A child that has ended already is left alone.
    fn kill(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }

    /// Sends a signal to the call.
    #[cfg(unix)]
    pub fn signal(&self, signal: Signal) {
        assert!(send(self.pid(), signal), "to signal the program");
    }

    /// Returns the standard output so far.
    #[must_use]
    pub fn said_so_far(&self) -> String {
        let bytes = fs::read(self.spoken.path().join("stdout")).expect("the output");
        String::from_utf8(bytes).expect("output in UTF-8")
    }

    /// Waits until standard error contains this text.
    #[track_caller]
    pub fn await_said(&self, text: &str) {
        let begun = Instant::now();
        loop {
            let said = fs::read(self.spoken.path().join("stderr")).expect("the output");
            let said = String::from_utf8_lossy(&said);
            if said.contains(text) {
                return;
            }
            assert!(begun.elapsed() < CALL_TIMEOUT, "no {text:?} in: {said}");
            thread::sleep(CALL_POLL_INTERVAL);
        }
    }

    /// Returns true if the call has not ended.
    #[must_use]
    pub fn goes_on(&mut self) -> bool {
        self.child.try_wait().expect("the state of the program").is_none()
    }

    /// Waits for the end of the call, and kills it after this time.
    #[must_use]
    pub fn end(mut self, patience: Duration) -> Said {
        let begun = Instant::now();
        let code = loop {
            if let Some(status) = self.child.try_wait().expect("the state of the program") {
                break status.code();
            }
            if begun.elapsed() >= patience {
                self.kill();
                break None;
            }
            thread::sleep(CALL_POLL_INTERVAL);
        };
        let text = |name| {
            let bytes = fs::read(self.spoken.path().join(name)).expect("the output");
            String::from_utf8(bytes).expect("output in UTF-8")
        };
        Said { code, stdout: text("stdout"), stderr: text("stderr") }
    }
}
