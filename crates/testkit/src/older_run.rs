//! Rewrites a recorded run as one of a version before rules versions.
//!
//! Scores and verdicts follow the first rules, events lack the fields that came later, and there is
//! no manifest.

use crate::program::{SITE_RUN_ID, Site};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use treebeam_core::event::Event;
use treebeam_core::evidence::{Artifact, CandidateScore};
use treebeam_core::facts::{Facts, RootBaseline};
use treebeam_core::gate::{GateVerdict, judge_candidate};
use treebeam_core::id::{EvalId, Sha256};
use treebeam_core::rules_version::RulesVersion;
use treebeam_core::state::State;
use treebeam_score::compare::score_candidate_by;
use treebeam_score::sweep_csv::Sweep;

/// Fields that were introduced with the versions of the rules.
pub const LATER_FIELDS: [&str; 5] =
    ["rules_version", "primary_means", "missing_columns", "ragged_lines", "repeated_ids"];

/// Rewrites the record of a site's run as an older one. Digests of results are those of the files
/// as they are now.
pub fn write_as_older_run(site: &Site) {
    let text = site.text("journal.jsonl");
    let lines = text.lines().map(|line| serde_json::from_str(line).expect("a line in JSON"));
    let lines: Vec<Value> = lines.collect();
    let read = |line: &Value| -> Event {
        serde_json::from_value(line["event"].clone()).expect("an event")
    };
    let mut state: Option<State> = None;
    let mut figures = BTreeMap::new();
    let mut journal = String::new();
    for line in &lines {
        let mut event = read(line);
        match state.as_mut() {
            None => {
                let Event::RunStarted(started) = &event else { panic!("no start: {event:?}") };
                state = Some(State::from_run_started(started));
            }
            Some(state) => {
                make_older(&mut event, state, site, &mut figures);
                state.apply(&event).expect("an event that follows");
            }
        }
        let mut event = serde_json::to_value(&event).expect("an event in JSON");
        strip(&mut event);
        journal.push_str(&written(line, &event));
    }
    fs::write(site.path("journal.jsonl"), journal).expect("a journal");
    for name in ["manifest.json", "manifest.json.prev"] {
        drop(fs::remove_file(site.path(name)));
    }
    let name = format!("refs/treebeam/{SITE_RUN_ID}");
    site.repo.git(["update-ref", "-d", &name]).expect("a ref that is gone");
}

fn make_older(
    event: &mut Event,
    state: &State,
    site: &Site,
    figures: &mut BTreeMap<EvalId, CandidateScore>,
) {
    if let Event::Swept { results, .. } = event {
        results.sha256 = Sha256::hash_bytes(site.text(results.path.as_str()).as_bytes());
    }
    if let Event::Scored { eval, scored, .. } = event {
        **scored = by_first_rules(state, *eval, site);
        figures.insert(*eval, (**scored).clone());
    }
    if let Event::DepthClosed { verdicts, .. } = event {
        for (eval, verdict) in verdicts {
            *verdict = verdict_on(state, *eval, &figures[eval]);
        }
    }
}

fn by_first_rules(facts: &Facts, eval: EvalId, site: &Site) -> CandidateScore {
    let settings = &facts.settings;
    let sweep = |artifact: &Artifact| {
        let text = site.text(artifact.path.as_str());
        let name = artifact.path.as_str();
        Sweep::read_csv(text.as_bytes(), name, settings.config_limit(), &settings.score)
            .expect("a sweep")
    };
    let RootBaseline::Measured { results: root, rows, .. } = &facts.baseline else {
        panic!("a score without a baseline")
    };
    let eval = facts.eval(eval).expect("an eval");
    let parent = facts.node(eval.parent).and_then(|node| facts.baseline_of(node));
    let parent = sweep(&parent.expect("a parent's results"));
    let (root, candidate) = (sweep(root), sweep(&eval.results().expect("results")));
    let judged =
        score_candidate_by(RulesVersion::First, [&parent, &root], &candidate, settings, *rows);
    judged.expect("a comparison").scored
}

fn verdict_on(facts: &Facts, eval: EvalId, scored: &CandidateScore) -> GateVerdict {
    let work = facts.eval(eval).and_then(|eval| eval.candidate()).expect("a candidate");
    judge_candidate(scored, work.files_changed, work.approval, &facts.settings)
}

/// Removes the fields that an older version did not write.
fn strip(value: &mut Value) {
    if let Some(fields) = value.as_object_mut() {
        for name in LATER_FIELDS {
            fields.remove(name);
        }
        fields.values_mut().for_each(strip);
    }
    if let Some(values) = value.as_array_mut() {
        values.iter_mut().for_each(strip);
    }
}

/// Formats a journal line again, with this event.
fn written(line: &Value, event: &Value) -> String {
    let (seq, epoch, t) = (&line["seq"], &line["epoch"], &line["t"]);
    let body = format!("{{\"seq\":{seq},\"epoch\":{epoch},\"t\":{t},\"event\":{event}");
    let sum = Sha256::hash_bytes(body.as_bytes()).to_string();
    format!("{body},\"sum\":\"{}\"}}\n", sum.get(..16).unwrap_or_default())
}
