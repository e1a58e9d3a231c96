//! Interrupts a dry run with real git and a real run directory after every event. Opened again and
//! driven to its end, it must equal the uninterrupted run. `run/tests/crash.rs` tests the same in
//! memory, for bigger trees.

#![cfg(test)]

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroU32;
use std::path::Path;
use std::thread;
use std::time::Duration;
use treebeam_core::event::{Event, RunStarted, WorldKind};
use treebeam_core::facts::{Facts, RunHistory};
use treebeam_core::id::EvalId;
use treebeam_core::plan::{self, RedoKind};
use treebeam_core::policy::{FixedSettings, RecordedAgents, RunLimits};
use treebeam_core::rules_version::RulesVersion;
use treebeam_core::state::State;
use treebeam_dry::{DryAgent, DryClock, DryExecutor, FlakyCleanup};
use treebeam_git::{GitRepo, UserRepo, open_repo_with};
use treebeam_run::port::{
    CheckpointKind, Clock as _, Journal, PortError, RecordedMoment, SilentUser,
};
use treebeam_run::prompt::PromptSet;
use treebeam_run::{RunHalt, RunPorts, drive_run};
use treebeam_store::{
    ForcePolicy, OpenNote, RunDir, RunFiles, RunStore, StoreError, make_runs_root, replay_journal,
};
use treebeam_testkit::repo::TempRepo;

const SEED: u64 = 7;
/// Number of interrupted runs that are tried at once.
const LANES: usize = 3;

fn number(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).expect("not zero")
}

/// A run of two depths with a promotion, a rejection, a failure, and cleanups that fail at first.
fn meaning(ideas: u32) -> FixedSettings {
    let sweep_config_limit = Some(number(3));
    FixedSettings { ideas_per_node: number(ideas), sweep_config_limit, ..FixedSettings::default() }
}

fn reach(workers: u32) -> RunLimits {
    RunLimits { max_depth: 2, max_parallel_evals: number(workers), ..RunLimits::default() }
}

/// A journal that fails for good after a number of events, or after one of a kind, as in a power
/// cut.
struct Fused {
    store: RunStore,
    left: usize,
    last: fn(&Event) -> bool,
    cut: bool,
}

impl Fused {
    fn powered(&self) -> Result<(), PortError> {
        if self.cut { Err(PortError::new("power cut")) } else { Ok(()) }
    }
}

impl Journal for Fused {
    fn append(&mut self, events: &[Event]) -> Result<(), PortError> {
        self.powered()?;
        let most = events.iter().position(self.last).map_or(events.len(), |index| index + 1);
        let (written, lost) = events.split_at(most.min(self.left));
        self.left -= written.len();
        if !written.is_empty() {
            self.store.append(written)?;
        }
        self.cut = !lost.is_empty() || events.iter().any(self.last);
        self.powered()
    }

    fn write_checkpoint(&mut self, state: &State, moment: CheckpointKind) -> Result<(), PortError> {
        self.powered()?;
        self.store.write_checkpoint(state, moment)
    }
}

/// A repository with a run in it.
struct Site {
    repo: TempRepo,
}

impl Site {
    fn new() -> Self {
        Self { repo: TempRepo::with(&[("model.py", "x = 1\n")]).expect("a repository") }
    }

    fn opened(&self) -> UserRepo {
        open_repo_with(self.repo.path(), self.repo.variables()).expect("the repository")
    }

    fn run(&self) -> RunDir {
        RunDir::new(self.repo.path().join(".treebeam/runs/t"))
    }

    fn begin(&self, workers: u32) -> (RunStore, State) {
        self.begin_with(meaning(3), reach(workers))
    }

    fn begin_with(&self, meaning: FixedSettings, reach: RunLimits) -> (RunStore, State) {
        let user = self.opened();
        let started = RunStarted {
            run: "t".parse().expect("a run id"),
            world: WorldKind::Dry { seed: SEED },
            root: user.head.clone(),
            meaning,
            reach,
            agents: RecordedAgents::default(),
            given: None,
            replays: None,
            rules_version: RulesVersion::LATEST,
            at: user.head_time,
        };
        let runs = make_runs_root(self.repo.path()).expect("a folder for runs");
        RunStore::create(&runs, &started).expect("a run")
    }

    /// Drives the run with new ports, as a new process would.
    fn go(&self, store: RunStore, state: State, events: usize) -> Result<State, RunHalt> {
        self.go_until(store, state, events, |_| false)
    }

    fn go_until(
        &self,
        store: RunStore,
        state: State,
        left: usize,
        last: fn(&Event) -> bool,
    ) -> Result<State, RunHalt> {
        let run = self.run();
        let repo = GitRepo::new(self.opened(), run.root(), state.run.clone())?;
        let repo = FlakyCleanup::new(repo, SEED);
        let agent = DryAgent::new(SEED, run.clone());
        let executor = DryExecutor::new(SEED, run.clone(), &state.settings.score);
        let (files, clock) = (RunFiles::new(run), DryClock::new(state.created_at));
        let world = RunPorts {
            repo: &repo,
            agent: &agent,
            executor: &executor,
            files: &files,
            inputs: &SilentUser,
            clock: &clock,
            interrupt: &SilentUser,
            inbox: &SilentUser,
            prompts: PromptSet::built_in(),
        };
        drive_run(state, world, &mut Fused { store, left, last, cut: false }, &mut |_, _| {})
    }

