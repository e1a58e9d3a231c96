//! Whether a run's record holds together: what it refers to, what it says about itself, and whether its decisions follow
//! from its evidence. Looking at files and refs is left to the caller.

mod digests;
mod twins;
pub use digests::{evals_without_digests, recorded_files};

use crate::event::{Idea, Stop};
use crate::evidence::{Artifact, Scored};
use crate::facts::{
    ClosedDepth, Eval, Expansion, Facts, Fate, Ideas, Measured, Node, Origin, Phase, Stage, Work,
};
use crate::gate::{Verdict, gate};
use crate::group::Group;
use crate::id::{EvalId, RunPath, Sha256};
use crate::path;
use crate::policy;
use crate::protect::{Change, Protected};
use crate::rank::{self, Contender};
use std::collections::BTreeMap;
use std::fmt;

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What is wrong.
    pub what: String,
    /// Where: a file, a node, an eval.
    pub place: String,
    /// How serious it is.
    pub severity: Severity,
    /// What to do about it.
    pub advice: String,
}

/// How serious a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// A result of the run cannot be trusted.
    Error,
    /// Worth knowing; the results stand.
    Warning,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Error => "error",
            Self::Warning => "warning",
        })
    }
}

impl Finding {
    /// A finding that makes a result doubtful.
    #[must_use]
    pub fn new(
        what: impl Into<String>,
        place: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        let severity = Severity::Error;
        Self { what: what.into(), place: place.into(), severity, advice: advice.into() }
    }

    /// The same finding, where the results stand all the same.
    #[must_use]
    pub fn warning(self) -> Self {
        Self { severity: Severity::Warning, ..self }
    }
}

/// A file that the record refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The file.
    pub path: RunPath,
    /// What it must contain, where that is recorded.
    pub sha256: Option<Sha256>,
    /// What refers to it.
    pub by: String,
}

/// Every file that the record refers to.
#[must_use]
pub fn references(facts: &Facts) -> Vec<Reference> {
    let root = facts.nodes.first().and_then(|root| facts.baseline_of(root));
    let root = root.into_iter().flat_map(|artifact| of_artifact(&artifact, "the root's baseline"));
    let nodes = facts.nodes.iter().flat_map(of_node);
    let control =
        facts.control.iter().flat_map(|expansion| of_expansion(expansion, "the control group"));
    let evals = facts.evals.iter().flat_map(|eval| of_eval(&eval));
    root.chain(nodes).chain(control).chain(evals).chain(twins::replaced(facts)).collect()
}

/// A copy, and what it was copied from where that is the run's too.
fn of_artifact(artifact: &Artifact, by: &str) -> Vec<Reference> {
    let sha256 = Some(artifact.sha256);
    let paths = [Some(artifact.path.clone()), artifact.source.parse().ok()];
    let paths = paths.into_iter().flatten();
    paths.map(|path| Reference { path, sha256, by: by.to_owned() }).collect()
}

fn of_idea(idea: &Idea, by: &str) -> Reference {
    Reference { path: idea.path.clone(), sha256: Some(idea.sha256), by: by.to_owned() }
}

fn of_node(node: &Node) -> Vec<Reference> {
    let by = format!("node {}", node.id);
    let asked = node.expansions.iter().flat_map(|expansion| of_expansion(expansion, &by));
    asked.chain(of_conversation(node)).collect()
}

fn of_expansion(expansion: &Expansion, by: &str) -> Vec<Reference> {
    let Ideas::Proposed { untried, context, .. } = &expansion.ideas else { return Vec::new() };
    let (path, sha256) = (context.path.clone(), Some(context.sha256));
    let told = Reference { path, sha256, by: by.to_owned() };
    std::iter::once(told).chain(untried.iter().map(|idea| of_idea(idea, by))).collect()
}

/// Questions, answers, and the files that are kept of both.
fn of_conversation(node: &Node) -> Vec<Reference> {
    let by = format!("conversation c{}", node.id);
    let of = |path, sha256| Reference { path, sha256, by: by.clone() };
    let mut found = Vec::new();
    for known in node.conversation() {
        let Some(turn) = known.turn else { continue };
        found.push(of(known.prompt_path(), Some(turn.prompt)));
        found.extend(turn.reply.map(|sha256| of(known.reply_path(), Some(sha256))));
        found.extend(known.summary().map(|(summary, path)| of(path, Some(summary.reply))));
    }
    if !found.is_empty() {
        let kept = [path::conversation_state, path::conversation_log, path::conversation_summary];
        found.extend(kept.map(|path| of(path(node.id), None)));
    }
    found
}

