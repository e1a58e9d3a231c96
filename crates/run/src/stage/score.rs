//! Compares a candidate with its parent and with the root, and writes down the figures that the comparison rests on.

use crate::brief::ForScore;
use crate::drive::Halt;
use crate::figures;
use crate::port::{PortError, World};
use crate::stage::sweep::in_words;
use crate::summary::Summary;
use serde_json::Value;
use treebeam_core::bill::Bills;
use treebeam_core::event::{EvalStage, Failure, FailureKind};
use treebeam_core::evidence::Artifact;
use treebeam_core::path;
use treebeam_core::plan::Outcome;
use treebeam_core::score::{Judgement, judge_by};
use treebeam_core::sweep::Sweep;

pub(super) fn score(brief: &ForScore, world: World<'_>) -> Result<Outcome, Halt> {
    let (about, eval) = (&brief.about, brief.about.eval);
    let summary = Summary::open(about, world.files)?;
    match compare(brief, world)? {
        Ok(judgement) => {
            write(brief, &judgement, world)?;
            let same_code_as = brief.same_code_as;
            let summary = summary.scored(&judgement).same_code_as(same_code_as);
            summary.write(about, world.files)?;
            Ok(Outcome::Scored { eval, scored: Box::new(judgement.scored), same_code_as })
        }
        Err(message) => {
            let failure = Failure { stage: EvalStage::Score, kind: FailureKind::Results, message };
            summary.failed(&failure).write(about, world.files)?;
            Ok(Outcome::EvalFailed { eval, failure, bills: Bills::default() })
        }
    }
}

/// The comparison, or in words why the candidate's results cannot be compared.
fn compare(brief: &ForScore, world: World<'_>) -> Result<Result<Judgement, String>, PortError> {
    let all = [brief.parent.clone(), brief.root.clone(), brief.results.clone()];
    let changed = world.files.changed(&all)?;
    let read = |artifact: &Artifact| -> Result<Result<Sweep, String>, PortError> {
        let (name, meaning) = (artifact.path.as_str(), &brief.meaning);
        let reader = if changed.contains(artifact) {
            world.files.open_copy(artifact)?
        } else {
            world.files.open(artifact)?
        };
        in_words(Sweep::read(reader, name, meaning.limit(), &meaning.score))
    };
    let parent = read(&brief.parent)?;
    // An idea of the root has one baseline for both.
    let root = (brief.root != brief.parent).then(|| read(&brief.root)).transpose()?;
    let candidate = read(&brief.results)?;
    Ok(judged(brief, parent, root, candidate))
}

/// The comparison; without a `root` of its own the parent is the root.
fn judged(
    brief: &ForScore,
    parent: Result<Sweep, String>,
    root: Option<Result<Sweep, String>>,
    candidate: Result<Sweep, String>,
) -> Result<Judgement, String> {
    let (parent, root, candidate) = (parent?, root.transpose()?, candidate?);
    let root = root.as_ref().unwrap_or(&parent);
    let (rules, rows) = (brief.rules_version, brief.root_rows);
    judge_by(rules, [&parent, root], &candidate, &brief.meaning, rows)
        .map_err(|error| error.to_string())
}

fn write(brief: &ForScore, judgement: &Judgement, world: World<'_>) -> Result<(), PortError> {
    let folder = path::experiment(brief.about.eval);
    let put = |name: &str, value: &Value| {
        world.files.write(&folder.join(name), format!("{value:#}\n").as_bytes())
    };
    put("scoring_parent.json", &figures::details(&judgement.vs_parent))?;
    put(path::SCORING_ROOT, &figures::details(&judgement.vs_root))
}
