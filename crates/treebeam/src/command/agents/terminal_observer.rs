//! Tells somebody who waits at the terminal what goes on behind the door.

use crate::terminal;
use std::time::Duration;
use treebeam_agent::retry_timer::{DoorObserver, QuestionWait};

/// Shorter waits are not worth a word.
const MIN_REPORTED_WAIT: Duration = Duration::from_secs(2);

/// Says all that is worth it on standard error.
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
    /// Ctrl-C ends these commands at once.
    fn wants_to_stop(&self) -> bool {
        false
    }
}
