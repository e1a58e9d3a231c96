//! The program works in every kind of repository, or explains why not; and it never changes the
//! user's files.

#![cfg(test)]

use std::fs::{self, File};
use std::path::Path;
use std::thread;
use treebeam_testkit::program::{SITE_RUN_ID, Said, Site};
use treebeam_testkit::repo::TempRepo;

const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");
const SMALL: [&str; 3] = ["--ideas-per-node=3", "--max-depth=1", "--quiet"];

fn start(site: &Site) -> Said {
    start_in(site, site.repo.path())
}

fn start_in(site: &Site, folder: &Path) -> Said {
    site.call_in(folder, &[&["run", "--dry-run", "--run-id", SITE_RUN_ID], &SMALL[..]].concat())
}

fn words(command: &str) -> Vec<&str> {
    command.split(' ').collect()
}

fn folder(name: &str) -> Site {
    Site::from_repo(TempRepo::folder(name).expect("a folder"), BINARY)
}

// ---- what is refused

#[test]
fn a_dirty_checkout_is_refused_with_the_list() {
    let site = Site::new(BINARY);
    let write = |path, text| site.repo.write(path, text).expect("a file");
    write("model.py", "x = 2\n");
    write("new file.txt", "new");
    write("staged.txt", "staged");
    write("ünïcode.txt", "new");
    write("folder/inside.txt", "new");
    site.repo.git(["add", "staged.txt"]).expect("staged");
    fs::remove_file(site.repo.path().join("src/lib/part.txt")).expect("removed");
    let said = start(&site).exits(4);
    let files = ["model.py", "new file.txt", "staged.txt", "ünïcode.txt", "folder/", "part.txt"];
    let said = said.says(files).says(["not clean", "hint: commit, stash"]);
    assert_eq!(said.stderr.lines().filter(|line| line.starts_with("  ")).count(), files.len());
    assert!(!site.repo.path().join(".treebeam").exists(), "nothing was made");
}

#[test]
fn a_long_list_of_dirty_files_is_cut() {
    let site = Site::new(BINARY);
    for number in 0..25 {
        site.repo.write(&format!("f{number:02}"), "").expect("a file");
    }
    let said = start(&site).exits(4).says(["  f00", "  f19", "… and 5 more"]);
    assert!(!said.stderr.contains("f20"), "{}", said.stderr);
}

#[test]
fn what_treebeam_asks_for_itself_is_not_dirt() {
    let site = Site::new(BINARY);
    for path in ["treebeam.toml", ".env", ".treebeam/notes.txt"] {
        site.repo.write(path, "# mine\n").expect("a file");
    }
    let _ = start(&site).exits(0);
    site.must_be_sound();
    for path in ["sub/treebeam.toml", "sub/.env"] {
        site.repo.write(path, "mine\n").expect("a file");
    }
    let _ = site.call(&["run", "--dry-run", "--run-id=other"]).exits(4).says(["  sub/"]);
}

#[test]
fn what_git_ignores_is_not_dirt() {
    let site = Site::new(BINARY);
    site.repo.write(".gitignore", "*.log\nbuild/\n").expect("a file");
    site.repo.commit("ignore").expect("a commit");
    site.repo.write("x.log", "x").expect("a file");
    site.repo.write("build/x", "x").expect("a file");
    let _ = start(&site).exits(0);
    site.must_be_sound();
}

#[test]
fn a_resume_does_not_ask_for_a_clean_checkout() {
    let site = Site::new(BINARY);
    let _ = start(&site).exits(0);
    site.repo.write("model.py", "x = 2\n").expect("a file");
    site.resume(&["--max-depth=2"]);
    let _ = site.call(&["run", "--run-id", SITE_RUN_ID, "--max-depth=3"]).exits(0);
    assert_eq!(site.repo.git(["status", "--porcelain"]).expect("a status"), " M model.py");
}

