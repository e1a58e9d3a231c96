//! The manifest reads back the same; older versions are upgraded, newer ones are refused.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod story;

use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use treebeam_core::event::{Event, PaidStep};
use treebeam_core::facts::Facts;
use treebeam_core::group::IdeaSource;
use treebeam_core::id::EvalId;
use treebeam_core::state::State;
use treebeam_run::port::{CheckpointKind, Journal as _};
use treebeam_store::manifest::{JournalMark, ManifestError, decode_manifest, encode_manifest};
use treebeam_store::{ForcePolicy, RunStore, open_to_read};

const MARK: JournalMark =
    JournalMark { seq: 9, epoch: 2, journal_starts_at: 1, journal_line_at: Some(77) };

fn written(facts: &Facts) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_manifest(facts, MARK, &mut bytes).unwrap();
    bytes
}

fn states() -> impl Iterator<Item = State> {
    let events = story::events();
    (1..=events.len()).map(move |end| State::from_events(&events[..end]).unwrap())
}

fn last() -> State {
    State::from_events(&story::events()).unwrap()
}

#[test]
fn every_state_of_a_run_survives_the_manifest() {
    for (seq, state) in states().enumerate() {
        let bytes = written(&state);
        let (facts, mark) = decode_manifest(&bytes).unwrap();
        assert_eq!(facts, *state, "after event {}", seq + 1);
        assert_eq!(mark, MARK);
        assert_eq!(State::from_facts(facts).unwrap(), state);
        assert_eq!(bytes, written(&state), "the same bytes for the same state");
    }
}

/// Returns the events of a run whose tree is compared with a control group.
fn controlled() -> Vec<Event> {
    let mut started = story::started();
    started.meaning.control = "best-of-n".parse().ok();
    started.reach.max_total_idea_evals = None;
    let told = story::events();
    let is_proposal = |event: &Event| matches!(event, Event::IdeasProposed(_));
    let first = told.iter().position(is_proposal).unwrap();
    let mut events = vec![Event::RunStarted(Box::new(started))];
    events.extend(told.iter().take(first + 1).skip(1).cloned());
    let Some(Event::IdeasProposed(proposed)) = events.last() else { panic!("no ideas") };
    let mut proposed = proposed.clone();
    let step = PaidStep::Propose(IdeaSource::Control);
    events.push(Event::StepStarted { step, attempt: 1, at: proposed.at });
    proposed.source = IdeaSource::Control;
    proposed.conversation.clear();
    proposed.queued.truncate(1);
    proposed.queued[0].eval = EvalId::new(4);
    let failed = Event::ProposalFailed {
        source: IdeaSource::Control,
        why: "none".to_owned(),
        turns: 1,
        bills: proposed.bills.clone(),
        conversation: Vec::new(),
        at: proposed.at,
    };
    assert_eq!(serde_json::to_value(&failed).unwrap()["node"], "control");
    events.push(Event::IdeasProposed(proposed));
    events
}

#[test]
fn a_control_group_survives_the_manifest() {
    let events = controlled();
    for end in 1..=events.len() {
        let state = State::from_events(&events[..end]).unwrap();
        let (facts, _) = decode_manifest(&written(&state)).unwrap();
        assert_eq!(facts, *state, "after event {end}");
        assert_eq!(State::from_facts(facts).unwrap(), state);
    }
    let [.., asked, proposed] = &events[..] else { panic!("no events") };
    let json = |event: &Event| serde_json::to_value(event).unwrap();
    assert_eq!(json(asked)["step"]["propose"], "control");
    assert_eq!(json(proposed)["node"], "control");
    assert_eq!(serde_json::from_value::<Event>(json(proposed)).unwrap(), *proposed);
    let manifest: Value =
        serde_json::from_slice(&written(&State::from_events(&events).unwrap())).unwrap();
    assert_eq!(manifest["evaluations"]["0004"]["group"], "control");
    assert_eq!(manifest["evaluations"]["0003"]["group"], Value::Null);
    assert_eq!(manifest["control"]["expansions"][0]["eval_ids"][0], "0004");
}

