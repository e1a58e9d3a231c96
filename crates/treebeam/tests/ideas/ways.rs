//! Options of the command, and possible answers of an agent.

use crate::desk::{Desk, all, files, whole};
use serde_json::json;
use std::fs;
use treebeam_core::id::Sha256;

const NONE: [&str; 0] = [];

#[test]
fn ideas_are_generated_kept_added_and_set_aside() {
    let desk = Desk::new();
    desk.says(Some(1), format!("Sure!\n\n{}", all(&["a", "b", "c"])));
    let document = desk.call(&["--count=2"]);
    assert_eq!(files(&document, "generated"), ["001_a.md", "002_b.md"]);
    assert_eq!((&document["missing"], &document["turns"]), (&json!(0), &json!(1)));
    assert_eq!(fs::read_to_string(desk.ideas.join("002_b.md")).expect("an idea"), whole("b"));

    // Existing ideas are kept, and no agent is called.
    let document = desk.call(&["--count=2"]);
    assert_eq!(files(&document, "kept"), ["001_a.md", "002_b.md"]);
    assert_eq!((files(&document, "generated"), desk.calls()), (vec![], 1));

    // A repeated idea is named to the agent in a second question.
    desk.says(Some(2), all(&["A"]).to_uppercase().replace("MODEL.PY: A", "model.py: a"));
    desk.says(Some(3), all(&["d"]));
    let document = desk.call(&["--count=3"]);
    assert_eq!(files(&document, "generated"), ["003_d.md"]);
    assert_eq!((&document["repeats"], &document["turns"]), (&json!(["A"]), &json!(2)));
    assert!(desk.prompt(2).contains("IDEA THAT IS THERE ALREADY: 001_a.md"), "{}", desk.prompt(2));
    assert!(!desk.prompt(2).contains("TRIED BEFORE ===\n- A"), "{}", desk.prompt(2));
    assert!(desk.prompt(3).contains("TRIED BEFORE ===\n- A\n"), "{}", desk.prompt(3));

    // Others replace them; the old ones are not lost.
    desk.says(Some(4), all(&["e", "a", "f"]));
    let document = desk.call(&["--count=2", "--force-regenerate-ideas"]);
    assert_eq!(files(&document, "generated"), ["001_e.md", "002_f.md"]);
    assert_eq!(desk.names(""), ["001_e.md", "002_f.md", "set_aside"]);
    let aside = document["set_aside"]["folder"].as_str().expect("a folder");
    assert_eq!(desk.names(aside), ["001_a.md", "002_b.md", "003_d.md"]);
    assert_eq!(document["repeats"], json!(["a"]));

    // Text output for a person.
    let ideas = desk.ideas.display().to_string();
    let said = desk.site.call(&["ideas", "--count=2", "--ideas-dir", &ideas]).exits(0);
    assert!(
        said.stdout.contains("kept  ") && said.stdout.contains("001_e.md  e\n"),
        "{}",
        said.stdout
    );
    assert_eq!(desk.calls(), 4);
    let status = desk.site.repo.git(["status", "--porcelain"]).expect("git");
    assert_eq!(status, "", "the user's checkout is as it was");
    let worktrees = desk.site.repo.git(["worktree", "list"]).expect("git");
    assert_eq!(worktrees.lines().count(), 1, "{worktrees}");
}

#[test]
fn a_missing_part_is_asked_for_once() {
    let desk = Desk::new();
    desk.says(Some(1), format!("{}\n## **Idea 2:** a\n", whole("b")));
    desk.says(Some(2), whole("a"));
    let document = desk.call(&["--count=2"]);
    assert_eq!(files(&document, "generated"), ["001_b.md", "002_a.md"]);
    let prompt = desk.prompt(2);
    assert!(prompt.contains("- a: it lacks `RATIONALE:` and `REQUIRED_CHANGES:`\n"), "{prompt}");
    assert!(prompt.starts_with("Propose 1 new ideas"), "{prompt}");

    // Without an answer to the second question, the idea is used as it is.
    let desk = Desk::new();
    desk.says(None, "IDEA: c\n");
    let document = desk.call(&["--count=1"]);
    assert_eq!((files(&document, "generated"), desk.calls()), (vec!["001_c.md".to_owned()], 2));
}

#[test]
fn fewer_than_wanted_are_kept_and_the_rest_is_said_to_be_missing() {
    let desk = Desk::new();
    desk.says(None, whole("a"));
    let document = desk.call(&["--count=3"]);
    assert_eq!((&document["missing"], &document["turns"]), (&json!(2), &json!(3)));
    assert_eq!(document["why"], "every idea was a repeat");
    assert_eq!(desk.names(""), ["001_a.md"]);
}

#[test]
fn what_is_told_follows_from_folders_strategy_and_baseline() {
    let desk = Desk::new();
    let other = desk.dir.join("other");
    fs::create_dir_all(&other).expect("a folder");
    fs::write(other.join("x.md"), whole("x")).expect("an idea");
    fs::write(desk.dir.join("baseline.txt"), "the loss is 0.25\n").expect("a file");
    let other = other.to_str().expect("a path");
    let baseline = desk.dir.join("baseline.txt");
    let context =
        ["--context-ideas-dir", other, "--baseline-context", baseline.to_str().expect("a path")];
    desk.says(Some(1), all(&["x", "y"]));
    let document = desk.call(&[&context[..], &["--count=1"]].concat());
    assert_eq!(files(&document, "generated"), ["001_y.md"], "one of a context folder is a repeat");
    assert_eq!(files(&document, "context"), ["other/x.md"]);
    let prompt = desk.prompt(1);
    for told in
        ["IDEA THAT IS THERE ALREADY: other/x.md", "the loss is 0.25", "- other/x.md sha256 "]
    {
        assert!(prompt.contains(told), "{told}: {prompt}");
    }
    assert!(!prompt.contains(&desk.dir.display().to_string()), "no absolute path: {prompt}");

    // First from the folder alone, then from all runs, too.
    desk.says(Some(2), all(&["x"]));
    let document =
        desk.call(&[&context[..], &["--count=2", "--context-strategy=node_only"]].concat());
    assert_eq!(files(&document, "generated"), ["002_x.md"]);
    assert!(!desk.prompt(2).contains("other/x.md"), "{}", desk.prompt(2));
    desk.site.run(&["--quiet", "--ideas-per-node=1", "--max-depth=1"]);
    desk.says(Some(3), all(&["z"]));
    let _ = desk.call(&["--count=3", "--context-strategy=global_prior_ideas"]);
    assert!(
        desk.prompt(3).contains("IDEA THAT IS THERE ALREADY: t/0000/001_dry_"),
        "{}",
        desk.prompt(3)
    );
}

