//! Renders a node or an eval as JSON, with the manifest's field names where it has the same data.

use serde_json::{Value, json};
use treebeam_core::evidence::{Comparison, Recommendation};
use treebeam_core::facts::{
    CandidateFate, Eval, Expansion, ExpansionIdeas, Facts, Node, NodeOrigin, Stage,
};
use treebeam_core::id::{CodePlace, NodeId};
use treebeam_core::path;
use treebeam_core::rank;
use treebeam_run::figures;
use treebeam_view::EvalStatus;
use treebeam_view::outcome::eval_reason;

pub(super) fn render_place_json(facts: &Facts, place: CodePlace) -> Option<Value> {
    let (kind, mut document) = match place {
        CodePlace::Node(id) => ("node", render_node_json(facts, facts.node(id)?)),
        CodePlace::Candidate(id) => ("eval", render_eval_json(facts, &*facts.eval(id)?)),
    };
    document["schema"] = json!("treebeam.show/1");
    document["run_id"] = json!(facts.run);
    document["id"] = json!(place);
    document["kind"] = json!(kind);
    document["ref_name"] = json!(place.ref_name(&facts.run));
    document["worktree_path"] = json!(place.worktree_path());
    Some(document)
}

fn render_eval_json(facts: &Facts, eval: &Eval) -> Value {
    let work = eval.candidate();
    let work = work.as_ref();
    let scored = eval.scored_candidate().map(|measured| measured.scored);
    let scored = scored.as_ref();
    json!({
        "idea": render_idea_json(eval),
        "parent": CodePlace::Node(eval.parent),
        "group": eval.group,
        "depth": eval.depth,
        "outcome": EvalStatus::from_eval(eval).word(),
        "reason": eval_reason(eval),
        "stage": stage_word(eval),
        "attempt": eval.attempt,
        "earlier_failures": eval.failures,
        "superseded_by": superseding_eval(eval),
        "queued_at": eval.queued_at,
        "started_at": treebeam_view::show::started_at(eval),
        "finished_at": treebeam_view::show::ended_at(eval),
        "failure": render_failure_json(eval),
        "parent_relative": scored.map(|scored| render_comparison_json(&scored.vs_parent)),
        "root_relative": scored.map(|scored| render_comparison_json(&scored.vs_root)),
        "completeness": scored.map(|scored| scored.completeness),
        "gate": render_gate_json(eval),
        "rank_score": scored.and_then(|scored| rank::rank_score(&scored.vs_root)),
        "place_in_beam": treebeam_view::show::place_in_beam(facts, eval),
        "promoted_to": promoted_node(eval),
        "commit": work.map(|work| &work.commit),
        "files_changed": work.map(|work| work.files_changed),
        "rounds": work.map(|work| work.rounds),
        "results": eval.results(),
        "same_code_as": work.and_then(|work| work.same_code_as).map(|twin| twin.to_string()),
        "llm_usage": figures::usage_json(&eval.total_spend()),
        "cost_usd": figures::cost_in_dollars(&eval.total_spend()),
        "eval_output_root": path::eval_folder(eval.id),
        "experiment_dir": path::experiment_folder(eval.id),
    })
}

fn render_idea_json(eval: &Eval) -> Value {
    json!({
        "id": eval.idea.chain_id(),
        "title": eval.idea.title,
        "path": eval.idea.path,
        "sha256": eval.idea.sha256,
        "turn_id": eval.turn_id(),
        "added_by_user": eval.idea.turn.is_none(),
    })
}

const fn stage_word(eval: &Eval) -> &'static str {
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

fn render_failure_json(eval: &Eval) -> Value {
    let Stage::Failed { failure, .. } = &eval.stage else { return Value::Null };
    json!(failure)
}

fn superseding_eval(eval: &Eval) -> Option<CodePlace> {
    let Stage::Superseded(_, by) = eval.stage else { return None };
    Some(CodePlace::Candidate(by))
}

