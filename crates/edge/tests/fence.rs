//! One that has lost its run to another host does nothing more: each effect of each port is refused.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use jiff::Timestamp;
use std::fs;
use std::io::Read;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use treebeam_core::event::{Leftover, LeftoverKind, RunStarted, Subject, WorldKind};
use treebeam_core::evidence::Artifact;
use treebeam_core::id::{Commit, EvalId, GitTree, NodeId, Place, RunPath, Sha256};
use treebeam_core::policy::{Agents, Meaning, Reach};
use treebeam_core::protect::{Change, Protected};
use treebeam_core::rules_version::RulesVersion;
use treebeam_edge::store::{Fenced, Force, Store};
use treebeam_run::port::{
    Agent, AgentError, Applied, Ask, Binaries, CommitNote, CommittedTree, Edits, Executor, Files,
    Job, JobEnd, JobKey, PortError, Reply, Repo, RepoFile, Role, TouchedFiles,
};

const PLACE: Place = Place::Candidate(EvalId::FIRST);

/// Counts what gets through to it.
#[derive(Default)]
struct Reached(AtomicUsize);

impl Reached {
    fn refuse<T>(&self) -> Result<T, PortError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Err(PortError::new("reached"))
    }
}

impl Repo for &Reached {
    fn checkout(&self, _: Place, _: &Commit) -> Result<(), PortError> {
        self.refuse()
    }
    fn renew(&self, _: Place, _: &Commit) -> Result<(), PortError> {
        self.refuse()
    }
    fn apply(&self, _: Place, _: &str) -> Result<Applied, PortError> {
        self.refuse()
    }
    fn changes(&self, _: Place) -> Result<Vec<Change>, PortError> {
        self.refuse()
    }
    fn staged(&self, _: Place, _: usize) -> Result<String, PortError> {
        self.refuse()
    }
    fn commit(&self, _: Place, _: &CommitNote) -> Result<CommittedTree, PortError> {
        self.refuse()
    }
    fn tree(&self, _: &Commit) -> Result<GitTree, PortError> {
        self.refuse()
    }
    fn touched(&self, _: Place, _: &Commit, _: &Protected) -> Result<TouchedFiles, PortError> {
        self.refuse()
    }
    fn restore(&self, _: Place, _: &Commit, _: &[String]) -> Result<(), PortError> {
        self.refuse()
    }
    fn keep(&self, _: Place, _: &Commit) -> Result<(), PortError> {
        self.refuse()
    }
    fn has(&self, _: &Commit) -> Result<bool, PortError> {
        self.refuse()
    }
    fn diff(&self, _: &Commit, _: &Commit, _: Binaries, _: usize) -> Result<String, PortError> {
        self.refuse()
    }
    fn diff_stat(&self, _: &Commit, _: &Commit) -> Result<String, PortError> {
        self.refuse()
    }
    fn files(&self, _: &Commit) -> Result<Vec<RepoFile>, PortError> {
        self.refuse()
    }
    fn texts(&self, _: &[RepoFile]) -> Result<Vec<Option<String>>, PortError> {
        self.refuse()
    }
    fn discard(&self, _: Leftover, _: u32) -> Result<(), PortError> {
        self.refuse()
    }
}

impl Files for &Reached {
    fn write(&self, _: &RunPath, _: &[u8]) -> Result<(), PortError> {
        self.refuse()
    }
    fn read(&self, _: &RunPath, _: usize) -> Result<Vec<u8>, PortError> {
        self.refuse()
    }
    fn find(&self, _: &RunPath, _: usize) -> Result<Option<Vec<u8>>, PortError> {
        self.refuse()
    }
    fn link(&self, _: &RunPath, _: &RunPath) -> Result<Sha256, PortError> {
        self.refuse()
    }
    fn remove_submissions(&self, _: EvalId) -> Result<(), PortError> {
        self.refuse()
    }
    fn import(&self, _: &RunPath, _: &str) -> Result<Artifact, PortError> {
        self.refuse()
    }
    fn settle(&self) -> Result<(), PortError> {
        self.refuse()
    }
    fn changed(&self, _: &[Artifact]) -> Result<Vec<Artifact>, PortError> {
        Ok(Vec::new())
    }
    fn restore(&self, _: &[Artifact]) -> Result<(), PortError> {
        self.refuse()
    }
    fn open_copy(&self, artifact: &Artifact) -> Result<Box<dyn Read>, PortError> {
        self.open(artifact)
    }
    fn open(&self, _: &Artifact) -> Result<Box<dyn Read>, PortError> {
        self.refuse()
    }
}

