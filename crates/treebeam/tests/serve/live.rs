//! Updates of pages, and their requests, with a real running process.

use super::BINARY;
use super::browser::Serving;
use serde_json::{Value, json};
use std::fs;
use std::thread;
use std::time::{Duration, Instant};
use treebeam_testkit::held::HeldGit;
use treebeam_testkit::program::{SITE_RUN_ID, Signal, Site};

const START: [&str; 7] =
    ["run", "--dry-run", "--run-id", SITE_RUN_ID, "--ideas-per-node=2", "--max-depth=1", "--json"];
const TOKEN: &str = "a-token-of-twenty-letters";

#[track_caller]
fn await_that(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_mins(1), "never: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

fn count(site: &Site, kind: &str) -> usize {
    site.events().iter().filter(|event| event["type"] == kind).count()
}

#[test]
fn a_page_hears_what_happens_and_what_it_asks_for_is_done() {
    let site = Site::new(BINARY);
    let git = HeldGit::new(&site);
    let running = git.begin(&site, &START);
    let serving = Serving::start(&site, &[SITE_RUN_ID], None);
    let page = serving.page("/runs/t");
    let (_, version) = page.split_once("data-version=\"").expect("a version");
    let (version, _) = version.split_once('"').expect("its end");
    assert!(page.contains("Running.") && page.contains("action=\"/runs/t/pause\""), "{page}");
    let mut events = serving.listen(&format!("/runs/t/events?since={version}"), None);
    let _ = events.next("retry: ");

    let answered = serving.post("/runs/t/pause", "");
    assert!(
        answered.status == 200 && answered.body.contains("run t is paused"),
        "{}",
        answered.body
    );
    let changed = events.next("data: ");
    assert!(changed.contains("\"steering\"") && !changed.contains('*'), "{changed}");
    let part = serving.page("/runs/t/part/steering");
    assert!(part.contains("Paused") && part.contains("action=\"/runs/t/unpause\""), "{part}");

    let answered =
        serving.post("/runs/t/idea", "text=Widen+the+%3Cb%3Ewindow%0A%0AIt+is+Zephyr-like&node=");
    assert!(answered.status == 200 && answered.body.contains("the idea"), "{}", answered.body);
    assert!(serving.post("/runs/t/unpause", "").body.contains("run t goes on"));
    let answered = serving.post("/runs/t/stop-after-depth", "");
    assert!(
        answered.status == 200 && answered.body.contains("stops after depth 0"),
        "{}",
        answered.body
    );
    await_that("the page says so", || {
        let part = serving.page("/runs/t/part/steering");
        part.contains("stops after depth 0") && part.contains("action=\"/runs/t/unpause\"")
    });
    git.let_go();
    let _ = running.wait().exits(0);
    assert_eq!((count(&site, "idea_added"), count(&site, "asked")), (1, 3));
    await_that("the page is over", || serving.page("/runs/t/part/steering").contains("Over."));
    let page = serving.page("/runs/t/evals?find=widen");
    assert!(
        page.contains("Widen the &lt;b&gt;window") && page.contains("1 of 3 evals with"),
        "{page}"
    );
    // The search takes words of the whole text, in any case and order; all must match.
    assert!(serving.page("/runs/t/evals?find=zEPHYR+widen").contains("1 of 3 evals with"));
    assert!(serving.page("/runs/t/evals?find=zephyr+e0001").contains("0 of 3 evals with"));
    // One stream reports all changes, the end of each eval included.
    await_that("all has changed", || events.next("data: ").contains('*'));
    site.must_be_sound();
}

#[test]
fn the_pages_of_all_runs_of_evals_and_of_two_hear_what_happens() {
    let site = Site::new(BINARY);
    let git = HeldGit::new(&site);
    let running = git.begin(&site, &START);
    let serving = Serving::start(&site, &[], None);
    let page = serving.page("/");
    assert!(
        page.contains("data-events=\"/events\"") && page.contains("data-from=\"/list\""),
        "{page}"
    );
    let page = serving.page("/runs/t/evals?find=a+b");
    assert!(page.contains("data-events=\"/runs/t/events\""), "{page}");
    assert!(
        page.contains("data-live=\"evals\" data-from=\"/runs/t/evals/list?find=a%20b\""),
        "{page}"
    );
    // A node's page has a line for each eval that was tried on it.
    let page = serving.page("/runs/t/at/n0000");
    assert!(page.contains("data-live=\"n0000 evals\""), "{page}");
    let page = serving.page("/runs/t/compare?first=n0000&second=e0001");
    assert!(page.contains("data-live=\"n0000 e0001\""), "{page}");
    assert!(
        page.contains("data-from=\"/runs/t/compare/both?first=n0000&amp;second=e0001\""),
        "{page}"
    );

    let mut events = serving.listen("/events", None);
    assert_eq!(events.next("data: "), "[\"runs\"]");
    assert!(serving.page("/list").contains("running: process "));
    git.let_go();
    let _ = running.wait().exits(0);
    await_that("the list says that it is over", || {
        assert_eq!(events.next("data: "), "[\"runs\"]");
        serving.page("/list").contains("stopped")
    });
    let part = serving.page("/runs/t/evals/list?find=");
    assert!(part.starts_with("<p") && part.contains("2 evals"), "{part}");
    assert!(
        serving
            .page("/runs/t/compare/both?first=n0000&second=e0001")
            .contains("e0001 against n0000")
    );
    let other = ["run", "--dry-run", "--run-id=u", "--ideas-per-node=1", "--max-depth=1"];
    let _ = site.call(&other).exits(0);
    await_that("another run is in the list", || {
        assert_eq!(events.next("data: "), "[\"runs\"]");
        serving.page("/list").contains("/runs/u")
    });
}

#[test]
fn a_page_finds_a_server_again_that_was_started_anew() {
    let site = Site::new(BINARY);
    let git = HeldGit::new(&site);
    let running = git.begin(&site, &START);
    let first = Serving::start(&site, &[], Some(TOKEN));
    let mut events = first.listen("/runs/t/events", None);
    let seen = events.next("id: ");
    assert_eq!(events.next("data: "), "[\"*\"]");
    let port = format!("--port={}", first.port);
    first.call.signal(Signal::Interrupt);
    let _ = first.call.wait().exits(130);

    let again = Serving::start(&site, &[&port], Some(TOKEN));
    let mut events = again.listen("/runs/t/events", Some(&seen));
    assert_eq!(events.next("data: "), "[\"*\"]");
    // A run that is killed and resumed is the same run.
    running.signal(Signal::Kill);
    let _ = running.wait();
    git.let_go();
    let _ = site.call(&["resume", SITE_RUN_ID]).exits(0);
    await_that("the end", || {
        let _ = events.next("data: ");
        again.page("/runs/t/part/steering").contains("Over.")
    });
    for short in ["short", "with spaces in it, and long enough"] {
        let mut variables = site.repo.variables();
        variables.push(("TREEBEAM_SERVE_TOKEN".into(), short.into()));
        let said = site.call_with(site.repo.path(), variables, &["serve"]).exits(2);
        let _ = said.says(["`TREEBEAM_SERVE_TOKEN` is no token"]);
    }
}

#[test]
fn a_log_comes_to_the_page_as_it_grows() {
    let site = super::finished();
    let serving = Serving::start(&site, &[], None);
    let folder = site.path("eval/0001/experiment");
    fs::create_dir_all(&folder).expect("a folder");
    let log = folder.join("sweep.log");
    let write = |text: &str| fs::write(&log, text).expect("a log");
    write("one <b>\n\u{1b}[31m");
    let page = serving.page("/runs/t/at/e0001/log");
    assert!(page.contains("one &lt;b&gt;\n\\u{1b}[31m"), "{page}");
    let mut events = serving.listen("/runs/t/at/e0001/log/events", None);
    let mut next = || -> Value { serde_json::from_str(&events.next("data: ")).expect("JSON") };
    let first = next();
    assert_eq!(first["text"], "one <b>\n\\u{1b}[31m");
    assert_eq!(
        (&first["anew"], &first["name"]),
        (&json!(true), &json!("eval/0001/experiment/sweep.log"))
    );
    write("one <b>\n\u{1b}[31mtwo\n");
    let second = next();
    assert_eq!((&second["anew"], &second["text"]), (&json!(false), &json!("two\n")));
}

#[test]
fn a_log_is_shown_from_its_end_and_another_one_from_its_beginning() {
    let site = super::finished();
    let serving = Serving::start(&site, &[], None);
    assert!(serving.page("/runs/t/at/n0000").contains("href=\"/runs/t/at/n0000/log\""));
    let folder = site.path("eval/root/experiment");
    fs::create_dir_all(&folder).expect("a folder");
    let write = |name: &str, text: &str| fs::write(folder.join(name), text).expect("a log");
    write("tests.log", &"x".repeat((256 << 10) + 10));
    let without = ", without its first 10 bytes";
    let page = serving.page("/runs/t/at/n0000/log");
    assert!(page.contains(&format!("<span class=\"without\">{without}</span>")), "{page}");
    let mut events = serving.listen("/runs/t/at/n0000/log/events", None);
    let mut next = || -> Value { serde_json::from_str(&events.next("data: ")).expect("JSON") };
    assert_eq!(next()["without"], without);
    write("sweep.log", "one\n");
    let begun = next();
    assert_eq!((&begun["anew"], &begun["without"]), (&json!(true), &json!("")));
}
