//! Adapter for `opencode run --format json`: a line of JSON per part of the answer, with usage.

use super::call_folder::CliSession;
use super::json::{count_value, parse_objects, string_value};
use super::refusal::CliRefusal;
use super::{CliCall, CliOutput, CliRequest, CliStreams};
use crate::workspace::AccessMode;
use serde_json::{Value, json};
use treebeam_run::port::Cost;

/// The variable with the key of the configured server.
const AGENT_KEY_VARIABLE: &str = "TREEBEAM_AGENT_KEY";

pub(super) fn build_call(asked: &CliRequest<'_>) -> CliCall {
    let cli = asked.cli;
    let model = match (&cli.base_url, &cli.model) {
        (Some(_), Some(model)) => Some(format!("treebeam/{model}")),
        (None, model) => model.clone(),
        (Some(_), None) => None,
    };
    let call = CliCall::default()
        .with_arguments(["run", "--format", "json"])
        .with_option("-m", model.as_deref())
        .with_key(AGENT_KEY_VARIABLE, cli)
        .with_variable("OPENCODE_DISABLE_AUTOUPDATE", Some("1"));
    let call = match asked.doing {
        AccessMode::Reading => call.with_arguments(["--agent", "plan"]),
        AccessMode::Editing => call,
    };
    let call = match &asked.session {
        CliSession::Fork(id) => call.with_arguments(["-s", id, "--fork"]),
        CliSession::New | CliSession::Copy(_) => call,
    };
    let server = cli.base_url.as_ref().map(|url| {
        let options = json!({ "baseURL": url, "apiKey": format!("{{env:{AGENT_KEY_VARIABLE}}}") });
        let models = json!({ (cli.model.as_deref().unwrap_or_default()): {} });
        let npm = "@ai-sdk/openai-compatible";
        let provider =
            json!({ "npm": npm, "name": "treebeam", "options": options, "models": models });
        json!({ "provider": { "treebeam": provider }, "share": "disabled" }).to_string()
    });
    // The list of models and prices is on the maker's own server, whatever server is configured.
    let alone = server.as_ref().map(|_| "1");
    call.with_variable("OPENCODE_CONFIG_CONTENT", server.as_deref())
        .with_variable("OPENCODE_DISABLE_MODELS_FETCH", alone)
        .with_arguments(cli.args.iter().cloned())
}

pub(super) fn parse_output(output: CliStreams<'_>) -> Result<CliOutput, CliRefusal> {
    let mut said = CliOutput::default();
    let (mut texts, mut cost, mut why) = (Vec::new(), None, None);
    for event in parse_objects(output.stdout) {
        let part = &event["part"];
        said.id = string_value(&event["sessionID"]).or(said.id);
        match event["type"].as_str() {
            Some("text") => texts.extend(string_value(&part["text"])),
            Some("step_finish") => {
                let (tokens, mut sum) = (&part["tokens"], said.usage.unwrap_or_default());
                let cached = count_value(&tokens["cache"]["read"]);
                sum.input +=
                    count_value(&tokens["input"]) + count_value(&tokens["cache"]["write"]) + cached;
                sum.cached += cached;
                sum.output += count_value(&tokens["output"]) + count_value(&tokens["reasoning"]);
                said.usage = Some(sum);
                cost = Some(cost.unwrap_or(0.0) + part["cost"].as_f64().unwrap_or(0.0));
            }
            Some("tool_use") if is_refused(&part["state"]) => {
                said.refused.extend(string_value(&part["tool"]));
            }
            Some("error") => why = Some(event["error"].clone()),
            Some(_) | None => {}
        }
    }
    if let Some(error) = why {
        let data = &error["data"];
        let status = data["statusCode"].as_u64().and_then(|code| u16::try_from(code).ok());
        let words = string_value(&data["message"])
            .or_else(|| string_value(&error["name"]))
            .unwrap_or_default();
        return Err(CliRefusal { status, ..CliRefusal::from_words(words) });
    }
    if said.usage.is_none() {
        let complaint = output.stderr.trim();
        return Err(if complaint.contains("Session not found") {
            CliRefusal::from_lost_session(complaint)
        } else {
            CliRefusal::from_words(complaint)
        });
    }
    // For a model without a known price `opencode` reports a cost of 0.
    said.cost = cost.filter(|cost| *cost > 0.0).map(Cost::from_dollars);
    said.text = texts.join("\n");
    Ok(said)
}

/// Returns true if a tool failed because it was not allowed.
fn is_refused(state: &Value) -> bool {
    let error = state["error"].as_str().unwrap_or_default();
    let refusals = ["rejected permission", "prevents you from using"];
    state["status"] == "error" && refusals.iter().any(|words| error.contains(words))
}
