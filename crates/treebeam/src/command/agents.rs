//! `treebeam agents`: who answers in each role, where the key is, and what it costs. `check` asks each of them something
//! tiny, `ask` asks one of them what stands on standard input; both go through the whole door.

mod ask;
mod check;
mod watcher;

use super::Output;
use crate::cli::{AgentsAct, AgentsArgs, ConfigFlag, SpendingFlags};
use crate::config::Config;
use crate::config::agents::Line;
use crate::config::file::top;
use crate::crew::{self, KeyPlace, Seat};
use crate::dotenv::Dotenv;
use crate::failure::{Exit, Failure};
use crate::preflight;
use crate::terminal;
use serde_json::{Value, json};
use std::path::Path;
use treebeam_core::policy::{Meaning, Reach};
use treebeam_edge::agent::Plan;
use treebeam_edge::agent::bucket::Limits;
use treebeam_edge::agent::budgeted::Budget;
use treebeam_edge::agent::calls::Calls;
use treebeam_edge::agent::command::Surroundings;
use treebeam_edge::agent::price::{PRICES_DATE, PriceOrigin, Prices};
use treebeam_edge::agent::retrying::Patience;
use treebeam_edge::store;

pub(super) fn run(here: &Path, args: &AgentsArgs, output: Output) -> Result<Exit, Failure> {
    match &args.act {
        None => list(here, &args.config, output),
        Some(AgentsAct::Check(args)) => check::run(here, args, output),
        Some(AgentsAct::Ask(args)) => ask::run(here, args, output),
    }
}

/// The configuration with these flags over it, and the `.env` files.
fn settings(
    here: &Path,
    file: &ConfigFlag,
    flags: Option<&SpendingFlags>,
) -> Result<(Config, Dotenv), Failure> {
    let config = Config::load(here, file.config.as_deref())?;
    let config = config.with_flags(&[serde_json::to_value(flags)?])?;
    let dotenv = Dotenv::load(here, &config)?;
    Ok((config, dotenv))
}

/// A plan for questions outside of any run: they are kept in `.treebeam/calls`.
fn plan(here: &Path, config: &Config, seats: &[Seat<'_>]) -> Result<Plan, Failure> {
    let here = here.canonicalize()?;
    let home = top(&here).unwrap_or(&here);
    let runs = store::make_runs_root(home)?;
    let calls = runs.parent().unwrap_or(home).join("calls");
    let reach = config.reach(&Reach::default());
    Ok(Plan {
        crew: crew::crew(seats)?,
        prices: config.prices(),
        budget: Budget::from(&reach),
        limits: Limits::from(&reach),
        patience: Patience::SINGLE_QUESTION,
        calls: Calls::Folder(calls),
        replays: None,
        surroundings: Surroundings::Folder(home.to_owned()),
    })
}

fn none_set() -> Failure {
    Failure::usage("no agent is set").hint("set `agents.coder` and the others in `treebeam.toml`")
}

fn list(here: &Path, file: &ConfigFlag, output: Output) -> Result<Exit, Failure> {
    let (config, dotenv) = settings(here, file, None)?;
    let (seats, prices) = (crew::seats(&config, &dotenv), config.prices());
    let (meaning, reach) = (config.meaning(Meaning::default())?, config.reach(&Reach::default()));
    let estimate = preflight::estimate(&config, &meaning, &reach, &seats);
    match output {
        Output::Json => terminal::json(&json!({
            "schema": "treebeam.agents/1",
            "prices_of": PRICES_DATE,
            "agents": seats.iter().map(|seat| document(seat, &prices)).collect::<Vec<_>>(),
            "estimate": estimate.document(),
        }))?,
        Output::Text => terminal::show(&text(&seats, &prices))?,
    }
    if seats.is_empty() {
        terminal::hint("no agent is set: set `agents.coder` and the others in `treebeam.toml`");
    } else {
        terminal::note(&format!("a run as configured: {estimate}"));
    }
    Ok(Exit::Done)
}

fn document(seat: &Seat<'_>, prices: &Prices) -> Value {
    let key = match &seat.key {
        KeyPlace::None => Value::Null,
        KeyPlace::Found { key, file } => {
            json!({ "variable": key.variable, "found": true, "file": file })
        }
        KeyPlace::Missing { variable } => {
            json!({ "variable": variable, "found": false, "file": null })
        }
    };
    let (model, command, base_url) = match &seat.agent.line {
        Line::Model(model) => {
            let home = model.base_url.as_deref().unwrap_or(model.wire.home());
            (Some(&model.name), None, Some(home))
        }
        Line::Command(command) => (None, Some(command), None),
        Line::Tuner => (None, None, None),
        Line::Cli(cli) => (cli.model.as_ref(), cli.command.as_ref(), cli.base_url.as_deref()),
    };
    let price = model.and_then(|model| prices.of(model)).map(|(price, origin)| {
        let built_in = origin == PriceOrigin::BuiltIn;
        json!({ "input": price.input, "output": price.output, "cached": price.cached, "built_in": built_in })
    });
    json!({
        "role": seat.role,
        "provider": seat.provider(),
        "model": model,
        "command": command,
        "base_url": base_url,
        "edits": seat.agent.edits,
        "key": key,
        "price": price,
    })
}

fn text(seats: &[Seat<'_>], prices: &Prices) -> String {
    let head = ["role", "provider", "model", "key", "dollars per million tokens"];
    let mut rows = vec![head.map(str::to_owned)];
    for seat in seats {
        let role = seat.role.to_string();
        let price = match &seat.agent.line {
            Line::Command(_) => "unknown: not counted".to_owned(),
            Line::Tuner => "nothing: it is built in".to_owned(),
            Line::Model(model) => price_in_words(prices, &model.name),
            Line::Cli(cli) => price_in_words(prices, cli.model.as_deref().unwrap_or_default()),
        };
        rows.push([role, seat.provider().to_owned(), seat.model(), seat.key.in_words(), price]);
    }
    columns(&rows)
}

fn price_in_words(prices: &Prices, model: &str) -> String {
    let Some((price, origin)) = prices.of(model) else {
        return "unknown: tokens are counted".to_owned();
    };
    let from = match origin {
        PriceOrigin::Configured => "`prices`".to_owned(),
        PriceOrigin::BuiltIn => format!("built in, of {PRICES_DATE}"),
    };
    format!("{} in, {} out, {} cached ({from})", price.input, price.output, price.cached)
}

/// Rows with their columns below each other.
fn columns<const N: usize>(rows: &[[String; N]]) -> String {
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
