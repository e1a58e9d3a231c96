//! One line of the journal: `{"seq":…,"epoch":…,"t":…,"prev":"…","event":{…},"sum":"…"}`. `prev` is
//! the digest of the previous line that a reader accepts; older lines have none.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::Digest as _;
use treebeam_core::event::Event;
use treebeam_core::id::Sha256;

/// The bytes before the checksum's digits. The checksum covers everything before them.
const CHECKSUM_FIELD_START: &[u8] = b",\"sum\":\"";
/// Number of hex digits of the digest that are kept.
const CHECKSUM_DIGITS: usize = 16;
/// The length of the end of a line, from [`CHECKSUM_FIELD_START`] on.
const CHECKSUM_FIELD_BYTES: usize = CHECKSUM_FIELD_START.len() + CHECKSUM_DIGITS + 2;

/// A parsed line of the journal.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct JournalRecord {
    /// Number of the event, counted from 1, without gaps.
    pub seq: u64,
    /// Number of the opening of the run that wrote the line.
    pub epoch: u64,
    /// Wall-clock time of the write; for people only.
    pub t: Timestamp,
    /// Digest of the previous line that counts. Lines of an older treebeam have none.
    #[serde(default)]
    pub prev: Option<Sha256>,
    /// The recorded event.
    pub event: Event,
}

#[derive(Serialize)]
struct RecordEnvelope<'a> {
    seq: u64,
    epoch: u64,
    t: Timestamp,
    prev: Sha256,
    event: &'a Event,
}

/// Returns the digest that the first line of a journal names as `prev`: the digest of nothing.
pub(crate) fn chain_start() -> Sha256 {
    Sha256::hash_bytes(b"")
}

/// Returns the digest of a line without its line end, which the next line names as `prev`.
pub(crate) fn line_digest(line: &[u8]) -> Sha256 {
    Sha256::hash_bytes(line)
}

/// Appends the line of an event to a buffer.
pub(crate) fn write_line(
    seq: u64,
    epoch: u64,
    t: Timestamp,
    prev: Sha256,
    event: &Event,
    to: &mut Vec<u8>,
) -> serde_json::Result<()> {
    let start = to.len();
    serde_json::to_writer(&mut *to, &RecordEnvelope { seq, epoch, t, prev, event })?;
    to.pop();
    let sum = checksum_digits(to.get(start..).unwrap_or_default());
    to.extend_from_slice(CHECKSUM_FIELD_START);
    to.extend_from_slice(sum.as_bytes());
    to.extend_from_slice(b"\"}\n");
    Ok(())
}

/// Parses a line without its line end, and returns it with its digest.
pub(crate) fn parse_line(line: &[u8]) -> Result<(JournalRecord, Sha256), String> {
    let digest = verified_digest(line).ok_or("the checksum does not fit the line")?;
    let record = serde_json::from_slice(line)
        .map_err(|error| format!("the line is whole, but this treebeam cannot read it: {error}"))?;
    Ok((record, digest))
}

/// Condition of a last line that has no line end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnendedLine {
    /// Only the line end is missing.
    Whole,
    /// A whole line is followed by other bytes.
    Followed,
    /// The end of the line is missing.
    Torn,
}

/// Classifies a last line that has no line end.
pub(crate) fn judge_unended(line: &[u8]) -> UnendedLine {
    let ends = line
        .windows(CHECKSUM_FIELD_START.len())
        .enumerate()
        .filter(|(_, bytes)| *bytes == CHECKSUM_FIELD_START);
    let ends = ends.map(|(at, _)| at + CHECKSUM_FIELD_BYTES);
    for end in ends {
        if line.get(..end).is_some_and(is_whole) {
            return if end == line.len() { UnendedLine::Whole } else { UnendedLine::Followed };
        }
    }
    UnendedLine::Torn
}

fn is_whole(line: &[u8]) -> bool {
    verified_digest(line).is_some()
}

/// Returns the digest of a line whose checksum fits, computing both in one pass.
fn verified_digest(line: &[u8]) -> Option<Sha256> {
    let (body, end) = line.split_at_checked(line.len().checked_sub(CHECKSUM_FIELD_BYTES)?)?;
    let digits = end.strip_prefix(CHECKSUM_FIELD_START)?.strip_suffix(b"\"}")?;
    let mut hasher = sha2::Sha256::new_with_prefix(body);
    let of_body = Sha256::from_bytes(hasher.clone().finalize().into());
    if digits != first_digits(of_body).as_bytes() {
        return None;
    }
    hasher.update(end);
    Some(Sha256::from_bytes(hasher.finalize().into()))
}

fn checksum_digits(body: &[u8]) -> String {
    first_digits(Sha256::hash_bytes(body))
}

fn first_digits(digest: Sha256) -> String {
    let mut digits = digest.to_string();
    digits.truncate(CHECKSUM_DIGITS);
    digits
}

#[cfg(test)]
mod tests {
    use super::*;
    use treebeam_core::event::StopReason;

    fn line() -> Vec<u8> {
        let event = Event::Stopped { reason: StopReason::NoIdeas, at: Timestamp::UNIX_EPOCH };
        let mut line = Vec::new();
        write_line(7, 2, Timestamp::UNIX_EPOCH, chain_start(), &event, &mut line).unwrap();
        line
    }

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let line = line();
        let line = line.strip_suffix(b"\n").unwrap();
        let (record, of_line) = parse_line(line).unwrap();
        assert_eq!((record.seq, record.epoch), (7, 2));
        assert_eq!((record.prev, of_line), (Some(chain_start()), line_digest(line)));
        assert!(matches!(record.event, Event::Stopped { reason: StopReason::NoIdeas, .. }));
    }

    #[test]
    fn every_cut_is_torn_and_every_addition_is_seen() {
        let mut line = line();
        line.pop();
        assert_eq!(judge_unended(&line), UnendedLine::Whole);
        for end in 0..line.len() {
            assert_eq!(judge_unended(&line[..end]), UnendedLine::Torn, "cut at {end}");
        }
        line.push(b'x');
        assert_eq!(judge_unended(&line), UnendedLine::Followed);
        assert_eq!(judge_unended(&[0; 300]), UnendedLine::Torn);
    }

    #[test]
    fn a_whole_line_that_is_not_understood_says_so() {
        let mut line =
            br#"{"seq":1,"epoch":1,"t":"2026-01-01T00:00:00Z","event":{"type":"sung"}"#.to_vec();
        let sum = checksum_digits(&line);
        line.extend_from_slice(format!(",\"sum\":\"{sum}\"}}").as_bytes());
        let why = parse_line(&line).unwrap_err();
        assert!(why.contains("sung") && why.contains("cannot read"), "{why}");
    }
}
