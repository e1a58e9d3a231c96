//! `treebeam validate` finds damage, also with adjusted checksums, and names it in its report.

#![cfg(test)]

use std::fs;
#[cfg(unix)]
use std::path::Path;
use treebeam_core::id::Sha256;
use treebeam_testkit::program::{SITE_RUN_ID, Site};

const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");

/// A sound run of two depths, cut short by its budget: it has promoted, passed, rejected, failed
/// and untried ideas.
fn site() -> Site {
    let site = Site::new(BINARY);
    site.run(&["--quiet", "--ideas-per-node=5", "--beam-width=2", "--max-total-idea-evals=13"]);
    site
}

/// Asserts that validation finds all of this, and that `report` says so too.
#[track_caller]
fn finds(site: &Site, texts: &[&str]) {
    let said = site.call(&["validate", SITE_RUN_ID]).exits(5);
    let report = site.text("VALIDATION_REPORT.md").replace('\\', "");
    for text in texts {
        assert!(report.contains(text), "no {text:?} in {report}");
        assert!(said.stderr.contains(text), "no {text:?} in {}", said.stderr);
    }
    let document = site.call(&["validate", SITE_RUN_ID, "--json"]).exits(5).json_lines().remove(0);
    assert_eq!(document["ok"], false);
    assert!(document["findings"].as_array().is_some_and(|all| all.len() >= texts.len()));
    let _ = site.call(&["report", SITE_RUN_ID]).exits(5);
}

/// Changes a file, asserts that validation finds all of this, and restores the file.
#[track_caller]
fn spoiled(site: &Site, name: &str, spoil: impl FnOnce(String) -> Option<String>, found: &[&str]) {
    let before = site.text(name);
    match spoil(before.clone()) {
        Some(text) => {
            assert_ne!(text, before, "nothing was spoiled");
            fs::write(site.path(name), text).expect("to write");
        }
        None => fs::remove_file(site.path(name)).expect("to remove"),
    }
    finds(site, found);
    fs::write(site.path(name), before).expect("to write");
    site.must_be_sound();
}

// ---- files

/// Returns the files that the record refers to, each with a word that must be in the finding.
fn referenced(site: &Site) -> Vec<String> {
    let mut names = vec!["artifacts/root.csv".to_owned(), "artifacts/e0001.csv".to_owned()];
    names.push("node_ideas/0000/prompt_context.txt".to_owned());
    for of in ["root", "0001"] {
        names.push(format!("eval/{of}/experiment/meta_config_sweep_results.csv"));
    }
    names.push("eval/0001/experiment/idea.md".to_owned());
    let ideas = |node: &str| {
        let folder = format!("node_ideas/{node}");
        let all = site.names(&folder).into_iter();
        all.filter(|name| name.starts_with('0')).map(move |name| format!("{folder}/{name}"))
    };
    let of_root: Vec<_> = ideas("0000").collect();
    let of_last: Vec<_> = ideas("0002").collect();
    assert_eq!((of_root.len(), of_last.len()), (5, 5), "the last ones were left untried");
    names.extend(of_root.into_iter().take(1).chain(of_last.into_iter().skip(4)));
    names
}

#[test]
fn a_missing_file_is_found() {
    let site = site();
    let scores = ["summary.json", "scoring_parent.json", "scoring_root.json"];
    let scores = scores.map(|name| format!("eval/0001/experiment/{name}"));
    for name in referenced(&site).iter().chain(&scores) {
        spoiled(&site, name, |_| None, &[&format!("{name}` cannot be read")]);
    }
}

#[test]
fn a_missing_manifest_is_found_and_a_missing_worktree_is_a_warning() {
    let site = site();
    let away = site.path("manifest.json.away");
    fs::rename(site.path("manifest.json"), &away).expect("to move");
    finds(&site, &["the manifest is missing"]);
    fs::rename(&away, site.path("manifest.json")).expect("to move");
    fs::remove_dir_all(site.path("wt/0001")).expect("to remove");
    let _ = site.call(&["validate", SITE_RUN_ID]).exits(0).says(["warning", "wt/0001", "is sound"]);
}

