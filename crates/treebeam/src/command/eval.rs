//! `treebeam eval`: a run whose ideas are given. They are tried on the root, nothing is promoted, and at the end stands how
//! each of them compares.

mod outcome;

use super::{Output, begin, resume};
use crate::cli::EvalArgs;
use crate::config::Config;
use crate::failure::{Exit, Failure};
use crate::given;
use crate::interrupt::CtrlC;
use crate::preflight::Consent;
use crate::progress::now::Lines;
use crate::settings;
use crate::wiring::Home;
use crate::world;
use jiff::Timestamp;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use treebeam_core::event::{Given, RunStarted, WorldKind};
use treebeam_core::id::{Commit, RunId};
use treebeam_core::measure::UserPath;
use treebeam_core::policy::{Meaning, Reach};
use treebeam_core::rules_version::RulesVersion;
use treebeam_edge::input;
use treebeam_edge::store::Store;
use treebeam_run::port::{Interrupt as _, Role};

/// Who may be asked: everybody but who proposes ideas.
const ASKED: [Role; 4] = [Role::Coordinator, Role::Planner, Role::Coder, Role::Reviewer];

pub(super) fn run(here: &Path, args: &EvalArgs, output: Output) -> Result<Exit, Failure> {
    let config = config(here, args)?;
    let home = Home::open(here, &config)?;
    config.prompts(&home.repo.toplevel)?;
    let named = idea_file(here, args, &config, &home)?;
    let ideas = ideas(here, &named, args)?;
    let meaning = meaning(&config, here, &home, args)?;
    let reach = reach(&config, args);
    begin::must_have_time(&reach)?;
    begin::must_sweep(&meaning.measure)?;
    begin::must_be_readable(&home.repo.toplevel, &meaning)?;
    let seats = begin::seats(&home, &config, &ASKED)?;
    begin::must_be_able(&seats, &[Role::Coder])?;
    begin::must_come_with_worktrees(&home, &seats)?;
    let given = [Some(&named), args.baseline.as_ref(), args.root_baseline.as_ref()];
    let given: Vec<PathBuf> = given.into_iter().flatten().map(|path| here.join(path)).collect();
    let basis = Basis::of(args, &config);
    basis.must_fit(&home, &config, &ideas, &given)?;
    let asked = Meaning { ideas_per_node: count(&ideas), control: None, ..meaning.clone() };
    let once = Reach { max_depth: 1, ..reach.clone() };
    begin::must_be_affordable(&config, &asked, &once, &seats, Consent::of(args.new.yes))?;
    let id = begin::id(&home, args.new.run_id.as_deref())?;
    begin::must_be_free(&home, &id)?;
    let at = begin::time(&home, WorldKind::Real);
    let root = basis.root(&home, &id, at)?;
    let in_place = basis.in_place(&home)?;
    let started = RunStarted {
        run: id,
        world: WorldKind::Real,
        root,
        meaning,
        reach,
        agents: settings::agents(&config, &home.repo.toplevel, WorldKind::Real)?,
        given: Some(Given { ideas, in_place }),
        replays: None,
        rules_version: RulesVersion::LATEST,
        at,
    };
    if CtrlC.is_asked_for() {
        return Ok(begin::interrupted());
    }
    let (store, state) = Store::create(&home.runs_root, &started)?;
    let run = store.run().clone();
    let lines = if args.new.quiet { Lines::None } else { Lines::Each };
    let left = world::enter(&home, &config, store, state, lines, |store, state, world| {
        resume::drive(store, state, world, args.new.quiet, Output::Text)
    })?;
    outcome::tell(&left, &run, output)?;
    Ok(left.exit())
}

/// What candidates are made from, and where they are measured.
#[derive(Clone, Copy)]
enum Basis {
    /// The commit that is checked out; in worktrees of the run.
    Commit,
    /// What is in the working tree; in worktrees of the run.
    WorkingTree,
    /// The commit that is checked out; in the user's worktree.
    InPlace,
}

impl Basis {
    /// A flag counts more than the configuration.
    fn of(args: &EvalArgs, config: &Config) -> Self {
        match (args.in_place, config.is_based_on_working_tree()) {
            (true, _) => Self::InPlace,
            (false, true) => Self::WorkingTree,
            (false, false) => Self::Commit,
        }
    }

