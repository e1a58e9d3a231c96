//! Replay of a conversation within limits: a summary of older turns, then the newest in full.

use super::PastTurn;
use crate::id::TurnId;

const SUMMARY_HEADING: &str = "SUMMARY OF EARLIER TURNS\n";
/// Marker for text that was cut off.
const CUT_MARK: &str = "… (cut)\n";
/// Share of the available characters that a summary may take, as a divisor.
const SUMMARY_ROOM_DIVISOR: usize = 4;
/// Share of the summary left to the written text if later turns have lines beside it, as a divisor.
const WRITTEN_ROOM_DIVISOR: usize = 2;

/// Summary that an agent wrote of all turns up to one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenSummary {
    /// Last turn that the summary covers.
    pub until: TurnId,
    /// Text of the summary.
    pub text: String,
}

/// Renders the newest turns, at most `window` of them, and a summary of those before, in at most
/// `max_chars` characters. Turns that do not fit move from full text to summary, oldest first; the
/// newest turn and the summary stay, cut if necessary.
#[must_use]
pub fn pack_turns(past: &[PastTurn], window: usize, max_chars: usize) -> String {
    pack_with_summary(past, None, window, max_chars)
}

/// Renders like [`pack_turns`], with a written summary in place of the lines of its turns.
#[must_use]
pub fn pack_with_summary(
    past: &[PastTurn],
    written: Option<&WrittenSummary>,
    window: usize,
    max_chars: usize,
) -> String {
    let (summary, turns) = choose_turns(past, written, window, max_chars).1;
    let room = max_chars.saturating_sub(char_count(&summary));
    summary + &truncate_text(&turns, room)
}

/// Counts the oldest turns that are not rendered in full.
#[must_use]
pub fn count_summarised_turns(past: &[PastTurn], window: usize, max_chars: usize) -> usize {
    past.len() - choose_turns(past, None, window, max_chars).0
}

/// Chooses how many turns are rendered in full, and returns that count with the rendered text.
fn choose_turns(
    past: &[PastTurn],
    written: Option<&WrittenSummary>,
    window: usize,
    max_chars: usize,
) -> (usize, (String, String)) {
    let most = window.min(past.len()).max(usize::from(!past.is_empty()));
    let of = |kept| (kept, render_history(past, written, kept, max_chars));
    let fits = |(_, (summary, turns)): &(usize, (String, String))| {
        char_count(summary) + char_count(turns) <= max_chars
    };
    (1..=most).rev().map(of).find(fits).unwrap_or_else(|| of(most.min(1)))
}

/// Renders the summary, and the text of the `kept` newest turns.
fn render_history(
    past: &[PastTurn],
    written: Option<&WrittenSummary>,
    kept: usize,
    max_chars: usize,
) -> (String, String) {
    let (older, newest) = past.split_at(past.len().saturating_sub(kept));
    let turns: Vec<String> = newest.iter().map(render_turn).collect();
    (render_summary(older, written, max_chars / SUMMARY_ROOM_DIVISOR), turns.join("\n"))
}

fn render_turn(past: &PastTurn) -> String {
    let text = past.text.as_deref().map_or("(its text is not at hand)", str::trim);
    format!("TURN {}: {}\n{text}\n", past.turn_id, past.in_short)
}

/// Renders the written summary and one line for each later turn, the newest if not all fit.
fn render_summary(past: &[PastTurn], written: Option<&WrittenSummary>, room: usize) -> String {
    if past.is_empty() {
        return String::new();
    }
    let is_about =
        |written: &WrittenSummary| past.iter().position(|past| past.turn_id == written.until);
    let about = written.and_then(|written| Some((is_about(written)?, written.text.trim())));
    let (text, rest) =
        about.map_or(("", past), |(last, text)| (text, past.get(last + 1..).unwrap_or_default()));
    let left = room.saturating_sub(char_count(SUMMARY_HEADING) + 1);
    let for_text = if rest.is_empty() { left } else { left / WRITTEN_ROOM_DIVISOR };
    let text =
        if text.is_empty() { String::new() } else { truncate_text(&format!("{text}\n"), for_text) };
    let lines = render_turn_lines(rest, left.saturating_sub(char_count(&text)));
    truncate_text(&format!("{SUMMARY_HEADING}{text}{lines}\n"), room)
}

/// Renders one line per turn: as many of the newest as fit, and at least one.
fn render_turn_lines(past: &[PastTurn], room: usize) -> String {
    let line = |past: &PastTurn| format!("- {}: {}\n", past.turn_id, past.in_short);
    let lines: Vec<String> = past.iter().map(line).collect();
    let mut left = room;
    let fits = |line: &&String| {
        let fits = char_count(line) <= left;
        left = left.saturating_sub(char_count(line));
        fits
    };
    let kept = lines.iter().rev().take_while(fits).count().max(1);
    lines.get(lines.len().saturating_sub(kept)..).unwrap_or_default().concat()
}

/// Truncates a text to `room` characters, with a marker where text is missing.
fn truncate_text(text: &str, room: usize) -> String {
    if char_count(text) <= room {
        return text.to_owned();
    }
    let kept = room.saturating_sub(char_count(CUT_MARK));
    let cut = text.chars().take(kept).chain(CUT_MARK.chars());
    cut.take(room).collect()
}

fn char_count(text: &str) -> usize {
    text.chars().count()
}
