//! Lock files of refs that a git which was killed, or a power cut, left behind: git refuses for as long as they are there.
//! Only a run's owner removes them, only where no git that is alive can still need them, and never the user's own.

use super::{GitRepo, place};
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;
use treebeam_run::port::PortError;

/// No git has one of this run's refs locked for so long: it writes one line.
const REF: Duration = Duration::from_secs(10);
/// No git, the user's included, takes so long to write all packed refs.
const PACKED: Duration = Duration::from_mins(10);

impl GitRepo {
    /// Removes locks that nobody holds any more: of this run's refs, and of the packed ones, which ours are deleted from.
    ///
    /// # Errors
    /// When one cannot be removed.
    pub fn unlock_refs(&self) -> Result<(), PortError> {
        let common_dir = &self.user.common_dir;
        let own = common_dir.join(format!("refs/heads/tree/{}", self.run));
        let fail =
            |error| PortError::new("a lock that git left cannot be removed").caused_by(error);
        remove_old(&common_dir.join("packed-refs.lock"), PACKED).map_err(fail)?;
        remove_locks(&own).map_err(fail)
    }
}

/// Removes the lock of one ref, if it is older than any git needs it.
pub(super) fn remove_ref_lock(lock: &Path) -> Result<(), PortError> {
    remove_old(lock, REF).map_err(|error| {
        PortError::new(format!("`{}` cannot be removed", lock.display())).caused_by(error)
    })
}

/// The run's refs lie in one folder, without folders of their own.
fn remove_locks(folder: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "lock") {
            remove_old(&path, REF)?;
        }
    }
    Ok(())
}

fn remove_old(path: &Path, age: Duration) -> io::Result<()> {
    let modified = fs::symlink_metadata(path).and_then(|found| found.modified());
    let old = modified.ok().and_then(|time| time.elapsed().ok()).is_some_and(|past| past > age);
    if old { place::remove(path) } else { Ok(()) }
}
