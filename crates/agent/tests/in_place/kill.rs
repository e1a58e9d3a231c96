//! The process of a run is killed while an agent edits a worktree, and the agent lives on for a
//! while. The next process uses the answer on disk or asks again: the commit is that of a run
//! without a kill, never half an edit.

use crate::workplace::{Nobody, script};
use std::env;
use std::fs;
use std::num::NonZeroU32;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use treebeam_agent::bucket::AgentLimits;
use treebeam_agent::budget_layer::Budget;
use treebeam_agent::call_store::CallStore;
use treebeam_agent::command::{AgentWorkspace, RunWorkspace};
use treebeam_agent::price::ModelPrices;
use treebeam_agent::retry_layer::RetryPolicy;
use treebeam_agent::role_agents::RoleAgents;
use treebeam_agent::settings::{AgentSettings, EditMode};
use treebeam_agent::{AgentDoor, DoorPlan};
use treebeam_core::event::{RunStarted, WorldKind};
use treebeam_core::policy::{FixedSettings, RecordedAgents, RunLimits};
use treebeam_core::rules_version::RulesVersion;
use treebeam_dry::{DryClock, DryExecutor};
use treebeam_git::{GitRepo, open_repo};
use treebeam_run::port::{AgentRole, SilentUser};
use treebeam_run::prompt::PromptSet;
use treebeam_run::{RunPorts, drive_run};
use treebeam_store::{ForcePolicy, RunDir, RunFiles, RunStore, make_runs_root};
use treebeam_testkit::apart::{is_campaign, remark};
use treebeam_testkit::hostile;
use treebeam_testkit::repo::TempRepo;

/// Variable with the repository of the run, for the child process of this test.
const SITE: &str = "TREEBEAM_TEST_SITE";
/// The longest wait on a slow machine.
const PATIENCE: Duration = Duration::from_mins(2);
/// Coder that edits six files one after another and ignores SIGTERM. The word identifies it.
const CODER: &str = "trap '' TERM; echo x >> \"$HOME/begun\"; \
     for f in a b c d e f; do sleep 0.05; echo edited >> $f.txt; done; \
     rm g.txt; sleep 0.05; echo new > h.txt; echo done; : WORD";

fn run_of(repo: &Path) -> RunDir {
    RunDir::new(repo.join(".treebeam/runs/t"))
}

/// Not a test of its own: the child process that is killed.
#[test]
fn a_process_that_runs_the_run() {
    let Some(repo) = env::var_os(SITE).map(PathBuf::from) else { return };
    let run = run_of(&repo);
    let (mut store, state, _) = RunStore::open_to_run(&run, ForcePolicy::No).expect("the run");
    let user = open_repo(&repo).expect("the repository");
    let git = GitRepo::new(user, run.root(), state.run.clone()).expect("the run");
    let git = Arc::new(git);
    let named = env::var("TREEBEAM_TEST_WORD").expect("a word");
    let role_agents = [
        (AgentRole::Ideas, script("echo 'IDEA: edit all files'", EditMode::Diff)),
        (AgentRole::Coder, script(&CODER.replace("WORD", &named), EditMode::InPlace)),
    ];
    let settings =
        role_agents.map(|(role, line)| (role, AgentSettings { line, timeout: PATIENCE }));
    let grounds = RunWorkspace {
        repo: Arc::clone(&git),
        dir: run.clone(),
        id: state.run.clone(),
        fence: store.fence(),
        inputs: Vec::new(),
    };
    let plan = DoorPlan {
        role_agents: RoleAgents::new(settings.into()),
        prices: ModelPrices::default(),
        budget: Budget::default(),
        limits: AgentLimits::from(&RunLimits::default()),
        patience: RetryPolicy::ATTENDED_COMMAND,
        calls: CallStore::Run(run.clone()),
        replays: None,
        surroundings: AgentWorkspace::Run(grounds),
    };
    let door = AgentDoor::open(&plan, &Nobody).expect("the door");
    let executor = DryExecutor::new(7, run.clone(), &state.settings.score);
    let (files, clock) = (RunFiles::new(run), DryClock::new(state.created_at));
    let world = RunPorts {
        repo: &*git,
        agent: &door,
        executor: &executor,
        files: &files,
        inputs: &SilentUser,
        clock: &clock,
        interrupt: &SilentUser,
        inbox: &SilentUser,
        prompts: PromptSet::built_in(),
    };
    drive_run(state, world, &mut store, &mut |_, _| {}).expect("the run to its end");
}

/// A repository for a run.
struct Site {
    repo: TempRepo,
    word: String,
}

