//! Table tests of the wire formats: requests, and answers that are streamed, whole and cut.

use super::*;
use crate::settings::DEFAULT_MAX_TOKENS;
use serde_json::json;
use treebeam_run::port::{AgentRole, Continuation};

const WIRES: [WireFormat; 5] = [
    WireFormat::Chat,
    WireFormat::Responses,
    WireFormat::Messages,
    WireFormat::Gemini,
    WireFormat::Ollama,
];

fn model(wire: WireFormat) -> ModelAgent {
    ModelAgent {
        wire,
        name: "m-1".to_owned(),
        base_url: wire.default_base_url().to_owned(),
        key: None,
        temperature: None,
        max_tokens: DEFAULT_MAX_TOKENS,
        effort: None,
        extra: Map::new(),
    }
}

fn question() -> AgentQuestion {
    let (key, prompt) = ("k".to_owned(), "What?".to_owned());
    AgentQuestion {
        key,
        role: AgentRole::Coder,
        round: 0,
        prompt: prompt.into(),
        continues: None,
        place: None,
        node: None,
    }
}

/// Describes an answer or its error.
fn heard(wire: WireFormat, body: &str, cut: Option<&str>) -> String {
    match parse_reply(&model(wire), &question(), body, cut) {
        Ok(AgentReply { text, usage, id, model, .. }) => {
            let usage =
                usage.map_or("?".to_owned(), |u| format!("{}/{}/{}", u.input, u.cached, u.output));
            format!("{text} {usage} {} {}", id.unwrap_or_default(), model.unwrap_or_default())
        }
        Err(TryError::Temporary { spent, .. }) => format!("again {spent:?}"),
        Err(TryError::RateLimited { .. }) => "wait".to_owned(),
        Err(TryError::Unanswered { why, .. }) => why,
        Err(other) => format!("{other:?}"),
    }
}

fn stream(events: &[Value]) -> String {
    events.iter().map(|event| format!("event: x\ndata: {event}\n\n")).collect()
}

/// Returns the same answer whole and streamed.
fn samples(wire: WireFormat) -> [String; 2] {
    match wire {
        WireFormat::Chat => {
            let usage = json!({"prompt_tokens": 11, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 4}});
            let delta = |text: &str| json!({"id": "r-1", "model": "m-2", "choices": [{"delta": {"content": text}}]});
            let end = json!({"id": "r-1", "choices": [{"delta": {}, "finish_reason": "stop"}]});
            let last = json!({"id": "r-1", "choices": [], "usage": usage});
            [
                json!({"id": "r-1", "model": "m-2", "usage": usage, "choices": [{"finish_reason": "stop", "message": {"content": "Hé there"}}]}).to_string(),
                stream(&[delta("Hé "), delta("there"), end, last]) + "data: [DONE]\n\n",
            ]
        }
        WireFormat::Responses => {
            let whole = json!({
                "id": "r-1", "model": "m-2", "status": "completed", "error": null,
                "output": [{"type": "reasoning", "summary": []}, {"type": "message", "content": [{"type": "output_text", "text": "Hé there"}]}],
                "usage": {"input_tokens": 11, "output_tokens": 7, "input_tokens_details": {"cached_tokens": 4}},
            });
            let delta = |text: &str| json!({"type": "response.output_text.delta", "delta": text});
            let end = json!({"type": "response.completed", "response": whole});
            let begin = json!({"type": "response.created", "response": {"status": "in_progress"}});
            [whole.to_string(), stream(&[begin, delta("Hé "), delta("there"), end])]
        }
        WireFormat::Messages => {
            let usage =
                json!({"input_tokens": 7, "cache_read_input_tokens": 4, "output_tokens": 7});
            let begin = json!({"type": "message_start", "message": {"id": "r-1", "model": "m-2", "content": [], "usage": {"input_tokens": 7, "cache_read_input_tokens": 4, "output_tokens": 1}}});
            let delta = |text: &str| json!({"type": "content_block_delta", "delta": {"type": "text_delta", "text": text}});
            let thought = json!({"type": "content_block_delta", "delta": {"type": "thinking_delta", "thinking": "hm"}});
            let end = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7}});
            [
                json!({"type": "message", "id": "r-1", "model": "m-2", "usage": usage, "stop_reason": "end_turn", "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Hé there"}]}).to_string(),
                stream(&[begin, json!({"type": "ping"}), thought, delta("Hé "), delta("there"), end, json!({"type": "message_stop"})]),
            ]
        }
        WireFormat::Gemini => {
            let usage = json!({"promptTokenCount": 11, "cachedContentTokenCount": 4, "candidatesTokenCount": 5, "thoughtsTokenCount": 2});
            let part = |text: &str| json!({"responseId": "r-1", "modelVersion": "m-2", "candidates": [{"content": {"parts": [{"text": text}]}}]});
            let thought =
                json!({"candidates": [{"content": {"parts": [{"text": "hm", "thought": true}]}}]});
            let end = json!({"candidates": [{"finishReason": "STOP"}], "usageMetadata": usage});
            let mut whole = part("Hé there");
            merge_json(&mut whole, &json!({"usageMetadata": usage}));
            whole["candidates"][0]["finishReason"] = json!("STOP");
            [whole.to_string(), stream(&[thought, part("Hé "), part("there"), end])]
        }
        WireFormat::Ollama => {
            let part =
                |text: &str| json!({"model": "m-2", "message": {"content": text}, "done": false});
            let end = json!({"model": "m-2", "message": {"content": ""}, "done": true, "done_reason": "stop", "prompt_eval_count": 11, "eval_count": 7});
            let mut whole = end.clone();
            whole["message"]["content"] = json!("Hé there");
            [whole.to_string(), format!("{}\n{}\n{end}\n", part("Hé "), part("there"))]
        }
    }
}

