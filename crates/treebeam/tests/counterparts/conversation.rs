//! A whole eval with imitated models: notes, a plan, a diff that does not apply, one that does, a
//! rejection, a better diff, an approval; and one whose coder is a real coding agent. Everything
//! else is as a user has it.

use crate::door::{BINARY, VARIABLE};
use serde_json::{Value, json};
use treebeam_testkit::counterpart::{CounterpartServer, folder, node};
use treebeam_testkit::program::{SITE_RUN_ID, Site};

/// What is measured: more is better.
const WINDOW: &str = "WINDOW = 10\n";
const SWEEP: &str = r#"sed -n 's/^WINDOW = \(.*\)/config_id,status,gain\n0,ok,\1/p' window.py > "$AGENTIC_RESULTS_CSV""#;

/// Text of the idea, which is in every role's prompt.
const IDEA: &str = "IDEA: Widen the window\nRATIONALE: it is narrow\nREQUIRED_CHANGES: window.py\n";

fn diff(from: &str, to: &str) -> String {
    format!("--- a/window.py\n+++ b/window.py\n@@ -1 +1 @@\n-WINDOW = {from}\n+WINDOW = {to}\n")
}

/// Answers of the models; the first words of a prompt identify the role.
fn script() -> Value {
    let coder = "Implement this idea";
    let reviewer = "Review this change";
    let says = |whom: &str, round: Option<u32>, text: &str| {
        let usage = json!({ "input_tokens": 100, "output_tokens": 10, "prompt_tokens": 100, "completion_tokens": 10 });
        let mut fixture = json!({ "match": { "userMessage": whom }, "response": { "content": text, "usage": usage } });
        if let Some(round) = round {
            fixture["match"]["sequenceIndex"] = json!(round);
        }
        fixture
    };
    let good = format!("Here you are:\n\n```diff\n{}```\nDone.", diff("10", "30"));
    json!({ "fixtures": [
        says("by a planner, a coder and a reviewer", None, "Mind the NOTE-WORTHY window."),
        says("Plan the implementation", None, "PLAN: 1. window.py: a larger one, PLAN-WORTHY\nRISKS: none"),
        says(coder, Some(0), &diff("11", "30")),
        says(coder, Some(1), &good),
        says(coder, Some(2), &diff("30", "20")),
        says(reviewer, Some(0), "VERDICT: REJECT\nISSUES:\n- window.py:1: 30 is TOO-WIDE\nNOTES: none"),
        says(reviewer, Some(1), "VERDICT: APPROVE\nISSUES: none\nNOTES: fine"),
    ]})
}

/// Creates a repository with something to measure, and agents.
fn site(agents: &str) -> Site {
    let site = Site::new(BINARY);
    let config = format!("sweep_command = '''{SWEEP}'''\nscore.primary = 'gain:higher'\n{agents}");
    site.repo.write("window.py", WINDOW).expect("a file");
    site.repo.write("treebeam.toml", &config).expect("a file");
    site.repo.write("idea.md", IDEA).expect("a file");
    site.repo.commit("a window").expect("a commit");
    site.repo.write(".env", &format!("{VARIABLE}=sk-for-tests\n")).expect("a file");
    site
}

fn eval(site: &Site) -> Value {
    let said =
        site.call(&["eval", "--idea", "idea.md", "--run-id", SITE_RUN_ID, "--json", "--quiet"]);
    let document = said.exits(0).json_lines().remove(0);
    document["evals"][0].clone()
}

fn requests(server: &CounterpartServer) -> Vec<Value> {
    server.get("/__aimock/journal").as_array().expect("a journal").clone()
}

#[test]
#[ignore = "needs real counterparts: run by `cargo xtask test`"]
fn four_roles_talk_it_over_in_three_formats() {
    for (provider, version) in [("openai", "/v1"), ("anthropic", ""), ("openai-chat", "/v1")] {
        let server = CounterpartServer::aimock(&script());
        let agent = |role: &str| {
            let url = format!("{}{version}", server.url());
            format!(
                "[agents.{role}]\nprovider = '{provider}'\nmodel = 'm-1'\nbase_url = '{url}'\napi_key_env = '{VARIABLE}'\n"
            )
        };
        let roles = ["coordinator", "planner", "coder", "reviewer"].map(agent).concat();
        let prices = "[prices.m-1]\ninput = 10\noutput = 100\n";
        let site = site(&format!("{prices}{roles}"));
        let eval = eval(&site);
        assert!(eval["error"].is_null(), "{provider}: {eval:#}");
        assert_eq!(eval["approval"], "approved", "{provider}");
        assert_eq!(
            eval["parent_relative"]["primary_delta"], 10.0,
            "{provider}: the last diff counts"
        );
        let commit = eval["commit"].as_str().expect("a commit");
        let shown = site.repo.git(["show", &format!("{commit}:window.py")]).expect("the file");
        assert_eq!(shown, "WINDOW = 20", "{provider}");
        check_what_each_was_told(&site, provider);
        check_what_it_took(&site, provider);
        assert_eq!(requests(&server).len(), 7, "{provider}");
        let _ = site.call(&["resume", SITE_RUN_ID]).exits(0);
        assert_eq!(requests(&server).len(), 7, "{provider}: nothing is asked again");
    }
}

