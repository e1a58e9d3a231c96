//! `treebeam serve` over real connections: strangers are refused at every address, reading changes
//! nothing, pages are updated, and requests reach the process of the run.

#![cfg(test)]
#![cfg(unix)]

mod browser;
mod hostile;
mod live;
mod strangers;

use browser::Serving;
use serde_json::Value;
use std::collections::BTreeMap;
use treebeam_testkit::program::{SITE_RUN_ID, Signal, Site};

const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");

/// Makes a finished run.
fn finished() -> Site {
    let site = Site::new(BINARY);
    let said = site.run(&["--ideas-per-node=3", "--max-depth=2", "--beam-width=1"]);
    let _ = said.exits(0);
    site
}

/// Returns all files of the run, but for its worktrees.
fn snapshot(site: &Site) -> BTreeMap<String, Vec<u8>> {
    let mut files = site.files(".");
    files.retain(|path, _| !path.starts_with("./wt/"));
    files
}

/// Returns a file that is on record.
fn idea_file(site: &Site) -> String {
    let path = site.manifest()["evaluations"]["0001"]["idea_path"].clone();
    path.as_str().expect("a path").to_owned()
}

/// Returns every address, with names of the run filled in, and its method.
fn routes(site: &Site) -> Vec<(String, String)> {
    let document: Value =
        serde_json::from_str(&site.call(&["schema", "routes"]).exits(0).stdout).expect("JSON");
    let text = |route: &Value, name: &str| route[name].as_str().expect("text").to_owned();
    let fill = |path: String| {
        let path = path
            .replace("{run}", SITE_RUN_ID)
            .replace("{place}", "e0001")
            .replace("{part}", "costs");
        match path.rsplit('/').next() {
            Some("both") => path + "?first=n0000&second=e0001",
            Some("file") => path + "?path=" + &idea_file(site),
            _ => path,
        }
    };
    let routes = document["routes"].as_array().expect("a list").iter();
    let routes: Vec<_> =
        routes.map(|route| (text(route, "method"), fill(text(route, "path")))).collect();
    assert!(routes.len() > 20);
    routes
}

#[test]
fn every_page_is_there_and_looking_changes_nothing() {
    let site = finished();
    let before = snapshot(&site);
    let serving = Serving::start(&site, &[], None);
    for (method, path) in routes(&site) {
        if path.ends_with("/events") {
            let mut events = serving.listen(&path, None);
            assert_eq!(events.next("HTTP/1.1 "), "200 OK", "{path}");
        } else if method == "GET" {
            let page = serving.page(&path);
            assert!(!page.is_empty(), "{path}");
        } else {
            let answered = serving.post(&path, "text=Widen+it");
            assert!([400, 409].contains(&answered.status), "{path}: {}", answered.status);
            assert!(answered.body.contains("over"), "{path}: {}", answered.body);
        }
    }
    let page = serving.page("/");
    assert!(page.contains("<a href=\"/runs/t\">t</a>"), "{page}");
    // All columns of `treebeam list`, but for the age, which grows.
    let line = site.call(&["list"]).exits(0).stdout.lines().nth(1).map(str::to_owned);
    let line = line.expect("a run");
    let cells = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty());
    let figures: Vec<_> = cells.skip(2).collect();
    assert_eq!(figures.len(), 6, "{line}");
    for said in figures {
        assert!(page.contains(&format!(">{said}</td>")), "no {said:?} in {page}");
    }
    let page = serving.page("/runs/t");
    assert!(page.contains("href=\"/runs/t/at/e0001\"") && page.contains("Over."), "{page}");
    assert!(!page.contains("/runs/t/pause") && page.contains("nothing is left to steer"), "{page}");
    assert!(page.contains("<details class=\"idea-form\" hidden>"), "{page}");
    let page = serving.page("/runs/t/at/e0001");
    assert!(page.contains("href=\"/runs/t/at/n0000\"") && page.contains("Gate: "), "{page}");
    let page = serving.page("/runs/t/at/n0000");
    assert!(page.contains("<a>node_ideas/0000</a>"), "a folder has no page: {page}");
    for file in ["ideas-n0000-x1-a1_prompt.txt", "ideas-n0000-x1-a1.txt"] {
        assert!(page.contains(&format!("<code>{file}</code>")), "no {file} in {page}");
    }
    let page = serving.page("/runs/t/compare?first=n0000&second=e0001");
    assert!(page.contains("e0001 against n0000"), "{page}");
    let page = serving.page("/runs/t/evals?find=e0002");
    let all = site.manifest()["evaluations"].as_object().expect("evals").len();
    assert!(page.contains(&format!("1 of {all} evals with “e0002”")), "{page}");
    assert!(!page.contains("at/e0001"), "{page}");
    assert!(serving.page("/runs/t/validation").contains("Nothing found."));
    assert_eq!(snapshot(&site), before, "to look has changed something");
}

#[test]
fn the_one_line_for_programs_fits_its_schema() {
    let site = finished();
    let schema = serde_json::from_str(&site.call(&["schema", "serve"]).exits(0).stdout);
    let mut schema: Value = schema.expect("a schema");
    assert!(jsonschema::meta::is_valid(&schema));
    schema["additionalProperties"] = false.into();
    let serving = Serving::start(&site, &[], None);
    let line: Value = serde_json::from_str(&serving.call.said_so_far()).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    assert!(validator.is_valid(&line), "{line}");
    for field in ["schema", "url", "host", "port"] {
        let mut without = line.clone();
        without.as_object_mut().expect("an object").remove(field);
        assert!(!validator.is_valid(&without), "it does without {field}");
    }
}

#[test]
fn ctrl_c_ends_it_at_once_whoever_listens() {
    let site = finished();
    let serving = Serving::start(&site, &[SITE_RUN_ID], None);
    let mut events = serving.listen("/runs/t/events", None);
    let _ = events.next("retry: ");
    serving.call.signal(Signal::Interrupt);
    let said = serving.call.wait().exits(130);
    assert_eq!(said.stdout.lines().count(), 1, "{}", said.stdout);
}

#[test]
fn where_it_cannot_listen_it_says_so() {
    let site = finished();
    let serving = Serving::start(&site, &[], None);
    let port = format!("--port={}", serving.port);
    let said = site.call(&["serve", &port]).exits(4);
    let _ = said.says(["cannot listen at 127.0.0.1", "hint: leave `--port` out"]);
    let _ = site
        .call(&["serve", "--host=0.0.0.0"])
        .exits(2)
        .says(["no address that a browser could call"]);
    let _ = site.call(&["serve", "nope"]).exits(2);
    serving.call.signal(Signal::Interrupt);
    let _ = serving.call.wait().exits(130);
}
