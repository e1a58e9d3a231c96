//! `[score]`: how two sweeps are compared. Which metrics count is said by a preset, a list, or one primary metric.

use super::number::{ColumnName, Fraction, Number, Size};
use super::table::{self, Table};
use super::words::meant;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use treebeam_core::num::Finite;
use treebeam_core::policy::{ChosenBy, Direction, Metric, ScorePolicy, Thresholds};

/// The keys of `[score]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ScoreTable {
    pub(super) preset: Option<Preset>,
    metrics: Option<Metrics>,
    primary: Option<Primary>,
    #[serde(deserialize_with = "table::read")]
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
#[serde(try_from = "Vec<Table<MetricTable>>")]
pub(super) struct Metrics(Vec<Metric>);

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MetricTable {
    column: ColumnName,
    direction: Option<Direction>,
    weight: Option<Size>,
    #[serde(default)]
    guard: bool,
}

/// The keys of `[score.thresholds]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ThresholdTable {
    primary_regression: Option<Fraction>,
    risk_regression: Option<Fraction>,
    clamp: Option<Size>,
    strong: Option<Number>,
    promising: Option<Number>,
    mixed: Option<Number>,
}

/// Settings that contradict each other: the one to look at, and what is wrong.
#[derive(Debug)]
pub(crate) struct Contradiction {
    pub(crate) by: Said,
    pub(crate) what: String,
}

/// Where a setting was made.
#[derive(Debug)]
pub(crate) enum Said {
    /// By a key of `[score]`.
    Key(&'static str),
    /// By a flag with its value.
    Flag(String),
}

/// The metrics, which of them is the primary, and who chose it.
struct Chosen {
    metrics: Vec<Metric>,
    primary: String,
    by: ChosenBy,
}

impl ScoreTable {
    /// The preset whose values count.
    pub(super) fn effective_preset(&self) -> Option<&str> {
        let nothing = self.metrics.is_none() && self.primary.is_none();
        let default = nothing.then_some(ScorePolicy::PRESETS[0]);
        self.preset.as_ref().map(|preset| preset.0.as_str()).or(default)
    }

    /// What the keys mean, over the built-in values of the preset; and which metric a flag chose.
    pub(crate) fn policy(&self, flag: Option<&Primary>) -> Result<ScorePolicy, Contradiction> {
        let preset = self.preset.as_ref().and_then(|preset| ScorePolicy::preset(&preset.0));
        let before = preset.unwrap_or_else(ScorePolicy::trading);
        let Chosen { metrics, primary, by } = self.chosen(&before, flag)?;
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
            thresholds: self.thresholds.over(before.thresholds)?,
        };
        self.roles_differ(&policy, flag)?;
        Ok(policy)
    }

    /// The primary of the keys is one of their metrics, whether a flag chooses another one or not.
    fn chosen(
        &self,
        preset: &ScorePolicy,
        flag: Option<&Primary>,
    ) -> Result<Chosen, Contradiction> {
        let wrong = |by| move |what| Contradiction { by, what };
        let mut metrics = self.listed(preset, flag);
        if let Some(primary) = &self.primary {
            metrics = primary.among(metrics).map_err(wrong(Said::Key("primary")))?;
        }
        if let Some(flag) = flag {
            metrics = flag.among(metrics).map_err(wrong(flag.said()))?;
        }
        let first = metrics.first().filter(|_| self.metrics.is_some()).map(|first| &first.column);
        let named = flag.or(self.primary.as_ref()).map(|primary| &primary.column);
        let (primary, by) = match named.or(first) {
            Some(column) => (column.clone(), ChosenBy::User),
            None => (preset.primary.clone(), preset.primary_chosen_by),
        };
        Ok(Chosen { metrics, primary, by })
    }

    /// The primary and what it has in the place of a direction, where that is none.
    pub(super) fn odd_primary(&self) -> Option<(&str, &str)> {
        let primary = self.primary.as_ref()?;
        Some((&primary.column, primary.after_its_colon()?))
    }

    /// What counts beside the primary.
    fn listed(&self, preset: &ScorePolicy, flag: Option<&Primary>) -> Vec<Metric> {
        let alone = self.preset.is_none() && (self.primary.is_some() || flag.is_some());
        match &self.metrics {
            Some(metrics) => metrics.0.clone(),
            None if alone => Vec::new(),
            None => preset.metrics.clone(),
        }
    }

    /// A column cannot say who a row is, or whether it is ok, and how good it is.
    fn roles_differ(
        &self,
        policy: &ScorePolicy,
        flag: Option<&Primary>,
    ) -> Result<(), Contradiction> {
        let id = (&policy.id_column, self.id_column.is_some(), "id_column", "id");
        let status =
            (&policy.status_column, self.status_column.is_some(), "status_column", "status");
        if id.0 == status.0 {
            let by = Said::Key(if id.1 { "id_column" } else { "status_column" });
            let what = format!("`{}` cannot be both the id column and the status column", id.0);
            return Err(Contradiction { by, what });
        }
        for (column, set, key, role) in [id, status] {
            if policy.metrics.iter().any(|metric| metric.column == *column) {
                let what = format!("`{column}` cannot be both a metric and the {role} column");
                let key = if set { Some(key) } else { None };
                return Err(Contradiction { by: self.made_a_metric(column, key, flag), what });
            }
        }
        Ok(())
    }

