//! How a worktree is made, found again and removed: here a plain `git worktree add`, which writes every file.
//! What is done in one is elsewhere.

use super::admin::{self, Admin};
use super::call::Seat;
use super::lock::RepoLock;
use super::{GitRepo, place};
use std::fs;
use std::path::Path;
use std::sync::PoisonError;
use treebeam_core::id::{Commit, Place};
use treebeam_run::port::PortError;

/// A worktree that is there.
#[derive(Clone, Debug)]
pub(super) struct Worktree {
    /// Where calls about it act.
    pub(super) seat: Seat,
    /// The commit that it was made at.
    pub(super) base: Commit,
}

impl GitRepo {
    /// Makes a fresh worktree in place of whatever is there.
    pub(super) fn make(&self, place: Place, commit: &Commit) -> Result<(), PortError> {
        let folder = self.folder(place)?;
        let lock = RepoLock::take(&self.user.common_dir)?;
        self.clear(place, &folder)?;
        let made = self.add(place, commit, &folder, &lock);
        match made {
            Ok(worktree) => self.remember(place, worktree),
            Err(error) => {
                // Half a worktree would break other calls; the first error is the one to tell.
                drop(self.clear(place, &folder));
                return Err(error);
            }
        }
        Ok(())
    }

    /// The worktree at a place. That nothing of it was replaced by a link is checked each time.
    pub(super) fn find(&self, place: Place) -> Result<Worktree, PortError> {
        let folder = self.folder(place)?;
        if place::real(Path::new(&folder))? != folder {
            return Err(PortError::new(format!("`{folder}` was replaced by a link")));
        }
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&place).cloned();
        if let Some(worktree) = known {
            return Ok(worktree);
        }
        let worktree = self.look_up(place, &folder)?;
        self.remember(place, worktree.clone());
        Ok(worktree)
    }

    /// Removes a worktree, whatever became of it. Only git's own part of it needs the lock.
    pub(super) fn remove(&self, place: Place) -> Result<(), PortError> {
        let folder = self.folder(place)?;
        self.forget(place);
        remove_folder(&folder)?;
        if self.admins(place, &folder)?.is_empty() {
            return Ok(());
        }
        let _lock = RepoLock::take(&self.user.common_dir)?;
        self.clear(place, &folder)
    }

    /// The path of a place's worktree, which lies in the run directory and not where a link leads.
    fn folder(&self, place: Place) -> Result<String, PortError> {
        let folder = format!("{}/{}", self.run_dir, place.worktree());
        let above = Path::new(&folder).parent().filter(|above| above.exists());
        let replaced = match above {
            Some(above) => place::real(above)? != place::plain(&above.to_string_lossy()),
            None => false,
        };
        if replaced {
            return Err(PortError::new(format!("the folder of `{folder}` was replaced by a link")));
        }
        Ok(folder)
    }

    fn add(
        &self,
        place: Place,
        commit: &Commit,
        folder: &str,
        lock: &RepoLock,
    ) -> Result<Worktree, PortError> {
        let reason = format!("{}{commit}", admin::owner(&self.run, place));
        let arguments = ["worktree", "add", "--detach", "--lock", "--reason", &reason, "--quiet"];
        let arguments = [arguments.as_slice(), &["--", folder, commit.as_str()]].concat();
        let call = self.user.git.sealed(&self.seat(), &arguments).about(place);
        call.input(lock.share()?).done()?;
        let admin = self.read_back(folder)?;
        let seat = Seat { git_dir: admin.git_dir()?, work_tree: folder.to_owned() };
        Ok(Worktree { seat, base: commit.clone() })
    }

    /// Which admin folder git chose: it stands in the fresh worktree, where nobody but git has been yet.
    fn read_back(&self, folder: &str) -> Result<Admin, PortError> {
        let link = fs::read_to_string(Path::new(folder).join(".git")).unwrap_or_default();
        let name = link.trim().rsplit('/').next().unwrap_or_default();
        let admin = Admin::read(self.user.common_dir.join("worktrees").join(name));
        let odd = || PortError::new(format!("git made a worktree elsewhere than at `{folder}`"));
        if admin.is_for(folder) { Ok(admin) } else { Err(odd()) }
    }

    /// What a worktree of an earlier process is: its admin folder is found by its content.
    fn look_up(&self, place: Place, folder: &str) -> Result<Worktree, PortError> {
        let missing = || PortError::new(format!("git does not know the worktree of {place}"));
        let admins = admin::all(&self.user.common_dir)?;
        let admin = admins.iter().find(|admin| admin.is_for(folder)).ok_or_else(missing)?;
        let base = admin.base().ok_or_else(missing)?;
        let seat = Seat { git_dir: admin.git_dir()?, work_tree: folder.to_owned() };
        Ok(Worktree { seat, base })
    }

    /// Removes the folder and every admin folder of a place. Needs the lock.
    fn clear(&self, place: Place, folder: &str) -> Result<(), PortError> {
        self.forget(place);
        remove_folder(folder)?;
        self.admins(place, folder)?.iter().try_for_each(Admin::remove)
    }

    fn admins(&self, place: Place, folder: &str) -> Result<Vec<Admin>, PortError> {
        let owner = admin::owner(&self.run, place);
        let mut admins = admin::all(&self.user.common_dir)?;
        admins.retain(|admin| admin.is_for(folder) || admin.is_left_by(&owner));
        Ok(admins)
    }

    fn remember(&self, place: Place, worktree: Worktree) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(place, worktree);
    }

    fn forget(&self, place: Place) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).remove(&place);
    }
}

fn remove_folder(folder: &str) -> Result<(), PortError> {
    place::remove(Path::new(folder)).map_err(|error| {
        PortError::new(format!("`{folder}` cannot be removed"))
            .hint("close what still uses it; it is tried again")
            .caused_by(error)
    })
}