#[test]
fn a_folder_without_a_repository_is_refused() {
    let site = folder("plain");
    for command in ["run --dry-run", "status", "resume", "report", "validate"] {
        let said = site.call(&words(command)).exits(4);
        let _ = said.says(["is not in a git repository", "`git init`"]);
    }
    for command in ["run --dry-run", "status", "init", "list", "score a.csv b.csv"] {
        let said = site.call(&[&["-C", "nowhere"], &words(command)[..]].concat()).exits(2);
        let _ = said.says(["there is no folder `nowhere`", "hint: "]);
    }
    let file = std::env::current_exe().expect("this test").display().to_string();
    let _ = site.call(&["-C", &file, "status"]).exits(2).says(["is a file, not a folder"]);
}

#[test]
fn a_repository_without_a_commit_is_refused() {
    let site = Site::from_repo(TempRepo::empty().expect("a repository"), BINARY);
    let _ = start(&site).exits(4).says(["has no commit yet", "commit first"]);
}

#[test]
fn a_bare_repository_is_refused() {
    let site = folder("bare.git");
    site.repo.git(["init", "--quiet", "--bare"]).expect("a repository");
    let _ = start(&site).exits(4).says(["is a bare git repository", "clone or a worktree"]);
    let site = Site::new(BINARY);
    let _ = start_in(&site, &site.repo.path().join(".git")).exits(4);
}

#[test]
fn a_worktree_of_a_bare_repository_works() {
    let site = Site::new(BINARY);
    let (bare, tree) = (site.repo.beside("bare.git"), site.repo.beside("tree"));
    let git = |arguments: &[&str]| site.repo.git_in(site.repo.path(), arguments).expect("git");
    git(&["clone", "--quiet", "--bare", ".", &bare.display().to_string()]);
    let add = ["worktree", "add", "--quiet", "--detach"];
    let tree_name = tree.display().to_string();
    site.repo.git_in(&bare, &[&add[..], &[&tree_name]].concat()).expect("a worktree");
    let _ = start_in(&site, &tree).exits(0);
    let _ = site.call_in(&tree, &["validate"]).exits(0);
}

#[test]
fn a_branch_in_the_way_of_the_runs_refs_is_named() {
    for (branch, clear) in [("tree", "tree"), ("tree/t", "tree/t"), ("tree/t/n0000/x", "tree/t")] {
        let site = Site::new(BINARY);
        site.repo.git(["branch", branch]).expect("a branch");
        let _ = start(&site).exits(2).says([clear, "error:", "hint:"]);
        site.repo.git(["branch", "-D", branch]).expect("to remove it");
        let _ = start(&site).exits(0);
        site.must_be_sound();
    }
}

// ---- what works

#[test]
fn a_worktree_of_a_run_leads_to_its_repository() {
    let site = Site::new(BINARY);
    let _ = start(&site).exits(0);
    for command in [&["status"][..], &["run", "--dry-run"]] {
        let said = site.call_in(&site.path("wt/0000"), command).exits(2);
        let _ =
            said.says(["is a worktree of a run", &format!("-C {}", site.repo.path().display())]);
    }
}

#[test]
fn a_run_that_is_being_run_says_by_whom() {
    let site = Site::new(BINARY);
    let _ = start(&site).exits(0);
    assert_eq!(
        site.call(&["status", "--json"]).json_lines()[0]["running"],
        serde_json::Value::Null
    );
    let lock = fs::OpenOptions::new().write(true).open(site.path("run.lock")).expect("a lock");
    lock.lock().expect("to lock");
    assert!(site.call(&["status"]).exits(0).stdout.contains("running     another process"));
    assert_eq!(site.call(&["status", "--json"]).json_lines()[0]["running"], "another process");
}

#[test]
fn no_identity_at_all_is_no_error() {
    let site = Site::new(BINARY);
    let _ = start(&site).exits(0);
    let who = site.repo.git(["log", "-1", "--format=%an <%ae> %cn <%ce>", "tree/t/n0001"]);
    let ours = "treebeam <treebeam@localhost>";
    assert_eq!(who.expect("a commit"), format!("{ours} {ours}"));
}

