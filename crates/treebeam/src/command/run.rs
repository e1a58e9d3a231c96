//! `treebeam run`: starts a run, or goes on with the one that is named.

use super::resume::{self, Driven};
use super::{Output, begin, replay};
use crate::again;
use crate::cli::RunArgs;
use crate::config::Config;
use crate::failure::{Exit, Failure};
use crate::interrupt::CtrlC;
use crate::preflight::{self, Consent};
use crate::progress::now::Lines;
use crate::settings;
use crate::terminal;
use crate::wiring::Home;
use crate::world;
use treebeam_core::event::{Event, RunStarted, WorldKind};
use treebeam_core::id::RunId;
use treebeam_core::policy::{Meaning, Reach};
use treebeam_core::rules_version::RulesVersion;
use treebeam_edge::store::{Store, StoreError};
use treebeam_run::port::{Interrupt as _, Role};

/// The seed of the dry world: every dry run of a repository is the same.
const DRY_SEED: u64 = 7;
/// Who must be there.
const NEEDED: [Role; 2] = [Role::Coder, Role::Ideas];

pub(super) fn run(
    home: &Home,
    config: &Config,
    args: &RunArgs,
    output: Output,
) -> Result<Exit, Failure> {
    lead(home, config, args, output)?.tell(output)
}

/// Starts a run or goes on with one, to its end or to where it is left.
pub(super) fn lead(
    home: &Home,
    config: &Config,
    args: &RunArgs,
    output: Output,
) -> Result<Driven, Failure> {
    let id = match &args.run_id {
        Some(id) => id.parse()?,
        None => begin::default_id(home)?,
    };
    if !home.named(&id).root().exists() {
        must_name_a_run(args)?;
        if let Some(recorded) = &args.replay {
            return replay::start(home, config, id, recorded, args, output);
        }
        return start(home, config, id, args, output);
    }
    go_on(home, config, &id, args, output)
}

/// Refuses to begin a run for somebody who wants to do work of another one again.
fn must_name_a_run(args: &RunArgs) -> Result<(), Failure> {
    let Some(flag) = args.going.again.first().filter(|_| args.run_id.is_none()) else {
        return Ok(());
    };
    let what = format!("`{flag}` is about a run that is there, and none is named");
    Err(Failure::usage(what).hint(format!("`treebeam resume {flag}` goes on with the latest unfinished one, `treebeam resume RUN {flag}` with any")))
}

/// Goes on with a run that is there.
fn go_on(
    home: &Home,
    config: &Config,
    id: &RunId,
    args: &RunArgs,
    output: Output,
) -> Result<Driven, Failure> {
    if args.no_resume {
        let what = format!("there is a run `{id}` already");
        return Err(
            Failure::usage(what).hint("choose another `--run-id`, or leave `--no-resume` out")
        );
    }
    if let Some(recorded) = &args.replay {
        replay::must_be_of(home, id, recorded)?;
    }
    resume::open(home, config, &home.named(id), &args.going, output)
}

fn start(
    home: &Home,
    config: &Config,
    id: RunId,
    args: &RunArgs,
    output: Output,
) -> Result<Driven, Failure> {
    let world = if args.dry_run { WorldKind::Dry { seed: DRY_SEED } } else { WorldKind::Real };
    let meaning = config.meaning(Meaning::default())?;
    let reach = config.reach(&Reach::default());
    begin::must_have_time(&reach)?;
    match world {
        WorldKind::Dry { .. } => {
            preflight::must_remember(reach.idea_conversation_mode, &[])?;
            begin::must_be_clean(home, config, &[])?;
        }
        WorldKind::Real => {
            begin::must_sweep(&meaning.measure)?;
            begin::must_be_readable(&home.repo.toplevel, &meaning)?;
            let seats = begin::seats(home, config, &Role::ALL)?;
            begin::must_be_able(&seats, &NEEDED)?;
            begin::must_come_with_worktrees(home, &seats)?;
            preflight::must_remember(reach.idea_conversation_mode, &seats)?;
            preflight::must_sum_up(reach.summary_agent, &seats)?;
            begin::must_be_clean(home, config, &[])?;
            begin::must_be_affordable(config, &meaning, &reach, &seats, Consent::of(args.yes))?;
        }
    }
    begin::must_be_free(home, &id)?;
    let started = RunStarted {
        run: id,
        world,
        root: home.repo.head.clone(),
        meaning,
        reach,
        agents: settings::agents(config, &home.repo.toplevel, world)?,
        given: None,
        replays: None,
        rules_version: RulesVersion::LATEST,
        at: begin::time(home, world),
    };
    launch(home, config, started, args, output)
}

/// Puts the beginning of a run on record, and goes on from there.
pub(super) fn launch(
    home: &Home,
    config: &Config,
    started: RunStarted,
    args: &RunArgs,
    output: Output,
) -> Result<Driven, Failure> {
    if CtrlC.is_asked_for() {
        return Ok(Driven::NotBegun);
    }
    let (store, state) = match Store::create(&home.runs_root, &started) {
        // Another process was faster: its run is taken, or, where no name was given, the next free one.
        Err(StoreError::Exists { .. }) if args.run_id.is_some() => {
            return go_on(home, config, &started.run, args, output);
        }
        Err(StoreError::Exists { .. }) => return lead(home, config, args, output),
        created => created?,
    };
    if output == Output::Json {
        terminal::json(&Event::RunStarted(Box::new(started)))?;
    }
    again::tell_of_new_run(&args.going.again);
    let run = store.run().clone();
    let left = world::enter(home, config, store, state, Lines::None, |store, state, world| {
        resume::drive(store, state, world, args.going.quiet, output)
    })?;
    Ok(Driven::Left(run, left))
}
