//! Wire format of Ollama's own chat: lines of JSON.

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
    let mut options = json!({ "num_predict": model.max_tokens });
    set_field(&mut options, "temperature", model.temperature);
    let mut body = json!({
        "model": model.name,
        "messages": [{ "role": "user", "content": &*question.prompt }],
        "stream": delivery == WireDelivery::Streamed,
        "options": options,
    });
    set_field(&mut body, "think", model.effort.clone());
    WireRequest {
        path: "/api/chat".to_owned(),
        key_header: ("authorization", "Bearer "),
        headers: Vec::new(),
        body,
    }
}

pub(super) fn read_piece(piece: &Value, reading: &mut PartialAnswer) {
    reading.text.push_str(&content_text(&piece["message"]["content"]));
    reading.model = reading.model.take().or_else(|| nonempty_string(&piece["model"]));
    if piece["done"] != true {
        return;
    }
    reading.ended = true;
    reading.stop = Some(match piece["done_reason"].as_str() {
        Some("length") => ModelStop::Length,
        Some(_) | None => ModelStop::Done,
    });
    let (input, output) =
        (count_value(&piece["prompt_eval_count"]), count_value(&piece["eval_count"]));
    if input + output > 0 {
        reading.usage = Some(TokenUsage { input, cached: 0, output });
    }
}
