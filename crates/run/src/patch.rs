//! Extracts the patch of a reply in the form that `git apply` accepts. Prose and fences around it
//! are dropped, the reply's own `\r` is removed, line counts of hunks are corrected, several diffs
//! become one, and `*** Begin Patch` is translated. Pure; whether the patch applies is left to git.

mod envelope;

use crate::reply::{MAX_REPLY_BYTES, truncate_text};

/// Returns the patch of a reply.
///
/// # Errors
/// When there is none, or it cannot be translated; a text for the author of the reply.
pub fn find_patch(reply: &str) -> Result<String, String> {
    let text = truncate_text(reply, MAX_REPLY_BYTES);
    if text.len() < reply.len() {
        return Err(format!("the answer is longer than {} MiB", MAX_REPLY_BYTES >> 20));
    }
    let lines = reply_lines(text);
    let diff = if envelope::is_envelope(&lines) {
        envelope::parse_envelope(&lines)?
    } else {
        parse_unified_diff(&lines)?
    };
    let has_content = diff.iter().any(|file| !file.hunks.is_empty() || file.is_complete());
    if !has_content {
        return Err("the answer has no unified diff".to_owned());
    }
    Ok(diff.iter().map(FilePatch::to_diff_text).collect())
}

/// Tells the author why a unified diff is truncated; `None` if it may be complete.
#[must_use]
pub fn truncation_error(diff: &str) -> Option<String> {
    parse_unified_diff(&diff.lines().collect::<Vec<_>>()).err()
}

/// Splits a reply into lines. If the header lines of its diff end with `\r`, it is removed from all
/// lines; otherwise a `\r` belongs to the changed file.
fn reply_lines(text: &str) -> Vec<&str> {
    let heads = |line: &&str| line.starts_with("diff --git ") || line.starts_with("--- ");
    let lines = text.strip_suffix('\n').unwrap_or(text).split('\n');
    match lines.clone().find(heads) {
        Some(head) if !head.ends_with('\r') => lines.collect(),
        Some(_) | None => lines.map(|line| line.trim_end_matches('\r')).collect(),
    }
}

/// Converts a patch for files whose lines end with `\r\n`.
#[must_use]
pub fn with_carriage_returns(patch: &str) -> String {
    let mut text = String::with_capacity(patch.len() + patch.len() / 20);
    for line in patch.lines() {
        text.push_str(line);
        text.push_str(if is_content(line) { "\r\n" } else { "\n" });
    }
    text
}

fn is_content(line: &str) -> bool {
    line.starts_with([' ', '+', '-']) && !line.starts_with("--- ") && !line.starts_with("+++ ")
}

/// The part of a patch about one file.
#[derive(Debug, Default)]
struct FilePatch {
    /// All lines before the hunks.
    head: Vec<String>,
    hunks: Vec<PatchHunk>,
    /// Description of the lines that are missing at its end.
    lacks: Option<String>,
}

/// Git's ids of a file without content, in both of its object formats.
const EMPTY_BLOB_IDS: [&str; 2] = ["e69de29", "473a0f4"];

impl FilePatch {
    /// Returns a sign that the diff was cut off in or behind this file, given the lines that
    /// follow. Behind a closing fence the diff is complete, and wrong counts are just wrong.
    fn truncation_sign(&self, rest: &[&str]) -> Option<String> {
        let mut rest = rest.iter().filter(|line| !line.trim().is_empty());
        let next = rest.next();
        if next.is_some_and(|line| is_fence(line)) {
            return None;
        }
        let begins = |line: &str| {
            let half = line == "@" || FILE_START_LINES[0].starts_with(line);
            half || FILE_START_LINES.iter().any(|words| line.starts_with(words))
        };
        if rest.next_back().or(next).is_some_and(|line| begins(line)) {
            return Some("it ends where another file begins".to_owned());
        }
        self.lacks.clone()
    }

    /// Returns true if the header alone, without a hunk, means nothing or something else.
    fn needs_hunks(&self) -> bool {
        let is_name = |line: &String| line.starts_with("--- ") || line.starts_with("+++ ");
        let has_content = |line: &String| {
            let blobs = line.strip_prefix("index ").and_then(|blobs| blobs.split_once(".."));
            let is_empty = |blob: &str| EMPTY_BLOB_IDS.iter().any(|empty| blob.starts_with(empty));
            blobs.is_some_and(|(old, new)| !is_empty(old) && !is_empty(new))
        };
        !self.is_complete() || self.head.iter().any(|line| is_name(line) || has_content(line))
    }

