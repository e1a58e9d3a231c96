//! `opencode run --format json`: a line of JSON for each part of the answer, with what each step took.

use super::desk::Session;
use super::failure::Refusal;
use super::json::{count, objects, text};
use super::{Asked, Call, Output, Said};
use crate::agent::site::Doing;
use serde_json::{Value, json};
use treebeam_run::port::Cost;

/// The variable that has the key of a server that is set here.
const KEY: &str = "TREEBEAM_AGENT_KEY";

pub(super) fn call(asked: &Asked<'_>) -> Call {
    let cli = asked.cli;
    let model = match (&cli.base_url, &cli.model) {
        (Some(_), Some(model)) => Some(format!("treebeam/{model}")),
        (None, model) => model.clone(),
        (Some(_), None) => None,
    };
    let call = Call::default()
        .arguments(["run", "--format", "json"])
        .option("-m", model.as_deref())
        .key(KEY, cli)
        .variable("OPENCODE_DISABLE_AUTOUPDATE", Some("1"));
    let call = match asked.doing {
        Doing::Reading => call.arguments(["--agent", "plan"]),
        Doing::Editing => call,
    };
    let call = match &asked.session {
        Session::Fork(id) => call.arguments(["-s", id, "--fork"]),
        Session::New | Session::Copy(_) => call,
    };
    let server = cli.base_url.as_ref().map(|url| {
        let options = json!({ "baseURL": url, "apiKey": format!("{{env:{KEY}}}") });
        let models = json!({ (cli.model.as_deref().unwrap_or_default()): {} });
        let npm = "@ai-sdk/openai-compatible";
        let provider =
            json!({ "npm": npm, "name": "treebeam", "options": options, "models": models });
        json!({ "provider": { "treebeam": provider }, "share": "disabled" }).to_string()
    });
    // Its list of models and prices is on the maker's own server, whatever server is set.
    let alone = server.as_ref().map(|_| "1");
    call.variable("OPENCODE_CONFIG_CONTENT", server.as_deref())
        .variable("OPENCODE_DISABLE_MODELS_FETCH", alone)
        .arguments(cli.args.iter().cloned())
}

pub(super) fn read(output: Output<'_>) -> Result<Said, Refusal> {
    let mut said = Said::default();
    let (mut texts, mut cost, mut why) = (Vec::new(), None, None);
    for event in objects(output.stdout) {
        let part = &event["part"];
        said.id = text(&event["sessionID"]).or(said.id);
        match event["type"].as_str() {
            Some("text") => texts.extend(text(&part["text"])),
            Some("step_finish") => {
                let (tokens, mut sum) = (&part["tokens"], said.usage.unwrap_or_default());
                let cached = count(&tokens["cache"]["read"]);
                sum.input += count(&tokens["input"]) + count(&tokens["cache"]["write"]) + cached;
                sum.cached += cached;
                sum.output += count(&tokens["output"]) + count(&tokens["reasoning"]);
                said.usage = Some(sum);
                cost = Some(cost.unwrap_or(0.0) + part["cost"].as_f64().unwrap_or(0.0));
            }
            Some("tool_use") if is_refused(&part["state"]) => {
                said.refused.extend(text(&part["tool"]));
            }
            Some("error") => why = Some(event["error"].clone()),
            Some(_) | None => {}
        }
    }
    if let Some(error) = why {
        let data = &error["data"];
        let status = data["statusCode"].as_u64().and_then(|code| u16::try_from(code).ok());
        let words = text(&data["message"]).or_else(|| text(&error["name"])).unwrap_or_default();
        return Err(Refusal { status, ..Refusal::of(words) });
    }
    if said.usage.is_none() {
        let complaint = output.stderr.trim();
        return Err(if complaint.contains("Session not found") {
            Refusal::of_session(complaint)
        } else {
            Refusal::of(complaint)
        });
    }
    // A model that it knows no price of costs nothing there.
    said.cost = cost.filter(|cost| *cost > 0.0).map(Cost::dollars);
    said.text = texts.join("\n");
    Ok(said)
}

/// Whether a tool failed because it was not allowed.
fn is_refused(state: &Value) -> bool {
    let error = state["error"].as_str().unwrap_or_default();
    let refusals = ["rejected permission", "prevents you from using"];
    state["status"] == "error" && refusals.iter().any(|words| error.contains(words))
}
