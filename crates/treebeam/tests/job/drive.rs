//! The whole loop with real git and real jobs; only ideas and patches are made up. Killed and
//! resumed, it must end as the undisturbed run, and no finished sweep may be repeated.

use crate::field::{Field, sweep};
use serde_json::{Value, json};
use std::fs;
use std::num::NonZeroU32;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;
use treebeam_core::event::{EvalStage, FailureKind, RunStarted, WorldKind};
use treebeam_core::facts::{Eval, RunHistory, Stage};
use treebeam_core::policy::{FixedSettings, RecordedAgents, RunLimits};
use treebeam_core::rules_version::RulesVersion;
use treebeam_core::state::State;
use treebeam_dry::{DryAgent, DryClock};
use treebeam_executor::LocalExecutor;
use treebeam_git::{GitRepo, open_repo_with};
use treebeam_run::port::SilentUser;
use treebeam_run::prompt::PromptSet;
use treebeam_run::{RunHalt, RunPorts, drive_run};
use treebeam_store::{ForcePolicy, RunFiles, RunStore, StoreError, make_runs_root};
use treebeam_testkit::program::SITE_RUN_ID;

const SEED: u64 = 7;
const RUNNER: &str = "TREEBEAM_TEST_DRIVER";

/// Sweep that logs its beginning and its end; its results follow from the changes.
const SWEEP: &str = r#"
echo "begun $AGENTIC_OUTPUT_DIR" >> "$GIT_CEILING_DIRECTORIES/sweeps"
sleep 0.2
n=$(cat treebeam_dry_run.txt 2>/dev/null | wc -l)
{ echo config_id,status,mean_topN_avg_return_per_trade_pct_oos
  for i in 0 1 2; do echo "$i,ok,$(( (i + 1) * (1000 + 40 * n) ))"; done; } > "$AGENTIC_RESULTS_CSV"
echo "swept $n"
if grep -q fails treebeam_dry_run.txt 2>/dev/null; then exit 1; fi
"#;

fn number(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).expect("not zero")
}

impl Field {
    fn begin(&self) -> (RunStore, State) {
        self.begin_with(SWEEP)
    }

    /// Starts a run with this sweep, in which all tests are protected.
    fn begin_with(&self, script: &str) -> (RunStore, State) {
        let user = open_repo_with(&self.repo, self.site.repo.variables()).expect("a repository");
        let started = RunStarted {
            run: SITE_RUN_ID.parse().expect("a run id"),
            world: WorldKind::Dry { seed: SEED },
            root: user.head.clone(),
            meaning: FixedSettings {
                ideas_per_node: number(3),
                sweep_config_limit: Some(number(3)),
                measure: sweep(script),
                protect: vec!["tests/**".to_owned()],
                ..FixedSettings::default()
            },
            reach: RunLimits {
                max_depth: 2,
                max_parallel_evals: number(2),
                ..RunLimits::default()
            },
            agents: RecordedAgents::default(),
            given: None,
            replays: None,
            rules_version: RulesVersion::LATEST,
            at: user.head_time,
        };
        fs::remove_dir_all(self.run.root()).expect("no run");
        let runs = make_runs_root(&self.repo).expect("a folder for runs");
        RunStore::create(&runs, &started).expect("a run")
    }

    fn open(&self) -> (RunStore, State) {
        for _ in 0..2000 {
            match RunStore::open_to_run(&self.run, ForcePolicy::No) {
                Err(StoreError::Locked { .. }) => thread::sleep(Duration::from_millis(5)),
                opened => {
                    let (store, state, _) = opened.expect("the run");
                    return (store, state);
                }
            }
        }
        panic!("the run stays locked");
    }

    fn drive(&self, store: RunStore, state: State) -> State {
        self.try_to_drive(store, state).expect("a run")
    }

    fn try_to_drive(&self, mut store: RunStore, state: State) -> Result<State, RunHalt> {
        let user = open_repo_with(&self.repo, self.site.repo.variables()).expect("a repository");
        let repo = GitRepo::new(user, self.run.root(), state.run.clone()).expect("a repository");
        let agent = DryAgent::new(SEED, self.run.clone());
        let executor = LocalExecutor::new(self.local(state.settings.measure.clone()));
        let (files, clock) = (RunFiles::new(self.run.clone()), DryClock::new(state.created_at));
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
        drive_run(state, world, &mut store, &mut |_, _| {})
    }

