//! Tidy: what the project promises about its own sources, checked like everything else.
//!
//! A rule is a function from the repository's files to complaints; each complaint names a file and
//! says what to do. [`RULES`] lists them, one test runs them all on the repository, and one test per
//! rule shows that it can fail.

#![cfg(test)]

use std::fs;
use std::path::Path;

/// A text file of the repository, its path relative to the root and with `/`.
struct Source {
    path: String,
    text: String,
}

type Rule = fn(&[Source]) -> Vec<String>;

const RULES: [Rule; 11] = [
    crates_look_left,
    purity_is_enforced,
    file_names_say_something,
    files_say_what_they_are,
    files_are_short,
    run_files_have_one_door,
    nothing_is_left_undone,
    architecture_names_everything,
    architecture_is_short,
    exit_codes_are_documented,
    no_machine_is_named,
];

#[test]
fn the_repository_is_tidy() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    collect(&root, "", &mut files);
    assert!(
        files.iter().any(|file| file.path == "Cargo.toml"),
        "`{}` is not the root",
        root.display()
    );
    let complaints: Vec<String> = RULES.iter().flat_map(|rule| rule(&files)).collect();
    assert!(complaints.is_empty(), "{} complaints:\n{}\n", complaints.len(), complaints.join("\n"));
}

/// Reads the text files below `dir`, in the order of their paths.
fn collect(dir: &Path, prefix: &str, files: &mut Vec<Source>) {
    let mut entries: Vec<_> = fs::read_dir(dir).unwrap().map(Result::unwrap).collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name().into_string().expect("a file name is UTF-8");
        let path = format!("{prefix}{name}");
        if entry.file_type().unwrap().is_dir() {
            if !matches!(&*name, "target" | ".git" | ".treebeam") {
                collect(&entry.path(), &format!("{path}/"), files);
            }
        } else if is_text(&path) {
            let text = fs::read_to_string(entry.path()).expect("a source is UTF-8");
            files.push(Source { path, text });
        }
    }
}

fn is_text(path: &str) -> bool {
    let endings = [".md", ".py", ".rs", ".sh", ".snap", ".toml", ".yml", ".ci/run"];
    endings.iter().any(|ending| path.ends_with(ending))
}

fn text_of<'a>(files: &'a [Source], path: &str) -> Option<&'a str> {
    files.iter().find(|file| file.path == path).map(|file| &*file.text)
}

/// The crate's directory and the path inside it: `crates/core/src/id.rs` gives `core`, `src/id.rs`.
fn in_crate(file: &Source) -> Option<(&str, &str)> {
    file.path.strip_prefix("crates/")?.split_once('/')
}

fn is_rust(file: &Source) -> bool {
    Path::new(&file.path).extension().is_some_and(|extension| extension == "rs")
}

/// The Rust files below a crate's `src/`, which the rules on code are about.
fn crate_sources(files: &[Source]) -> impl Iterator<Item = &Source> {
    files.iter().filter(|file| {
        is_rust(file) && in_crate(file).is_some_and(|(_, rest)| rest.starts_with("src/"))
    })
}

/// The names of the directories in `crates/`.
fn crate_names(files: &[Source]) -> impl Iterator<Item = &str> {
    files
        .iter()
        .filter_map(in_crate)
        .filter(|(_, rest)| *rest == "Cargo.toml")
        .map(|(name, _)| name)
}

// ---- the line of dependence

/// What a crate may depend on.
struct Allowed {
    name: &'static str,
    ours: &'static [&'static str],
    /// `None`: whatever `deny.toml` lets through.
    outside: Option<&'static [&'static str]>,
}

/// Crates depend on crates to their left only; the pure ones and the loop also name what they use
/// from outside.
const LINE: [Allowed; 7] = [
    Allowed {
        name: "core",
        ours: &[],
        outside: Some(&[
            "fast-float2",
            "globset",
            "jiff",
            "memchr",
            "postcard",
            "rand_pcg",
            "serde",
            "sha2",
            "thiserror",
            "unicode-normalization",
        ]),
    },
    Allowed {
        name: "view",
        ours: &["treebeam-core"],
        outside: Some(&["jiff", "maud", "unicode-width"]),
    },
    Allowed {
        name: "run",
        ours: &["treebeam-core"],
        outside: Some(&["jiff", "serde", "serde_json", "thiserror"]),
    },
    Allowed { name: "edge", ours: &["treebeam-core", "treebeam-run"], outside: None },
    Allowed { name: "fault", ours: &[], outside: Some(&["libc"]) },
    Allowed {
        name: "testkit",
        ours: &["treebeam-core", "treebeam-fault", "treebeam-run"],
        outside: None,
    },
    Allowed {
        name: "treebeam",
        ours: &["treebeam-core", "treebeam-edge", "treebeam-run", "treebeam-view"],
        outside: None,
    },
];

