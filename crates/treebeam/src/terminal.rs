//! What is printed, and where: what a person asked to see and machine-readable output on standard output, everything else
//! on standard error.

#![expect(clippy::print_stderr, reason = "the one place that talks to a person")]

use crate::failure::Failure;
use serde::Serialize;
use std::io::{self, Write as _};

/// An error, why it happened, and what to do.
pub(crate) fn error(failure: &Failure) {
    let mut label = "error:";
    for line in failure.chain() {
        eprintln!("{label} {line}");
        label = "caused by:";
    }
    if let Some(hint) = failure.advice() {
        eprintln!("hint: {hint}");
    }
}

/// Something to know.
pub(crate) fn note(text: &str) {
    eprintln!("note: {text}");
}

/// Some of them.
pub(crate) fn notes(texts: &[String]) {
    for text in texts {
        note(text);
    }
}

/// A line about what goes on.
pub(crate) fn say(text: &str) {
    eprintln!("{text}");
}

/// What was asked for, as text.
pub(crate) fn show(text: &str) -> io::Result<()> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// What was asked for, as one line of JSON.
pub(crate) fn json(value: &impl Serialize) -> Result<(), Failure> {
    let mut line = serde_json::to_string(value)?;
    line.push('\n');
    Ok(show(&line)?)
}
