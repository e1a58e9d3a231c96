//! Masking of code: blanks replace comments and strings of several lines, and every byte keeps its
//! position. No further grammar.

use super::file_kind::FileKind;

/// Replaces comments and long strings by blanks; line ends stay.
pub(super) fn mask_code(text: &str, kind: FileKind) -> String {
    let mut mask = CodeMask { text, kind, at: 0, out: String::with_capacity(text.len()) };
    while let Some(rest) = text.get(mask.at..).filter(|rest| !rest.is_empty()) {
        match mask.comment_or_text(rest) {
            Some(MaskPart { length, shown: MaskVisibility::No }) => mask.blank_bytes(length),
            Some(MaskPart { length, shown: MaskVisibility::Yes }) => mask.keep_bytes(length),
            None => mask.keep_bytes(rest.chars().next().map_or(1, char::len_utf8)),
        }
    }
    mask.out
}

struct CodeMask<'a> {
    text: &'a str,
    kind: FileKind,
    at: usize,
    out: String,
}

struct MaskPart {
    length: usize,
    shown: MaskVisibility,
}

#[derive(Clone, Copy)]
enum MaskVisibility {
    Yes,
    No,
}

impl CodeMask<'_> {
    fn keep_bytes(&mut self, length: usize) {
        let end = (self.at + length).min(self.text.len());
        self.out.push_str(self.text.get(self.at..end).unwrap_or_default());
        self.at = end;
    }

    fn blank_bytes(&mut self, length: usize) {
        let end = (self.at + length).min(self.text.len());
        for byte in self.text.as_bytes().get(self.at..end).unwrap_or_default() {
            self.out.push(if matches!(byte, b'\n' | b'\r') { char::from(*byte) } else { ' ' });
        }
        self.at = end;
    }

    /// Returns the comment or string that begins here.
    fn comment_or_text(&self, rest: &str) -> Option<MaskPart> {
        let part = |length, shown| Some(MaskPart { length, shown });
        if let Some(length) = comment_length(rest, self.kind) {
            return part(length, MaskVisibility::No);
        }
        if let Some(length) = long_text_length(rest, self.kind, self.last_char()) {
            return part(length, MaskVisibility::No);
        }
        part(short_text_length(rest, self.kind, self.last_char())?, MaskVisibility::Yes)
    }

    fn last_char(&self) -> Option<char> {
        self.text.get(..self.at)?.chars().next_back()
    }
}

fn comment_length(rest: &str, kind: FileKind) -> Option<usize> {
    let line = || Some(rest.find('\n').unwrap_or(rest.len()));
    match kind {
        FileKind::Python | FileKind::Toml if rest.starts_with('#') => line(),
        FileKind::Rust | FileKind::CLike | FileKind::Json if rest.starts_with("//") => line(),
        FileKind::Rust | FileKind::CLike | FileKind::Json if rest.starts_with("/*") => {
            Some(block_comment_length(rest, kind))
        }
        FileKind::Python
        | FileKind::Toml
        | FileKind::Rust
        | FileKind::CLike
        | FileKind::Json
        | FileKind::Yaml => None,
    }
}

