//! Merges configuration file, environment and flags, and keeps the origin of each value.
//!
//! # Layout
//! [`mod@config_key`] is the table of all keys. [`mod@tables`] reads them into [`FixedSettings`]
//! and [`RunLimits`], with [`mod@score`], [`mod@gate`] and [`mod@control`] for the settings of
//! these names, [`mod@measure`] for the commands that measure a code state, [`mod@agents`],
//! [`mod@summary_agent`], [`mod@tuner`], [`mod@outage`] and [`mod@spending`] for the agents and
//! their cost, [`mod@prompts`] for their prompts, [`mod@deadline`] for the time limit,
//! [`mod@table`] for the check that a value is a table, and [`mod@bounded_values`] for values that
//! have bounds. [`mod@config_file`] finds and reads a file, [`mod@environment`] reads the
//! variables, [`mod@origin`] says where a value was set, [`mod@key_errors`] and [`mod@unknown_key`]
//! what is wrong with it. [`mod@sample_config`] writes a new file; [`mod@old_config`],
//! [`mod@column_proposal`] and [`mod@evaluator_proposal`] fill it. A new key is a row in
//! [`mod@config_key`], a field in [`mod@tables`], and a line in `docs/configuration.md`.

pub(crate) mod agents;
pub(crate) mod bounded_values;
pub(crate) mod column_proposal;
pub(crate) mod config_file;
pub(crate) mod config_key;
pub(crate) mod control;
pub(crate) mod deadline;
mod environment;
pub(crate) mod evaluator_proposal;
mod gate;
mod key_errors;
mod measure;
pub(crate) mod old_config;
pub(crate) mod origin;
mod outage;
pub(crate) mod prompts;
pub(crate) mod sample_config;
pub(crate) mod score;
pub(crate) mod spending;
pub(crate) mod summary_agent;
mod table;
mod tables;
mod tuner;
mod unknown_key;

use agents::AgentConfig;
use config_file::{ConfigError, ConfigFile};
use config_key::{CONFIG_KEYS, ConfigKey, KeyScope};
use measure::ValueOrNone;
use origin::{SettingError, SettingOrigin};
use outage::OutagePatience;
use score::{PrimaryMetric, ScoreContradiction, SettingSource};
use serde_json::{Map, Value, json};
use spending::DollarLimit;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;
use tables::ConfigTables;
use treebeam_agent::price::ModelPrices;
use treebeam_agent::settings::TunerAgent;
use treebeam_core::policy::{FixedSettings, RunLimits};
use treebeam_git::DEFAULT_MAX_NEW_FILE_BYTES;
use treebeam_run::port::{AgentRole, Cost};
use treebeam_store::{ForcePolicy, RunClaim};

/// Default of `confirm_above_usd`: expected cost of a new run above which the user is asked, in
/// dollars.
const DEFAULT_CONFIRM_ABOVE_USD: f64 = 10.0;

/// The merged configuration: layers in ascending priority, and the values that result.
#[derive(Debug, Default)]
pub(crate) struct Config {
    layers: Vec<ConfigLayer>,
    tables: ConfigTables,
    /// Values of all layers, merged.
    values: Value,
    /// `--primary`, which chooses among the metrics of the layers.
    pub(crate) primary: Option<PrimaryMetric>,
}

/// Values that one source sets, by key.
#[derive(Debug)]
struct ConfigLayer {
    source: LayerSource,
    values: Value,
}

#[derive(Debug)]
enum LayerSource {
    File(ConfigFile),
    Environment,
    Flags,
}

/// A key whose configured value differs from the value that a run has.
#[derive(Debug)]
pub(crate) struct SettingChange {
    pub(crate) key: &'static ConfigKey,
    pub(crate) origin: SettingOrigin,
    /// Value of the run, as text.
    pub(crate) before: String,
    /// Configured value, as text.
    pub(crate) asked: String,
}

