//! What is told again of a conversation, within its limits: a summary of the older turns, then the newest ones word by word.

use super::Past;

const SUMMARY: &str = "SUMMARY OF EARLIER TURNS\n";
/// Stands where something was cut off.
const CUT: &str = "… (cut)\n";
/// The part of the room that a summary may take.
const SUMMARY_PART: usize = 4;

/// The newest turns, at most `window` of them, and a summary of those before, in at most `max_chars` characters. What does
/// not fit goes from whole text to summary, the oldest first; the newest turn and the summary stay, cut if they must be.
#[must_use]
pub fn pack(past: &[Past], window: usize, max_chars: usize) -> String {
    let most = window.min(past.len()).max(usize::from(!past.is_empty()));
    let whole = (1..=most).rev().map(|kept| told(past, kept, max_chars));
    let mut fitting = whole.filter(|(summary, turns)| length(summary) + length(turns) <= max_chars);
    let (summary, turns) = fitting.next().unwrap_or_else(|| told(past, most.min(1), max_chars));
    let room = max_chars.saturating_sub(length(&summary));
    summary + &cut(&turns, room)
}

/// The summary and the text of so many of the newest turns.
fn told(past: &[Past], kept: usize, max_chars: usize) -> (String, String) {
    let (older, newest) = past.split_at(past.len().saturating_sub(kept));
    let turns: Vec<String> = newest.iter().map(turn).collect();
    (summary(older, max_chars / SUMMARY_PART), turns.join("\n"))
}

fn turn(past: &Past) -> String {
    let text = past.text.as_deref().map_or("(its text is not at hand)", str::trim);
    format!("TURN {}: {}\n{text}\n", past.turn_id, past.in_short)
}

/// One line for each turn, the newest where not all of them have room.
fn summary(past: &[Past], room: usize) -> String {
    if past.is_empty() {
        return String::new();
    }
    let line = |past: &Past| format!("- {}: {}\n", past.turn_id, past.in_short);
    let lines: Vec<String> = past.iter().map(line).collect();
    let mut left = room.saturating_sub(length(SUMMARY) + 1);
    let fits = |line: &&String| {
        let fits = length(line) <= left;
        left = left.saturating_sub(length(line));
        fits
    };
    let kept = lines.iter().rev().take_while(fits).count().max(1);
    let lines = lines.get(lines.len().saturating_sub(kept)..).unwrap_or_default().concat();
    cut(&format!("{SUMMARY}{lines}\n"), room)
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
