//! Describes where a value was set, and where a wrong one is. The message is made elsewhere.

use super::config_key::ConfigKey;
use serde_json::{Value, json};
use std::fmt;

/// A wrong setting: its origin, as far as it is known, and the message.
#[derive(Debug, thiserror::Error)]
#[error("{}{what}", origin.error_prefix())]
pub(crate) struct SettingError {
    pub(crate) origin: SettingOrigin,
    pub(crate) what: String,
}

/// Place where a value was set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SettingOrigin {
    /// Built-in default.
    Default,
    /// Configuration file.
    File(ConfigPosition),
    /// Environment variable.
    Variable(String),
    /// Command-line flag.
    Flag(String),
}

/// A position in a configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConfigPosition {
    pub(crate) file: String,
    pub(crate) line: Option<usize>,
    pub(crate) key: Option<String>,
}

impl SettingOrigin {
    /// Returns the flag of a key as an origin.
    pub(crate) fn from_flag(key: &ConfigKey) -> Self {
        let name = key.name.rsplit('.').next().unwrap_or(key.name);
        Self::Flag(format!("--{}", name.replace('_', "-")))
    }

    /// Returns the beginning of an error message about this origin.
    fn error_prefix(&self) -> String {
        if *self == Self::Default { String::new() } else { format!("{self}: ") }
    }

    /// Describes the origin in few words, for a table.
    pub(crate) fn describe_briefly(&self) -> String {
        match self {
            Self::Default => "default".to_owned(),
            Self::File(place) => match place.line {
                Some(line) => format!("{}, line {line}", place.file),
                None => place.file.clone(),
            },
            Self::Variable(name) | Self::Flag(name) => name.clone(),
        }
    }

    /// Returns the origin as JSON.
    pub(crate) fn render_json(&self) -> Value {
        match self {
            Self::Default => json!({ "kind": "default" }),
            Self::File(place) => json!({ "kind": "file", "file": place.file, "line": place.line }),
            Self::Variable(name) => json!({ "kind": "variable", "name": name }),
            Self::Flag(name) => json!({ "kind": "flag", "name": name }),
        }
    }
}

impl fmt::Display for SettingOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => Ok(()),
            Self::File(place) => place.fmt(f),
            Self::Variable(name) | Self::Flag(name) => write!(f, "`{name}`"),
        }
    }
}

impl fmt::Display for ConfigPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.file)?;
        self.line.map_or(Ok(()), |line| write!(f, ", line {line}"))?;
        self.key.as_ref().map_or(Ok(()), |key| write!(f, ": `{key}`"))
    }
}
