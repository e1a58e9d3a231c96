//! A node or an eval as JSON. The names of fields are the manifest's where it has the same thing.

use serde_json::{Value, json};
use treebeam_core::evidence::{Comparison, Recommendation};
use treebeam_core::facts::{Eval, Expansion, Facts, Fate, Ideas, Node, Origin, Stage};
use treebeam_core::id::{NodeId, Place};
use treebeam_core::path;
use treebeam_core::rank;
use treebeam_run::figures;
use treebeam_view::Outcome;
use treebeam_view::outcome::reason;

pub(super) fn of(facts: &Facts, place: Place) -> Option<Value> {
    let (kind, mut document) = match place {
        Place::Node(id) => ("node", node(facts, facts.node(id)?)),
        Place::Candidate(id) => ("eval", eval(facts, &*facts.eval(id)?)),
    };
    document["schema"] = json!("treebeam.show/1");
    document["run_id"] = json!(facts.run);
    document["id"] = json!(place);
    document["kind"] = json!(kind);
    document["ref_name"] = json!(place.ref_name(&facts.run));
    document["worktree_path"] = json!(place.worktree());
    Some(document)
}

fn eval(facts: &Facts, eval: &Eval) -> Value {
    let work = eval.work();
    let work = work.as_ref();
    let scored = eval.measured().map(|measured| measured.scored);
    let scored = scored.as_ref();
    json!({
        "idea": idea(eval),
        "parent": Place::Node(eval.parent),
        "group": eval.group,
        "depth": eval.depth,
        "outcome": Outcome::of(eval).word(),
        "reason": reason(eval),
        "stage": stage(eval),
        "attempt": eval.attempt,
        "earlier_failures": eval.failures,
        "superseded_by": superseded_by(eval),
        "queued_at": eval.queued_at,
        "started_at": treebeam_view::show::started_at(eval),
        "finished_at": treebeam_view::show::ended_at(eval),
        "failure": failure(eval),
        "parent_relative": scored.map(|scored| comparison(&scored.vs_parent)),
        "root_relative": scored.map(|scored| comparison(&scored.vs_root)),
        "completeness": scored.map(|scored| scored.completeness),
        "gate": gate(eval),
        "rank_score": scored.and_then(|scored| rank::score(&scored.vs_root)),
        "place_in_beam": treebeam_view::show::place_in_beam(facts, eval),
        "promoted_to": promoted_to(eval),
        "commit": work.map(|work| &work.commit),
        "files_changed": work.map(|work| work.files_changed),
        "rounds": work.map(|work| work.rounds),
        "results": eval.results(),
        "same_code_as": work.and_then(|work| work.same_code_as).map(|twin| twin.to_string()),
        "llm_usage": figures::usage(&eval.spent()),
        "cost_usd": figures::cost(&eval.spent()),
        "eval_output_root": path::eval(eval.id),
        "experiment_dir": path::experiment(eval.id),
    })
}

fn idea(eval: &Eval) -> Value {
    json!({
        "id": eval.idea.id(),
        "title": eval.idea.title,
        "path": eval.idea.path,
        "sha256": eval.idea.sha256,
        "turn_id": eval.turn(),
        "added_by_user": eval.idea.turn.is_none(),
    })
}

const fn stage(eval: &Eval) -> &'static str {
    match eval.stage {
        Stage::Queued => "queued",
        Stage::Implementing(_) => "implementing",
        Stage::Implemented(_) => "implemented",
        Stage::Sweeping(_) => "sweeping",
        Stage::Swept(..) => "swept",
        Stage::Scored(_) => "scored",
        Stage::Decided(..) => "decided",
        Stage::Failed { .. } => "failed",
        Stage::Unfinished { .. } => "unfinished",
        Stage::Superseded(..) => "superseded",
        Stage::SetAside => "set_aside",
    }
}

fn failure(eval: &Eval) -> Value {
    let Stage::Failed { failure, .. } = &eval.stage else { return Value::Null };
    json!(failure)
}

fn superseded_by(eval: &Eval) -> Option<Place> {
    let Stage::Superseded(_, by) = eval.stage else { return None };
    Some(Place::Candidate(by))
}

fn comparison(comparison: &Comparison) -> Value {
    let Recommendation {
        should_explore,
        grade,
        score,
        positive_signals,
        negative_signals,
        metrics_used,
        reasons,
    } = &comparison.recommendation;
    let reasons: Vec<_> = reasons.iter().map(ToString::to_string).collect();
    json!({
        "score": score,
        "grade": grade,
        "should_explore": should_explore,
        "reasons": reasons,
        "positive_signals": positive_signals,
        "negative_signals": negative_signals,
        "metrics_used": metrics_used,
        "primary_delta": comparison.primary_delta,
        "paired": comparison.paired,
        "baseline_rows_used": comparison.baseline_rows_used,
        "candidate_rows_used": comparison.candidate_rows_used,
    })
}

