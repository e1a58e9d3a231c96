//! What is told again of a conversation, within its limits: a summary of the older turns, then the newest ones word by word.

use super::Past;
use crate::id::TurnId;

const SUMMARY: &str = "SUMMARY OF EARLIER TURNS\n";
/// Stands where something was cut off.
const CUT: &str = "… (cut)\n";
/// The part of the room that a summary may take.
const SUMMARY_PART: usize = 4;
/// The part of a summary that is left to what somebody wrote, where younger turns have their lines beside it.
const WRITTEN_PART: usize = 2;

/// What somebody wrote about the turns up to one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The last turn that it is about.
    pub until: TurnId,
    /// The text.
    pub text: String,
}

/// The newest turns, at most `window` of them, and a summary of those before, in at most `max_chars` characters. What does
/// not fit goes from whole text to summary, the oldest first; the newest turn and the summary stay, cut if they must be.
#[must_use]
pub fn pack(past: &[Past], window: usize, max_chars: usize) -> String {
    pack_with(past, None, window, max_chars)
}

/// The same with what somebody wrote in place of the lines of those turns that it is about.
#[must_use]
pub fn pack_with(
    past: &[Past],
    written: Option<&Written>,
    window: usize,
    max_chars: usize,
) -> String {
    let (summary, turns) = chosen(past, written, window, max_chars).1;
    let room = max_chars.saturating_sub(length(&summary));
    summary + &cut(&turns, room)
}

/// How many turns, the oldest ones, are not told word by word.
#[must_use]
pub fn told_in_short(past: &[Past], window: usize, max_chars: usize) -> usize {
    past.len() - chosen(past, None, window, max_chars).0
}

/// How many turns are told word by word, and what is told.
fn chosen(
    past: &[Past],
    written: Option<&Written>,
    window: usize,
    max_chars: usize,
) -> (usize, (String, String)) {
    let most = window.min(past.len()).max(usize::from(!past.is_empty()));
    let of = |kept| (kept, told(past, written, kept, max_chars));
    let fits = |(_, (summary, turns)): &(usize, (String, String))| {
        length(summary) + length(turns) <= max_chars
    };
    (1..=most).rev().map(of).find(fits).unwrap_or_else(|| of(most.min(1)))
}

/// The summary and the text of so many of the newest turns.
fn told(
    past: &[Past],
    written: Option<&Written>,
    kept: usize,
    max_chars: usize,
) -> (String, String) {
    let (older, newest) = past.split_at(past.len().saturating_sub(kept));
    let turns: Vec<String> = newest.iter().map(turn).collect();
    (summary(older, written, max_chars / SUMMARY_PART), turns.join("\n"))
}

fn turn(past: &Past) -> String {
    let text = past.text.as_deref().map_or("(its text is not at hand)", str::trim);
    format!("TURN {}: {}\n{text}\n", past.turn_id, past.in_short)
}

/// What was written about turns, and one line for each other one, the newest where not all of them have room.
fn summary(past: &[Past], written: Option<&Written>, room: usize) -> String {
    if past.is_empty() {
        return String::new();
    }
    let is_about = |written: &Written| past.iter().position(|past| past.turn_id == written.until);
    let about = written.and_then(|written| Some((is_about(written)?, written.text.trim())));
    let (text, rest) =
        about.map_or(("", past), |(last, text)| (text, past.get(last + 1..).unwrap_or_default()));
    let left = room.saturating_sub(length(SUMMARY) + 1);
    let for_text = if rest.is_empty() { left } else { left / WRITTEN_PART };
    let text = if text.is_empty() { String::new() } else { cut(&format!("{text}\n"), for_text) };
    let lines = lines(rest, left.saturating_sub(length(&text)));
    cut(&format!("{SUMMARY}{text}{lines}\n"), room)
}

/// One line for each turn: as many of the newest as there is room for, and one at least.
fn lines(past: &[Past], room: usize) -> String {
    let line = |past: &Past| format!("- {}: {}\n", past.turn_id, past.in_short);
    let lines: Vec<String> = past.iter().map(line).collect();
    let mut left = room;
    let fits = |line: &&String| {
        let fits = length(line) <= left;
        left = left.saturating_sub(length(line));
        fits
    };
    let kept = lines.iter().rev().take_while(fits).count().max(1);
    lines.get(lines.len().saturating_sub(kept)..).unwrap_or_default().concat()
}

/// A text in at most so many characters, with a mark where something is missing.
fn cut(text: &str, room: usize) -> String {
    if length(text) <= room {
        return text.to_owned();
    }
    let kept = room.saturating_sub(length(CUT));
    let cut = text.chars().take(kept).chain(CUT.chars());
    cut.take(room).collect()
}

fn length(text: &str) -> usize {
    text.chars().count()
}
