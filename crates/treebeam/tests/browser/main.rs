//! Tests the pages of `treebeam serve` in a real browser, with a real running process:
//! `dashboard.mjs` reads and clicks. `cargo xtask test` installs the browser, or prints why it
//! cannot.

#![cfg(test)]
#![cfg(unix)]

use std::env;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Stdio;
use treebeam_testkit::counterpart;
use treebeam_testkit::held::HeldGit;
use treebeam_testkit::program::{SITE_RUN_ID, Site};

const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");
const START: [&str; 6] =
    ["run", "--dry-run", "--run-id", SITE_RUN_ID, "--ideas-per-node=3", "--max-depth=2"];
const TOKEN: &str = "a-token-of-twenty-letters";

/// Starts the server, and waits for its address.
fn serve(site: &Site) -> (treebeam_testkit::program::Call, String) {
    let mut variables = site.repo.variables();
    variables.push(("TREEBEAM_SERVE_TOKEN".into(), TOKEN.into()));
    let call = site.begin_with(variables, &["serve", SITE_RUN_ID]);
    call.await_said("Ctrl-C ends it");
    let address = call.said_so_far().trim_end().to_owned();
    (call, address)
}

#[test]
#[ignore = "needs a browser: `cargo xtask test`"]
fn a_run_is_seen_and_steered_in_a_real_browser() {
    let browser = env::var_os("TREEBEAM_BROWSER").expect("`TREEBEAM_BROWSER` names no browser");
    let site = Site::new(BINARY);
    let git = HeldGit::new(&site);
    let running = git.begin(&site, &START);
    let (_serving, address) = serve(&site);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser/dashboard.mjs");
    let mut looking = counterpart::node();
    looking.arg(script).arg(counterpart::folder("browser")).arg(browser).arg(address);
    looking.arg(site.path("report.html")).stdout(Stdio::piped());
    let mut looking = looking.spawn().expect("node");
    let mut lines = BufReader::new(looking.stdout.take().expect("its output")).lines();
    let mut next = || lines.next().and_then(Result::ok);
    assert_eq!(next().as_deref(), Some("steered"), "see above what was not there");
    git.let_go();
    assert_eq!(next().as_deref(), Some("stopped"), "see above what was not there");
    let _ = running.wait().exits(130);
    let _ = site.call(&["resume", SITE_RUN_ID]).exits(0);
    let last = next();
    assert!(looking.wait().expect("node").success(), "see above what was not there");
    assert_eq!(last.as_deref(), Some("seen"));
    let kinds: Vec<_> = site.events().iter().map(|event| event["type"].to_string()).collect();
    assert_eq!(kinds.iter().filter(|kind| *kind == "\"idea_added\"").count(), 1);
    site.must_be_sound();
}
