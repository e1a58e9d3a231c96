//! The commands that read a run: their output, that they write nothing, and that they work on a
//! damaged or busy run.

#![cfg(test)]

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;
use treebeam_testkit::program::{SITE_RUN_ID, Said, Site};

const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");

/// A run with promoted, passed, rejected and failed evals.
fn site() -> Site {
    let site = Site::new(BINARY);
    site.run(&["--quiet", "--ideas-per-node=5", "--beam-width=2", "--max-depth=2"]);
    site
}

/// Returns the output, with what differs between machines and times replaced.
fn shown(site: &Site, said: &Said) -> String {
    let exit = said.code.map_or("none".to_owned(), |code| code.to_string());
    let text = format!("exit {exit}\n--- stdout\n{}--- stderr\n{}", said.stdout, said.stderr);
    text.replace(&site.repo.path().display().to_string(), "[REPO]").replace('\\', "/")
}

macro_rules! snapshot {
    ($name:literal, $text:expr) => {
        insta::with_settings!({
            omit_expression => true,
            prepend_module_to_snapshot => false,
            filters => [
                (r"RUN +AGE +DEPTH", "RUN  AGE  DEPTH"),
                (r"(?m)^t +\d+ (s|min) +", "t    [AGE]  "),
                (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "[TIME]"),
            ],
        }, { insta::assert_snapshot!($name, $text); })
    };
}

/// Exactly one document, with this schema.
#[track_caller]
fn document(said: Said, schema: &str) -> Value {
    let mut lines = said.exits(0).json_lines();
    assert_eq!(lines.len(), 1);
    let document = lines.remove(0);
    assert_eq!(document["schema"], schema);
    document
}

#[test]
fn what_they_say() {
    let site = site();
    let call = |arguments: &[&str]| shown(&site, &site.call(arguments));
    snapshot!("list", call(&["list"]));
    snapshot!("best", call(&["best"]));
    snapshot!("show_eval", call(&["show", SITE_RUN_ID, "e0005"]));
    snapshot!("show_failed", call(&["show", "e0003"]));
    snapshot!("show_node", call(&["show", SITE_RUN_ID, "n0001"]));
    snapshot!("show_root", call(&["show", "0"]));
    snapshot!("show_both", call(&["show", SITE_RUN_ID, "3"]));
    snapshot!("show_neither", call(&["show", "99"]));
    snapshot!("show_missing", call(&["show", "n0099"]));
    snapshot!("show_odd", call(&["show", "first"]));
    snapshot!("diff_eval", call(&["diff", "e0005"]));
    snapshot!("diff_root", call(&["diff", SITE_RUN_ID, "n0003", "--root"]));
    snapshot!("diff_never_applied", call(&["diff", "e0003"]));
    snapshot!("diff_of_the_root", call(&["diff", "n0000"]));
    // Cleanup runs in parallel to the evals: the time of its lines is not fixed.
    let log = call(&["log"]);
    let log: String = log.split_inclusive('\n').filter(|line| !line.contains("removed")).collect();
    snapshot!("log", log);
}

#[test]
fn a_number_that_fits_one_only_is_taken() {
    let site = site();
    let last = site.manifest()["evaluations"].as_object().expect("evals").len();
    let said = site.call(&["show", &last.to_string(), "--json"]);
    let eval = document(said, "treebeam.show/1");
    assert_eq!((&eval["kind"], &eval["id"]), (&"eval".into(), &format!("e{last:04}").into()));
    let root = document(site.call(&["show", SITE_RUN_ID, "0000", "--json"]), "treebeam.show/1");
    assert_eq!((&root["kind"], &root["id"]), (&"node".into(), &"n0000".into()));
}

#[test]
fn what_they_say_to_programs() {
    let site = site();
    let list = document(site.call(&["list", "--json"]), "treebeam.list/1");
    assert_eq!(list["runs"][0]["run_id"], SITE_RUN_ID);
    assert_eq!(list["runs"][0]["stop_reason"], "max_depth_reached");
    let manifest = site.manifest();
    for (id, recorded) in manifest["evaluations"].as_object().expect("evals") {
        let name = format!("e{id}");
        let eval = document(site.call(&["show", &name, "--json"]), "treebeam.show/1");
        assert_eq!(eval["commit"], recorded["candidate_commit"], "{name}");
        assert_eq!(
            eval["parent"],
            format!("n{}", recorded["parent_node_id"].as_str().expect("id"))
        );
        let delta = &recorded["parent_relative"]["primary_delta"];
        assert_eq!(&eval["parent_relative"]["primary_delta"], delta, "{name}");
    }
    let diff = document(site.call(&["diff", "n0001", "--json"]), "treebeam.diff/1");
    assert_eq!((&diff["run_id"], &diff["against"]), (&SITE_RUN_ID.into(), &"n0000".into()));
    assert_eq!(diff["commit"], manifest["nodes"]["0001"]["commit"]);
    assert!(diff["diff"].as_str().is_some_and(|text| text.starts_with("diff --git ")));
}

