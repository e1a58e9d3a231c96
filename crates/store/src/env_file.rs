//! Reads `.env` files: variables, mostly keys, beside the user's code. Values go into
//! [`EnvVariables`], never into this process's environment; a [`Secret`] is never printed by
//! accident.

use crate::input::{self, InputError};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufRead as _, Cursor, Read};
use std::path::Path;
use std::rc::Rc;

/// The longest `.env` file that is read.
const MAX_ENV_FILE_BYTES: u64 = 1 << 20;

/// A value that must not be printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a value that must not be printed.
    #[must_use]
    pub const fn new(value: String) -> Self {
        Self(value)
    }

    /// Returns the value itself.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(hidden)")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("hidden")
    }
}

/// The reason why a `.env` file cannot be used. No variant contains a value of the file.
#[derive(Debug, thiserror::Error)]
pub enum EnvError {
    /// The file cannot be read.
    #[error(transparent)]
    Unreadable(#[from] InputError),
    /// A line is not `NAME=value`.
    #[error(
        "`{file}`, line {line}: it must be `NAME=value`, with quotes around a value that has spaces"
    )]
    Line {
        /// Name of the file.
        file: String,
        /// Number of the line that the entry begins on.
        line: usize,
    },
}

/// A variable of a `.env` file.
#[derive(Clone, Debug)]
pub struct EnvVariable {
    /// Value of the variable.
    pub value: Secret,
    /// Name of the file that the variable is from.
    pub file: String,
}

/// The variables of some `.env` files.
#[derive(Clone, Debug, Default)]
pub struct EnvVariables(BTreeMap<String, EnvVariable>);

impl EnvVariables {
    /// Adds the variables of a file, called `name` in errors. Variables that exist already keep
    /// their value; a missing file adds nothing.
    ///
    /// # Errors
    /// When the file cannot be read, or a line of it is wrong.
    pub fn add_file(&mut self, path: &Path, name: &str) -> Result<(), EnvError> {
        if !path.exists() {
            return Ok(());
        }
        for (key, value) in
            parse_env_file(&input::read_text(path, name, MAX_ENV_FILE_BYTES)?, name)?
        {
            let file = name.to_owned();
            self.0.entry(key).or_insert(EnvVariable { value: Secret(value), file });
        }
        Ok(())
    }

    /// Returns a variable by name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&EnvVariable> {
        self.0.get(name)
    }

    /// Returns all variables, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &EnvVariable)> {
        self.0.iter().map(|(name, variable)| (name.as_str(), variable))
    }
}

/// Parses the text of a `.env` file. The last value of a name counts.
fn parse_env_file(text: &str, name: &str) -> Result<BTreeMap<String, String>, EnvError> {
    let lines = Rc::new(Cell::new(0));
    let reader =
        LineCountingReader { text: Cursor::new(text.as_bytes()), lines: Rc::clone(&lines) };
    let mut found = BTreeMap::new();
    for entry in dotenvy::from_read_iter(reader) {
        let (key, value) = entry.map_err(|error| {
            let mut more = 0;
            if let dotenvy::Error::LineParse(entry, _) = &error {
                more = entry.trim_end().matches('\n').count();
            }
            EnvError::Line { file: name.to_owned(), line: lines.get().saturating_sub(more) }
        })?;
        found.insert(key, value);
    }
    Ok(found)
}

/// A reader that gives and counts single lines: the `.env` parser reports no position.
struct LineCountingReader<'a> {
    text: Cursor<&'a [u8]>,
    lines: Rc<Cell<usize>>,
}

impl Read for LineCountingReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = self.text.fill_buf()?;
        let end = rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |at| at + 1);
        let line = rest.get(..end.min(buffer.len())).unwrap_or_default();
        if line.ends_with(b"\n") || (!line.is_empty() && line.len() == rest.len()) {
            self.lines.set(self.lines.get() + 1);
        }
        let read = line.len();
        buffer.get_mut(..read).unwrap_or_default().copy_from_slice(line);
        self.text.consume(read);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_wrong_line_is_named_and_its_value_is_not() {
        let check = |text: &str, expect: &str| {
            let said = parse_env_file(text, ".env").map(|found| format!("{found:?}"));
            let said = said.unwrap_or_else(|error| error.to_string());
            let expect = match expect.parse::<usize>() {
                Ok(line) => format!(
                    "`.env`, line {line}: it must be `NAME=value`, with quotes around a value that has spaces"
                ),
                Err(_) => expect.to_owned(),
            };
            assert_eq!(said, expect, "{text:?}");
        };
        check("", "{}");
        check(
            "# a comment\n\nA=1\nexport B='two words' # why\n",
            r#"{"A": "1", "B": "two words"}"#,
        );
        check("A=1\nA=2\n", r#"{"A": "2"}"#);
        check("A=\"1\n2\"\nB=3", r#"{"A": "1\n2", "B": "3"}"#);
        check("A=1\nsk-12345\nB=2\n", "2");
        check("sk-12345", "1");
        check("\n# x\nA=two words\n", "3");
        check("A=1\n\nB='open\nsk-12345\n", "3");
    }

    #[test]
    fn what_is_there_stays_and_nothing_is_shown() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("a"), "KEY=first\nONE=1\n").unwrap();
        fs::write(path("b"), "KEY=second\nTWO=2\n").unwrap();
        let mut variables = EnvVariables::default();
        for name in ["a", "none", "b"] {
            variables.add_file(&path(name), name).unwrap();
        }
        let key = variables.get("KEY").unwrap();
        assert_eq!((key.value.reveal(), key.file.as_str()), ("first", "a"));
        let names: Vec<&str> = variables.iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["KEY", "ONE", "TWO"]);
        let shown = format!("{variables:?} {}", key.value);
        assert!(!shown.contains("first") && shown.contains("hidden"), "{shown}");
        assert!(variables.add_file(folder.path(), "folder").is_err());
    }
}
