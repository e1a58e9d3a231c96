//! Starts, adopts and polls jobs of the `local` executor from the runner's side. A job lives as
//! long as its lock is held, and ended as its result says; a result counts only once the lock is
//! free.

use super::claim::{self, JobClaim};
use super::job_result::JobResult;
use super::leftover_jobs;
use super::limit;
use super::spec::{JOB_SPEC_FILE, JobCommand, JobSpec, JobStage, JobTimes};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use treebeam_core::id::RunId;
use treebeam_core::measure::MeasureSettings;
use treebeam_core::path;
use treebeam_git::input_links;
use treebeam_process::ChildProgram;
use treebeam_run::port::{Executor, JobEnd, JobExit, JobKey, PortError, SweepJob};
use treebeam_store::RunDir;
use treebeam_store::record_file::{self, RecordKind};

/// Name of the log of the job's own process.
const JOB_LOG_FILE: &str = "job.log";
/// Maximum bytes read of that log, and maximum characters of it in a message.
const MAX_JOB_LOG_BYTES: u64 = 1 << 20;
const MAX_SHOWN_CHARS: usize = 400;
/// Maximum interval at which jobs are polled.
const JOB_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Settings of the local executor.
#[derive(Clone, Debug)]
pub struct LocalExecutorConfig {
    /// Program that runs a job by its command `job`: treebeam itself.
    pub program: PathBuf,
    /// Run that the jobs belong to.
    pub run: RunId,
    /// Directory of the run.
    pub run_dir: RunDir,
    /// Top folder of the repository, which has the inputs.
    pub repository: PathBuf,
    /// Folder in which all commands run; `None` for the run's own worktrees.
    pub worktree: Option<PathBuf>,
    /// Commands and their settings.
    pub measure: MeasureSettings,
    /// Time between the request to end and the kill of a command.
    pub grace: Duration,
    /// Environment variables of the commands.
    pub variables: Vec<(OsString, OsString)>,
}

/// An executor that runs jobs as processes of this machine.
#[derive(Debug)]
pub struct LocalExecutor {
    local: LocalExecutorConfig,
    /// Jobs whose end has not been reported.
    jobs: Mutex<BTreeMap<JobKey, WatchedJob>>,
}

/// A job whose end is awaited.
#[derive(Debug)]
enum WatchedJob {
    /// A job started as a child of this process.
    OwnChild(Child),
    /// A job that this process did not start; its lock tells whether it lives.
    HeldElsewhere,
}

impl LocalExecutor {
    /// Creates an executor for one run.
    #[must_use]
    pub fn new(local: LocalExecutorConfig) -> Self {
        Self { local, jobs: Mutex::default() }
    }

    /// Returns true if the end of a job has not been reported yet.
    pub(super) fn is_busy(&self) -> bool {
        !self.lock_jobs().is_empty()
    }

    fn lock_jobs(&self) -> MutexGuard<'_, BTreeMap<JobKey, WatchedJob>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn job_folder(&self, key: JobKey) -> PathBuf {
        self.local.run_dir.file_path(&path::submission_folder(key.subject, key.submission))
    }

    /// Starts a job unless it was started before.
    fn start_job(&self, job: &SweepJob) -> io::Result<WatchedJob> {
        let folder = self.job_folder(job.key);
        fs::create_dir_all(&folder)?;
        let JobClaim::Acquired(claim) = claim::take_claim(&folder)? else {
            return Ok(WatchedJob::HeldElsewhere);
        };
        let begun = |name| fs::symlink_metadata(folder.join(name)).is_ok();
        if begun(path::EVAL_RESULT_FILE) || begun(JOB_SPEC_FILE) {
            return Ok(WatchedJob::HeldElsewhere);
        }
        self.local.build_spec(job).write(&folder)?;
        let complaints = File::create(folder.join(JOB_LOG_FILE))?;
        let program = ChildProgram::new(&self.local.program, self.local.run_dir.root())
            .args(["job".as_ref(), folder.join(JOB_SPEC_FILE).as_os_str()])
            .envs(self.local.variables.clone());
        program.detach(claim, complaints).map(WatchedJob::OwnChild)
    }

    /// Returns the process ids of the jobs that this process has started.
    fn child_pids(&self) -> Vec<u32> {
        let ours = |watched: &WatchedJob| match watched {
            WatchedJob::OwnChild(child) => Some(child.id()),
            WatchedJob::HeldElsewhere => None,
        };
        self.lock_jobs().values().filter_map(ours).collect()
    }

    /// Returns the ends of the jobs that have ended, and stops watching these jobs.
    fn collect_ended(&self) -> io::Result<Vec<JobEnd>> {
        let mut jobs = self.lock_jobs();
        let mut ended = Vec::new();
        for (key, watched) in &mut *jobs {
            if self.has_ended(*key, watched)? {
                ended.push(*key);
            }
        }
        jobs.retain(|key, _| !ended.contains(key));
        drop(jobs);
        ended.into_iter().map(|key| self.read_job_end(key)).collect()
    }

    /// Returns true if a job has ended. Reaps a child of ours, which has released its lock even if
    /// it died before it became a job.
    fn has_ended(&self, key: JobKey, watched: &mut WatchedJob) -> io::Result<bool> {
        match watched {
            WatchedJob::OwnChild(child) => Ok(child.try_wait()?.is_some()),
            WatchedJob::HeldElsewhere => claim::is_held(&self.job_folder(key)).map(|held| !held),
        }
    }

    /// Returns how a job ended whose process is gone.
    fn read_job_end(&self, key: JobKey) -> io::Result<JobEnd> {
        let folder = self.job_folder(key);
        if let Some(outcome) = JobResult::read(&folder)? {
            return Ok(outcome.into_job_end(key, &folder));
        }
        leftover_jobs::end_orphans(&folder)?;
        let message = format!("its process ended without a result{}", read_job_log(&folder));
        Ok(JobEnd::new(key, JobExit::Lost { message }))
    }

    /// Returns true if a live process runs the job, which then gets this time limit, or if it has a
    /// result. Otherwise ends what is left of it.
    fn adopt_job(&self, key: JobKey, timeout: Option<Duration>) -> io::Result<bool> {
        let folder = self.job_folder(key);
        if claim::is_held(&folder)? {
            return limit::order_timeout(self.local.run_dir.root(), &folder, timeout)
                .map(|()| true);
        }
        if JobResult::read(&folder)?.is_some() {
            return Ok(true);
        }
        leftover_jobs::end_orphans(&folder).map(|()| false)
    }
}