#[test]
fn files_that_the_user_lists_are_told_with_their_digests() {
    let desk = Desk::new();
    desk.says(None, whole("a"));
    desk.site.repo.write("notes/b.md", "bees are slow\n").expect("a file");
    desk.site.repo.write("notes/a.txt", "ants are fast\n").expect("a file");
    desk.site.repo.write("notes/c.py", "no note").expect("a file");
    desk.site.repo.write("long.txt", &"x".repeat(20_000)).expect("a file");
    let _ = desk.call(&["--count=1", "--ideas-context-files=notes,long.txt"]);
    let prompt = desk.prompt(1);
    let digest = Sha256::hash_bytes(b"bees are slow\n");
    for told in [
        "=== FILE notes/a.txt ===\n```\nants are fast\n```\n\n=== FILE notes/b.md ===\n```\nbees are slow\n```\n",
        &format!("- notes/b.md sha256 {digest}\n- long.txt sha256 "),
        "(its first 16000 characters)",
    ] {
        assert!(prompt.contains(told), "{told}: {prompt}");
    }
    assert!(!prompt.contains("no note") && !prompt.contains(&"x".repeat(16_001)), "{prompt}");
    desk.site.repo.write(".env", "KEY=1\n").expect("a file");
    for (wrong, why) in [
        ("none.md", "there is no file `none.md`"),
        (".env", "`.env` is called like a file that holds keys"),
    ] {
        let flag = format!("--ideas-context-files={wrong}");
        let said = desk.site.call(&desk.words(&["--count=2", &flag])).exits(2);
        let _ = said.says([why]);
    }
    assert_eq!(desk.calls(), 1);
}

/// The same letters, composed or not, are the same idea; repeats are accepted where the scope
/// allows them.
#[test]
fn what_is_a_repeat_is_said_by_the_scope() {
    let (composed, apart) = (whole("caf\u{e9}"), whole("cafe\u{301}"));
    for (scope, expect) in [("node_plus_ancestors", 2), ("global", 2), ("none", 1)] {
        let desk = Desk::new();
        let config = desk.site.repo.path().join("treebeam.toml");
        let agents = fs::read_to_string(&config).expect("a file");
        fs::write(&config, format!("dedupe_scope = '{scope}'\n{agents}")).expect("a file");
        desk.says(Some(1), format!("{composed}{apart}"));
        desk.says(Some(2), whole("tea"));
        let document = desk.call(&["--count=2"]);
        assert_eq!((files(&document, "generated").len(), desk.calls()), (2, expect), "{scope}");
        let repeats = if expect == 2 { json!(["cafe\u{301}"]) } else { json!([]) };
        assert_eq!(document["repeats"], repeats, "{scope}");
        if expect == 2 {
            assert!(desk.prompt(2).contains("TRIED BEFORE ===\n- cafe"), "{}", desk.prompt(2));
        }
    }
}

#[test]
fn wrong_calls_say_what_is_wrong() {
    let desk = Desk::new();
    let _ = desk.site.call(&["ideas", "--count=2"]).exits(2).says(["--ideas-dir <DIR>"]);
    let _ = desk.site.call(&desk.words(&["--count=0"])).exits(2);
    let missing = ["--context-ideas-dir", "nowhere"];
    let _ =
        desk.site.call(&desk.words(&missing)).exits(1).says(["cannot read the folder `nowhere`"]);
    desk.site.repo.write("treebeam.toml", "").expect("a file");
    let _ = desk.site.call(&desk.words(&["--count=1"])).exits(2).says(["agents.ideas"]);
    assert_eq!((desk.calls(), desk.names("")), (0, NONE.map(str::to_owned).to_vec()));
}

/// Keeps the page from going stale.
#[test]
fn what_the_page_shows_works() {
    let desk = Desk::new();
    desk.site.repo.write("tried/x.md", &whole("x")).expect("an idea");
    desk.site.repo.write("baseline.txt", "the loss is 0.25\n").expect("a file");
    desk.site.repo.write("notes.md", "bees are slow\n").expect("a file");
    desk.site.repo.write("study/ants.txt", "ants are fast\n").expect("a file");
    let page = include_str!("../../../../docs/ideas.md");
    let shown: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("treebeam ")).collect();
    assert_eq!(shown.len(), 7);
    for (number, line) in (1..).zip(&shown) {
        let titles: Vec<String> = (0..6).map(|idea| format!("idea {number} {idea}")).collect();
        let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
        desk.says(Some(number), all(&titles));
        let words: Vec<&str> = line.split(' ').collect();
        let said = desk.site.call(&words).exits(0);
        assert!(said.stdout.contains(&format!("_idea_{number}_")), "{line}: {}", said.stdout);
    }
    assert_eq!(desk.calls(), 7);
}
