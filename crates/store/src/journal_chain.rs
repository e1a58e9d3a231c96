//! Reports for `treebeam validate` how far a journal's lines name their predecessors' digests. The
//! reader already refuses a line that does not follow; this counts the lines that name no digest.

use super::error::StoreError;
use super::journal::JournalReader;
use super::layout::RunDir;
use super::manifest;
use treebeam_core::event::Event;
use treebeam_core::id::Sha256;

/// Digest chain of a journal's lines, as far as they count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChainSurvey {
    /// Number of the first event; 0 if the journal has none.
    pub first: u64,
    /// Number of the last event.
    pub last: u64,
    /// Number of the first event whose line names the digest of the previous line, if any.
    pub chained_from: Option<u64>,
    /// Events after `chained_from` whose lines name no digest.
    pub unchained: Vec<u64>,
    /// First closed depth or stop on a chained line: the run's ref then holds the last digest.
    pub sealed_from: Option<u64>,
    /// Digest of the line of the requested event.
    pub digest: Option<Sha256>,
}

/// Reads a whole journal, and also returns the digest of the line of event `of_event`.
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
