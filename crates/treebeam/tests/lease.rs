//! One runner at a time, with real processes: living, stopped, killed, late, and several at once.

#![cfg(test)]

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};
use treebeam_testkit::program::{Call, SITE_RUN_ID, Signal, Site};

const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");
const SIZE: [&str; 4] =
    ["--ideas-per-node=6", "--max-depth=2", "--sweep-config-limit=10", "--quiet"];
const DAY: i64 = 86_400;

/// Returns the part of a manifest that must be the same, however often a run was taken over.
fn lasting(site: &Site) -> Value {
    let mut manifest = site.manifest();
    let document = manifest.as_object_mut().expect("an object");
    for name in ["history", "checksum"] {
        assert!(document.remove(name).is_some(), "no `{name}`");
    }
    manifest
}

fn uninterrupted() -> Value {
    let site = Site::new(BINARY);
    site.run(&SIZE);
    assert!(takeovers(&site).is_empty());
    lasting(&site)
}

/// Returns the reason of each takeover.
fn takeovers(site: &Site) -> Vec<String> {
    let events = site.events().into_iter().filter(|event| event["type"] == "lock_takeover");
    let why: Vec<_> = events.map(|event| event["because"].as_str().expect("why").into()).collect();
    if let Ok(text) = fs::read_to_string(site.path("manifest.json")) {
        let manifest: Value = serde_json::from_str(&text).expect("a manifest");
        let counted = manifest["history"]["lock_takeovers"].as_u64().expect("a number");
        assert!(usize::try_from(counted).expect("a number") <= why.len());
    }
    why
}

