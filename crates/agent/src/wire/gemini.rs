//! Wire format of Google's `generateContent`.

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
    let mut config = json!({ "maxOutputTokens": model.max_tokens });
    set_field(&mut config, "temperature", model.temperature);
    let effort = model.effort.as_ref().map(|effort| effort.to_uppercase());
    set_nested_field(&mut config, "thinkingConfig", "thinkingLevel", effort);
    let method = match delivery {
        WireDelivery::Streamed => "streamGenerateContent?alt=sse",
        WireDelivery::Whole => "generateContent",
    };
    let version = if model.base_url.rsplit('/').next().is_some_and(|end| end.starts_with("v1")) {
        ""
    } else {
        "/v1beta"
    };
    WireRequest {
        path: format!("{version}/models/{}:{method}", model.name),
        key_header: ("x-goog-api-key", ""),
        headers: Vec::new(),
        body: json!({
            "contents": [{ "role": "user", "parts": [{ "text": &*question.prompt }] }],
            "generationConfig": config,
        }),
    }
}

pub(super) fn read_piece(piece: &Value, reading: &mut PartialAnswer) {
    let candidate = &piece["candidates"][0];
    for part in candidate["content"]["parts"].as_array().into_iter().flatten() {
        if part["thought"] != true {
            reading.text.push_str(part["text"].as_str().unwrap_or_default());
        }
    }
    if let Some(reason) = piece["promptFeedback"]["blockReason"].as_str() {
        reading.stop = Some(ModelStop::Refused(reason.to_owned()));
    }
    match candidate["finishReason"].as_str() {
        None | Some("FINISH_REASON_UNSPECIFIED") => {}
        Some("STOP") => reading.stop = Some(ModelStop::Done),
        Some("MAX_TOKENS") => reading.stop = Some(ModelStop::Length),
        Some(reason) => reading.stop = Some(ModelStop::Refused(reason.to_owned())),
    }
    reading.id = reading.id.take().or_else(|| nonempty_string(&piece["responseId"]));
    reading.model = reading.model.take().or_else(|| nonempty_string(&piece["modelVersion"]));
    let usage = &piece["usageMetadata"];
    if usage.is_object() {
        let output =
            count_value(&usage["candidatesTokenCount"]) + count_value(&usage["thoughtsTokenCount"]);
        let cached = count_value(&usage["cachedContentTokenCount"]);
        reading.usage =
            Some(TokenUsage { input: count_value(&usage["promptTokenCount"]), cached, output });
    }
}
