//! A configuration file in TOML or JSON: where it lies, what stands in it, and, where that is wrong, on which line and
//! which key. What the keys mean is said by the tables.

use super::score::{Metrics, ScoreTable};
use super::table::Table;
use super::words::in_words;
use super::{Config, Tables};
use serde::de::{DeserializeOwned, IgnoredAny};
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

/// What is wrong, and where if somebody said it.
#[derive(Debug, thiserror::Error)]
#[error("{}{what}", place.as_ref().map(|place| format!("{place}: ")).unwrap_or_default())]
pub(crate) struct Wrong {
    pub(crate) place: Option<Place>,
    pub(crate) what: String,
}

/// Where something was said.
#[derive(Debug)]
pub(crate) enum Place {
    /// In a configuration file.
    File { file: String, line: Option<usize>, key: Option<String> },
    /// On the command line: the flag with its value.
    Flag(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => write!(f, "`{flag}`"),
            Self::File { file, line, key } => {
                write!(f, "`{file}`")?;
                line.map_or(Ok(()), |line| write!(f, ", line {line}"))?;
                key.as_ref().map_or(Ok(()), |key| write!(f, ": `{key}`"))
            }
        }
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
    /// There are none: the file is a list of metrics.
    Unnamed,
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
        let Table(tables) = origin.parse()?;
        Ok(Self { tables, origin: Some(origin), primary: None })
    }

    /// The same with another `[score]`: from a file that has its keys, in a table of that name or at the top, or is a
    /// list of metrics.
    pub(crate) fn with_metrics(self, here: &Path, file: &Path) -> Result<Self, ConfigError> {
        self.with_score_of(Origin::read(&here.join(file), &file.display().to_string())?)
    }

    /// The same with the `[score]` of another file.
    pub(super) fn with_score_of(self, mut origin: Origin) -> Result<Self, ConfigError> {
        let _: IgnoredAny = origin.parse()?;
        if origin.has("gate") {
            let what =
                "a file of metrics has no gate: `[gate]` belongs into the configuration file";
            let place = Some(origin.place_of("gate"));
            return Err(Wrong { place, what: what.to_owned() }.into());
        }
        origin.keys = origin.keys_of_score();
        let score = match origin.keys {
            Keys::InTheirTable => origin.parse::<Table<Tables>>()?.0.score,
            Keys::AtTheTop => origin.parse::<Table<ScoreTable>>()?.0,
            Keys::Unnamed => ScoreTable::of_metrics(origin.parse::<Metrics>()?),
        };
        let tables = Tables { score, ..self.tables };
        Ok(Self { tables, origin: Some(origin), ..self })
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
        let file = self.name.clone();
        let key = match self.keys {
            Keys::InTheirTable => key,
            Keys::AtTheTop => key.strip_prefix("score.").unwrap_or(key),
            Keys::Unnamed => return Place::File { file, line: None, key: None },
        };
        Place::File { file, line: self.line_of(key), key: Some(key.to_owned()) }
    }

    fn keys_of_score(&self) -> Keys {
        match self.syntax {
            Syntax::Json if self.text.trim_start().starts_with('[') => Keys::Unnamed,
            Syntax::Toml | Syntax::Json if self.has("score") => Keys::InTheirTable,
            Syntax::Toml | Syntax::Json => Keys::AtTheTop,
        }
    }

    /// Whether a key stands at the top of the file.
    fn has(&self, key: &str) -> bool {
        match self.syntax {
            Syntax::Toml => toml_start(&self.text, key).is_some(),
            Syntax::Json => serde_json::from_str::<serde_json::Value>(&self.text)
                .is_ok_and(|document| document.get(key).is_some()),
        }
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
        // Where a key was to be read and is none, the path ends in a question mark.
        let path = path.strip_suffix('?').unwrap_or(path).trim_end_matches('.');
        let key = Some(path.to_owned()).filter(|path| !path.is_empty());
        let what = in_words(message);
        Wrong { place: Some(Place::File { file: self.name.clone(), line, key }), what }
    }

    /// On which line a key stands, or as much of it as there is. The reader of JSON does not say.
    fn line_of(&self, key: &str) -> Option<usize> {
        match self.syntax {
            Syntax::Toml => toml_start(&self.text, key).map(|start| self.line_at(start)),
            Syntax::Json => None,
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