    /// Returns the summary of an eval.
    fn page(&self, eval: &Eval) -> Value {
        let path = self.run.root().join(format!("eval/{}/experiment/summary.json", eval.id));
        serde_json::from_slice(&fs::read(path).expect("a summary")).expect("a summary in JSON")
    }

    fn sweeps(&self) -> usize {
        let told = fs::read_to_string(self.run.root().join("sweeps")).unwrap_or_default();
        told.lines().count()
    }
}

/// Formats the part of a state that must be the same, however the run came about.
fn settled(state: State) -> String {
    let mut facts = state.into_facts();
    facts.history = RunHistory::default();
    format!("{facts:#?}")
}

#[test]
fn a_run_is_driven_by_real_jobs() {
    let field = Field::new();
    let (store, state) = field.begin();
    let end = field.drive(store, state);
    assert!(end.nodes.len() > 1, "something was promoted");
    let is_failed = |stage: &Stage| matches!(stage, Stage::Failed { .. });
    assert!(end.evals.iter().any(|eval| is_failed(&eval.stage)), "something failed");
    let log =
        |eval: &Path| fs::read_to_string(field.run.root().join(eval).join("experiment/sweep.log"));
    assert_eq!(log(Path::new("eval/root")).expect("a log"), "swept 0\n");
    let swept = end.evals.iter().filter(|eval| eval.candidate().is_some());
    for eval in swept.clone() {
        let log = log(&Path::new("eval").join(eval.id.to_string())).expect("a log");
        assert!(log.starts_with("swept "), "{log}");
        let page = field.page(&eval);
        assert_eq!(page["commands"][0]["stage"], "sweep", "{page}");
        let exit_code = i32::from(is_failed(&eval.stage));
        assert_eq!(page["commands"][0]["exit_code"], exit_code, "{page}");
        assert!(page["commands"][0]["seconds"].as_f64() > Some(0.1), "{page}");
        assert!(page["job_usage"]["peak_memory_bytes"].as_u64() > Some(0), "{page}");
        let diff = format!("eval/{}/experiment/candidate.diff", eval.id);
        let diff = fs::read_to_string(field.run.root().join(diff)).expect("a diff");
        assert!(diff.contains("+++ b/treebeam_dry_run.txt"), "{diff}");
    }
    assert_eq!(field.sweeps(), swept.count() + 1, "one for each, and the root's");
}

/// Rewrites a test in its worktree, and deletes git's link there.
const TOUCHES: &str = "echo pass > tests/check.py; rm -f .git";

#[test]
fn a_sweep_that_touches_what_is_protected_fails_alone() {
    let field = Field::new();
    field.site.repo.write("tests/check.py", "assert True\n").expect("a file");
    field.site.repo.commit("a test").expect("a commit");
    let only_some = "if grep -q 'gain 45' treebeam_dry_run.txt 2>/dev/null; then";
    let (store, state) = field.begin_with(&format!("{SWEEP}\n{only_some} {TOUCHES}; fi"));
    let end = field.drive(store, state);
    let failure = |eval: &Eval| {
        let Stage::Failed { failure, .. } = &eval.stage else { return None };
        Some(failure.clone())
    };
    let failed: Vec<_> =
        end.evals.iter().filter_map(|eval| Some((failure(&eval)?, eval))).collect();
    let protected: Vec<_> =
        failed.iter().filter(|(failure, _)| failure.kind == FailureKind::Protected).collect();
    assert!(!protected.is_empty() && end.evals.len() > failed.len(), "{failed:#?}");
    for (failure, eval) in protected {
        let expect = "the sweep left protected files other than committed: `tests/check.py`";
        assert_eq!((failure.stage, failure.message.as_str()), (EvalStage::Sweep, expect));
        let page = field.page(eval);
        assert_eq!(
            (&page["error"]["kind"], &page["status"]),
            (&json!("protected"), &json!("failed"))
        );
        assert_eq!(page["commands"][0]["exit_code"], 0, "the sweep itself was content");
    }
}