impl Config {
    /// Loads the given file, or else the nearest one, and puts the environment over it.
    pub(crate) fn load(here: &Path, given: Option<&Path>) -> Result<Self, ConfigError> {
        Self::from_sources(ConfigFile::load(here, given)?, std::env::vars_os())
    }

    /// Builds a configuration from a file, if there is one, with variables over it.
    fn from_sources(
        file: Option<ConfigFile>,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Self, ConfigError> {
        let mut layers = Vec::new();
        if let Some(file) = file {
            let values = file.parse_values()?;
            layers.push(ConfigLayer { source: LayerSource::File(file), values });
        }
        layers.push(ConfigLayer {
            source: LayerSource::Environment,
            values: environment::read_variables(variables)?,
        });
        Ok(Self::new(layers)?)
    }

    fn new(layers: Vec<ConfigLayer>) -> Result<Self, SettingError> {
        let mut all = Value::Object(Map::new());
        for layer in &layers {
            replace_agents(&mut all, &layer.values);
            merge_values(&mut all, &layer.values);
        }
        // Each layer was valid by itself, and keys are replaced whole.
        let wrong = |error: serde_json::Error| SettingError {
            origin: SettingOrigin::Default,
            what: error.to_string(),
        };
        let tables = serde_json::from_value(all.clone()).map_err(wrong)?;
        Ok(Self { layers, tables, values: all, primary: None })
    }

    /// Puts flags over the configuration: an object by key, in which null means unset.
    pub(crate) fn with_flags(mut self, given_flags: &[Value]) -> Result<Self, SettingError> {
        let mut flags = Value::Object(Map::new());
        for flag in given_flags {
            merge_values(&mut flags, flag);
        }
        self.layers.push(ConfigLayer { source: LayerSource::Flags, values: flags });
        Ok(Self { primary: self.primary, ..Self::new(self.layers)? })
    }

    /// Replaces all of `[score]` by the settings of a metrics file.
    pub(crate) fn with_metrics_file(self, here: &Path, file: &Path) -> Result<Self, ConfigError> {
        self.with_score_from(ConfigFile::read_named(here, file)?)
    }

    fn with_score_from(self, file: ConfigFile) -> Result<Self, ConfigError> {
        let Self { mut layers, primary, .. } = self.without_score();
        let (file, values) = file.parse_score()?;
        layers.push(ConfigLayer { source: LayerSource::File(file), values });
        Ok(Self { primary, ..Self::new(layers)? })
    }

    /// Removes every setting of `[score]`.
    pub(crate) fn without_score(mut self) -> Self {
        for layer in &mut self.layers {
            layer.values.as_object_mut().map(|values| values.remove("score"));
        }
        self.tables.score = score::ScoreTable::default();
        self
    }

    /// Returns the configuration file, if there is one.
    pub(crate) fn file(&self) -> Option<&ConfigFile> {
        self.layers.iter().find_map(|layer| match &layer.source {
            LayerSource::File(file) => Some(file),
            LayerSource::Environment | LayerSource::Flags => None,
        })
    }

    /// Returns the place where the value of a key was set.
    pub(crate) fn origin(&self, key: &ConfigKey) -> SettingOrigin {
        let layer =
            self.layers.iter().rev().find(|layer| !get_value(&layer.values, key.name).is_null());
        match layer.map(|layer| &layer.source) {
            None => SettingOrigin::Default,
            Some(LayerSource::File(file)) => file.key_origin(key),
            Some(LayerSource::Environment) => SettingOrigin::Variable(key.variable_name()),
            Some(LayerSource::Flags) => SettingOrigin::from_flag(key),
        }
    }

    /// Like [`Self::origin`], but for metrics that are unset returns the origin of the key that
    /// they follow from.
    pub(crate) fn origin_of_value(&self, key: &ConfigKey) -> SettingOrigin {
        let others: &[&str] = match key.name {
            "score.metrics" => &["score.preset", "score.primary"],
            "score.primary" => &["score.metrics", "score.preset"],
            _ => &[],
        };
        let others =
            others.iter().filter_map(|name| CONFIG_KEYS.iter().find(|key| key.name == *name));
        let mut origins = std::iter::once(key).chain(others).map(|key| self.origin(key));
        origins.find(|origin| *origin != SettingOrigin::Default).unwrap_or(SettingOrigin::Default)
    }

    /// Returns `before` with the configured fixed settings applied.
    pub(crate) fn fixed_settings(
        &self,
        before: FixedSettings,
    ) -> Result<FixedSettings, SettingError> {
        self.tables
            .fixed_settings(before, self.primary.as_ref())
            .map_err(|error| self.setting_error(error))
    }

    fn setting_error(&self, error: ScoreContradiction) -> SettingError {
        let origin = match error.by {
            SettingSource::Flag(flag) => SettingOrigin::Flag(flag),
            SettingSource::Key(name) => {
                let key =
                    CONFIG_KEYS.iter().find(|key| key.name.strip_prefix("score.") == Some(name));
                key.map_or(SettingOrigin::Default, |key| self.origin(key))
            }
        };
        SettingError { origin, what: error.what }
    }

    /// Returns `before` with the configured run limits applied.
    pub(crate) fn run_limits(&self, before: &RunLimits) -> RunLimits {
        self.tables.run_limits(before)
    }

    /// Returns the folder of all runs, if one is configured.
    pub(crate) fn runs_root(&self) -> Option<&Path> {
        self.tables.runs_root.as_ref().map(|folder| Path::new(&folder.0))
    }

    /// Returns how long the owner of a run on another host may be silent, if that is configured.
    pub(crate) fn lock_stale_after(&self) -> Option<Duration> {
        self.tables.lock_stale_seconds.map(|seconds| Duration::from_secs(seconds.0.get().into()))
    }

    /// Returns the maximum size of a new file in a candidate, in bytes.
    pub(crate) fn max_new_file_bytes(&self) -> u64 {
        let kibibytes = self.tables.max_new_file_kib.map(|size| u64::from(size.0.get()) << 10);
        kibibytes.unwrap_or(DEFAULT_MAX_NEW_FILE_BYTES)
    }

    /// Returns how long a run waits for an agent server that is down.
    pub(crate) fn outage_patience(&self) -> OutagePatience {
        self.tables.outage_patience.unwrap_or_default()
    }

    /// Returns the primary and the text in the place of its direction, if that text is no
    /// direction.
    pub(crate) fn primary_with_bad_direction(&self) -> Option<(&str, &str)> {
        self.tables.score.primary_with_bad_direction()
    }

    /// Returns the path of the ideas for `eval`, if one is configured.
    pub(crate) fn ideas_file(&self) -> Option<&Path> {
        match self.tables.ideas_file.as_ref()? {
            ValueOrNone::None => None,
            ValueOrNone::Some(path) => Some(Path::new(path.as_str())),
        }
    }

    /// Returns true if `eval` starts from the uncommitted content of the working tree.
    pub(crate) fn is_based_on_working_tree(&self) -> bool {
        self.tables.base_on_working_tree.unwrap_or_default()
    }

    /// Returns true if the candidates of `eval` keep their worktrees.
    pub(crate) fn keeps_worktrees(&self) -> bool {
        self.tables.keep_worktrees.unwrap_or_default()
    }

    /// Returns the agent that is configured for a role.
    pub(crate) fn agent_for(&self, role: AgentRole) -> Option<&AgentConfig> {
        self.tables.agents.agent_for(role)
    }

    /// Returns the tuner's address and its choice of agents.
    pub(crate) fn tuner_agent(&self) -> TunerAgent {
        self.tables.tuner.tuner_agent()
    }

    /// Returns the prices of models.
    pub(crate) fn model_prices(&self) -> ModelPrices {
        self.tables.prices.model_prices()
    }

    /// Returns the expected cost of a new run above which the user is asked; `None` means never
    /// ask.
    pub(crate) fn confirm_above(&self) -> Option<Cost> {
        let said =
            self.tables.confirm_above_usd.unwrap_or(DollarLimit::At(DEFAULT_CONFIRM_ABOVE_USD));
        said.amount().map(|dollars| Cost::from_dollars(dollars.get()))
    }

    /// Returns the first key, in the order of the key table, whose fixed setting would change for a
    /// run.
    pub(crate) fn first_fixed_change(
        &self,
        run: &FixedSettings,
    ) -> Result<Option<SettingChange>, SettingError> {
        let place = |change: &SettingChange| CONFIG_KEYS.iter().position(|key| key == change.key);
        Ok(self.fixed_changes(run)?.into_iter().min_by_key(place))
    }

    /// Returns all keys whose fixed setting would change for a run.
    pub(crate) fn fixed_changes(
        &self,
        run: &FixedSettings,
    ) -> Result<Vec<SettingChange>, SettingError> {
        let asked = self.fixed_settings(run.clone())?;
        let metrics = self.tables.score.changed_metrics(&run.score, &asked.score);
        let metrics = metrics.and_then(|(name, [before, asked])| {
            let key = CONFIG_KEYS.iter().find(|key| key.name == name)?;
            Some(SettingChange { key, origin: self.origin(key), before, asked })
        });
        let changes = self.changed_settings(
            KeyScope::FixedSetting,
            &to_json_value(run),
            &to_json_value(&asked),
        );
        Ok(changes.into_iter().chain(metrics).collect())
    }

    /// Returns the keys whose run limit would change for a run.
    pub(crate) fn limit_changes(&self, run: &RunLimits) -> Vec<SettingChange> {
        let (before, asked) = (to_json_value(run), to_json_value(&self.run_limits(run)));
        self.changed_settings(KeyScope::RunLimit, &before, &asked)
    }

    /// Returns the keys that are set and whose values differ in two documents. `score.metrics` is
    /// compared elsewhere.
    fn changed_settings(
        &self,
        scope: KeyScope,
        before: &Value,
        asked: &Value,
    ) -> Vec<SettingChange> {
        let change = |key: &'static ConfigKey| {
            let origin =
                Some(self.origin(key)).filter(|origin| *origin != SettingOrigin::Default)?;
            let [old, new] = [before, asked].map(|all| get_value(all, key.name));
            let [before, asked] = [old, new].map(|value| format_value(key.name, value));
            (old != new).then_some(SettingChange { key, origin, before, asked })
        };
        let keys = CONFIG_KEYS.iter().filter(|key| key.scope == scope && !key.chooses_metrics());
        keys.filter_map(change).collect()
    }

