//! All outcomes of an idea: each ends as expected, alone, and with a message for a person.

use crate::desk::{Desk, of, until};
use serde_json::Value;
use std::fs;
use treebeam_testkit::hostile;

/// Outcome of an idea.
enum Fate {
    /// Compared, with this gate result.
    Scored(&'static str),
    /// Failed: the stage, the kind, and part of the message.
    Failed(&'static str, &'static str, &'static str),
}
use Fate::{Failed, Scored};

#[track_caller]
fn check(document: &Value, mode: &str, fate: &Fate) {
    let eval = of(document, mode);
    match fate {
        Scored(approval) => {
            assert_eq!(eval["error"], Value::Null, "{mode}: {eval:#}");
            assert_eq!(eval["approval"], *approval, "{mode}: {eval:#}");
            assert_eq!(eval["completeness"]["ok_count"], 3, "{mode}: {eval:#}");
            for basis in ["parent_relative", "root_relative"] {
                assert!(
                    eval[basis]["recommendation"]["score"].as_f64() > Some(0.5),
                    "{mode}: {eval:#}"
                );
            }
        }
        Failed(stage, kind, words) => {
            let error = &eval["error"];
            assert_eq!(
                (&error["stage"], &error["kind"]),
                (&Value::from(*stage), &Value::from(*kind)),
                "{mode}: {eval:#}"
            );
            let message = error["message"].as_str().expect("a message");
            assert!(message.contains(words), "{mode}: {message}");
            assert_eq!(eval["parent_relative"], Value::Null, "{mode}");
        }
    }
}

#[test]
fn each_ends_as_it_must_and_alone() {
    let fates = [
        ("good", Scored("approved")),
        ("second", Scored("approved")),
        ("never", Failed("implement", "rejected", "the mode is never right")),
        ("badpatch", Scored("approved")),
        (
            "hopeless",
            Failed(
                "implement",
                "patch",
                "the diff does not apply: error: patch failed: model.txt:1",
            ),
        ),
        ("prose", Scored("approved")),
        ("silent", Failed("implement", "patch", "the answer has no unified diff")),
        ("nochange", Failed("implement", "no_change", "changes nothing")),
        ("protected", Failed("implement", "protected", "`tests/new_test.txt` is protected")),
        ("learns", Scored("approved")),
        (
            "tests",
            Failed("sweep", "tests", "the test command exited 1:\nassertion failed: 1 is not 2"),
        ),
        ("exit1", Failed("sweep", "sweep", "the sweep exited 1:\nthe sweep has lost its way")),
        ("nocsv", Failed("sweep", "no_results", "the sweep succeeded, but wrote no `results.csv`")),
        ("artifact", Failed("implement", "protected", "`results.csv` is protected")),
        ("unreadable", Failed("score", "results", "a quote that is opened here is never closed")),
        ("nogit", Scored("approved")),
        ("own", Scored("approved")),
        ("fails", Failed("implement", "agent", "the agent has a bad day")),
        ("fork", Scored("approved")),
        ("flood", Scored("approved")),
    ];
    let desk = Desk::new("max_parallel_evals = 4");
    let modes: Vec<&str> = fates.iter().map(|(mode, _)| *mode).collect();
    let before = desk.users();
    let document = desk.document(&modes, &[], 0);
    assert_eq!(desk.users(), before, "nothing of the user's is touched");
    for (mode, fate) in &fates {
        check(&document, mode, fate);
    }
    desk.site.must_be_sound();
    what_each_was_asked(&desk);
    nothing_is_left(&desk, &document);
}

fn what_each_was_asked(desk: &Desk) {
    let rounds = |mode: &str, role: &str| {
        let calls = desk.calls_of(mode);
        calls.iter().filter(|call| call.starts_with(role)).count()
    };
    for (mode, coder, reviewer, sweep) in [
        ("good", 1, 1, 1),
        ("second", 2, 2, 1),
        ("never", 3, 3, 0),
        ("badpatch", 2, 1, 1),
        ("hopeless", 3, 0, 0),
        ("learns", 2, 1, 1),
        ("tests", 1, 1, 0),
        ("exit1", 1, 1, 1),
    ] {
        let found = (rounds(mode, "coder"), rounds(mode, "reviewer"), rounds(mode, "sweep"));
        assert_eq!(found, (coder, reviewer, sweep), "{mode}");
        assert_eq!((rounds(mode, "coordinator"), rounds(mode, "planner")), (1, 1), "{mode}");
    }
    assert_eq!(desk.calls_of("root"), ["tests root", "sweep root"], "the root is measured once");
    let second = desk.experiment("e0002", "coder_prompt_round_1.txt");
    assert!(
        second.contains("the round must be told") && second.contains("+mode second"),
        "{second}"
    );
    let later = desk.experiment("e0002", "reviewer_prompt_round_1.txt");
    assert!(later.contains("the round must be told"), "{later}");
    let again = desk.experiment("e0004", "coder_prompt_round_1.txt");
    assert!(again.contains("error: patch failed: model.txt:1"), "{again}");
}

/// Asserts that no process, worktree or long log is left; commits of compared candidates are kept.
fn nothing_is_left(desk: &Desk, document: &Value) {
    let word = format!("{}-fork", desk.dir.display());
    assert_eq!(hostile::survivors(&word), Vec::<u32>::new());
    assert_eq!(desk.site.names("cand"), Vec::<String>::new());
    let loud = of(document, "flood")["eval"].as_str().expect("an id").to_owned();
    let log = desk.experiment(&loud, "sweep.log");
    assert!(log.len() < 6 << 20 && log.ends_with("the end\n"), "{} bytes", log.len());
    assert!(log.contains("bytes are left out here]"));
    let show = |mode: &str, path: &str| {
        let reference = of(document, mode)["ref"].as_str().expect("a ref").to_owned();
        desk.site.repo.git(["show", &format!("{reference}:{path}")])
    };
    assert_eq!(show("nogit", "model.txt").expect("a commit"), "mode nogit\nround 0");
    assert_eq!(show("second", "model.txt").expect("a commit"), "mode second\nround 1");
    assert!(show("learns", "tests/new_test.txt").is_err(), "what was protected is taken back");
}

#[test]
fn one_that_nobody_approves_can_be_let_through() {
    let desk = Desk::new("proceed_on_max_review_rounds = true\nmax_review_rounds = 1");
    let document = desk.document(&["never", "hopeless"], &[], 0);
    check(&document, "never", &Scored("let_through"));
    check(&document, "hopeless", &Failed("implement", "patch", "does not apply"));
    desk.site.must_be_sound();
}

#[test]
fn one_that_hangs_is_ended_with_all_that_it_started() {
    let desk = Desk::new("max_parallel_evals = 2\neval_timeout_seconds = 12");
    let document = desk.document(&["hang", "good"], &[], 0);
    check(
        &document,
        "hang",
        &Failed("sweep", "timeout", " s were left for all commands together:\nready"),
    );
    check(&document, "good", &Scored("approved"));
    assert_eq!(hostile::survivors(&format!("{}-hang", desk.dir.display())), Vec::<u32>::new());
}

#[test]
fn where_all_fail_that_is_the_exit_code_and_the_words() {
    let desk = Desk::new("");
    let said = desk.eval(&["exit1", "nochange"], &[]).exits(1);
    for words in [
        "e0001: try exit1\nfailed at sweep, sweep: the sweep exited 1:\nthe sweep has lost its way\n",
        "e0002: try nochange\nfailed at implement, no_change: ",
    ] {
        assert!(said.stdout.contains(words), "{}", said.stdout);
    }
    desk.site.must_be_sound();
}

#[test]
fn results_from_before_are_no_results() {
    let desk = Desk::new("");
    let perfect = "config_id,status,a\n0,ok,9\n1,ok,9\n2,ok,9\n";
    desk.site.repo.write("results.csv", perfect).expect("a file");
    desk.site.repo.git(["add", "--force", "results.csv"]).expect("git");
    desk.site.repo.commit("results").expect("a commit");
    let document = desk.document(&["nocsv", "good"], &[], 0);
    check(&document, "nocsv", &Failed("sweep", "no_results", "wrote no `results.csv`"));
    check(&document, "good", &Scored("approved"));
    let theirs = fs::read_to_string(desk.site.repo.path().join("results.csv"));
    assert_eq!(theirs.expect("a file"), perfect);
}

/// All promised files of an eval exist, and its artifacts and summaries are complete.
#[test]
fn everything_is_written_down() {
    let desk = Desk::new("");
    let document = desk.document(&["second"], &[], 0);
    let files = [
        "idea.md",
        "coordinator_prompt.txt",
        "coordinator.md",
        "planner_prompt.txt",
        "plan.md",
        "coder_prompt_round_0.txt",
        "patch_round_0.diff",
        "reviewer_prompt_round_0.txt",
        "review_round_0.md",
        "coder_prompt_round_1.txt",
        "patch_round_1.diff",
        "reviewer_prompt_round_1.txt",
        "review_round_1.md",
        "tests.log",
        "sweep.log",
        "meta_config_sweep_results.csv",
        "summary.json",
        "scoring_parent.json",
        "scoring_root.json",
    ];
    let there = desk.site.names("eval/0001/experiment");
    let missing: Vec<&str> =
        files.into_iter().filter(|file| !there.contains(&(*file).to_owned())).collect();
    assert_eq!(missing, [""; 0], "{there:?}");
    assert_eq!(of(&document, "second")["experiment_dir"], "eval/0001/experiment");
    let result = desk.site.text("eval/0001/eval_result.json");
    assert!(result.contains("treebeam.eval_result/1"), "{result}");
    let copies = desk.site.names("artifacts");
    assert_eq!(copies.len(), 2, "{copies:?}");
    assert_eq!(desk.experiment("e0001", "coordinator.md"), "Mind the model, mode second.\n");
    until("the run's lock is gone", || !desk.site.path("run.lock.json").exists());
    assert!(fs::metadata(desk.site.path("TREE_SUMMARY.md")).is_ok());
}
