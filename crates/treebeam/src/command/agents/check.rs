//! `treebeam agents check`: one tiny call to each distinct agent.
//!
//! If a provider claims to continue conversations, that is tried too. A server that does not answer
//! is waited for once, all servers at the same time.

use super::terminal_observer::TerminalObserver;
use super::{align_columns, build_question_plan, load_agent_config, no_agents_failure};
use crate::cli::AgentsCheckArgs;
use crate::command::OutputFormat;
use crate::config::agents::AgentConfigKind;
use crate::failure::{CommandExit, CommandFailure};
use crate::role_agents::{self, RoleAgent};
use crate::terminal;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::num::NonZeroU32;
use std::panic::resume_unwind;
use std::path::Path;
use std::process;
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};
use treebeam_agent::AgentDoor;
use treebeam_agent::question::AgentQuestion;
use treebeam_run::port::{AgentError, AgentReply, Cost};

const CHECK_PROMPT: &str = "Reply with the single word: ok";
/// Maximum wait for one answer of a server, and for all its missing answers together.
const MAX_SERVER_WAIT: Duration = Duration::from_mins(1);
/// Maximum characters of an answer that are shown.
const MAX_SHOWN_REPLY_CHARS: usize = 60;

/// Result of checking one agent.
struct AgentCheck {
    answer: Result<(AgentReply, Duration), CommandFailure>,
    continuation: Option<(&'static str, Option<String>)>,
}

impl AgentCheck {
    const fn from_failure(failure: CommandFailure) -> Self {
        Self { answer: Err(failure), continuation: None }
    }
}

/// Remaining time to wait in vain for a server. A successful call uses up nothing of it.
struct ServerPatience {
    left: Duration,
}

impl ServerPatience {
    /// Makes a call within the remaining time.
    fn ask_within_limit(
        &mut self,
        ask: impl FnOnce(Duration) -> Result<AgentReply, AgentError>,
    ) -> Result<AgentReply, AgentError> {
        let begun = Instant::now();
        let answer = ask(self.left);
        if answer.is_err() {
            self.left = self.left.saturating_sub(begun.elapsed());
        }
        answer
    }
}

pub(super) fn run_agents_check(
    here: &Path,
    args: &AgentsCheckArgs,
    output: OutputFormat,
) -> Result<CommandExit, CommandFailure> {
    let (config, dotenv) = load_agent_config(here, &args.config, Some(&args.spending))?;
    let role_agents = role_agents::list_role_agents(&config, &dotenv);
    if role_agents.is_empty() {
        return Err(no_agents_failure());
    }
    let mut checked: BTreeMap<String, AgentCheck> = BTreeMap::new();
    let (mut ready, mut lacking) = (Vec::new(), Vec::new());
    for role_agent in role_agents {
        match must_be_ready(&role_agent) {
            Ok(()) => ready.push(role_agent),
            Err(failure) => {
                checked
                    .entry(agent_key(&role_agent))
                    .or_insert_with(|| AgentCheck::from_failure(failure));
                lacking.push(role_agent);
            }
        }
    }
    let servers = group_by_server(&ready);
    let mut plan = build_question_plan(here, &config, &ready)?;
    // A server that does not answer must not take a slot from the others.
    let all = u32::try_from(servers.len()).ok().and_then(NonZeroU32::new);
    plan.limits.in_flight = all.map_or(plan.limits.in_flight, |all| plan.limits.in_flight.max(all));
    checked.extend(check_servers(&AgentDoor::open(&plan, &TerminalObserver)?, &servers)?);
    let both = ready.iter().chain(&lacking);
    let mut rows: Vec<(&RoleAgent<'_>, &AgentCheck)> = both
        .filter_map(|role_agent| Some((role_agent, checked.get(&agent_key(role_agent))?)))
        .collect();
    rows.sort_by_key(|(role_agent, _)| role_agent.role);
    match output {
        OutputFormat::Json => terminal::print_json(&json!({
            "schema": "treebeam.agents.check/1",
            "agents": rows.iter().map(|(role_agent, checked)| render_check_json(role_agent, checked)).collect::<Vec<_>>(),
        }))?,
        OutputFormat::Text => show_checks(&rows)?,
    }
    let failures = checked.values().filter_map(|checked| checked.answer.as_ref().err());
    Ok(failures
        .map(CommandFailure::exit)
        .max_by_key(|exit| exit.code())
        .unwrap_or(CommandExit::Done))
}

/// Checks that an agent has its key and its program.
fn must_be_ready(role_agent: &RoleAgent<'_>) -> Result<(), CommandFailure> {
    role_agent.agent_settings()?;
    role_agent.must_be_installed()
}

/// Returns a key for distinct agents: two roles may have the same one.
fn agent_key(role_agent: &RoleAgent<'_>) -> String {
    format!("{:?}", role_agent.agent)
}

/// Returns the server or program behind an agent.
fn server_key(role_agent: &RoleAgent<'_>) -> String {
    let base_url = match &role_agent.agent.line {
        AgentConfigKind::Model(model) => {
            Some(model.base_url.as_deref().unwrap_or(model.wire.default_base_url()))
        }
        AgentConfigKind::Cli(cli) => cli.base_url.as_deref().or_else(|| role_agent.program_name()),
        AgentConfigKind::Command(_) | AgentConfigKind::Tuner => None,
    };
    base_url.map_or_else(|| role_agent.model_name(), str::to_owned)
}

/// Groups the distinct agents by their servers.
fn group_by_server<'s, 'a>(role_agents: &'s [RoleAgent<'a>]) -> Vec<Vec<&'s RoleAgent<'a>>> {
    let mut names = BTreeSet::new();
    let mut servers: BTreeMap<String, Vec<&'s RoleAgent<'a>>> = BTreeMap::new();
    for role_agent in role_agents.iter().filter(|role_agent| names.insert(agent_key(role_agent))) {
        servers.entry(server_key(role_agent)).or_default().push(role_agent);
    }
    servers.into_values().collect()
}

/// Checks the agents of all servers, those of different servers concurrently.
fn check_servers(
    door: &AgentDoor<'_>,
    servers: &[Vec<&RoleAgent<'_>>],
) -> io::Result<Vec<(String, AgentCheck)>> {
    thread::scope(|scope| {
        let begin = |role_agents| {
            thread::Builder::new().spawn_scoped(scope, move || check_server(door, role_agents))
        };
        let threads: Vec<ScopedJoinHandle<'_, _>> =
            servers.iter().map(Vec::as_slice).map(begin).collect::<io::Result<_>>()?;
        let ended = threads.into_iter().map(ScopedJoinHandle::join);
        Ok(ended.flat_map(|checked| checked.unwrap_or_else(|panic| resume_unwind(panic))).collect())
    })
}

/// Checks the agents of one server, one after another.
fn check_server(door: &AgentDoor<'_>, role_agents: &[&RoleAgent<'_>]) -> Vec<(String, AgentCheck)> {
    let mut patience = ServerPatience { left: MAX_SERVER_WAIT };
    role_agents
        .iter()
        .map(|role_agent| (agent_key(role_agent), check_agent(door, role_agent, &mut patience)))
        .collect()
}

/// Checks one agent.
fn check_agent(
    door: &AgentDoor<'_>,
    role_agent: &RoleAgent<'_>,
    patience: &mut ServerPatience,
) -> AgentCheck {
    let key =
        format!("check-{}-{}-{}", role_agent.role, Timestamp::now().as_nanosecond(), process::id());
    let question = AgentQuestion {
        key,
        role: role_agent.role,
        round: 0,
        prompt: CHECK_PROMPT.into(),
        continues: None,
        place: None,
        node: None,
    };
    let begun = Instant::now();
    match patience.ask_within_limit(|within| door.answer_before(&question, within)) {
        Err(error) => AgentCheck::from_failure(error.into()),
        Ok(reply) => {
            let taken = begun.elapsed();
            let continuation = check_continuation(door, role_agent, &question, &reply, patience);
            AgentCheck { answer: Ok((reply, taken)), continuation }
        }
    }
}

/// Determines how a conversation would continue with an agent, and why not natively if the provider
/// could.
fn check_continuation(
    door: &AgentDoor<'_>,
    role_agent: &RoleAgent<'_>,
    first: &AgentQuestion,
    reply: &AgentReply,
    patience: &mut ServerPatience,
) -> Option<(&'static str, Option<String>)> {
    let continues = match &role_agent.agent.line {
        AgentConfigKind::Model(model) => model.wire.can_continue(),
        AgentConfigKind::Cli(cli) => cli.tool.can_continue(),
        AgentConfigKind::Command(_) | AgentConfigKind::Tuner => return None,
    };
    let Some(continuation) = reply.continuation().filter(|_| continues) else {
        return Some(("replay", None));
    };
    let second = AgentQuestion {
        key: format!("{}-2", first.key),
        continues: Some(continuation),
        ..first.clone()
    };
    match patience.ask_within_limit(|within| door.answer_before(&second, within)) {
        Ok(_) => Some(("native", None)),
        Err(AgentError::Forgotten(why)) => {
            Some(("replay", Some(format!("`auto` falls back to replay: {why}"))))
        }
        Err(error) => Some(("replay", Some(format!("continuing failed: {error}")))),
    }
}

fn render_check_json(role_agent: &RoleAgent<'_>, checked: &AgentCheck) -> Value {
    let answer = checked.answer.as_ref().ok();
    let failure = checked.answer.as_ref().err();
    let milliseconds = |taken: &Duration| taken.as_secs_f64() * 1e3;
    let (continuation, note) = match &checked.continuation {
        Some((mode, note)) => (Some(mode), note.as_ref()),
        None => (None, None),
    };
    json!({
        "role": role_agent.role,
        "provider": role_agent.provider_name(),
        "model": role_agent.model_name(),
        "ok": answer.is_some(),
        "reply": answer.map(|(reply, _)| &reply.text),
        "latency_ms": answer.map(|(_, taken)| milliseconds(taken)),
        "usage": answer.and_then(|(reply, _)| reply.usage),
        "cost_usd": answer.and_then(|(reply, _)| reply.cost).map(Cost::to_dollars),
        "continuation": continuation,
        "note": note,
        "error": failure.map(|failure| failure.chain().collect::<Vec<_>>().join(": ")),
        "hint": failure.and_then(CommandFailure::advice),
    })
}

fn show_checks(rows: &[(&RoleAgent<'_>, &AgentCheck)]) -> Result<(), CommandFailure> {
    let head = ["role", "provider", "model", "reply", "latency", "tokens", "cost", "continuation"];
    let mut lines = vec![head.map(str::to_owned)];
    for (role_agent, checked) in rows {
        let mut line = [
            role_agent.role.to_string(),
            role_agent.provider_name().to_owned(),
            role_agent.model_name(),
        ]
        .into_iter()
        .collect::<Vec<_>>();
        match &checked.answer {
            Err(_) => line.push("failed".to_owned()),
            Ok((reply, taken)) => line.extend([
                reply
                    .text
                    .split_whitespace()
                    .collect::<Vec<_>>()
                    .join(" ")
                    .chars()
                    .take(MAX_SHOWN_REPLY_CHARS)
                    .collect(),
                format!("{} ms", taken.as_millis()),
                reply.usage.map_or("unknown".to_owned(), |usage| usage.total_tokens().to_string()),
                reply.cost.map_or("unknown".to_owned(), |cost| cost.to_string()),
                checked.continuation.as_ref().map_or("none", |(mode, _)| mode).to_owned(),
            ]),
        }
        line.resize(head.len(), String::new());
        lines.extend(<[String; 8]>::try_from(line));
    }
    terminal::print_text(&align_columns(&lines))?;
    for (role_agent, checked) in rows {
        if let Err(failure) = &checked.answer {
            terminal::print_line(&format!("{}:", role_agent.role));
            terminal::print_error(failure);
        }
        if let Some((_, Some(note))) = &checked.continuation {
            terminal::print_note(&format!("{}: {note}", role_agent.role));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_brings_no_answer_uses_up_the_patience_with_a_server() {
        let pause = Duration::from_millis(20);
        let mut patience = ServerPatience { left: MAX_SERVER_WAIT };
        let answer = patience.ask_within_limit(|within| {
            assert_eq!(within, MAX_SERVER_WAIT);
            thread::sleep(pause);
            Ok(AgentReply::from_text("ok".to_owned()))
        });
        assert!(answer.is_ok());
        assert_eq!(patience.left, MAX_SERVER_WAIT);
        let mut in_vain = || {
            let answer = patience.ask_within_limit(|_| {
                thread::sleep(pause);
                Err(AgentError::OutOfTime("silence".to_owned()))
            });
            assert!(answer.is_err());
            patience.left
        };
        assert!(in_vain() <= MAX_SERVER_WAIT.saturating_sub(pause));
        assert!(in_vain() <= MAX_SERVER_WAIT.saturating_sub(pause * 2));
    }
}
