//! Remembers which servers have answered in this run, and which are given up. One entry per base
//! URL or program, shared by all roles of a door: two roles behind one server see the same entry.
//! The consequences are decided elsewhere.

use super::call_store::CallStore;
use super::role_agents::RoleAgents;
use super::server_id::ServerId;
use super::settings::AgentSettings;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use treebeam_run::port::AgentRole;

/// The facts about one server.
#[derive(Clone, Copy, Debug, Default)]
struct ServerRecord {
    /// True if the server has answered in this run; none until that was looked up.
    has_answered: Option<bool>,
    /// True if a question was given up because of the server, silent since then.
    is_given_up: bool,
    /// Number of answers to this process.
    answers: u64,
}

/// All servers of a door.
pub(super) struct ServerBook<'a> {
    role_agents: &'a RoleAgents,
    calls: &'a CallStore,
    records: Mutex<BTreeMap<ServerId, ServerRecord>>,
}

impl<'a> ServerBook<'a> {
    pub(super) fn new(role_agents: &'a RoleAgents, calls: &'a CallStore) -> Self {
        Self { role_agents, calls, records: Mutex::default() }
    }

    fn lock_records(&self) -> MutexGuard<'_, BTreeMap<ServerId, ServerRecord>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the server behind a role.
    pub(super) fn server_for_role(&self, role: AgentRole) -> ServerId {
        let document =
            self.role_agents.settings_for(role).map_or(Value::Null, AgentSettings::to_document);
        ServerId::from_document(&document)
    }

    /// Notes that a server has answered.
    pub(super) fn note_answer(&self, server: &ServerId) {
        let mut records = self.lock_records();
        let record = records.entry(server.clone()).or_default();
        let answers = record.answers + 1;
        *record = ServerRecord { has_answered: Some(true), is_given_up: false, answers };
    }

    /// Number of questions that a server has answered to this process.
    pub(super) fn answer_count(&self, server: &ServerId) -> u64 {
        self.lock_records().get(server).map_or(0, |record| record.answers)
    }

    /// Notes that a question has been given up because of a server.
    pub(super) fn give_up(&self, server: &ServerId) {
        self.lock_records().entry(server.clone()).or_default().is_given_up = true;
    }

    /// Returns true if a question was given up because of a server that has not answered since.
    pub(super) fn is_given_up(&self, server: &ServerId) -> bool {
        self.lock_records().get(server).is_some_and(|record| record.is_given_up)
    }

    /// Returns true if a server has answered in this run; earlier processes are looked up once.
    pub(super) fn has_answered(&self, server: &ServerId) -> bool {
        if let Some(known) = self.lock_records().get(server).and_then(|record| record.has_answered)
        {
            return known;
        }
        // Not under the lock: this may read many files.
        let recorded = self.calls.has_answer_of(server);
        let mut records = self.lock_records();
        *records.entry(server.clone()).or_default().has_answered.get_or_insert(recorded)
    }
}
