//! What `treebeam doctor` finds out about `protect`: how much of the user's it keeps from candidates, and which of its globs
//! match nothing.

use super::{Check, Failure};
use crate::config::Config;
use crate::config::key::KEYS;
use crate::config::origin::Origin;
use treebeam_core::policy::Meaning;
use treebeam_core::protect::{Change, Mode, Protected};
use treebeam_edge::executor::ProtectedInputs;
use treebeam_edge::git::UserRepo;

pub(super) fn checks(repo: &UserRepo, config: &Config) -> Result<Vec<Check>, Failure> {
    let (meaning, tracked) = (config.meaning(Meaning::default())?, repo.tracked()?);
    let mut checks = vec![amount(&meaning, &tracked, config)?];
    let built_in = Meaning::default().protect;
    for glob in meaning.protect.iter().filter(|glob| !built_in.contains(glob)) {
        if !matches_any(glob, &tracked, &meaning, repo)? {
            checks.push(idle(glob, &tracked));
        }
    }
    Ok(checks)
}

/// How much of the user's is protected from candidates.
fn amount(meaning: &Meaning, tracked: &[String], config: &Config) -> Result<Check, Failure> {
    let protected = read(&meaning.protect)?;
    let theirs = |path: &&String| *path != "treebeam.toml" && !path.starts_with(".treebeam/");
    let change = |path: &String| Change { path: path.clone(), is_new: false, to: Mode::File };
    let tracked: Vec<Change> = tracked.iter().filter(theirs).map(change).collect();
    let count =
        protected.violations(&tracked).iter().filter(|said| said.ends_with("is protected")).count();
    let built_in =
        KEYS.iter().any(|key| key.name == "protect" && config.origin(key) == Origin::Default);
    let says = match (count, built_in) {
        (0, _) => "no file of yours is protected: a candidate may change its own judge".to_owned(),
        (_, true) => format!("only test files are protected: {count} of {}", tracked.len()),
        (_, false) => {
            return Ok(Check::ok("protect", format!("{count} of {} files", tracked.len())));
        }
    };
    Ok(Check::warning("protect", says, "list the evaluator, its data and its tests in `protect`"))
}

fn read(globs: &[String]) -> Result<Protected, Failure> {
    Protected::new(globs).map_err(|error| Failure::usage(error.to_string()))
}

/// Whether a glob matches a tracked file, or a file of an input.
fn matches_any(
    glob: &str,
    tracked: &[String],
    meaning: &Meaning,
    repo: &UserRepo,
) -> Result<bool, Failure> {
    let alone = vec![glob.to_owned()];
    let protected = read(&alone)?;
    if tracked.iter().any(|path| protected.covers(path)) {
        return Ok(true);
    }
    let meaning = Meaning { protect: alone, ..meaning.clone() };
    let inputs = ProtectedInputs::new(&repo.toplevel, &meaning);
    let inputs = inputs.map_err(|error| Failure::usage(error.to_string()))?;
    Ok(!inputs.is_empty()?)
}

/// A glob that matches nothing is most often a path that was moved, or a folder without `/**`.
fn idle(glob: &str, tracked: &[String]) -> Check {
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
    Check::warning("protect", says, todo)
}
