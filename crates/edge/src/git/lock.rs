//! One lock per repository, for what git itself does not do safely at the same time: making and removing worktrees.
//! It is held by the open file, not by the process: a git that outlives its runner still holds it. (On Windows the
//! lock ends with the runner.)
//!
//! And one per worktree, for every git that writes there: the file that it reads is the lock, in the same way.

use crate::process::Input;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek as _, Write as _};
use std::path::Path;
use treebeam_run::port::PortError;

/// The lock, until it is dropped and every git that was given it has ended.
#[derive(Debug)]
pub(super) struct RepoLock(File);

impl RepoLock {
    /// Waits for the lock.
    pub(super) fn take(common_dir: &Path) -> Result<Self, PortError> {
        let path = common_dir.join("treebeam.lock");
        let fail = |error| {
            PortError::new(format!("`{}` cannot be locked", path.display()))
                .hint("check that you own the repository, and that its file system has locks")
                .caused_by(error)
        };
        let file = options().create(true).open(&path).map_err(fail)?;
        file.lock().map_err(fail)?;
        Ok(Self(file))
    }

    /// The lock as a child's input, so that the child holds it too.
    pub(super) fn share(&self) -> Result<Input, PortError> {
        let copy = self.0.try_clone();
        copy.map(Input::Handle).map_err(|error| {
            PortError::new("the repository's lock cannot be handed on").caused_by(error)
        })
    }
}

/// What the last git that wrote in a worktree read, in the worktree's admin folder.
const INPUT: &str = "treebeam.input";

/// These bytes for a git that writes in the worktree of this admin folder. It is known to be at work until it ends.
pub(super) fn held(git_dir: &str, bytes: &[u8]) -> Result<Input, PortError> {
    if cfg!(windows) {
        // A lock keeps even the child from reading there.
        return Ok(Input::bytes(bytes.to_vec()));
    }
    let path = Path::new(git_dir).join(INPUT);
    let write = || -> io::Result<File> {
        let mut file = options().create(true).open(&path)?;
        file.lock()?;
        file.set_len(0)?;
        file.write_all(bytes)?;
        file.rewind()?;
        Ok(file)
    };
    write().map(Input::Handle).map_err(|error| {
        PortError::new(format!("`{}` cannot be written", path.display())).caused_by(error)
    })
}

/// Waits for the git that writes in the worktree of this admin folder, if there is one.
pub(super) fn outlast(git_dir: &Path) -> Result<(), PortError> {
    let path = git_dir.join(INPUT);
    match options().open(&path).and_then(|file| file.lock()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.map_err(|error| {
            PortError::new(format!("`{}` cannot be locked", path.display())).caused_by(error)
        }),
    }
}

/// Removes that file, where nobody else writes and the folder stays.
pub(super) fn clear(git_dir: &str) {
    // It is in nobody's way.
    drop(std::fs::remove_file(Path::new(git_dir).join(INPUT)));
}

fn options() -> OpenOptions {
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
        use crate::process::Program;
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("treebeam.lock");
        let lock = RepoLock::take(folder.path())?;
        let child = Program::new(Path::new("/bin/sh"), folder.path());
        let child = child.args(["-c", "touch started; sleep 0.3"]).input(lock.share()?);
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