impl Site {
    fn new(word: &str) -> Self {
        let names = ["a.txt", "b.txt", "c.txt", "d.txt", "e.txt", "f.txt", "g.txt"];
        let repo = TempRepo::with(&names.map(|name| (name, "old\n"))).expect("a repository");
        let user = treebeam_git::open_repo_with(repo.path(), repo.variables());
        let user = user.expect("the repository");
        let one = NonZeroU32::MIN;
        let meaning = FixedSettings {
            ideas_per_node: one,
            sweep_config_limit: Some(one),
            ..FixedSettings::default()
        };
        let started = RunStarted {
            run: "t".parse().expect("a run id"),
            world: WorldKind::Dry { seed: 7 },
            root: user.head.clone(),
            meaning,
            reach: RunLimits { max_depth: 1, ..RunLimits::default() },
            agents: RecordedAgents::default(),
            given: None,
            replays: None,
            rules_version: RulesVersion::LATEST,
            at: user.head_time,
        };
        let runs = make_runs_root(repo.path()).expect("a folder for runs");
        drop(RunStore::create(&runs, &started).expect("a run"));
        Self { repo, word: format!("{word}-{}", std::process::id()) }
    }

    fn begin(&self) -> Child {
        let mut command = Command::new(env::current_exe().expect("this program"));
        command.args(["--exact", "kill::a_process_that_runs_the_run", "--nocapture"]).env_clear();
        command.envs(self.repo.variables()).env(SITE, self.repo.path());
        command.env("TREEBEAM_TEST_WORD", &self.word);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command.spawn().expect("a process")
    }

    fn finish(&self) {
        let ended = self.begin().wait_with_output().expect("its end");
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{}: {said}", ended.status);
        assert_eq!(hostile::survivors(&self.word), Vec::<u32>::new());
    }

    /// Returns how often the coder has begun.
    fn begun(&self) -> usize {
        let home = self.repo.variables().into_iter().find(|(name, _)| name == "HOME");
        let file = Path::new(&home.expect("a home").1).join("begun");
        fs::read_to_string(file).map_or(0, |text| text.lines().count())
    }

    fn answer_is_kept(&self) -> bool {
        let kept = run_of(self.repo.path()).root().join("eval/0001/calls/coder-e0001-a1-r0.json");
        kept.exists()
    }

    /// Returns the resulting commit with its diff.
    fn commit(&self) -> (String, String) {
        let journal =
            fs::read_to_string(run_of(self.repo.path()).journal_path()).expect("a journal");
        let line = journal.lines().find(|line| line.contains("\"type\":\"implemented\""));
        let line = line.unwrap_or_else(|| panic!("nothing was implemented: {journal}"));
        let (_, rest) = line.split_once("\"commit\":\"").expect("a commit");
        let commit = rest.split('"').next().expect("a commit").to_owned();
        let changed = self.repo.git(["diff", "--stat=40", "HEAD", &commit]).expect("git");
        (commit, changed)
    }

    fn leftovers(&self) -> Vec<String> {
        let entries = fs::read_dir(run_of(self.repo.path()).root()).expect("the run").flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| name.starts_with("index-") || name == "desk").collect()
    }
}

#[test]
fn a_kill_while_an_agent_edits_never_leaves_half_an_edit() {
    let whole = Site::new("whole");
    whole.finish();
    let expected = whole.commit();
    assert!(expected.1.contains("8 files changed"), "{}", expected.1);
    let rounds: u32 = if is_campaign() { 50 } else { 6 };
    let (mut again, mut kept) = (0, 0);
    for round in 0..rounds {
        let site = Site::new(&format!("round{round}"));
        let mut process = site.begin();
        let begun = Instant::now();
        while site.begun() == 0 {
            assert!(begun.elapsed() < PATIENCE, "the coder does not begin");
            thread::sleep(Duration::from_millis(2));
        }
        thread::sleep(Duration::from_millis(u64::from(round * 700 / rounds)));
        process.kill().expect("a kill");
        let ended = process.wait().expect("its end");
        let was_kept = site.answer_is_kept();
        site.finish();
        assert_eq!(site.commit(), expected, "round {round}");
        assert_eq!(site.leftovers(), [""; 0], "round {round}");
        let asked = if was_kept { 1 } else { 2 };
        let killed = ended.signal() == Some(9);
        assert!(!killed || site.begun() == asked, "round {round}: {} times", site.begun());
        if was_kept { kept += 1 } else { again += 1 }
    }
    assert!(again > 0, "no kill came while the agent was at work");
    remark(&format!("{rounds} kills: {again} asked again, {kept} went on from the answer on disk"));
}
