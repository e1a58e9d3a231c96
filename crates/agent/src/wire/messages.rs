//! Wire format of Anthropic's messages. A server that takes a temperature gets it in `extra`.

use super::{
    ModelStop, PartialAnswer, WireDelivery, WireRequest, content_text, count_value,
    nonempty_string, set_nested_field,
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
        "messages": [{ "role": "user", "content": &*question.prompt }],
        "max_tokens": model.max_tokens,
        "stream": delivery == WireDelivery::Streamed,
    });
    set_nested_field(&mut body, "output_config", "effort", model.effort.clone());
    let versioned = model.base_url.ends_with("/v1");
    WireRequest {
        path: if versioned { "/messages" } else { "/v1/messages" }.to_owned(),
        key_header: ("x-api-key", ""),
        headers: vec![("anthropic-version", "2023-06-01")],
        body,
    }
}

pub(super) fn read_piece(piece: &Value, reading: &mut PartialAnswer) {
    match piece["type"].as_str() {
        Some("message_start") => read_message(&piece["message"], reading),
        Some("content_block_delta") => {
            reading.text.push_str(piece["delta"]["text"].as_str().unwrap_or_default());
        }
        Some("message_delta") => {
            read_stop(&piece["delta"], reading);
            read_usage(&piece["usage"], reading);
        }
        Some("message_stop") => reading.ended = true,
        Some("message") => {
            read_message(piece, reading);
            reading.ended = true;
        }
        Some(_) | None => {}
    }
}

fn read_message(message: &Value, reading: &mut PartialAnswer) {
    reading.text.push_str(&content_text(&message["content"]));
    reading.id = nonempty_string(&message["id"]);
    reading.model = nonempty_string(&message["model"]);
    read_stop(message, reading);
    read_usage(&message["usage"], reading);
}

fn read_stop(part: &Value, reading: &mut PartialAnswer) {
    let stop = match part["stop_reason"].as_str() {
        None => return,
        Some("max_tokens" | "model_context_window_exceeded") => ModelStop::Length,
        Some("end_turn" | "stop_sequence" | "tool_use" | "pause_turn") => ModelStop::Done,
        Some(reason) => ModelStop::Refused(reason.to_owned()),
    };
    reading.stop = Some(stop);
}

/// Reads the usage: `input_tokens` excludes the cache; a stream's end may repeat all counts.
fn read_usage(part: &Value, reading: &mut PartialAnswer) {
    if !part.is_object() {
        return;
    }
    let before = reading.usage.unwrap_or_default();
    let cached = count_value(&part["cache_read_input_tokens"]);
    let input = count_value(&part["input_tokens"])
        + count_value(&part["cache_creation_input_tokens"])
        + cached;
    reading.usage = Some(TokenUsage {
        input: before.input.max(input),
        cached: before.cached.max(cached),
        output: before.output.max(count_value(&part["output_tokens"])),
    });
}
