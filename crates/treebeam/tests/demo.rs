//! `treebeam demo` with the real program, git and python3, for a user with an empty home folder and
//! no identity: it ends the same each time, killed or not, with a better program, also on the
//! held-out days.

#![cfg(test)]
#![cfg(unix)]

use serde_json::Value;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, SystemTime};
use treebeam_testkit::program::{Call, Said, Signal, Site};
use treebeam_testkit::repo::{TempRepo, script};

const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");
/// A demo takes some seconds; on a busy machine, minutes.
const PATIENCE: Duration = Duration::from_mins(15);
/// Lower bound of a demo's events.
const EVENTS: usize = 150;

/// A folder that is in no repository.
fn site() -> Site {
    Site::from_repo(TempRepo::folder("desk").expect("a folder"), BINARY)
}

fn demo(site: &Site, arguments: &[&str]) -> Said {
    site.begin(&[&["demo"], arguments].concat()).end(PATIENCE)
}

fn journal(folder: &Path) -> PathBuf {
    folder.join(".treebeam/runs/demo/journal.jsonl")
}

/// Kills the call when this many events are on record.
fn kill_after(mut call: Call, folder: &Path, events: usize) {
    let recorded = || fs::read_to_string(journal(folder)).unwrap_or_default().lines().count();
    while call.goes_on() && recorded() < events {
        thread::sleep(Duration::from_millis(2));
    }
    if call.goes_on() {
        call.signal(Signal::Kill);
    }
    let code = call.end(PATIENCE).code;
    assert!(matches!(code, None | Some(0)), "killed, or faster than that: {code:?}");
}

/// Returns the result of a demo without times: nodes with their trees and gains.
fn tree(site: &Site, folder: &Path) -> Vec<String> {
    let best = site.call_in(folder, &["best", "--json"]).exits(0).json_lines().remove(0);
    let manifest = fs::read_to_string(folder.join(".treebeam/runs/demo/manifest.json"));
    let manifest: Value = serde_json::from_str(&manifest.expect("a manifest")).expect("JSON");
    let mut lines = vec![best["best"].to_string()];
    let path = best["path"].as_array().expect("a path");
    lines.extend(path.iter().map(|step| format!("{} {}", step["eval"], step["root_relative"])));
    for (id, node) in manifest["nodes"].as_object().expect("nodes") {
        let name = format!("{}^{{tree}}", node["commit"].as_str().expect("a commit"));
        let tree = site.repo.git_in(folder, &["rev-parse", &name]).expect("a tree");
        lines.push(format!("{id} {} {tree} {}", node["depth"], node["idea_chain"]));
    }
    for (id, eval) in manifest["evaluations"].as_object().expect("evals") {
        lines.push(format!("{id} {} {}", eval["status"], eval["decision"]["promotion_reason"]));
    }
    lines
}

/// Asserts that the search is deep, and its result better on the held-out days.
fn is_good(site: &Site, folder: &Path) {
    let _ = site.call_in(folder, &["validate"]).exits(0).says(["run demo is sound"]);
    let best = site.call_in(folder, &["best", "--json"]).exits(0).json_lines().remove(0);
    let deep = best["path"].as_array().is_some_and(|path| path.len() > 2);
    assert!(deep && best["stop_reason"] == "max_depth_reached", "{best}");
    let listed = site.call_in(folder, &["list", "--json"]).exits(0).json_lines().remove(0);
    assert_eq!(listed["runs"][0]["cost_usd"], 0.0, "nobody is paid: {listed}");
    let score = ["score", "holdout-root.csv", "holdout-best.csv", "--json"];
    let score = site.call_in(folder, &score).exits(0).json_lines().remove(0);
    assert!(score["primary_delta"].as_f64().is_some_and(|delta| delta > 0.0), "{score}");
    assert_eq!(score["baseline_rows_used"], 25);
    let report = || fs::read_to_string(folder.join(".treebeam/runs/demo/report.html"));
    let shows_holdout = || report().expect("a report").contains("What it never saw");
    assert!(shows_holdout(), "as the demo wrote it");
    for again in [["report", "demo"], ["resume", "demo"]] {
        let _ = site.call_in(folder, &again).exits(0);
        assert!(shows_holdout(), "{again:?}");
    }
    let status = site.repo.git_in(folder, &["status", "--porcelain"]).expect("git");
    assert_eq!(status, "", "the checkout is as it was");
}

