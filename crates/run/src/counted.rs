//! Asks the questions of one step, and counts what their answers take. An answer that comes from disk counts like the first
//! time: it brings what it took with it.

use crate::port::{Agent, AgentError, Ask, Reply, Role};
use std::cell::RefCell;
use treebeam_core::bill::Bills;

/// The agents, as one step sees them.
pub(crate) struct Counted<'a> {
    agent: &'a dyn Agent,
    bills: RefCell<Bills>,
}

impl<'a> Counted<'a> {
    pub(crate) fn new(agent: &'a dyn Agent) -> Self {
        Self { agent, bills: RefCell::default() }
    }

    pub(crate) fn answers(&self, role: Role) -> bool {
        self.agent.answers(role)
    }

    pub(crate) fn ask(&self, ask: &Ask) -> Result<Reply, AgentError> {
        let reply = self.agent.ask(ask)?;
        self.bills.borrow_mut().add(ask.role, reply.bill());
        Ok(reply)
    }

    /// What the answers have taken so far.
    pub(crate) fn bills(&self) -> Bills {
        self.bills.borrow().clone()
    }
}