#[test]
fn the_users_identity_is_taken() {
    let site = Site::new(BINARY);
    site.repo.git(["config", "user.name", "Ada"]).expect("a setting");
    site.repo.git(["config", "user.email", "ada@example.org"]).expect("a setting");
    let _ = start(&site).exits(0);
    let who = site.repo.git(["log", "-1", "--format=%an <%ae> %cn <%ce>", "tree/t/n0001"]);
    assert_eq!(who.expect("a commit"), "Ada <ada@example.org> Ada <ada@example.org>");
}

#[test]
fn a_repository_with_a_submodule_works() {
    let (site, part) = (Site::new(BINARY), Site::new(BINARY));
    let path = part.repo.path().display().to_string();
    let file = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add"];
    let add = [&file[..], &[&path, "part"]].concat();
    site.repo.git_in(site.repo.path(), &add).expect("a submodule");
    site.repo.commit("a part").expect("a commit");
    let _ = start(&site).exits(0).says(["note: this repository has submodules"]);
    site.must_be_sound();
    let tracked = site.repo.git(["ls-tree", "tree/t/n0001", "part"]).expect("a tree");
    assert!(tracked.starts_with("160000 commit"), "the submodule stays in the commit: {tracked}");
    assert_eq!(site.repo.git(["status", "--porcelain"]).expect("a status"), "");
}

#[test]
fn a_path_with_spaces_and_other_letters_works() {
    for name in ["my repo", "Übung/проект 日本", "quote's \"q\" $HOME `x`", "-dash", "a\\b"]
    {
        if cfg!(windows) && name.contains(['"', '\\']) {
            continue;
        }
        let site = folder(name);
        site.repo.git(["init", "--quiet"]).expect("a repository");
        site.repo.write("a file.txt", "a\n").expect("a file");
        site.repo.commit("first").expect("a commit");
        let _ = start(&site).exits(0);
        site.must_be_sound();
        assert_eq!(site.names("cand"), [""; 0], "{name}");
    }
}

#[test]
fn a_folder_of_the_repository_and_another_place_work() {
    let site = Site::new(BINARY);
    let _ = start_in(&site, &site.repo.path().join("src/lib")).exits(0);
    site.must_be_sound();
    let place = site.repo.path().display().to_string();
    let said = site.call_in(&site.repo.home(), &["-C", &place, "status", SITE_RUN_ID]).exits(0);
    assert!(said.stdout.contains(SITE_RUN_ID), "{}", said.stdout);
    assert!(!site.repo.path().join("src/lib/.treebeam").exists());
}

#[test]
fn a_linked_worktree_has_runs_of_its_own() {
    let site = Site::new(BINARY);
    let linked = site.repo.beside("linked");
    let name = linked.display().to_string();
    site.repo.git(["worktree", "add", "--quiet", "-b", "side", &name]).expect("a worktree");
    let _ = start_in(&site, &linked).exits(0);
    let _ = site.call_in(&linked, &["validate"]).exits(0);
    assert!(linked.join(".treebeam/runs").join(SITE_RUN_ID).is_dir());
    let list = site.repo.git(["worktree", "list"]).expect("worktrees");
    assert_eq!(list.lines().count(), 4, "{list}");
    assert_eq!(site.repo.git_in(&linked, &["status", "--porcelain"]).expect("a status"), "");
}

#[test]
fn a_detached_head_works_and_stays() {
    let site = Site::new(BINARY);
    let first = site.repo.git(["rev-parse", "HEAD"]).expect("a commit");
    site.repo.write("model.py", "x = 2\n").expect("a file");
    site.repo.commit("second").expect("a commit");
    site.repo.git(["checkout", "--quiet", "--detach", &first]).expect("a checkout");
    let _ = start(&site).exits(0);
    site.must_be_sound();
    assert_eq!(site.manifest()["root"]["root_commit"], first);
    assert_eq!(fs::read_to_string(site.repo.path().join(".git/HEAD")).unwrap().trim(), first);
}

