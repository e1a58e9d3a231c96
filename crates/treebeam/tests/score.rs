//! `treebeam score`: its output, its errors, and that it needs nothing but the two files.

#![cfg(test)]

use serde_json::Value;
use std::fs;
use std::path::Path;
use treebeam_testkit::program::{Said, Site};
use treebeam_testkit::repo::TempRepo;

const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");

const BASE: &str = "config_id,status,loss,accuracy,memory,note\n\
    0,ok,1.0,0.50,100,a\n1,ok,1.2,0.52,100,b\n2,ok,0.9,0.54,110,c\n3,ok,1.1,0.50,90,d\n";
const BETTER: &str = "config_id,status,loss,accuracy,memory,note\n\
    0,ok,0.8,0.55,100,a\n1,ok,1.0,0.52,105,b\n2,ok,0.9,0.50,110,c\n3,ok,1.2,0.61,95,d\n";
const WORSE: &str = "config_id,status,loss,accuracy,memory,note\n\
    0,ok,1.4,0.50,150,a\n1,error,nan,,,\n2,ok,1.3,0.54,150\n3,ok,1.5,0.49,150,d\n";
const CONFIG: &str = "[score]\nprimary = \"loss:lower\"\nmetrics = [\n\
    \x20 { column = \"accuracy\", weight = 0.5 },\n\
    \x20 { column = \"memory\", direction = \"lower\", weight = 0.25, guard = true },\n\
    \x20 { column = \"note\" },\n]\n";

macro_rules! snapshot {
    ($name:literal, $text:expr) => {
        insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!($name, $text);
        })
    };
}

/// A folder that is no repository, with these files beside two good ones.
fn folder(files: &[(&str, &str)]) -> Site {
    let folder = TempRepo::folder("plain").expect("a folder");
    for (name, text) in [("base.csv", BASE), ("better.csv", BETTER), ("worse.csv", WORSE)] {
        folder.write(name, text).expect("a file");
    }
    for (name, text) in files {
        folder.write(name, text).expect("a file");
    }
    Site::from_repo(folder, BINARY)
}

fn score(site: &Site, arguments: &str) -> Said {
    let arguments: Vec<&str> = arguments.split_whitespace().collect();
    site.call(&[&["score"], arguments.as_slice()].concat())
}

fn document(said: &Said) -> Value {
    let lines = said.json_lines();
    assert_eq!(lines.len(), 1, "{}", said.stdout);
    lines[0].clone()
}

#[test]
fn a_person_gets_a_table() {
    let site = folder(&[("treebeam.toml", CONFIG)]);
    let better = score(&site, "base.csv better.csv").exits(0);
    assert_eq!(better.stderr, "");
    assert!(!better.stdout.contains('\u{1b}'), "colours where nobody sees them");
    snapshot!("score_better", better.stdout);
    snapshot!("score_worse", score(&site, "base.csv worse.csv --limit 4").exits(0).stdout);
    snapshot!("score_same", score(&site, "base.csv base.csv --limit 1").exits(0).stdout);
    snapshot!("score_nothing", score(&site, "base.csv better.csv --limit 0").exits(0).stdout);
}

#[test]
fn a_program_gets_one_document() {
    let site = folder(&[("treebeam.toml", CONFIG)]);
    let said = score(&site, "base.csv better.csv --json").exits(0);
    assert_eq!(said.stderr, "");
    snapshot!("score_json", format!("{:#}\n", document(&said)));
}

#[test]
fn a_primary_without_numbers_is_missing_and_one_without_a_column_is_an_error() {
    let site = folder(&[]);
    let said = score(&site, "base.csv better.csv --primary note --json").exits(0);
    let document = document(&said);
    assert_eq!(document["primary_delta"], Value::Null);
    assert_eq!(document["paired"], Value::Null);
    assert_eq!(document["gate"]["passed"], false);
    let reason = document["gate"]["reason"].as_str().expect("a reason");
    assert!(reason.starts_with("primary_missing: "), "{reason}");
    let _ = score(&site, "base.csv better.csv --primary los:lower").exits(1).says([
        "error: `base.csv` has no column `los`, the primary metric; nearest: `loss`",
        "hint: choose the primary with `--primary COL`",
    ]);
    // A preset's primary may be absent.
    let preset = score(&site, "base.csv better.csv --preset trading --json").exits(0);
    assert_eq!(self::document(&preset)["primary_delta"], Value::Null);
}

