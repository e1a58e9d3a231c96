//! Compares a candidate with its parent and with the root, and writes down the figures that the comparison rests on.

use crate::brief::ForScore;
use crate::drive::Halt;
use crate::port::{PortError, World};
use serde_json::{Value, json};
use treebeam_core::event::{EvalStage, Failure, FailureKind};
use treebeam_core::evidence::{Artifact, Recommendation};
use treebeam_core::path;
use treebeam_core::plan::Outcome;
use treebeam_core::score::{Details, Judgement, judge};
use treebeam_core::sweep::Sweep;

pub(super) fn score(brief: &ForScore, world: World<'_>) -> Result<Outcome, Halt> {
    let eval = brief.eval;
    match compare(brief, world)? {
        Ok(judgement) => {
            write(brief, &judgement, world)?;
            Ok(Outcome::Scored { eval, scored: Box::new(judgement.scored) })
        }
        Err(message) => {
            let failure = Failure { stage: EvalStage::Score, kind: FailureKind::Results, message };
            Ok(Outcome::EvalFailed { eval, failure })
        }
    }
}

/// The comparison, or in words why the candidate's results cannot be compared.
fn compare(brief: &ForScore, world: World<'_>) -> Result<Result<Judgement, String>, PortError> {
    let read = |artifact: &Artifact| -> Result<Result<Sweep, String>, PortError> {
        let (name, meaning) = (artifact.path.as_str(), &brief.meaning);
        let reader = world.files.open(artifact)?;
        let sweep = Sweep::read(reader, name, meaning.limit(), &meaning.score);
        Ok(sweep.map_err(|error| error.to_string()))
    };
    let sweeps = (read(&brief.parent)?, read(&brief.root)?, read(&brief.results)?);
    Ok(match sweeps {
        (Ok(parent), Ok(root), Ok(candidate)) => {
            judge(&parent, &root, &candidate, &brief.meaning, brief.root_rows)
                .map_err(|error| error.to_string())
        }
        (Err(why), ..) | (_, Err(why), _) | (.., Err(why)) => Err(why),
    })
}

fn write(brief: &ForScore, judgement: &Judgement, world: World<'_>) -> Result<(), PortError> {
    let folder = path::experiment(brief.eval);
    let put = |name: &str, value: &Value| {
        world.files.write(&folder.join(name), format!("{value:#}\n").as_bytes())
    };
    put("scoring_parent.json", &details(&judgement.vs_parent))?;
    put("scoring_root.json", &details(&judgement.vs_root))?;
    put("summary.json", &summary(brief, judgement))
}

fn summary(brief: &ForScore, judgement: &Judgement) -> Value {
    json!({
        "eval_id": brief.eval,
        "idea": brief.idea.title,
        "idea_path": brief.idea.path,
        "candidate_commit": brief.commit,
        "patch_applied": true,
        "coder_rounds": brief.rounds,
        "scoring_summary": {
            "recommendation": recommendation(&judgement.vs_parent),
            "primary_delta": judgement.scored.vs_parent.primary_delta,
        },
        "completeness": judgement.scored.completeness,
    })
}

fn details(details: &Details) -> Value {
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
        "recommendation": recommendation(details),
        "primary_delta": comparison.primary_delta,
        "paired": comparison.paired,
    })
}

fn recommendation(details: &Details) -> Value {
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
