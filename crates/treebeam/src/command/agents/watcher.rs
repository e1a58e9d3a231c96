//! Tells somebody who waits at the terminal what goes on behind the door.

use crate::terminal;
use std::time::Duration;
use treebeam_edge::agent::wait::{Observer, Wait};

/// Shorter waits are not worth a word.
const WORTH_A_WORD: Duration = Duration::from_secs(2);

/// Says all that is worth it on standard error.
pub(super) struct Watcher;

impl Observer for Watcher {
    fn waits(&self, wait: &Wait<'_>) {
        let Wait { role, why, length, until, .. } = wait;
        if *length >= WORTH_A_WORD {
            let until = until.strftime("%H:%M:%S");
            terminal::note(&format!(
                "{role} waits {} s, until {until} UTC: {why}",
                length.as_secs()
            ));
        }
    }
    fn note(&self, text: &str) {
        terminal::note(text);
    }
    /// Ctrl-C ends these commands at once.
    fn wants_to_stop(&self) -> bool {
        false
    }
}
