//! Handles Ctrl-C during a run: the first pauses it where it can be resumed, the second exits.
//!
//! Commands that install no handler end on Ctrl-C as any program does.

use crate::failure::{CommandExit, CommandFailure};
use crate::resume_command::ResumeCommand;
use crate::terminal;
use serde_json::Value;
use std::process;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;
use treebeam_core::id::RunId;
use treebeam_process::end_all;
use treebeam_process::interrupt;
use treebeam_run::port;

/// Maximum time for printing a message: a terminal that has stopped must not delay the exit.
const MAX_MESSAGE_WAIT: Duration = Duration::from_millis(200);

static STOP_REQUESTED: AtomicBool = AtomicBool::new(false);
static RESUME_TEXT: OnceLock<String> = OnceLock::new();
static RESUME_COMMAND: OnceLock<ResumeCommand> = OnceLock::new();

/// Installs the Ctrl-C handler.
pub(crate) fn listen_for_interrupts() -> Result<(), CommandFailure> {
    let mut asked_before = false;
    interrupt::listen_for_interrupts(move || {
        if asked_before {
            stop_now();
        }
        asked_before = true;
        print_with_timeout(
            "stopping after the steps that are running; Ctrl-C again stops at once".to_owned(),
        );
        STOP_REQUESTED.store(true, Ordering::SeqCst);
    })?;
    Ok(())
}

/// Sets the command that continues the current work, where that is not `treebeam resume`.
pub(crate) fn set_resume_text(command: String) {
    RESUME_TEXT.get_or_init(|| command);
}

/// Sets the resume command that matches the flags of this call.
pub(crate) fn set_resume_command(command: ResumeCommand) {
    RESUME_COMMAND.get_or_init(|| command);
}

/// Fixes the run to be resumed after a second Ctrl-C, and returns the command that does it.
pub(crate) fn resume_text_for(run: &RunId) -> &'static str {
    RESUME_TEXT.get_or_init(|| RESUME_COMMAND.get_or_init(ResumeCommand::default).render_for(run))
}

/// Returns the command that resumes a stopped run with some settings replaced.
pub(crate) fn resume_text_with(run: &RunId, other: &Value) -> String {
    RESUME_COMMAND.get_or_init(ResumeCommand::default).render_with(run, other)
}

/// Interrupt port of the run loop: reports the first Ctrl-C.
pub(crate) struct CtrlC;

impl port::Interrupt for CtrlC {
    fn is_asked_for(&self) -> bool {
        STOP_REQUESTED.load(Ordering::SeqCst)
    }
}

/// Kills all child processes and exits, as if the power had been cut: what is on disk can be
/// resumed.
fn stop_now() -> ! {
    end_all();
    print_with_timeout(RESUME_TEXT.get().map_or_else(
        || "stopped".to_owned(),
        |resume_command| format!("stopped; `{resume_command}` goes on from what is on disk"),
    ));
    #[expect(clippy::exit, reason = "nothing that is still going on may be waited for")]
    process::exit(CommandExit::Interrupted.code().into())
}

/// Prints a line, giving up after [`MAX_MESSAGE_WAIT`] if the terminal blocks.
fn print_with_timeout(text: String) {
    let (done, is_done) = channel();
    let speak = move || {
        terminal::print_above_bar(&text);
        done.send(())
    };
    if thread::Builder::new().spawn(speak).is_ok() {
        let _ = is_done.recv_timeout(MAX_MESSAGE_WAIT);
    }
}
