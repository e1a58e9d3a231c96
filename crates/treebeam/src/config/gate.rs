//! Defines `[gate]`: conditions on a candidate beyond the recommendation.

use super::bounded_values::{LimitSetting, NonNegativeNumber, UnitNumber, WholeNumber};
use serde::Deserialize;
use treebeam_core::policy::GatePolicy;

/// Keys of `[gate]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct GateTable {
    primary_tolerance: Option<NonNegativeNumber>,
    min_rows: Option<LimitSetting<WholeNumber>>,
    min_ok_rate: Option<UnitNumber>,
}

impl GateTable {
    /// Returns the gate policy with the configured values applied.
    pub(crate) fn apply_to(&self, before: &GatePolicy) -> GatePolicy {
        GatePolicy {
            primary_tolerance: self.primary_tolerance.map_or(before.primary_tolerance, |n| n.0),
            min_rows: self.min_rows.map_or(before.min_rows, |limit| limit.map_limit(|n| n.0)),
            min_ok_rate: self.min_ok_rate.map_or(before.min_ok_rate, |n| n.0),
        }
    }
}
