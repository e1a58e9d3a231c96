//! Reads the `HEAD` of worktrees: a commit or a branch. If refs are in reftables, that file is
//! meaningless and git is called. Otherwise the file is read, because a candidate may have broken
//! what git would look at first.

use super::call::GitTarget;
use super::refs::has_reftable;
use super::{UserRepo, admin};
use std::fs;
use std::path::Path;
use treebeam_core::id::Commit;
use treebeam_run::port::PortError;

/// Maximum size of git's list of all worktrees, in bytes.
const MAX_WORKTREE_LIST_BYTES: usize = 64 << 20;

impl UserRepo {
    /// Returns the commit of a detached `HEAD`; `None` if a branch is checked out.
    pub(super) fn detached_head(&self, target: &GitTarget) -> Result<Option<Commit>, PortError> {
        if !has_reftable(&self.common_dir) {
            return Ok(read_head_file(Path::new(&target.git_dir)).trim().parse().ok());
        }
        let branch = self.git.sealed_call(target, &["symbolic-ref", "--quiet", "HEAD"]).run()?;
        match branch.code {
            Some(0) => Ok(None),
            Some(1) => {
                let question = ["rev-parse", "--verify", "HEAD^{commit}"];
                self.git.sealed_call(target, &question).run_checked()?.parse_word().map(Some)
            }
            Some(_) | None => Err(branch.to_error()),
        }
    }

    /// Returns true if any worktree has this branch checked out. `target` belongs to no worktree.
    pub(super) fn is_checked_out(
        &self,
        reference: &str,
        target: &GitTarget,
    ) -> Result<bool, PortError> {
        if has_reftable(&self.common_dir) {
            let list = self.git.sealed_call(target, &["worktree", "list", "--porcelain", "-z"]);
            let list = list.keep_stdout(MAX_WORKTREE_LIST_BYTES).run_checked()?.full_text()?;
            return Ok(list
                .split('\0')
                .any(|line| line.strip_prefix("branch ") == Some(reference)));
        }
        let is_at = |git_dir: &Path| {
            read_head_file(git_dir).trim().strip_prefix("ref: ") == Some(reference)
        };
        let folders = admin::list_admin_paths(&self.common_dir)?;
        Ok(is_at(&self.common_dir) || folders.iter().any(|folder| is_at(folder)))
    }
}

fn read_head_file(git_dir: &Path) -> String {
    fs::read_to_string(git_dir.join("HEAD")).unwrap_or_default()
}
