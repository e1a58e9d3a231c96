//! Results that are not what they were when all processes of their sweep were gone.

#![cfg(test)]

use std::num::NonZeroU32;
use std::time::Duration;
use treebeam_core::event::{FailureKind, Subject};
use treebeam_core::facts::Stage;
use treebeam_core::id::{EvalId, Sha256};
use treebeam_core::policy::{Meaning, Reach};
use treebeam_run::port::{Executor, Job, JobEnd, JobKey, PortError, World};
use treebeam_run::{Halt, drive};
use treebeam_testkit::journal::MemoryJournal;
use treebeam_testkit::memory::MemoryWorld;

/// An executor that has seen other results of one subject.
struct OtherResults<'a> {
    world: &'a MemoryWorld,
    of: Subject,
}

impl Executor for OtherResults<'_> {
    fn submit(&self, job: &Job) -> Result<(), PortError> {
        self.world.submit(job)
    }
    fn adopt(&self, jobs: &[Job]) -> Result<Vec<JobKey>, PortError> {
        self.world.adopt(jobs)
    }
    fn wait(&self, patience: Duration) -> Result<Vec<JobEnd>, PortError> {
        let mut ends = self.world.wait(patience)?;
        for end in ends.iter_mut().filter(|end| end.key.subject == self.of) {
            end.results_sha256 = Some(Sha256::of(b"as they were"));
        }
        Ok(ends)
    }
}

#[test]
fn results_that_change_after_their_sweep_are_refused() {
    let first = Subject::Eval(EvalId::FIRST);
    for of in [first, Subject::Root] {
        let meaning = Meaning { sweep_config_limit: NonZeroU32::new(4), ..Meaning::default() };
        let reach = Reach { max_depth: 1, ..Reach::default() };
        let (world, mut journal) = (MemoryWorld::new(7, 7), MemoryJournal::begun(meaning, reach));
        let executor = OtherResults { world: &world, of };
        let ports = World { executor: &executor, ..world.ports() };
        let ended = drive(journal.state(), ports, &mut journal, &mut |_, _| {});
        let expect = "were changed after all processes of the sweep were gone";
        if of == Subject::Root {
            let Err(Halt::RootUnsound { why }) = ended else { panic!("{ended:?}") };
            assert!(why.contains(expect), "{why}");
            continue;
        }
        let end = ended.expect("a run");
        let eval = end.eval(EvalId::FIRST).expect("an eval");
        let Stage::Failed { failure, .. } = &eval.stage else { panic!("{:?}", eval.stage) };
        assert_eq!(failure.kind, FailureKind::Results);
        assert!(failure.message.contains(expect), "{}", failure.message);
    }
}
