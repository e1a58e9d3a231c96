//! The agents by role.

use super::settings::AgentSettings;
use serde_json::Value;
use std::collections::BTreeMap;
use treebeam_core::policy::RecordedAgents;
use treebeam_run::port::{AgentRole, PortError};

/// The agents by role.
#[derive(Clone, Debug, Default)]
pub struct RoleAgents(BTreeMap<AgentRole, AgentSettings>);

impl RoleAgents {
    /// Wraps these agents.
    #[must_use]
    pub const fn new(agents: BTreeMap<AgentRole, AgentSettings>) -> Self {
        Self(agents)
    }

    /// Describes the agents for the record: all settings but their keys.
    #[must_use]
    pub fn describe_agents(&self) -> RecordedAgents {
        let words = |settings: &AgentSettings| {
            let document = settings.to_document();
            let fields = document.as_object().into_iter().flatten();
            fields.filter_map(|(name, value)| Some((name.clone(), value_to_text(value)?))).collect()
        };
        RecordedAgents(
            self.0.iter().map(|(role, agent)| (role.to_string(), words(agent))).collect(),
        )
    }

    /// Returns the agent of a role.
    ///
    /// # Errors
    /// When no agent is set for it.
    pub fn settings_for(&self, role: AgentRole) -> Result<&AgentSettings, PortError> {
        self.0.get(&role).ok_or_else(|| {
            PortError::new(format!("no agent is set for the role `{role}`"))
                .with_hint(format!("set `agents.{role}` in the configuration"))
        })
    }
}

/// Formats a value as text; none for an unset one.
fn value_to_text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Object(fields) if fields.is_empty() => None,
        Value::String(text) => Some(text.clone()),
        Value::Array(items) => {
            Some(items.iter().filter_map(value_to_text).collect::<Vec<_>>().join(" "))
        }
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => Some(value.to_string()),
    }
}
