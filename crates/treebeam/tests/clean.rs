//! `treebeam clean`: leftovers are removed, requested items are removed after an announcement, and
//! a user's own work stays.

#![cfg(test)]

use serde_json::Value;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use treebeam_testkit::program::{SITE_RUN_ID, Said, Site};

const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");
const SMALL: [&str; 3] = ["--ideas-per-node=4", "--max-depth=2", "--quiet"];

/// Makes a small finished run; the flags decide what it keeps.
fn over(flags: &[&str]) -> Site {
    let site = Site::new(BINARY);
    site.run(&[&SMALL[..], flags].concat());
    site
}

fn clean(site: &Site, arguments: &[&str]) -> Said {
    site.call(&[&["clean"], arguments].concat())
}

/// Returns kind, name and outcome of each item.
fn items(said: &Said) -> Vec<(String, String, String)> {
    let text = |item: &Value, name: &str| item[name].as_str().expect("a text").to_owned();
    let document = said.json_lines().remove(0);
    let items = document["items"].as_array().expect("items").iter();
    items.map(|item| (text(item, "kind"), text(item, "name"), text(item, "outcome"))).collect()
}

fn runs(site: &Site) -> PathBuf {
    site.repo.path().join(".treebeam/runs")
}

fn entries(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut names: Vec<_> =
        entries.map(|entry| entry.expect("an entry").file_name().display().to_string()).collect();
    names.sort();
    names
}

fn worktrees(site: &Site) -> usize {
    site.repo.git(["worktree", "list"]).expect("the worktrees").lines().count() - 1
}

/// Asserts that nothing of the run is left, in the repository and on disk.
#[track_caller]
fn nothing_is_left(site: &Site) {
    assert!(!site.refs().contains("refs/heads/tree/"), "{}", site.refs());
    assert_eq!(worktrees(site), 0);
    assert_eq!(entries(&runs(site)), Vec::<String>::new());
    let _ = clean(site, &[]).exits(0).says(["there is nothing to remove"]);
}

/// Sets the modification time of a file or folder to this many minutes ago.
fn age(path: &Path, minutes: u64) {
    let then = SystemTime::now() - Duration::from_secs(60 * minutes);
    File::open(path).and_then(|file| file.set_modified(then)).expect("another time");
}

#[test]
fn worktrees_go_on_request_and_the_run_goes_on() {
    let site = over(&["--keep-rejected-worktrees", "--keep-failed-artifacts"]);
    let (before, refs) = (site.names("wt"), site.refs());
    assert!(before.len() > 1 && !site.names("cand").is_empty());

    let said = clean(&site, &[SITE_RUN_ID, "--worktrees"]).exits(2);
    let _ = said.says(["to remove: run t: worktree `wt/0000`", "nothing was removed", "`--yes`"]);
    let _ = clean(&site, &[SITE_RUN_ID, "--worktrees", "--dry-run"])
        .exits(0)
        .says(["to remove in all: "]);
    assert_eq!(site.names("wt"), before, "nothing is removed without a yes");

    let said = clean(&site, &["--worktrees", "--yes", "--discard-changes", "--json"]).exits(0);
    assert!(items(&said).iter().all(|(.., outcome)| outcome == "removed"), "{said:?}");
    assert!(site.names("wt").is_empty() && site.names("cand").is_empty());
    assert_eq!(worktrees(&site), 0, "git knows none of them");
    assert_eq!(site.refs(), refs, "refs stay");
    site.must_be_sound();
    let shown = site.call(&["show", SITE_RUN_ID, "n0001"]).exits(0).stdout;
    assert!(shown.contains("wt/0001 (removed)"), "{shown}");
    let (manifest, events) = (site.manifest(), site.events());
    assert_eq!(manifest["history"]["seq"], events.len(), "the manifest is complete");
    assert_eq!(manifest["state"]["removed"].as_array().map(Vec::len), Some(before.len()));
    let asked = events.iter().position(|event| event["type"] == "removal_asked");
    assert!(asked.is_some_and(|asked| events[asked + 1]["type"] == "discarded"));

    let _ =
        clean(&site, &[SITE_RUN_ID, "--worktrees"]).exits(0).says(["there is nothing to remove"]);
    site.resume(&["--max-depth=3", "--quiet"]);
    assert!(site.manifest()["state"]["completed_depths"].as_array().map(Vec::len) > Some(2));
}

