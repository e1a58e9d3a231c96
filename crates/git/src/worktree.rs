//! Makes, finds and removes worktrees. It does what `git worktree add` does, which writes every
//! file, but in an order that never shows git a half-made worktree. Work inside one is done
//! elsewhere.

use super::admin::{self, AdminFolder};
use super::call::GitTarget;
use super::index_copy::IndexCopy;
use super::lock::RepoLock;
use super::workshop::{self, AdminWorkshop, WorktreeLayout};
use super::{GitRepo, paths, worktree_guard};
use std::fs;
use std::io;
use std::path::Path;
use std::sync::{Arc, PoisonError};
use treebeam_core::id::{CodePlace, Commit};
use treebeam_run::port::{ApplyResult, PortError};

/// An existing worktree and what this process knows of it.
#[derive(Clone, Debug)]
pub(super) struct Worktree {
    /// Target of git calls in this worktree.
    pub(super) target: GitTarget,
    /// Commit that it was made at.
    pub(super) base: Commit,
    /// Diffs applied since, enough to rebuild the worktree.
    pub(super) applied: Vec<String>,
    /// Copy of its index from before commands ran there, if known.
    pub(super) index: Option<Arc<IndexCopy>>,
}

impl Worktree {
    fn new(target: GitTarget, base: Commit) -> Self {
        Self { target, base, applied: Vec::new(), index: None }
    }
}

impl GitRepo {
    /// Makes a fresh worktree in place of whatever is there. A node's worktree is the user's
    /// result, so it is synced to survive a power cut; a candidate's is simply made again.
    pub(super) fn make_worktree(&self, place: CodePlace, commit: &Commit) -> Result<(), PortError> {
        let folder = self.worktree_folder(place)?;
        let lock = RepoLock::acquire(&self.user.common_dir)?;
        let workshop = AdminWorkshop::open(&self.user.common_dir, &lock)?;
        self.clear_worktree(place, &folder, &workshop)?;
        let made = self.create_worktree(place, commit, &folder, &lock, &workshop);
        let kept = made.and_then(|worktree| match place {
            CodePlace::Node(_) => sync_worktree(&folder).map(|()| worktree),
            CodePlace::Candidate(_) => Ok(worktree),
        });
        match kept {
            Ok(worktree) => self.insert_known(place, worktree),
            Err(error) => {
                // A half-made worktree is useless, and the first error is the one to report.
                drop(self.clear_worktree(place, &folder, &workshop));
                return Err(error);
            }
        }
        Ok(())
    }