    fn resume(&self, events: usize) -> Result<State, RunHalt> {
        let (store, state) = self.open();
        self.go(store, state, events)
    }

    /// Opens the run. Another test of this process may be starting git at this moment, and its
    /// child has the lock's file open until it has become git.
    fn open(&self) -> (RunStore, State) {
        for _ in 0..1000 {
            match RunStore::open_to_run(&self.run(), ForcePolicy::No) {
                Err(StoreError::Locked { .. }) => thread::sleep(Duration::from_millis(5)),
                opened => {
                    let (store, state, notes) = opened.expect("the run");
                    let takeover = |note: &OpenNote| matches!(note, OpenNote::TakenOver { .. });
                    assert!(notes.iter().all(takeover), "{notes:?}");
                    assert_eq!(notes.len(), store.takeover().iter().count(), "{notes:?}");
                    return (store, state);
                }
            }
        }
        panic!("the run stays locked");
    }

    /// Leaves the note that a killed process leaves.
    fn leave_note(&self) {
        let (store, _) = self.open();
        let note = fs::read_to_string(self.run().lock_note_path()).expect("a note");
        drop(store);
        let (ours, nobody) = (format!("\"pid\":{},", std::process::id()), "\"pid\":4294967295,");
        assert!(note.contains(&ours), "{note}");
        fs::write(self.run().lock_note_path(), note.replace(&ours, nobody)).expect("a note");
    }

    fn events(&self) -> usize {
        fs::read_to_string(self.run().journal_path()).expect("a journal").lines().count()
    }

    fn git<const N: usize>(&self, arguments: [&str; N]) -> String {
        self.repo.git(arguments).expect("git")
    }
}

/// The parts of a run that must not depend on interruptions.
#[derive(Debug, PartialEq)]
struct Settled {
    facts: Facts,
    refs: String,
    reports: [String; 3],
    files: BTreeMap<String, String>,
    nodes: Vec<String>,
}

