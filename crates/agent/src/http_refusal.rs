//! Classifies the error of a server: whether waiting helps, asking again helps, or neither. Pure
//! function of the answer; its messages never contain the key.

use super::question::{ServerFault, TryCost, TryError};
use super::retry_after;
use super::settings::ModelAgent;
use jiff::Timestamp;
use serde_json::Value;
use std::collections::BTreeMap;
use treebeam_run::port::PortError;

/// Number of characters of a server's message that are shown.
const MAX_MESSAGE_CHARS: usize = 300;

/// An answer whose status is not a success.
#[derive(Clone, Debug)]
pub(super) struct HttpRefusal<'a> {
    pub(super) status: u16,
    pub(super) headers: &'a BTreeMap<String, String>,
    pub(super) body: &'a str,
}

/// Classifies an error of this model's server; `continues` is the id of the answer to continue.
pub(super) fn judge_refusal(
    refusal: &HttpRefusal<'_>,
    model: &ModelAgent,
    continues: Option<&str>,
) -> TryError {
    let body: Value = serde_json::from_str(refusal.body).unwrap_or_default();
    // Google sends a list if a stream was requested.
    let body = body.get(0).unwrap_or(&body);
    let words = error_message(body).unwrap_or_else(|| refusal.body.to_owned());
    let why = format!(
        "{} answered {}: {}",
        model.wire.provider_name(),
        refusal.status,
        shorten_to_line(&words)
    );
    let wait = retry_after::stated_wait(refusal.headers, body, Timestamp::now());
    let kind = error_kind(body) + " " + &words.to_lowercase();
    let says = |parts: &[&str]| parts.iter().any(|part| kind.contains(part));
    // Some servers name the unknown answer, some the field that holds its id.
    let is_of_it = |id: &str| says(&["previous_response"]) || words.contains(id);
    match refusal.status {
        400 | 404 | 422 if continues.is_some_and(is_of_it) => TryError::Forgotten(why),
        401 | 403 => key_refused(&why, model),
        400 if says(&["api_key_invalid", "api key not valid"]) => key_refused(&why, model),
        402 => quota_spent(&why, model),
        400 | 429 if says(&SPENT_QUOTA_WORDS) => quota_spent(&why, model),
        404 => unknown_model(&why, model),
        429 => TryError::RateLimited { why, wait },
        // The last ones are Cloudflare's: the server behind it is gone.
        502..=504 | 520..=527 | 529 | 530 => TryError::Temporary {
            why,
            fault: ServerFault::Overloaded,
            wait,
            spent: TryCost::Nothing,
        },
        408 | 409 | 425 | 500.. => TryError::Temporary {
            why,
            fault: match refusal.status {
                500 => ServerFault::Undecided,
                _ => ServerFault::Answering,
            },
            wait,
            spent: TryCost::Nothing,
        },
        413 => prompt_too_long(&why),
        _ if says(&LONG_PROMPT_WORDS) => prompt_too_long(&why),
        300..=399 => {
            let error = PortError::new(why);
            error
                .with_hint(
                    "`base_url` leads elsewhere: name the server itself, a key is sent to no other",
                )
                .into()
        }
        _ => TryError::unanswered(why),
    }
}

/// Classifies an error in the middle of an answer, which has a name and no status.
pub(super) fn judge_stream_error(
    body: &Value,
    model: &ModelAgent,
    continues: Option<&str>,
) -> TryError {
    let named = error_kind(body);
    let has = |part: &str| named.contains(part);
    let code = &body["error"]["code"];
    let code = code.as_u64().or_else(|| code.as_str()?.parse().ok());
    let status = match code.and_then(|code| u16::try_from(code).ok()) {
        Some(code @ 400..=599) => code,
        _ if has("overloaded") => 529,
        _ if has("rate_limit") || has("quota") || has("resource_exhausted") => 429,
        _ if has("authentication") || has("permission") => 401,
        _ if has("invalid_request") || has("not_found") => 400,
        _ => 500,
    };
    let (headers, body) = (BTreeMap::new(), body.to_string());
    let trouble =
        judge_refusal(&HttpRefusal { status, headers: &headers, body: &body }, model, continues);
    match trouble {
        // By then the answer had begun.
        TryError::Temporary { why, wait, .. } => TryError::Temporary {
            why,
            fault: ServerFault::Answering,
            wait,
            spent: TryCost::Unknown,
        },
        other @ (TryError::RateLimited { .. }
        | TryError::Unanswered { .. }
        | TryError::Unreadable { .. }
        | TryError::Forgotten(_)
        | TryError::OverBudget { .. }
        | TryError::OutOfTime { .. }
        | TryError::Interrupted
        | TryError::Unavailable(_)) => other,
    }
}

