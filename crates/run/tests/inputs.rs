//! Protected inputs that change at any moment of a run. Sweeps that ran meanwhile fail, nothing
//! more is submitted, and once the inputs are restored the run ends as if they had never changed.

#![cfg(test)]

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use treebeam_core::event::{Event, FailureKind, SweepSubject};
use treebeam_core::facts::{Eval, Stage};
use treebeam_core::id::{EvalId, RunPath, Sha256};
use treebeam_core::policy::{FixedSettings, RunLimits};
use treebeam_core::root_checks::{InputScope, RecordedInputs};
use treebeam_core::state::State;
use treebeam_run::port::{InputFiles, InputList, PortError};
use treebeam_run::{RunHalt, RunPorts, drive_run};
use treebeam_testkit::journal::MemoryJournal;
use treebeam_testkit::memory::MemoryWorld;

/// A single input file, whose content differs from this look on, until it is restored.
struct Data {
    looks: AtomicU32,
    other_from: u32,
    restored_at: u32,
    /// The scope of the recorded digest.
    scope: InputScope,
}

impl Data {
    fn new(other_from: u32) -> Self {
        Self { looks: AtomicU32::new(0), other_from, restored_at: u32::MAX, scope: InputScope::All }
    }

    /// Restored as soon as the change was seen.
    fn for_one_look(look: u32) -> Self {
        Self { restored_at: look + 1, ..Self::new(look) }
    }
}

impl InputFiles for Data {
    fn list_inputs(&self, root_job: &RunPath) -> Result<Option<InputList>, PortError> {
        assert_eq!(root_job.as_str(), "eval/root/s1");
        Ok(Some(InputList { bytes: b"prices".into(), sha256: Sha256::hash_bytes(b"prices") }))
    }
    fn find_changed_inputs(
        &self,
        since: &RecordedInputs,
    ) -> Result<Option<Vec<String>>, PortError> {
        let sha256 = Sha256::hash_bytes(b"prices");
        assert_eq!(*since, RecordedInputs { sha256, scope: self.scope });
        let look = self.looks.fetch_add(1, Ordering::SeqCst) + 1;
        let is_other = (self.other_from..self.restored_at).contains(&look);
        Ok(is_other.then(|| vec!["data/prices.csv".to_owned()]))
    }
}

fn begun() -> MemoryJournal {
    begun_with(1)
}

fn begun_with(max_parallel_evals: u32) -> MemoryJournal {
    let number = |n| NonZeroU32::new(n).expect("not zero");
    let meaning = FixedSettings {
        ideas_per_node: number(4),
        sweep_config_limit: Some(number(4)),
        ..FixedSettings::default()
    };
    let max_parallel_evals = number(max_parallel_evals);
    MemoryJournal::begun(
        meaning,
        RunLimits { max_depth: 1, max_parallel_evals, ..RunLimits::default() },
    )
}

fn go(journal: &mut MemoryJournal, world: &MemoryWorld, data: &Data) -> Result<State, RunHalt> {
    let ports = RunPorts { inputs: data, ..world.ports() };
    drive_run(journal.state(), ports, journal, &mut |_, _| {})
}

/// Renders the tree without the numbers of submissions.
fn tree(state: State) -> String {
    let facts = state.into_facts();
    format!("{:?} {:?}", facts.nodes, facts.evals)
}

fn is_protected(eval: &Eval) -> bool {
    matches!(&eval.stage, Stage::Failed { failure, .. }
        if failure.kind == FailureKind::Inputs && failure.message.contains("`data/prices.csv`"))
}

#[test]
fn nothing_is_measured_while_they_are_others() {
    let untouched = Data::new(u32::MAX);
    let expected = go(&mut begun(), &MemoryWorld::new(7, 7), &untouched).expect("a run");
    let jobs = expected.evals.iter().filter(|eval| eval.candidate().is_some()).count();
    let looks = untouched.looks.into_inner();
    assert_eq!(usize::try_from(looks), Ok(2 * jobs), "before each sweep, and after it");
    let expected = tree(expected);
    for look in 1..=looks {
        let (world, mut journal) = (MemoryWorld::new(7, 7), begun());
        let halted = go(&mut journal, &world, &Data::new(look));
        match halted {
            Err(RunHalt::InputsChanged { why, .. }) => {
                assert!(why.ends_with("was measured: `data/prices.csv`"), "{why}");
            }
            other => assert!(other.is_ok() && look == looks, "look {look}: {other:?}"),
        }
        let after = journal.events.len();
        let end = go(&mut journal, &world, &Data::new(u32::MAX)).expect("a run");
        let failed = end.evals.iter().filter(|eval| is_protected(eval)).count();
        if look % 2 == 0 {
            assert_eq!(failed, 1, "look {look}: the one that was measured");
        } else {
            assert_eq!((tree(end), failed), (expected.clone(), 0), "look {look}");
        }
        let swept = |event: &Event| matches!(event, Event::Swept { .. });
        let before = journal.events[..after].iter().filter(|event| swept(event)).count();
        assert!(before < usize::try_from(look.div_ceil(2)).expect("a number"), "look {look}");
    }
}

