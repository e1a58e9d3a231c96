//! Provides a world in memory behind all ports, fast enough to crash a run at every event.
//!
//! Its results are simple functions of a seed. It has no git, no files and no processes; its data
//! survives a "crash" as a disk would.

mod agent;
mod files;
mod repo;

use jiff::{SignedDuration, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use treebeam_core::event::{FailureKind, MessageId};
use treebeam_core::id::{Commit, Sha256};
use treebeam_core::path;
use treebeam_run::RunPorts;
use treebeam_run::port::{
    Clock, Executor, Inbox, InboxMessage, Interrupt, JobEnd, JobExit, JobKey, MessageContent,
    PortError, RecordedMoment, SilentUser, SweepJob,
};
use treebeam_run::prompt::PromptSet;

/// A world that is a function of its seed.
#[derive(Debug)]
pub struct MemoryWorld {
    seed: u64,
    /// Seed of the order in which sweeps end: any order must give the same tree.
    order: u64,
    disk: Mutex<Disk>,
    engine: Mutex<BTreeMap<u64, SweepJob>>,
    trouble: Mutex<Trouble>,
    /// Number of polls before the run is interrupted; `None` means never.
    calm: Mutex<Option<u64>>,
    inbox: Mutex<Letters>,
    /// Maximum number of paid answers; `None` means any number.
    purse: Option<usize>,
    /// Wall time of an answer: no other step takes any time.
    answer_takes: SignedDuration,
    /// Real duration of a removal.
    discard_takes: Duration,
    /// True if ideas differ in words more often than in code.
    same_code: bool,
    /// Tracked files that each sweep rewrites: the root's, and any other.
    rewritten: [Vec<String>; 2],
}

/// Separator between an idea's code and the words that make it another idea.
const SAID_BY: &str = " said by ";

/// The inbox, which survives a crash too.
#[derive(Debug, Default)]
struct Letters {
    /// Messages that arrive at the n-th poll from now.
    coming: BTreeMap<u64, Vec<InboxMessage>>,
    there: BTreeMap<MessageId, MessageContent>,
    aside: Vec<(MessageId, String)>,
    /// True if removing a message has no effect.
    sticky: bool,
    looks: u64,
}

/// Fault of the executor or the agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trouble {
    /// No fault.
    #[default]
    None,
    /// Waiting for jobs panics.
    Panic,
    /// Every sweep fails.
    Failing,
    /// Every end is reported twice, the second time for an earlier submission.
    Echo,
    /// No question is answered.
    NoAgent,
    /// Every job is lost, up to this submission of it.
    Losing(u32),
}

/// Data that survives a crash.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Disk {
    /// Refs by name.
    pub refs: BTreeMap<String, String>,
    /// Worktrees: their commit, and the change since.
    pub worktrees: BTreeMap<String, (String, Option<String>)>,
    /// Files by path.
    pub files: BTreeMap<String, Vec<u8>>,
    /// Changes that led to a commit, oldest first.
    commits: BTreeMap<String, Vec<String>>,
    /// Content of a commit: equal for two commits that differ only in time.
    contents: BTreeMap<String, String>,
    ended: BTreeSet<String>,
    /// Worktrees from before a power cut, which lack contents written then.
    torn: BTreeSet<String>,
    /// Keys of the questions that were answered.
    paid: BTreeSet<String>,
}

impl MemoryWorld {
    /// Creates a world with this seed, and a seed for the order in which sweeps end.
    #[must_use]
    pub fn new(seed: u64, order: u64) -> Self {
        let (disk, engine, trouble) = (Mutex::default(), Mutex::default(), Mutex::default());
        let (calm, inbox, purse) = (Mutex::default(), Mutex::default(), None);
        let (answer_takes, discard_takes) = (SignedDuration::ZERO, Duration::ZERO);
        Self {
            seed,
            order,
            disk,
            engine,
            trouble,
            calm,
            inbox,
            purse,
            answer_takes,
            discard_takes,
            same_code: false,
            rewritten: [Vec::new(), Vec::new()],
        }
    }

    /// Makes ideas differ in words more often than in code, and lead to the same files in any
    /// order.
    #[must_use]
    pub fn with_same_code(self) -> Self {
        Self { same_code: true, ..self }
    }

    /// Makes the root's own sweep and those of candidates rewrite these tracked files.
    #[must_use]
    pub fn with_rewritten_files(self, by_root: &[&str], by_candidates: &[&str]) -> Self {
        let owned = |paths: &[&str]| paths.iter().map(|&path| path.to_owned()).collect();
        Self { rewritten: [by_root, by_candidates].map(owned), ..self }
    }

