//! `treebeam watch` on a terminal: what is seen, what keys do, and that the terminal is left as it was found. The terminal is
//! a pseudo-terminal with a small emulator, `watch/terminal.py`; where tmux is installed, it must show the same.

#![cfg(target_os = "linux")]
#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "the tests start terminals")]

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use treebeam_testkit::program::Site;

const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");

/// The end of the line of keys, which is drawn last.
const DRAWN: &str = "? help  q quit";

/// A run that is over.
fn site() -> Site {
    let site = Site::new(BINARY);
    site.run(&["--quiet", "--ideas-per-node=5", "--beam-width=2", "--max-depth=2"]);
    site
}

fn variables(site: &Site) -> Vec<(OsString, OsString)> {
    let mut variables = site.repo.variables();
    variables.push(("TERM".into(), "xterm-256color".into()));
    variables
}

/// Watches the run on a terminal of this size, does these steps, and gives what was seen.
#[track_caller]
fn watch(site: &Site, (columns, rows): (u32, u32), steps: &[Value]) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/watch/terminal.py");
    let mut command = Command::new("python3");
    command.arg(script).args([columns.to_string(), rows.to_string()]);
    command.arg(json!(steps).to_string()).args([BINARY, "watch"]);
    command.current_dir(site.repo.path()).env_clear().envs(variables(site));
    let said = command.output().expect("python3");
    let stderr = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success(), "{stderr}");
    let seen: Value = serde_json::from_slice(&said.stdout).expect("a document");
    assert_eq!(seen["unknown"], json!([]), "more is said to the terminal than it has to know");
    seen
}

/// The terminal is as it was before.
#[track_caller]
fn left(seen: &Value, exit: i32) {
    assert_eq!(seen["exit"], exit, "{seen}");
    assert_eq!(seen["settings_restored"], true, "raw mode is left");
    assert_eq!(seen["modes_restored"], true, "cursor, wrapping and the first screen are back");
    assert_eq!(seen["after"].as_str().map(str::trim), Some(""), "nothing was printed");
}

fn shots(seen: &Value) -> String {
    let shots = seen["shots"].as_array().expect("screens");
    let shots: Vec<_> = shots.iter().map(|shot| shot.as_str().expect("a screen")).collect();
    // Cleanup goes on beside the evals: when its lines come is nobody's promise.
    let kept = |line: &&str| !line.starts_with("  hh:mm:ss") || line.contains("stopped:");
    let text = shots.join("\n=====\n");
    let time = |line: &str| match line.get(2..10) {
        Some(time) if time.as_bytes()[2] == b':' && time.as_bytes()[5] == b':' => {
            format!("  hh:mm:ss{}", &line[10..])
        }
        _ => line.to_owned(),
    };
    let text: Vec<String> = text.lines().map(time).collect();
    text.iter().map(String::as_str).filter(kept).collect::<Vec<_>>().join("\n")
}

macro_rules! snapshot {
    ($name:literal, $text:expr) => {
        insta::with_settings!({
            omit_expression => true,
            prepend_module_to_snapshot => false,
            // How long a page is depends on where the repository lies.
            filters => [(r"\d+–\d+ of \d+", "[LINES]")],
        }, { insta::assert_snapshot!($name, $text); })
    };
}

#[test]
fn what_is_seen_and_what_keys_do() {
    let site = site();
    let before = everything(site.repo.path());
    let small = watch(
        &site,
        (80, 24),
        &[
            json!(["await", DRAWN]),
            json!(["shot"]),
            json!(["keys", "jj\r"]),
            json!(["await", "l log  Esc back"]),
            json!(["shot"]),
            json!(["keys", "l"]),
            json!(["await", "Tab next file"]),
            json!(["shot"]),
            json!(["keys", "\u{1b}"]),
            json!(["await", "l log  Esc back"]),
            json!(["keys", "h/failed"]),
            json!(["await", "filter: failed_"]),
            json!(["shot"]),
            json!(["keys", "\r?"]),
            json!(["await", "keys of `treebeam watch`"]),
            json!(["keys", "q"]),
            json!(["end"]),
        ],
    );
    left(&small, 0);
    snapshot!("watch_80x24", shots(&small));
    let steps = [json!(["await", DRAWN]), json!(["shot"]), json!(["keys", "q"]), json!(["end"])];
    let large = watch(&site, (200, 50), &steps);
    left(&large, 0);
    snapshot!("watch_200x50", shots(&large));
    assert!(before == everything(site.repo.path()), "nothing is written");
}