    /// Returns every value that a new run would have, by key.
    pub(crate) fn all_values(&self) -> Result<Value, SettingError> {
        let mut all = fixed_settings_json(&self.fixed_settings(FixedSettings::default())?);
        merge_values(&mut all, &to_json_value(&self.run_limits(&RunLimits::default())));
        let score = &self.tables.score;
        if let Some(preset) = score.effective_preset() {
            set_value(&mut all, "score.preset", json!(preset));
        }
        let stale = self.lock_stale_after().unwrap_or(RunClaim::from(ForcePolicy::No).stale_after);
        set_value(&mut all, "lock_stale_seconds", json!(stale.as_secs()));
        let runs_root = self.runs_root().map(|path| path.display().to_string());
        set_value(&mut all, "confirm_above_usd", json!(self.confirm_above().map(Cost::to_dollars)));
        set_value(&mut all, "runs_root", json!(runs_root.as_deref().unwrap_or(".treebeam/runs")));
        set_value(&mut all, "base_on_working_tree", json!(self.is_based_on_working_tree()));
        set_value(&mut all, "keep_worktrees", json!(self.keeps_worktrees()));
        set_value(&mut all, "max_new_file_kib", json!(self.max_new_file_bytes() >> 10));
        let TunerAgent { files, seed } = self.tuner_agent();
        set_value(&mut all, "tuner", json!({ "files": files, "seed": seed }));
        set_value(&mut all, "outage_patience", json!("auto"));
        set_value(&mut all, "context_max_chars", json!(self.context_max_chars()));
        set_value(&mut all, "ideas_context_files", json!([]));
        for key in CONFIG_KEYS.iter().filter(|key| key.name.starts_with("context.")) {
            if get_value(&self.values, key.name).is_null() {
                set_value(&mut all, key.name, json!("auto"));
            }
        }
        for key in CONFIG_KEYS.iter().filter(|key| key.scope == KeyScope::Process) {
            let said = get_value(&self.values, key.name);
            if !said.is_null() && said != "none" {
                set_value(&mut all, key.name, said.clone());
            }
        }
        Ok(all)
    }
}

