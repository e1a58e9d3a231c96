//! Doctor checks of git filters.
//!
//! Filters are never run, so that filtered files are in a run's worktrees as in the commit: of LFS
//! a pointer, of others the output of their clean filter.

use super::{CommandFailure, DoctorCheck};
use treebeam_git::UserRepo;

/// Name of the large-file storage filter.
const LFS_FILTER: &str = "lfs";

pub(super) fn check_filters(repo: &UserRepo) -> Result<Vec<DoctorCheck>, CommandFailure> {
    let mut filtered = repo.filtered_paths(&repo.tracked_paths()?)?;
    let mut checks = vec![match filtered.remove(LFS_FILTER) {
        Some(_) => {
            let says = "some files are in LFS: in the run's worktrees they may stay pointers";
            DoctorCheck::warning("large files", says, "make sure that the sweep does without them")
        }
        None => DoctorCheck::ok("large files", "none in LFS"),
    }];
    checks.extend(filtered.iter().filter_map(|(name, paths)| check_other_filter(name, paths)));
    if filtered.is_empty() {
        checks.push(DoctorCheck::ok("filters", "none"));
    }
    Ok(checks)
}

fn check_other_filter(name: &str, paths: &[String]) -> Option<DoctorCheck> {
    let shown = |text: &str| text.chars().flat_map(char::escape_debug).collect::<String>();
    let (name, first) = (shown(name), shown(paths.first()?));
    let files = match paths.len() - 1 {
        0 => format!("`{first}` is as it is committed"),
        more => format!("`{first}` and {more} more are as they are committed"),
    };
    let says = format!("`{name}` is not run: in the run's worktrees {files}");
    Some(DoctorCheck::warning("filters", says, "make sure that the sweep can use them like that"))
}
