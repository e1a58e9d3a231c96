//! Renders the figures of a comparison, and bills, as JSON. The run's files and `treebeam score`
//! share this shape. Computes only which side leads; writes nothing.

use serde_json::{Value, json};
use treebeam_core::bill::{AgentBill, Cost, RoleBills};
use treebeam_core::evidence::Recommendation;
use treebeam_core::facts::Facts;
use treebeam_core::gate::GateVerdict;
use treebeam_core::id::CodePlace;
use treebeam_score::compare::ComparisonDetails;
use treebeam_score::paired::PairCounts;
use treebeam_score::versus::{ControlComparison, LeadingSide, SideResult, compare_with_control};

/// Renders a comparison with all of its figures, column by column.
#[must_use]
pub fn comparison_json(details: &ComparisonDetails) -> Value {
    let columns = details.columns.iter().map(|column| {
        let figures = json!({
            "baseline_mean": column.baseline_mean,
            "candidate_mean": column.candidate_mean,
            "delta": column.delta,
        });
        (column.column.clone(), figures)
    });
    let comparison = &details.comparison;
    json!({
        "baseline_rows_used": comparison.baseline_rows_used,
        "candidate_rows_used": comparison.candidate_rows_used,
        "n_numeric_columns_compared": details.columns.len(),
        "column_deltas": Value::Object(columns.collect()),
        "recommendation": recommendation_json(details),
        "primary_delta": comparison.primary_delta,
        "paired": comparison.paired,
    })
}

/// Renders the recommendation of a comparison, with its metrics.
#[must_use]
pub fn recommendation_json(details: &ComparisonDetails) -> Value {
    let Recommendation {
        should_explore,
        grade,
        score,
        positive_signals,
        negative_signals,
        metrics_used: _,
        reasons,
    } = &details.comparison.recommendation;
    let metrics = details.metrics.iter().map(|metric| {
        let figures = json!({
            "direction": metric.direction,
            "weight": metric.weight,
            "baseline_mean": metric.baseline_mean,
            "candidate_mean": metric.candidate_mean,
            "raw_improvement": metric.raw_improvement,
            "relative_improvement": metric.relative_improvement,
            "paired": metric.paired.map(pair_counts_json),
        });
        (metric.column.clone(), figures)
    });
    let reasons: Vec<String> = reasons.iter().map(ToString::to_string).collect();
    json!({
        "should_explore": should_explore,
        "grade": grade,
        "score": score,
        "positive_signals": positive_signals,
        "negative_signals": negative_signals,
        "metrics_used": Value::Object(metrics.collect()),
        "reasons": reasons,
    })
}

fn pair_counts_json(counts: PairCounts) -> Value {
    json!({ "pairs": counts.pairs, "wins": counts.wins, "losses": counts.losses })
}

/// Renders the verdict of the gate, with every check.
#[must_use]
pub fn verdict_json(verdict: &GateVerdict) -> Value {
    json!({
        "passed": verdict.has_passed(),
        "reason": verdict.reason(),
        "checks": verdict.checks,
        "rank_score": verdict.rank_score,
    })
}

/// Renders the bills of answers, in total and by role; null where nothing was answered.
#[must_use]
pub fn usage_json(bills: &RoleBills) -> Value {
    if bills.is_empty() {
        return Value::Null;
    }
    let mut all = bill_json(&bills.total());
    let roles = bills.by_role().map(|(role, one)| {
        let mut figures = bill_json(one);
        figures["cost_usd"] = json!(one.known_cost().map(Cost::to_dollars));
        (role.to_string(), figures)
    });
    all["roles"] = Value::Object(roles.collect());
    all
}

/// Returns the known cost of answers in dollars, or `None` if no price is known.
#[must_use]
pub fn cost_in_dollars(bills: &RoleBills) -> Option<f64> {
    bills.total().known_cost().map(Cost::to_dollars)
}

/// Renders the comparison of the tree with its control group; `None` for a run without one.
#[must_use]
pub fn control_json(facts: &Facts) -> Option<Value> {
    let setting = facts.control_policy()?.to_string();
    let both = |tree: &SideResult, root: &SideResult| json!({ "tree": side_json(tree), "root_alone": side_json(root) });
    Some(match compare_with_control(facts)? {
        ControlComparison::NothingToCompare { control } => json!({
            "setting": setting,
            "ahead": null,
            "control_evals": control.evals,
            "shared_evals": null,
            "same_spend": null,
            "all": null,
        }),
        ControlComparison::Compared(compared) => json!({
            "setting": setting,
            "ahead": match compared.ahead {
                LeadingSide::Tree => "tree",
                LeadingSide::Neither => "neither",
                LeadingSide::Control => "control",
            },
            "control_evals": compared.control.evals,
            "shared_evals": compared.shared,
            "same_spend": both(&compared.tree, &compared.root),
            "all": both(&compared.whole_tree, &compared.whole_root),
        }),
    })
}

fn side_json(side: &SideResult) -> Value {
    json!({
        "evals": side.spent.evals,
        "best": side.best.map(|best| CodePlace::Candidate(best.eval)),
        "rank_score": side.rank_score(),
        "llm_usage": usage_json(&side.spent.bills),
        "cost_usd": cost_in_dollars(&side.spent.bills),
    })
}

fn bill_json(bill: &AgentBill) -> Value {
    json!({
        "calls": bill.calls,
        "calls_without_price": bill.calls_without_price,
        "input_tokens": bill.usage.input,
        "cached_tokens": bill.usage.cached,
        "output_tokens": bill.usage.output,
        "seconds": bill.answer_time().as_secs_f64(),
    })
}