#[test]
fn a_wrong_sha256_is_found() {
    let site = site();
    for name in referenced(&site) {
        let found = format!("{name}` has sha256 ");
        spoiled(&site, &name, |text| Some(text.replacen('e', "E", 1)), &[&found]);
        spoiled(&site, &name, |text| Some(text + "\n"), &[&found]);
    }
}

// ---- commits

#[test]
fn an_unreachable_commit_is_found() {
    let site = site();
    let git = |arguments: &[&str]| site.repo.git_in(site.repo.path(), arguments).expect("git");
    for node in ["n0000", "n0001", "n0002"] {
        let name = format!("refs/heads/tree/{SITE_RUN_ID}/{node}");
        let commit = git(&["rev-parse", &name]);
        let found = format!("is not reachable by `tree/{SITE_RUN_ID}/{node}`");
        git(&["update-ref", "-d", &name]);
        finds(&site, &[&found]);
        let elsewhere = if node == "n0000" { "n0001" } else { "n0000" };
        git(&["update-ref", &name, &format!("refs/heads/tree/{SITE_RUN_ID}/{elsewhere}")]);
        if node != "n0000" {
            finds(&site, &[&found]);
        }
        git(&["update-ref", &name, &commit]);
        site.must_be_sound();
    }
}

// ---- the record

/// Adjusts the checksum of a manifest.
fn summed_manifest(text: &str) -> String {
    let at = text.rfind("\"checksum\":\"").expect("a checksum");
    let body = &text[..at];
    format!("{body}\"checksum\":\"{}\"}}\n", Sha256::hash_bytes(body.as_bytes()))
}

/// Beginning of the previous line's digest in a line.
const PREV: &str = "\"prev\":\"";

/// Adjusts the checksums and chain digests of a journal.
fn summed_journal(text: &str) -> String {
    let mut prev = Sha256::hash_bytes(b"").to_string();
    let mut summed = String::new();
    for line in text.lines() {
        let mut line = line[..line.rfind(",\"sum\":\"").expect("a sum")].to_owned();
        if let Some(at) = line.find(PREV) {
            line.replace_range(at + PREV.len()..at + PREV.len() + 64, &prev);
        }
        let sum = Sha256::hash_bytes(line.as_bytes()).to_string();
        line.push_str(&format!(",\"sum\":\"{}\"}}", &sum[..16]));
        prev = Sha256::hash_bytes(line.as_bytes()).to_string();
        summed.push_str(&line);
        summed.push('\n');
    }
    summed
}

#[test]
fn the_sums_are_made_as_the_program_makes_them() {
    let site = site();
    assert_eq!(summed_manifest(&site.text("manifest.json")), site.text("manifest.json"));
    assert_eq!(summed_journal(&site.text("journal.jsonl")), site.text("journal.jsonl"));
}

/// The text with the first `from` after `after` replaced.
#[track_caller]
fn edited(text: &str, after: &str, from: &str, to: &str) -> String {
    let at = text.find(after).unwrap_or_else(|| panic!("no {after:?}"));
    let (before, rest) = text.split_at(at);
    assert!(rest.contains(from), "no {from:?} after {after:?}");
    format!("{before}{}", rest.replacen(from, to, 1))
}

const DISAGREES: &str = "is not what the journal leads to";

/// Asserts that an edit of the manifest, with a fitting checksum, is found; by comparison with the
/// journal, too.
#[track_caller]
fn manifest_edited(site: &Site, edit: [&str; 3], found: &[&str]) {
    let [after, from, to] = edit;
    let spoil = |text: String| Some(summed_manifest(&edited(&text, after, from, to)));
    spoiled(site, "manifest.json", spoil, &[found, &[DISAGREES]].concat());
}

