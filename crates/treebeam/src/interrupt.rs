//! Ctrl-C while a run goes on: the first asks the run to pause where it can be resumed, the second ends the program.
//! Other commands do not listen, and end as any program does.

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

/// How long a message may take: a terminal that has stopped must not keep anybody waiting.
const MAX_MESSAGE_WAIT: Duration = Duration::from_millis(200);

static STOP_REQUESTED: AtomicBool = AtomicBool::new(false);
static RESUME_TEXT: OnceLock<String> = OnceLock::new();
static RESUME_COMMAND: OnceLock<ResumeCommand> = OnceLock::new();

/// Listens from now on.
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

/// Says what goes on with what is begun now, where that is not `treebeam resume`.
pub(crate) fn set_resume_text(command: String) {
    RESUME_TEXT.get_or_init(|| command);
}

/// Says how what is begun now was asked for.
pub(crate) fn set_resume_command(said: ResumeCommand) {
    RESUME_COMMAND.get_or_init(|| said);
}

/// Says which run is to be resumed after a second Ctrl-C, and tells the command that does it.
pub(crate) fn resume_text_for(run: &RunId) -> &'static str {
    RESUME_TEXT.get_or_init(|| RESUME_COMMAND.get_or_init(ResumeCommand::default).render_for(run))
}

/// The command that goes on with a run that has stopped, with these settings other than those that were said.
pub(crate) fn resume_text_with(run: &RunId, other: &Value) -> String {
    RESUME_COMMAND.get_or_init(ResumeCommand::default).render_with(run, other)
}

/// What the loop asks.
pub(crate) struct CtrlC;

impl port::Interrupt for CtrlC {
    fn is_asked_for(&self) -> bool {
        STOP_REQUESTED.load(Ordering::SeqCst)
    }
}

/// Whatever is going on, it is as if the power had been cut: what is on disk can be resumed.
fn stop_now() -> ! {
    end_all();
    print_with_timeout(RESUME_TEXT.get().map_or_else(
        || "stopped".to_owned(),
        |resume_command| format!("stopped; `{resume_command}` goes on from what is on disk"),
    ));
    #[expect(clippy::exit, reason = "nothing that is still going on may be waited for")]
    process::exit(CommandExit::Interrupted.code().into())
}

/// Says it without waiting for a terminal that does not take it.
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
