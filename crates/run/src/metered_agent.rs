//! Asks the questions of one step within its time limits, and sums up the bills of their answers.
//! An answer from disk counts like the first time, because it carries its bill. Once the run's time
//! is over, waits end and nothing is asked.

use crate::port::{Agent, AgentError, AgentReply, AgentRequest, AgentRole, Clock};
use jiff::Timestamp;
use std::cell::RefCell;
use std::time::Duration;
use treebeam_core::bill::RoleBills;
use treebeam_core::event::BudgetKind;

/// The agents, with the bills and time limits of one step.
pub(crate) struct MeteredAgent<'a> {
    agent: &'a dyn Agent,
    /// Time limit for all answers together.
    timeout: Option<Duration>,
    bills: RefCell<RoleBills>,
    /// The clock, and the end of the run's time.
    deadline: Option<(&'a dyn Clock, Timestamp)>,
}

impl<'a> MeteredAgent<'a> {
    pub(crate) fn new(agent: &'a dyn Agent, timeout: Option<Duration>) -> Self {
        Self { agent, timeout, bills: RefCell::default(), deadline: None }
    }

    /// Sets the end of the run's time: nothing is asked after it, and no wait lasts longer.
    pub(crate) fn with_deadline(self, deadline: Option<Timestamp>, clock: &'a dyn Clock) -> Self {
        Self { deadline: deadline.map(|deadline| (clock, deadline)), ..self }
    }

    pub(crate) fn can_answer(&self, role: AgentRole) -> bool {
        self.agent.can_answer(role)
    }

    pub(crate) fn can_continue(&self, role: AgentRole) -> bool {
        self.agent.can_continue(role)
    }

    pub(crate) fn ask(&self, ask: AgentRequest) -> Result<AgentReply, AgentError> {
        let role = ask.role;
        let of_run = self.remaining_run_time()?;
        let of_step = self.remaining_step_time(&format!("the {role}"))?;
        let within = [of_run, of_step].into_iter().flatten().min();
        match ask_agent(self.agent, &AgentRequest { within, until: of_run, ..ask }) {
            Ok(reply) => {
                self.bills.borrow_mut().add(role, reply.bill());
                Ok(reply)
            }
            // An eval that the run's deadline stops has not failed.
            Err(AgentError::OutOfTime(_))
                if within != of_step || self.remaining_run_time().is_err() =>
            {
                Err(self.run_time_over())
            }
            Err(AgentError::OutOfTime(why)) => {
                Err(self.step_time_over(&format!("the {role} did not answer: {why}")))
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the rest of the run's time, if it has an end.
    fn remaining_run_time(&self) -> Result<Option<Duration>, AgentError> {
        let Some((clock, deadline)) = self.deadline else { return Ok(None) };
        let left = Duration::try_from(deadline.duration_since(clock.now()));
        let left = left.ok().filter(|left| !left.is_zero());
        left.map_or_else(|| Err(self.run_time_over()), |left| Ok(Some(left)))
    }

    fn run_time_over(&self) -> AgentError {
        let deadline = self.deadline.map(|(_, deadline)| format!(" (`deadline`: {deadline})"));
        let why = format!("the time of the run is over{}", deadline.unwrap_or_default());
        AgentError::OverBudget { budget: BudgetKind::Deadline, why }
    }

    /// Returns the rest of the step's time, if it has an end; `whom` is named in the error.
    pub(crate) fn remaining_step_time(&self, whom: &str) -> Result<Option<Duration>, AgentError> {
        let took = self.bills.borrow().total().answer_time();
        match self.timeout.map(|timeout| timeout.saturating_sub(took)) {
            Some(Duration::ZERO) => {
                Err(self.step_time_over(&format!("nothing is left for {whom}")))
            }
            left => Ok(left),
        }
    }

    /// Returns the bills of the answers so far.
    pub(crate) fn bills(&self) -> RoleBills {
        self.bills.borrow().clone()
    }

    fn step_time_over(&self, what: &str) -> AgentError {
        let seconds = |time: Duration| format!("{:.1} s", time.as_secs_f64());
        let bills = self.bills.borrow();
        let took =
            bills.by_role().map(|(role, bill)| format!("{role} {}", seconds(bill.answer_time())));
        let took: Vec<String> = took.collect();
        let took = if took.is_empty() { String::new() } else { format!("; {}", took.join(", ")) };
        let most = seconds(self.timeout.unwrap_or_default());
        AgentError::OutOfTime(format!(
            "{what} (`eval_timeout_seconds`: one attempt may take {most}{took})"
        ))
    }
}

/// Asks an agent; `Forgotten` becomes `Unanswered` if the question continues no answer.
fn ask_agent(agent: &dyn Agent, question: &AgentRequest) -> Result<AgentReply, AgentError> {
    match agent.ask(question) {
        Err(AgentError::Forgotten(why)) if question.continues.is_none() => {
            Err(AgentError::Unanswered(why))
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::{AgentRole, Continuation, EditMode};
    use treebeam_core::id::{CodePlace, NodeId};

    /// Has forgotten every answer; a question that continues none gets the given reply.
    struct Forgetful(fn() -> Result<AgentReply, AgentError>);

    impl Agent for Forgetful {
        fn can_answer(&self, _: AgentRole) -> bool {
            true
        }
        fn edit_mode(&self, _: AgentRole) -> EditMode {
            EditMode::Diff
        }
        fn can_continue(&self, _: AgentRole) -> bool {
            true
        }
        fn ask(&self, ask: &AgentRequest) -> Result<AgentReply, AgentError> {
            match &ask.continues {
                Some(continuation) => Err(AgentError::Forgotten(continuation.id.clone())),
                None => (self.0)(),
            }
        }
    }

    #[test]
    fn what_is_forgotten_is_said_where_it_was_to_be_remembered() {
        let question = |continues: Option<&str>| AgentRequest {
            key: "k".to_owned(),
            role: AgentRole::Ideas,
            round: 0,
            prompt: "p".into(),
            place: CodePlace::Node(NodeId::ROOT),
            node: NodeId::ROOT,
            within: None,
            until: None,
            continues: continues.map(|id| Continuation {
                id: id.to_owned(),
                tokens: 1,
                taken: None,
            }),
        };
        let answers = Forgetful(|| Ok(AgentReply::from_text("yes".to_owned())));
        let said = ask_agent(&answers, &question(Some("r-1")));
        assert!(matches!(&said, Err(AgentError::Forgotten(id)) if id == "r-1"), "{said:?}");
        assert_eq!(ask_agent(&answers, &question(None)).expect("an answer").text, "yes");
        // Forgetting an answer that was not to be continued fails this question only.
        let lost = Forgetful(|| Err(AgentError::Forgotten("who?".to_owned())));
        let said = ask_agent(&lost, &question(None));
        assert!(matches!(&said, Err(AgentError::Unanswered(why)) if why == "who?"), "{said:?}");
    }
}
