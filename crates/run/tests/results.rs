//! Results that have changed since all processes of their sweep were gone.

#![cfg(test)]

use std::num::NonZeroU32;
use std::time::Duration;
use treebeam_core::event::{FailureKind, SweepSubject};
use treebeam_core::facts::Stage;
use treebeam_core::id::{EvalId, Sha256};
use treebeam_core::policy::{FixedSettings, RunLimits};
use treebeam_run::port::{Executor, JobEnd, JobKey, PortError, SweepJob};
use treebeam_run::{RunHalt, RunPorts, drive_run};
use treebeam_testkit::journal::MemoryJournal;
use treebeam_testkit::memory::MemoryWorld;

/// An executor that reports another digest for the results of one subject.
struct OtherResults<'a> {
    world: &'a MemoryWorld,
    of: SweepSubject,
}

impl Executor for OtherResults<'_> {
    fn submit_job(&self, job: &SweepJob) -> Result<(), PortError> {
        self.world.submit_job(job)
    }
    fn adopt_jobs(&self, jobs: &[SweepJob]) -> Result<Vec<JobKey>, PortError> {
        self.world.adopt_jobs(jobs)
    }
    fn wait_for_jobs(&self, patience: Duration) -> Result<Vec<JobEnd>, PortError> {
        let mut ends = self.world.wait_for_jobs(patience)?;
        for end in ends.iter_mut().filter(|end| end.key.subject == self.of) {
            end.results_sha256 = Some(Sha256::hash_bytes(b"as they were"));
        }
        Ok(ends)
    }
}

#[test]
fn results_that_change_after_their_sweep_are_refused() {
    let first = SweepSubject::Eval(EvalId::FIRST);
    for of in [first, SweepSubject::Root] {
        let meaning =
            FixedSettings { sweep_config_limit: NonZeroU32::new(4), ..FixedSettings::default() };
        let reach = RunLimits { max_depth: 1, ..RunLimits::default() };
        let (world, mut journal) = (MemoryWorld::new(7, 7), MemoryJournal::begun(meaning, reach));
        let executor = OtherResults { world: &world, of };
        let ports = RunPorts { executor: &executor, ..world.ports() };
        let ended = drive_run(journal.state(), ports, &mut journal, &mut |_, _| {});
        let expect = "were changed after all processes of the sweep were gone";
        if of == SweepSubject::Root {
            let Err(RunHalt::RootUnsound { why }) = ended else { panic!("{ended:?}") };
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