/// Asserts that an edit of the journal, with fitting checksums, is found; also without a manifest
/// to compare it with.
#[track_caller]
fn journal_edited(site: &Site, edit: [&str; 3], found: &[&str]) {
    let [after, from, to] = edit;
    let spoil = |text: String| Some(summed_journal(&edited(&text, after, from, to)));
    spoiled(site, "journal.jsonl", spoil, &[DISAGREES]);
    let manifests = ["manifest.json", "manifest.json.prev"].map(|name| site.path(name));
    let kept = manifests.clone().map(|path| fs::read(path).ok());
    for path in manifests.iter().filter(|path| path.exists()) {
        fs::remove_file(path).expect("to remove");
    }
    let before = site.text("journal.jsonl");
    fs::write(site.path("journal.jsonl"), spoil(before.clone()).expect("text")).expect("to write");
    finds(site, found);
    fs::write(site.path("journal.jsonl"), before).expect("to write");
    for (path, bytes) in manifests.iter().zip(kept) {
        bytes.map_or(Ok(()), |bytes| fs::write(path, bytes)).expect("to write");
    }
    site.must_be_sound();
}

#[test]
fn a_baseline_outside_of_artifacts_is_found() {
    let site = site();
    let root = "eval/root/experiment/meta_config_sweep_results.csv";
    let root = format!("\"{root}\"");
    let outside = "lies outside `artifacts/`";
    let copied = "\"copied_to_path\":\"artifacts/root.csv\"";
    let edit = ["\"root\":", copied, &format!("\"copied_to_path\":{root}")];
    manifest_edited(&site, edit, &[outside]);
    journal_edited(&site, ["root_measured", "\"artifacts/root.csv\"", &root], &[outside]);
    let copied = "\"copied_to_path\":\"artifacts/e0005.csv\"";
    let node = "\"copied_to_path\":\"eval/0005/experiment/meta_config_sweep_results.csv\"";
    manifest_edited(&site, ["\n\"0005\":{\"eval_id\"", copied, node], &[outside]);
}

#[test]
fn an_inconsistent_frontier_is_found() {
    let site = site();
    let frontier = "the frontier is not what the closed depths lead to";
    let now = serde_json::to_string(&site.manifest()["state"]["frontier_node_ids"]).unwrap();
    let now = format!("\"frontier_node_ids\":{now}");
    for other in ["[\"0001\"]", "[\"0000\",\"0001\"]", "[]"] {
        let other = format!("\"frontier_node_ids\":{other}");
        manifest_edited(&site, ["\"state\":", &now, &other], &[frontier]);
    }
    let expanded = ["\"closed_depths\":", "\"expanded_node_ids\":[\"0000\"]"];
    let edit = [expanded[0], expanded[1], "\"expanded_node_ids\":[\"0000\",\"0001\"]"];
    manifest_edited(&site, edit, &["depth 0 counts node 0001 as expanded"]);
}

#[test]
fn an_edited_decision_is_found() {
    let site = site();
    let figures = "its recorded figures are not those of its artifacts";
    let verdict = "does not follow from its figures";
    let beam = "the promoted evals are not the best that passed the gate";
    let eval = "\n\"0002\":{\"eval_id\"";
    manifest_edited(&site, [eval, "\"grade\":\"promising\"", "\"grade\":\"strong\""], &[figures]);
    manifest_edited(&site, [eval, "\"ok_count\":12", "\"ok_count\":11"], &[figures]);
    manifest_edited(&site, [eval, "\"has_effect\":true", "\"has_effect\":false"], &[figures]);
    let check =
        ["\"rule\":\"has_effect\",\"passed\":true", "\"rule\":\"has_effect\",\"passed\":false"];
    manifest_edited(&site, ["\n\"0001\":{\"eval_id\"", check[0], check[1]], &[verdict]);
    manifest_edited(
        &site,
        ["\"closed_depths\":", "[\"0005\",\"0002\"]", "[\"0002\",\"0005\"]"],
        &[beam],
    );
    let scored = "\"type\":\"scored\",\"eval\":\"0002\"";
    journal_edited(&site, [scored, "\"grade\":\"promising\"", "\"grade\":\"strong\""], &[figures]);
    journal_edited(&site, ["\"type\":\"depth_closed\"", check[0], check[1]], &[verdict]);
}

