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
use crate::terminal;
use crate::wiring::{Found, Home};
use example::Example;
use holdout::Holdout;
use serde_json::json;
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
        _ => Some(Holdout::judge(&example.path, run, facts)?),
    };
    if let Some(holdout) = &holdout {
        report::write_with(run, facts, holdout.extra())?;
    }
    if output == Output::Json {
        let mut end = resume::end(facts, facts.stop_reason());
        end["directory"] = json!(home.repo.toplevel);
        end["holdout"] = json!(holdout.as_ref().map(Holdout::document));
        return terminal::json(&end);
    }
    let found = Found { run: run.clone(), repo: Some(home.repo) };
    tell_of_best(&found, facts)?;
    if let Some(holdout) = holdout {
        terminal::show(&format!("\n{}", holdout.in_words(&example.shown, facts)))?;
    }
    terminal::show(&what_next(example, run))
}

fn tell_of_best(found: &Found, facts: &Facts) -> Result<(), Failure> {
    let node = facts.best();
    if node == NodeId::ROOT {
        terminal::show("\nThe search is done, and found nothing better than the root.\n\n")?;
        return best::run(found, Output::Text).map(drop);
    }
    terminal::show("\nThe search is done, and found a better program.\n\n")?;
    best::run(found, Output::Text)?;
    terminal::show("\nWhat it changed, all ideas together:\n\n")?;
    let item = ItemName { run: Some(RUN.to_owned()), id: Place::Node(node).to_string() };
    diff::run(found, &DiffArgs { item, root: true }, Output::Text).map(drop)
}

fn what_next(example: &Example, run: &RunDir) -> String {
    let (folder, report) = (&example.shown, run.root().join(REPORT));
    format!(
        "\n\
What was tried, kept and dropped, and why:  {}\n\
How such a repository is set up:            {}\n\
Look around:                                treebeam -C {folder} status (list, show e0002, log)\n\
On your own repository:                     treebeam init && treebeam doctor && treebeam run\n",
        report.display(),
        example.path.join("README.md").display(),
    )
}
