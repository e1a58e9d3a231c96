//! treebeam: a beam search over code states that runs by itself overnight.
//!
//! # Layout
//! [`mod@cli`] is the command line, [`mod@command`] has one module for each command, [`mod@config`]
//! is the configuration with the origin of each value. [`mod@run_settings`] keeps a run's fixed
//! settings on resume, [`mod@config_consent`] asks for consent to an uncommitted configuration
//! file, [`mod@dotenv`] finds `.env` files, [`mod@role_agents`] resolves agents and their keys,
//! [`mod@user_ideas`] reads the user's own ideas, [`mod@run_location`] finds runs, and
//! [`mod@world`] builds their ports. [`mod@preflight`] checks what a run needs, with the cost from
//! [`mod@estimate`] and programs found by [`mod@program`]; [`mod@redo`] and [`mod@resume_command`]
//! are about continuing a run. [`mod@progress`] shows a run while it goes on, [`mod@interrupt`]
//! handles Ctrl-C, [`mod@terminal`] prints, and [`mod@failure`] is the error of a command: message,
//! hint, exit code.

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
    // Without this handler the signal ends the program, as it ends others.
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