#[test]
fn a_run_without_worktrees_ends_as_any_other() {
    let (whole, site) = (Site::new(BINARY), over(&[]));
    whole.run(&SMALL);
    whole.resume(&["--max-depth=3", "--quiet"]);
    let _ = clean(&site, &[SITE_RUN_ID, "--worktrees", "--yes"]).exits(0);
    site.resume(&["--max-depth=3", "--quiet"]);
    for report in ["TREE_SUMMARY.md", "TREE_GRAPH.md", "results.tsv"] {
        assert_eq!(whole.text(report), site.text(report));
    }
    assert_eq!(whole.refs(), site.refs());
    assert_eq!(whole.manifest()["evaluations"], site.manifest()["evaluations"]);
}

#[test]
fn what_a_user_did_in_a_worktree_stays() {
    let site = over(&[]);
    let [changed, new, committed] = ["0000", "0001", "0002"].map(|node| site.path("wt").join(node));
    fs::write(changed.join("model.py"), "x = 7\n").expect("a change");
    fs::write(new.join("notes.txt"), "mine\n").expect("a file");
    let commit = ["commit", "--quiet", "--allow-empty", "--message", "mine"];
    site.repo.git_in(&committed, &commit).expect("a commit");
    let before = site.events().len();
    let said = clean(&site, &[SITE_RUN_ID, "--worktrees", "--yes"]).exits(1);
    let _ = said.says([
        "not removed: run t: worktree `wt/0000`",
        "it has changes that are not committed: `model.py` (`--discard-changes` removes it)",
        "it has changes that are not committed: `notes.txt`",
        "it has commits that are on no branch",
    ]);
    assert!(changed.exists() && new.exists() && committed.exists());
    assert_eq!(site.events().len(), before, "nothing was asked for");
    let _ = clean(&site, &[SITE_RUN_ID, "--delete", "--yes"])
        .exits(1)
        .says(["work in its worktrees or on its branches"]);
    site.must_be_sound();
    // A worktree that is the current folder of the caller is kept, whatever the flags are.
    let top = site.repo.path().display().to_string();
    let there = ["-C", &top, "clean", SITE_RUN_ID, "--worktrees", "--yes", "--discard-changes"];
    let _ = site.call_in(&new, &there).exits(1).says(["`wt/0001`", "you are in it"]);
    assert!(!changed.exists() && new.exists() && !committed.exists());
    let _ = clean(&site, &[SITE_RUN_ID, "--worktrees", "--yes", "--discard-changes"]).exits(0);
    assert!(!new.exists());
}

#[test]
fn a_branch_that_a_user_has_gone_on_with_stays() {
    let site = over(&[]);
    let before = site.repo.git(["branch", "--show-current"]).expect("a branch");
    site.repo.git(["switch", "--quiet", "tree/t/n0001"]).expect("the branch");
    site.repo.git(["commit", "--quiet", "--allow-empty", "--message", "mine"]).expect("a commit");
    let mine = site.repo.git(["rev-parse", "HEAD"]).expect("a commit");
    site.repo.git(["switch", "--quiet", before.trim()]).expect("the branch of before");
    let kept = ["not removed: run t: ref `tree/t/n0001`", "it has commits that are not the run's"];
    let _ = clean(&site, &[SITE_RUN_ID, "--refs", "--yes"]).exits(1).says(kept);
    let _ = clean(&site, &[SITE_RUN_ID, "--delete", "--yes"]).exits(1).says(kept);
    assert_eq!(site.repo.git(["rev-parse", "tree/t/n0001"]).expect("the branch"), mine);
    assert!(!site.refs().contains("/n0000"), "the others are gone");
    let _ = clean(&site, &[SITE_RUN_ID, "--refs", "--yes", "--discard-changes"]).exits(0);
    assert!(!site.refs().contains("/n0001"));
}