#[test]
fn a_manifest_that_lags_behind_the_journal_is_no_finding() {
    let site = site();
    let previous = site.path("manifest.json.prev");
    site.resume(&["--max-total-idea-evals=14"]);
    fs::copy(previous, site.path("manifest.json")).expect("a copy");
    site.must_be_sound();
}

#[test]
fn a_damaged_manifest_and_a_damaged_journal_are_findings() {
    let site = site();
    let damage = |text: String| Some(text.replacen("\"nodes\"", "\"Nodes\"", 1));
    spoiled(&site, "manifest.json", damage, &["is damaged and was passed over"]);
    let journal = site.text("journal.jsonl");
    fs::write(site.path("journal.jsonl"), journal.replacen("root_measured", "root_Measured", 1))
        .expect("to write");
    let said = site.call(&["validate", SITE_RUN_ID]);
    assert_eq!(said.code, Some(5), "{said:?}");
    let _ = said.says(["journal.jsonl", "checksum"]);
}

#[test]
fn a_moved_run_directory_still_validates() {
    let site = site();
    let other = Site::new(BINARY);
    let runs = other.repo.path().join(".treebeam/runs");
    fs::create_dir_all(&runs).expect("a folder");
    let git = |arguments: &[&str]| other.repo.git_in(other.repo.path(), arguments).expect("git");
    git(&[
        "fetch",
        "--quiet",
        &site.repo.path().display().to_string(),
        "refs/heads/tree/*:refs/heads/tree/*",
    ]);
    fs::rename(site.path(""), runs.join(SITE_RUN_ID)).expect("to move");
    let said = other.call(&["validate", SITE_RUN_ID]).exits(0);
    let _ = said.says(["warning", "`refs/treebeam/t` is missing", "is sound; warnings: 1"]);
    let of_journal = "refs/treebeam/*:refs/treebeam/*";
    git(&["fetch", "--quiet", &site.repo.path().display().to_string(), of_journal]);
    other.must_be_sound();
    let _ = other.call(&["report", SITE_RUN_ID]).exits(0);
}

// ---- digests of what a step wrote

/// Returns the files of a folder of the run and below it, by their names in the run.
fn files_below(site: &Site, folder: &str) -> Vec<String> {
    let entries = fs::read_dir(site.path(folder)).expect("a folder");
    let names = entries.map(|entry| {
        let entry = entry.expect("an entry");
        let name = format!("{folder}/{}", entry.file_name().to_str().expect("UTF-8"));
        if entry.path().is_dir() { files_below(site, &name) } else { vec![name] }
    });
    names.collect::<Vec<_>>().concat()
}

#[test]
fn every_file_that_a_step_wrote_is_compared_with_its_recorded_digest() {
    let site = site();
    let folders = ["eval/0001/experiment", "eval/root/experiment", "node_ideas", "conversations"];
    let names: Vec<String> = folders.iter().flat_map(|name| files_below(&site, name)).collect();
    for part in ["candidate.diff", "patch_round_0", "coder_prompt", "summary.json", "scoring_root"]
    {
        assert!(names.iter().any(|name| name.contains(part)), "no {part} in {names:?}");
    }
    assert!(names.iter().any(|name| name.starts_with("conversations/")), "{names:?}");
    let before: Vec<_> =
        names.iter().map(|name| fs::read(site.path(name)).expect("to read")).collect();
    for (name, bytes) in names.iter().zip(&before) {
        fs::write(site.path(name), [bytes.as_slice(), b"\n"].concat()).expect("to write");
    }
    let found: Vec<_> = names.iter().map(|name| format!("`{name}` has sha256 ")).collect();
    finds(&site, &found.iter().map(String::as_str).collect::<Vec<_>>());
    for (name, bytes) in names.iter().zip(&before) {
        fs::write(site.path(name), bytes).expect("to write");
    }
    site.must_be_sound();
    for name in ["conversations/c0000.json", "conversations/c0000.jsonl"] {
        let torn = |text: String| Some(text[..text.len() / 2].to_owned());
        spoiled(&site, name, torn, &[&format!("{name}` has sha256 ")]);
        spoiled(&site, name, |_| None, &[&format!("{name}` cannot be read")]);
    }
}

