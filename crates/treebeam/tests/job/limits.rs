//! Time limits of adopted jobs: an adopting process may set less, more, or none.

use crate::field::{BINARY, Field, GOOD, ends, key, process_of, said, sweep, until};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use treebeam_core::event::FailureKind;
use treebeam_core::measure::{CommandLine, MeasureSettings};
use treebeam_run::port::{Executor as _, SweepJob};
use treebeam_testkit::fault::Fault;
use treebeam_testkit::hostile;
use treebeam_testkit::program::{SITE_RUN_ID, Signal, Site};

const LONG: Duration = Duration::from_mins(2);

/// Returns a sweep that ignores termination, and starts processes that leave its group.
fn tree(word: &str) -> MeasureSettings {
    let parts = ["python3", "-c", hostile::PROCESS_TREE_SCRIPT, word, "wait"].map(str::to_owned);
    MeasureSettings {
        sweep_command: Some(CommandLine::Program(parts.into())),
        ..MeasureSettings::default()
    }
}

#[test]
fn a_job_that_hangs_is_ended_by_who_adopts_it_with_less_time() {
    let field = Field::new();
    let word = format!("adopted-{}", field.site.repo.path().display());
    let hour = Some(Duration::from_hours(1));
    for (eval, before) in [(1, None), (2, hour)] {
        let first = field.executor(tree(&word));
        let job = SweepJob { timeout: before, ..field.job(eval, 1) };
        first.submit_job(&job).expect("to submit");
        let log = field.folder(job.key).join("sweep.log");
        until(|| fs::read(&log).is_ok_and(|log| log == b"ready\n"));
        let (next, begun) = (field.executor(MeasureSettings::default()), Instant::now());
        let less = SweepJob { timeout: Some(Duration::from_millis(500)), ..job };
        assert_eq!(next.adopt_jobs(&[less]).expect("to adopt"), [key(eval, 1)]);
        let end = ends(&next, 1).remove(0);
        let (kind, message) = said(&end);
        assert_eq!(kind, Some(FailureKind::Timeout), "{message}");
        assert!(message.contains("0.5 s were left for all commands together"), "{message}");
        assert!(end.commands[0].timed_out && begun.elapsed() < LONG, "{end:?}");
        assert_eq!(hostile::survivors(&word), Vec::<u32>::new());
        assert_eq!(ends(&first, 1)[0].exit, end.exit, "whoever waits hears the same");
    }
}

#[test]
fn a_job_that_is_adopted_with_more_time_has_it() {
    let field = Field::new();
    let waits = r#"until [ -e "$GIT_CEILING_DIRECTORIES/go" ]; do sleep 0.05; done"#;
    // A sweep that clears its folder does not change that.
    let measure = sweep(&format!("rm -rf \"$AGENTIC_OUTPUT_DIR\"/*; {waits}; {GOOD}"));
    let first = field.executor(measure.clone());
    let little = Duration::from_secs(3);
    let jobs = [1, 2, 3].map(|eval| SweepJob { timeout: Some(little), ..field.job(eval, 1) });
    let begun = Instant::now();
    for job in &jobs {
        first.submit_job(job).expect("to submit");
    }
    let next = field.executor(measure);
    let more = [Some(little), Some(LONG * 2), None];
    let said_now = std::iter::zip(jobs, more).map(|(job, timeout)| SweepJob { timeout, ..job });
    assert_eq!(next.adopt_jobs(&said_now.collect::<Vec<_>>()).expect("to adopt").len(), 3);
    let end = ends(&next, 1).remove(0);
    assert_eq!((end.key, said(&end).0), (key(1, 1), Some(FailureKind::Timeout)), "{end:?}");
    assert!(begun.elapsed() > little);
    for eval in [2, 3] {
        assert!(process_of(&field.folder(key(eval, 1))).is_some(), "it has more time");
    }
    fs::write(field.run.root().join("go"), "").expect("a file");
    for end in ends(&next, 2) {
        assert_eq!(said(&end).0, None, "{:?}", said(&end));
    }
}

/// Creates a site of the whole program, with an idea whose sweep hangs.
pub(crate) fn hanging(word: &str) -> (Site, PathBuf) {
    let site = Site::new(BINARY);
    let tree = format!(
        "import sys\nsys.argv = ['tree', '{word}', 'wait']\n{}",
        hostile::PROCESS_TREE_SCRIPT
    );
    let change = "diff --git a/new b/new\nnew file mode 100644\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+x\n";
    let config = "eval_retries = 1\nsweep_command = ['python3', 'sweep.py']\n\
                  [score]\nprimary = 'a'\n\
                  [agents.coder]\nprovider = 'command'\ncommand = ['cat', 'change.diff']\n";
    for (name, text) in [
        ("treebeam.toml", config),
        ("change.diff", change),
        ("base.csv", "config_id,status,a\n0,ok,1\n1,ok,2\n"),
        ("sweep.py", &tree),
    ] {
        site.repo.write(name, text).expect("a file");
    }
    site.repo.commit("a state").expect("a commit");
    let idea = site.repo.beside("idea.txt");
    fs::write(&idea, "Try it\n").expect("an idea");
    (site, idea)
}

/// After an interrupt the sweep continues without end; a resume with a limit, killed on the way or
/// not, ends it.
#[test]
fn an_interrupted_run_with_a_hanging_sweep_is_resumed_with_less_time() {
    for plan in ["", "kill before 1 rename s1.limit", "kill after 1 rename s1.limit"] {
        let word = format!("interrupted-{}-{plan}", std::process::id());
        let (site, idea) = hanging(&word);
        let idea = idea.display().to_string();
        let words =
            ["eval", "--quiet", "--baseline=base.csv", "--run-id", SITE_RUN_ID, "--idea", &idea];
        let call = site.begin(&words);
        let log = site.path("eval/0001/s1/sweep.log");
        until(|| fs::read(&log).is_ok_and(|log| log == b"ready\n"));
        call.signal(Signal::Interrupt);
        let _ = call.end(LONG).exits(130);
        assert_eq!(hostile::with_word(&word).len(), 3, "its sweep goes on");
        let resume = ["resume", SITE_RUN_ID, "--quiet", "--eval-timeout-seconds=2"];
        let fault = Fault::plan(plan);
        let said = site.begin_with_fault(&fault, &resume).end(LONG);
        let said = if plan.is_empty() {
            said
        } else {
            assert_eq!(said.code, None, "{plan}: {}", said.stderr);
            site.begin(&["resume", SITE_RUN_ID, "--quiet"]).end(LONG)
        };
        assert_eq!(said.code, Some(1), "{plan}: {}", said.stderr);
        assert_eq!(hostile::survivors(&word), Vec::<u32>::new(), "{plan}");
        let events = site.events();
        let of = |kind: &str| events.iter().filter(|e| e["type"] == kind).collect::<Vec<_>>();
        assert_eq!(of("sweep_submitted").len(), 3, "the root, and two attempts: {plan}");
        let failures = [of("attempt_failed"), of("eval_failed")].concat();
        let kinds: Vec<&Value> = failures.iter().map(|event| &event["failure"]["kind"]).collect();
        assert_eq!(kinds, ["timeout", "timeout"], "{plan}: {failures:?}");
    }
}
