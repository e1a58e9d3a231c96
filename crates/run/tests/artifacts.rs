//! Artifacts that a sweep changes on disk: they are restored, sweeps beside it fail, the run goes
//! on.

#![cfg(test)]

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use treebeam_core::event::{Event, FailureKind, SweepSubject};
use treebeam_core::facts::{Eval, Stage};
use treebeam_core::id::{EvalId, RunPath, Sha256};
use treebeam_core::policy::{FixedSettings, RunLimits};
use treebeam_core::state::State;
use treebeam_run::port::{Executor, FileStore as _, JobEnd, JobExit, JobKey, PortError, SweepJob};
use treebeam_run::{RunHalt, RunPorts, drive_run};
use treebeam_testkit::journal::MemoryJournal;
use treebeam_testkit::memory::MemoryWorld;

/// An executor one of whose sweeps overwrites an artifact, once, before it ends.
struct Overwriting<'a> {
    world: &'a MemoryWorld,
    by: EvalId,
    artifact: RunPath,
    done: AtomicBool,
}

impl<'a> Overwriting<'a> {
    fn new(world: &'a MemoryWorld, by: u32, artifact: &str) -> Self {
        let artifact = artifact.parse().expect("a path");
        Self { world, by: EvalId::new(by), artifact, done: AtomicBool::new(false) }
    }
}

impl Executor for Overwriting<'_> {
    fn submit_job(&self, job: &SweepJob) -> Result<(), PortError> {
        self.world.submit_job(job)
    }
    fn adopt_jobs(&self, jobs: &[SweepJob]) -> Result<Vec<JobKey>, PortError> {
        self.world.adopt_jobs(jobs)
    }
    fn wait_for_jobs(&self, patience: Duration) -> Result<Vec<JobEnd>, PortError> {
        let ends = self.world.wait_for_jobs(patience)?;
        let ended = ends.iter().any(|end| end.key.subject == SweepSubject::Eval(self.by));
        if ended && !self.done.swap(true, Ordering::SeqCst) {
            self.world.write_file(&self.artifact, b"config_id,status\n")?;
        }
        Ok(ends)
    }
}

/// Number of running sweeps before the first one ends.
const CROWD: usize = 4;
/// How often the executor is asked for ends, a millisecond apart, before it accepts fewer sweeps.
const MOST_WAITS: u32 = 500;

/// An executor in which no eval's sweep ends before several are running. The first one to end
/// overwrites an artifact, and no other one ends before that is on record.
struct CrowdedExecutor<'a> {
    world: &'a MemoryWorld,
    artifact: RunPath,
    crowd: Mutex<CrowdState>,
}

#[derive(Default)]
struct CrowdState {
    /// Evals whose sweeps were submitted before the first one ended.
    under_way: BTreeSet<u32>,
    /// The eval whose sweep overwrote the artifact.
    culprit: Option<u32>,
    waits: u32,
    /// True once the restored artifact is on record.
    is_noticed: bool,
    /// True if the first jobs of the others are lost.
    loses_suspects: bool,
}

impl CrowdState {
    fn is_held(&self) -> bool {
        match self.culprit {
            None => (1..CROWD).contains(&self.under_way.len()) && self.waits < MOST_WAITS,
            Some(_) => !self.is_noticed,
        }
    }
}