fn read_job_log(folder: &Path) -> String {
    let path = folder.join(JOB_LOG_FILE);
    let opened = record_file::open_record(&path, RecordKind::Log);
    let text = opened
        .and_then(|file| record_file::read_to_limit(file, MAX_JOB_LOG_BYTES))
        .unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let text: String = text.trim().chars().take(MAX_SHOWN_CHARS).collect();
    if text.is_empty() { String::new() } else { format!(": {text}") }
}

impl LocalExecutorConfig {
    /// Builds the description of a job for its process.
    fn build_spec(&self, job: &SweepJob) -> JobSpec {
        let MeasureSettings {
            setup_command, test_command, test_cwd, sweep_command, sweep_cwd, ..
        } = self.measure.clone();
        let limit = job.sweep_config_limit;
        let flag = self.measure.sweep_config_limit_flag.as_ref().zip(limit);
        let sweep_command = match (sweep_command, flag) {
            (Some(command), Some((flag, limit))) => Some(command.with_flag(flag, limit)),
            (command, _) => command,
        };
        let commands = [
            (JobStage::Setup, setup_command, None),
            (JobStage::Tests, test_command, test_cwd),
            (JobStage::Sweep, sweep_command, sweep_cwd),
        ];
        let command = |(stage, command, cwd): (_, Option<_>, _)| {
            let command: treebeam_core::measure::CommandLine = command?;
            Some(JobCommand { stage, parts: command.to_argv(), cwd })
        };
        // In the repository itself, the inputs exist already.
        let linked = self.worktree.as_ref() != Some(&self.repository);
        let inputs = if linked { self.measure.inputs.as_slice() } else { &[] };
        let names = self.variables.iter().filter_map(|(name, _)| name.to_str());
        let JobKey { subject, submission } = job.key;
        JobSpec {
            times: JobTimes { timeout: job.timeout, grace: self.grace },
            commands: commands.into_iter().filter_map(command).collect(),
            results_csv: self.measure.results_csv.clone(),
            inputs: input_links::resolve_inputs(&self.repository, inputs),
            in_place: self.worktree.clone(),
            sweep_config_limit: limit,
            variables: names.map(str::to_owned).collect(),
            ..JobSpec::new(self.run.clone(), subject, submission, job.commit.clone())
        }
    }
}

impl Executor for LocalExecutor {
    fn submit_job(&self, job: &SweepJob) -> Result<(), PortError> {
        if self.lock_jobs().contains_key(&job.key) {
            return Ok(());
        }
        let failed = |error| {
            let what = format!("cannot start the sweep of `{}`", job.key.subject);
            PortError::new(what).with_cause(error)
        };
        let watched = self.start_job(job).map_err(failed)?;
        self.lock_jobs().entry(job.key).or_insert(watched);
        Ok(())
    }

    fn adopt_jobs(&self, jobs: &[SweepJob]) -> Result<Vec<JobKey>, PortError> {
        let mut known = Vec::new();
        for SweepJob { key, timeout, .. } in jobs {
            let failed = |error| {
                PortError::new(format!("cannot find the sweep of `{}`", key.subject))
                    .with_cause(error)
            };
            if self.adopt_job(*key, *timeout).map_err(failed)? {
                self.lock_jobs().entry(*key).or_insert(WatchedJob::HeldElsewhere);
                known.push(*key);
            } else {
                leftover_jobs::end_earlier_submissions(&self.local.run_dir, *key)
                    .map_err(failed)?;
            }
        }
        Ok(known)
    }

    fn wait_for_jobs(&self, patience: Duration) -> Result<Vec<JobEnd>, PortError> {
        let (begun, mut pause) = (Instant::now(), Duration::from_millis(1));
        loop {
            let failed = |error| PortError::new("cannot look at the sweeps").with_cause(error);
            let ended = self.collect_ended().map_err(failed)?;
            let left = patience.saturating_sub(begun.elapsed());
            if !ended.is_empty() || left.is_zero() {
                return Ok(ended);
            }
            treebeam_process::wait_for_any(&self.child_pids(), pause.min(left));
            pause = (pause * 2).min(JOB_POLL_INTERVAL);
        }
    }
}