/// A run whose agents are programs: each of their answers is kept.
#[cfg(unix)]
const PROGRAMS: &str = r#"sweep_command = ["sh", "sweep.sh"]
ideas_per_node = 1
max_depth = 1
[score]
primary = "gain:higher"
[agents.ideas]
provider = "command"
command = ["printf", "IDEA: a change\nRATIONALE: to see\nREQUIRED_CHANGES: all\n"]
[agents.coder]
provider = "command"
command = ["cat", "change.diff"]
"#;

#[cfg(unix)]
#[test]
fn an_edited_answer_of_an_agent_is_found() {
    let site = Site::new(BINARY);
    let sweep = "printf 'config_id,status,gain\\n0,ok,1\\n' > \"$AGENTIC_RESULTS_CSV\"\n";
    let change =
        "diff --git a/x b/x\nnew file mode 100644\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+x\n";
    for (name, text) in [("treebeam.toml", PROGRAMS), ("sweep.sh", sweep), ("change.diff", change)]
    {
        site.repo.write(name, text).expect("a file");
    }
    site.repo.commit("agents").expect("a commit");
    let _ = site.call(&["run", "--quiet", "--run-id", SITE_RUN_ID]).exits(0);
    site.must_be_sound();
    for folder in ["node_ideas/0000/calls", "eval/0001/calls"] {
        let mut names = files_below(&site, folder);
        names.retain(|name| Path::new(name).extension().is_some_and(|kind| kind == "json"));
        assert!(!names.is_empty(), "no answer in {folder}");
        for name in names {
            let spoil = |text: String| Some(text.replacen('{', "{ ", 1));
            spoiled(&site, &name, spoil, &[&format!("{name}` has sha256 ")]);
        }
    }
}

#[test]
fn a_run_without_digests_is_sound_and_says_so_once() {
    let site = site();
    let without = |text: &str| {
        let mut text: String = text
            .lines()
            .filter(|line| !line.contains("\"files_recorded\""))
            .fold(String::new(), |all, line| all + line + "\n");
        let numbered = |(number, line): (usize, &str)| {
            let rest = line.split_once(',').expect("a number").1;
            format!("{{\"seq\":{},{rest}\n", number + 1)
        };
        text = text.lines().enumerate().map(numbered).collect();
        summed_journal(&text)
    };
    fs::write(site.path("journal.jsonl"), without(&site.text("journal.jsonl"))).expect("to write");
    for manifest in ["manifest.json", "manifest.json.prev"] {
        let _ = fs::remove_file(site.path(manifest));
    }
    let _ = site.call(&["resume", SITE_RUN_ID]).exits(0);
    let said = site.call(&["validate", SITE_RUN_ID]).exits(0).says(["is sound; warnings: 1"]);
    assert_eq!(said.stderr.matches("have no recorded digest").count(), 1, "{}", said.stderr);
}

// ---- objects of git

#[test]
fn an_object_that_is_gone_from_git_is_found() {
    let site = site();
    let git = |arguments: &[&str]| site.repo.git_in(site.repo.path(), arguments).expect("git");
    let tree = format!("refs/heads/tree/{SITE_RUN_ID}");
    let changed = git(&["diff-tree", "-r", &format!("{tree}/n0000"), &format!("{tree}/n0001")]);
    let blob = changed.split([' ', '\t']).nth(3).expect("a blob").to_owned();
    let commit = git(&["rev-parse", &format!("{tree}/n0001")]).trim().to_owned();
    let root_tree = git(&["rev-parse", &format!("{tree}/n0001^{{tree}}")]).trim().to_owned();
    let lacks = "git lacks 1 objects of its commit";
    for (object, found) in [(&blob, lacks), (&root_tree, lacks), (&commit, "is gone from git")] {
        let file = site.repo.path().join(".git/objects").join(&object[..2]).join(&object[2..]);
        let away = file.with_extension("away");
        fs::rename(&file, &away).unwrap_or_else(|error| panic!("{object}: {error}"));
        finds(&site, &[found]);
        fs::rename(&away, &file).expect("to move");
        site.must_be_sound();
    }
}