    /// Returns true if no hunk is needed: another mode, another name, an empty file.
    fn is_complete(&self) -> bool {
        let known = ["rename to ", "new mode ", "new file mode ", "deleted file mode ", "copy to "];
        self.head.iter().any(|line| known.iter().any(|name| line.starts_with(name)))
    }

    fn to_diff_text(&self) -> String {
        let mut text: String = self.head.iter().map(|line| format!("{line}\n")).collect();
        let mut shift: i64 = 0;
        let mut after: u64 = 1;
        for hunk in &self.hunks {
            hunk.write_hunk(&mut text, &mut after, &mut shift);
        }
        text
    }
}

/// A piece of a file, before and after the change.
#[derive(Debug, Default)]
struct PatchHunk {
    /// Line number in the old file, if the header has one.
    start: Option<u64>,
    /// Name of the function that it is in, as git writes it.
    section: String,
    lines: Vec<String>,
}

impl PatchHunk {
    fn has_changes(&self) -> bool {
        self.lines.iter().any(|line| line.starts_with(['+', '-']))
    }

    fn count_lines(&self, own: char) -> u64 {
        self.lines.iter().filter(|line| line.starts_with([' ', own])).count() as u64
    }

    /// Writes the hunk with correct line numbers. `after`: the first line where it may begin;
    /// `shift`: how much longer the new file is.
    fn write_hunk(&self, text: &mut String, after: &mut u64, shift: &mut i64) {
        let (old, new) = (self.count_lines('-'), self.count_lines('+'));
        // Git finds the place by itself, but takes line 1 for a hunk with nothing before it.
        let start = self.start.unwrap_or(if old == 0 { 0 } else { *after + 1 });
        let new_start = match (old, new) {
            (0, _) => start.saturating_add(1).saturating_add_signed(*shift),
            (_, 0) => start.saturating_sub(1).saturating_add_signed(*shift),
            _ => start.saturating_add_signed(*shift),
        };
        text.push_str(&format!("@@ -{start},{old} +{new_start},{new} @@{}\n", self.section));
        for line in &self.lines {
            text.push_str(line);
            text.push('\n');
        }
        *after = start.saturating_add(old);
        *shift += i64::try_from(new).unwrap_or(0) - i64::try_from(old).unwrap_or(0);
    }
}

/// Parses all files of the unified diffs among these lines; the last one must not be cut off.
fn parse_unified_diff(lines: &[&str]) -> Result<Vec<FilePatch>, String> {
    let mut files: Vec<FilePatch> = Vec::new();
    let (mut at, mut fenced, mut end) = (0, false, 0);
    while let Some(line) = lines.get(at) {
        if is_fence(line) {
            fenced = !fenced;
            at += 1;
        } else if begins_file(lines, at) {
            let (file, next) = parse_file_patch(lines, at, fenced);
            files.push(file);
            (at, end) = (next, next);
        } else {
            at += 1;
        }
    }
    match files.last().and_then(|last| last.truncation_sign(lines.get(end..).unwrap_or_default())) {
        Some(why) => Err(format!("the diff was cut off: {why}; answer with the whole diff")),
        None => Ok(files),
    }
}

fn is_fence(line: &str) -> bool {
    line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~")
}

/// Returns true if a file's part begins here. Hunk lines can look so, but precede no hunk.
fn begins_file(lines: &[&str], at: usize) -> bool {
    let is = |at: usize, start: &str| lines.get(at).is_some_and(|line| line.starts_with(start));
    is(at, "diff --git ") || (is(at, "--- ") && is(at + 1, "+++ ") && is(at + 2, "@@"))
}

/// Beginnings of a file's part that other text does not have.
const FILE_START_LINES: [&str; 4] = ["diff --git ", "--- a/", "--- /dev/null", "+++ b/"];

const HEADER_LINE_STARTS: [&str; 13] = [
    "index ",
    "old mode ",
    "new mode ",
    "new file mode ",
    "deleted file mode ",
    "similarity index ",
    "dissimilarity index ",
    "rename from ",
    "rename to ",
    "copy from ",
    "copy to ",
    "--- ",
    "+++ ",
];

/// Parses one file of a diff, and returns it with the index of the line after it.
fn parse_file_patch(lines: &[&str], start: usize, fenced: bool) -> (FilePatch, usize) {
    let mut file = FilePatch::default();
    let mut at = start;
    let is_head = |at: usize| {
        at == start
            || lines
                .get(at)
                .is_some_and(|line| HEADER_LINE_STARTS.iter().any(|h| line.starts_with(h)))
    };
    while is_head(at) && (at == start || !begins_file(lines, at) || has_git_header(lines, start)) {
        let Some(line) = lines.get(at) else { break };
        file.head.push(strip_timestamp(line).to_owned());
        at += 1;
        if line.starts_with("+++ ") {
            break;
        }
    }
    // The last line may have been cut itself.
    let rest = lines.get(at..).unwrap_or_default().iter().filter(|line| !line.trim().is_empty());
    if rest.count() <= 1 && file.needs_hunks() {
        file.lacks = Some("its last file has no hunk".to_owned());
    }
    while lines.get(at).is_some_and(|line| line.starts_with("@@")) {
        let (hunk, next, lacks) = parse_hunk(lines, at, fenced);
        file.lacks = lacks;
        file.hunks.extend(Some(hunk).filter(PatchHunk::has_changes));
        at = next;
    }
    (file, at.max(start + 1))
}

