//! Locates programs that the user names, without running them.

use std::env;
use std::path::{Path, PathBuf};

/// Returns true if a program is named by its path.
pub(crate) fn is_program_path(program: &str) -> bool {
    program.contains(['/', '\\'])
}

/// Finds a program in `PATH` by its name, or relative to `folder` by its path.
pub(crate) fn find_program(program: &str, folder: &Path) -> Option<PathBuf> {
    if is_program_path(program) {
        return Some(folder.join(program)).filter(|path| path.is_file());
    }
    let path = env::var_os("PATH")?;
    let named = |folder: PathBuf| {
        let path = folder.join(program);
        [path.clone(), path.with_extension("exe")].into_iter().find(|path| path.is_file())
    };
    env::split_paths(&path).find_map(named)
}
