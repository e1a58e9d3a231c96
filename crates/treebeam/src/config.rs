//! The configuration: what file, environment and flags say, one over the other, and where each value is from.
//!
//! # Layout
//! `key` is the table of all keys; `tables` reads them into what a run means and how far it goes, with [`score`] and `gate`
//! for the tables of these names, `measure` for the commands that measure a code state, [`agents`], `tuner` and [`spending`]
//! for who answers and at what cost, [`prompts`] for what they are told, [`deadline`] for until when, `table` for what is a table at all and [`number`] for values that have bounds. `file` finds
//! and reads a file, `environment` the variables, `origin` says where a value stands, and `words` what is wrong with it.
//! [`sample`] writes a new file, [`import`] and [`proposal`] say what goes into it. A new key is a row in `key`, a field in
//! `tables`, and a line in `docs/configuration.md`.

pub(crate) mod agents;
pub(crate) mod control;
pub(crate) mod deadline;
mod environment;
pub(crate) mod evaluator;
pub(crate) mod file;
mod gate;
pub(crate) mod import;
pub(crate) mod key;
mod measure;
mod no_key;
pub(crate) mod number;
pub(crate) mod origin;
mod outage;
pub(crate) mod prompts;
pub(crate) mod proposal;
pub(crate) mod sample;
pub(crate) mod score;
pub(crate) mod spending;
pub(crate) mod summary;
mod table;
mod tables;
mod tuner;
mod words;

use agents::Agent;
use file::{ConfigError, ConfigFile};
use key::{KEYS, Key, Scope};
use measure::OrNone;
use origin::{Origin, Wrong};
use outage::OutagePatience;
use score::{Contradiction, Primary, Said};
use serde_json::{Map, Value, json};
use spending::Dollars;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;
use tables::Tables;
use treebeam_core::policy::{Meaning, Reach};
use treebeam_edge::agent::price::Prices;
use treebeam_edge::agent::settings::Tuner;
use treebeam_edge::git::DEFAULT_MAX_NEW_FILE_BYTES;
use treebeam_edge::store::{Claim, Force};
use treebeam_run::port::{Cost, Role};

/// What a new run may be expected to cost before somebody is asked, in dollars, if nothing is said.
const CONFIRM_ABOVE: f64 = 10.0;

/// What was said, the lowest first.
#[derive(Debug, Default)]
pub(crate) struct Config {
    layers: Vec<Layer>,
    tables: Tables,
    /// What all layers say together.
    said: Value,
    /// `--primary`, which chooses among the metrics of the layers.
    pub(crate) primary: Option<Primary>,
}

/// What one source says, by key.
#[derive(Debug)]
struct Layer {
    source: Source,
    said: Value,
}

#[derive(Debug)]
enum Source {
    File(ConfigFile),
    Environment,
    Flags,
}

/// A key whose value differs from the one that a run has.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) key: &'static Key,
    pub(crate) origin: Origin,
    /// In words.
    pub(crate) before: String,
    /// In words.
    pub(crate) asked: String,
}

impl Config {
    /// The file that was given, or else the nearest one; and the environment over it.
    pub(crate) fn load(here: &Path, given: Option<&Path>) -> Result<Self, ConfigError> {
        Self::of(ConfigFile::load(here, given)?, std::env::vars_os())
    }

