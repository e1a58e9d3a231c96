//! How far the lines of a journal are chained to each other, for `treebeam validate`. A reader refuses a line that does not
//! follow the one before it; here is counted where no line says what it follows.

use super::error::StoreError;
use super::journal::JournalReader;
use super::layout::RunDir;
use super::manifest;
use treebeam_core::event::Event;
use treebeam_core::id::Sha256;

/// Chaining of a journal's lines, as far as they count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChainSurvey {
    /// Number of the first event; 0 where the journal has none.
    pub first: u64,
    /// Number of the last event.
    pub last: u64,
    /// The first event whose line names the digest of the line before it; none where no line does.
    pub chained_from: Option<u64>,
    /// Events after that one whose lines name no digest.
    pub unchained: Vec<u64>,
    /// The first event after which the last digest was written to the run's ref: a closed depth or a stop on a chained line.
    pub sealed_from: Option<u64>,
    /// Digest of the line that was asked for.
    pub digest: Option<Sha256>,
}

/// Reads a journal from its first line on, and gives the digest of the line of this event.
///
/// # Errors
/// When the journal is damaged.
pub fn survey_chain(run: &RunDir, of_event: Option<u64>) -> Result<ChainSurvey, StoreError> {
    let mut reader = JournalReader::open(&run.journal_path())?;
    let mut survey = ChainSurvey::default();
    // A journal that was begun after a manifest alone may have no line yet.
    if let Some(Ok(found)) = manifest::read_manifest(&run.manifest_path())? {
        survey.last = found.mark.journal_starts_at.saturating_sub(1);
    }
    while let Some(record) = reader.next_record()? {
        let seq = record.seq;
        if survey.first == 0 {
            survey.first = seq;
        }
        survey.last = seq;
        match (record.prev, survey.chained_from) {
            (Some(_), None) => survey.chained_from = Some(seq),
            (None, Some(_)) => survey.unchained.push(seq),
            (Some(_), Some(_)) | (None, None) => {}
        }
        let seals = matches!(record.event, Event::DepthClosed { .. } | Event::Stopped { .. });
        if seals && record.prev.is_some() && survey.sealed_from.is_none() {
            survey.sealed_from = Some(seq);
        }
        if of_event == Some(seq) {
            survey.digest = reader.last_line().map(|line| line.digest);
        }
    }
    Ok(survey)
}