fn crates_look_left(files: &[Source]) -> Vec<String> {
    let mut complaints = Vec::new();
    for name in crate_names(files) {
        let path = format!("crates/{name}/Cargo.toml");
        let Some(allowed) = LINE.iter().find(|allowed| allowed.name == name) else {
            complaints.push(format!(
                "{path}: a crate without a place in the line; give it one in `LINE`"
            ));
            continue;
        };
        for dependency in dependencies(text_of(files, &path).unwrap_or_default()) {
            if !may_depend(allowed, dependency) {
                complaints.push(format!(
                    "{path}: `{name}` may not depend on `{dependency}`; move the code that needs it"
                ));
            }
        }
    }
    complaints
}

fn may_depend(allowed: &Allowed, dependency: &str) -> bool {
    if dependency.starts_with("treebeam") {
        return allowed.ours.contains(&dependency);
    }
    allowed.outside.is_none_or(|outside| outside.contains(&dependency))
}

/// The packages that a manifest needs to be built, for any target; not those of its tests.
fn dependencies(manifest: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut listed = false;
    for line in manifest.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[') {
            let header = header.trim_end_matches(']');
            listed = is_dependency_table(header);
            if let Some((table, name)) = header.rsplit_once('.')
                && is_dependency_table(table)
            {
                names.push(name);
            }
        } else if listed && !line.is_empty() && !line.starts_with('#') {
            names.push(package(line));
        }
    }
    names
}

fn is_dependency_table(header: &str) -> bool {
    let table = header.rsplit('.').next().unwrap_or(header);
    matches!(table, "dependencies" | "build-dependencies")
}

/// The package named by a line such as `serde.workspace = true` or `x = { package = "serde_json" }`.
fn package(line: &str) -> &str {
    let renamed = line.split_once("package = \"").and_then(|(_, rest)| rest.split('"').next());
    let key = line.split(['.', '=', ' ']).next().unwrap_or(line);
    renamed.unwrap_or(key).trim_matches('"')
}

#[test]
fn crates_look_left_can_fail() {
    check(
        crates_look_left,
        "crates/core/Cargo.toml",
        "[dependencies]\nmemchr.workspace = true\n",
        0,
    );
    check(
        crates_look_left,
        "crates/core/Cargo.toml",
        "[dev-dependencies]\nserde_json = \"1\"\n",
        0,
    );
    check(crates_look_left, "crates/core/Cargo.toml", "[dependencies]\nserde_json = \"1\"\n", 1);
    check(
        crates_look_left,
        "crates/core/Cargo.toml",
        "[dependencies.serde_json]\nversion = \"1\"\n",
        1,
    );
    check(
        crates_look_left,
        "crates/core/Cargo.toml",
        "[target.'cfg(unix)'.dependencies]\nx = { package = \"nix\" }\n",
        1,
    );
    check(
        crates_look_left,
        "crates/run/Cargo.toml",
        "[dependencies]\ntreebeam-core = { path = \"\" }\n",
        0,
    );
    check(
        crates_look_left,
        "crates/run/Cargo.toml",
        "[dependencies]\ntreebeam-edge.workspace = true\n",
        1,
    );
    check(crates_look_left, "crates/edge/Cargo.toml", "[dependencies]\nnix = \"0.31\"\n", 0);
    check(
        crates_look_left,
        "crates/edge/Cargo.toml",
        "[dependencies]\ntreebeam-testkit.workspace = true\n",
        1,
    );
    check(crates_look_left, "crates/new/Cargo.toml", "", 1);
}

// ---- lints

/// The crates that may not touch the world say so in a `clippy.toml` of their own, with reasons.
fn purity_is_enforced(files: &[Source]) -> Vec<String> {
    let mut complaints = Vec::new();
    for name in crate_names(files) {
        let path = format!("crates/{name}/clippy.toml");
        let bans = text_of(files, &path).unwrap_or_default();
        if matches!(name, "core" | "view" | "run") && !bans.contains("std::fs::") {
            complaints.push(format!("{path}: has to ban the file system, among others"));
        }
        let bare =
            bans.lines().filter(|line| line.contains("path = ") && !line.contains("reason = "));
        complaints.extend(bare.map(|line| format!("{path}: give a reason: `{}`", line.trim())));
        let manifest = format!("crates/{name}/Cargo.toml");
        if !text_of(files, &manifest).unwrap_or_default().contains("[lints]\nworkspace = true") {
            complaints.push(format!("{manifest}: add `[lints]` with `workspace = true`"));
        }
    }
    complaints
}

