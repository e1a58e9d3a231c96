//! Google's `generateContent`.

use super::{Delivery, Reading, Stop, Written, count, set, set_in, string};
use crate::agent::question::Question;
use crate::agent::settings::Model;
use serde_json::{Value, json};
use treebeam_run::port::Usage;

pub(super) fn write(model: &Model, question: &Question, delivery: Delivery) -> Written {
    let mut config = json!({ "maxOutputTokens": model.max_tokens });
    set(&mut config, "temperature", model.temperature);
    let effort = model.effort.as_ref().map(|effort| effort.to_uppercase());
    set_in(&mut config, "thinkingConfig", "thinkingLevel", effort);
    let method = match delivery {
        Delivery::Streamed => "streamGenerateContent?alt=sse",
        Delivery::Whole => "generateContent",
    };
    let version = if model.base_url.rsplit('/').next().is_some_and(|end| end.starts_with("v1")) {
        ""
    } else {
        "/v1beta"
    };
    Written {
        path: format!("{version}/models/{}:{method}", model.name),
        key_header: ("x-goog-api-key", ""),
        headers: Vec::new(),
        body: json!({
            "contents": [{ "role": "user", "parts": [{ "text": &*question.prompt }] }],
            "generationConfig": config,
        }),
    }
}

pub(super) fn read(piece: &Value, reading: &mut Reading) {
    let candidate = &piece["candidates"][0];
    for part in candidate["content"]["parts"].as_array().into_iter().flatten() {
        if part["thought"] != true {
            reading.text.push_str(part["text"].as_str().unwrap_or_default());
        }
    }
    if let Some(reason) = piece["promptFeedback"]["blockReason"].as_str() {
        reading.stop = Some(Stop::Refused(reason.to_owned()));
    }
    match candidate["finishReason"].as_str() {
        None | Some("FINISH_REASON_UNSPECIFIED") => {}
        Some("STOP") => reading.stop = Some(Stop::Done),
        Some("MAX_TOKENS") => reading.stop = Some(Stop::Length),
        Some(reason) => reading.stop = Some(Stop::Refused(reason.to_owned())),
    }
    reading.id = reading.id.take().or_else(|| string(&piece["responseId"]));
    reading.model = reading.model.take().or_else(|| string(&piece["modelVersion"]));
    let usage = &piece["usageMetadata"];
    if usage.is_object() {
        let output = count(&usage["candidatesTokenCount"]) + count(&usage["thoughtsTokenCount"]);
        let cached = count(&usage["cachedContentTokenCount"]);
        reading.usage = Some(Usage { input: count(&usage["promptTokenCount"]), cached, output });
    }
}