#[test]
fn settings_that_no_longer_protect_are_found_where_all_sums_were_made_to_fit() {
    let site = site();
    let (journal, manifest) = (site.text("journal.jsonl"), site.text("manifest.json"));
    let protect = site.manifest()["run_config"]["protect"].clone();
    let now = format!("\"protect\":{protect}");
    let edit = |to: &str| {
        let journal = summed_journal(&journal.replacen(&now, to, 1));
        fs::write(site.path("journal.jsonl"), journal).expect("to write");
        let manifest = summed_manifest(&manifest.replacen(&now, to, 1));
        fs::write(site.path("manifest.json"), manifest).expect("to write");
    };
    edit("\"protect\":[]");
    finds(&site, &["the recorded `protect` lacks `treebeam.toml`, which is always protected"]);
    // A list that covers changes of candidates is not the one that they were checked with.
    edit(&now.replacen('[', "[\"treebeam_dry_run.txt\",", 1));
    finds(&site, &["its commit changes `treebeam_dry_run.txt`, which is protected"]);
    edit(&now);
    site.must_be_sound();
}

// ---- the chain of the journal

/// Removes the last lines of the journal, and the manifests that contain them.
fn cut(site: &Site, lines: usize) {
    for name in ["manifest.json", "manifest.json.prev"] {
        drop(fs::remove_file(site.path(name)));
    }
    let journal = site.text("journal.jsonl");
    let kept = journal.lines().count() - lines;
    let kept: String = journal.split_inclusive('\n').take(kept).collect();
    fs::write(site.path("journal.jsonl"), kept).expect("to write");
}

#[test]
fn a_journal_that_was_cut_at_a_line_end_is_found() {
    for lines in [1, 2, 5] {
        let site = site();
        cut(&site, lines);
        finds(&site, &["it was cut"]);
    }
}

/// Changes the time in the journal's first line, and adjusts all checksums.
fn rebuilt(mut text: String) -> String {
    let at = text.find("\"t\":\"20").expect("a time") + "\"t\":\"20".len();
    text.replace_range(at..=at, "1");
    summed_journal(&text)
}

#[test]
fn a_journal_that_was_rebuilt_without_its_ref_is_found() {
    let site = site();
    let rebuild = |text| Some(rebuilt(text));
    spoiled(&site, "journal.jsonl", rebuild, &["is not the one that `refs/treebeam/t` names"]);
}

#[test]
fn a_changed_line_breaks_the_chain_even_where_its_sum_fits() {
    let site = site();
    let spoil = |text: String| {
        let line = text.lines().nth(4).expect("a line");
        let body =
            line[..line.rfind(",\"sum\":\"").expect("a sum")].replacen("\"t\":\"2", "\"t\":\"1", 1);
        let sum = Sha256::hash_bytes(body.as_bytes()).to_string();
        Some(text.replacen(line, &format!("{body},\"sum\":\"{}\"}}", &sum[..16]), 1))
    };
    spoiled(&site, "journal.jsonl", spoil, &["line 6: event 5 is not the line that event 6 names"]);
}

/// Opening the run reads the journal only after the manifest's last event, and no other check reads
/// the lines before it.
#[test]
fn damage_in_a_journal_that_was_begun_after_a_manifest_is_found() {
    let site = site();
    fs::remove_file(site.path("journal.jsonl")).expect("to remove");
    site.resume(&["--force", "--max-total-idea-evals=14"]);
    assert!(!site.text("journal.jsonl").contains("\"run_started\""), "it was begun anew");
    let spoil = |text: String| Some(text.replacen("\"t\":\"2", "\"t\":\"1", 1));
    spoiled(&site, "journal.jsonl", spoil, &["line 1: the checksum does not fit"]);
}

