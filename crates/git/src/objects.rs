//! Checks that the repository still has the objects of commits, and lists what candidates change.
//! It only reads, and checks nothing out: one git process for any number of commits, and one more
//! for each commit if something is missing.

use super::GitRepo;
use super::diff::parse_change;
use std::collections::{BTreeMap, BTreeSet};
use treebeam_core::id::Commit;
use treebeam_core::protect::PathChange;
use treebeam_process::ChildInput;
use treebeam_run::port::PortError;

/// Maximum size of an answer about objects, in bytes.
const MAX_OBJECT_LIST_BYTES: usize = 256 << 20;

/// Objects of a commit that the repository lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MissingObjects {
    /// The commit itself is missing.
    Commit,
    /// Trees or files are missing: how many, and the name of the first.
    Parts(usize, String),
    /// Something in the commit cannot be read, with git's error text.
    Unreadable(String),
}

impl GitRepo {
    /// Returns what the repository lacks of each of these commits. Ancestors are not checked.
    ///
    /// # Errors
    /// When git cannot be run.
    pub fn missing_objects(
        &self,
        commits: &BTreeSet<Commit>,
    ) -> Result<BTreeMap<Commit, MissingObjects>, PortError> {
        let there = self.existing_commits(commits)?;
        let gone = commits.difference(&there);
        let mut missing: BTreeMap<_, _> =
            gone.map(|commit| (commit.clone(), MissingObjects::Commit)).collect();
        if there.is_empty() || self.missing_parts(&there)?.is_none() {
            return Ok(missing);
        }
        for commit in there {
            let alone = BTreeSet::from([commit.clone()]);
            missing.extend(self.missing_parts(&alone)?.map(|parts| (commit, parts)));
        }
        Ok(missing)
    }

    /// Returns the commits among these that the repository has.
    ///
    /// # Errors
    /// When git cannot be run.
    pub fn existing_commits(
        &self,
        commits: &BTreeSet<Commit>,
    ) -> Result<BTreeSet<Commit>, PortError> {
        if commits.is_empty() {
            return Ok(BTreeSet::new());
        }
        let form = "--batch-check=%(objecttype)";
        let call = self.user.git.sealed_call(&self.shared_target(), &["cat-file", form]);
        let answer = call
            .input(commit_lines(commits))
            .keep_stdout(MAX_OBJECT_LIST_BYTES)
            .run_checked()?
            .full_text()?;
        let known = commits.iter().zip(answer.lines());
        Ok(known.filter(|(_, kind)| *kind == "commit").map(|(commit, _)| commit.clone()).collect())
    }

    /// Returns what is missing of these existing commits.
    fn missing_parts(
        &self,
        commits: &BTreeSet<Commit>,
    ) -> Result<Option<MissingObjects>, PortError> {
        let arguments = ["rev-list", "--objects", "--no-walk=unsorted", "--quiet"];
        let arguments = [&arguments[..], &["--missing=print", "--stdin"]].concat();
        let call = self.user.git.sealed_call(&self.shared_target(), &arguments);
        let answer = call.input(commit_lines(commits)).keep_stdout(MAX_OBJECT_LIST_BYTES).run()?;
        if answer.code != Some(0) {
            return Ok(Some(MissingObjects::Unreadable(answer.error_text().to_string())));
        }
        let text = answer.kept_text();
        let mut names = text.lines().filter_map(|line| line.strip_prefix('?'));
        let Some(first) = names.next() else { return Ok(None) };
        Ok(Some(MissingObjects::Parts(1 + names.count(), first.to_owned())))
    }

    /// Returns the changes from the first to the second commit of each pair, in order. All commits
    /// must exist.
    ///
    /// # Errors
    /// When git cannot be run, or lacks an object of one of the commits.
    pub fn changes_between(
        &self,
        pairs: &[(Commit, Commit)],
    ) -> Result<Vec<Vec<PathChange>>, PortError> {
        if pairs.is_empty() {
            return Ok(Vec::new());
        }
        let arguments = ["diff-tree", "--stdin", "--always", "-r", "--raw", "-z"];
        let plain = ["--no-renames", "--ignore-submodules=none", "--no-ext-diff"];
        let arguments = [&arguments[..], &plain].concat();
        let pairs: String = pairs.iter().map(|(from, to)| format!("{to} {from}\n")).collect();
        let call = self.user.git.sealed_call(&self.shared_target(), &arguments);
        let call = call
            .input(ChildInput::from_bytes(pairs.into_bytes()))
            .keep_stdout(MAX_OBJECT_LIST_BYTES);
        Ok(parse_changes_by_commit(&call.run_checked()?.full_text()?))
    }
}

fn commit_lines(commits: &BTreeSet<Commit>) -> ChildInput {
    let lines: String = commits.iter().map(|commit| format!("{commit}\n")).collect();
    ChildInput::from_bytes(lines.into_bytes())
}

/// Parses a sequence of `<commit>\0`, each followed by any number of `:100644 000000 1234… 0000…
/// D\0path\0`.
fn parse_changes_by_commit(raw: &str) -> Vec<Vec<PathChange>> {
    let mut parts = raw.split('\0').filter(|part| !part.is_empty());
    let mut all: Vec<Vec<PathChange>> = Vec::new();
    while let Some(head) = parts.next() {
        if !head.starts_with(':') {
            all.push(Vec::new());
        } else if let (Some(path), Some(changes)) = (parts.next(), all.last_mut()) {
            changes.push(parse_change(head, path));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_read_commit_by_commit() {
        let raw =
            "aa\0:100644 100755 a b M\0x y\0:100644 000000 a 0 D\0:z\0bb\0cc\0:1 2 a b M\0w\0";
        let read = parse_changes_by_commit(raw);
        let paths = |changes: &Vec<PathChange>| -> Vec<String> {
            changes.iter().map(|change| change.path.clone()).collect()
        };
        let read: Vec<_> = read.iter().map(paths).collect();
        assert_eq!(read, [vec!["x y", ":z"], vec![], vec!["w"]]);
        assert!(parse_changes_by_commit("").is_empty());
    }
}