/// Returns the evals whose sweeps were submitted and have not ended.
fn under_way(events: &[Event]) -> BTreeSet<EvalId> {
    let mut found = BTreeSet::new();
    for event in events {
        if let Event::SweepSubmitted { subject: SweepSubject::Eval(eval), .. } = event {
            found.insert(*eval);
        } else if let Event::Swept { eval, .. } | Event::EvalFailed { eval, .. } = event {
            found.remove(eval);
        }
    }
    found
}

/// Running sweeps may have used or made the change, though all is restored when they end.
#[test]
fn whatever_was_under_way_when_it_was_noticed_is_swept_again() {
    let (mut suspects, mut halts, mut named) = (0, 0, 0);
    for look in 1..=8 {
        let (world, mut journal) = (MemoryWorld::new(7, 7), begun_with(4));
        let data = Data::for_one_look(look);
        if let Err(halt) = go(&mut journal, &world, &data) {
            assert!(matches!(halt, RunHalt::InputsChanged { .. }), "{halt}");
            halts += 1;
            let _ = go(&mut journal, &world, &data).expect("a run");
        }
        let is_notice = |event: &Event| matches!(event, Event::EvalFailed { failure, .. } if failure.kind == FailureKind::Inputs);
        let Some(noticed) = journal.events.iter().position(is_notice) else { continue };
        let (before, after) = journal.events.split_at(noticed + 1);
        let message = match before.last() {
            Some(Event::EvalFailed { failure, .. }) => failure.message.clone(),
            other => panic!("no notice: {other:?}"),
        };
        for suspect in under_way(before) {
            named += usize::from(message.contains(&format!("e{suspect}")));
            let place = |is: &dyn Fn(&Event) -> bool| after.iter().position(is);
            let submitted = |event: &Event| matches!(event, Event::SweepSubmitted { subject: SweepSubject::Eval(eval), submission: 2.. } if *eval == suspect);
            let swept =
                |event: &Event| matches!(event, Event::Swept { eval, .. } if *eval == suspect);
            let (submitted, swept) = (place(&submitted), place(&swept));
            assert!(
                submitted.is_some() && (swept.is_none() || submitted < swept),
                "look {look}: {suspect}"
            );
            suspects += 1;
        }
    }
    assert!(suspects > 0 && halts > 0, "{suspects} {halts}");
    assert!(named > 0, "the notice names whose sweeps are under way");
}

/// The recorded digest of an older run covers only the files that `protect` matches.
#[test]
fn an_older_record_is_compared_as_it_was_made() {
    let (world, mut journal) = (MemoryWorld::new(7, 7), begun());
    let _ = go(&mut journal, &world, &Data::new(u32::MAX)).expect("a run");
    let is_root = |event: &Event| matches!(event, Event::RootMeasured { .. });
    let root = journal.events.iter().position(is_root).expect("a root");
    journal.events.truncate(root + 1);
    if let Some(Event::RootMeasured { checks, .. }) = journal.events.last_mut() {
        *checks = None;
    }
    let data = Data { scope: InputScope::Protected, ..Data::new(u32::MAX) };
    let _ = go(&mut journal, &world, &data).expect("a run");
    assert!(data.looks.into_inner() > 0);
}

/// A run of an older version has no recorded digest to compare with.
#[test]
fn a_record_without_them_is_not_looked_at() {
    let (world, mut journal) = (MemoryWorld::new(7, 7), begun());
    journal.fuse = Some(4);
    drop(drive_run(journal.state(), world.ports(), &mut journal, &mut |_, _| {}));
    journal.fuse = None;
    assert_eq!(journal.state().submission_count(SweepSubject::Root), 1);
    let data = Data::new(1);
    assert!(go(&mut journal, &world, &data).is_ok());
    assert_eq!(data.looks.into_inner(), 0);
}
