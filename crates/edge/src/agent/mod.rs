//! The door to agents: every question of every role goes through the same layers, `Recorded(Source(Budgeted(Retrying(
//! Limited(Real)))))`. An answer from disk costs nothing, each try is limited, and one that waits holds no slot.
//!
//! # Layout
//! [`question`] is what goes through, [`settings`] and [`crew`] say who answers; `recorded`, `source`, `budgeted`, `retrying`, `limited`
//! and `real` are the layers. [`calls`] keeps answers and reservations on disk, [`price`] knows what they cost, [`bucket`]
//! counts slots and rates, `servers` knows which servers have answered, [`wait`] waits visibly. `http` sends, `wire` writes and reads, `judge` says what an error means,
//! `retry_after` when to come back, `sse` takes streams apart; [`command`] runs a program instead and `cli` a coding agent,
//! both in what `site` gives them; `tuner` needs neither.

pub mod bucket;
pub mod budgeted;
pub mod calls;
pub mod cli;
pub mod command;
pub mod crew;
mod http;
mod judge;
mod limited;
pub mod price;
pub mod question;
mod real;
mod recorded;
mod retry_after;
pub mod retrying;
mod servers;
pub mod settings;
mod site;
mod source;
mod sse;
#[cfg(target_os = "linux")]
#[path = "unix.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "windows.rs"]
mod system;
mod tuner;
pub mod wait;
mod wire;

#[cfg(test)]
mod tests;

use bucket::Limits;
use budgeted::{Budget, Budgeted};
use calls::Calls;
use command::Surroundings;
use crew::Crew;
use http::Http;
use limited::Limited;
use price::Prices;
use question::{Answer as _, Question, Within};
use real::Real;
use recorded::Recorded;
use retrying::{Patience, Retrying};
use servers::ServerBook;
use source::Source;
use std::time::{Duration, Instant};
use treebeam_run::port::{Agent, AgentError, Ask, Edits, PortError, Reply, Role};
use wait::{Observer, RealNap};

pub use system::shield;

/// All that the door needs to know.
#[derive(Debug)]
pub struct Plan {
    /// Who answers.
    pub crew: Crew,
    /// What answers cost.
    pub prices: Prices,
    /// The most that may be spent.
    pub budget: Budget,
    /// How many at once.
    pub limits: Limits,
    /// How often and how long.
    pub patience: Patience,
    /// Where answers are kept.
    pub calls: Calls,
    /// The calls of another run, where they are to be gone by and nobody is to be asked.
    pub replays: Option<Calls>,
    /// Where programs work.
    pub surroundings: Surroundings,
}

type Asked<'a> = Budgeted<'a, Retrying<'a, Limited<'a, Real<'a>>, RealNap<'a>>>;
type Layers<'a> = Recorded<'a, Source<'a, Asked<'a>>>;

/// The door.
pub struct Door<'a>(Layers<'a>);

impl<'a> Door<'a> {
    /// Opens the door. What was spent before counts.
    ///
    /// # Errors
    /// When the calls on disk cannot be counted, or there is no HTTP client.
    pub fn open(plan: &'a Plan, observer: &'a dyn Observer) -> Result<Self, PortError> {
        let Plan { crew, prices, calls, surroundings, .. } = plan;
        surroundings.clear()?;
        let first_byte = plan.patience.first_byte;
        let real = Real { http: Http::new()?, crew, surroundings, first_byte };
        let limited = Limited::new(real, plan.limits, crew, observer);
        let seed = u64::from(std::process::id());
        let (nap, servers) = (RealNap::new(observer), ServerBook::new(crew, calls));
        let retrying = Retrying::new(limited, nap, plan.patience, servers, seed);
        let budgeted = Budgeted::new(retrying, plan.budget, calls, (crew, prices), observer)?;
        let inner = match &plan.replays {
            None => Source::Asked(budgeted),
            Some(recorded) => Source::Replayed(recorded),
        };
        Ok(Self(Recorded { inner, calls, crew, observer }))
    }

    /// Answers a question that need not belong to a run.
    ///
    /// # Errors
    /// When no usable answer came.
    pub fn answer(&self, question: &Question) -> Result<Reply, AgentError> {
        self.answer_within(question, &Within::default())
    }

    /// Answers a question that need not belong to a run, within this time.
    ///
    /// # Errors
    /// When no usable answer came.
    pub fn answer_before(
        &self,
        question: &Question,
        within: Duration,
    ) -> Result<Reply, AgentError> {
        let end = Instant::now().checked_add(within);
        self.answer_within(question, &Within { tries: None, end })
    }

    fn answer_within(&self, question: &Question, within: &Within) -> Result<Reply, AgentError> {
        if !calls::is_key(&question.key) {
            let what = format!("{:?} is no key for a call", question.key);
            return Err(PortError::new(what).hint("use letters, digits, `-` and `_`").into());
        }
        Ok(self.0.answer(question, within)?)
    }
}

impl Agent for Door<'_> {
    fn answers(&self, role: Role) -> bool {
        self.0.crew.settings(role).is_ok()
    }

    fn edits(&self, role: Role) -> Edits {
        self.0.crew.settings(role).map_or(Edits::Diff, |agent| agent.edits_as(role))
    }

    fn continues(&self, role: Role) -> bool {
        self.0.crew.settings(role).is_ok_and(settings::Settings::continues)
    }

    fn ask(&self, ask: &Ask) -> Result<Reply, AgentError> {
        self.answer_within(&Question::from(ask), &Within::from(ask))
    }
}
