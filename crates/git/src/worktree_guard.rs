//! Marks worktrees of nodes while the run works in them, to tell the run's changes from the user's.
//! A node's worktree is the user's result, and the user may work in it; agents work there too.
//! Meanwhile a file in its admin folder marks it. Changes in an unmarked worktree are the user's,
//! and stay.

use super::{GitRepo, paths};
use std::fs::File;
use std::path::Path;
use treebeam_core::id::{CodePlace, Commit, NodeId};
use treebeam_core::measure::WorktreePath;
use treebeam_run::port::PortError;

/// Name of the mark. Making the worktree anew removes it with its folder.
const IN_USE_FILE: &str = "treebeam.used";

/// Changes in worktrees that a run made itself, and that are therefore no work of the user's.
#[derive(Clone, Debug, Default)]
pub struct RunOwnWork {
    /// Commits that the run knows.
    pub commits: Vec<Commit>,
    /// Paths at which the run links to the same paths of the user's working tree.
    pub inputs: Vec<WorktreePath>,
}

/// Returns true if the worktree of this git folder is marked: the run works there, or died there.
pub(super) fn is_in_use(git_dir: &Path) -> bool {
    git_dir.join(IN_USE_FILE).exists()
}

/// Marks a node's worktree: from now on all changes in it are the run's own. A candidate's worktree
/// needs no mark.
pub(super) fn mark_in_use(place: CodePlace, git_dir: &Path) -> Result<(), PortError> {
    let CodePlace::Node(_) = place else { return Ok(()) };
    let made = File::create(git_dir.join(IN_USE_FILE)).and_then(|file| file.sync_all());
    made.map_err(|error| {
        PortError::new(format!("`{}` cannot be written", git_dir.display())).with_cause(error)
    })
}

/// Removes the mark, when the run has left the worktree as it was.
pub(super) fn clear_in_use(git_dir: &Path) -> Result<(), PortError> {
    paths::remove_path(&git_dir.join(IN_USE_FILE)).map_err(|error| {
        let mark = git_dir.join(IN_USE_FILE);
        PortError::new(format!("`{}` cannot be removed", mark.display())).with_cause(error)
    })
}

impl GitRepo {
    /// Makes a worktree. The root's is marked at once: its sweep may leave anything there.
    pub(super) fn make_for_use(&self, place: CodePlace, commit: &Commit) -> Result<(), PortError> {
        self.make_worktree(place, commit)?;
        if place == CodePlace::Node(NodeId::ROOT) {
            mark_in_use(place, Path::new(&self.find_worktree(place)?.target.git_dir))?;
        }
        Ok(())
    }

    /// Makes a worktree anew at the commit of its ref. Changes of the run itself are removed, and
    /// so are its links to inputs at these paths.
    ///
    /// # Errors
    /// When the worktree has work of the user's, there is no such ref, or git fails.
    pub fn make_at_ref(&self, place: CodePlace, inputs: &[WorktreePath]) -> Result<(), PortError> {
        self.check_no_user_work(place, inputs)?;
        let name = format!("{}^{{commit}}", self.full_ref_name(place));
        let arguments = ["rev-parse", "--verify", "--end-of-options", &name];
        let commit = self
            .user
            .git
            .sealed_call(&self.shared_target(), &arguments)
            .with_subject(place)
            .run_checked()?
            .parse_word()?;
        self.make_worktree(place, &commit)
    }

    fn check_no_user_work(
        &self,
        place: CodePlace,
        inputs: &[WorktreePath],
    ) -> Result<(), PortError> {
        let folder = self.worktree_folder(place)?;
        // A worktree that git does not know was not finished.
        let Some(admin) = self.admin_of(place, &folder)? else { return Ok(()) };
        if is_in_use(Path::new(&admin.git_dir()?)) {
            return Ok(());
        }
        let commits = self.list_refs()?.into_iter().map(|(_, commit)| commit).collect();
        let Some(found) =
            self.find_user_work(place, &RunOwnWork { commits, inputs: inputs.to_vec() })?
        else {
            return Ok(());
        };
        let what = format!("somebody has worked in `{folder}`, where an agent is to be asked");
        let run = &self.run;
        Err(PortError::new(format!("{what}: {found}")).with_hint(format!(
            "commit it to a branch of your own (`git switch -c <branch>` there), or move it away, then resume the run; \
             `treebeam clean {run} --worktrees --discard-changes` gives it up"
        )))
    }
}