#[test]
fn a_first_contact_with_other_columns_than_the_presets() {
    let site = folder(&[]);
    let hint = "hint: choose a metric with `--primary COL`, or `COL:lower` where lower is better; \
        both files have numbers in `loss`, `accuracy`, `memory`\n";
    let said = score(&site, "base.csv better.csv").exits(0);
    assert_eq!(said.stderr, hint);
    assert!(
        said.stdout.contains("missing     15 of 15 metrics without numbers"),
        "{}",
        said.stdout
    );
    assert_eq!(score(&site, "base.csv better.csv --json").exits(0).stderr, hint);
    assert_eq!(score(&site, "base.csv better.csv --limit 0").exits(0).stderr, "");
    for direction in ["down", "Lower"] {
        let said =
            score(&site, &format!("base.csv better.csv --primary loss:{direction}")).exits(1);
        let _ = said.says(["hint: a direction after `:` is only `higher` or `lower`"]);
    }
    let _ = score(&site, "base.csv -").exits(2).says(["error: `-`: standard input is not read"]);
}

#[test]
fn what_is_wrong_with_a_file_is_said_of_both() {
    let percent = "config_id,status,loss\n0,ok,10%\n0,ok,\"1,5\"\n2,error,x,y\n";
    let site = folder(&[("percent.csv", percent)]);
    let said = score(&site, "percent.csv base.csv --primary loss:lower").exits(0);
    for line in [
        "baseline    percent.csv: 3 rows used; 1 ragged row, 1 repeated id, 1 row not ok\n",
        "candidate   base.csv: 4 rows used\n",
        "            the primary `loss` has no number in percent.csv\n",
        "missing     1 of 1 metric without numbers on both sides: loss\n",
    ] {
        assert!(said.stdout.contains(line), "{line}{}", said.stdout);
    }
    let both = score(&site, "percent.csv percent.csv --primary loss:lower").exits(0);
    let line = "the primary `loss` has no number in percent.csv and in percent.csv\n";
    assert!(both.stdout.contains(line), "{}", both.stdout);
    let document = document(&score(&site, "base.csv percent.csv --primary loss:lower --json"));
    assert_eq!(document["baseline_form"]["ragged_rows"], 0);
    let form = &document["candidate_form"];
    let rows = ["ragged_rows", "duplicate_ids", "rows_not_ok"].map(|key| form[key].as_u64());
    assert_eq!(rows, [Some(1); 3]);
}

#[test]
fn rows_without_ids_beside_rows_with_ids_are_told() {
    let bare = "loss\n1.0\n1.1\n0.9\n1.2\n";
    let site = folder(&[("bare.csv", bare)]);
    let note = "note: `bare.csv` has no column `config_id`: its rows, counted from 0, are paired with the ids of `base.csv`\n";
    for files in ["base.csv bare.csv", "bare.csv base.csv"] {
        let _ = score(&site, &format!("{files} --primary loss:lower")).exits(0).says([note]);
    }
    for files in ["base.csv better.csv", "bare.csv bare.csv"] {
        let said = score(&site, &format!("{files} --primary loss:lower")).exits(0);
        assert!(!said.stderr.contains("has no column"), "{}", said.stderr);
    }
    let document = document(&score(&site, "base.csv bare.csv --primary loss:lower --json"));
    let has_ids = ["baseline_form", "candidate_form"].map(|side| document[side]["has_ids"].clone());
    assert_eq!(has_ids, [true, false]);
}

#[test]
fn no_file_controls_the_terminal() {
    let twice = "config_id,\"a\u{1b}[2J\nhint: b\",\"a\u{1b}[2J\nhint: b\"\n0,1,2\n";
    let site = folder(&[("twice.csv", twice)]);
    let said = score(&site, "base.csv twice.csv").exits(1);
    let expect = "are both named `a\\u{1b}[2J\n  hint: b`\n";
    assert!(said.stderr.contains(expect), "{}", said.stderr);
    assert!(!said.stderr.contains('\u{1b}'), "{}", said.stderr);
}

