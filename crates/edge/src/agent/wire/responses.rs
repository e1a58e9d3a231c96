//! `OpenAI`'s Responses: the one that can go on from an answer of its own.

use super::{Delivery, Reading, Stop, Written, count, set, set_in, string};
use crate::agent::question::Question;
use crate::agent::settings::Model;
use serde_json::{Value, json};
use treebeam_run::port::Usage;

pub(super) fn write(model: &Model, question: &Question, delivery: Delivery) -> Written {
    let mut body = json!({
        "model": model.name,
        "input": &*question.prompt,
        "max_output_tokens": model.max_tokens,
        "stream": delivery == Delivery::Streamed,
    });
    let before = question.continues.as_ref().map(|continuation| continuation.id.clone());
    set(&mut body, "previous_response_id", before);
    set(&mut body, "temperature", model.temperature);
    set_in(&mut body, "reasoning", "effort", model.effort.clone());
    Written {
        path: "/responses".to_owned(),
        key_header: ("authorization", "Bearer "),
        headers: Vec::new(),
        body,
    }
}

pub(super) fn read(piece: &Value, reading: &mut Reading) {
    match piece["type"].as_str() {
        Some("response.output_text.delta") => {
            reading.text.push_str(piece["delta"].as_str().unwrap_or_default());
        }
        Some("response.completed" | "response.incomplete" | "response.failed") => {
            whole(&piece["response"], reading);
        }
        // An error event has its words at the top.
        Some("error") => reading.failed = Some(json!({ "error": piece })),
        Some(_) => {}
        None => whole(piece, reading),
    }
}

fn whole(response: &Value, reading: &mut Reading) {
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
            Some("refusal") => refusal = string(&content["refusal"]),
            Some(_) | None => {}
        }
    }
    // The pieces say the same again; some servers say it there alone.
    if !text.is_empty() {
        reading.text = text;
    }
    let reason = response["incomplete_details"]["reason"].as_str();
    reading.stop = match (status, reason, refusal) {
        (_, _, Some(refusal)) => Some(Stop::Refused(refusal)),
        (Some("incomplete"), Some("content_filter"), _) => {
            Some(Stop::Refused("a filter held the answer back".to_owned()))
        }
        (Some("failed"), ..) => {
            Some(Stop::Refused("it failed, and the server does not say why".to_owned()))
        }
        (Some("incomplete"), ..) => Some(Stop::Length),
        (Some("completed"), ..) => Some(Stop::Done),
        _ => None,
    };
    reading.ended = reading.stop.is_some();
    reading.id = string(&response["id"]);
    reading.model = string(&response["model"]);
    let usage = &response["usage"];
    if usage.is_object() {
        let cached = count(&usage["input_tokens_details"]["cached_tokens"]);
        let (input, output) = (count(&usage["input_tokens"]), count(&usage["output_tokens"]));
        reading.usage = Some(Usage { input, cached, output });
    }
}
