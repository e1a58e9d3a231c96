//! Audit of a run's record: its references, its consistency, and whether its decisions follow from
//! its evidence. The caller checks files and refs.

mod digests;
mod twins;
pub use digests::{evals_without_digests, recorded_files};

use crate::event::{Idea, StopReason};
use crate::evidence::{Artifact, CandidateScore};
use crate::facts::{
    Candidate, CandidateFate, ClosedDepth, Eval, Expansion, ExpansionIdeas, Facts, Node,
    NodeOrigin, RunPhase, ScoredCandidate, Stage,
};
use crate::gate::{GateVerdict, judge_candidate};
use crate::group::EvalGroup;
use crate::id::{EvalId, RunPath, Sha256};
use crate::path;
use crate::policy;
use crate::protect::{PathChange, ProtectedPaths};
use crate::rank::{self, RankedCandidate};
use std::collections::BTreeMap;
use std::fmt;

/// Finding of an audit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditFinding {
    /// Description of the problem.
    pub what: String,
    /// Place of the problem: a file, a node, an eval.
    pub place: String,
    /// Severity of the finding.
    pub severity: FindingSeverity,
    /// Advice for the user.
    pub advice: String,
}

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingSeverity {
    /// A result of the run cannot be trusted.
    Error,
    /// Worth knowing; the results are valid.
    Warning,
}

impl fmt::Display for FindingSeverity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Error => "error",
            Self::Warning => "warning",
        })
    }
}

impl AuditFinding {
    /// Creates a finding that makes a result doubtful.
    #[must_use]
    pub fn new(
        what: impl Into<String>,
        place: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        let severity = FindingSeverity::Error;
        Self { what: what.into(), place: place.into(), severity, advice: advice.into() }
    }

    /// Turns the finding into a warning, which leaves the results valid.
    #[must_use]
    pub fn into_warning(self) -> Self {
        Self { severity: FindingSeverity::Warning, ..self }
    }
}

/// File that the record refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileReference {
    /// Path of the file.
    pub path: RunPath,
    /// Recorded digest of the file, if there is one.
    pub sha256: Option<Sha256>,
    /// Part of the record that refers to the file.
    pub by: String,
}

/// Returns every file that the record refers to.
#[must_use]
pub fn recorded_references(facts: &Facts) -> Vec<FileReference> {
    let root = facts.nodes.first().and_then(|root| facts.baseline_of(root));
    let root =
        root.into_iter().flat_map(|artifact| artifact_references(&artifact, "the root's baseline"));
    let nodes = facts.nodes.iter().flat_map(node_references);
    let control = facts
        .control
        .iter()
        .flat_map(|expansion| expansion_references(expansion, "the control group"));
    let evals = facts.evals.iter().flat_map(|eval| eval_references(&eval));
    root.chain(nodes).chain(control).chain(evals).chain(twins::replaced_references(facts)).collect()
}

/// Returns a copied file, and its source if that belongs to the run too.
fn artifact_references(artifact: &Artifact, by: &str) -> Vec<FileReference> {
    let sha256 = Some(artifact.sha256);
    let paths = [Some(artifact.path.clone()), artifact.source.parse().ok()];
    let paths = paths.into_iter().flatten();
    paths.map(|path| FileReference { path, sha256, by: by.to_owned() }).collect()
}

fn idea_reference(idea: &Idea, by: &str) -> FileReference {
    FileReference { path: idea.path.clone(), sha256: Some(idea.sha256), by: by.to_owned() }
}

fn node_references(node: &Node) -> Vec<FileReference> {
    let by = format!("node {}", node.id);
    let asked = node.expansions.iter().flat_map(|expansion| expansion_references(expansion, &by));
    asked.chain(conversation_references(node)).collect()
}

fn expansion_references(expansion: &Expansion, by: &str) -> Vec<FileReference> {
    let ExpansionIdeas::Proposed { untried, context, .. } = &expansion.ideas else {
        return Vec::new();
    };
    let (path, sha256) = (context.path.clone(), Some(context.sha256));
    let reference = FileReference { path, sha256, by: by.to_owned() };
    std::iter::once(reference).chain(untried.iter().map(|idea| idea_reference(idea, by))).collect()
}