impl<'a> CrowdedExecutor<'a> {
    fn new(world: &'a MemoryWorld, artifact: &str) -> Self {
        let artifact = artifact.parse().expect("a path");
        Self { world, artifact, crowd: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, CrowdState> {
        self.crowd.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn drive(&self, journal: &mut MemoryJournal) -> State {
        let ports = RunPorts { executor: self, ..self.world.ports() };
        let is_notice = |event: &Event| matches!(event, Event::ArtifactsRestored(_));
        let ended = drive_run(journal.state(), ports, journal, &mut |_, events| {
            self.lock().is_noticed |= events.iter().any(is_notice);
        });
        ended.expect("a run")
    }
}

impl Executor for CrowdedExecutor<'_> {
    fn submit_job(&self, job: &SweepJob) -> Result<(), PortError> {
        let mut crowd = self.lock();
        if let (SweepSubject::Eval(eval), None) = (job.key.subject, crowd.culprit) {
            crowd.under_way.insert(eval.number());
            crowd.waits = 0;
        }
        drop(crowd);
        self.world.submit_job(job)
    }
    fn adopt_jobs(&self, jobs: &[SweepJob]) -> Result<Vec<JobKey>, PortError> {
        self.world.adopt_jobs(jobs)
    }
    fn wait_for_jobs(&self, patience: Duration) -> Result<Vec<JobEnd>, PortError> {
        if self.lock().is_held() {
            self.lock().waits += 1;
            std::thread::sleep(Duration::from_millis(1));
            return Ok(Vec::new());
        }
        let mut ends = self.world.wait_for_jobs(patience)?;
        for end in &mut ends {
            let SweepSubject::Eval(eval) = end.key.subject else { continue };
            let mut crowd = self.lock();
            if crowd.culprit.is_none() {
                crowd.culprit = Some(eval.number());
                self.world.write_file(&self.artifact, b"config_id,status\n")?;
            } else if crowd.loses_suspects
                && end.key.submission == 1
                && crowd.under_way.contains(&eval.number())
            {
                end.exit = JobExit::Lost { message: "it was killed".to_owned() };
            }
        }
        Ok(ends)
    }
}

fn begun(parallel: u32, eval_retries: u32) -> MemoryJournal {
    let number = |n| NonZeroU32::new(n).expect("not zero");
    let meaning = FixedSettings {
        ideas_per_node: number(4),
        sweep_config_limit: Some(number(4)),
        ..FixedSettings::default()
    };
    let max_parallel_evals = number(parallel);
    let reach =
        RunLimits { max_depth: 2, max_parallel_evals, eval_retries, ..RunLimits::default() };
    MemoryJournal::begun(meaning, reach)
}

fn go(journal: &mut MemoryJournal, executor: &Overwriting<'_>) -> Result<State, RunHalt> {
    let ports = RunPorts { executor, ..executor.world.ports() };
    drive_run(journal.state(), ports, journal, &mut |_, _| {})
}

fn is_suspect(eval: &Eval) -> bool {
    matches!(&eval.stage, Stage::Failed { failure, .. } if failure.kind == FailureKind::Artifacts)
}

fn restorations(journal: &MemoryJournal) -> Vec<(String, Vec<u32>)> {
    let restored = journal.events.iter().filter_map(|event| {
        if let Event::ArtifactsRestored(restored) = event { Some(restored) } else { None }
    });
    let told = restored.map(|it| {
        let names: Vec<_> = it.artifacts.iter().map(ToString::to_string).collect();
        (names.join(" "), it.suspects.iter().map(|id| id.number()).collect())
    });
    told.collect()
}

#[test]
fn a_changed_artifact_is_restored_and_the_sweep_that_ran_fails() {
    for artifact in ["artifacts/root.csv", "artifacts/e0001.csv"] {
        let (world, mut journal) = (MemoryWorld::new(7, 7), begun(1, 0));
        let before = go(&mut begun(1, 0), &Overwriting::new(&MemoryWorld::new(7, 7), 99, artifact));
        let before = before.expect("a run");
        let sound = before.eval(EvalId::new(1)).expect("an eval").into_owned();
        let state = go(&mut journal, &Overwriting::new(&world, 2, artifact)).expect("a run");
        assert_eq!(restorations(&journal), [(artifact.to_owned(), vec![2])]);
        let failed: Vec<u32> = state
            .evals
            .iter()
            .filter(|eval| is_suspect(eval))
            .map(|eval| eval.id.number())
            .collect();
        assert_eq!(failed, [2]);
        // A result that was measured before is unaffected.
        let after = state.eval(EvalId::new(1)).expect("an eval").into_owned();
        assert_eq!(
            after.scored_candidate().map(|it| it.scored),
            sound.scored_candidate().map(|it| it.scored)
        );
        let now = world.read_file(&artifact.parse().expect("a path"), usize::MAX).expect("a file");
        assert_ne!(Sha256::hash_bytes(&now), Sha256::hash_bytes(b"config_id,status\n"));
        assert!(state.history.suspects.is_empty());
    }
}

#[test]
fn every_sweep_that_was_under_way_is_suspect_and_tried_again_where_that_is_wanted() {
    let (world, mut journal) = (MemoryWorld::new(7, 7), begun(4, 1));
    let executor = CrowdedExecutor::new(&world, "artifacts/root.csv");
    let state = executor.drive(&mut journal);
    let all = restorations(&journal);
    let [(_, suspects)] = all.as_slice() else { panic!("{all:?}") };
    let under_way: Vec<u32> = executor.lock().under_way.iter().copied().collect();
    assert_eq!(*suspects, under_way);
    assert!(suspects.len() > 1, "{suspects:?}");
    let again = journal.events.iter().filter_map(|event| {
        if let Event::AttemptFailed { eval, failure, .. } = event {
            (failure.kind == FailureKind::Artifacts).then(|| eval.number())
        } else {
            None
        }
    });
    let mut again: Vec<u32> = again.collect();
    again.sort_unstable();
    let swept = |id: &u32| {
        // An eval whose job failed by itself is retried for that.
        let failed = |event: &Event| {
            matches!(event, Event::AttemptFailed { eval, failure, .. }
                if eval.number() == *id && failure.kind != FailureKind::Artifacts)
        };
        !journal.events.iter().any(failed)
    };
    let expected: Vec<u32> = suspects.iter().copied().filter(swept).collect();
    assert_eq!(again, expected);
    assert!(state.evals.iter().all(|eval| !is_suspect(&eval)));
}

/// Only the running sweep is suspect: an eval whose job is lost is swept afresh.
#[test]
fn a_suspect_whose_sweep_is_run_afresh_is_one_no_more() {
    let (world, mut journal) = (MemoryWorld::new(7, 7), begun(4, 0));
    let executor = CrowdedExecutor::new(&world, "artifacts/root.csv");
    executor.lock().loses_suspects = true;
    let state = executor.drive(&mut journal);
    let suspects: Vec<_> = restorations(&journal).into_iter().flat_map(|(_, ids)| ids).collect();
    assert!(suspects.len() > 1, "{suspects:?}");
    let culprit = executor.lock().culprit;
    let failed: Vec<u32> =
        state.evals.iter().filter(|it| is_suspect(it)).map(|it| it.id.number()).collect();
    assert_eq!(failed, culprit.into_iter().collect::<Vec<_>>());
    let others = suspects.into_iter().filter(|id| Some(*id) != culprit);
    let mut submissions =
        others.map(|id| state.submission_count(SweepSubject::Eval(EvalId::new(id))));
    assert!(submissions.all(|number| number == 2));
    assert!(state.history.suspects.is_empty());
}
