//! Runs jobs in the user's own worktree, one after another, with its data and environment. Before
//! each job the worktree is switched to the measured commit; after each, changes that the commands
//! left are reported and kept. Results from before the first job are the user's, and are moved
//! away.

use super::local::LocalExecutor;
use super::results::remove_entry;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use treebeam_core::id::{Commit, RunId};
use treebeam_core::measure::WorktreePath;
use treebeam_git::UserRepo;
use treebeam_run::port::{Executor, JobEnd, JobKey, PortError, SweepJob};
use treebeam_store::RunDir;

/// Folder in the run directory for results that existed before the first job.
const SET_ASIDE_FOLDER: &str = "in_place";
/// Maximum number of changed paths in a message.
const MAX_NAMED_PATHS: usize = 5;

/// An executor whose jobs run in the worktree of [`Self::user`].
#[derive(Debug)]
pub struct InPlaceExecutor {
    /// Executor that runs the jobs.
    pub executor: LocalExecutor,
    /// User's repository, whose worktree is used.
    pub user: UserRepo,
    /// Run that the jobs belong to.
    pub run: RunId,
    /// Directory of the run.
    pub run_dir: RunDir,
    /// Commit that the worktree was at when the run began.
    pub root: Commit,
    /// Path of the results of a sweep that ignores the variables for its output.
    pub results_csv: Option<WorktreePath>,
    /// Shows a message to the user.
    pub note: fn(&str),
}

impl InPlaceExecutor {
    /// Moves the user's results away before the first job. Results of a job are removed by the next
    /// one.
    fn set_results_aside(&self) -> Result<(), PortError> {
        let Some(named) = &self.results_csv else { return Ok(()) };
        let folder = self.run_dir.root().join(SET_ASIDE_FOLDER);
        let begun = folder.join("begun");
        if begun.exists() {
            return Ok(());
        }
        let there = self.user.toplevel.join(named.as_str());
        let aside = folder.join(named.as_str().replace('/', "_"));
        let moved = fs::create_dir_all(&folder).and_then(|()| {
            let is_file = fs::symlink_metadata(&there).is_ok_and(|found| found.is_file());
            if is_file { move_file(&there, &aside).map(|()| true) } else { Ok(false) }
        });
        let moved = moved.and_then(|moved| fs::write(&begun, "").map(|()| moved));
        let what = format!("`{named}` of your worktree cannot be set aside");
        if moved.map_err(|error| PortError::new(what).with_cause(error))? {
            let place = aside.display();
            (self.note)(&format!("`{named}` from before is not measured: it is now `{place}`"));
        }
        Ok(())
    }

    fn report_changes(&self, key: JobKey) {
        // Errors are ignored: the list is only for a message.
        let changed = self.user.dirty_paths().unwrap_or_default();
        if changed.is_empty() {
            return;
        }
        let named: Vec<&str> = changed.iter().take(MAX_NAMED_PATHS).map(String::as_str).collect();
        let more = if changed.len() > MAX_NAMED_PATHS { ", …" } else { "" };
        let subject = key.subject;
        let named = named.join(", ").escape_debug().to_string();
        (self.note)(&format!(
            "the sweep of {subject} left changes in your worktree: {named}{more}"
        ));
    }
}

/// Moves a file, also to another file system.
fn move_file(from: &Path, to: &Path) -> io::Result<()> {
    if fs::rename(from, to).is_ok() {
        return Ok(());
    }
    let half: PathBuf = to.with_extension("half");
    fs::copy(from, &half)?;
    fs::rename(&half, to)?;
    remove_entry(from)
}

impl Executor for InPlaceExecutor {
    fn submit_job(&self, job: &SweepJob) -> Result<(), PortError> {
        if self.executor.is_busy() {
            let what = format!("cannot start the sweep of `{}`", job.key.subject);
            let what = format!("{what}: another one runs in the same worktree");
            return Err(
                PortError::new(what).with_hint("`--in-place` needs `--sweep-max-parallel 1`")
            );
        }
        let before = self.user.checked_out_commit()?;
        self.user.switch_to_run_commit(&self.run, &self.root, &job.commit)?;
        if before != job.commit {
            let commit = job.commit.short_name();
            (self.note)(&format!(
                "your worktree is at commit {commit} now: `git switch -` leads back"
            ));
        }
        self.set_results_aside()?;
        self.executor.submit_job(job)
    }

    fn adopt_jobs(&self, jobs: &[SweepJob]) -> Result<Vec<JobKey>, PortError> {
        self.executor.adopt_jobs(jobs)
    }

    fn wait_for_jobs(&self, patience: Duration) -> Result<Vec<JobEnd>, PortError> {
        let ended = self.executor.wait_for_jobs(patience)?;
        for end in &ended {
            self.report_changes(end.key);
        }
        Ok(ended)
    }
}