    /// A file, if there is one, and variables over it.
    fn of(
        file: Option<ConfigFile>,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Self, ConfigError> {
        let mut layers = Vec::new();
        if let Some(file) = file {
            let said = file.said()?;
            layers.push(Layer { source: Source::File(file), said });
        }
        layers.push(Layer { source: Source::Environment, said: environment::said(variables)? });
        Ok(Self::new(layers)?)
    }

    fn new(layers: Vec<Layer>) -> Result<Self, Wrong> {
        let mut all = Value::Object(Map::new());
        for layer in &layers {
            replace_agents(&mut all, &layer.said);
            merge(&mut all, &layer.said);
        }
        // Each layer was good by itself, and keys are replaced whole.
        let wrong =
            |error: serde_json::Error| Wrong { origin: Origin::Default, what: error.to_string() };
        let tables = serde_json::from_value(all.clone()).map_err(wrong)?;
        Ok(Self { layers, tables, said: all, primary: None })
    }

    /// The same with flags over it: an object by key, in which null says nothing.
    pub(crate) fn with_flags(mut self, said: &[Value]) -> Result<Self, Wrong> {
        let mut flags = Value::Object(Map::new());
        for said in said {
            merge(&mut flags, said);
        }
        self.layers.push(Layer { source: Source::Flags, said: flags });
        Ok(Self { primary: self.primary, ..Self::new(self.layers)? })
    }

    /// The same with another `[score]`, whatever was said of it before.
    pub(crate) fn with_metrics(self, here: &Path, file: &Path) -> Result<Self, ConfigError> {
        self.with_score_of(ConfigFile::named(here, file)?)
    }

    fn with_score_of(self, file: ConfigFile) -> Result<Self, ConfigError> {
        let Self { mut layers, primary, .. } = self.without_score();
        let (file, said) = file.score()?;
        layers.push(Layer { source: Source::File(file), said });
        Ok(Self { primary, ..Self::new(layers)? })
    }

    /// The same without anything that was said of the score.
    pub(crate) fn without_score(mut self) -> Self {
        for layer in &mut self.layers {
            layer.said.as_object_mut().map(|said| said.remove("score"));
        }
        self.tables.score = score::ScoreTable::default();
        self
    }

    /// The file, if there is one.
    pub(crate) fn file(&self) -> Option<&ConfigFile> {
        self.layers.iter().find_map(|layer| match &layer.source {
            Source::File(file) => Some(file),
            Source::Environment | Source::Flags => None,
        })
    }

    /// Where the value of a key is from.
    pub(crate) fn origin(&self, key: &Key) -> Origin {
        let layer = self.layers.iter().rev().find(|layer| !get(&layer.said, key.name).is_null());
        match layer.map(|layer| &layer.source) {
            None => Origin::Default,
            Some(Source::File(file)) => file.origin(key),
            Some(Source::Environment) => Origin::Variable(key.variable()),
            Some(Source::Flags) => Origin::flag(key),
        }
    }

    /// The same, where a metric that nobody set follows from what was said of another key.
    pub(crate) fn origin_of_value(&self, key: &Key) -> Origin {
        let others: &[&str] = match key.name {
            "score.metrics" => &["score.preset", "score.primary"],
            "score.primary" => &["score.metrics", "score.preset"],
            _ => &[],
        };
        let others = others.iter().filter_map(|name| KEYS.iter().find(|key| key.name == *name));
        let mut origins = std::iter::once(key).chain(others).map(|key| self.origin(key));
        origins.find(|origin| *origin != Origin::Default).unwrap_or(Origin::Default)
    }

    /// What was said makes this of a meaning.
    pub(crate) fn meaning(&self, before: Meaning) -> Result<Meaning, Wrong> {
        self.tables.meaning(before, self.primary.as_ref()).map_err(|error| self.wrong(error))
    }

    fn wrong(&self, error: Contradiction) -> Wrong {
        let origin = match error.by {
            Said::Flag(flag) => Origin::Flag(flag),
            Said::Key(name) => {
                let key = KEYS.iter().find(|key| key.name.strip_prefix("score.") == Some(name));
                key.map_or(Origin::Default, |key| self.origin(key))
            }
        };
        Wrong { origin, what: error.what }
    }

    /// What was said makes this of a reach.
    pub(crate) fn reach(&self, before: &Reach) -> Reach {
        self.tables.reach(before)
    }

    /// The folder of all runs, if one was named.
    pub(crate) fn runs_root(&self) -> Option<&Path> {
        self.tables.runs_root.as_ref().map(|folder| Path::new(&folder.0))
    }

    /// How long an owner of a run on another host may be silent, if that was said.
    pub(crate) fn lock_stale_after(&self) -> Option<Duration> {
        self.tables.lock_stale_seconds.map(|seconds| Duration::from_secs(seconds.0.get().into()))
    }

    /// How large a new file of a candidate may be, in bytes.
    pub(crate) fn max_new_file_bytes(&self) -> u64 {
        let kibibytes = self.tables.max_new_file_kib.map(|size| u64::from(size.0.get()) << 10);
        kibibytes.unwrap_or(DEFAULT_MAX_NEW_FILE_BYTES)
    }

    /// How long a run waits for a server of agents.
    pub(crate) fn outage_patience(&self) -> OutagePatience {
        self.tables.outage_patience.unwrap_or_default()
    }

    /// The primary and what it has in the place of a direction, where that is none.
    pub(crate) fn odd_primary(&self) -> Option<(&str, &str)> {
        self.tables.score.odd_primary()
    }

    /// Where `eval` finds its ideas.
    pub(crate) fn ideas_file(&self) -> Option<&Path> {
        match self.tables.ideas_file.as_ref()? {
            OrNone::None => None,
            OrNone::Some(path) => Some(Path::new(path.as_str())),
        }
    }

    /// Whether `eval` starts from what is in the working tree.
    pub(crate) fn is_based_on_working_tree(&self) -> bool {
        self.tables.base_on_working_tree.unwrap_or_default()
    }

    /// Whether the candidates of `eval` keep their worktrees.
    pub(crate) fn keeps_worktrees(&self) -> bool {
        self.tables.keep_worktrees.unwrap_or_default()
    }

    /// Who is set for a role.
    pub(crate) fn agent(&self, role: Role) -> Option<&Agent> {
        self.tables.agents.get(role)
    }

    /// Where the tuner looks, and how it chooses.
    pub(crate) fn tuner(&self) -> Tuner {
        self.tables.tuner.settings()
    }

    /// What models cost.
    pub(crate) fn prices(&self) -> Prices {
        self.tables.prices.prices()
    }

    /// What a new run may be expected to cost before somebody is asked; nobody is, where there is no such limit.
    pub(crate) fn confirm_above(&self) -> Option<Cost> {
        let said = self.tables.confirm_above_usd.unwrap_or(Dollars::At(CONFIRM_ABOVE));
        said.number().map(|dollars| Cost::dollars(dollars.get()))
    }

    /// The first key that would change what the results of a run mean.
    pub(crate) fn other_meaning(&self, run: &Meaning) -> Result<Option<Change>, Wrong> {
        let place = |change: &Change| KEYS.iter().position(|key| key == change.key);
        Ok(self.all_other_meaning(run)?.into_iter().min_by_key(place))
    }

    /// All of them.
    pub(crate) fn all_other_meaning(&self, run: &Meaning) -> Result<Vec<Change>, Wrong> {
        let asked = self.meaning(run.clone())?;
        let metrics = self.tables.score.other_metrics(&run.score, &asked.score);
        let metrics = metrics.and_then(|(name, [before, asked])| {
            let key = KEYS.iter().find(|key| key.name == name)?;
            Some(Change { key, origin: self.origin(key), before, asked })
        });
        let changes = self.changes(Scope::Meaning, &document(run), &document(&asked));
        Ok(changes.into_iter().chain(metrics).collect())
    }

    /// The keys that change how far and how fast a run goes.
    pub(crate) fn other_reach(&self, run: &Reach) -> Vec<Change> {
        let (before, asked) = (document(run), document(&self.reach(run)));
        self.changes(Scope::Reach, &before, &asked)
    }

    /// The keys that were said and whose values differ in two documents; which metrics count is compared elsewhere.
    fn changes(&self, scope: Scope, before: &Value, asked: &Value) -> Vec<Change> {
        let change = |key: &'static Key| {
            let origin = Some(self.origin(key)).filter(|origin| *origin != Origin::Default)?;
            let [old, new] = [before, asked].map(|all| get(all, key.name));
            let [before, asked] = [old, new].map(|value| shown(key.name, value));
            (old != new).then_some(Change { key, origin, before, asked })
        };
        let keys = KEYS.iter().filter(|key| key.scope == scope && !key.chooses_metrics());
        keys.filter_map(change).collect()
    }

