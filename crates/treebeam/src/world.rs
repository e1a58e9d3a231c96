//! Builds the ports of a run for the world that it has on record.

use crate::config::Config;
use crate::dotenv::Dotenv;
use crate::failure::CommandFailure;
use crate::interrupt::CtrlC;
use crate::progress::RunObserver;
use crate::progress::activity::{LineReporting, ObservedAgent, ObservedExecutor};
use crate::role_agents;
use crate::run_location::{self, RepoHome};
use crate::terminal;
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use treebeam_agent::bucket::AgentLimits;
use treebeam_agent::budget_layer::Budget;
use treebeam_agent::call_store::CallStore;
use treebeam_agent::command::{AgentWorkspace, RunWorkspace};
use treebeam_agent::retry_layer::RetryPolicy;
use treebeam_agent::role_agents::RoleAgents;
use treebeam_agent::{AgentDoor, DoorPlan};
use treebeam_core::event::WorldKind;
use treebeam_core::facts::Facts;
use treebeam_core::id::NodeId;
use treebeam_core::measure::VariableName;
use treebeam_core::state::State;
use treebeam_dry::{DryAgent, DryClock, DryExecutor, FlakyCleanup};
use treebeam_executor::{
    DEFAULT_JOB_GRACE, InPlaceExecutor, LocalExecutor, LocalExecutorConfig, ProtectedInputs,
    UserBaseline, UserBaselineExecutor, collect_variables,
};
use treebeam_git::GitRepo;
use treebeam_process::ChildCount;
use treebeam_run::RunPorts;
use treebeam_run::port::{Executor, SilentUser};
use treebeam_run::prompt::PromptSet;
use treebeam_store::clock::WallClock;
use treebeam_store::inbox::RunInbox;
use treebeam_store::{FencedPort, RunFiles, RunStore};

