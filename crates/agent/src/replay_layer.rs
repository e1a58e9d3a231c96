//! The layer that passes questions on, or replays the answers of an earlier run and asks no agent.

use super::call_store::{CallStore, StoredAnswer};
use super::question::{AgentLayer, AgentQuestion, TryCost, TryError, TryMeter};
use treebeam_run::port::{AgentReply, AgentRole, PortError};

/// An inner layer, or the recorded calls to replay.
pub(super) enum ReplayLayer<'a, A> {
    Asked(A),
    Replayed(&'a CallStore),
}

impl<A: AgentLayer> AgentLayer for ReplayLayer<'_, A> {
    fn answer_question(
        &self,
        question: &AgentQuestion,
        meter: &dyn TryMeter,
    ) -> Result<AgentReply, TryError> {
        match self {
            Self::Asked(inner) => inner.answer_question(question, meter),
            Self::Replayed(calls) => replay_answer(calls, question),
        }
    }
}

/// Returns the recorded answer; a question without one has the same consequences as then.
fn replay_answer(calls: &CallStore, question: &AgentQuestion) -> Result<AgentReply, TryError> {
    let key = &question.key;
    match calls.find_answer(question)? {
        StoredAnswer::Reply(reply) => Ok(reply),
        StoredAnswer::Forgotten(why) => Err(TryError::Forgotten(why)),
        StoredAnswer::None => {
            let why = format!("the run that is replayed has no answer to `{key}`");
            Err(TryError::Unanswered { why, spent: TryCost::Nothing })
        }
        StoredAnswer::Damaged(why) => {
            let what = format!("the recorded answer to `{key}` cannot be read: {why}");
            Err(TryError::Unavailable(PortError::new(what)))
        }
        // The prompt after a failure has the output of a command, which differs between runs.
        StoredAnswer::Other(reply) if follows_a_failure(question) => Ok(reply),
        StoredAnswer::Other(_) => {
            let what = format!("`{key}` was another question in the run that is replayed");
            Err(TryError::Unavailable(PortError::new(what).with_hint(
                "its code, its prompts or the results of its sweeps are not what they were then",
            )))
        }
    }
}

/// Returns true if a question belongs to a later attempt of an eval, after a failed one.
fn follows_a_failure(question: &AgentQuestion) -> bool {
    let attempt = |part: &str| part.strip_prefix('a').and_then(|number| number.parse().ok());
    let attempt: Option<u32> = question.key.split('-').find_map(attempt);
    question.role != AgentRole::Ideas && attempt.is_some_and(|attempt| attempt > 1)
}