/// Derived facts are recomputed from others; all other facts are kept exactly.
#[test]
fn what_another_treebeam_said_stays_as_it_was() {
    let mut events = story::events();
    for event in &mut events {
        if let Event::DepthClosed { verdicts, .. } = event {
            for (_, verdict) in verdicts {
                verdict.checks[0].figures = "in so many words".to_owned();
            }
        } else if let Event::IdeasProposed(proposed) = event {
            for file in &mut proposed.context.idea_files {
                file.path = "node_ideas/0000/gone.md".parse().unwrap();
            }
        }
    }
    let state = State::from_events(&events).unwrap();
    let text = String::from_utf8(written(&state)).unwrap();
    assert!(text.contains("in so many words") && text.contains("node_ideas/0000/gone.md"));
    assert_eq!(decode_manifest(text.as_bytes()).unwrap().0, *state);
}

#[test]
fn the_whole_manifest() {
    let text = String::from_utf8(written(&last())).unwrap();
    let started = story::started();
    assert!(text.contains(started.run.as_str()));
    serde_json::from_str::<Value>(&text).unwrap();
    insta::assert_snapshot!("manifest", text);
}

#[test]
fn every_kind_of_event_has_its_json_pinned() {
    let mut seen = BTreeSet::new();
    for event in story::events() {
        let kind = event.kind();
        let json = serde_json::to_string_pretty(&event).unwrap();
        assert_eq!(serde_json::from_str::<Event>(&json).unwrap(), event);
        assert!(json.contains(&format!("\"type\": \"{kind}\"")), "{json}");
        if seen.insert(kind) {
            insta::assert_snapshot!(format!("event_{kind}"), json);
        }
    }
    let all = Event::KINDS.iter().copied().collect();
    assert_eq!(seen, all, "each kind occurs in the story");
}

/// Converts a manifest to version 1.
fn as_version_1(facts: &Facts) -> Value {
    let mut old: Value = serde_json::from_slice(&written(facts)).unwrap();
    let fields = old.as_object_mut().unwrap();
    for gone in ["conversations", "conversation_config", "history", "checksum"] {
        fields.remove(gone);
    }
    fields["manifest_version"] = 1.into();
    fields.insert("journal_seq".to_owned(), MARK.seq.into());
    for node in fields["nodes"].as_object_mut().unwrap().values_mut() {
        let node = node.as_object_mut().unwrap();
        for gone in [
            "conversation_id",
            "expansion_seed_turn_id",
            "fork_from_turn_id",
            "latest_conversation_turn_id",
        ] {
            node.remove(gone);
        }
    }
    for eval in fields["evaluations"].as_object_mut().unwrap().values_mut() {
        let eval = eval.as_object_mut().unwrap();
        for gone in ["idea_turn", "rounds", "form", "has_effect", "idea_generation_turn_id"] {
            eval.remove(gone);
        }
    }
    old
}

#[test]
fn version_1_is_upgraded() {
    let mut events = story::events();
    // Version 1 had no repeated work.
    let again = events.iter().position(|event| matches!(event, Event::SentBack(_)));
    events.truncate(again.unwrap());
    let again = events.iter().rposition(|event| matches!(event, Event::SettingsChanged { .. }));
    events.truncate(again.unwrap());
    let state = State::from_events(&events).unwrap();
    let (facts, mark) = decode_manifest(as_version_1(&state).to_string().as_bytes()).unwrap();
    assert_eq!(mark, JournalMark { epoch: 0, journal_line_at: None, ..MARK });
    let upgraded = State::from_facts(facts).unwrap();
    assert_eq!(upgraded.nodes, state.nodes, "forks are derived");
    assert_eq!(upgraded.phase, state.phase);
    assert_eq!(upgraded.evals.len(), state.evals.len());
    assert_eq!(upgraded.eval(EvalId::FIRST).unwrap().candidate().map(|work| work.rounds), Some(1));
    assert_eq!(upgraded.history.submissions.len(), 3, "root and what got results");
    let (again, _) = decode_manifest(&written(&upgraded)).unwrap();
    assert_eq!(again, *upgraded, "and is written in the new form");
}

