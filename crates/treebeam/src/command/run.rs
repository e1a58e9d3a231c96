//! `treebeam run`: starts a run, or resumes the named one.

use super::resume::{self, DriveOutcome};
use super::{OutputFormat, replay, run_start};
use crate::cli::RunArgs;
use crate::config::Config;
use crate::failure::{CommandExit, CommandFailure};
use crate::interrupt::CtrlC;
use crate::preflight::{self, CostConsent};
use crate::progress::activity::LineReporting;
use crate::redo;
use crate::run_location::RepoHome;
use crate::run_settings;
use crate::terminal;
use crate::world;
use treebeam_core::event::{Event, RunStarted, WorldKind};
use treebeam_core::id::RunId;
use treebeam_core::policy::{FixedSettings, RunLimits};
use treebeam_core::rules_version::RulesVersion;
use treebeam_run::port::{AgentRole, Interrupt as _};
use treebeam_store::{RunStore, StoreError};

/// Seed of the dry world: every dry run of a repository is the same.
const DRY_SEED: u64 = 7;
/// Roles that must have an agent.
const REQUIRED_ROLES: [AgentRole; 2] = [AgentRole::Coder, AgentRole::Ideas];

pub(super) fn run_run(
    home: &RepoHome,
    config: &Config,
    args: &RunArgs,
    output: OutputFormat,
) -> Result<CommandExit, CommandFailure> {
    start_or_resume(home, config, args, output)?.show_and_exit(output)
}

/// Starts or resumes a run, and drives it until it ends or is interrupted.
pub(super) fn start_or_resume(
    home: &RepoHome,
    config: &Config,
    args: &RunArgs,
    output: OutputFormat,
) -> Result<DriveOutcome, CommandFailure> {
    let id = match &args.run_id {
        Some(id) => id.parse()?,
        None => run_start::default_run_id(home)?,
    };
    if !home.run_dir(&id).root().exists() {
        must_name_a_run(args)?;
        if let Some(recorded) = &args.replay {
            return replay::start_replay(home, config, id, recorded, args, output);
        }
        return start_run(home, config, id, args, output);
    }
    resume_named_run(home, config, &id, args, output)
}

/// Refuses redo flags without a run id: a new run has nothing to redo.
fn must_name_a_run(args: &RunArgs) -> Result<(), CommandFailure> {
    let Some(flag) = args.going.again.first_flag().filter(|_| args.run_id.is_none()) else {
        return Ok(());
    };
    let what = format!("`{flag}` is about a run that is there, and none is named");
    Err(CommandFailure::usage(what).with_hint(format!("`treebeam resume {flag}` goes on with the latest unfinished one, `treebeam resume RUN {flag}` with any")))
}

/// Resumes an existing run.
fn resume_named_run(
    home: &RepoHome,
    config: &Config,
    id: &RunId,
    args: &RunArgs,
    output: OutputFormat,
) -> Result<DriveOutcome, CommandFailure> {
    if args.no_resume {
        let what = format!("there is a run `{id}` already");
        return Err(CommandFailure::usage(what)
            .with_hint("choose another `--run-id`, or leave `--no-resume` out"));
    }
    if let Some(recorded) = &args.replay {
        replay::must_replay_run(home, id, recorded)?;
    }
    resume::resume_run(home, config, &home.run_dir(id), &args.going, output)
}

fn start_run(
    home: &RepoHome,
    config: &Config,
    id: RunId,
    args: &RunArgs,
    output: OutputFormat,
) -> Result<DriveOutcome, CommandFailure> {
    let world = if args.dry_run { WorldKind::Dry { seed: DRY_SEED } } else { WorldKind::Real };
    let settings = config.fixed_settings(FixedSettings::default())?;
    let limits = config.run_limits(&RunLimits::default());
    run_start::must_have_time_left(&limits)?;
    match world {
        WorldKind::Dry { .. } => {
            preflight::must_keep_conversations(limits.idea_conversation_mode, &[])?;
            run_start::must_have_clean_checkout(home, config, &[])?;
        }
        WorldKind::Real => {
            run_start::must_have_sweep_command(&settings.measure)?;
            run_start::must_have_readable_baseline(&home.repo.toplevel, &settings)?;
            let role_agents = run_start::role_agents(home, config, &AgentRole::ALL)?;
            run_start::must_have_agents(&role_agents, &REQUIRED_ROLES)?;
            run_start::must_have_agent_programs(home, &role_agents)?;
            preflight::must_keep_conversations(limits.idea_conversation_mode, &role_agents)?;
            preflight::must_have_summary_agent(limits.summary_agent, &role_agents)?;
            run_start::must_have_clean_checkout(home, config, &[])?;
            run_start::must_be_affordable(
                config,
                &settings,
                &limits,
                &role_agents,
                CostConsent::from_yes_flag(args.yes),
            )?;
        }
    }
    run_start::must_have_free_refs(home, &id)?;
    let started = RunStarted {
        run: id,
        world,
        root: home.repo.head.clone(),
        meaning: settings,
        reach: limits,
        agents: run_settings::recorded_agents(config, &home.repo.toplevel, world)?,
        given: None,
        replays: None,
        rules_version: RulesVersion::LATEST,
        at: run_start::run_start_time(home, world),
    };
    launch_run(home, config, started, args, output)
}

/// Records the start of a run, and drives it.
pub(super) fn launch_run(
    home: &RepoHome,
    config: &Config,
    started: RunStarted,
    args: &RunArgs,
    output: OutputFormat,
) -> Result<DriveOutcome, CommandFailure> {
    if CtrlC.is_asked_for() {
        return Ok(DriveOutcome::NotBegun);
    }
    let (store, state) = match RunStore::create(&home.runs_root, &started) {
        // Another process was faster: its run is resumed, or, without a given name, the next free
        // name is used.
        Err(StoreError::Exists { .. }) if args.run_id.is_some() => {
            return resume_named_run(home, config, &started.run, args, output);
        }
        Err(StoreError::Exists { .. }) => return start_or_resume(home, config, args, output),
        created => created?,
    };
    if output == OutputFormat::Json {
        terminal::print_json(&Event::RunStarted(Box::new(started)))?;
    }
    redo::report_new_run(&args.going.again);
    let run = store.run_dir().clone();
    let left = world::with_world(
        home,
        config,
        store,
        state,
        LineReporting::None,
        |store, state, world| resume::drive_run(store, state, world, args.going.quiet, output),
    )?;
    Ok(DriveOutcome::Driven(run, left))
}
