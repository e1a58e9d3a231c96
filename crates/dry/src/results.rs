//! Builds the CSV of a dry sweep: the columns that the run scores, changed by each effect. Its
//! numbers are generated, never measured.

use super::DryRecipe;
use std::io;
use treebeam_core::policy::{ChosenBy, Direction, Metric, ScorePolicy};

/// Columns of every sweep of a run.
#[derive(Debug)]
pub(super) struct DrySweepShape {
    id: String,
    status: String,
    primary: String,
    columns: Vec<DryColumn>,
    /// Columns that no change affects.
    invariants: Vec<String>,
}

/// A metric's column: its initial value, and what changes it.
#[derive(Debug)]
struct DryColumn {
    name: String,
    direction: Direction,
    /// Value in configuration 0 of the root, followed by the increase per configuration.
    base: f64,
    step: f64,
    /// True if gains change it.
    moves: bool,
    /// Value in a code state with [`DryRecipe::Risk`].
    at_risk: Option<f64>,
}

/// Metrics of a preset that a dry sweep has beside the primary. A preset lists more than most
/// sweeps write; two of these stay constant, so that gains of the others have a counterweight.
const PRESET_METRICS: [&str; 3] =
    ["core_topN_sharpe", "core_topN_volatility", "core_topN_max_drawdown"];

impl DrySweepShape {
    /// Selects the columns for a policy: all metrics that the user listed, or some of a preset's.
    pub(super) fn from_policy(policy: &ScorePolicy) -> Self {
        let column = |metric: &Metric| match policy.primary_chosen_by {
            ChosenBy::User => Some(DryColumn::from_metric(metric, policy)),
            ChosenBy::Preset => DryColumn::from_preset(metric, policy),
        };
        let metrics: Vec<DryColumn> = policy.metrics.iter().filter_map(column).collect();
        let other = |name: &&String| {
            **name != policy.id_column
                && **name != policy.status_column
                && metrics.iter().all(|column| column.name != **name)
        };
        Self {
            invariants: policy.invariant_columns.iter().filter(other).cloned().collect(),
            id: policy.id_column.clone(),
            status: policy.status_column.clone(),
            primary: policy.primary.clone(),
            columns: metrics,
        }
    }

    /// Returns the CSV of a code state with these changes.
    pub(super) fn render_csv(&self, recipes: &[DryRecipe], rows: u32) -> io::Result<Vec<u8>> {
        let mut csv = csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
        let has = |recipe| recipes.contains(&recipe);
        csv.write_record(self.header_row(recipes))?;
        let last = rows.saturating_sub(1);
        for config in 0..rows {
            let mut cells = self.config_row(recipes, config, last);
            if config == last && has(DryRecipe::Ragged) {
                cells.truncate(cells.len().saturating_sub(2).max(2));
            }
            if config < last || !has(DryRecipe::Short) {
                csv.write_record(cells)?;
            }
        }
        csv.into_inner().map_err(csv::IntoInnerError::into_error)
    }

    fn header_row(&self, recipes: &[DryRecipe]) -> Vec<String> {
        let mut header = vec![self.id.clone(), self.status.clone()];
        header.extend(self.columns.iter().map(|column| column.name.clone()));
        header.extend(self.invariants.iter().cloned());
        if recipes.contains(&DryRecipe::NoPrimary) {
            let mut other = "other".to_owned();
            while header.contains(&other) {
                other.push('_');
            }
            if let Some(name) = header.iter_mut().find(|name| **name == self.primary) {
                *name = other;
            }
        }
        header
    }

    fn config_row(&self, recipes: &[DryRecipe], config: u32, last: u32) -> Vec<String> {
        let has = |recipe| recipes.contains(&recipe);
        let status = if config == last && has(DryRecipe::Errors) { "error" } else { "ok" };
        let mut cells = vec![config.to_string(), status.to_owned()];
        cells.extend(self.columns.iter().map(|column| {
            let is_none = has(DryRecipe::NotANumber) && column.name == self.primary;
            let value = if is_none { f64::NAN } else { column.value_at(recipes, config) };
            value.to_string()
        }));
        cells.extend(self.invariants.iter().map(|_| config.to_string()));
        cells
    }
}

