//! A prompt with open places: read once, with every mistake told by its line, and filled in as often as needed. What is
//! filled in is never read again, so that braces in it mean nothing.

use super::placeholder::{Form, Placeholder};
use crate::port::Role;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The longest template, in bytes.
pub const MOST_BYTES: usize = 64 << 10;

/// What the lines of a usual template take themselves.
const LINES_BYTES: usize = 4 << 10;

const OPEN: &str = "{{";
const CLOSE: &str = "}}";
/// Before an open place that is none.
const LITERAL: char = '\\';

/// A prompt with open places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    /// A line with words to be filled in.
    Line(Vec<Span>),
    /// An empty line. Of several one is left.
    Blank,
    /// A placeholder that has its line for itself.
    Block(Placeholder),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Span {
    Text(String),
    Word(Placeholder),
}

/// What is wrong with a template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{what}", in_line(*line))]
pub struct TemplateError {
    /// On which line, counted from 1, where it is on one.
    pub line: Option<usize>,
    /// What it is.
    pub what: String,
}

fn in_line(line: Option<usize>) -> String {
    line.map_or_else(String::new, |line| format!("line {line}: "))
}

/// What is filled in, by placeholder; what is missing or empty has nothing to say.
pub(super) type Parts<'a> = BTreeMap<Placeholder, Cow<'a, str>>;

impl Template {
    /// Reads a template for a role.
    ///
    /// # Errors
    /// When a placeholder does not exist for this role, stands where it cannot, or is missing.
    pub fn parse(role: Role, text: &str) -> Result<Self, TemplateError> {
        let (template, wrong) = Self::read(role, text);
        wrong.map_or(Ok(template), Err)
    }

    /// What can be made of a text, and the first thing that is wrong with it.
    pub(super) fn read(role: Role, text: &str) -> (Self, Option<TemplateError>) {
        let mut reader = Reader { role, pieces: Vec::new(), first: BTreeMap::new(), wrong: None };
        if text.len() > MOST_BYTES {
            let what = format!("a prompt may have {} KiB at most", MOST_BYTES >> 10);
            reader.complain(None, what);
            return (Self(reader.pieces), reader.wrong);
        }
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        for (number, line) in (1..).zip(text.lines()) {
            reader.line(number, line);
        }
        reader.miss();
        (Self(reader.pieces), reader.wrong)
    }

    /// Fills it in.
    pub(super) fn fill(&self, parts: &Parts<'_>) -> String {
        let room = parts.values().map(|text| text.len() + 1).sum::<usize>() + LINES_BYTES;
        let mut page = Page { text: String::with_capacity(room), owes_blank: false };
        let said = |placeholder| parts.get(&placeholder).map_or("", |text| &**text);
        for piece in &self.0 {
            match piece {
                Piece::Blank => page.owes_blank = true,
                Piece::Line(spans) => page.add(&line(spans, said)),
                Piece::Block(placeholder) => {
                    let text = said(*placeholder).trim_end_matches('\n');
                    if text.is_empty() {
                        continue;
                    }
                    let is_section = placeholder.form() == Form::Section;
                    page.owes_blank |= is_section;
                    page.add(text);
                    page.owes_blank = is_section;
                }
            }
        }
        page.text
    }
}

fn line<'a>(spans: &'a [Span], said: impl Fn(Placeholder) -> &'a str) -> String {
    let text = |span: &'a Span| match span {
        Span::Text(text) => text.as_str(),
        Span::Word(placeholder) => said(*placeholder),
    };
    spans.iter().map(text).collect()
}

/// A prompt as it is written down. Blank lines come before the next text only, so that none is left where a section is not.
struct Page {
    text: String,
    owes_blank: bool,
}

impl Page {
    fn add(&mut self, text: &str) {
        if self.owes_blank && !self.text.is_empty() {
            self.text.push('\n');
        }
        self.owes_blank = false;
        self.text.push_str(text);
        self.text.push('\n');
    }
}

/// Reads line by line, and remembers the first mistake.
struct Reader {
    role: Role,
    pieces: Vec<Piece>,
    /// Where placeholders were first met.
    first: BTreeMap<Placeholder, usize>,
    wrong: Option<TemplateError>,
}