#[test]
fn a_log_in_json_is_what_the_run_said() {
    let site = Site::new(BINARY);
    let run = [
        "run",
        "--dry-run",
        "--run-id",
        SITE_RUN_ID,
        "--json",
        "--ideas-per-node=4",
        "--max-depth=1",
    ];
    let run = [&run[..], &["--control=best-of-n=0.5"]].concat();
    let said = site.call(&run).exits(0);
    assert_eq!(site.call(&["log", "--json"]).exits(0).stdout, said.stdout);
    assert_eq!(site.call(&["log", SITE_RUN_ID, "--json", "--follow"]).exits(0).stdout, said.stdout);
}

// ---- diffs of what is gone

fn forget(site: &Site) {
    site.repo.git(["reflog", "expire", "--expire=now", "--all"]).expect("to forget");
    site.repo.git(["gc", "--quiet", "--prune=now"]).expect("to forget");
}

#[test]
fn a_discarded_candidate_has_its_recorded_diff() {
    let site = site();
    let before = site.call(&["diff", "e0001"]).exits(0);
    assert_eq!(before.stderr, "");
    forget(&site);
    let added = |text: &str| text.lines().filter(|line| line.starts_with('+')).count();
    let kept = site.call(&["diff", "e0001"]).exits(0);
    let kept = kept.says(["this is `eval/0001/experiment/candidate.diff`, the whole change"]);
    assert!(added(&kept.stdout) > 0 && added(&kept.stdout) == added(&before.stdout));
    fs::remove_file(site.path("eval/0001/experiment/candidate.diff")).expect("to remove");
    let after = site.call(&["diff", "e0001"]).exits(0);
    let after = after.says(["`eval/0001/experiment/patch_round_", "as the coder wrote it"]);
    assert_eq!(added(&after.stdout), added(&before.stdout));
    let _ = site.call(&["diff", "n0001", "--root"]).exits(0);
    let document = document(site.call(&["diff", "e0001", "--json"]), "treebeam.diff/1");
    assert_eq!(document["diff"], after.stdout);
    for file in site.names("eval/0001/experiment").iter().filter(|name| name.starts_with("patch_"))
    {
        fs::remove_file(site.path("eval/0001/experiment").join(file)).expect("to remove");
    }
    let _ = site.call(&["diff", "e0001"]).exits(1).says(["no diff is recorded"]);
}

#[test]
fn an_archived_run_can_be_read_without_its_repository() {
    let site = site();
    let archive = tempfile::tempdir().expect("a folder");
    let run = archive.path().join("kept");
    fs::rename(site.path(""), &run).expect("to move");
    let here = |arguments: &[&str]| site.call_in(archive.path(), arguments);
    assert!(here(&["show", "./kept", "e0005"]).exits(0).stdout.contains("promoted"));
    assert!(here(&["log", "./kept"]).exits(0).stdout.contains("stopped: all depths are done"));
    let diff = here(&["diff", "./kept", "n0001"]).exits(0).says(["candidate.diff"]);
    assert!(diff.stdout.contains("+++ b/"), "{}", diff.stdout);
    let _ = here(&["diff", "./kept", "n0003", "--root"]).exits(1).says(["leave `--root` out"]);
}

// ---- runs that are damaged, busy or growing

#[test]
fn a_damaged_run_is_listed_with_the_others() {
    let site = site();
    let runs = site.path("..");
    fs::create_dir_all(runs.join("bad")).expect("a folder");
    let journal = site.text("journal.jsonl").replacen("root_measured", "root_guessed", 1);
    fs::write(runs.join("bad/journal.jsonl"), journal).expect("a journal");
    let said = site.call(&["list"]).exits(0);
    assert!(said.stdout.contains("bad "), "{}", said.stdout);
    assert!(said.stdout.contains("line 4: the checksum does not fit"), "{}", said.stdout);
    assert!(said.stdout.contains("stopped: all depths are done"), "{}", said.stdout);
    let list = document(site.call(&["list", "--json"]), "treebeam.list/1");
    let find = |id: &str| {
        let runs = list["runs"].as_array().expect("runs");
        runs.iter().find(|run| run["run_id"] == id).expect("the run").clone()
    };
    assert_eq!(
        (&find("bad")["state"], &find(SITE_RUN_ID)["state"]),
        (&"unreadable".into(), &"stopped".into())
    );
    assert!(find("bad")["error"].is_string() && find(SITE_RUN_ID)["error"].is_null());
    let _ = site.call(&["log", "bad"]).exits(1).says(["line 4"]);
}

