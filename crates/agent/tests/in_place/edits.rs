//! Agents that edit a worktree, with real git: the change comes back as a diff. The worktree is
//! then restored, however they changed it.

use crate::workplace::{Nobody, Workplace, candidate, question, script};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;
use treebeam_agent::AgentDoor;
use treebeam_agent::settings::EditMode::{self, Diff, InPlace};
use treebeam_core::id::{CodePlace, NodeId};
use treebeam_core::measure::WorktreePath;
use treebeam_run::port::{AgentError, AgentReply, AgentRole, ApplyResult, Repo as _};
use treebeam_testkit::hostile;

const FILES: [(&str, &str); 4] =
    [("a.txt", "one\ntwo\n"), ("b.txt", "b\n"), ("gone.txt", "x\n"), (".gitignore", "cache/\n")];

fn edited(place: &Workplace, text: &str) -> Result<AgentReply, AgentError> {
    place.ask(script(text, InPlace), "k")
}

/// Checks the diff of an edit: applied, it gives the worktree that the editor left.
fn check(files: &[(&str, &str)], edit: &str, parts: &[&str]) -> Workplace {
    let place = Workplace::new(files);
    let before = place.files();
    let reply = edited(&place, edit).unwrap_or_else(|error| panic!("{edit}: {error}"));
    let diff = reply.edits.expect("edits");
    for part in parts {
        assert!(diff.contains(part), "{edit}: no {part:?} in {diff}");
    }
    assert_eq!(place.files(), before, "{edit}: it is put back");
    assert_eq!(
        place.git.apply_to_worktree(candidate(), &diff).expect("git"),
        ApplyResult::Cleanly,
        "{diff}"
    );
    place
}

#[test]
fn the_change_is_what_git_says() {
    let edit = "echo three >> a.txt; rm gone.txt; mkdir d; echo n > d/new; echo done";
    let place = check(&FILES, edit, &["+three", "deleted file", "d/new", "+n"]);
    let files = place.files();
    assert_eq!(files["a.txt"], b"one\ntwo\nthree\n");
    assert!(!files.contains_key("gone.txt") && files["d/new"] == b"n\n");
    // Files that git ignores are not in the diff, and are removed.
    let place = check(&FILES, "mkdir cache; echo x > cache/y; echo z >> b.txt", &["+z"]);
    assert!(!place.worktree().join("cache").exists());
    // Files may hold any bytes.
    let odd = "printf '\\000\\001\\002' > data.bin; printf 'caf\\351\\n' >> a.txt; chmod +x b.txt";
    let place = check(&FILES, odd, &["GIT binary patch", "new mode 100755"]);
    let files = place.files();
    assert_eq!(files["data.bin"], [0, 1, 2]);
    assert_eq!(files["a.txt"], b"one\ntwo\ncaf\xe9\n");
}

#[test]
fn what_the_agent_does_with_git_changes_nothing() {
    let name = "-c user.name=x -c user.email=x@x";
    for act in [
        format!("git add -A; git {name} commit -qm mine"),
        "git add -A; git update-index --assume-unchanged a.txt; git update-index --skip-worktree b.txt".to_owned(),
        format!("git add -A; git {name} stash -q; git stash pop -q"),
        "rm .git".to_owned(),
        "echo gitdir: /nowhere > .git".to_owned(),
        "rm .git; git init -q .; git add -A".to_owned(),
        "rm -rf \"$(git rev-parse --git-dir)\"".to_owned(),
    ] {
        let edit = format!("echo mine >> a.txt; echo new > b2.txt; {act}; echo done");
        let place = check(&FILES, &edit, &["+mine", "b2.txt"]);
        assert_eq!(place.head(), place.repo.git(["rev-parse", "HEAD"]).expect("git").trim().parse().expect("a commit"));
    }
}

