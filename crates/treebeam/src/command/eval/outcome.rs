//! Shows the outcome of an eval run as table and JSON, scored again from the artifacts.

use super::super::OutputFormat;
use super::super::resume::{self, RunEnding};
use crate::failure::CommandFailure;
use crate::interrupt;
use crate::redo;
use crate::terminal;
use serde_json::{Value, json};
use treebeam_core::event::{EvalFailure, Leftover, LeftoverKind};
use treebeam_core::evidence::Artifact;
use treebeam_core::facts::{Eval, Facts, RemovalState, RootBaseline, Stage};
use treebeam_core::gate::GateVerdict;
use treebeam_core::id::CodePlace;
use treebeam_core::path;
use treebeam_run::figures;
use treebeam_run::port::FileStore as _;
use treebeam_score::compare::{ScoringDetails, score_candidate};
use treebeam_score::sweep_csv::Sweep;
use treebeam_store::{RunDir, RunFiles};
use treebeam_view::score::{ScoreReport, SweepSide, render_score};

pub(super) fn show_outcome(
    left: &RunEnding,
    run: &RunDir,
    output: OutputFormat,
) -> Result<(), CommandFailure> {
    let facts = left.facts();
    match output {
        OutputFormat::Json => terminal::print_json(&render_outcomes_json(left, run)?)?,
        OutputFormat::Text => {
            for eval in facts.evals.iter().filter(|eval| eval.is_current()) {
                show_eval(facts, &eval, run)?;
            }
        }
    }
    terminal::print_line(&format!("run {}: {}", facts.run, run.root().display()));
    match left {
        RunEnding::Interrupted(_) => {
            resume::note_running_sweeps(facts);
            terminal::print_line(&format!(
                "hint: `{}` goes on from here",
                interrupt::resume_text_for(&facts.run)
            ));
        }
        RunEnding::Ended(_) => {
            redo::report_resume_hint(facts, |other| interrupt::resume_text_with(&facts.run, other));
        }
    }
    Ok(())
}

/// Prints one eval to standard output, with the paths of its files.
fn show_eval(facts: &Facts, eval: &Eval, run: &RunDir) -> Result<(), CommandFailure> {
    let name = CodePlace::Candidate(eval.id);
    terminal::print_text(&format!("{name}: {}\n", eval.idea.title))?;
    match ComparedEval::load(facts, eval, run)? {
        Some(compared) => {
            let scoring = compared.scoring(facts);
            terminal::print_text(&render_score(&scoring, terminal::stdout_colour()))?;
        }
        None => terminal::print_text(&format!("{}\n", describe_failure(eval)))?,
    }
    let folder = run.file_path(&path::experiment_folder(eval.id));
    terminal::print_text(&format!("files: {}\n", folder.display()))?;
    if let Some(work) = eval.candidate() {
        let branch = Leftover { place: name, kind: LeftoverKind::Branch };
        let is_kept = facts.leftovers.get(&branch) == Some(&RemovalState::Kept);
        let branch = is_kept.then(|| format!(", `{}`", name.ref_name(&facts.run)));
        let commit = work.commit.short_name();
        terminal::print_text(&format!("commit: {commit}{}\n", branch.unwrap_or_default()))?;
    }
    terminal::print_text("\n")
}

fn describe_failure(eval: &Eval) -> String {
    match find_failure(eval) {
        Some(EvalFailure { stage, kind, message }) => {
            format!("failed at {stage}, {kind}: {message}")
        }
        None => "not tried to its end".to_owned(),
    }
}

const fn find_failure(eval: &Eval) -> Option<&EvalFailure> {
    match &eval.stage {
        Stage::Failed { failure, .. } => Some(failure),
        Stage::Queued
        | Stage::Implementing(_)
        | Stage::Implemented(_)
        | Stage::Sweeping(_)
        | Stage::Swept(..)
        | Stage::Scored(_)
        | Stage::Decided(..)
        | Stage::Unfinished { .. }
        | Stage::Superseded(..)
        | Stage::SetAside => None,
    }
}

