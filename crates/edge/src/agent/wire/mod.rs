//! The wire formats: how a question is written for each kind of server, and how its answer is read, streamed or whole.
//! Pure: nothing is sent from here.
//!
//! A stream is complete when it says so itself, or when it has said why it stops and has then ended in order. Anything
//! else is broken off, and no part of it is used.

mod chat;
mod gemini;
mod messages;
mod ollama;
mod responses;

use super::judge::{brief, judge_named};
use super::question::{Question, Spent, Trouble};
use super::settings::{Model, Wire};
use super::sse;
use serde_json::{Map, Value};
use treebeam_run::port::{Reply, Usage};

/// A question as a server wants it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Written {
    /// What comes behind the base URL.
    pub(super) path: String,
    /// Which header has the key, and what comes before it.
    pub(super) key_header: (&'static str, &'static str),
    /// Other headers.
    pub(super) headers: Vec<(&'static str, &'static str)>,
    pub(super) body: Value,
}

/// Whether an answer comes piece by piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Delivery {
    Streamed,
    Whole,
}

/// What was read so far.
#[derive(Clone, Debug, Default)]
struct Reading {
    text: String,
    stop: Option<Stop>,
    /// The answer said itself that nothing more comes.
    ended: bool,
    usage: Option<Usage>,
    id: Option<String>,
    model: Option<String>,
    /// The server failed in the middle, and says why.
    failed: Option<Value>,
}

/// Why a model stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Stop {
    /// It had said all.
    Done,
    /// It was not allowed to say more.
    Length,
    /// It, or its keeper, did not want to.
    Refused(String),
}

/// Writes a question.
pub(super) fn write(model: &Model, question: &Question) -> Written {
    // Whoever wants whole answers says `extra = { stream = false }`.
    let whole = model.extra.get("stream") == Some(&Value::Bool(false));
    let delivery = if whole { Delivery::Whole } else { Delivery::Streamed };
    let mut written = match model.wire {
        Wire::Chat => chat::write(model, question, delivery),
        Wire::Responses => responses::write(model, question, delivery),
        Wire::Messages => messages::write(model, question, delivery),
        Wire::Gemini => gemini::write(model, question, delivery),
        Wire::Ollama => ollama::write(model, question, delivery),
    };
    let mut extra = model.extra.clone();
    extra.remove("stream");
    merge(&mut written.body, &Value::Object(extra));
    written
}

/// Reads an answer. `cut`: why it broke off before its end, if it did.
pub(super) fn read(
    model: &Model,
    question: &Question,
    body: &str,
    cut: Option<&str>,
) -> Result<Reply, Trouble> {
    let mut reading = Reading::default();
    for piece in pieces(body) {
        let piece = match piece {
            Piece::End => {
                reading.ended = true;
                continue;
            }
            Piece::Json(value) => value,
            Piece::Broken(text) => {
                let why =
                    cut.map_or_else(|| format!("it is no JSON: {}", brief(text)), str::to_owned);
                return Err(Trouble::broken_off(broken_off(model, &why)));
            }
        };
        if !piece["error"].is_null() {
            return Err(judge_named(&piece, model, question.goes_on_from()));
        }
        match model.wire {
            Wire::Chat => chat::read(&piece, &mut reading),
            Wire::Responses => responses::read(&piece, &mut reading),
            Wire::Messages => messages::read(&piece, &mut reading),
            Wire::Gemini => gemini::read(&piece, &mut reading),
            Wire::Ollama => ollama::read(&piece, &mut reading),
        }
        if let Some(error) = &reading.failed {
            return Err(judge_named(error, model, question.goes_on_from()));
        }
    }
    finish(reading, model, cut)
}

fn finish(reading: Reading, model: &Model, cut: Option<&str>) -> Result<Reply, Trouble> {
    let Reading { text, stop, ended, usage, id, model: name, .. } = reading;
    // Nothing is answered for nothing: such a server does not count.
    let usage = usage.filter(|usage| usage.total() > 0);
    let stop = if is_full(model, usage) { Some(Stop::Length) } else { stop };
    let complete = ended || (stop.is_some() && cut.is_none());
    if !complete {
        let why = cut.unwrap_or("the stream ended before the answer did");
        return Err(Trouble::broken_off(broken_off(model, why)));
    }
    let spent = usage.map_or(Spent::Perhaps, Spent::Known);
    let unanswered = |why: String| Err(Trouble::Unanswered { why, spent });
    match stop {
        Some(Stop::Length) => {
            let most = model.max_tokens;
            unanswered(format!(
                "the answer was cut at `max_tokens`, {most}: a part of it is of no use"
            ))
        }
        Some(Stop::Refused(why)) => {
            unanswered(format!("the model refused to answer: {}", brief(&why)))
        }
        Some(Stop::Done) | None if text.trim().is_empty() => {
            unanswered("the model answered nothing".to_owned())
        }
        Some(Stop::Done) | None => Ok(Reply { usage, id, model: name, ..Reply::of(text) }),
    }
}

/// Some servers call an answer completed that was cut; its length betrays it.
fn is_full(model: &Model, usage: Option<Usage>) -> bool {
    let output = usage.map_or(0, |usage| usage.output);
    model.wire == Wire::Responses && output >= model.max_tokens.into()
}

fn broken_off(model: &Model, why: &str) -> String {
    format!("the answer of {} broke off: {why}", model.wire.provider())
}

/// A part of an answer.
enum Piece<'a> {
    Json(Value),
    /// `[DONE]`.
    End,
    Broken(&'a str),
}

/// The parts of an answer: a whole one has one, a stream many, as events or as lines.
fn pieces(body: &str) -> Vec<Piece<'_>> {
    if let Ok(value) = serde_json::from_str::<Value>(body) {
        // Google sends a list where nobody asks for events.
        let parts = value.as_array().cloned().unwrap_or_else(|| vec![value]);
        return parts.into_iter().map(Piece::Json).collect();
    }
    let is_line = |line: &str| {
        ["data:", "event:", "id:", "retry:", ":"].iter().any(|name| line.starts_with(name))
    };
    let streamed = body.trim_start_matches('\u{feff}').lines().find(|line| !line.trim().is_empty());
    let texts: Vec<String> = if streamed.is_some_and(is_line) {
        sse::events(body).into_iter().map(|event| event.data).collect()
    } else {
        body.lines().map(str::to_owned).collect()
    };
    let texts = texts.into_iter().filter(|text| !text.trim().is_empty());
    let piece = |text: String| match text.trim() {
        "[DONE]" => Piece::End,
        text => serde_json::from_str(text).map_or(Piece::Broken(body), Piece::Json),
    };
    texts.map(piece).collect()
}

/// A text, or the texts of a list of parts.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

fn string(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

/// Puts one document over another: tables are joined, other values replaced.
fn merge(below: &mut Value, above: &Value) {
    match (below, above) {
        (Value::Object(below), Value::Object(above)) => {
            for (name, value) in above {
                merge(below.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (below, above) => *below = above.clone(),
    }
}

/// Sets what is there.
fn set(body: &mut Value, name: &str, value: Option<impl Into<Value>>) {
    if let (Some(body), Some(value)) = (body.as_object_mut(), value) {
        body.insert(name.to_owned(), value.into());
    }
}

/// The same, one table further in.
fn set_in(body: &mut Value, table: &str, name: &str, value: Option<impl Into<Value>>) {
    if let (Some(body), Some(value)) = (body.as_object_mut(), value) {
        let inner = body.entry(table).or_insert_with(|| Value::Object(Map::new()));
        set(inner, name, Some(value));
    }
}

#[cfg(test)]
mod tests;
