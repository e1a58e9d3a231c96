//! `treebeam agents`: lists the agent of each role, with key and price.
//!
//! `check` makes a tiny call to each of them, `ask` sends standard input to one of them; both use
//! the full agent door.

mod ask;
mod check;
mod terminal_observer;

use super::OutputFormat;
use crate::cli::{AgentsArgs, AgentsCommand, ConfigFlag, SpendingFlags};
use crate::config::Config;
use crate::config::agents::AgentConfigKind;
use crate::config::config_file::find_toplevel;
use crate::dotenv::Dotenv;
use crate::failure::{CommandExit, CommandFailure};
use crate::preflight;
use crate::role_agents::{self, KeyPlace, RoleAgent};
use crate::terminal;
use serde_json::{Value, json};
use std::path::Path;
use treebeam_agent::DoorPlan;
use treebeam_agent::bucket::AgentLimits;
use treebeam_agent::budget_layer::Budget;
use treebeam_agent::call_store::CallStore;
use treebeam_agent::command::AgentWorkspace;
use treebeam_agent::price::{ModelPrices, PRICES_DATE, PriceOrigin};
use treebeam_agent::retry_layer::RetryPolicy;
use treebeam_core::policy::{FixedSettings, RunLimits};

pub(super) fn run_agents(
    here: &Path,
    args: &AgentsArgs,
    output: OutputFormat,
) -> Result<CommandExit, CommandFailure> {
    match &args.act {
        None => list_agents(here, &args.config, output),
        Some(AgentsCommand::Check(args)) => check::run_agents_check(here, args, output),
        Some(AgentsCommand::Ask(args)) => ask::run_agents_ask(here, args, output),
    }
}

/// Loads the configuration with these flags over it, and the `.env` files.
fn load_agent_config(
    here: &Path,
    file: &ConfigFlag,
    flags: Option<&SpendingFlags>,
) -> Result<(Config, Dotenv), CommandFailure> {
    let config = Config::load(here, file.config.as_deref())?;
    let config = config.with_flags(&[serde_json::to_value(flags)?])?;
    let dotenv = Dotenv::load(here, &config)?;
    Ok((config, dotenv))
}

/// Builds the plan for questions outside of any run: their answers are kept in `.treebeam/calls`.
fn build_question_plan(
    here: &Path,
    config: &Config,
    role_agents: &[RoleAgent<'_>],
) -> Result<DoorPlan, CommandFailure> {
    let here = here.canonicalize()?;
    let home = find_toplevel(&here).unwrap_or(&here);
    let runs = treebeam_store::make_runs_root(home)?;
    let calls = runs.parent().unwrap_or(home).join("calls");
    let run_limits = config.run_limits(&RunLimits::default());
    Ok(DoorPlan {
        role_agents: role_agents::installed_role_agents(role_agents)?,
        prices: config.model_prices(),
        budget: Budget::from(&run_limits),
        limits: AgentLimits::from(&run_limits),
        patience: RetryPolicy::SINGLE_QUESTION,
        calls: CallStore::Folder(calls),
        replays: None,
        surroundings: AgentWorkspace::Folder(home.to_owned()),
    })
}

fn no_agents_failure() -> CommandFailure {
    CommandFailure::usage("no agent is set")
        .with_hint("set `agents.coder` and the others in `treebeam.toml`")
}

fn list_agents(
    here: &Path,
    file: &ConfigFlag,
    output: OutputFormat,
) -> Result<CommandExit, CommandFailure> {
    let (config, dotenv) = load_agent_config(here, file, None)?;
    let (role_agents, prices) =
        (role_agents::list_role_agents(&config, &dotenv), config.model_prices());
    let (settings, limits) = (
        config.fixed_settings(FixedSettings::default())?,
        config.run_limits(&RunLimits::default()),
    );
    let estimate = preflight::estimate_cost(&config, &settings, &limits, &role_agents);
    match output {
        OutputFormat::Json => terminal::print_json(&json!({
            "schema": "treebeam.agents/1",
            "prices_of": PRICES_DATE,
            "agents": role_agents.iter().map(|role_agent| render_agent_json(role_agent, &prices)).collect::<Vec<_>>(),
            "estimate": estimate.render_json(),
        }))?,
        OutputFormat::Text => terminal::print_text(&render_agents_table(&role_agents, &prices))?,
    }
    if role_agents.is_empty() {
        terminal::print_hint(
            "no agent is set: set `agents.coder` and the others in `treebeam.toml`",
        );
    } else {
        terminal::print_note(&format!("a run as configured: {estimate}"));
    }
    Ok(CommandExit::Done)
}

fn render_agent_json(role_agent: &RoleAgent<'_>, prices: &ModelPrices) -> Value {
    let key = match &role_agent.key {
        KeyPlace::None => Value::Null,
        KeyPlace::Found { key, file } => {
            json!({ "variable": key.variable, "found": true, "file": file })
        }
        KeyPlace::Missing { variable } => {
            json!({ "variable": variable, "found": false, "file": null })
        }
    };
    let (model, command, base_url) = match &role_agent.agent.line {
        AgentConfigKind::Model(model) => {
            let home = model.base_url.as_deref().unwrap_or(model.wire.default_base_url());
            (Some(&model.name), None, Some(home))
        }
        AgentConfigKind::Command(command) => (None, Some(command), None),
        AgentConfigKind::Tuner => (None, None, None),
        AgentConfigKind::Cli(cli) => {
            (cli.model.as_ref(), cli.command.as_ref(), cli.base_url.as_deref())
        }
    };
    let price = model.and_then(|model| prices.find_price(model)).map(|(price, origin)| {
        let built_in = origin == PriceOrigin::BuiltIn;
        json!({ "input": price.input, "output": price.output, "cached": price.cached, "built_in": built_in })
    });
    json!({
        "role": role_agent.role,
        "provider": role_agent.provider_name(),
        "model": model,
        "command": command,
        "base_url": base_url,
        "edits": role_agent.agent.edits,
        "key": key,
        "price": price,
    })
}

fn render_agents_table(role_agents: &[RoleAgent<'_>], prices: &ModelPrices) -> String {
    let head = ["role", "provider", "model", "key", "dollars per million tokens"];
    let mut rows = vec![head.map(str::to_owned)];
    for role_agent in role_agents {
        let role = role_agent.role.to_string();
        let price = match &role_agent.agent.line {
            AgentConfigKind::Command(_) => "unknown: not counted".to_owned(),
            AgentConfigKind::Tuner => "nothing: it is built in".to_owned(),
            AgentConfigKind::Model(model) => describe_price(prices, &model.name),
            AgentConfigKind::Cli(cli) => {
                describe_price(prices, cli.model.as_deref().unwrap_or_default())
            }
        };
        rows.push([
            role,
            role_agent.provider_name().to_owned(),
            role_agent.model_name(),
            role_agent.key.describe_place(),
            price,
        ]);
    }
    align_columns(&rows)
}

fn describe_price(prices: &ModelPrices, model: &str) -> String {
    let Some((price, origin)) = prices.find_price(model) else {
        return "unknown: tokens are counted".to_owned();
    };
    let from = match origin {
        PriceOrigin::Configured => "`prices`".to_owned(),
        PriceOrigin::BuiltIn => format!("built in, of {PRICES_DATE}"),
    };
    format!("{} in, {} out, {} cached ({from})", price.input, price.output, price.cached)
}

/// Formats rows with aligned columns.
fn align_columns<const N: usize>(rows: &[[String; N]]) -> String {
    let mut widths = [0; N];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}