#[test]
fn what_cannot_be_a_change_fails_this_one_question() {
    for (edit, why) in [
        ("rm -rf ../0001", "the worktree is not there any more"),
        ("rm -rf ../0001; ln -s / ../0001", "the worktree is not there any more"),
        ("head -c 20000000 /dev/zero > huge", "more than 16 MiB: `huge`"),
        ("mkdir n; cd n; git init -q .; echo x > y", "git cannot take up the change"),
    ] {
        let place = Workplace::new(&FILES);
        let before = place.files();
        let said = edited(&place, &format!("{edit}; echo done"));
        let Err(AgentError::Unanswered(said)) = said else { panic!("{edit}: {said:?}") };
        assert!(said.contains(why), "{edit}: {said}");
        assert_eq!(place.files(), before, "{edit}");
    }
    // These are changes like any other; whether they are allowed is decided elsewhere.
    let link = check(&FILES, "ln -s /etc/passwd link", &["new file mode 120000"]);
    assert!(fs::symlink_metadata(link.worktree().join("link")).expect("a link").is_symlink());
    let nested =
        "git init -q n; cd n; git -c user.name=x -c user.email=x@x commit -q --allow-empty -m x";
    check(&FILES, nested, &["new file mode 160000"]);
}

#[test]
fn a_file_that_nobody_may_read_fails_this_one_question() {
    let place = Workplace::new(&FILES);
    let edit =
        "echo x > secret; chmod 000 secret; mkdir locked; echo y > locked/z; chmod 000 locked";
    match edited(&place, edit) {
        Err(AgentError::Unanswered(why)) => assert!(why.contains("Permission denied"), "{why}"),
        // The administrator may read everything; for other users git skips such a folder.
        Ok(reply) => assert!(reply.edits.is_some_and(|diff| diff.contains("secret"))),
        other => panic!("{other:?}"),
    }
    assert_eq!(place.files().len(), FILES.len());
}

#[test]
fn no_change_is_an_answer_too() {
    let place = Workplace::new(&FILES);
    let reply = edited(&place, "touch a.txt; echo I would rather not").expect("an answer");
    assert_eq!((reply.edits.as_deref(), reply.text.trim()), (Some(""), "I would rather not"));
    // A failed agent has no edits.
    let failed = edited(&Workplace::new(&FILES), "echo x >> a.txt; exit 3");
    assert!(matches!(failed, Err(AgentError::Unanswered(_))), "{failed:?}");
}

#[test]
fn the_next_round_sees_what_the_last_one_left() {
    let place = Workplace::new(&FILES);
    let first = place.ask(script("echo r1 >> a.txt; echo n > new", InPlace), "r1").expect("one");
    place.git.apply_to_worktree(candidate(), &first.edits.expect("edits")).expect("git");
    let second = "grep -q r1 a.txt && grep -q n new && echo r2 >> a.txt && rm new";
    let second = place.ask(script(second, InPlace), "r2").expect("two").edits.expect("edits");
    assert!(!second.contains("+r1") && second.contains("+r2"), "only its own: {second}");
    assert_eq!(
        place.git.apply_to_worktree(candidate(), &second).expect("git"),
        ApplyResult::Cleanly
    );
    assert_eq!(place.files()["a.txt"], b"one\ntwo\nr1\nr2\n");
    assert!(!place.files().contains_key("new"));
}

#[test]
fn inputs_are_there_for_whoever_edits_and_no_part_of_the_change() {
    let mut place = Workplace::new(&FILES);
    let input = |path: &str| WorktreePath::try_from(path.to_owned()).expect("a path");
    place.inputs = ["gone", "big/data"].map(input).into();
    let lies = place.repo.path().join("big/data");
    fs::create_dir_all(&lies).expect("a folder");
    fs::write(lies.join("prices"), "7\n").expect("a file");
    let before = place.files();
    let check = |key: &str, edit: &str, parts: &[&str]| {
        let reply = place.ask(script(edit, InPlace), key).unwrap_or_else(|why| panic!("{why}"));
        let diff = reply.edits.expect("edits");
        assert!(parts.iter().all(|part| diff.contains(part)), "{edit}: {diff}");
        assert_eq!((diff.is_empty(), place.files()), (parts.is_empty(), before.clone()), "{edit}");
        assert_eq!(fs::read(lies.join("prices")).expect("the data"), b"7\n", "{edit}");
    };
    check("looked", "cat big/data/prices", &[]);
    check("used", "cat big/data/prices >> a.txt", &["+7"]);
    check("added", "git add -f big/data; echo x >> a.txt", &["+x"]);
    check("removed", "rm big/data; echo x >> a.txt", &["+x"]);
    check(
        "replaced",
        "rm big/data; mkdir big/data; echo 8 > big/data/prices",
        &["big/data/prices", "+8"],
    );
}

