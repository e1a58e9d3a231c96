//! Parses `[score]`: how two sweeps are compared. Metrics come from a preset, a list, or one
//! primary.

use super::bounded_values::{ColumnName, FiniteNumber, NonNegativeNumber, PositiveNumber};
use super::key_errors::suggest_nearest;
use super::table::{self, TableValue};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use treebeam_core::num::Finite;
use treebeam_core::policy::{ChosenBy, Direction, Metric, ScorePolicy, ScoreThresholds};

/// Keys of `[score]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ScoreTable {
    pub(super) preset: Option<PresetName>,
    metrics: Option<MetricList>,
    primary: Option<PrimaryMetric>,
    #[serde(deserialize_with = "table::deserialize_table")]
    thresholds: ThresholdTable,
    id_column: Option<ColumnName>,
    status_column: Option<ColumnName>,
    invariant_columns: Option<Vec<ColumnName>>,
}

/// Name of an existing preset.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct PresetName(String);

/// The primary metric, which may not regress: `COL`, `COL:higher` or `COL:lower`.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct PrimaryMetric {
    column: String,
    /// Direction; `None` means that of the listed metric, or else higher.
    direction: Option<Direction>,
}

/// A list of metrics with unique columns.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Vec<TableValue<MetricTable>>")]
pub(super) struct MetricList(Vec<Metric>);

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MetricTable {
    column: ColumnName,
    direction: Option<Direction>,
    weight: Option<PositiveNumber>,
    #[serde(default)]
    guard: bool,
}

/// Keys of `[score.thresholds]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ThresholdTable {
    primary_regression: Option<NonNegativeNumber>,
    risk_regression: Option<NonNegativeNumber>,
    clamp: Option<PositiveNumber>,
    strong: Option<FiniteNumber>,
    promising: Option<FiniteNumber>,
    mixed: Option<FiniteNumber>,
}

/// Contradicting settings: the one to look at, and the message.
#[derive(Debug)]
pub(crate) struct ScoreContradiction {
    pub(crate) by: SettingSource,
    pub(crate) what: String,
}

/// Place of a setting in an error message.
#[derive(Debug)]
pub(crate) enum SettingSource {
    /// Key of `[score]`.
    Key(&'static str),
    /// Flag with its value.
    Flag(String),
}

/// The chosen metrics and primary, and the setting that chose them.
struct ChosenMetrics {
    metrics: Vec<Metric>,
    primary: String,
    by: ChosenBy,
}

impl ScoreTable {
    /// Returns the preset that is in effect.
    pub(super) fn effective_preset(&self) -> Option<&str> {
        let nothing = self.metrics.is_none() && self.primary.is_none();
        let default = nothing.then_some(ScorePolicy::PRESET_NAMES[0]);
        self.preset.as_ref().map(|preset| preset.0.as_str()).or(default)
    }

    /// Builds the score policy from the keys, over the preset's built-in values, with the primary
    /// that a flag chose.
    pub(crate) fn build_policy(
        &self,
        flag: Option<&PrimaryMetric>,
    ) -> Result<ScorePolicy, ScoreContradiction> {
        let preset = self.preset.as_ref().and_then(|preset| ScorePolicy::from_preset(&preset.0));
        let before = preset.unwrap_or_else(ScorePolicy::trading_preset);
        let ChosenMetrics { metrics, primary, by } = self.choose_metrics(&before, flag)?;
        let name = |column: &Option<ColumnName>, before: &str| {
            column.as_ref().map_or_else(|| before.to_owned(), |column| column.0.clone())
        };
        let invariant = self.invariant_columns.as_ref();
        let policy = ScorePolicy {
            primary,
            primary_chosen_by: by,
            metrics,
            id_column: name(&self.id_column, &before.id_column),
            status_column: name(&self.status_column, &before.status_column),
            invariant_columns: invariant.map_or(before.invariant_columns, |columns| {
                columns.iter().map(|column| column.0.clone()).collect()
            }),
            thresholds: self.thresholds.apply_to(before.thresholds)?,
        };
        self.check_column_roles(&policy, flag)?;
        Ok(policy)
    }

    /// Chooses the metrics. The primary of the keys is one of them, whether a flag chooses another
    /// one or not.
    fn choose_metrics(
        &self,
        preset: &ScorePolicy,
        flag: Option<&PrimaryMetric>,
    ) -> Result<ChosenMetrics, ScoreContradiction> {
        let wrong = |by| move |what| ScoreContradiction { by, what };
        let mut metrics = self.listed_metrics(preset, flag);
        if let Some(primary) = &self.primary {
            metrics =
                primary.add_to_metrics(metrics).map_err(wrong(SettingSource::Key("primary")))?;
        }
        if let Some(flag) = flag {
            metrics = flag.add_to_metrics(metrics).map_err(wrong(flag.flag_source()))?;
        }
        let first = metrics.first().filter(|_| self.metrics.is_some()).map(|first| &first.column);
        let named = flag.or(self.primary.as_ref()).map(|primary| &primary.column);
        let (primary, by) = match named.or(first) {
            Some(column) => (column.clone(), ChosenBy::User),
            None => (preset.primary.clone(), preset.primary_chosen_by),
        };
        Ok(ChosenMetrics { metrics, primary, by })
    }

