//! Locks a repository, and each of its worktrees, against other git processes of treebeam. Git does
//! not make and remove worktrees safely in parallel, so one lock per repository serialises that.
//! The lock belongs to the open file, not to the process: a git that outlives its parent process
//! still holds it. (On Windows the lock ends with the parent.)
//!
//! Every git that writes in a worktree reads from a file there, which is locked in the same way.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek as _, Write as _};
use std::path::Path;
use treebeam_process::ChildInput;
use treebeam_run::port::PortError;

/// The repository's lock, held until it is dropped and every git that inherited it has ended.
#[derive(Debug)]
pub(super) struct RepoLock(File);

impl RepoLock {
    /// Waits for the lock and takes it.
    pub(super) fn acquire(common_dir: &Path) -> Result<Self, PortError> {
        let path = common_dir.join("treebeam.lock");
        let fail = |error| {
            PortError::new(format!("`{}` cannot be locked", path.display()))
                .with_hint("check that you own the repository, and that its file system has locks")
                .with_cause(error)
        };
        let file = lock_open_options().create(true).open(&path).map_err(fail)?;
        file.lock().map_err(fail)?;
        Ok(Self(file))
    }

    /// Returns the lock as a child's input, so that the child holds it too.
    pub(super) fn share_as_input(&self) -> Result<ChildInput, PortError> {
        let copy = self.0.try_clone();
        copy.map(ChildInput::Handle).map_err(|error| {
            PortError::new("the repository's lock cannot be handed on").with_cause(error)
        })
    }
}

/// Name of the file, in a worktree's admin folder, from which the last git that wrote there read.
const LOCKED_INPUT_FILE: &str = "treebeam.input";

/// Returns these bytes as the input of a git that writes in the worktree of this admin folder. The
/// file stays locked until that git ends.
pub(super) fn write_locked_input(git_dir: &str, bytes: &[u8]) -> Result<ChildInput, PortError> {
    if cfg!(windows) {
        // On Windows a lock would keep even the child from reading the file.
        return Ok(ChildInput::from_bytes(bytes.to_vec()));
    }
    let path = Path::new(git_dir).join(LOCKED_INPUT_FILE);
    let write = || -> io::Result<File> {
        let mut file = lock_open_options().create(true).open(&path)?;
        file.lock()?;
        file.set_len(0)?;
        file.write_all(bytes)?;
        file.rewind()?;
        Ok(file)
    };
    write().map(ChildInput::Handle).map_err(|error| {
        PortError::new(format!("`{}` cannot be written", path.display())).with_cause(error)
    })
}

/// Waits for the git that writes in the worktree of this admin folder, if there is one.
pub(super) fn await_worktree_git(git_dir: &Path) -> Result<(), PortError> {
    let path = git_dir.join(LOCKED_INPUT_FILE);
    match lock_open_options().open(&path).and_then(|file| file.lock()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.map_err(|error| {
            PortError::new(format!("`{}` cannot be locked", path.display())).with_cause(error)
        }),
    }
}

/// Removes the locked input file, when no git writes there and the folder stays.
pub(super) fn remove_locked_input(git_dir: &str) {
    // A file that stays is harmless.
    drop(std::fs::remove_file(Path::new(git_dir).join(LOCKED_INPUT_FILE)));
}

fn lock_open_options() -> OpenOptions {
    let mut options = File::options();
    options.read(true).write(true).truncate(false);
    options
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::error::Error;

    #[test]
    fn a_child_holds_the_lock_after_its_runner_let_go() -> Result<(), Box<dyn Error>> {
        use treebeam_process::ChildProgram;
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("treebeam.lock");
        let lock = RepoLock::acquire(folder.path())?;
        let child = ChildProgram::new(Path::new("/bin/sh"), folder.path());
        let child = child.args(["-c", "touch started; sleep 0.3"]).input(lock.share_as_input()?);
        let child = std::thread::spawn(move || child.run());
        while !folder.path().join("started").exists() {
            std::thread::yield_now();
        }
        drop(lock);
        assert!(File::open(&path)?.try_lock().is_err(), "the child still holds it");
        assert!(child.join().is_ok_and(|ended| ended.is_ok()));
        assert!(File::open(&path)?.try_lock().is_ok());
        Ok(())
    }
}
