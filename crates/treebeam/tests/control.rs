//! `treebeam run --control best-of-n`: its result, its files, its errors, and that the run is the
//! same with any number of parallel evals and after kills.

#![cfg(test)]

use serde_json::Value;
use std::time::Duration;
use treebeam_testkit::program::{SITE_RUN_ID, Site};

const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");
const FLAGS: [&str; 5] =
    ["--quiet", "--ideas-per-node=4", "--max-depth=2", "--beam-width=1", "--control=best-of-n=0.4"];

fn controlled(more: &[&str]) -> Site {
    let site = Site::new(BINARY);
    site.run(&[&FLAGS[..], more].concat());
    site
}

fn control_evals(site: &Site) -> Vec<(String, Value)> {
    let manifest = site.manifest();
    let evals = manifest["evaluations"].as_object().expect("evals").clone();
    evals.into_iter().filter(|(_, eval)| eval["group"] == "control").collect()
}

#[test]
fn the_run_is_the_same_however_many_are_at_work() {
    let one = controlled(&["--max-parallel-evals=1"]);
    one.must_be_sound();
    for workers in ["--max-parallel-evals=2", "--max-parallel-evals=8"] {
        let many = controlled(&[workers]);
        for report in ["TREE_SUMMARY.md", "TREE_GRAPH.md", "results.tsv"] {
            assert_eq!(one.text(report), many.text(report), "{report} with {workers}");
        }
    }
}

#[test]
fn killed_at_any_moment_it_ends_the_same() {
    let whole = controlled(&[]);
    for millis in [200, 500, 1000] {
        let site = Site::new(BINARY);
        let call = [&["run", "--dry-run", "--run-id", SITE_RUN_ID][..], &FLAGS].concat();
        let _ = site.call_and_kill(&call, Duration::from_millis(millis));
        // The kill may come before or after the run's start: both lead to the same end.
        let _ = site.call(&call).exits(0);
        site.must_be_sound();
        site.must_equal(&whole);
    }
}

#[test]
fn it_is_told_at_the_end_and_is_no_part_of_the_tree() {
    let site = Site::new(BINARY);
    let call = [&["run", "--dry-run", "--run-id", SITE_RUN_ID][..], &FLAGS].concat();
    let said = site.call(&call).exits(0);
    assert!(said.stderr.contains("evals each, "), "{}", said.stderr);
    let evals = control_evals(&site);
    assert_eq!(evals.len(), 5, "two of five beside eight in the tree");
    for (id, eval) in &evals {
        assert_eq!(eval["parent_node_id"], "0000");
        assert!(eval["decision"].is_null() || eval["status"] == "failed", "{eval}");
        assert!(eval["idea_id"].as_str().expect("an id").starts_with("control/"));
        let shown = site.call(&["show", SITE_RUN_ID, &format!("e{id}")]).exits(0).stdout;
        assert!(shown.contains("control: tried on the root for comparison"), "{shown}");
    }
    let results = site.text("results.tsv");
    assert_eq!(results.lines().filter(|line| line.ends_with("\tcontrol")).count(), evals.len());
    let summary = site.text("TREE_SUMMARY.md");
    assert!(summary.contains("## Tree or root alone") && summary.contains("best-of-n=0.4"));
    let log = site.call(&["log", SITE_RUN_ID]).exits(0).stdout;
    assert!(log.contains("asked for ideas to try on the root for comparison"), "{log}");
    let best = &site.call(&["best", SITE_RUN_ID, "--json"]).exits(0).json_lines()[0];
    assert_eq!(best["control"]["control_evals"], 5, "{best}");
    assert_eq!(best["control"]["shared_evals"], 4, "{best}");
    let each = |side: &str| best["control"]["same_spend"][side]["evals"].clone();
    assert_eq!((each("tree"), each("root_alone")), (8.into(), 8.into()), "{best}");
    let in_words = site.call(&["best", SITE_RUN_ID]).exits(0).stdout;
    assert!(in_words.contains("with 8 evals each, "), "{in_words}");
    // A branch of the best path has the tree's ideas alone.
    let exported = site.call(&["export", SITE_RUN_ID, "--branch=best", "--json"]).exits(0).stdout;
    for (id, _) in &evals {
        assert!(!exported.contains(&format!("\"e{id}\"")), "{exported}");
    }
    let end = site.call(&["resume", SITE_RUN_ID, "--json"]).exits(0).json_lines();
    assert_eq!(end.last().expect("an end")["control"], best["control"]);
}

/// Nothing is compared where nothing was tried. With more time the run ends as usual, the control
/// group too.
#[test]
fn a_run_without_time_goes_on_with_both() {
    let (whole, late) = (controlled(&[]), controlled(&["--deadline=1ms"]));
    late.must_be_sound();
    assert_eq!(late.manifest()["evaluations"], serde_json::json!({}), "nothing begins");
    let said = late.call(&["best", SITE_RUN_ID]).exits(0).stdout;
    assert!(
        said.contains("control     nothing to compare between the tree and the root alone"),
        "{said}"
    );
    let _ = late.call(&["resume", SITE_RUN_ID, "--quiet", "--deadline=none"]).exits(0);
    late.must_be_sound();
    late.must_equal(&whole);
    assert_eq!(control_evals(&late).len(), 5);
}

#[test]
fn what_the_run_began_with_stays() {
    let site = controlled(&[]);
    for other in ["--control=best-of-n=0.5", "--control=none"] {
        let said = site.call(&["resume", SITE_RUN_ID, other]).exits(2);
        assert!(said.stderr.contains("would change what the results of this run mean"), "{said:?}");
    }
    let _ =
        site.call(&["resume", SITE_RUN_ID, "--control=best-of-n=0.4", "--max-depth=3"]).exits(0);
    site.must_be_sound();
    assert_eq!(control_evals(&site).len(), 8, "it goes on with the tree");
    let odd = site.call(&["run", "--dry-run", "--control=best-of-n=2"]).exits(2);
    assert!(odd.stderr.contains("from 0.01 to 0.9"), "{}", odd.stderr);
    site.repo.write("other.toml", "replay = 't'\n").expect("a file");
    let once = site.call(&["config", "--config=other.toml"]).exits(2);
    assert!(once.stderr.contains("`--replay` asks for it once"), "{}", once.stderr);
}
