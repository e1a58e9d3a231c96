//! One line of the journal: `{"seq":…,"epoch":…,"t":…,"event":{…},"sum":"…"}`.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use treebeam_core::event::Event;
use treebeam_core::id::Sha256;

/// What stands before the checksum's digits, and what its digits cover everything before.
const SUM: &[u8] = b",\"sum\":\"";
/// How many hex digits of the digest are kept.
const DIGITS: usize = 16;
/// The length of the end of a line, from [`SUM`] on.
const END: usize = SUM.len() + DIGITS + 2;

/// What a line of the journal says.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Record {
    /// Its number, counted from 1, without gaps.
    pub seq: u64,
    /// Which opening of the run wrote it.
    pub epoch: u64,
    /// The time on the wall; only for people.
    pub t: Timestamp,
    /// What happened.
    pub event: Event,
}

#[derive(Serialize)]
struct Envelope<'a> {
    seq: u64,
    epoch: u64,
    t: Timestamp,
    event: &'a Event,
}

/// Appends a line.
pub(in crate::store) fn write(
    seq: u64,
    epoch: u64,
    t: Timestamp,
    event: &Event,
    to: &mut Vec<u8>,
) -> serde_json::Result<()> {
    let start = to.len();
    serde_json::to_writer(&mut *to, &Envelope { seq, epoch, t, event })?;
    to.pop();
    let sum = sum(to.get(start..).unwrap_or_default());
    to.extend_from_slice(SUM);
    to.extend_from_slice(sum.as_bytes());
    to.extend_from_slice(b"\"}\n");
    Ok(())
}

/// Reads a line, without its line end.
pub(in crate::store) fn read(line: &[u8]) -> Result<Record, String> {
    if !is_whole(line) {
        return Err("the checksum does not fit the line".to_owned());
    }
    serde_json::from_slice(line)
        .map_err(|error| format!("the line is whole, but this treebeam cannot read it: {error}"))
}

/// How a last line without a line end stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum Unended {
    /// Only the line end is missing.
    Whole,
    /// There is a whole line, and then something else.
    Followed,
    /// Its end is missing.
    Torn,
}

/// Judges a last line without a line end.
pub(in crate::store) fn judge_unended(line: &[u8]) -> Unended {
    let ends = line.windows(SUM.len()).enumerate().filter(|(_, bytes)| *bytes == SUM);
    let ends = ends.map(|(at, _)| at + END);
    for end in ends {
        if line.get(..end).is_some_and(is_whole) {
            return if end == line.len() { Unended::Whole } else { Unended::Followed };
        }
    }
    Unended::Torn
}

fn is_whole(line: &[u8]) -> bool {
    let Some((body, end)) = line.len().checked_sub(END).and_then(|at| line.split_at_checked(at))
    else {
        return false;
    };
    let digits = end.strip_prefix(SUM).and_then(|rest| rest.strip_suffix(b"\"}"));
    digits.is_some_and(|digits| digits == sum(body).as_bytes())
}

fn sum(body: &[u8]) -> String {
    let mut digest = Sha256::of(body).to_string();
    digest.truncate(DIGITS);
    digest
}

#[cfg(test)]
mod tests {
    use super::*;
    use treebeam_core::event::Stop;

    fn line() -> Vec<u8> {
        let event = Event::Stopped { reason: Stop::NoIdeas, at: Timestamp::UNIX_EPOCH };
        let mut line = Vec::new();
        write(7, 2, Timestamp::UNIX_EPOCH, &event, &mut line).unwrap();
        line
    }

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let line = line();
        let record = read(line.strip_suffix(b"\n").unwrap()).unwrap();
        assert_eq!((record.seq, record.epoch), (7, 2));
        assert!(matches!(record.event, Event::Stopped { reason: Stop::NoIdeas, .. }));
    }

    #[test]
    fn every_cut_is_torn_and_every_addition_is_seen() {
        let mut line = line();
        line.pop();
        assert_eq!(judge_unended(&line), Unended::Whole);
        for end in 0..line.len() {
            assert_eq!(judge_unended(&line[..end]), Unended::Torn, "cut at {end}");
        }
        line.push(b'x');
        assert_eq!(judge_unended(&line), Unended::Followed);
        assert_eq!(judge_unended(&[0; 300]), Unended::Torn);
    }

    #[test]
    fn a_whole_line_that_is_not_understood_says_so() {
        let mut line =
            br#"{"seq":1,"epoch":1,"t":"2026-01-01T00:00:00Z","event":{"type":"sung"}"#.to_vec();
        let sum = sum(&line);
        line.extend_from_slice(format!(",\"sum\":\"{sum}\"}}").as_bytes());
        let why = read(&line).unwrap_err();
        assert!(why.contains("sung") && why.contains("cannot read"), "{why}");
    }
}
