//! Where the `HEAD` of a worktree is: at a commit, or at a branch. In a repository whose refs are in tables the file of that
//! name says nothing, and git is asked. Else it is read: a candidate may have broken what git would look at first.

use super::call::Seat;
use super::{UserRepo, admin};
use std::fs;
use std::path::Path;
use treebeam_core::id::Commit;
use treebeam_run::port::PortError;

/// More than git says of all worktrees, in bytes.
const MOST_SAID: usize = 64 << 20;

/// Whether refs are not kept in files, so that only git can read and write a `HEAD`.
pub(super) fn is_in_tables(common_dir: &Path) -> bool {
    common_dir.join("reftable").is_dir()
}

impl UserRepo {
    /// The commit that a worktree is at; none where it is at a branch.
    pub(super) fn detached_at(&self, seat: &Seat) -> Result<Option<Commit>, PortError> {
        if !is_in_tables(&self.common_dir) {
            return Ok(read(Path::new(&seat.git_dir)).trim().parse().ok());
        }
        let branch = self.git.sealed(seat, &["symbolic-ref", "--quiet", "HEAD"]).answer()?;
        match branch.code {
            Some(0) => Ok(None),
            Some(1) => {
                let question = ["rev-parse", "--verify", "HEAD^{commit}"];
                self.git.sealed(seat, &question).done()?.word().map(Some)
            }
            Some(_) | None => Err(branch.failure()),
        }
    }

    /// Whether a branch is checked out in any worktree. The seat is one that is about none of them.
    pub(super) fn is_checked_out(&self, reference: &str, seat: &Seat) -> Result<bool, PortError> {
        if is_in_tables(&self.common_dir) {
            let list = self.git.sealed(seat, &["worktree", "list", "--porcelain", "-z"]);
            let list = list.keep(MOST_SAID).done()?.whole()?;
            return Ok(list
                .split('\0')
                .any(|line| line.strip_prefix("branch ") == Some(reference)));
        }
        let is_at = |git_dir: &Path| read(git_dir).trim().strip_prefix("ref: ") == Some(reference);
        let folders = admin::folders(&self.common_dir)?;
        Ok(is_at(&self.common_dir) || folders.iter().any(|folder| is_at(folder)))
    }
}

fn read(git_dir: &Path) -> String {
    fs::read_to_string(git_dir.join("HEAD")).unwrap_or_default()
}
