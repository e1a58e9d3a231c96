//! Ollama's own chat: lines of JSON.

use super::{Delivery, Reading, Stop, Written, count, set, string, text_of};
use crate::agent::question::Question;
use crate::agent::settings::Model;
use serde_json::{Value, json};
use treebeam_run::port::Usage;

pub(super) fn write(model: &Model, question: &Question, delivery: Delivery) -> Written {
    let mut options = json!({ "num_predict": model.max_tokens });
    set(&mut options, "temperature", model.temperature);
    let mut body = json!({
        "model": model.name,
        "messages": [{ "role": "user", "content": &*question.prompt }],
        "stream": delivery == Delivery::Streamed,
        "options": options,
    });
    set(&mut body, "think", model.effort.clone());
    Written {
        path: "/api/chat".to_owned(),
        key_header: ("authorization", "Bearer "),
        headers: Vec::new(),
        body,
    }
}

pub(super) fn read(piece: &Value, reading: &mut Reading) {
    reading.text.push_str(&text_of(&piece["message"]["content"]));
    reading.model = reading.model.take().or_else(|| string(&piece["model"]));
    if piece["done"] != true {
        return;
    }
    reading.ended = true;
    reading.stop = Some(match piece["done_reason"].as_str() {
        Some("length") => Stop::Length,
        Some(_) | None => Stop::Done,
    });
    let (input, output) = (count(&piece["prompt_eval_count"]), count(&piece["eval_count"]));
    if input + output > 0 {
        reading.usage = Some(Usage { input, cached: 0, output });
    }
}
