//! Measures a dry run on a real repository, against a shell script of its git commands alone.

use crate::gauge::{self, median};
use crate::script::{Recorder, Script};
use crate::{Outcome, must, row};
use std::ffi::OsString;
use std::fs;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;
use tempfile::TempDir;
use treebeam_core::event::{RunStarted, WorldKind};
use treebeam_core::policy::{FixedSettings, RecordedAgents, RunLimits};
use treebeam_core::rules_version::RulesVersion;
use treebeam_dry::{DryAgent, DryClock, DryExecutor};
use treebeam_git::{GitRepo, open_repo_with};
use treebeam_run::RunPorts;
use treebeam_run::port::SilentUser;
use treebeam_run::prompt::PromptSet;
use treebeam_store::{RunFiles, RunStore, make_runs_root};

const REPO_FILES: u32 = 50;
const DRY_RUN_EVALS: u32 = 200;
const DRY_RUN_ROUNDS: usize = 5;
const DRY_RUN_SEED: u64 = 7;

/// Prints the ratio, with fsync as it is on a disk and where it costs nothing.
pub(crate) fn git() -> Outcome<()> {
    compare("on a disk", &gauge::on_disk()?)?;
    compare("where fsync costs nothing", &gauge::in_memory()?)
}

fn compare(name: &str, folder: &TempDir) -> Outcome<()> {
    let bench = Bench::new(folder.path())?;
    let script = bench.script()?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let (mut ratios, mut processor) = (Vec::new(), Vec::new());
    for _ in 0..DRY_RUN_ROUNDS {
        let run = bench.ours()?;
        let refs = bench.refs()?;
        let shell = bench.theirs(&script)?;
        if bench.refs()? != refs {
            return Err("the script did not do what the run did".into());
        }
        ratios.push(run.wall / shell.wall);
        processor.push(f64::from(run.ticks) / f64::from(shell.ticks));
        ours.push(run.wall);
        theirs.push(shell.wall);
    }
    let evals = f64::from(DRY_RUN_EVALS);
    let each = |all: &[f64]| format!("{:.1} ms per eval", median(all) * 1000.0 / evals);
    row(&format!("{name}: dry run, {DRY_RUN_EVALS} evals, {REPO_FILES} files"), &each(&ours));
    row(&format!("{name}: its {} git commands in a shell", script.calls), &each(&theirs));
    row(&format!("{name}: dry run / shell"), &gauge::spread(&ratios));
    row(&format!("{name}: dry run / shell, processor time"), &gauge::spread(&processor));
    Ok(())
}

/// Cost of a run or a script.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MeasuredCost {
    pub(crate) wall: f64,
    pub(crate) ticks: u32,
}

pub(crate) fn timed(work: impl FnOnce() -> Outcome<()>) -> Outcome<MeasuredCost> {
    let (begun, before) = (Instant::now(), gauge::ticks());
    work()?;
    Ok(MeasuredCost { wall: begun.elapsed().as_secs_f64(), ticks: gauge::ticks() - before })
}

/// A repository that is recreated at the same place for each measurement: so each has the same
/// commits.
pub(crate) struct Bench {
    pub(crate) folder: PathBuf,
    pub(crate) variables: Vec<(OsString, OsString)>,
}

impl Bench {
    pub(crate) fn new(folder: &Path) -> Outcome<Self> {
        let folder = folder.canonicalize()?;
        let home = folder.join("home").into_os_string();
        fs::create_dir_all(&home)?;
        let path = std::env::var_os("PATH").unwrap_or_default();
        let variables = vec![("PATH".into(), path), ("HOME".into(), home)];
        let bench = Self { folder, variables };
        bench.furnish()?;
        Ok(bench)
    }

    fn furnish(&self) -> Outcome<()> {
        let pristine = self.folder.join("pristine");
        for number in 0..REPO_FILES {
            let file = pristine.join(format!("src/part{}/file{number}.py", number % 5));
            fs::create_dir_all(file.parent().unwrap_or(&pristine))?;
            fs::write(file, format!("value = {number}\n").repeat(60))?;
        }
        must(self.git(&pristine).args(["init", "--quiet", "--initial-branch=main"]))?;
        self.commit()
    }

