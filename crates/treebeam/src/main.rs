//! treebeam: a beam search over code states that runs by itself overnight.
//!
//! # Layout
//! `cli` is the command line, `command` has one file per command, `config` is the configuration with the origin of each
//! value, `settings` keeps a run's meaning on resume, `uncommitted` asks about what a file that is not committed names, `dotenv` finds `.env` files, `crew` the agents and their keys, `given` reads the user's own ideas, `wiring` finds runs, `world` puts their ports together,
//! `progress` shows a run while it goes on, `interrupt` is Ctrl-C, `terminal` prints, and `failure` is how a command
//! fails: message, hint, exit code.

mod again;
mod cli;
mod command;
mod config;
mod crew;
mod dotenv;
mod estimate;
mod failure;
mod given;
mod interrupt;
mod preflight;
mod program;
mod progress;
mod settings;
mod terminal;
mod uncommitted;
mod way_on;
mod wiring;
mod world;

use clap::Parser as _;
use failure::Exit;
use std::panic;
use std::process::ExitCode;
use treebeam_edge::interrupt as interrupt_signals;
use treebeam_edge::process;

fn main() -> ExitCode {
    process::share_memory();
    // Where that cannot be, the signal ends the program, as it ends others.
    let _ = interrupt_signals::survive_file_size_limit();
    panic::set_hook(Box::new(terminal::bug));
    let ended = panic::catch_unwind(|| match command::run(cli::Cli::parse()) {
        Ok(exit) => exit,
        Err(failure) if failure.is_interruption() => {
            terminal::say("interrupted; what is on record can be resumed");
            Exit::Interrupted
        }
        Err(failure) => {
            terminal::error(&failure);
            failure.exit()
        }
    });
    ended.unwrap_or(Exit::Failed).into()
}
