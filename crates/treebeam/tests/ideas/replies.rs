//! Bad answers in place of ideas: a standalone call fails and leaves the folder as it was, in a run
//! it is a recorded failure; the answer is kept.

use crate::desk::{Desk, all, files, whole};
use serde_json::Value;
use std::fs;
use std::path::Path;
use treebeam_testkit::program::SITE_RUN_ID;

/// A size above `MOST`, the limit of an answer.
const TOO_LONG: usize = 17 << 20;
const MOST: usize = 16 << 20;

/// Returns the answers, the expected messages, and the extension of the file for the answer, if
/// there is anything to keep.
fn cases() -> Vec<(Vec<u8>, &'static str, Option<&'static str>)> {
    let binary: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    vec![
        (Vec::new(), "answered nothing", None),
        (b"Sorry, I have none.\n".to_vec(), "the reply has no `IDEA:`", Some("json")),
        ("no word of it\n".repeat(800_000).into_bytes(), "the reply has no `IDEA:`", Some("json")),
        (binary, "is not UTF-8", Some("raw")),
        (
            b"IDEA: x\n".iter().copied().cycle().take(TOO_LONG).collect(),
            "more than 16 MiB",
            Some("raw"),
        ),
    ]
}

/// Asserts that all of the last answer is kept, up to the limit.
fn must_be_kept(calls: &Path, kind: &str, reply: &[u8], what: &str) {
    let entries = fs::read_dir(calls).expect("calls").flatten().map(|entry| entry.path());
    let ending = format!("-a3.{kind}");
    let kept: Vec<_> = entries.filter(|path| path.to_string_lossy().ends_with(&ending)).collect();
    assert_eq!(kept.len(), 1, "{what}: {kept:?}");
    let bytes = fs::read(&kept[0]).expect("a file");
    let bytes = if kind == "raw" {
        bytes
    } else {
        let call: Value = serde_json::from_slice(&bytes).expect("a call");
        call["reply"]["text"].as_str().expect("a text").as_bytes().to_vec()
    };
    let expect = &reply[..reply.len().min(MOST)];
    assert!(bytes == expect, "{what}: {} of {} bytes", bytes.len(), expect.len());
}

#[test]
fn what_is_no_idea_fails_and_leaves_the_folder_as_it_was() {
    for (reply, why, kept) in cases() {
        let desk = Desk::new();
        desk.says(Some(1), whole("a"));
        let _ = desk.call(&["--count=1"]);
        desk.says(None, &reply);
        let said = desk.site.call(&desk.words(&["--count=2"])).exits(1);
        let said = said.says(["error: no idea came: ", why]);
        assert_eq!((desk.names(""), desk.calls()), (vec!["001_a.md".to_owned()], 4), "{why}");
        if let Some(kind) = kept {
            assert!(said.stderr.contains("(kept as `.treebeam/calls/ideas-"), "{}", said.stderr);
            must_be_kept(&desk.site.repo.path().join(".treebeam/calls"), kind, &reply, why);
        }
    }
}

#[test]
fn in_a_run_it_is_a_recorded_failure() {
    for (reply, why, kept) in cases() {
        let desk = Desk::for_runs("");
        desk.says(None, &reply);
        let _ = desk.site.call(&["run", "--run-id", SITE_RUN_ID, "--quiet", "--yes"]);
        assert_eq!(desk.site.manifest()["state"]["stop_reason"], "no_ideas", "{why}");
        let log = desk.site.call(&["log", SITE_RUN_ID]).exits(0).stdout;
        assert!(log.contains(why), "{why}: {log}");
        if let Some(kind) = kept {
            assert!(log.contains("(kept as `node_ideas/0000/calls/ideas-n0000-x1-a3."), "{log}");
            must_be_kept(&desk.site.path("node_ideas/0000/calls"), kind, &reply, why);
        }
        desk.site.must_be_sound();
    }
}

