//! Links untracked inputs of the repository into a worktree, and removes the links again.

use crate::is_link_to;
use crate::paths::{link, unlink};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use treebeam_core::measure::WorktreePath;

/// An input: its path in the repository and its path in a worktree.
pub type LinkedInput = (PathBuf, WorktreePath);

/// Resolves the inputs of a repository to paths.
#[must_use]
pub fn resolve_inputs(repository: &Path, inputs: &[WorktreePath]) -> Vec<LinkedInput> {
    inputs.iter().map(|path| (repository.join(path.as_str()), path.clone())).collect()
}

/// Links an input into a worktree. An existing link is kept; anything else in its place is an
/// error.
///
/// # Errors
/// When something else is in its place, or the link cannot be made.
pub fn link_input((from, to): &LinkedInput, worktree: &Path) -> Result<(), String> {
    ensure_link(from, &worktree.join(to.as_str()), worktree)
        .map_err(|error| format!("the input `{to}` cannot be linked: {error}"))
}

/// Removes the links to inputs from a worktree. Anything else at their paths is kept.
///
/// # Errors
/// When a link cannot be removed.
pub fn unlink_inputs(inputs: &[LinkedInput], worktree: &Path) -> io::Result<()> {
    let places = inputs.iter().map(|(from, to)| (from, worktree.join(to.as_str())));
    let mut ours = places.filter(|(from, place)| is_link_to(place, from));
    ours.try_for_each(|(_, place)| unlink(&place))
}

fn ensure_link(from: &Path, place: &Path, worktree: &Path) -> io::Result<()> {
    if is_link_to(place, from) {
        return Ok(());
    }
    if !from.exists() {
        return Err(io::Error::other(format!("there is no `{}`", from.display())));
    }
    if let Some(above) = place.parent() {
        fs::create_dir_all(above)?;
        if !above.canonicalize()?.starts_with(worktree.canonicalize()?) {
            return Err(io::Error::other("a link leads out of the worktree there"));
        }
    }
    link(from, place)
}