    /// Makes each removal take a moment.
    #[must_use]
    pub fn with_slow_removals(self) -> Self {
        Self { discard_takes: Duration::from_millis(3), ..self }
    }

    /// Puts a message of this name into the inbox, after this many more polls.
    pub fn post(&self, name: &str, request: MessageContent, after: u64) {
        let id = name.parse().expect("a message's name");
        let mut letters = self.letters();
        let at = letters.looks + after;
        letters.coming.entry(at).or_default().push(InboxMessage { id, request });
    }

    /// Sets whether removed messages stay, as if their files could not be removed.
    pub fn let_messages_stick(&self, sticky: bool) {
        self.letters().sticky = sticky;
    }

    /// Returns the messages in the inbox.
    #[must_use]
    pub fn posted(&self) -> Vec<MessageId> {
        self.letters().there.keys().cloned().collect()
    }

    /// Returns the messages that were set aside, each with its reason.
    #[must_use]
    pub fn set_aside(&self) -> Vec<(MessageId, String)> {
        self.letters().aside.clone()
    }

    /// Returns the number of polls of the inbox.
    #[must_use]
    pub fn looks(&self) -> u64 {
        self.letters().looks
    }

    fn letters(&self) -> MutexGuard<'_, Letters> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Interrupts the run after this number of polls; `None` means never.
    pub fn interrupt_after(&self, asked: Option<u64>) {
        *self.calm.lock().unwrap_or_else(PoisonError::into_inner) = asked;
    }

    /// Sets the current fault.
    pub fn give(&self, trouble: Trouble) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }

    fn trouble(&self) -> Trouble {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes the commits that no ref points at.
    pub fn prune(&self) {
        let Disk { refs, commits, .. } = &mut *self.lock();
        commits.retain(|name, _| refs.values().any(|kept| kept == name));
    }

    /// Returns the commit that runs start from.
    #[must_use]
    pub fn root() -> Commit {
        commit(&"0".repeat(40))
    }

    /// Returns all ports.
    #[must_use]
    pub fn ports(&self) -> RunPorts<'_> {
        RunPorts {
            repo: self,
            agent: self,
            executor: self,
            files: self,
            inputs: &SilentUser,
            clock: self,
            interrupt: self,
            inbox: self,
            prompts: PromptSet::built_in(),
        }
    }

    /// Returns a copy of the disk.
    #[must_use]
    pub fn disk(&self) -> Disk {
        self.lock().clone()
    }

    /// Returns the number of worktrees.
    #[must_use]
    pub fn worktrees(&self) -> usize {
        self.lock().worktrees.len()
    }

    /// Returns an independent copy of the world, whose sweeps end in another order.
    #[must_use]
    pub fn fork(&self, order: u64) -> Self {
        let (same_code, rewritten) = (self.same_code, self.rewritten.clone());
        let fork = Self { same_code, rewritten, ..Self::new(self.seed, order) };
        *fork.lock() = self.disk();
        let jobs = self.engine.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for job in jobs.into_values() {
            fork.submit_job(&job).expect("a submitted job");
        }
        fork
    }

    /// Drops the jobs that have not ended, as if the machine had been restarted.
    pub fn restart(&self) {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Removes some contents of each worktree, because worktrees are not synced.
    pub fn cut_power(&self) {
        let Disk { worktrees, torn, .. } = &mut *self.lock();
        torn.extend(worktrees.keys().cloned());
    }

    fn lock(&self) -> MutexGuard<'_, Disk> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn draw(&self, text: &str) -> u64 {
        draw(self.seed, text)
    }
}