/// Returns the files of a conversation: questions, replies, state, log and summary.
fn conversation_references(node: &Node) -> Vec<FileReference> {
    let by = format!("conversation c{}", node.id);
    let of = |path, sha256| FileReference { path, sha256, by: by.clone() };
    let mut found = Vec::new();
    for known in node.conversation_turns() {
        let Some(turn) = known.turn else { continue };
        found.push(of(known.prompt_path(), Some(turn.prompt)));
        found.extend(turn.reply.map(|sha256| of(known.reply_path(), Some(sha256))));
        found
            .extend(known.summary_with_path().map(|(summary, path)| of(path, Some(summary.reply))));
    }
    if !found.is_empty() {
        let kept = [path::conversation_state, path::conversation_log, path::conversation_summary];
        found.extend(kept.map(|path| of(path(node.id), None)));
    }
    found
}

fn eval_references(eval: &Eval) -> Vec<FileReference> {
    let by = format!("eval {}", eval.id);
    let folder = path::experiment_folder(eval.id);
    let in_folder =
        |name: &str, sha256| FileReference { path: folder.join(name), sha256, by: by.clone() };
    let mut found = vec![idea_reference(&eval.idea, &by)];
    let begun = !matches!(
        eval.stage,
        Stage::Queued | Stage::Implementing(_) | Stage::Unfinished { .. } | Stage::SetAside
    );
    if begun {
        found.push(in_folder("idea.md", Some(eval.idea.sha256)));
    }
    found.extend(eval.results().into_iter().flat_map(|results| artifact_references(&results, &by)));
    if eval.scored_candidate().is_some() {
        let names = ["summary.json", "scoring_parent.json", "scoring_root.json"];
        found.extend(names.map(|name| in_folder(name, None)));
    }
    found
}

const RESTORE_ADVICE: &str = "the journal has the events; restore the run directory from a copy";

/// Finds contradictions within the record.
#[must_use]
pub fn check_structure(facts: &Facts) -> Vec<AuditFinding> {
    let mut found = Vec::new();
    for node in &facts.nodes {
        found.extend(node_findings(facts, node));
    }
    for (depth, closed) in (0_u32..).zip(&facts.closed) {
        let holes = closed.expanded.iter().filter(|id| {
            let expanded = |node: &Node| node.expansions.iter().any(|e| e.depth.0 == depth);
            !facts.node(**id).is_some_and(expanded)
        });
        found.extend(holes.map(|id| {
            let what = format!("depth {depth} counts node {id} as expanded, the node does not");
            AuditFinding::new(what, format!("node {id}"), RESTORE_ADVICE)
        }));
    }
    found.extend(frontier_finding(facts));
    found.extend(facts.evals.iter().filter_map(|eval| group_finding(facts, &eval)));
    found.extend(facts.evals.iter().filter_map(|eval| twins::twin_finding(facts, &eval)));
    found
}

fn node_findings(facts: &Facts, node: &Node) -> Vec<AuditFinding> {
    let mut found = Vec::new();
    let place = format!("node {}", node.id);
    let outside = |artifact: &Artifact| !artifact.path.is_below(path::ARTIFACTS_FOLDER);
    if let Some(artifact) = facts.baseline_of(node).filter(outside) {
        let what = format!("its baseline `{}` lies outside `artifacts/`", artifact.path);
        found.push(AuditFinding::new(
            what,
            place.clone(),
            "a baseline must be a copy that nobody changes",
        ));
    }
    if let NodeOrigin::Promoted { parent, from, .. } = node.origin {
        let eval = facts.eval(from);
        let same = eval.is_some_and(|eval| {
            let promoted =
                matches!(eval.stage, Stage::Decided(_, _, CandidateFate::Promoted(id)) if id == node.id);
            let commit = eval.candidate().is_some_and(|work| work.commit == node.commit);
            promoted && commit && eval.parent == parent
        });
        if !same {
            let what = format!("it is not what eval {from} was promoted to");
            found.push(AuditFinding::new(what, place, RESTORE_ADVICE));
        }
    }
    found
}

