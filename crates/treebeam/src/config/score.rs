//! `[score]`: how two sweeps are compared. Which metrics count is said by a preset, a list, or one primary metric.

use super::number::{ColumnName, Fraction, Number, Size};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::str::FromStr;
use treebeam_core::num::Finite;
use treebeam_core::policy::{ChosenBy, Direction, Metric, ScorePolicy, Thresholds};

/// The keys of `[score]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub(crate) struct ScoreTable {
    pub(crate) preset: Option<Preset>,
    metrics: Option<Metrics>,
    pub(crate) primary: Option<Primary>,
    thresholds: ThresholdTable,
    id_column: Option<ColumnName>,
    status_column: Option<ColumnName>,
    invariant_columns: Option<Vec<ColumnName>>,
}

/// A preset that there is.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Preset(String);

/// The metric that may not regress: `COL`, `COL:higher` or `COL:lower`.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Primary {
    column: String,
    /// None: that of the listed metric, or higher.
    direction: Option<Direction>,
}

/// A list of metrics in which no column stands twice.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Vec<MetricTable>")]
struct Metrics(Vec<Metric>);

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with `column`")]
struct MetricTable {
    column: ColumnName,
    direction: Option<Direction>,
    weight: Option<Size>,
    #[serde(default)]
    guard: bool,
}

/// The keys of `[score.thresholds]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
struct ThresholdTable {
    primary_regression: Option<Fraction>,
    risk_regression: Option<Fraction>,
    clamp: Option<Size>,
    strong: Option<Number>,
    promising: Option<Number>,
    mixed: Option<Number>,
}

/// Keys that contradict each other: the one to look at, and what is wrong.
#[derive(Debug)]
pub(crate) struct Contradiction {
    pub(crate) key: &'static str,
    pub(crate) what: String,
}

impl ScoreTable {
    /// The preset of that name and nothing else.
    pub(crate) fn of_preset(preset: Preset) -> Self {
        Self { preset: Some(preset), ..Self::default() }
    }

    /// What the keys mean, over the built-in values of the preset.
    pub(crate) fn policy(&self) -> Result<ScorePolicy, Contradiction> {
        let preset = self.preset.as_ref().and_then(|preset| ScorePolicy::preset(&preset.0));
        let before = preset.unwrap_or_else(ScorePolicy::trading);
        let (metrics, primary, primary_chosen_by) = self.metrics(&before)?;
        let name = |column: &Option<ColumnName>, before: &str| {
            column.as_ref().map_or_else(|| before.to_owned(), |column| column.0.clone())
        };
        let invariant = self.invariant_columns.as_ref();
        let policy = ScorePolicy {
            primary,
            primary_chosen_by,
            metrics,
            id_column: name(&self.id_column, &before.id_column),
            status_column: name(&self.status_column, &before.status_column),
            invariant_columns: invariant.map_or(before.invariant_columns, |columns| {
                columns.iter().map(|column| column.0.clone()).collect()
            }),
            thresholds: self.thresholds.over(before.thresholds)?,
        };
        self.roles_differ(&policy)?;
        Ok(policy)
    }

    /// The metrics, which of them is the primary, and who chose it.
    fn metrics(
        &self,
        preset: &ScorePolicy,
    ) -> Result<(Vec<Metric>, String, ChosenBy), Contradiction> {
        let listed = match (&self.metrics, &self.preset, &self.primary) {
            (Some(metrics), ..) => metrics.0.clone(),
            (None, None, Some(_)) => Vec::new(),
            (None, ..) => preset.metrics.clone(),
        };
        match (&self.primary, &self.metrics) {
            (Some(primary), _) => {
                let metrics = primary.among(listed)?;
                Ok((metrics, primary.column.clone(), ChosenBy::User))
            }
            (None, Some(_)) => {
                let first = listed.first().map(|metric| metric.column.clone());
                let first = first.unwrap_or_else(|| preset.primary.clone());
                Ok((listed, first, ChosenBy::User))
            }
            (None, None) => Ok((listed, preset.primary.clone(), preset.primary_chosen_by)),
        }
    }

    /// A column cannot say who a row is, or whether it is ok, and how good it is.
    fn roles_differ(&self, policy: &ScorePolicy) -> Result<(), Contradiction> {
        let id = (&policy.id_column, self.id_column.is_some(), "id_column", "id");
        let status =
            (&policy.status_column, self.status_column.is_some(), "status_column", "status");
        if id.0 == status.0 {
            let key = if id.1 { "id_column" } else { "status_column" };
            let what = format!("`{}` cannot be both the id column and the status column", id.0);
            return Err(Contradiction { key, what });
        }
        for (column, set, key, role) in [id, status] {
            let is_primary = self.primary.as_ref().is_some_and(|primary| primary.column == *column);
            let key = match (set, is_primary) {
                (true, _) => key,
                (false, true) => "primary",
                (false, false) => "metrics",
            };
            if policy.metrics.iter().any(|metric| metric.column == *column) {
                let what = format!("`{column}` cannot be both a metric and the {role} column");
                return Err(Contradiction { key, what });
            }
        }
        Ok(())
    }

