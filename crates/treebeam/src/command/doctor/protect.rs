//! Doctor checks of `protect`: the number of protected files, and globs that match nothing.

use super::{CommandFailure, DoctorCheck};
use crate::config::Config;
use crate::config::config_key::CONFIG_KEYS;
use crate::config::origin::SettingOrigin;
use treebeam_core::policy::FixedSettings;
use treebeam_core::protect::{PathChange, PathKind, ProtectedPaths};
use treebeam_executor::ProtectedInputs;
use treebeam_git::UserRepo;

pub(super) fn check_protect(
    repo: &UserRepo,
    config: &Config,
) -> Result<Vec<DoctorCheck>, CommandFailure> {
    let (settings, tracked) =
        (config.fixed_settings(FixedSettings::default())?, repo.tracked_paths()?);
    let mut checks = vec![check_protected_count(&settings, &tracked, config)?];
    let built_in = FixedSettings::default().protect;
    for glob in settings.protect.iter().filter(|glob| !built_in.contains(glob)) {
        if !glob_matches_any(glob, &tracked, &settings, repo)? {
            checks.push(warn_idle_glob(glob, &tracked));
        }
    }
    Ok(checks)
}

/// Reports how many of the user's files are protected from candidates.
fn check_protected_count(
    settings: &FixedSettings,
    tracked: &[String],
    config: &Config,
) -> Result<DoctorCheck, CommandFailure> {
    let protected = parse_globs(&settings.protect)?;
    let theirs = |path: &&String| *path != "treebeam.toml" && !path.starts_with(".treebeam/");
    let change =
        |path: &String| PathChange { path: path.clone(), is_new: false, to: PathKind::File };
    let tracked: Vec<PathChange> = tracked.iter().filter(theirs).map(change).collect();
    let count = protected
        .list_violations(&tracked)
        .iter()
        .filter(|said| said.ends_with("is protected"))
        .count();
    let built_in = CONFIG_KEYS
        .iter()
        .any(|key| key.name == "protect" && config.origin(key) == SettingOrigin::Default);
    let says = match (count, built_in) {
        (0, _) => "no file of yours is protected: a candidate may change its own judge".to_owned(),
        (_, true) => format!("only test files are protected: {count} of {}", tracked.len()),
        (_, false) => {
            return Ok(DoctorCheck::ok("protect", format!("{count} of {} files", tracked.len())));
        }
    };
    Ok(DoctorCheck::warning(
        "protect",
        says,
        "list the evaluator, its data and its tests in `protect`",
    ))
}

fn parse_globs(globs: &[String]) -> Result<ProtectedPaths, CommandFailure> {
    ProtectedPaths::new(globs).map_err(|error| CommandFailure::usage(error.to_string()))
}

/// Returns true if a glob matches a tracked file, or a file of an input.
fn glob_matches_any(
    glob: &str,
    tracked: &[String],
    settings: &FixedSettings,
    repo: &UserRepo,
) -> Result<bool, CommandFailure> {
    let alone = vec![glob.to_owned()];
    let protected = parse_globs(&alone)?;
    if tracked.iter().any(|path| protected.covers(path)) {
        return Ok(true);
    }
    let settings = FixedSettings { protect: alone, ..settings.clone() };
    let inputs = ProtectedInputs::new(&repo.toplevel, &settings);
    let inputs = inputs.map_err(|error| CommandFailure::usage(error.to_string()))?;
    Ok(!inputs.is_empty()?)
}

/// Warns about a glob that matches nothing: most often a path that was moved, or a folder without
/// `/**`.
fn warn_idle_glob(glob: &str, tracked: &[String]) -> DoctorCheck {
    let shown: String = glob.chars().flat_map(char::escape_debug).collect();
    let says = format!("`{shown}` matches no tracked file, and none of `inputs`");
    let folder = shown.trim_start_matches("./").trim_matches('/');
    let below = format!("{folder}/");
    let todo = if tracked.iter().any(|path| path.starts_with(&below)) {
        format!("write `{below}**` for all that is in that folder")
    } else {
        "correct it, or take it out: a glob is for the whole path, from the repository's top level"
            .to_owned()
    };
    DoctorCheck::warning("protect", says, todo)
}
