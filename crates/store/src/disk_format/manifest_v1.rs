//! Upgrade of version-1 manifests when they are read; the next write uses the new form. Version 1
//! has no conversations, no checksum, only the sequence number of the block `history`, and
//! comparisons without form and effect.

use serde_json::{Map, Value, json};

/// Converts a version-1 document to version 2.
pub(super) fn upgrade_document(mut document: Value) -> Result<Value, String> {
    let seq = document.get("journal_seq").and_then(Value::as_u64);
    let seq = seq.ok_or("`journal_seq` is missing")?;
    let submissions = count_submissions(&document);
    if let Some(nodes) = section_mut(&mut document, "nodes") {
        upgrade_nodes(nodes);
    }
    if let Some(evals) = section_mut(&mut document, "evaluations") {
        evals.values_mut().for_each(upgrade_eval);
    }
    let fields = document.as_object_mut().ok_or("it is no object")?;
    fields.insert("manifest_version".to_owned(), json!(super::document::MANIFEST_VERSION));
    let history = json!({
        "seq": seq, "epoch": 0, "journal_starts_at": 1, "journal_line_at": null,
        "submissions": submissions, "settings_changes": 0, "promotion_failures": 0,
        "deferred_cleanups": 0, "cleanups": 0,
    });
    fields.insert("history".to_owned(), history);
    Ok(document)
}

fn section_mut<'a>(document: &'a mut Value, name: &str) -> Option<&'a mut Map<String, Value>> {
    document.get_mut(name)?.as_object_mut()
}

fn set_default(object: &mut Value, field: &str, value: Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.entry(field).or_insert(value);
    }
}

/// Upgrades the nodes: one turn gave all ideas, and a child forked after its parent's last turn.
fn upgrade_nodes(nodes: &mut Map<String, Value>) {
    let mut turns = Map::new();
    for (id, node) in nodes.iter_mut() {
        let mut count = 0_u64;
        for expansion in
            node.get_mut("expansions").and_then(Value::as_array_mut).into_iter().flatten()
        {
            let answered = expansion.get("status").is_some_and(|status| status != "asked");
            set_default(expansion, "turns", json!(u64::from(answered)));
            count += expansion.get("turns").and_then(Value::as_u64).unwrap_or_default();
        }
        turns.insert(id.clone(), json!(count));
    }
    for node in nodes.values_mut() {
        let parent = node.get("parent_node_id").and_then(Value::as_str).map(str::to_owned);
        if let Some(parent) = parent {
            let last = turns.get(&parent).and_then(Value::as_u64).unwrap_or_default();
            set_default(node, "fork_from_turn_id", json!(format!("c{parent}-t{last}")));
        }
    }
}

fn upgrade_eval(eval: &mut Value) {
    set_default(eval, "idea_turn", json!(1));
    if eval.get("candidate_commit").is_some_and(|commit| !commit.is_null()) {
        set_default(eval, "rounds", json!(1));
    }
    if eval.get("parent_relative").is_some_and(|comparison| !comparison.is_null()) {
        set_default(
            eval,
            "form",
            json!({"ragged_rows": 0, "duplicate_ids": 0, "changed_invariants": []}),
        );
        set_default(eval, "has_effect", json!(true));
    }
}

/// Counts one submission for each subject that was swept.
fn count_submissions(document: &Value) -> Map<String, Value> {
    let mut once = Map::new();
    let measured = document.get("root").and_then(|root| root.get("root_baseline_provenance"));
    if measured.is_some_and(|copied| !copied.is_null()) {
        once.insert("root".to_owned(), json!(1));
    }
    let evals = document.get("evaluations").and_then(Value::as_object);
    for (id, eval) in evals.into_iter().flatten() {
        let stage = eval.get("stage").and_then(Value::as_str).unwrap_or_default();
        if matches!(stage, "sweeping" | "swept" | "scored" | "decided") {
            once.insert(format!("e{id}"), json!(1));
        }
    }
    once
}
