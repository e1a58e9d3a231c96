//! Flat table of the figures of one comparison, to compare oracle, reference and treebeam. Keys are
//! like `recommendation/score`; no formulas here.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use treebeam_core::policy::Direction;
use treebeam_score::compare::ComparisonDetails;

/// Maximum difference of two numbers, relative to the larger.
const TOLERANCE: f64 = 1e-9;

/// Entry of the table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Figure {
    Number(f64),
    Word(String),
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number:?}"),
            Self::Word(word) => f.write_str(word),
        }
    }
}

impl Figure {
    fn agrees(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Number(one), Self::Number(other)) => {
                let apart = (one - other).abs();
                let near = apart <= TOLERANCE * one.abs().max(other.abs()) && apart.is_finite();
                near || one.total_cmp(other).is_eq()
            }
            (one, other) => one == other,
        }
    }
}

/// All figures of one comparison.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Figures(BTreeMap<String, Figure>);

impl Figures {
    pub(crate) fn number(&mut self, path: String, number: impl Into<f64>) {
        self.0.insert(path, Figure::Number(number.into()));
    }

    pub(crate) fn word(&mut self, path: String, word: &str) {
        self.0.insert(path, Figure::Word(word.to_owned()));
    }

    pub(crate) fn get(&self, path: &str) -> Option<&Figure> {
        self.0.get(path)
    }

    /// Reads the oracle's JSON; numbers that JSON cannot express are strings there.
    pub(crate) fn of_json(value: &Value) -> Self {
        let mut figures = Self::default();
        figures.add("", value);
        figures
    }

    fn add(&mut self, path: &str, value: &Value) {
        let below =
            |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}/{key}") };
        match value {
            Value::Object(entries) => entries.iter().for_each(|(key, v)| self.add(&below(key), v)),
            Value::Array(entries) => {
                entries.iter().enumerate().for_each(|(at, v)| self.add(&below(&at.to_string()), v));
            }
            Value::Number(number) => self.number(path.to_owned(), number.as_f64().unwrap()),
            Value::String(text) => match text.as_str() {
                "Infinity" => self.number(path.to_owned(), f64::INFINITY),
                "-Infinity" => self.number(path.to_owned(), f64::NEG_INFINITY),
                word => self.word(path.to_owned(), word),
            },
            Value::Bool(_) | Value::Null => self.word(path.to_owned(), &value.to_string()),
        }
    }

    /// Converts treebeam's figures, with the oracle's names.
    pub(crate) fn of_details(details: &ComparisonDetails) -> Self {
        let mut figures = Self::default();
        let (comparison, recommendation) =
            (&details.comparison, &details.comparison.recommendation);
        figures.number("baseline_rows_used".to_owned(), comparison.baseline_rows_used);
        figures.number("candidate_rows_used".to_owned(), comparison.candidate_rows_used);
        figures.number("n_numeric_columns_compared".to_owned(), count(details.columns.len()));
        for column in &details.columns {
            let mut put = |key: &str, number: f64| {
                figures.number(format!("column_deltas/{}/{key}", column.column), number);
            };
            put("baseline_mean", column.baseline_mean);
            put("candidate_mean", column.candidate_mean);
            put("delta", column.delta);
        }
        let of = |key: &str| format!("recommendation/{key}");
        figures.word(of("should_explore"), &recommendation.should_explore.to_string());
        figures.word(of("grade"), &recommendation.grade.to_string());
        figures.number(of("score"), recommendation.score);
        figures.number(of("positive_signals"), recommendation.positive_signals);
        figures.number(of("negative_signals"), recommendation.negative_signals);
        for (at, reason) in recommendation.reasons.iter().enumerate() {
            figures.word(of(&format!("reasons/{at}")), &reason.to_string());
        }
        for metric in &details.metrics {
            let of = |key: &str| format!("recommendation/metrics_used/{}/{key}", metric.column);
            let direction = match metric.direction {
                Direction::Higher => "higher",
                Direction::Lower => "lower",
            };
            figures.word(of("direction"), direction);
            figures.number(of("weight"), metric.weight);
            figures.number(of("baseline_mean"), metric.baseline_mean);
            figures.number(of("candidate_mean"), metric.candidate_mean);
            figures.number(of("raw_improvement"), metric.raw_improvement);
            figures.number(of("relative_improvement"), metric.relative_improvement);
        }
        figures
    }

    /// Lists the differences, as text with a name for each side.
    pub(crate) fn differences(&self, other: &Self, names: [&str; 2]) -> Vec<String> {
        let all: std::collections::BTreeSet<&String> =
            self.0.keys().chain(other.0.keys()).collect();
        let shown =
            |figure: Option<&Figure>| figure.map_or("nothing".to_owned(), ToString::to_string);
        all.into_iter()
            .map(|path| (path, self.get(path), other.get(path)))
            .filter(|(_, one, other)| {
                !one.zip(*other).is_some_and(|(one, other)| one.agrees(other))
            })
            .map(|(path, one, other)| {
                format!("{path}: {} {}, {} {}", names[0], shown(one), names[1], shown(other))
            })
            .collect()
    }

    /// Returns true if all figures here are equal in `other`, to the bit.
    pub(crate) fn is_exactly(&self, other: &Self) -> bool {
        let bits = |figure: &Figure| match figure {
            Figure::Number(number) => Figure::Word((number + 0.0).to_bits().to_string()),
            Figure::Word(_) => figure.clone(),
        };
        let table = |figures: &Self| -> Vec<(String, Figure)> {
            figures.0.iter().map(|(path, figure)| (path.clone(), bits(figure))).collect()
        };
        table(self) == table(other)
    }

    /// Keeps only the figures that `other` has too, for tables that leave some out.
    pub(crate) fn only_what_is_in(&self, other: &Self) -> Self {
        let kept = self.0.iter().filter(|(path, _)| other.0.contains_key(*path));
        Self(kept.map(|(path, figure)| (path.clone(), figure.clone())).collect())
    }
}

fn count(things: usize) -> u32 {
    u32::try_from(things).unwrap()
}
