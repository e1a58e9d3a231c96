//! Anthropic's messages. They know no temperature any more; a server that does gets it in `extra`.

use super::{Delivery, Reading, Stop, Written, count, set_in, string, text_of};
use crate::agent::question::Question;
use crate::agent::settings::Model;
use serde_json::{Value, json};
use treebeam_run::port::Usage;

pub(super) fn write(model: &Model, question: &Question, delivery: Delivery) -> Written {
    let mut body = json!({
        "model": model.name,
        "messages": [{ "role": "user", "content": &*question.prompt }],
        "max_tokens": model.max_tokens,
        "stream": delivery == Delivery::Streamed,
    });
    set_in(&mut body, "output_config", "effort", model.effort.clone());
    let versioned = model.base_url.ends_with("/v1");
    Written {
        path: if versioned { "/messages" } else { "/v1/messages" }.to_owned(),
        key_header: ("x-api-key", ""),
        headers: vec![("anthropic-version", "2023-06-01")],
        body,
    }
}

pub(super) fn read(piece: &Value, reading: &mut Reading) {
    match piece["type"].as_str() {
        Some("message_start") => message(&piece["message"], reading),
        Some("content_block_delta") => {
            reading.text.push_str(piece["delta"]["text"].as_str().unwrap_or_default());
        }
        Some("message_delta") => {
            stop(&piece["delta"], reading);
            usage(&piece["usage"], reading);
        }
        Some("message_stop") => reading.ended = true,
        Some("message") => {
            message(piece, reading);
            reading.ended = true;
        }
        Some(_) | None => {}
    }
}

fn message(message: &Value, reading: &mut Reading) {
    reading.text.push_str(&text_of(&message["content"]));
    reading.id = string(&message["id"]);
    reading.model = string(&message["model"]);
    stop(message, reading);
    usage(&message["usage"], reading);
}

fn stop(part: &Value, reading: &mut Reading) {
    let stop = match part["stop_reason"].as_str() {
        None => return,
        Some("max_tokens" | "model_context_window_exceeded") => Stop::Length,
        Some("end_turn" | "stop_sequence" | "tool_use" | "pause_turn") => Stop::Done,
        Some(reason) => Stop::Refused(reason.to_owned()),
    };
    reading.stop = Some(stop);
}

/// What is in the cache is not part of `input_tokens` here. The end of a stream says the output, and may say the rest again.
fn usage(part: &Value, reading: &mut Reading) {
    if !part.is_object() {
        return;
    }
    let before = reading.usage.unwrap_or_default();
    let cached = count(&part["cache_read_input_tokens"]);
    let input = count(&part["input_tokens"]) + count(&part["cache_creation_input_tokens"]) + cached;
    reading.usage = Some(Usage {
        input: before.input.max(input),
        cached: before.cached.max(cached),
        output: before.output.max(count(&part["output_tokens"])),
    });
}
