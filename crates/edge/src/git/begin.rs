//! Making a repository: a folder with files becomes one with a single commit, the same on every machine. Nothing of the
//! user's configuration counts, and an identity is not needed.

use super::call::Seat;
use super::open::{OpenError, usable};
use super::{Identity, place};
use std::path::Path;
use treebeam_run::port::PortError;

/// The first commit of a repository.
#[derive(Clone, Debug)]
pub struct FirstCommit {
    /// Who makes it, and all that follow.
    pub identity: Identity,
    /// When, as git reads it.
    pub date: &'static str,
    /// What it says.
    pub message: &'static str,
}

/// Makes a repository of a folder, with one commit of all that is in it.
///
/// # Errors
/// When there is no git that will do, or it cannot.
pub fn begin(dir: &Path, first: &FirstCommit) -> Result<(), OpenError> {
    let git = usable(dir)?;
    let make = || -> Result<(), PortError> {
        git.fresh(dir, &["init", "--quiet", "--initial-branch=main", "--template="]).done()?;
        let work_tree = place::real(dir)?;
        let seat = Seat { git_dir: format!("{work_tree}/.git"), work_tree };
        let Identity { name, email } = &first.identity;
        let settings =
            [("user.name", name.as_str()), ("user.email", email), ("core.autocrlf", "false")];
        for (key, value) in settings {
            git.sealed(&seat, &["config", key, value]).done()?;
        }
        git.sealed(&seat, &["add", "--all"]).done()?;
        let dates = [("GIT_AUTHOR_DATE", first.date), ("GIT_COMMITTER_DATE", first.date)];
        let commit = git.sealed(&seat, &["commit", "--quiet", "--message", first.message]);
        commit.envs(first.identity.variables()).envs(dates).once().done().map(drop)
    };
    make().map_err(|cause| OpenError::Unmade { dir: dir.display().to_string(), cause })
}
