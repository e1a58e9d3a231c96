//! Follows a run that another process may be running: keeps a state up to date with the run's
//! journal. Takes no lock, writes nothing, and does not know whether a process runs the run.

use super::error::StoreError;
use super::journal::{JournalReader, JournalRecord};
use super::layout::RunDir;
use super::lease::ForcePolicy;
use super::loading::{LoadedRun, load_run};
use std::sync::Arc;
use treebeam_core::state::State;

/// Length of the journal's end that is read for the latest records.
const RECENT_TAIL_BYTES: u64 = 1024 * 1024;

/// A run and its state, as far as it is on disk.
#[derive(Debug)]
pub struct RunFollower {
    run: RunDir,
    state: Arc<State>,
    /// Number of the last event that is in the state.
    seq: u64,
    reader: JournalReader,
}

/// Result of a look at the journal.
#[derive(Debug)]
pub enum JournalUpdate {
    /// The events recorded since the last look, in order; may be empty.
    Appended(Vec<JournalRecord>),
    /// The journal is another file: the run continued from a copy of it, and was reloaded.
    Reloaded,
}

impl RunFollower {
    /// Loads a run as it is now.
    ///
    /// # Errors
    /// When there is no run, or it is damaged.
    pub fn open(run: &RunDir) -> Result<Self, StoreError> {
        let LoadedRun { state, tip, .. } = load_run(run, ForcePolicy::No)?;
        let path = run.journal_path();
        let at = tip.line.map_or(tip.length, |line| line.at);
        let mut reader =
            JournalReader::open_at(&path, at).map_err(StoreError::io("open", &path))?;
        // The last line is read again, so that the next one is known to follow it.
        let last = if tip.line.is_some() { reader.next_record()? } else { None };
        if last.is_some_and(|last| last.seq != tip.seq) {
            return Err(reader.bad_line(format!("event {} stood here a moment ago", tip.seq)));
        }
        Ok(Self { run: run.clone(), state: Arc::new(state), seq: tip.seq, reader })
    }

    /// Returns the state after the last look.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Returns the state after the last look for longer use: later events do not change it.
    #[must_use]
    pub fn snapshot(&self) -> Arc<State> {
        Arc::clone(&self.state)
    }

    /// Applies the events that were recorded since the last look.
    ///
    /// # Errors
    /// When the journal is missing or damaged. The state stays as it was, and the next look tries
    /// again.
    pub fn read_updates(&mut self) -> Result<JournalUpdate, StoreError> {
        if let Ok(Some(records)) = self.read_new_records() {
            return Ok(JournalUpdate::Appended(records));
        }
        *self = Self::open(&self.run)?;
        Ok(JournalUpdate::Reloaded)
    }

    /// Applies the records that follow the state; none if the next record does not follow.
    fn read_new_records(&mut self) -> Result<Option<Vec<JournalRecord>>, StoreError> {
        self.reader.resume_reading()?;
        let mut records = Vec::new();
        while let Some(record) = self.reader.next_record()? {
            // If a snapshot is still in use the state is copied, once.
            let follows = record.seq == self.seq + 1;
            if !follows || Arc::make_mut(&mut self.state).apply(&record.event).is_err() {
                return Ok(None);
            }
            self.seq = record.seq;
            records.push(record);
        }
        Ok(Some(records))
    }

    /// Returns the latest records up to the state, from the journal's end, as far as readable.
    #[must_use]
    pub fn recent_records(&self) -> Vec<JournalRecord> {
        let from = self.reader.position().saturating_sub(RECENT_TAIL_BYTES);
        let Ok(mut reader) = JournalReader::open_at_or_after(&self.run.journal_path(), from) else {
            return Vec::new();
        };
        let records = std::iter::from_fn(|| reader.next_record().ok().flatten());
        records.take_while(|record| record.seq <= self.seq).collect()
    }
}
