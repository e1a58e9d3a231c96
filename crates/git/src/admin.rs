//! Lists, reads and removes git's admin folders of worktrees, below `worktrees/` in the git folder.
//! An admin folder is identified by its content; its name only tells which ones need not be read.
//! Runs no git: the files that `git worktree remove` checks first may have been changed by a
//! candidate.

use super::lock::{self, RepoLock};
use super::paths;
use super::workshop::AdminWorkshop;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use treebeam_core::id::{CodePlace, Commit, RunId};
use treebeam_run::port::PortError;

/// Prefix of the name of every admin folder that treebeam makes.
const ADMIN_NAME_PREFIX: &str = "tree-";

/// Prefix of every reason with which treebeam locks a worktree.
const LOCK_REASON_PREFIX: &str = "treebeam ";

/// Maximum size of a worktree's `.git` file, in bytes; a larger one is not read.
const MAX_DOT_GIT_BYTES: u64 = 64 << 10;

/// Upper bound for the time in which a live git writes the first file into a new admin folder.
const MAX_ADMIN_CREATION_TIME: Duration = Duration::from_mins(1);

/// Returns the lock reason of a worktree up to its commit: the run and the place that own it.
pub(super) fn lock_reason_prefix(run: &RunId, place: CodePlace) -> String {
    format!("{LOCK_REASON_PREFIX}{run} {place} ")
}

/// An admin folder as read from disk: its path, its lock reason and the path of its worktree.
#[derive(Clone, Debug)]
pub(super) struct AdminFolder {
    folder: PathBuf,
    reason: String,
    target: Option<String>,
}

/// Reads all admin folders of a repository.
pub(super) fn list_admins(common_dir: &Path) -> Result<Vec<AdminFolder>, PortError> {
    Ok(list_admin_paths(common_dir)?.into_iter().map(AdminFolder::read).collect())
}

/// Reads the admin folders that may belong to a place. Folders named after other places are skipped
/// unread: there is one for each node, and a long run has many.
pub(super) fn list_admins_for(common_dir: &Path, own: &str) -> Result<Vec<AdminFolder>, PortError> {
    let name =
        |folder: &PathBuf| folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let is_of_another =
        |name: String| name.starts_with(ADMIN_NAME_PREFIX) && !name.starts_with(own);
    let mut folders = list_admin_paths(common_dir)?;
    folders.retain(|folder| !is_of_another(name(folder)));
    Ok(folders.into_iter().map(AdminFolder::read).collect())
}

/// Returns the preferred name of a place's admin folder; it may be taken.
pub(super) fn admin_name(run: &RunId, place: CodePlace) -> String {
    place.ref_name(run).replace('/', "-")
}

/// Lists the paths of all admin folders, also of worktrees that treebeam did not make.
pub(super) fn list_admin_paths(common_dir: &Path) -> Result<Vec<PathBuf>, PortError> {
    let folder = common_dir.join("worktrees");
    let fail =
        |error| PortError::new(format!("`{}` cannot be read", folder.display())).with_cause(error);
    let entries = match fs::read_dir(&folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(fail)?,
    };
    let path = |entry: io::Result<fs::DirEntry>| entry.map(|entry| entry.path());
    entries.map(path).collect::<io::Result<_>>().map_err(fail)
}

/// Removes admin folders that a power cut or an interrupted `git worktree add` left half-made: git
/// fails wherever it meets one. Worktrees are made under the lock, so a half-made folder seen under
/// the lock is abandoned.
pub(super) fn remove_half_made(common_dir: &Path) -> Result<(), PortError> {
    let broken = |admin: &AdminFolder| admin.is_half_made();
    if !list_admins(common_dir)?.iter().any(broken) {
        return Ok(());
    }
    let lock = RepoLock::acquire(common_dir)?;
    let workshop = AdminWorkshop::open(common_dir, &lock)?;
    let admins = list_admins(common_dir)?;
    admins.iter().filter(|admin| broken(admin)).try_for_each(|admin| admin.remove(&workshop))
}

impl AdminFolder {
    /// Reads an admin folder; missing files count as empty.
    pub(super) fn read(folder: PathBuf) -> Self {
        let text = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
        let target = text("gitdir").trim_end().strip_suffix("/.git").map(paths::git_path);
        Self { reason: text("locked").trim().to_owned(), target, folder }
    }

    /// Returns the real path of the admin folder, for `--git-dir`.
    pub(super) fn git_dir(&self) -> Result<String, PortError> {
        paths::real_path(&self.folder)
    }

    /// Returns true if this admin folder belongs to the worktree at this path.
    pub(super) fn is_for(&self, worktree: &str) -> bool {
        self.target.as_deref() == Some(worktree)
    }

