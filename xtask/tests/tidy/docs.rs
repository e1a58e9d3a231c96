//! Rules on documents: what they have to name, and how long they may be.

use xtask::architecture::{self, ARCHITECTURE_PATH, BEGIN_MARK, END_MARK};
use xtask::sources::SourceFile;

use crate::{Project, check, project_of, source};

/// ARCHITECTURE.md names each crate by its package and each stage by its file.
pub(crate) fn architecture_names_everything(project: &Project) -> Vec<String> {
    let Some(text) = project.text_of("ARCHITECTURE.md") else {
        return vec!["ARCHITECTURE.md: is missing".to_owned()];
    };
    let crates = project.crate_names().map(|name| match name {
        "treebeam" => "`treebeam`".to_owned(),
        name => format!("`treebeam-{name}`"),
    });
    let stages =
        project.files.iter().filter_map(|file| file.path.strip_prefix("crates/run/src/stage/"));
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
        let mut files: Vec<SourceFile> = code.iter().map(|path| source(path, "")).collect();
        files.push(source("ARCHITECTURE.md", text));
        project_of(files)
    };
    assert_eq!(architecture_names_everything(&project_of([])).len(), 1);
    assert_eq!(architecture_names_everything(&files("treebeam")).len(), 3);
    assert_eq!(
        architecture_names_everything(&files("`treebeam`, `treebeam-run`: `stage/idea.rs`")).len(),
        0
    );
}

/// Most lines that ARCHITECTURE.md may have.
const LONGEST_ARCHITECTURE: usize = 250;

/// ARCHITECTURE.md can be read in one sitting.
pub(crate) fn architecture_is_short(project: &Project) -> Vec<String> {
    let lines = project.text_of("ARCHITECTURE.md").unwrap_or_default().lines().count();
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

/// Most bytes that ARCHITECTURE.md may have.
const MAX_ARCHITECTURE_BYTES: usize = 12 * 1024;

/// ARCHITECTURE.md is small, however long its lines are.
pub(crate) fn architecture_is_small(project: &Project) -> Vec<String> {
    let bytes = project.text_of("ARCHITECTURE.md").map_or(0, str::len);
    if bytes <= MAX_ARCHITECTURE_BYTES {
        return Vec::new();
    }
    vec![format!(
        "ARCHITECTURE.md: {bytes} bytes; cut it to {MAX_ARCHITECTURE_BYTES}, details belong in `docs/`"
    )]
}

#[test]
fn architecture_is_small_can_fail() {
    check(architecture_is_small, "ARCHITECTURE.md", &"x".repeat(MAX_ARCHITECTURE_BYTES), 0);
    check(architecture_is_small, "ARCHITECTURE.md", &"x".repeat(MAX_ARCHITECTURE_BYTES + 1), 1);
}

/// The table of files in ARCHITECTURE.md is what `cargo xtask architecture` makes.
pub(crate) fn file_table_is_current(project: &Project) -> Vec<String> {
    match architecture::updated_document(&project.files) {
        Err(error) => vec![format!("{error:#}")],
        Ok(Some(updated)) if project.text_of(ARCHITECTURE_PATH) != Some(&updated) => {
            vec![format!(
                "{ARCHITECTURE_PATH}: its table of files is not up to date; call `cargo xtask architecture`"
            )]
        }
        Ok(_) => Vec::new(),
    }
}

#[test]
fn file_table_is_current_can_fail() {
    let files = |document: &str| {
        let gate = source("crates/core/src/gate.rs", "//! Checks.\n");
        [gate, source(ARCHITECTURE_PATH, document)]
    };
    let outdated = format!("{BEGIN_MARK}\n{END_MARK}\n");
    let updated = architecture::updated_document(&files(&outdated)).unwrap().unwrap();
    let complaints = |document: &str| file_table_is_current(&project_of(files(document))).len();
    assert_eq!(complaints("# Architecture\n"), 0);
    assert_eq!(complaints(&updated), 0);
    assert_eq!(complaints(&outdated), 1);
    assert_eq!(complaints(BEGIN_MARK), 1);
    assert_eq!(file_table_is_current(&project_of([])).len(), 1);
}

/// Exit codes of the program.
const EXIT_CODES: [u8; 7] = [0, 1, 2, 3, 4, 5, 130];

/// The README has each exit code, in backticks or as a cell of a table.
pub(crate) fn exit_codes_are_documented(project: &Project) -> Vec<String> {
    let text = project.text_of("README.md").unwrap_or_default();
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
