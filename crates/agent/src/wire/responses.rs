//! Wire format of `OpenAI`'s Responses, the only one that can continue an answer of its own.

use super::{
    ModelStop, PartialAnswer, WireDelivery, WireRequest, count_value, nonempty_string, set_field,
    set_nested_field,
};
use crate::question::AgentQuestion;
use crate::settings::ModelAgent;
use serde_json::{Value, json};
use treebeam_run::port::TokenUsage;

pub(super) fn build_request(
    model: &ModelAgent,
    question: &AgentQuestion,
    delivery: WireDelivery,
) -> WireRequest {
    let mut body = json!({
        "model": model.name,
        "input": &*question.prompt,
        "max_output_tokens": model.max_tokens,
        "stream": delivery == WireDelivery::Streamed,
    });
    let before = question.continues.as_ref().map(|continuation| continuation.id.clone());
    set_field(&mut body, "previous_response_id", before);
    set_field(&mut body, "temperature", model.temperature);
    set_nested_field(&mut body, "reasoning", "effort", model.effort.clone());
    WireRequest {
        path: "/responses".to_owned(),
        key_header: ("authorization", "Bearer "),
        headers: Vec::new(),
        body,
    }
}

pub(super) fn read_piece(piece: &Value, reading: &mut PartialAnswer) {
    match piece["type"].as_str() {
        Some("response.output_text.delta") => {
            reading.text.push_str(piece["delta"].as_str().unwrap_or_default());
        }
        Some("response.completed" | "response.incomplete" | "response.failed") => {
            read_response(&piece["response"], reading);
        }
        // An error event has its fields at the top level.
        Some("error") => reading.failed = Some(json!({ "error": piece })),
        Some(_) => {}
        None => read_response(piece, reading),
    }
}

fn read_response(response: &Value, reading: &mut PartialAnswer) {
    let status = response["status"].as_str();
    if status == Some("failed") && !response["error"].is_null() {
        reading.failed = Some(json!({ "error": response["error"] }));
        return;
    }
    let messages = response["output"].as_array().into_iter().flatten();
    let contents = messages.filter_map(|item| item["content"].as_array()).flatten();
    let (mut text, mut refusal) = (String::new(), None);
    for content in contents {
        match content["type"].as_str() {
            Some("output_text") => text.push_str(content["text"].as_str().unwrap_or_default()),
            Some("refusal") => refusal = nonempty_string(&content["refusal"]),
            Some(_) | None => {}
        }
    }
    // The pieces hold the same text; some servers send it only here.
    if !text.is_empty() {
        reading.text = text;
    }
    let reason = response["incomplete_details"]["reason"].as_str();
    reading.stop = match (status, reason, refusal) {
        (_, _, Some(refusal)) => Some(ModelStop::Refused(refusal)),
        (Some("incomplete"), Some("content_filter"), _) => {
            Some(ModelStop::Refused("a filter held the answer back".to_owned()))
        }
        (Some("failed"), ..) => {
            Some(ModelStop::Refused("it failed, and the server does not say why".to_owned()))
        }
        (Some("incomplete"), ..) => Some(ModelStop::Length),
        (Some("completed"), ..) => Some(ModelStop::Done),
        _ => None,
    };
    reading.ended = reading.stop.is_some();
    reading.id = nonempty_string(&response["id"]);
    reading.model = nonempty_string(&response["model"]);
    let usage = &response["usage"];
    if usage.is_object() {
        let cached = count_value(&usage["input_tokens_details"]["cached_tokens"]);
        let (input, output) =
            (count_value(&usage["input_tokens"]), count_value(&usage["output_tokens"]));
        reading.usage = Some(TokenUsage { input, cached, output });
    }
}
