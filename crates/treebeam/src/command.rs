//! The commands: one file each.

mod chosen;
mod diff;
mod list;
mod log;
mod pages;
mod report;
mod resume;
mod run;
mod schema;
mod score;
mod show;
mod status;
mod validate;

use crate::cli::{Cli, Command, ConfigFlag};
use crate::config::Config;
use crate::failure::{Exit, Failure};
use crate::interrupt;
use crate::wiring::{Found, Home};
use std::path::PathBuf;

/// How a command shows what it found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// As text for a person.
    Text,
    /// As JSON for a program.
    Json,
}

/// Does what the command line asks for.
pub(crate) fn run(cli: Cli) -> Result<Exit, Failure> {
    let here = cli.directory.unwrap_or_else(|| PathBuf::from("."));
    let output = if cli.json { Output::Json } else { Output::Text };
    let config = |flag: &ConfigFlag| Config::load(&here, flag.config.as_deref());
    let find = |name: Option<&str>| Found::find(&here, name);
    match cli.command {
        Command::Run(args) if args.validate_only => {
            validate::run(&find(args.run_id.as_deref())?, output)
        }
        Command::Run(args) if args.report_only => {
            report::run(&find(args.run_id.as_deref())?, output)
        }
        Command::Run(args) => {
            interrupt::listen()?;
            run::run(&Home::find(&here)?, &config(&args.config)?, &args, output)
        }
        Command::Resume(args) => {
            interrupt::listen()?;
            resume::run(&Home::find(&here)?, &config(&args.config)?, &args, output)
        }
        Command::Score(args) => score::run(&here, &args, output),
        Command::Status(args) => status::run(&find(args.run.as_deref())?, output),
        Command::List => list::run(&Home::find(&here)?, output),
        Command::Show(args) => show::run(&find(args.run.as_deref())?, &args.id, output),
        Command::Diff(args) => diff::run(&find(args.item.run.as_deref())?, &args, output),
        Command::Log(args) => log::run(&find(args.run.run.as_deref())?, &args, output),
        Command::Report(args) => report::run(&find(args.run.as_deref())?, output),
        Command::Validate(args) => validate::run(&find(args.run.as_deref())?, output),
        Command::Completions { shell } => pages::completions(shell, output),
        Command::Schema { name } => schema::run(name.as_deref(), output),
        Command::Man { folder } => pages::man(&here, folder.as_deref(), output),
    }
}
