//! Checks the preconditions of a run before any agent is called.
//!
//! In this order: agents that are complete, keys that are set, a clean working tree, and the user's
//! consent to the cost. Nothing here calls an agent.

use crate::config::Config;
use crate::config::agents::AgentConfigKind;
use crate::estimate::{CostEstimate, EstimatedAgent, UsageKnowledge};
use crate::failure::CommandFailure;
use crate::role_agents::{self, RoleAgent};
use crate::terminal;
use treebeam_agent::price::ModelPrice;
use treebeam_agent::role_agents::RoleAgents;
use treebeam_agent::settings::{DEFAULT_CLI_MAX_TOKENS, DEFAULT_MAX_TOKENS};
use treebeam_core::conversation::ConversationMode;
use treebeam_core::policy::{FixedSettings, RunLimits};
use treebeam_run::port::{AgentRole, Cost};

/// State of the user's consent to the expected cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CostConsent {
    /// Given by `--yes`.
    Given,
    /// Not yet given: the user is asked if there is a terminal.
    Open,
}

impl CostConsent {
    /// Converts the value of `--yes`.
    pub(crate) const fn from_yes_flag(yes: bool) -> Self {
        if yes { Self::Given } else { Self::Open }
    }
}

/// Returns the agents if all needed roles are configured and have their keys.
pub(crate) fn required_agents(
    role_agents: &[RoleAgent<'_>],
    needed: &[AgentRole],
) -> Result<RoleAgents, CommandFailure> {
    for role in needed {
        if !role_agents.iter().any(|role_agent| role_agent.role == *role) {
            let what = format!("a run needs an agent for the role `{role}`, and none is set");
            let hint = format!("set `agents.{role}` in `treebeam.toml`");
            return Err(CommandFailure::usage(what).with_hint(hint));
        }
    }
    role_agents::installed_role_agents(role_agents)
}

/// Refuses `native` conversations with an idea generator that cannot continue one.
pub(crate) fn must_keep_conversations(
    mode: ConversationMode,
    role_agents: &[RoleAgent<'_>],
) -> Result<(), CommandFailure> {
    let ideas = role_agents.iter().find(|role_agent| role_agent.role == AgentRole::Ideas);
    if mode != ConversationMode::Native || ideas.is_some_and(RoleAgent::can_continue) {
        return Ok(());
    }
    let who = ideas.map_or("the dry world".to_owned(), |role_agent| {
        format!("`{}`", role_agent.provider_name())
    });
    let what = format!(
        "`idea_conversation_mode` is `native`, and {who} keeps no conversations of its own"
    );
    Err(CommandFailure::usage(what).with_hint("say `auto` or `replay`"))
}

/// Refuses a summary agent whose role has no agent. Not needed for the dry world, which has its own
/// agents.
pub(crate) fn must_have_summary_agent(
    who: Option<AgentRole>,
    role_agents: &[RoleAgent<'_>],
) -> Result<(), CommandFailure> {
    match who.filter(|role| !role_agents.iter().any(|role_agent| role_agent.role == *role)) {
        None => Ok(()),
        Some(role) => {
            let what = format!("`summary_agent` is `{role}`, and no agent is set for that role");
            let hint = format!("set `agents.{role}` in `treebeam.toml`, or say `none`");
            Err(CommandFailure::usage(what).with_hint(hint))
        }
    }
}

/// Estimates the cost of a run as it is configured.
pub(crate) fn estimate_cost(
    config: &Config,
    settings: &FixedSettings,
    limits: &RunLimits,
    role_agents: &[RoleAgent<'_>],
) -> CostEstimate {
    let prices = config.model_prices();
    let price = |model: &str| prices.find_price(model).map(|(price, _)| price);
    let asked = |role_agent: &RoleAgent<'_>| {
        let (known, max_tokens, price) = match &role_agent.agent.line {
            AgentConfigKind::Model(model) => {
                let most = model.max_tokens.unwrap_or(DEFAULT_MAX_TOKENS);
                (UsageKnowledge::Before, Some(most), price(&model.name))
            }
            AgentConfigKind::Cli(cli) => {
                let most = cli.max_tokens.unwrap_or(DEFAULT_CLI_MAX_TOKENS);
                (UsageKnowledge::After, Some(most), cli.model.as_deref().and_then(price))
            }
            AgentConfigKind::Command(_) => (UsageKnowledge::Never, None, None),
            AgentConfigKind::Tuner => (UsageKnowledge::Nothing, None, Some(ModelPrice::ZERO)),
        };
        let shown_chars = config.max_shown_chars(role_agent.role);
        EstimatedAgent { role: role_agent.role, shown_chars, max_tokens, price, known }
    };
    let asked: Vec<EstimatedAgent> = role_agents.iter().map(asked).collect();
    CostEstimate::new(settings, limits, &asked)
}

/// Prints the estimated cost and, above the limit, asks for consent. Without a terminal the run
/// goes on.
pub(crate) fn confirm_cost(
    estimate: &CostEstimate,
    above: Option<Cost>,
    consent: CostConsent,
) -> Result<(), CommandFailure> {
    terminal::print_note(&format!("a run as configured: {estimate}"));
    let much =
        above.is_some_and(|above| estimate.likely_cost() > above || estimate.is_open_ended());
    if consent == CostConsent::Given || !much || !terminal::is_attended() {
        return Ok(());
    }
    if terminal::confirm("start it?") {
        return Ok(());
    }
    Err(CommandFailure::usage("not started: nothing was asked and nothing was paid for")
        .with_hint("`--yes` starts it without asking; `max_cost_usd` bounds what it may cost"))
}