/// Returns true if a file's part begins with git's own line, so that `---` behind it belongs to it.
fn has_git_header(lines: &[&str], start: usize) -> bool {
    lines.get(start).is_some_and(|line| line.starts_with("diff --git "))
}

/// Removes the time that `diff -u` writes behind a file's name.
fn strip_timestamp(line: &str) -> &str {
    let is_name = line.starts_with("--- ") || line.starts_with("+++ ");
    if is_name { line.split('\t').next().unwrap_or(line) } else { line }
}

/// Parses one hunk, and returns it with the index of the line after it. Inside a fence all lines
/// that look like the hunk belong to it; elsewhere the counts of its header mark its end.
fn parse_hunk(lines: &[&str], start: usize, fenced: bool) -> (PatchHunk, usize, Option<String>) {
    let header = lines.get(start).copied().unwrap_or_default();
    let HunkHeader { start: first, old, new, section } = parse_hunk_header(header);
    let mut hunk = PatchHunk { start: first, section, lines: Vec::new() };
    let mut at = start + 1;
    while let Some(line) = lines.get(at) {
        let counted = !fenced && hunk.count_lines('-') >= old && hunk.count_lines('+') >= new;
        if counted && first.is_some() && !line.starts_with('\\') {
            break;
        }
        if begins_file(lines, at) || !(line.is_empty() || line.starts_with([' ', '+', '-', '\\'])) {
            break;
        }
        // A blank line of the file has lost its space.
        hunk.lines.push(if line.is_empty() { " ".to_owned() } else { (*line).to_owned() });
        at += 1;
    }
    trim_blank_lines(&mut hunk, old, new, lines.get(start + 1..at).unwrap_or_default());
    let lacks = describe_missing_lines(&hunk, old, new)
        .map(|lacks| format!("its last hunk, `{header}`, {lacks}"));
    (hunk, at, lacks)
}

/// Describes the lines that a hunk lacks; `None` if it has more of one kind than its header says.
fn describe_missing_lines(hunk: &PatchHunk, old: u64, new: u64) -> Option<String> {
    if hunk.lines.is_empty() {
        return Some("has no lines".to_owned());
    }
    let (has_old, has_new) = (hunk.count_lines('-'), hunk.count_lines('+'));
    let lacks = hunk.start.is_some() && has_old <= old && has_new <= new;
    (lacks && (has_old, has_new) != (old, new))
        .then(|| format!("has {has_old} of {old} old and {has_new} of {new} new lines"))
}

/// Removes blank lines at the end, which belong to the text around, unless they are counted.
fn trim_blank_lines(hunk: &mut PatchHunk, old: u64, new: u64, raw: &[&str]) {
    let mut raw = raw;
    while let [before @ .., last] = raw
        && last.is_empty()
        && (hunk.count_lines('-') > old || hunk.count_lines('+') > new || hunk.start.is_none())
    {
        hunk.lines.pop();
        raw = before;
    }
}

/// The fields of a hunk's header.
struct HunkHeader {
    start: Option<u64>,
    old: u64,
    new: u64,
    section: String,
}

/// Parses a header such as `@@ -3,7 +3,8 @@ fn name`; models leave the numbers out, or invent them.
fn parse_hunk_header(header: &str) -> HunkHeader {
    let inside = header.trim_start_matches('@');
    let (ranges, section) = inside.split_once("@@").unwrap_or(("", inside));
    let range = |sign: char| {
        let word = ranges.split_whitespace().find_map(|word| word.strip_prefix(sign))?;
        let (start, count) = word.split_once(',').unwrap_or((word, "1"));
        Some((start.parse::<u64>().ok()?, count.parse::<u64>().ok()?))
    };
    match (range('-'), range('+')) {
        (Some((start, old)), Some((_, new))) => {
            HunkHeader { start: Some(start), old, new, section: section.trim_end().to_owned() }
        }
        _ => HunkHeader { start: None, old: 0, new: 0, section: String::new() },
    }
}

#[cfg(test)]
mod tests;
