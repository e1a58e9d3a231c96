//! Screens in the emulator: all kinds of them, and a running search.

use super::{DRAWN, LARGE, SMALL, must_be_known, shots, site, toured, watch};
use crate::ends::left;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use treebeam_testkit::program::Site;

#[test]
fn what_is_seen_and_what_keys_do() {
    let site = site();
    let before = everything(site.repo.path());
    for size in [SMALL, LARGE] {
        let seen = toured(&site, size);
        left(&seen, 0);
        must_be_known(size, &shots(&seen));
    }
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
        SMALL,
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
        SMALL,
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
        SMALL,
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
        SMALL,
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
fn a_line_that_begins_much_and_ends_nothing_keeps_nobody_waiting() {
    let site = site();
    let log = "\u{1b}]".repeat((1 << 19) - 100) + "0;the end\n";
    fs::write(site.path("eval/0001/experiment/sweep.log"), log).expect("a log");
    let steps = [
        json!(["drawn", DRAWN]),
        json!(["keys", "jl"]),
        json!(["await", "0;the end"]),
        json!(["keys", "q"]),
        json!(["end"]),
    ];
    left(&watch(&site, SMALL, &steps), 0);
}
