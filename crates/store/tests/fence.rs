//! A process that has lost its run to another host: each effect of each port is refused.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use jiff::Timestamp;
use std::fs;
use std::io::Read;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use treebeam_core::event::{Leftover, LeftoverKind, RunStarted, SweepSubject, WorldKind};
use treebeam_core::evidence::Artifact;
use treebeam_core::id::{CodePlace, Commit, EvalId, GitTree, NodeId, RunPath, Sha256};
use treebeam_core::policy::{FixedSettings, RecordedAgents, RunLimits};
use treebeam_core::protect::{PathChange, ProtectedPaths};
use treebeam_core::rules_version::RulesVersion;
use treebeam_run::port::{
    Agent, AgentError, AgentReply, AgentRequest, AgentRole, ApplyResult, BinaryDiff, CommitNote,
    CommittedTree, EditMode, Executor, FileStore, JobEnd, JobKey, PortError, Repo, RepoFile,
    SweepJob, TouchedFiles,
};
use treebeam_store::{FencedPort, ForcePolicy, RunStore};

const PLACE: CodePlace = CodePlace::Candidate(EvalId::FIRST);

/// Port that counts the calls that reach it.
#[derive(Default)]
struct Reached(AtomicUsize);

impl Reached {
    fn refuse<T>(&self) -> Result<T, PortError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Err(PortError::new("reached"))
    }
}

impl Repo for &Reached {
    fn checkout_worktree(&self, _: CodePlace, _: &Commit) -> Result<(), PortError> {
        self.refuse()
    }
    fn renew_worktree(&self, _: CodePlace, _: &Commit) -> Result<(), PortError> {
        self.refuse()
    }
    fn apply_to_worktree(&self, _: CodePlace, _: &str) -> Result<ApplyResult, PortError> {
        self.refuse()
    }
    fn staged_paths(&self, _: CodePlace) -> Result<Vec<PathChange>, PortError> {
        self.refuse()
    }
    fn staged_diff(&self, _: CodePlace, _: usize) -> Result<String, PortError> {
        self.refuse()
    }
    fn commit_staged(&self, _: CodePlace, _: &CommitNote) -> Result<CommittedTree, PortError> {
        self.refuse()
    }
    fn git_tree(&self, _: &Commit) -> Result<GitTree, PortError> {
        self.refuse()
    }
    fn find_touched_files(
        &self,
        _: CodePlace,
        _: &Commit,
        _: &ProtectedPaths,
    ) -> Result<TouchedFiles, PortError> {
        self.refuse()
    }
    fn restore_paths(&self, _: CodePlace, _: &Commit, _: &[String]) -> Result<(), PortError> {
        self.refuse()
    }
    fn set_place_ref(&self, _: CodePlace, _: &Commit) -> Result<(), PortError> {
        self.refuse()
    }
    fn commit_exists(&self, _: &Commit) -> Result<bool, PortError> {
        self.refuse()
    }
    fn diff_commits(
        &self,
        _: &Commit,
        _: &Commit,
        _: BinaryDiff,
        _: usize,
    ) -> Result<String, PortError> {
        self.refuse()
    }
    fn diff_stat(&self, _: &Commit, _: &Commit) -> Result<String, PortError> {
        self.refuse()
    }
    fn list_files(&self, _: &Commit) -> Result<Vec<RepoFile>, PortError> {
        self.refuse()
    }
    fn read_texts(&self, _: &[RepoFile]) -> Result<Vec<Option<String>>, PortError> {
        self.refuse()
    }
    fn discard_leftover(&self, _: Leftover, _: u32) -> Result<(), PortError> {
        self.refuse()
    }
}

impl FileStore for &Reached {
    fn write_file(&self, _: &RunPath, _: &[u8]) -> Result<(), PortError> {
        self.refuse()
    }
    fn read_file(&self, _: &RunPath, _: usize) -> Result<Vec<u8>, PortError> {
        self.refuse()
    }
    fn find_file(&self, _: &RunPath, _: usize) -> Result<Option<Vec<u8>>, PortError> {
        self.refuse()
    }
    fn link_file(&self, _: &RunPath, _: &RunPath) -> Result<Sha256, PortError> {
        self.refuse()
    }
    fn remove_submissions(&self, _: EvalId) -> Result<(), PortError> {
        self.refuse()
    }
    fn import_artifact(&self, _: &RunPath, _: &str) -> Result<Artifact, PortError> {
        self.refuse()
    }
    fn sync_files(&self) -> Result<(), PortError> {
        self.refuse()
    }
    fn find_changed_artifacts(&self, _: &[Artifact]) -> Result<Vec<Artifact>, PortError> {
        Ok(Vec::new())
    }
    fn restore_artifacts(&self, _: &[Artifact]) -> Result<(), PortError> {
        self.refuse()
    }
    fn open_copy_of(&self, artifact: &Artifact) -> Result<Box<dyn Read>, PortError> {
        self.open_artifact(artifact)
    }
    fn open_artifact(&self, _: &Artifact) -> Result<Box<dyn Read>, PortError> {
        self.refuse()
    }
}

