//! Provides a world behind the ports whose cost is the same at every eval.
//!
//! It keeps nothing of an eval that is over: the worth of a state is in its commit's name, and the
//! result of a sweep in its artifact's digest. So growth in a measurement is not the world's.

use jiff::Timestamp;
use std::collections::BTreeMap;
use std::io::{Cursor, Read};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use treebeam_core::event::{Leftover, LeftoverKind};
use treebeam_core::evidence::Artifact;
use treebeam_core::id::{CodePlace, Commit, EvalId, GitTree, RunPath, Sha256};
use treebeam_core::path;
use treebeam_core::protect::{PathChange, PathKind, ProtectedPaths};
use treebeam_run::RunPorts;
use treebeam_run::port::{
    Agent, AgentError, AgentReply, AgentRequest, AgentRole, ApplyResult, BinaryDiff, Clock,
    CommitNote, CommittedTree, EditMode, Executor, FileStore, JobEnd, JobExit, JobKey, PortError,
    RecordedMoment, Repo, RepoFile, SilentUser, SweepJob, TouchedFiles,
};
use treebeam_run::prompt::PromptSet;

/// Maximum number of conversation files: those of the newest nodes.
const MAX_CONVERSATION_FILES: usize = 96;
/// Heading of the earlier turns in a prompt; [`SECTION_HEADING`] begins any other section.
const MEMORY_HEADING: &str = "=== WHAT WAS SAID BEFORE IN THIS BRANCH ===";
const SECTION_HEADING: &str = "\n=== ";

/// Behaviour of a cleanup at its first attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cleanup {
    /// Every cleanup succeeds.
    Works,
    /// Every fourth worktree is in use for as long as the run lasts.
    Sticks,
}

/// The world, with its current worktrees, files and jobs.
#[derive(Debug)]
pub(crate) struct ThinWorld {
    cleanup: Cleanup,
    /// Worth of each worktree's commit, and the gain of its change.
    worktrees: Mutex<BTreeMap<CodePlace, (i32, i32)>>,
    /// Idea files that were not read yet.
    ideas: Mutex<BTreeMap<String, Vec<u8>>>,
    /// Files of the current conversations, and of those that they continue.
    talks: Mutex<BTreeMap<String, Vec<u8>>>,
    /// Results of ended sweeps, until they are recorded.
    results: Mutex<BTreeMap<String, i32>>,
    jobs: Mutex<Vec<SweepJob>>,
    /// Sizes of the idea questions; `looked` counts the file lookups since the last one.
    told: Mutex<Vec<Told>>,
    looked: Mutex<u32>,
    arrived: Condvar,
}

impl ThinWorld {
    pub(crate) fn new(cleanup: Cleanup) -> Self {
        Self {
            cleanup,
            worktrees: Mutex::default(),
            ideas: Mutex::default(),
            talks: Mutex::default(),
            results: Mutex::default(),
            jobs: Mutex::default(),
            told: Mutex::default(),
            looked: Mutex::default(),
            arrived: Condvar::new(),
        }
    }

    pub(crate) fn ports(&self) -> RunPorts<'_> {
        RunPorts {
            repo: self,
            agent: self,
            executor: self,
            files: self,
            inputs: &SilentUser,
            clock: self,
            interrupt: &SilentUser,
            inbox: &SilentUser,
            prompts: PromptSet::built_in(),
        }
    }
}

/// Size of a question for ideas.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told {
    pub(crate) chars: u32,
    /// Characters of the earlier turns.
    pub(crate) memory: u32,
    /// Number of file lookups since the question before.
    pub(crate) looked: u32,
}

impl ThinWorld {
    /// Returns the sizes of all idea questions, in order.
    pub(crate) fn told(&self) -> Vec<Told> {
        lock(&self.told).clone()
    }

