//! Effect: whether configured metrics of two sweeps differ in any row by more than rounding.

use super::cell::RowId;
use super::{SelectedFigures, Sweep};
use crate::rounding::is_rounding_difference;
use treebeam_core::policy::ScorePolicy;

impl Sweep {
    /// Returns true if a configured metric of the other sweep differs in any row. Rows are matched
    /// by id; without a number, the text of a metric counts. With too many rows to keep every
    /// figure, the primary's rows and each other metric's mean are compared.
    pub(crate) fn differs_beyond_rounding(&self, other: &Self, policy: &ScorePolicy) -> bool {
        let (mine, others) = (&self.picked, &other.picked);
        if mine.fingerprint == others.fingerprint {
            return false;
        }
        if mine.shape != others.shape || mine.rows.len() != others.rows.len() {
            return true;
        }
        if mine.has_all_figures() && others.has_all_figures() {
            let mut columns = mine.metrics.iter().zip(&others.metrics);
            return columns.any(|(before, after)| columns_differ(before, after));
        }
        let is_counted = policy.metrics.iter().any(|metric| metric.column == policy.primary);
        let mut means = policy.metrics.iter().map(|metric| metric.column.as_str());
        (is_counted && columns_differ(&mine.primary_figures(), &others.primary_figures()))
            || means.any(|column| match (self.column_mean(column), other.column_mean(column)) {
                (Some(before), Some(after)) => !is_rounding_difference(before, after),
                (before, after) => before.is_some() != after.is_some(),
            })
    }
}

impl SelectedFigures {
    fn has_all_figures(&self) -> bool {
        self.metrics.iter().all(|column| column.len() == self.rows.len())
            && !self.metrics.is_empty()
    }

    fn primary_figures(&self) -> Vec<(RowId, f64)> {
        self.rows.iter().map(|row| (row.id(), row.primary())).collect()
    }
}

/// Returns true if two columns differ, each ordered by id and by number within one id.
fn columns_differ(before: &[(RowId, f64)], after: &[(RowId, f64)]) -> bool {
    let equal = |((id, before), (other, after)): (&(RowId, f64), &(RowId, f64))| {
        let no_numbers = before.is_nan() && after.is_nan();
        id == other && (no_numbers || is_rounding_difference(*before, *after))
    };
    before.len() != after.len() || !before.iter().zip(after).all(equal)
}
