//! What removing a stubborn folder needs of Windows alone.

use std::io;
use std::path::Path;

/// Read-only files are removed like others there; what is open somewhere stays until it is closed.
#[expect(clippy::unnecessary_wraps, reason = "Unix has the same function, which can fail")]
pub(super) fn make_removable(_path: &Path) -> io::Result<()> {
    Ok(())
}
