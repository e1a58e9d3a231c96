//! `treebeam agents ask`: one question from standard input, one answer on standard output.

use super::watcher::Watcher;
use super::{plan, settings};
use crate::cli::AskArgs;
use crate::command::Output;
use crate::crew::{self, Seat};
use crate::failure::{Exit, Failure};
use crate::terminal;
use jiff::Timestamp;
use serde_json::json;
use std::io::{self, Read as _};
use std::path::Path;
use std::process;
use treebeam_edge::agent::Door;
use treebeam_edge::agent::calls::is_key;
use treebeam_edge::agent::question::Question;
use treebeam_run::port::Cost;

/// The longest question.
const MOST_BYTES: u64 = 16 << 20;

pub(super) fn run(here: &Path, args: &AskArgs, output: Output) -> Result<Exit, Failure> {
    let key = match &args.key {
        Some(key) if is_key(key) => key.clone(),
        Some(_) => {
            let what = "`--key` may have letters, digits, `-` and `_`, and at most 100 of them";
            return Err(Failure::usage(what));
        }
        None => format!("ask-{}-{}", Timestamp::now().as_nanosecond(), process::id()),
    };
    let (config, dotenv) = settings(here, &args.config, Some(&args.spending))?;
    let seats = crew::seats(&config, &dotenv);
    let seat: Vec<Seat<'_>> = seats.into_iter().filter(|seat| seat.role == args.role).collect();
    if seat.is_empty() {
        let what = format!("no agent is set for the role `{}`", args.role);
        let hint = format!("set `agents.{}` in `treebeam.toml`", args.role);
        return Err(Failure::usage(what).hint(hint));
    }
    let plan = plan(here, &config, &seat)?;
    let prompt = question()?;
    let question = Question {
        key: key.clone(),
        role: args.role,
        round: 0,
        prompt: prompt.into(),
        continues: None,
        place: None,
        node: None,
    };
    let reply = Door::open(&plan, &Watcher)?.answer(&question)?;
    match output {
        Output::Json => terminal::json(&json!({
            "schema": "treebeam.agents.ask/1",
            "role": args.role,
            "key": key,
            "reply": reply.text,
            "usage": reply.usage,
            "cost_usd": reply.cost.map(Cost::in_dollars),
            "id": reply.id,
            "model": reply.model,
        }))?,
        Output::Text => {
            let end = if reply.text.ends_with('\n') { "" } else { "\n" };
            terminal::show(&format!("{}{end}", reply.text))?;
        }
    }
    Ok(Exit::Done)
}

fn question() -> Result<String, Failure> {
    let mut bytes = Vec::new();
    io::stdin().lock().take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(Failure::usage(format!(
            "the question is longer than {} MiB",
            MOST_BYTES >> 20
        )));
    }
    let text = String::from_utf8(bytes).map_err(|_| Failure::usage("the question is not UTF-8"))?;
    if text.trim().is_empty() {
        return Err(Failure::usage("there is no question on standard input")
            .hint("for example: echo 'Say hello.' | treebeam agents ask --role coder"));
    }
    Ok(text)
}
