//! Renders a commented `treebeam.toml` with every key, its description, and its value or default.
//!
//! The values are collected by `treebeam init`.

use super::config_key::{CONFIG_KEYS, ConfigKey};
use super::{Config, SettingError, get_value};
use serde_json::Value;
use std::collections::BTreeMap;

const HEAD_COMMENT: &str = "\
# The configuration of treebeam for this repository. Every key is optional: a key in a comment shows the built-in value.
# `treebeam config` shows what counts and where it is from, `treebeam doctor` what is missing.
";
const SCORE_COMMENT: &str = "\
# How two results CSVs are compared. A sweep writes one row per configuration; `id_column` names the row, `status_column`
# says `ok`, and each metric is the mean of its column. The primary may not get worse; the others count by weight.
# `treebeam score BASE CAND` shows what these keys make of two files.
";
const AGENTS_COMMENT: &str = "\
# Who answers in each role: `provider` is openai, openai-chat, anthropic, gemini, ollama, command or tuner. A key stands in
# `.env`, `api_key_env` names its variable. `treebeam agents` shows them, `treebeam agents check` asks each of them.
";
const TUNER_COMMENT: &str = "\
# The provider `tuner` needs no model: it changes one constant of the code at a time.
";
const PROMPTS_COMMENT: &str = "\
# What agents are told: `treebeam init --prompts` writes the built-in prompts into files, to be changed. See docs/prompts.md.
";
const CONTEXT_COMMENT: &str = "\
# What prompts show of the repository. \"auto\" is an outline for models and commands, and nothing for coding agents, which look
# for themselves.
";
const AGENT_EXAMPLE: &str = "{ provider = \"anthropic\", model = \"claude-sonnet-4-5\" }";
const PRICES_EXAMPLE: &str = "{ \"my-model\" = { input = 1.0, output = 4.0, cached = 0.1 } }";
const GATE_COMMENT: &str = "# What a candidate must fulfil beyond that.\n";
/// Example of metrics, shown in place of the long list of the preset.
const METRICS_EXAMPLE: &str =
    "[{ column = \"loss\", direction = \"lower\", weight = 1.0, guard = false }]";

/// Content of a new configuration file.
#[derive(Debug, Default)]
pub(crate) struct SampleConfig {
    /// Values of the keys that are set.
    pub(crate) set: BTreeMap<&'static str, Value>,
    /// Lines about a key, put as comments before it.
    pub(crate) notes: BTreeMap<&'static str, Vec<String>>,
    /// Lines at the end of the file, put as comments.
    pub(crate) rest: Vec<String>,
}

impl SampleConfig {
    /// Renders the file as TOML.
    pub(crate) fn render_toml(&self) -> Result<String, SettingError> {
        let built_in = Config::default().all_values()?;
        let (mut text, mut table) = (HEAD_COMMENT.to_owned(), "");
        for key in &CONFIG_KEYS {
            let (of, name) = key.name.rsplit_once('.').unwrap_or(("", key.name));
            if of != table {
                let about = if of == "score" {
                    SCORE_COMMENT
                } else if of == "agents" {
                    AGENTS_COMMENT
                } else if of == "prompts" {
                    PROMPTS_COMMENT
                } else if of == "context" {
                    CONTEXT_COMMENT
                } else if of == "tuner" {
                    TUNER_COMMENT
                } else if of == "gate" {
                    GATE_COMMENT
                } else {
                    ""
                };
                text.push_str(&format!("\n{about}[{of}]\n"));
                table = of;
            }
            text.push_str(&self.render_entry(key, name, get_value(&built_in, key.name)));
        }
        for line in &self.rest {
            text.push_str(&comment_lines(line));
        }
        Ok(text)
    }

    /// Returns a note on a key that was set by default; only `protect` has one.
    pub(crate) fn note_for(&self, name: &str) -> String {
        let notes = self.notes.get(name).filter(|_| name == "protect");
        notes.map_or_else(String::new, |notes| format!(", {}", notes.join("; ")))
    }

    fn render_entry(&self, key: &ConfigKey, name: &str, built_in: &Value) -> String {
        let mut text = format!("\n{}", comment_lines(key.about));
        for note in self.notes.get(key.name).into_iter().flatten() {
            text.push_str(&comment_lines(note));
        }
        text.push_str(&match self.set.get(key.name) {
            Some(value) => format!("{name} = {}\n", toml_value(value)),
            None if key.name == "score.metrics" => format!("# {name} = {METRICS_EXAMPLE}\n"),
            None if key.name == "prices" => format!("# {name} = {PRICES_EXAMPLE}\n"),
            None if key.name.starts_with("agents.") => format!("# {name} = {AGENT_EXAMPLE}\n"),
            None => format!("# {name} = {}\n", toml_value(built_in)),
        });
        text
    }
}

/// Formats lines of text as comments.
fn comment_lines(text: &str) -> String {
    text.split('\n').map(|line| format!("# {line}").trim_end().to_owned() + "\n").collect()
}

/// Formats a value as TOML, on one line. A missing limit is `"none"`.
pub(crate) fn toml_value(value: &Value) -> String {
    match value {
        Value::Null => "\"none\"".to_owned(),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(toml_value).collect::<Vec<_>>().join(", "))
        }
        Value::Object(table) => {
            let entry = |(name, value): (&String, &Value)| {
                format!("{} = {}", toml_key(name), toml_value(value))
            };
            format!("{{ {} }}", table.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
        // JSON strings are TOML strings, but for one character.
        Value::String(_) => value.to_string().replace('\u{7f}', "\\u007f"),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// Formats the name of a key, in quotes where needed.
pub(crate) fn toml_key(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.chars().all(plain) {
        return name.to_owned();
    }
    toml_value(&Value::String(name.to_owned()))
}