impl DryColumn {
    /// Builds the column of a metric that the user listed. The primary and unguarded metrics gain;
    /// guarded ones stay constant until a risk.
    fn from_metric(metric: &Metric, policy: &ScorePolicy) -> Self {
        let sign = match metric.direction {
            Direction::Higher => -1.0,
            Direction::Lower => 1.0,
        };
        let moves = metric.column == policy.primary || !metric.guard;
        Self {
            name: metric.column.clone(),
            direction: metric.direction,
            base: if moves { 1.0 } else { 0.2 * sign },
            step: if moves { 0.01 } else { 0.0 },
            moves,
            at_risk: metric.guard.then_some(if moves { 1.0 + 0.5 * sign } else { 0.3 * sign }),
        }
    }

    /// Builds the column of a preset's metric, if the dry world has it.
    fn from_preset(metric: &Metric, policy: &ScorePolicy) -> Option<Self> {
        let of = Self::from_metric(metric, policy);
        let name = &metric.column;
        match PRESET_METRICS.iter().position(|known| known == name) {
            _ if *name == policy.primary => Some(Self { base: 0.02, step: 0.001, ..of }),
            Some(0) => Some(Self { base: 0.8, ..of }),
            Some(1) => Some(Self { base: 0.15, step: 0.0, moves: false, ..of }),
            Some(_) => Some(of),
            None => None,
        }
    }

    fn value_at(&self, recipes: &[DryRecipe], config: u32) -> f64 {
        if let Some(at_risk) = self.at_risk.filter(|_| recipes.contains(&DryRecipe::Risk)) {
            return at_risk;
        }
        let base = self.base + self.step * f64::from(config);
        let gains = recipes.iter().map(|recipe| f64::from(recipe.gain_thousandths()));
        let factor = 1.0 + gains.sum::<f64>() / 1000.0;
        match self.direction {
            _ if !self.moves => base,
            Direction::Higher => base * factor,
            Direction::Lower => base / factor.max(0.1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use treebeam_core::num::Finite;

    fn text(policy: &ScorePolicy, recipes: &[DryRecipe]) -> String {
        String::from_utf8(DrySweepShape::from_policy(policy).render_csv(recipes, 2).unwrap())
            .unwrap()
    }

    fn metric(column: &str, direction: Direction, guard: bool) -> Metric {
        Metric { column: column.to_owned(), direction, weight: Finite::new(1.0).unwrap(), guard }
    }

    #[test]
    fn a_preset_gives_four_columns() {
        let head = "config_id,status,mean_topN_avg_return_per_trade_pct_oos,core_topN_sharpe,core_topN_volatility,core_topN_max_drawdown\n";
        let policy = ScorePolicy::trading_preset();
        let csv = text(&policy, &[]);
        assert_eq!(csv, format!("{head}0,ok,0.02,0.8,0.15,-0.2\n1,ok,0.021,0.81,0.15,-0.2\n"));
        let csv = text(&policy, &[DryRecipe::Risk, DryRecipe::Errors, DryRecipe::Ragged]);
        assert_eq!(
            csv,
            format!(
                "{head}0,ok,0.022000000000000002,0.8800000000000001,0.15,-0.3\n1,error,0.023100000000000002,0.8910000000000001\n"
            )
        );
        let csv = text(&policy, &[DryRecipe::NoPrimary, DryRecipe::Short]);
        assert!(csv.starts_with("config_id,status,other,"), "{csv}");
        assert_eq!(csv.lines().count(), 2);
    }

    #[test]
    fn the_users_metrics_are_all_there_and_get_better_their_own_way() {
        let policy = ScorePolicy {
            primary: "loss, last".to_owned(),
            primary_chosen_by: ChosenBy::User,
            metrics: vec![
                metric("loss, last", Direction::Lower, false),
                metric("other", Direction::Higher, false),
                metric("memory", Direction::Lower, true),
            ],
            id_column: "seed".to_owned(),
            status_column: "state".to_owned(),
            ..ScorePolicy::trading_preset()
        };
        let csv = text(&policy, &[DryRecipe::Gain(250)]);
        let head = "seed,state,\"loss, last\",other,memory\n";
        assert_eq!(csv, format!("{head}0,ok,0.8,1.25,0.2\n1,ok,0.808,1.2625,0.2\n"));
        let csv = text(&policy, &[DryRecipe::Risk, DryRecipe::NoPrimary]);
        assert!(csv.starts_with("seed,state,other_,other,memory\n0,ok,"), "{csv}");
        assert!(csv.ends_with(",0.3\n"), "{csv}");
        let csv = text(&policy, &[DryRecipe::NotANumber]);
        assert!(csv.contains("0,ok,NaN,1,0.2\n"), "{csv}");
    }
}