fn render_comparison_json(comparison: &Comparison) -> Value {
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

fn render_gate_json(eval: &Eval) -> Value {
    eval.gate_verdict().map_or(Value::Null, |verdict| figures::verdict_json(&verdict))
}

fn promoted_node(eval: &Eval) -> Option<CodePlace> {
    let Stage::Decided(_, _, CandidateFate::Promoted(node)) = eval.stage else { return None };
    Some(CodePlace::Node(node))
}

fn render_node_json(facts: &Facts, node: &Node) -> Value {
    let (from, forked_at) = match node.origin {
        NodeOrigin::Root => (None, None),
        NodeOrigin::Promoted { from, forked_at, .. } => {
            (Some(CodePlace::Candidate(from)), Some(forked_at))
        }
    };
    let chain = facts.idea_chain(node.id);
    let latest = node.conversation_turns().into_iter().rfind(|known| known.turn.is_some());
    let expansions =
        node.expansions.iter().map(|expansion| render_expansion_json(facts, expansion));
    json!({
        "parent": node.parent().map(CodePlace::Node),
        "promoted_from": from,
        "depth": node.depth,
        "commit": node.commit,
        "created_at": node.created_at,
        "idea_chain": chain.iter().map(|eval| render_chain_link_json(eval)).collect::<Vec<_>>(),
        "baseline": facts.baseline_of(node),
        "expansions": expansions.collect::<Vec<_>>(),
        "llm_usage": figures::usage_json(&node.total_spend()),
        "cost_usd": figures::cost_in_dollars(&node.total_spend()),
        "node_ideas_dir": path::node_ideas_folder(node.id),
        "conversation_id": format!("c{}", node.id),
        "forked_from_turn_id": forked_at,
        "latest_turn_id": (node.turn_count() > 0).then(|| node.latest_turn()),
        "forks": facts.fork_turns(node.id).collect::<Vec<_>>(),
        "told_path": latest.map(|known| known.prompt_path()),
    })
}

/// Renders the conversation of a node.
pub(super) fn render_conversation_json(facts: &Facts, id: NodeId) -> Option<Value> {
    let node = facts.node(id)?;
    let turns = node.conversation_turns();
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
            "ideas": known.ideas(facts).map(|idea| idea.chain_id().to_owned()).collect::<Vec<_>>(),
            "summary_path": known.summary_with_path().map(|(_, path)| path),
            "summary_until": known.summary_with_path().map(|(summary, _)| summary.until),
            "note": known.turn.and_then(|turn| turn.note.as_ref()),
            "at": known.expansion.started_at,
        })
    });
    Some(json!({
        "schema": "treebeam.show/1",
        "run_id": facts.run,
        "id": format!("c{id}"),
        "kind": "conversation",
        "node": CodePlace::Node(id),
        "forks": facts.fork_turns(id).collect::<Vec<_>>(),
        "turns": turns.collect::<Vec<_>>(),
    }))
}

/// Renders one idea of a chain, with its result.
fn render_chain_link_json(eval: &Eval) -> Value {
    let scored = eval.scored_candidate().map(|measured| measured.scored);
    let scored = scored.as_ref();
    json!({
        "eval": CodePlace::Candidate(eval.id),
        "idea_id": eval.idea.chain_id(),
        "title": eval.idea.title,
        "parent_relative": scored.map(|scored| render_comparison_json(&scored.vs_parent)),
        "root_relative": scored.map(|scored| render_comparison_json(&scored.vs_root)),
    })
}

fn render_expansion_json(facts: &Facts, expansion: &Expansion) -> Value {
    let tried = expansion.eval_ids().filter_map(|id| facts.eval(*id)).map(|eval| {
        json!({
            "eval": CodePlace::Candidate(eval.id),
            "title": eval.idea.title,
            "outcome": EvalStatus::from_eval(&eval).word(),
            "reason": eval_reason(&eval),
            "promoted_to": promoted_node(&eval),
        })
    });
    let (untried, repeats, failure) = match &expansion.ideas {
        ExpansionIdeas::Asked => (0, 0, None),
        ExpansionIdeas::Proposed { untried, repeats, .. } => (untried.len(), repeats.len(), None),
        ExpansionIdeas::Failed { why, .. } => (0, 0, Some(why)),
    };
    json!({
        "depth": expansion.depth,
        "evals": tried.collect::<Vec<_>>(),
        "untried": untried,
        "repeats": repeats,
        "failure": failure,
    })
}
