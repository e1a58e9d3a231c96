//! Puts the ports of a run together: which world is behind them is on record.

use crate::config::Config;
use crate::crew;
use crate::dotenv::Dotenv;
use crate::failure::Failure;
use crate::interrupt::CtrlC;
use crate::progress::now::{Lines, SeenAgent, SeenExecutor};
use crate::progress::{self, Onlooker};
use crate::wiring::{self, Home};
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use treebeam_core::event::WorldKind;
use treebeam_core::facts::Facts;
use treebeam_core::id::NodeId;
use treebeam_core::measure::Variable;
use treebeam_core::state::State;
use treebeam_edge::agent::bucket::Limits;
use treebeam_edge::agent::budgeted::Budget;
use treebeam_edge::agent::calls::Calls;
use treebeam_edge::agent::command::{Grounds, Surroundings};
use treebeam_edge::agent::crew::Crew;
use treebeam_edge::agent::retrying::Patience;
use treebeam_edge::agent::{Door, Plan};
use treebeam_edge::clock::WallClock;
use treebeam_edge::dry::{DryAgent, DryClock, DryExecutor, FlakyCleanup};
use treebeam_edge::executor::{
    GRACE, GivenBaseline, InPlace, Local, LocalExecutor, ProtectedInputs, WithBaseline, variables,
};
use treebeam_edge::git::{self, GitRepo};
use treebeam_edge::process::{self, AtATime};
use treebeam_edge::store::inbox::RunInbox;
use treebeam_edge::store::{Fenced, RunFiles, Store};
use treebeam_run::port::{Executor, Undisturbed, World};
use treebeam_run::prompt::Prompts;

