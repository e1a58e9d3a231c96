//! Tidy: what the project promises about its own sources, checked like everything else.
//!
//! A rule is a function from the repository's files to complaints; each complaint names a file and
//! says what to do. [`RULES`] lists them, one test runs them all on the repository, and one test per
//! rule shows that it can fail.

#![cfg(test)]

mod crates;
mod docs;
mod files;

use std::path::Path;

use xtask::sources::{SourceFile, read_sources};

/// Text files that the rules look at.
struct Project {
    files: Vec<SourceFile>,
}

/// Rule on the project, which returns its complaints.
type Rule = fn(&Project) -> Vec<String>;

/// Rules that the repository follows.
const RULES: [Rule; 11] = [
    crates::crates_look_left,
    crates::purity_is_enforced,
    files::file_names_say_something,
    files::files_say_what_they_are,
    files::files_are_short,
    files::run_files_have_one_door,
    files::nothing_is_left_undone,
    files::no_machine_is_named,
    docs::architecture_names_everything,
    docs::architecture_is_short,
    docs::exit_codes_are_documented,
];

impl Project {
    /// Reads the repository.
    fn from_repository() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let project = project_of(read_sources(&root).unwrap());
        assert!(project.text_of("Cargo.toml").is_some(), "`{}` is not the root", root.display());
        project
    }

    /// Text of the file at `path`.
    fn text_of(&self, path: &str) -> Option<&str> {
        self.files.iter().find(|file| file.path == path).map(|file| &*file.text)
    }

    /// Rust files below the `src/` folders of the crates, which the rules on code are about.
    fn crate_sources(&self) -> impl Iterator<Item = &SourceFile> {
        self.files.iter().filter(|file| file.is_crate_source())
    }

    /// Names of the folders in `crates/`.
    fn crate_names(&self) -> impl Iterator<Item = &str> {
        self.files
            .iter()
            .filter_map(SourceFile::crate_and_path)
            .filter(|(_, rest)| *rest == "Cargo.toml")
            .map(|(name, _)| name)
    }
}

#[test]
fn the_repository_is_tidy() {
    let project = Project::from_repository();
    let complaints: Vec<String> = RULES.iter().flat_map(|rule| rule(&project)).collect();
    assert!(complaints.is_empty(), "{} complaints:\n{}\n", complaints.len(), complaints.join("\n"));
}

// ---- shared by the rules

/// Complaints about single lines, each with the file and the line's number.
fn complain_of_lines<'a>(
    files: impl Iterator<Item = &'a SourceFile>,
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

fn project_of(files: impl Into<Vec<SourceFile>>) -> Project {
    Project { files: files.into() }
}

fn source(path: &str, text: &str) -> SourceFile {
    SourceFile::new(path, text)
}

/// Asserts how many complaints a rule has about a project of one file.
#[track_caller]
fn check(rule: Rule, path: &str, text: &str, complaints: usize) {
    let found = rule(&project_of([source(path, text)]));
    assert_eq!(found.len(), complaints, "{path}: {text:?} gave {found:?}");
}