    /// Which setting is to blame that this column is a metric and, by a key if there is one, something else.
    fn made_a_metric(
        &self,
        column: &str,
        key: Option<&'static str>,
        flag: Option<&Primary>,
    ) -> Said {
        let names = |primary: &&Primary| primary.column == column;
        match (flag.filter(names), key, self.primary.as_ref().filter(names)) {
            (Some(flag), ..) => flag.said(),
            (None, Some(key), _) => Said::Key(key),
            (None, None, Some(_)) => Said::Key("primary"),
            (None, None, None) => Said::Key("metrics"),
        }
    }

    /// The first key that chooses other metrics or another primary than a run has, with the run's and its own in words.
    pub(super) fn other_metrics(
        &self,
        run: &ScorePolicy,
        asked: &ScorePolicy,
    ) -> Option<(&'static str, [String; 2])> {
        let preset_alone = self.preset.is_some() && self.metrics.is_none();
        let no_primary = self.primary.is_none();
        let primary =
            [run, asked].map(|policy| format!("{}:{}", policy.primary, policy.primary_direction()));
        let as_primary = primary.clone().map(|primary| format!("the primary {primary}"));
        let metrics = differing(run, asked);
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

/// The first few metrics that are not the same on both sides, each side on one line; equal where there are none.
fn differing(run: &ScorePolicy, asked: &ScorePolicy) -> [String; 2] {
    const FEW: usize = 3;
    fn find<'a>(policy: &'a ScorePolicy, column: &str) -> Option<&'a Metric> {
        policy.metrics.iter().find(|metric| metric.column == column)
    }
    let all = run.metrics.iter().chain(&asked.metrics).map(|metric| metric.column.as_str());
    let mut columns: Vec<&str> =
        all.filter(|column| find(run, column) != find(asked, column)).collect();
    let mut seen = BTreeSet::new();
    columns.retain(|column| seen.insert(*column));
    let more = columns.len().saturating_sub(FEW);
    [run, asked].map(|policy| {
        let metric =
            |column: &&str| find(policy, column).map_or_else(|| format!("no {column}"), in_short);
        let mut names: Vec<String> = columns.iter().take(FEW).map(metric).collect();
        names.extend((more > 0).then(|| format!("and {more} more")));
        names.join(", ")
    })
}

/// `loss (lower, 2, guarded)`
fn in_short(metric: &Metric) -> String {
    let guard = if metric.guard { ", guarded" } else { "" };
    format!("{} ({}, {}{guard})", metric.column, metric.direction, metric.weight)
}

impl Primary {
    /// The list with the primary in it: where it is not, it comes first, with weight 1.
    fn among(&self, mut metrics: Vec<Metric>) -> Result<Vec<Metric>, String> {
        let found = metrics.iter().find(|metric| metric.column == self.column);
        match (found.map(|metric| metric.direction), self.direction) {
            (Some(listed), Some(said)) if listed != said => Err(format!(
                "`{}` is to be {said}, but among the metrics it is {listed}",
                self.column
            )),
            (Some(_), _) => Ok(metrics),
            (None, said) => {
                metrics.insert(0, metric(self.column.clone(), said, None));
                Ok(metrics)
            }
        }
    }

    /// As the flag that says it.
    fn said(&self) -> Said {
        Said::Flag(format!("--primary {self}"))
    }

    /// Whether something stands after a colon that is no direction: it counts as a part of the name.
    pub(crate) fn has_no_direction_after_its_colon(&self) -> bool {
        self.after_its_colon().is_some()
    }

    /// The same, and what stands there.
    fn after_its_colon(&self) -> Option<&str> {
        let (_, after) = self.column.rsplit_once(':')?;
        self.direction.is_none().then_some(after)
    }
}

impl fmt::Display for Primary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.column)?;
        self.direction.map_or(Ok(()), |direction| write!(f, ":{direction}"))
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
        Err(format!("there is no preset `{name}`{}", meant(name, &ScorePolicy::PRESETS)))
    }
}

impl TryFrom<String> for Preset {
    type Error = String;
    fn try_from(name: String) -> Result<Self, String> {
        name.parse()
    }
}

impl TryFrom<Vec<Table<MetricTable>>> for Metrics {
    type Error = String;
    fn try_from(tables: Vec<Table<MetricTable>>) -> Result<Self, String> {
        if tables.is_empty() {
            return Err("there must be at least one metric".to_owned());
        }
        let mut seen = BTreeSet::new();
        let mut metrics = Vec::new();
        for Table(table) in tables {
            let MetricTable { column: ColumnName(column), direction, weight, guard } = table;
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
        Err(Contradiction { by: Said::Key(key), what })
    }
}
