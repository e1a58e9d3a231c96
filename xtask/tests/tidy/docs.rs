//! Rules on documents: what they have to name, where they lead, and how long they may be.

use std::path::Path;

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

/// Most bytes that ARCHITECTURE.md may have.
const MAX_ARCHITECTURE_BYTES: usize = 12 * 1024;

/// ARCHITECTURE.md can be read in one sitting.
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

/// Link of a Markdown file.
struct DocLink<'a> {
    label: &'a str,
    /// Path as it is written, without its anchor.
    path: &'a str,
    anchor: Option<&'a str>,
}

/// A relative link of a Markdown file leads to a file or folder, and to a heading if it names one.
/// A link to Rust code whose label is a name in backticks leads to a file that has the name.
pub(crate) fn links_lead_somewhere(project: &Project) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in project.files.iter().filter(|file| is_of_kind(&file.path, "md")) {
        let text = without_code_blocks(&file.text);
        for link in relative_links(&text) {
            if let Some(what) = broken_link(project, file, &link) {
                complaints.push(format!("{}: {what}", file.path));
            }
        }
    }
    complaints
}

/// Returns what is wrong with a link, if anything is.
fn broken_link(project: &Project, file: &SourceFile, link: &DocLink<'_>) -> Option<String> {
    let path = linked_path(&file.path, link.path);
    let folder = format!("{}/", path.trim_end_matches('/'));
    if !project.paths.iter().any(|known| *known == path || known.starts_with(&folder)) {
        return Some(format!("the link `{}` leads nowhere", link.path));
    }
    let text = project.text_of(&path)?;
    if let Some(anchor) = link.anchor
        && is_of_kind(&path, "md")
        && !headings(text).any(|heading| heading == anchor)
    {
        return Some(format!("`{path}` has no heading `#{anchor}`"));
    }
    let name = linked_name(link.label).filter(|_| is_of_kind(&path, "rs"))?;
    (!has_word(text, name)).then(|| format!("`{path}` has no `{name}`; find where it is now"))
}

/// Tells if a path has an extension.
fn is_of_kind(path: &str, extension: &str) -> bool {
    Path::new(path).extension().is_some_and(|known| known == extension)
}

/// Text without its blocks of code.
fn without_code_blocks(text: &str) -> String {
    let mut in_block = false;
    let is_prose = |line: &&str| {
        let is_fence = line.trim_start().starts_with("```");
        in_block ^= is_fence;
        !in_block && !is_fence
    };
    text.lines().filter(is_prose).collect::<Vec<_>>().join("\n")
}

/// Links of a text that do not lead to the web.
fn relative_links(text: &str) -> impl Iterator<Item = DocLink<'_>> {
    text.match_indices("](").filter_map(|(at, mark)| {
        let (target, _) = text[at + mark.len()..].split_once(')')?;
        let label = &text[text[..at].rfind('[')? + 1..at];
        let (path, anchor) = match target.split_once('#') {
            Some((path, anchor)) => (path, Some(anchor)),
            None => (target, None),
        };
        let is_relative = !target.contains("://") && !target.starts_with("mailto:");
        is_relative.then_some(DocLink { label, path, anchor })
    })
}

/// Path from the root of what a file links to.
fn linked_path(from: &str, target: &str) -> String {
    if target.is_empty() {
        return from.to_owned();
    }
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Anchors of a document's headings.
fn headings(text: &str) -> impl Iterator<Item = String> {
    let titles = text.lines().filter(|line| line.starts_with('#'));
    titles.map(|line| {
        let title = line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
        title.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).collect()
    })
}

/// Name in the code that a label in backticks shows: `State::apply` shows `apply`.
fn linked_name(label: &str) -> Option<&str> {
    let shown = label.strip_prefix('`')?.strip_suffix('`')?;
    let name = shown.rsplit("::").next()?;
    (!name.is_empty() && name.chars().all(is_name_char)).then_some(name)
}

/// Tells if a text has a name, and not merely a longer one.
fn has_word(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        !text[..at].ends_with(is_name_char) && !text[at + name.len()..].starts_with(is_name_char)
    })
}

/// Tells if a character can be part of a name in Rust.
fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

#[test]
fn links_lead_somewhere_can_fail() {
    let complaints = |text: &str| {
        let gate = source("crates/core/src/gate.rs", "pub fn judge_all() {}\n");
        let book = source("docs/README.md", "# The book\n\n## A (small) part\n");
        let files = [gate, book, source("docs/tour.md", text)];
        links_lead_somewhere(&project_of(files)).len()
    };
    for kept in [
        "[a](README.md) [b](../crates/core/src/gate.rs) [c](../crates/core) [d](../crates/)",
        "[a](https://example.com/x.md) [b](README.md#a-small-part) [c](#here)\n# Here",
        "[`gate::judge_all`](../crates/core/src/gate.rs)",
        "```md\n[a](missing.md)\n```",
    ] {
        assert_eq!(complaints(kept), 0, "{kept}");
    }
    for broken in [
        "[a](missing.md)",
        "[a](../README.md)",
        "[a](README.md#part)",
        "[a](#nowhere)",
        "[`judge`](../crates/core/src/gate.rs)",
        "```md\n```\n[a\nb](missing.md)",
    ] {
        assert_eq!(complaints(broken), 1, "{broken}");
    }
}

/// Documents that name the tests which hold what they promise.
const DOCS_WITH_TESTS: [&str; 2] = [ARCHITECTURE_PATH, "docs/design.md"];

/// A test that a document names as `file.rs::test` exists, and so does each Rust file and folder of
/// tests that it names by its path or the end of it.
pub(crate) fn named_tests_exist(project: &Project) -> Vec<String> {
    let mut complaints = Vec::new();
    for document in DOCS_WITH_TESTS {
        let text = without_code_blocks(project.text_of(document).unwrap_or_default());
        let named = text.split('`').skip(1).step_by(2);
        let is_path = |code: &&str| {
            let has_file = code.contains(".rs") || code.contains("/tests/");
            has_file && code.contains('/') && !code.contains(char::is_whitespace)
        };
        for code in named.filter(is_path) {
            if !has_test(project, code) {
                complaints.push(format!("{document}: there is no test or file `{code}`"));
            }
        }
    }
    complaints
}

/// Tells if the workspace has a file, folder or test.
fn has_test(project: &Project, name: &str) -> bool {
    let (file, test) = match name.split_once("::") {
        Some((file, test)) => (file, Some(test)),
        None => (name, None),
    };
    let inner = format!("/{file}");
    if file.ends_with('/') {
        return project.paths.iter().any(|path| path.contains(&inner));
    }
    let mut files =
        project.files.iter().filter(|known| known.path == file || known.path.ends_with(&inner));
    files.any(|known| test.is_none_or(|test| known.text.contains(&format!("fn {test}("))))
}

#[test]
fn named_tests_exist_can_fail() {
    let complaints = |text: &str| {
        let crash = source("crates/run/tests/crash.rs", "#[test]\nfn it_ends() {}\n");
        let fake = source("crates/treebeam/tests/kill/main.rs", "");
        let files = [crash, fake, source("docs/design.md", text)];
        named_tests_exist(&project_of(files)).len()
    };
    assert_eq!(complaints("`run/tests/crash.rs::it_ends`, `treebeam/tests/kill/`, `tests`"), 0);
    for missing in ["tests/crash.rs::it", "run/tests/crush.rs", "treebeam/tests/kil/", "src/a.rs"] {
        assert_eq!(complaints(&format!("held by `{missing}`")), 1, "{missing}");
    }
}
