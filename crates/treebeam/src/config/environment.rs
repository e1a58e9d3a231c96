//! The settings in the environment: `TREEBEAM_IDEAS_PER_NODE=5`. The process's own variables only; what stands in a `.env`
//! file is no setting.

use super::Tables;
use super::key::{Form, KEYS, Key, PREFIX};
use super::no_key::no_key;
use super::origin::{Origin, Wrong};
use super::words::in_words;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsString;
use treebeam_core::nearest::nearest;

/// What a program that treebeam starts is told in its environment: no settings.
const NO_KEYS: [&str; 8] =
    ["ROLE", "ROUND", "RUN", "NODE", "EVAL", "WORKTREE", "MARK", "SERVE_TOKEN"];

impl Key {
    /// The key that a variable sets; none if it is none of ours.
    pub(crate) fn of_variable(name: &str) -> Result<Option<&'static Self>, String> {
        let Some(rest) = name.strip_prefix(PREFIX) else { return Ok(None) };
        if NO_KEYS.contains(&rest) {
            return Ok(None);
        }
        if let Some(key) = KEYS.iter().find(|key| key.variable() == name) {
            return Ok(Some(key));
        }
        if let Some(why) = no_key(&rest.to_lowercase()) {
            return Err(why);
        }
        let known = KEYS.each_ref().map(Self::variable);
        // What all of them begin with makes none of them more alike.
        let rests = known.each_ref().map(|known| known.trim_start_matches(PREFIX));
        let nearest = nearest(rest, &rests).into_iter().next();
        let in_table = |known: &&&str| known.starts_with(&format!("{rest}_"));
        let nearest = nearest.or_else(|| rests.iter().find(in_table).map(|&name| name.to_owned()));
        let nearest = match nearest {
            Some(nearest) => format!("nearest: `{PREFIX}{nearest}`"),
            None => format!("known: `{}`", known.join("`, `")),
        };
        Err(format!("no configuration key has this variable; {nearest}"))
    }
}

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
