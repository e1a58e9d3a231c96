//! Tracks current activity by place: running agent calls, and the last output line of sweeps.
//!
//! The ports of a run are wrapped to report it; the wrappers change nothing.

use crate::terminal::print_above_bar;
use std::collections::BTreeMap;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use treebeam_core::event::SweepSubject;
use treebeam_core::id::CodePlace;
use treebeam_core::path;
use treebeam_run::port::{
    Agent, AgentError, AgentReply, AgentRequest, AgentRole, EditMode, Executor, JobEnd, JobKey,
    PortError, SweepJob,
};
use treebeam_store::RunDir;
use treebeam_store::record_file::{self, RecordKind};

/// Bytes of the end of a log that are read.
const LOG_TAIL_BYTES: u64 = 512;
/// Interval between two reads of a log's end.
const LOG_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Current activity of each place.
static PLACE_ACTIVITIES: Mutex<BTreeMap<CodePlace, PlaceActivity>> = Mutex::new(BTreeMap::new());

struct PlaceActivity {
    what: String,
    since: Instant,
    /// Last output line of the sweep.
    last_line: String,
}

fn lock_activities() -> MutexGuard<'static, BTreeMap<CodePlace, PlaceActivity>> {
    PLACE_ACTIVITIES.lock().unwrap_or_else(PoisonError::into_inner)
}

fn start_activity(place: CodePlace, what: String) {
    lock_activities()
        .insert(place, PlaceActivity { what, since: Instant::now(), last_line: String::new() });
}

fn end_activity(place: CodePlace) {
    lock_activities().remove(&place);
}

/// Describes all current activities on one line.
pub(super) fn describe_activities() -> String {
    let doing = |(place, doing): (&CodePlace, &PlaceActivity)| {
        let PlaceActivity { what, since, last_line: said } = doing;
        let said = if said.is_empty() { String::new() } else { format!(", said {said:?}") };
        format!("{place} {what}, {} s{said}", since.elapsed().as_secs())
    };
    lock_activities().iter().map(doing).collect::<Vec<_>>().join(" · ")
}

/// Setting for lines about single answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineReporting {
    /// A line for each answer: there are few, and the user waits.
    Each,
    /// No lines: there are many answers, or no one is watching.
    None,
}

/// An agent wrapper that reports its calls.
pub(crate) struct ObservedAgent<A> {
    pub(crate) agent: A,
    pub(crate) lines: LineReporting,
}

impl<A: Agent> Agent for ObservedAgent<A> {
    fn can_answer(&self, role: AgentRole) -> bool {
        self.agent.can_answer(role)
    }

    fn edit_mode(&self, role: AgentRole) -> EditMode {
        self.agent.edit_mode(role)
    }

    fn can_continue(&self, role: AgentRole) -> bool {
        self.agent.can_continue(role)
    }

    fn ask(&self, ask: &AgentRequest) -> Result<AgentReply, AgentError> {
        let what = match ask.role {
            AgentRole::Coder | AgentRole::Reviewer => {
                format!("{}, round {}", ask.role, ask.round + 1)
            }
            AgentRole::Ideas | AgentRole::Coordinator | AgentRole::Planner => ask.role.to_string(),
        };
        start_activity(ask.place, what.clone());
        let begun = Instant::now();
        let answered = self.agent.ask(ask);
        end_activity(ask.place);
        if self.lines == LineReporting::Each {
            let took = describe_answer(&answered, begun.elapsed());
            print_above_bar(&format!("{}: {what}: {took}", ask.place));
        }
        answered
    }
}

/// Describes how long an answer took, and what it cost.
fn describe_answer(answered: &Result<AgentReply, AgentError>, time: Duration) -> String {
    let mut words = format!("{:.1} s", time.as_secs_f64());
    match answered {
        Ok(reply) => {
            let tokens = reply.usage.map(|usage| format!(", {} tokens", usage.total_tokens()));
            words.push_str(&tokens.unwrap_or_default());
            words.push_str(&reply.cost.map(|cost| format!(", {cost}")).unwrap_or_default());
        }
        Err(error) => words.push_str(&format!(", no answer: {error}")),
    }
    words
}