impl Executor for &Reached {
    fn submit(&self, _: &Job) -> Result<(), PortError> {
        self.refuse()
    }
    fn adopt(&self, _: &[Job]) -> Result<Vec<JobKey>, PortError> {
        self.refuse()
    }
    fn wait(&self, _: Duration) -> Result<Vec<JobEnd>, PortError> {
        self.refuse()
    }
}

impl Agent for &Reached {
    fn answers(&self, _: Role) -> bool {
        true
    }
    fn edits(&self, _: Role) -> Edits {
        Edits::InPlace
    }
    fn continues(&self, _: Role) -> bool {
        true
    }
    fn ask(&self, _: &Ask) -> Result<Reply, AgentError> {
        Ok(self.refuse()?)
    }
}

fn started() -> RunStarted {
    RunStarted {
        run: "r".parse().unwrap(),
        world: WorldKind::Dry { seed: 7 },
        root: "a".repeat(40).parse().unwrap(),
        meaning: Meaning::default(),
        reach: Reach::default(),
        agents: Agents::default(),
        given: None,
        replays: None,
        rules_version: RulesVersion::LATEST,
        at: Timestamp::UNIX_EPOCH,
    }
}

/// Tries everything that changes something, and says what was answered where that was an error.
fn all_effects(world: &Fenced<&Reached>) -> Vec<String> {
    let commit: Commit = "a".repeat(40).parse().unwrap();
    let path: RunPath = "eval/0001/x".parse().unwrap();
    let key = JobKey { subject: Subject::Root, submission: 1 };
    let note = CommitNote { title: "t".into(), trailers: Vec::new(), at: Timestamp::UNIX_EPOCH };
    let leftover = Leftover { place: PLACE, kind: LeftoverKind::Worktree };
    let job = Job { key, commit: commit.clone(), sweep_config_limit: None, timeout: None };
    let ask = Ask {
        key: "k".into(),
        role: Role::Coder,
        round: 0,
        prompt: "p".into(),
        place: PLACE,
        node: NodeId::ROOT,
        continues: None,
        within: None,
        until: None,
    };
    let answers = [
        world.checkout(PLACE, &commit).err().map(|e| e.to_string()),
        world.renew(PLACE, &commit).err().map(|e| e.to_string()),
        world.apply(PLACE, "").err().map(|e| e.to_string()),
        world.commit(PLACE, &note).err().map(|e| e.to_string()),
        world.keep(PLACE, &commit).err().map(|e| e.to_string()),
        world.discard(leftover, 1).err().map(|e| e.to_string()),
        world.write(&path, b"").err().map(|e| e.to_string()),
        world.link(&path, &path).err().map(|e| e.to_string()),
        world.remove_submissions(EvalId::FIRST).err().map(|e| e.to_string()),
        world.import(&path, "x").err().map(|e| e.to_string()),
        world.submit(&job).err().map(|e| e.to_string()),
        world.adopt(std::slice::from_ref(&job)).err().map(|e| e.to_string()),
        world.ask(&ask).err().map(|e| e.to_string()),
    ];
    answers.map(Option::unwrap_or_default).into()
}

#[test]
fn one_that_lost_its_run_does_nothing_more() {
    let root = tempfile::tempdir().unwrap();
    let (old, _) = Store::create(root.path(), &started()).unwrap();
    let reached = Reached::default();
    let world = Fenced::new(&reached, old.fence());
    let effects = all_effects(&world);
    assert!(effects.iter().all(|answer| answer == "reached"), "{effects:?}");
    assert_eq!(reached.0.load(Ordering::SeqCst), effects.len());
    assert_eq!(world.edits(Role::Coder), Edits::InPlace);

    // As if it ran on another host, whose locks do not reach this one.
    let run = old.run().clone();
    let mut note: serde_json::Value =
        serde_json::from_slice(&fs::read(run.holder()).unwrap()).unwrap();
    note["hostname"] = "box".into();
    note["boot_id"] = "another".into();
    fs::write(run.holder(), note.to_string()).unwrap();
    fs::remove_file(run.lock()).unwrap();
    let new = Store::open_to_run(&run, Force::Yes).unwrap().0;

    for answer in all_effects(&world) {
        assert!(answer.contains("was taken over by process"), "{answer:?}");
    }
    assert_eq!(reached.0.load(Ordering::SeqCst), effects.len(), "nothing gets through");
    assert!(world.changes(PLACE).is_err_and(|error| error.to_string() == "reached"), "reading may");
    drop(new);
    assert!(all_effects(&world).iter().all(|answer| answer.contains("taken over")), "for good");
}
