//! The key `control`: what the tree is compared with, or `none`. Flag and key share the type.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use treebeam_core::policy::Control;

const NONE: &str = "none";

/// What the tree is compared with, if with anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Compared(pub(crate) Option<Control>);

impl FromStr for Compared {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if text == NONE {
            return Ok(Self(None));
        }
        let why = |why| format!("{why}; or `{NONE}`; not `{text}`");
        text.parse().map(|control| Self(Some(control))).map_err(why)
    }
}

impl TryFrom<String> for Compared {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Compared> for String {
    fn from(compared: Compared) -> Self {
        compared.to_string()
    }
}

impl fmt::Display for Compared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => f.write_str(NONE),
            Some(control) => control.fmt(f),
        }
    }
}
