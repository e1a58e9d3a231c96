//! Constants of a file: numbers and flags assigned to a name on a line of their own. Skips
//! variables that the program changes, and names that are useless or unfair to tune.

use super::code_mask::mask_code;
use super::file_kind::FileKind;
use super::literal::Literal;
use super::named_span::{NamedSpan, lines_with_offsets, span_of_part};
use super::{json, toml_yaml};
use std::collections::BTreeMap;
use std::ops::Range;

/// Maximum length of a name.
const MAX_NAME_CHARS: usize = 40;
/// Maximum length of a literal.
const MAX_LITERAL_BYTES: usize = 16;
/// Name endings without relation to the quality of the code: a lucky seed is no improvement.
const UNTUNABLE_NAMES: [&str; 6] = ["seed", "random_state", "version", "edition", "port", "schema"];

/// Constant of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Constant {
    /// Id of the constant.
    pub id: ConstantId,
    /// Literal as written.
    pub text: String,
    /// Parsed literal.
    pub literal: Literal,
    /// Position of the literal in the file, in bytes.
    pub span: Range<usize>,
}

/// Id of a constant among all files.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConstantId {
    /// Path of the file, with `/`.
    pub file: String,
    /// Name, prefixed with those of the enclosing tables: `train.rate`.
    pub name: String,
    /// Number among the constants of that name in the file, counted from 1, ignoring case.
    pub nth: u32,
}

/// Finds the constants of a file, in order.
#[must_use]
pub fn find_constants(file: &str, text: &str) -> Vec<Constant> {
    let Some(kind) = FileKind::from_path(file) else { return Vec::new() };
    let mask = mask_code(text, kind);
    let found = match kind {
        FileKind::Json => json::find_in_json(&mask),
        FileKind::Toml => toml_yaml::find_in_toml(&mask),
        FileKind::Yaml => toml_yaml::find_in_yaml(&mask),
        FileKind::Python | FileKind::Rust | FileKind::CLike => find_in_code(&mask, kind),
    };
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    let mut constants = Vec::new();
    for NamedSpan { name, span } in found {
        let Some(text) = text.get(span.clone()).filter(|text| text.len() <= MAX_LITERAL_BYTES)
        else {
            continue;
        };
        let Some(literal) = Literal::parse(text, kind) else { continue };
        let plain = name.to_lowercase();
        let nth = seen.entry(plain.clone()).or_default();
        *nth += 1;
        let nth = *nth;
        let changes = kind.is_code() && is_changed_later(&mask, &name);
        if is_valid_name(&name) && !is_untunable(&plain) && !changes {
            let id = ConstantId { file: file.to_owned(), name, nth };
            constants.push(Constant { id, text: text.to_owned(), literal, span });
        }
    }
    constants
}

/// Returns true if a name can be written in an idea.
fn is_valid_name(name: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '$' | '/' | ' ');
    !name.trim().is_empty() && name.chars().count() <= MAX_NAME_CHARS && name.chars().all(plain)
}

fn is_untunable(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name).trim_matches('_');
    UNTUNABLE_NAMES.iter().any(|idle| last == *idle || last.ends_with(&format!("_{idle}")))
}

/// Returns true if the code updates the variable, as in `x += 1` or `x++`.
fn is_changed_later(mask: &str, name: &str) -> bool {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    mask.match_indices(name).any(|(at, _)| {
        let before = mask.get(..at).and_then(|text| text.chars().next_back());
        let after = mask.get(at + name.len()..).unwrap_or_default().trim_start_matches(' ');
        let counts = ["+=", "-=", "*=", "/=", "++", "--", "%=", "//=", "**=", "|=", "&="];
        !before.is_some_and(word) && counts.iter().any(|sign| after.starts_with(sign))
    })
}

fn find_in_code(mask: &str, kind: FileKind) -> Vec<NamedSpan> {
    let mut found = Vec::new();
    for (start, line) in lines_with_offsets(mask) {
        let Some((name, value)) = parse_assignment(line, kind) else { continue };
        let value = value.trim().trim_end_matches([',', ';', '}', ')', ' ']);
        if let Some(span) = span_of_part(start, line, value) {
            found.push(NamedSpan { name: name.to_owned(), span });
        }
    }
    found
}

/// Parses an assignment in a line of code into name and value.
fn parse_assignment(line: &str, kind: FileKind) -> Option<(&str, &str)> {
    let line = line.trim();
    if let Some(rest) = line.strip_prefix("#define ").filter(|_| kind == FileKind::CLike) {
        return rest.trim_start().split_once(' ').filter(|(name, _)| is_dotted_name(name));
    }
    if let Some((name, value)) = parse_quoted_key(line) {
        return Some((name, value));
    }
    if let Some((before, value)) = line.split_once('=') {
        return Some((assigned_name(before, kind)?, value));
    }
    let (name, value) = line.split_once(':').filter(|_| kind != FileKind::Python)?;
    Some((Some(name.trim_end()).filter(|name| is_dotted_name(name))?, value))
}

/// Parses `"name": value`, as in a dictionary.
fn parse_quoted_key(line: &str) -> Option<(&str, &str)> {
    let quote = line.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let (name, rest) = line.get(1..)?.split_once(quote)?;
    Some((name, rest.trim_start().strip_prefix(':')?))
}

/// Returns the name in `pub const NAME: f64`, `static double name` or `self.name: float`.
fn assigned_name(before: &str, kind: FileKind) -> Option<&str> {
    let before = before.trim_end().trim_end_matches(':').trim_end();
    let target = before.split_once(": ").map_or(before, |(target, _type)| target.trim_end());
    let words: Vec<&str> = target.split_whitespace().collect();
    let (name, qualifiers) = words.split_last()?;
    let fits = match kind {
        FileKind::Python => qualifiers.is_empty(),
        FileKind::Rust => {
            let declares =
                qualifiers.iter().any(|word| matches!(*word, "const" | "static" | "let"));
            declares && !qualifiers.contains(&"mut")
        }
        FileKind::CLike => qualifiers.iter().all(|word| is_type_word(word)),
        FileKind::Toml | FileKind::Json | FileKind::Yaml => false,
    };
    let name = name.trim_start_matches(['*', '.']);
    Some(name).filter(|name| fits && is_dotted_name(name))
}

/// Returns true for a name, or several separated by points.
fn is_dotted_name(text: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '$');
    let digit_first = text.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    !text.is_empty() && !digit_first && text.chars().all(plain)
}

fn is_type_word(word: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || "_:<>*&.,[]".contains(c);
    word.chars().all(plain) && !matches!(word, "return" | "case" | "if" | "else" | "for" | "while")
}

#[cfg(test)]
#[path = "constant/tests.rs"]
mod tests;
