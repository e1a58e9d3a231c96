//! Rules on files: their names, heads and lengths, and what may not stand in them.

use crate::{Project, check, complain_of_lines};

/// File names say what the file holds.
pub(crate) fn file_names_say_something(project: &Project) -> Vec<String> {
    let rust = project.files.iter().filter(|file| file.is_rust());
    let vague = rust.filter(|file| file.path.trim_end_matches(".rs").split('/').any(is_vague));
    vague.map(|file| format!("{}: name it after what it holds", file.path)).collect()
}

/// Tells if a name could be that of any file.
fn is_vague(name: &str) -> bool {
    let vague = ["common", "helper", "helpers", "manager", "misc", "util", "utils"];
    vague.contains(&name)
}

#[test]
fn file_names_say_something_can_fail() {
    check(file_names_say_something, "crates/core/src/rank.rs", "", 0);
    check(file_names_say_something, "crates/core/src/utils.rs", "", 1);
    check(file_names_say_something, "crates/store/src/helpers/mod.rs", "", 1);
    check(file_names_say_something, "crates/store/tests/common.rs", "", 1);
}

/// Sources begin with a head.
pub(crate) fn files_say_what_they_are(project: &Project) -> Vec<String> {
    let silent = project.crate_sources().filter(|file| !file.text.starts_with("//! "));
    silent
        .map(|file| format!("{}: begin with `//!`: what it is and does not do", file.path))
        .collect()
}

#[test]
fn files_say_what_they_are_can_fail() {
    check(files_say_what_they_are, "crates/core/src/rank.rs", "//! Who is best.\n", 0);
    check(files_say_what_they_are, "crates/core/src/rank.rs", "use std::fmt;\n", 1);
}

/// Most lines that a source may have before its tests.
const LONGEST_FILE: usize = 500;

/// Sources are short, not counting their tests.
pub(crate) fn files_are_short(project: &Project) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in project.crate_sources() {
        let lines = file
            .text
            .lines()
            .take_while(|line| !line.trim_start().starts_with("#[cfg(test)]"))
            .count();
        if lines > LONGEST_FILE {
            complaints.push(format!(
                "{}: {lines} lines before its tests; split it, at most {LONGEST_FILE}",
                file.path
            ));
        }
    }
    complaints
}

#[test]
fn files_are_short_can_fail() {
    let long = "x\n".repeat(LONGEST_FILE);
    check(files_are_short, "crates/core/src/rank.rs", &long, 0);
    check(
        files_are_short,
        "crates/core/src/rank.rs",
        &format!("{long}#[cfg(test)]\nmod tests;\n"),
        0,
    );
    check(files_are_short, "crates/core/src/rank.rs", &format!("{long}x\n"), 1);
}

/// Sources have no marks of unfinished work.
pub(crate) fn nothing_is_left_undone(project: &Project) -> Vec<String> {
    let marks = ["todo!(", "unimplemented!(", "dbg!(", "FIXME", "XXX"];
    complain_of_lines(project.crate_sources(), |line| {
        let mark = marks.into_iter().find(|mark| line.contains(mark))?;
        Some(format!("finish what `{mark}` marks, or say it in an issue"))
    })
}

#[test]
fn nothing_is_left_undone_can_fail() {
    check(nothing_is_left_undone, "crates/core/src/rank.rs", "fn rank() {}\n", 0);
    check(nothing_is_left_undone, "crates/core/src/rank.rs", "fn rank() {\n    todo!()\n}\n", 1);
    check(nothing_is_left_undone, "crates/core/src/rank.rs", "// FIXME: later\n", 1);
}

/// Places that open files of a run, only through `store/record_file.rs`.
const READERS_OF_RUNS: [&str; 4] = [
    "crates/store/src/",
    "crates/agent/src/call_store.rs",
    "crates/executor/src/",
    "crates/treebeam/src/",
];

/// Files among those that open something else: the door itself, the system, the folder of all runs,
/// the user's own.
const OTHER_OPENERS: [&str; 11] = [
    "crates/store/src/record_file.rs",
    "crates/store/src/unix.rs",
    "crates/store/src/windows.rs",
    "crates/store/src/layout.rs",
    "crates/store/src/probe.rs",
    "crates/store/src/ideas_dir.rs",
    "crates/store/src/user_state.rs",
    "crates/executor/src/protected.rs",
    "crates/executor/src/results.rs",
    "crates/treebeam/src/command/demo/demo_repo.rs",
    "crates/treebeam/src/command/doctor.rs",
];

/// Files of a run are opened by `store/record_file.rs` alone.
///
/// Opening any path may wait for ever, or read without end.
pub(crate) fn run_files_have_one_door(project: &Project) -> Vec<String> {
    let opens = |line: &&str| {
        ["File::open(", "fs::read(", "fs::read_to_string("].iter().any(|call| line.contains(call))
    };
    let mut complaints = Vec::new();
    for file in project.crate_sources() {
        let reads_runs = READERS_OF_RUNS.iter().any(|place| file.path.starts_with(place));
        if !reads_runs || OTHER_OPENERS.contains(&&*file.path) {
            continue;
        }
        let code = file.text.lines().take_while(|line| !line.contains("cfg(test)"));
        let code = code.take_while(|line| !line.starts_with("#[cfg(all(test"));
        complaints.extend(code.filter(opens).map(|line| {
            format!("{}: open it with `store::record_file`: {}", file.path, line.trim())
        }));
    }
    complaints
}

#[test]
fn run_files_have_one_door_can_fail() {
    let rule = run_files_have_one_door;
    let text = "let text = fs::read(path)?;\n";
    check(rule, "crates/store/src/journal.rs", text, 1);
    check(rule, "crates/treebeam/src/command/show.rs", "let file = File::open(path)?;\n", 1);
    check(rule, "crates/store/src/journal.rs", &format!("#[cfg(test)]\n{text}"), 0);
    check(rule, "crates/store/src/record_file.rs", text, 0);
    check(rule, "crates/git/src/head.rs", text, 0);
}

/// Home and work folders of the authors' machines; split, so that this file does not name them.
const MACHINE_FOLDERS: [&str; 3] =
    [concat!("/wo", "rk/"), concat!("/ho", "me/"), concat!("/ro", "ot/")];

/// No file names a folder that exists on one machine only.
pub(crate) fn no_machine_is_named(project: &Project) -> Vec<String> {
    complain_of_lines(project.files.iter(), |line| {
        let path = MACHINE_FOLDERS.into_iter().find(|path| has_absolute(line, path))?;
        Some(format!("`{path}` exists on one machine only; use a relative or made-up path"))
    })
}

/// Tells if `path` stands in the line as the beginning of a path, not as a part of one.
fn has_absolute(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|before| !before.is_alphanumeric() && !"_-.~}>)]*".contains(before))
    })
}

#[test]
fn no_machine_is_named_can_fail() {
    for path in MACHINE_FOLDERS {
        check(no_machine_is_named, "README.md", &format!("see `{path}x`"), 1);
        check(no_machine_is_named, "crates/core/src/id.rs", &format!("//! {path}x"), 1);
        check(no_machine_is_named, "README.md", &format!("see `refs{path}x`"), 0);
    }
}
