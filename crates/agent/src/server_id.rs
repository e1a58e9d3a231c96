//! Identity of the server or program behind an agent.

use serde_json::{Value, json};

/// Identity of a server or program: its base URL and its command.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ServerId(String);

impl ServerId {
    /// Reads the identity from the recorded settings of an agent.
    pub(super) fn from_document(settings: &Value) -> Self {
        Self(json!([settings["base_url"], settings["command"]]).to_string())
    }
}