#[test]
fn refs_go_on_request_when_the_run_is_over() {
    let site = over(&["--keep-rejected-worktrees"]);
    site.repo.git(["branch", "tree/t/mine"]).expect("a branch");
    site.repo.git(["branch", "tree/other"]).expect("a branch");
    let said = clean(&site, &[SITE_RUN_ID, "--refs", "--yes"]).exits(0);
    let _ = said.says(["removed: run t: ref `tree/t/n0000`", "`git gc` may remove"]);
    let left = site.refs();
    assert!(!left.contains("/n0") && !left.contains("/e0"), "{left}");
    assert!(left.contains("tree/t/mine") && left.contains("tree/other"), "{left}");
    assert!(site.path("wt/0001").is_dir(), "worktrees stay");
    site.must_be_sound();
    let _ = site.call(&["show", SITE_RUN_ID, "n0001"]).exits(0);

    let open = over(&[]);
    let cut: String = open.text("journal.jsonl").split_inclusive('\n').take(13).collect();
    for name in ["manifest.json", "manifest.json.prev"] {
        drop(fs::remove_file(open.path(name)));
    }
    fs::write(open.path("journal.jsonl"), cut).expect("half a journal");
    let refs = open.refs();
    let _ =
        clean(&open, &[SITE_RUN_ID, "--refs", "--yes"]).exits(2).says(["is not over", "--delete"]);
    assert_eq!(open.refs(), refs);
    let _ = clean(&site, &["--refs", "--yes"]).exits(2);
}

#[test]
fn a_whole_run_goes() {
    let site = over(&["--keep-rejected-worktrees"]);
    let _ = clean(&site, &[SITE_RUN_ID, "--delete"]).exits(2).says(["to remove: run t: directory"]);
    assert!(site.path("journal.jsonl").exists());
    let said = clean(&site, &[SITE_RUN_ID, "--delete", "--yes", "--json"]).exits(0);
    assert!(items(&said).iter().all(|(.., outcome)| outcome == "removed"), "{said:?}");
    nothing_is_left(&site);
    let _ = clean(&site, &[SITE_RUN_ID, "--delete", "--yes"]).exits(2).says(["is no run"]);
    let _ = clean(&site, &["--delete", "--yes"]).exits(2);
    site.run(&SMALL);
    // By its path, and damaged.
    fs::write(site.path("journal.jsonl"), "nothing\n").expect("another journal");
    fs::write(site.path("manifest.json"), "nothing\n").expect("another manifest");
    let _ = fs::remove_file(site.path("manifest.json.prev"));
    let _ = clean(&site, &[]).exits(0).says(["it cannot be read", "`--delete` removes all of it"]);
    let path = site.path("").display().to_string();
    let _ = clean(&site, &[path.trim_end_matches('/'), "--delete", "--yes"]).exits(0);
    nothing_is_left(&site);
}

#[test]
fn of_an_archived_run_or_a_copy_only_the_directory_goes() {
    let site = over(&[]);
    let refs = site.refs();
    let copy = |to: &Path| {
        fs::create_dir_all(to.join("artifacts")).expect("a folder");
        for name in ["journal.jsonl", "manifest.json"] {
            fs::copy(site.path(name), to.join(name)).expect("a copy");
        }
    };
    let archived = site.repo.beside("archive").join(SITE_RUN_ID);
    copy(&archived);
    let path = archived.display().to_string();
    let _ = clean(&site, &[&path, "--worktrees", "--yes"]).exits(2).says(["in no repository"]);
    let _ = clean(&site, &[&path, "--delete", "--yes"]).exits(0);
    assert!(entries(&site.repo.beside("archive")).is_empty());
    let beside = runs(&site).join("copy");
    copy(&beside);
    let _ = clean(&site, &["copy"]).exits(2).says(["holds the run `t`"]);
    let _ = clean(&site, &["copy", "--delete", "--yes"]).exits(0);
    assert_eq!((site.refs(), entries(&runs(&site))), (refs, vec![SITE_RUN_ID.to_owned()]));
    site.must_be_sound();
}