/// A candidate with its comparison.
struct ComparedEval {
    parent: Sweep,
    candidate: Sweep,
    judgement: ScoringDetails,
    verdict: GateVerdict,
}

impl ComparedEval {
    /// Loads the comparison of an eval, if there is one.
    fn load(facts: &Facts, eval: &Eval, run: &RunDir) -> Result<Option<Self>, CommandFailure> {
        let Stage::Decided(measured, word, _) = &eval.stage else { return Ok(None) };
        let RootBaseline::Measured { results, rows, .. } = &facts.baseline else { return Ok(None) };
        let Some(parent) = facts.node(eval.parent).and_then(|node| facts.baseline_of(node)) else {
            return Ok(None);
        };
        let files = RunFiles::new(run.clone());
        let read = |artifact: &Artifact| -> Result<Sweep, CommandFailure> {
            let (name, settings) = (artifact.path.as_str(), &facts.settings);
            let reader = files.open_artifact(artifact)?;
            Ok(Sweep::read_csv(reader, name, settings.config_limit(), &settings.score)?)
        };
        let (parent, root, candidate) = (read(&parent)?, read(results)?, read(&measured.results)?);
        let judgement = score_candidate(&parent, &root, &candidate, &facts.settings, *rows)?;
        Ok(Some(Self { parent, candidate, judgement, verdict: word.to_verdict(measured) }))
    }

    fn scoring<'s>(&'s self, facts: &'s Facts) -> ScoreReport<'s> {
        let policy = &facts.settings.score;
        ScoreReport {
            baseline: SweepSide::from_sweep(&self.parent, policy),
            candidate: SweepSide::from_sweep(&self.candidate, policy),
            limit: facts.settings.config_limit(),
            policy,
            judgement: &self.judgement,
            verdict: &self.verdict,
        }
    }
}

fn render_outcomes_json(left: &RunEnding, run: &RunDir) -> Result<Value, CommandFailure> {
    let facts = left.facts();
    let evals = facts.evals.iter().filter(|eval| eval.is_current());
    let evals: Vec<Value> = evals
        .map(|eval| render_eval_outcome(facts, &eval, run))
        .collect::<Result<_, CommandFailure>>()?;
    let interrupted = matches!(left, RunEnding::Interrupted(_));
    Ok(json!({
        "schema": "treebeam.eval/1",
        "run_id": facts.run,
        "run_dir": run.root(),
        "stop_reason": facts.stop_reason(),
        "interrupted": interrupted,
        "evals": evals,
    }))
}

fn render_eval_outcome(facts: &Facts, eval: &Eval, run: &RunDir) -> Result<Value, CommandFailure> {
    let compared = ComparedEval::load(facts, eval, run)?;
    let work = eval.candidate();
    let work = work.as_ref();
    let name = CodePlace::Candidate(eval.id);
    Ok(json!({
        "eval": name,
        "title": eval.idea.title,
        "idea_path": eval.idea.path,
        "attempt": eval.attempt,
        "experiment_dir": path::experiment_folder(eval.id),
        "commit": work.map(|work| &work.commit),
        "ref": work.map(|_| name.ref_name(&facts.run)),
        "approval": work.map(|work| work.approval),
        "files_changed": work.map(|work| work.files_changed),
        "llm_usage": figures::usage_json(&eval.total_spend()),
        "cost_usd": figures::cost_in_dollars(&eval.total_spend()),
        "error": find_failure(eval),
        "parent_relative": compared.as_ref().map(|it| figures::comparison_json(&it.judgement.vs_parent)),
        "root_relative": compared.as_ref().map(|it| figures::comparison_json(&it.judgement.vs_root)),
        "completeness": compared.as_ref().map(|it| &it.judgement.scored.completeness),
        "gate": compared.as_ref().map(|it| figures::verdict_json(&it.verdict)),
    }))
}