    /// Returns the primary and the text in the place of its direction, if that text is no
    /// direction.
    pub(super) fn primary_with_bad_direction(&self) -> Option<(&str, &str)> {
        let primary = self.primary.as_ref()?;
        Some((&primary.column, primary.bad_direction()?))
    }

    /// Returns the metrics without an added primary.
    fn listed_metrics(&self, preset: &ScorePolicy, flag: Option<&PrimaryMetric>) -> Vec<Metric> {
        let alone = self.preset.is_none() && (self.primary.is_some() || flag.is_some());
        match &self.metrics {
            Some(metrics) => metrics.0.clone(),
            None if alone => Vec::new(),
            None => preset.metrics.clone(),
        }
    }

    /// Refuses a column with two of the roles id, status and metric.
    fn check_column_roles(
        &self,
        policy: &ScorePolicy,
        flag: Option<&PrimaryMetric>,
    ) -> Result<(), ScoreContradiction> {
        let id = (&policy.id_column, self.id_column.is_some(), "id_column", "id");
        let status =
            (&policy.status_column, self.status_column.is_some(), "status_column", "status");
        if id.0 == status.0 {
            let by = SettingSource::Key(if id.1 { "id_column" } else { "status_column" });
            let what = format!("`{}` cannot be both the id column and the status column", id.0);
            return Err(ScoreContradiction { by, what });
        }
        for (column, set, key, role) in [id, status] {
            if policy.metrics.iter().any(|metric| metric.column == *column) {
                let what = format!("`{column}` cannot be both a metric and the {role} column");
                let key = if set { Some(key) } else { None };
                return Err(ScoreContradiction {
                    by: self.source_of_metric(column, key, flag),
                    what,
                });
            }
        }
        Ok(())
    }

    /// Returns the setting that made a column a metric or, through a key, something else.
    fn source_of_metric(
        &self,
        column: &str,
        key: Option<&'static str>,
        flag: Option<&PrimaryMetric>,
    ) -> SettingSource {
        let names = |primary: &&PrimaryMetric| primary.column == column;
        match (flag.filter(names), key, self.primary.as_ref().filter(names)) {
            (Some(flag), ..) => flag.flag_source(),
            (None, Some(key), _) => SettingSource::Key(key),
            (None, None, Some(_)) => SettingSource::Key("primary"),
            (None, None, None) => SettingSource::Key("metrics"),
        }
    }

    /// Returns the first key that chooses other metrics or another primary than a run has, with
    /// both values as text.
    pub(super) fn changed_metrics(
        &self,
        run: &ScorePolicy,
        asked: &ScorePolicy,
    ) -> Option<(&'static str, [String; 2])> {
        let preset_alone = self.preset.is_some() && self.metrics.is_none();
        let no_primary = self.primary.is_none();
        let primary =
            [run, asked].map(|policy| format!("{}:{}", policy.primary, policy.primary_direction()));
        let as_primary = primary.clone().map(|primary| format!("the primary {primary}"));
        let metrics = describe_differing_metrics(run, asked);
        let rows = [
            (!no_primary, "score.primary", primary),
            (no_primary && self.metrics.is_some(), "score.metrics", as_primary.clone()),
            (no_primary && preset_alone, "score.preset", as_primary),
            (self.metrics.is_some(), "score.metrics", metrics.clone()),
            (preset_alone, "score.preset", metrics),
        ];
        let differs = |(set, _, [run, asked]): &(bool, &str, [String; 2])| *set && run != asked;
        rows.into_iter().find(differs).map(|(_, key, words)| (key, words))
    }
}

/// Describes the first few metrics that differ, each side on one line; both equal if none differ.
fn describe_differing_metrics(run: &ScorePolicy, asked: &ScorePolicy) -> [String; 2] {
    const MAX_SHOWN_METRICS: usize = 3;
    fn find_metric<'a>(policy: &'a ScorePolicy, column: &str) -> Option<&'a Metric> {
        policy.metrics.iter().find(|metric| metric.column == column)
    }
    let all = run.metrics.iter().chain(&asked.metrics).map(|metric| metric.column.as_str());
    let mut columns: Vec<&str> =
        all.filter(|column| find_metric(run, column) != find_metric(asked, column)).collect();
    let mut seen = BTreeSet::new();
    columns.retain(|column| seen.insert(*column));
    let more = columns.len().saturating_sub(MAX_SHOWN_METRICS);
    [run, asked].map(|policy| {
        let metric = |column: &&str| {
            find_metric(policy, column).map_or_else(|| format!("no {column}"), describe_metric)
        };
        let mut names: Vec<String> = columns.iter().take(MAX_SHOWN_METRICS).map(metric).collect();
        names.extend((more > 0).then(|| format!("and {more} more")));
        names.join(", ")
    })
}

