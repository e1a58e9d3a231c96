//! Kills: of the runner, of the job's own process, between each of its steps on disk.

use crate::field::{Field, GOOD, counted, ends, key, process_of, said, sweep, until};
use crate::transition::Transitions;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use treebeam_core::measure::{CommandLine, MeasureSettings};
use treebeam_run::port::{Executor as _, JobExit};
use treebeam_testkit::fault::{Fault, Operation};
use treebeam_testkit::hostile;
use treebeam_testkit::program::{Signal, send, send_group};

/// Tells the test below that it is a runner, and in which run.
const RUNNER: &str = "TREEBEAM_TEST_RUNNER";
/// Sweep that waits for a file.
const WAITS: &str =
    r#"until [ -e "$GIT_CEILING_DIRECTORIES/go-$TREEBEAM_EVAL" ]; do sleep 0.05; done"#;

pub(crate) fn kill(pid: u32, signal: Signal) {
    assert!(send(pid, signal), "{signal:?} {pid}");
}

fn waiting() -> MeasureSettings {
    counted(&format!("{WAITS}; {GOOD}"))
}

impl Field {
    fn let_go(&self, eval: u32) {
        fs::write(self.run.root().join(format!("go-{eval:04}")), "").expect("a file");
    }

    /// Starts a process that submits these jobs and waits, and leads a group of its own.
    fn runner(&self, evals: std::ops::RangeInclusive<u32>) -> Child {
        for eval in evals.clone() {
            self.job(eval, 1);
        }
        let test = std::env::current_exe().expect("this test's own program");
        let mut runner = Command::new(test);
        runner.args(["--exact", "kills::a_runner", "--nocapture", "--test-threads=1"]);
        let told = format!("{} {} {}", self.repo.display(), evals.start(), evals.end());
        runner.env(RUNNER, told).process_group(0).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut runner = runner.spawn().expect("a runner");
        let mut said = BufReader::new(runner.stdout.take().expect("its output")).lines();
        assert!(said.any(|line| line.expect("a line").contains("submitted")));
        runner
    }
}

/// Does nothing, unless it is started by another test as a runner.
#[test]
fn a_runner() {
    let Some(told) = std::env::var(RUNNER).ok() else { return };
    let mut told = told.split(' ');
    let field = Field::at(Path::new(told.next().expect("a repository")));
    let executor = field.executor(waiting());
    let mut number = || told.next().and_then(|n| n.parse::<u32>().ok()).expect("a number");
    for eval in number()..=number() {
        executor.submit_job(&field.job(eval, 1)).expect("to submit");
    }
    println!("submitted");
    loop {
        executor.wait_for_jobs(Duration::from_secs(1)).expect("to wait");
    }
}

#[test]
fn jobs_outlive_their_runner_and_are_adopted() {
    let field = Field::new();
    let mut runner = field.runner(1..=6);
    (1..=6).for_each(|eval| field.await_begun(eval, 1));
    // All signals of a terminal to its foreground processes.
    for signal in [Signal::Hangup, Signal::Interrupt] {
        assert!(send_group(runner.id(), signal), "{signal:?}");
    }
    kill_hard(&mut runner);
    // Two have ended, two are gone, two still run.
    let process = |eval| process_of(&field.folder(key(eval, 1)));
    for eval in [1, 2] {
        field.let_go(eval);
    }
    for eval in [3, 4] {
        kill(process(eval).expect("a job"), Signal::Kill);
    }
    until(|| (1..=4).all(|eval| process(eval).is_none()));
    let next = field.executor(waiting());
    let jobs: Vec<_> = (1..=6).map(|eval| field.job(eval, 1)).collect();
    let known = next.adopt_jobs(&jobs).expect("to adopt");
    assert_eq!(known, [1, 2, 5, 6].map(|eval| key(eval, 1)));
    let marked = |eval| hostile::with_mark(&field.folder(key(eval, 1)));
    assert!(marked(3).is_empty() && marked(4).is_empty(), "orphans of what is gone are ended");
    let merged = ends(&next, 2);
    assert_eq!(merged.iter().map(|end| end.key).collect::<Vec<_>>(), [key(1, 1), key(2, 1)]);
    for eval in [3, 4] {
        next.submit_job(&field.job(eval, 2)).expect("to submit again");
    }
    (3..=6).for_each(|eval| field.let_go(eval));
    for end in ends(&next, 4) {
        assert_eq!(said(&end).0, None, "{:?}", said(&end));
    }
    assert_eq!([1, 2, 3, 4, 5, 6].map(|eval| field.begun(eval)), [1, 1, 2, 2, 1, 1]);
}

fn kill_hard(runner: &mut Child) {
    // An earlier signal may have ended it.
    drop(runner.kill());
    runner.wait().expect("its end");
}