#[test]
fn a_repository_without_runs_says_so() {
    let site = Site::new(BINARY);
    assert!(site.call(&["list"]).exits(0).stdout.contains("there is no run"));
    let list = document(site.call(&["list", "--json"]), "treebeam.list/1");
    assert_eq!(list["runs"], Value::Array(Vec::new()));
    for command in [&["show", "n0000"][..], &["diff", "n0000"], &["log"]] {
        let _ = site.call(command).exits(2).says(["there is no run"]);
    }
    assert!(!site.repo.path().join(".treebeam").exists());
}

/// All files below a folder, with their bytes and times.
fn everything(folder: &Path, found: &mut BTreeMap<String, (Vec<u8>, std::time::SystemTime)>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let metadata = path.symlink_metadata().expect("a file");
        let bytes = if metadata.is_file() { fs::read(&path).expect("a file") } else { Vec::new() };
        found.insert(path.display().to_string(), (bytes, metadata.modified().expect("a time")));
        if metadata.is_dir() {
            everything(&path, found);
        }
    }
}

#[test]
fn nothing_is_written_and_no_lock_is_needed() {
    let site = site();
    let lock = File::open(site.path("run.lock")).expect("the lock");
    lock.lock().expect("to hold the lock");
    let all = || {
        let mut found = BTreeMap::new();
        everything(site.repo.path(), &mut found);
        found
    };
    let before = all();
    for arguments in [
        &["list"][..],
        &["best"],
        &["show", "e0001"],
        &["show", "n0001"],
        &["diff", "e0001"],
        &["log"],
        &["completions", "bash"],
        &["man"],
        &["schema"],
    ] {
        let _ = site.call(arguments).exits(0);
        let _ = site.call(&[arguments, &["--json"]].concat()).exits(0);
    }
    let after = all();
    assert!(before.keys().eq(after.keys()));
    assert!(before.iter().all(|(path, was)| after.get(path) == Some(was)));
    let list = document(site.call(&["list", "--json"]), "treebeam.list/1");
    assert_eq!(list["runs"][0]["state"], "running");
}

#[test]
fn a_growing_journal_is_followed_to_its_end() {
    let site = site();
    let whole = site.text("journal.jsonl");
    let expected = site.call(&["log", "--json"]).exits(0).stdout;
    let cut = whole.len() / 2;
    fs::remove_file(site.path("manifest.json")).expect("to remove");
    drop(fs::remove_file(site.path("manifest.json.prev")));
    fs::write(site.path("journal.jsonl"), &whole[..cut]).expect("half a journal");
    let journal = site.path("journal.jsonl");
    let rest = whole[cut..].to_owned();
    let writer = std::thread::spawn(move || {
        let mut file = OpenOptions::new().append(true).open(journal).expect("the journal");
        let pieces: Vec<_> = rest.as_bytes().chunks(rest.len() / 4 + 1).collect();
        for piece in pieces {
            std::thread::sleep(Duration::from_millis(300));
            file.write_all(piece).expect("to write");
        }
    });
    let said = site.call(&["log", "--follow", "--json"]).exits(0);
    writer.join().expect("the writer");
    assert_eq!(said.stdout, expected);
}