/// All files below a folder, with their bytes and times.
fn everything(folder: &Path) -> BTreeMap<PathBuf, (Vec<u8>, std::time::SystemTime)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let metadata = path.symlink_metadata().expect("a file");
            let bytes =
                if metadata.is_file() { fs::read(&path).expect("a file") } else { Vec::new() };
            if metadata.is_dir() {
                folders.push(path.clone());
            }
            found.insert(path, (bytes, metadata.modified().expect("a time")));
        }
    }
    found
}

#[test]
fn a_terminal_that_changes_its_size_is_filled() {
    let site = site();
    let seen = watch(
        &site,
        (80, 24),
        &[
            json!(["await", DRAWN]),
            json!(["resize", 120, 30]),
            json!(["await", DRAWN]),
            json!(["shot"]),
            json!(["resize", 30, 8]),
            json!(["await", "at least 40×10, please"]),
            json!(["resize", 80, 24]),
            json!(["await", DRAWN]),
            json!(["shot"]),
            json!(["keys", "q"]),
            json!(["end"]),
        ],
    );
    left(&seen, 0);
    let rows = |shot: &Value| shot.as_str().expect("a screen").lines().count();
    assert_eq!((rows(&seen["shots"][0]), rows(&seen["shots"][1])), (30, 24));
    let rule =
        |shot: &Value| shot.as_str().expect("a screen").lines().nth(4).map(|l| l.chars().count());
    assert_eq!((rule(&seen["shots"][0]), rule(&seen["shots"][1])), (Some(120), Some(80)));
}

#[test]
fn however_it_ends_the_terminal_is_left_as_it_was() {
    let site = site();
    let ends = [
        (json!(["keys", "q"]), 0),
        (json!(["keys", "\u{3}"]), 130),
        (json!(["signal", "SIGTERM"]), 130),
        (json!(["signal", "SIGINT"]), 130),
        (json!(["signal", "SIGHUP"]), 130),
    ];
    for (end, exit) in ends {
        let seen = watch(&site, (80, 24), &[json!(["await", DRAWN]), end, json!(["end"])]);
        left(&seen, exit);
    }
}

/// Cuts a run to its first lines, as if it were still going on.
fn cut(site: &Site, lines: usize) -> String {
    let whole = site.text("journal.jsonl");
    let at: usize = whole.split_inclusive('\n').take(lines).map(str::len).sum();
    for name in ["manifest.json", "manifest.json.prev"] {
        drop(fs::remove_file(site.path(name)));
    }
    fs::write(site.path("journal.jsonl"), &whole[..at]).expect("half a journal");
    whole[at..].to_owned()
}

#[test]
fn a_run_is_followed_while_it_goes_on() {
    let site = site();
    let rest = cut(&site, 20);
    let lock = File::open(site.path("run.lock")).expect("the lock");
    lock.lock().expect("to hold the lock");
    let journal = site.path("journal.jsonl");
    let closed = rest.rfind("\"type\":\"depth_closed\"").expect("the end of depth 1");
    let (first, last) = rest.split_at(rest[..closed].rfind('\n').expect("a line") + 1);
    let seen = watch(
        &site,
        (80, 24),
        &[
            json!(["await", "running: "]),
            json!(["append", journal, "no line of a journal\n"]),
            json!(["await", "cannot be followed: "]),
            json!(["keys", "q"]),
            json!(["end"]),
        ],
    );
    left(&seen, 0);
    let healed = site.text("journal.jsonl").replace("no line of a journal\n", "");
    fs::write(&journal, healed).expect("a journal");
    let seen = watch(
        &site,
        (80, 24),
        &[
            json!(["await", "running: "]),
            json!(["append", journal, first]),
            json!(["await", "trying ideas at depth 1"]),
            json!(["append", journal, last]),
            json!(["await", "stopped: all depths are done"]),
            json!(["keys", "?"]),
            json!(["await", "keys of"]),
            json!(["keys", "q"]),
            json!(["end"]),
        ],
    );
    left(&seen, 0);
}

