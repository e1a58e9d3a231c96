//! Where an answer is from that is not on disk yet: from somebody who is asked, or from a run that was recorded before.
//! There, nobody is asked, whatever the question.

use super::calls::{Calls, Kept};
use super::question::{Answer, Meter, Question, Spent, Trouble};
use treebeam_run::port::{PortError, Reply, Role};

/// A layer with somebody below it, or a record.
pub(super) enum Source<'a, A> {
    Asked(A),
    Replayed(&'a Calls),
}

impl<A: Answer> Answer for Source<'_, A> {
    fn answer(&self, question: &Question, meter: &dyn Meter) -> Result<Reply, Trouble> {
        match self {
            Self::Asked(inner) => inner.answer(question, meter),
            Self::Replayed(calls) => replayed(calls, question),
        }
    }
}

/// A question that had no answer then has none now: what came of that is the same.
fn replayed(calls: &Calls, question: &Question) -> Result<Reply, Trouble> {
    let key = &question.key;
    match calls.find(question)? {
        Kept::Reply(reply) => Ok(reply),
        Kept::Forgotten(why) => Err(Trouble::Forgotten(why)),
        Kept::None => {
            let why = format!("the run that is replayed has no answer to `{key}`");
            Err(Trouble::Unanswered { why, spent: Spent::Nothing })
        }
        Kept::Damaged(why) => {
            let what = format!("the recorded answer to `{key}` cannot be read: {why}");
            Err(Trouble::Unavailable(PortError::new(what)))
        }
        // What a command printed before it failed is told, and is not the same from one time to the next.
        Kept::Other(reply) if follows_a_failure(question) => Ok(reply),
        Kept::Other(_) => {
            let what = format!("`{key}` was another question in the run that is replayed");
            Err(Trouble::Unavailable(PortError::new(what).hint(
                "its code, its prompts or the results of its sweeps are not what they were then",
            )))
        }
    }
}

/// Whether it is asked in a later attempt of an eval, after one that failed.
fn follows_a_failure(question: &Question) -> bool {
    let attempt = |part: &str| part.strip_prefix('a').and_then(|number| number.parse().ok());
    let attempt: Option<u32> = question.key.split('-').find_map(attempt);
    question.role != Role::Ideas && attempt.is_some_and(|attempt| attempt > 1)
}