pub(super) const SPENT_QUOTA_WORDS: [&str; 5] = [
    "insufficient_quota",
    "credit balance",
    "insufficient balance",
    "billing_hard_limit",
    "exceeded your current quota, please check your plan and billing",
];
const LONG_PROMPT_WORDS: [&str; 8] = [
    "context_length",
    "context length",
    "context size",
    "context_size",
    "context window",
    "prompt is too long",
    "maximum number of tokens",
    "string_above_max_length",
];

fn key_refused(why: &str, model: &ModelAgent) -> TryError {
    let hint = match &model.key {
        Some(key) => format!("put a key that is good there into the variable `{}`", key.variable),
        None => "name the variable that has the key in `api_key_env`".to_owned(),
    };
    PortError::new(format!("the key was refused: {why}")).with_hint(hint).into()
}

fn quota_spent(why: &str, model: &ModelAgent) -> TryError {
    let account = match &model.key {
        Some(key) => format!("the account of the key in `{}`", key.variable),
        None => "the account".to_owned(),
    };
    let hint = format!("fill up {account}, then go on");
    PortError::new(format!("the quota is spent: {why}")).with_hint(hint).into()
}

fn unknown_model(why: &str, model: &ModelAgent) -> TryError {
    let hint = format!("check the model `{}` and `base_url`, `{}`", model.name, model.base_url);
    PortError::new(format!("it is not there: {why}")).with_hint(hint).into()
}

fn prompt_too_long(why: &str) -> TryError {
    TryError::unanswered(format!("the prompt is too long for the model: {why}"))
}

/// Returns the names of an error, in lower case.
fn error_kind(body: &Value) -> String {
    let error = &body["error"];
    let parts = [&error["type"], &error["code"], &error["status"], &body["code"], &body["type"]];
    let details = error["details"].as_array().into_iter().flatten().map(|detail| &detail["reason"]);
    let parts = parts.into_iter().chain(details).filter_map(Value::as_str);
    parts.collect::<Vec<_>>().join(" ").to_lowercase()
}

/// Returns a server's own message.
fn error_message(body: &Value) -> Option<String> {
    let places = [&body["error"]["message"], &body["error"], &body["message"], &body["detail"]];
    places.into_iter().find_map(Value::as_str).map(str::to_owned)
}

