//! One file per step: each takes its brief and the ports, and says what came of it. None of them sees the state.

pub(crate) mod discard;
mod idea;
mod implement;
mod promote;
mod score;
pub(crate) mod sweep;

use crate::brief::Brief;
use crate::drive::Halt;
use crate::port::{Agent, AgentError, Ask, Reply, World};
use treebeam_core::plan::Outcome;

/// Does one step; the files that it wrote are on disk before its outcome is known. Nothing comes of a step whose outcome
/// arrives later.
pub(crate) fn perform(brief: &Brief, world: World<'_>) -> Result<Option<Outcome>, Halt> {
    let outcome = match brief {
        Brief::Propose(brief) => Some(idea::propose(brief, world)?),
        Brief::Implement(brief) => Some(implement::implement(brief, world)?),
        Brief::Sweep(job) => {
            sweep::submit(job, world)?;
            None
        }
        Brief::Score(brief) => Some(score::score(brief, world)?),
        Brief::Promote(brief) => Some(promote::promote(brief, world)?),
        Brief::Discard(brief) => Some(discard::discard(brief, world.repo, world.files)?),
    };
    world.files.settle()?;
    Ok(outcome)
}

/// Asks. Where the provider has forgotten what the question goes on from, it is asked without that.
fn ask(agent: &dyn Agent, question: Ask) -> Result<Reply, AgentError> {
    match agent.ask(&question) {
        Err(AgentError::Forgotten(_)) if question.continues.is_some() => {
            ask(agent, Ask { continues: None, ..question })
        }
        Err(AgentError::Forgotten(why)) => Err(AgentError::Unanswered(why)),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::{Continuation, Role};
    use treebeam_core::id::{NodeId, Place};

    /// Has forgotten everything; without a word of it, it answers as told.
    struct Forgetful(fn() -> Result<Reply, AgentError>);

    impl Agent for Forgetful {
        fn answers(&self, _: Role) -> bool {
            true
        }
        fn ask(&self, ask: &Ask) -> Result<Reply, AgentError> {
            match &ask.continues {
                Some(continuation) => Err(AgentError::Forgotten(continuation.id.clone())),
                None => (self.0)(),
            }
        }
    }

    #[test]
    fn what_is_forgotten_is_asked_without() {
        let question = |continues: Option<&str>| Ask {
            key: "k".to_owned(),
            role: Role::Ideas,
            round: 0,
            prompt: "p".to_owned(),
            place: Place::Node(NodeId::ROOT),
            node: NodeId::ROOT,
            continues: continues.map(|id| Continuation {
                id: id.to_owned(),
                tokens: 1,
                taken: None,
            }),
        };
        let answers = Forgetful(|| Ok(Reply::of("yes".to_owned())));
        for continues in [Some("r-1"), None] {
            let reply = ask(&answers, question(continues)).expect("an answer");
            assert_eq!(reply.text, "yes", "{continues:?}");
        }
        // One that forgets what it was not asked to remember fails this question, and no more.
        let lost = Forgetful(|| Err(AgentError::Forgotten("who?".to_owned())));
        let said = ask(&lost, question(Some("r-1")));
        assert!(matches!(&said, Err(AgentError::Unanswered(why)) if why == "who?"), "{said:?}");
    }
}
