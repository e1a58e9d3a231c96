//! Costs with the real program: the order of preconditions before anything is paid for, the
//! messages and questions, and that budgets are recorded with a run.

#![cfg(test)]

use serde_json::{Value, json};
use treebeam_testkit::program::{SITE_RUN_ID, Site};
use treebeam_testkit::server::closed_port;

const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");

/// An agent at a closed port: a call to it would fail visibly.
fn agent(role: &str, model: &str) -> String {
    format!(
        "[agents.{role}]\nprovider = 'openai-chat'\nmodel = '{model}'\nbase_url = 'http://127.0.0.1:{}/v1'\napi_key_env = 'SOME_KEY'\nmax_tokens = 1000\n",
        closed_port()
    )
}

fn configure(site: &Site, text: &str) {
    let text = format!("sweep_command = 'true'\n{text}");
    site.repo.write("treebeam.toml", &text).expect("a file");
}

fn complete(site: &Site, before: &str) {
    let both = format!("{before}{}{}", agent("coder", "gpt-5"), agent("ideas", "gpt-5"));
    configure(site, &both);
    site.repo.write(".env", "SOME_KEY=abc\n").expect("a file");
}

/// Message of a run that has begun: its sweep leaves nothing, and no agent was called.
const BEGUN: &str = "the root cannot be used as a baseline: the sweep succeeded, but wrote no";

#[test]
fn what_a_run_needs_is_asked_for_in_order_and_before_anything_is_paid_for() {
    let site = Site::new(BINARY);
    let run = |code| site.call(&["run"]).exits(code);
    let _ = run(2).says(["`sweep_command` is not set", "or try `treebeam run --dry-run`"]);
    configure(&site, "");
    let _ = run(2).says(["needs an agent for the role `coder`"]);
    configure(&site, &agent("coder", "gpt-5"));
    let _ = run(2).says(["needs an agent for the role `ideas`"]);
    configure(&site, &(agent("coder", "gpt-5") + &agent("ideas", "gpt-5")));
    site.repo.write("litter.txt", "x").expect("a file");
    let _ = run(4).says(["the variable `SOME_KEY` is not set"]);
    complete(&site, "");
    let said = run(4).says(["the working tree is not clean:"]);
    assert!(!said.stderr.contains("a run as configured"), "{}", said.stderr);
    std::fs::remove_file(site.repo.path().join("litter.txt")).expect("no litter");
    assert!(!site.repo.path().join(".treebeam/runs").exists(), "no run was begun");
    let said = run(4).says([
        "note: agents: coder openai-chat gpt-5, ideas openai-chat gpt-5\n",
        "note: a run as configured: about 35 calls, ",
        BEGUN,
    ]);
    assert!(said.stdout.is_empty() && !said.stderr.contains("abc"), "{}", said.stderr);
    let _ = site.call(&["run", "--dry-run", "--max-depth=1"]).exits(0);
}

#[test]
fn what_a_run_may_cost_is_shown_wherever_agents_are() {
    let site = Site::new(BINARY);
    complete(&site, "ideas_per_node = 2\nmax_depth = 1\nmax_review_rounds = 0\n");
    // A question for ideas has 6000 and 1000 tokens; two for a diff 12000 and 1000; each shows
    // 15000 of the repository: at 1.25 and 10 dollars per million.
    let words = "a run as configured: about 3 calls, 78000 tokens, $0.12; at worst 5 calls, 323000 tokens, $0.45";
    let _ = site.call(&["agents"]).exits(0).says([words]);
    let doctor = site.call(&["doctor"]).stdout;
    assert!(doctor.contains(&format!("ok       cost           {words}")), "{doctor}");
    let listed = site.call(&["agents", "--json"]).exits(0).json_lines().remove(0);
    let expected = &listed["estimate"]["expected"];
    assert_eq!((&expected["calls"], &expected["tokens"]), (&json!(3), &json!(78_000)));
    assert_eq!(listed["estimate"]["roles"][1]["role"], "ideas");
    complete(&site, "max_cost_usd = 0.5\n");
    let _ = site.call(&["agents"]).exits(0).says(["; never more than $0.50 (`max_cost_usd`)"]);
    configure(&site, &agent("coder", "my-own"));
    let doctor = site.call(&["doctor"]).stdout;
    assert!(doctor.contains("at a price that is not known"), "{doctor}");
    assert!(doctor.contains("do: add the missing price to `prices`"), "{doctor}");
}