#[test]
fn what_nobody_owns_goes_and_what_may_be_somebodys_stays() {
    let site = over(&[]);
    let (old, young) = (runs(&site).join(".new-old-1"), runs(&site).join(".new-young-1"));
    let (foreign, file) = (runs(&site).join(".new-folder"), runs(&site).join(".new-aB3dE6"));
    for folder in [&old, &young, &foreign] {
        fs::create_dir_all(folder.join("wt")).expect("a folder");
    }
    fs::write(&file, "").expect("a file");
    for path in [&old, &foreign, &file] {
        age(path, 60);
    }
    fs::write(site.path(".new-halfof"), "half").expect("a file");
    fs::write(site.path("eval/0001/eval_result.json.link"), "half").expect("a file");
    site.repo.git(["worktree", "add", "--quiet", "--detach", "../mine"]).expect("a worktree");
    fs::remove_dir_all(site.repo.beside("mine")).expect("to remove");
    fs::remove_dir_all(site.path("wt/0001")).expect("to remove");
    let said = clean(&site, &["--dry-run"]).exits(0);
    assert!(old.exists() && site.path(".new-halfof").exists(), "{said:?}");
    let said = clean(&site, &["--json"]).exits(0);
    let all = items(&said);
    let outcome = |end: &str| {
        let item = all.iter().find(|(_, name, _)| name.replace('\\', "/").ends_with(end));
        item.map(|(.., outcome)| outcome.as_str())
    };
    assert_eq!(outcome(".new-old-1"), Some("removed"));
    assert_eq!(outcome(".new-aB3dE6"), Some("removed"));
    assert_eq!(outcome(".new-young-1"), Some("kept"));
    assert_eq!(outcome(".new-halfof"), Some("removed"));
    assert_eq!(outcome("eval_result.json.link"), Some("removed"));
    assert_eq!(outcome("t/wt/0001"), Some("removed"));
    assert_eq!(outcome("/mine"), None);
    assert!(!old.exists() && !file.exists() && young.exists() && foreign.exists());
    assert!(!site.path("eval/0001/eval_result.json.link").exists());
    let list = site.repo.git(["worktree", "list", "--porcelain"]).expect("the worktrees");
    assert!(list.contains("/mine") && !list.contains("wt/0001"), "{list}");
}

#[test]
fn git_forgets_runs_whose_directory_is_gone_but_not_those_on_another_disk() {
    let site = Site::new(BINARY);
    let away = site.repo.beside("disk").join("runs");
    site.repo
        .write("treebeam.toml", &format!("runs_root = {:?}\n", away.display().to_string()))
        .expect("a configuration");
    let run = ["run", "--dry-run", "--run-id", "far", "--ideas-per-node=1", "--max-depth=1"];
    let _ = site.call(&run).exits(0);
    fs::rename(site.repo.beside("disk"), site.repo.beside("unmounted")).expect("to rename");
    let known = worktrees(&site);
    let said = clean(&site, &[]).exits(0);
    let forget = "if it is gone for good, `git worktree remove -f -f ";
    let _ = said.says(["kept: run far: git's entry for", "perhaps a disk is not mounted", forget]);
    assert_eq!(worktrees(&site), known);
    fs::rename(site.repo.beside("unmounted"), site.repo.beside("disk")).expect("to rename");
    fs::remove_dir_all(away.join("far")).expect("to remove");
    let _ = clean(&site, &["far"]).exits(0).says(["removed: run far: git's entry for"]);
    assert_eq!(worktrees(&site), 0);
    let refs = site.refs();
    assert!(refs.contains("tree/far/n0000"), "{refs}");
    let _ = clean(&site, &["far"]).exits(2).says(["is no run"]);
    let _ = clean(&site, &["far", "--refs"]).exits(2).says(["to remove: run far: ref"]);
    let _ = clean(&site, &["far", "--refs", "--yes"]).exits(0);
    assert!(!site.refs().contains("tree/far"));

    let near = over(&[]);
    fs::remove_dir_all(near.repo.path().join(".treebeam")).expect("to remove");
    let said = clean(&near, &[]).exits(0);
    assert!(worktrees(&near) == 0 && near.refs().contains("tree/t/n0000"), "{said:?}");
}