    /// Returns the worktree at a place. Checks each time that no part of its path was replaced by a
    /// link.
    pub(super) fn find_worktree(&self, place: CodePlace) -> Result<Worktree, PortError> {
        let folder = self.worktree_folder(place)?;
        if paths::real_path(Path::new(&folder))? != folder {
            return Err(PortError::new(format!("`{folder}` was replaced by a link")));
        }
        let known = self
            .known_worktrees
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&place)
            .cloned();
        if let Some(worktree) = known {
            return Ok(worktree);
        }
        let worktree = self.load_worktree(place, &folder)?;
        self.insert_known(place, worktree.clone());
        Ok(worktree)
    }

    /// Removes a worktree in any state. Only removing the admin folder needs the lock.
    pub(super) fn remove_worktree(&self, place: CodePlace) -> Result<(), PortError> {
        let folder = self.worktree_folder(place)?;
        self.remove_known(place);
        let admins = self.list_own_admins(place, &folder)?;
        remove_worktree_files(place, &folder, &admins)?;
        if admins.is_empty() && !workshop::workshop_folder(&self.user.common_dir).exists() {
            return Ok(());
        }
        let lock = RepoLock::acquire(&self.user.common_dir)?;
        let workshop = AdminWorkshop::open(&self.user.common_dir, &lock)?;
        self.clear_worktree(place, &folder, &workshop)
    }

    /// Returns the path of a place's worktree, and fails if its folder was replaced by a link.
    pub(super) fn worktree_folder(&self, place: CodePlace) -> Result<String, PortError> {
        let folder = format!("{}/{}", self.run_dir, place.worktree_path());
        let above = Path::new(&folder).parent().filter(|above| above.exists());
        let replaced = match above {
            Some(above) => paths::real_path(above)? != paths::git_path(&above.to_string_lossy()),
            None => false,
        };
        if replaced {
            return Err(PortError::new(format!("the folder of `{folder}` was replaced by a link")));
        }
        Ok(folder)
    }

    /// Makes a worktree at a free path. Git sees it only when it is complete.
    fn create_worktree(
        &self,
        place: CodePlace,
        commit: &Commit,
        folder: &str,
        lock: &RepoLock,
        workshop: &AdminWorkshop<'_>,
    ) -> Result<Worktree, PortError> {
        let reason = format!("{}{commit}", admin::lock_reason_prefix(&self.run, place));
        let name = workshop.free_name(&admin::admin_name(&self.run, place));
        let layout = WorktreeLayout { work_tree: folder, commit, reason: &reason };
        let made = paths::real_path(&workshop.make_admin(&name, &layout)?)?;
        fs::create_dir_all(folder).map_err(|error| unwritten_error(folder, error))?;
        let target = GitTarget { git_dir: made, work_tree: folder.to_owned() };
        self.fill_worktree(place, commit, &target, lock, workshop)?;
        let git_dir = paths::git_path(&workshop.admin_path(&name).to_string_lossy());
        let link = Path::new(folder).join(".git");
        fs::write(link, format!("gitdir: {git_dir}\n"))
            .map_err(|error| unwritten_error(folder, error))?;
        workshop.publish_admin(&name)?;
        Ok(Worktree::new(GitTarget { git_dir, ..target }, commit.clone()))
    }

    /// Writes the index and every file.
    fn fill_worktree(
        &self,
        place: CodePlace,
        commit: &Commit,
        target: &GitTarget,
        lock: &RepoLock,
        workshop: &AdminWorkshop<'_>,
    ) -> Result<(), PortError> {
        let call = |arguments: &[&str]| -> Result<(), PortError> {
            let call = self.user.git.sealed_call(target, arguments).with_subject(place);
            call.input(lock.share_as_input()?).run_checked().map(drop)
        };
        if workshop.has_reftable() {
            call(&["update-ref", "--no-deref", "HEAD", commit.as_str()])?;
        }
        call(&["read-tree", "--reset", "-u", commit.as_str()])
    }

    /// Finds the admin folder of a worktree by its content. That of a moved worktree is found by
    /// its owner and by the name in the worktree's `.git` file.
    pub(super) fn admin_of(
        &self,
        place: CodePlace,
        folder: &str,
    ) -> Result<Option<AdminFolder>, PortError> {
        let admins = admin::list_admins(&self.user.common_dir)?;
        let owner = admin::lock_reason_prefix(&self.run, place);
        let moved = |admin: &&AdminFolder| admin.is_moved_to(&owner, Path::new(folder));
        let admin = admins.iter().find(|admin| admin.is_for(folder));
        Ok(admin.or_else(|| admins.iter().find(moved)).cloned())
    }

    /// Loads a worktree that an earlier process made.
    fn load_worktree(&self, place: CodePlace, folder: &str) -> Result<Worktree, PortError> {
        let missing = || PortError::new(format!("git does not know the worktree of {place}"));
        let admin = self.admin_of(place, folder)?.ok_or_else(missing)?;
        let base = admin.base_commit().ok_or_else(missing)?;
        let target = GitTarget { git_dir: admin.git_dir()?, work_tree: folder.to_owned() };
        Ok(Worktree::new(target, base))
    }

    /// Removes the folder and every admin folder of a place, once no git of a dead process writes
    /// there.
    fn clear_worktree(
        &self,
        place: CodePlace,
        folder: &str,
        workshop: &AdminWorkshop<'_>,
    ) -> Result<(), PortError> {
        self.remove_known(place);
        let admins = self.list_own_admins(place, folder)?;
        remove_worktree_files(place, folder, &admins)?;
        admins.iter().try_for_each(|admin| admin.remove(workshop))
    }

    fn list_own_admins(
        &self,
        place: CodePlace,
        folder: &str,
    ) -> Result<Vec<AdminFolder>, PortError> {
        let owner = admin::lock_reason_prefix(&self.run, place);
        let own = admin::admin_name(&self.run, place);
        let mut admins = admin::list_admins_for(&self.user.common_dir, &own)?;
        admins.retain(|admin| admin.is_for(folder) || admin.is_left_by(&owner));
        Ok(admins)
    }

    /// Makes a worktree anew and applies every diff that this process has applied to it.
    pub(super) fn remake_worktree(&self, place: CodePlace) -> Result<(), PortError> {
        let Worktree { base, applied, .. } = self.find_worktree(place)?;
        self.make_worktree(place, &base)?;
        applied.iter().try_for_each(|diff| match self.apply_diff(place, diff)? {
            ApplyResult::Cleanly => Ok(()),
            ApplyResult::Refused(why) => Err(PortError::new(why)),
        })
    }

    pub(super) fn note_applied(&self, place: CodePlace, diff: &str) {
        let mut known = self.known_worktrees.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(worktree) = known.get_mut(&place) {
            worktree.applied.push(diff.to_owned());
        }
    }

    /// Returns true if this process has made the worktree of this place, or has worked in it.
    pub(super) fn is_known(&self, place: CodePlace) -> bool {
        self.known_worktrees.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&place)
    }

    fn insert_known(&self, place: CodePlace, worktree: Worktree) {
        self.known_worktrees.lock().unwrap_or_else(PoisonError::into_inner).insert(place, worktree);
    }

    fn remove_known(&self, place: CodePlace) {
        self.known_worktrees.lock().unwrap_or_else(PoisonError::into_inner).remove(&place);
    }
}

fn unwritten_error(folder: &str, error: io::Error) -> PortError {
    PortError::new(format!("`{folder}` cannot be written")).with_cause(error)
}

fn sync_worktree(folder: &str) -> Result<(), PortError> {
    paths::sync_folder(Path::new(folder)).map_err(|error| {
        PortError::new(format!("`{folder}` cannot be put on disk")).with_cause(error)
    })
}

/// Removes the files of a worktree, once no git of a dead process writes there. The worktree is
/// marked in use first, so that remains after a kill do not count as the user's work.
fn remove_worktree_files(
    place: CodePlace,
    folder: &str,
    admins: &[AdminFolder],
) -> Result<(), PortError> {
    for admin in admins {
        admin.await_git()?;
        // Errors are ignored: if no file can be created, the worktree can still be removed.
        drop(
            admin
                .git_dir()
                .and_then(|git_dir| worktree_guard::mark_in_use(place, Path::new(&git_dir))),
        );
    }
    remove_worktree_folder(folder)
}

fn remove_worktree_folder(folder: &str) -> Result<(), PortError> {
    paths::remove_path(Path::new(folder)).map_err(|error| {
        PortError::new(format!("`{folder}` cannot be removed"))
            .with_hint("close what still uses it; it is tried again")
            .with_cause(error)
    })
}
