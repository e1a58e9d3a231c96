//! The key that says who sums up what was said: a role, or nobody.

use serde::{Deserialize, Serialize};
use std::str::FromStr;
use treebeam_run::port::Role;

const NOBODY: &str = "none";

/// A role whose answers are words, or nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct WhoSumsUp(pub(crate) Option<Role>);

impl FromStr for WhoSumsUp {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if text == NOBODY {
            return Ok(Self(None));
        }
        // A coder's answer is code.
        let roles = || Role::ALL.into_iter().filter(|role| *role != Role::Coder);
        let role = roles().find(|role| role.name() == text);
        let names = || roles().map(|role| format!("`{role}`")).collect::<Vec<_>>().join(", ");
        let wrong = || format!("it must be {} or `{NOBODY}`, not `{text}`", names());
        role.map(|role| Self(Some(role))).ok_or_else(wrong)
    }
}

impl TryFrom<String> for WhoSumsUp {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<WhoSumsUp> for String {
    fn from(WhoSumsUp(role): WhoSumsUp) -> Self {
        role.map_or(NOBODY, Role::name).to_owned()
    }
}
