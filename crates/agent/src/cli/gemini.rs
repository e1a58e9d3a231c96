//! Adapter for `gemini -o json`: one object, on standard output or standard error. Its sessions
//! belong to a folder, so that a fork starts from a copy of the session's file.

use super::call_folder::CliSession;
use super::json::{count_value, parse_objects, string_value};
use super::refusal::CliRefusal;
use super::{CliCall, CliOutput, CliRequest, CliStreams};
use crate::workspace::AccessMode;
use serde_json::Value;
use treebeam_run::port::TokenUsage;

/// Settings for an empty home: the login method, which it would ask for, and no retries of its own.
pub(super) const GEMINI_SETTINGS_JSON: &str = r#"{"security":{"auth":{"selectedType":"gemini-api-key"}},"general":{"maxAttempts":1},"privacy":{"usageStatisticsEnabled":false}}"#;

pub(super) fn build_call(asked: &CliRequest<'_>) -> CliCall {
    let cli = asked.cli;
    let approval = match asked.doing {
        AccessMode::Reading => "default",
        AccessMode::Editing => "auto_edit",
    };
    let call = CliCall::default()
        .with_arguments(["-o", "json", "--skip-trust", "--approval-mode", approval])
        .with_option("-m", cli.model.as_deref())
        .with_key("GEMINI_API_KEY", cli)
        .with_variable("GOOGLE_GEMINI_BASE_URL", cli.base_url.as_deref())
        .with_arguments(cli.args.iter().cloned());
    match &asked.session {
        CliSession::Copy(file) => {
            call.with_arguments(["--session-file".to_owned(), file.display().to_string()])
        }
        CliSession::New | CliSession::Fork(_) => call,
    }
}

pub(super) fn parse_output(output: CliStreams<'_>) -> Result<CliOutput, CliRefusal> {
    let is_answer = |object: &Value| object["response"].is_string() || object["error"].is_object();
    let both = [output.stdout, output.stderr];
    let answer = both.into_iter().flat_map(parse_objects).rev().find(is_answer);
    let Some(answer) = answer else {
        let complaint = output.stderr.trim();
        return Err(if complaint.contains("Error importing session") {
            CliRefusal::from_lost_session(complaint)
        } else {
            CliRefusal::from_words(complaint)
        });
    };
    if let Some(words) = string_value(&answer["error"]["message"]) {
        // Codes of `gemini` itself are below those of servers.
        let code = answer["error"]["code"].as_u64().and_then(|code| u16::try_from(code).ok());
        let status = code.filter(|code| (400..600).contains(code));
        return Err(CliRefusal { status, ..CliRefusal::from_words(words) });
    }
    let stats = &answer["stats"];
    let models = stats["models"].as_object();
    let tools = stats["tools"]["byName"].as_object().into_iter().flatten();
    let failed = tools.filter(|(_, tool)| count_value(&tool["fail"]) > 0);
    Ok(CliOutput {
        text: string_value(&answer["response"]).unwrap_or_default(),
        usage: models.map(|models| sum_usage(models.values().map(|model| &model["tokens"]))),
        id: string_value(&answer["session_id"]),
        model: models.and_then(|models| models.keys().next().cloned()),
        refused: failed.map(|(name, _)| name.clone()).collect(),
        ..CliOutput::default()
    })
}

fn sum_usage<'a>(tokens: impl Iterator<Item = &'a Value>) -> TokenUsage {
    let mut sum = TokenUsage::default();
    for tokens in tokens {
        sum.input += count_value(&tokens["prompt"]) + count_value(&tokens["tool"]);
        sum.cached += count_value(&tokens["cached"]);
        sum.output += count_value(&tokens["candidates"]) + count_value(&tokens["thoughts"]);
    }
    sum
}
