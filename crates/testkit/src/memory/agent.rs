//! Implements the agent of the world in memory: ideas and diffs by the seed, within a budget.

use super::{MemoryWorld, SAID_BY, Trouble};
use jiff::SignedDuration;
use treebeam_core::bill::RoleBills;
use treebeam_core::event::BudgetKind;
use treebeam_run::port::{
    Agent, AgentError, AgentReply, AgentRequest, AgentRole, Cost, EditMode, PortError, TokenUsage,
};

/// All codes of a world where ideas differ in words more often than in code.
const IDEA_CODES: [&str; 7] = [
    "gain 20 one",
    "gain 40 two",
    "gain 60 three",
    "gain -20 four",
    "gain 50 five",
    "sweep-fails",
    "never-applies",
];

impl Agent for MemoryWorld {
    fn can_answer(&self, role: AgentRole) -> bool {
        matches!(role, AgentRole::Ideas | AgentRole::Coder)
    }

    fn edit_mode(&self, _: AgentRole) -> EditMode {
        EditMode::Diff
    }

    fn can_continue(&self, _: AgentRole) -> bool {
        false
    }

    fn ask(&self, ask: &AgentRequest) -> Result<AgentReply, AgentError> {
        if self.trouble() == Trouble::NoAgent {
            return Err(PortError::new("the key is wrong").into());
        }
        self.pay(&ask.key)?;
        let text = match ask.role {
            AgentRole::Ideas => self.ideas(ask),
            AgentRole::Coder => {
                let idea = ask.prompt.lines().find_map(|line| line.strip_prefix("IDEA: "));
                let idea = idea.ok_or_else(|| AgentError::Unanswered("no idea".to_owned()))?;
                let idea = self.at_attempt(&ask.key, idea);
                format!("--- a/model.py\n+++ b/model.py\n@@ -1 +1,2 @@\n x\n+do {idea}\n")
            }
            role @ (AgentRole::Coordinator | AgentRole::Planner | AgentRole::Reviewer) => {
                return Err(AgentError::Unanswered(format!("there is no {role} here")));
            }
        };
        Ok(self.billed(&ask.key, text))
    }
}

impl MemoryWorld {
    /// Limits the number of paid answers; repeating an answered question is free.
    #[must_use]
    pub fn with_purse(self, answers: usize) -> Self {
        Self { purse: Some(answers), ..self }
    }

    /// Makes an answer take a second of wall time.
    #[must_use]
    pub fn with_slow_answers(self) -> Self {
        Self { answer_takes: SignedDuration::from_secs(1), ..self }
    }

    /// Returns the number of paid answers.
    #[must_use]
    pub fn paid(&self) -> usize {
        self.lock().paid.len()
    }

    /// Returns the bills of the paid answers, each counted once.
    #[must_use]
    pub fn bills(&self) -> RoleBills {
        let mut bills = RoleBills::default();
        for key in &self.lock().paid {
            let role = key.split('-').next().and_then(|role| role.parse().ok());
            bills.add(role.expect("a role"), self.billed(key, String::new()).bill());
        }
        bills
    }

    /// Returns an answer with its usage, which follows from the question, as for answers from disk.
    fn billed(&self, key: &str, text: String) -> AgentReply {
        let drawn = self.draw(key) % 1000;
        let usage = Some(TokenUsage { input: drawn, cached: drawn / 2, output: drawn % 10 });
        let cost = (!drawn.is_multiple_of(4)).then(|| Cost::from_pico_dollars(drawn));
        AgentReply { usage, cost, millis: Some(drawn), ..AgentReply::from_text(text) }
    }

    fn pay(&self, key: &str) -> Result<(), AgentError> {
        let mut disk = self.lock();
        if self.purse.is_some_and(|most| disk.paid.len() >= most) && !disk.paid.contains(key) {
            let why = "the purse is empty".to_owned();
            return Err(AgentError::OverBudget { budget: BudgetKind::Cost, why });
        }
        disk.paid.insert(key.to_owned());
        Ok(())
    }

    fn ideas(&self, ask: &AgentRequest) -> String {
        let wanted = ask.prompt.split_whitespace().nth(1).and_then(|n| n.parse().ok()).unwrap_or(1);
        let mut reply = String::new();
        for index in 0..wanted {
            let tag = format!("{} {index}", ask.key);
            let drawn = self.draw(&tag);
            if self.same_code {
                let code = IDEA_CODES[usize::try_from(drawn % 7).unwrap_or(0)];
                reply.push_str(&whole(&format!("{code}{SAID_BY}{tag}")));
                continue;
            }
            let word = match drawn % 13 {
                0 => "sweep-fails".to_owned(),
                1 => "never-applies".to_owned(),
                2 => "no-effect".to_owned(),
                3 => "not-a-number".to_owned(),
                4 => "short".to_owned(),
                5 => "error".to_owned(),
                6 | 7 => {
                    reply.push_str(&whole("gain 7 everywhere"));
                    continue;
                }
                _ => format!("gain {}", i64::try_from(drawn / 13 % 9).unwrap_or(0) * 20 - 60),
            };
            reply.push_str(&whole(&format!("{word} {tag}")));
        }
        reply
    }

    /// Returns what an idea does at the attempt that a key names: every other failing sweep, and
    /// every other patch that does not apply, succeeds the second time.
    fn at_attempt(&self, key: &str, idea: &str) -> String {
        let first = key.contains("-a1-");
        if first || self.draw(&format!("mended {idea}")).is_multiple_of(2) {
            return idea.to_owned();
        }
        let mended = "gain 20";
        idea.replace("sweep-fails", mended).replace("never-applies", mended)
    }
}

/// Formats an idea with all of its sections.
fn whole(title: &str) -> String {
    format!("IDEA: {title}\nRATIONALE: to see\nREQUIRED_CHANGES: as it says\n")
}