    fn must_fit(
        self,
        home: &Home,
        config: &Config,
        ideas: &[String],
        given: &[PathBuf],
    ) -> Result<(), Failure> {
        match self {
            Self::InPlace if ideas.len() > 1 => {
                let what = format!(
                    "`--in-place` leaves one idea in the worktree, and {} are given",
                    ideas.len()
                );
                Err(Failure::usage(what).hint("add `--iterations 1`, or leave out `--in-place`"))
            }
            Self::InPlace | Self::Commit => begin::must_be_clean(home, config, given),
            Self::WorkingTree => Ok(()),
        }
    }

    fn root(self, home: &Home, run: &RunId, at: Timestamp) -> Result<Commit, Failure> {
        Ok(match self {
            Self::Commit | Self::InPlace => home.repo.head.clone(),
            Self::WorkingTree => home.repo.snapshot(run, at).map_err(Failure::lacking)?,
        })
    }

    fn in_place(self, home: &Home) -> Result<Option<String>, Failure> {
        match self {
            Self::Commit | Self::WorkingTree => Ok(None),
            Self::InPlace => {
                let top = home.repo.toplevel.to_str();
                let odd = || Failure::usage("the worktree lies at a path that is not UTF-8");
                top.map(|top| Some(top.to_owned())).ok_or_else(odd)
            }
        }
    }
}

/// The configuration with these flags over it.
fn config(here: &Path, args: &EvalArgs) -> Result<Config, Failure> {
    let config = Config::load(here, args.new.config.config.as_deref())?;
    Ok(config.with_flags(&args.settings()?)?)
}

/// Where the ideas are: as the flag says, or as the configuration does.
fn idea_file(
    here: &Path,
    args: &EvalArgs,
    config: &Config,
    home: &Home,
) -> Result<PathBuf, Failure> {
    if let Some(named) = &args.idea {
        return Ok(named.clone());
    }
    let named = config.ideas_file().ok_or_else(|| {
        Failure::usage("no idea is given").hint("add `--idea FILE`, or set `ideas_file`")
    })?;
    let path = home.repo.toplevel.join(named);
    Ok(path.strip_prefix(here).map(Path::to_owned).unwrap_or(path))
}

fn ideas(here: &Path, named: &Path, args: &EvalArgs) -> Result<Vec<String>, Failure> {
    let mut ideas = given::ideas(here, named)?;
    let most = args.iterations.map_or(u32::MAX, |most| most.0.get());
    ideas.truncate(usize::try_from(most).unwrap_or(usize::MAX));
    Ok(ideas)
}

fn count(ideas: &[String]) -> NonZeroU32 {
    u32::try_from(ideas.len()).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MIN)
}

/// What the results mean: as the configuration says, with the baselines of the flags.
fn meaning(config: &Config, here: &Path, home: &Home, args: &EvalArgs) -> Result<Meaning, Failure> {
    let mut meaning = config.meaning(Meaning::default())?;
    let measure = &mut meaning.measure;
    if let Some(baseline) = &args.baseline {
        measure.baseline_csv = Some(of_user(here, home, baseline)?);
    }
    if let Some(root) = &args.root_baseline {
        if measure.baseline_csv.is_none() {
            let what = "`--root-baseline` says what the root is compared by, and nothing says what the parent is";
            return Err(Failure::usage(what).hint("add `--baseline CSV`, or set `baseline_csv`"));
        }
        measure.root_baseline_csv = Some(of_user(here, home, root)?);
    }
    Ok(meaning)
}

/// A file of the command line, as it is recorded: seen from the repository's top where it lies in it.
fn of_user(here: &Path, home: &Home, path: &Path) -> Result<UserPath, Failure> {
    let full = here.join(path);
    input::open(&full, &path.display().to_string())?;
    let full = full.canonicalize().unwrap_or_else(|_| full.clone());
    let top = home.repo.toplevel.canonicalize()?;
    let seen = full.strip_prefix(&top).unwrap_or(&full);
    let name = || path.display().to_string();
    let text = seen.to_str().ok_or_else(|| Failure::usage(format!("`{}` is not UTF-8", name())))?;
    UserPath::try_from(text.to_owned())
        .map_err(|error| Failure::usage(format!("`{}`: {error}", name())))
}

fn reach(config: &Config, args: &EvalArgs) -> Reach {
    let reach = config.reach(&Reach::default());
    if !args.keep_worktrees && !config.keeps_worktrees() {
        return reach;
    }
    Reach { keep_rejected_worktrees: true, keep_failed_artifacts: true, ..reach }
}
