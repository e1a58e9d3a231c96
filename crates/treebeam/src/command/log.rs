//! `treebeam log`: a run's journal in words, or as the run prints it with `--json`. Reads only, also while others write.

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

/// How often a journal is looked at that may grow.
const LOG_FOLLOW_INTERVAL: Duration = Duration::from_millis(200);
/// After how many looks at a journal that did not grow it is asked whether anybody writes to it.
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

/// The last line, as the run itself prints it. That nobody is at it can be seen.
fn print_end_line(run: &RunDir) -> Result<(), CommandFailure> {
    let state = treebeam_store::open_to_read(run)?.state;
    let is_left = state.stop_reason().is_none() && lease::describe_owner(run).is_none();
    terminal::print_json(&if is_left {
        resume::render_end_json(&state, resume::interruption_reason(&state))
    } else {
        resume::render_end_json(&state, state.stop_reason())
    })
}

/// A journal that is being shown.
struct JournalPrinter<'a> {
    run: &'a RunDir,
    reader: JournalReader,
    output: OutputFormat,
    /// How many events.
    shown: u64,
    /// Whether the run is over, as far as the journal was read; none where no event says so.
    stopped: Option<bool>,
}

impl<'a> JournalPrinter<'a> {
    fn open(run: &'a RunDir, output: OutputFormat) -> Result<Self, CommandFailure> {
        let path = run.journal_path();
        if !path.is_file() {
            // Says whether there is no run, or only no journal.
            treebeam_store::open_to_read(run)?;
        }
        Ok(Self { run, reader: JournalReader::open(&path)?, output, shown: 0, stopped: None })
    }

    /// Shows what is there.
    fn show_available(&mut self) -> Result<OutputReader, CommandFailure> {
        while let Some(record) = self.reader.next_record()? {
            if self.show_record(&record)? == OutputReader::Gone {
                return Ok(OutputReader::Gone);
            }
        }
        Ok(OutputReader::There)
    }

    /// Shows what is there and what comes, until the run is over.
    fn follow_to_end(&mut self) -> Result<OutputReader, CommandFailure> {
        let (mut idle, mut told) = (0_u32, false);
        loop {
            let before = self.shown;
            if self.show_available()? == OutputReader::Gone {
                return Ok(OutputReader::Gone);
            }
            idle = if self.shown == before { idle + 1 } else { 0 };
            // Who runs it is asked now and then only: for a moment, the question is in a runner's way.
            let ask = self.stopped == Some(true)
                || idle % POLLS_PER_RUNNER_CHECK == POLLS_PER_RUNNER_CHECK - 1;
            if ask && lease::describe_owner(self.run).is_none() {
                // What was written between the last look and the end of its writer.
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
            // Either may have opened a run again that was over.
            self.stopped = None;
        }
        let line = match self.output {
            OutputFormat::Json => serde_json::to_string(&record.event)? + "\n",
            // Digests are for `validate`: no news for a person who reads the log.
            OutputFormat::Text if matches!(record.event, Event::FilesRecorded(_)) => {
                return Ok(OutputReader::There);
            }
            OutputFormat::Text => treebeam_view::log::format_log_line(record.t, &record.event),
        };
        terminal::print_bytes(line.as_bytes())
    }
}