#[test]
fn whole_and_streamed_answers_say_the_same() {
    for wire in WIRES {
        let expect = if wire == WireFormat::Ollama {
            "Hé there 11/0/7  m-2"
        } else {
            "Hé there 11/4/7 r-1 m-2"
        };
        for body in samples(wire) {
            assert_eq!(heard(wire, &body, None), expect, "{wire:?} {body}");
            assert_eq!(heard(wire, &body.replace('\n', "\r\n"), None), expect, "{wire:?} {body}");
        }
    }
}

#[test]
fn a_part_of_an_answer_is_never_used() {
    for wire in WIRES {
        for body in samples(wire) {
            let full = heard(wire, &body, None);
            for end in (0..body.len()).filter(|end| body.is_char_boundary(*end)) {
                let found = heard(wire, &body[..end], Some("reset"));
                // Only the part after the answer's own end may be missing.
                assert!(
                    found == "again Unknown" || found == full,
                    "{wire:?} {end}: {found}\n{body}"
                );
                let found = heard(wire, &body[..end], None);
                let lacks_usage = found.contains("Hé there");
                assert!(found == "again Unknown" || lacks_usage, "{wire:?} {end}: {found}\n{body}");
            }
        }
    }
}

#[test]
fn why_a_model_stopped() {
    let check = |wire: WireFormat, body: Value, expect: &str| {
        let found = heard(wire, &body.to_string(), None);
        assert!(found.contains(expect), "{wire:?}: {found}");
        let streamed = heard(wire, &stream(&[body]), None);
        assert!(streamed.contains(expect), "{wire:?}: {streamed}");
    };
    let chat =
        |reason: &str| json!({"choices": [{"finish_reason": reason, "message": {"content": "a"}}]});
    check(WireFormat::Chat, chat("length"), "cut at `max_tokens`, 16384");
    check(WireFormat::Chat, chat("content_filter"), "refused to answer");
    check(
        WireFormat::Chat,
        json!({"choices": [{"finish_reason": "stop", "message": {"content": null, "refusal": "I won't"}}]}),
        "refused to answer: I won't",
    );
    check(
        WireFormat::Chat,
        json!({"choices": [{"finish_reason": "tool_calls", "message": {"content": null, "tool_calls": [1]}}]}),
        "answered nothing",
    );
    let incomplete = |reason: &str| json!({"status": "incomplete", "incomplete_details": {"reason": reason}, "output": []});
    check(WireFormat::Responses, incomplete("max_output_tokens"), "cut at `max_tokens`");
    check(WireFormat::Responses, incomplete("content_filter"), "refused to answer");
    check(
        WireFormat::Responses,
        json!({"status": "failed", "error": {"code": "server_error", "message": "x"}}),
        "again Unknown",
    );
    check(
        WireFormat::Responses,
        json!({"type": "error", "code": "rate_limit_exceeded", "message": "x"}),
        "wait",
    );
    let message = |reason: &str| json!({"type": "message", "content": [{"type": "text", "text": "a"}], "stop_reason": reason});
    check(WireFormat::Messages, message("max_tokens"), "cut at `max_tokens`");
    check(WireFormat::Messages, message("content_filter"), "refused to answer: content_filter");
    let failed = json!({"status": "failed", "output": [{"content": [{"type": "output_text", "text": "."}]}]});
    check(WireFormat::Responses, failed, "refused to answer: it failed");
    let full = json!({"status": "completed", "usage": {"output_tokens": DEFAULT_MAX_TOKENS}, "output": [{"content": [{"type": "output_text", "text": "."}]}]});
    check(WireFormat::Responses, full, "cut at `max_tokens`");
    check(WireFormat::Messages, message("refusal"), "refused to answer");
    check(
        WireFormat::Messages,
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "x"}}),
        "again Unknown",
    );
    let candidate = |reason: &str| json!({"candidates": [{"content": {"parts": [{"text": "a"}]}, "finishReason": reason}]});
    check(WireFormat::Gemini, candidate("MAX_TOKENS"), "cut at `max_tokens`");
    check(WireFormat::Gemini, candidate("SAFETY"), "refused to answer: SAFETY");
    check(
        WireFormat::Gemini,
        json!({"promptFeedback": {"blockReason": "OTHER"}}),
        "refused to answer: OTHER",
    );
    check(
        WireFormat::Ollama,
        json!({"message": {"content": "a"}, "done": true, "done_reason": "length"}),
        "cut at `max_tokens`",
    );
    check(
        WireFormat::Ollama,
        json!({"error": "model runner has unexpectedly stopped"}),
        "again Unknown",
    );
    check(WireFormat::Chat, json!({"hello": 1}), "again Unknown");
    assert_eq!(heard(WireFormat::Chat, "<html>proxy</html>", None), "again Unknown");
    assert_eq!(heard(WireFormat::Chat, "", None), "again Unknown");
}

