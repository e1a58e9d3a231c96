//! `treebeam baseline`: a run that measures its root and nothing else.

use super::{Output, begin, resume};
use crate::cli::BaselineArgs;
use crate::config::Config;
use crate::failure::{Exit, Failure};
use crate::interrupt::{self, CtrlC};
use crate::progress::now::Lines;
use crate::settings;
use crate::terminal;
use crate::wiring::Home;
use crate::world;
use serde_json::json;
use std::path::{Path, PathBuf};
use treebeam_core::event::{Given, RunStarted, WorldKind};
use treebeam_core::facts::{Baseline, Facts};
use treebeam_core::id::Commit;
use treebeam_core::policy::{Meaning, Reach};
use treebeam_core::rules_version::RulesVersion;
use treebeam_edge::store::{RunDir, Store, copy_out};
use treebeam_run::port::Interrupt as _;

pub(super) fn run(here: &Path, args: &BaselineArgs, output: Output) -> Result<Exit, Failure> {
    let config = Config::load(here, args.new.config.config.as_deref())?;
    let config = config.with_flags(&args.settings()?)?;
    let home = Home::open(here, &config)?;
    let root = root(&home, &config, args.commit.as_deref())?;
    let mut meaning = config.meaning(Meaning::default())?;
    // What is to be measured anew is not taken from where it was put the last time.
    let configured = meaning.measure.baseline_csv.take();
    begin::must_sweep(&meaning.measure)?;
    let reach = config.reach(&Reach::default());
    begin::must_have_time(&reach)?;
    let copy = args.output.as_ref().map(|path| here.join(path));
    let copy = copy.or_else(|| configured.map(|path| home.repo.toplevel.join(path.as_str())));
    let id = begin::id(&home, args.new.run_id.as_deref())?;
    begin::must_be_free(&home, &id)?;
    let started = RunStarted {
        run: id,
        world: WorldKind::Real,
        root,
        meaning,
        reach,
        agents: settings::agents(&config, &home.repo.toplevel, WorldKind::Real)?,
        given: Some(Given { ideas: Vec::new(), in_place: None }),
        replays: None,
        rules_version: RulesVersion::LATEST,
        at: begin::time(&home, WorldKind::Real),
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
    tell(left.facts(), &run, copy, output)?;
    Ok(left.exit())
}

/// Says where the results are of one that was resumed: whither they were to be copied is not on record.
pub(super) fn tell_where(facts: &Facts, run: &RunDir) {
    let measures_only = facts.given.as_ref().is_some_and(|given| given.ideas.is_empty());
    if let (true, Baseline::Measured { results, .. }) = (measures_only, &facts.baseline) {
        let kept = run.path(&results.path);
        terminal::note(&format!("the results of the root lie in `{}`", kept.display()));
    }
}

/// The commit that is measured; what is in no commit is not.
fn root(home: &Home, config: &Config, name: Option<&str>) -> Result<Commit, Failure> {
    let Some(name) = name else {
        begin::must_be_clean(home, config, &[])?;
        return Ok(home.repo.head.clone());
    };
    home.repo.commit_named(name)?.ok_or_else(|| {
        Failure::usage(format!("there is no commit `{name}` in this repository"))
            .hint("name a commit, a tag or a branch")
    })
}

fn tell(facts: &Facts, run: &RunDir, copy: Option<PathBuf>, output: Output) -> Result<(), Failure> {
    let Baseline::Measured { results, rows, .. } = &facts.baseline else {
        resume::tell_of_sweeps(facts);
        if copy.is_some() {
            terminal::note("a resume copies the results nowhere, and says where they lie");
        }
        terminal::say(&format!("hint: `{}` goes on from here", interrupt::is_about(&facts.run)));
        return Ok(());
    };
    let kept = run.path(&results.path);
    if let Some(copy) = &copy {
        copy_out(&kept, copy)?;
    }
    let lies_at = copy.unwrap_or(kept);
    match output {
        Output::Json => terminal::json(&json!({
            "schema": "treebeam.baseline/1",
            "run_id": facts.run,
            "commit": facts.nodes.first().map(|root| &root.commit),
            "rows": rows,
            "sha256": results.sha256,
            "path": lies_at,
        })),
        Output::Text => terminal::show(&format!("{}\n", lies_at.display())),
    }
}