/// Removes lower values of agents and price tables that `above` sets: each of these is one value
/// and is not merged by field.
fn replace_agents(below: &mut Value, above: &Value) {
    for key in
        CONFIG_KEYS.iter().filter(|key| key.name == "prices" || key.name.starts_with("agents."))
    {
        if !get_value(above, key.name).is_null() {
            let (table, name) = key.name.rsplit_once('.').unwrap_or(("", key.name));
            let table = if table.is_empty() { &mut *below } else { &mut below[table] };
            table.as_object_mut().map(|table| table.remove(name));
        }
    }
}

/// Converts fixed settings to a JSON object by key.
fn fixed_settings_json(settings: &FixedSettings) -> Value {
    let mut all = to_json_value(settings);
    let primary = format!("{}:{}", settings.score.primary, settings.score.primary_direction());
    set_value(&mut all, "score.primary", json!(primary));
    all
}

fn to_json_value(settings: &impl serde::Serialize) -> Value {
    serde_json::to_value(settings).unwrap_or_default()
}

/// Returns the value of a dotted key in a document, or null if it is unset.
pub(crate) fn get_value<'a>(document: &'a Value, name: &str) -> &'a Value {
    name.split('.').fold(document, |table, part| &table[part])
}

/// Sets the value of a dotted key in a document.
fn set_value(document: &mut Value, name: &str, value: Value) {
    let alone = name.rsplit('.').fold(value, |value, part| json!({ part: value }));
    merge_values(document, &alone);
}