/// Checks that an eval is in an expansion of its node or, of the control group, in one of those.
fn group_finding(facts: &Facts, eval: &Eval) -> Option<AuditFinding> {
    let came_of = |expansion: &Expansion| expansion.eval_ids().any(|id| *id == eval.id);
    let agrees = match eval.group {
        EvalGroup::Tree => facts.node(eval.parent)?.expansions.iter().any(came_of),
        EvalGroup::Control => facts.control.iter().any(came_of),
    };
    (!agrees).then(|| {
        let what = "nobody was asked for its idea, in the tree or for the control group";
        AuditFinding::new(what, format!("eval {}", eval.id), RESTORE_ADVICE)
    })
}

/// Checks that the frontier follows from the closed depths, or is empty if that ended the run.
fn frontier_finding(facts: &Facts) -> Option<AuditFinding> {
    let promoting = matches!(facts.phase, RunPhase::Promoting { .. });
    let none_left =
        facts.stop_reason() == Some(StopReason::EmptyFrontier) && facts.frontier.is_empty();
    let agrees = promoting || none_left || facts.frontier == facts.promoted_frontier();
    (!agrees).then(|| {
        let what = "the frontier is not what the closed depths lead to";
        AuditFinding::new(what, "state.frontier_node_ids", RESTORE_ADVICE)
    })
}

/// Checks that an eval's recorded figures and verdict equal those derived again from its artifacts.
#[must_use]
pub fn check_decision(facts: &Facts, eval: &Eval, again: &CandidateScore) -> Option<AuditFinding> {
    let measured = eval.scored_candidate()?;
    let place = format!("eval {}", eval.id);
    let advice = "do not trust this decision; the artifacts are what was measured";
    if measured.scored != *again {
        let what = "its recorded figures are not those of its artifacts";
        return Some(AuditFinding::new(what, place, advice));
    }
    let verdict = eval.gate_verdict()?;
    let derived = judge_candidate(
        again,
        measured.work.files_changed,
        measured.work.approval,
        &facts.settings,
    );
    (verdict != derived).then(|| {
        let what = format!(
            "its recorded verdict ({}) does not follow from its figures ({})",
            verdict.reason(),
            derived.reason()
        );
        AuditFinding::new(what, place, advice)
    })
}

/// Checks that the settings protect treebeam's own files: treebeam writes no others.
#[must_use]
pub fn check_protection(facts: &Facts) -> Option<AuditFinding> {
    let protect = &facts.settings.protect;
    let always = policy::with_own_globs(&[]);
    let lost: Vec<_> = always.iter().filter(|glob| !protect.contains(glob)).collect();
    let first = lost.first()?;
    let what = format!("the recorded `protect` lacks `{first}`, which is always protected");
    Some(AuditFinding::new(
        what,
        "the run's settings",
        "the settings were edited; do not trust this run",
    ))
}

/// Checks that a candidate's commit changes no protected path, by the recorded `protect` or always.
#[must_use]
pub fn check_protected_changes(
    facts: &Facts,
    eval: EvalId,
    changes: &[PathChange],
) -> Option<AuditFinding> {
    let globs = policy::with_own_globs(&facts.settings.protected_globs());
    let protected = ProtectedPaths::new(&globs).ok()?;
    let mut touched = changes.iter().filter(|change| protected.covers(&change.path));
    let path = &touched.next()?.path;
    let what = format!("its commit changes `{path}`, which is protected");
    Some(AuditFinding::new(
        what,
        format!("eval {eval}"),
        "do not trust this eval, or what came of it",
    ))
}

/// Checks that each closed depth promoted its best candidates.
#[must_use]
pub fn check_beams(facts: &Facts) -> Vec<AuditFinding> {
    let width = facts.max_promoted();
    let mut found = Vec::new();
    let mut kept = twins::KeptTrees::new(facts);
    for (depth, evals, closed) in closed_depths(facts) {
        let contenders =
            evals.filter_map(|id| facts.eval(id).and_then(|eval| ranked_candidate(&eval)));
        if rank::select_beam(contenders.filter(|one| kept.is_new_tree(one)), width) != closed.beam {
            let what = "the promoted evals are not the best that passed the gate";
            found.push(AuditFinding::new(what, format!("depth {depth}"), RESTORE_ADVICE));
        }
        kept.add_beam(facts, &closed.beam);
    }
    found
}

