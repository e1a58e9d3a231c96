//! Scenarios that together cover every lasting step of the program: calls, changes of the disk
//! between them, and faults that belong to the scenario.

use super::BINARY;
use std::fs;
use std::time::{Duration, SystemTime};
use treebeam_core::event::UserRequest;
use treebeam_store::RunDir;
use treebeam_store::inbox::{OutgoingMessage, encode_message};
use treebeam_store::user_state::UserState;
use treebeam_testkit::older_run;
use treebeam_testkit::program::{SITE_RUN_ID, Site};
use treebeam_testkit::repo::TempRepo;

/// Calls of the program, one after the other, in a repository of their own.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    files: Vec<(&'static str, &'static str)>,
    pub(crate) acts: Vec<Act>,
    pub(crate) end: End,
}

/// How a scenario ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// As the undisturbed run.
    AsWhole,
    /// In its own way.
    Own,
}

/// One call.
pub(crate) struct Act {
    /// Change of the disk before the call.
    pub(crate) prepare: fn(&Site),
    pub(crate) words: Vec<&'static str>,
    /// Faults that belong to the call.
    pub(crate) plan: &'static str,
    /// Exit code; `None` if the call is killed by its own plan.
    pub(crate) code: Option<i32>,
}

impl Act {
    fn run(flags: &[&'static str]) -> Self {
        Self::of(&[&["run", "--dry-run", "--run-id", SITE_RUN_ID], flags].concat())
    }

    fn resume(flags: &[&'static str]) -> Self {
        Self::of(&[&["resume", SITE_RUN_ID], flags].concat())
    }

    fn of(words: &[&'static str]) -> Self {
        Self::plain(&[words, &["--quiet"]].concat())
    }

    fn plain(words: &[&'static str]) -> Self {
        Self { prepare: |_| (), words: words.to_vec(), plan: "", code: Some(0) }
    }

    fn after(self, prepare: fn(&Site)) -> Self {
        Self { prepare, ..self }
    }

    fn with(self, plan: &'static str) -> Self {
        Self { plan, ..self }
    }

    fn exits(self, code: i32) -> Self {
        Self { code: Some(code), ..self }
    }

    fn killed(self, plan: &'static str) -> Self {
        Self { plan, code: None, ..self }
    }
}

impl Scenario {
    fn new(name: &'static str, acts: Vec<Act>) -> Self {
        let files = vec![("model.py", "x = 1\n"), ("src/lib/part.txt", "a part\n")];
        Self { name, files, acts, end: End::AsWhole }
    }

    /// Adds a file that is no part of the run.
    fn with(mut self, name: &'static str, text: &'static str) -> Self {
        self.files.push((name, text));
        self.in_its_own_way()
    }

    fn in_its_own_way(self) -> Self {
        Self { end: End::Own, ..self }
    }

    /// Starts from a root that has this line of the dry world already.
    fn of_a_root(self, line: &'static str) -> Self {
        self.with("treebeam_dry_run.txt", line)
    }

    /// Creates a fresh repository for the scenario.
    pub(crate) fn site(&self) -> Site {
        Site::from_repo(TempRepo::with(&self.files).expect("a repository"), BINARY)
    }
}

const SMALL: [&str; 4] =
    ["--ideas-per-node=2", "--max-depth=2", "--beam-width=1", "--max-parallel-evals=1"];
const SHALLOW: [&str; 4] =
    ["--ideas-per-node=2", "--max-depth=1", "--beam-width=1", "--max-parallel-evals=1"];
const WIDE: [&str; 4] =
    ["--ideas-per-node=9", "--max-depth=1", "--beam-width=1", "--max-parallel-evals=1"];

/// Returns all scenarios, the whole run first.
pub(crate) fn all() -> Vec<Scenario> {
    let small = || Act::run(&SMALL);
    let resume = || Act::resume(&[]);
    let retry = || Act::resume(&["--retry-failed"]);
    let add = || Act::plain(&["idea", "add", SITE_RUN_ID, "mine.md"]);
    let mut scenarios = vec![
        Scenario::new("whole", vec![small()]),
        Scenario::new("deeper", vec![Act::run(&SHALLOW), Act::resume(&["--max-depth=2"])]),
        Scenario::new(
            "late",
            vec![
                Act::run(&[&SHALLOW[..], &["--deadline=1ms"]].concat()),
                Act::resume(&["--deadline=none"]),
                Act::resume(&["--max-depth=2", "--deadline=2026-01-01T00:00:00Z"]),
                Act::resume(&["--deadline=none"]),
            ],
        ),
        Scenario::new(
            "compared with a control group",
            vec![Act::run(&[&SMALL[..], &["--control=best-of-n=0.5"]].concat())],
        )
        .in_its_own_way(),
        Scenario::new("failing evals", vec![Act::run(&WIDE)]).in_its_own_way(),
        Scenario::new(
            "failing twice",
            vec![Act::run(&[&WIDE[..], &["--eval-retries=1"]].concat())],
        )
        .in_its_own_way(),
        Scenario::new(
            "evaluated again",
            vec![
                small().killed("kill before 1 depth_closed"),
                Act::resume(&["--retry-failed", "--rerun-evals"]),
            ],
        )
        .in_its_own_way(),
        Scenario::new(
            "own idea",
            vec![small().killed("kill before 1 depth_closed"), add(), add(), resume()],
        )
        .with("mine.md", "Mine\n\nREQUIRED_CHANGES: append `gain 200 by me`\n"),
        Scenario::new(
            "stopped",
            vec![
                small().killed("kill before 2 swept"),
                resume().after(want_it_stopped).exits(130),
                resume(),
            ],
        ),
        Scenario::new(
            "stopped after a depth",
            vec![
                small().killed("kill before 2 swept"),
                resume().after(want_it_stopped_after_the_depth).exits(130),
                resume(),
            ],
        ),
        Scenario::new(
            "without worktrees",
            vec![small(), Act::plain(&["clean", SITE_RUN_ID, "--worktrees", "--yes"])],
        )
        .in_its_own_way(),
        Scenario::new(
            "deleted and made again",
            vec![small(), Act::plain(&["clean", SITE_RUN_ID, "--delete", "--yes"]), small()],
        ),
        Scenario::new("root refused", vec![small().exits(4)]).of_a_root("sweep-fails\n"),
        Scenario::new("no ideas", vec![small().exits(1), retry().exits(1)]).of_a_root("no-ideas\n"),
        Scenario::new("promotion fails", vec![small().with("fail EIO 1 create wt/0001/.git")]),
        Scenario::new(
            "no name yet",
            vec![small().killed("kill before 1 rename .treebeam/runs/t"), small()],
        ),
    ];
    scenarios.extend(of_a_damaged_record());
    scenarios
}

/// Returns scenarios whose files, refs or lock note differ from what the last process left.
fn of_a_damaged_record() -> Vec<Scenario> {
    let small = || Act::run(&SMALL);
    let resume = || Act::resume(&[]);
    vec![
        Scenario::new("torn line", vec![small().killed("kill amid 2 swept"), resume()]),
        Scenario::new(
            "line without end",
            vec![small().killed("kill after 2 swept"), resume().after(take_the_line_end)],
        ),
        Scenario::new(
            "older rules",
            vec![
                small().killed("kill before 1 depth_closed"),
                resume().after(older_run::write_as_older_run),
            ],
        ),
        Scenario::new(
            "unfinished file",
            vec![small().killed("kill before 1 rename artifacts/e0002.csv"), resume()],
        ),
        Scenario::new(
            "locked ref",
            vec![small().killed("kill before 2 scored"), resume().after(leave_a_lock)],
        ),
        Scenario::new(
            "owner elsewhere",
            vec![
                small().killed("kill before 3 scored"),
                Act::resume(&["--force"]).after(move_the_owner_away),
            ],
        ),
        Scenario::new(
            "manifest alone",
            vec![small(), Act::resume(&["--force"]).after(shorten_the_journal)],
        ),
        Scenario::new("journal removed", vec![small().with("lose 1 write swept")]),
        Scenario::new(
            "artifact changed",
            vec![small().killed("kill before 2 swept"), resume().after(change_an_artifact)],
        )
        .in_its_own_way(),
    ]
}

fn want_it_stopped(site: &Site) {
    tell_the_next(site, UserRequest::Stop);
}

fn want_it_stopped_after_the_depth(site: &Site) {
    tell_the_next(site, UserRequest::StopAfterDepth);
}

/// Posts a message to the process that opens the run next.
fn tell_the_next(site: &Site, wish: UserRequest) {
    let note: serde_json::Value = serde_json::from_str(&site.text("run.lock.json")).expect("JSON");
    let epoch = note["epoch"].as_u64().expect("an epoch") + 1;
    let home = site.repo.home().into_os_string();
    let state = UserState::find_from_variables(|name| (name == "HOME").then(|| home.clone()));
    let secret = state.and_then(|state| state.inbox_secret(&[])).expect("the user's secret");
    let name = "20260921T000000-000000000-1";
    let (id, run) = (name.parse().expect("a name"), RunDir::new(site.path("")));
    let message = OutgoingMessage::Wish { wish, epoch };
    let message = encode_message(&run, &id, jiff::Timestamp::UNIX_EPOCH, &message, &secret);
    fs::create_dir_all(site.path("inbox")).expect("an inbox");
    fs::write(site.path(&format!("inbox/{name}.json")), message.expect("it")).expect("a message");
}

/// Changes an artifact, as a running sweep could.
fn change_an_artifact(site: &Site) {
    fs::write(site.path("artifacts/root.csv"), "config_id,status\n").expect("an artifact");
}

fn take_the_line_end(site: &Site) {
    let journal = site.text("journal.jsonl");
    let unended = journal.strip_suffix('\n').expect("a line end");
    fs::write(site.path("journal.jsonl"), unended).expect("a journal");
}

/// Leaves a lock as if a git had been killed an hour ago while it wrote a ref.
fn leave_a_lock(site: &Site) {
    let lock = site.repo.path().join(".git/refs/heads/tree/t/e0002.lock");
    let lock = fs::File::create(lock).expect("a lock");
    lock.set_modified(SystemTime::now() - Duration::from_hours(1)).expect("to set its time");
}

/// Changes the lock note as if a process on another machine held the run.
fn move_the_owner_away(site: &Site) {
    let note = site.text("run.lock.json");
    let mut note: serde_json::Value = serde_json::from_str(&note).expect("a note");
    note["hostname"] = "elsewhere".into();
    note["boot_id"] = "another".into();
    fs::write(site.path("run.lock.json"), note.to_string()).expect("a note");
}

fn shorten_the_journal(site: &Site) {
    let journal = site.text("journal.jsonl");
    let lines: Vec<_> = journal.split_inclusive('\n').collect();
    let most = lines[..lines.len() - 2].concat();
    fs::write(site.path("journal.jsonl"), most).expect("a journal");
}
