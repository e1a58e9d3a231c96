//! A real, small model: its own text, its own token count, its own limits. Its server, of
//! llama.cpp, speaks three of our wire formats, and keeps no answers.

use crate::door::BINARY;
use serde_json::json;
use std::path::Path;
use treebeam_testkit::counterpart::CounterpartServer;
use treebeam_testkit::program::Site;

#[test]
#[ignore = "needs real counterparts: run by `cargo xtask test`"]
fn a_real_model_answers() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/counterparts/smollm2.py");
    let (server, site) = (CounterpartServer::smollm2(&script), Site::new(BINARY));
    let roles = [("planner", "openai"), ("coder", "openai-chat"), ("reviewer", "anthropic")];
    let configure = |most: u32| {
        let agents = roles.map(|(role, provider)| agent(&server, role, provider, most));
        site.repo.write("treebeam.toml", &agents.concat()).expect("a file");
    };

    configure(400);
    let checked = site.call(&["agents", "check", "--json"]).exits(0).json_lines().remove(0);
    for (place, (role, provider)) in roles.into_iter().enumerate() {
        let agent = &checked["agents"][place];
        assert_eq!((&agent["role"], &agent["ok"]), (&json!(role), &json!(true)), "{checked}");
        assert!(agent["reply"].as_str().is_some_and(|text| !text.trim().is_empty()), "{checked}");
        for count in [&agent["usage"]["input"], &agent["usage"]["output"]] {
            assert!(count.as_u64().is_some_and(|count| (1..400).contains(&count)), "{checked}");
        }
        // The server refuses `previous_response_id` with a 400.
        let note = agent["note"].as_str().unwrap_or_default();
        assert_eq!(agent["continuation"], "replay", "{checked}");
        assert_eq!(
            note.starts_with("`auto` falls back to replay: "),
            provider == "openai",
            "{checked}"
        );
    }

    let long = "Tell me about the sea. ".repeat(400);
    for (role, _) in roles {
        let ask =
            |prompt: &str| site.call_reading(&["agents", "ask", "--role", role, "--json"], prompt);
        let answer = ask("Say hello.").exits(0).json_lines().remove(0);
        let (_, tokens) = server.post("/tokenize", &json!({ "content": answer["reply"] }));
        let tokens = tokens["tokens"].as_array().expect("the answer's tokens").len() as u64;
        let counted = answer["usage"]["output"].as_u64().expect("a count");
        // The end of an answer is a token, too, and a text can be split in more than one way.
        assert!(tokens > 0 && counted.abs_diff(tokens) < 4, "{tokens} tokens in {answer}");
        let _ = ask(&long).exits(1).says(["error: the prompt is too long for the model"]);
    }

    // Through `openai` the server reports a cut answer as completed.
    configure(5);
    for (role, _) in roles {
        let said = site.call_reading(&["agents", "ask", "--role", role], "Say hello.");
        let _ = said.exits(1).says(["error: the answer was cut at `max_tokens`, 5"]);
    }
}

fn agent(server: &CounterpartServer, role: &str, provider: &str, most: u32) -> String {
    // Temperature 0 gives the same text each time.
    let (end, cold) = match provider {
        "anthropic" => ("", "extra = { temperature = 0 }"),
        _ => ("/v1", "temperature = 0"),
    };
    let url = server.url() + end;
    format!(
        "[agents.{role}]\nprovider = '{provider}'\nmodel = 'smollm2'\nbase_url = '{url}'\nmax_tokens = {most}\ntimeout_sec = 300\n{cold}\n"
    )
}

/// Any text of the model passes through: there are ideas, or a reason why there are none.
#[test]
#[ignore = "needs real counterparts: run by `cargo xtask test`"]
fn whatever_a_real_model_says_is_taken_for_ideas_or_refused() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/counterparts/smollm2.py");
    let (server, site) = (CounterpartServer::smollm2(&script), Site::new(BINARY));
    let ideas = agent(&server, "ideas", "openai-chat", 600);
    site.repo.write("treebeam.toml", &format!("context.ideas = 'none'\n{ideas}")).expect("a file");
    let talk = "--conversation-state-out=talk.json";
    let said = site.call(&["ideas", "--count=2", "--ideas-dir=ideas", "--json", talk]);
    match said.code {
        Some(0) => {
            // Continuing with the model's own text does no harm either.
            let from = "--conversation-state-in=talk.json";
            let more = site.call(&["ideas", "--count=3", "--ideas-dir=ideas", "--json", from]);
            assert!(matches!(more.code, Some(0 | 1)), "{}", more.stderr);
            let document = said.json_lines().remove(0);
            let generated = document["generated"].as_array().expect("a list");
            assert!(!generated.is_empty(), "{document}");
            for idea in generated {
                let name = idea["file"].as_str().expect("a name");
                let text = std::fs::read_to_string(site.repo.path().join("ideas").join(name));
                assert!(text.expect("an idea").starts_with("IDEA:"), "{document}");
            }
        }
        code => {
            assert_eq!(code, Some(1), "{}", said.stderr);
            assert!(said.stderr.contains("error: no idea came: "), "{}", said.stderr);
        }
    }
    let calls = site.repo.path().join(".treebeam/calls");
    assert!(calls.is_dir(), "it was asked: {}", said.stderr);
}