#[test]
fn an_open_run_is_waited_for() {
    let site = site();
    let whole = site.text("journal.jsonl");
    let half: String = whole.split_inclusive('\n').take(20).collect();
    fs::remove_file(site.path("manifest.json")).expect("to remove");
    drop(fs::remove_file(site.path("manifest.json.prev")));
    fs::write(site.path("journal.jsonl"), &half).expect("half a journal");
    let told = half.lines().filter(|line| !line.contains(r#""type":"files_recorded""#)).count();
    assert!((10..20).contains(&told), "digests are no news for a person: {told}");
    let said = site.call_and_kill(&["log", "--follow"], Duration::from_secs(3));
    assert_eq!(said.code, None, "it waits");
    assert_eq!(said.stdout.lines().count(), told);
    assert_eq!(said.stderr.matches("nobody runs this run").count(), 1, "{}", said.stderr);
    let log = site.call(&["log", "--json"]).exits(0).json_lines();
    assert_eq!(log.last().expect("an end")["stop_reason"], "interrupted");
    assert!(site.call(&["list"]).exits(0).stdout.contains("can go on: `treebeam resume t`"));
}

#[test]
fn a_reader_that_has_gone_away_ends_a_log_quietly() {
    let site = site();
    for arguments in [&["log"][..], &["log", "--follow"], &["log", "--follow", "--json"]] {
        assert_eq!(site.call_unheard(arguments).exits(0).stderr, "");
    }
}

// ---- what the command line says about itself

#[test]
fn completions_and_pages_know_every_command() {
    let site = Site::new(BINARY);
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = site.call(&["completions", shell]).exits(0).stdout;
        assert!(script.contains("validate") && script.contains("ideas-per-node"), "{shell}");
        let said = site.call(&["completions", shell, "--json"]);
        assert_eq!(document(said, "treebeam.completions/1")["script"], script);
    }
    let main = site.call(&["man"]).exits(0).stdout;
    assert!(main.contains(".TH treebeam 1") && main.contains("treebeam\\-show(1)"), "{main}");
    let pages = document(site.call(&["man", "--json"]), "treebeam.man/1");
    assert_eq!(pages["pages"]["treebeam.1"], main);
    let _ = site.call(&["man", "new/pages"]).exits(0).says(["pages to "]);
    for name in ["treebeam.1", "treebeam-run.1", "treebeam-log.1"] {
        let page = fs::read_to_string(site.repo.path().join("new/pages").join(name));
        assert_eq!(pages["pages"][name], page.expect("a page"), "{name}");
    }
    let _ = site.call(&["man", "model.py"]).exits(1).says(["cannot write to "]);
    let _ = site.call(&["completions", "cmd"]).exits(2);
}

// ---- report.html

#[test]
fn the_page_has_every_eval_with_its_figures_and_texts() {
    let site = site();
    let page = site.text("report.html");
    let manifest = site.manifest();
    let evals = manifest["evaluations"].as_object().expect("evals");
    for (id, eval) in evals {
        assert!(page.contains(&format!("id=\"e{id}\"")), "e{id} is missing");
        let commit = eval["candidate_commit"].as_str().map(|commit| &commit[..12]);
        assert!(commit.is_none_or(|commit| page.contains(commit)), "{commit:?} is missing");
    }
    let scored = evals.values().filter(|eval| eval["parent_relative"].is_object()).count();
    assert_eq!(page.matches("<h3>Against the root</h3><p>").count(), scored);
    assert!(page.matches("<svg class=\"paired\"").count() >= scored, "a plot is missing");
    assert!(page.contains("<span class=\"ins\">+"), "no change is shown");
    assert!(page.contains("IDEA: ") && page.contains("RATIONALE: "), "no idea is shown");
    assert!(
        !page.contains(&*site.repo.path().to_string_lossy()),
        "it names a place on this machine"
    );
    for _ in 0..2 {
        let _ = site.call(&["report", SITE_RUN_ID]).exits(0);
        let unchecked = "Not checked yet: <code>treebeam report t</code> checks files, digests, commits and decisions, \
                         and writes this page again.";
        let checked = "<strong>Nothing found.</strong> Files, digests, commits and decisions are as recorded.";
        assert!(page.contains(unchecked));
        assert!(site.text("report.html") == page.replace(unchecked, checked), "it is another page");
    }
    spoiled_files_are_left_out(&site);
}

fn spoiled_files_are_left_out(site: &Site) {
    let long = "+x\n".repeat(50_000);
    fs::write(site.path("eval/0001/experiment/candidate.diff"), &long).expect("to write");
    fs::write(site.path("artifacts/e0001.csv"), "<script>").expect("to write");
    let _ = site.call(&["report", SITE_RUN_ID]).exits(5);
    let page = site.text("report.html");
    let (_, eval) = page.split_once("id=\"e0001\"").expect("the eval");
    let (eval, _) = eval.split_once("</details><details class=\"item\"").expect("the next one");
    assert!(!eval.contains("<svg class=\"paired\"") && !eval.contains("<h3>Change</h3>"), "{eval}");
    assert!(
        eval.contains(
            "too long to be shown here: <a href=\"eval/0001/experiment/candidate.diff\">"
        )
    );
    assert!(page.contains("cannot be scored again"), "the finding is missing");
}
