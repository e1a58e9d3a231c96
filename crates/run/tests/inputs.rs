//! Protected inputs that change at any moment: what was measured meanwhile fails, nothing more is submitted, and once they
//! are restored the run ends as if nothing had been.

#![cfg(test)]

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use treebeam_core::event::{Event, FailureKind, Subject};
use treebeam_core::facts::{Eval, Stage};
use treebeam_core::id::Sha256;
use treebeam_core::policy::{Meaning, Reach};
use treebeam_core::state::State;
use treebeam_run::port::{Inputs, PortError, World};
use treebeam_run::{Halt, drive};
use treebeam_testkit::journal::MemoryJournal;
use treebeam_testkit::memory::MemoryWorld;

/// One file, which is another one from this look on.
struct Data {
    looks: AtomicU32,
    other_from: u32,
}

impl Data {
    fn new(other_from: u32) -> Self {
        Self { looks: AtomicU32::new(0), other_from }
    }
}

impl Inputs for Data {
    fn fingerprint(&self) -> Result<Option<Sha256>, PortError> {
        Ok(Some(Sha256::of(b"prices")))
    }
    fn changed(&self, since: &Sha256) -> Result<Option<Vec<String>>, PortError> {
        assert_eq!(*since, Sha256::of(b"prices"));
        let look = self.looks.fetch_add(1, Ordering::SeqCst) + 1;
        Ok((look >= self.other_from).then(|| vec!["data/prices.csv".to_owned()]))
    }
}

fn begun() -> MemoryJournal {
    let number = |n| NonZeroU32::new(n).expect("not zero");
    let meaning = Meaning {
        ideas_per_node: number(4),
        sweep_config_limit: Some(number(4)),
        ..Meaning::default()
    };
    MemoryJournal::begun(meaning, Reach { max_depth: 1, ..Reach::default() })
}

fn go(journal: &mut MemoryJournal, world: &MemoryWorld, data: &Data) -> Result<State, Halt> {
    let ports = World { inputs: data, ..world.ports() };
    drive(journal.state(), ports, journal, &mut |_, _| {})
}

/// The tree, without what tells how often something was submitted.
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
    let jobs = expected.evals.iter().filter(|eval| eval.work().is_some()).count();
    let looks = untouched.looks.into_inner();
    assert_eq!(usize::try_from(looks), Ok(2 * jobs), "before each sweep, and after it");
    let expected = tree(expected);
    for look in 1..=looks {
        let (world, mut journal) = (MemoryWorld::new(7, 7), begun());
        let halted = go(&mut journal, &world, &Data::new(look));
        match halted {
            Err(Halt::InputsChanged { why, .. }) => {
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

/// A run of before has nothing on record to compare with.
#[test]
fn a_record_without_them_is_not_looked_at() {
    let (world, mut journal) = (MemoryWorld::new(7, 7), begun());
    journal.fuse = Some(4);
    drop(drive(journal.state(), world.ports(), &mut journal, &mut |_, _| {}));
    journal.fuse = None;
    assert_eq!(journal.state().submissions(Subject::Root), 1);
    let data = Data::new(1);
    assert!(go(&mut journal, &world, &data).is_ok());
    assert_eq!(data.looks.into_inner(), 0);
}
