//! `treebeam agents check`: one tiny question to each distinct agent, really asked. Whether a provider goes on from its own
//! answers is tried where it claims to. A server that does not answer is waited for once, all servers at the same time.

use super::watcher::Watcher;
use super::{columns, none_set, plan, settings};
use crate::cli::CheckArgs;
use crate::command::Output;
use crate::config::agents::Line;
use crate::crew::{self, Seat};
use crate::failure::{Exit, Failure};
use crate::terminal;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::panic::resume_unwind;
use std::path::Path;
use std::process;
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};
use treebeam_edge::agent::Door;
use treebeam_edge::agent::question::Question;
use treebeam_run::port::{AgentError, Cost, Reply};

const PROMPT: &str = "Reply with the single word: ok";
/// How long a server may take for an answer, and for all answers that do not come together.
const PATIENCE: Duration = Duration::from_mins(1);
/// How much of an answer is shown.
const SHOWN: usize = 60;

/// What became of one agent.
struct Checked {
    answer: Result<(Reply, Duration), Failure>,
    continuation: Option<(&'static str, Option<String>)>,
}

impl Checked {
    const fn failed(failure: Failure) -> Self {
        Self { answer: Err(failure), continuation: None }
    }
}

/// The time that is left to wait for a server in vain. An answer uses up nothing of it.
struct ServerPatience {
    left: Duration,
}

impl ServerPatience {
    /// Asks for an answer within the time that is left.
    fn wait(
        &mut self,
        ask: impl FnOnce(Duration) -> Result<Reply, AgentError>,
    ) -> Result<Reply, AgentError> {
        let begun = Instant::now();
        let answer = ask(self.left);
        if answer.is_err() {
            self.left = self.left.saturating_sub(begun.elapsed());
        }
        answer
    }
}

pub(super) fn run(here: &Path, args: &CheckArgs, output: Output) -> Result<Exit, Failure> {
    let (config, dotenv) = settings(here, &args.config, Some(&args.spending))?;
    let seats = crew::seats(&config, &dotenv);
    if seats.is_empty() {
        return Err(none_set());
    }
    let mut checked: BTreeMap<String, Checked> = BTreeMap::new();
    let (mut ready, mut lacking) = (Vec::new(), Vec::new());
    for seat in seats {
        match is_ready(&seat) {
            Ok(()) => ready.push(seat),
            Err(failure) => {
                checked.entry(name(&seat)).or_insert_with(|| Checked::failed(failure));
                lacking.push(seat);
            }
        }
    }
    let servers = by_server(&ready);
    let mut plan = plan(here, &config, &ready)?;
    // A server that does not answer keeps no slot from the others.
    let all = u32::try_from(servers.len()).ok().and_then(NonZeroU32::new);
    plan.limits.in_flight = all.map_or(plan.limits.in_flight, |all| plan.limits.in_flight.max(all));
    checked.extend(check_servers(&Door::open(&plan, &Watcher)?, &servers));
    let both = ready.iter().chain(&lacking);
    let mut rows: Vec<(&Seat<'_>, &Checked)> =
        both.filter_map(|seat| Some((seat, checked.get(&name(seat))?))).collect();
    rows.sort_by_key(|(seat, _)| seat.role);
    match output {
        Output::Json => terminal::json(&json!({
            "schema": "treebeam.agents.check/1",
            "agents": rows.iter().map(|(seat, checked)| document(seat, checked)).collect::<Vec<_>>(),
        }))?,
        Output::Text => tell(&rows)?,
    }
    let failures = checked.values().filter_map(|checked| checked.answer.as_ref().err());
    Ok(failures.map(Failure::exit).max_by_key(|exit| exit.code()).unwrap_or(Exit::Done))
}

/// Checks that an agent has its key and its program.
fn is_ready(seat: &Seat<'_>) -> Result<(), Failure> {
    seat.settings()?;
    seat.must_be_installed()
}

/// What tells an agent from others: two roles may have the same one.
fn name(seat: &Seat<'_>) -> String {
    format!("{:?}", seat.agent)
}

/// The server or program behind an agent.
fn server(seat: &Seat<'_>) -> String {
    let base_url = match &seat.agent.line {
        Line::Model(model) => Some(model.base_url.as_deref().unwrap_or(model.wire.home())),
        Line::Cli(cli) => cli.base_url.as_deref().or_else(|| seat.program()),
        Line::Command(_) | Line::Tuner => None,
    };
    base_url.map_or_else(|| seat.model(), str::to_owned)
}

/// The distinct agents, by their servers.
fn by_server<'s, 'a>(seats: &'s [Seat<'a>]) -> Vec<Vec<&'s Seat<'a>>> {
    let mut names = BTreeSet::new();
    let mut servers: BTreeMap<String, Vec<&'s Seat<'a>>> = BTreeMap::new();
    for seat in seats.iter().filter(|seat| names.insert(name(seat))) {
        servers.entry(server(seat)).or_default().push(seat);
    }
    servers.into_values().collect()
}

/// Asks the agents of all servers, those of different servers at the same time.
fn check_servers(door: &Door<'_>, servers: &[Vec<&Seat<'_>>]) -> Vec<(String, Checked)> {
    thread::scope(|scope| {
        let begin = |seats| scope.spawn(move || check_server(door, seats));
        let threads: Vec<ScopedJoinHandle<'_, _>> =
            servers.iter().map(Vec::as_slice).map(begin).collect();
        let ended = threads.into_iter().map(ScopedJoinHandle::join);
        ended.flat_map(|checked| checked.unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}

/// Asks the agents of one server, one after another.
fn check_server(door: &Door<'_>, seats: &[&Seat<'_>]) -> Vec<(String, Checked)> {
    let mut patience = ServerPatience { left: PATIENCE };
    seats.iter().map(|seat| (name(seat), check(door, seat, &mut patience))).collect()
}

/// Asks one agent.
fn check(door: &Door<'_>, seat: &Seat<'_>, patience: &mut ServerPatience) -> Checked {
    let key = format!("check-{}-{}-{}", seat.role, Timestamp::now().as_nanosecond(), process::id());
    let question = Question {
        key,
        role: seat.role,
        round: 0,
        prompt: PROMPT.into(),
        continues: None,
        place: None,
        node: None,
    };
    let begun = Instant::now();
    match patience.wait(|within| door.answer_before(&question, within)) {
        Err(error) => Checked::failed(error.into()),
        Ok(reply) => {
            let taken = begun.elapsed();
            let continuation = continuation(door, seat, &question, &reply, patience);
            Checked { answer: Ok((reply, taken)), continuation }
        }
    }
}

/// How a conversation would go on there, and why not natively, where the provider has that.
fn continuation(
    door: &Door<'_>,
    seat: &Seat<'_>,
    first: &Question,
    reply: &Reply,
    patience: &mut ServerPatience,
) -> Option<(&'static str, Option<String>)> {
    let continues = match &seat.agent.line {
        Line::Model(model) => model.wire.continues(),
        Line::Cli(cli) => cli.tool.continues(),
        Line::Command(_) | Line::Tuner => return None,
    };
    let Some(continuation) = reply.continuation().filter(|_| continues) else {
        return Some(("replay", None));
    };
    let second = Question {
        key: format!("{}-2", first.key),
        continues: Some(continuation),
        ..first.clone()
    };
    match patience.wait(|within| door.answer_before(&second, within)) {
        Ok(_) => Some(("native", None)),
        Err(AgentError::Forgotten(why)) => {
            Some(("replay", Some(format!("`auto` falls back to replay: {why}"))))
        }
        Err(error) => Some(("replay", Some(format!("continuing failed: {error}")))),
    }
}

fn document(seat: &Seat<'_>, checked: &Checked) -> Value {
    let answer = checked.answer.as_ref().ok();
    let failure = checked.answer.as_ref().err();
    let milliseconds = |taken: &Duration| taken.as_secs_f64() * 1e3;
    let (continuation, note) = match &checked.continuation {
        Some((mode, note)) => (Some(mode), note.as_ref()),
        None => (None, None),
    };
    json!({
        "role": seat.role,
        "provider": seat.provider(),
        "model": seat.model(),
        "ok": answer.is_some(),
        "reply": answer.map(|(reply, _)| &reply.text),
        "latency_ms": answer.map(|(_, taken)| milliseconds(taken)),
        "usage": answer.and_then(|(reply, _)| reply.usage),
        "cost_usd": answer.and_then(|(reply, _)| reply.cost).map(Cost::in_dollars),
        "continuation": continuation,
        "note": note,
        "error": failure.map(|failure| failure.chain().collect::<Vec<_>>().join(": ")),
        "hint": failure.and_then(Failure::advice),
    })
}

fn tell(rows: &[(&Seat<'_>, &Checked)]) -> Result<(), Failure> {
    let head = ["role", "provider", "model", "reply", "latency", "tokens", "cost", "continuation"];
    let mut lines = vec![head.map(str::to_owned)];
    for (seat, checked) in rows {
        let mut line = [seat.role.to_string(), seat.provider().to_owned(), seat.model()]
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
                    .take(SHOWN)
                    .collect(),
                format!("{} ms", taken.as_millis()),
                reply.usage.map_or("unknown".to_owned(), |usage| usage.total().to_string()),
                reply.cost.map_or("unknown".to_owned(), |cost| cost.to_string()),
                checked.continuation.as_ref().map_or("none", |(mode, _)| mode).to_owned(),
            ]),
        }
        line.resize(head.len(), String::new());
        lines.extend(<[String; 8]>::try_from(line));
    }
    terminal::show(&columns(&lines))?;
    for (seat, checked) in rows {
        if let Err(failure) = &checked.answer {
            terminal::say(&format!("{}:", seat.role));
            terminal::error(failure);
        }
        if let Some((_, Some(note))) = &checked.continuation {
            terminal::note(&format!("{}: {note}", seat.role));
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
        let mut patience = ServerPatience { left: PATIENCE };
        let answer = patience.wait(|within| {
            assert_eq!(within, PATIENCE);
            thread::sleep(pause);
            Ok(Reply::of("ok".to_owned()))
        });
        assert!(answer.is_ok());
        assert_eq!(patience.left, PATIENCE);
        let mut in_vain = || {
            let answer = patience.wait(|_| {
                thread::sleep(pause);
                Err(AgentError::OutOfTime("silence".to_owned()))
            });
            assert!(answer.is_err());
            patience.left
        };
        assert!(in_vain() <= PATIENCE.saturating_sub(pause));
        assert!(in_vain() <= PATIENCE.saturating_sub(pause * 2));
    }
}