#[test]
fn purity_is_enforced_can_fail() {
    let manifest = |text: &str| source("crates/core/Cargo.toml", text);
    let good = manifest("[lints]\nworkspace = true\n");
    let bans = source("crates/core/clippy.toml", "{ path = \"std::fs::read\", reason = \"pure\" }");
    assert_eq!(purity_is_enforced(&[good, bans]).len(), 0);
    let bans = source("crates/core/clippy.toml", "{ path = \"std::fs::read\" }");
    assert_eq!(purity_is_enforced(&[manifest("[lints]\nworkspace = true\n"), bans]).len(), 1);
    assert_eq!(purity_is_enforced(&[manifest("[lints]\nworkspace = true\n")]).len(), 1);
    assert_eq!(purity_is_enforced(&[manifest("")]).len(), 2);
}

// ---- files

fn file_names_say_something(files: &[Source]) -> Vec<String> {
    let rust = files.iter().filter(|file| is_rust(file));
    let vague = rust.filter(|file| file.path.trim_end_matches(".rs").split('/').any(is_vague));
    vague.map(|file| format!("{}: name it after what it holds", file.path)).collect()
}

fn is_vague(name: &str) -> bool {
    let vague = ["common", "helper", "helpers", "manager", "misc", "util", "utils"];
    vague.contains(&name)
}

#[test]
fn file_names_say_something_can_fail() {
    check(file_names_say_something, "crates/core/src/rank.rs", "", 0);
    check(file_names_say_something, "crates/core/src/utils.rs", "", 1);
    check(file_names_say_something, "crates/edge/src/helpers/mod.rs", "", 1);
    check(file_names_say_something, "crates/edge/tests/common.rs", "", 1);
}

fn files_say_what_they_are(files: &[Source]) -> Vec<String> {
    let silent = crate_sources(files).filter(|file| !file.text.starts_with("//! "));
    silent
        .map(|file| format!("{}: begin with `//!`: what it is and does not do", file.path))
        .collect()
}

#[test]
fn files_say_what_they_are_can_fail() {
    check(files_say_what_they_are, "crates/core/src/rank.rs", "//! Who is best.\n", 0);
    check(files_say_what_they_are, "crates/core/src/rank.rs", "use std::fmt;\n", 1);
}

const LONGEST_FILE: usize = 500;

