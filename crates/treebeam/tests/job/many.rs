//! Many parallel jobs, and many that resist termination.

use crate::field::{Field, GOOD, counted, ends, key, said};
use std::fs;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;
use treebeam_core::event::FailureKind;
use treebeam_core::measure::{CommandLine, MeasureSettings};
use treebeam_executor::LocalExecutor;
use treebeam_run::port::{Executor as _, SweepJob};
use treebeam_testkit::apart::is_campaign;
use treebeam_testkit::hostile;

#[test]
fn thirty_two_at_once() {
    let field = Field::new();
    // No job ends before all have begun.
    let all = r#"until [ "$(ls "$GIT_CEILING_DIRECTORIES" | grep -c begun-)" -ge 32 ]; do sleep 0.1; done"#;
    let executor = field.executor(counted(&format!("{all}; {GOOD}")));
    for eval in 1..=32 {
        executor.submit_job(&field.job(eval, 1)).expect("to submit");
    }
    for end in ends(&executor, 32) {
        assert_eq!(said(&end).0, None, "{:?}", said(&end));
    }
    assert!((1..=32).all(|eval| field.begun(eval) == 1));
}

#[test]
fn of_those_who_submit_the_same_job_one_does() {
    let field = Field::new();
    let wait = r#"until [ -e "$GIT_CEILING_DIRECTORIES/go" ]; do sleep 0.05; done"#;
    let measure = counted(&format!("{wait}; {GOOD}"));
    let executors: Vec<LocalExecutor> = (0..8).map(|_| field.executor(measure.clone())).collect();
    let (job, barrier) = (field.job(1, 1), Barrier::new(8));
    thread::scope(|scope| {
        for executor in &executors {
            scope.spawn(|| {
                barrier.wait();
                executor.submit_job(&job).expect("to submit");
                executor.submit_job(&job).expect("to submit twice");
            });
        }
    });
    field.await_begun(1, 1);
    fs::write(field.run.root().join("go"), "").expect("a file");
    for executor in &executors {
        assert_eq!(said(&ends(executor, 1)[0]).0, None);
    }
    let late = field.executor(measure);
    late.submit_job(&job).expect("to submit what has ended");
    assert!(said(&ends(&late, 1)[0]).1.starts_with("done"));
    assert_eq!(field.begun(1), 1);
}

#[test]
fn no_tree_survives_its_timeout() {
    let field = Field::new();
    let (batches, at_once) = (if is_campaign() { 5 } else { 2 }, 20);
    let word = format!("late-{}", field.site.repo.path().display());
    let parts =
        ["python3", "-c", hostile::PROCESS_TREE_SCRIPT, &word, "wait", "bare"].map(str::to_owned);
    let sweep_command = Some(CommandLine::Program(parts.into()));
    let measure = MeasureSettings { sweep_command, ..MeasureSettings::default() };
    let timeout = Some(Duration::from_secs(4));
    let executor = field.executor(measure);
    let mut ready = 0;
    for batch in 0..batches {
        let evals = batch * at_once + 1..=(batch + 1) * at_once;
        for eval in evals.clone() {
            executor.submit_job(&SweepJob { timeout, ..field.job(eval, 1) }).expect("to submit");
        }
        for end in ends(&executor, at_once as usize) {
            assert_eq!(said(&end).0, Some(FailureKind::Timeout), "{:?}", said(&end));
        }
        assert_eq!(hostile::survivors(&word), Vec::<u32>::new());
        let log = |eval| fs::read(field.folder(key(eval, 1)).join("sweep.log")).expect("a log");
        ready += evals.filter(|eval| log(*eval) == b"ready\n").count();
    }
    // A machine that is too slow to start them all has tested little.
    assert!(ready > 0, "no tree stood before its timeout");
}