#[test]
fn a_runner_killed_at_any_moment_leaves_jobs_that_are_adopted_or_run_again() {
    let field = Field::new();
    for round in 0..6_u32 {
        let (first, last) = (round * 4 + 1, round * 4 + 4);
        let mut runner = field.runner(first..=last);
        std::thread::sleep(Duration::from_millis(u64::from(round) * 15));
        kill_hard(&mut runner);
        let next = field.executor(waiting());
        let jobs: Vec<_> = (first..=last).map(|eval| field.job(eval, 1)).collect();
        let known = next.adopt_jobs(&jobs).expect("to adopt");
        for eval in first..=last {
            if !known.contains(&key(eval, 1)) {
                next.submit_job(&field.job(eval, 2)).expect("to submit again");
            }
            field.let_go(eval);
        }
        for end in ends(&next, 4) {
            assert_eq!(said(&end).0, None, "{:?}", said(&end));
        }
        // Each seen job has begun once, without a second one in parallel.
        for eval in (first..=last).filter(|eval| known.contains(&key(*eval, 1))) {
            assert_eq!(field.begun(eval), 1);
        }
    }
}

#[test]
fn a_job_that_dies_is_lost_and_takes_all_with_it() {
    let field = Field::new();
    let word = format!("lost-{}", field.site.repo.path().display());
    let parts = ["python3", "-c", hostile::PROCESS_TREE_SCRIPT, &word, "wait"].map(str::to_owned);
    let measure = MeasureSettings {
        sweep_command: Some(CommandLine::Program(parts.into())),
        ..MeasureSettings::default()
    };
    let executor = field.executor(measure);
    executor.submit_job(&field.job(1, 1)).expect("to submit");
    let folder = field.folder(key(1, 1));
    until(|| fs::read(folder.join("sweep.log")).is_ok_and(|log| log == b"ready\n"));
    assert_eq!(hostile::with_word(&word).len(), 4);
    kill(process_of(&folder).expect("a job"), Signal::Kill);
    let end = ends(&executor, 1).remove(0);
    assert!(matches!(end.exit, JobExit::Lost { .. }), "{end:?}");
    assert_eq!(hostile::survivors(&word), Vec::<u32>::new());
    // A job that kills its own process gains nothing.
    let executor = field.executor(sweep(&format!(
        "{GOOD}; rm {0}; mkfifo {0}; kill -9 $PPID; sleep 300",
        r#""$AGENTIC_OUTPUT_DIR/job.log""#
    )));
    executor.submit_job(&field.job(2, 1)).expect("to submit");
    assert!(said(&ends(&executor, 1)[0]).1.starts_with("lost"));
    assert!(hostile::with_mark(&field.folder(key(2, 1))).is_empty());
}

#[test]
fn killed_between_any_two_of_its_steps_a_job_is_merged_or_run_again() {
    let field = Field::new();
    let transitions = Transitions::ask(&field.site);
    assert!(transitions.names().contains("submission_written") && !transitions.events.is_empty());
    let results_csv = Some("out/r.csv".to_owned().try_into().expect("a path"));
    let good = format!("mkdir -p out; printf 'config_id\\n0\\n' > out/r.csv; {}", "true");
    let measure = MeasureSettings {
        results_csv,
        test_command: Some(CommandLine::Shell("echo a".to_owned())),
        ..counted(&good)
    };
    let perform = |eval: u32, plan: &str| -> Vec<Operation> {
        let spec = field.spec(measure.clone(), &field.job(eval, 1));
        let fault = Fault::plan(plan);
        let _ = field.site.call_with_fault(&fault, &["job", &spec.display().to_string()]);
        fault.operations()
    };
    let steps = perform(1, "");
    for step in &steps {
        drop(transitions.of(step));
    }
    let last = steps.iter().map(|step| step.number).max().expect("a step");
    assert!(last >= 5, "{steps:#?}");
    let (mut merged, mut again, mut eval) = (0, 0, 1);
    for number in 1..=last {
        for when in ["before", "amid", "after"] {
            eval += 1;
            let died = perform(eval, &format!("kill {when} {number}"));
            assert!(died.iter().any(Operation::killed), "{when} {number}: {died:?}");
            let next = field.executor(measure.clone());
            if next.adopt_jobs(&[field.job(eval, 1)]).expect("to adopt").is_empty() {
                again += 1;
                next.submit_job(&field.job(eval, 2)).expect("to submit again");
            } else {
                merged += 1;
                assert_eq!(field.begun(eval), 1);
            }
            let end = ends(&next, 1).remove(0);
            assert_eq!(said(&end).0, None, "{when} {number}: {:?}", said(&end));
        }
    }
    assert!(merged > 0 && again > 0, "{merged} merged, {again} again");
}
