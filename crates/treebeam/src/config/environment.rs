//! Reads settings from the environment, such as `TREEBEAM_IDEAS_PER_NODE=5`.
//!
//! Only the process's own variables count; a variable in a `.env` file is no setting.

use super::ConfigTables;
use super::config_key::{CONFIG_KEYS, ConfigKey, VARIABLE_PREFIX, VariableForm};
use super::key_errors::describe_key_error;
use super::origin::{SettingError, SettingOrigin};
use super::unknown_key::explain_non_key;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsString;
use treebeam_core::nearest::nearest_names;

/// Variables that treebeam itself passes to child processes or reads: they are no settings.
const NON_SETTING_VARIABLES: [&str; 8] =
    ["ROLE", "ROUND", "RUN", "NODE", "EVAL", "WORKTREE", "MARK", "SERVE_TOKEN"];

impl ConfigKey {
    /// Returns the key that a variable sets; `None` for variables without the prefix or of
    /// treebeam's own.
    pub(crate) fn from_variable(name: &str) -> Result<Option<&'static Self>, String> {
        let Some(rest) = name.strip_prefix(VARIABLE_PREFIX) else { return Ok(None) };
        if NON_SETTING_VARIABLES.contains(&rest) {
            return Ok(None);
        }
        if let Some(key) = CONFIG_KEYS.iter().find(|key| key.variable_name() == name) {
            return Ok(Some(key));
        }
        if let Some(why) = explain_non_key(&rest.to_lowercase()) {
            return Err(why);
        }
        let known = CONFIG_KEYS.each_ref().map(Self::variable_name);
        // The common prefix must not count as similarity.
        let rests = known.each_ref().map(|known| known.trim_start_matches(VARIABLE_PREFIX));
        let nearest = nearest_names(rest, &rests).into_iter().next();
        let in_table = |known: &&&str| known.starts_with(&format!("{rest}_"));
        let nearest = nearest.or_else(|| rests.iter().find(in_table).map(|&name| name.to_owned()));
        let nearest = match nearest {
            Some(nearest) => format!("nearest: `{VARIABLE_PREFIX}{nearest}`"),
            None => format!("known: `{}`", known.join("`, `")),
        };
        Err(format!("no configuration key has this variable; {nearest}"))
    }
}

/// Reads and checks the settings of the variables, by key. A variable with an empty value is unset.
pub(super) fn read_variables(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Value, SettingError> {
    let mut all = Value::Object(serde_json::Map::new());
    let ours = |(name, value): (OsString, OsString)| {
        let name = name.into_string().ok().filter(|name| name.starts_with(VARIABLE_PREFIX))?;
        Some((name, value)).filter(|(_, value)| !value.is_empty())
    };
    let variables: BTreeMap<String, OsString> = variables.into_iter().filter_map(ours).collect();
    for (name, value) in variables {
        let wrong = |what| SettingError { origin: SettingOrigin::Variable(name.clone()), what };
        let Some(key) = ConfigKey::from_variable(&name).map_err(wrong)? else { continue };
        let value = value.into_string().map_err(|_| wrong("it is not UTF-8".to_owned()))?;
        super::set_value(&mut all, key.name, parse_variable(key, &value).map_err(wrong)?);
    }
    Ok(all)
}

/// Parses the text of a variable as the value of a key, and checks it.
fn parse_variable(key: &ConfigKey, text: &str) -> Result<Value, String> {
    let value = match key.form {
        VariableForm::Text => Value::String(text.to_owned()),
        VariableForm::Toml => {
            parse_toml_value(text).unwrap_or_else(|| Value::String(text.to_owned()))
        }
    };
    check_value(key, &value)?;
    Ok(value)
}

/// Checks a value against the type of its key.
pub(super) fn check_value(key: &ConfigKey, value: &Value) -> Result<(), String> {
    let mut alone = Value::Object(serde_json::Map::new());
    super::set_value(&mut alone, key.name, value.clone());
    let read = serde_path_to_error::deserialize::<_, ConfigTables>(alone);
    read.map(drop).map_err(|error| describe_key_error(key.name, &error.inner().to_string()))
}

fn parse_toml_value(text: &str) -> Option<Value> {
    let document: BTreeMap<String, Value> = toml::from_str(&format!("value = {text}")).ok()?;
    let mut values = document.into_values();
    values.next().filter(|_| values.next().is_none())
}
