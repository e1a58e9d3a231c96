//! Parses prompt templates, and fills in their placeholders. An error names its line. Filled-in
//! texts are never parsed, so that braces in them mean nothing.

use super::placeholder::{Placeholder, PlaceholderForm};
use crate::port::AgentRole;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Largest template, in bytes.
pub const MAX_TEMPLATE_BYTES: usize = 64 << 10;

/// Room for the template's own lines in a usual prompt, in bytes.
const TEMPLATE_LINES_BYTES: usize = 4 << 10;

const OPEN_BRACES: &str = "{{";
const CLOSE_BRACES: &str = "}}";
/// Mark before braces that are no placeholder.
const LITERAL_MARK: char = '\\';

/// A prompt with placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptTemplate(Vec<TemplatePiece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum TemplatePiece {
    /// A line with words to be filled in.
    Line(Vec<TemplateSpan>),
    /// An empty line; several in a row become one.
    Blank,
    /// A placeholder on a line of its own.
    Block(Placeholder),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum TemplateSpan {
    Text(String),
    Word(Placeholder),
}

/// An error in a template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{what}", in_line(*line))]
pub struct TemplateError {
    /// Number of the line, counted from 1, if the error is on one.
    pub line: Option<usize>,
    /// Description of the error.
    pub what: String,
}

fn in_line(line: Option<usize>) -> String {
    line.map_or_else(String::new, |line| format!("line {line}: "))
}

/// The texts to fill in, by placeholder; one that is missing or empty is left out.
pub(super) type PromptParts<'a> = BTreeMap<Placeholder, Cow<'a, str>>;

impl PromptTemplate {
    /// Parses a template for a role.
    ///
    /// # Errors
    /// When a placeholder is unknown for this role, in a wrong place, or missing.
    pub fn parse(role: AgentRole, text: &str) -> Result<Self, TemplateError> {
        let (template, wrong) = Self::parse_leniently(role, text);
        wrong.map_or(Ok(template), Err)
    }

    /// Parses as much of a template as possible, and returns it with its first error.
    pub(super) fn parse_leniently(role: AgentRole, text: &str) -> (Self, Option<TemplateError>) {
        let mut reader =
            TemplateReader { role, pieces: Vec::new(), first: BTreeMap::new(), wrong: None };
        if text.len() > MAX_TEMPLATE_BYTES {
            let what = format!("a prompt may have {} KiB at most", MAX_TEMPLATE_BYTES >> 10);
            reader.add_error(None, what);
            return (Self(reader.pieces), reader.wrong);
        }
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        for (number, line) in (1..).zip(text.lines()) {
            reader.read_line(number, line);
        }
        reader.check_missing();
        (Self(reader.pieces), reader.wrong)
    }

    /// Fills in the placeholders.
    pub(super) fn fill(&self, parts: &PromptParts<'_>) -> String {
        let room = parts.values().map(|text| text.len() + 1).sum::<usize>() + TEMPLATE_LINES_BYTES;
        let mut page = PromptPage { text: String::with_capacity(room), owes_blank: false };
        let text_for = |placeholder| parts.get(&placeholder).map_or("", |text| &**text);
        for piece in &self.0 {
            match piece {
                TemplatePiece::Blank => page.owes_blank = true,
                TemplatePiece::Line(spans) => page.add_text(&render_spans(spans, text_for)),
                TemplatePiece::Block(placeholder) => {
                    let text = text_for(*placeholder).trim_end_matches('\n');
                    if text.is_empty() {
                        continue;
                    }
                    let is_section = placeholder.form() == PlaceholderForm::Section;
                    page.owes_blank |= is_section;
                    page.add_text(text);
                    page.owes_blank = is_section;
                }
            }
        }
        page.text
    }
}

fn render_spans<'a>(
    spans: &'a [TemplateSpan],
    text_for: impl Fn(Placeholder) -> &'a str,
) -> String {
    let text = |span: &'a TemplateSpan| match span {
        TemplateSpan::Text(text) => text.as_str(),
        TemplateSpan::Word(placeholder) => text_for(*placeholder),
    };
    spans.iter().map(text).collect()
}

/// A prompt that is being written. Blank lines are written only before more text, so that none is
/// left where a section is missing.
struct PromptPage {
    text: String,
    owes_blank: bool,
}

impl PromptPage {
    fn add_text(&mut self, text: &str) {
        if self.owes_blank && !self.text.is_empty() {
            self.text.push('\n');
        }
        self.owes_blank = false;
        self.text.push_str(text);
        self.text.push('\n');
    }
}

/// A parser that reads a template line by line, and keeps the first error.
struct TemplateReader {
    role: AgentRole,
    pieces: Vec<TemplatePiece>,
    /// Lines where placeholders were first found.
    first: BTreeMap<Placeholder, usize>,
    wrong: Option<TemplateError>,
}