fn settled(site: &Site, end: State) -> Settled {
    let again = replay_journal(&site.run()).expect("a journal that replays");
    assert!(again.state == end, "the events do not lead to the state");
    let candidates = names(&site.run().root().join("cand"));
    assert_eq!(candidates, [""; 0], "a candidate's worktree is left");
    let list = site.git(["worktree", "list", "--porcelain"]);
    assert!(!list.contains("prunable"), "{list}");
    let nodes = names(&site.run().root().join("wt"));
    assert_eq!(list.matches("worktree ").count(), nodes.len() + 1, "{list}");
    assert_eq!(site.git(["status", "--porcelain"]), "");
    let mut facts = end.into_facts();
    facts.history = RunHistory::default();
    facts.limits.max_parallel_evals = NonZeroU32::MIN;
    let reports = [
        treebeam_view::render_tree_summary(&facts),
        treebeam_view::render_graph(&facts),
        treebeam_view::render_results_tsv(&facts),
    ];
    let mut files = BTreeMap::new();
    for folder in ["artifacts", "node_ideas", "eval"] {
        collect(&site.run().root().join(folder), folder, &mut files);
    }
    Settled {
        facts,
        refs: site.git(["for-each-ref", "--exclude=refs/treebeam/**"]),
        reports,
        files,
        nodes,
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    let mut names: Vec<_> = entries.map(|entry| name(entry.expect("an entry"))).collect();
    names.sort();
    names
}

/// Collects the files below a folder, without those of single submissions: an interrupted run may
/// have more of them.
fn collect(folder: &Path, name: &str, found: &mut BTreeMap<String, String>) {
    for entry in names(folder) {
        let (path, name) = (folder.join(&entry), format!("{name}/{entry}"));
        let submission = entry.strip_prefix('s').is_some_and(|n| n.parse::<u32>().is_ok());
        if path.is_dir() && !submission {
            collect(&path, &name, found);
        } else if !submission {
            found.insert(name, fs::read_to_string(&path).expect("a text"));
        }
    }
}

/// Returns the uninterrupted run, and how many events it has after its first.
fn uncut(reach: RunLimits) -> (Settled, usize) {
    let site = Site::new();
    let tries_again = reach.eval_retries > 0;
    let (store, state) = site.begin_with(meaning(3), reach);
    let end = site.go(store, state, usize::MAX).expect("a whole run");
    let kinds = fs::read_to_string(site.run().journal_path()).expect("a journal");
    for kind in ["node_added", "eval_failed", "discard_deferred", "depth_closed", "stopped"] {
        assert!(kinds.contains(&format!("\"type\":\"{kind}\"")), "no {kind} in the run");
    }
    assert_eq!(kinds.contains("attempt_failed"), tries_again);
    let events = site.events() - 1;
    (settled(&site, end), events)
}

fn cut_after_every_event(workers: u32, eval_retries: u32) {
    let reach = |workers| RunLimits { eval_retries, ..reach(workers) };
    let expected = uncut(reach(1)).0;
    let (same, events) = uncut(reach(workers));
    assert_eq!(same, expected, "{workers} workers");
    // An interrupted run mostly waits, for the disk and for running steps: several are tried at
    // once.
    thread::scope(|scope| {
        for lane in 0..LANES {
            let cuts = (lane..events).step_by(LANES);
            let check = |cut| check_cut(cut, reach(workers), &expected);
            scope.spawn(move || cuts.for_each(check));
        }
    });
}

fn check_cut(cut: usize, reach: RunLimits, expected: &Settled) {
    let site = Site::new();
    let workers = reach.max_parallel_evals;
    let (store, state) = site.begin_with(meaning(3), reach);
    assert!(site.go(store, state, cut).is_err(), "no cut at {cut}");
    assert_eq!(site.events(), cut + 1);
    if cut.is_multiple_of(2) {
        site.leave_note();
    }
    let end = site.resume(usize::MAX).unwrap_or_else(|halt| panic!("cut {cut}: {halt:?}"));
    assert_eq!(settled(&site, end), *expected, "cut after {cut} events, {workers} workers");
}

#[test]
fn a_run_with_one_worker_that_is_cut_off_after_any_event_ends_the_same() {
    cut_after_every_event(1, 0);
}

#[test]
fn a_run_with_four_workers_that_tries_again_and_is_cut_off_after_any_event_ends_the_same() {
    cut_after_every_event(4, 1);
}

#[test]
fn a_run_that_is_cut_off_again_and_again_ends_the_same() {
    let expected = uncut(reach(1)).0;
    let site = Site::new();
    let (store, state) = site.begin(2);
    let mut ended = site.go(store, state, 2);
    let mut cuts = 0;
    while ended.is_err() {
        cuts += 1;
        assert!(cuts < 100, "no progress: {ended:?}");
        site.leave_note();
        ended = site.resume(2);
    }
    assert!(cuts > 15, "{cuts} cuts");
    assert_eq!(ended.as_ref().map_or(0, |end| end.history.lock_takeovers), cuts);
    assert_eq!(settled(&site, ended.expect("an end")), expected);
}

/// A run that was left when its third eval had failed, with two scored and two that have not begun,
/// and cleanups in any state. All of it is to be done again.
fn sent_back(workers: u32) -> (Site, RunStore, State) {
    let site = Site::new();
    let (store, state) = site.begin_with(meaning(5), RunLimits { max_depth: 1, ..reach(1) });
    let third =
        |event: &Event| matches!(event, Event::EvalFailed { eval, .. } if *eval == EvalId::new(3));
    assert!(site.go_until(store, state, usize::MAX, third).is_err(), "no third eval");
    let (mut store, mut state) = site.open();
    let at = DryClock::new(state.created_at)
        .recorded_time(RecordedMoment::SentBack(state.next_eval_id()));
    let wishes = [RedoKind::RetryFailed, RedoKind::RerunEvals, RedoKind::RegenerateIdeas];
    let sent = plan::send_back(&state, &wishes, &|_| true, at).expect("something to do again");
    assert_eq!((sent.retried.len(), sent.rerun.len(), sent.set_aside.len()), (1, 2, 2));
    let reach = RunLimits { max_parallel_evals: number(workers), ..state.limits.clone() };
    for event in [Event::SentBack(Box::new(sent)), Event::SettingsChanged { reach }] {
        state.apply(&event).expect("an event that can follow");
        store.append(&[event]).expect("an event on disk");
    }
    (site, store, state)
}

#[test]
fn what_is_sent_back_ends_the_same_wherever_it_is_cut_off() {
    let (site, store, state) = sent_back(1);
    let before = site.events();
    let expected = settled(&site, site.go(store, state, usize::MAX).expect("a whole run"));
    let events = site.events() - before;
    let (site, store, state) = sent_back(4);
    let same = settled(&site, site.go(store, state, usize::MAX).expect("a whole run"));
    assert_eq!(same, expected, "four workers");
    // Only every other event here; the test in memory interrupts after every one.
    thread::scope(|scope| {
        for lane in 0..LANES {
            let cuts = (lane..events / 2).step_by(LANES).map(|cut| cut * 2);
            scope.spawn(|| cuts.for_each(|cut| check_sent_back(cut, &expected)));
        }
    });
}

fn check_sent_back(cut: usize, expected: &Settled) {
    let workers = if cut.is_multiple_of(4) { 1 } else { 3 };
    let (site, store, state) = sent_back(workers);
    assert!(site.go(store, state, cut).is_err(), "no cut at {cut}");
    site.leave_note();
    let end = site.resume(usize::MAX).unwrap_or_else(|halt| panic!("cut {cut}: {halt:?}"));
    assert_eq!(settled(&site, end), *expected, "cut after {cut} events, {workers} workers");
}
