//! The folders below `worktrees/` in which git keeps what it knows of a worktree: reading, finding and removing ours.
//! They are only ever found by what is in them; their names only tell which of them need not be read. Nothing here runs
//! git: what git's own `worktree remove` checks first is what a candidate may have changed.

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

/// How the names of all admin folders begin that we make.
const ADMIN_NAME_PREFIX: &str = "tree-";

/// How every reason for which we lock a worktree begins.
const LOCK_REASON_PREFIX: &str = "treebeam ";

/// No `.git` of a worktree is longer, in bytes.
const MAX_DOT_GIT_BYTES: u64 = 64 << 10;

/// Longer than any git that is alive needs from making an admin folder to its first file.
const MAX_ADMIN_CREATION_TIME: Duration = Duration::from_mins(1);

/// Why a worktree is locked, up to its commit: whose it is.
pub(super) fn lock_reason_prefix(run: &RunId, place: CodePlace) -> String {
    format!("{LOCK_REASON_PREFIX}{run} {place} ")
}

/// One admin folder.
#[derive(Clone, Debug)]
pub(super) struct AdminFolder {
    folder: PathBuf,
    reason: String,
    target: Option<String>,
}

/// All of them.
pub(super) fn list_admins(common_dir: &Path) -> Result<Vec<AdminFolder>, PortError> {
    Ok(list_admin_paths(common_dir)?.into_iter().map(AdminFolder::read).collect())
}

/// Those that can be about a place. One that is named after another place of a run is not even read: there is one for
/// each node, and a long run has many.
pub(super) fn list_admins_for(common_dir: &Path, own: &str) -> Result<Vec<AdminFolder>, PortError> {
    let name =
        |folder: &PathBuf| folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let is_of_another =
        |name: String| name.starts_with(ADMIN_NAME_PREFIX) && !name.starts_with(own);
    let mut folders = list_admin_paths(common_dir)?;
    folders.retain(|folder| !is_of_another(name(folder)));
    Ok(folders.into_iter().map(AdminFolder::read).collect())
}

/// The name that we give to an admin folder, if it is free.
pub(super) fn admin_name(run: &RunId, place: CodePlace) -> String {
    place.ref_name(run).replace('/', "-")
}

/// The folders themselves, of any worktree.
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

/// Removes what a power cut, or a `git worktree add` that was cut off, left half-made: git fails where it meets it.
/// Whoever makes a worktree holds the lock, so what is half-made while we hold it is nobody's.
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
    /// Reads one; what is missing in it is empty.
    pub(super) fn read(folder: PathBuf) -> Self {
        let text = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
        let target = text("gitdir").trim_end().strip_suffix("/.git").map(paths::git_path);
        Self { reason: text("locked").trim().to_owned(), target, folder }
    }

    /// The folder itself, for `--git-dir`.
    pub(super) fn git_dir(&self) -> Result<String, PortError> {
        paths::real_path(&self.folder)
    }

    /// Whether its worktree is this folder.
    pub(super) fn is_for(&self, worktree: &str) -> bool {
        self.target.as_deref() == Some(worktree)
    }

    /// Whether a worktree of this owner is gone, or was never finished, and this is what is left.
    pub(super) fn is_left_by(&self, owner: &str) -> bool {
        let gone = |target: &String| !Path::new(target).exists();
        self.reason.starts_with(owner) && self.target.as_ref().is_none_or(gone)
    }

    /// Whose worktree it was, `<run> <place>`, if it was ours and is gone.
    pub(super) fn stale_owner(&self) -> Option<String> {
        let rest = self
            .reason
            .strip_prefix(LOCK_REASON_PREFIX)
            .filter(|_| self.is_left_by(LOCK_REASON_PREFIX))?;
        Some(rest.rsplit_once(' ').map_or(rest, |(owner, _)| owner).to_owned())
    }

    /// Whether the worktree of this owner was moved to this folder, together with the run or the whole repository.
    pub(super) fn is_moved_to(&self, owner: &str, folder: &Path) -> bool {
        let named = worktree_name_in(folder);
        self.target.is_some() && self.is_left_by(owner) && named.as_deref() == self.worktree_name()
    }

    /// What git calls the worktree.
    pub(super) fn worktree_name(&self) -> Option<&OsStr> {
        self.folder.file_name()
    }

    /// Its worktree, and whose that was, if it was ours and is gone.
    pub(super) fn orphaned_worktree(&self) -> Option<(String, String)> {
        Some((self.stale_owner()?, self.target.clone()?))
    }

    /// Whether a worktree of this run is there.
    pub(super) fn has_worktree_of(&self, run: &RunId) -> bool {
        let there = self.target.as_ref().is_some_and(|target| Path::new(target).exists());
        there && self.reason.starts_with(&format!("{LOCK_REASON_PREFIX}{run} "))
    }

    /// The commit that its worktree was made at: it stands in our reason, and else in its `HEAD`.
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

    /// A power cut took what was in the files and left their names. Git writes the reason first: while it is at work, that
    /// is not empty.
    fn is_blanked(&self) -> bool {
        let blank = |name: &str| fs::metadata(self.folder.join(name)).is_ok_and(|f| f.len() == 0);
        blank("locked") && ["gitdir", "commondir", "HEAD"].into_iter().any(blank)
    }

    /// Git died before it could write even the reason. Another's git is past that in less than a moment.
    fn is_hardly_begun(&self) -> bool {
        let Ok(entries) = fs::read_dir(&self.folder) else { return false };
        let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let blank = paths.all(|path| path.ends_with("locked") && file_size(&path) == 0);
        let modified = fs::metadata(&self.folder).and_then(|folder| folder.modified());
        let age = modified.ok().and_then(|modified| modified.elapsed().ok());
        blank && age.is_some_and(|age| age > MAX_ADMIN_CREATION_TIME)
    }

    /// Waits for a git that is still at work here although whoever started it is dead.
    pub(super) fn await_git(&self) -> Result<(), PortError> {
        lock::await_worktree_git(&self.folder)
    }

    /// Removes it from git's sight, whole.
    pub(super) fn remove(&self, workshop: &AdminWorkshop<'_>) -> Result<(), PortError> {
        workshop.remove_admin(&self.folder)
    }
}

/// What git calls the worktree in a folder, as the folder itself has it. That stays, wherever both are moved to.
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