    /// Commits all files of the template repository.
    pub(crate) fn commit(&self) -> Outcome<()> {
        let pristine = self.folder.join("pristine");
        must(self.git(&pristine).args(["add", "--all"]))?;
        let who = ["-c", "user.name=Bench", "-c", "user.email=bench@example.org"];
        must(self.git(&pristine).args(who).args(["commit", "--quiet", "--message=one"]))
    }

    pub(crate) fn git(&self, folder: &Path) -> Command {
        let mut command = Command::new("git");
        command.current_dir(folder).env_clear().envs(self.variables.iter().cloned());
        command
    }

    /// Returns all refs with their targets: the same after a run as after its script.
    fn refs(&self) -> Outcome<Vec<u8>> {
        Ok(self.git(&self.repo()).arg("for-each-ref").output()?.stdout)
    }

    pub(crate) fn repo(&self) -> PathBuf {
        self.folder.join("repo")
    }

    /// Creates a fresh repository, with earlier writes flushed to the disk.
    pub(crate) fn afresh(&self) -> Outcome<()> {
        if self.repo().exists() {
            fs::remove_dir_all(self.repo())?;
        }
        let (from, to) = (self.folder.join("pristine"), self.repo());
        must(Command::new("cp").arg("-a").arg(from).arg(to))?;
        must(&mut Command::new("sync"))
    }

    /// Records a run, and writes its git commands as a script.
    fn script(&self) -> Outcome<Script> {
        self.afresh()?;
        let recorder = Recorder::new(&self.folder, &["git"], &std::env::var("PATH")?)?;
        drive(&self.repo(), recorder.variables(&self.variables))?;
        let run_dir = self.repo().join(".treebeam/runs/bench");
        recorder.script(&run_dir, &self.repo().join(".git"))
    }

    fn ours(&self) -> Outcome<MeasuredCost> {
        self.afresh()?;
        timed(|| drive(&self.repo(), self.variables.clone()))
    }

    pub(crate) fn theirs(&self, script: &Script) -> Outcome<MeasuredCost> {
        self.afresh()?;
        timed(|| script.run())
    }
}

/// Does the work of `treebeam run --dry-run`, except that every cleanup succeeds at once.
fn drive(repo: &Path, variables: Vec<(OsString, OsString)>) -> Outcome<()> {
    let user = open_repo_with(repo, variables)?;
    let started = started(user.head.clone(), user.head_time)?;
    let (mut store, state) = RunStore::create(&make_runs_root(repo)?, &started)?;
    let run = store.run_dir().clone();
    let repo = GitRepo::new(user, run.root(), started.run.clone())?;
    let (agent, executor) = (
        DryAgent::new(DRY_RUN_SEED, run.clone()),
        DryExecutor::new(DRY_RUN_SEED, run.clone(), &state.settings.score),
    );
    let (files, clock) = (RunFiles::new(run), DryClock::new(started.at));
    let world = RunPorts {
        repo: &repo,
        agent: &agent,
        executor: &executor,
        files: &files,
        inputs: &SilentUser,
        clock: &clock,
        interrupt: &SilentUser,
        inbox: &SilentUser,
        prompts: PromptSet::built_in(),
    };
    let state = treebeam_run::drive_run(state, world, &mut store, &mut |_, _| {})?;
    let made = u32::try_from(state.evals.len())?;
    if made == DRY_RUN_EVALS {
        Ok(())
    } else {
        Err(format!("{made} evals, not {DRY_RUN_EVALS}").into())
    }
}

fn started(root: treebeam_core::id::Commit, at: jiff::Timestamp) -> Outcome<RunStarted> {
    let at_least_one = |n| NonZeroU32::new(n).unwrap_or(NonZeroU32::MIN);
    let meaning = FixedSettings {
        ideas_per_node: at_least_one(20),
        beam_width: at_least_one(2),
        sweep_config_limit: NonZeroU32::new(10),
        ..FixedSettings::default()
    };
    let reach = RunLimits {
        max_depth: 50,
        max_total_idea_evals: Some(DRY_RUN_EVALS),
        ..RunLimits::default()
    };
    let world = WorldKind::Dry { seed: DRY_RUN_SEED };
    Ok(RunStarted {
        run: "bench".parse()?,
        world,
        root,
        meaning,
        reach,
        agents: RecordedAgents::default(),
        given: None,
        replays: None,
        rules_version: RulesVersion::LATEST,
        at,
    })
}