/// Finds decisions by older rules that today's rules would change: `today` has the new figures of
/// the evals that older rules scored.
#[must_use]
pub fn decisions_changed_by_rules(
    facts: &Facts,
    today: &BTreeMap<EvalId, CandidateScore>,
) -> Vec<AuditFinding> {
    let verdicts = today.iter().filter_map(|(id, scored)| {
        let eval = facts.eval(*id)?;
        let (recorded, latest) =
            (eval.gate_verdict()?, verdict_with_figures(facts, &eval, scored)?);
        (recorded.has_passed() != latest.has_passed()).then(|| {
            let what = format!(
                "today's rules would decide otherwise: {} (recorded: {})",
                latest.reason(),
                recorded.reason()
            );
            rules_warning(what, format!("eval {id}"))
        })
    });
    verdicts.chain(beams_changed_by_rules(facts, today)).collect()
}

fn beams_changed_by_rules(
    facts: &Facts,
    today: &BTreeMap<EvalId, CandidateScore>,
) -> Vec<AuditFinding> {
    let mut found = Vec::new();
    let mut kept = twins::KeptTrees::new(facts);
    for (depth, evals, closed) in closed_depths(facts) {
        let evals: Vec<_> = evals.filter_map(|id| facts.eval(id)).collect();
        let contenders = evals.iter().filter_map(|eval| match today.get(&eval.id) {
            None => ranked_candidate(eval),
            Some(scored) => {
                let passed = verdict_with_figures(facts, eval, scored)
                    .is_some_and(|latest| latest.has_passed());
                let measured = eval.scored_candidate().filter(|_| passed)?;
                let measured = ScoredCandidate { scored: scored.clone(), ..measured };
                Some(measured.into_ranked(eval.id))
            }
        });
        let contenders = contenders.filter(|one| kept.is_new_tree(one));
        let latest = rank::select_beam(contenders, facts.max_promoted());
        let is_scored_anew = evals.iter().any(|eval| today.contains_key(&eval.id));
        if is_scored_anew && latest != closed.beam {
            let (latest, recorded) = (format_eval_list(&latest), format_eval_list(&closed.beam));
            let what = format!("today's rules would promote {latest}; {recorded} promoted");
            found.push(rules_warning(what, format!("depth {depth}")));
        }
        kept.add_beam(facts, &closed.beam);
    }
    found
}

fn rules_warning(what: String, place: String) -> AuditFinding {
    let advice = "none is needed: a closed depth stands as the rules of its time decided it";
    AuditFinding::new(what, place, advice).into_warning()
}

fn format_eval_list(evals: &[EvalId]) -> String {
    match evals {
        [] => "none".to_owned(),
        [one] => format!("eval {one}"),
        all => {
            let all: Vec<String> = all.iter().map(ToString::to_string).collect();
            format!("evals {}", all.join(", "))
        }
    }
}

/// Returns the verdict that the gate would give a decided eval with these figures.
fn verdict_with_figures(
    facts: &Facts,
    eval: &Eval,
    scored: &CandidateScore,
) -> Option<GateVerdict> {
    let Stage::Decided(measured, ..) = &eval.stage else { return None };
    let Candidate { files_changed, approval, .. } = measured.work;
    Some(judge_candidate(scored, files_changed, approval, &facts.settings))
}

/// Returns each closed depth with the ids of its evals.
fn closed_depths(
    facts: &Facts,
) -> impl Iterator<Item = (u32, impl Iterator<Item = EvalId>, &ClosedDepth)> {
    let mut first = EvalId::FIRST;
    (0_u32..).zip(&facts.closed).map(move |(depth, closed)| {
        let evals = (first.number()..closed.evals_end.number()).map(EvalId::new);
        first = closed.evals_end;
        (depth, evals, closed)
    })
}

fn ranked_candidate(eval: &Eval) -> Option<RankedCandidate> {
    let Stage::Decided(measured, word, _) = &eval.stage else { return None };
    word.has_passed().then(|| (**measured).clone().into_ranked(eval.id))
}