#[test]
fn what_a_budget_cannot_bound_is_said() {
    let site = Site::new(BINARY);
    let program =
        |role: &str| format!("[agents.{role}]\nprovider = 'command'\ncommand = ['true']\n");
    let configure = |budgets: &str| {
        configure(&site, &format!("{budgets}{}{}", program("coder"), program("ideas")));
    };
    let bounds = "bounds nothing, calls of `coder`, `ideas` are not counted: `--max-total-idea-evals` bounds them";
    let cost = format!("; $0.00 (`max_cost_usd`) {bounds}");
    let tokens = format!("; 1 tokens (`max_tokens_total`) {bounds}");
    configure("");
    let flags = ["run", "--max-tokens-total=1", "--max-cost-usd=0.000001"];
    let said = site.call(&flags).exits(4).says([&format!("{cost}{tokens}\n"), BEGUN]);
    assert!(!said.stderr.contains("never more than"), "{}", said.stderr);
    let todo = "do: set `max_total_idea_evals`: what a program takes is counted against no other";
    for budgets in ["", "max_tokens_total = 1\n", ""] {
        configure(budgets);
        let doctor = site.call(&["doctor"]).stdout;
        assert!(doctor.contains("warning  cost           a run as"), "{budgets}: {doctor}");
        assert!(doctor.contains(todo), "{budgets}: {doctor}");
    }
    configure("max_tokens_total = 1\nmax_total_idea_evals = 3\n");
    let doctor = site.call(&["doctor"]).stdout;
    assert!(doctor.contains("ok       cost           a run as"), "{doctor}");
    assert!(doctor.contains(tokens.as_str()), "{doctor}");
}

fn reach_of(event: &Value) -> Value {
    let reach = &event["reach"];
    json!([reach["max_cost_usd"], reach["max_tokens_total"], reach["llm_rate_limit"]])
}

#[test]
fn budgets_are_recorded_and_can_be_changed() {
    let site = Site::new(BINARY);
    let _ = site.run(&["--max-depth=1", "--max-cost-usd=5", "--llm-rate-limit=60"]);
    assert_eq!(reach_of(&site.events()[0]), json!([5.0, null, "60rpm"]));
    let config = &site.manifest()["run_config"];
    assert_eq!((&config["max_cost_usd"], &config["agents"]), (&json!(5.0), &json!({})));
    let _ = site.resume(&["--max-cost-usd=5", "--llm-rate-limit=60rpm"]);
    let changed = |event: &&Value| event["type"] == "settings_changed";
    assert_eq!(site.events().iter().filter(changed).count(), 0, "nothing has changed");
    let said = site.resume(&["--max-cost-usd=none", "--max-tokens-total=900"]).says([
        "note: `max_cost_usd` is none from now on, it was 5: --max-cost-usd",
        "note: `max_tokens_total` is 900 from now on, it was none: --max-tokens-total",
    ]);
    drop(said);
    let events = site.events();
    let changed: Vec<Value> = events.iter().filter(changed).map(reach_of).collect();
    assert_eq!(changed, [json!([null, 900, "60rpm"])]);
    assert!(site.text("TREE_SUMMARY.md").contains("at most 900 tokens"));
}

