//! What a worktree needs that git does not track: links to where it lies in the repository.

use super::spec::Spec;
use super::system;
use crate::git::is_link_to;
use std::fs;
use std::io;
use std::path::Path;

/// Links the inputs into a worktree. One that is linked already is left; anything else in its place is an error.
pub(super) fn link(spec: &Spec, worktree: &Path) -> Result<(), String> {
    for (from, to) in &spec.inputs {
        let place = worktree.join(to.as_str());
        one(from, &place, worktree)
            .map_err(|error| format!("the input `{to}` cannot be linked: {error}"))?;
    }
    Ok(())
}

fn one(from: &Path, place: &Path, worktree: &Path) -> io::Result<()> {
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
    system::link(from, place)
}
