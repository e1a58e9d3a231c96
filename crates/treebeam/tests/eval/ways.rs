//! Options of the command line: the ideas, the baseline, the start state, and the kept worktrees.

use crate::desk::{Desk, of};
use serde_json::Value;
use std::fs;
use treebeam_testkit::program::SITE_RUN_ID;

#[test]
fn ideas_come_from_a_file_a_folder_or_the_configuration() {
    let desk = Desk::new("ideas_file = \"ideas.txt\"");
    let text = "MODE: one, the first\n\n\nMODE: two\nand more of it\n\n";
    desk.site.repo.write("ideas.txt", text).expect("a file");
    desk.site.repo.commit("ideas").expect("a commit");
    let call = |id: &str, flags: &[&str]| -> Value {
        let said = desk.site.call(&[&["eval", "--json", "--run-id", id], flags].concat()).exits(0);
        serde_json::from_str(&said.stdout).expect("a document")
    };
    let titles = |document: &Value| -> Vec<String> {
        let evals = document["evals"].as_array().expect("a list");
        evals.iter().map(|eval| eval["title"].as_str().expect("a title").to_owned()).collect()
    };
    let found = call("r1", &[]);
    assert_eq!(titles(&found), ["MODE: one, the first", "MODE: two"], "blank lines are between");
    let found = call("r2", &["--iterations", "1"]);
    assert_eq!(titles(&found), ["MODE: one, the first"]);
    let file = desk.dir.join("idea.md");
    fs::write(&file, "IDEA: try good\n\nMODE: good\n\nwith blank lines\n").expect("a file");
    let found = call("r3", &["--idea", &file.display().to_string()]);
    assert_eq!(titles(&found), ["try good"]);
    let found = call("r4", &["--idea", &desk.ideas(&["b", "a"])]);
    assert_eq!(titles(&found), ["try b", "try a"]);
    let missing = desk.site.call(&["eval", "--idea", "none.md"]).exits(2);
    assert!(missing.stderr.contains("none.md"), "{}", missing.stderr);
    let empty = desk.ideas(&[]);
    let _ = desk.site.call(&["eval", "--idea", &empty]).exits(2).says(["there is no idea in"]);
}

#[test]
fn one_document_is_printed_and_nothing_else() {
    let desk = Desk::new("");
    let said = desk.eval(&["good", "exit1"], &["--json"]).exits(0);
    let document: Value = serde_json::from_str(&said.stdout).expect("one document");
    assert_eq!(
        (&document["schema"], &document["run_id"]),
        (&"treebeam.eval/1".into(), &SITE_RUN_ID.into())
    );
    assert_eq!(document["evals"].as_array().map(Vec::len), Some(2));
    // Without `--json` there is a table, and progress only on standard error.
    let ideas = desk.ideas(&["good"]);
    let told = desk.site.call(&["eval", "--run-id", "r2", "--idea", &ideas]).exits(0);
    assert!(told.stdout.starts_with("e0001: try good\n"), "{}", told.stdout);
    assert!(told.stdout.contains("tree/r2/e0001"), "{}", told.stdout);
    assert!(told.stderr.contains("root measured"), "{}", told.stderr);
    let quiet = desk.site.call(&["eval", "--run-id", "r3", "--idea", &ideas, "--quiet"]).exits(0);
    assert!(!quiet.stderr.contains("root measured"), "{}", quiet.stderr);
}

fn rows(value: u32) -> String {
    let row = |id| format!("{id},ok,{value}.{id}\n");
    format!("config_id,status,a\n{}", (0..3).map(row).collect::<String>())
}

#[test]
fn results_that_are_there_are_compared_with() {
    let desk = Desk::new("");
    let write = |name: &str, value| {
        let path = desk.dir.join(name);
        fs::write(&path, rows(value)).expect("a file");
        path.display().to_string()
    };
    let (parent, root) = (write("parent.csv", 2), write("root.csv", 8));
    let document = desk.document(&["good"], &["--baseline", &parent, "--root-baseline", &root], 0);
    let eval = of(&document, "good");
    let score = |basis: &str| eval[basis]["recommendation"]["score"].as_f64().expect("a score");
    assert!(score("parent_relative").abs() < 1e-9, "{eval:#}");
    assert!(score("root_relative") < -0.5, "{eval:#}");
    assert_eq!(desk.calls_of("root"), [""; 0], "the root is not measured again");
    desk.site.must_be_sound();
    let ideas = desk.ideas(&["good"]);
    let call = |id: &str, flags: &[&str]| {
        desk.site.call(&[&["eval", "--run-id", id, "--idea", &ideas], flags].concat())
    };
    let _ = call("r2", &["--root-baseline", &root]).exits(2).says(["--baseline"]);
    let _ = call("r3", &["--baseline", "none.csv"]).exits(1).says(["none.csv"]);
    fs::write(&root, "no,such\ncolumn,here\n").expect("a file");
    let said = call("r4", &["--baseline", &root]);
    assert_ne!(said.code, Some(0), "{}", said.stderr);
    assert_eq!(desk.calls_of("good").len(), 6, "nothing is asked before that is known");
}