    /// Returns true if the worktree of this owner is gone or was never finished.
    pub(super) fn is_left_by(&self, owner: &str) -> bool {
        let gone = |target: &String| !Path::new(target).exists();
        self.reason.starts_with(owner) && self.target.as_ref().is_none_or(gone)
    }

    /// Returns the owner (`<run> <place>`) of a treebeam worktree that is gone.
    pub(super) fn stale_owner(&self) -> Option<String> {
        let rest = self
            .reason
            .strip_prefix(LOCK_REASON_PREFIX)
            .filter(|_| self.is_left_by(LOCK_REASON_PREFIX))?;
        Some(rest.rsplit_once(' ').map_or(rest, |(owner, _)| owner).to_owned())
    }

    /// Returns true if this owner's worktree was moved to `folder`, with its run or the repository.
    pub(super) fn is_moved_to(&self, owner: &str, folder: &Path) -> bool {
        let named = worktree_name_in(folder);
        self.target.is_some() && self.is_left_by(owner) && named.as_deref() == self.worktree_name()
    }

    /// Returns git's name of the worktree: the name of its admin folder.
    pub(super) fn worktree_name(&self) -> Option<&OsStr> {
        self.folder.file_name()
    }

    /// Returns the owner and the former path of a treebeam worktree that is gone.
    pub(super) fn orphaned_worktree(&self) -> Option<(String, String)> {
        Some((self.stale_owner()?, self.target.clone()?))
    }

    /// Returns true if this is the admin folder of an existing worktree of `run`.
    pub(super) fn has_worktree_of(&self, run: &RunId) -> bool {
        let there = self.target.as_ref().is_some_and(|target| Path::new(target).exists());
        there && self.reason.starts_with(&format!("{LOCK_REASON_PREFIX}{run} "))
    }

    /// Returns the commit that the worktree was made at, from the lock reason or else from `HEAD`.
    pub(super) fn base_commit(&self) -> Option<Commit> {
        let ours =
            self.reason.strip_prefix(LOCK_REASON_PREFIX).and_then(|rest| rest.rsplit(' ').next());
        let head = || fs::read_to_string(self.folder.join("HEAD")).ok();
        let ours = ours.and_then(|name| name.parse().ok());
        ours.or_else(|| head().and_then(|head| head.trim().parse().ok()))
    }

    fn is_half_made(&self) -> bool {
        let path = |name: &str| self.folder.join(name);
        let lacks = |name: &str| file_size(&path(name)) == 0;
        let torn = path("index").exists() && lacks("index");
        let whole = self.target.is_some() && !lacks("commondir") && !lacks("HEAD") && !torn;
        let ours = self.reason.starts_with(LOCK_REASON_PREFIX) || self.is_blanked();
        ours && !whole || self.is_hardly_begun()
    }

    /// Returns true if a power cut emptied the files and left their names. Git writes the reason
    /// first, so the reason is not empty while a git is at work.
    fn is_blanked(&self) -> bool {
        let blank = |name: &str| fs::metadata(self.folder.join(name)).is_ok_and(|f| f.len() == 0);
        blank("locked") && ["gitdir", "commondir", "HEAD"].into_iter().any(blank)
    }

    /// Returns true if git died before it wrote the reason. A live git gets past that in an
    /// instant.
    fn is_hardly_begun(&self) -> bool {
        let Ok(entries) = fs::read_dir(&self.folder) else { return false };
        let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let blank = paths.all(|path| path.ends_with("locked") && file_size(&path) == 0);
        let modified = fs::metadata(&self.folder).and_then(|folder| folder.modified());
        let age = modified.ok().and_then(|modified| modified.elapsed().ok());
        blank && age.is_some_and(|age| age > MAX_ADMIN_CREATION_TIME)
    }

    /// Waits for a git that still writes in the worktree after its parent process died.
    pub(super) fn await_git(&self) -> Result<(), PortError> {
        lock::await_worktree_git(&self.folder)
    }

    /// Removes the whole admin folder at once, as git sees it.
    pub(super) fn remove(&self, workshop: &AdminWorkshop<'_>) -> Result<(), PortError> {
        workshop.remove_admin(&self.folder)
    }
}

/// Returns git's name of the worktree in `folder`, read from its `.git` file. The name stays the
/// same when the worktree or the repository is moved.
pub(super) fn worktree_name_in(folder: &Path) -> Option<OsString> {
    let link = folder.join(".git");
    let found = fs::symlink_metadata(&link).ok()?;
    let text =
        (found.is_file() && found.len() <= MAX_DOT_GIT_BYTES).then(|| fs::read_to_string(&link));
    let text = text?.ok()?;
    Path::new(text.trim_end().strip_prefix("gitdir: ")?).file_name().map(OsStr::to_owned)
}

fn file_size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |file| file.len())
}