#[test]
fn a_run_with_a_manifest_of_version_1_goes_on() {
    let root = tempfile::TempDir::new().unwrap();
    let events = story::events();
    let (mut store, _) = RunStore::create(root.path(), &story::started()).unwrap();
    store.append(&events[1..]).unwrap();
    let run = store.run_dir().clone();
    drop(store);
    let mut old = as_version_1(&State::from_events(&events[..30]).unwrap());
    old["journal_seq"] = 30.into();
    fs::write(run.manifest_path(), old.to_string()).unwrap();
    let (mut store, state, notes) = RunStore::open_to_run(&run, ForcePolicy::No).unwrap();
    assert!(notes.is_empty() && state.phase == last().phase, "{notes:?}");
    assert_eq!(state.nodes, last().nodes);
    store.write_checkpoint(&state, CheckpointKind::End).unwrap();
    assert!(fs::read(run.manifest_path()).unwrap().starts_with(b"{\n\"manifest_version\":2,\n"));
    assert_eq!(fs::read(run.previous_manifest_path()).unwrap(), old.to_string().as_bytes());
    let opened = open_to_read(&run).unwrap();
    assert_eq!((opened.state, opened.stats.events_replayed), (state, 0));
}

#[test]
fn a_newer_version_is_refused() {
    let text = String::from_utf8(written(&last())).unwrap();
    let newer = text.replacen("\"manifest_version\":2", "\"manifest_version\":3", 1);
    assert_eq!(decode_manifest(newer.as_bytes()), Err(ManifestError::Newer(3)));
    assert_eq!(decode_manifest(b" {\"manifest_version\": 12}"), Err(ManifestError::Newer(12)));
}

/// Changes a manifest and fixes its checksum, so that the content itself is checked.
fn edited(from: &str, to: &str) -> Result<(Facts, JournalMark), ManifestError> {
    let text = String::from_utf8(written(&last())).unwrap();
    let body = &text[..text.rfind("\"checksum\"").unwrap()];
    let body = body.replacen(from, to, 1);
    assert!(!text.starts_with(&body), "{from} occurs");
    let sum = treebeam_core::id::Sha256::hash_bytes(body.as_bytes());
    decode_manifest(format!("{body}\"checksum\":\"{sum}\"}}\n").as_bytes())
}

#[test]
fn what_is_wrong_is_named() {
    let why = |from, to| edited(from, to).unwrap_err().to_string();
    let check = |from, to, expected: &str| {
        let why = why(from, to);
        assert!(why.starts_with(expected), "{why}");
    };
    check("\"attempt\":1", "\"attempt\":\"1\"", "evaluations.0001: invalid type: string");
    check(
        "\"candidate_commit\":\"0",
        "\"no\":\"0",
        "evaluations.0001: `candidate_commit` is missing",
    );
    check("\"created_at\"", "\"x\"", "run_config: missing field `created_at`");
    check("\"eval_id\":\"0002\"", "\"eval_id\":\"0009\"", "evaluations.0002: holds 0009");
    check("\"current_depth\":5", "\"current_depth\":-5", "state: invalid");
    check("\n\"root\":", "\n\"boot\":", "there is no `root`");
    check("\"e0001\":1", "\"n0001\":1", "history: `submissions` has \"n0001\"");
}

#[test]
fn what_is_derived_is_not_believed_and_what_is_new_does_not_disturb() {
    let truth = last();
    for (from, to) in [
        ("\"passed_gate\":true", "\"passed_gate\":false"),
        ("\"status\":\"completed\"", "\"status\":\"failed\""),
        ("\"next_eval_id\":\"0014\"", "\"next_eval_id\":\"0500\""),
        ("\n\"nodes\":", "\n\"later\":{\"a\":[1]},\n\"nodes\":"),
        ("\"attempt\":1", "\"attempt\":1,\"mood\":\"good\""),
    ] {
        assert_eq!(edited(from, to).unwrap().0, *truth, "{to}");
    }
}

#[test]
fn only_history_knows_of_interruptions() {
    let facts = |events: Vec<Event>| {
        let bytes = written(&State::from_events(&events).unwrap());
        let mut document: Value = serde_json::from_slice(&bytes).unwrap();
        let fields = document.as_object_mut().unwrap();
        fields.remove("history").unwrap();
        fields.remove("checksum").unwrap();
        document
    };
    let interrupted = story::events();
    let mut smooth = interrupted.clone();
    let again = |event: &Event| {
        matches!(
            event,
            Event::PromotionFailed { .. }
                | Event::SweepSubmitted { submission: 2.., .. }
                | Event::LockTakenOver { .. }
                | Event::JournalRestored { .. }
                | Event::Asked { .. }
                | Event::IdeaRefused { .. }
        )
    };
    smooth.retain(|event| !again(event));
    assert_eq!(smooth.len(), interrupted.len() - 12);
    assert_eq!(facts(interrupted), facts(smooth));
}