/// Makes a finished run in a repository that was moved afterwards.
fn moved() -> (Site, PathBuf) {
    let site = over(&["--keep-rejected-worktrees"]);
    let there = site.repo.beside("moved");
    fs::rename(site.repo.path(), &there).expect("to move a repository");
    (site, there)
}

#[test]
fn the_worktrees_of_a_repository_that_was_moved_are_known() {
    let (site, there) = moved();
    let runs = there.join(".treebeam/runs");
    let known = || site.repo.git_in(&there, &["worktree", "list"]).expect("a list").lines().count();
    let before = known();
    let lies = format!("its worktree lies at `{}` now", runs.join("t/wt/0000").display());
    let said = site.call_in(&there, &["clean"]).exits(0);
    let _ = said.says(["kept: run t: git's entry for", &lies, "`git worktree repair "]);
    assert_eq!(known(), before);

    fs::write(runs.join("t/wt/0001/model.py"), "x = 7\n").expect("a change");
    let said = site.call_in(&there, &["clean", SITE_RUN_ID, "--worktrees", "--yes"]).exits(1);
    let said = said.says([
        "not removed: run t: worktree `wt/0001`",
        "it has changes that are not committed: `model.py` (`--discard-changes` removes it)",
        "removed: run t: worktree `wt/0000`",
    ]);
    assert!(!said.stderr.contains(&lies), "what goes is not kept: {}", said.stderr);
    assert_eq!(entries(&runs.join("t/wt")), ["0001"]);
    assert_eq!(known(), 2);
    let discard = ["clean", SITE_RUN_ID, "--worktrees", "--yes", "--discard-changes"];
    let _ = site.call_in(&there, &discard).exits(0);
    assert_eq!(known(), 1);
}

#[test]
fn a_whole_run_goes_from_a_repository_that_was_moved() {
    let (site, there) = moved();
    let _ = site.call_in(&there, &["clean", SITE_RUN_ID, "--delete", "--yes"]).exits(0);
    let list = site.repo.git_in(&there, &["worktree", "list"]).expect("a list");
    assert_eq!(list.lines().count(), 1, "{list}");
    let _ = site.call_in(&there, &["clean"]).exits(0).says(["there is nothing to remove"]);
}

#[cfg(unix)]
mod killed {
    use super::*;
    use std::ffi::OsString;
    use std::os::unix::fs::symlink;
    use std::thread;
    use std::time::Instant;
    use treebeam_testkit::program::{Call, Signal, send};
    use treebeam_testkit::repo::script;

    const PATIENCE: Duration = Duration::from_mins(1);

    /// A git that deletes a ref and then hangs, as long as a file exists.
    struct StuckGit {
        stuck: PathBuf,
        pids: PathBuf,
        variables: Vec<(OsString, OsString)>,
    }

