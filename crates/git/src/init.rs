//! Making a repository: a folder with files becomes one with a single commit, the same on every machine. Nothing of the
//! user's configuration counts, and an identity is not needed.

use super::call::GitTarget;
use super::open::{OpenError, find_usable_git};
use super::{GitIdentity, paths};
use std::path::Path;
use treebeam_run::port::PortError;

/// The first commit of a repository.
#[derive(Clone, Debug)]
pub struct FirstCommit {
    /// Who makes it, and all that follow.
    pub identity: GitIdentity,
    /// When, as git reads it.
    pub date: &'static str,
    /// What it says.
    pub message: &'static str,
}

/// Makes a repository of a folder, with one commit of all that is in it.
///
/// # Errors
/// When there is no git that will do, or it cannot.
pub fn init_repo(dir: &Path, first: &FirstCommit) -> Result<(), OpenError> {
    let git = find_usable_git(dir)?;
    let make = || -> Result<(), PortError> {
        git.fresh_call(dir, &["init", "--quiet", "--initial-branch=main", "--template="])
            .run_checked()?;
        let work_tree = paths::real_path(dir)?;
        let seat = GitTarget { git_dir: format!("{work_tree}/.git"), work_tree };
        let GitIdentity { name, email } = &first.identity;
        let settings =
            [("user.name", name.as_str()), ("user.email", email), ("core.autocrlf", "false")];
        for (key, value) in settings {
            git.sealed_call(&seat, &["config", key, value]).run_checked()?;
        }
        git.sealed_call(&seat, &["add", "--all"]).run_checked()?;
        let dates = [("GIT_AUTHOR_DATE", first.date), ("GIT_COMMITTER_DATE", first.date)];
        let commit = git.sealed_call(&seat, &["commit", "--quiet", "--message", first.message]);
        commit.envs(first.identity.variables()).envs(dates).without_retry().run_checked().map(drop)
    };
    make().map_err(|cause| OpenError::Unmade { dir: dir.display().to_string(), cause })
}
