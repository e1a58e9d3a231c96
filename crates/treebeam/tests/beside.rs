//! Two runs of the real program in one repository, while a user commits, switches branches,
//! stashes, tags and cleans up: both runs end as they would alone, and each of the user's commands
//! has its effect.

#![cfg(test)]

use serde_json::Value;
use std::fs;
use std::io;
use std::thread;
use std::time::{Duration, Instant};
use treebeam_testkit::program::{Call, Site};
use treebeam_testkit::repo::TempRepo;

const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");
/// Names and flags of the two runs; the second has four parallel evals.
const RUNS: [(&str, &str); 2] = [("t", "--max-parallel-evals=1"), ("u", "--max-parallel-evals=4")];

fn size() -> [&'static str; 4] {
    if std::env::var_os("TREEBEAM_CAMPAIGN").is_some() {
        ["--ideas-per-node=7", "--max-depth=12", "--beam-width=3", "--quiet"]
    } else {
        ["--ideas-per-node=5", "--max-depth=2", "--beam-width=2", "--quiet"]
    }
}

fn begin(site: &Site, (run, parallel): (&str, &str)) -> Call {
    let call = ["run", "--dry-run", "--run-id", run, parallel];
    site.begin(&[&call[..], &size()].concat())
}

/// Waits until a run has begun: from then on the checkout is the user's to change.
fn await_begun(site: &Site, run: &str) {
    let begun = Instant::now();
    while !site.path(&format!("../{run}/journal.jsonl")).exists() {
        assert!(begun.elapsed() < Duration::from_mins(2), "{run} does not begin");
        thread::sleep(Duration::from_millis(5));
    }
}

/// A user who works in the repository's checkout.
struct User<'a> {
    repo: &'a TempRepo,
    rounds: usize,
    commands: usize,
}

impl User<'_> {
    fn git(&mut self, arguments: &[&str]) -> io::Result<String> {
        self.commands += 1;
        self.repo.git_beside(arguments)
    }

    fn commit(&mut self, path: &str, text: &str) -> io::Result<()> {
        self.repo.write(path, text)?;
        self.git(&["add", path])?;
        self.git(&["commit", "--quiet", "--message", text]).map(drop)
    }

    /// Does a round of the user's work.
    fn round(&mut self) -> io::Result<()> {
        let number = self.rounds;
        let branch = format!("feature-{number}");
        self.commit("notes.txt", &format!("note {number}"))?;
        self.git(&["switch", "--quiet", "--create", &branch])?;
        self.commit(&format!("feature/{number}.txt"), "a feature")?;
        self.git(&["switch", "--quiet", "main"])?;
        self.git(&["merge", "--quiet", "--no-ff", "--no-edit", &branch])?;
        self.git(&["branch", "--quiet", "-D", &branch])?;
        self.git(&["tag", &format!("v{number}")])?;
        self.repo.write("model.py", &format!("x = {number} + 100\n"))?;
        self.git(&["stash", "push", "--quiet"])?;
        for chore in [
            &["gc", "--quiet", "--prune=now"][..],
            &["worktree", "prune", "--expire=now"],
            &["pack-refs", "--all"],
            &["worktree", "list"],
            &["status", "--short"],
        ] {
            self.git(chore)?;
        }
        self.git(&["stash", "pop", "--quiet"])?;
        self.git(&["checkout", "--quiet", "--", "model.py"])?;
        self.rounds += 1;
        Ok(())
    }

    /// Asserts that all of the user's work is there.
    fn must_have_worked(&mut self) {
        let rounds = self.rounds;
        let commits = self.git(&["rev-list", "--count", "main"]).expect("commits");
        assert_eq!(commits, (1 + 3 * rounds).to_string());
        let tags = self.git(&["tag"]).expect("tags");
        assert_eq!(tags.lines().count(), rounds);
        let branches = self.git(&["for-each-ref", "--format=%(refname)", "refs/heads"]);
        let branches = branches.expect("branches");
        let own: Vec<_> = branches.lines().filter(|name| !name.contains("/tree/")).collect();
        assert_eq!(own, ["refs/heads/main"]);
        assert_eq!(self.git(&["stash", "list"]).expect("a stash"), "");
        assert_eq!(self.git(&["status", "--short"]).expect("a status"), "");
        let files = fs::read_dir(self.repo.path().join("feature")).expect("features").count();
        assert_eq!(files, rounds);
        self.git(&["fsck"]).expect("a sound repository");
    }
}

/// Reports, manifest, artifacts and refs.
type Lasting = (Vec<String>, Value, Vec<(String, Vec<u8>)>, String);

/// Returns the part of a run that must be the same, wherever and beside whatever it ran.
fn lasting(site: &Site, run: &str) -> Lasting {
    let text = |name: &str| site.text(&format!("../{run}/{name}"));
    let reports = ["TREE_SUMMARY.md", "TREE_GRAPH.md", "results.tsv"].map(text).to_vec();
    let mut manifest: Value = serde_json::from_str(&text("manifest.json")).expect("a manifest");
    for name in ["history", "checksum"] {
        manifest[name] = Value::Null;
    }
    let folders = ["artifacts", "node_ideas", "eval", "cand"];
    let files = folders.iter().flat_map(|folder| site.accepted(&format!("../{run}/{folder}")));
    let refs = site.repo.git(["for-each-ref", &format!("refs/heads/tree/{run}")]);
    (reports, manifest, files.collect(), refs.expect("the refs"))
}

#[test]
fn two_runs_and_a_user_leave_each_other_alone() {
    let (peaceful, shared) = (Site::new(BINARY), Site::new(BINARY));
    for run in RUNS {
        let _ = begin(&peaceful, run).wait().exits(0);
    }
    let mut calls: Vec<Call> = RUNS.iter().map(|run| begin(&shared, *run)).collect();
    for (run, _) in RUNS {
        await_begun(&shared, run);
    }
    let mut user = User { repo: &shared.repo, rounds: 0, commands: 0 };
    while calls.iter_mut().any(Call::goes_on) {
        user.round().expect("every command of the user's succeeds");
    }
    for call in calls {
        let _ = call.wait().exits(0);
    }
    println!("{} rounds, {} commands of the user's", user.rounds, user.commands);
    assert!(user.rounds >= 1, "the runs were over too soon");
    user.must_have_worked();
    for (run, _) in RUNS {
        let _ = shared.call(&["validate", run]).exits(0);
        assert!(lasting(&shared, run) == lasting(&peaceful, run), "{run} differs");
    }
}
