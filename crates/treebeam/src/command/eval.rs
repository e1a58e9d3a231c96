//! `treebeam eval`: a run that tries given ideas on the root, and compares each with it.
//!
//! Nothing is promoted.

mod outcome;

use super::{OutputFormat, resume, run_start};
use crate::cli::EvalArgs;
use crate::config::Config;
use crate::failure::{CommandExit, CommandFailure};
use crate::interrupt::CtrlC;
use crate::preflight::CostConsent;
use crate::progress::activity::LineReporting;
use crate::run_location::RepoHome;
use crate::run_settings;
use crate::user_ideas;
use crate::world;
use jiff::Timestamp;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use treebeam_core::event::{RunStarted, UserIdeas, WorldKind};
use treebeam_core::id::{Commit, RunId};
use treebeam_core::measure::UserPath;
use treebeam_core::policy::{FixedSettings, RunLimits};
use treebeam_core::rules_version::RulesVersion;
use treebeam_run::port::{AgentRole, Interrupt as _};
use treebeam_store::RunStore;
use treebeam_store::input;

/// Roles that may be called: all but the idea generator.
const EVAL_ROLES: [AgentRole; 4] =
    [AgentRole::Coordinator, AgentRole::Planner, AgentRole::Coder, AgentRole::Reviewer];

pub(super) fn run_eval(
    here: &Path,
    args: &EvalArgs,
    output: OutputFormat,
) -> Result<CommandExit, CommandFailure> {
    let config = load_eval_config(here, args)?;
    let home = RepoHome::open(here, &config)?;
    config.load_prompts(&home.repo.toplevel)?;
    let named = find_idea_file(here, args, &config, &home)?;
    let ideas = load_user_ideas(here, &named, args)?;
    let settings = load_fixed_settings(&config, here, &home, args)?;
    let limits = load_run_limits(&config, args);
    run_start::must_have_time_left(&limits)?;
    run_start::must_have_sweep_command(&settings.measure)?;
    run_start::must_have_readable_baseline(&home.repo.toplevel, &settings)?;
    let role_agents = run_start::role_agents(&home, &config, &EVAL_ROLES)?;
    run_start::must_have_agents(&role_agents, &[AgentRole::Coder])?;
    run_start::must_have_agent_programs(&home, &role_agents)?;
    let given = [Some(&named), args.baseline.as_ref(), args.root_baseline.as_ref()];
    let given: Vec<PathBuf> = given.into_iter().flatten().map(|path| here.join(path)).collect();
    let basis = EvalBasis::from_args(args, &config);
    basis.must_be_usable(&home, &config, &ideas, &given)?;
    let asked =
        FixedSettings { ideas_per_node: count_ideas(&ideas), control: None, ..settings.clone() };
    let once = RunLimits { max_depth: 1, ..limits.clone() };
    run_start::must_be_affordable(
        &config,
        &asked,
        &once,
        &role_agents,
        CostConsent::from_yes_flag(args.new.yes),
    )?;
    let id = run_start::choose_run_id(&home, args.new.run_id.as_deref())?;
    run_start::must_have_free_refs(&home, &id)?;
    let at = run_start::run_start_time(&home, WorldKind::Real);
    let root = basis.root_commit(&home, &id, at)?;
    let in_place = basis.in_place_path(&home)?;
    let started = RunStarted {
        run: id,
        world: WorldKind::Real,
        root,
        meaning: settings,
        reach: limits,
        agents: run_settings::recorded_agents(&config, &home.repo.toplevel, WorldKind::Real)?,
        given: Some(UserIdeas { ideas, in_place }),
        replays: None,
        rules_version: RulesVersion::LATEST,
        at,
    };
    if CtrlC.is_asked_for() {
        return Ok(run_start::interrupted_before_start());
    }
    let (store, state) = RunStore::create(&home.runs_root, &started)?;
    let run = store.run_dir().clone();
    let lines = if args.new.quiet { LineReporting::None } else { LineReporting::Each };
    let left = world::with_world(&home, &config, store, state, lines, |store, state, world| {
        resume::drive_run(store, state, world, args.new.quiet, OutputFormat::Text)
    })?;
    outcome::show_outcome(&left, &run, output)?;
    Ok(left.exit())
}

/// Code that candidates start from, and place where they are measured.
#[derive(Clone, Copy)]
enum EvalBasis {
    /// The commit that is checked out, in worktrees of the run.
    Commit,
    /// The content of the working tree, in worktrees of the run.
    WorkingTree,
    /// The commit that is checked out, in the user's worktree.
    InPlace,
}

impl EvalBasis {
    /// Chooses the basis; the flag takes precedence over the configuration.
    fn from_args(args: &EvalArgs, config: &Config) -> Self {
        match (args.in_place, config.is_based_on_working_tree()) {
            (true, _) => Self::InPlace,
            (false, true) => Self::WorkingTree,
            (false, false) => Self::Commit,
        }
    }

