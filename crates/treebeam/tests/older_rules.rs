//! A run recorded by an older version, by the first rules: its decisions stand, validation reports
//! what today's rules would decide otherwise, and new depths follow today's rules.

#![cfg(test)]

use std::fs;
use treebeam_testkit::older_run::{LATER_FIELDS, write_as_older_run};
use treebeam_testkit::program::{SITE_RUN_ID, Site};

const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");

fn searched(depths: &str) -> Site {
    let site = Site::new(BINARY);
    let flags = ["--quiet", "--ideas-per-node=16", "--beam-width=1", depths];
    site.run(&flags);
    site
}

/// Changes the last bit of a primary of an eval's results, in each copy of them.
fn nudge(site: &Site, eval: &str, primary: &str) {
    let copies = [
        format!("artifacts/e{eval}.csv"),
        format!("eval/{eval}/experiment/meta_config_sweep_results.csv"),
    ];
    for name in copies {
        let text = site.text(&name);
        let (header, rows) = text.split_once('\n').expect("rows");
        let (first, rest) = rows.split_once('\n').expect("a row");
        let column = header.split(',').position(|name| name == primary).expect("the primary");
        let cells = first.split(',').enumerate().map(|(at, cell)| {
            if at != column {
                return cell.to_owned();
            }
            cell.parse::<f64>().expect("a number").next_up().to_string()
        });
        let first = cells.collect::<Vec<_>>().join(",");
        fs::remove_file(site.path(&name)).expect("to remove");
        fs::write(site.path(&name), format!("{header}\n{first}\n{rest}")).expect("to write");
    }
}

#[test]
fn an_older_run_stands_and_goes_on_by_todays_rules() {
    let site = searched("--max-depth=1");
    let manifest = site.manifest();
    let evals = manifest["evaluations"].as_object().expect("evals");
    let without_effect = evals.iter().find(|(_, eval)| {
        let reason = eval["decision"]["promotion_reason"].as_str().unwrap_or_default();
        reason.starts_with("no_effect")
    });
    let eval = without_effect.expect("a candidate without effect").0.clone();
    let primary = manifest["run_config"]["score"]["primary"].as_str().expect("a name").to_owned();
    nudge(&site, &eval, &primary);
    write_as_older_run(&site);

    let resumed = site.call(&["resume", SITE_RUN_ID, "--quiet", "--max-depth=2"]).exits(0);
    assert!(resumed.stderr.contains("newer rules of scoring"), "{}", resumed.stderr);
    let kinds: Vec<_> = site.events().into_iter().map(|event| event["type"].clone()).collect();
    assert_eq!(kinds.iter().filter(|kind| *kind == "rules_changed").count(), 1);

    let after = site.manifest();
    for (id, eval) in after["evaluations"].as_object().expect("evals") {
        let Some(version) = eval["rules_version"].as_u64() else { continue };
        let expected = if eval["depth"] == 0 { 1 } else { 2 };
        assert_eq!(version, expected, "{id}");
    }
    let passed = &after["evaluations"][&eval]["decision"]["passed_gate"];
    assert_eq!(passed, true, "rounding was an effect then");

    let said = site.call(&["validate", SITE_RUN_ID]).exits(0).says(["is sound; warnings: 1"]);
    for text in [&eval, "today's rules would decide otherwise: no_effect: ", "(recorded: passed"] {
        assert!(said.stderr.contains(text), "no {text:?} in {}", said.stderr);
    }
    let again = site.call(&["resume", SITE_RUN_ID, "--quiet"]).exits(0);
    assert!(!again.stderr.contains("newer rules"), "{}", again.stderr);
}

/// A run by the first rules that today's rules would not change is sound without a note.
#[test]
fn an_older_run_that_is_not_touched_is_sound() {
    let site = searched("--max-depth=2");
    write_as_older_run(&site);
    let said = site.call(&["validate", SITE_RUN_ID, "--json"]).exits(5).json_lines().remove(0);
    let findings = said["findings"].as_array().expect("findings");
    let places: Vec<_> = findings.iter().map(|finding| &finding["what"]).collect();
    assert_eq!(places, ["the manifest is missing"], "nothing else");
    let _ = site.call(&["resume", SITE_RUN_ID, "--quiet"]).exits(0);
    let manifest = site.text("manifest.json");
    for field in LATER_FIELDS {
        assert!(!manifest.contains(&format!("\"{field}\"")), "older manifests have no `{field}`");
    }
    let _ = site.call(&["validate", SITE_RUN_ID]).exits(0).says(["is sound"]);
}
