//! Wire format of `OpenAI`'s chat completions, which many servers speak.

use super::{
    ModelStop, PartialAnswer, WireDelivery, WireRequest, content_text, count_value,
    nonempty_string, set_field,
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
    let streamed = delivery == WireDelivery::Streamed;
    let mut body = json!({
        "model": model.name,
        "messages": [{ "role": "user", "content": &*question.prompt }],
        "stream": streamed,
    });
    set_field(&mut body, max_tokens_field(&model.base_url), Some(model.max_tokens));
    set_field(&mut body, "stream_options", streamed.then(|| json!({ "include_usage": true })));
    set_field(&mut body, "temperature", model.temperature);
    set_field(&mut body, "reasoning_effort", model.effort.clone());
    WireRequest {
        path: "/chat/completions".to_owned(),
        key_header: ("authorization", "Bearer "),
        headers: Vec::new(),
        body,
    }
}

/// Returns the name of the token limit: `OpenAI`'s reasoning models refuse the common name.
fn max_tokens_field(base_url: &str) -> &'static str {
    let host = base_url.split('/').nth(2).unwrap_or_default();
    let is_openais = host == "api.openai.com" || host.ends_with(".openai.azure.com");
    if is_openais { "max_completion_tokens" } else { "max_tokens" }
}

pub(super) fn read_piece(piece: &Value, reading: &mut PartialAnswer) {
    let choice = &piece["choices"][0];
    // A stream has `delta`, a whole answer `message`.
    for message in [&choice["delta"], &choice["message"]] {
        reading.text.push_str(&content_text(&message["content"]));
        if let Some(refusal) = nonempty_string(&message["refusal"]) {
            reading.stop = Some(ModelStop::Refused(refusal));
        }
    }
    if !choice["message"].is_null() {
        reading.ended = true;
    }
    let stop = match choice["finish_reason"].as_str() {
        None => None,
        Some("length") => Some(ModelStop::Length),
        Some("content_filter") => {
            Some(ModelStop::Refused("a filter held the answer back".to_owned()))
        }
        Some(_) => Some(ModelStop::Done),
    };
    reading.stop = reading.stop.take().or(stop);
    reading.id = reading.id.take().or_else(|| nonempty_string(&piece["id"]));
    reading.model = reading.model.take().or_else(|| nonempty_string(&piece["model"]));
    let usage = &piece["usage"];
    if usage.is_object() {
        let cached = count_value(&usage["prompt_tokens_details"]["cached_tokens"]);
        let (input, output) =
            (count_value(&usage["prompt_tokens"]), count_value(&usage["completion_tokens"]));
        reading.usage = Some(TokenUsage { input, cached, output });
    }
}
