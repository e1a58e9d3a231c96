//! Where an answer is from that is not on disk yet: from somebody who is asked, or from a run that was recorded before.
//! There, nobody is asked, whatever the question.

use super::call_store::{CallStore, StoredAnswer};
use super::question::{AgentLayer, AgentQuestion, TryCost, TryError, TryMeter};
use treebeam_run::port::{AgentReply, AgentRole, PortError};

/// A layer with somebody below it, or a record.
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

/// A question that had no answer then has none now: what came of that is the same.
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
        // What a command printed before it failed is told, and is not the same from one time to the next.
        StoredAnswer::Other(reply) if follows_a_failure(question) => Ok(reply),
        StoredAnswer::Other(_) => {
            let what = format!("`{key}` was another question in the run that is replayed");
            Err(TryError::Unavailable(PortError::new(what).with_hint(
                "its code, its prompts or the results of its sweeps are not what they were then",
            )))
        }
    }
}

/// Whether it is asked in a later attempt of an eval, after one that failed.
fn follows_a_failure(question: &AgentQuestion) -> bool {
    let attempt = |part: &str| part.strip_prefix('a').and_then(|number| number.parse().ok());
    let attempt: Option<u32> = question.key.split('-').find_map(attempt);
    question.role != AgentRole::Ideas && attempt.is_some_and(|attempt| attempt > 1)
}