    fn tell(&self, prompt: &str) {
        let length = |text: &str| u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
        let memory = prompt.split_once(MEMORY_HEADING).map_or("", |(_, rest)| rest);
        let memory = memory.split_once(SECTION_HEADING).map_or(memory, |(memory, _)| memory);
        let looked = std::mem::take(&mut *lock(&self.looked));
        lock(&self.told).push(Told { chars: length(prompt), memory: length(memory), looked });
    }
}

fn lock<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

fn draw(text: &str) -> u32 {
    let digest = Sha256::hash_bytes(text.as_bytes());
    digest.as_bytes().iter().take(4).fold(0, |number, byte| number << 8 | u32::from(*byte))
}

/// Returns the name of a commit of this worth.
pub(crate) fn commit(worth: i32, text: &str) -> Result<Commit, PortError> {
    let rest: String = Sha256::hash_bytes(text.as_bytes()).to_string().chars().take(32).collect();
    let name = format!("{:08x}{rest}", worth.cast_unsigned());
    name.parse().map_err(|_| PortError::new("no name for a commit"))
}

fn worth(commit: &Commit) -> i32 {
    let digits = commit.as_str().get(..8).unwrap_or_default();
    u32::from_str_radix(digits, 16).unwrap_or_default().cast_signed()
}

/// Returns the number after a word in a text.
fn after(text: &str, word: &str) -> Option<i32> {
    let (_, rest) = text.split_once(word)?;
    rest.split_whitespace().next()?.parse().ok()
}

impl Repo for ThinWorld {
    fn checkout_worktree(&self, place: CodePlace, commit: &Commit) -> Result<(), PortError> {
        if matches!(place, CodePlace::Candidate(_)) {
            lock(&self.worktrees).insert(place, (worth(commit), 0));
        }
        Ok(())
    }

    fn renew_worktree(&self, _: CodePlace, _: &Commit) -> Result<(), PortError> {
        Ok(())
    }

    fn apply_to_worktree(&self, place: CodePlace, diff: &str) -> Result<ApplyResult, PortError> {
        if diff.contains("never-applies") {
            return Ok(ApplyResult::Refused("it never does".to_owned()));
        }
        if let Some(worktree) = lock(&self.worktrees).get_mut(&place) {
            worktree.1 = after(diff, "gain ").unwrap_or(0);
        }
        Ok(ApplyResult::Cleanly)
    }

    fn staged_paths(&self, _: CodePlace) -> Result<Vec<PathChange>, PortError> {
        Ok(vec![PathChange { path: "model.py".to_owned(), is_new: false, to: PathKind::File }])
    }

    fn staged_diff(&self, _: CodePlace, _: usize) -> Result<String, PortError> {
        Ok(String::new())
    }
    fn commit_staged(
        &self,
        place: CodePlace,
        note: &CommitNote,
    ) -> Result<CommittedTree, PortError> {
        let worktree = lock(&self.worktrees).get(&place).copied();
        let (before, gain) = worktree.ok_or_else(|| PortError::new("no worktree"))?;
        let commit = commit(before + gain, &format!("{place} {}", note.title))?;
        let tree = self.git_tree(&commit)?;
        Ok(CommittedTree { commit, tree })
    }

    /// No two commits have the same files.
    fn git_tree(&self, commit: &Commit) -> Result<GitTree, PortError> {
        commit.as_str().parse().map_err(|_| PortError::new("no name for a tree"))
    }

    fn find_touched_files(
        &self,
        _: CodePlace,
        _: &Commit,
        _: &ProtectedPaths,
    ) -> Result<TouchedFiles, PortError> {
        Ok(TouchedFiles::default())
    }
    fn restore_paths(&self, _: CodePlace, _: &Commit, _: &[String]) -> Result<(), PortError> {
        Ok(())
    }

    fn set_place_ref(&self, _: CodePlace, _: &Commit) -> Result<(), PortError> {
        Ok(())
    }

    fn commit_exists(&self, _: &Commit) -> Result<bool, PortError> {
        Ok(true)
    }

