//! Prints to the terminal: requested and machine-readable output on stdout, the rest on stderr.
//!
//! A reader that has closed its end never ends a run.

use crate::failure::CommandFailure;
use indicatif::ProgressBar;
use serde::Serialize;
use std::io::{self, IsTerminal as _, Write as _};
use std::panic::PanicHookInfo;
use std::sync::OnceLock;
use treebeam_store::OpenNote;
use treebeam_view::safe_text::escape_controls;
use treebeam_view::score::ColourMode;

/// Output format of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputFormat {
    /// As text for a person.
    Text,
    /// As JSON for a program.
    Json,
}

/// The progress bar on the terminal, for messages that come from outside the loop.
static PROGRESS_BAR: OnceLock<ProgressBar> = OnceLock::new();

/// Prints a line of its own from another thread, whatever stands on the terminal.
pub(crate) fn print_above_bar(text: &str) {
    match PROGRESS_BAR.get() {
        Some(bar) => bar.suspend(|| print_line(text)),
        None if io::stderr().is_terminal() => print_line(&format!("\n{text}")),
        None => print_line(text),
    }
}

/// Prints a note from another thread.
pub(crate) fn print_note_above_bar(text: &str) {
    print_above_bar(&format!("note: {text}"));
}

/// Returns the one progress bar that there is, made at the first call.
pub(crate) fn progress_bar(new: impl FnOnce() -> ProgressBar) -> ProgressBar {
    PROGRESS_BAR.get_or_init(new).clone()
}

/// Prints an error, its causes, and the hint.
pub(crate) fn print_error(failure: &CommandFailure) {
    let mut label = "error:";
    for line in failure.chain() {
        print_line(&format!("{label} {line}"));
        label = "caused by:";
    }
    if let Some(advice) = failure.advice() {
        print_hint(advice);
    }
}

/// Prints a hint on what to do next.
pub(crate) fn print_hint(text: &str) {
    print_line(&format!("hint: {text}"));
}

/// Prints a panic as a bug of treebeam.
pub(crate) fn print_bug(panic: &PanicHookInfo<'_>) {
    print_line(&format!("error: treebeam has a bug: {panic}"));
    print_line("hint: nothing that was recorded is lost; please report this, and resume the run");
}

/// Prints a note.
pub(crate) fn print_note(text: &str) {
    print_line(&format!("note: {text}"));
}

/// Prints the notes of opening a run.
pub(crate) fn print_notes(notes: &[OpenNote]) {
    for text in notes {
        print_note(&text.to_string());
    }
}

/// Prints a line to standard error. Its text may come from any file: control characters are
/// escaped.
pub(crate) fn print_line(text: &str) {
    drop(writeln!(io::stderr().lock(), "{}", escape_controls(text)));
}

/// Returns true if a user can be asked: standard input and error are terminals.
pub(crate) fn is_attended() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks a yes-or-no question; without a terminal the answer is no.
pub(crate) fn confirm(question: &str) -> bool {
    if !is_attended() {
        return false;
    }
    drop(write!(io::stderr().lock(), "{question} [y/N] "));
    let mut answer = String::new();
    let heard = io::stdin().read_line(&mut answer).is_ok();
    heard && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

/// Returns the colour mode of standard output: on for a terminal, unless `NO_COLOR` or `TERM=dumb`
/// is set.
pub(crate) fn stdout_colour() -> ColourMode {
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    if io::stdout().is_terminal() && !unwanted && !dumb { ColourMode::On } else { ColourMode::Off }
}

/// Prints the requested text to standard output.
pub(crate) fn print_text(text: &str) -> Result<(), CommandFailure> {
    print_bytes(text.as_bytes()).map(drop)
}

/// State of the reader of standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputReader {
    There,
    Gone,
}

/// Prints the requested bytes to standard output, and returns whether they are still read.
pub(crate) fn print_bytes(bytes: &[u8]) -> Result<OutputReader, CommandFailure> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Ok(()) => Ok(OutputReader::There),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(OutputReader::Gone),
        Err(error) => Err(CommandFailure::from_output_error(error)),
    }
}

/// Prints the requested value to standard output as one line of JSON.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), CommandFailure> {
    let mut line = serde_json::to_string(value)?;
    line.push('\n');
    print_text(&line)
}