fn files_are_short(files: &[Source]) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in crate_sources(files) {
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

fn nothing_is_left_undone(files: &[Source]) -> Vec<String> {
    let marks = ["todo!(", "unimplemented!(", "dbg!(", "FIXME", "XXX"];
    complain_of_lines(crate_sources(files), |line| {
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

/// Where files of a run are opened, and only through `store/record_file.rs`.
const READERS_OF_RUNS: [&str; 4] = [
    "crates/edge/src/store/",
    "crates/edge/src/agent/calls.rs",
    "crates/edge/src/executor/",
    "crates/treebeam/src/",
];

/// Files among those that open something else: the door itself, the system, the folder of all runs, the user's own.
const OTHER_OPENERS: [&str; 9] = [
    "crates/edge/src/store/record_file.rs",
    "crates/edge/src/store/unix.rs",
    "crates/edge/src/store/windows.rs",
    "crates/edge/src/store/layout.rs",
    "crates/edge/src/store/probe.rs",
    "crates/edge/src/executor/protected.rs",
    "crates/edge/src/executor/results.rs",
    "crates/treebeam/src/command/demo/example.rs",
    "crates/treebeam/src/command/doctor.rs",
];

/// Opening whatever has a name may wait for ever, or read without end.
fn run_files_have_one_door(files: &[Source]) -> Vec<String> {
    let opens = |line: &&str| {
        ["File::open(", "fs::read(", "fs::read_to_string("].iter().any(|call| line.contains(call))
    };
    let mut complaints = Vec::new();
    for file in crate_sources(files) {
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
    check(rule, "crates/edge/src/store/journal.rs", text, 1);
    check(rule, "crates/treebeam/src/command/show.rs", "let file = File::open(path)?;\n", 1);
    check(rule, "crates/edge/src/store/journal.rs", &format!("#[cfg(test)]\n{text}"), 0);
    check(rule, "crates/edge/src/store/record_file.rs", text, 0);
    check(rule, "crates/edge/src/git/head.rs", text, 0);
}

// ---- documents

/// Each crate by its package name and each stage by its file.
fn architecture_names_everything(files: &[Source]) -> Vec<String> {
    let Some(text) = text_of(files, "ARCHITECTURE.md") else {
        return vec!["ARCHITECTURE.md: is missing".to_owned()];
    };
    let crates = crate_names(files).map(|name| match name {
        "treebeam" => "`treebeam`".to_owned(),
        name => format!("`treebeam-{name}`"),
    });
    let stages = files.iter().filter_map(|file| file.path.strip_prefix("crates/run/src/stage/"));
    let stages = stages.filter(|file| *file != "mod.rs").map(|file| format!("stage/{file}"));
    let unnamed = crates.chain(stages).filter(|name| !text.contains(&**name));
    unnamed
        .map(|name| format!("ARCHITECTURE.md: does not name {name}; say there what it is"))
        .collect()
}

#[test]
fn architecture_names_everything_can_fail() {
    let files = |text: &str| {
        let code =
            ["crates/run/Cargo.toml", "crates/run/src/stage/idea.rs", "crates/treebeam/Cargo.toml"];
        let mut files: Vec<Source> = code.iter().map(|path| source(path, "")).collect();
        files.push(source("ARCHITECTURE.md", text));
        files
    };
    assert_eq!(architecture_names_everything(&[]).len(), 1);
    assert_eq!(architecture_names_everything(&files("treebeam")).len(), 3);
    assert_eq!(
        architecture_names_everything(&files("`treebeam`, `treebeam-run`: `stage/idea.rs`")).len(),
        0
    );
}

const LONGEST_ARCHITECTURE: usize = 250;

fn architecture_is_short(files: &[Source]) -> Vec<String> {
    let lines = text_of(files, "ARCHITECTURE.md").unwrap_or_default().lines().count();
    if lines <= LONGEST_ARCHITECTURE {
        return Vec::new();
    }
    vec![format!(
        "ARCHITECTURE.md: {lines} lines; cut it to {LONGEST_ARCHITECTURE}, details belong in `docs/`"
    )]
}

#[test]
fn architecture_is_short_can_fail() {
    check(architecture_is_short, "ARCHITECTURE.md", &"x\n".repeat(LONGEST_ARCHITECTURE), 0);
    check(architecture_is_short, "ARCHITECTURE.md", &"x\n".repeat(LONGEST_ARCHITECTURE + 1), 1);
}

const EXIT_CODES: [u8; 7] = [0, 1, 2, 3, 4, 5, 130];

/// Each exit code stands in the README in backticks or as a cell of a table.
fn exit_codes_are_documented(files: &[Source]) -> Vec<String> {
    let text = text_of(files, "README.md").unwrap_or_default();
    let said =
        |code: &u8| text.contains(&format!("`{code}`")) || text.contains(&format!("| {code} |"));
    let unsaid = EXIT_CODES.iter().filter(|code| !said(code));
    unsaid.map(|code| format!("README.md: say what exit code `{code}` means")).collect()
}

#[test]
fn exit_codes_are_documented_can_fail() {
    check(exit_codes_are_documented, "README.md", "`0` done, `1` failed, `2` `3` `4` `5` `130`", 0);
    check(
        exit_codes_are_documented,
        "README.md",
        "| 0 | done |\n| 1 | failed |\n`2` `3` `4` `130`",
        1,
    );
    check(exit_codes_are_documented, "README.md", "", EXIT_CODES.len());
}

/// Home and work directories of whoever wrote the file; split, so that this file does not name them.
const MACHINE: [&str; 3] = [concat!("/wo", "rk/"), concat!("/ho", "me/"), concat!("/ro", "ot/")];

fn no_machine_is_named(files: &[Source]) -> Vec<String> {
    complain_of_lines(files.iter(), |line| {
        let path = MACHINE.into_iter().find(|path| has_absolute(line, path))?;
        Some(format!("`{path}` exists on one machine only; use a relative or made-up path"))
    })
}

/// Whether `path` stands in the line as the beginning of a path, not as a part of one.
fn has_absolute(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|before| !before.is_alphanumeric() && !"_-.~}>)]*".contains(before))
    })
}

#[test]
fn no_machine_is_named_can_fail() {
    for path in MACHINE {
        check(no_machine_is_named, "README.md", &format!("see `{path}x`"), 1);
        check(no_machine_is_named, "crates/core/src/id.rs", &format!("//! {path}x"), 1);
        check(no_machine_is_named, "README.md", &format!("see `refs{path}x`"), 0);
    }
}

// ---- shared by the rules

fn complain_of_lines<'a>(
    files: impl Iterator<Item = &'a Source>,
    complain: impl Fn(&str) -> Option<String>,
) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in files {
        for (number, line) in (1..).zip(file.text.lines()) {
            complaints.extend(complain(line).map(|what| format!("{}:{number}: {what}", file.path)));
        }
    }
    complaints
}

fn source(path: &str, text: &str) -> Source {
    Source { path: path.to_owned(), text: text.to_owned() }
}

#[track_caller]
fn check(rule: Rule, path: &str, text: &str, complaints: usize) {
    let found = rule(&[source(path, text)]);
    assert_eq!(found.len(), complaints, "{path}: {text:?} gave {found:?}");
}