    impl StuckGit {
        fn new(site: &Site) -> Self {
            let bin = site.repo.beside("bin");
            let (stuck, pids) = (bin.join("stuck"), bin.join("pids"));
            fs::create_dir_all(&bin).expect("a folder");
            fs::write(&stuck, "").expect("a file");
            let path = std::env::var_os("PATH").expect("a PATH");
            let git = std::env::split_paths(&path).map(|folder| folder.join("git"));
            let git = git.into_iter().find(|git| git.is_file()).expect("git");
            let text = format!(
                "#!/bin/sh\n'{git}' \"$@\"; code=$?\ncase \" $* \" in *' update-ref '*' -d '*)\n\
                 if [ -e '{stuck}' ]; then echo $$ >> '{pids}'; exec sleep 60; fi;; esac\nexit $code\n",
                git = git.display(),
                stuck = stuck.display(),
                pids = pids.display(),
            );
            script(&bin.join("git"), &text).expect("a script");
            let path = std::env::join_paths([bin].into_iter().chain(std::env::split_paths(&path)));
            let mut variables = site.repo.variables();
            variables.retain(|(name, _)| name != "PATH");
            variables.push(("PATH".into(), path.expect("a PATH")));
            Self { stuck, pids, variables }
        }

        fn await_stuck(&self) -> u32 {
            let begun = Instant::now();
            loop {
                let pids = fs::read_to_string(&self.pids).unwrap_or_default();
                if pids.ends_with('\n') {
                    return pids.trim().parse().expect("one process");
                }
                assert!(begun.elapsed() < PATIENCE, "no ref was deleted");
                thread::sleep(Duration::from_millis(3));
            }
        }

        /// Calls the program and kills it where a ref is deleted and git has not returned.
        fn kill_in(&self, site: &Site, arguments: &[&str]) {
            let call = site.begin_with(self.variables.clone(), arguments);
            let pid = self.await_stuck();
            drop(call);
            assert!(send(pid, Signal::Kill), "a git that is stuck");
            fs::remove_file(&self.stuck).expect("to come back");
        }
    }

    #[test]
    fn a_clean_that_was_killed_is_finished_by_the_next() {
        let site = over(&["--keep-rejected-worktrees"]);
        StuckGit::new(&site).kill_in(&site, &["clean", SITE_RUN_ID, "--delete", "--yes"]);
        assert_eq!(entries(&runs(&site)), [".gone-t"], "it is no run any more");
        assert!(site.refs().contains("tree/t/"), "and not all of it is gone");
        let _ = site.call(&["list"]).exits(0);
        let _ = site.call(&["status"]).exits(2);
        let _ = site.call(&["doctor"]).exits(0);
        let _ =
            site.call(&["run", "--dry-run", "--run-id", SITE_RUN_ID]).exits(2).says(["in the way"]);
        let _ = clean(&site, &[]).exits(0).says(["removed: run t: ref"]);
        nothing_is_left(&site);
    }

    #[test]
    fn a_run_whose_refs_were_to_go_is_sound_all_the_way() {
        let site = over(&[]);
        StuckGit::new(&site).kill_in(&site, &["clean", SITE_RUN_ID, "--refs", "--yes"]);
        let asked = site.events().last().map(|event| event["type"].clone());
        assert_eq!(asked, Some("removal_asked".into()), "a ref is gone and not recorded yet");
        assert!(!site.refs().contains("tree/t/n0000"));
        site.must_be_sound();
        let _ = clean(&site, &[SITE_RUN_ID]).exits(0).says(["removed: run t: ref `tree/t/n0000`"]);
        assert!(!site.refs().contains("tree/t/"), "{}", site.refs());
        site.must_be_sound();
    }