#[track_caller]
fn await_that(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_mins(1), "never: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// Starts a run, and waits for its first events.
fn under_way(site: &Site) -> Call {
    let running =
        site.begin(&[&["run", "--dry-run", "--run-id", SITE_RUN_ID][..], &SIZE[..]].concat());
    let journal = site.path("journal.jsonl");
    await_that("a run with ideas", || {
        fs::read_to_string(&journal).is_ok_and(|text| text.contains("\"type\":\"implemented\""))
    });
    running
}

/// Makes a run whose process was killed.
fn killed(site: &Site) {
    drop(under_way(site));
    assert!(site.path("run.lock.json").is_file());
}

fn edit_note(site: &Site, changes: &Value) {
    let mut note: Value = serde_json::from_str(&site.text("run.lock.json")).expect("a note");
    for (name, value) in changes.as_object().expect("an object") {
        note[name] = value.clone();
    }
    fs::write(site.path("run.lock.json"), note.to_string()).expect("a note");
}

fn ago(seconds: i64) -> Value {
    let time = Timestamp::now().checked_sub(SignedDuration::from_secs(seconds)).expect("a time");
    time.to_string().into()
}

fn elsewhere(seconds: i64) -> Value {
    json!({"hostname": "box", "boot_id": "another", "last_heartbeat_at": ago(seconds)})
}

#[cfg(unix)]
#[test]
fn a_living_owner_keeps_its_run_and_so_does_a_stopped_one() {
    let site = Site::new(BINARY);
    let owner = under_way(&site);
    let name = format!("process {} on `", owner.pid());
    owner.signal(Signal::Stop);
    let journal = site.text("journal.jsonl");
    for heartbeat in [-DAY, 0, DAY] {
        edit_note(&site, &json!({"last_heartbeat_at": ago(heartbeat)}));
        for flags in [&[][..], &["--force"], &["--force", "--lock-stale-seconds=1"]] {
            let said = site.call(&[&["resume", SITE_RUN_ID][..], flags].concat()).exits(3);
            let _ = said.says(["is locked by", &name, " since 20", ", last heartbeat 20"]).says([
                "hint: wait for that process, or stop it",
                "`--force` takes no run from a living one",
            ]);
        }
    }
    let run = ["run", "--dry-run", "--run-id", SITE_RUN_ID, "--force"];
    let _ = site.call(&run).exits(3).says([&name]);
    let status = site.call(&["status", SITE_RUN_ID]).exits(0).stdout;
    let (_, who) = status.split_once("\nrunning").expect("who runs it");
    let who = who.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(who.contains(&name) && who.contains("last heartbeat 20"), "{who}");
    assert_eq!(site.text("journal.jsonl"), journal, "nobody wrote");
    owner.signal(Signal::Continue);
    let _ = owner.wait().exits(0);
    assert!(!site.path("run.lock.json").exists(), "it left cleanly");
    site.must_be_sound();
    assert_eq!(takeovers(&site), [""; 0]);
    assert_eq!(lasting(&site), uninterrupted());
}

#[test]
fn a_dead_owner_is_replaced_at_once_and_the_tree_is_the_same() {
    let whole = uninterrupted();
    let proc = cfg!(target_os = "linux");
    for change in [
        json!({}),
        json!({"last_heartbeat_at": ago(-DAY)}),
        json!({"last_heartbeat_at": ago(DAY)}),
        // A process id that is in use again: that of this very process.
        if proc { json!({"pid": std::process::id()}) } else { json!({}) },
    ] {
        let site = Site::new(BINARY);
        killed(&site);
        edit_note(&site, &change);
        let said = site.resume(&["--quiet"]);
        let _ = said.says(["note: the run was taken over from process", ", which is dead"]);
        assert_eq!(takeovers(&site), ["owner_dead"], "{change}");
        assert_eq!(lasting(&site), whole, "{change}");
    }
}

#[test]
fn an_owner_elsewhere_goes_by_its_heartbeat_or_by_force() {
    let whole = uninterrupted();
    for (heartbeat, flags, why) in [
        (DAY, &[][..], "heartbeat_stale"),
        (30, &["--lock-stale-seconds=20"], "heartbeat_stale"),
        (0, &["--force"], "forced"),
        (-DAY, &["--force"], "forced"),
    ] {
        let site = Site::new(BINARY);
        killed(&site);
        if heartbeat < 600 {
            edit_note(&site, &elsewhere(heartbeat));
            let journal = site.text("journal.jsonl");
            let said = site.call(&["resume", SITE_RUN_ID]).exits(3);
            let said = said.says(["on `box` since 20", "hint: stop it there", "`--force`"]);
            assert_eq!(said.stderr.contains("(in the future: the clocks differ"), heartbeat < 0);
            assert_eq!(site.text("journal.jsonl"), journal);
        }
        edit_note(&site, &elsewhere(heartbeat));
        let said = site.call(&[&["resume", SITE_RUN_ID, "--json"][..], flags].concat()).exits(0);
        let first = said.json_lines().remove(0);
        assert_eq!((&first["type"], &first["because"]), (&json!("lock_takeover"), &json!(why)));
        assert_eq!(first["from"]["hostname"], "box");
        site.must_be_sound();
        assert_eq!(takeovers(&site), [why]);
        assert_eq!(lasting(&site), whole);
    }
}

#[cfg(unix)]
#[test]
fn one_that_lost_its_run_stops_and_changes_nothing() {
    let site = Site::new(BINARY);
    let late = under_way(&site);
    late.signal(Signal::Stop);
    // As if the process ran on another machine, whose locks are not visible here, and had been
    // silent for a day.
    edit_note(&site, &elsewhere(DAY));
    fs::remove_file(site.path("run.lock")).expect("to remove the lock");
    let said = site.resume(&["--quiet"]);
    let _ = said.says(["taken over from process", "on `box`, which was silent for too long"]);
    let record = |site: &Site| {
        let reports = ["TREE_SUMMARY.md", "TREE_GRAPH.md", "results.tsv"];
        (
            site.text("journal.jsonl"),
            site.text("manifest.json"),
            reports.map(|name| site.text(name)),
            ["artifacts", "node_ideas", "eval"].map(|folder| site.accepted(folder)),
            site.refs(),
        )
    };
    let before = record(&site);
    late.signal(Signal::Continue);
    let _ = late.wait().exits(3).says(["was taken over by", "this process writes nothing more"]);
    assert_eq!(record(&site), before);
    site.must_be_sound();
    assert_eq!(takeovers(&site), ["heartbeat_stale"]);
    assert_eq!(lasting(&site), uninterrupted());
}

#[test]
fn of_four_processes_that_want_a_left_run_one_takes_it_over_each_time() {
    const ROUNDS: usize = 25;
    let site = Site::new(BINARY);
    killed(&site);
    let note = site.text("run.lock.json");
    site.resume(&["--quiet"]);
    for round in 0..ROUNDS {
        fs::write(site.path("run.lock.json"), &note).expect("a note");
        let calls: Vec<_> =
            (0..4).map(|_| site.begin(&["resume", SITE_RUN_ID, "--quiet"])).collect();
        let ended: Vec<_> = calls.into_iter().map(Call::wait).collect();
        let codes: Vec<_> = ended.iter().map(|said| said.code).collect();
        assert!(codes.contains(&Some(0)), "round {round}: {ended:?}");
        assert!(codes.iter().all(|code| matches!(code, Some(0 | 3))), "round {round}: {ended:?}");
        let winners = ended.iter().filter(|said| said.stderr.contains("taken over")).count();
        assert_eq!(winners, 1, "round {round}: {ended:?}");
        assert_eq!(takeovers(&site).len(), round + 2);
        assert!(!Path::new(&site.path("run.lock.json")).exists());
    }
    site.must_be_sound();
}
