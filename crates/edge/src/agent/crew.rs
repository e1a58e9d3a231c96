//! Who answers in which role.

use super::settings::Settings;
use std::collections::BTreeMap;
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
