//! Change of one constant, as a sentence that can be parsed and as a unified diff. The sentence is
//! like ``set `rate` from 0.1 to 0.2 in `train.py` ``; the diff changes only that.

use super::constant::{Constant, ConstantId, find_constants};
use std::fmt;
use treebeam_core::idea::MAX_TITLE_CHARS;

/// Number of context lines of a diff.
const DIFF_CONTEXT_LINES: usize = 3;
/// Mark for the start of a path that is too long for a title.
const CUT_MARK: char = '…';

/// Change of one constant to another value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConstantChange {
    /// Constant to change. If parsed from a title, its file may be cut and then begins with `…`.
    pub id: ConstantId,
    /// Present literal.
    pub from: String,
    /// New literal.
    pub to: String,
}

impl fmt::Display for ConstantChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id: ConstantId { file, name, nth }, from, to } = self;
        write!(f, "set `{name}`")?;
        if *nth > 1 {
            write!(f, " (number {nth})")?;
        }
        write!(f, " from {from} to {to} in `{file}`")
    }
}

impl ConstantChange {
    /// Returns the sentence with a capital, its path cut at the front to fit into a title.
    #[must_use]
    pub fn title(&self) -> String {
        let whole = self.to_string();
        let excess = whole.chars().count().saturating_sub(MAX_TITLE_CHARS);
        let title = if excess == 0 {
            whole
        } else {
            let kept: String = self.id.file.chars().skip(excess + 1).collect();
            let id = ConstantId { file: format!("{CUT_MARK}{kept}"), ..self.id.clone() };
            Self { id, ..self.clone() }.to_string()
        };
        title.replacen("set", "Set", 1)
    }

    /// Parses the sentence at the start of a text, with the rest. Only names are case-sensitive.
    #[must_use]
    pub fn parse(text: &str) -> Option<(Self, &str)> {
        let rest = strip_prefix_any_case(text, "set `")?;
        let (name, rest) = rest.split_once('`')?;
        let (nth, rest) = match strip_prefix_any_case(rest, " (number ") {
            None => (1, rest),
            Some(rest) => {
                let (nth, rest) = rest.split_once(')')?;
                (nth.parse().ok()?, rest)
            }
        };
        let (from, rest) = strip_prefix_any_case(rest, " from ")?.split_once(' ')?;
        let (to, rest) = strip_prefix_any_case(rest, "to ")?.split_once(' ')?;
        let (file, rest) = strip_prefix_any_case(rest, "in `")?.split_once('`')?;
        let id = ConstantId { file: file.to_owned(), name: name.to_owned(), nth };
        Some((Self { id, from: from.to_owned(), to: to.to_owned() }, rest))
    }

    /// Returns true if the change is about this constant, as far as a cut path allows to tell.
    #[must_use]
    pub fn is_about(&self, id: &ConstantId) -> bool {
        let same_file = match self.id.file.strip_prefix(CUT_MARK) {
            Some(end) => id.file.ends_with(end),
            None => id.file == self.id.file,
        };
        same_file && self.id.name == id.name && self.id.nth == id.nth
    }

    /// Renders the change as a unified diff of the file's text.
    ///
    /// # Errors
    /// If there is no such constant, or it has another value; as a message.
    pub fn to_diff(&self, text: &str) -> Result<String, String> {
        let ConstantId { file, name, .. } = &self.id;
        let found = find_constants(file, text).into_iter().find(|constant| constant.id == self.id);
        let constant =
            found.ok_or_else(|| format!("`{file}` has no constant `{name}` that can be set"))?;
        if constant.text != self.from {
            let is = &constant.text;
            return Err(format!("`{name}` in `{file}` is {is} here, not {}", self.from));
        }
        unified_diff(&constant, text, &self.to)
            .ok_or_else(|| format!("`{file}` cannot be taken apart at `{name}`"))
    }
}

/// Strips a prefix, ignoring case.
fn strip_prefix_any_case<'a>(text: &'a str, beginning: &str) -> Option<&'a str> {
    let head = text.get(..beginning.len())?;
    head.eq_ignore_ascii_case(beginning).then(|| text.get(beginning.len()..))?
}