/// Merges `above` into `below`: tables are joined, other values replaced, null means unset.
fn merge_values(below: &mut Value, above: &Value) {
    match (below, above) {
        (_, Value::Null) => {}
        (Value::Object(below), Value::Object(above)) => {
            for (name, value) in above.iter().filter(|(_, value)| !value.is_null()) {
                merge_values(below.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (below, above) => *below = above.clone(),
    }
}

/// Formats the value of a key as text.
pub(crate) fn format_value(name: &str, value: &Value) -> String {
    match (value, name) {
        (Value::Null, "sweep_config_limit") => "all".to_owned(),
        (Value::Null, "gate.min_rows") => "as many as the root has".to_owned(),
        (Value::Null, _) => "none".to_owned(),
        (Value::String(text), _) => text.clone(),
        (Value::Number(number), _) => number.as_f64().map_or_else(String::new, |n| n.to_string()),
        (Value::Array(_), "score.metrics") => format_items(value).join(", "),
        (Value::Array(_), _) => format!("[{}]", format_items(value).join(", ")),
        (Value::Bool(_) | Value::Object(_), _) => value.to_string(),
    }
}

/// Formats the items of a list, or a value that is no list as its only item.
pub(crate) fn format_items(value: &Value) -> Vec<String> {
    let metric = |metric: &Value| {
        let text = |name: &str| format_value("", &metric[name]);
        let guard = if metric["guard"] == true { ", guarded" } else { "" };
        format!("{} ({}, {}{guard})", text("column"), text("direction"), text("weight"))
    };
    let item = |item: &Value| if item.is_object() { metric(item) } else { format_value("", item) };
    value.as_array().map(|items| items.iter().map(item).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
