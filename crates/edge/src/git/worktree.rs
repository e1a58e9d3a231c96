//! How a worktree is made, found again and removed. It does what `git worktree add` does, which writes every file, but in
//! an order in which no moment leaves git with half a worktree. What is done in one is elsewhere.

use super::admin::{self, Admin};
use super::call::Seat;
use super::lock::RepoLock;
use super::tracked::IndexCopy;
use super::workshop::{self, Layout, Workshop};
use super::{GitRepo, place, used};
use std::fs;
use std::io;
use std::path::Path;
use std::sync::{Arc, PoisonError};
use treebeam_core::id::{Commit, Place};
use treebeam_run::port::{Applied, PortError};

/// A worktree that is there.
#[derive(Clone, Debug)]
pub(super) struct Worktree {
    /// Where calls about it act.
    pub(super) seat: Seat,
    /// The commit that it was made at.
    pub(super) base: Commit,
    /// What was put into it since: enough to make it again.
    pub(super) applied: Vec<String>,
    /// What its files were before commands ran there, where that is known.
    pub(super) index: Option<Arc<IndexCopy>>,
}

impl Worktree {
    fn new(seat: Seat, base: Commit) -> Self {
        Self { seat, base, applied: Vec::new(), index: None }
    }
}

impl GitRepo {
    /// Makes a fresh worktree in place of whatever is there. A node's is what the user gets, and stays: it survives a
    /// power cut. A candidate's is made again.
    pub(super) fn make(&self, place: Place, commit: &Commit) -> Result<(), PortError> {
        let folder = self.folder(place)?;
        let lock = RepoLock::take(&self.user.common_dir)?;
        let workshop = Workshop::open(&self.user.common_dir, &lock)?;
        self.clear(place, &folder, &workshop)?;
        let made = self.add(place, commit, &folder, &lock, &workshop);
        let kept = made.and_then(|worktree| match place {
            Place::Node(_) => put_on_disk(&folder).map(|()| worktree),
            Place::Candidate(_) => Ok(worktree),
        });
        match kept {
            Ok(worktree) => self.remember(place, worktree),
            Err(error) => {
                // Nobody needs half a worktree; the first error is the one to tell.
                drop(self.clear(place, &folder, &workshop));
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
        let admins = self.admins(place, &folder)?;
        remove_files(place, &folder, &admins)?;
        if admins.is_empty() && !workshop::folder(&self.user.common_dir).exists() {
            return Ok(());
        }
        let lock = RepoLock::take(&self.user.common_dir)?;
        let workshop = Workshop::open(&self.user.common_dir, &lock)?;
        self.clear(place, &folder, &workshop)
    }

    /// The path of a place's worktree, which lies in the run directory and not where a link leads.
    pub(super) fn folder(&self, place: Place) -> Result<String, PortError> {
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

    /// Makes a worktree where none is. Git is shown it when it is whole.
    fn add(
        &self,
        place: Place,
        commit: &Commit,
        folder: &str,
        lock: &RepoLock,
        workshop: &Workshop<'_>,
    ) -> Result<Worktree, PortError> {
        let reason = format!("{}{commit}", admin::owner(&self.run, place));
        let name = workshop.free_name(&admin::name(&self.run, place));
        let layout = Layout { work_tree: folder, commit, reason: &reason };
        let made = place::real(&workshop.make(&name, &layout)?)?;
        fs::create_dir_all(folder).map_err(|error| unwritten(folder, error))?;
        let seat = Seat { git_dir: made, work_tree: folder.to_owned() };
        self.fill(place, commit, &seat, lock, workshop)?;
        let git_dir = place::plain(&workshop.place_of(&name).to_string_lossy());
        let link = Path::new(folder).join(".git");
        fs::write(link, format!("gitdir: {git_dir}\n"))
            .map_err(|error| unwritten(folder, error))?;
        workshop.put_in(&name)?;
        Ok(Worktree::new(Seat { git_dir, ..seat }, commit.clone()))
    }

    /// Writes the index and every file.
    fn fill(
        &self,
        place: Place,
        commit: &Commit,
        seat: &Seat,
        lock: &RepoLock,
        workshop: &Workshop<'_>,
    ) -> Result<(), PortError> {
        let call = |arguments: &[&str]| -> Result<(), PortError> {
            let call = self.user.git.sealed(seat, arguments).about(place);
            call.input(lock.share()?).done().map(drop)
        };
        if workshop.uses_reftable() {
            call(&["update-ref", "--no-deref", "HEAD", commit.as_str()])?;
        }
        call(&["read-tree", "--reset", "-u", commit.as_str()])
    }

    /// The admin folder of a worktree, found by its content. One that was moved is known by whose it is, and by the name that
    /// it has for itself.
    pub(super) fn admin_of(&self, place: Place, folder: &str) -> Result<Option<Admin>, PortError> {
        let admins = admin::all(&self.user.common_dir)?;
        let owner = admin::owner(&self.run, place);
        let moved = |admin: &&Admin| admin.is_moved_to(&owner, Path::new(folder));
        let admin = admins.iter().find(|admin| admin.is_for(folder));
        Ok(admin.or_else(|| admins.iter().find(moved)).cloned())
    }

    /// What a worktree of an earlier process is.
    fn look_up(&self, place: Place, folder: &str) -> Result<Worktree, PortError> {
        let missing = || PortError::new(format!("git does not know the worktree of {place}"));
        let admin = self.admin_of(place, folder)?.ok_or_else(missing)?;
        let base = admin.base().ok_or_else(missing)?;
        let seat = Seat { git_dir: admin.git_dir()?, work_tree: folder.to_owned() };
        Ok(Worktree::new(seat, base))
    }

    /// Removes the folder and every admin folder of a place, once no git of a dead process is at work there.
    fn clear(&self, place: Place, folder: &str, workshop: &Workshop<'_>) -> Result<(), PortError> {
        self.forget(place);
        let admins = self.admins(place, folder)?;
        remove_files(place, folder, &admins)?;
        admins.iter().try_for_each(|admin| admin.remove(workshop))
    }

    fn admins(&self, place: Place, folder: &str) -> Result<Vec<Admin>, PortError> {
        let owner = admin::owner(&self.run, place);
        let own = admin::name(&self.run, place);
        let mut admins = admin::about(&self.user.common_dir, &own)?;
        admins.retain(|admin| admin.is_for(folder) || admin.is_left_by(&owner));
        Ok(admins)
    }

    /// Makes a worktree anew, with all that this process has put into it.
    pub(super) fn make_again(&self, place: Place) -> Result<(), PortError> {
        let Worktree { base, applied, .. } = self.find(place)?;
        self.make(place, &base)?;
        applied.iter().try_for_each(|diff| match self.apply_diff(place, diff)? {
            Applied::Cleanly => Ok(()),
            Applied::Refused(why) => Err(PortError::new(why)),
        })
    }

    pub(super) fn note_applied(&self, place: Place, diff: &str) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(worktree) = known.get_mut(&place) {
            worktree.applied.push(diff.to_owned());
        }
    }

    /// Whether this process has made the worktree of this place, or has worked in it.
    pub(super) fn is_known(&self, place: Place) -> bool {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&place)
    }

    fn remember(&self, place: Place, worktree: Worktree) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(place, worktree);
    }

    fn forget(&self, place: Place) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).remove(&place);
    }
}

fn unwritten(folder: &str, error: io::Error) -> PortError {
    PortError::new(format!("`{folder}` cannot be written")).caused_by(error)
}

fn put_on_disk(folder: &str) -> Result<(), PortError> {
    place::sync(Path::new(folder)).map_err(|error| {
        PortError::new(format!("`{folder}` cannot be put on disk")).caused_by(error)
    })
}

/// Removes what is in a worktree, once no git of a dead process is at work there. What a kill leaves of it is nobody's work.
fn remove_files(place: Place, folder: &str, admins: &[Admin]) -> Result<(), PortError> {
    for admin in admins {
        admin.outlast()?;
        // Where no file can be made one can still be removed.
        drop(admin.git_dir().and_then(|git_dir| used::begin(place, Path::new(&git_dir))));
    }
    remove_folder(folder)
}

fn remove_folder(folder: &str) -> Result<(), PortError> {
    place::remove(Path::new(folder)).map_err(|error| {
        PortError::new(format!("`{folder}` cannot be removed"))
            .hint("close what still uses it; it is tried again")
            .caused_by(error)
    })
}
