//! `treebeam log`: prints a run's journal as text, or as JSON lines. Reads only.
//!
//! It can run while another process writes the journal.

use super::{OutputFormat, resume};
use crate::cli::LogArgs;
use crate::failure::{CommandExit, CommandFailure};
use crate::run_location::RunLocation;
use crate::terminal::{self, OutputReader};
use std::thread;
use std::time::Duration;
use treebeam_core::event::Event;
use treebeam_store::journal::{JournalReader, JournalRecord};
use treebeam_store::{RunDir, lease};

/// Interval between polls of a journal that may grow.
const LOG_FOLLOW_INTERVAL: Duration = Duration::from_millis(200);
/// Number of polls without news after which the run's process is checked.
const POLLS_PER_RUNNER_CHECK: u32 = 5;

pub(super) fn run_log(
    found: &RunLocation,
    args: &LogArgs,
    output: OutputFormat,
) -> Result<CommandExit, CommandFailure> {
    let mut log = JournalPrinter::open(&found.run, output)?;
    let audience = if args.follow { log.follow_to_end()? } else { log.show_available()? };
    if audience == OutputReader::There && output == OutputFormat::Json {
        print_end_line(&found.run)?;
    }
    Ok(CommandExit::Done)
}

/// Prints the last line, as the run itself prints it. An unfinished run without a process counts as
/// interrupted.
fn print_end_line(run: &RunDir) -> Result<(), CommandFailure> {
    let state = treebeam_store::open_to_read(run)?.state;
    let is_left = state.stop_reason().is_none() && lease::describe_owner(run).is_none();
    terminal::print_json(&if is_left {
        resume::render_end_json(&state, resume::interruption_reason(&state))
    } else {
        resume::render_end_json(&state, state.stop_reason())
    })
}

/// A journal that is being printed.
struct JournalPrinter<'a> {
    run: &'a RunDir,
    reader: JournalReader,
    output: OutputFormat,
    /// Number of printed events.
    shown: u64,
    /// True if the run is over, as far as the journal was read; `None` if no event says so.
    stopped: Option<bool>,
}

impl<'a> JournalPrinter<'a> {
    fn open(run: &'a RunDir, output: OutputFormat) -> Result<Self, CommandFailure> {
        let path = run.journal_path();
        if !path.is_file() {
            // Fails with an error if there is no run, and not only no journal.
            treebeam_store::open_to_read(run)?;
        }
        Ok(Self { run, reader: JournalReader::open(&path)?, output, shown: 0, stopped: None })
    }

    /// Prints the available events.
    fn show_available(&mut self) -> Result<OutputReader, CommandFailure> {
        while let Some(record) = self.reader.next_record()? {
            if self.show_record(&record)? == OutputReader::Gone {
                return Ok(OutputReader::Gone);
            }
        }
        Ok(OutputReader::There)
    }

    /// Prints the available and coming events, until the run is over.
    fn follow_to_end(&mut self) -> Result<OutputReader, CommandFailure> {
        let (mut idle, mut told) = (0_u32, false);
        loop {
            let before = self.shown;
            if self.show_available()? == OutputReader::Gone {
                return Ok(OutputReader::Gone);
            }
            idle = if self.shown == before { idle + 1 } else { 0 };
            // The process is checked only now and then: the check blocks a starting process for a
            // moment.
            let ask = self.stopped == Some(true)
                || idle % POLLS_PER_RUNNER_CHECK == POLLS_PER_RUNNER_CHECK - 1;
            if ask && lease::describe_owner(self.run).is_none() {
                // Events written between the last poll and the end of their writer.
                self.reader.resume_reading()?;
                if self.show_available()? == OutputReader::Gone {
                    return Ok(OutputReader::Gone);
                }
                if self.is_run_over()? {
                    return Ok(OutputReader::There);
                }
                if !told {
                    terminal::print_note("nobody runs this run: waiting for somebody to resume it");
                }
                told = true;
            }
            thread::sleep(LOG_FOLLOW_INTERVAL);
            self.reader.resume_reading()?;
        }
    }

    fn is_run_over(&mut self) -> Result<bool, CommandFailure> {
        if let Some(stopped) = self.stopped {
            return Ok(stopped);
        }
        let stopped = treebeam_store::open_to_read(self.run)?.state.stop_reason().is_some();
        self.stopped = Some(stopped);
        Ok(stopped)
    }

    fn show_record(&mut self, record: &JournalRecord) -> Result<OutputReader, CommandFailure> {
        self.shown += 1;
        if matches!(record.event, Event::Stopped { .. }) {
            self.stopped = Some(true);
        } else if matches!(record.event, Event::RunStarted(_)) {
            self.stopped = Some(false);
        } else if matches!(record.event, Event::SettingsChanged { .. } | Event::SentBack(_)) {
            // Both events may have reopened a run that was over.
            self.stopped = None;
        }
        let line = match self.output {
            OutputFormat::Json => serde_json::to_string(&record.event)? + "\n",
            // Digests are for `validate` and omitted from the text.
            OutputFormat::Text if matches!(record.event, Event::FilesRecorded(_)) => {
                return Ok(OutputReader::There);
            }
            OutputFormat::Text => treebeam_view::log::format_log_line(record.t, &record.event),
        };
        terminal::print_bytes(line.as_bytes())
    }
}
