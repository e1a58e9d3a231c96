//! Parses the key `control`: the control group of the tree, or `none`. Flag and key share the type.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use treebeam_core::policy::ControlPolicy;

const NO_CONTROL: &str = "none";

/// The control group that the tree is compared with, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct ControlSetting(pub(crate) Option<ControlPolicy>);

impl FromStr for ControlSetting {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if text == NO_CONTROL {
            return Ok(Self(None));
        }
        let why = |why| format!("{why}; or `{NO_CONTROL}`; not `{text}`");
        text.parse().map(|control| Self(Some(control))).map_err(why)
    }
}

impl TryFrom<String> for ControlSetting {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<ControlSetting> for String {
    fn from(compared: ControlSetting) -> Self {
        compared.to_string()
    }
}

impl fmt::Display for ControlSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => f.write_str(NO_CONTROL),
            Some(control) => control.fmt(f),
        }
    }
}