fn draw(seed: u64, text: &str) -> u64 {
    let digest = Sha256::hash_bytes(format!("{seed} {text}").as_bytes());
    digest.as_bytes().iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn commit(text: &str) -> Commit {
    text.parse().expect("a commit name")
}

impl Executor for MemoryWorld {
    fn submit_job(&self, job: &SweepJob) -> Result<(), PortError> {
        let turn = draw(self.order, &job.key.subject.to_string());
        let mut engine = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        engine.insert(turn, job.clone());
        Ok(())
    }

    fn adopt_jobs(&self, jobs: &[SweepJob]) -> Result<Vec<JobKey>, PortError> {
        let engine = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        let known: BTreeSet<_> = engine.values().map(|job| job.key).collect();
        Ok(jobs.iter().map(|job| job.key).filter(|key| known.contains(key)).collect())
    }

    fn wait_for_jobs(&self, _: Duration) -> Result<Vec<JobEnd>, PortError> {
        let trouble = self.trouble();
        assert!(trouble != Trouble::Panic, "the executor broke");
        let mut engine = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        let first = engine.pop_first();
        drop(engine);
        let (_, job) = first.expect("whoever is asked for ends has a job that can end");
        if matches!(trouble, Trouble::Losing(last) if job.key.submission <= last) {
            let exit = JobExit::Lost { message: "it was killed".to_owned() };
            return Ok(vec![JobEnd::new(job.key, exit)]);
        }
        let end = self.sweep(&job);
        let key = JobKey { submission: end.key.submission - 1, ..end.key };
        let late = (trouble == Trouble::Echo).then(|| JobEnd { key, ..end.clone() });
        Ok([end].into_iter().chain(late).collect())
    }
}

impl MemoryWorld {
    fn sweep(&self, job: &SweepJob) -> JobEnd {
        let folder = path::submission_folder(job.key.subject, job.key.submission);
        let results = folder.join(path::RESULTS_CSV);
        let mut disk = self.lock();
        let changes = disk.commits.get(job.commit.as_str()).cloned().unwrap_or_default();
        disk.files.insert(folder.join(path::EVAL_RESULT_FILE).to_string(), b"{}".to_vec());
        let failing = self.trouble() == Trouble::Failing;
        let exit = if failing || changes.iter().any(|change| change.contains("sweep-fails")) {
            JobExit::Failed { kind: FailureKind::Sweep, message: "exit 1".to_owned() }
        } else {
            let csv = results_csv(&changes, job.sweep_config_limit.unwrap_or(4));
            disk.files.insert(results.to_string(), csv.into_bytes());
            JobExit::Done { results }
        };
        JobEnd::new(job.key, exit)
    }
}

/// Returns the results of a code state with these changes.
#[must_use]
pub fn results_csv(changes: &[String], rows: u32) -> String {
    let has = |word: &str| changes.iter().any(|change| change.contains(word));
    let gain = |change: &String| -> Option<i64> {
        change.strip_prefix("gain ")?.split(' ').next()?.parse().ok()
    };
    let gains: i64 = changes.iter().filter_map(gain).sum();
    let mut csv = "config_id,status,mean_topN_avg_return_per_trade_pct_oos\n".to_owned();
    for row in 0..rows - u32::from(has("short")) {
        let status = if row == 0 && has("error") { "error" } else { "ok" };
        let primary = (i64::from(row) + 1) * (1000 + gains);
        let primary = if has("not-a-number") { "nan".to_owned() } else { primary.to_string() };
        csv.push_str(&format!("{row},{status},{primary}\n"));
    }
    csv
}

impl Clock for MemoryWorld {
    fn recorded_time(&self, moment: RecordedMoment) -> Timestamp {
        let second = draw(0, &format!("{moment:?}")) % 1_000_000;
        Timestamp::from_second(i64::try_from(second).unwrap_or(0)).unwrap_or_default()
    }
    fn now(&self) -> Timestamp {
        let answers = i32::try_from(self.paid()).unwrap_or(i32::MAX);
        Timestamp::UNIX_EPOCH + self.answer_takes * answers
    }
}

impl Interrupt for MemoryWorld {
    fn is_asked_for(&self) -> bool {
        let mut calm = self.calm.lock().unwrap_or_else(PoisonError::into_inner);
        let over = *calm == Some(0);
        *calm = calm.map(|left| left.saturating_sub(1));
        over
    }
}

impl Inbox for MemoryWorld {
    fn list_messages(&self) -> Vec<InboxMessage> {
        let mut letters = self.letters();
        letters.looks += 1;
        let later = letters.looks;
        let later = letters.coming.split_off(&later);
        let come = std::mem::replace(&mut letters.coming, later);
        letters.there.extend(come.into_values().flatten().map(|m| (m.id, m.request)));
        let message = |(id, request): (&MessageId, &MessageContent)| InboxMessage {
            id: id.clone(),
            request: request.clone(),
        };
        letters.there.iter().map(message).collect()
    }

    fn forget_message(&self, message: &MessageId) {
        let mut letters = self.letters();
        if !letters.sticky {
            letters.there.remove(message);
        }
    }

    fn set_aside(&self, message: &MessageId, why: &str) {
        self.forget_message(message);
        self.letters().aside.push((message.clone(), why.to_owned()));
    }

    fn poll_interval(&self) -> Duration {
        Duration::from_millis(1)
    }
}
