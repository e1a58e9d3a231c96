//! The layer that stores every answer on disk before it is used. A stored question is not asked
//! again, and neither is one whose provider is known to have forgotten the answer to continue from.

use super::call_store::{CallStore, StoredAnswer};
use super::question::{AgentLayer, AgentQuestion, TryError, TryMeter};
use super::retry_timer::DoorObserver;
use super::role_agents::RoleAgents;
use jiff::Timestamp;
use treebeam_run::port::AgentReply;

/// The record layer around an inner one.
pub(super) struct RecordLayer<'a, A> {
    pub(super) inner: A,
    pub(super) calls: &'a CallStore,
    pub(super) role_agents: &'a RoleAgents,
    pub(super) observer: &'a dyn DoorObserver,
}

impl<A: AgentLayer> AgentLayer for RecordLayer<'_, A> {
    fn answer_question(
        &self,
        question: &AgentQuestion,
        meter: &dyn TryMeter,
    ) -> Result<AgentReply, TryError> {
        let key = &question.key;
        match self.calls.find_answer(question)? {
            StoredAnswer::Reply(reply) => return Ok(reply),
            StoredAnswer::Forgotten(why) => return Err(TryError::Forgotten(why)),
            StoredAnswer::None => {}
            StoredAnswer::Other(_) => self.calls.set_aside(question)?,
            StoredAnswer::Damaged(why) => {
                self.observer.on_note(&format!("the answer `{key}` is asked for again: {why}"));
                self.calls.set_aside(question)?;
            }
        }
        let settings = self.role_agents.settings_for(question.role)?;
        let asked_at = Timestamp::now();
        let reply = match self.inner.answer_question(question, meter) {
            Err(TryError::Forgotten(why)) => {
                self.calls.keep_forgotten(question, &why)?;
                return Err(TryError::Forgotten(why));
            }
            Err(TryError::Unreadable { why, raw, spent }) => {
                let file = self.calls.keep_raw(question, &raw)?;
                let why = format!("{why} (kept as `{file}`)");
                return Err(TryError::Unanswered { why, spent });
            }
            answered => answered?,
        };
        let kept_as = self.calls.keep_reply(question, settings, &reply, asked_at)?;
        self.calls.release(question)?;
        Ok(AgentReply { kept_as, ..reply })
    }
}
