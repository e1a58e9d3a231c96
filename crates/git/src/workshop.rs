//! Makes and removes admin folders of worktrees in a private folder inside the git folder. Git may
//! read `worktrees/` at any time and fails on anything half-made there, so one rename puts a
//! complete admin folder in, and one takes it out. It does not know what a worktree is for.

use super::lock::RepoLock;
use super::{paths, refs};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use treebeam_core::id::Commit;
use treebeam_run::port::PortError;

/// Maximum number of tries to publish an admin folder. Another git removes `worktrees/` whenever it
/// finds it empty, but cannot do so this often in a row.
const MAX_PUBLISH_TRIES: usize = 100;

/// The workshop folder, for as long as the lock is held; removed with its content when dropped.
#[derive(Debug)]
pub(super) struct AdminWorkshop<'a> {
    common_dir: &'a Path,
    folder: PathBuf,
}

/// Content of a new worktree's admin folder.
#[derive(Debug)]
pub(super) struct WorktreeLayout<'a> {
    /// Folder with the worktree's files.
    pub(super) work_tree: &'a str,
    /// Commit that is checked out.
    pub(super) commit: &'a Commit,
    /// Lock reason of the worktree.
    pub(super) reason: &'a str,
}

/// Returns the path of a repository's workshop.
pub(super) fn workshop_folder(common_dir: &Path) -> PathBuf {
    common_dir.join("treebeam")
}

impl Drop for AdminWorkshop<'_> {
    fn drop(&mut self) {
        // The next process that opens the workshop removes what stays.
        drop(paths::remove_path(&self.folder));
    }
}

impl<'a> AdminWorkshop<'a> {
    /// Opens the workshop, empty. Anything in it was left by a dead process: it is only used under
    /// the lock.
    pub(super) fn open(common_dir: &'a Path, _lock: &RepoLock) -> Result<Self, PortError> {
        let folder = workshop_folder(common_dir);
        let made = paths::remove_path(&folder).and_then(|()| fs::create_dir(&folder));
        made.map_err(|error| path_error("cannot be made anew", &folder, error))?;
        Ok(Self { common_dir, folder })
    }

    /// Returns the path of a temporary file in the workshop; no admin folder has such a name.
    pub(super) fn file_path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("file-{}-{name}", std::process::id()))
    }

    /// Returns a name, close to `wish`, that no admin folder has.
    pub(super) fn free_name(&self, wish: &str) -> String {
        let is_free = |name: &String| self.admin_path(name).symlink_metadata().is_err();
        let mut names = (2_u32..).map(|number| format!("{wish}-{number}"));
        let wish = wish.to_owned();
        if is_free(&wish) { wish } else { names.find(is_free).unwrap_or(wish) }
    }

    /// Returns the final path of the admin folder with this name.
    pub(super) fn admin_path(&self, name: &str) -> PathBuf {
        self.common_dir.join("worktrees").join(name)
    }

    /// Makes an admin folder that our git calls can use and that no other git sees.
    pub(super) fn make_admin(
        &self,
        name: &str,
        layout: &WorktreeLayout<'_>,
    ) -> Result<PathBuf, PortError> {
        let folder = self.folder.join(name);
        let written = if self.has_reftable() {
            write_reftable(&folder)
        } else {
            write_lines(&folder, &[("HEAD", layout.commit.as_str())])
        };
        let gitdir = format!("{}/.git", layout.work_tree);
        // The workshop's folders are as deep below the common folder as `worktrees/<name>`.
        let rest = [("commondir", "../.."), ("gitdir", &gitdir), ("locked", layout.reason)];
        written
            .and_then(|()| write_lines(&folder, &rest))
            .map_err(|error| path_error("cannot be written", &folder, error))?;
        Ok(folder)
    }

    /// Returns true if refs are kept in reftables, so that only git can write a `HEAD`.
    pub(super) fn has_reftable(&self) -> bool {
        refs::has_reftable(self.common_dir)
    }

    /// Moves a finished admin folder to `worktrees/`, where git sees it.
    pub(super) fn publish_admin(&self, name: &str) -> Result<(), PortError> {
        let (made, place) = (self.folder.join(name), self.admin_path(name));
        for _ in 0..MAX_PUBLISH_TRIES {
            match self.ensure_worktrees_folder().and_then(|()| fs::rename(&made, &place)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound && made.exists() => {}
                other => {
                    return other.map_err(|error| path_error("cannot be put in", &place, error));
                }
            }
        }
        Err(PortError::new(format!("`{}` is removed again and again", place.display())))
    }

    /// Removes an admin folder in one step, so that nothing of it is left for the next one of its
    /// name.
    pub(super) fn remove_admin(&self, admin: &Path) -> Result<(), PortError> {
        let name = admin.file_name().unwrap_or_default().to_string_lossy();
        let gone = self.folder.join(format!("gone-{name}"));
        let taken = paths::remove_path(&gone).and_then(|()| fs::rename(admin, &gone));
        match taken {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other.map_err(|error| path_error("cannot be removed", admin, error)),
        }
    }

    /// Creates `worktrees/` with the permissions of the git folder, which other users may share.
    fn ensure_worktrees_folder(&self) -> io::Result<()> {
        let folder = self.common_dir.join("worktrees");
        match fs::create_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
            Ok(()) => fs::set_permissions(&folder, fs::metadata(self.common_dir)?.permissions()),
        }
    }
}

fn path_error(why: &str, path: &Path, error: io::Error) -> PortError {
    PortError::new(format!("`{}` {why}", path.display())).with_cause(error)
}

/// Writes files of one line and syncs them: after a power cut, git would fail in the whole
/// repository on an empty one.
fn write_lines(folder: &Path, files: &[(&str, &str)]) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    files.iter().try_for_each(|(name, line)| {
        let mut file = File::create(folder.join(name))?;
        file.write_all(format!("{line}\n").as_bytes())?;
        file.sync_all()
    })
}

/// Writes an empty reftable in git's layout, with the files that keep older programs away.
fn write_reftable(folder: &Path) -> io::Result<()> {
    write_lines(folder, &[("HEAD", "ref: refs/heads/.invalid")])?;
    write_lines(&folder.join("refs"), &[("heads", "this repository uses the reftable format")])?;
    fs::create_dir(folder.join("reftable"))?;
    fs::write(folder.join("reftable/tables.list"), "")
}
