//! `OpenAI`'s chat completions, as many servers speak them.

use super::{Delivery, Reading, Stop, Written, count, set, string, text_of};
use crate::agent::question::Question;
use crate::agent::settings::Model;
use serde_json::{Value, json};
use treebeam_run::port::Usage;

pub(super) fn write(model: &Model, question: &Question, delivery: Delivery) -> Written {
    let streamed = delivery == Delivery::Streamed;
    let mut body = json!({
        "model": model.name,
        "messages": [{ "role": "user", "content": &*question.prompt }],
        "stream": streamed,
    });
    set(&mut body, bound(&model.base_url), Some(model.max_tokens));
    set(&mut body, "stream_options", streamed.then(|| json!({ "include_usage": true })));
    set(&mut body, "temperature", model.temperature);
    set(&mut body, "reasoning_effort", model.effort.clone());
    Written {
        path: "/chat/completions".to_owned(),
        key_header: ("authorization", "Bearer "),
        headers: Vec::new(),
        body,
    }
}

/// What the longest answer is called: `OpenAI`'s own models that think refuse the name that all others know.
fn bound(base_url: &str) -> &'static str {
    let host = base_url.split('/').nth(2).unwrap_or_default();
    let is_openais = host == "api.openai.com" || host.ends_with(".openai.azure.com");
    if is_openais { "max_completion_tokens" } else { "max_tokens" }
}

pub(super) fn read(piece: &Value, reading: &mut Reading) {
    let choice = &piece["choices"][0];
    // A stream has `delta`, a whole answer `message`.
    for message in [&choice["delta"], &choice["message"]] {
        reading.text.push_str(&text_of(&message["content"]));
        if let Some(refusal) = string(&message["refusal"]) {
            reading.stop = Some(Stop::Refused(refusal));
        }
    }
    if !choice["message"].is_null() {
        reading.ended = true;
    }
    let stop = match choice["finish_reason"].as_str() {
        None => None,
        Some("length") => Some(Stop::Length),
        Some("content_filter") => Some(Stop::Refused("a filter held the answer back".to_owned())),
        Some(_) => Some(Stop::Done),
    };
    reading.stop = reading.stop.take().or(stop);
    reading.id = reading.id.take().or_else(|| string(&piece["id"]));
    reading.model = reading.model.take().or_else(|| string(&piece["model"]));
    let usage = &piece["usage"];
    if usage.is_object() {
        let cached = count(&usage["prompt_tokens_details"]["cached_tokens"]);
        let (input, output) = (count(&usage["prompt_tokens"]), count(&usage["completion_tokens"]));
        reading.usage = Some(Usage { input, cached, output });
    }
}