#[test]
fn what_is_the_users_stays_as_it_was() {
    let site = Site::new(BINARY);
    let git = |arguments: &[&str]| site.repo.git_in(site.repo.path(), arguments).expect("git");
    site.repo.write("model.py", "x = 3\n").expect("a file");
    git(&["stash", "push", "--quiet"]);
    git(&["branch", "other"]);
    git(&["config", "core.hooksPath", "hooks"]);
    site.repo.write("treebeam.toml", "# mine\n").expect("a file");
    let look = || {
        let index = fs::read(site.repo.path().join(".git/index")).expect("an index");
        let head = fs::read(site.repo.path().join(".git/HEAD")).expect("a head");
        let config = fs::read(site.repo.path().join(".git/config")).expect("a config");
        let mine =
            git(&["for-each-ref", "--exclude=refs/heads/tree/**", "--exclude=refs/treebeam/**"]);
        let log = fs::read(site.repo.path().join(".git/logs/HEAD")).expect("a log");
        (index, head, config, log, mine, git(&["stash", "list"]), files(site.repo.path()))
    };
    let before = (git(&["status", "--porcelain"]), look());
    let flags = ["--ideas-per-node=5", "--max-depth=2", "--beam-width=2", "--max-parallel-evals=4"];
    site.run(&flags);
    let after = look();
    assert!(before.1 == after, "{:?}\n{:?}", before.1, after);
    assert_eq!(before.0, git(&["status", "--porcelain"]));
}

/// The files of a checkout, with their times.
fn files(root: &Path) -> Vec<(String, std::time::SystemTime)> {
    let named = ["model.py", "src/lib/part.txt", "treebeam.toml"];
    let time = |name: &str| root.join(name).metadata().and_then(|file| file.modified());
    named.iter().map(|name| ((*name).to_owned(), time(name).expect("a time"))).collect()
}

#[test]
fn the_users_hooks_are_not_called() {
    let site = Site::new(BINARY);
    for hook in ["post-checkout", "pre-commit", "post-commit", "reference-transaction"] {
        let path = format!(".git/hooks/{hook}");
        site.repo.write(&path, "#!/bin/sh\necho called >> \"$HOME/called\"\nexit 1\n").unwrap();
        site.repo.git(["update-index", "--refresh"]).expect("git");
        executable(&site.repo.path().join(path));
    }
    let _ = start(&site).exits(0);
    assert!(!site.repo.home().join("called").exists());
}

#[cfg(unix)]
fn executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a hook");
}

#[cfg(not(unix))]
fn executable(_: &Path) {}

// ---- more than one run

#[test]
fn a_second_run_stands_beside_the_first() {
    let site = Site::new(BINARY);
    let _ = start(&site).exits(0);
    let (refs, summary) = (site.refs(), site.text("TREE_SUMMARY.md"));
    let second = ["run", "--dry-run", "--run-id=second", "--ideas-per-node=2", "--max-depth=1"];
    let _ = site.call(&second).exits(0);
    assert!(refs.lines().all(|line| site.refs().contains(line)), "the first run's refs stay");
    assert_eq!(site.text("TREE_SUMMARY.md"), summary);
    for run in [SITE_RUN_ID, "second"] {
        let said = site.call(&["validate", run]).exits(0);
        let _ = said.says([&format!("run {run} is sound")]);
        assert_eq!(site.call(&["status", run, "--json"]).json_lines()[0]["run_id"], run);
    }
    assert_eq!(site.call(&["status", "--json"]).json_lines()[0]["run_id"], "second", "the latest");
}

#[test]
fn a_run_without_a_name_is_named_after_its_start() {
    let site = Site::new(BINARY);
    let _ = site.call(&[&["run", "--dry-run"], &SMALL[..]].concat()).exits(0);
    let run = site.call(&["status", "--json"]).json_lines()[0]["run_id"].clone();
    let run = run.as_str().expect("a name");
    let form = run.chars().map(|c| if c.is_ascii_digit() { '0' } else { c });
    assert_eq!(form.collect::<String>(), "00000000-000000");
}

