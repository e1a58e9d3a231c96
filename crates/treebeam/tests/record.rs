//! Special files in the place of a run's files, and a journal that is damaged under a running
//! program: no command blocks, none reads without end, the other runs are still listed, and no
//! recorded event is lost silently.

#![cfg(test)]
#![cfg(unix)]

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;
use treebeam_testkit::held::HeldGit;
use treebeam_testkit::program::{SITE_RUN_ID, Said, Site};
use treebeam_testkit::repo::pipe;

const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");
/// Maximum time of a reading command, however busy the machine is.
const LIMIT: Duration = Duration::from_secs(20);
/// Name of a sound run beside the damaged one.
const OTHER: &str = "other";

const SMALL: [&str; 5] =
    ["--quiet", "--ideas-per-node=2", "--max-depth=1", "--beam-width=1", "--max-parallel-evals=1"];

/// The commands that read a run, and those that read all of them.
const COMMANDS: [&[&str]; 13] = [
    &["list"],
    &["doctor"],
    &["clean", "--dry-run"],
    &["clean"],
    &["status", SITE_RUN_ID],
    &["best", SITE_RUN_ID],
    &["show", SITE_RUN_ID, "n0000"],
    &["show", SITE_RUN_ID, "e0001"],
    &["diff", SITE_RUN_ID, "e0001"],
    &["log", SITE_RUN_ID],
    &["export", SITE_RUN_ID, "--branch", "kept"],
    &["report", SITE_RUN_ID],
    &["validate", SITE_RUN_ID],
];

/// Special file in the place of a file.
#[derive(Clone, Copy, Debug)]
enum Trap {
    Pipe,
    Zero,
}

impl Trap {
    fn put(self, path: &Path) {
        drop(fs::remove_file(path));
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        match self {
            Self::Pipe => pipe(path).expect("a pipe"),
            Self::Zero => std::os::unix::fs::symlink("/dev/zero", path).expect("a link"),
        }
    }
}

fn in_time(site: &Site, arguments: &[&str]) -> Said {
    let said = site.begin(arguments).end(LIMIT);
    assert!(said.code.is_some(), "{arguments:?} did not end: {}", said.stderr);
    said
}

#[test]
fn nothing_in_the_place_of_a_file_keeps_a_command_waiting() {
    let site = Site::new(BINARY);
    let other = [&["run", "--dry-run", "--run-id", OTHER][..], &SMALL].concat();
    let _ = site.call(&other).exits(0);
    site.run(&SMALL);
    let mut traps = vec![(Trap::Zero, "manifest.json"), (Trap::Zero, "journal.jsonl")];
    traps.extend(
        [
            "manifest.json",
            "manifest.json.prev",
            "journal.jsonl",
            "run.lock",
            "run.lock.json",
            "artifacts/root.csv",
            "artifacts/e0001.csv",
            "eval/0001/experiment/summary.json",
            "eval/0001/calls/coder-0.json",
        ]
        .map(|name| (Trap::Pipe, name)),
    );
    for (trap, name) in traps {
        let path = site.path(name);
        let kept = site.path("../kept");
        let is_there = fs::rename(&path, &kept).is_ok();
        trap.put(&path);
        for arguments in COMMANDS {
            let said = in_time(&site, arguments);
            let whole = ["list", "doctor", "clean"].contains(&arguments[0]);
            assert!(!whole || said.code == Some(0), "{name} {trap:?} {arguments:?}: {said:?}");
            if arguments == ["list"] {
                assert!(
                    said.stdout.contains(OTHER) && said.stdout.contains(SITE_RUN_ID),
                    "{said:?}"
                );
            }
        }
        let said = in_time(&site, &["resume", SITE_RUN_ID, "--quiet"]);
        let asked = ["journal.jsonl", "run.lock"].contains(&name);
        assert!(!asked || said.stderr.contains("not a regular file"), "{name}: {}", said.stderr);
        drop(fs::remove_file(&path));
        if is_there {
            fs::rename(kept, path).expect("to put it back");
        }
    }
    let _ = site.call(&["validate", SITE_RUN_ID]).exits(0);
}

/// Holds a run in the middle of its first patch, changes its journal, and returns the outcome.
fn disturbed(treat: impl FnOnce(&Path)) -> (Site, Said) {
    let site = Site::new(BINARY);
    let git = HeldGit::new(&site);
    let run = [&["run", "--dry-run", "--run-id", SITE_RUN_ID][..], &SMALL[1..]].concat();
    let call = git.begin(&site, &run);
    treat(&site.path("journal.jsonl"));
    git.let_go();
    let said = call.wait();
    (site, said)
}