#[test]
fn an_answer_that_is_kept_needs_no_agent() {
    let place = Workplace::new(&FILES);
    let count = place.repo.path().join("count");
    let edit = format!("echo x >> '{}'; echo y >> a.txt", count.display());
    let (first, second) = (edited(&place, &edit), edited(&place, &edit));
    assert_eq!(first.expect("one"), second.expect("the same"));
    assert_eq!(fs::read_to_string(count).expect("counted"), "x\n");
}

#[test]
fn what_those_change_who_only_answer_is_undone() {
    let edits: [(AgentRole, EditMode); 5] = [
        (AgentRole::Coder, Diff),
        (AgentRole::Coordinator, InPlace),
        (AgentRole::Planner, InPlace),
        (AgentRole::Reviewer, InPlace),
        (AgentRole::Ideas, InPlace),
    ];
    let node = CodePlace::Node("0000".parse::<NodeId>().expect("an id"));
    for (role, edits) in edits {
        let place = Workplace::new(&FILES);
        place.git.checkout_worktree(node, &place.head()).expect("a worktree");
        place.git.set_place_ref(node, &place.head()).expect("a ref");
        // Files that a killed agent has left in a node's worktree are gone.
        fs::write(place.run().join("wt/0000/stray"), "x").expect("written");
        let work = "test ! -e stray && echo x >> a.txt && rm b.txt && echo IDEA: it && pwd";
        let plan = place.plan(script(work, edits), Duration::from_mins(1));
        let door = AgentDoor::open(&plan, &Nobody).expect("the door");
        let at = if role == AgentRole::Ideas { node } else { candidate() };
        let reply = door.answer_question(&question("k", role, at)).expect("an answer");
        assert!(reply.text.starts_with("IDEA: it\n/"), "{role}: {}", reply.text);
        assert_eq!(reply.edits, None, "{role}");
        for tree in ["wt/0000", "cand/0001"] {
            let tree = place.run().join(tree);
            assert_eq!(fs::read_to_string(tree.join("a.txt")).expect("a file"), "one\ntwo\n");
            assert!(tree.join("b.txt").exists(), "{role}");
        }
    }
}

/// Asks for ideas in the worktree of a node other than the root; an earlier file must be gone.
fn ideas(place: &Workplace, key: &str) -> Result<AgentReply, AgentError> {
    let work = script("test ! -e mine && echo IDEA: it && echo x > seen", Diff);
    let plan = place.plan(work, Duration::from_mins(1));
    AgentDoor::open(&plan, &Nobody).expect("the door").answer_question(&question(
        key,
        AgentRole::Ideas,
        node(),
    ))
}

fn node() -> CodePlace {
    CodePlace::Node("0001".parse::<NodeId>().expect("an id"))
}

fn with_node() -> (Workplace, PathBuf) {
    let place = Workplace::new(&FILES);
    place.git.checkout_worktree(node(), &place.head()).expect("a worktree");
    place.git.set_place_ref(node(), &place.head()).expect("a ref");
    let folder = place.run().join("wt/0001");
    (place, folder)
}

#[test]
fn what_a_user_has_in_the_worktree_of_a_node_stops_whoever_is_asked_there() {
    let (place, folder) = with_node();
    ideas(&place, "first").expect("an answer");
    let says = |key: &str, found: &str| match ideas(&place, key) {
        Err(AgentError::Unavailable(error)) => {
            let said = error.full_text();
            assert!(said.contains("wt/0001`") && said.contains(found), "{said}");
            let hint = error.hint.expect("a hint");
            assert!(hint.contains("treebeam clean t --worktrees --discard-changes"), "{hint}");
        }
        other => panic!("{other:?}"),
    };
    fs::write(folder.join("mine"), "mine\n").expect("written");
    says("new", "changes that are not committed: `mine`");
    assert_eq!(fs::read_to_string(folder.join("mine")).expect("it is there"), "mine\n");
    place.repo.git_in(&folder, &["add", "mine"]).expect("git");
    place.repo.git_in(&folder, &["commit", "--quiet", "--message", "mine"]).expect("git");
    says("committed", "commits that are on no branch");
    place.repo.git_in(&folder, &["switch", "--quiet", "--create", "own"]).expect("git");
    ideas(&place, "kept").expect("an answer");
    assert!(!folder.join("mine").exists() && !folder.join("seen").exists());
    assert_eq!(place.repo.git(["show", "own:mine"]).expect("it is kept"), "mine");
}

