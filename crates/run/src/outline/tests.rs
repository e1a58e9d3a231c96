//! The outline of a repository of texts, within its limit, without a real git.

use super::*;
use crate::port::{ApplyResult, BinaryDiff, CommitNote, CommittedTree, TouchedFiles};
use proptest::prelude::*;
use treebeam_core::event::Leftover;
use treebeam_core::id::{CodePlace, GitTree};
use treebeam_core::protect::PathChange;

/// A repository whose texts can be read, and nothing else.
struct Texts(Vec<(String, String)>);

impl Repo for Texts {
    fn checkout_worktree(&self, _: CodePlace, _: &Commit) -> Result<(), PortError> {
        Ok(())
    }
    fn renew_worktree(&self, _: CodePlace, _: &Commit) -> Result<(), PortError> {
        Ok(())
    }
    fn apply_to_worktree(&self, _: CodePlace, _: &str) -> Result<ApplyResult, PortError> {
        Ok(ApplyResult::Cleanly)
    }
    fn staged_paths(&self, _: CodePlace) -> Result<Vec<PathChange>, PortError> {
        Ok(Vec::new())
    }
    fn staged_diff(&self, _: CodePlace, _: usize) -> Result<String, PortError> {
        Ok(String::new())
    }
    fn commit_staged(&self, _: CodePlace, _: &CommitNote) -> Result<CommittedTree, PortError> {
        Err(PortError::new("nothing is committed here"))
    }
    fn git_tree(&self, _: &Commit) -> Result<GitTree, PortError> {
        Err(PortError::new("no commit is here"))
    }
    fn set_place_ref(&self, _: CodePlace, _: &Commit) -> Result<(), PortError> {
        Ok(())
    }
    fn commit_exists(&self, _: &Commit) -> Result<bool, PortError> {
        Ok(true)
    }
    fn diff_commits(
        &self,
        _: &Commit,
        _: &Commit,
        _: BinaryDiff,
        limit: usize,
    ) -> Result<String, PortError> {
        Ok("+a line\n".repeat(1000).chars().take(limit).collect())
    }
    fn diff_stat(&self, _: &Commit, _: &Commit) -> Result<String, PortError> {
        Ok(String::new())
    }
    fn list_files(&self, _: &Commit) -> Result<Vec<RepoFile>, PortError> {
        let file = |(path, text): &(String, String)| RepoFile {
            path: path.clone(),
            bytes: text.len() as u64,
            object: path.clone(),
        };
        Ok(self.0.iter().map(file).collect())
    }
    fn read_texts(&self, files: &[RepoFile]) -> Result<Vec<Option<String>>, PortError> {
        let text = |file: &RepoFile| {
            let found = self.0.iter().find(|(path, _)| *path == file.object);
            found.map(|(_, text)| text.clone()).filter(|text| !text.contains("binary"))
        };
        Ok(files.iter().map(text).collect())
    }
    fn find_touched_files(
        &self,
        _: CodePlace,
        _: &Commit,
        _: &ProtectedPaths,
    ) -> Result<TouchedFiles, PortError> {
        Ok(TouchedFiles::default())
    }
    fn restore_paths(&self, _: CodePlace, _: &Commit, _: &[String]) -> Result<(), PortError> {
        Ok(())
    }
    fn discard_leftover(&self, _: Leftover, _: u32) -> Result<(), PortError> {
        Ok(())
    }
}

fn texts(files: &[(&str, &str)]) -> Texts {
    Texts(files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect())
}

fn shown_of(repo: &Texts, context: &RepoContext, max_chars: usize, commits: [&str; 2]) -> String {
    let [root, commit] = commits.map(|digit| digit.repeat(40).parse::<Commit>().expect("a commit"));
    let said = vec!["see model.py"];
    let sight = OutlineInput { root: &root, commit: &commit, texts: said, commands: &[] };
    render_outline(repo, context, max_chars, &sight).expect("an outline")
}

#[test]
fn an_outline_has_a_list_the_change_and_files() {
    let repo = texts(&[
        ("README.md", "Read ``` me.\n"),
        ("blob.py", "binary\n"),
        ("model.py", "x = 1\n"),
        ("odd\nname.py", "y = 2\n"),
    ]);
    let text = shown_of(&repo, &RepoContext::Outline, 3000, ["0", "0"]);
    assert_eq!(
        text,
        "=== FILES, WITH THEIR SIZES IN BYTES ===\n```\nREADME.md 13\nblob.py 7\nmodel.py 6\nodd?name.py 6\n```\n\n\
         === FILE model.py ===\n```\nx = 1\n```\n\n\
         === FILE README.md ===\n````\nRead ``` me.\n````\n\n\
         === FILE odd?name.py ===\n```\ny = 2\n```\n\n"
    );
    let changed = shown_of(&repo, &RepoContext::Outline, 3000, ["0", "1"]);
    assert!(
        changed.contains("=== THE CODE AT HAND DIFFERS FROM THE ROOT BY THIS ===\n```\n+a line\n"),
        "{changed}"
    );
    assert_eq!(shown_of(&repo, &RepoContext::Nothing, 3000, ["0", "1"]), "");
    let globs = vec![FileGlob::new("*.py").expect("a glob")];
    let named = shown_of(&repo, &RepoContext::Files(globs), 3000, ["0", "1"]);
    assert!(named.starts_with("=== FILE model.py ==="), "{named}");
    assert!(!named.contains("README"), "{named}");
}

#[test]
fn what_is_cut_says_so() {
    let repo = texts(&[("model.py", &"long = 1\n".repeat(1000))]);
    let text = shown_of(&repo, &RepoContext::Outline, 5000, ["0", "0"]);
    assert!(text.contains("of 8999 characters are shown)"), "{text}");
}

#[test]
fn of_too_many_files_folders_are_told() {
    let many: Vec<(String, String)> =
        (0..2000).map(|n| (format!("a/b{}/c{}/f{n}.txt", n % 3, n % 50), "x".to_owned())).collect();
    let text = shown_of(&Texts(many), &RepoContext::Outline, 3000, ["0", "0"]);
    assert!(text.contains("a/b0/ (667 files) 667\n"), "{text}");
    assert!(!text.contains("f1.txt"), "{text}");
}

proptest! {
    #[test]
    fn no_outline_is_longer_than_it_may_be(
        files in prop::collection::vec(("[a-c]{1,3}(/[a-c]{1,9}){0,3}\\.(py|md|toml)", "(`{1,600}|ab|ü|\n){0,40}"), 0..30),
        max_chars in 0_usize..4000,
    ) {
        let repo = Texts(files);
        for context in [RepoContext::Outline, RepoContext::Files(vec![FileGlob::new("**").expect("a glob")])] {
            let text = shown_of(&repo, &context, max_chars, ["0", "1"]);
            prop_assert!(text.chars().count() <= max_chars, "{} > {max_chars}", text.chars().count());
            prop_assert_eq!(&text, &shown_of(&repo, &context, max_chars, ["0", "1"]));
        }
    }
}
