//! Reports agent calls to a user who waits at the terminal.

use crate::terminal;
use std::time::Duration;
use treebeam_agent::retry_timer::{DoorObserver, QuestionWait};

/// Shortest wait that is reported.
const MIN_REPORTED_WAIT: Duration = Duration::from_secs(2);

/// Observer that prints notable events to standard error.
pub(super) struct TerminalObserver;

impl DoorObserver for TerminalObserver {
    fn on_wait(&self, wait: &QuestionWait<'_>) {
        let QuestionWait { role, why, length, until, .. } = wait;
        if *length >= MIN_REPORTED_WAIT {
            let until = until.strftime("%H:%M:%S");
            terminal::print_note(&format!(
                "{role} waits {} s, until {until} UTC: {why}",
                length.as_secs()
            ));
        }
    }
    fn on_note(&self, text: &str) {
        terminal::print_note(text);
    }
    /// Returns false: Ctrl-C ends these commands at once.
    fn wants_to_stop(&self) -> bool {
        false
    }
}
