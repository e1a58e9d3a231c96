//! `treebeam run`: starts a run, or goes on with the one that is named.

use super::{Output, resume};
use crate::again;
use crate::cli::RunArgs;
use crate::config::Config;
use crate::crew;
use crate::dotenv::Dotenv;
use crate::failure::{Exit, Failure};
use crate::interrupt::CtrlC;
use crate::preflight::{self, Consent};
use crate::settings;
use crate::terminal;
use crate::wiring::{DryWorld, Home};
use jiff::Timestamp;
use treebeam_core::event::{Event, RunStarted, WorldKind};
use treebeam_core::id::RunId;
use treebeam_core::policy::{Meaning, Reach};
use treebeam_edge::agent::crew::Crew;
use treebeam_edge::git::GitRepo;
use treebeam_edge::store::{Store, StoreError};
use treebeam_run::port::Interrupt as _;

/// The seed of the dry world: every dry run of a repository is the same.
const DRY_SEED: u64 = 7;
/// How many files of a dirty checkout are listed.
const LISTED: usize = 20;

pub(super) fn run(
    home: &Home,
    config: &Config,
    args: &RunArgs,
    output: Output,
) -> Result<Exit, Failure> {
    let id = match &args.run_id {
        Some(id) => id.parse()?,
        None => default_id(home)?,
    };
    if !home.named(&id).root().exists() {
        must_name_a_run(args)?;
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
    Err(Failure::usage(what).hint(format!("`treebeam resume {flag}` goes on with the latest one")))
}

/// Goes on with a run that is there.
fn go_on(
    home: &Home,
    config: &Config,
    id: &RunId,
    args: &RunArgs,
    output: Output,
) -> Result<Exit, Failure> {
    if args.no_resume {
        let what = format!("there is a run `{id}` already");
        return Err(
            Failure::usage(what).hint("choose another `--run-id`, or leave `--no-resume` out")
        );
    }
    resume::open(home, config, &home.named(id), &args.going, output)
}

/// The time now, in UTC, with a number behind it where that is taken.
fn default_id(home: &Home) -> Result<RunId, Failure> {
    let now = Timestamp::now().strftime("%Y%m%d-%H%M%S").to_string();
    let mut id: RunId = now.parse()?;
    let mut number = 2;
    while home.named(&id).root().exists() {
        id = format!("{now}-{number}").parse()?;
        number += 1;
    }
    Ok(id)
}

fn start(
    home: &Home,
    config: &Config,
    id: RunId,
    args: &RunArgs,
    output: Output,
) -> Result<Exit, Failure> {
    if !args.dry_run {
        prepare(home, config, args)?;
        let what = "this version of treebeam cannot sweep yet: it searches the dry world alone";
        return Err(Failure::usage(what).hint("add `--dry-run`"));
    }
    must_be_clean(home)?;
    must_be_free(home, &id)?;
    if home.repo.has_submodules {
        terminal::note("this repository has submodules: they stay empty in the run's worktrees");
    }
    let world = WorldKind::Dry { seed: DRY_SEED };
    let started = RunStarted {
        run: id,
        world,
        root: home.repo.head.clone(),
        meaning: config.meaning(Meaning::default())?,
        reach: config.reach(&Reach::default()),
        agents: settings::agents(world),
        at: home.repo.head_time,
    };
    if CtrlC.is_asked_for() {
        terminal::say("interrupted before the run began");
        return Ok(Exit::Interrupted);
    }
    let (store, state) = match Store::create(&home.runs_root, &started) {
        // Another process was faster: its run is taken, or, where no name was given, the next free one.
        Err(StoreError::Exists { .. }) if args.run_id.is_some() => {
            return go_on(home, config, &started.run, args, output);
        }
        Err(StoreError::Exists { .. }) => return run(home, config, args, output),
        created => created?,
    };
    if output == Output::Json {
        terminal::json(&Event::RunStarted(Box::new(started)))?;
    }
    again::tell_of_new_run(&args.going.again);
    let world = DryWorld::new(home, &store, &state)?;
    resume::drive(store, state, &world, &args.going, output)
}

/// Everything that must hold before anything is paid for.
fn prepare(home: &Home, config: &Config, args: &RunArgs) -> Result<Crew, Failure> {
    let dotenv = Dotenv::load(&home.repo.toplevel, config)?;
    let seats = crew::seats(config, &dotenv);
    let agents = preflight::agents(&seats)?;
    must_be_clean(home)?;
    terminal::note(&format!("agents: {}", agents.in_words()));
    let estimate = preflight::estimate(config, &seats)?;
    let consent = if args.yes { Consent::Given } else { Consent::Open };
    preflight::consent(&estimate, config.confirm_above(), consent)?;
    Ok(agents)
}

fn must_be_clean(home: &Home) -> Result<(), Failure> {
    let dirty = home.repo.dirty()?;
    if dirty.is_empty() {
        return Ok(());
    }
    let mut what = "the working tree is not clean:".to_owned();
    for file in dirty.iter().take(LISTED) {
        let file: String = file.chars().flat_map(printable).collect();
        what.push_str(&format!("\n  {file}"));
    }
    if dirty.len() > LISTED {
        what.push_str(&format!("\n  … and {} more", dirty.len() - LISTED));
    }
    Err(Failure::environment(what)
        .hint("commit, stash or ignore these files: a run starts from a commit"))
}

/// A character of a file name as it may be shown on a terminal.
fn printable(c: char) -> Vec<char> {
    if c.is_control() { c.escape_debug().collect() } else { vec![c] }
}

/// Refs outlive a run directory that was deleted, and are shared by all checkouts of a repository.
fn must_be_free(home: &Home, id: &RunId) -> Result<(), Failure> {
    let runs_root = home.make_runs_root()?;
    let repo = GitRepo::new(home.repo.clone(), runs_root, id.clone())?;
    let Some(name) = repo.in_the_way()? else { return Ok(()) };
    let what = format!("the branch `{name}` is in the way of the refs `tree/{id}/…` of a new run");
    Err(Failure::usage(what).hint("choose another `--run-id`, or rename or delete that branch"))
}