/// Returns the length of a block comment; those of Rust nest.
fn block_comment_length(rest: &str, kind: FileKind) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(here) = rest.as_bytes().get(at..).filter(|here| !here.is_empty()) {
        if here.starts_with(b"/*") && (depth == 0 || kind == FileKind::Rust) {
            depth += 1;
            at += 2;
        } else if here.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

/// Returns the length of a string that may span several lines.
fn long_text_length(rest: &str, kind: FileKind, last: Option<char>) -> Option<usize> {
    match kind {
        FileKind::Python | FileKind::Toml => {
            let quotes = ["\"\"\"", "'''"].into_iter().find(|quotes| rest.starts_with(quotes))?;
            let raw = kind == FileKind::Toml && quotes.starts_with('\'');
            let escapes = if raw { EscapeRule::No } else { EscapeRule::Yes };
            Some(3 + closed_text_length(rest.get(3..)?, quotes, escapes))
        }
        FileKind::Rust if rest.starts_with('"') => {
            Some(1 + closed_text_length(rest.get(1..)?, "\"", EscapeRule::Yes))
        }
        FileKind::Rust if rest.starts_with('r') && !last.is_some_and(is_word_char) => {
            raw_string_length(rest)
        }
        FileKind::CLike if rest.starts_with('`') => {
            Some(1 + closed_text_length(rest.get(1..)?, "`", EscapeRule::Yes))
        }
        FileKind::Rust | FileKind::CLike | FileKind::Json | FileKind::Yaml => None,
    }
}

fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the length of `r#"…"#`.
fn raw_string_length(rest: &str) -> Option<usize> {
    let after = rest.get(1..)?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    let text = after.get(hashes..)?.strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    Some(2 + hashes + closed_text_length(text, &end, EscapeRule::No))
}

/// Rule for backslashes in a string: escape or ordinary character.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EscapeRule {
    Yes,
    No,
}

/// Returns the length of a string up to and including its end.
fn closed_text_length(text: &str, end: &str, escapes: EscapeRule) -> usize {
    let mut at = 0;
    while let Some(here) = text.as_bytes().get(at..).filter(|here| !here.is_empty()) {
        if here.starts_with(end.as_bytes()) {
            return at + end.len();
        }
        at += if escapes == EscapeRule::Yes && here.starts_with(b"\\") { 2 } else { 1 };
    }
    text.len()
}

/// Returns the length of a string on one line, with its quotes. An unclosed one ends with its line.
fn short_text_length(rest: &str, kind: FileKind, last: Option<char>) -> Option<usize> {
    let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let line = rest.split('\n').next().unwrap_or(rest);
    let inner = line.get(1..)?;
    match (quote, kind) {
        // A lifetime, unless it is a character.
        ('\'', FileKind::Rust) => {
            let mut chars = inner.char_indices();
            let first = chars.next()?;
            let second = chars.next()?;
            match (first.1, second.1) {
                ('\\', _) => Some(1 + closed_text_length(inner, "'", EscapeRule::Yes)),
                (_, '\'') => Some(second.0 + 2),
                _ => None,
            }
        }
        // Digit separators of C++.
        ('\'', FileKind::CLike) if last.is_some_and(|c| c.is_ascii_alphanumeric()) => None,
        ('\'', FileKind::Toml) => Some(1 + closed_text_length(inner, "'", EscapeRule::No)),
        ('\'', FileKind::Json) | (_, FileKind::Yaml) => None,
        (quote, _) => Some(1 + closed_text_length(inner, &quote.to_string(), EscapeRule::Yes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_looks_like_code_is_blank() {
        let check = |kind, text: &str, expected: &str| {
            let mask = mask_code(text, kind);
            assert_eq!(mask, expected, "{text}");
            assert_eq!(mask.len(), text.len());
        };
        check(FileKind::Python, "a = 1 # b = 2\nc", "a = 1        \nc");
        check(FileKind::Python, "\"\"\"\na = 1\n\"\"\"\nb = '#'", "   \n     \n   \nb = '#'");
        check(FileKind::Python, "s = 'it\\'s # 1'\n", "s = 'it\\'s # 1'\n");
        check(FileKind::Python, "# é\r\nx", "    \r\nx");
        check(FileKind::Rust, "/* a /* b */ c */x", "                 x");
        check(FileKind::Rust, "r#\"a\"\nb\"# 'x' &'a '\\'' c", "     \n    'x' &'a '\\'' c");
        check(FileKind::Rust, "for r in \"a // b\" {", "for r in          {");
        check(FileKind::CLike, "a = \"// \"; // c", "a = \"// \";     ");
        check(FileKind::CLike, "`a\nb` 1'000 'c'", "  \n   1'000 'c'");
        check(FileKind::Toml, "a = 'C:\\' # x\n", "a = 'C:\\'    \n");
        check(FileKind::Python, "\"open", "\"open");
        check(FileKind::Python, "'''open\\", "        ");
        check(FileKind::Rust, "/* open é", "          ");
    }
}
