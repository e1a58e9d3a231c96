//! Who answers in which role.

use super::settings::Settings;
use serde_json::Value;
use std::collections::BTreeMap;
use treebeam_core::policy::Agents;
use treebeam_run::port::{PortError, Role};

/// The agents by role.
#[derive(Clone, Debug, Default)]
pub struct Crew(BTreeMap<Role, Settings>);

impl Crew {
    /// These agents.
    #[must_use]
    pub const fn new(agents: BTreeMap<Role, Settings>) -> Self {
        Self(agents)
    }

    /// What is recorded of them: everything that is set but their keys.
    #[must_use]
    pub fn in_words(&self) -> Agents {
        let words = |settings: &Settings| {
            let document = settings.document();
            let fields = document.as_object().into_iter().flatten();
            fields.filter_map(|(name, value)| Some((name.clone(), word(value)?))).collect()
        };
        Agents(self.0.iter().map(|(role, agent)| (role.to_string(), words(agent))).collect())
    }

    /// Who answers in a role.
    ///
    /// # Errors
    /// When nobody does.
    pub fn settings(&self, role: Role) -> Result<&Settings, PortError> {
        self.0.get(&role).ok_or_else(|| {
            PortError::new(format!("no agent is set for the role `{role}`"))
                .hint(format!("set `agents.{role}` in the configuration"))
        })
    }
}

/// A value in words; nothing where nothing is set.
fn word(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Object(fields) if fields.is_empty() => None,
        Value::String(text) => Some(text.clone()),
        Value::Array(items) => Some(items.iter().filter_map(word).collect::<Vec<_>>().join(" ")),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => Some(value.to_string()),
    }
}