impl Executor for &Reached {
    fn submit_job(&self, _: &SweepJob) -> Result<(), PortError> {
        self.refuse()
    }
    fn adopt_jobs(&self, _: &[SweepJob]) -> Result<Vec<JobKey>, PortError> {
        self.refuse()
    }
    fn wait_for_jobs(&self, _: Duration) -> Result<Vec<JobEnd>, PortError> {
        self.refuse()
    }
}

impl Agent for &Reached {
    fn can_answer(&self, _: AgentRole) -> bool {
        true
    }
    fn edit_mode(&self, _: AgentRole) -> EditMode {
        EditMode::InPlace
    }
    fn can_continue(&self, _: AgentRole) -> bool {
        true
    }
    fn ask(&self, _: &AgentRequest) -> Result<AgentReply, AgentError> {
        Ok(self.refuse()?)
    }
}

fn started() -> RunStarted {
    RunStarted {
        run: "r".parse().unwrap(),
        world: WorldKind::Dry { seed: 7 },
        root: "a".repeat(40).parse().unwrap(),
        meaning: FixedSettings::default(),
        reach: RunLimits::default(),
        agents: RecordedAgents::default(),
        given: None,
        replays: None,
        rules_version: RulesVersion::LATEST,
        at: Timestamp::UNIX_EPOCH,
    }
}

/// Tries every effect, and returns the errors.
fn all_effects(world: &FencedPort<&Reached>) -> Vec<String> {
    let commit: Commit = "a".repeat(40).parse().unwrap();
    let path: RunPath = "eval/0001/x".parse().unwrap();
    let key = JobKey { subject: SweepSubject::Root, submission: 1 };
    let note = CommitNote { title: "t".into(), trailers: Vec::new(), at: Timestamp::UNIX_EPOCH };
    let leftover = Leftover { place: PLACE, kind: LeftoverKind::Worktree };
    let job = SweepJob { key, commit: commit.clone(), sweep_config_limit: None, timeout: None };
    let ask = AgentRequest {
        key: "k".into(),
        role: AgentRole::Coder,
        round: 0,
        prompt: "p".into(),
        place: PLACE,
        node: NodeId::ROOT,
        continues: None,
        within: None,
        until: None,
    };
    let answers = [
        world.checkout_worktree(PLACE, &commit).err().map(|e| e.to_string()),
        world.renew_worktree(PLACE, &commit).err().map(|e| e.to_string()),
        world.apply_to_worktree(PLACE, "").err().map(|e| e.to_string()),
        world.commit_staged(PLACE, &note).err().map(|e| e.to_string()),
        world.set_place_ref(PLACE, &commit).err().map(|e| e.to_string()),
        world.discard_leftover(leftover, 1).err().map(|e| e.to_string()),
        world.write_file(&path, b"").err().map(|e| e.to_string()),
        world.link_file(&path, &path).err().map(|e| e.to_string()),
        world.remove_submissions(EvalId::FIRST).err().map(|e| e.to_string()),
        world.import_artifact(&path, "x").err().map(|e| e.to_string()),
        world.submit_job(&job).err().map(|e| e.to_string()),
        world.adopt_jobs(std::slice::from_ref(&job)).err().map(|e| e.to_string()),
        world.ask(&ask).err().map(|e| e.to_string()),
    ];
    answers.map(Option::unwrap_or_default).into()
}

#[test]
fn one_that_lost_its_run_does_nothing_more() {
    let root = tempfile::tempdir().unwrap();
    let (old, _) = RunStore::create(root.path(), &started()).unwrap();
    let reached = Reached::default();
    let world = FencedPort::new(&reached, old.fence());
    let effects = all_effects(&world);
    assert!(effects.iter().all(|answer| answer == "reached"), "{effects:?}");
    assert_eq!(reached.0.load(Ordering::SeqCst), effects.len());
    assert_eq!(world.edit_mode(AgentRole::Coder), EditMode::InPlace);

    // As if the owner were on another host, whose locks are not visible here.
    let run = old.run_dir().clone();
    let mut note: serde_json::Value =
        serde_json::from_slice(&fs::read(run.lock_note_path()).unwrap()).unwrap();
    note["hostname"] = "box".into();
    note["boot_id"] = "another".into();
    fs::write(run.lock_note_path(), note.to_string()).unwrap();
    fs::remove_file(run.lock_path()).unwrap();
    let new = RunStore::open_to_run(&run, ForcePolicy::Yes).unwrap().0;

    for answer in all_effects(&world) {
        assert!(answer.contains("was taken over by process"), "{answer:?}");
    }
    assert_eq!(reached.0.load(Ordering::SeqCst), effects.len(), "nothing gets through");
    assert!(
        world.staged_paths(PLACE).is_err_and(|error| error.to_string() == "reached"),
        "reading may"
    );
    drop(new);
    assert!(all_effects(&world).iter().all(|answer| answer.contains("taken over")), "for good");
}