/// Formats a metric as `loss (lower, 2, guarded)`.
fn describe_metric(metric: &Metric) -> String {
    let guard = if metric.guard { ", guarded" } else { "" };
    format!("{} ({}, {}{guard})", metric.column, metric.direction, metric.weight)
}

impl PrimaryMetric {
    /// Returns the metrics with the primary among them: if missing, it is put first, with weight 1.
    fn add_to_metrics(&self, mut metrics: Vec<Metric>) -> Result<Vec<Metric>, String> {
        let found = metrics.iter().find(|metric| metric.column == self.column);
        match (found.map(|metric| metric.direction), self.direction) {
            (Some(listed), Some(said)) if listed != said => Err(format!(
                "`{}` is to be {said}, but among the metrics it is {listed}",
                self.column
            )),
            (Some(_), _) => Ok(metrics),
            (None, said) => {
                metrics.insert(0, build_metric(self.column.clone(), said, None));
                Ok(metrics)
            }
        }
    }

    /// Returns the flag that chooses this primary.
    fn flag_source(&self) -> SettingSource {
        SettingSource::Flag(format!("--primary {self}"))
    }

    /// Returns true if the text after the last colon is no direction: it is part of the column's
    /// name then.
    pub(crate) fn has_bad_direction(&self) -> bool {
        self.bad_direction().is_some()
    }

    /// Returns the text after the last colon if it is no direction.
    fn bad_direction(&self) -> Option<&str> {
        let (_, after) = self.column.rsplit_once(':')?;
        self.direction.is_none().then_some(after)
    }
}

impl fmt::Display for PrimaryMetric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.column)?;
        self.direction.map_or(Ok(()), |direction| write!(f, ":{direction}"))
    }
}

/// Builds an unguarded metric: by default higher, with weight 1.
fn build_metric(
    column: String,
    direction: Option<Direction>,
    weight: Option<PositiveNumber>,
) -> Metric {
    Metric {
        column,
        direction: direction.unwrap_or(Direction::Higher),
        weight: weight.map_or_else(|| Finite::new(1.0).unwrap_or_default(), |weight| weight.0),
        guard: false,
    }
}

impl FromStr for PrimaryMetric {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (column, direction) = match text.rsplit_once(':') {
            Some((column, "higher")) => (column, Some(Direction::Higher)),
            Some((column, "lower")) => (column, Some(Direction::Lower)),
            Some(_) | None => (text, None),
        };
        let ColumnName(column) = column.to_owned().try_into()?;
        Ok(Self { column, direction })
    }
}

impl TryFrom<String> for PrimaryMetric {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl FromStr for PresetName {
    type Err = String;
    fn from_str(name: &str) -> Result<Self, String> {
        if ScorePolicy::from_preset(name).is_some() {
            return Ok(Self(name.to_owned()));
        }
        Err(format!(
            "there is no preset `{name}`{}",
            suggest_nearest(name, &ScorePolicy::PRESET_NAMES)
        ))
    }
}

impl TryFrom<String> for PresetName {
    type Error = String;
    fn try_from(name: String) -> Result<Self, String> {
        name.parse()
    }
}

impl TryFrom<Vec<TableValue<MetricTable>>> for MetricList {
    type Error = String;
    fn try_from(tables: Vec<TableValue<MetricTable>>) -> Result<Self, String> {
        if tables.is_empty() {
            return Err("there must be at least one metric".to_owned());
        }
        let mut seen = BTreeSet::new();
        let mut metrics = Vec::new();
        for TableValue(table) in tables {
            let MetricTable { column: ColumnName(column), direction, weight, guard } = table;
            if !seen.insert(column.clone()) {
                return Err(format!("the column `{column}` stands twice among the metrics"));
            }
            metrics.push(Metric { guard, ..build_metric(column, direction, weight) });
        }
        Ok(Self(metrics))
    }
}

impl ThresholdTable {
    fn apply_to(&self, before: ScoreThresholds) -> Result<ScoreThresholds, ScoreContradiction> {
        let thresholds = ScoreThresholds {
            primary_regression: self.primary_regression.map_or(before.primary_regression, |n| n.0),
            risk_regression: self.risk_regression.map_or(before.risk_regression, |n| n.0),
            clamp: self.clamp.map_or(before.clamp, |n| n.0),
            strong: self.strong.map_or(before.strong, |n| n.0),
            promising: self.promising.map_or(before.promising, |n| n.0),
            mixed: self.mixed.map_or(before.mixed, |n| n.0),
        };
        let ScoreThresholds { strong, promising, mixed, .. } = thresholds;
        if mixed <= promising && promising <= strong {
            return Ok(thresholds);
        }
        let set = |wanted: bool, key, other| if wanted { key } else { other };
        let key = if mixed > promising {
            set(self.mixed.is_some(), "thresholds.mixed", "thresholds.promising")
        } else {
            set(self.promising.is_some(), "thresholds.promising", "thresholds.strong")
        };
        let what = format!(
            "`mixed` ≤ `promising` ≤ `strong` must hold, but they are {mixed}, {promising} and {strong}"
        );
        Err(ScoreContradiction { by: SettingSource::Key(key), what })
    }
}