    /// The keys that are set: each with the run's value and with the one asked for.
    pub(crate) fn compared(&self, run: &ScorePolicy, asked: &ScorePolicy) -> Vec<[String; 3]> {
        let preset_alone = self.preset.is_some() && self.metrics.is_none();
        let both = |text: fn(&ScorePolicy) -> String| [text(run), text(asked)];
        let primary: fn(&ScorePolicy) -> String =
            |policy| format!("{}:{}", policy.primary, policy.primary_direction());
        let mut rows = set_keys(
            "score",
            [
                (self.metrics.is_some(), "metrics", both(listed)),
                (preset_alone, "preset", both(listed)),
                (preset_alone && self.primary.is_none(), "preset", both(primary)),
                (self.primary.is_some(), "primary", both(primary)),
                (self.id_column.is_some(), "id_column", both(|policy| policy.id_column.clone())),
                (
                    self.status_column.is_some(),
                    "status_column",
                    both(|policy| policy.status_column.clone()),
                ),
                (
                    self.invariant_columns.is_some(),
                    "invariant_columns",
                    both(|policy| format!("[{}]", policy.invariant_columns.join(", "))),
                ),
            ],
        );
        rows.extend(self.thresholds.compared(&run.thresholds, &asked.thresholds));
        rows
    }
}

/// Of some keys those that are set, by their full names.
pub(super) fn set_keys<const N: usize>(
    table: &str,
    keys: [(bool, &str, [String; 2]); N],
) -> Vec<[String; 3]> {
    let set = keys.into_iter().filter(|(set, ..)| *set);
    set.map(|(_, key, [run, asked])| [format!("{table}.{key}"), run, asked]).collect()
}

/// The metrics on one line.
fn listed(policy: &ScorePolicy) -> String {
    let metric = |metric: &Metric| {
        let guard = if metric.guard { ", guarded" } else { "" };
        format!("{} ({}, {}{guard})", metric.column, metric.direction, metric.weight)
    };
    policy.metrics.iter().map(metric).collect::<Vec<_>>().join(", ")
}

impl Primary {
    /// The list with the primary in it: where it is not, it comes first, with weight 1.
    fn among(&self, mut metrics: Vec<Metric>) -> Result<Vec<Metric>, Contradiction> {
        let found = metrics.iter().find(|metric| metric.column == self.column);
        match (found.map(|metric| metric.direction), self.direction) {
            (Some(listed), Some(said)) if listed != said => {
                let what = format!(
                    "`{}` is to be {said}, but among the metrics it is {listed}",
                    self.column
                );
                Err(Contradiction { key: "primary", what })
            }
            (Some(_), _) => Ok(metrics),
            (None, said) => {
                metrics.insert(0, metric(self.column.clone(), said, None));
                Ok(metrics)
            }
        }
    }
}

/// A metric that is not guarded: higher and 1 where nothing else is said.
fn metric(column: String, direction: Option<Direction>, weight: Option<Size>) -> Metric {
    Metric {
        column,
        direction: direction.unwrap_or(Direction::Higher),
        weight: weight.map_or_else(|| Finite::new(1.0).unwrap_or_default(), |weight| weight.0),
        guard: false,
    }
}

impl FromStr for Primary {
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

impl TryFrom<String> for Primary {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl FromStr for Preset {
    type Err = String;
    fn from_str(name: &str) -> Result<Self, String> {
        if ScorePolicy::preset(name).is_some() {
            return Ok(Self(name.to_owned()));
        }
        let nearest = super::file::nearest(name, ScorePolicy::PRESETS).unwrap_or_default();
        Err(format!("there is no preset `{name}`{nearest}"))
    }
}

impl TryFrom<String> for Preset {
    type Error = String;
    fn try_from(name: String) -> Result<Self, String> {
        name.parse()
    }
}

impl TryFrom<Vec<MetricTable>> for Metrics {
    type Error = String;
    fn try_from(tables: Vec<MetricTable>) -> Result<Self, String> {
        if tables.is_empty() {
            return Err("there must be at least one metric".to_owned());
        }
        let mut seen = BTreeSet::new();
        let mut metrics = Vec::new();
        for MetricTable { column: ColumnName(column), direction, weight, guard } in tables {
            if !seen.insert(column.clone()) {
                return Err(format!("the column `{column}` stands twice among the metrics"));
            }
            metrics.push(Metric { guard, ..metric(column, direction, weight) });
        }
        Ok(Self(metrics))
    }
}

impl ThresholdTable {
    fn over(&self, before: Thresholds) -> Result<Thresholds, Contradiction> {
        let thresholds = Thresholds {
            primary_regression: self.primary_regression.map_or(before.primary_regression, |n| n.0),
            risk_regression: self.risk_regression.map_or(before.risk_regression, |n| n.0),
            clamp: self.clamp.map_or(before.clamp, |n| n.0),
            strong: self.strong.map_or(before.strong, |n| n.0),
            promising: self.promising.map_or(before.promising, |n| n.0),
            mixed: self.mixed.map_or(before.mixed, |n| n.0),
        };
        let Thresholds { strong, promising, mixed, .. } = thresholds;
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
        Err(Contradiction { key, what })
    }

    fn compared(&self, run: &Thresholds, asked: &Thresholds) -> Vec<[String; 3]> {
        let both = |number: fn(&Thresholds) -> Finite| {
            [number(run), number(asked)].map(|number| number.to_string())
        };
        let keys = [
            (
                self.primary_regression.is_some(),
                "primary_regression",
                both(|t| t.primary_regression),
            ),
            (self.risk_regression.is_some(), "risk_regression", both(|t| t.risk_regression)),
            (self.clamp.is_some(), "clamp", both(|t| t.clamp)),
            (self.strong.is_some(), "strong", both(|t| t.strong)),
            (self.promising.is_some(), "promising", both(|t| t.promising)),
            (self.mixed.is_some(), "mixed", both(|t| t.mixed)),
        ];
        set_keys("score.thresholds", keys)
    }
}