/// Does something with a run in the world that it belongs to.
pub(crate) fn enter<T>(
    home: &Home,
    config: &Config,
    mut store: Store,
    state: State,
    lines: Lines,
    act: impl FnOnce(&mut Store, State, World<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let (run, fence) = (store.run().clone(), store.fence());
    let repo = GitRepo::new(home.repo.clone(), run.root(), state.run.clone())?
        .with_max_new_file_bytes(config.max_new_file_bytes());
    repo.unlock_refs()?;
    let files = Fenced::new(RunFiles::new(run.clone()), fence.clone());
    let secret = wiring::inbox_secret(&run, Some(&home.repo));
    if let Err(error) = &secret {
        progress::note(&format!("no message can reach this run: {error}; {}", error.hint()));
    }
    let inbox = RunInbox::new(run.clone(), store.epoch(), secret, progress::note);
    match state.world {
        WorldKind::Dry { seed } => {
            let executor = DryExecutor::new(seed, run.clone(), &state.meaning.score);
            let world = World {
                repo: &Fenced::new(FlakyCleanup::new(repo, seed), fence.clone()),
                agent: &Fenced::new(DryAgent::new(seed, run), fence.clone()),
                executor: &Fenced::new(executor, fence),
                files: &files,
                inputs: &Undisturbed,
                clock: &DryClock::new(state.created_at),
                interrupt: &CtrlC,
                inbox: &inbox,
                prompts: Prompts::built_in(),
            };
            act(&mut store, state, world)
        }
        WorldKind::Real => {
            // Where that cannot be, all processes are looked at instead.
            let _ = process::become_reaper(AtATime::Many);
            let repo = Arc::new(repo);
            let dotenv = Dotenv::load(&home.repo.toplevel, config)?;
            let told = config.prompts(&home.repo.toplevel)?;
            let recorded = state.replays.as_ref().map(|run| Calls::Run(home.named(run)));
            let plan = Plan { replays: recorded, ..plan(config, &dotenv, &repo, &store, &state)? };
            let executor = executor(home, &dotenv, &store, &state)?;
            let inputs = ProtectedInputs::new(&home.repo.toplevel, &state.meaning)
                .map_err(|error| Failure::usage(error.to_string()))?
                .recorded_in(store.run().clone());
            let onlooker = Onlooker::new(Some(store.wait_board()));
            let door = Door::open(&plan, &onlooker)?;
            let agent = SeenAgent { agent: door, lines };
            let executor = SeenExecutor::new(executor, run, lines);
            let world = World {
                repo: &Fenced::sharing(Arc::clone(&repo), fence.clone()),
                agent: &Fenced::new(agent, fence.clone()),
                executor: &Fenced::new(executor, fence),
                files: &files,
                inputs: &inputs,
                clock: &WallClock,
                interrupt: &onlooker,
                inbox: &inbox,
                prompts: &told.prompts,
            };
            act(&mut store, state, world)
        }
    }
}

/// Who answers, and within which bounds.
fn plan(
    config: &Config,
    dotenv: &Dotenv,
    repo: &Arc<GitRepo>,
    store: &Store,
    facts: &Facts,
) -> Result<Plan, Failure> {
    let run = store.run();
    Ok(Plan {
        crew: crew(config, dotenv, facts)?,
        prices: config.prices(),
        budget: Budget::from(&facts.reach),
        limits: Limits::from(&facts.reach),
        patience: config.outage_patience().patience(Patience::OVERNIGHT),
        calls: Calls::Run(run.clone()),
        replays: None,
        surroundings: Surroundings::Run(Grounds {
            repo: Arc::clone(repo),
            dir: run.clone(),
            id: facts.run.clone(),
            fence: store.fence(),
            inputs: facts.meaning.measure.inputs.clone(),
        }),
    })
}

/// Who answers. Where nobody is asked, nobody needs a key.
fn crew(config: &Config, dotenv: &Dotenv, facts: &Facts) -> Result<Crew, Failure> {
    match facts.replays {
        None => crew::crew(&crew::seats(config, dotenv)),
        Some(_) => crew::without_keys(config, dotenv),
    }
}

/// Who runs tests and sweeps.
fn executor(
    home: &Home,
    dotenv: &Dotenv,
    store: &Store,
    facts: &Facts,
) -> Result<WithBaseline<Box<dyn Executor + Send>>, Failure> {
    let measure = &facts.meaning.measure;
    let in_place = facts.given.as_ref().and_then(|given| given.in_place.as_ref());
    let local = Local {
        program: env::current_exe()?,
        run: facts.run.clone(),
        run_dir: store.run().clone(),
        repository: home.repo.toplevel.clone(),
        worktree: in_place.map(PathBuf::from),
        measure: measure.clone(),
        grace: GRACE,
        variables: passed(&measure.pass_env, dotenv),
    };
    let given = GivenBaseline {
        run: store.run().clone(),
        top: home.repo.toplevel.clone(),
        results: measure.baseline_csv.clone(),
        root: measure.root_baseline_csv.clone(),
    };
    let local = LocalExecutor::new(local);
    let root = facts.node(NodeId::ROOT);
    let executor: Box<dyn Executor + Send> = match in_place.zip(root) {
        None => Box::new(local),
        Some((worktree, root)) => Box::new(InPlace {
            executor: local,
            user: git::open(Path::new(worktree))?,
            run: facts.run.clone(),
            run_dir: store.run().clone(),
            root: root.commit.clone(),
            results_csv: measure.results_csv.clone(),
            note: progress::note,
        }),
    };
    Ok(WithBaseline::new(executor, given))
}

/// The variables that commands get: those of the environment, and where it has none, those of `.env`.
fn passed(wanted: &[Variable], dotenv: &Dotenv) -> Vec<(OsString, OsString)> {
    variables(wanted, |name| {
        let is_wanted = wanted.iter().any(|passed| passed.as_str() == name);
        env::var_os(name).or_else(|| {
            let (value, _) = dotenv.secret(name).filter(|_| is_wanted)?;
            Some(value.reveal().into())
        })
    })
}