#[test]
fn results_that_are_there_are_called_what_they_are() {
    let desk = Desk::new("baseline_csv = 'base.data'");
    let missing = "`baseline_csv`: there is no file `base.data`, seen from the repository's top";
    let refused = desk.eval(&["good"], &[]).exits(1).says([missing, "hint: `treebeam baseline`"]);
    assert!(!refused.stderr.contains("current folder"), "{}", refused.stderr);
    let doctor = desk.site.call(&["doctor"]).exits(4).stdout;
    assert!(doctor.contains(&format!("problem  baseline       {missing}")), "{doctor}");
    assert!(doctor.contains("do: `treebeam baseline`"), "{doctor}");
    desk.site.repo.write("base.data", &rows(2)).expect("a file");
    let doctor = desk.site.call(&["doctor"]).stdout;
    let fine = "ok       baseline       the root's figures are those of `base.data`: not measured";
    assert!(doctor.contains(fine), "{doctor}");
    let told = desk.eval(&["good"], &[]).exits(0);
    let line = "root not measured: 3 configurations taken from `base.data`\n";
    assert!(told.stderr.contains(line), "{}", told.stderr);
    let log = desk.site.call(&["log", SITE_RUN_ID]).exits(0).stdout;
    assert!(log.contains("root not measured: 3 rows taken from `base.data`\n"), "{log}");
    assert!(!log.contains("root given to the sweep"), "{log}");
    let provenance = &desk.site.manifest()["root"]["root_baseline_provenance"];
    assert_eq!(provenance["source_path"], "repo:base.data", "{provenance:#}");
    let shown = desk.site.call(&["show", SITE_RUN_ID, "n0000"]).exits(0).stdout;
    assert!(shown.contains("…, taken from `base.data`, not measured\n"), "{shown}");
    for report in ["TREE_SUMMARY.md", "report.html"] {
        let text = desk.site.text(report).replace('\\', "");
        assert!(text.contains("taken from `base.data`, not measured"), "{report}");
    }
    desk.site.must_be_sound();
    // An invalid baseline is distinguished from a sweep that fails.
    desk.site.repo.write("base.data", "config_id,status,a\n0,error,1\n").expect("a file");
    let ideas = desk.ideas(&["good"]);
    let _ = desk.site.call(&["eval", "--run-id", "r2", "--idea", &ideas]).exits(4).says([
        "`base.data` has 1 rows, 0 of 1 configurations ok, 1 not ok",
        "hint: `treebeam baseline --commit ",
    ]);
}

#[test]
fn worktrees_are_kept_where_that_is_wanted() {
    let desk = Desk::new("");
    let _ = desk.document(&["good", "tests"], &["--keep-worktrees"], 0);
    assert_eq!(desk.site.names("cand"), ["0001", "0002"]);
    let kept = desk.site.path("cand/0001/model.txt");
    assert_eq!(fs::read_to_string(kept).expect("a file"), "mode good\nround 0\n");
    desk.site.must_be_sound();
    let desk = Desk::new("keep_worktrees = true");
    let _ = desk.document(&["good"], &[], 0);
    assert_eq!(desk.site.names("cand"), ["0001"]);
}

#[test]
fn a_tree_that_is_not_clean_is_refused_or_is_what_candidates_start_from() {
    let desk = Desk::new("");
    desk.site.repo.write("model.txt", "mode root\nround 0\nmine\n").expect("a file");
    desk.site.repo.write("new.txt", "mine\n").expect("a file");
    desk.site.repo.git(["add", "model.txt"]).expect("git");
    let _ = desk.eval(&["good"], &[]).exits(4).says(["model.txt", "new.txt"]);
    assert_eq!(desk.calls(), [""; 0]);
    desk.configure("base_on_working_tree = true");
    let before = desk.users();
    let document = desk.document(&["good"], &[], 0);
    assert_eq!(desk.users(), before, "the files, the index and the branch stay");
    let reference = of(&document, "good")["ref"].as_str().expect("a ref").to_owned();
    let show =
        |path: &str| desk.site.repo.git(["show", &format!("{reference}{path}")]).expect("git");
    assert_eq!(show(":model.txt"), "mode good\nround 0\nmine");
    assert_eq!(show(":new.txt"), "mine");
    let changed = ["diff", "--name-only", &format!("{reference}~"), &reference];
    assert_eq!(desk.site.repo.git(changed).expect("git"), "model.txt", "the rest is the base's");
    let base = desk.site.repo.git(["rev-parse", &format!("{reference}~2")]).expect("git");
    assert_eq!(base, desk.site.repo.git(["rev-parse", "main"]).expect("git"));
    desk.site.repo.git(["gc", "--quiet", "--prune=now"]).expect("git");
    desk.site.must_be_sound();
    fs::write(desk.site.repo.path().join("big.bin"), vec![0; (16 << 20) + 1]).expect("a file");
    let ideas = desk.ideas(&["good"]);
    let refused = desk.site.call(&["eval", "--run-id", "r2", "--idea", &ideas]).exits(4);
    assert!(
        refused.stderr.contains("big.bin") && refused.stderr.contains("hint: "),
        "{}",
        refused.stderr
    );
}
