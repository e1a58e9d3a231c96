//! Finds and ends jobs that outlived the runner of their run. Only the owner of the run may end
//! them; none of them publishes a result.

use super::claim;
use super::job_result::JobResult;
use super::limit;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};
use treebeam_core::path;
use treebeam_run::port::JobKey;
use treebeam_store::RunDir;

/// Maximum wait for withdrawn jobs to end: longer than they wait for processes that they kill.
const JOB_END_TIMEOUT: Duration = Duration::from_secs(40);
/// Interval at which withdrawn jobs are polled.
const JOB_END_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// How long the orphans of a job that is gone have between being asked to end and being killed.
const ORPHAN_GRACE: Duration = Duration::from_millis(500);

/// A job that still runs, or whose descendants do.
#[derive(Debug)]
pub struct LeftoverJob {
    /// Path of the job's folder, relative to the run directory.
    pub name: String,
    folder: PathBuf,
}

/// Finds the jobs of a run that still run.
///
/// # Errors
/// When the run directory cannot be read.
pub fn find_leftover_jobs(run: &RunDir) -> io::Result<Vec<LeftoverJob>> {
    let mut left = Vec::new();
    // Processes of a job are marked with the absolute path of its folder.
    let evals = std::path::absolute(run.root())?.join("eval");
    for subject in list_names(&evals)? {
        for file in list_names(&evals.join(&subject))? {
            let Some(submission) = file.strip_suffix(".lock") else { continue };
            let folder = evals.join(&subject).join(submission);
            if is_leftover(&folder)? {
                left.push(LeftoverJob { name: format!("eval/{subject}/{submission}"), folder });
            }
        }
    }
    left.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(left)
}

fn list_names(folder: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        entries => entries?,
    };
    let name = |entry: fs::DirEntry| entry.file_name().into_string().ok();
    entries.filter_map(|entry| entry.map(name).transpose()).collect()
}

/// Ends the jobs of earlier submissions of the same subject, which share its worktree.
pub(super) fn end_earlier_submissions(run: &RunDir, key: JobKey) -> io::Result<()> {
    let mut left = Vec::new();
    for submission in 1..key.submission {
        let path = path::submission_folder(key.subject, submission);
        let folder = run.file_path(&path);
        if claim::is_held(&folder)? {
            left.push(LeftoverJob { name: path.to_string(), folder });
        }
    }
    withdraw_jobs(run, left).into_iter().try_for_each(|(_, ended)| ended)
}

/// Returns true if a job runs or has left processes; a job with a result has ended all of them.
fn is_leftover(folder: &Path) -> io::Result<bool> {
    Ok(claim::is_held(folder)?
        || (JobResult::read(folder)?.is_none()
            && treebeam_process::has_marked_process(&super::job_marker(folder))))
}

/// Ends these jobs with all their processes; returns for each whether that worked.
#[must_use = "one may not have ended"]
pub fn withdraw_jobs(run: &RunDir, jobs: Vec<LeftoverJob>) -> Vec<(LeftoverJob, io::Result<()>)> {
    let withdraw = |job: LeftoverJob| {
        let withdrawn = limit::order_withdrawal(run.root(), &job.folder);
        (job, withdrawn)
    };
    // All are withdrawn before the first wait, so that they end in parallel.
    let withdrawn: Vec<_> = jobs.into_iter().map(withdraw).collect();
    let until = Instant::now() + JOB_END_TIMEOUT;
    let ended = |(job, withdrawn): (LeftoverJob, io::Result<()>)| {
        let ended = withdrawn.and_then(|()| await_job_end(&job.folder, until));
        (job, ended)
    };
    withdrawn.into_iter().map(ended).collect()
}

fn await_job_end(folder: &Path, until: Instant) -> io::Result<()> {
    while claim::is_held(folder)? {
        if Instant::now() >= until {
            let what = "it was told to end, and has not: end its process `treebeam job` yourself";
            return Err(io::Error::new(ErrorKind::TimedOut, what));
        }
        thread::sleep(JOB_END_POLL_INTERVAL);
    }
    end_orphans(folder)
}

/// Ends all processes that a job left: none may be there when it is run again.
pub(super) fn end_orphans(folder: &Path) -> io::Result<()> {
    treebeam_process::end_marked(&super::job_marker(folder), ORPHAN_GRACE)
}
