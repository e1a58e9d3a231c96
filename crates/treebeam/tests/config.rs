//! The configuration file of a run: its effect on a new run, and that it cannot change an old one.

#![cfg(test)]

use treebeam_testkit::program::{SITE_RUN_ID, Site};

const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");
const CONFIG: &str = "[score]\nid_column = \"seed\"\nstatus_column = \"state\"\nprimary = \"loss:lower\"\n\
    metrics = [\n  { column = \"memory\", direction = \"lower\", guard = true },\n]\n[gate]\nmin_rows = 5\n";

/// Creates a repository with this configuration committed.
fn site(config: &str) -> Site {
    let site = Site::new(BINARY);
    commit(&site, config);
    site
}

fn commit(site: &Site, config: &str) {
    site.repo.write("treebeam.toml", config).expect("a file");
    site.repo.commit("configuration").expect("a commit");
}

#[test]
fn a_run_takes_its_metrics_and_gate_from_the_file() {
    let site = site(CONFIG);
    site.run(&["--ideas-per-node=8", "--max-depth=3", "--beam-width=2"]);
    let root = site.text("artifacts/root.csv");
    assert!(root.starts_with("seed,state,loss,memory\n0,ok,1,0.2\n"), "{root}");
    let run_config = site.manifest()["run_config"].to_string();
    assert!(run_config.contains("\"loss\""), "{run_config}");
    // A search like any other: some candidates get through and some do not.
    let results = site.text("results.tsv");
    for word in ["\tpromoted\t", "\tpassed\t", "\trejected\t", "\tfailed\t"] {
        assert!(results.contains(word), "no {word:?} in:\n{results}");
    }
    assert!(results.contains("malformed: lacks columns of the root: loss"), "{results}");
    let best = site.call(&["status", SITE_RUN_ID, "--json"]).json_lines()[0]["best"].clone();
    assert_ne!(best, "n0000");
}

#[test]
fn what_a_run_means_cannot_be_changed_by_the_file() {
    let site = site(CONFIG);
    site.run(&["--ideas-per-node=3", "--max-depth=1"]);
    site.resume(&[]);
    let refused = |config: &str, said: &str| {
        site.repo.write("treebeam.toml", config).expect("a file");
        for call in [vec!["resume", SITE_RUN_ID], vec!["run", "--dry-run", "--run-id", SITE_RUN_ID]]
        {
            let _ = site
                .call(&call)
                .exits(2)
                .says([said, "hint: set the key back, or start another run"]);
        }
    };
    refused(
        "[score]\nprimary = \"accuracy\"\n",
        "error: `treebeam.toml`, line 2: `score.primary`: accuracy:higher would change what the results of this run mean: it began with loss:lower",
    );
    // Only the primary differs: the message does not name the list, though the primary is added to
    // it.
    refused(
        &CONFIG.replace("loss:lower", "memory"),
        "error: `treebeam.toml`, line 4: `score.primary`: memory:lower would change what the results of this run mean: it began with loss:lower",
    );
    refused(
        &CONFIG.replace(", guard = true", ""),
        "`score.metrics`: memory (lower, 1) would change what the results of this run mean: it began with memory (lower, 1, guarded)",
    );
    refused(
        "[gate]\n\nmin_rows = 6\n",
        "error: `treebeam.toml`, line 3: `gate.min_rows`: 6 would change what the results of this run mean: it began with 5",
    );
    site.repo.write("treebeam.toml", "[score]\nprimary = \"loss:lower\"\n").expect("a file");
    site.resume(&[]);
    // Another file can be named; an empty one changes nothing.
    let other = site.repo.beside("other.json");
    std::fs::write(&other, r#"{"score": {"id_column": "id"}}"#).expect("a file");
    let other = other.display().to_string();
    let _ = site
        .call(&["resume", SITE_RUN_ID, "--config", &other])
        .exits(2)
        .says(["`score.id_column`: id would"]);
    std::fs::remove_file(site.repo.path().join("treebeam.toml")).expect("to remove a file");
    site.resume(&[]);
}

#[test]
fn a_wrong_file_starts_nothing() {
    let site = site("[score]\nprimry = \"loss\"\n");
    let said = site.call(&["run", "--dry-run", "--run-id", SITE_RUN_ID]).exits(2);
    let _ = said.says([
        "`treebeam.toml`, line 2: `score.primry`: there is no such key; nearest: `primary`",
    ]);
    assert!(!site.path("journal.jsonl").exists());
}
