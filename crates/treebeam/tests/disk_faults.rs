//! The disk fails, or is full, or no more files can be opened, at any one operation of a run: the
//! program prints what is wrong and what to do, and once the fault is gone the run ends like one
//! without it. Reading commands report it too.

#![cfg(test)]
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use treebeam_testkit::apart::{is_campaign, remark};
use treebeam_testkit::fault::{Fault, Operation};
use treebeam_testkit::program::{SITE_RUN_ID, Said, Site};
use treebeam_testkit::repo::{TempRepo, script};

const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");
const RUN_WORDS: [&str; 10] = [
    "run",
    "--dry-run",
    "--run-id",
    SITE_RUN_ID,
    "--ideas-per-node=2",
    "--max-depth=1",
    "--beam-width=1",
    "--sweep-config-limit=10",
    "--max-parallel-evals=1",
    "--quiet",
];

/// An error, its message, and the operations that have it: all that change files, or those with
/// this name.
struct Kind {
    error: &'static str,
    words: &'static str,
    /// `+`: all later operations fail too; empty: only this one fails.
    lasting: &'static str,
    call: &'static str,
}

const fn kind(
    error: &'static str,
    words: &'static str,
    lasting: &'static str,
    call: &'static str,
) -> Kind {
    Kind { error, words, lasting, call }
}

const FULL: &str = "No space left on device";
const BROKEN: &str = "Input/output error";
const TOO_MANY: &str = "Too many open files";
const KINDS: [Kind; 11] = [
    kind("ENOSPC", FULL, "+", ""),
    kind("EIO", BROKEN, "", ""),
    kind("ENOSPC", FULL, "", ""),
    kind("EIO", BROKEN, "+", ""),
    kind("EIO", BROKEN, "", "read"),
    kind("EMFILE", TOO_MANY, "", "open"),
    kind("EMFILE", TOO_MANY, "", "create"),
    kind("EMFILE", TOO_MANY, "", "pipe"),
    kind("EMFILE", TOO_MANY, "", "dup"),
    kind("EMFILE", TOO_MANY, "+", "open"),
    kind("EMFILE", TOO_MANY, "", "socketpair"),
];

impl Kind {
    fn plan(&self, number: u64) -> String {
        let Self { error, lasting, call, .. } = self;
        format!("fail {error} {number}{lasting} {call}")
    }
}

/// Results of runs with faults.
#[derive(Debug, Default)]
struct Tally {
    failed: u32,
    went_on: u32,
}

/// Tries a fault at every `stride`-th operation, until there is no such operation.
fn from_first_to_last(whole: &Site, kind: &Kind, first: u64, stride: u64) -> Tally {
    let mut tally = Tally::default();
    let mut number = first;
    while let Some(said) = with_fault(whole, kind, number) {
        match said.code {
            Some(0) => tally.went_on += 1,
            _ => tally.failed += 1,
        }
        number += stride;
        assert!(number < 10_000, "no end");
    }
    tally
}

/// Makes a run with a fault, and then resumes without; `None` if there were fewer operations.
fn with_fault(whole: &Site, kind: &Kind, number: u64) -> Option<Said> {
    let site = Site::new(BINARY);
    let plan = kind.plan(number);
    let fault = Fault::plan(&plan);
    let said = site.call_with_fault(&fault, &RUN_WORDS);
    let hit = hit(&fault)?;
    let what = format!("{plan}: {} {} {}\n{}", hit.call, hit.path, hit.to, said.stderr);
    let _context = Context(&what);
    check_said(&said, kind.words, &what);
    let again = site.call(&RUN_WORDS);
    assert_eq!(again.code, Some(0), "{what}\nand then: {}", again.stderr);
    check_left(&site, &what);
    site.must_be_sound();
    site.must_equal(whole);
    Some(said)
}

/// Returns the operation that failed, if the program reached it.
fn hit(fault: &Fault) -> Option<Operation> {
    fault.operations().into_iter().find(|operation| operation.outcome.starts_with("failed"))
}

/// Context of a test, printed if it fails.
struct Context<'a>(&'a str);

impl Drop for Context<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            remark(self.0);
        }
    }
}

/// Asserts that a failed program printed why, and what to do.
#[track_caller]
fn check_said(said: &Said, words: &str, what: &str) {
    assert!(!what.contains("panicked") && !what.contains("has a bug"), "{what}");
    assert!(matches!(said.code, Some(0..=5)), "{:?}: {what}", said.code);
    if said.code != Some(0) {
        for part in ["error: ", words, "hint: "] {
            assert!(said.stderr.contains(part), "no {part:?}: {what}");
        }
    }
}

/// Asserts that nothing unfinished is left. Removals that failed under the fault are deferred, and
/// done now.
#[track_caller]
fn check_left(site: &Site, what: &str) {
    let _ = site.call(&["clean", SITE_RUN_ID]).exits(0);
    let list = site.repo.git(["worktree", "list", "--porcelain"]).expect("worktrees");
    assert!(!list.contains("prunable"), "{what}\n{list}");
    assert_eq!(list.matches("worktree ").count(), site.names("wt").len() + 1, "{what}\n{list}");
    let names = [site.names(""), site.names("..")].concat();
    let left = names.iter().find(|name| name.starts_with(".new-") || *name == "run.lock.json");
    assert_eq!(left, None, "{what}");
    assert_eq!(site.names("cand"), [""; 0], "{what}");
}