fn gate(eval: &Eval) -> Value {
    eval.verdict().map_or(Value::Null, |verdict| figures::verdict(&verdict))
}

fn promoted_to(eval: &Eval) -> Option<Place> {
    let Stage::Decided(_, _, Fate::Promoted(node)) = eval.stage else { return None };
    Some(Place::Node(node))
}

fn node(facts: &Facts, node: &Node) -> Value {
    let (from, forked_at) = match node.origin {
        Origin::Root => (None, None),
        Origin::Promoted { from, forked_at, .. } => (Some(Place::Candidate(from)), Some(forked_at)),
    };
    let chain = facts.idea_chain(node.id);
    let told = node.conversation().into_iter().rfind(|known| known.turn.is_some());
    let expansions = node.expansions.iter().map(|expansion| expanded(facts, expansion));
    json!({
        "parent": node.parent().map(Place::Node),
        "promoted_from": from,
        "depth": node.depth,
        "commit": node.commit,
        "created_at": node.created_at,
        "idea_chain": chain.iter().map(|eval| link(eval)).collect::<Vec<_>>(),
        "baseline": facts.baseline_of(node),
        "expansions": expansions.collect::<Vec<_>>(),
        "llm_usage": figures::usage(&node.spent()),
        "cost_usd": figures::cost(&node.spent()),
        "node_ideas_dir": path::node_ideas(node.id),
        "conversation_id": format!("c{}", node.id),
        "forked_from_turn_id": forked_at,
        "latest_turn_id": (node.turns() > 0).then(|| node.latest_turn()),
        "forks": facts.forks(node.id).collect::<Vec<_>>(),
        "told_path": told.map(|known| known.prompt_path()),
    })
}

/// A node's conversation.
pub(super) fn conversation(facts: &Facts, id: NodeId) -> Option<Value> {
    let node = facts.node(id)?;
    let turns = node.conversation();
    let turns = turns.iter().map(|known| {
        json!({
            "turn_id": known.id,
            "key": known.key,
            "mode": known.turn.map(|turn| turn.way),
            "asked": known.turn.map(|turn| turn.asked),
            "prompt_path": known.turn.map(|_| known.prompt_path()),
            "prompt_sha256": known.turn.map(|turn| turn.prompt),
            "reply_path": known.reply_path(),
            "reply_sha256": known.turn.and_then(|turn| turn.reply),
            "continued_id": known.turn.and_then(|turn| turn.continued.as_ref()),
            "provider_id": known.turn.and_then(|turn| Some(&turn.continuation.as_ref()?.id)),
            "ideas": known.ideas(facts).map(|idea| idea.id().to_owned()).collect::<Vec<_>>(),
            "summary_path": known.summary().map(|(_, path)| path),
            "summary_until": known.summary().map(|(summary, _)| summary.until),
            "note": known.turn.and_then(|turn| turn.note.as_ref()),
            "at": known.expansion.started_at,
        })
    });
    Some(json!({
        "schema": "treebeam.show/1",
        "run_id": facts.run,
        "id": format!("c{id}"),
        "kind": "conversation",
        "node": Place::Node(id),
        "forks": facts.forks(id).collect::<Vec<_>>(),
        "turns": turns.collect::<Vec<_>>(),
    }))
}

/// One idea of a chain, and what it brought.
fn link(eval: &Eval) -> Value {
    let scored = eval.measured().map(|measured| measured.scored);
    let scored = scored.as_ref();
    json!({
        "eval": Place::Candidate(eval.id),
        "idea_id": eval.idea.id(),
        "title": eval.idea.title,
        "parent_relative": scored.map(|scored| comparison(&scored.vs_parent)),
        "root_relative": scored.map(|scored| comparison(&scored.vs_root)),
    })
}

fn expanded(facts: &Facts, expansion: &Expansion) -> Value {
    let tried = expansion.evals().filter_map(|id| facts.eval(*id)).map(|eval| {
        json!({
            "eval": Place::Candidate(eval.id),
            "title": eval.idea.title,
            "outcome": Outcome::of(&eval).word(),
            "reason": reason(&eval),
            "promoted_to": promoted_to(&eval),
        })
    });
    let (untried, repeats, failure) = match &expansion.ideas {
        Ideas::Asked => (0, 0, None),
        Ideas::Proposed { untried, repeats, .. } => (untried.len(), repeats.len(), None),
        Ideas::Failed { why, .. } => (0, 0, Some(why)),
    };
    json!({
        "depth": expansion.depth,
        "evals": tried.collect::<Vec<_>>(),
        "untried": untried,
        "repeats": repeats,
        "failure": failure,
    })
}
