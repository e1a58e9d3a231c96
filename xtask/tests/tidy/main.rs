//! Tidy: what the project promises about its own sources, checked like everything else.
//!
//! A rule is a function from the project to complaints; each complaint names a file and says what
//! to do. [`RULES`] lists them, one test runs them all on the repository, and one test per rule
//! shows that it can fail.

#![cfg(test)]

mod comments;
mod crates;
mod docs;
mod files;
mod names;

use std::cell::OnceCell;
use std::path::Path;

use xtask::sources::{SourceFile, list_files, read_sources};
use xtask::survey::Survey;

/// Text files that the rules look at, the paths of all files, and the survey of those in Rust.
struct Project {
    files: Vec<SourceFile>,
    paths: Vec<String>,
    survey: OnceCell<Survey>,
}

/// Rule on the project, which returns its complaints.
type Rule = fn(&Project) -> Vec<String>;

/// Rules that the repository follows.
const RULES: [Rule; 20] = [
    crates::crates_look_left,
    crates::purity_is_enforced,
    crates::modules_form_no_cycle,
    files::file_names_say_something,
    files::files_say_what_they_are,
    files::files_are_short,
    files::run_files_have_one_door,
    files::nothing_is_left_undone,
    files::no_machine_is_named,
    docs::architecture_names_everything,
    docs::architecture_is_small,
    docs::links_lead_somewhere,
    docs::named_tests_exist,
    docs::exit_codes_are_documented,
    docs::file_table_is_current,
    names::type_names_are_unique,
    names::constructors_are_not_called_of,
    names::constants_name_their_subject,
    comments::doc_comments_stand_alone,
    comments::comments_fit_the_window,
];

impl Project {
    /// Reads the repository.
    fn from_repository() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let files = read_sources(&root).unwrap();
        let project = Self { paths: list_files(&root).unwrap(), ..project_of(files) };
        assert!(project.text_of("Cargo.toml").is_some(), "`{}` is not the root", root.display());
        project
    }

    /// Survey of the Rust files, made when it is first asked for.
    fn survey(&self) -> &Survey {
        let survey = self.survey.get_or_init(|| Survey::from_sources(&self.files));
        assert!(survey.parse_errors.is_empty(), "{}", survey.parse_errors.join("\n"));
        survey
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

/// Builds a project of the given files.
fn project_of(files: impl Into<Vec<SourceFile>>) -> Project {
    let files = files.into();
    let paths = files.iter().map(|file| file.path.clone()).collect();
    Project { files, paths, survey: OnceCell::new() }
}

/// Builds a file of a made-up project.
fn source(path: &str, text: &str) -> SourceFile {
    SourceFile::new(path, text)
}

/// Asserts how many complaints a rule has about a project of one file.
#[track_caller]
fn check(rule: Rule, path: &str, text: &str, complaints: usize) {
    let found = rule(&project_of([source(path, text)]));
    assert_eq!(found.len(), complaints, "{path}: {text:?} gave {found:?}");
}
