//! treebeam: a beam search over code states that runs by itself overnight.
//!
//! # Layout
//! `cli` is the command line, `command` has one file per command, `settings` turns flags into what the run means and how
//! far it goes, `wiring` puts the ports together, `progress` shows a run while it goes on, `terminal` prints, and
//! `failure` is how a command fails: message, hint, exit code.

mod cli;
mod command;
mod failure;
mod progress;
mod settings;
mod terminal;
mod wiring;

use clap::Parser as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    match command::run(cli) {
        Ok(code) => code.into(),
        Err(failure) => {
            terminal::error(&failure);
            failure.exit().into()
        }
    }
}