    fn must_be_usable(
        self,
        home: &RepoHome,
        config: &Config,
        ideas: &[String],
        given: &[PathBuf],
    ) -> Result<(), CommandFailure> {
        match self {
            Self::InPlace if ideas.len() > 1 => {
                let what = format!(
                    "`--in-place` leaves one idea in the worktree, and {} are given",
                    ideas.len()
                );
                Err(CommandFailure::usage(what)
                    .with_hint("add `--iterations 1`, or leave out `--in-place`"))
            }
            Self::InPlace | Self::Commit => {
                run_start::must_have_clean_checkout(home, config, given)
            }
            Self::WorkingTree => Ok(()),
        }
    }

    fn root_commit(
        self,
        home: &RepoHome,
        run: &RunId,
        at: Timestamp,
    ) -> Result<Commit, CommandFailure> {
        Ok(match self {
            Self::Commit | Self::InPlace => home.repo.head.clone(),
            Self::WorkingTree => {
                home.repo.snapshot_commit(run, at).map_err(CommandFailure::from_environment)?
            }
        })
    }

    fn in_place_path(self, home: &RepoHome) -> Result<Option<String>, CommandFailure> {
        match self {
            Self::Commit | Self::WorkingTree => Ok(None),
            Self::InPlace => {
                let top = home.repo.toplevel.to_str();
                let odd = || CommandFailure::usage("the worktree lies at a path that is not UTF-8");
                top.map(|top| Some(top.to_owned())).ok_or_else(odd)
            }
        }
    }
}

/// Loads the configuration with these flags over it.
fn load_eval_config(here: &Path, args: &EvalArgs) -> Result<Config, CommandFailure> {
    let config = Config::load(here, args.new.config.config.as_deref())?;
    Ok(config.with_flags(&args.flag_settings()?)?)
}

/// Returns the path of the ideas: from the flag, or else the configuration.
fn find_idea_file(
    here: &Path,
    args: &EvalArgs,
    config: &Config,
    home: &RepoHome,
) -> Result<PathBuf, CommandFailure> {
    if let Some(named) = &args.idea {
        return Ok(named.clone());
    }
    let named = config.ideas_file().ok_or_else(|| {
        CommandFailure::usage("no idea is given")
            .with_hint("add `--idea FILE`, or set `ideas_file`")
    })?;
    let path = home.repo.toplevel.join(named);
    Ok(path.strip_prefix(here).map(Path::to_owned).unwrap_or(path))
}

fn load_user_ideas(
    here: &Path,
    named: &Path,
    args: &EvalArgs,
) -> Result<Vec<String>, CommandFailure> {
    let mut ideas = user_ideas::load_ideas(here, named)?;
    let most = args.iterations.map_or(u32::MAX, |most| most.0.get());
    ideas.truncate(usize::try_from(most).unwrap_or(usize::MAX));
    Ok(ideas)
}

fn count_ideas(ideas: &[String]) -> NonZeroU32 {
    u32::try_from(ideas.len()).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MIN)
}

/// Loads the fixed settings: the configuration with the baselines of the flags.
fn load_fixed_settings(
    config: &Config,
    here: &Path,
    home: &RepoHome,
    args: &EvalArgs,
) -> Result<FixedSettings, CommandFailure> {
    let mut settings = config.fixed_settings(FixedSettings::default())?;
    let measure = &mut settings.measure;
    if let Some(baseline) = &args.baseline {
        measure.baseline_csv = Some(record_user_path(here, home, baseline)?);
    }
    if let Some(root) = &args.root_baseline {
        if measure.baseline_csv.is_none() {
            let what = "`--root-baseline` says what the root is compared by, and nothing says what the parent is";
            return Err(CommandFailure::usage(what)
                .with_hint("add `--baseline CSV`, or set `baseline_csv`"));
        }
        measure.root_baseline_csv = Some(record_user_path(here, home, root)?);
    }
    Ok(settings)
}

/// Converts a file of the command line to its recorded form: relative to the repository's top where
/// it lies in it.
fn record_user_path(here: &Path, home: &RepoHome, path: &Path) -> Result<UserPath, CommandFailure> {
    let full = here.join(path);
    input::open_input(&full, &path.display().to_string())?;
    let full = full.canonicalize().unwrap_or_else(|_| full.clone());
    let top = home.repo.toplevel.canonicalize()?;
    let seen = full.strip_prefix(&top).unwrap_or(&full);
    let name = || path.display().to_string();
    let text =
        seen.to_str().ok_or_else(|| CommandFailure::usage(format!("`{}` is not UTF-8", name())))?;
    UserPath::try_from(text.to_owned())
        .map_err(|error| CommandFailure::usage(format!("`{}`: {error}", name())))
}

fn load_run_limits(config: &Config, args: &EvalArgs) -> RunLimits {
    let limits = config.run_limits(&RunLimits::default());
    if !args.keep_worktrees && !config.keeps_worktrees() {
        return limits;
    }
    RunLimits { keep_rejected_worktrees: true, keep_failed_artifacts: true, ..limits }
}