    fn diff_commits(
        &self,
        from: &Commit,
        to: &Commit,
        _: BinaryDiff,
        _: usize,
    ) -> Result<String, PortError> {
        Ok(format!("{from}..{to}\n"))
    }

    fn diff_stat(&self, from: &Commit, to: &Commit) -> Result<String, PortError> {
        Ok(format!("{from}..{to}\n"))
    }

    fn list_files(&self, _: &Commit) -> Result<Vec<RepoFile>, PortError> {
        Ok(Vec::new())
    }

    fn read_texts(&self, _: &[RepoFile]) -> Result<Vec<Option<String>>, PortError> {
        Ok(Vec::new())
    }

    fn discard_leftover(&self, leftover: Leftover, _: u32) -> Result<(), PortError> {
        lock(&self.worktrees).remove(&leftover.place);
        let sticks = self.cleanup == Cleanup::Sticks && leftover.kind == LeftoverKind::Worktree;
        if sticks && draw(&leftover.place.to_string()).is_multiple_of(4) {
            return Err(PortError::new("a file is in use"));
        }
        Ok(())
    }
}

impl Agent for ThinWorld {
    fn can_answer(&self, role: AgentRole) -> bool {
        matches!(role, AgentRole::Ideas | AgentRole::Coder)
    }
    fn edit_mode(&self, _: AgentRole) -> EditMode {
        EditMode::Diff
    }
    fn can_continue(&self, _: AgentRole) -> bool {
        false
    }
    fn ask(&self, ask: &AgentRequest) -> Result<AgentReply, AgentError> {
        let text = match ask.role {
            AgentRole::Ideas => {
                self.tell(&ask.prompt);
                ideas(ask)
            }
            AgentRole::Coder => {
                let idea = ask.prompt.lines().find_map(|line| line.strip_prefix("IDEA: "));
                let idea = idea.ok_or_else(|| AgentError::Unanswered("no idea".to_owned()))?;
                format!("--- a/model.py\n+++ b/model.py\n@@ -1 +1,2 @@\n x\n+do {idea}\n")
            }
            role @ (AgentRole::Coordinator | AgentRole::Planner | AgentRole::Reviewer) => {
                return Err(AgentError::Unanswered(format!("there is no {role} here")));
            }
        };
        Ok(AgentReply::from_text(text))
    }
}

fn ideas(ask: &AgentRequest) -> String {
    let wanted = after(&ask.prompt, "Propose ").unwrap_or(1);
    let idea = |index: i32| {
        let tag = format!("{} {index}", ask.key);
        let drawn = draw(&tag);
        let title = match drawn % 10 {
            0 => format!("never-applies {tag}"),
            _ => format!("gain {} {tag}", i64::from(drawn / 16 % 9) * 20 - 60),
        };
        format!("IDEA: {title}\nRATIONALE: to see\nREQUIRED_CHANGES: as it says\n")
    };
    (0..wanted).map(idea).collect()
}

impl Executor for ThinWorld {
    fn submit_job(&self, job: &SweepJob) -> Result<(), PortError> {
        lock(&self.jobs).push(job.clone());
        self.arrived.notify_one();
        Ok(())
    }

    fn adopt_jobs(&self, _: &[SweepJob]) -> Result<Vec<JobKey>, PortError> {
        Ok(Vec::new())
    }