/// An executor wrapper that reports the output of its sweeps.
pub(crate) struct ObservedExecutor<E> {
    executor: E,
    run: RunDir,
    lines: LineReporting,
    jobs: Mutex<BTreeMap<JobKey, Instant>>,
}

impl<E> ObservedExecutor<E> {
    pub(crate) const fn new(executor: E, run: RunDir, lines: LineReporting) -> Self {
        Self { executor, run, lines, jobs: Mutex::new(BTreeMap::new()) }
    }

    fn lock_jobs(&self) -> MutexGuard<'_, BTreeMap<JobKey, Instant>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start_sweep(&self, key: JobKey) {
        self.lock_jobs().insert(key, Instant::now());
        start_activity(key.subject.code_place(), "sweep".to_owned());
    }

    fn end_sweep(&self, key: JobKey) {
        end_activity(key.subject.code_place());
        let begun = self.lock_jobs().remove(&key);
        if let (Some(begun), LineReporting::Each, SweepSubject::Eval(_)) =
            (begun, self.lines, key.subject)
        {
            let seconds = begun.elapsed().as_secs_f64();
            print_above_bar(&format!("{}: tests and sweep: {seconds:.1} s", key.subject));
        }
    }

    fn read_last_lines(&self) {
        for key in self.lock_jobs().keys() {
            let folder = self.run.file_path(&path::submission_folder(key.subject, key.submission));
            let mut logs = path::LOG_FILES.iter().rev();
            let Some(said) = logs.find_map(|log| read_last_line(&folder.join(log))) else {
                continue;
            };
            if let Some(doing) = lock_activities().get_mut(&key.subject.code_place()) {
                doing.last_line = said;
            }
        }
    }
}

/// Returns the last line of a log with any text, without terminal controls.
fn read_last_line(log: &Path) -> Option<String> {
    let mut file = record_file::open_record(log, RecordKind::Log).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LOG_TAIL_BYTES))).ok()?;
    let mut end = Vec::new();
    file.take(LOG_TAIL_BYTES).read_to_end(&mut end).ok()?;
    let text = String::from_utf8_lossy(&end);
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().filter(|c| !c.is_control()).collect())
}

impl<E: Executor> Executor for ObservedExecutor<E> {
    fn submit_job(&self, job: &SweepJob) -> Result<(), PortError> {
        self.executor.submit_job(job)?;
        self.start_sweep(job.key);
        Ok(())
    }

    fn adopt_jobs(&self, jobs: &[SweepJob]) -> Result<Vec<JobKey>, PortError> {
        let known = self.executor.adopt_jobs(jobs)?;
        for key in &known {
            self.start_sweep(*key);
        }
        Ok(known)
    }

    fn wait_for_jobs(&self, patience: Duration) -> Result<Vec<JobEnd>, PortError> {
        let ends = self.executor.wait_for_jobs(patience.min(LOG_POLL_INTERVAL))?;
        for end in &ends {
            self.end_sweep(end.key);
        }
        self.read_last_lines();
        Ok(ends)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_last_line_of_a_log() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("sweep.log");
        assert_eq!(read_last_line(&log), None);
        let check = |bytes: &[u8], expect: Option<&str>| {
            fs::write(&log, bytes).expect("a log");
            assert_eq!(read_last_line(&log).as_deref(), expect);
        };
        check(b"", None);
        check(b"one\ntwo\n\n", Some("two"));
        check(b"one\ntwo \x1b[2Jthree", Some("two [2Jthree"));
        fs::write(&log, "\u{fc}".repeat(1000)).expect("a log");
        assert!(read_last_line(&log).is_some_and(|line| line.len() <= 520));
    }
}
