//! What goes on at this moment: who is asked in which round and for how long, and what a sweep said last. The ports of a run
//! are wrapped in those that tell it; they change nothing.

use super::interject;
use std::collections::BTreeMap;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use treebeam_core::event::Subject;
use treebeam_core::id::Place;
use treebeam_core::path;
use treebeam_edge::store::RunDir;
use treebeam_edge::store::record_file::{self, RecordKind};
use treebeam_run::port::{
    Agent, AgentError, Ask, Edits, Executor, Job, JobEnd, JobKey, PortError, Reply, Role,
};

/// How much of the end of a log is looked at.
const TAIL: u64 = 512;
/// How often it is looked at.
const GLANCE: Duration = Duration::from_secs(1);

/// What each place is busy with.
static NOW: Mutex<BTreeMap<Place, Doing>> = Mutex::new(BTreeMap::new());

struct Doing {
    what: String,
    since: Instant,
    /// The last line that it said.
    said: String,
}

fn now() -> MutexGuard<'static, BTreeMap<Place, Doing>> {
    NOW.lock().unwrap_or_else(PoisonError::into_inner)
}

fn begins(place: Place, what: String) {
    now().insert(place, Doing { what, since: Instant::now(), said: String::new() });
}

fn ends(place: Place) {
    now().remove(&place);
}

/// All of it on one line.
pub(super) fn in_words() -> String {
    let doing = |(place, doing): (&Place, &Doing)| {
        let Doing { what, since, said } = doing;
        let said = if said.is_empty() { String::new() } else { format!(", said {said:?}") };
        format!("{place} {what}, {} s{said}", since.elapsed().as_secs())
    };
    now().iter().map(doing).collect::<Vec<_>>().join(" · ")
}

/// Whether each answer is worth a line of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lines {
    /// There are few of them, and somebody waits.
    Each,
    /// There are many, or nobody looks.
    None,
}

/// An agent that is seen at work.
pub(crate) struct SeenAgent<A> {
    pub(crate) agent: A,
    pub(crate) lines: Lines,
}

impl<A: Agent> Agent for SeenAgent<A> {
    fn answers(&self, role: Role) -> bool {
        self.agent.answers(role)
    }

    fn edits(&self, role: Role) -> Edits {
        self.agent.edits(role)
    }

    fn continues(&self, role: Role) -> bool {
        self.agent.continues(role)
    }

    fn ask(&self, ask: &Ask) -> Result<Reply, AgentError> {
        let what = match ask.role {
            Role::Coder | Role::Reviewer => format!("{}, round {}", ask.role, ask.round + 1),
            Role::Ideas | Role::Coordinator | Role::Planner => ask.role.to_string(),
        };
        begins(ask.place, what.clone());
        let begun = Instant::now();
        let answered = self.agent.ask(ask);
        ends(ask.place);
        if self.lines == Lines::Each {
            let took = took(&answered, begun.elapsed());
            interject(&format!("{}: {what}: {took}", ask.place));
        }
        answered
    }
}

/// How long an answer took, and what it cost.
fn took(answered: &Result<Reply, AgentError>, time: Duration) -> String {
    let mut words = format!("{:.1} s", time.as_secs_f64());
    match answered {
        Ok(reply) => {
            let tokens = reply.usage.map(|usage| format!(", {} tokens", usage.total()));
            words.push_str(&tokens.unwrap_or_default());
            words.push_str(&reply.cost.map(|cost| format!(", {cost}")).unwrap_or_default());
        }
        Err(error) => words.push_str(&format!(", no answer: {error}")),
    }
    words
}

/// An executor whose sweeps are listened to.
pub(crate) struct SeenExecutor<E> {
    executor: E,
    run: RunDir,
    lines: Lines,
    jobs: Mutex<BTreeMap<JobKey, Instant>>,
}

impl<E> SeenExecutor<E> {
    pub(crate) const fn new(executor: E, run: RunDir, lines: Lines) -> Self {
        Self { executor, run, lines, jobs: Mutex::new(BTreeMap::new()) }
    }

    fn jobs(&self) -> MutexGuard<'_, BTreeMap<JobKey, Instant>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begins(&self, key: JobKey) {
        self.jobs().insert(key, Instant::now());
        begins(key.subject.place(), "sweep".to_owned());
    }

    fn ends(&self, key: JobKey) {
        ends(key.subject.place());
        let begun = self.jobs().remove(&key);
        if let (Some(begun), Lines::Each, Subject::Eval(_)) = (begun, self.lines, key.subject) {
            let seconds = begun.elapsed().as_secs_f64();
            interject(&format!("{}: tests and sweep: {seconds:.1} s", key.subject));
        }
    }

    fn listen(&self) {
        for key in self.jobs().keys() {
            let folder = self.run.path(&path::submission(key.subject, key.submission));
            let mut logs = path::LOGS.iter().rev();
            let Some(said) = logs.find_map(|log| last_line(&folder.join(log))) else {
                continue;
            };
            if let Some(doing) = now().get_mut(&key.subject.place()) {
                doing.said = said;
            }
        }
    }
}

/// The last line of a log that says anything, without what a terminal would obey.
fn last_line(log: &Path) -> Option<String> {
    let mut file = record_file::open(log, RecordKind::Log).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL))).ok()?;
    let mut end = Vec::new();
    file.take(TAIL).read_to_end(&mut end).ok()?;
    let text = String::from_utf8_lossy(&end);
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().filter(|c| !c.is_control()).collect())
}

impl<E: Executor> Executor for SeenExecutor<E> {
    fn submit(&self, job: &Job) -> Result<(), PortError> {
        self.executor.submit(job)?;
        self.begins(job.key);
        Ok(())
    }

    fn adopt(&self, jobs: &[Job]) -> Result<Vec<JobKey>, PortError> {
        let known = self.executor.adopt(jobs)?;
        for key in &known {
            self.begins(*key);
        }
        Ok(known)
    }

    fn wait(&self, patience: Duration) -> Result<Vec<JobEnd>, PortError> {
        let ends = self.executor.wait(patience.min(GLANCE))?;
        for end in &ends {
            self.ends(end.key);
        }
        self.listen();
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
        assert_eq!(last_line(&log), None);
        let check = |bytes: &[u8], expect: Option<&str>| {
            fs::write(&log, bytes).expect("a log");
            assert_eq!(last_line(&log).as_deref(), expect);
        };
        check(b"", None);
        check(b"one\ntwo\n\n", Some("two"));
        check(b"one\ntwo \x1b[2Jthree", Some("two [2Jthree"));
        fs::write(&log, "\u{fc}".repeat(1000)).expect("a log");
        assert!(last_line(&log).is_some_and(|line| line.len() <= 520));
    }
}