fn unified_diff(constant: &Constant, text: &str, to: &str) -> Option<String> {
    let file = &constant.id.file;
    let before = text.get(..constant.span.start)?;
    let changed = before.matches('\n').count();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let column = constant.span.start - before.rfind('\n').map_or(0, |at| at + 1);
    let old = lines.get(changed)?;
    let end = column + constant.span.len();
    let new = format!("{}{to}{}", old.get(..column)?, old.get(end..)?);
    let first = changed.saturating_sub(DIFF_CONTEXT_LINES);
    let last = (changed + DIFF_CONTEXT_LINES + 1).min(lines.len());
    // In a diff header, a tab ends a name that contains a blank.
    let tab = if file.contains(' ') { "\t" } else { "" };
    let count = last - first;
    let mut diff = format!(
        "diff --git a/{file} b/{file}\n--- a/{file}{tab}\n+++ b/{file}{tab}\n@@ -{start},{count} +{start},{count} @@\n",
        start = first + 1,
    );
    for (number, line) in lines.iter().enumerate().take(last).skip(first) {
        if number == changed {
            push_diff_line(&mut diff, '-', old);
            push_diff_line(&mut diff, '+', &new);
        } else {
            push_diff_line(&mut diff, ' ', line);
        }
    }
    Some(diff)
}

fn push_diff_line(diff: &mut String, sign: char, line: &str) {
    diff.push(sign);
    diff.push_str(line);
    if !line.ends_with('\n') {
        diff.push_str("\n\\ No newline at end of file\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(file: &str, name: &str, nth: u32) -> ConstantChange {
        let id = ConstantId { file: file.to_owned(), name: name.to_owned(), nth };
        ConstantChange { id, from: "0.1".to_owned(), to: "-2e-3".to_owned() }
    }

    #[test]
    fn what_is_said_is_read_back() {
        for said in [
            change("train.py", "LR", 1),
            change("a b/größe.toml", "model.inner part.größe", 2),
            change("x.json", "a-b", 12),
        ] {
            let text = format!("{said}: and more");
            assert_eq!(ConstantChange::parse(&text), Some((said.clone(), ": and more")));
            let (titled, _) = ConstantChange::parse(&said.title()).expect("a title is read");
            assert!(titled.is_about(&said.id));
            assert_eq!(titled, said, "nothing is cut");
        }
        for other in
            ["", "set", "set `a` to 3", "widen the window", "set `a` from 1 to 2 in x", "sét `"]
        {
            assert_eq!(ConstantChange::parse(other), None, "{other}");
        }
    }

    #[test]
    fn a_long_path_is_cut_at_its_front() {
        let long = change(&format!("{}/model/config.py", "deep/".repeat(30)), "learning_rate", 1);
        let title = long.title();
        assert_eq!(title.chars().count(), MAX_TITLE_CHARS);
        assert!(title.ends_with("/model/config.py`"), "{title}");
        let (read, _) = ConstantChange::parse(&title).expect("a title is read");
        assert!(read.is_about(&long.id));
        assert!(!read.is_about(&change("model/config.py", "learning_rate", 1).id));
        assert_eq!((read.from, read.to), (long.from, long.to));
    }

    #[test]
    fn a_diff_shows_the_lines_around() {
        let text = "a\nb\nc\nd\nLR = 0.1 # x\ne\n";
        let diff = change("t.py", "LR", 1).to_diff(text).expect("a diff");
        assert_eq!(
            diff,
            "diff --git a/t.py b/t.py\n--- a/t.py\n+++ b/t.py\n@@ -2,5 +2,5 @@\n b\n c\n d\n-LR = 0.1 # x\n+LR = -2e-3 # x\n e\n"
        );
        let last = change("t.py", "LR", 1).to_diff("LR = 0.1").expect("a diff");
        assert!(last.ends_with(
            "-LR = 0.1\n\\ No newline at end of file\n+LR = -2e-3\n\\ No newline at end of file\n"
        ));
        let why = change("t.py", "LR", 1).to_diff("LR = 0.3\n");
        assert_eq!(why, Err("`LR` in `t.py` is 0.3 here, not 0.1".to_owned()));
        let why = change("t.py", "LR", 2).to_diff("LR = 0.3\n");
        assert_eq!(why, Err("`t.py` has no constant `LR` that can be set".to_owned()));
    }
}
