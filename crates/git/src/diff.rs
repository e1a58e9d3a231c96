//! Lists and renders changes: of a worktree's index, and between two commits. It only reads, and
//! never the files of a worktree.

use super::GitRepo;
use super::call::GitAnswer;
use treebeam_core::id::{CodePlace, Commit, GitTree};
use treebeam_core::protect::{PathChange, PathKind};
use treebeam_run::port::{BinaryDiff, PortError};

/// Maximum size of a list of changes, in bytes.
const MAX_CHANGE_LIST_BYTES: usize = 16 << 20;
/// Maximum size of a diff's summary, in bytes.
const MAX_STAT_BYTES: usize = 256 << 10;
/// Maximum size of a diff that is shown, in bytes.
const MAX_SHOWN_DIFF_BYTES: usize = 256 << 20;

/// Colouring of git's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiffColour {
    /// No colour codes, for a file.
    Plain,
    /// Colour codes, for a terminal.
    Coloured,
}

impl GitRepo {
    /// Returns the difference between two commits as git prints it, for display. Returns bytes,
    /// because files need not be text.
    ///
    /// # Errors
    /// When one of the commits is gone, or the difference is too long to show.
    pub fn render_diff(
        &self,
        from: &Commit,
        to: &Commit,
        paint: DiffColour,
    ) -> Result<Vec<u8>, PortError> {
        let colour = match paint {
            DiffColour::Plain => "--no-color",
            DiffColour::Coloured => "--color=always",
        };
        let answer = self.tree_diff(from, to, &["-p", colour], MAX_SHOWN_DIFF_BYTES)?;
        if answer.stdout.dropped > 0 {
            let what = format!("the diff is longer than {} MiB", MAX_SHOWN_DIFF_BYTES >> 20);
            return Err(PortError::new(what).with_hint(format!("ask git: `git diff {from} {to}`")));
        }
        Ok(answer.stdout.bytes)
    }

    /// Returns true if the repository has this commit.
    ///
    /// # Errors
    /// When git cannot be run.
    pub fn has_commit(&self, commit: &Commit) -> Result<bool, PortError> {
        let object = format!("{commit}^{{commit}}");
        let call = self.user.git.sealed_call(&self.shared_target(), &["cat-file", "-e", &object]);
        Ok(call.run()?.code == Some(0))
    }

    pub(super) fn tree_of(&self, commit: &Commit) -> Result<GitTree, PortError> {
        let object = format!("{commit}^{{tree}}");
        let arguments = ["rev-parse", "--verify", "--quiet", &object];
        self.user.git.sealed_call(&self.shared_target(), &arguments).run_checked()?.parse_word()
    }

    pub(super) fn index_changes(&self, place: CodePlace) -> Result<Vec<PathChange>, PortError> {
        Ok(parse_changes(&self.raw_index_changes(place)?))
    }

    /// Returns git's raw list of the paths that the index of a worktree changes.
    pub(super) fn raw_index_changes(&self, place: CodePlace) -> Result<String, PortError> {
        let worktree = self.find_worktree(place)?;
        let arguments = ["diff-index", "--cached", "--raw", "-z", "--no-renames"];
        let against = ["--ignore-submodules=none", worktree.base.as_str(), "--"];
        let arguments = [arguments.as_slice(), &against].concat();
        let call = self.user.git.sealed_call(&worktree.target, &arguments).with_subject(place);
        call.keep_stdout(MAX_CHANGE_LIST_BYTES).run_checked()?.full_text()
    }

    pub(super) fn index_diff(&self, place: CodePlace, limit: usize) -> Result<String, PortError> {
        let worktree = self.find_worktree(place)?;
        let shape = ["diff-index", "--cached", "-p", "--no-color", "--find-renames"];
        let fixed = ["--no-ext-diff", "--no-textconv", "--ignore-submodules=none"];
        let arguments = [&shape[..], &fixed, &[worktree.base.as_str(), "--"]].concat();
        let call = self.user.git.sealed_call(&worktree.target, &arguments).with_subject(place);
        let mut text = call.keep_stdout(limit.saturating_add(8)).run_checked()?.kept_text();
        text.truncate(text.floor_char_boundary(limit));
        Ok(text)
    }

