//! `claude -p --output-format json`: one object at the end. An error of its server is a "success" with `is_error`, so that
//! alone is looked at. It counts its own turn, and says what that cost.

use super::desk::Session;
use super::failure::Refusal;
use super::json::{count, objects, text};
use super::{Asked, Call, Output, Said};
use crate::agent::question::Spent;
use crate::agent::site::Doing;
use serde_json::Value;
use treebeam_run::port::{Cost, Usage};

pub(super) fn call(asked: &Asked<'_>) -> Call {
    let cli = asked.cli;
    let call = Call::default().arguments(["-p", "--output-format", "json"]);
    let call = match asked.doing {
        Doing::Reading => call,
        Doing::Editing => call.arguments(["--permission-mode", "acceptEdits"]),
    };
    let call = match &asked.session {
        Session::Fork(id) => call.arguments(["--resume", id, "--fork-session"]),
        Session::New | Session::Copy(_) => call,
    };
    call.option("--model", cli.model.as_deref())
        .arguments(cli.args.iter().cloned())
        .key("ANTHROPIC_API_KEY", cli)
        .variable("ANTHROPIC_BASE_URL", cli.base_url.as_deref())
        // Whether to ask again is decided in one place, and that is not here.
        .variable("CLAUDE_CODE_MAX_RETRIES", Some("1"))
        .variable("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", Some("1"))
        .variable("DISABLE_AUTOUPDATER", Some("1"))
}

pub(super) fn read(output: Output<'_>) -> Result<Said, Refusal> {
    let mut last = objects(output.stdout).into_iter().rev();
    let Some(result) = last.find(|object| object["type"] == "result") else {
        let complaint = format!("{}{}", output.stderr, output.stdout);
        let complaint = complaint.trim();
        return Err(if complaint.contains("No conversation found") {
            Refusal::of_session(complaint)
        } else {
            Refusal::of(complaint)
        });
    };
    let usage = usage(&result["usage"]);
    let words = text(&result["result"]).unwrap_or_default();
    if result["is_error"].as_bool().unwrap_or(false) {
        let status = result["api_error_status"].as_u64().and_then(|code| u16::try_from(code).ok());
        let words = if words.is_empty() { result["subtype"].to_string() } else { words };
        let spent = match usage {
            Some(usage) if usage.total() == 0 => Spent::Nothing,
            Some(usage) => Spent::Known(usage),
            None => Spent::Perhaps,
        };
        return Err(Refusal { status, spent, ..Refusal::of(words) });
    }
    let denials = result["permission_denials"].as_array().into_iter().flatten();
    let mut models = result["modelUsage"].as_object().into_iter().flat_map(|models| models.keys());
    Ok(Said {
        text: words,
        usage,
        taken: None,
        cost: result["total_cost_usd"].as_f64().map(Cost::dollars),
        id: text(&result["session_id"]),
        model: models.next().cloned(),
        refused: denials.filter_map(|denial| text(&denial["tool_name"])).collect(),
    })
}

/// What comes from a cache, or goes into one, is counted apart there.
fn usage(usage: &Value) -> Option<Usage> {
    let count = |name: &str| count(&usage[name]);
    let cached = count("cache_read_input_tokens");
    usage.is_object().then(|| Usage {
        input: count("input_tokens") + count("cache_creation_input_tokens") + cached,
        cached,
        output: count("output_tokens"),
    })
}
