//! Compares a candidate with its parent and with the root, and writes the figures.

use crate::brief::ScoreBrief;
use crate::error::RunHalt;
use crate::figures;
use crate::port::PortError;
use crate::run_ports::RunPorts;
use crate::stage::sweep::split_sweep_error;
use crate::summary::EvalSummary;
use serde_json::Value;
use treebeam_core::bill::RoleBills;
use treebeam_core::event::{EvalFailure, EvalStage, FailureKind};
use treebeam_core::evidence::Artifact;
use treebeam_core::path;
use treebeam_core::plan::StepOutcome;
use treebeam_score::compare::{ScoringDetails, score_candidate_by};
use treebeam_score::sweep_csv::Sweep;

pub(super) fn score_candidate(
    brief: &ScoreBrief,
    world: RunPorts<'_>,
) -> Result<StepOutcome, RunHalt> {
    let (about, eval) = (&brief.about, brief.about.eval);
    let summary = EvalSummary::open_page(about, world.files)?;
    match compare_results(brief, world)? {
        Ok(judgement) => {
            write_scoring(brief, &judgement, world)?;
            let same_code_as = brief.same_code_as;
            let summary = summary.with_scoring(&judgement).with_original(same_code_as);
            summary.write(about, world.files)?;
            Ok(StepOutcome::Scored { eval, scored: Box::new(judgement.scored), same_code_as })
        }
        Err(message) => {
            let failure =
                EvalFailure { stage: EvalStage::Score, kind: FailureKind::Results, message };
            summary.with_failure(&failure).write(about, world.files)?;
            Ok(StepOutcome::EvalFailed { eval, failure, bills: RoleBills::default() })
        }
    }
}

/// Returns the comparison, or the reason why the candidate's results cannot be compared.
fn compare_results(
    brief: &ScoreBrief,
    world: RunPorts<'_>,
) -> Result<Result<ScoringDetails, String>, PortError> {
    let all = [brief.parent.clone(), brief.root.clone(), brief.results.clone()];
    let changed = world.files.find_changed_artifacts(&all)?;
    let read = |artifact: &Artifact| -> Result<Result<Sweep, String>, PortError> {
        let (name, settings) = (artifact.path.as_str(), &brief.settings);
        let reader = if changed.contains(artifact) {
            world.files.open_copy_of(artifact)?
        } else {
            world.files.open_artifact(artifact)?
        };
        split_sweep_error(Sweep::read_csv(reader, name, settings.config_limit(), &settings.score))
    };
    let parent = read(&brief.parent)?;
    // An idea of the root has one baseline for both.
    let root = (brief.root != brief.parent).then(|| read(&brief.root)).transpose()?;
    let candidate = read(&brief.results)?;
    Ok(judge_results(brief, parent, root, candidate))
}

/// Returns the comparison; without a `root` of its own the parent is the root.
fn judge_results(
    brief: &ScoreBrief,
    parent: Result<Sweep, String>,
    root: Option<Result<Sweep, String>>,
    candidate: Result<Sweep, String>,
) -> Result<ScoringDetails, String> {
    let (parent, root, candidate) = (parent?, root.transpose()?, candidate?);
    let root = root.as_ref().unwrap_or(&parent);
    let (rules, rows) = (brief.rules_version, brief.root_rows);
    score_candidate_by(rules, [&parent, root], &candidate, &brief.settings, rows)
        .map_err(|error| error.to_string())
}

fn write_scoring(
    brief: &ScoreBrief,
    judgement: &ScoringDetails,
    world: RunPorts<'_>,
) -> Result<(), PortError> {
    let folder = path::experiment_folder(brief.about.eval);
    let put = |name: &str, value: &Value| {
        world.files.write_file(&folder.join(name), format!("{value:#}\n").as_bytes())
    };
    put("scoring_parent.json", &figures::comparison_json(&judgement.vs_parent))?;
    put(path::SCORING_ROOT_FILE, &figures::comparison_json(&judgement.vs_root))
}
