//! Chores of the project, called as `cargo xtask <chore>`. Holds nothing that the product needs.
//!
//! # Layout
//! [`workspace`] knows where things are and runs a command, [`tools`] sees to what the checks need,
//! and each chore has a file: [`checks`] (`test`), [`campaign`], [`counterparts`]. What the chores
//! know of the project's own sources is in the library, [`xtask`].

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a chore talks to the person who called it"
)]

mod campaign;
mod checks;
mod counterparts;
mod tools;
mod workspace;

use std::fs;
use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;
use xtask::architecture::{self, ARCHITECTURE_PATH, BEGIN_MARK, END_MARK};
use xtask::figures::SourceFigures;
use xtask::sources::read_sources;
use xtask::survey::Survey;

use crate::campaign::Campaign;
use crate::counterparts::CounterpartGroup;
use crate::workspace::{StepFailed, Workspace, step};

const HELP_TEXT: &str = "\
Chores of the treebeam project.

Usage: cargo xtask <chore>

Chores:
  test               set up what is needed, then check format, lints, dependencies and run all tests
  campaign [NAME]    run the longer campaigns, or the one named
  campaign --list    list the campaigns and how long each takes
  counterparts [GROUP…]
                     install the real servers, libraries and models that tests talk to, or some
                     of them (`servers`, `sdks`, `model`, `agents`, `browser`), and print the folder that has them
  bench [PART…]      run the benchmarks, or the parts named
  figures            print how many lines, types and functions the sources have, how they are
                     named, and which modules form cycles
  architecture       make the table of files in ARCHITECTURE.md from the heads of the files

Exit codes: 0 done, 1 failed, 2 wrong usage; a failed command's own exit code is passed on.
";

/// Chore that the command line asked for.
#[derive(Clone, Debug, PartialEq)]
enum Chore {
    Help,
    Test,
    ListCampaigns,
    Campaigns(&'static [Campaign]),
    Counterparts(Vec<CounterpartGroup>),
    Bench(Vec<String>),
    Figures,
    Architecture,
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some(chore) = parse(&args) else {
        eprintln!(
            "error: `{}` is not a chore\nhint: `cargo xtask --help` lists them",
            args.join(" ")
        );
        return ExitCode::from(2);
    };
    match run(chore) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(error.downcast_ref().map_or(1, StepFailed::exit_code))
        }
    }
}

fn parse(args: &[String]) -> Option<Chore> {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        [] | ["-h" | "--help" | "help"] | [_, "-h" | "--help"] => Some(Chore::Help),
        ["test"] => Some(Chore::Test),
        ["campaign"] => Some(Chore::Campaigns(campaign::campaigns())),
        ["campaign", "--list"] => Some(Chore::ListCampaigns),
        ["campaign", name] => campaign::named(name).map(Chore::Campaigns),
        ["counterparts"] => Some(Chore::Counterparts(CounterpartGroup::ALL.to_vec())),
        ["counterparts", ref names @ ..] => {
            let groups: Option<Vec<CounterpartGroup>> =
                names.iter().map(|name| CounterpartGroup::named(name)).collect();
            groups.map(Chore::Counterparts)
        }
        ["figures"] => Some(Chore::Figures),
        ["architecture"] => Some(Chore::Architecture),
        ["bench", ref parts @ ..] => {
            Some(Chore::Bench(parts.iter().map(|&part| part.to_owned()).collect()))
        }
        _ => None,
    }
}

fn run(chore: Chore) -> anyhow::Result<()> {
    match chore {
        Chore::Help => {
            print!("{HELP_TEXT}");
            Ok(())
        }
        Chore::ListCampaigns => {
            campaign::list();
            Ok(())
        }
        Chore::Test => checks::run(&Workspace::find()?),
        Chore::Campaigns(chosen) => campaign::run(&Workspace::find()?, chosen),
        Chore::Counterparts(groups) => {
            println!("{}", counterparts::install(&Workspace::find()?, &groups)?.display());
            Ok(())
        }
        Chore::Bench(parts) => bench(&Workspace::find()?, &parts),
        Chore::Figures => print_figures(&Workspace::find()?),
        Chore::Architecture => write_file_table(&Workspace::find()?),
    }
}

/// Prints the figures of the sources, or fails with the files that do not parse.
fn print_figures(workspace: &Workspace) -> anyhow::Result<()> {
    let survey = Survey::from_sources(&read_sources(&workspace.root)?);
    anyhow::ensure!(survey.parse_errors.is_empty(), "{}", survey.parse_errors.join("\n"));
    let table = SourceFigures::from_survey(&survey).to_string();
    std::io::stdout().write_all(table.as_bytes()).context("could not print the figures")
}

/// Brings the table of files in ARCHITECTURE.md up to date.
fn write_file_table(workspace: &Workspace) -> anyhow::Result<()> {
    let files = read_sources(&workspace.root)?;
    let Some(updated) = architecture::updated_document(&files)? else {
        anyhow::bail!(
            "{ARCHITECTURE_PATH} has no table of files\nhint: put the lines `{BEGIN_MARK}` and `{END_MARK}` where it belongs"
        );
    };
    let path = workspace.root.join(ARCHITECTURE_PATH);
    fs::write(&path, updated).with_context(|| format!("could not write `{}`", path.display()))
}

fn bench(workspace: &Workspace, parts: &[String]) -> anyhow::Result<()> {
    let mut bench = workspace.cargo();
    bench.args(["bench", "-p", "treebeam-benches", "--"]).args(parts);
    if parts.iter().any(|part| part == "agents") {
        let folder = counterparts::install(workspace, &[CounterpartGroup::Sdks])?;
        bench.env("TREEBEAM_COUNTERPARTS", folder);
    }
    step("bench", &mut bench)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: Option<&Chore>) {
        let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        assert_eq!(parse(&args).as_ref(), expected, "{line:?}");
    }

    #[test]
    fn the_command_line_is_read() {
        check("", Some(&Chore::Help));
        check("--help", Some(&Chore::Help));
        check("test --help", Some(&Chore::Help));
        check("test", Some(&Chore::Test));
        check("campaign", Some(&Chore::Campaigns(campaign::campaigns())));
        check("campaign corruption", campaign::named("corruption").map(Chore::Campaigns).as_ref());
        check("campaign --list", Some(&Chore::ListCampaigns));
        check("campaign --lsit", None);
        check("campaign corruptoin", None);
        check("bench", Some(&Chore::Bench(Vec::new())));
        check("bench agents", Some(&Chore::Bench(vec!["agents".to_owned()])));
        check("counterparts", Some(&Chore::Counterparts(CounterpartGroup::ALL.to_vec())));
        check("counterparts model", Some(&Chore::Counterparts(vec![CounterpartGroup::Model])));
        check("counterparts modle", None);
        check("figures", Some(&Chore::Figures));
        check("architecture", Some(&Chore::Architecture));
        check("tset", None);
        check("test everything", None);
    }
}
