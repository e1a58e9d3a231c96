//! Rules on documents: what they have to name, and how long they may be.

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
