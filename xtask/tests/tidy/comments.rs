//! Rules on comments: first lines that stand alone, and lines that fit the window.

use xtask::sources::SourceFile;

use crate::{Project, check, complain_of_lines, project_of};

/// Most columns that a line of comment may have.
const MAX_COMMENT_COLUMNS: usize = 100;

/// First words that make a clause of a doc comment's first line, or a riddle.
const DEPENDENT_FIRST_WORDS: [&str; 7] =
    ["Nobody", "Somebody", "They", "What", "Whether", "Who", "Why"];

/// First lines of doc comments make sense on hover, without the item beside them.
pub(crate) fn doc_comments_stand_alone(project: &Project) -> Vec<String> {
    commented_sources(project).flat_map(complain_of_first_lines).collect()
}

/// Complaints about the first line of each doc comment in a file.
fn complain_of_first_lines(file: &SourceFile) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut previous = None;
    for (number, line) in (1..).zip(file.text.lines()) {
        let doc = doc_text(line);
        if let (None, Some(text)) = (previous, doc)
            && !is_help_text(file, line)
            && let Some(fault) = first_line_fault(text)
        {
            let path = &file.path;
            complaints.push(format!("{path}:{number}: {fault}; say what the item is: `{text}`"));
        }
        previous = doc;
    }
    complaints
}

/// Text of a line of doc comment, or `None` for any other line.
fn doc_text(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let text = line.strip_prefix("//!").or_else(|| line.strip_prefix("///"))?;
    (!text.starts_with('/')).then(|| text.trim())
}

/// Reason why a first line does not stand alone, if it does not.
fn first_line_fault(text: &str) -> Option<String> {
    let first_word = text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    let second_word = text.split_whitespace().nth(1);
    let same = text.strip_prefix("The same");
    if same.is_some_and(|rest| !rest.starts_with(char::is_alphanumeric)) {
        Some("`The same` refers to something else".to_owned())
    } else if DEPENDENT_FIRST_WORDS.contains(&first_word) {
        Some(format!("a line that begins with `{first_word}` does not stand alone"))
    } else if second_word.is_none() {
        Some("a first line has more than one word".to_owned())
    } else {
        None
    }
}

#[test]
fn doc_comments_stand_alone_can_fail() {
    let rule = doc_comments_stand_alone;
    let path = "crates/core/src/rank.rs";
    for good in [
        "/// Rank of a candidate.\n/// What follows is more.\nfn rank() {}\n",
        "//! Ranks candidates.\n//!\n//! Whether they pass is not its business.\n",
        "/// Whatever the user gave.\n",
        "// What is next\n",
        "//// What is next\n",
        "let text = \"/// They.\";\n",
    ] {
        check(rule, path, good, 0);
    }
    for bad in [
        "The same, for a node.",
        "The same",
        "What the user gave.",
        "Who asks.",
        "Who's asked.",
        "Whether it passes.",
        "Why it failed.",
        "They.",
        "They are two.",
        "Nobody asks.",
        "Somebody's lock.",
        "Candidates.",
        "",
    ] {
        check(rule, path, &format!("struct A {{\n    /// {bad}\n    x: u8,\n}}\n"), 1);
        check(rule, "benches/src/world.rs", &format!("//! {bad}\n"), 1);
    }
    check(rule, path, "/// They.\nfn a() {}\n/// They.\nfn b() {}\n", 2);
    check(rule, "crates/core/tests/rank.rs", "//! They.\n", 0);
}

/// Lines of comment fit in a window of 100 columns, as code does.
pub(crate) fn comments_fit_the_window(project: &Project) -> Vec<String> {
    let complain_of = |file| {
        complain_of_lines(std::iter::once(file), |line| {
            let columns = line.chars().count();
            let is_long = line.trim_start().starts_with("//") && columns > MAX_COMMENT_COLUMNS;
            (is_long && !is_help_text(file, line))
                .then(|| format!("{columns} columns; wrap the comment at {MAX_COMMENT_COLUMNS}"))
        })
    };
    commented_sources(project).flat_map(complain_of).collect()
}

#[test]
fn comments_fit_the_window_can_fail() {
    let rule = comments_fit_the_window;
    let fits = "x".repeat(MAX_COMMENT_COLUMNS - 7);
    for (before, complaints) in [("    // ", 0), ("   /// ", 0), ("   //! ", 0), ("    /// ", 1)] {
        let line = format!("{before}{fits}\n");
        for path in ["crates/core/src/rank.rs", "xtask/tests/tidy/main.rs", "benches/src/web.rs"] {
            check(rule, path, &line, complaints);
        }
        check(rule, "crates/core/tests/rank.rs", &line, 0);
    }
    let umlauts = "ü".repeat(MAX_COMMENT_COLUMNS - 3);
    check(rule, "xtask/src/main.rs", &format!("// {umlauts}\n"), 0);
    check(rule, "xtask/src/main.rs", &format!("{}\n", fits.repeat(2)), 0);
}

/// Returns true for a doc comment of the command line's definition. `clap` prints these comments as
/// help: each is read beside its flag, and its lines are paragraphs that the terminal wraps.
fn is_help_text(file: &SourceFile, line: &str) -> bool {
    let is_definition = file.path == "crates/treebeam/src/cli.rs"
        || file.path.starts_with("crates/treebeam/src/cli/");
    is_definition && line.trim_start().starts_with("///")
}

#[test]
fn only_help_texts_are_exempt() {
    let path = |path: &str| SourceFile::new(path, "");
    for good in ["crates/treebeam/src/cli.rs", "crates/treebeam/src/cli/run.rs"] {
        assert!(is_help_text(&path(good), "    /// Whether it ends"));
    }
    let text = "x".repeat(MAX_COMMENT_COLUMNS);
    for (file, before, complaints) in [
        ("cli.rs", "/// Whether", 0),
        ("cli/run.rs", "    /// Whether", 0),
        ("cli/run.rs", "//! Whether", 2),
        ("cli/run.rs", "// Whether", 1),
        ("clip.rs", "/// Whether", 2),
        ("command/cli/run.rs", "/// Whether", 2),
    ] {
        let file = SourceFile::new(
            format!("crates/treebeam/src/{file}"),
            format!("{before} {text}\nstruct A;\n"),
        );
        let project = project_of([file]);
        let found = [doc_comments_stand_alone(&project), comments_fit_the_window(&project)];
        assert_eq!(found.concat().len(), complaints, "{before}: {found:?}");
    }
}

/// Rust files whose comments the rules are about: sources of crates, chores and benchmarks.
fn commented_sources(project: &Project) -> impl Iterator<Item = &SourceFile> {
    project.files.iter().filter(|file| {
        let is_tool = file.path.starts_with("xtask/") || file.path.starts_with("benches/");
        file.is_crate_source() || (is_tool && file.is_rust())
    })
}
