//! `[gate]`: what a candidate must fulfil beyond the recommendation.

use super::number::{Count, Fraction, Rate};
use super::{Compared, set_keys};
use serde::Deserialize;
use treebeam_core::policy::GatePolicy;

/// The keys of `[gate]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct GateTable {
    primary_tolerance: Option<Fraction>,
    min_rows: Option<Count>,
    min_ok_rate: Option<Rate>,
}

impl GateTable {
    /// What the keys make of a policy.
    pub(crate) fn policy(&self, before: &GatePolicy) -> GatePolicy {
        GatePolicy {
            primary_tolerance: self.primary_tolerance.map_or(before.primary_tolerance, |n| n.0),
            min_rows: self.min_rows.map(|n| n.0).or(before.min_rows),
            min_ok_rate: self.min_ok_rate.map_or(before.min_ok_rate, |n| n.0),
        }
    }

    /// The keys that are set: each with the run's value and with the one asked for.
    pub(crate) fn compared(&self, run: &GatePolicy, asked: &GatePolicy) -> Vec<Compared> {
        let rows = |policy: &GatePolicy| {
            policy.min_rows.map_or("as many as the root has".to_owned(), |rows| rows.to_string())
        };
        let rate = |policy: &GatePolicy| policy.min_ok_rate.to_string();
        let tolerance = |policy: &GatePolicy| policy.primary_tolerance.to_string();
        let all = [
            (
                self.primary_tolerance.is_some(),
                "primary_tolerance",
                [tolerance(run), tolerance(asked)],
            ),
            (self.min_rows.is_some(), "min_rows", [rows(run), rows(asked)]),
            (self.min_ok_rate.is_some(), "min_ok_rate", [rate(run), rate(asked)]),
        ];
        set_keys("gate", all)
    }
}