/// Returns the start of a text, on one line.
pub(super) fn shorten_to_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut short: String = line.chars().take(MAX_MESSAGE_CHARS).collect();
    if short.len() < line.len() {
        short.push('…');
    }
    if short.is_empty() { "nothing more".to_owned() } else { short }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{ApiKey, DEFAULT_MAX_TOKENS, WireFormat};
    use treebeam_store::env_file::Secret;

    fn model() -> ModelAgent {
        ModelAgent {
            wire: WireFormat::Chat,
            name: "m-1".to_owned(),
            base_url: "http://127.0.0.1:1/v1".to_owned(),
            key: Some(ApiKey {
                variable: "MY_KEY".to_owned(),
                value: Secret::new("sk-canary".to_owned()),
            }),
            temperature: None,
            max_tokens: DEFAULT_MAX_TOKENS,
            effort: None,
            extra: serde_json::Map::new(),
        }
    }

    fn in_words(trouble: &TryError) -> String {
        match trouble {
            TryError::Temporary { wait, spent, .. } => {
                format!("again {:?} {spent:?}", wait.map(|wait| wait.as_secs()))
            }
            TryError::RateLimited { wait, .. } => {
                format!("wait {:?}", wait.map(|wait| wait.as_secs()))
            }
            TryError::Unanswered { why, .. } => format!("unanswered: {why}"),
            TryError::Forgotten(_) => "forgotten".to_owned(),
            TryError::Unavailable(error) => {
                format!(
                    "unavailable: {}; {}",
                    error.what,
                    error.hint.as_deref().unwrap_or_default()
                )
            }
            other @ (TryError::Unreadable { .. }
            | TryError::OverBudget { .. }
            | TryError::OutOfTime { .. }
            | TryError::Interrupted) => format!("{other:?}"),
        }
    }

    #[test]
    fn what_a_status_means() {
        let check = |status: u16, body: &str, expect: &str| {
            let headers = BTreeMap::from([("retry-after".to_owned(), "7".to_owned())]);
            let refusal = HttpRefusal { status, headers: &headers, body };
            let found = in_words(&judge_refusal(&refusal, &model(), Some("resp-7")));
            assert!(found.starts_with(expect), "{status} {body}: {found}");
            assert!(!found.contains("canary"), "{found}");
        };
        for status in [408, 409, 500, 502, 503, 504, 529] {
            check(status, "<html>oops</html>", "again Some(7) Nothing");
        }
        check(429, r#"{"error":{"message":"Rate limit reached"}}"#, "wait Some(7)");
        check(429, "", "wait Some(7)");
        let spent = "unavailable: the quota is spent: openai-chat answered";
        check(429, r#"{"error":{"message":"x","code":"insufficient_quota"}}"#, spent);
        check(400, r#"{"error":{"message":"Your credit balance is too low"}}"#, spent);
        check(402, "", spent);
        let refused = "unavailable: the key was refused: openai-chat answered 401: no; put a key that is good there into the variable `MY_KEY`";
        check(401, r#"{"error":{"message":"no"}}"#, refused);
        check(403, r#"{"message":"no"}"#, &refused.replace("401", "403"));
        check(
            400,
            r#"[{"error":{"message":"API key not valid. Please"}}]"#,
            "unavailable: the key",
        );
        check(
            404,
            r#"{"error":"model not found"}"#,
            "unavailable: it is not there: openai-chat answered 404: model not found; check the model `m-1`",
        );
        check(
            404,
            r#"{"error":{"code":"previous_response_not_found","message":"x"}}"#,
            "forgotten",
        );
        check(400, r#"{"error":{"message":"no 'previous_response_id' here"}}"#, "forgotten");
        // As llama-stack says it; its message for a missing model is the same.
        let list = "Use 'client.responses.list()' to list available Responses.";
        check(404, &format!(r#"{{"detail":"Response 'resp-7' not found. {list}"}}"#), "forgotten");
        check(404, r#"{"detail":"Model 'm-1' not found."}"#, "unavailable: it is not there");
        let long = "unanswered: the prompt is too long for the model";
        check(400, r#"{"error":{"code":"context_length_exceeded","message":"maximum"}}"#, long);
        check(413, "", long);
        check(400, r#"{"error":{"message":"prompt is too long: 9 > 8"}}"#, long);
        check(400, r#"{"error":{"message":"bad"}}"#, "unanswered: openai-chat answered 400: bad");
        check(418, "", "unanswered: openai-chat answered 418: nothing more");
        check(307, "", "unavailable: openai-chat answered 307");
    }

    #[test]
    fn a_server_that_is_gone_or_overloaded_is_told_from_one_that_answers_badly() {
        let headers = BTreeMap::new();
        let fault_of = |status: u16| {
            let refusal = HttpRefusal { status, headers: &headers, body: "<html>oops</html>" };
            let trouble = judge_refusal(&refusal, &model(), None);
            if let TryError::Temporary { fault, .. } = trouble { Some(fault) } else { None }
        };
        for status in [502, 503, 504, 520, 521, 524, 527, 529, 530] {
            assert_eq!(fault_of(status), Some(ServerFault::Overloaded), "{status}");
        }
        for status in [408, 409, 425, 501, 519, 528] {
            assert_eq!(fault_of(status), Some(ServerFault::Answering), "{status}");
        }
        assert_eq!(fault_of(500), Some(ServerFault::Undecided));
    }

    #[test]
    fn what_a_name_means() {
        let check = |body: &str, expect: &str| {
            let body = serde_json::from_str(body).unwrap();
            let found = in_words(&judge_stream_error(&body, &model(), Some("resp-7")));
            assert!(found.starts_with(expect), "{body}: {found}");
        };
        check(r#"{"error":{"type":"overloaded_error","message":"x"}}"#, "again None Unknown");
        check(r#"{"error":{"type":"api_error","message":"x"}}"#, "again None Unknown");
        check(r#"{"error":{"type":"rate_limit_error","message":"x"}}"#, "wait None");
        check(r#"{"error":{"type":"authentication_error","message":"x"}}"#, "unavailable: the key");
        check(r#"{"error":{"type":"invalid_request_error","message":"x"}}"#, "unanswered");
        check(r#"{"error":{"code":503,"message":"x"}}"#, "again None Unknown");
        check(r#"{"error":"it broke"}"#, "again None Unknown");
        // As llama-stack says it if a stream was requested.
        let lost = r#"{"error":{"message":"Response 'resp-7' not found.","code":"404"}}"#;
        check(lost, "forgotten");
        check(&lost.replace("resp-7", "resp-8"), "unavailable: it is not there");
    }
}
