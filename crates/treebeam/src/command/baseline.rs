//! `treebeam baseline`: a run that measures its root and nothing else.

use super::{OutputFormat, resume, run_start};
use crate::cli::BaselineArgs;
use crate::config::Config;
use crate::failure::{CommandExit, CommandFailure};
use crate::interrupt::{self, CtrlC};
use crate::progress::activity::LineReporting;
use crate::run_location::RepoHome;
use crate::run_settings;
use crate::terminal;
use crate::world;
use serde_json::json;
use std::path::{Path, PathBuf};
use treebeam_core::event::{RunStarted, UserIdeas, WorldKind};
use treebeam_core::facts::{Facts, RootBaseline};
use treebeam_core::id::Commit;
use treebeam_core::policy::{FixedSettings, RunLimits};
use treebeam_core::rules_version::RulesVersion;
use treebeam_run::port::Interrupt as _;
use treebeam_store::{RunDir, RunStore, copy_out};

pub(super) fn run_baseline(
    here: &Path,
    args: &BaselineArgs,
    output: OutputFormat,
) -> Result<CommandExit, CommandFailure> {
    let config = Config::load(here, args.new.config.config.as_deref())?;
    let config = config.with_flags(&args.flag_settings()?)?;
    let home = RepoHome::open(here, &config)?;
    let root = find_root_commit(&home, &config, args.commit.as_deref())?;
    let mut settings = config.fixed_settings(FixedSettings::default())?;
    // The configured baseline must not be reused: the root is measured anew.
    let configured = settings.measure.baseline_csv.take();
    run_start::must_have_sweep_command(&settings.measure)?;
    let limits = config.run_limits(&RunLimits::default());
    run_start::must_have_time_left(&limits)?;
    let copy = args.output.as_ref().map(|path| here.join(path));
    let copy = copy.or_else(|| configured.map(|path| home.repo.toplevel.join(path.as_str())));
    let id = run_start::choose_run_id(&home, args.new.run_id.as_deref())?;
    run_start::must_have_free_refs(&home, &id)?;
    let started = RunStarted {
        run: id,
        world: WorldKind::Real,
        root,
        meaning: settings,
        reach: limits,
        agents: run_settings::recorded_agents(&config, &home.repo.toplevel, WorldKind::Real)?,
        given: Some(UserIdeas { ideas: Vec::new(), in_place: None }),
        replays: None,
        rules_version: RulesVersion::LATEST,
        at: run_start::run_start_time(&home, WorldKind::Real),
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
    show_baseline(left.facts(), &run, copy, output)?;
    Ok(left.exit())
}

/// Prints the path of the results after a resumed baseline run: the destination of the copy is not
/// on record.
pub(super) fn note_results_path(facts: &Facts, run: &RunDir) {
    let measures_only = facts.user_ideas.as_ref().is_some_and(|given| given.ideas.is_empty());
    if let (true, RootBaseline::Measured { results, .. }) = (measures_only, &facts.baseline) {
        let kept = run.file_path(&results.path);
        terminal::print_note(&format!("the results of the root lie in `{}`", kept.display()));
    }
}

/// Returns the commit to measure; uncommitted changes are not measured.
fn find_root_commit(
    home: &RepoHome,
    config: &Config,
    name: Option<&str>,
) -> Result<Commit, CommandFailure> {
    let Some(name) = name else {
        run_start::must_have_clean_checkout(home, config, &[])?;
        return Ok(home.repo.head.clone());
    };
    home.repo.find_commit(name)?.ok_or_else(|| {
        CommandFailure::usage(format!("there is no commit `{name}` in this repository"))
            .with_hint("name a commit, a tag or a branch")
    })
}

fn show_baseline(
    facts: &Facts,
    run: &RunDir,
    copy: Option<PathBuf>,
    output: OutputFormat,
) -> Result<(), CommandFailure> {
    let RootBaseline::Measured { results, rows, .. } = &facts.baseline else {
        resume::note_running_sweeps(facts);
        if copy.is_some() {
            terminal::print_note("a resume copies the results nowhere, and says where they lie");
        }
        terminal::print_line(&format!(
            "hint: `{}` goes on from here",
            interrupt::resume_text_for(&facts.run)
        ));
        return Ok(());
    };
    let kept = run.file_path(&results.path);
    if let Some(copy) = &copy {
        copy_out(&kept, copy)?;
    }
    let lies_at = copy.unwrap_or(kept);
    match output {
        OutputFormat::Json => terminal::print_json(&json!({
            "schema": "treebeam.baseline/1",
            "run_id": facts.run,
            "commit": facts.nodes.first().map(|root| &root.commit),
            "rows": rows,
            "sha256": results.sha256,
            "path": lies_at,
        })),
        OutputFormat::Text => terminal::print_text(&format!("{}\n", lies_at.display())),
    }
}
