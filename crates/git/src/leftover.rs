//! Finds and removes what runs left in the user's repository, for `treebeam clean`. That is: admin
//! folders of worktrees that are gone, refs of a run, and worktrees with work of the user's. Only
//! what its name and lock reason show to be a run's is removed.

use super::lock::RepoLock;
use super::workshop::AdminWorkshop;
use super::worktree::Worktree;
use super::worktree_guard::RunOwnWork;
use super::{GitRepo, UserRepo, admin, paths};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use treebeam_core::event::{Leftover, LeftoverKind};
use treebeam_core::id::{CodePlace, RunId};
use treebeam_core::measure::WorktreePath;
use treebeam_run::port::{PortError, Repo as _};

/// Maximum size of a list of changes, in bytes.
const MAX_STATUS_BYTES: usize = 1 << 20;

/// An admin folder of a run's worktree that is no longer at its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrphanedWorktree {
    /// Run that made the worktree.
    pub run: RunId,
    /// Node or candidate of the worktree.
    pub place: CodePlace,
    /// Former path of the worktree.
    pub worktree: PathBuf,
    /// Git's name of the worktree.
    name: OsString,
}

impl OrphanedWorktree {
    fn from_admin(admin: &admin::AdminFolder) -> Option<Self> {
        let (owner, worktree) = admin.orphaned_worktree()?;
        let (run, place) = owner.split_once(' ')?;
        let (run, place) = (run.parse().ok()?, place.parse().ok()?);
        Some(Self {
            run,
            place,
            worktree: worktree.into(),
            name: admin.worktree_name()?.to_owned(),
        })
    }

    /// Returns the run directory that the worktree was in.
    #[must_use]
    pub fn run_dir(&self) -> Option<&Path> {
        self.worktree.parent()?.parent()
    }

    /// Returns the present path of the worktree, if it is in this directory of its run.
    #[must_use]
    pub fn find_in(&self, run_dir: &Path) -> Option<PathBuf> {
        let folder = run_dir.join(self.place.worktree_path().as_str());
        (admin::worktree_name_in(&folder)? == self.name).then_some(folder)
    }
}

/// Removes a folder, a file or a link, also if a folder inside is not writable. A missing path is
/// no error.
///
/// # Errors
/// When something is still there afterwards.
pub fn remove_folder(path: &Path) -> io::Result<()> {
    paths::remove_path(path)
}

impl UserRepo {
    /// Lists the orphaned worktrees of all runs, sorted by run and place.
    ///
    /// # Errors
    /// When git's folder cannot be read.
    pub fn list_orphaned_worktrees(&self) -> Result<Vec<OrphanedWorktree>, PortError> {
        let admins = admin::list_admins(&self.common_dir)?;
        let mut orphans: Vec<_> = admins.iter().filter_map(OrphanedWorktree::from_admin).collect();
        orphans.sort_by(|a, b| (&a.run, a.place).cmp(&(&b.run, b.place)));
        Ok(orphans)
    }

    /// Removes the admin folder of an orphaned worktree, unless the worktree was made again
    /// meanwhile.
    ///
    /// # Errors
    /// When git still knows the worktree afterwards.
    pub fn forget_orphan(&self, orphan: &OrphanedWorktree) -> Result<(), PortError> {
        let lock = RepoLock::acquire(&self.common_dir)?;
        let workshop = AdminWorkshop::open(&self.common_dir, &lock)?;
        let admins = admin::list_admins(&self.common_dir)?;
        let mut same = admins
            .iter()
            .filter(|admin| OrphanedWorktree::from_admin(admin).as_ref() == Some(orphan));
        same.try_for_each(|admin| admin.remove(&workshop))
    }

    /// Returns true if a worktree of a run with this name exists, wherever that run is stored.
    ///
    /// # Errors
    /// When git's folder cannot be read.
    pub fn has_worktrees_of(&self, run: &RunId) -> Result<bool, PortError> {
        Ok(admin::list_admins(&self.common_dir)?.iter().any(|admin| admin.has_worktree_of(run)))
    }
}

impl GitRepo {
    /// Returns the refs below this run's name: those that the run makes, and all others.
    ///
    /// # Errors
    /// When git fails.
    pub fn own_refs(&self) -> Result<(Vec<CodePlace>, Vec<String>), PortError> {
        let (mut own, mut foreign) = (Vec::new(), Vec::new());
        for (name, _) in self.list_refs()? {
            match name.rsplit('/').next().and_then(|last| last.parse::<CodePlace>().ok()) {
                Some(place) if place.ref_name(&self.run) == name => own.push(place),
                _ => foreign.push(name),
            }
        }
        Ok((own, foreign))
    }

    /// Removes a ref of this run.
    ///
    /// # Errors
    /// When it still exists afterwards.
    pub fn remove_ref(&self, place: CodePlace) -> Result<(), PortError> {
        self.discard_leftover(Leftover { place, kind: LeftoverKind::Branch }, 1)
    }

    /// Describes the user's work in a worktree that would be lost with it: uncommitted changes, or
    /// commits beyond those that the run knows. Returns `None` without such work or without a
    /// worktree.
    ///
    /// # Errors
    /// When git fails.
    pub fn find_user_work(
        &self,
        place: CodePlace,
        own: &RunOwnWork,
    ) -> Result<Option<String>, PortError> {
        if !Path::new(&self.run_dir).join(place.worktree_path().as_str()).exists() {
            return Ok(None);
        }
        let worktree = self.find_worktree(place)?;
        let head = self.user.detached_head(&worktree.target)?;
        if head.is_some_and(|head| head != worktree.base && !own.commits.contains(&head)) {
            return Ok(Some("it has commits that are on no branch".to_owned()));
        }
        let mut paths = self.list_uncommitted(place, &worktree)?;
        paths.retain(|path| !self.is_own_link(&worktree, path, &own.inputs));
        let paths = self.differing_from_commit(place, &worktree.base, paths)?;
        Ok(paths.first().map(|first| {
            let others = paths.len() - 1;
            let others = if others == 0 { String::new() } else { format!(" and {others} more") };
            format!("it has changes that are not committed: `{first}`{others}")
        }))
    }

    /// Returns the paths that git reports as changed or new.
    fn list_uncommitted(
        &self,
        place: CodePlace,
        worktree: &Worktree,
    ) -> Result<Vec<String>, PortError> {
        // The attributes that the files were written with, not those that the worktree has now.
        let attributes = format!("--attr-source={}", worktree.base);
        let status = [&attributes, "status", "--porcelain=v1", "-z", "--untracked-files=all"];
        let question = [&status[..], &["--no-renames", "--ignore-submodules=dirty"]].concat();
        let call = self.user.git.sealed_call(&worktree.target, &question).with_subject(place);
        let text = call.keep_stdout(MAX_STATUS_BYTES).run_checked()?.kept_text();
        Ok(text
            .split_terminator('\0')
            .filter_map(|entry| entry.get(3..))
            .map(str::to_owned)
            .collect())
    }

    /// Returns true if `path` is a link that was made for an input. A git that ignores the folder
    /// `data/` reports a link `data` as a new file. If the repository was moved since, the link
    /// dangles: it leads to where the input was.
    fn is_own_link(&self, worktree: &Worktree, path: &str, inputs: &[WorktreePath]) -> bool {
        let link = Path::new(&worktree.target.work_tree).join(path);
        inputs.iter().any(|input| input.as_str() == path)
            && (paths::is_link_to(&link, &self.user.toplevel.join(path))
                || paths::is_dangling_link_to(&link, Path::new(path)))
    }
}