#[test]
fn a_journal_that_loses_its_name_during_a_run_is_put_back() {
    let whole = Site::new(BINARY);
    whole.run(&SMALL);
    let remove: fn(&Path) = |journal| fs::remove_file(journal).expect("to remove");
    let rename: fn(&Path) = |journal| {
        fs::rename(journal, journal.with_extension("away")).expect("to rename");
    };
    for treat in [remove, rename] {
        let (site, said) = disturbed(treat);
        let _ = said.exits(0).says(["`journal.jsonl` was removed or renamed, and is put back"]);
        let events = site.events();
        let restored = events.iter().filter(|event| event["type"] == "journal_restored");
        assert_eq!(restored.count(), 1);
        assert_eq!(site.manifest()["history"]["journal_restorations"], 1);
        site.must_be_sound();
        let _ = whole.call(&["report", SITE_RUN_ID]).exits(0);
        let _ = site.call(&["report", SITE_RUN_ID]).exits(0);
        whole.must_equal(&site);
    }
}

#[test]
fn a_journal_that_is_cut_during_a_run_ends_it_with_all_of_it_in_the_manifest() {
    let (site, said) = disturbed(|journal| {
        OpenOptions::new().write(true).open(journal).expect("it").set_len(100).expect("to cut");
    });
    let _ = said.exits(1).says(["journal.jsonl` was changed while the run went on", "--force"]);
    assert_eq!(fs::metadata(site.path("journal.jsonl")).expect("it").len(), 100);
    assert_ne!(site.manifest()["evaluations"]["0001"], serde_json::Value::Null);
    let _ = site.call(&["resume", SITE_RUN_ID, "--quiet"]).exits(1).says(["--force"]);
    let _ = site.call(&["resume", SITE_RUN_ID, "--quiet", "--force"]).exits(0);
    let _ = site.call(&["validate", SITE_RUN_ID]).exits(0);
}

#[test]
fn an_earlier_line_that_is_changed_during_a_run_ends_it_with_all_of_it_in_the_manifest() {
    let (site, said) = disturbed(|journal| {
        // A change within the same step of the file system's clock as the last append is not seen.
        std::thread::sleep(Duration::from_millis(50));
        let mut text = fs::read(journal).expect("it");
        text[60] ^= 1;
        let mut file = OpenOptions::new().write(true).open(journal).expect("it");
        file.write_all(&text).expect("to change");
    });
    let _ = said.exits(1).says(["its first line was changed", "--force"]);
    assert_ne!(site.manifest()["evaluations"]["0001"], serde_json::Value::Null);
    fs::rename(site.path("journal.jsonl"), site.path("journal.away")).expect("to move it away");
    let _ = site.call(&["resume", SITE_RUN_ID, "--quiet", "--force"]).exits(0);
    let _ = site.call(&["validate", SITE_RUN_ID]).exits(0);
}

#[test]
fn a_damaged_manifest_without_a_journal_says_what_is_wrong_and_where() {
    let site = Site::new(BINARY);
    site.run(&SMALL);
    let text = site.text("manifest.json");
    fs::remove_file(site.path("journal.jsonl")).expect("to remove");
    drop(fs::remove_file(site.path("manifest.json.prev")));
    let lines = text.lines().count();
    let cut: String = text.split_inclusive('\n').take(lines - 3).collect();
    fs::write(site.path("manifest.json"), cut).expect("to write");
    let end = format!("at line {} column ", lines - 2);
    let _ = site.call(&["status", SITE_RUN_ID]).exits(1).says(["manifest.json", "EOF while", &end]);
    let spoiled = text.replacen("\"parent_node_id\":\"0000\"", "\"parent_node_id\":7", 1);
    fs::write(site.path("manifest.json"), spoiled).expect("to write");
    let _ = site
        .call(&["status", SITE_RUN_ID])
        .exits(1)
        .says(["the checksum does not fit", "nodes.0001"]);
}

#[test]
fn a_run_is_resumed_by_its_path_from_anywhere() {
    let site = Site::new(BINARY);
    site.run(&[&SMALL[..], &["--max-total-idea-evals=1"]].concat());
    let elsewhere = tempfile::tempdir().expect("a folder");
    let path = site.path("").display().to_string();
    let _ = site.call_in(elsewhere.path(), &["status", &path]).exits(0);
    let more = ["resume", &path, "--quiet", "--max-total-idea-evals=2"];
    let _ = site.call_in(elsewhere.path(), &more).exits(0);
    let relative = format!("./.treebeam/runs/{SITE_RUN_ID}");
    let _ = site.call(&["resume", &relative, "--quiet", "--max-depth=2"]).exits(0);
    site.must_be_sound();
    let archived = elsewhere.path().join(SITE_RUN_ID);
    fs::rename(site.path(""), &archived).expect("to move");
    let archived = archived.display().to_string();
    let said = site.call(&["resume", &archived, "--quiet"]).exits(2);
    let _ = said.says(["is not where the runs of a repository are"]);
}
