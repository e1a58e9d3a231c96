//! The wire formats: encode a question for each kind of server, and decode its answer, streamed or
//! whole. Pure: nothing is sent from here.
//!
//! A stream is complete if it says so itself, or if it has stated a stop reason and then ended in
//! order. Any other stream is broken off, and no part of it is used.

mod chat;
mod gemini;
mod messages;
mod ollama;
mod responses;

use super::http_refusal::{judge_stream_error, shorten_to_line};
use super::question::{AgentQuestion, TryCost, TryError};
use super::settings::{ModelAgent, WireFormat};
use super::sse;
use serde_json::{Map, Value};
use treebeam_run::port::{AgentReply, TokenUsage};

/// A request in a server's format.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct WireRequest {
    /// Path after the base URL.
    pub(super) path: String,
    /// Name of the header with the key, and the text before the key.
    pub(super) key_header: (&'static str, &'static str),
    /// Other headers.
    pub(super) headers: Vec<(&'static str, &'static str)>,
    pub(super) body: Value,
}

/// Delivery of an answer: in pieces or whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WireDelivery {
    Streamed,
    Whole,
}

/// The parts of an answer that were read so far.
#[derive(Clone, Debug, Default)]
struct PartialAnswer {
    text: String,
    stop: Option<ModelStop>,
    /// True once the answer has said that nothing more comes.
    ended: bool,
    usage: Option<TokenUsage>,
    id: Option<String>,
    model: Option<String>,
    /// Error of the server in the middle of the answer.
    failed: Option<Value>,
}

/// The reason why a model stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ModelStop {
    /// The answer is complete.
    Done,
    /// The answer reached its token limit.
    Length,
    /// The model or its provider refused to answer.
    Refused(String),
}

/// Encodes a question for the model's server.
pub(super) fn build_request(model: &ModelAgent, question: &AgentQuestion) -> WireRequest {
    // Users get whole answers with `extra = { stream = false }`.
    let whole = model.extra.get("stream") == Some(&Value::Bool(false));
    let delivery = if whole { WireDelivery::Whole } else { WireDelivery::Streamed };
    let mut written = match model.wire {
        WireFormat::Chat => chat::build_request(model, question, delivery),
        WireFormat::Responses => responses::build_request(model, question, delivery),
        WireFormat::Messages => messages::build_request(model, question, delivery),
        WireFormat::Gemini => gemini::build_request(model, question, delivery),
        WireFormat::Ollama => ollama::build_request(model, question, delivery),
    };
    let mut extra = model.extra.clone();
    extra.remove("stream");
    merge_json(&mut written.body, &Value::Object(extra));
    written
}

/// Decodes an answer. `cut` is the reason why it broke off, if it did.
pub(super) fn parse_reply(
    model: &ModelAgent,
    question: &AgentQuestion,
    body: &str,
    cut: Option<&str>,
) -> Result<AgentReply, TryError> {
    let mut reading = PartialAnswer::default();
    for piece in split_pieces(body) {
        let piece = match piece {
            WirePiece::End => {
                reading.ended = true;
                continue;
            }
            WirePiece::Json(value) => value,
            WirePiece::Broken(text) => {
                let why = cut.map_or_else(
                    || format!("it is no JSON: {}", shorten_to_line(text)),
                    str::to_owned,
                );
                return Err(TryError::broken_off(broken_off_reason(model, &why)));
            }
        };
        if !piece["error"].is_null() {
            return Err(judge_stream_error(&piece, model, question.continues_from()));
        }
        match model.wire {
            WireFormat::Chat => chat::read_piece(&piece, &mut reading),
            WireFormat::Responses => responses::read_piece(&piece, &mut reading),
            WireFormat::Messages => messages::read_piece(&piece, &mut reading),
            WireFormat::Gemini => gemini::read_piece(&piece, &mut reading),
            WireFormat::Ollama => ollama::read_piece(&piece, &mut reading),
        }
        if let Some(error) = &reading.failed {
            return Err(judge_stream_error(error, model, question.continues_from()));
        }
    }
    finish_reply(reading, model, cut)
}