/// The next stop writes the ref anew: after that the difference is lost.
#[test]
fn a_resume_says_that_its_journal_is_not_the_one_that_the_ref_names() {
    let site = site();
    let said = site.resume(&["--max-total-idea-evals=14"]);
    assert!(!said.stderr.contains("refs/treebeam/"), "{}", said.stderr);
    cut(&site, 2);
    let said = site.resume(&[]);
    let _ = said.says(["`journal.jsonl`: it ends at event ", "`refs/treebeam/t` names event "]);
    let journal = rebuilt(site.text("journal.jsonl"));
    fs::write(site.path("journal.jsonl"), journal).expect("to write");
    for name in ["manifest.json", "manifest.json.prev"] {
        drop(fs::remove_file(site.path(name)));
    }
    let said = site.resume(&[]);
    let _ = said.says(["is not the one that `refs/treebeam/t` names: it was rewritten"]);
}

#[test]
fn the_ref_of_a_journal_goes_with_its_run_and_its_absence_is_a_warning() {
    let site = site();
    let git = |arguments: &[&str]| site.repo.git_in(site.repo.path(), arguments).expect("git");
    let blob = git(&["cat-file", "blob", "refs/treebeam/t"]);
    let named: serde_json::Value = serde_json::from_str(&blob).expect("JSON");
    let journal = site.text("journal.jsonl");
    assert_eq!(named["seq"], journal.lines().count());
    let last = journal.lines().last().expect("a line");
    assert_eq!(named["digest"], Sha256::hash_bytes(last.as_bytes()).to_string());
    git(&["update-ref", "-d", "refs/treebeam/t"]);
    let said = site.call(&["validate", SITE_RUN_ID]).exits(0);
    let _ = said.says(["warning", "`refs/treebeam/t` is missing", "is sound; warnings: 1"]);
    site.resume(&["--max-total-idea-evals=14"]);
    let _ = site.call(&["export", SITE_RUN_ID, "--branch", "kept"]).exits(0);
    let said = site.call(&["clean", SITE_RUN_ID, "--delete", "--yes"]).exits(0);
    let _ = said.says(["removed: run t: ref `refs/treebeam/t`"]);
    assert_eq!(git(&["for-each-ref", "refs/treebeam"]), "");
}

#[test]
fn a_run_of_an_older_treebeam_is_not_chained_and_not_damaged() {
    let site = site();
    let git = |arguments: &[&str]| site.repo.git_in(site.repo.path(), arguments).expect("git");
    git(&["update-ref", "-d", "refs/treebeam/t"]);
    for name in ["manifest.json", "manifest.json.prev"] {
        drop(fs::remove_file(site.path(name)));
    }
    let plain = |line: &str| {
        let at = line.find(PREV).expect("a digest");
        format!("{}{}\n", &line[..at], &line[at + PREV.len() + 64 + "\",".len()..])
    };
    let older: String = site.text("journal.jsonl").lines().map(plain).collect();
    fs::write(site.path("journal.jsonl"), summed_journal(&older)).expect("to write");
    let _ = site.call(&["resume", SITE_RUN_ID, "--quiet"]).exits(0);
    git(&["update-ref", "-d", "refs/treebeam/t"]);
    let said = site.call(&["validate", SITE_RUN_ID]).exits(0);
    let _ = said.says(["of the journal are not chained: an older treebeam wrote them", "is sound"]);
    site.resume(&["--max-total-idea-evals=14"]);
    let said = site.call(&["validate", SITE_RUN_ID]).exits(0);
    let _ = said.says(["are not chained", "run t is sound"]);
    cut(&site, 1);
    finds(&site, &["it was cut"]);
}

#[test]
fn an_archived_run_validates_without_its_ref_and_says_so() {
    let site = site();
    let archive = tempfile::tempdir().expect("a folder");
    let run = archive.path().join("kept");
    fs::rename(site.path(""), &run).expect("to move");
    let said = site.call_in(archive.path(), &["validate", "./kept"]).exits(0);
    let _ = said.says(["the end of the journal is not checked: its ref is in the repository"]);
}