impl TemplateReader {
    fn read_line(&mut self, number: usize, line: &str) {
        let line = line.trim_end();
        if line.is_empty() {
            self.pieces.push(TemplatePiece::Blank);
            return;
        }
        let mut spans = Vec::new();
        let mut rest = line;
        while let Some((before, found, after)) = next_token(rest) {
            spans.push(TemplateSpan::Text(before.to_owned()));
            match self.resolve_token(number, &found) {
                Some(placeholder) if placeholder.form() == PlaceholderForm::Word => {
                    spans.push(TemplateSpan::Word(placeholder));
                }
                Some(placeholder) if line.trim() == found.as_written => {
                    self.pieces.push(TemplatePiece::Block(placeholder));
                    return;
                }
                Some(placeholder) => {
                    let what = format!("`{placeholder}` must have a line for itself");
                    self.add_error(Some(number), what);
                }
                None => spans.push(TemplateSpan::Text(found.literal_text().to_owned())),
            }
            rest = after;
        }
        spans.push(TemplateSpan::Text(rest.to_owned()));
        self.pieces.push(TemplatePiece::Line(spans));
    }

    /// Resolves a token to its placeholder; `None` if it is none, or not allowed.
    fn resolve_token(&mut self, number: usize, found: &BraceToken<'_>) -> Option<Placeholder> {
        let BraceToken { name, kind: way, .. } = found;
        let known = match way {
            BraceKind::Literal => return None,
            BraceKind::Closed => Placeholder::find_for_role(name, self.role),
            // Braces that are never closed may be anything, unless a placeholder's name follows.
            BraceKind::Open => match Placeholder::find_for_role(name, self.role) {
                Ok(one) => Err(format!("`{OPEN_BRACES}{name}` is not closed: write `{one}`")),
                Err(_) => return None,
            },
        };
        match known {
            Ok(one) => self.reject_repeat(number, one),
            Err(what) => {
                self.add_error(Some(number), what);
                None
            }
        }
    }

    /// Returns the placeholder, unless it is a section that was there before.
    fn reject_repeat(&mut self, number: usize, one: Placeholder) -> Option<Placeholder> {
        let first = *self.first.entry(one).or_insert(number);
        let again = self.pieces.contains(&TemplatePiece::Block(one));
        if again {
            let what = format!("`{one}` stands on line {first} already");
            self.add_error(Some(number), what);
        }
        (!again).then_some(one)
    }

    /// Reports the first needed placeholder that is missing.
    fn check_missing(&mut self) {
        let missing = |one: &Placeholder| one.is_needed(self.role) && !self.first.contains_key(one);
        let missing = Placeholder::ALL.into_iter().find(missing);
        if let Some(one) = missing {
            let role = self.role;
            let what =
                format!("the prompt of the role `{role}` needs `{one}`: {}", one.description());
            self.add_error(None, what);
        }
    }

    fn add_error(&mut self, line: Option<usize>, what: String) {
        self.wrong.get_or_insert(TemplateError { line, what });
    }
}

/// A name behind opening braces.
struct BraceToken<'a> {
    name: &'a str,
    /// The token with its braces.
    as_written: &'a str,
    kind: BraceKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum BraceKind {
    Closed,
    /// Without closing braces.
    Open,
    /// Escaped as no placeholder.
    Literal,
}

impl BraceToken<'_> {
    fn literal_text(&self) -> &str {
        self.as_written.trim_start_matches(LITERAL_MARK)
    }
}

/// Finds the next token in a line, and returns the text before it, the token and the text after it.
fn next_token(line: &str) -> Option<(&str, BraceToken<'_>, &str)> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let found = |(start, _): (usize, &str)| {
        let inner = line.get(start + OPEN_BRACES.len()..)?;
        let bare = inner.trim_start();
        let end = bare.find(|c| !is_name(c)).unwrap_or(bare.len());
        let (name, rest) = bare.split_at_checked(end).filter(|(name, _)| !name.is_empty())?;
        let (way, rest) = match rest.trim_start().strip_prefix(CLOSE_BRACES) {
            Some(rest) => (BraceKind::Closed, rest),
            None => (BraceKind::Open, rest),
        };
        let is_literal = line.get(..start)?.ends_with(LITERAL_MARK);
        let (start, way) = if is_literal {
            (start - LITERAL_MARK.len_utf8(), BraceKind::Literal)
        } else {
            (start, way)
        };
        let as_written = line.get(start..line.len() - rest.len())?;
        Some((line.get(..start)?, BraceToken { name, as_written, kind: way }, rest))
    };
    // Of `{{{x}}}` the inner braces count.
    let starts = line.char_indices().filter_map(|(at, _)| Some((at, line.get(at..)?)));
    starts.filter(|(_, rest)| rest.starts_with(OPEN_BRACES)).find_map(found)
}

impl TemplateError {
    /// Returns the message with the name of the template's file.
    #[must_use]
    pub fn message_in_file(&self, file: &str) -> String {
        match self.line {
            Some(line) => format!("`{file}`, line {line}: {}", self.what),
            None => format!("`{file}`: {}", self.what),
        }
    }
}

#[cfg(test)]
mod tests;
