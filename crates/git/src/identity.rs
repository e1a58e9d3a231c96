//! Finds the committer's identity in the user's configuration or environment, or a default. It
//! never fails. The same answer of git also yields the names of the configured filters.

use super::call::{GitAnswer, GitEnvironment};
use std::collections::BTreeSet;
use treebeam_run::port::PortError;

/// Author and committer of every commit that treebeam makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitIdentity {
    /// Name that git accepts.
    pub name: String,
    /// Email address that git accepts.
    pub email: String,
}

impl GitIdentity {
    /// Arguments of the git call whose answer [`GitIdentity::find`] and [`parse_filter_names`]
    /// read.
    pub(super) const CONFIG_QUERY: [&str; 4] =
        ["config", "-z", "--get-regexp", "^(user\\.(name|email)|filter\\..*)$"];

    /// Takes name and email separately: from git's `user.*`, else the environment, else the
    /// default.
    pub(super) fn find(answer: &GitAnswer, surroundings: &GitEnvironment) -> Self {
        let settings = answer.kept_text();
        let find = |key: &str, variables: [&str; 2], default: &str| {
            let set = find_last_setting(&settings, key).and_then(clean_name);
            let variable = |name: &&str| clean_name(&surroundings.get(name)?.to_string_lossy());
            set.or_else(|| variables.iter().find_map(variable))
                .unwrap_or_else(|| default.to_owned())
        };
        Self {
            name: find("user.name", ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"], "treebeam"),
            email: find(
                "user.email",
                ["GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"],
                "treebeam@localhost",
            ),
        }
    }

    /// Returns the identity as environment variables for git.
    pub(super) fn variables(&self) -> [(&'static str, &str); 4] {
        [
            ("GIT_AUTHOR_NAME", &self.name),
            ("GIT_AUTHOR_EMAIL", &self.email),
            ("GIT_COMMITTER_NAME", &self.name),
            ("GIT_COMMITTER_EMAIL", &self.email),
        ]
    }
}

/// Returns the names of all configured filters: the middle of `filter.<name>.clean`.
pub(super) fn parse_filter_names(answer: &GitAnswer) -> Result<Vec<String>, PortError> {
    let settings = answer.full_text()?;
    let keys = settings.split('\0').map(|entry| entry.split('\n').next().unwrap_or_default());
    let names = keys.filter_map(|key| Some(key.strip_prefix("filter.")?.rsplit_once('.')?.0));
    let names: BTreeSet<&str> = names.collect();
    Ok(names.into_iter().map(str::to_owned).collect())
}

/// Returns the last value of `key`, which is the valid one, from `key\nvalue\0` entries.
fn find_last_setting<'a>(settings: &'a str, key: &str) -> Option<&'a str> {
    let value = |entry: &'a str| entry.split_once('\n').filter(|(k, _)| *k == key);
    settings.split('\0').filter_map(value).next_back().map(|(_, value)| value)
}

/// Removes what git would drop or refuse from a name; returns `None` if nothing is left.
fn clean_name(name: &str) -> Option<String> {
    let kept: String = name.chars().filter(|c| !c.is_control() && !"<>".contains(*c)).collect();
    let kept = kept.trim_matches(|c: char| c.is_whitespace() || ".,:;\"\\'".contains(c));
    (!kept.is_empty()).then(|| kept.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_git_refuses_are_not_taken() {
        assert_eq!(clean_name(" A. <b>\n"), Some("A. b".to_owned()));
        assert_eq!(clean_name(".,;"), None);
        assert_eq!(
            find_last_setting("user.name\na\0user.email\nx\0user.name\nb\0", "user.name"),
            Some("b")
        );
    }
}
