//! A run whose agent server is overloaded from the first question on, with the real program: it
//! waits, `status` shows that, a deadline ends the wait in order, and the run continues when the
//! server is back.

#![cfg(test)]
#![cfg(unix)]

use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use treebeam_testkit::program::{SITE_RUN_ID, Site};
use treebeam_testkit::server::{Act, Server};

const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");
const PATIENCE: Duration = Duration::from_mins(2);

const AGENT: &str = r#"import os, random, sys
sys.stdin.read()
if os.environ["TREEBEAM_ROLE"] == "ideas":
    print(f"IDEA: gain {random.random()}\nRATIONALE: luck\nREQUIRED_CHANGES: gain.txt\n")
else:
    here = open("gain.txt").read().strip()
    print(f"--- a/gain.txt\n+++ b/gain.txt\n@@ -1 +1 @@\n-{here}\n+{int(here) + 7}")
"#;

const SWEEP: &str = r#"import os
gain = int(open("gain.txt").read())
with open(os.environ["AGENTIC_RESULTS_CSV"], "w") as out:
    out.write("config_id,status,gain\n")
    for config in range(4):
        out.write(f"{config},ok,{1000 + gain + config}\n")
"#;

/// A repository whose coordinator is behind this server.
fn site(url: &str) -> Site {
    let site = Site::new(BINARY);
    let program = |role: &str| {
        format!("[agents.{role}]\nprovider = 'command'\ncommand = ['python3', 'agent.py']\n")
    };
    let config = format!(
        "sweep_command = ['python3', 'sweep.py']\nideas_per_node = 1\nmax_depth = 1\n\
         [score]\nprimary = 'gain'\n[[score.metrics]]\ncolumn = 'gain'\n\
         [agents.coordinator]\nprovider = 'openai-chat'\nmodel = 'm'\nbase_url = '{url}/v1'\n{}{}",
        program("coder"),
        program("ideas")
    );
    for (name, text) in [
        ("treebeam.toml", config.as_str()),
        ("agent.py", AGENT),
        ("sweep.py", SWEEP),
        ("gain.txt", "0\n"),
    ] {
        site.repo.write(name, text).expect("a file");
    }
    site.repo.commit("a state").expect("a commit");
    site
}

fn status(site: &Site) -> Value {
    site.call(&["status", SITE_RUN_ID, "--json"]).exits(0).json_lines().remove(0)
}

/// Returns the status of a run as soon as a question waits.
fn status_once_it_waits(site: &Site) -> Value {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        if site.path("journal.jsonl").exists() {
            let status = status(site);
            if status["waiting"] != json!([]) {
                return status;
            }
        }
        thread::sleep(Duration::from_millis(200));
    }
    panic!("nothing waits");
}

#[test]
fn a_run_that_waits_for_a_server_says_so_and_ends_in_order() {
    let is_up = Arc::new(AtomicBool::new(false));
    let up = Arc::clone(&is_up);
    let server = Server::start(move |_| {
        if !up.load(Ordering::SeqCst) {
            return Act::answer(503, &[("retry-after", "0")], "{}");
        }
        let choice = json!({"message": {"content": "Take care."}, "finish_reason": "stop"});
        Act::answer(200, &[], &json!({"id": "c", "choices": [choice]}).to_string())
    });
    let site = site(&server.url());
    let run = ["run", "--run-id", SITE_RUN_ID, "--quiet", "--deadline=25s"];
    let call = site.begin(&run);
    let told = status_once_it_waits(&site);
    let waiting = &told["waiting"][0];
    assert_eq!(waiting["role"], "coordinator", "{told}");
    assert!(waiting["why"].as_str().is_some_and(|why| why.contains("answered 503")), "{told}");
    assert!(told["running"].is_string(), "{told}");
    let text = site.call(&["status", SITE_RUN_ID]).exits(0).stdout;
    assert!(text.contains("\nwaits       coordinator since "), "{text}");
    let _ = call.end(PATIENCE).exits(0).says(["stopped: deadline_reached"]);
    assert!(server.hits().len() < 10, "{}", server.hits().len());
    site.must_be_sound();
    assert_eq!(status(&site)["waiting"], json!([]));
    is_up.store(true, Ordering::SeqCst);
    let _ =
        site.call(&["resume", SITE_RUN_ID, "--quiet", "--deadline=none", "--max-depth=2"]).exits(0);
    site.must_be_sound();
    assert_eq!(site.manifest()["state"]["stop_reason"], "max_depth_reached");
}

#[test]
fn a_server_is_given_up_when_the_configured_patience_is_over() {
    let server = Server::start(|_| Act::answer(503, &[], "{}"));
    let site = site(&server.url());
    let config = site.repo.path().join("treebeam.toml");
    let text = std::fs::read_to_string(&config).expect("the configuration");
    std::fs::write(&config, format!("outage_patience = '0s'\n{text}")).expect("a file");
    let call = site.begin(&["run", "--run-id", SITE_RUN_ID, "--quiet"]);
    let _ = call.end(PATIENCE).exits(4).says([
        "the run stopped while implementing e0001",
        "`coordinator`",
        "answered 503",
        "6 times",
        "go on later",
    ]);
    assert_eq!(server.hits().len(), 6);
    site.must_be_sound();
}
