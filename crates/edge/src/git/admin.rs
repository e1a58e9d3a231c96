//! The folders below `worktrees/` in which git keeps what it knows of a worktree: reading, finding and removing ours.
//! Git chooses their names, so they are only ever found by what is in them. Nothing here runs git: what git's own
//! `worktree remove` checks first is what a candidate may have changed.

use super::lock::RepoLock;
use super::place;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use treebeam_core::id::{Commit, Place, RunId};
use treebeam_run::port::PortError;

/// How every reason for which we lock a worktree begins.
const MARK: &str = "treebeam ";

/// Longer than any git that is alive needs from making an admin folder to its first file.
const MOMENT: Duration = Duration::from_mins(1);

/// Why a worktree is locked, up to its commit: whose it is.
pub(super) fn owner(run: &RunId, place: Place) -> String {
    format!("{MARK}{run} {place} ")
}

/// One admin folder.
#[derive(Clone, Debug)]
pub(super) struct Admin {
    folder: PathBuf,
    reason: String,
    target: Option<String>,
}

/// All of them.
pub(super) fn all(common_dir: &Path) -> Result<Vec<Admin>, PortError> {
    let folder = common_dir.join("worktrees");
    let fail =
        |error| PortError::new(format!("`{}` cannot be read", folder.display())).caused_by(error);
    let entries = match fs::read_dir(&folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(fail)?,
    };
    let read = |entry: io::Result<fs::DirEntry>| entry.map(|entry| Admin::read(entry.path()));
    entries.map(read).collect::<io::Result<_>>().map_err(fail)
}

/// Removes what a cut-off `worktree add` of any run left half-made: git fails where it meets it.
/// Whoever makes a worktree holds the lock, so what is half-made while we hold it is nobody's.
pub(super) fn heal(common_dir: &Path) -> Result<(), PortError> {
    let broken = |admin: &Admin| admin.is_half_made();
    if !all(common_dir)?.iter().any(broken) {
        return Ok(());
    }
    let _lock = RepoLock::take(common_dir)?;
    all(common_dir)?.iter().filter(|admin| broken(admin)).try_for_each(Admin::remove)
}

impl Admin {
    /// Reads one; what is missing in it is empty.
    pub(super) fn read(folder: PathBuf) -> Self {
        let text = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
        let target = text("gitdir").trim_end().strip_suffix("/.git").map(place::plain);
        Self { reason: text("locked").trim().to_owned(), target, folder }
    }

    /// The folder itself, for `--git-dir`.
    pub(super) fn git_dir(&self) -> Result<String, PortError> {
        place::real(&self.folder)
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
        let rest = self.reason.strip_prefix(MARK).filter(|_| self.is_left_by(MARK))?;
        Some(rest.rsplit_once(' ').map_or(rest, |(owner, _)| owner).to_owned())
    }

    /// The commit that its worktree was made at: it stands in our reason, and else in its `HEAD`.
    pub(super) fn base(&self) -> Option<Commit> {
        let ours = self.reason.strip_prefix(MARK).and_then(|rest| rest.rsplit(' ').next());
        let head = || fs::read_to_string(self.folder.join("HEAD")).ok();
        let ours = ours.and_then(|name| name.parse().ok());
        ours.or_else(|| head().and_then(|head| head.trim().parse().ok()))
    }

    /// Whether this branch is checked out in its worktree.
    pub(super) fn has_checked_out(&self, reference: &str) -> bool {
        is_head(&self.folder, reference)
    }

    fn is_half_made(&self) -> bool {
        let empty = |name: &str| size(&self.folder.join(name)) == 0;
        let ours = self.reason.starts_with(MARK) && (empty("commondir") || self.target.is_none());
        ours || self.is_hardly_begun()
    }

    /// Git died before it could write even the reason. Another's git is past that in less than a moment.
    fn is_hardly_begun(&self) -> bool {
        let Ok(entries) = fs::read_dir(&self.folder) else { return false };
        let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let blank = paths.all(|path| path.ends_with("locked") && size(&path) == 0);
        let modified = fs::metadata(&self.folder).and_then(|folder| folder.modified());
        let age = modified.ok().and_then(|modified| modified.elapsed().ok());
        blank && age.is_some_and(|age| age > MOMENT)
    }

    /// Removes it, under the repository's lock: first what makes git look at it, last what shows whose it is.
    pub(super) fn remove(&self) -> Result<(), PortError> {
        let whole = ["gitdir", "commondir"].into_iter().map(|name| self.folder.join(name));
        let rest = self.others().unwrap_or_default();
        let last = [self.folder.join("locked"), self.folder.clone()];
        let mut paths = whole.chain(rest).chain(last);
        paths.try_for_each(|path| place::remove(&path)).map_err(|error| {
            PortError::new(format!("`{}` cannot be removed", self.folder.display()))
                .caused_by(error)
        })
    }

    fn others(&self) -> io::Result<Vec<PathBuf>> {
        let mut paths: Vec<PathBuf> = fs::read_dir(&self.folder)?
            .map(|entry| Ok(entry?.path()))
            .collect::<io::Result<_>>()?;
        paths.retain(|path| !path.ends_with("locked"));
        Ok(paths)
    }
}

fn size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |file| file.len())
}

/// Whether the `HEAD` in a git folder is this branch.
pub(super) fn is_head(git_dir: &Path, reference: &str) -> bool {
    let head = fs::read_to_string(git_dir.join("HEAD")).unwrap_or_default();
    head.trim().strip_prefix("ref: ") == Some(reference)
}
