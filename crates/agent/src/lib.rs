//! Asks agents: every question of every role passes the same layers. These are
//! `RecordLayer(ReplayLayer(BudgetLayer(RetryLayer(LimitLayer(DispatchLayer)))))`. An answer on
//! disk costs nothing, each try is limited, and a question that waits holds no slot.
//!
//! # Layout
//! - Questions: [`question`] has the types, [`settings`] and [`role_agents`] the agent of each
//!   role.
//! - Layers, from the outside in: [`mod@record_layer`], [`mod@replay_layer`], [`budget_layer`],
//!   [`retry_layer`], [`mod@limit_layer`], [`mod@dispatch_layer`]; [`call_store`] keeps answers and
//!   reservations on disk, [`price`] computes costs, [`bucket`] counts slots and rates,
//!   [`mod@servers`] remembers which servers have answered, [`retry_timer`] waits.
//! - Servers: [`mod@http`] sends, [`mod@wire`] encodes and decodes, [`mod@sse`] splits streams,
//!   [`mod@http_refusal`] classifies errors, [`mod@retry_after`] reads stated waits.
//! - Programs: [`command`] runs one of the user's, [`mod@cli`] a coding agent, both in the folder
//!   of [`mod@workspace`]; [`mod@tuner`] needs no program and no server.

pub mod bucket;
pub mod budget_layer;
pub mod call_store;
pub mod cli;
pub mod command;
mod dispatch_layer;
mod http;
mod http_refusal;
mod limit_layer;
pub mod price;
pub mod question;
mod record_layer;
mod replay_layer;
mod retry_after;
pub mod retry_layer;
pub mod retry_timer;
pub mod role_agents;
mod server_id;
mod servers;
pub mod settings;
mod sse;
#[cfg(target_os = "linux")]
#[path = "unix.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "windows.rs"]
mod system;
mod tuner;
mod wire;
mod workspace;

#[cfg(test)]
mod tests;

use bucket::AgentLimits;
use budget_layer::{Budget, BudgetLayer};
use call_store::CallStore;
use command::AgentWorkspace;
use dispatch_layer::DispatchLayer;
use http::HttpClient;
use limit_layer::LimitLayer;
use price::ModelPrices;
use question::{AgentLayer as _, AgentQuestion, DeadlineMeter};
use record_layer::RecordLayer;
use replay_layer::ReplayLayer;
use retry_layer::{RetryLayer, RetryPolicy};
use retry_timer::{DoorObserver, SystemTimer};
use role_agents::RoleAgents;
use servers::ServerBook;
use std::time::{Duration, Instant};
use treebeam_run::port::{
    Agent, AgentError, AgentReply, AgentRequest, AgentRole, EditMode, PortError,
};

pub use system::forbid_inspection;

/// Everything that the agent door needs.
#[derive(Debug)]
pub struct DoorPlan {
    /// The agent of each role.
    pub role_agents: RoleAgents,
    /// The prices of models.
    pub prices: ModelPrices,
    /// The most that may be spent.
    pub budget: Budget,
    /// Limits on questions in flight and per minute.
    pub limits: AgentLimits,
    /// Number of tries, and how long to wait.
    pub patience: RetryPolicy,
    /// The place where answers are kept.
    pub calls: CallStore,
    /// The calls of another run to replay; then no agent is asked.
    pub replays: Option<CallStore>,
    /// The place where programs work.
    pub surroundings: AgentWorkspace,
}

type AskLayers<'a> =
    BudgetLayer<'a, RetryLayer<'a, LimitLayer<'a, DispatchLayer<'a>>, SystemTimer<'a>>>;
type DoorLayers<'a> = RecordLayer<'a, ReplayLayer<'a, AskLayers<'a>>>;

/// The agent door: all layers, through which every question goes.
pub struct AgentDoor<'a>(DoorLayers<'a>);

impl<'a> AgentDoor<'a> {
    /// Creates the layers. What was spent before counts.
    ///
    /// # Errors
    /// When the calls on disk cannot be counted, or there is no HTTP client.
    pub fn open(plan: &'a DoorPlan, observer: &'a dyn DoorObserver) -> Result<Self, PortError> {
        let DoorPlan { role_agents, prices, calls, surroundings, .. } = plan;
        surroundings.end_leftover_agents()?;
        let first_byte = plan.patience.first_byte;
        let real =
            DispatchLayer { http: HttpClient::new()?, role_agents, surroundings, first_byte };
        let limited = LimitLayer::new(real, plan.limits, role_agents, observer);
        let seed = u64::from(std::process::id());
        let (nap, servers) = (SystemTimer::new(observer), ServerBook::new(role_agents, calls));
        let retrying = RetryLayer::new(limited, nap, plan.patience, servers, seed);
        let budgeted =
            BudgetLayer::new(retrying, plan.budget, calls, (role_agents, prices), observer)?;
        let inner = match &plan.replays {
            None => ReplayLayer::Asked(budgeted),
            Some(recorded) => ReplayLayer::Replayed(recorded),
        };
        Ok(Self(RecordLayer { inner, calls, role_agents, observer }))
    }

    /// Answers a question that need not belong to a run.
    ///
    /// # Errors
    /// When no usable answer came.
    pub fn answer_question(&self, question: &AgentQuestion) -> Result<AgentReply, AgentError> {
        self.answer_within(question, &DeadlineMeter::default())
    }

    /// Answers a question that need not belong to a run, within this time.
    ///
    /// # Errors
    /// When no usable answer came.
    pub fn answer_before(
        &self,
        question: &AgentQuestion,
        within: Duration,
    ) -> Result<AgentReply, AgentError> {
        let end = Instant::now().checked_add(within);
        self.answer_within(question, &DeadlineMeter { tries: None, end })
    }

    fn answer_within(
        &self,
        question: &AgentQuestion,
        within: &DeadlineMeter,
    ) -> Result<AgentReply, AgentError> {
        if !call_store::is_call_key(&question.key) {
            let what = format!("{:?} is no key for a call", question.key);
            return Err(PortError::new(what).with_hint("use letters, digits, `-` and `_`").into());
        }
        Ok(self.0.answer_question(question, within)?)
    }
}

impl Agent for AgentDoor<'_> {
    fn can_answer(&self, role: AgentRole) -> bool {
        self.0.role_agents.settings_for(role).is_ok()
    }

    fn edit_mode(&self, role: AgentRole) -> EditMode {
        self.0.role_agents.settings_for(role).map_or(EditMode::Diff, |agent| agent.edits_as(role))
    }

    fn can_continue(&self, role: AgentRole) -> bool {
        self.0.role_agents.settings_for(role).is_ok_and(settings::AgentSettings::can_continue)
    }

    fn ask(&self, ask: &AgentRequest) -> Result<AgentReply, AgentError> {
        let answer = self.answer_within(&AgentQuestion::from(ask), &DeadlineMeter::from(ask));
        answer.map_err(|error| name_role(error, ask.role))
    }
}

/// Adds the role to the error of an agent that cannot be used. An interruption stays as it is.
fn name_role(error: AgentError, role: AgentRole) -> AgentError {
    match error {
        AgentError::Unavailable(error) if !error.is_interruption() => {
            let hint = error.hint.clone();
            let above = PortError::new(format!("the agent for `{role}` is unavailable"));
            AgentError::Unavailable(PortError { hint, ..above.with_cause(error) })
        }
        other @ (AgentError::Unavailable(_)
        | AgentError::Unanswered(_)
        | AgentError::Forgotten(_)
        | AgentError::OverBudget { .. }
        | AgentError::OutOfTime(_)
        | AgentError::Interrupted) => other,
    }
}
