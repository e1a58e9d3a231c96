//! The workshop: a folder in git's own where the admin folder of a worktree is made, and where it ends. Git looks into
//! `worktrees/` at any time and fails at what is half-made there, so nothing half-made ever is: one rename puts a whole
//! admin folder in, one takes it out. It does not know what a worktree is for.

use super::lock::RepoLock;
use super::{head, paths};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use treebeam_core::id::Commit;
use treebeam_run::port::PortError;

/// A foreign git removes `worktrees/` whenever it finds it empty; it cannot do so this often in a row.
const MAX_PUBLISH_TRIES: usize = 100;

/// The workshop, for as long as the lock is held. It goes with all that is in it.
#[derive(Debug)]
pub(super) struct AdminWorkshop<'a> {
    common_dir: &'a Path,
    folder: PathBuf,
}

/// What git is told of a new worktree.
#[derive(Debug)]
pub(super) struct WorktreeLayout<'a> {
    /// Where its files are.
    pub(super) work_tree: &'a str,
    /// What is checked out there.
    pub(super) commit: &'a Commit,
    /// Why it is locked.
    pub(super) reason: &'a str,
}

/// Where the workshop of a repository is.
pub(super) fn workshop_folder(common_dir: &Path) -> PathBuf {
    common_dir.join("treebeam")
}

impl Drop for AdminWorkshop<'_> {
    fn drop(&mut self) {
        // What stays is removed by the next who opens it.
        drop(paths::remove_path(&self.folder));
    }
}

impl<'a> AdminWorkshop<'a> {
    /// Opens it. What lies there was left by a process that died: all others hold the lock while they are in it.
    pub(super) fn open(common_dir: &'a Path, _lock: &RepoLock) -> Result<Self, PortError> {
        let folder = workshop_folder(common_dir);
        let made = paths::remove_path(&folder).and_then(|()| fs::create_dir(&folder));
        made.map_err(|error| path_error("cannot be made anew", &folder, error))?;
        Ok(Self { common_dir, folder })
    }

    /// A file in it, which goes with it. No admin folder has such a name.
    pub(super) fn file_path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("file-{}-{name}", std::process::id()))
    }

    /// A name that no admin folder has yet.
    pub(super) fn free_name(&self, wish: &str) -> String {
        let is_free = |name: &String| self.admin_path(name).symlink_metadata().is_err();
        let mut names = (2_u32..).map(|number| format!("{wish}-{number}"));
        let wish = wish.to_owned();
        if is_free(&wish) { wish } else { names.find(is_free).unwrap_or(wish) }
    }

    /// Where the admin folder of this name is when it is done.
    pub(super) fn admin_path(&self, name: &str) -> PathBuf {
        self.common_dir.join("worktrees").join(name)
    }

    /// Makes an admin folder that git can work with, and that no other git sees.
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
        // As far from the common folder as `worktrees/<name>` is.
        let rest = [("commondir", "../.."), ("gitdir", &gitdir), ("locked", layout.reason)];
        written
            .and_then(|()| write_lines(&folder, &rest))
            .map_err(|error| path_error("cannot be written", &folder, error))?;
        Ok(folder)
    }

    /// Whether refs are not kept in files, so that only git can write a `HEAD`.
    pub(super) fn has_reftable(&self) -> bool {
        head::has_reftable(self.common_dir)
    }

    /// Lets git see what was made here.
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

    /// Takes an admin folder away from git. Nothing of it may be met by the next one of its name.
    pub(super) fn remove_admin(&self, admin: &Path) -> Result<(), PortError> {
        let name = admin.file_name().unwrap_or_default().to_string_lossy();
        let gone = self.folder.join(format!("gone-{name}"));
        let taken = paths::remove_path(&gone).and_then(|()| fs::rename(admin, &gone));
        match taken {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other.map_err(|error| path_error("cannot be removed", admin, error)),
        }
    }

    /// The folder that git keeps admin folders in, made as git's own folder is: others may share it.
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

/// Writes lines that survive a power cut: git fails in the whole repository where it finds one of these files empty.
fn write_lines(folder: &Path, files: &[(&str, &str)]) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    files.iter().try_for_each(|(name, line)| {
        let mut file = File::create(folder.join(name))?;
        file.write_all(format!("{line}\n").as_bytes())?;
        file.sync_all()
    })
}

/// Refs of this kind that are none yet, as git lays them out, with what tells older programs to stay away.
fn write_reftable(folder: &Path) -> io::Result<()> {
    write_lines(folder, &[("HEAD", "ref: refs/heads/.invalid")])?;
    write_lines(&folder.join("refs"), &[("heads", "this repository uses the reftable format")])?;
    fs::create_dir(folder.join("reftable"))?;
    fs::write(folder.join("reftable/tables.list"), "")
}