/// A run that its budget stops with little spent shows what else counted.
#[cfg(unix)]
#[test]
fn what_is_reserved_for_calls_without_an_answer_is_shown() {
    let site = Site::new(BINARY);
    let sweep =
        "sweep_command = \"printf 'config_id,status,gain\\\\n0,ok,1\\\\n' > $AGENTIC_RESULTS_CSV\"";
    let agents = agent("coder", "gpt-5") + &agent("ideas", "gpt-5");
    let config = format!("{sweep}\nmax_cost_usd = 1\n[score]\nprimary = 'gain'\n{agents}");
    site.repo.write("treebeam.toml", &config).expect("a file");
    site.repo.write(".env", "SOME_KEY=abc\n").expect("a file");
    let _ = site.call(&["run", "--run-id", SITE_RUN_ID, "--max-cost-usd=0.000001"]);
    let status = || site.call(&["status", SITE_RUN_ID]).exits(0).stdout;
    assert!(!status().contains("reserved"), "{}", status());
    let lost = r#"{"amount":{"cost":999000000000,"tokens":7}}"#;
    let calls = site.path("node_ideas/0000/calls");
    std::fs::create_dir_all(&calls).expect("a folder");
    std::fs::write(calls.join("ideas.lost-1"), lost).expect("a file");
    let words = "$0.999000 for calls that brought no answer";
    assert!(status().contains(&format!("reserved    {words}")), "{}", status());
    let said = site.call(&["resume", SITE_RUN_ID, "--max-cost-usd=1"]);
    let _ = said.says(["stopped: max_cost_reached", &format!("reserved: {words}")]);
    let status = site.call(&["status", SITE_RUN_ID, "--json"]).exits(0).json_lines().remove(0);
    assert_eq!(status["unanswered"], json!({ "cost_usd": 0.999, "tokens": 7 }));
}

#[cfg(unix)]
mod terminal {
    use super::*;

    /// Calls the program on a terminal, answers its question if it has one, and prints the screen's
    /// output.
    const ASK: &str = "import os, pty, sys\n\
        answer = sys.argv[1].encode()\n\
        pid, terminal = pty.fork()\n\
        if pid == 0: os.execv(sys.argv[2], sys.argv[2:])\n\
        said = b''\n\
        try:\n    while True:\n        more = os.read(terminal, 1000)\n        if not more: break\n        \
                said += more\n        if b'[y/N]' in said and answer != b'-':\n            \
                    os.write(terminal, answer + b'\\n'); answer = b'-'\n\
        except OSError: pass\n\
        sys.stdout.buffer.write(said)\n\
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n";

    #[test]
    fn somebody_at_a_terminal_is_asked_where_it_may_cost_much() {
        let site = Site::new("python3");
        let check = |config: &str, answer: &str, flags: &[&str], asked: bool, says: &str| {
            complete(&site, config);
            let words = [&["-c", ASK, answer, BINARY, "run"], flags].concat();
            let said = site.call(&words).exits(if says == BEGUN { 4 } else { 2 }).stdout;
            assert_eq!(said.contains("start it? [y/N]"), asked, "{config} {flags:?}: {said}");
            assert!(said.contains(says), "{config} {flags:?}: {said}");
        };
        let dear = "confirm_above_usd = 0.01\n";
        check(dear, "n", &[], true, "not started: nothing was asked and nothing was paid for");
        check(dear, "", &[], true, "not started");
        check(dear, "y", &[], true, BEGUN);
        check(dear, "n", &["--yes"], false, BEGUN);
        check("confirm_above_usd = 1000\n", "n", &[], false, BEGUN);
        check("confirm_above_usd = 'none'\n", "n", &[], false, BEGUN);
        let free = "[prices.gpt-5]\ninput = 0\noutput = 0\n";
        check(&format!("{dear}{free}"), "n", &[], false, BEGUN);
    }

    #[test]
    fn a_price_that_nobody_knows_and_nothing_bounds_counts_as_much() {
        let site = Site::new("python3");
        let call = |before: &str| {
            complete(&site, "");
            let text = agent("coder", "my-own") + &agent("ideas", "gpt-5");
            configure(&site, &format!("{before}{text}"));
            site.call(&["-c", ASK, "n", BINARY, "run"]).stdout
        };
        assert!(call("").contains("[y/N]"));
        assert!(call("max_tokens_total = 1000\n").contains(BEGUN));
    }
}