    /// Every value that a new run would have, by key.
    pub(crate) fn values(&self) -> Result<Value, Wrong> {
        let mut all = effective(&self.meaning(Meaning::default())?);
        merge(&mut all, &document(&self.reach(&Reach::default())));
        let score = &self.tables.score;
        if let Some(preset) = score.effective_preset() {
            set(&mut all, "score.preset", json!(preset));
        }
        let stale = self.lock_stale_after().unwrap_or(Claim::from(Force::No).stale_after);
        set(&mut all, "lock_stale_seconds", json!(stale.as_secs()));
        let runs_root = self.runs_root().map(|path| path.display().to_string());
        set(&mut all, "confirm_above_usd", json!(self.confirm_above().map(Cost::in_dollars)));
        set(&mut all, "runs_root", json!(runs_root.as_deref().unwrap_or(".treebeam/runs")));
        set(&mut all, "base_on_working_tree", json!(self.is_based_on_working_tree()));
        set(&mut all, "keep_worktrees", json!(self.keeps_worktrees()));
        set(&mut all, "max_new_file_kib", json!(self.max_new_file_bytes() >> 10));
        let Tuner { files, seed } = self.tuner();
        set(&mut all, "tuner", json!({ "files": files, "seed": seed }));
        set(&mut all, "outage_patience", json!("auto"));
        set(&mut all, "context_max_chars", json!(self.context_max_chars()));
        set(&mut all, "ideas_context_files", json!([]));
        for key in KEYS.iter().filter(|key| key.name.starts_with("context.")) {
            if get(&self.said, key.name).is_null() {
                set(&mut all, key.name, json!("auto"));
            }
        }
        for key in KEYS.iter().filter(|key| key.scope == Scope::Process) {
            let said = get(&self.said, key.name);
            if !said.is_null() && said != "none" {
                set(&mut all, key.name, said.clone());
            }
        }
        Ok(all)
    }
}