impl Reader {
    fn line(&mut self, number: usize, line: &str) {
        let line = line.trim_end();
        if line.is_empty() {
            self.pieces.push(Piece::Blank);
            return;
        }
        let mut spans = Vec::new();
        let mut rest = line;
        while let Some((before, found, after)) = next(rest) {
            spans.push(Span::Text(before.to_owned()));
            match self.found(number, &found) {
                Some(placeholder) if placeholder.form() == Form::Word => {
                    spans.push(Span::Word(placeholder));
                }
                Some(placeholder) if line.trim() == found.as_written => {
                    self.pieces.push(Piece::Block(placeholder));
                    return;
                }
                Some(placeholder) => {
                    let what = format!("`{placeholder}` must have a line for itself");
                    self.complain(Some(number), what);
                }
                None => spans.push(Span::Text(found.literally().to_owned())),
            }
            rest = after;
        }
        spans.push(Span::Text(rest.to_owned()));
        self.pieces.push(Piece::Line(spans));
    }

    /// The placeholder that was met, if it is one.
    fn found(&mut self, number: usize, found: &Found<'_>) -> Option<Placeholder> {
        let Found { name, way, .. } = found;
        let known = match way {
            Way::Literal => return None,
            Way::Closed => Placeholder::find(name, self.role),
            // Braces that are never closed may be anything, but for this.
            Way::Open => match Placeholder::find(name, self.role) {
                Ok(one) => Err(format!("`{OPEN}{name}` is not closed: write `{one}`")),
                Err(_) => return None,
            },
        };
        match known {
            Ok(one) => self.once(number, one),
            Err(what) => {
                self.complain(Some(number), what);
                None
            }
        }
    }

    /// The same placeholder, unless it is a section that was there before.
    fn once(&mut self, number: usize, one: Placeholder) -> Option<Placeholder> {
        let first = *self.first.entry(one).or_insert(number);
        let again = self.pieces.contains(&Piece::Block(one));
        if again {
            let what = format!("`{one}` stands on line {first} already");
            self.complain(Some(number), what);
        }
        (!again).then_some(one)
    }

    /// Complains of what should have been there.
    fn miss(&mut self) {
        let missing = |one: &Placeholder| one.is_needed(self.role) && !self.first.contains_key(one);
        let missing = Placeholder::ALL.into_iter().find(missing);
        if let Some(one) = missing {
            let role = self.role;
            let what = format!("the prompt of the role `{role}` needs `{one}`: {}", one.about());
            self.complain(None, what);
        }
    }

    fn complain(&mut self, line: Option<usize>, what: String) {
        self.wrong.get_or_insert(TemplateError { line, what });
    }
}

/// Something between braces.
struct Found<'a> {
    name: &'a str,
    /// With its braces.
    as_written: &'a str,
    way: Way,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Closed,
    /// Without an end.
    Open,
    /// Marked as no placeholder.
    Literal,
}

impl Found<'_> {
    fn literally(&self) -> &str {
        self.as_written.trim_start_matches(LITERAL)
    }
}

/// The next name after braces in a line, what is before it and what comes after.
fn next(line: &str) -> Option<(&str, Found<'_>, &str)> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let found = |(start, _): (usize, &str)| {
        let inner = line.get(start + OPEN.len()..)?;
        let bare = inner.trim_start();
        let end = bare.find(|c| !is_name(c)).unwrap_or(bare.len());
        let (name, rest) = bare.split_at_checked(end).filter(|(name, _)| !name.is_empty())?;
        let (way, rest) = match rest.trim_start().strip_prefix(CLOSE) {
            Some(rest) => (Way::Closed, rest),
            None => (Way::Open, rest),
        };
        let is_literal = line.get(..start)?.ends_with(LITERAL);
        let (start, way) =
            if is_literal { (start - LITERAL.len_utf8(), Way::Literal) } else { (start, way) };
        let as_written = line.get(start..line.len() - rest.len())?;
        Some((line.get(..start)?, Found { name, as_written, way }, rest))
    };
    // Of `{{{x}}}` the inner braces count.
    let starts = line.char_indices().filter_map(|(at, _)| Some((at, line.get(at..)?)));
    starts.filter(|(_, rest)| rest.starts_with(OPEN)).find_map(found)
}

impl TemplateError {
    /// In words, with the file that it is in.
    #[must_use]
    pub fn in_file(&self, file: &str) -> String {
        match self.line {
            Some(line) => format!("`{file}`, line {line}: {}", self.what),
            None => format!("`{file}`: {}", self.what),
        }
    }
}

#[cfg(test)]
mod tests;