/// An idea in ten megabytes of noise is found.
#[test]
fn an_idea_in_much_noise_is_found_and_cut() {
    let desk = Desk::new();
    desk.says(None, format!("{}{}", all(&["a", "b"]), "and so on\n".repeat(1_000_000)));
    let document = desk.call(&["--count=2"]);
    assert_eq!(files(&document, "generated"), ["001_a.md", "002_b.md"]);
    assert_eq!(desk.calls(), 1);
    let long = fs::metadata(desk.ideas.join("002_b.md")).expect("a file").len();
    assert!((1000..=33_000).contains(&long), "{long}");
}

/// A file listed for the generator is in the prompt, in the pack as it was used, and on record.
#[test]
fn in_a_run_files_that_the_user_lists_are_told_and_recorded() {
    let desk = Desk::for_runs("ideas_context_files = ['notes.md', 'study/']");
    desk.site.repo.write("notes.md", "bees are slow\n").expect("a file");
    desk.site.repo.write("study/ants.txt", "ants are fast\n").expect("a file");
    desk.says(None, all(&["a", "b"]));
    let _ = desk.site.call(&["run", "--run-id", SITE_RUN_ID, "--quiet", "--yes"]).exits(0);
    let pack = desk.site.text("node_ideas/0000/prompt_context.txt");
    let asked = desk.site.text("node_ideas/0000/calls/ideas-n0000-x1-a1_prompt.txt");
    assert_eq!(desk.prompt(1), asked);
    let digest = |text: &str| treebeam_core::id::Sha256::hash_bytes(text.as_bytes()).to_string();
    let recorded = format!(
        "notes.md sha256 {}, study/ants.txt sha256 {}",
        digest("bees are slow\n"),
        digest("ants are fast\n")
    );
    for told in recorded.split(", ").chain(["bees are slow", "=== FILE study/ants.txt ==="]) {
        assert!(pack.contains(told) && asked.contains(told), "{told}: {pack}");
    }
    let manifest = desk.site.manifest();
    assert_eq!(manifest["nodes"]["0000"]["prompt_context_sha256"], digest(&pack));
    assert!(manifest.to_string().contains(&recorded), "{}", manifest["run_config"]);
    // Later changes of the file count from the next start, and are recorded.
    desk.site.repo.write("notes.md", "bees are fast\n").expect("a file");
    let _ = desk.site.call(&["resume", SITE_RUN_ID, "--quiet", "--max-depth=2"]).exits(0);
    assert!(desk.site.text("journal.jsonl").contains(&digest("bees are fast\n")));
    desk.site.must_be_sound();
}

/// The agent works in the worktree of a node, and so may the user.
#[test]
fn in_a_run_nobody_is_asked_where_a_user_has_worked() {
    let desk = Desk::for_runs("");
    desk.says(None, all(&["a", "b"]));
    let _ = desk.site.call(&["run", "--run-id", SITE_RUN_ID, "--quiet", "--yes"]).exits(0);
    let (mine, calls) = (desk.site.path("wt/0001/mine.txt"), desk.calls());
    fs::write(&mine, "mine").expect("a file");
    desk.says(None, all(&["c", "d"]));
    let more = ["resume", SITE_RUN_ID, "--quiet", "--max-depth=2"];
    let _ = desk.site.call(&more).exits(4).says([
        "caused by: somebody has worked in `",
        "wt/0001`, where an agent is to be asked: it has changes that are not committed: `mine.txt`",
        "hint: commit it to a branch of your own",
        "`treebeam clean t --worktrees --discard-changes`",
    ]);
    assert_eq!(
        (fs::read_to_string(&mine).expect("it is there"), desk.calls()),
        ("mine".into(), calls)
    );
    fs::rename(&mine, desk.dir.join("mine.txt")).expect("to move it away");
    let _ = desk.site.call(&more).exits(0);
    assert_eq!(desk.calls(), calls + 1);
    desk.site.must_be_sound();
}
