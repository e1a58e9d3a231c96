//! `treebeam agents check`: one tiny question to each distinct agent, really asked. Whether a provider goes on from its own
//! answers is tried where it claims to.

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
use std::path::Path;
use std::process;
use std::time::{Duration, Instant};
use treebeam_edge::agent::Door;
use treebeam_edge::agent::question::Question;
use treebeam_run::port::{AgentError, Cost, Reply, Role};

const PROMPT: &str = "Reply with the single word: ok";
/// How long an agent may take for an answer.
const PATIENCE: Duration = Duration::from_mins(1);
/// How much of an answer is shown.
const SHOWN: usize = 60;

/// What became of one agent.
struct Checked {
    answer: Result<(Reply, Duration), Failure>,
    continuation: Option<(&'static str, Option<String>)>,
}

pub(super) fn run(here: &Path, args: &CheckArgs, output: Output) -> Result<Exit, Failure> {
    let (config, dotenv) = settings(here, &args.config, Some(&args.spending))?;
    let seats = crew::seats(&config, &dotenv);
    if seats.is_empty() {
        return Err(none_set());
    }
    let (ready, lacking): (Vec<Seat<'_>>, Vec<Seat<'_>>) =
        seats.into_iter().partition(|seat| is_ready(seat).is_ok());
    let plan = plan(here, &config, &ready)?;
    let door = Door::open(&plan, &Watcher)?;
    let mut rows: Vec<(Role, &Seat<'_>, usize)> = Vec::new();
    let mut checked: Vec<(String, Checked)> = Vec::new();
    for seat in ready.iter().chain(&lacking) {
        let name = format!("{:?}", seat.agent);
        let known = checked.iter().position(|(other, _)| *other == name);
        let place = known.unwrap_or_else(|| {
            checked.push((name, check(&door, seat)));
            checked.len() - 1
        });
        rows.push((seat.role, seat, place));
    }
    rows.sort_by_key(|(role, ..)| *role);
    let rows: Vec<(&Seat<'_>, &Checked)> = rows
        .into_iter()
        .filter_map(|(_, seat, place)| Some((seat, &checked.get(place)?.1)))
        .collect();
    match output {
        Output::Json => terminal::json(&json!({
            "schema": "treebeam.agents.check/1",
            "agents": rows.iter().map(|(seat, checked)| document(seat, checked)).collect::<Vec<_>>(),
        }))?,
        Output::Text => tell(&rows)?,
    }
    let failures = checked.iter().filter_map(|(_, checked)| checked.answer.as_ref().err());
    Ok(failures.map(Failure::exit).max_by_key(|exit| exit.code()).unwrap_or(Exit::Done))
}

/// Checks that an agent has its key and its program.
fn is_ready(seat: &Seat<'_>) -> Result<(), Failure> {
    seat.settings()?;
    seat.must_be_installed()
}

/// Asks one agent.
fn check(door: &Door<'_>, seat: &Seat<'_>) -> Checked {
    let failed = |failure| Checked { answer: Err(failure), continuation: None };
    if let Err(failure) = is_ready(seat) {
        return failed(failure);
    }
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
    match door.answer_before(&question, PATIENCE) {
        Err(error) => failed(error.into()),
        Ok(reply) => {
            let taken = begun.elapsed();
            let continuation = continuation(door, seat, &question, &reply);
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
    match door.answer_before(&second, PATIENCE) {
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