/// Adds a line to a tracked log, as the root's sweep does, and in some candidates rewrites the
/// model.
#[test]
fn a_sweep_that_changes_tracked_files_fails_where_the_roots_own_does_not() {
    let field = Field::new();
    for (file, text) in [("seen.log", "nothing\n"), ("tool.py", "x = 1\n")] {
        field.site.repo.write(file, text).expect("a file");
    }
    field.site.repo.commit("a log and a tool").expect("a commit");
    let only_some = "if grep -q 'gain 45' treebeam_dry_run.txt 2>/dev/null; then";
    let touches = "echo x >> seen.log; rm -f .git";
    let script = format!("{SWEEP}\n{touches}; {only_some} echo y > tool.py; fi");
    let (store, state) = field.begin_with(&script);
    let end = field.drive(store, state);
    let changed = |eval: &Eval| {
        let Stage::Failed { failure, .. } = &eval.stage else { return None };
        let message = &failure.message;
        message.contains("files other than committed").then(|| (failure.kind, message.clone()))
    };
    let failed: Vec<_> = end.evals.iter().filter_map(|eval| changed(&eval)).collect();
    assert!(!failed.is_empty() && end.nodes.len() > 1, "{failed:#?}");
    for (kind, message) in failed {
        let expect = "tests and sweep left files other than committed: `tool.py`; ";
        assert!(kind == FailureKind::Sweep && message.starts_with(expect), "{message}");
    }
    let root = |file: &str| fs::read_to_string(field.run.root().join("wt/0000").join(file));
    assert_eq!(root("seen.log").expect("a log"), "nothing\n", "restored");
    let journal = fs::read_to_string(field.run.root().join("journal.jsonl")).expect("a journal");
    let recorded = r#""checks":{"rewritten":["seen.log"],"inputs":"all"}"#;
    assert_eq!(journal.matches(recorded).count(), 1, "named once");
}

#[test]
fn a_root_whose_sweep_touches_what_is_protected_is_refused() {
    let field = Field::new();
    field.site.repo.write("tests/check.py", "assert True\n").expect("a file");
    field.site.repo.commit("a test").expect("a commit");
    let (store, state) = field.begin_with(&format!("{SWEEP}\n{TOUCHES}"));
    let halted = field.try_to_drive(store, state);
    let Err(RunHalt::RootUnsound { why }) = halted else { panic!("{halted:?}") };
    assert!(why.contains("`tests/check.py`"), "{why}");
}

/// Does nothing, unless it is started by the test below as a runner.
#[test]
fn a_driver() {
    let Some(repo) = std::env::var_os(RUNNER) else { return };
    let field = Field::at(Path::new(&repo));
    let (store, state) = field.open();
    field.drive(store, state);
}

#[test]
fn killed_again_and_again_it_ends_the_same() {
    let alone = Field::new();
    let (store, state) = alone.begin();
    let expected = settled(alone.drive(store, state));
    let field = Field::new();
    drop(field.begin());
    let kills: u32 = 10;
    for round in 0..kills {
        let test = std::env::current_exe().expect("this test's own program");
        let mut runner = Command::new(test);
        runner.args(["--exact", "drive::a_driver", "--test-threads=1"]).process_group(0);
        runner.env(RUNNER, &field.repo).stdin(Stdio::null()).stdout(Stdio::null());
        let mut runner = runner.spawn().expect("a runner");
        thread::sleep(Duration::from_millis(u64::from(80 + 60 * (round * 7 % 10))));
        drop(runner.kill());
        runner.wait().expect("its end");
    }
    let (store, state) = field.open();
    let end = settled(field.drive(store, state));
    // Only the folders of the two runs differ.
    let plain = |text: &str, field: &Field| text.replace(&field.repo.display().to_string(), "");
    assert_eq!(plain(&end, &field), plain(&expected, &alone));
    // Of two parallel sweeps, a kill may hit the one that is just being started.
    let most = alone.sweeps() + 2 * usize::try_from(kills).expect("a number");
    assert!(field.sweeps() <= most, "{}", field.sweeps());
}