    fn wait_for_jobs(&self, patience: Duration) -> Result<Vec<JobEnd>, PortError> {
        let jobs = lock(&self.jobs);
        let waited = self.arrived.wait_timeout_while(jobs, patience, |jobs| jobs.is_empty());
        let (mut jobs, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let ended = jobs.pop();
        drop(jobs);
        Ok(ended.iter().map(|job| self.end(job)).collect())
    }
}

impl ThinWorld {
    fn end(&self, job: &SweepJob) -> JobEnd {
        let subject = job.key.subject;
        let stable = path::subject_folder(subject).join("experiment").join(path::RESULTS_CSV);
        lock(&self.results).insert(stable.to_string(), worth(&job.commit));
        let results = path::submission_folder(subject, job.key.submission).join(path::RESULTS_CSV);
        JobEnd::new(job.key, JobExit::Done { results })
    }
}

/// Returns the results of a state of this worth.
fn results_csv(worth: i32) -> String {
    let mut csv = "config_id,status,mean_topN_avg_return_per_trade_pct_oos,core_topN_sharpe,\
                   core_topN_volatility,core_topN_max_drawdown\n"
        .to_owned();
    for config in 0..4 {
        let primary = f64::from((config + 1) * (1000 + worth)) / 1000.0;
        csv.push_str(&format!("{config},ok,{primary},{primary},0.15,-0.2\n"));
    }
    csv
}

impl FileStore for ThinWorld {
    fn write_file(&self, path: &RunPath, bytes: &[u8]) -> Result<(), PortError> {
        let name = path.as_str();
        if name.starts_with("node_ideas/") && bytes.starts_with(b"IDEA: ") {
            lock(&self.ideas).insert(name.to_owned(), bytes.to_vec());
        }
        if name.starts_with("conversations/") {
            let mut talks = lock(&self.talks);
            talks.insert(name.to_owned(), bytes.to_vec());
            if talks.len() > MAX_CONVERSATION_FILES {
                talks.pop_first();
            }
        }
        Ok(())
    }

    fn read_file(&self, path: &RunPath, _: usize) -> Result<Vec<u8>, PortError> {
        let text = lock(&self.ideas).remove(path.as_str());
        text.ok_or_else(|| PortError::new(format!("no file `{path}`")))
    }

    fn find_file(&self, path: &RunPath, _: usize) -> Result<Option<Vec<u8>>, PortError> {
        let name = path.as_str();
        let counts =
            ["node_ideas/", "conversations/"].iter().any(|folder| name.starts_with(folder));
        if counts || name.ends_with(path::SCORING_ROOT_FILE) {
            *lock(&self.looked) += 1;
        }
        let kept = if name.contains("/calls/") { &self.ideas } else { &self.talks };
        Ok(lock(kept).get(name).cloned())
    }

    fn link_file(&self, from: &RunPath, _: &RunPath) -> Result<Sha256, PortError> {
        Ok(Sha256::hash_bytes(from.as_str().as_bytes()))
    }

    fn find_changed_artifacts(&self, _: &[Artifact]) -> Result<Vec<Artifact>, PortError> {
        Ok(Vec::new())
    }
    fn restore_artifacts(&self, _: &[Artifact]) -> Result<(), PortError> {
        Ok(())
    }
    fn open_copy_of(&self, artifact: &Artifact) -> Result<Box<dyn Read>, PortError> {
        self.open_artifact(artifact)
    }

    fn remove_submissions(&self, _: EvalId) -> Result<(), PortError> {
        Ok(())
    }

    fn import_artifact(&self, from: &RunPath, name: &str) -> Result<Artifact, PortError> {
        let path = format!("{}/{name}", path::ARTIFACTS_FOLDER).parse();
        let path = path.map_err(|_| PortError::new("no name for an artifact"))?;
        let worth = lock(&self.results).remove(from.as_str()).unwrap_or(0);
        let mut digest = *Sha256::hash_bytes(name.as_bytes()).as_bytes();
        for (place, byte) in digest.iter_mut().zip(worth.to_be_bytes()) {
            *place = byte;
        }
        Ok(Artifact { path, sha256: Sha256::from_bytes(digest), source: from.to_string() })
    }

    fn sync_files(&self) -> Result<(), PortError> {
        Ok(())
    }

    fn open_artifact(&self, artifact: &Artifact) -> Result<Box<dyn Read>, PortError> {
        let worth = artifact.sha256.as_bytes().first_chunk().copied().unwrap_or_default();
        Ok(Box::new(Cursor::new(results_csv(i32::from_be_bytes(worth)))))
    }
}

impl Clock for ThinWorld {
    fn recorded_time(&self, _: RecordedMoment) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }
}