    #[test]
    fn a_branch_that_is_checked_out_keeps_the_rest_from_nothing() {
        let site = over(&[]);
        site.repo.git(["switch", "--quiet", "tree/t/n0001"]).expect("to switch");
        let said = clean(&site, &[SITE_RUN_ID, "--delete", "--yes"]).exits(1);
        let _ = said.says(["not removed: run t: ref `tree/t/n0001`", "is checked out"]);
        assert_eq!(entries(&runs(&site)), [".gone-t"]);
        assert!(entries(&runs(&site).join(".gone-t")).is_empty(), "only the name is left");
        site.repo.git(["switch", "--quiet", "main"]).expect("to switch");
        let _ = clean(&site, &[SITE_RUN_ID]).exits(0);
        nothing_is_left(&site);
    }

    /// Another run of that name may have been created since.
    #[test]
    fn a_new_run_of_the_same_name_keeps_what_it_has() {
        let site = over(&[]);
        fs::create_dir(runs(&site).join(".gone-t")).expect("a folder");
        let refs = site.refs();
        let _ = clean(&site, &[]).exits(0);
        assert_eq!((site.refs(), entries(&runs(&site))), (refs, vec![SITE_RUN_ID.to_owned()]));
        site.must_be_sound();
    }

    #[test]
    fn links_are_removed_and_not_followed() {
        let site = over(&[]);
        let outside = site.repo.beside("outside");
        fs::create_dir_all(outside.join("inside")).expect("a folder");
        fs::remove_dir_all(site.path("wt/0001")).expect("to remove");
        symlink(&outside, site.path("wt/0001")).expect("a link");
        symlink(&outside, site.path("artifacts/link")).expect("a link");
        let _ = clean(&site, &[SITE_RUN_ID, "--worktrees", "--yes"]).exits(1).says(["wt/0001"]);
        let _ = clean(&site, &[SITE_RUN_ID, "--delete", "--yes", "--discard-changes"]).exits(0);
        assert!(outside.join("inside").exists());
        nothing_is_left(&site);
    }

    fn running(site: &Site) -> Call {
        let words =
            ["run", "--dry-run", "--run-id", SITE_RUN_ID, "--ideas-per-node=7", "--max-depth=5"];
        let call = site.begin(&words);
        let begun = Instant::now();
        while !site.path("run.lock.json").exists() {
            assert!(begun.elapsed() < PATIENCE, "no run");
            thread::sleep(Duration::from_millis(3));
        }
        call.signal(Signal::Stop);
        call
    }

    #[test]
    fn a_run_that_somebody_runs_is_left_alone() {
        let site = Site::new(BINARY);
        let call = running(&site);
        for flags in [&[][..], &["--worktrees", "--yes"], &["--delete", "--yes", "--force"]] {
            let said = clean(&site, &[&[SITE_RUN_ID], flags].concat()).exits(3);
            let _ = said.says(["is locked by", &call.pid().to_string()]);
        }
        let said = clean(&site, &["--worktrees", "--yes"]).exits(0);
        let _ = said.says(["kept: run t: ", "which cleans up after itself"]);
        assert!(site.path("journal.jsonl").exists());
        call.signal(Signal::Continue);
        drop(call);
    }

    /// On a terminal it asks, and a no removes nothing.
    #[test]
    fn somebody_at_a_terminal_is_asked() {
        let site = Site::from_repo(over(&[]).repo, "python3");
        let ask = "import os, pty, sys\n\
            answer = sys.argv[1].encode()\n\
            pid, terminal = pty.fork()\n\
            if pid == 0: os.execv(sys.argv[2], sys.argv[2:])\n\
            said = b''\n\
            while b'[y/N]' not in said: said += os.read(terminal, 1000)\n\
            os.write(terminal, answer + b'\\n')\n\
            try:\n    while os.read(terminal, 1000): pass\n\
            except OSError: pass\n\
            sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n";
        for (answer, code) in [("n", 2), ("", 2), ("y", 0)] {
            assert!(site.path("wt/0000").exists());
            let words = ["-c", ask, answer, BINARY, "clean", SITE_RUN_ID, "--worktrees"];
            let _ = site.call(&words).exits(code);
        }
        assert!(site.names("wt").is_empty());
    }
}
