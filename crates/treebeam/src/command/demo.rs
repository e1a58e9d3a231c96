//! `treebeam demo`: the whole job on a small repository that it makes, with no key and no network. The search is that of
//! `treebeam run`; this file makes it ready and shows what came of it. [`example`] is the repository, [`holdout`] judges
//! what the search never saw.

mod example;
mod holdout;

use super::resume::{self, Driven, Left};
use super::run::lead;
use super::{Output, best, diff, report};
use crate::cli::{DemoArgs, DiffArgs, ItemName, RunArgs};
use crate::config::Config;
use crate::failure::{Exit, Failure};
use crate::interrupt;
use crate::program;
use crate::terminal;
use crate::way_on;
use crate::wiring::{Found, Home};
use example::Example;
use serde_json::json;
use std::env;
use std::path::Path;
use treebeam_core::facts::Facts;
use treebeam_core::id::{NodeId, Place};
use treebeam_edge::store::RunDir;
use treebeam_view::best::REPORT;

/// The run of a demo.
const RUN: &str = "demo";

pub(super) fn run(here: &Path, args: &DemoArgs, output: Output) -> Result<Exit, Failure> {
    holdout::must_have_python(here)?;
    let example = example::ready(here, args.folder.as_deref())?;
    interrupt::goes_on_by(example.way_on());
    let config = Config::load(&example.path, None)?;
    let home = Home::open(&example.path, &config)?;
    let search = RunArgs { run_id: Some(RUN.to_owned()), ..RunArgs::default() };
    match lead(&home, &config, &search, output)? {
        Driven::Left(run, left @ Left::Ended(_)) => {
            tell(&example, home, &run, left.facts(), output)?;
            Ok(left.exit())
        }
        driven @ (Driven::Left(_, Left::Interrupted(_)) | Driven::NotBegun) => driven.tell(output),
    }
}

/// Shows what came of it.
fn tell(
    example: &Example,
    home: Home,
    run: &RunDir,
    facts: &Facts,
    output: Output,
) -> Result<(), Failure> {
    let holdout = match facts.best() {
        NodeId::ROOT => None,
        _ => Some(holdout::judge(&example.path, run, facts)?),
    };
    if holdout.is_some() {
        report::write(run, facts)?;
    }
    if output == Output::Json {
        let mut end = resume::end(facts, facts.stop_reason());
        end["directory"] = json!(home.repo.toplevel);
        end["holdout"] = json!(holdout.as_ref().map(holdout::document));
        return terminal::json(&end);
    }
    let found = Found { run: run.clone(), repo: Some(home.repo) };
    let program = example.program();
    tell_of_best(&found, &program, facts)?;
    if let Some(holdout) = &holdout {
        terminal::show(&format!("\n{}", holdout::in_words(holdout, &program, facts)))?;
    }
    terminal::show(&what_next(example, run))
}

fn tell_of_best(found: &Found, program: &str, facts: &Facts) -> Result<(), Failure> {
    let node = facts.best();
    if node == NodeId::ROOT {
        terminal::show("\nThe search is done, and found nothing better than the root.\n\n")?;
        return best::show(found, program, Output::Text).map(drop);
    }
    terminal::show("\nThe search is done, and found a better program.\n\n")?;
    best::show(found, program, Output::Text)?;
    terminal::show("\nWhat it changed, all ideas together:\n\n")?;
    let item = ItemName { run: Some(RUN.to_owned()), id: Place::Node(node).to_string() };
    diff::run(found, &DiffArgs { item, root: true }, Output::Text).map(drop)
}

fn what_next(example: &Example, run: &RunDir) -> String {
    let report = run.root().join(REPORT).display().to_string();
    let readme = example.path.join("README.md").display().to_string();
    let path = where_it_is().map(|folder| format!("export PATH=\"$PATH\":{folder}"));
    let first = path.as_ref().map(|path| ("Before any of these, in your shell:", path.as_str()));
    let status = format!("{} status", example.program());
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

/// The folder of the program, as it is typed, if a shell does not find it by its name.
fn where_it_is() -> Option<String> {
    let this = env::current_exe().ok()?.canonicalize().ok()?;
    let found = program::look_up("treebeam", Path::new(".")).and_then(|at| at.canonicalize().ok());
    let folder = this.parent()?.to_string_lossy().into_owned();
    (found.as_ref() != Some(&this)).then(|| way_on::word(&folder))
}
