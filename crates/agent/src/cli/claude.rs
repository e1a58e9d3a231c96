//! Adapter for `claude -p --output-format json`: one object at the end, with the usage and cost of
//! this turn. A server error is a "success" with `is_error`, so that only that field counts.

use super::call_folder::CliSession;
use super::json::{count_value, parse_objects, string_value};
use super::refusal::CliRefusal;
use super::{CliCall, CliOutput, CliRequest, CliStreams};
use crate::question::TryCost;
use crate::workspace::AccessMode;
use serde_json::Value;
use treebeam_run::port::{Cost, TokenUsage};

pub(super) fn build_call(asked: &CliRequest<'_>) -> CliCall {
    let cli = asked.cli;
    let call = CliCall::default().with_arguments(["-p", "--output-format", "json"]);
    let call = match asked.doing {
        AccessMode::Reading => call,
        AccessMode::Editing => call.with_arguments(["--permission-mode", "acceptEdits"]),
    };
    let call = match &asked.session {
        CliSession::Fork(id) => call.with_arguments(["--resume", id, "--fork-session"]),
        CliSession::New | CliSession::Copy(_) => call,
    };
    call.with_option("--model", cli.model.as_deref())
        .with_arguments(cli.args.iter().cloned())
        .with_key("ANTHROPIC_API_KEY", cli)
        .with_variable("ANTHROPIC_BASE_URL", cli.base_url.as_deref())
        // Retries are decided in the retry layer alone.
        .with_variable("CLAUDE_CODE_MAX_RETRIES", Some("1"))
        .with_variable("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", Some("1"))
        .with_variable("DISABLE_AUTOUPDATER", Some("1"))
}

pub(super) fn parse_output(output: CliStreams<'_>) -> Result<CliOutput, CliRefusal> {
    let mut last = parse_objects(output.stdout).into_iter().rev();
    let Some(result) = last.find(|object| object["type"] == "result") else {
        let complaint = format!("{}{}", output.stderr, output.stdout);
        let complaint = complaint.trim();
        return Err(if complaint.contains("No conversation found") {
            CliRefusal::from_lost_session(complaint)
        } else {
            CliRefusal::from_words(complaint)
        });
    };
    let usage = parse_usage(&result["usage"]);
    let words = string_value(&result["result"]).unwrap_or_default();
    if result["is_error"].as_bool().unwrap_or(false) {
        let status = result["api_error_status"].as_u64().and_then(|code| u16::try_from(code).ok());
        let words = if words.is_empty() { result["subtype"].to_string() } else { words };
        let spent = match usage {
            Some(usage) if usage.total_tokens() == 0 => TryCost::Nothing,
            Some(usage) => TryCost::Known(usage),
            None => TryCost::Unknown,
        };
        return Err(CliRefusal { status, spent, ..CliRefusal::from_words(words) });
    }
    let denials = result["permission_denials"].as_array().into_iter().flatten();
    let mut models = result["modelUsage"].as_object().into_iter().flat_map(|models| models.keys());
    Ok(CliOutput {
        text: words,
        usage,
        taken: None,
        cost: result["total_cost_usd"].as_f64().map(Cost::from_dollars),
        id: string_value(&result["session_id"]),
        model: models.next().cloned(),
        refused: denials.filter_map(|denial| string_value(&denial["tool_name"])).collect(),
    })
}

/// Sums the usage; tokens read from or written to a cache are separate counts.
fn parse_usage(usage: &Value) -> Option<TokenUsage> {
    let count = |name: &str| count_value(&usage[name]);
    let cached = count("cache_read_input_tokens");
    usage.is_object().then(|| TokenUsage {
        input: count("input_tokens") + count("cache_creation_input_tokens") + cached,
        cached,
        output: count("output_tokens"),
    })
}
