//! `codex exec --json`: a line of JSON for each event. What it says about tokens is of the whole thread, and a fork's thread
//! begins with its parent's.

use super::desk::Session;
use super::failure::Refusal;
use super::json::{count, objects, text};
use super::{Asked, Call, Output, Said};
use crate::agent::site::Doing;
use serde_json::{Value, json};
use treebeam_run::port::Usage;

pub(super) fn call(asked: &Asked<'_>) -> Call {
    let cli = asked.cli;
    let sandbox = match asked.doing {
        Doing::Reading => "sandbox_mode=\"read-only\"",
        Doing::Editing => "sandbox_mode=\"workspace-write\"",
    };
    let fork = matches!(asked.session, Session::Fork(_)).then_some("fork");
    let mut call = Call::default()
        .arguments(["exec"].into_iter().chain(fork))
        .arguments(["--json", "--skip-git-repo-check", "-c", sandbox])
        .option("-m", cli.model.as_deref())
        .key("CODEX_API_KEY", cli);
    if let Some(url) = &cli.base_url {
        let setting = |name: &str, value: Value| format!("model_providers.treebeam.{name}={value}");
        let settings = [
            "model_provider=\"treebeam\"".to_owned(),
            setting("name", json!("treebeam")),
            setting("base_url", json!(url)),
            setting("wire_api", json!("responses")),
            // Whether to ask again is decided in one place, and that is not here.
            setting("request_max_retries", json!(0)),
            setting("stream_max_retries", json!(0)),
        ];
        let key = cli.key.as_ref().map(|_| setting("env_key", json!("CODEX_API_KEY")));
        let settings = settings.into_iter().chain(key);
        call = call.arguments(settings.flat_map(|setting| ["-c".to_owned(), setting]));
        // They talk to the maker's own server, whatever server is set.
        call = call.arguments(["--disable", "plugins", "--disable", "apps"]);
    }
    let call = call.arguments(cli.args.iter().cloned());
    match &asked.session {
        Session::Fork(id) => call.arguments([id, "-"]),
        Session::New | Session::Copy(_) => call.arguments(["-"]),
    }
}

pub(super) fn read(output: Output<'_>) -> Result<Said, Refusal> {
    let mut said = Said::default();
    let (mut ended, mut why) = (false, None);
    for event in objects(output.stdout) {
        let item = &event["item"];
        match event["type"].as_str() {
            Some("thread.started") => said.id = text(&event["thread_id"]),
            Some("item.completed") if item["type"] == "agent_message" => {
                said.text = text(&item["text"]).unwrap_or_default();
            }
            Some("turn.completed") => {
                ended = true;
                said.taken = usage(&event["usage"]);
            }
            Some("turn.failed") => why = text(&event["error"]["message"]),
            Some("error") => why = text(&event["message"]),
            Some(_) | None => {}
        }
    }
    if ended {
        return Ok(said);
    }
    let complaint = output.stderr.trim();
    if complaint.contains("no rollout found") {
        return Err(Refusal::of_session(complaint));
    }
    Err(Refusal::of(why.unwrap_or_else(|| complaint.to_owned())))
}

fn usage(usage: &Value) -> Option<Usage> {
    let count = |name: &str| count(&usage[name]);
    usage.is_object().then(|| Usage {
        input: count("input_tokens"),
        cached: count("cached_input_tokens"),
        output: count("output_tokens"),
    })
}