fn whole() -> Site {
    let site = Site::new(BINARY);
    let _ = site.call(&RUN_WORDS).exits(0);
    site.must_be_sound();
    site
}

/// Every operation with every kind of fault takes a campaign; otherwise each kind begins at another
/// operation.
#[test]
fn a_fault_at_any_operation_is_told_and_the_run_goes_on_without_it() {
    let (whole, next) = (whole(), AtomicU64::new(0));
    let tallies = Mutex::new(BTreeMap::new());
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(kind) = usize::try_from(at).ok().and_then(|at| KINDS.get(at)) else { return };
            let (first, stride) = if is_campaign() { (1, 1) } else { (1 + at * 3, 31) };
            let tally = from_first_to_last(&whole, kind, first, stride);
            tallies.lock().expect("tallies").insert(kind.plan(0), tally);
        }
    };
    thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
    let tallies = tallies.into_inner().expect("tallies");
    let failed: u32 = tallies.values().map(|tally| tally.failed).sum();
    remark(&format!("{tallies:#?}"));
    assert!(failed > 20, "{tallies:#?}");
}

/// Commands that only read, and `report`, which rewrites what can be made again.
#[test]
fn a_fault_while_reading_is_told() {
    let site = whole();
    let commands: [&[&str]; 8] = [
        &["status", SITE_RUN_ID],
        &["list"],
        &["show", SITE_RUN_ID, "e0001"],
        &["log", SITE_RUN_ID],
        &["diff", SITE_RUN_ID, "e0001"],
        &["validate", SITE_RUN_ID],
        &["report", SITE_RUN_ID],
        &["resume", SITE_RUN_ID],
    ];
    let mut failed = 0;
    for command in commands {
        for (error, words, call) in [("EIO", BROKEN, "read"), ("EMFILE", TOO_MANY, "open")] {
            let stride = if is_campaign() { 1 } else { 4 };
            for number in (1_u64..).step_by(stride) {
                let plan = format!("fail {error} {number} {call}");
                let fault = Fault::plan(&plan);
                let said = site.call_with_fault(&fault, command);
                let Some(hit) = hit(&fault) else { break };
                let what = format!("{command:?}: {plan}: {}\n{}", hit.path, said.stderr);
                assert!(!what.contains("panicked") && !what.contains("has a bug"), "{what}");
                assert!(matches!(said.code, Some(0..=5)), "{:?}: {what}", said.code);
                if said.code != Some(0) {
                    assert!(what.contains("error: ") && what.contains(words), "{what}");
                    failed += 1;
                }
            }
        }
    }
    assert!(failed > 10, "only {failed} calls failed");
    site.must_be_sound();
    site.must_equal(&whole());
}

/// Too few open files, by the system's real limit.
#[test]
fn too_few_files_may_be_open() {
    let whole = whole();
    let repo = TempRepo::with(&[]).expect("a repository");
    let limited = repo.beside("limited");
    let text = format!("#!/bin/sh\nulimit -n ${{FILES:-64}}\nexec '{BINARY}' \"$@\"\n");
    script(&limited, &text).expect("a script");
    let mut failed = 0;
    for files in (4..=20).step_by(if is_campaign() { 1 } else { 4 }) {
        let site = Site::new(limited.to_str().expect("a path in UTF-8"));
        let mut variables = site.repo.variables();
        variables.push(("FILES".into(), files.to_string().into()));
        let said = site.call_with(site.repo.path(), variables, &RUN_WORDS);
        check_said(&said, TOO_MANY, &format!("{files} files: {}", said.stderr));
        failed += u32::from(said.code != Some(0));
        let _ = site.call(&RUN_WORDS).exits(0);
        check_left(&site, &format!("{files} files"));
        site.must_be_sound();
        site.must_equal(&whole);
    }
    assert!(failed > 0, "four open files are enough");
}

#[test]
fn a_full_standard_output_is_told() {
    let site = whole();
    for words in
        [&["status", SITE_RUN_ID][..], &["list"], &["--json", "log", SITE_RUN_ID], &["schema"]]
    {
        let full = fs::File::options().write(true).open("/dev/full").expect("a full device");
        let said = site.call_into(full, words).exits(1);
        let said = said.says(["error: cannot write to standard output", FULL, "the disk is full"]);
        assert!(!said.stderr.contains("panicked"), "{}", said.stderr);
    }
}

#[test]
fn a_file_in_the_place_of_the_folder_is_told() {
    let site = Site::new(BINARY);
    site.repo.write(".treebeam", "a file\n").expect("a file");
    let words = ["error: cannot create", ".treebeam", "a file where a folder should be"];
    let _ = site.call(&RUN_WORDS).exits(1).says(words);
    fs::remove_file(site.repo.path().join(".treebeam")).expect("to remove it");
    let _ = site.call(&RUN_WORDS).exits(0);
    site.must_be_sound();
}