#[test]
fn what_is_written() {
    let check = |wire: WireFormat, path: &str, expect: Value| {
        let mut model = model(wire);
        model.temperature = Some(0.5);
        model.effort = Some("low".to_owned());
        model.extra = json!({"extra": {"a": 1}}).as_object().cloned().unwrap();
        let mut question = question();
        question.continues = Some(Continuation { id: "r-0".to_owned(), tokens: 9, taken: None });
        let written = build_request(&model, &question);
        assert_eq!(written.path, path);
        assert_eq!(written.body, expect, "{wire:?}");
        model.extra = json!({"stream": false}).as_object().cloned().unwrap();
        let written = build_request(&model, &question);
        assert_ne!(written.body["stream"], true, "{wire:?}");
        assert!(!written.path.contains("stream"), "{wire:?}");
    };
    let mut elsewhere = model(WireFormat::Chat);
    elsewhere.base_url = "http://127.0.0.1:9/v1".to_owned();
    assert_eq!(build_request(&elsewhere, &question()).body["max_tokens"], DEFAULT_MAX_TOKENS);
    let messages = json!([{"role": "user", "content": "What?"}]);
    check(
        WireFormat::Chat,
        "/chat/completions",
        json!({"model": "m-1", "messages": messages, "max_completion_tokens": DEFAULT_MAX_TOKENS, "stream": true, "stream_options": {"include_usage": true},
            "temperature": 0.5, "reasoning_effort": "low", "extra": {"a": 1}}),
    );
    check(
        WireFormat::Responses,
        "/responses",
        json!({"model": "m-1", "input": "What?", "max_output_tokens": DEFAULT_MAX_TOKENS, "stream": true, "previous_response_id": "r-0",
            "temperature": 0.5, "reasoning": {"effort": "low"}, "extra": {"a": 1}}),
    );
    check(
        WireFormat::Messages,
        "/v1/messages",
        json!({"model": "m-1", "messages": messages, "max_tokens": DEFAULT_MAX_TOKENS, "stream": true, 
            "output_config": {"effort": "low"}, "extra": {"a": 1}}),
    );
    check(
        WireFormat::Gemini,
        "/models/m-1:streamGenerateContent?alt=sse",
        json!({"contents": [{"role": "user", "parts": [{"text": "What?"}]}], "extra": {"a": 1},
            "generationConfig": {"maxOutputTokens": DEFAULT_MAX_TOKENS, "temperature": 0.5, "thinkingConfig": {"thinkingLevel": "LOW"}}}),
    );
    check(
        WireFormat::Ollama,
        "/api/chat",
        json!({"model": "m-1", "messages": messages, "stream": true, "think": "low", "extra": {"a": 1},
            "options": {"num_predict": DEFAULT_MAX_TOKENS, "temperature": 0.5}}),
    );
}
