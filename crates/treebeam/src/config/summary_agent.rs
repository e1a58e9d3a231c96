//! Parses the key for the role that summarizes conversations, or none.

use serde::{Deserialize, Serialize};
use std::str::FromStr;
use treebeam_run::port::AgentRole;

const NO_SUMMARY_AGENT: &str = "none";

/// A role whose answers are prose, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct SummaryAgentSetting(pub(crate) Option<AgentRole>);

impl FromStr for SummaryAgentSetting {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if text == NO_SUMMARY_AGENT {
            return Ok(Self(None));
        }
        // A coder's answer is code.
        let roles = || AgentRole::ALL.into_iter().filter(|role| *role != AgentRole::Coder);
        let role = roles().find(|role| role.name() == text);
        let names = || roles().map(|role| format!("`{role}`")).collect::<Vec<_>>().join(", ");
        let wrong = || format!("it must be {} or `{NO_SUMMARY_AGENT}`, not `{text}`", names());
        role.map(|role| Self(Some(role))).ok_or_else(wrong)
    }
}

impl TryFrom<String> for SummaryAgentSetting {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<SummaryAgentSetting> for String {
    fn from(SummaryAgentSetting(role): SummaryAgentSetting) -> Self {
        role.map_or(NO_SUMMARY_AGENT, AgentRole::name).to_owned()
    }
}
