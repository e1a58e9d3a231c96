//! `treebeam agents ask`: one question from standard input, one answer on standard output.

use super::terminal_observer::TerminalObserver;
use super::{build_question_plan, load_agent_config};
use crate::cli::AgentsAskArgs;
use crate::command::OutputFormat;
use crate::failure::{CommandExit, CommandFailure};
use crate::role_agents::{self, RoleAgent};
use crate::terminal;
use jiff::Timestamp;
use serde_json::json;
use std::io::{self, Read as _};
use std::path::Path;
use std::process;
use treebeam_agent::AgentDoor;
use treebeam_agent::call_store::is_call_key;
use treebeam_agent::question::AgentQuestion;
use treebeam_run::port::Cost;

/// Maximum size of a question.
const MAX_QUESTION_BYTES: u64 = 16 << 20;

pub(super) fn run_agents_ask(
    here: &Path,
    args: &AgentsAskArgs,
    output: OutputFormat,
) -> Result<CommandExit, CommandFailure> {
    let key = match &args.key {
        Some(key) if is_call_key(key) => key.clone(),
        Some(_) => {
            let what = "`--key` may have letters, digits, `-` and `_`, and at most 100 of them";
            return Err(CommandFailure::usage(what));
        }
        None => format!("ask-{}-{}", Timestamp::now().as_nanosecond(), process::id()),
    };
    let (config, dotenv) = load_agent_config(here, &args.config, Some(&args.spending))?;
    let role_agents = role_agents::list_role_agents(&config, &dotenv);
    let chosen: Vec<RoleAgent<'_>> =
        role_agents.into_iter().filter(|role_agent| role_agent.role == args.role).collect();
    if chosen.is_empty() {
        let what = format!("no agent is set for the role `{}`", args.role);
        let hint = format!("set `agents.{}` in `treebeam.toml`", args.role);
        return Err(CommandFailure::usage(what).with_hint(hint));
    }
    let plan = build_question_plan(here, &config, &chosen)?;
    let prompt = read_question()?;
    let question = AgentQuestion {
        key: key.clone(),
        role: args.role,
        round: 0,
        prompt: prompt.into(),
        continues: None,
        place: None,
        node: None,
    };
    let reply = AgentDoor::open(&plan, &TerminalObserver)?.answer_question(&question)?;
    match output {
        OutputFormat::Json => terminal::print_json(&json!({
            "schema": "treebeam.agents.ask/1",
            "role": args.role,
            "key": key,
            "reply": reply.text,
            "usage": reply.usage,
            "cost_usd": reply.cost.map(Cost::to_dollars),
            "id": reply.id,
            "model": reply.model,
        }))?,
        OutputFormat::Text => {
            let end = if reply.text.ends_with('\n') { "" } else { "\n" };
            terminal::print_text(&format!("{}{end}", reply.text))?;
        }
    }
    Ok(CommandExit::Done)
}

fn read_question() -> Result<String, CommandFailure> {
    let mut bytes = Vec::new();
    io::stdin().lock().take(MAX_QUESTION_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_QUESTION_BYTES {
        return Err(CommandFailure::usage(format!(
            "the question is longer than {} MiB",
            MAX_QUESTION_BYTES >> 20
        )));
    }
    let text =
        String::from_utf8(bytes).map_err(|_| CommandFailure::usage("the question is not UTF-8"))?;
    if text.trim().is_empty() {
        return Err(CommandFailure::usage("there is no question on standard input")
            .with_hint("for example: echo 'Say hello.' | treebeam agents ask --role coder"));
    }
    Ok(text)
}
