//! Constants of a JSON text: numbers and flags with a key, prefixed by the enclosing keys. Lenient:
//! text that is not JSON merely has few of them.

use super::named_span::NamedSpan;

/// Maximum nesting depth that is searched.
const MAX_JSON_DEPTH: usize = 64;

/// Finds every number and flag that has a key, in order.
pub(super) fn find_in_json(mask: &str) -> Vec<NamedSpan> {
    let mut walk = JsonWalk { text: mask, at: 0, names: Vec::new(), name: None, found: Vec::new() };
    while walk.step().is_some() && walk.names.len() <= MAX_JSON_DEPTH {}
    walk.found
}

struct JsonWalk<'a> {
    text: &'a str,
    at: usize,
    /// Keys of the open containers; a list has that of its own key.
    names: Vec<JsonContainer<'a>>,
    /// Key of the next value.
    name: Option<&'a str>,
    found: Vec<NamedSpan>,
}

struct JsonContainer<'a> {
    name: Option<&'a str>,
    is_object: bool,
}

impl<'a> JsonWalk<'a> {
    fn step(&mut self) -> Option<()> {
        let rest = self.text.get(self.at..)?;
        let first = rest.chars().next()?;
        match first {
            '{' | '[' => {
                self.names.push(JsonContainer { name: self.name.take(), is_object: first == '{' });
                self.at += 1;
            }
            '}' | ']' => {
                self.names.pop();
                self.name = None;
                self.at += 1;
            }
            '"' => self.read_text(rest)?,
            '-' | '+' | '.' | '0'..='9' | 't' | 'f' | 'n' => self.read_value(rest),
            ',' => {
                self.name = None;
                self.at += 1;
            }
            other => self.at += other.len_utf8(),
        }
        Some(())
    }

    /// Reads a string: a key if a colon follows.
    fn read_text(&mut self, rest: &'a str) -> Option<()> {
        let mut escaped = false;
        let end = rest.char_indices().skip(1).find(|(_, c)| {
            let ends = *c == '"' && !escaped;
            escaped = *c == '\\' && !escaped;
            ends
        });
        let (end, _) = end?;
        self.at += end + 1;
        let after = rest.get(end + 1..)?.trim_start();
        let in_object = self.names.last().is_some_and(|open| open.is_object);
        self.name = rest.get(1..end).filter(|_| in_object && after.starts_with(':'));
        Some(())
    }

    fn read_value(&mut self, rest: &str) {
        let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.' | '_');
        let end = rest.find(|c| !part(c)).unwrap_or(rest.len()).max(1);
        if let Some(name) = self.name.take() {
            let around = self.names.iter().filter_map(|open| open.name);
            let name = around.chain([name]).collect::<Vec<_>>().join(".");
            self.found.push(NamedSpan { name, span: self.at..self.at + end });
        }
        self.at += end;
    }
}
