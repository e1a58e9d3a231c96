//! A run that is watched while somebody else may be running it: its state, kept up with its journal. Takes no lock and
//! writes nothing. Whether anybody runs the run is not seen here.

use super::error::StoreError;
use super::journal::{JournalReader, JournalRecord};
use super::layout::RunDir;
use super::loading::{LoadedRun, load_run};
use super::opening::ForcePolicy;
use std::sync::Arc;
use treebeam_core::state::State;

/// How much of a journal's end is read for what was recorded last.
const RECENT_TAIL_BYTES: u64 = 1024 * 1024;

/// A run, as far as it is on disk.
#[derive(Debug)]
pub struct RunFollower {
    run: RunDir,
    state: Arc<State>,
    /// The last event that is in the state.
    seq: u64,
    reader: JournalReader,
}

/// What a look at the journal brought.
#[derive(Debug)]
pub enum JournalUpdate {
    /// These were recorded since the last look, in this order; none of them may be.
    Appended(Vec<JournalRecord>),
    /// It is not the journal that was read so far: the run went on from another copy of itself, and was read anew.
    Reloaded,
}

impl RunFollower {
    /// Reads a run as it is now.
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

    /// The state after the last look.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The same, for whoever wants to look at it for a while: what is recorded meanwhile does not change it.
    #[must_use]
    pub fn snapshot(&self) -> Arc<State> {
        Arc::clone(&self.state)
    }

    /// Takes in what has been recorded since the last look.
    ///
    /// # Errors
    /// When the journal is gone or damaged. The state stays as it was, and the next look tries again.
    pub fn read_updates(&mut self) -> Result<JournalUpdate, StoreError> {
        if let Ok(Some(records)) = self.read_new_records() {
            return Ok(JournalUpdate::Appended(records));
        }
        *self = Self::open(&self.run)?;
        Ok(JournalUpdate::Reloaded)
    }

    /// What follows the state; nothing where something else stands there.
    fn read_new_records(&mut self) -> Result<Option<Vec<JournalRecord>>, StoreError> {
        self.reader.resume_reading()?;
        let mut records = Vec::new();
        while let Some(record) = self.reader.next_record()? {
            // Somebody may still look at the state as it was: then it is copied, once.
            let follows = record.seq == self.seq + 1;
            if !follows || Arc::make_mut(&mut self.state).apply(&record.event).is_err() {
                return Ok(None);
            }
            self.seq = record.seq;
            records.push(record);
        }
        Ok(Some(records))
    }

    /// What was recorded last, up to the state, as far as the end of the journal has it. What cannot be read is left out.
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