fn finish_reply(
    reading: PartialAnswer,
    model: &ModelAgent,
    cut: Option<&str>,
) -> Result<AgentReply, TryError> {
    let PartialAnswer { text, stop, ended, usage, id, model: name, .. } = reading;
    // No answer takes no tokens: a server that reports none does not count.
    let usage = usage.filter(|usage| usage.total_tokens() > 0);
    let stop = if is_cut_at_limit(model, usage) { Some(ModelStop::Length) } else { stop };
    let complete = ended || (stop.is_some() && cut.is_none());
    if !complete {
        let why = cut.unwrap_or("the stream ended before the answer did");
        return Err(TryError::broken_off(broken_off_reason(model, why)));
    }
    let spent = usage.map_or(TryCost::Unknown, TryCost::Known);
    let unanswered = |why: String| Err(TryError::Unanswered { why, spent });
    match stop {
        Some(ModelStop::Length) => {
            let most = model.max_tokens;
            unanswered(format!(
                "the answer was cut at `max_tokens`, {most}: a part of it is of no use"
            ))
        }
        Some(ModelStop::Refused(why)) => {
            unanswered(format!("the model refused to answer: {}", shorten_to_line(&why)))
        }
        Some(ModelStop::Done) | None if text.trim().is_empty() => {
            unanswered("the model answered nothing".to_owned())
        }
        Some(ModelStop::Done) | None => {
            Ok(AgentReply { usage, id, model: name, ..AgentReply::from_text(text) })
        }
    }
}

/// Returns true if an answer has reached its limit: some servers call such an answer completed.
fn is_cut_at_limit(model: &ModelAgent, usage: Option<TokenUsage>) -> bool {
    let output = usage.map_or(0, |usage| usage.output);
    model.wire == WireFormat::Responses && output >= model.max_tokens.into()
}

fn broken_off_reason(model: &ModelAgent, why: &str) -> String {
    format!("the answer of {} broke off: {why}", model.wire.provider_name())
}

/// A piece of an answer.
enum WirePiece<'a> {
    Json(Value),
    /// The end marker `[DONE]`.
    End,
    Broken(&'a str),
}

/// Splits an answer into its pieces: a whole one has one, a stream many, as events or as lines.
fn split_pieces(body: &str) -> Vec<WirePiece<'_>> {
    if let Ok(value) = serde_json::from_str::<Value>(body) {
        // Google sends a list if no events are requested.
        let parts = value.as_array().cloned().unwrap_or_else(|| vec![value]);
        return parts.into_iter().map(WirePiece::Json).collect();
    }
    let is_line = |line: &str| {
        ["data:", "event:", "id:", "retry:", ":"].iter().any(|name| line.starts_with(name))
    };
    let streamed = body.trim_start_matches('\u{feff}').lines().find(|line| !line.trim().is_empty());
    let texts: Vec<String> = if streamed.is_some_and(is_line) {
        sse::parse_events(body).into_iter().map(|event| event.data).collect()
    } else {
        body.lines().map(str::to_owned).collect()
    };
    let texts = texts.into_iter().filter(|text| !text.trim().is_empty());
    let piece = |text: String| match text.trim() {
        "[DONE]" => WirePiece::End,
        text => serde_json::from_str(text).map_or(WirePiece::Broken(body), WirePiece::Json),
    };
    texts.map(piece).collect()
}

/// Returns a text, or the texts of a list of parts.
fn content_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

fn nonempty_string(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

fn count_value(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

/// Merges one document into another: objects are joined, other values replaced.
fn merge_json(below: &mut Value, above: &Value) {
    match (below, above) {
        (Value::Object(below), Value::Object(above)) => {
            for (name, value) in above {
                merge_json(below.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (below, above) => *below = above.clone(),
    }
}

/// Sets a field, if there is a value.
fn set_field(body: &mut Value, name: &str, value: Option<impl Into<Value>>) {
    if let (Some(body), Some(value)) = (body.as_object_mut(), value) {
        body.insert(name.to_owned(), value.into());
    }
}

/// Sets a field in a nested object, if there is a value.
fn set_nested_field(body: &mut Value, table: &str, name: &str, value: Option<impl Into<Value>>) {
    if let (Some(body), Some(value)) = (body.as_object_mut(), value) {
        let inner = body.entry(table).or_insert_with(|| Value::Object(Map::new()));
        set_field(inner, name, Some(value));
    }
}

#[cfg(test)]
mod tests;