#[test]
fn the_log_of_a_running_sweep_is_followed() {
    let site = site();
    let _rest = cut(&site, 4);
    let log = site.path("eval/root/s1/sweep.log");
    fs::create_dir_all(log.parent().expect("a folder")).expect("a folder");
    fs::write(&log, "first line\n").expect("a log");
    let hostile = "\u{1b}[2J\u{1b}[31mred\u{1b}]0;title\u{7} \u{202e}end\n";
    let seen = watch(
        &site,
        (80, 24),
        &[
            json!(["await", DRAWN]),
            json!(["keys", "l"]),
            json!(["await", "first line"]),
            json!(["append", log, hostile]),
            json!(["await", "red end"]),
            json!(["append", log, "line\n".repeat(100) + "the last one\n"]),
            json!(["await", "the last one"]),
            json!(["keys", "g"]),
            json!(["await", "first line"]),
            json!(["keys", "\u{3}"]),
            json!(["end"]),
        ],
    );
    left(&seen, 130);
}

#[test]
fn without_a_terminal_it_says_what_needs_none() {
    let site = Site::new(BINARY);
    let said = site.call(&["watch"]).exits(4).says(["needs a terminal", "treebeam log --follow"]);
    assert_eq!(said.stdout, "");
    let said = site.call(&["watch", "--json"]).exits(2).says(["treebeam status --json"]);
    assert_eq!(said.stdout, "");
}

// ---- tmux

/// A tmux of our own.
struct Tmux {
    folder: tempfile::TempDir,
    variables: Vec<(OsString, OsString)>,
}

impl Tmux {
    fn call(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("tmux");
        command.args(["-L", "watched", "-f", "/dev/null"]).args(arguments);
        command.env_clear().envs(self.variables.iter().cloned());
        command.env("TMUX_TMPDIR", self.folder.path());
        let said = command.output().expect("tmux");
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        String::from_utf8(said.stdout).expect("a screen in UTF-8")
    }

    /// The screen, once it has this text.
    fn screen(&self, text: &str) -> String {
        let begun = Instant::now();
        loop {
            let screen = self.call(&["capture-pane", "-p", "-t", "watched"]);
            if screen.contains(text) {
                return screen;
            }
            assert!(begun.elapsed() < Duration::from_mins(2), "no {text:?} in:\n{screen}");
            thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let socket = Command::new("tmux")
            .args(["-L", "watched", "kill-server"])
            .env("TMUX_TMPDIR", self.folder.path())
            .output();
        drop(socket);
    }
}

#[test]
fn tmux_shows_the_same() {
    if Command::new("tmux").arg("-V").output().is_err() {
        // Not by a macro, whose words would be kept from whoever runs the tests.
        let what = "NOT TESTED: tmux is not installed; the screens were seen by the emulator alone";
        writeln!(std::io::stderr(), "{what}").expect("standard error");
        return;
    }
    let site = site();
    let mut variables = variables(&site);
    variables.extend([("LC_ALL".into(), "C.UTF-8".into()), ("SHELL".into(), "/bin/sh".into())]);
    let folder = site.repo.path().display().to_string();
    let command = format!("'{BINARY}' -C '{folder}' watch; echo left with $?; sleep 1000");
    for (columns, rows) in [(80, 24), (200, 50)] {
        // Each has a server of its own: one that is about to end would be in the next one's way.
        let folder = tempfile::tempdir().expect("a folder");
        let tmux = Tmux { folder, variables: variables.clone() };
        let (x, y) = (columns.to_string(), rows.to_string());
        tmux.call(&["new-session", "-d", "-s", "watched", "-x", &x, "-y", &y, &command]);
        // A session has a line of its own, unless it is told otherwise.
        tmux.call(&["set-option", "-t", "watched", "status", "off"]);
        tmux.call(&["resize-window", "-t", "watched", "-x", &x, "-y", &y]);
        let steps =
            [json!(["await", DRAWN]), json!(["shot"]), json!(["keys", "q"]), json!(["end"])];
        let emulated = watch(&site, (columns, rows), &steps);
        let emulated = emulated["shots"][0].as_str().expect("a screen").trim_end().to_owned();
        let begun = Instant::now();
        while tmux.screen(DRAWN).trim_end() != emulated {
            let long = begun.elapsed() > Duration::from_mins(1);
            assert!(!long, "{}\n=====\n{emulated}", tmux.screen(DRAWN));
            thread::sleep(Duration::from_millis(100));
        }
        tmux.call(&["send-keys", "-t", "watched", "q"]);
        let screen = tmux.screen("left with");
        assert_eq!(screen.trim(), "left with 0", "the first screen is back, as it was");
    }
}
