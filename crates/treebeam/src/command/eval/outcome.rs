//! What came of the ideas of an eval, as a table and as a document: scored again from the artifacts, which are what counts.

use super::super::Output;
use super::super::resume::{self, Left};
use crate::again;
use crate::failure::Failure;
use crate::interrupt;
use crate::terminal;
use serde_json::{Value, json};
use treebeam_core::event::{Failure as EvalFailure, Leftover, LeftoverKind};
use treebeam_core::evidence::Artifact;
use treebeam_core::facts::{Baseline, Eval, Facts, Removal, Stage};
use treebeam_core::gate::Verdict;
use treebeam_core::id::Place;
use treebeam_core::path;
use treebeam_core::score::{Judgement, judge};
use treebeam_core::sweep::Sweep;
use treebeam_edge::store::{RunDir, RunFiles};
use treebeam_run::figures;
use treebeam_run::port::Files as _;
use treebeam_view::score::{Scoring, Side, score};

pub(super) fn tell(left: &Left, run: &RunDir, output: Output) -> Result<(), Failure> {
    let facts = left.facts();
    match output {
        Output::Json => terminal::json(&document(left, run)?)?,
        Output::Text => {
            for eval in facts.evals.iter().filter(|eval| eval.stands()) {
                show(facts, &eval, run)?;
            }
        }
    }
    terminal::say(&format!("run {}: {}", facts.run, run.root().display()));
    match left {
        Left::Interrupted(_) => {
            resume::tell_of_sweeps(facts);
            terminal::say(&format!(
                "hint: `{}` goes on from here",
                interrupt::is_about(&facts.run)
            ));
        }
        Left::Ended(_) => {
            again::tell_of_way_on(facts, |other| interrupt::way_on_with(&facts.run, other));
        }
    }
    Ok(())
}

/// One eval on standard output, with where everything of it is.
fn show(facts: &Facts, eval: &Eval, run: &RunDir) -> Result<(), Failure> {
    let name = Place::Candidate(eval.id);
    terminal::show(&format!("{name}: {}\n", eval.idea.title))?;
    match Compared::of(facts, eval, run)? {
        Some(compared) => {
            let scoring = compared.scoring(facts);
            terminal::show(&score(&scoring, terminal::colour()))?;
        }
        None => terminal::show(&format!("{}\n", in_words(eval)))?,
    }
    let folder = run.path(&path::experiment(eval.id));
    terminal::show(&format!("files: {}\n", folder.display()))?;
    if let Some(work) = eval.work() {
        let branch = Leftover { place: name, kind: LeftoverKind::Branch };
        let is_kept = facts.leftovers.get(&branch) == Some(&Removal::Kept);
        let branch = is_kept.then(|| format!(", `{}`", name.ref_name(&facts.run)));
        let commit = work.commit.short();
        terminal::show(&format!("commit: {commit}{}\n", branch.unwrap_or_default()))?;
    }
    terminal::show("\n")
}

fn in_words(eval: &Eval) -> String {
    match failure(eval) {
        Some(EvalFailure { stage, kind, message }) => {
            format!("failed at {stage}, {kind}: {message}")
        }
        None => "not tried to its end".to_owned(),
    }
}

const fn failure(eval: &Eval) -> Option<&EvalFailure> {
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

/// A candidate that was compared.
struct Compared {
    parent: Sweep,
    candidate: Sweep,
    judgement: Judgement,
    verdict: Verdict,
}

impl Compared {
    /// The comparison, if there is one.
    fn of(facts: &Facts, eval: &Eval, run: &RunDir) -> Result<Option<Self>, Failure> {
        let Stage::Decided(measured, word, _) = &eval.stage else { return Ok(None) };
        let Baseline::Measured { results, rows, .. } = &facts.baseline else { return Ok(None) };
        let Some(parent) = facts.node(eval.parent).and_then(|node| facts.baseline_of(node)) else {
            return Ok(None);
        };
        let files = RunFiles::new(run.clone());
        let read = |artifact: &Artifact| -> Result<Sweep, Failure> {
            let (name, meaning) = (artifact.path.as_str(), &facts.meaning);
            let reader = files.open(artifact)?;
            Ok(Sweep::read(reader, name, meaning.limit(), &meaning.score)?)
        };
        let (parent, root, candidate) = (read(&parent)?, read(results)?, read(&measured.results)?);
        let judgement = judge(&parent, &root, &candidate, &facts.meaning, *rows)?;
        Ok(Some(Self { parent, candidate, judgement, verdict: word.verdict(measured) }))
    }

    fn scoring<'s>(&'s self, facts: &'s Facts) -> Scoring<'s> {
        let policy = &facts.meaning.score;
        Scoring {
            baseline: Side::of(&self.parent, policy),
            candidate: Side::of(&self.candidate, policy),
            limit: facts.meaning.limit(),
            policy,
            judgement: &self.judgement,
            verdict: &self.verdict,
        }
    }
}

fn document(left: &Left, run: &RunDir) -> Result<Value, Failure> {
    let facts = left.facts();
    let evals = facts.evals.iter().filter(|eval| eval.stands());
    let evals: Vec<Value> =
        evals.map(|eval| of_eval(facts, &eval, run)).collect::<Result<_, Failure>>()?;
    let interrupted = matches!(left, Left::Interrupted(_));
    Ok(json!({
        "schema": "treebeam.eval/1",
        "run_id": facts.run,
        "run_dir": run.root(),
        "stop_reason": facts.stop_reason(),
        "interrupted": interrupted,
        "evals": evals,
    }))
}

fn of_eval(facts: &Facts, eval: &Eval, run: &RunDir) -> Result<Value, Failure> {
    let compared = Compared::of(facts, eval, run)?;
    let work = eval.work();
    let work = work.as_ref();
    let name = Place::Candidate(eval.id);
    Ok(json!({
        "eval": name,
        "title": eval.idea.title,
        "idea_path": eval.idea.path,
        "attempt": eval.attempt,
        "experiment_dir": path::experiment(eval.id),
        "commit": work.map(|work| &work.commit),
        "ref": work.map(|_| name.ref_name(&facts.run)),
        "approval": work.map(|work| work.approval),
        "files_changed": work.map(|work| work.files_changed),
        "llm_usage": figures::usage(&eval.spent()),
        "cost_usd": figures::cost(&eval.spent()),
        "error": failure(eval),
        "parent_relative": compared.as_ref().map(|it| figures::details(&it.judgement.vs_parent)),
        "root_relative": compared.as_ref().map(|it| figures::details(&it.judgement.vs_root)),
        "completeness": compared.as_ref().map(|it| &it.judgement.scored.completeness),
        "gate": compared.as_ref().map(|it| figures::verdict(&it.verdict)),
    }))
}
