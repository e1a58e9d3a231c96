//! The settings in the environment: `TREEBEAM_IDEAS_PER_NODE=5`. The process's own variables only; what stands in a `.env`
//! file is no setting.

use super::Tables;
use super::key::{Form, Key, PREFIX};
use super::origin::{Origin, Wrong};
use super::words::in_words;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsString;

/// What the variables say, by key, if all of that is good. A variable without a value says nothing.
pub(super) fn said(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Value, Wrong> {
    let mut all = Value::Object(serde_json::Map::new());
    let ours = |(name, value): (OsString, OsString)| {
        let name = name.into_string().ok().filter(|name| name.starts_with(PREFIX))?;
        Some((name, value)).filter(|(_, value)| !value.is_empty())
    };
    let variables: BTreeMap<String, OsString> = variables.into_iter().filter_map(ours).collect();
    for (name, value) in variables {
        let wrong = |what| Wrong { origin: Origin::Variable(name.clone()), what };
        let Some(key) = Key::of_variable(&name).map_err(wrong)? else { continue };
        let value = value.into_string().map_err(|_| wrong("it is not UTF-8".to_owned()))?;
        super::set(&mut all, key.name, read(key, &value).map_err(wrong)?);
    }
    Ok(all)
}

/// A variable's text as the value of a key, if it is a good one.
fn read(key: &Key, text: &str) -> Result<Value, String> {
    let value = match key.form {
        Form::Text => Value::String(text.to_owned()),
        Form::Toml => from_toml(text).unwrap_or_else(|| Value::String(text.to_owned())),
    };
    check(key, &value)?;
    Ok(value)
}

/// Whether a value is a good one for a key.
pub(super) fn check(key: &Key, value: &Value) -> Result<(), String> {
    let mut alone = Value::Object(serde_json::Map::new());
    super::set(&mut alone, key.name, value.clone());
    let read = serde_path_to_error::deserialize::<_, Tables>(alone);
    read.map(drop).map_err(|error| in_words(key.name, &error.inner().to_string()))
}

fn from_toml(text: &str) -> Option<Value> {
    let document: BTreeMap<String, Value> = toml::from_str(&format!("value = {text}")).ok()?;
    let mut values = document.into_values();
    values.next().filter(|_| values.next().is_none())
}
