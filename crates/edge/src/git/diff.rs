//! What changed: in a worktree's index, and between two commits. It reads only, and never from a worktree's files.

use super::GitRepo;
use super::call::Answer;
use treebeam_core::id::{Commit, GitTree, Place};
use treebeam_core::protect::{Change, Mode};
use treebeam_run::port::{Binaries, PortError};

/// No list of changes is longer, in bytes.
const MOST_CHANGES: usize = 16 << 20;
/// No summary is longer, in bytes.
const MOST_STAT: usize = 256 << 10;
/// No diff that is shown is longer, in bytes.
const MOST_SHOWN: usize = 256 << 20;

/// Whether git colours what it prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    /// As for a file.
    Plain,
    /// As for a terminal.
    Coloured,
}

impl GitRepo {
    /// The difference between two commits as git prints it, to be shown. Bytes, because files need not be text.
    ///
    /// # Errors
    /// When one of them is gone, or the difference is too long to be shown.
    pub fn shown_diff(
        &self,
        from: &Commit,
        to: &Commit,
        paint: Paint,
    ) -> Result<Vec<u8>, PortError> {
        let colour = match paint {
            Paint::Plain => "--no-color",
            Paint::Coloured => "--color=always",
        };
        let answer = self.tree_diff(from, to, &["-p", colour], MOST_SHOWN)?;
        if answer.stdout.dropped > 0 {
            let what = format!("the diff is longer than {} MiB", MOST_SHOWN >> 20);
            return Err(PortError::new(what).hint(format!("ask git: `git diff {from} {to}`")));
        }
        Ok(answer.stdout.bytes)
    }

    /// Whether the repository still has a commit.
    ///
    /// # Errors
    /// When git cannot be run.
    pub fn has(&self, commit: &Commit) -> Result<bool, PortError> {
        let object = format!("{commit}^{{commit}}");
        let call = self.user.git.sealed(&self.seat(), &["cat-file", "-e", &object]);
        Ok(call.answer()?.code == Some(0))
    }

    pub(super) fn tree_of(&self, commit: &Commit) -> Result<GitTree, PortError> {
        let object = format!("{commit}^{{tree}}");
        let arguments = ["rev-parse", "--verify", "--quiet", &object];
        self.user.git.sealed(&self.seat(), &arguments).done()?.word()
    }

    pub(super) fn index_changes(&self, place: Place) -> Result<Vec<Change>, PortError> {
        Ok(changes(&self.raw_index_changes(place)?))
    }

    /// What git says of each path that the index of a worktree changes.
    pub(super) fn raw_index_changes(&self, place: Place) -> Result<String, PortError> {
        let worktree = self.find(place)?;
        let arguments = ["diff-index", "--cached", "--raw", "-z", "--no-renames"];
        let against = ["--ignore-submodules=none", worktree.base.as_str(), "--"];
        let arguments = [arguments.as_slice(), &against].concat();
        let call = self.user.git.sealed(&worktree.seat, &arguments).about(place);
        call.keep(MOST_CHANGES).done()?.whole()
    }

    pub(super) fn index_diff(&self, place: Place, limit: usize) -> Result<String, PortError> {
        let worktree = self.find(place)?;
        let shape = ["diff-index", "--cached", "-p", "--no-color", "--find-renames"];
        let fixed = ["--no-ext-diff", "--no-textconv", "--ignore-submodules=none"];
        let arguments = [&shape[..], &fixed, &[worktree.base.as_str(), "--"]].concat();
        let call = self.user.git.sealed(&worktree.seat, &arguments).about(place);
        let mut text = call.keep(limit.saturating_add(8)).done()?.beginning();
        text.truncate(text.floor_char_boundary(limit));
        Ok(text)
    }

    pub(super) fn patch(
        &self,
        from: &Commit,
        to: &Commit,
        binaries: Binaries,
        limit: usize,
    ) -> Result<String, PortError> {
        let shape: &[&str] = match binaries {
            Binaries::InFull => &["-p", "--full-index", "--binary"],
            Binaries::Named => &["-p", "--full-index"],
        };
        // A few bytes more, so that the cut cannot fall into a character.
        let mut text = self.between(from, to, shape, limit.saturating_add(8))?;
        text.truncate(text.floor_char_boundary(limit));
        Ok(text)
    }

    pub(super) fn stat(&self, from: &Commit, to: &Commit) -> Result<String, PortError> {
        self.between(from, to, &["--stat"], MOST_STAT)
    }

    fn between(
        &self,
        from: &Commit,
        to: &Commit,
        shape: &[&str],
        keep: usize,
    ) -> Result<String, PortError> {
        let shape = [&["--no-color"], shape].concat();
        Ok(self.tree_diff(from, to, &shape, keep)?.beginning())
    }

    /// Attributes are read from the newer commit: not from a checkout, which could be at any other.
    fn tree_diff(
        &self,
        from: &Commit,
        to: &Commit,
        shape: &[&str],
        keep: usize,
    ) -> Result<Answer, PortError> {
        let source = format!("--attr-source={to}");
        let fixed = [&source, "diff-tree", "-r", "--find-renames", "--no-ext-diff"];
        let plain = ["--no-textconv", "--ignore-submodules=none", from.as_str(), to.as_str(), "--"];
        let arguments = [fixed.as_slice(), shape, &plain].concat();
        let call = self.user.git.sealed(&self.seat(), &arguments);
        let call = call.about(format!("{}..{}", from.short(), to.short()));
        call.keep(keep).done()
    }
}

/// Reads `:100644 000000 1234… 0000… D\0path\0`, again and again.
pub(super) fn changes(raw: &str) -> Vec<Change> {
    let mut parts = raw.split('\0');
    let mut changes = Vec::new();
    while let (Some(head), Some(path)) = (parts.next(), parts.next()) {
        changes.push(change(head, path));
    }
    changes
}

/// One change, from what stands before its path.
pub(super) fn change(head: &str, path: &str) -> Change {
    let is_new = head.starts_with(":000000 ");
    let to = head.split(' ').nth(1).map_or(Mode::File, mode);
    Change { path: path.to_owned(), is_new, to }
}

fn mode(digits: &str) -> Mode {
    match digits {
        "000000" => Mode::Deleted,
        "120000" => Mode::Symlink,
        "160000" => Mode::Gitlink,
        _ => Mode::File,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_changes_are_read_by_mode() {
        let raw = ":100644 100755 a b M\0x y\0:100644 000000 a 0 D\0z\0:000000 160000 0 b A\0ü\0";
        let read: Vec<_> = changes(raw).into_iter().map(|c| (c.path, c.is_new, c.to)).collect();
        let expected =
            [("x y", false, Mode::File), ("z", false, Mode::Deleted), ("ü", true, Mode::Gitlink)];
        assert_eq!(read, expected.map(|(path, is_new, to)| (path.to_owned(), is_new, to)));
        assert!(changes("").is_empty());
    }
}