fn of_eval(eval: &Eval) -> Vec<Reference> {
    let by = format!("eval {}", eval.id);
    let folder = path::experiment(eval.id);
    let in_folder =
        |name: &str, sha256| Reference { path: folder.join(name), sha256, by: by.clone() };
    let mut found = vec![of_idea(&eval.idea, &by)];
    let begun = !matches!(
        eval.stage,
        Stage::Queued | Stage::Implementing(_) | Stage::Unfinished { .. } | Stage::SetAside
    );
    if begun {
        found.push(in_folder("idea.md", Some(eval.idea.sha256)));
    }
    found.extend(eval.results().into_iter().flat_map(|results| of_artifact(&results, &by)));
    if eval.measured().is_some() {
        let names = ["summary.json", "scoring_parent.json", "scoring_root.json"];
        found.extend(names.map(|name| in_folder(name, None)));
    }
    found
}

const REPLAYABLE: &str = "the journal has the events; restore the run directory from a copy";

/// What the record says about itself that cannot be.
#[must_use]
pub fn structure(facts: &Facts) -> Vec<Finding> {
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
            Finding::new(what, format!("node {id}"), REPLAYABLE)
        }));
    }
    found.extend(frontier_findings(facts));
    found.extend(facts.evals.iter().filter_map(|eval| group_finding(facts, &eval)));
    found.extend(facts.evals.iter().filter_map(|eval| twins::finding(facts, &eval)));
    found
}

fn node_findings(facts: &Facts, node: &Node) -> Vec<Finding> {
    let mut found = Vec::new();
    let place = format!("node {}", node.id);
    let outside = |artifact: &Artifact| !artifact.path.is_below(path::ARTIFACTS);
    if let Some(artifact) = facts.baseline_of(node).filter(outside) {
        let what = format!("its baseline `{}` lies outside `artifacts/`", artifact.path);
        found.push(Finding::new(
            what,
            place.clone(),
            "a baseline must be a copy that nobody changes",
        ));
    }
    if let Origin::Promoted { parent, from, .. } = node.origin {
        let eval = facts.eval(from);
        let same = eval.is_some_and(|eval| {
            let promoted =
                matches!(eval.stage, Stage::Decided(_, _, Fate::Promoted(id)) if id == node.id);
            let commit = eval.work().is_some_and(|work| work.commit == node.commit);
            promoted && commit && eval.parent == parent
        });
        if !same {
            let what = format!("it is not what eval {from} was promoted to");
            found.push(Finding::new(what, place, REPLAYABLE));
        }
    }
    found
}

/// An eval of the control group came of what was asked for it, and one of the tree of what its node was asked.
fn group_finding(facts: &Facts, eval: &Eval) -> Option<Finding> {
    let came_of = |expansion: &Expansion| expansion.evals().any(|id| *id == eval.id);
    let agrees = match eval.group {
        Group::Tree => facts.node(eval.parent)?.expansions.iter().any(came_of),
        Group::Control => facts.control.iter().any(came_of),
    };
    (!agrees).then(|| {
        let what = "nobody was asked for its idea, in the tree or for the control group";
        Finding::new(what, format!("eval {}", eval.id), REPLAYABLE)
    })
}

/// The frontier must be what the closed depths lead to; a run that ended for want of one has none.
fn frontier_findings(facts: &Facts) -> Option<Finding> {
    let promoting = matches!(facts.phase, Phase::Promoting { .. });
    let none_left = facts.stop_reason() == Some(Stop::EmptyFrontier) && facts.frontier.is_empty();
    let agrees = promoting || none_left || facts.frontier == facts.standing_frontier();
    (!agrees).then(|| {
        let what = "the frontier is not what the closed depths lead to";
        Finding::new(what, "state.frontier_node_ids", REPLAYABLE)
    })
}

/// Whether the figures of an eval, computed again from the artifacts, and the decision that follows, are the recorded ones.
#[must_use]
pub fn decision(facts: &Facts, eval: &Eval, again: &Scored) -> Option<Finding> {
    let measured = eval.measured()?;
    let place = format!("eval {}", eval.id);
    let advice = "do not trust this decision; the artifacts are what was measured";
    if measured.scored != *again {
        let what = "its recorded figures are not those of its artifacts";
        return Some(Finding::new(what, place, advice));
    }
    let verdict = eval.verdict()?;
    let derived = gate(again, measured.work.files_changed, measured.work.approval, &facts.meaning);
    (verdict != derived).then(|| {
        let what = format!(
            "its recorded verdict ({}) does not follow from its figures ({})",
            verdict.reason(),
            derived.reason()
        );
        Finding::new(what, place, advice)
    })
}

/// Whether the settings protect what treebeam always protects. Settings that do not were not
/// written by treebeam.
#[must_use]
pub fn protection(facts: &Facts) -> Option<Finding> {
    let protect = &facts.meaning.protect;
    let always = policy::protect(&[]);
    let lost: Vec<_> = always.iter().filter(|glob| !protect.contains(glob)).collect();
    let first = lost.first()?;
    let what = format!("the recorded `protect` lacks `{first}`, which is always protected");
    Some(Finding::new(
        what,
        "the run's settings",
        "the settings were edited; do not trust this run",
    ))
}

