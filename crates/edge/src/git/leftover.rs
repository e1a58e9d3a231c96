//! What runs have left in the user's repository, for `treebeam clean`: what git still knows of worktrees that are gone,
//! refs of a run, and worktrees in which somebody has worked. It removes only what shows by its name and its reason
//! that it was made by a run.

use super::lock::RepoLock;
use super::workshop::Workshop;
use super::worktree::Worktree;
use super::{GitRepo, UserRepo, admin, place};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use treebeam_core::event::{Leftover, LeftoverKind};
use treebeam_core::id::{Commit, Place, RunId};
use treebeam_core::measure::WorktreePath;
use treebeam_run::port::{PortError, Repo as _};

/// The most that is kept of a list of changes.
const MOST_CHANGES: usize = 1 << 20;

/// What git still knows of a worktree of a run that is not where it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orphan {
    /// The run.
    pub run: RunId,
    /// Whose worktree it was.
    pub place: Place,
    /// Where the worktree was.
    pub worktree: PathBuf,
    /// What git calls it.
    name: OsString,
}

impl Orphan {
    fn of(admin: &admin::Admin) -> Option<Self> {
        let (owner, worktree) = admin.orphaned()?;
        let (run, place) = owner.split_once(' ')?;
        let (run, place) = (run.parse().ok()?, place.parse().ok()?);
        Some(Self { run, place, worktree: worktree.into(), name: admin.called()?.to_owned() })
    }

    /// The directory of the run that it was in.
    #[must_use]
    pub fn run_dir(&self) -> Option<&Path> {
        self.worktree.parent()?.parent()
    }

    /// Where the worktree is now, if it is in this directory of its run.
    #[must_use]
    pub fn lies_in(&self, run_dir: &Path) -> Option<PathBuf> {
        let folder = run_dir.join(self.place.worktree().as_str());
        (admin::named_in(&folder)? == self.name).then_some(folder)
    }
}

/// What a run has made in its worktrees itself, and what is therefore nobody's work.
#[derive(Clone, Debug, Default)]
pub struct Own {
    /// Commits that it knows.
    pub commits: Vec<Commit>,
    /// Paths at which it has put links to the same paths in the user's working tree.
    pub inputs: Vec<WorktreePath>,
}

/// Removes a folder, a file or a link itself, also where a folder inside was made unwritable. Nothing there is fine.
///
/// # Errors
/// When something is still there afterwards.
pub fn remove_folder(path: &Path) -> io::Result<()> {
    place::remove(path)
}

impl UserRepo {
    /// What git knows of worktrees of runs that are gone, by run and place.
    ///
    /// # Errors
    /// When git's folder cannot be read.
    pub fn orphans(&self) -> Result<Vec<Orphan>, PortError> {
        let admins = admin::all(&self.common_dir)?;
        let mut orphans: Vec<_> = admins.iter().filter_map(Orphan::of).collect();
        orphans.sort_by(|a, b| (&a.run, a.place).cmp(&(&b.run, b.place)));
        Ok(orphans)
    }

    /// Lets git forget a worktree that is gone. One that was made again meanwhile stays.
    ///
    /// # Errors
    /// When git still knows it afterwards.
    pub fn forget(&self, orphan: &Orphan) -> Result<(), PortError> {
        let lock = RepoLock::take(&self.common_dir)?;
        let workshop = Workshop::open(&self.common_dir, &lock)?;
        let admins = admin::all(&self.common_dir)?;
        let mut same = admins.iter().filter(|admin| Orphan::of(admin).as_ref() == Some(orphan));
        same.try_for_each(|admin| admin.remove(&workshop))
    }

    /// Whether a worktree of a run of this name is there, wherever that run lies.
    ///
    /// # Errors
    /// When git's folder cannot be read.
    pub fn has_worktrees_of(&self, run: &RunId) -> Result<bool, PortError> {
        Ok(admin::all(&self.common_dir)?.iter().any(|admin| admin.is_alive_of(run)))
    }
}

impl GitRepo {
    /// The refs of this run that a run makes, and those that have another's name below its own.
    ///
    /// # Errors
    /// When git cannot tell.
    pub fn own_refs(&self) -> Result<(Vec<Place>, Vec<String>), PortError> {
        let (mut own, mut foreign) = (Vec::new(), Vec::new());
        for (name, _) in self.refs()? {
            match name.rsplit('/').next().and_then(|last| last.parse::<Place>().ok()) {
                Some(place) if place.ref_name(&self.run) == name => own.push(place),
                _ => foreign.push(name),
            }
        }
        Ok((own, foreign))
    }

    /// Removes a ref of this run.
    ///
    /// # Errors
    /// When it is still there afterwards.
    pub fn remove_ref(&self, place: Place) -> Result<(), PortError> {
        self.discard(Leftover { place, kind: LeftoverKind::Branch }, 1)
    }

    /// What somebody has done in a worktree that would be lost with it: changes that are not committed, or commits after
    /// those that the run knows. None where there is nothing but the run's own, or no worktree.
    ///
    /// # Errors
    /// When git cannot tell.
    pub fn work_in(&self, place: Place, own: &Own) -> Result<Option<String>, PortError> {
        if !Path::new(&self.run_dir).join(place.worktree().as_str()).exists() {
            return Ok(None);
        }
        let worktree = self.find(place)?;
        let head = self.user.detached_at(&worktree.seat)?;
        if head.is_some_and(|head| head != worktree.base && !own.commits.contains(&head)) {
            return Ok(Some("it has commits that are on no branch".to_owned()));
        }
        let mut paths = self.uncommitted(place, &worktree)?;
        paths.retain(|path| !self.is_own_link(&worktree, path, &own.inputs));
        let paths = self.other_than_committed(place, &worktree.base, paths)?;
        Ok(paths.first().map(|first| {
            let others = paths.len() - 1;
            let others = if others == 0 { String::new() } else { format!(" and {others} more") };
            format!("it has changes that are not committed: `{first}`{others}")
        }))
    }

    /// The paths that git says are changed or new.
    fn uncommitted(&self, place: Place, worktree: &Worktree) -> Result<Vec<String>, PortError> {
        // The attributes that the files were written with, whatever has become of those in the worktree.
        let attributes = format!("--attr-source={}", worktree.base);
        let status = [&attributes, "status", "--porcelain=v1", "-z", "--untracked-files=all"];
        let question = [&status[..], &["--no-renames", "--ignore-submodules=dirty"]].concat();
        let call = self.user.git.sealed(&worktree.seat, &question).about(place);
        let text = call.keep(MOST_CHANGES).done()?.beginning();
        Ok(text
            .split_terminator('\0')
            .filter_map(|entry| entry.get(3..))
            .map(str::to_owned)
            .collect())
    }

    /// Whether a link was made for an input. Git, told to ignore the folder `data/`, takes a link `data` for a new file. Where
    /// the repository was moved since, it leads to where the input was, and there is nothing any more.
    fn is_own_link(&self, worktree: &Worktree, path: &str, inputs: &[WorktreePath]) -> bool {
        let link = Path::new(&worktree.seat.work_tree).join(path);
        inputs.iter().any(|input| input.as_str() == path)
            && (place::is_link_to(&link, &self.user.toplevel.join(path))
                || place::led_to(&link, Path::new(path)))
    }
}
