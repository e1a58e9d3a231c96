//! Explains an unknown key: it is planned, it is a flag only, or another one was meant.

use super::config_key::CONFIG_KEYS;
use super::key_errors::suggest_nearest;

/// Keys that are planned for a later version.
const LATER_KEYS: [&str; 5] =
    ["worktree_root", "experiments_root", "holdout_command", "holdout_env", "canary_command"];

/// Message for a key of [`LATER_KEYS`].
const LATER_KEY_MESSAGE: &str = "this version of treebeam does not have this key yet";

/// Flags that act once: as settings they would pay for the same work at every start.
const ONE_TIME_FLAGS: [&str; 4] =
    ["force_regenerate_ideas", "replay", "rerun_evals", "retry_failed"];

/// Explains a name that is a one-time flag or a planned key; `None` for any other name.
pub(super) fn explain_non_key(name: &str) -> Option<String> {
    if ONE_TIME_FLAGS.contains(&name) {
        let flag = name.replace('_', "-");
        return Some(format!("this is no setting: `--{flag}` asks for it once"));
    }
    is_later_key(name).then(|| LATER_KEY_MESSAGE.to_owned())
}

/// Returns true if the key is planned for a later version.
pub(super) fn is_later_key(name: &str) -> bool {
    LATER_KEYS.contains(&name)
}

/// Describes an unknown key: its full name, and the known names in its place.
pub(super) fn describe_unknown_key(path: &str, known: &[&str]) -> String {
    let (table, name) = path.rsplit_once('.').unwrap_or(("", path));
    if let Some(why) = explain_non_key(name).filter(|_| table.is_empty()) {
        return why;
    }
    let elsewhere = CONFIG_KEYS.iter().find(|key| key.name.rsplit('.').next() == Some(name));
    let nearest = match elsewhere {
        Some(key) => format!("; nearest: `{}`", key.name),
        None => suggest_nearest(name, known),
    };
    format!("there is no such key{nearest}")
}