#[test]
fn killed_or_not_it_ends_the_same_with_a_better_program() {
    let (whole, killed) = (site(), site());
    let (one, two) = (whole.repo.path().join("bikes"), killed.repo.path().join("treebeam-demo-2"));
    fs::write(killed.repo.path().join("treebeam-demo"), "mine").expect("a file");
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a time");
    let events = usize::try_from(now.subsec_micros()).expect("a number") % EVENTS;
    println!("killed after {events} events");
    let other = thread::scope(|scope| {
        let first = scope.spawn(|| demo(&whole, &["bikes", "--json"]));
        let call = killed.begin(&["demo"]);
        call.await_said("made `treebeam-demo-2`");
        kill_after(call, &two, events);
        let again = demo(&killed, &["treebeam-demo-2"]).exits(0);
        let said = first.join().expect("the first demo").exits(0);
        fits_and_ends_well(&whole, &said.json_lines());
        again
    });
    let mine = fs::read_to_string(killed.repo.path().join("treebeam-demo"));
    assert_eq!(mine.expect("a file"), "mine", "nothing is overwritten");
    shows_all(&other);
    is_good(&whole, &one);
    is_good(&killed, &two);
    assert_eq!(tree(&whole, &one), tree(&killed, &two));
    let head = |site: &Site, folder: &Path| site.repo.git_in(folder, &["rev-parse", "HEAD"]);
    assert_eq!(head(&whole, &one).expect("HEAD"), head(&killed, &two).expect("HEAD"));
    let refused = demo(&whole, &["bikes/.git"]).exits(2).says(["is there already"]);
    assert_eq!(refused.stdout, "");
}

/// Asserts that the JSON output fits its schema and ends well.
fn fits_and_ends_well(site: &Site, lines: &[Value]) {
    let schema = |name: &str| -> Value {
        let text = site.call(&["schema", name]).exits(0).stdout;
        serde_json::from_str(&text).expect("a schema")
    };
    let (end, events) = lines.split_last().expect("lines");
    jsonschema::validate(&schema("end"), end).expect("the end fits its schema");
    let mut event = schema("journal");
    event["$ref"] = "#/$defs/event".into();
    for name in ["type", "required", "properties"] {
        event.as_object_mut().expect("an object").remove(name);
    }
    let event = jsonschema::validator_for(&event).expect("a schema");
    for line in events {
        assert!(event.is_valid(line), "{line}");
    }
    assert_eq!(end["type"], "end");
    assert!(end["directory"].as_str().is_some_and(|path| path.ends_with("/bikes")), "{end}");
    assert!(end["holdout"]["primary_delta"].as_f64().is_some_and(|delta| delta > 0.0), "{end}");
}

/// Asserts that the text output shows the result.
fn shows_all(said: &Said) {
    for text in [
        "found a better program",
        "path        n0000",
        "diff --git a/forecast.py b/forecast.py",
        "error_pct",
        "hold-out",
        "report.html",
        "treebeam -C treebeam-demo-2 diff demo n0",
        "treebeam -C treebeam-demo-2 export demo --branch NAME\n",
        "treebeam init\n",
        "treebeam doctor && treebeam run\n",
        "export PATH=",
    ] {
        assert!(said.stdout.contains(text), "no {text:?} in: {}", said.stdout);
    }
}

#[test]
fn ctrl_c_leaves_a_demo_that_goes_on() {
    let site = site();
    let call = site.begin(&["demo"]);
    call.await_said("root measured");
    call.signal(Signal::Interrupt);
    let said = call.end(PATIENCE).exits(130);
    let _ = said.says(["hint: `treebeam demo treebeam-demo` goes on from here"]);
    let call = site.begin(&["demo"]);
    call.await_said("made `treebeam-demo-2`");
    call.signal(Signal::Interrupt);
    let said = call.end(PATIENCE).exits(130);
    let _ = said.says(["`treebeam-demo` is not at its end: `treebeam demo treebeam-demo` goes on"]);
}

/// Returns an environment with these programs alone.
fn only(site: &Site, programs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    let folder = site.repo.beside("programs");
    fs::create_dir_all(&folder).expect("a folder");
    for (name, text) in programs {
        script(&folder.join(name), text).expect("a script");
    }
    let others = site.repo.variables().into_iter().filter(|(name, _)| name != "PATH");
    others.chain([("PATH".into(), folder.into_os_string())]).collect()
}

/// Returns the real path of Python: on `PATH` there may be a script that needs more of `PATH`.
#[expect(clippy::disallowed_methods, reason = "a test asks another program")]
fn python() -> String {
    let asked = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
    String::from_utf8(asked.expect("python3").stdout).expect("a path").trim().to_owned()
}

#[test]
fn what_is_lacking_is_said_and_nothing_is_made() {
    let check = |programs: &[(&str, &str)], texts: [&str; 2]| {
        let site = site();
        let said = site.call_with(site.repo.path(), only(&site, programs), &["demo", "b"]);
        let _ = said.exits(4).says(texts);
        let left = fs::read_dir(site.repo.path()).expect("a folder").count();
        assert_eq!(left, 0, "{texts:?}");
    };
    check(&[], ["`python3` was not found on `PATH`", "install Python 3.8"]);
    let old = "#!/bin/sh\nexit 1\n";
    check(&[("python3", old)], ["does not work, or is older than 3.8", "install Python 3.8"]);
    let python = format!("#!/bin/sh\nexec '{}' \"$@\"\n", python());
    check(&[("python3", &python)], ["git was not found on `PATH`", "install git"]);
}
