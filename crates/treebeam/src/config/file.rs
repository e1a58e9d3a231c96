//! A configuration file in TOML or JSON: where it lies, what stands in it, and, where that is wrong, on which line and
//! which key. What the keys mean is said by the tables.

use super::score::ScoreTable;
use super::{Config, Tables};
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor,
};
use std::fmt;
use std::path::{Path, PathBuf};
use treebeam_edge::input::{self, InputError};

/// What a configuration file is called where nobody says otherwise.
pub(crate) const NAME: &str = "treebeam.toml";
/// The longest one that is read.
const MOST_BYTES: u64 = 1 << 20;

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// The file cannot be read.
    #[error(transparent)]
    Unreadable(#[from] InputError),
    /// Nobody knows how to read it.
    #[error("`{0}` is neither a `.toml` nor a `.json` file")]
    Format(String),
    /// What stands in it is wrong.
    #[error(transparent)]
    Wrong(#[from] Wrong),
}

/// What is wrong, and where if it is in a file.
#[derive(Debug, thiserror::Error)]
#[error("{}{what}", place.as_ref().map(|place| format!("{place}: ")).unwrap_or_default())]
pub(crate) struct Wrong {
    pub(crate) place: Option<Place>,
    pub(crate) what: String,
}

/// A place in a configuration file.
#[derive(Debug)]
pub(crate) struct Place {
    file: String,
    line: Option<usize>,
    key: Option<String>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.file)?;
        self.line.map_or(Ok(()), |line| write!(f, ", line {line}"))?;
        self.key.as_ref().map_or(Ok(()), |key| write!(f, ": `{key}`"))
    }
}

/// The file that a configuration is from.
#[derive(Debug)]
pub(crate) struct Origin {
    name: String,
    text: String,
    syntax: Syntax,
    keys: Keys,
}

#[derive(Clone, Copy, Debug)]
enum Syntax {
    Toml,
    Json,
}

/// Where the keys of `[score]` stand.
#[derive(Clone, Copy, Debug)]
enum Keys {
    InTheirTable,
    AtTheTop,
}

impl Config {
    /// The file that was given, or else the one that lies nearest above a folder; none is fine too.
    pub(crate) fn load(here: &Path, given: Option<&Path>) -> Result<Self, ConfigError> {
        let origin = match given {
            Some(file) => Origin::read(&here.join(file), &file.display().to_string())?,
            None => match find(here) {
                None => return Ok(Self::default()),
                Some((path, name)) => Origin::read(&path, &name)?,
            },
        };
        Self::of(origin)
    }

    /// What stands in a file.
    pub(super) fn of(origin: Origin) -> Result<Self, ConfigError> {
        let tables = origin.parse()?;
        Ok(Self { tables, origin: Some(origin) })
    }

    /// The same with another `[score]`: from a file that has its keys, in a table of that name or at the top.
    pub(crate) fn with_metrics(self, here: &Path, file: &Path) -> Result<Self, ConfigError> {
        self.with_score_of(Origin::read(&here.join(file), &file.display().to_string())?)
    }

    /// The same with the `[score]` of another file.
    pub(super) fn with_score_of(self, mut origin: Origin) -> Result<Self, ConfigError> {
        if origin.line_of("score").is_none() {
            origin.keys = Keys::AtTheTop;
        }
        let score = match origin.keys {
            Keys::InTheirTable => origin.parse::<Tables>()?.score,
            Keys::AtTheTop => origin.parse::<ScoreTable>()?,
        };
        let tables = Tables { score, ..self.tables };
        Ok(Self { tables, origin: Some(origin) })
    }
}

/// The nearest `treebeam.toml` from a folder up to the top of its repository, and what to call it. Outside of any
/// repository only the folder itself is looked at.
fn find(here: &Path) -> Option<(PathBuf, String)> {
    let here = here.canonicalize().ok()?;
    let in_folder = |folder: &Path| Some(folder.join(NAME)).filter(|path| path.exists());
    let top = here.ancestors().position(|folder| folder.join(".git").exists()).unwrap_or(0);
    let path = here.ancestors().take(top + 1).find_map(in_folder)?;
    let name = if path.parent() == Some(&here) { NAME.into() } else { path.to_string_lossy() };
    Some((path.clone(), name.into_owned()))
}

impl Origin {
    fn read(path: &Path, name: &str) -> Result<Self, ConfigError> {
        Self::new(name, || Ok(input::text(path, name, MOST_BYTES)?))
    }

    /// A file of that name, which says how to read it, with the text that it has.
    pub(super) fn new(
        name: &str,
        text: impl FnOnce() -> Result<String, ConfigError>,
    ) -> Result<Self, ConfigError> {
        let syntax = match Path::new(name).extension().and_then(|extension| extension.to_str()) {
            Some("toml") => Syntax::Toml,
            Some("json") => Syntax::Json,
            Some(_) | None => return Err(ConfigError::Format(name.to_owned())),
        };
        Ok(Self { name: name.to_owned(), text: text()?, syntax, keys: Keys::InTheirTable })
    }

    /// Where a key stands: `score.thresholds`.
    pub(crate) fn place_of(&self, key: &str) -> Place {
        let key = match self.keys {
            Keys::InTheirTable => key,
            Keys::AtTheTop => key.strip_prefix("score.").unwrap_or(key),
        };
        Place { file: self.name.clone(), line: self.line_of(key), key: Some(key.to_owned()) }
    }

