//! One lock per repository, for what git itself does not do safely at the same time: making and removing worktrees.
//! It is held by the open file, not by the process: a git that outlives its runner still holds it. (On Windows the
//! lock ends with the runner.)

use crate::process::Input;
use std::fs::File;
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
        let options =
            File::options().read(true).write(true).create(true).truncate(false).open(&path);
        let file = options.map_err(fail)?;
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
