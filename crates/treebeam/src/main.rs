//! treebeam: a beam search over code states that runs by itself overnight.
//!
//! # Layout
//! `cli` is the command line, `command` has one file per command, `config` is the configuration
//! with the origin of each value, `run_settings` keeps a run's fixed settings on resume,
//! `config_consent` asks about what a file that is not committed names, `dotenv` finds `.env`
//! files, `role_agents` the agents and their keys, `user_ideas` reads the user's own ideas,
//! `run_location` finds runs, `world` puts their ports together, `progress` shows a run while it
//! goes on, `interrupt` is Ctrl-C, `terminal` prints, and `failure` is how a command fails:
//! message, hint, exit code.

mod cli;
mod command;
mod config;
mod config_consent;
mod dotenv;
mod estimate;
mod failure;
mod interrupt;
mod preflight;
mod program;
mod progress;
mod redo;
mod resume_command;
mod role_agents;
mod run_location;
mod run_settings;
mod terminal;
mod user_ideas;
mod world;

use clap::Parser as _;
use failure::CommandExit;
use std::panic;
use std::process::ExitCode;
use treebeam_process::interrupt as interrupt_signals;

fn main() -> ExitCode {
    treebeam_process::share_memory();
    // Where that cannot be, the signal ends the program, as it ends others.
    let _ = interrupt_signals::survive_file_size_limit();
    panic::set_hook(Box::new(terminal::print_bug));
    let ended = panic::catch_unwind(|| match command::run_command(cli::CliArgs::parse()) {
        Ok(exit) => exit,
        Err(failure) if failure.is_interruption() => {
            terminal::print_line("interrupted; what is on record can be resumed");
            CommandExit::Interrupted
        }
        Err(failure) => {
            terminal::print_error(&failure);
            failure.exit()
        }
    });
    ended.unwrap_or(CommandExit::Failed).into()
}
