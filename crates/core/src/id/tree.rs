//! Name of a git tree: identifies the files of a commit, independent of author, date and parent.

use super::{BadName, Commit};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Full git tree name (SHA-1 or SHA-256), lowercase hex: commits with the same files share it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GitTree(Box<Commit>);

impl GitTree {
    /// Returns the first 20 bytes of the name, all of a SHA-1 name: a short key for lookups.
    #[must_use]
    pub fn leading_bytes(&self) -> [u8; 20] {
        let digits = self.0.as_str();
        let mut bytes = [0; 20];
        for (at, byte) in bytes.iter_mut().enumerate() {
            let two = digits.get(2 * at..2 * at + 2).unwrap_or_default();
            *byte = u8::from_str_radix(two, 16).unwrap_or_default();
        }
        bytes
    }
}

impl FromStr for GitTree {
    type Err = BadName;
    fn from_str(text: &str) -> Result<Self, BadName> {
        let expected = "a full tree name in lowercase hex";
        let name = text.parse().map(|name| Self(Box::new(name)));
        name.map_err(|error: BadName| BadName { expected, ..error })
    }
}

impl fmt::Display for GitTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
