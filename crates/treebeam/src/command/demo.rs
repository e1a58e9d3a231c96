//! `treebeam demo`: runs a whole search on a small generated repository, without key or network.
//!
//! The search is that of `treebeam run`; this file prepares it and shows its result. [`demo_repo`]
//! is the repository, [`holdout`] evaluates the result on data that the search never used.

mod demo_repo;
mod holdout;

use super::resume::{self, DriveOutcome, RunEnding};
use super::run::start_or_resume;
use super::{OutputFormat, best, diff, report};
use crate::cli::{DemoArgs, DiffArgs, ItemNameArgs, RunArgs};
use crate::config::Config;
use crate::failure::{CommandExit, CommandFailure};
use crate::interrupt;
use crate::program;
use crate::resume_command;
use crate::run_location::{RepoHome, RunLocation};
use crate::terminal;
use demo_repo::DemoRepo;
use serde_json::json;
use std::env;
use std::path::Path;
use treebeam_core::facts::Facts;
use treebeam_core::id::{CodePlace, NodeId};
use treebeam_store::RunDir;
use treebeam_view::best::REPORT_PAGE_FILE;

/// Name of the demo's run.
const DEMO_RUN_NAME: &str = "demo";

pub(super) fn run_demo(
    here: &Path,
    args: &DemoArgs,
    output: OutputFormat,
) -> Result<CommandExit, CommandFailure> {
    holdout::must_have_python(here)?;
    let example = demo_repo::prepare_demo_repo(here, args.folder.as_deref())?;
    interrupt::set_resume_text(example.resume_command());
    let config = Config::load(&example.path, None)?;
    let home = RepoHome::open(&example.path, &config)?;
    let search = RunArgs { run_id: Some(DEMO_RUN_NAME.to_owned()), ..RunArgs::default() };
    match start_or_resume(&home, &config, &search, output)? {
        DriveOutcome::Driven(run, left @ RunEnding::Ended(_)) => {
            show_result(&example, home, &run, left.facts(), output)?;
            Ok(left.exit())
        }
        driven @ (DriveOutcome::Driven(_, RunEnding::Interrupted(_)) | DriveOutcome::NotBegun) => {
            driven.show_and_exit(output)
        }
    }
}

/// Shows the result of the demo.
fn show_result(
    example: &DemoRepo,
    home: RepoHome,
    run: &RunDir,
    facts: &Facts,
    output: OutputFormat,
) -> Result<(), CommandFailure> {
    let holdout = match facts.best_node() {
        NodeId::ROOT => None,
        _ => Some(holdout::judge_holdout(&example.path, run, facts)?),
    };
    if holdout.is_some() {
        report::write_reports(run, facts)?;
    }
    if output == OutputFormat::Json {
        let mut end = resume::render_end_json(facts, facts.stop_reason());
        end["directory"] = json!(home.repo.toplevel);
        end["holdout"] = json!(holdout.as_ref().map(holdout::render_holdout_json));
        return terminal::print_json(&end);
    }
    let found = RunLocation { run: run.clone(), repo: Some(home.repo) };
    let program = example.program_name();
    show_best_node(&found, &program, facts)?;
    if let Some(holdout) = &holdout {
        terminal::print_text(&format!(
            "\n{}",
            holdout::render_holdout_text(holdout, &program, facts)
        ))?;
    }
    terminal::print_text(&render_next_steps(example, run))
}

fn show_best_node(found: &RunLocation, program: &str, facts: &Facts) -> Result<(), CommandFailure> {
    let node = facts.best_node();
    if node == NodeId::ROOT {
        terminal::print_text("\nThe search is done, and found nothing better than the root.\n\n")?;
        return best::show_best(found, program, OutputFormat::Text).map(drop);
    }
    terminal::print_text("\nThe search is done, and found a better program.\n\n")?;
    best::show_best(found, program, OutputFormat::Text)?;
    terminal::print_text("\nWhat it changed, all ideas together:\n\n")?;
    let item =
        ItemNameArgs { run: Some(DEMO_RUN_NAME.to_owned()), id: CodePlace::Node(node).to_string() };
    diff::run_diff(found, &DiffArgs { item, root: true }, OutputFormat::Text).map(drop)
}

fn render_next_steps(example: &DemoRepo, run: &RunDir) -> String {
    let report = run.root().join(REPORT_PAGE_FILE).display().to_string();
    let readme = example.path.join("README.md").display().to_string();
    let path = find_program_folder().map(|folder| format!("export PATH=\"$PATH\":{folder}"));
    let first = path.as_ref().map(|path| ("Before any of these, in your shell:", path.as_str()));
    let status = format!("{} status", example.program_name());
    let rows = [
        ("What was tried, kept and dropped, and why:", report.as_str()),
        ("How such a repository is set up:", &readme),
        ("Look around:", &status),
        ("  in place of `status`:", "list, show e0002, log, watch, serve"),
        ("On your own repository:", "treebeam init"),
        ("  when treebeam.toml says what is wanted:", "treebeam doctor && treebeam run"),
    ];
    let rows = rows.into_iter().chain(first);
    rows.fold("\n".to_owned(), |text, (label, what)| text + &format!("{label:44}{what}\n"))
}

/// Returns the folder of the program, quoted for a shell, if the program is not in `PATH`.
fn find_program_folder() -> Option<String> {
    let this = env::current_exe().ok()?.canonicalize().ok()?;
    let found =
        program::find_program("treebeam", Path::new(".")).and_then(|at| at.canonicalize().ok());
    let folder = this.parent()?.to_string_lossy().into_owned();
    (found.as_ref() != Some(&this)).then(|| resume_command::shell_word(&folder))
}