/// Runs an action with a run's ports, in the world that the run belongs to.
pub(crate) fn with_world<T>(
    home: &RepoHome,
    config: &Config,
    mut store: RunStore,
    state: State,
    lines: LineReporting,
    act: impl FnOnce(&mut RunStore, State, RunPorts<'_>) -> Result<T, CommandFailure>,
) -> Result<T, CommandFailure> {
    let (run, fence) = (store.run_dir().clone(), store.fence());
    let repo = GitRepo::new(home.repo.clone(), run.root(), state.run.clone())?
        .with_max_new_file_bytes(config.max_new_file_bytes());
    repo.unlock_refs()?;
    let files = FencedPort::new(RunFiles::new(run.clone()), fence.clone());
    let secret = run_location::inbox_secret(&run, Some(&home.repo));
    if let Err(error) = &secret {
        terminal::print_note_above_bar(&format!(
            "no message can reach this run: {error}; {}",
            error.hint()
        ));
    }
    let inbox = RunInbox::new(run.clone(), store.epoch(), secret, terminal::print_note_above_bar);
    match state.world {
        WorldKind::Dry { seed } => {
            let executor = DryExecutor::new(seed, run.clone(), &state.settings.score);
            let world = RunPorts {
                repo: &FencedPort::new(FlakyCleanup::new(repo, seed), fence.clone()),
                agent: &FencedPort::new(DryAgent::new(seed, run), fence.clone()),
                executor: &FencedPort::new(executor, fence),
                files: &files,
                inputs: &SilentUser,
                clock: &DryClock::new(state.created_at),
                interrupt: &CtrlC,
                inbox: &inbox,
                prompts: PromptSet::built_in(),
            };
            act(&mut store, state, world)
        }
        WorldKind::Real => {
            // Without a reaper, all processes of the system are searched instead.
            let _ = treebeam_process::become_reaper(ChildCount::Many);
            let repo = Arc::new(repo);
            let dotenv = Dotenv::load(&home.repo.toplevel, config)?;
            let loaded_prompts = config.load_prompts(&home.repo.toplevel)?;
            let recorded = state.replays.as_ref().map(|run| CallStore::Run(home.run_dir(run)));
            let plan = DoorPlan {
                replays: recorded,
                ..build_door_plan(config, &dotenv, &repo, &store, &state)?
            };
            let executor = build_executor(home, &dotenv, &store, &state)?;
            let inputs = ProtectedInputs::new(&home.repo.toplevel, &state.settings)
                .map_err(|error| CommandFailure::usage(error.to_string()))?
                .recorded_in(store.run_dir().clone());
            let onlooker = RunObserver::new(Some(store.wait_board()));
            let door = AgentDoor::open(&plan, &onlooker)?;
            let agent = ObservedAgent { agent: door, lines };
            let executor = ObservedExecutor::new(executor, run, lines);
            let world = RunPorts {
                repo: &FencedPort::with_shared(Arc::clone(&repo), fence.clone()),
                agent: &FencedPort::new(agent, fence.clone()),
                executor: &FencedPort::new(executor, fence),
                files: &files,
                inputs: &inputs,
                clock: &WallClock,
                interrupt: &onlooker,
                inbox: &inbox,
                prompts: &loaded_prompts.prompts,
            };
            act(&mut store, state, world)
        }
    }
}

/// Builds the plan of the agent door: agents, limits and budget.
fn build_door_plan(
    config: &Config,
    dotenv: &Dotenv,
    repo: &Arc<GitRepo>,
    store: &RunStore,
    facts: &Facts,
) -> Result<DoorPlan, CommandFailure> {
    let run = store.run_dir();
    Ok(DoorPlan {
        role_agents: load_role_agents(config, dotenv, facts)?,
        prices: config.model_prices(),
        budget: Budget::from(&facts.limits),
        limits: AgentLimits::from(&facts.limits),
        patience: config.outage_patience().apply_to(RetryPolicy::UNATTENDED_RUN),
        calls: CallStore::Run(run.clone()),
        replays: None,
        surroundings: AgentWorkspace::Run(RunWorkspace {
            repo: Arc::clone(repo),
            dir: run.clone(),
            id: facts.run.clone(),
            fence: store.fence(),
            inputs: facts.settings.measure.inputs.clone(),
        }),
    })
}

/// Loads the agents with their keys. A replay calls no agent and needs no key.
fn load_role_agents(
    config: &Config,
    dotenv: &Dotenv,
    facts: &Facts,
) -> Result<RoleAgents, CommandFailure> {
    match facts.replays {
        None => role_agents::installed_role_agents(&role_agents::list_role_agents(config, dotenv)),
        Some(_) => role_agents::keyless_role_agents(config, dotenv),
    }
}

/// Builds the executor of tests and sweeps.
fn build_executor(
    home: &RepoHome,
    dotenv: &Dotenv,
    store: &RunStore,
    facts: &Facts,
) -> Result<UserBaselineExecutor<Box<dyn Executor + Send>>, CommandFailure> {
    let measure = &facts.settings.measure;
    let in_place = facts.user_ideas.as_ref().and_then(|given| given.in_place.as_ref());
    let local = LocalExecutorConfig {
        program: env::current_exe()?,
        run: facts.run.clone(),
        run_dir: store.run_dir().clone(),
        repository: home.repo.toplevel.clone(),
        worktree: in_place.map(PathBuf::from),
        measure: measure.clone(),
        grace: DEFAULT_JOB_GRACE,
        variables: passed_variables(&measure.pass_env, dotenv),
    };
    let given = UserBaseline {
        run: store.run_dir().clone(),
        top: home.repo.toplevel.clone(),
        results: measure.baseline_csv.clone(),
        root: measure.root_baseline_csv.clone(),
    };
    let local = LocalExecutor::new(local);
    let root = facts.node(NodeId::ROOT);
    let executor: Box<dyn Executor + Send> = match in_place.zip(root) {
        None => Box::new(local),
        Some((worktree, root)) => Box::new(InPlaceExecutor {
            executor: local,
            user: treebeam_git::open_repo(Path::new(worktree))?,
            run: facts.run.clone(),
            run_dir: store.run_dir().clone(),
            root: root.commit.clone(),
            results_csv: measure.results_csv.clone(),
            note: terminal::print_note_above_bar,
        }),
    };
    Ok(UserBaselineExecutor::new(executor, given))
}

/// Returns the variables that commands get: those of the environment, else those of `.env`.
fn passed_variables(wanted: &[VariableName], dotenv: &Dotenv) -> Vec<(OsString, OsString)> {
    collect_variables(wanted, |name| {
        let is_wanted = wanted.iter().any(|passed| passed.as_str() == name);
        env::var_os(name).or_else(|| {
            let (value, _) = dotenv.find_secret(name).filter(|_| is_wanted)?;
            Some(value.reveal().into())
        })
    })
}
