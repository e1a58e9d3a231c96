//! The runner's side of the `local` executor. Whether a job lives is what its lock says, how it ended what its result
//! says; a result counts only once the lock is free.

use super::claim::{self, Claim};
use super::inputs;
use super::left;
use super::limit;
use super::outcome::Outcome;
use super::spec::{Command, SPEC, Spec, Stage, Times};
use crate::process::{self, Program};
use crate::store::RunDir;
use crate::store::record_file::{self, RecordKind};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use treebeam_core::id::RunId;
use treebeam_core::measure::Measure;
use treebeam_core::path;
use treebeam_run::port::{Executor, Job, JobEnd, JobExit, JobKey, PortError};

/// What the job's own process complains of.
const COMPLAINTS: &str = "job.log";
/// The most that is read of that, and how much of it is shown.
const MOST: u64 = 1 << 20;
const SHOWN: usize = 400;
/// How often jobs are looked at.
const GLANCE: Duration = Duration::from_millis(50);
/// How long the orphans of a job that is gone have between being asked to end and being killed.
const ORPHANS: Duration = Duration::from_millis(500);

/// How jobs are done on this machine.
#[derive(Clone, Debug)]
pub struct Local {
    /// The program whose command `job` does a job: treebeam itself.
    pub program: PathBuf,
    /// The run.
    pub run: RunId,
    /// Where it lies.
    pub run_dir: RunDir,
    /// The top level of the repository, where inputs are.
    pub repository: PathBuf,
    /// Where all commands run, where that is not in the run's own worktrees.
    pub worktree: Option<PathBuf>,
    /// What is run.
    pub measure: Measure,
    /// How long what is asked to end has until it is killed.
    pub grace: Duration,
    /// All variables that the commands get.
    pub variables: Vec<(OsString, OsString)>,
}

/// Does jobs as processes of this machine.
#[derive(Debug)]
pub struct LocalExecutor {
    local: Local,
    /// Jobs whose end was not said.
    jobs: Mutex<BTreeMap<JobKey, Watched>>,
}

/// A job whose end is waited for.
#[derive(Debug)]
enum Watched {
    /// Our own child.
    Ours(Child),
    /// Started by another process.
    Anothers,
}

impl LocalExecutor {
    /// An executor for one run.
    #[must_use]
    pub fn new(local: Local) -> Self {
        Self { local, jobs: Mutex::default() }
    }

    /// Whether there is a job whose end was not said.
    pub(super) fn is_busy(&self) -> bool {
        !self.jobs().is_empty()
    }

    fn jobs(&self) -> MutexGuard<'_, BTreeMap<JobKey, Watched>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn folder(&self, key: JobKey) -> PathBuf {
        self.local.run_dir.path(&path::submission(key.subject, key.submission))
    }

    /// Starts a job where nobody has before.
    fn start(&self, job: &Job) -> io::Result<Watched> {
        let folder = self.folder(job.key);
        fs::create_dir_all(&folder)?;
        let Claim::Ours(claim) = claim::take(&folder)? else { return Ok(Watched::Anothers) };
        let begun = |name| fs::symlink_metadata(folder.join(name)).is_ok();
        if begun(path::EVAL_RESULT) || begun(SPEC) {
            return Ok(Watched::Anothers);
        }
        self.local.spec(job).write(&folder)?;
        let complaints = File::create(folder.join(COMPLAINTS))?;
        let program = Program::new(&self.local.program, self.local.run_dir.root())
            .args(["job".as_ref(), folder.join(SPEC).as_os_str()])
            .envs(self.local.variables.clone());
        program.detach(claim, complaints).map(Watched::Ours)
    }

    /// The processes of jobs that we have started ourselves.
    fn children(&self) -> Vec<u32> {
        let ours = |watched: &Watched| match watched {
            Watched::Ours(child) => Some(child.id()),
            Watched::Anothers => None,
        };
        self.jobs().values().filter_map(ours).collect()
    }

    /// Those that have ended.
    fn look(&self) -> io::Result<Vec<JobEnd>> {
        let mut jobs = self.jobs();
        let mut ended = Vec::new();
        for (key, watched) in &mut *jobs {
            if self.has_ended(*key, watched)? {
                ended.push(*key);
            }
        }
        jobs.retain(|key, _| !ended.contains(key));
        drop(jobs);
        ended.into_iter().map(|key| self.end(key)).collect()
    }

    /// A child of ours is buried here; one that dies before it is a job has let go of the lock.
    fn has_ended(&self, key: JobKey, watched: &mut Watched) -> io::Result<bool> {
        match watched {
            Watched::Ours(child) => Ok(child.try_wait()?.is_some()),
            Watched::Anothers => claim::is_held(&self.folder(key)).map(|held| !held),
        }
    }

    /// How a job ended whose process is gone.
    fn end(&self, key: JobKey) -> io::Result<JobEnd> {
        let folder = self.folder(key);
        if let Some(outcome) = Outcome::read(&folder)? {
            return Ok(outcome.end(key, &folder));
        }
        end_orphans(&folder)?;
        let message = format!("its process ended without a result{}", complaints(&folder));
        Ok(JobEnd::new(key, JobExit::Lost { message }))
    }

    /// Whether a job is done by a process that lives, which then knows how long it may take in all, or has a result. What is
    /// left of any other is ended.
    fn is_known(&self, key: JobKey, timeout: Option<Duration>) -> io::Result<bool> {
        let folder = self.folder(key);
        if claim::is_held(&folder)? {
            return limit::say(self.local.run_dir.root(), &folder, timeout).map(|()| true);
        }
        if Outcome::read(&folder)?.is_some() {
            return Ok(true);
        }
        end_orphans(&folder).map(|()| false)
    }
}

