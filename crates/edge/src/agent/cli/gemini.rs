//! `gemini -o json`: one object, on one output or the other. Its sessions belong to a folder, so that one is forked by
//! starting from a copy of its file.

use super::desk::Session;
use super::failure::Refusal;
use super::json::{count, objects, text};
use super::{Asked, Call, Output, Said};
use crate::agent::site::Doing;
use serde_json::Value;
use treebeam_run::port::Usage;

/// What it has to find in a home that was empty: which way to log in, where it would ask. It is not to try again by itself.
pub(super) const SETTINGS: &str = r#"{"security":{"auth":{"selectedType":"gemini-api-key"}},"general":{"maxAttempts":1},"privacy":{"usageStatisticsEnabled":false}}"#;

pub(super) fn call(asked: &Asked<'_>) -> Call {
    let cli = asked.cli;
    let approval = match asked.doing {
        Doing::Reading => "default",
        Doing::Editing => "auto_edit",
    };
    let call = Call::default()
        .arguments(["-o", "json", "--skip-trust", "--approval-mode", approval])
        .option("-m", cli.model.as_deref())
        .key("GEMINI_API_KEY", cli)
        .variable("GOOGLE_GEMINI_BASE_URL", cli.base_url.as_deref())
        .arguments(cli.args.iter().cloned());
    match &asked.session {
        Session::Copy(file) => {
            call.arguments(["--session-file".to_owned(), file.display().to_string()])
        }
        Session::New | Session::Fork(_) => call,
    }
}

pub(super) fn read(output: Output<'_>) -> Result<Said, Refusal> {
    let is_answer = |object: &Value| object["response"].is_string() || object["error"].is_object();
    let both = [output.stdout, output.stderr];
    let answer = both.into_iter().flat_map(objects).rev().find(is_answer);
    let Some(answer) = answer else {
        let complaint = output.stderr.trim();
        return Err(if complaint.contains("Error importing session") {
            Refusal::of_session(complaint)
        } else {
            Refusal::of(complaint)
        });
    };
    if let Some(words) = text(&answer["error"]["message"]) {
        // Its own codes are below those of servers.
        let code = answer["error"]["code"].as_u64().and_then(|code| u16::try_from(code).ok());
        let status = code.filter(|code| (400..600).contains(code));
        return Err(Refusal { status, ..Refusal::of(words) });
    }
    let stats = &answer["stats"];
    let models = stats["models"].as_object();
    let tools = stats["tools"]["byName"].as_object().into_iter().flatten();
    let failed = tools.filter(|(_, tool)| count(&tool["fail"]) > 0);
    Ok(Said {
        text: text(&answer["response"]).unwrap_or_default(),
        usage: models.map(|models| sum(models.values().map(|model| &model["tokens"]))),
        id: text(&answer["session_id"]),
        model: models.and_then(|models| models.keys().next().cloned()),
        refused: failed.map(|(name, _)| name.clone()).collect(),
        ..Said::default()
    })
}

fn sum<'a>(tokens: impl Iterator<Item = &'a Value>) -> Usage {
    let mut sum = Usage::default();
    for tokens in tokens {
        sum.input += count(&tokens["prompt"]) + count(&tokens["tool"]);
        sum.cached += count(&tokens["cached"]);
        sum.output += count(&tokens["candidates"]) + count(&tokens["thoughts"]);
    }
    sum
}
