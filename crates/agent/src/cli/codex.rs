//! Adapter for `codex exec --json`: one line of JSON per event. Its token counts are of the whole
//! thread, and a fork's thread begins with its parent's.

use super::call_folder::CliSession;
use super::json::{count_value, parse_objects, string_value};
use super::refusal::CliRefusal;
use super::{CliCall, CliOutput, CliRequest, CliStreams};
use crate::workspace::AccessMode;
use serde_json::{Value, json};
use treebeam_run::port::TokenUsage;

pub(super) fn build_call(asked: &CliRequest<'_>) -> CliCall {
    let cli = asked.cli;
    let sandbox = match asked.doing {
        AccessMode::Reading => "sandbox_mode=\"read-only\"",
        AccessMode::Editing => "sandbox_mode=\"workspace-write\"",
    };
    let fork = matches!(asked.session, CliSession::Fork(_)).then_some("fork");
    let mut call = CliCall::default()
        .with_arguments(["exec"].into_iter().chain(fork))
        .with_arguments(["--json", "--skip-git-repo-check", "-c", sandbox])
        .with_option("-m", cli.model.as_deref())
        .with_key("CODEX_API_KEY", cli);
    if let Some(url) = &cli.base_url {
        let setting = |name: &str, value: Value| format!("model_providers.treebeam.{name}={value}");
        let settings = [
            "model_provider=\"treebeam\"".to_owned(),
            setting("name", json!("treebeam")),
            setting("base_url", json!(url)),
            setting("wire_api", json!("responses")),
            // Retries are decided in the retry layer alone.
            setting("request_max_retries", json!(0)),
            setting("stream_max_retries", json!(0)),
        ];
        let key = cli.key.as_ref().map(|_| setting("env_key", json!("CODEX_API_KEY")));
        let settings = settings.into_iter().chain(key);
        call = call.with_arguments(settings.flat_map(|setting| ["-c".to_owned(), setting]));
        // Plugins and apps connect to the maker's own server, whatever server is configured.
        call = call.with_arguments(["--disable", "plugins", "--disable", "apps"]);
    }
    let call = call.with_arguments(cli.args.iter().cloned());
    match &asked.session {
        CliSession::Fork(id) => call.with_arguments([id, "-"]),
        CliSession::New | CliSession::Copy(_) => call.with_arguments(["-"]),
    }
}

pub(super) fn parse_output(output: CliStreams<'_>) -> Result<CliOutput, CliRefusal> {
    let mut said = CliOutput::default();
    let (mut ended, mut why) = (false, None);
    for event in parse_objects(output.stdout) {
        let item = &event["item"];
        match event["type"].as_str() {
            Some("thread.started") => said.id = string_value(&event["thread_id"]),
            Some("item.completed") if item["type"] == "agent_message" => {
                said.text = string_value(&item["text"]).unwrap_or_default();
            }
            Some("turn.completed") => {
                ended = true;
                said.taken = parse_usage(&event["usage"]);
            }
            Some("turn.failed") => why = string_value(&event["error"]["message"]),
            Some("error") => why = string_value(&event["message"]),
            Some(_) | None => {}
        }
    }
    if ended {
        return Ok(said);
    }
    let complaint = output.stderr.trim();
    if complaint.contains("no rollout found") {
        return Err(CliRefusal::from_lost_session(complaint));
    }
    Err(CliRefusal::from_words(why.unwrap_or_else(|| complaint.to_owned())))
}

fn parse_usage(usage: &Value) -> Option<TokenUsage> {
    let count = |name: &str| count_value(&usage[name]);
    usage.is_object().then(|| TokenUsage {
        input: count("input_tokens"),
        cached: count("cached_input_tokens"),
        output: count("output_tokens"),
    })
}