/// Whatever a job that is gone has started must not be there when it is run again.
pub(super) fn end_orphans(folder: &Path) -> io::Result<()> {
    process::end_marked(&super::mark(folder), ORPHANS)
}

fn complaints(folder: &Path) -> String {
    let path = folder.join(COMPLAINTS);
    let opened = record_file::open(&path, RecordKind::Log);
    let text = opened.and_then(|file| record_file::read_to_limit(file, MOST)).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let text: String = text.trim().chars().take(SHOWN).collect();
    if text.is_empty() { String::new() } else { format!(": {text}") }
}

impl Local {
    /// All that the process of a job must know.
    fn spec(&self, job: &Job) -> Spec {
        let Measure { setup_command, test_command, test_cwd, sweep_command, sweep_cwd, .. } =
            self.measure.clone();
        let limit = job.sweep_config_limit;
        let flag = self.measure.sweep_config_limit_flag.as_ref().zip(limit);
        let sweep_command = match (sweep_command, flag) {
            (Some(command), Some((flag, limit))) => Some(command.with_flag(flag, limit)),
            (command, _) => command,
        };
        let commands = [
            (Stage::Setup, setup_command, None),
            (Stage::Tests, test_command, test_cwd),
            (Stage::Sweep, sweep_command, sweep_cwd),
        ];
        let command = |(stage, command, cwd): (_, Option<_>, _)| {
            let command: treebeam_core::measure::CommandLine = command?;
            Some(Command { stage, parts: command.parts(), cwd })
        };
        // They lie there already.
        let linked = self.worktree.as_ref() != Some(&self.repository);
        let inputs = if linked { self.measure.inputs.as_slice() } else { &[] };
        let names = self.variables.iter().filter_map(|(name, _)| name.to_str());
        let JobKey { subject, submission } = job.key;
        Spec {
            times: Times { timeout: job.timeout, grace: self.grace },
            commands: commands.into_iter().filter_map(command).collect(),
            results_csv: self.measure.results_csv.clone(),
            inputs: inputs::of(&self.repository, inputs),
            in_place: self.worktree.clone(),
            sweep_config_limit: limit,
            variables: names.map(str::to_owned).collect(),
            ..Spec::new(self.run.clone(), subject, submission, job.commit.clone())
        }
    }
}

impl Executor for LocalExecutor {
    fn submit(&self, job: &Job) -> Result<(), PortError> {
        if self.jobs().contains_key(&job.key) {
            return Ok(());
        }
        let failed = |error| {
            let what = format!("cannot start the sweep of `{}`", job.key.subject);
            PortError::new(what).caused_by(error)
        };
        let watched = self.start(job).map_err(failed)?;
        self.jobs().entry(job.key).or_insert(watched);
        Ok(())
    }

    fn adopt(&self, jobs: &[Job]) -> Result<Vec<JobKey>, PortError> {
        let mut known = Vec::new();
        for Job { key, timeout, .. } in jobs {
            let failed = |error| {
                PortError::new(format!("cannot find the sweep of `{}`", key.subject))
                    .caused_by(error)
            };
            if self.is_known(*key, *timeout).map_err(failed)? {
                self.jobs().entry(*key).or_insert(Watched::Anothers);
                known.push(*key);
            } else {
                left::end_earlier(&self.local.run_dir, *key).map_err(failed)?;
            }
        }
        Ok(known)
    }

    fn wait(&self, patience: Duration) -> Result<Vec<JobEnd>, PortError> {
        let (begun, mut pause) = (Instant::now(), Duration::from_millis(1));
        loop {
            let failed = |error| PortError::new("cannot look at the sweeps").caused_by(error);
            let ended = self.look().map_err(failed)?;
            let left = patience.saturating_sub(begun.elapsed());
            if !ended.is_empty() || left.is_zero() {
                return Ok(ended);
            }
            process::rest(&self.children(), pause.min(left));
            pause = (pause * 2).min(GLANCE);
        }
    }
}