#[test]
fn what_a_killed_agent_left_in_the_worktree_of_a_node_goes() {
    let (place, folder) = with_node();
    let looked = place.git.guard_worktree(node()).expect("a look");
    fs::write(folder.join("mine"), "half\n").expect("written");
    fs::remove_file(folder.join("a.txt")).expect("removed");
    drop(looked);
    ideas(&place, "k").expect("an answer");
    assert!(!folder.join("mine").exists() && folder.join("a.txt").exists());
}

/// An unchanged worktree is not made again; a changed one is.
#[test]
fn who_only_looks_leaves_the_worktree_itself() {
    use std::os::unix::fs::MetadataExt as _;
    let which = |place: &Workplace| fs::metadata(place.worktree()).expect("a worktree").ino();
    let place = Workplace::new(&FILES);
    let first = place.ask(script("echo r1 >> a.txt; echo n > new", InPlace), "r1").expect("one");
    place.git.apply_to_worktree(candidate(), &first.edits.expect("edits")).expect("git");
    let (before, same) = (place.files(), which(&place));
    place
        .ask(script("cat a.txt .git; ls -R; git log; git diff --cached", Diff), "look")
        .expect("an answer");
    assert_eq!((place.files(), which(&place)), (before.clone(), same));
    for (number, touch) in [
        "printf 'one\\ntwo\\nr2\\n' > a.txt; touch -r b.txt a.txt",
        "mkdir cache; echo x > cache/ignored",
        "mkdir empty",
        "chmod +x b.txt",
        "cp b.txt b2; mv b2 b.txt",
        "echo x >> .git",
        "rm new; git rm -q --cached new",
        "echo x > \"$(git rev-parse --git-dir)/description\"",
        "git update-index --assume-unchanged a.txt",
    ]
    .into_iter()
    .enumerate()
    {
        // Held open, because the inode of a removed folder may be reused.
        let held = fs::File::open(place.worktree()).expect("a worktree");
        let was = which(&place);
        let touched =
            place.ask(script(&format!("{touch}; echo done"), Diff), &format!("t{number}"));
        assert_eq!(touched.expect("an answer").text, "done\n", "{touch}");
        assert_eq!(place.files(), before, "{touch}");
        assert_ne!(which(&place), was, "{touch}: it was made again");
        drop(held);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn nothing_of_an_agent_is_left_after_its_deadline_or_its_end() {
    for (stay, seconds) in [("wait", 5), ("leave", 60)] {
        let place = Workplace::new(&FILES);
        let word = format!("agent-{stay}-{}", std::process::id());
        let program = place.repo.path().join("tree.py");
        fs::write(&program, hostile::PROCESS_TREE_SCRIPT).expect("written");
        let program = program.display();
        let tree = format!("echo half >> a.txt; exec python3 '{program}' {word} {stay}");
        let plan = place.plan(script(&tree, InPlace), Duration::from_secs(seconds));
        let door = AgentDoor::open(&plan, &Nobody).expect("the door");
        let reply = door.answer_question(&question("k", AgentRole::Coder, candidate()));
        assert_eq!(hostile::survivors(&word), Vec::<u32>::new(), "{stay}");
        assert_eq!(reply.is_ok(), stay == "leave", "{reply:?}");
        assert_eq!(place.files()["a.txt"], b"one\ntwo\n", "{stay}: it is put back");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn what_a_killed_process_left_running_is_ended_when_the_door_opens() {
    let place = Workplace::new(&FILES);
    let word = format!("orphan-{}", std::process::id());
    let orphan = format!("setsid python3 -c 'import time; time.sleep(300)' {word} & echo ready");
    let mut shell = std::process::Command::new("/bin/sh");
    shell.args(["-c", &orphan]).env("TREEBEAM_MARK", place.worktree());
    assert!(shell.stdout(std::process::Stdio::null()).status().expect("a shell").success());
    let plan = place.plan(script("true", InPlace), Duration::from_mins(1));
    assert!(AgentDoor::open(&plan, &Nobody).is_ok());
    assert_eq!(hostile::survivors(&word), Vec::<u32>::new());
}
