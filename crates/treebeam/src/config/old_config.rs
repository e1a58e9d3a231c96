//! Converts the old configuration, `agent_config.json`, to a sample of the new one.
//!
//! Keys that still exist are set, everything else is kept in comments, and nothing is dropped
//! silently. Secrets are not copied.

use super::config_file::ConfigError;
use super::config_key::CONFIG_KEYS;
use super::environment;
use super::origin::{ConfigPosition, SettingError, SettingOrigin};
use super::sample_config::{SampleConfig, toml_key, toml_value};
use super::unknown_key::is_later_key;
use serde_json::{Map, Value};

/// Converts the text of an old file.
pub(crate) fn import_old_config(text: &str, name: &str) -> Result<SampleConfig, ConfigError> {
    let old: Map<String, Value> = serde_json::from_str(text).map_err(|error| {
        let place = ConfigPosition { file: name.to_owned(), line: Some(error.line()), key: None };
        SettingError {
            origin: SettingOrigin::File(place),
            what: format!("it is no table in JSON: {error}"),
        }
    })?;
    let mut sample = SampleConfig::default();
    let (mut later, mut unknown) = (Vec::new(), Vec::new());
    // Plain keys come before tables: below the head of a table they would belong to it.
    let (tables, plain): (Vec<_>, Vec<_>) = old.iter().partition(|(_, value)| value.is_object());
    for (old_name, value) in plain.into_iter().chain(tables) {
        if old_name == "agents" && value.is_object() {
            unknown.extend(import_agents(value, name, &mut sample));
            continue;
        }
        if old_name == "prompts" && value.is_object() {
            unknown.extend(import_prompts(value, name, &mut sample));
            continue;
        }
        let key = CONFIG_KEYS.iter().find(|key| key.name == old_name);
        if let Some(key) = key.filter(|_| value.is_null()) {
            sample.notes.insert(key.name, vec![format!("`{name}` had none")]);
            continue;
        }
        match key.map(|key| (key, environment::check_value(key, value))) {
            Some((key, Ok(()))) => {
                sample.notes.insert(key.name, vec![format!("from `{name}`")]);
                sample.set.insert(key.name, value.clone());
            }
            Some((key, Err(why))) => {
                let kept = format!("`{name}` had {}, which is not taken: {why}", toml_value(value));
                sample.notes.insert(key.name, vec![kept]);
            }
            None if is_later_key(old_name) => later.extend(format_key_lines(old_name, value)),
            None => unknown.extend(format_key_lines(old_name, value)),
        }
    }
    if old.contains_key("sweep_command") && !old.contains_key("sweep_config_limit_flag") {
        let (key, note) = ("sweep_config_limit_flag", "as treebeam's predecessor did it");
        sample.notes.insert(key, vec![note.to_owned()]);
        sample.set.insert(key, Value::from("--sweep-config-limit"));
    }
    let section = |title: String, lines: Vec<String>| {
        let head = [String::new(), title].into_iter();
        if lines.is_empty() { Vec::new() } else { head.chain(lines).collect::<Vec<_>>() }
    };
    let title = format!(
        "---- from `{name}`: keys that this version of treebeam does not have yet\n(plain keys belong above the first table)"
    );
    sample.rest.extend(section(title, later));
    let title = format!("---- from `{name}`: keys that treebeam does not know");
    sample.rest.extend(section(title, unknown));
    Ok(sample)
}

/// Imports the agents, without values that look like secrets. Returns lines about unknown roles.
fn import_agents(agents: &Value, file: &str, sample: &mut SampleConfig) -> Vec<String> {
    let mut unknown = Vec::new();
    for (role, agent) in agents.as_object().into_iter().flatten() {
        let full = format!("agents.{role}");
        let Some(key) = CONFIG_KEYS.iter().find(|key| key.name == full) else {
            unknown.extend(format_table_lines(&format!("agents.{}", toml_key(role)), agent));
            continue;
        };
        let mut notes = vec![format!("from `{file}`")];
        let mut agent = agent.clone();
        let fields = agent.as_object_mut().map(std::mem::take).unwrap_or_default();
        for (name, value) in fields {
            if has_secret(&name, &value) {
                notes.push(format_entry(&toml_key(&name), &value));
            } else if !value.is_null() {
                agent[name] = value;
            }
        }
        match environment::check_value(key, &agent) {
            Ok(()) => drop(sample.set.insert(key.name, agent)),
            Err(why) => {
                notes.insert(
                    0,
                    format!("`{file}` had {}, which is not taken: {why}", toml_value(&agent)),
                );
            }
        }
        sample.notes.insert(key.name, notes);
    }
    unknown
}

/// Notes where the prompts were. They are not set: their placeholders have another syntax. Returns
/// lines about unknown roles.
fn import_prompts(prompts: &Value, file: &str, sample: &mut SampleConfig) -> Vec<String> {
    let mut unknown = Vec::new();
    for (role, path) in prompts.as_object().into_iter().flatten() {
        let full = format!("prompts.{role}");
        match CONFIG_KEYS.iter().find(|key| key.name == full) {
            Some(key) => {
                let note = format!(
                    "`{file}` had {}: rewrite it with the placeholders of docs/prompts.md first",
                    toml_value(path)
                );
                sample.notes.insert(key.name, vec![note]);
            }
            None => unknown.push(format_entry(&format!("prompts.{}", toml_key(role)), path)),
        }
    }
    unknown
}

/// Formats a key and its value: a table of tables one by one, anything else on one line.
fn format_key_lines(name: &str, value: &Value) -> Vec<String> {
    let name = toml_key(name);
    match value {
        Value::Object(table) if !table.is_empty() && table.values().all(Value::is_object) => {
            let below = |(part, value): (&String, &Value)| {
                format_table_lines(&format!("{name}.{}", toml_key(part)), value)
            };
            table.iter().flat_map(below).collect()
        }
        Value::Object(_) => format_table_lines(&name, value),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            vec![format_entry(&name, value)]
        }
    }
}

fn format_table_lines(table: &str, value: &Value) -> Vec<String> {
    let entries = value.as_object().into_iter().flatten();
    let head = format!("[{table}]");
    std::iter::once(head)
        .chain(entries.map(|(name, value)| format_entry(&toml_key(name), value)))
        .collect()
}

fn format_entry(name: &str, value: &Value) -> String {
    if has_secret(name, value) {
        return format!("{name}: left out, it looks like a secret; keep it in `.env`");
    }
    if value.is_null() {
        format!("{name}: null")
    } else {
        format!("{name} = {}", toml_value(value))
    }
}

/// Returns true if the name of a text, here or nested, looks like that of a secret.
fn has_secret(name: &str, value: &Value) -> bool {
    let called = |name: &str| {
        let name = name.to_lowercase();
        let secret = ["key", "token", "secret", "password"].iter().any(|word| name.contains(word));
        secret && !name.ends_with("_env")
    };
    match value {
        Value::String(_) => called(name),
        Value::Array(items) => items.iter().any(|item| has_secret(name, item)),
        Value::Object(table) => table.iter().any(|(name, value)| has_secret(name, value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