fn check_what_each_was_told(site: &Site, provider: &str) {
    let told = |file: &str| site.text(&format!("eval/0001/experiment/{file}"));
    let check = |file: &str, has: &[&str], has_not: &[&str]| {
        let text = told(file);
        assert!(text.contains("Widen the window"), "{provider}: {file}");
        for part in has {
            assert!(text.contains(part), "{provider}: no {part:?} in {file}: {text}");
        }
        for part in has_not {
            assert!(!text.contains(part), "{provider}: {part:?} in {file}: {text}");
        }
    };
    check("planner_prompt.txt", &["NOTE-WORTHY"], &["PLAN-WORTHY"]);
    check(
        "coder_prompt_round_0.txt",
        &["NOTE-WORTHY", "PLAN-WORTHY", "WINDOW = 10"],
        &["TOO-WIDE"],
    );
    check("coder_prompt_round_1.txt", &["does not apply"], &["TOO-WIDE"]);
    check("coder_prompt_round_2.txt", &["TOO-WIDE", "+WINDOW = 30"], &["does not apply"]);
    check("reviewer_prompt_round_1.txt", &["+WINDOW = 30"], &["TOO-WIDE"]);
    check("reviewer_prompt_round_2.txt", &["TOO-WIDE", "+WINDOW = 20"], &[]);
    for file in [
        "coordinator.md",
        "plan.md",
        "patch_round_0.diff",
        "patch_round_2.diff",
        "review_round_1.md",
    ] {
        assert!(!told(file).is_empty(), "{provider}: {file}");
    }
}

fn check_what_it_took(site: &Site, provider: &str) {
    let eval = &site.manifest()["evaluations"]["0001"];
    let usage = &eval["llm_usage"];
    assert_eq!(usage["calls"], 7, "{provider}: {usage}");
    assert_eq!(
        (&usage["input_tokens"], &usage["output_tokens"]),
        (&json!(700), &json!(70)),
        "{provider}"
    );
    assert_eq!(usage["roles"]["coder"]["calls"], 3, "{provider}");
    // 700 at 10 and 70 at 100 dollars per million.
    assert_eq!(eval["cost_usd"], 0.014, "{provider}");
}

#[test]
#[ignore = "needs real counterparts: run by `cargo xtask test`"]
fn a_real_coding_agent_implements_an_idea() {
    // The agent writes into the worktree of the eval to come.
    let place = Site::new(BINARY);
    let file = place.repo.path().canonicalize().expect("a folder");
    let file = file.join(format!(".treebeam/runs/{SITE_RUN_ID}/cand/0001/wider.py"));
    let word = "Implement this idea";
    let call = json!([{ "name": "Write", "arguments": { "file_path": file, "content": "WINDOW = 20\n" } }]);
    let usage = json!({ "input_tokens": 100, "output_tokens": 20 });
    let server = CounterpartServer::aimock(&json!({ "fixtures": [
        { "match": { "userMessage": word, "hasToolResult": false }, "response": { "toolCalls": call, "usage": usage } },
        { "match": { "userMessage": word, "hasToolResult": true }, "response": { "content": "DONE", "usage": usage } },
    ]}));
    let script = folder("claude").join("node_modules/@anthropic-ai/claude-code/cli-wrapper.cjs");
    let agent = format!(
        "[agents.coder]\nprovider = 'claude'\nedits = 'in_place'\nmodel = 'claude-sonnet-4-5'\nhome = 'scratch'\n\
         command = ['{}', '{}']\nargs = ['--tools', 'Write']\nbase_url = '{}'\napi_key_env = '{VARIABLE}'\n",
        node().get_program().to_string_lossy(),
        script.display(),
        server.url()
    );
    let sweep = r#"printf "config_id,status,gain\n0,ok,$(cat wider.py window.py 2>/dev/null | wc -l)\n" > "$AGENTIC_RESULTS_CSV""#;
    let config = format!("sweep_command = '''{sweep}'''\nscore.primary = 'gain:higher'\n{agent}");
    place.repo.write("window.py", WINDOW).expect("a file");
    place.repo.write("treebeam.toml", &config).expect("a file");
    place.repo.write("idea.md", IDEA).expect("a file");
    place.repo.commit("a window").expect("a commit");
    place.repo.write(".env", &format!("{VARIABLE}=sk-for-tests\n")).expect("a file");
    let eval = eval(&place);
    assert!(eval["error"].is_null(), "{eval:#}");
    assert_eq!((&eval["files_changed"], &eval["approval"]), (&json!(1), &json!("unreviewed")));
    assert_eq!(eval["parent_relative"]["primary_delta"], 1.0);
    let patch = place.text("eval/0001/experiment/patch_round_0.diff");
    assert!(patch.contains("+++ b/wider.py") && patch.contains("+WINDOW = 20"), "{patch}");
    assert_eq!(place.manifest()["evaluations"]["0001"]["llm_usage"]["calls"], 1);
}
