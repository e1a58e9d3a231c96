//! Finds and parses a configuration file in TOML or JSON, and locates errors by line and key.
//!
//! The meaning of the keys is defined in the tables.

use super::ConfigTables;
use super::config_key::ConfigKey;
use super::key_errors::describe_key_error;
use super::origin::{ConfigPosition, SettingError, SettingOrigin};
use super::score::{MetricList, ScoreTable};
use super::table::TableValue;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor,
};
use serde_json::{Value, json};
use std::fmt;
use std::path::{Path, PathBuf};
use treebeam_store::input::{self, InputError};

/// Default name of the configuration file.
pub(crate) const CONFIG_FILE_NAME: &str = "treebeam.toml";
/// Maximum size of a configuration file.
const MAX_CONFIG_BYTES: u64 = 1 << 20;

/// Error in loading a configuration.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// The file cannot be read.
    #[error(transparent)]
    Unreadable(#[from] InputError),
    /// The file's extension is neither TOML nor JSON.
    #[error("`{0}` is neither a `.toml` nor a `.json` file")]
    Format(String),
    /// The file's content is wrong.
    #[error(transparent)]
    Wrong(#[from] SettingError),
}

/// A file with configuration keys.
#[derive(Debug)]
pub(crate) struct ConfigFile {
    path: PathBuf,
    name: String,
    text: String,
    syntax: ConfigSyntax,
    keys: ScoreKeysPlace,
}

#[derive(Clone, Copy, Debug)]
enum ConfigSyntax {
    Toml,
    Json,
}

/// Place of the `[score]` keys in a file.
#[derive(Clone, Copy, Debug)]
enum ScoreKeysPlace {
    InTheirTable,
    AtTheTop,
    /// Without names: the file is a list of metrics.
    Unnamed,
}

/// Returns the top of the repository that a folder is in.
pub(crate) fn find_toplevel(here: &Path) -> Option<&Path> {
    here.ancestors().find(|folder| folder.join(".git").exists())
}

/// Returns the top of the repository that a folder is in, or the folder itself outside of any.
pub(crate) fn toplevel_or_folder(here: &Path) -> PathBuf {
    let here = here.canonicalize().unwrap_or_else(|_| here.to_owned());
    find_toplevel(&here).unwrap_or(&here).to_owned()
}

/// Finds the nearest `treebeam.toml` from a folder up to the top of its repository, and its display
/// name. Outside of any repository only the folder itself is searched.
fn find_config_file(here: &Path) -> Option<(PathBuf, String)> {
    let here = here.canonicalize().ok()?;
    let in_folder =
        |folder: &Path| Some(folder.join(CONFIG_FILE_NAME)).filter(|path| path.exists());
    let highest = find_toplevel(&here).unwrap_or(&here);
    let mut folders = here.ancestors().take_while(|folder| folder.starts_with(highest));
    let path = folders.find_map(in_folder)?;
    let name =
        if path.parent() == Some(&here) { CONFIG_FILE_NAME.into() } else { path.to_string_lossy() };
    Some((path.clone(), name.into_owned()))
}

impl ConfigFile {
    /// Loads the given file, or else the nearest one above a folder, if there is one.
    pub(super) fn load(here: &Path, given: Option<&Path>) -> Result<Option<Self>, ConfigError> {
        match given {
            Some(file) => Self::read_named(here, file).map(Some),
            None => find_config_file(here).map(|(path, name)| Self::read(&path, &name)).transpose(),
        }
    }

    /// Reads a named file, relative to a folder.
    pub(super) fn read_named(here: &Path, file: &Path) -> Result<Self, ConfigError> {
        Self::read(&here.join(file), &file.display().to_string())
    }

    fn read(path: &Path, name: &str) -> Result<Self, ConfigError> {
        let file = Self::new(name, || Ok(input::read_text(path, name, MAX_CONFIG_BYTES)?))?;
        Ok(Self { path: path.to_owned(), ..file })
    }

    /// Returns the path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the display name of the file.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the text of the file as it was read.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Checks all values of the file, each by itself and together.
    pub(crate) fn check_all(self) -> Result<(), ConfigError> {
        super::Config::from_sources(Some(self), [])?.all_values()?;
        Ok(())
    }

    /// Parses the values by key, and checks them.
    pub(super) fn parse_values(&self) -> Result<Value, SettingError> {
        self.parse::<TableValue<ConfigTables>>()?;
        self.parse()
    }

    /// Parses a file that has the keys of `[score]`, in a table of that name or at the top, or is a
    /// list of metrics.
    pub(super) fn parse_score(mut self) -> Result<(Self, Value), SettingError> {
        // A syntax error is reported before errors in keys.
        let _: IgnoredAny = self.parse()?;
        let document: Value = self.parse()?;
        if document.get("gate").is_some() {
            let what =
                "a file of metrics has no gate: `[gate]` belongs into the configuration file";
            return Err(SettingError { origin: self.position_of("gate"), what: what.to_owned() });
        }
        self.keys = if document.is_array() {
            ScoreKeysPlace::Unnamed
        } else if document.get("score").is_some() {
            ScoreKeysPlace::InTheirTable
        } else {
            ScoreKeysPlace::AtTheTop
        };
        let score = match self.keys {
            ScoreKeysPlace::InTheirTable => {
                let mut said = self.parse_values()?;
                self.must_be_only_table("score", &said)?;
                said["score"].take()
            }
            ScoreKeysPlace::AtTheTop => {
                self.parse::<TableValue<ScoreTable>>()?;
                document
            }
            ScoreKeysPlace::Unnamed => {
                self.parse::<MetricList>()?;
                json!({ "metrics": document })
            }
        };
        Ok((self, json!({ "score": score })))
    }

    /// Refuses keys beside a table: they would be ignored.
    fn must_be_only_table(&self, table: &str, values: &Value) -> Result<(), SettingError> {
        let mut keys = values.as_object().into_iter().flat_map(|keys| keys.keys());
        let Some(key) = keys.find(|key| *key != table) else { return Ok(()) };
        let what = format!(
            "a file of metrics has `[{table}]` alone: `{key}` belongs into the configuration file"
        );
        Err(SettingError { origin: self.position_of(key), what })
    }

    /// Parses the text of a file; its name decides the syntax.
    pub(crate) fn new(
        name: &str,
        text: impl FnOnce() -> Result<String, ConfigError>,
    ) -> Result<Self, ConfigError> {
        let syntax = match Path::new(name).extension().and_then(|extension| extension.to_str()) {
            Some("toml") => ConfigSyntax::Toml,
            Some("json") => ConfigSyntax::Json,
            Some(_) | None => return Err(ConfigError::Format(name.to_owned())),
        };
        let (path, name) = (PathBuf::from(name), name.to_owned());
        Ok(Self { path, name, text: text()?, syntax, keys: ScoreKeysPlace::InTheirTable })
    }

    /// Returns the position of a key.
    pub(super) fn key_origin(&self, key: &ConfigKey) -> SettingOrigin {
        match self.keys {
            ScoreKeysPlace::InTheirTable => self.position_of(key.name),
            ScoreKeysPlace::AtTheTop => {
                self.position_of(key.name.strip_prefix("score.").unwrap_or(key.name))
            }
            ScoreKeysPlace::Unnamed => SettingOrigin::File(ConfigPosition {
                file: self.name.clone(),
                line: None,
                key: None,
            }),
        }
    }

    fn position_of(&self, key: &str) -> SettingOrigin {
        let line = self.line_of_key(key);
        SettingOrigin::File(ConfigPosition {
            file: self.name.clone(),
            line,
            key: Some(key.to_owned()),
        })
    }

    fn parse<T: DeserializeOwned>(&self) -> Result<T, SettingError> {
        match self.syntax {
            ConfigSyntax::Toml => self.parse_toml(),
            ConfigSyntax::Json => self.parse_json(),
        }
    }

    fn parse_toml<T: DeserializeOwned>(&self) -> Result<T, SettingError> {
        let line = |error: &toml::de::Error| error.span().map(|span| self.line_at_byte(span.start));
        let reader = toml::Deserializer::parse(&self.text).map_err(|error| {
            let word = error.span().and_then(|span| self.text.get(span)).unwrap_or_default();
            let about = match error.message() {
                "duplicate key" => format!("`{word}` is set twice"),
                other => other.to_owned(),
            };
            self.setting_error(line(&error), "", &about)
        })?;
        serde_path_to_error::deserialize(reader).map_err(|error| {
            let (path, error) = (error.path().to_string(), error.into_inner());
            self.setting_error(line(&error), &path, error.message())
        })
    }

    fn parse_json<T: DeserializeOwned>(&self) -> Result<T, SettingError> {
        let wrong = |path: &str, error: &serde_json::Error| {
            let (line, text) = (error.line(), error.to_string());
            let place = format!(" at line {line} column {}", error.column());
            self.setting_error(
                Some(line).filter(|line| *line > 0),
                path,
                text.trim_end_matches(&place),
            )
        };
        let mut reader = serde_json::Deserializer::from_str(&self.text);
        let value = serde_path_to_error::deserialize(&mut reader)
            .map_err(|error| wrong(&error.path().to_string(), error.inner()))?;
        reader.end().map_err(|error| wrong("", &error))?;
        Ok(value)
    }

    fn setting_error(&self, line: Option<usize>, path: &str, message: &str) -> SettingError {
        // Where a key is expected and missing, the error's path ends in a question mark.
        let path = path.strip_suffix('?').unwrap_or(path).trim_end_matches('.');
        let key = Some(path.to_owned()).filter(|path| !path.is_empty());
        let what = describe_key_error(path, message);
        SettingError {
            origin: SettingOrigin::File(ConfigPosition { file: self.name.clone(), line, key }),
            what,
        }
    }

    /// Returns the line of a key, or of the longest part of it that is found.
    fn line_of_key(&self, key: &str) -> Option<usize> {
        match self.syntax {
            ConfigSyntax::Toml => {
                find_toml_key(&self.text, key).map(|start| self.line_at_byte(start))
            }
            ConfigSyntax::Json => find_json_line(&self.text, key),
        }
    }

    fn line_at_byte(&self, byte: usize) -> usize {
        let before = self.text.as_bytes().get(..byte).unwrap_or_default();
        before.split(|byte| *byte == b'\n').count()
    }
}

fn find_toml_key(text: &str, key: &str) -> Option<usize> {
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

/// Finds the line of a key in JSON. The parser reports a line only with an error, so
/// [`JsonKeyFinder`] fails at the key.
fn find_json_line(text: &str, key: &str) -> Option<usize> {
    let parts: Vec<&str> = key.split('.').collect();
    let mut reader = serde_json::Deserializer::from_str(text);
    let error = JsonKeyFinder(&parts).deserialize(&mut reader).err()?;
    error.to_string().starts_with(KEY_FOUND_MESSAGE).then(|| error.line())
}

const KEY_FOUND_MESSAGE: &str = "here";

/// Deserializer that reads up to a key, given by its parts, and fails there.
struct JsonKeyFinder<'a>(&'a [&'a str]);

impl<'de> DeserializeSeed<'de> for JsonKeyFinder<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for JsonKeyFinder<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut table: A) -> Result<(), A::Error> {
        while let Some(key) = table.next_key::<String>()? {
            match self.0 {
                [part] if *part == key => return Err(A::Error::custom(KEY_FOUND_MESSAGE)),
                [part, rest @ ..] if *part == key => table.next_value_seed(JsonKeyFinder(rest))?,
                _ => drop(table.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}