#[test]
fn a_finished_run_has_its_reports_rewritten() {
    let site = Site::new(BINARY);
    site.run(&SMALL);
    let reports = ["TREE_SUMMARY.md", "TREE_GRAPH.md", "results.tsv"];
    let before = (site.text("journal.jsonl"), reports.map(|name| site.text(name)));
    for command in ["resume t", "run --run-id t", "run --dry-run --run-id t", "report t"] {
        for name in reports {
            fs::remove_file(site.path(name)).expect("to remove");
        }
        let _ = site.call(&words(command)).exits(0);
        let after = (site.text("journal.jsonl"), reports.map(|name| site.text(name)));
        assert_eq!(before, after, "{command}");
    }
    let _ = site.call(&["resume"]).exits(2).says(["there is no unfinished run in this repository"]);
}

#[test]
fn a_run_that_somebody_runs_is_locked() {
    let site = Site::new(BINARY);
    let _ = start(&site).exits(0);
    let journal = site.text("journal.jsonl");
    let lock = File::options().write(true).open(site.path("run.lock")).expect("the lock's file");
    lock.lock().expect("the lock");
    for command in ["resume t --max-depth 2", "run --run-id t --max-depth 2"] {
        let said = site.call(&words(command)).exits(3);
        let _ = said.says(["runs/t`", "another process"]);
    }
    let time = "2026-01-31T22:00:00Z";
    let note = format!(
        "{{\"pid\":4711,\"hostname\":\"box\",\"created_at\":\"{time}\",\"last_heartbeat_at\":\"{time}\"}}"
    );
    fs::write(site.path("run.lock.json"), note).expect("a note");
    let _ = site
        .call(&["resume", SITE_RUN_ID])
        .exits(3)
        .says(["process 4711 on `box` since 2026-01-31"]);
    assert_eq!(site.text("journal.jsonl"), journal);
    for reading in ["status", "validate", "report"] {
        let _ = site.call(&[reading, SITE_RUN_ID]).exits(0);
    }
    // Dropping the lock is not enough: a child that another test is starting may have the file
    // open, too.
    lock.unlock().expect("to unlock");
    site.resume(&["--max-depth=2"]);
}

#[test]
fn of_several_that_start_the_same_run_one_runs_it() {
    let site = Site::new(BINARY);
    let codes: Vec<_> = thread::scope(|scope| {
        let calls: Vec<_> = (0..4).map(|_| scope.spawn(|| start(&site).code)).collect();
        calls.into_iter().map(|call| call.join().expect("a call")).collect()
    });
    assert!(codes.contains(&Some(0)), "{codes:?}");
    assert!(codes.iter().all(|code| matches!(code, Some(0..=3))), "{codes:?}");
    site.must_be_sound();
    let started = site.events().into_iter().filter(|event| event["type"] == "run_started");
    assert_eq!(started.count(), 1);
    assert_eq!(
        fs::read_dir(site.path("..")).expect("runs").count(),
        1,
        "nothing half made is left"
    );
}

#[test]
fn a_wrong_run_id_is_wrong_usage() {
    let site = Site::new(BINARY);
    for id in ["", "a/b", "..", "-x", "a b", "ä", &"x".repeat(41), "CON", "lpt1", "a.lock"] {
        let id = format!("--run-id={id}");
        let said = site.call(&["run", "--dry-run", &id]).exits(2);
        assert!(said.stderr.starts_with("error:"), "{id}: {}", said.stderr);
    }
    assert!(!site.repo.path().join(".treebeam").exists());
    for command in ["status", "resume", "report", "validate"] {
        let _ = site.call(&[command, "nope"]).exits(2).says(["nope"]);
        let _ = site.call(&[command, "../t"]).exits(2).says(["../t"]);
        let _ =
            site.call(&[command]).exits(2).says(["hint: start one with `treebeam run --dry-run`"]);
    }
    assert!(!site.repo.path().join(".treebeam").exists(), "nothing was made");
}

#[test]
fn a_new_run_needs_the_dry_world_for_now() {
    let site = Site::new(BINARY);
    let _ = site.call(&["run"]).exits(2).says(["--dry-run"]);
}