    fn parse<T: DeserializeOwned>(&self) -> Result<T, Wrong> {
        match self.syntax {
            Syntax::Toml => self.parse_toml(),
            Syntax::Json => self.parse_json(),
        }
    }

    fn parse_toml<T: DeserializeOwned>(&self) -> Result<T, Wrong> {
        let line = |error: &toml::de::Error| error.span().map(|span| self.line_at(span.start));
        let reader = toml::Deserializer::parse(&self.text)
            .map_err(|error| self.wrong(line(&error), "", error.message()))?;
        serde_path_to_error::deserialize(reader).map_err(|error| {
            let (path, error) = (error.path().to_string(), error.into_inner());
            self.wrong(line(&error), &path, error.message())
        })
    }

    fn parse_json<T: DeserializeOwned>(&self) -> Result<T, Wrong> {
        let wrong = |path: &str, error: &serde_json::Error| {
            let (line, text) = (error.line(), error.to_string());
            let place = format!(" at line {line} column {}", error.column());
            self.wrong(Some(line).filter(|line| *line > 0), path, text.trim_end_matches(&place))
        };
        let mut reader = serde_json::Deserializer::from_str(&self.text);
        let value = serde_path_to_error::deserialize(&mut reader)
            .map_err(|error| wrong(&error.path().to_string(), error.inner()))?;
        reader.end().map_err(|error| wrong("", &error))?;
        Ok(value)
    }

    fn wrong(&self, line: Option<usize>, path: &str, message: &str) -> Wrong {
        let key = Some(path.to_owned()).filter(|path| !matches!(path.as_str(), "" | "."));
        let what = in_words(message);
        Wrong { place: Some(Place { file: self.name.clone(), line, key }), what }
    }

    /// On which line a key stands, or as much of it as there is.
    fn line_of(&self, key: &str) -> Option<usize> {
        match self.syntax {
            Syntax::Toml => toml_start(&self.text, key).map(|start| self.line_at(start)),
            Syntax::Json => json_line(&self.text, key),
        }
    }

    fn line_at(&self, byte: usize) -> usize {
        let before = self.text.as_bytes().get(..byte).unwrap_or_default();
        before.split(|byte| *byte == b'\n').count()
    }
}

fn toml_start(text: &str, key: &str) -> Option<usize> {
    let document = toml::de::DeTable::parse(text).ok()?;
    let mut table = document.get_ref();
    let mut start = None;
    for part in key.split('.') {
        let Some((name, value)) = table.iter().find(|(name, _)| name.get_ref() == part) else {
            break;
        };
        start = Some(name.span().start);
        let Some(below) = value.get_ref().as_table() else { break };
        table = below;
    }
    start
}

/// The JSON reader knows its line only when something is wrong: so a key is complained of where it stands.
fn json_line(text: &str, key: &str) -> Option<usize> {
    let parts: Vec<&str> = key.split('.').collect();
    let mut reader = serde_json::Deserializer::from_str(text);
    let error = Complain(&parts).deserialize(&mut reader).err()?;
    error.to_string().starts_with(HERE).then(|| error.line())
}

const HERE: &str = "here";

/// Reads until a key, given by its parts, and complains of it.
struct Complain<'a>(&'a [&'a str]);

impl<'de> DeserializeSeed<'de> for Complain<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Complain<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut table: A) -> Result<(), A::Error> {
        while let Some(key) = table.next_key::<String>()? {
            match self.0 {
                [part] if *part == key => return Err(A::Error::custom(HERE)),
                [part, rest @ ..] if *part == key => table.next_value_seed(Complain(rest))?,
                _ => drop(table.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// What the reader complains of, in the words of this program.
fn in_words(message: &str) -> String {
    let message = message.replace('\n', ", ");
    if let Some(rest) = message.strip_prefix("unknown field ") {
        return unknown_key(rest);
    }
    if let Some(key) = message.strip_prefix("missing field ") {
        return format!("the key {key} is missing");
    }
    let kinds = ["invalid type: ", "invalid value: ", "unknown variant "];
    let found = kinds.iter().find_map(|kind| message.strip_prefix(kind));
    match found.and_then(|found| found.rsplit_once(", expected ")) {
        Some((found, expected)) => format!("it must be {}, not {found}", kind(expected)),
        None => message,
    }
}

/// A kind of value, for people.
fn kind(expected: &str) -> &str {
    match expected {
        "f64" => "a number",
        "i64" => "a whole number",
        "a boolean" => "`true` or `false`",
        "a string" => "a text in quotes",
        "a sequence" => "a list",
        other => other,
    }
}

/// The reader names the unknown key and all that it knows, each in backticks.
fn unknown_key(message: &str) -> String {
    let mut names = message.split('`').skip(1).step_by(2);
    let key = names.next().unwrap_or_default();
    let nearest = nearest(key, names).unwrap_or_default();
    format!("there is no such key{nearest}")
}

/// The name that was most likely meant, or all of them: the end of a sentence.
pub(super) fn nearest<'a>(
    wanted: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    const ALIKE: f64 = 0.75;
    let known: Vec<&str> = known.into_iter().collect();
    let likeness = |name: &&&str| strsim::jaro_winkler(wanted, name);
    let best = known.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    Some(if likeness(&best) >= ALIKE {
        format!("; nearest: `{best}`")
    } else {
        format!("; known: `{}`", known.join("`, `"))
    })
}
