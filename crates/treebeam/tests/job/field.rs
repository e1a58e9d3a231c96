//! A run directory with worktrees in it, and executors for it. There is no loop here: the test is
//! the runner.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use treebeam_core::event::{FailureKind, SweepSubject};
use treebeam_core::id::{Commit, EvalId};
use treebeam_core::measure::{CommandLine, MeasureSettings};
use treebeam_core::path;
use treebeam_executor::{JOB_SPEC_FILE, LocalExecutor, LocalExecutorConfig};
use treebeam_run::port::{Executor as _, JobEnd, JobExit, JobKey, SweepJob};
use treebeam_store::RunDir;
use treebeam_testkit::program::{SITE_RUN_ID, Site};

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");
/// Maximum time of a job, unless it hangs.
const LONG: Duration = Duration::from_mins(3);

/// Script of a successful sweep.
pub(crate) const GOOD: &str = r#"printf 'config_id,status,a\n0,ok,1\n' > "$AGENTIC_RESULTS_CSV""#;

pub(crate) struct Field {
    pub(crate) site: Site,
    pub(crate) repo: PathBuf,
    pub(crate) run: RunDir,
}

#[expect(clippy::unnecessary_wraps, reason = "a setting may be missing")]
pub(crate) fn shell(script: &str) -> Option<CommandLine> {
    Some(CommandLine::Shell(script.to_owned()))
}

pub(crate) fn sweep(script: &str) -> MeasureSettings {
    MeasureSettings { sweep_command: shell(script), ..MeasureSettings::default() }
}

pub(crate) fn key(eval: u32, submission: u32) -> JobKey {
    let eval: EvalId = format!("{eval:04}").parse().expect("an id");
    JobKey { subject: SweepSubject::Eval(eval), submission }
}

impl Field {
    pub(crate) fn new() -> Self {
        let site = Site::new(BINARY);
        let repo = site.repo.path().to_owned();
        let run = RunDir::new(repo.join(".treebeam/runs").join(SITE_RUN_ID));
        fs::create_dir_all(run.root().join("eval")).expect("a run");
        Self { site, repo, run }
    }

    /// Opens the run of another process, in its repository.
    pub(crate) fn at(repo: &Path) -> Self {
        let run = RunDir::new(repo.join(".treebeam/runs").join(SITE_RUN_ID));
        Self { repo: repo.to_owned(), run, ..Self::new() }
    }

    pub(crate) fn local(&self, measure: MeasureSettings) -> LocalExecutorConfig {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let variables: Vec<(OsString, OsString)> = vec![("PATH".into(), path)];
        LocalExecutorConfig {
            program: BINARY.into(),
            run: SITE_RUN_ID.parse().expect("a name"),
            run_dir: self.run.clone(),
            repository: self.repo.clone(),
            worktree: None,
            measure,
            grace: Duration::from_millis(200),
            variables,
        }
    }

    pub(crate) fn executor(&self, measure: MeasureSettings) -> LocalExecutor {
        LocalExecutor::new(self.local(measure))
    }

    /// Returns a job, and creates its worktree.
    pub(crate) fn job(&self, eval: u32, submission: u32) -> SweepJob {
        let key = key(eval, submission);
        let worktree = self.worktree(eval);
        fs::create_dir_all(&worktree).expect("a worktree");
        fs::write(worktree.join(".git"), "gitdir: nowhere\n").expect("a file");
        let commit: Commit = "0123456789012345678901234567890123456789".parse().expect("a commit");
        SweepJob { key, commit, sweep_config_limit: Some(3), timeout: None }
    }

    pub(crate) fn worktree(&self, eval: u32) -> PathBuf {
        self.run.file_path(&key(eval, 1).subject.code_place().worktree_path())
    }

    pub(crate) fn folder(&self, key: JobKey) -> PathBuf {
        self.run.file_path(&path::submission_folder(key.subject, key.submission))
    }

    /// Writes the file of a job that no process executes.
    pub(crate) fn spec(&self, measure: MeasureSettings, job: &SweepJob) -> PathBuf {
        let program = "/bin/true".into();
        let idle = LocalExecutor::new(LocalExecutorConfig { program, ..self.local(measure) });
        idle.submit_job(job).expect("to submit");
        assert!(matches!(ends(&idle, 1)[0].exit, JobExit::Lost { .. }));
        let folder = self.folder(job.key);
        // Another test may be starting a process at this moment, which has the lock until its exec.
        let lock = || File::open(folder.with_extension("lock")).expect("a lock");
        until(|| lock().try_lock().is_ok());
        folder.join(JOB_SPEC_FILE)
    }

    /// Returns how often the sweep of an eval began, as it logged.
    pub(crate) fn begun(&self, eval: u32) -> usize {
        let count = self.run.root().join(format!("begun-{eval:04}"));
        fs::read_to_string(count).map_or(0, |text| text.lines().count())
    }

    pub(crate) fn await_begun(&self, eval: u32, count: usize) {
        until(|| self.begun(eval) >= count);
    }
}

/// Returns a sweep that logs its beginning.
pub(crate) fn counted(script: &str) -> MeasureSettings {
    let count = r#"echo x >> "$GIT_CEILING_DIRECTORIES/begun-$TREEBEAM_EVAL""#;
    sweep(&format!("{count}; {script}"))
}

pub(crate) fn until(mut so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !so() {
        assert!(begun.elapsed() < LONG, "it never came to be so");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Waits for the ends of this many jobs, in the order of their keys.
pub(crate) fn ends(executor: &LocalExecutor, count: usize) -> Vec<JobEnd> {
    let mut ended: Vec<JobEnd> = Vec::new();
    until(|| {
        ended.extend(executor.wait_for_jobs(Duration::from_millis(100)).expect("to wait"));
        ended.len() >= count
    });
    assert_eq!(ended.len(), count);
    ended.sort_by_key(|end| end.key);
    ended
}

/// Summarises an end.
pub(crate) fn said(end: &JobEnd) -> (Option<FailureKind>, String) {
    match &end.exit {
        JobExit::Done { results } => (None, format!("done: {results}")),
        JobExit::Failed { kind, message } => (Some(*kind), message.clone()),
        JobExit::Lost { message } => (None, format!("lost: {message}")),
    }
}

/// Returns the process of a job, if it runs.
pub(crate) fn process_of(folder: &Path) -> Option<u32> {
    let spec = folder.join(JOB_SPEC_FILE);
    treebeam_testkit::hostile::with_word(&spec.display().to_string()).pop()
}
