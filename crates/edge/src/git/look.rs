//! What a doctor wants to know of the user's repository: version, tracked files, large-file storage, worktrees that are
//! left over. Looks only; nothing that `open` needs is here.

use super::{UserRepo, admin};
use treebeam_run::port::PortError;

/// The most that is kept of a list of files.
const MOST_BYTES: usize = 256 << 20;

impl UserRepo {
    /// Git's version.
    ///
    /// # Errors
    /// When git cannot be run.
    pub fn git_version(&self) -> Result<String, PortError> {
        let answer = self.git.as_user(&self.toplevel, &["version"]).done()?;
        Ok(answer.beginning().trim().trim_start_matches("git version ").to_owned())
    }

    /// The paths that git tracks; of very many only the first.
    ///
    /// # Errors
    /// When git cannot tell.
    pub fn tracked(&self) -> Result<Vec<String>, PortError> {
        let call = self.git.as_user(&self.toplevel, &["ls-files", "-z"]).keep(MOST_BYTES);
        let text = call.done()?.beginning();
        Ok(text.split_terminator('\0').map(str::to_owned).collect())
    }

    /// Whether attributes of the commit that is checked out send files to LFS.
    ///
    /// # Errors
    /// When git cannot be run.
    pub fn uses_lfs(&self) -> Result<bool, PortError> {
        let question =
            ["grep", "--quiet", "-e", "filter=lfs", "HEAD", "--", ":(glob)**/.gitattributes"];
        Ok(self.git.as_user(&self.toplevel, &question).answer()?.code == Some(0))
    }

    /// Worktrees of runs that git knows and whose folders are gone: whose they were.
    ///
    /// # Errors
    /// When git's folder cannot be read.
    pub fn stale_worktrees(&self) -> Result<Vec<String>, PortError> {
        let admins = admin::all(&self.common_dir)?;
        let mut stale: Vec<String> = admins.iter().filter_map(admin::Admin::stale_owner).collect();
        stale.sort();
        Ok(stale)
    }
}
