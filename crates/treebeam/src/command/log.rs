//! `treebeam log`: a run's journal in words, or as the run prints it with `--json`. Reads only, also while others write.

use super::{Output, resume};
use crate::cli::LogArgs;
use crate::failure::{Exit, Failure};
use crate::terminal::{self, Audience};
use crate::wiring::Found;
use std::thread;
use std::time::Duration;
use treebeam_core::event::Event;
use treebeam_edge::store::journal::{Reader, Record};
use treebeam_edge::store::{self, RunDir, lease};

/// How often a journal is looked at that may grow.
const GLANCE: Duration = Duration::from_millis(200);
/// After how many looks at a journal that did not grow it is asked whether anybody writes to it.
const PATIENCE: u32 = 5;

pub(super) fn run(found: &Found, args: &LogArgs, output: Output) -> Result<Exit, Failure> {
    let mut log = Log::open(&found.run, output)?;
    let audience = if args.follow { log.follow()? } else { log.rest()? };
    if audience == Audience::There && output == Output::Json {
        end(&found.run)?;
    }
    Ok(Exit::Done)
}

/// The last line, as the run itself prints it. That nobody is at it can be seen.
fn end(run: &RunDir) -> Result<(), Failure> {
    let state = store::open_to_read(run)?.state;
    let is_left = state.stop_reason().is_none() && lease::runner(run).is_none();
    terminal::json(&if is_left {
        resume::end(&state, resume::left(&state))
    } else {
        resume::end(&state, state.stop_reason())
    })
}

/// A journal that is being shown.
struct Log<'a> {
    run: &'a RunDir,
    reader: Reader,
    output: Output,
    /// How many events.
    shown: u64,
    /// Whether the run is over, as far as the journal was read; none where no event says so.
    stopped: Option<bool>,
}

impl<'a> Log<'a> {
    fn open(run: &'a RunDir, output: Output) -> Result<Self, Failure> {
        let path = run.journal();
        if !path.is_file() {
            // Says whether there is no run, or only no journal.
            store::open_to_read(run)?;
        }
        Ok(Self { run, reader: Reader::open(&path)?, output, shown: 0, stopped: None })
    }

    /// Shows what is there.
    fn rest(&mut self) -> Result<Audience, Failure> {
        while let Some(record) = self.reader.next_record()? {
            if self.show(&record)? == Audience::Gone {
                return Ok(Audience::Gone);
            }
        }
        Ok(Audience::There)
    }

    /// Shows what is there and what comes, until the run is over.
    fn follow(&mut self) -> Result<Audience, Failure> {
        let (mut idle, mut told) = (0_u32, false);
        loop {
            let before = self.shown;
            if self.rest()? == Audience::Gone {
                return Ok(Audience::Gone);
            }
            idle = if self.shown == before { idle + 1 } else { 0 };
            // Who runs it is asked now and then only: for a moment, the question is in a runner's way.
            let ask = self.stopped == Some(true) || idle % PATIENCE == PATIENCE - 1;
            if ask && lease::runner(self.run).is_none() {
                // What was written between the last look and the end of its writer.
                self.reader.look_again()?;
                if self.rest()? == Audience::Gone {
                    return Ok(Audience::Gone);
                }
                if self.is_over()? {
                    return Ok(Audience::There);
                }
                if !told {
                    terminal::note("nobody runs this run: waiting for somebody to resume it");
                }
                told = true;
            }
            thread::sleep(GLANCE);
            self.reader.look_again()?;
        }
    }

    fn is_over(&mut self) -> Result<bool, Failure> {
        if let Some(stopped) = self.stopped {
            return Ok(stopped);
        }
        let stopped = store::open_to_read(self.run)?.state.stop_reason().is_some();
        self.stopped = Some(stopped);
        Ok(stopped)
    }

    fn show(&mut self, record: &Record) -> Result<Audience, Failure> {
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
            Output::Json => serde_json::to_string(&record.event)? + "\n",
            // Digests are for `validate`: no news for a person who reads the log.
            Output::Text if matches!(record.event, Event::FilesRecorded(_)) => {
                return Ok(Audience::There);
            }
            Output::Text => treebeam_view::log::line(record.t, &record.event),
        };
        terminal::offer(line.as_bytes())
    }
}