/// `TREEBEAM_UPDATE_DOCS=1` writes it anew.
#[test]
fn the_documented_table_is_what_the_program_says() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scoring.md");
    let found = fs::read_to_string(&page).expect("docs/scoring.md");
    let site = folder(&[("treebeam.toml", CONFIG)]);
    let start = "```console\n$ treebeam score base.csv better.csv\n";
    let (before, block) = found.split_once(start).expect("the table");
    let (_, after) = block.split_once("```\n").expect("the end of the table");
    let table = score(&site, "base.csv better.csv").exits(0).stdout;
    let expect = format!("{before}{start}{table}```\n{after}");
    if std::env::var_os("TREEBEAM_UPDATE_DOCS").is_some() {
        fs::write(&page, &expect).expect("to write the page");
        return;
    }
    assert!(
        found == expect,
        "docs/scoring.md is out of date: TREEBEAM_UPDATE_DOCS=1 writes it anew"
    );
}

/// Returns the columns that counted, and the primary.
#[track_caller]
fn used(said: Said) -> String {
    let document = document(&said.exits(0));
    let metrics = document["recommendation"]["metrics_used"].as_object().expect("metrics").clone();
    let names: Vec<String> = metrics.into_iter().map(|(name, _)| name).collect();
    let primary = &document["primary"];
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let primary = format!("{}:{}", word(&primary["column"]), word(&primary["direction"]));
    format!("{primary} of {}", names.join(" "))
}

