//! Jobs that run in the user's own worktree: at the measured commit, with the user's files, one
//! after the other.

use crate::field::{BINARY, Field, key, said, sweep, until};
use std::fs;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use treebeam_core::id::Commit;
use treebeam_core::measure::{MeasureSettings, WorktreePath};
use treebeam_executor::{InPlaceExecutor, LocalExecutor, LocalExecutorConfig};
use treebeam_git::open_repo_with;
use treebeam_run::port::{Executor as _, JobEnd, SweepJob};
use treebeam_testkit::program::SITE_RUN_ID;

static NOTES: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn note(text: &str) {
    NOTES.lock().unwrap_or_else(PoisonError::into_inner).push(text.to_owned());
}

/// Returns true if a note about this repository contains these words.
fn noted(words: &str) -> bool {
    let notes = NOTES.lock().unwrap_or_else(PoisonError::into_inner);
    notes.iter().any(|note| note.contains(words))
}

fn in_place(field: &Field, measure: MeasureSettings) -> InPlaceExecutor {
    let user = open_repo_with(&field.repo, field.site.repo.variables()).expect("the repository");
    let results_csv = measure.results_csv.clone();
    let worktree = Some(user.toplevel.clone());
    let local = LocalExecutorConfig {
        program: BINARY.into(),
        repository: user.toplevel.clone(),
        worktree,
        ..field.local(measure)
    };
    InPlaceExecutor {
        executor: LocalExecutor::new(local),
        run: SITE_RUN_ID.parse().expect("a name"),
        run_dir: field.run.clone(),
        root: user.head.clone(),
        user,
        results_csv,
        note,
    }
}

fn done(executor: &InPlaceExecutor, job: &SweepJob) -> JobEnd {
    executor.submit_job(job).unwrap_or_else(|error| panic!("{}", error.full_text()));
    let mut ended = Vec::new();
    until(|| {
        ended.extend(executor.wait_for_jobs(Duration::from_millis(100)).expect("to wait"));
        !ended.is_empty()
    });
    ended.remove(0)
}

/// A repository with data that git ignores, and two commits of the run that are not checked out.
fn field() -> (Field, [SweepJob; 2]) {
    let field = Field::new();
    let repo = &field.site.repo;
    repo.write(".gitignore", ".treebeam/\n*.data\nout/\n").expect("a file");
    repo.write("code.txt", "root\n").expect("a file");
    repo.write("log.txt", "\n").expect("a file");
    repo.commit("code").expect("a commit");
    repo.write("my.data", "mine\n").expect("a file");
    let commit = |text: &str| -> Commit {
        repo.write("code.txt", text).expect("a file");
        let name =
            repo.commit(&format!("{text}\n\nTreebeam-Run: {SITE_RUN_ID}")).expect("a commit");
        repo.git(["reset", "--quiet", "--hard", "HEAD~"]).expect("to go back");
        name.parse().expect("a commit")
    };
    let job = |eval, commit| SweepJob {
        key: key(eval, 1),
        commit,
        sweep_config_limit: None,
        timeout: None,
    };
    let jobs = [job(1, commit("one\n")), job(2, commit("two\n"))];
    (field, jobs)
}

#[test]
fn each_runs_at_its_commit_and_with_what_lies_there() {
    let (field, jobs) = field();
    let results_csv: WorktreePath = "out/r.csv".to_owned().try_into().expect("a path");
    field.site.repo.write("out/r.csv", "from before\n").expect("a file");
    let inputs = vec!["my.data".to_owned().try_into().expect("a path")];
    let script = "cat code.txt my.data >> out/r.csv; echo x >> log.txt";
    let measure = MeasureSettings { results_csv: Some(results_csv), inputs, ..sweep(script) };
    let executor = in_place(&field, measure);
    for (job, code) in jobs.iter().zip(["one", "two"]) {
        let end = done(&executor, job);
        assert_eq!(said(&end).0, None, "{end:?}");
        let results = field.folder(job.key).join("meta_config_sweep_results.csv");
        let results = fs::read_to_string(results).expect("results");
        assert_eq!(results, format!("{code}\nmine\n"), "nothing of what lay there before");
        let git = |arguments| field.site.repo.git(arguments).expect("git");
        assert_eq!(git(["rev-parse", "HEAD"]), job.commit.as_str());
    }
    let aside = field.run.root().join("in_place/out_r.csv");
    assert_eq!(fs::read_to_string(aside).expect("what was set aside"), "from before\n");
    assert!(noted("`out/r.csv` from before is not measured"));
    assert!(noted("left changes in your worktree: log.txt"));
    assert!(field.repo.join("my.data").is_file(), "it is no link to itself");
    assert_eq!(fs::read_to_string(field.repo.join("log.txt")).expect("a file"), "\nx\nx\n");
}

#[test]
fn no_results_are_none_whatever_lies_there() {
    let (field, jobs) = field();
    let results_csv = "out/r.csv".to_owned().try_into().expect("a path");
    field.site.repo.write("out/r.csv", "from before\n").expect("a file");
    let executor =
        in_place(&field, MeasureSettings { results_csv: Some(results_csv), ..sweep("true") });
    let end = done(&executor, &jobs[0]);
    assert!(said(&end).1.contains("wrote no `out/r.csv`"), "{end:?}");
}

#[test]
fn two_do_not_run_there_at_once_and_nothing_is_switched_below_one() {
    let (field, jobs) = field();
    let executor =
        in_place(&field, sweep("while [ ! -e go.data ]; do sleep 0.02; done; touch a.data"));
    executor.submit_job(&jobs[0]).expect("to submit");
    let refused = executor.submit_job(&jobs[1]).expect_err("one at a time");
    assert!(refused.what.contains("another one runs in the same worktree"), "{refused}");
    let head = field.site.repo.git(["rev-parse", "HEAD"]).expect("git");
    assert_eq!(head, jobs[0].commit.as_str(), "the code of a sweep stays");
    field.site.repo.write("go.data", "").expect("a file");
    until(|| !executor.wait_for_jobs(Duration::from_millis(50)).expect("to wait").is_empty());
}