/// Whether a candidate's commit changes only what it may, by the recorded `protect` and by what is
/// always protected.
#[must_use]
pub fn protected_changes(facts: &Facts, eval: EvalId, changes: &[Change]) -> Option<Finding> {
    let globs = policy::protect(&facts.meaning.protected());
    let protected = Protected::new(&globs).ok()?;
    let mut touched = changes.iter().filter(|change| protected.covers(&change.path));
    let path = &touched.next()?.path;
    let what = format!("its commit changes `{path}`, which is protected");
    Some(Finding::new(what, format!("eval {eval}"), "do not trust this eval, or what came of it"))
}

/// Whether each closed depth promoted its best.
#[must_use]
pub fn beams(facts: &Facts) -> Vec<Finding> {
    let width = facts.promoted_at_most();
    let mut found = Vec::new();
    let mut kept = twins::KeptTrees::new(facts);
    for (depth, evals, closed) in depths(facts) {
        let contenders = evals.filter_map(|id| facts.eval(id).and_then(|eval| contender(&eval)));
        if rank::beam(contenders.filter(|one| kept.has_room(one)), width) != closed.beam {
            let what = "the promoted evals are not the best that passed the gate";
            found.push(Finding::new(what, format!("depth {depth}"), REPLAYABLE));
        }
        kept.keep(facts, &closed.beam);
    }
    found
}

/// The decisions that today's rules would make otherwise, where older ones made them: `today` has the figures that today's rules
/// give the evals that were scored by older ones.
#[must_use]
pub fn changed_by_rules(facts: &Facts, today: &BTreeMap<EvalId, Scored>) -> Vec<Finding> {
    let verdicts = today.iter().filter_map(|(id, scored)| {
        let eval = facts.eval(*id)?;
        let (recorded, latest) = (eval.verdict()?, verdict_on(facts, &eval, scored)?);
        (recorded.passed() != latest.passed()).then(|| {
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

fn beams_changed_by_rules(facts: &Facts, today: &BTreeMap<EvalId, Scored>) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut kept = twins::KeptTrees::new(facts);
    for (depth, evals, closed) in depths(facts) {
        let evals: Vec<_> = evals.filter_map(|id| facts.eval(id)).collect();
        let contenders = evals.iter().filter_map(|eval| match today.get(&eval.id) {
            None => contender(eval),
            Some(scored) => {
                let passed = verdict_on(facts, eval, scored).is_some_and(|latest| latest.passed());
                let measured = eval.measured().filter(|_| passed)?;
                Some(Contender::new(eval.id, Measured { scored: scored.clone(), ..measured }))
            }
        });
        let contenders = contenders.filter(|one| kept.has_room(one));
        let latest = rank::beam(contenders, facts.promoted_at_most());
        let is_scored_anew = evals.iter().any(|eval| today.contains_key(&eval.id));
        if is_scored_anew && latest != closed.beam {
            let (latest, recorded) = (in_words(&latest), in_words(&closed.beam));
            let what = format!("today's rules would promote {latest}; {recorded} promoted");
            found.push(rules_warning(what, format!("depth {depth}")));
        }
        kept.keep(facts, &closed.beam);
    }
    found
}

fn rules_warning(what: String, place: String) -> Finding {
    let advice = "none is needed: a closed depth stands as the rules of its time decided it";
    Finding::new(what, place, advice).warning()
}

fn in_words(evals: &[EvalId]) -> String {
    match evals {
        [] => "none".to_owned(),
        [one] => format!("eval {one}"),
        all => {
            let all: Vec<String> = all.iter().map(ToString::to_string).collect();
            format!("evals {}", all.join(", "))
        }
    }
}

/// The gate's verdict on a decided eval, had it these figures.
fn verdict_on(facts: &Facts, eval: &Eval, scored: &Scored) -> Option<Verdict> {
    let Stage::Decided(measured, ..) = &eval.stage else { return None };
    let Work { files_changed, approval, .. } = measured.work;
    Some(gate(scored, files_changed, approval, &facts.meaning))
}

/// Each closed depth with the ids of its evals.
fn depths(
    facts: &Facts,
) -> impl Iterator<Item = (u32, impl Iterator<Item = EvalId>, &ClosedDepth)> {
    let mut first = EvalId::FIRST;
    (0_u32..).zip(&facts.closed).map(move |(depth, closed)| {
        let evals = (first.number()..closed.evals_end.number()).map(EvalId::new);
        first = closed.evals_end;
        (depth, evals, closed)
    })
}

fn contender(eval: &Eval) -> Option<Contender> {
    let Stage::Decided(measured, word, _) = &eval.stage else { return None };
    word.passed().then(|| Contender::new(eval.id, (**measured).clone()))
}
