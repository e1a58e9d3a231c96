//! Who commits: found in the user's configuration or environment, made up otherwise. Never an error. And, from the same
//! answer, which filters are configured.

use super::call::{GitAnswer, GitEnvironment};
use std::collections::BTreeSet;
use treebeam_run::port::PortError;

/// The author and committer of every commit that treebeam makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitIdentity {
    /// A name that git accepts.
    pub name: String,
    /// An address that git accepts.
    pub email: String,
}

impl GitIdentity {
    /// The arguments that make git tell what [`GitIdentity::find`] and [`parse_filter_names`] read.
    pub(super) const CONFIG_QUERY: [&str; 4] =
        ["config", "-z", "--get-regexp", "^(user\\.(name|email)|filter\\..*)$"];

    /// `user.*` as git answered, else the environment's, else treebeam's own; each part by itself.
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

    /// As git takes it.
    pub(super) fn variables(&self) -> [(&'static str, &str); 4] {
        [
            ("GIT_AUTHOR_NAME", &self.name),
            ("GIT_AUTHOR_EMAIL", &self.email),
            ("GIT_COMMITTER_NAME", &self.name),
            ("GIT_COMMITTER_EMAIL", &self.email),
        ]
    }
}

/// The names of all filters that are configured anywhere: the middle of `filter.<name>.clean`.
pub(super) fn parse_filter_names(answer: &GitAnswer) -> Result<Vec<String>, PortError> {
    let settings = answer.full_text()?;
    let keys = settings.split('\0').map(|entry| entry.split('\n').next().unwrap_or_default());
    let names = keys.filter_map(|key| Some(key.strip_prefix("filter.")?.rsplit_once('.')?.0));
    let names: BTreeSet<&str> = names.collect();
    Ok(names.into_iter().map(str::to_owned).collect())
}

/// `git config -z` writes `key\nvalue\0`; the last one counts.
fn find_last_setting<'a>(settings: &'a str, key: &str) -> Option<&'a str> {
    let value = |entry: &'a str| entry.split_once('\n').filter(|(k, _)| *k == key);
    settings.split('\0').filter_map(value).next_back().map(|(_, value)| value)
}

/// A name without what git would drop or refuse; none where nothing is left.
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