#[test]
fn where_the_metrics_come_from() {
    let site = folder(&[
        ("treebeam.toml", CONFIG),
        ("sub/x.csv", BASE),
        ("top.toml", "primary = 'memory:lower'\n"),
        ("table.json", r#"{"score": {"metrics": [{"column": "note"}, {"column": "loss"}]}}"#),
        ("list.json", r#"[{"column": "memory", "direction": "lower"}]"#),
        ("gate.toml", "[gate]\nmin_rows = 9\n"),
    ]);
    let check = |arguments: &str, expect: &str| {
        let said = score(&site, &format!("base.csv better.csv --json {arguments}"));
        assert_eq!(used(said), expect, "{arguments}");
    };
    let preset = "mean_topN_avg_return_per_trade_pct_oos:higher of ";
    check("", "loss:lower of accuracy loss memory");
    check("--primary accuracy", "accuracy:higher of accuracy loss memory");
    check("--primary loss", "loss:lower of accuracy loss memory");
    check("--metrics top.toml", "memory:lower of memory");
    check("--metrics top.toml --primary loss", "loss:higher of loss memory");
    check("--metrics list.json", "memory:lower of memory");
    check("--metrics table.json", "note:higher of loss");
    check("--metrics table.json --primary loss", "loss:higher of loss");
    check("--preset trading", preset);
    check("--preset trading --primary loss:lower", "loss:lower of loss");
    check("--config gate.toml", preset);
    check("--config gate.toml --primary loss:lower", "loss:lower of loss");
    let gate = document(&score(&site, "base.csv better.csv --json --config gate.toml"));
    assert_eq!(gate["completeness"]["expected_count"], 9);
    // Outside of any repository the folders above do not count, inside of one they do.
    let sub = ["-C", "sub", "score", "x.csv", "x.csv", "--json"];
    assert_eq!(used(site.call(&sub)), preset);
    fs::create_dir(site.repo.path().join(".git")).expect("a folder");
    assert_eq!(used(site.call(&sub)), "loss:lower of accuracy loss memory");
}

#[test]
fn no_process_is_started() {
    let site = folder(&[]);
    fs::create_dir(site.repo.path().join(".git")).expect("a folder");
    let arguments = ["score", "base.csv", "better.csv", "--primary", "loss:lower"];
    let said = site.call_with(site.repo.path(), Vec::new(), &arguments).exits(0);
    assert!(said.stdout.contains("gate        would "), "{}", said.stdout);
}

#[test]
fn wrong_usage_and_configuration() {
    let site = folder(&[
        ("key.toml", "[score]\n\nmetric = []\n"),
        ("value.json", "{\"score\": {\n  \"primary\": 3\n}}\n"),
        ("lower.toml", "primary = 'loss:lower'\nmetrics = [{ column = 'loss' }]\n"),
        ("latin.yaml", ""),
        ("treebeam.toml", CONFIG),
        ("gate.toml", "[score]\nprimary = 'loss:lower'\n[gate]\nmin_rows = 3\n"),
        ("list.json", "[[\"loss\"]]"),
        ("open.json", "{\"score\": {\n"),
        ("beside.toml", "max_depth = 2\n[score]\nprimary = 'loss:lower'\n"),
        ("unknown.toml", "[score]\nprimary = 'loss:lower'\n[gates]\nmin_rows = 3\n"),
    ]);
    let mut text = String::new();
    for arguments in [
        "--config key.toml",
        "--config value.json",
        "--config none.toml",
        "--config latin.yaml",
        "--metrics lower.toml",
        "--metrics none.toml",
        "--preset tradin",
        "--preset trading --metrics lower.toml",
        "--preset trading --primary rel_pct_underperform:higher",
        "--primary :lower",
        "--primary memory:higher",
        "--primary status",
        "--metrics gate.toml",
        "--metrics list.json",
        "--metrics open.json",
        "--metrics beside.toml",
        "--metrics unknown.toml",
    ] {
        let said = score(&site, &format!("base.csv better.csv {arguments}")).exits(2);
        assert_eq!(said.stdout, "");
        text.push_str(&format!("$ {arguments}\n{}", said.stderr));
    }
    snapshot!("score_wrong_usage", text);
}

#[test]
fn bad_input() {
    let header = "config_id,loss\n";
    let site = folder(&[
        ("empty.csv", ""),
        ("header.csv", header),
        ("words.csv", "name,text\na,b\n"),
        ("quote.csv", "config_id,loss\n0,1\n1,\"2\n2,3\n"),
        ("nul.csv", "config_id,loss\n0,1\n1,\0\n"),
        ("twice.csv", "config_id,loss,loss\n0,1,2\n"),
        ("folder/x", ""),
    ]);
    let path = |name: &str| site.repo.path().join(name);
    fs::write(path("latin.csv"), b"config_id,lo\xdf\n0,1\n").expect("a file");
    let mut long = header.as_bytes().to_vec();
    long.resize(100 << 20, b'1');
    fs::write(path("long.csv"), long).expect("a file");
    let mut text = String::new();
    for name in [
        "none.csv",
        "empty.csv",
        "header.csv",
        "words.csv",
        "quote.csv",
        "nul.csv",
        "latin.csv",
        "twice.csv",
        "folder",
        "long.csv",
    ] {
        let said = score(&site, &format!("base.csv {name} --limit 4")).exits(1);
        assert_eq!(said.stdout, "");
        text.push_str(&format!("$ base.csv {name}\n{}", said.stderr));
        let other_way = score(&site, &format!("{name} base.csv")).exits(1);
        assert!(other_way.stderr.contains(name), "{}", other_way.stderr);
    }
    snapshot!("score_bad_input", text);
}

#[test]
fn a_bad_limit() {
    let site = folder(&[]);
    for limit in ["-1", "1.5", "x", "1e3", "", "99999999999999999999", "nan"] {
        let limit = format!("--limit={limit}");
        let said = site.call(&["score", "base.csv", "better.csv", &limit]).exits(1);
        let _ = said.says(["it must be a whole number from 0 to ", "hint: leave it out"]);
    }
    let _ = site.call(&["score", "base.csv", "better.csv", "--limit", "-1"]).exits(1);
}

#[cfg(unix)]
#[test]
fn what_is_no_file_is_not_waited_for() {
    let site = folder(&[]);
    treebeam_testkit::repo::pipe(&site.repo.path().join("pipe.csv")).expect("a pipe");
    for name in ["pipe.csv", "/dev/zero", "/dev/null"] {
        let said = score(&site, &format!("base.csv {name}")).exits(1);
        let _ = said.says([
            &format!("error: `{name}` is no regular file: a pipe, a device or a socket"),
            "hint: write its content to a file first",
        ]);
    }
    std::os::unix::fs::symlink("better.csv", site.repo.path().join("link.csv")).expect("a link");
    let _ = score(&site, "base.csv link.csv").exits(0);
    treebeam_testkit::repo::pipe(&site.repo.path().join("treebeam.toml")).expect("a pipe");
    let _ =
        score(&site, "base.csv better.csv").exits(2).says(["`treebeam.toml` is no regular file"]);
}
