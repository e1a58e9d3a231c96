//! Ctrl-C while a run goes on: the first asks the run to pause where it can be resumed, the second ends the program.
//! Other commands do not listen, and end as any program does.

use crate::failure::{Exit, Failure};
use crate::progress;
use crate::way_on::WayOn;
use serde_json::Value;
use std::process;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;
use treebeam_core::id::RunId;
use treebeam_edge::interrupt;
use treebeam_edge::process::end_all;
use treebeam_run::port;

/// How long a message may take: a terminal that has stopped must not keep anybody waiting.
const PATIENCE: Duration = Duration::from_millis(200);

static ASKED: AtomicBool = AtomicBool::new(false);
static WAY_ON: OnceLock<String> = OnceLock::new();
static SAID: OnceLock<WayOn> = OnceLock::new();

/// Listens from now on.
pub(crate) fn listen() -> Result<(), Failure> {
    let mut asked_before = false;
    interrupt::listen(move || {
        if asked_before {
            stop_now();
        }
        asked_before = true;
        say("stopping after the steps that are running; Ctrl-C again stops at once".to_owned());
        ASKED.store(true, Ordering::SeqCst);
    })?;
    Ok(())
}

/// Says what goes on with what is begun now, where that is not `treebeam resume`.
pub(crate) fn goes_on_by(command: String) {
    WAY_ON.get_or_init(|| command);
}

/// Says how what is begun now was asked for.
pub(crate) fn was_asked_for(said: WayOn) {
    SAID.get_or_init(|| said);
}

/// Says which run is to be resumed after a second Ctrl-C, and tells the command that does it.
pub(crate) fn is_about(run: &RunId) -> &'static str {
    WAY_ON.get_or_init(|| SAID.get_or_init(WayOn::default).command(run))
}

/// The command that goes on with a run that has stopped, with these settings other than those that were said.
pub(crate) fn way_on_with(run: &RunId, other: &Value) -> String {
    SAID.get_or_init(WayOn::default).command_with(run, other)
}

/// What the loop asks.
pub(crate) struct CtrlC;

impl port::Interrupt for CtrlC {
    fn is_asked_for(&self) -> bool {
        ASKED.load(Ordering::SeqCst)
    }
}

/// Whatever is going on, it is as if the power had been cut: what is on disk can be resumed.
fn stop_now() -> ! {
    end_all();
    say(WAY_ON.get().map_or_else(
        || "stopped".to_owned(),
        |way_on| format!("stopped; `{way_on}` goes on from what is on disk"),
    ));
    #[expect(clippy::exit, reason = "nothing that is still going on may be waited for")]
    process::exit(Exit::Interrupted.code().into())
}

/// Says it without waiting for a terminal that does not take it.
fn say(text: String) {
    let (done, is_done) = channel();
    let speak = move || {
        progress::interject(&text);
        done.send(())
    };
    if thread::Builder::new().spawn(speak).is_ok() {
        let _ = is_done.recv_timeout(PATIENCE);
    }
}