/// An agent, or a table of prices, is one value: what a lower layer says of it does not shine through.
fn replace_agents(below: &mut Value, above: &Value) {
    for key in KEYS.iter().filter(|key| key.name == "prices" || key.name.starts_with("agents.")) {
        if !get(above, key.name).is_null() {
            let (table, name) = key.name.rsplit_once('.').unwrap_or(("", key.name));
            let table = if table.is_empty() { &mut *below } else { &mut below[table] };
            table.as_object_mut().map(|table| table.remove(name));
        }
    }
}

/// A meaning by key.
fn effective(meaning: &Meaning) -> Value {
    let mut all = document(meaning);
    let primary = format!("{}:{}", meaning.score.primary, meaning.score.primary_direction());
    set(&mut all, "score.primary", json!(primary));
    all
}

fn document(settings: &impl serde::Serialize) -> Value {
    serde_json::to_value(settings).unwrap_or_default()
}

/// The value of a key in a document; null where there is none.
pub(crate) fn get<'a>(document: &'a Value, name: &str) -> &'a Value {
    name.split('.').fold(document, |table, part| &table[part])
}

/// Sets the value of a key in a document.
fn set(document: &mut Value, name: &str, value: Value) {
    let alone = name.rsplit('.').fold(value, |value, part| json!({ part: value }));
    merge(document, &alone);
}

/// Puts one document over another: tables are joined, other values replaced, null says nothing.
fn merge(below: &mut Value, above: &Value) {
    match (below, above) {
        (_, Value::Null) => {}
        (Value::Object(below), Value::Object(above)) => {
            for (name, value) in above.iter().filter(|(_, value)| !value.is_null()) {
                merge(below.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (below, above) => *below = above.clone(),
    }
}

/// A key's value in words.
pub(crate) fn shown(name: &str, value: &Value) -> String {
    match (value, name) {
        (Value::Null, "sweep_config_limit") => "all".to_owned(),
        (Value::Null, "gate.min_rows") => "as many as the root has".to_owned(),
        (Value::Null, _) => "none".to_owned(),
        (Value::String(text), _) => text.clone(),
        (Value::Number(number), _) => number.as_f64().map_or_else(String::new, |n| n.to_string()),
        (Value::Array(_), "score.metrics") => items(value).join(", "),
        (Value::Array(_), _) => format!("[{}]", items(value).join(", ")),
        (Value::Bool(_) | Value::Object(_), _) => value.to_string(),
    }
}

/// The items of a list in words, or its only one.
pub(crate) fn items(value: &Value) -> Vec<String> {
    let metric = |metric: &Value| {
        let text = |name: &str| shown("", &metric[name]);
        let guard = if metric["guard"] == true { ", guarded" } else { "" };
        format!("{} ({}, {}{guard})", text("column"), text("direction"), text("weight"))
    };
    let item = |item: &Value| if item.is_object() { metric(item) } else { shown("", item) };
    value.as_array().map(|items| items.iter().map(item).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
