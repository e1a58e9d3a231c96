//! `treebeam watch` on a terminal: its screens, its keys, and that the terminal is restored. The
//! terminal is a pseudo-terminal with a small emulator, `terminal.py`, and again tmux, which must
//! show the same: `cargo xtask test` installs it, or prints why it cannot.

#![cfg(target_os = "linux")]
#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "the tests start terminals")]

mod emulated;
mod ends;
mod hostile;
mod tmux;

use serde_json::{Value, json};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;
use treebeam_testkit::program::Site;

const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");

/// The end of the line of keys, which is drawn last.
const DRAWN: &str = "? help  q quit";

/// Columns and rows of a terminal.
type Size = (u32, u32);

const SMALL: Size = (80, 24);
const LARGE: Size = (200, 50);

/// Makes a finished run, one of its evals with a log of 120 lines.
fn site() -> Site {
    // In memory if possible, to avoid waiting for a disk.
    let memory = Path::new("/dev/shm");
    let site = match tempfile::tempdir_in(memory) {
        Ok(_) => Site::new_in(memory, BINARY),
        Err(_) => Site::new(BINARY),
    };
    site.run(&["--quiet", "--ideas-per-node=5", "--beam-width=2", "--max-depth=2"]);
    let mut log = String::new();
    for line in 1..=120 {
        writeln!(log, "line {line:03} of a sweep").expect("a string");
    }
    fs::write(site.path("eval/0001/experiment/sweep.log"), log).expect("a log");
    site
}

fn variables(site: &Site) -> Vec<(OsString, OsString)> {
    let mut variables = site.repo.variables();
    variables.push(("TERM".into(), "xterm-256color".into()));
    variables
}

/// Watches the run on a terminal of this size, executes these steps, and returns the observations.
#[track_caller]
fn watch(site: &Site, screen: Size, steps: &[Value]) -> Value {
    on_terminal(site, screen, steps, &[BINARY, "watch"])
}

/// Runs a program on a terminal of this size, executes these steps, and returns the observations.
#[track_caller]
fn on_terminal(site: &Site, (columns, rows): Size, steps: &[Value], program: &[&str]) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/watch/terminal.py");
    let mut command = Command::new("python3");
    command.arg(script).args([columns.to_string(), rows.to_string()]);
    command.arg(json!(steps).to_string()).args(program);
    command.current_dir(site.repo.path()).env_clear().envs(variables(site));
    let said = command.output().expect("python3");
    let stderr = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success(), "{stderr}");
    let seen: Value = serde_json::from_slice(&said.stdout).expect("a document");
    assert_eq!(seen["unknown"], json!([]), "more is said to the terminal than it has to know");
    seen
}

/// Returns the requested screens.
fn shots(seen: &Value) -> Vec<String> {
    let shots = seen["shots"].as_array().expect("screens");
    shots.iter().map(|shot| shot.as_str().expect("a screen").to_owned()).collect()
}

/// A way through all kinds of screens: keys, and the end of what is drawn then.
fn tour((_, rows): Size) -> Vec<(&'static str, String)> {
    let seen = rows - 2;
    vec![
        ("", DRAWN.to_owned()),
        ("j\r", "l log  Esc back  ? help  q quit  1–".to_owned()),
        ("l", "following  ↑ scroll  Tab next file  Esc back  q quit  ".to_owned()),
        ("g", format!("  1–{seen} of 120")),
        (" ", format!("  {seen}–{} of 120", 2 * seen - 1)),
        ("\t", "following  ↑ scroll  Tab next file  Esc back  q quit  1–".to_owned()),
        ("\u{1b}", "l log  Esc back  ? help  q quit  1–".to_owned()),
        ("h", "/ filter  b best  ? help  q quit".to_owned()),
        ("/failed", "filter: failed_  Enter keeps it, Esc shows all".to_owned()),
        ("\r?", "Esc back  q quit  1–13 of 13".to_owned()),
    ]
}

/// Returns the emulator's screens on the tour.
fn toured(site: &Site, screen: Size) -> Value {
    let mut steps = Vec::new();
    for (keys, drawn) in tour(screen) {
        steps.extend([json!(["keys", keys]), json!(["drawn", drawn]), json!(["shot"])]);
    }
    steps.extend([json!(["keys", "q"]), json!(["end"])]);
    watch(site, screen, &steps)
}

/// Returns screens without what differs between runs: the times of events, and the end of cleanup,
/// which runs in parallel to the evals.
fn alike(shots: &[String]) -> String {
    let is_event = |line: &&str| {
        let time = line.strip_prefix("  ").and_then(|line| line.get(..8));
        time.is_some_and(|time| time.as_bytes()[2] == b':' && time.as_bytes()[5] == b':')
    };
    let kept = |line: &&str| !is_event(line) || line.contains("stopped:");
    let text = shots.join("\n=====\n");
    let lines = text.lines().filter(kept).map(|line| {
        let event = is_event(&line).then(|| format!("  hh:mm:ss{}", &line[10..]));
        event.unwrap_or_else(|| line.to_owned())
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Asserts both terminals' screens against the same snapshot.
#[track_caller]
fn must_be_known((columns, rows): Size, shots: &[String]) {
    insta::with_settings!({
        omit_expression => true,
        prepend_module_to_snapshot => false,
        filters => [
            // The path of the repository, and the length of a page, which depends on it.
            (r"(below +)/.*", "${1}[REPOSITORY]"),
            (r"1–\d+ of \d\d\n", "[LINES]\n"),
        ],
    }, { insta::assert_snapshot!(format!("watch_{columns}x{rows}"), alike(shots)); });
}
