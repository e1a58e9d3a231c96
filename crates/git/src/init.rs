//! Turns a folder with files into a repository with one commit, the same on every machine. The
//! user's configuration is ignored, and no identity of the user is needed.

use super::call::GitTarget;
use super::open::{OpenError, find_usable_git};
use super::{GitIdentity, paths};
use std::path::Path;
use treebeam_run::port::PortError;

/// Properties of the first commit of a new repository.
#[derive(Clone, Debug)]
pub struct FirstCommit {
    /// Author of this commit, which is also configured for all later ones.
    pub identity: GitIdentity,
    /// Date in a format that git reads.
    pub date: &'static str,
    /// Full commit message.
    pub message: &'static str,
}

/// Makes a folder a repository with one commit of everything in it.
///
/// # Errors
/// When no usable git is found, or git fails.
pub fn init_repo(dir: &Path, first: &FirstCommit) -> Result<(), OpenError> {
    let git = find_usable_git(dir)?;
    let make = || -> Result<(), PortError> {
        git.fresh_call(dir, &["init", "--quiet", "--initial-branch=main", "--template="])
            .run_checked()?;
        let work_tree = paths::real_path(dir)?;
        let target = GitTarget { git_dir: format!("{work_tree}/.git"), work_tree };
        let GitIdentity { name, email } = &first.identity;
        let settings =
            [("user.name", name.as_str()), ("user.email", email), ("core.autocrlf", "false")];
        for (key, value) in settings {
            git.sealed_call(&target, &["config", key, value]).run_checked()?;
        }
        git.sealed_call(&target, &["add", "--all"]).run_checked()?;
        let dates = [("GIT_AUTHOR_DATE", first.date), ("GIT_COMMITTER_DATE", first.date)];
        let commit = git.sealed_call(&target, &["commit", "--quiet", "--message", first.message]);
        commit.envs(first.identity.variables()).envs(dates).without_retry().run_checked().map(drop)
    };
    make().map_err(|cause| OpenError::Unmade { dir: dir.display().to_string(), cause })
}
