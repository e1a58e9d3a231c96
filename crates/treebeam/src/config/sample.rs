//! The text of a commented `treebeam.toml`: every key with what it is, set where there is a value for it, otherwise its
//! default in a comment. Where the values come from is `init`'s business.

use super::key::{KEYS, Key};
use super::{Config, Wrong, get};
use serde_json::Value;
use std::collections::BTreeMap;

const HEAD: &str = "\
# The configuration of treebeam for this repository. Every key is optional: a key in a comment shows the built-in value.
# `treebeam config` shows what counts and where it is from, `treebeam doctor` what is missing.
";
const SCORE: &str = "\
# How two results CSVs are compared. A sweep writes one row per configuration; `id_column` names the row, `status_column`
# says `ok`, and each metric is the mean of its column. The primary may not get worse; the others count by weight.
# `treebeam score BASE CAND` shows what these keys make of two files.
";
const AGENTS: &str = "\
# Who answers in each role: `provider` is openai, openai-chat, anthropic, gemini, ollama, command or tuner. A key stands in
# `.env`, `api_key_env` names its variable. `treebeam agents` shows them, `treebeam agents check` asks each of them.
";
const TUNER: &str = "\
# The provider `tuner` needs no model: it changes one constant of the code at a time.
";
const PROMPTS: &str = "\
# What agents are told: `treebeam init --prompts` writes the built-in prompts into files, to be changed. See docs/prompts.md.
";
const CONTEXT: &str = "\
# What prompts show of the repository. \"auto\" is an outline for models and commands, and nothing for coding agents, which look
# for themselves.
";
const AGENT: &str = "{ provider = \"anthropic\", model = \"claude-sonnet-4-5\" }";
const PRICES: &str = "{ \"my-model\" = { input = 1.0, output = 4.0, cached = 0.1 } }";
const GATE: &str = "# What a candidate must fulfil beyond that.\n";
/// In place of the long list of the preset.
const METRICS: &str = "[{ column = \"loss\", direction = \"lower\", weight = 1.0, guard = false }]";

/// What a file is made of.
#[derive(Debug, Default)]
pub(crate) struct Sample {
    /// Keys that are set.
    pub(crate) set: BTreeMap<&'static str, Value>,
    /// Lines about a key, put as comments before it.
    pub(crate) notes: BTreeMap<&'static str, Vec<String>>,
    /// What comes last: comments too.
    pub(crate) rest: Vec<String>,
}

impl Sample {
    /// The text of the file.
    pub(crate) fn text(&self) -> Result<String, Wrong> {
        let built_in = Config::default().values()?;
        let (mut text, mut table) = (HEAD.to_owned(), "");
        for key in &KEYS {
            let (of, name) = key.name.rsplit_once('.').unwrap_or(("", key.name));
            if of != table {
                let about = if of == "score" {
                    SCORE
                } else if of == "agents" {
                    AGENTS
                } else if of == "prompts" {
                    PROMPTS
                } else if of == "context" {
                    CONTEXT
                } else if of == "tuner" {
                    TUNER
                } else if of == "gate" {
                    GATE
                } else {
                    ""
                };
                text.push_str(&format!("\n{about}[{of}]\n"));
                table = of;
            }
            text.push_str(&self.entry(key, name, get(&built_in, key.name)));
        }
        for line in &self.rest {
            text.push_str(&comment(line));
        }
        Ok(text)
    }

    /// What there is to know of a key that was set without being asked for.
    pub(crate) fn about(&self, name: &str) -> String {
        let notes = self.notes.get(name).filter(|_| name == "protect");
        notes.map_or_else(String::new, |notes| format!(", {}", notes.join("; ")))
    }

    fn entry(&self, key: &Key, name: &str, built_in: &Value) -> String {
        let mut text = format!("\n{}", comment(key.about));
        for note in self.notes.get(key.name).into_iter().flatten() {
            text.push_str(&comment(note));
        }
        text.push_str(&match self.set.get(key.name) {
            Some(value) => format!("{name} = {}\n", toml(value)),
            None if key.name == "score.metrics" => format!("# {name} = {METRICS}\n"),
            None if key.name == "prices" => format!("# {name} = {PRICES}\n"),
            None if key.name.starts_with("agents.") => format!("# {name} = {AGENT}\n"),
            None => format!("# {name} = {}\n", toml(built_in)),
        });
        text
    }
}

/// A line, or several, as comments.
fn comment(text: &str) -> String {
    text.split('\n').map(|line| format!("# {line}").trim_end().to_owned() + "\n").collect()
}

/// A value in TOML, on one line. A limit that is missing is none.
pub(crate) fn toml(value: &Value) -> String {
    match value {
        Value::Null => "\"none\"".to_owned(),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(toml).collect::<Vec<_>>().join(", "))
        }
        Value::Object(table) => {
            let entry =
                |(name, value): (&String, &Value)| format!("{} = {}", bare(name), toml(value));
            format!("{{ {} }}", table.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
        // JSON's texts are TOML's, but for one character.
        Value::String(_) => value.to_string().replace('\u{7f}', "\\u007f"),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// A key's name, in quotes where it needs them.
pub(crate) fn bare(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.chars().all(plain) {
        return name.to_owned();
    }
    toml(&Value::String(name.to_owned()))
}