    pub(super) fn build_patch(
        &self,
        from: &Commit,
        to: &Commit,
        binaries: BinaryDiff,
        limit: usize,
    ) -> Result<String, PortError> {
        let shape: &[&str] = match binaries {
            BinaryDiff::InFull => &["-p", "--full-index", "--binary"],
            BinaryDiff::Named => &["-p", "--full-index"],
        };
        // A few bytes more than the limit, so that the cut cannot fall into a character.
        let mut text = self.tree_diff_text(from, to, shape, limit.saturating_add(8))?;
        text.truncate(text.floor_char_boundary(limit));
        Ok(text)
    }

    pub(super) fn build_stat(&self, from: &Commit, to: &Commit) -> Result<String, PortError> {
        self.tree_diff_text(from, to, &["--stat"], MAX_STAT_BYTES)
    }

    fn tree_diff_text(
        &self,
        from: &Commit,
        to: &Commit,
        shape: &[&str],
        keep: usize,
    ) -> Result<String, PortError> {
        let shape = [&["--no-color"], shape].concat();
        Ok(self.tree_diff(from, to, &shape, keep)?.kept_text())
    }

    /// Runs `git diff-tree` on two commits. Attributes are read from the newer one: a checkout
    /// could be at any other commit.
    fn tree_diff(
        &self,
        from: &Commit,
        to: &Commit,
        shape: &[&str],
        keep: usize,
    ) -> Result<GitAnswer, PortError> {
        let source = format!("--attr-source={to}");
        let fixed = [&source, "diff-tree", "-r", "--find-renames", "--no-ext-diff"];
        let plain = ["--no-textconv", "--ignore-submodules=none", from.as_str(), to.as_str(), "--"];
        let arguments = [fixed.as_slice(), shape, &plain].concat();
        let call = self.user.git.sealed_call(&self.shared_target(), &arguments);
        let call = call.with_subject(format!("{}..{}", from.short_name(), to.short_name()));
        call.keep_stdout(keep).run_checked()
    }
}

/// Parses a sequence of `:100644 000000 1234… 0000… D\0path\0`.
pub(super) fn parse_changes(raw: &str) -> Vec<PathChange> {
    let mut parts = raw.split('\0');
    let mut changes = Vec::new();
    while let (Some(head), Some(path)) = (parts.next(), parts.next()) {
        changes.push(parse_change(head, path));
    }
    changes
}

/// Parses one change from the cells before its path.
pub(super) fn parse_change(head: &str, path: &str) -> PathChange {
    let is_new = head.starts_with(":000000 ");
    let to = head.split(' ').nth(1).map_or(PathKind::File, parse_mode);
    PathChange { path: path.to_owned(), is_new, to }
}

fn parse_mode(digits: &str) -> PathKind {
    match digits {
        "000000" => PathKind::Deleted,
        "120000" => PathKind::Symlink,
        "160000" => PathKind::Gitlink,
        _ => PathKind::File,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_changes_are_read_by_mode() {
        let raw = ":100644 100755 a b M\0x y\0:100644 000000 a 0 D\0z\0:000000 160000 0 b A\0ü\0";
        let read: Vec<_> =
            parse_changes(raw).into_iter().map(|c| (c.path, c.is_new, c.to)).collect();
        let expected = [
            ("x y", false, PathKind::File),
            ("z", false, PathKind::Deleted),
            ("ü", true, PathKind::Gitlink),
        ];
        assert_eq!(read, expected.map(|(path, is_new, to)| (path.to_owned(), is_new, to)));
        assert!(parse_changes("").is_empty());
    }
}
