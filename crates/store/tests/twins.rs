//! Runs whose candidates have the same git tree. The manifest is the same but for its `history`,
//! whatever the number of workers, and is read back exactly.

#![cfg(test)]

use serde_json::Value;
use std::num::NonZeroU32;
use tempfile::TempDir;
use treebeam_core::event::Event;
use treebeam_core::facts::Stage;
use treebeam_core::policy::{FixedSettings, RunLimits};
use treebeam_core::state::State;
use treebeam_run::drive_run;
use treebeam_run::port::{CheckpointKind, Journal as _};
use treebeam_store::{RunStore, open_to_read};
use treebeam_testkit::journal::MemoryJournal;
use treebeam_testkit::memory::MemoryWorld;

fn number(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).expect("not zero")
}

/// Returns the manifest of a run with this sweep order and these workers, and its state.
fn written(order: u64, workers: u32) -> (Value, State) {
    let meaning = FixedSettings {
        ideas_per_node: number(6),
        beam_width: number(3),
        sweep_config_limit: Some(number(4)),
        ..FixedSettings::default()
    };
    let reach =
        RunLimits { max_depth: 3, max_parallel_evals: number(workers), ..RunLimits::default() };
    let mut journal = MemoryJournal::begun(meaning, reach);
    let world = MemoryWorld::new(3, order).with_same_code();
    let end =
        drive_run(journal.state(), world.ports(), &mut journal, &mut |_, _| {}).expect("a run");
    let folder = TempDir::new().expect("a folder");
    let Some((Event::RunStarted(started), rest)) = journal.events.split_first() else {
        panic!("no start")
    };
    let (mut store, _) = RunStore::create(folder.path(), started).expect("a run");
    store.append(rest).expect("a journal");
    store.write_checkpoint(&end, CheckpointKind::End).expect("a manifest");
    let run = store.run_dir().clone();
    drop(store);
    let text = std::fs::read(run.manifest_path()).expect("a manifest");
    let state = open_to_read(&run).expect("a run").state;
    assert_eq!(state, end, "the manifest is read back");
    (serde_json::from_slice(&text).expect("JSON"), state)
}

/// Returns all that must not depend on the order of sweeps and the number of workers.
fn settled(mut manifest: Value) -> Value {
    manifest["history"] = Value::Null;
    manifest["checksum"] = Value::Null;
    manifest["run_config"]["max_parallel_evals"] = Value::Null;
    manifest
}

#[test]
fn twins_at_1_2_and_8_at_once_are_the_same_manifest() {
    let (alone, state) = written(0, 1);
    let twin = |stage: &Stage| matches!(stage, Stage::Decided(measured, ..) if measured.work.same_code_as.is_some());
    assert!(state.evals.iter().any(|eval| twin(&eval.stage)));
    let (mut expected, mut replaced) = (settled(alone), 0);
    // The name of the run directory does not matter here.
    for order in 1..12 {
        for workers in [2, 8] {
            let (manifest, state) = written(order, workers);
            replaced += state.history.replaced_sweeps.len();
            let found = settled(manifest);
            for (key, value) in expected.as_object_mut().expect("an object") {
                assert_eq!(found[key.as_str()], *value, "{key}, order {order}, {workers} at once");
            }
        }
    }
    assert!(replaced > 0, "no twin was swept before the older one was known");
}
