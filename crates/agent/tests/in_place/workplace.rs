//! Test fixture: a repository with a run, and the agent door for programs in its worktrees.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use treebeam_agent::bucket::AgentLimits;
use treebeam_agent::budget_layer::Budget;
use treebeam_agent::call_store::CallStore;
use treebeam_agent::command::{AgentWorkspace, RunWorkspace};
use treebeam_agent::price::ModelPrices;
use treebeam_agent::question::AgentQuestion;
use treebeam_agent::retry_layer::RetryPolicy;
use treebeam_agent::retry_timer::{DoorObserver, QuestionWait};
use treebeam_agent::role_agents::RoleAgents;
use treebeam_agent::settings::{AgentKind, AgentSettings, CommandAgent, EditMode};
use treebeam_agent::{AgentDoor, DoorPlan};
use treebeam_core::event::{RunStarted, WorldKind};
use treebeam_core::id::{CodePlace, EvalId};
use treebeam_core::measure::WorktreePath;
use treebeam_core::policy::{FixedSettings, RecordedAgents, RunLimits};
use treebeam_core::rules_version::RulesVersion;
use treebeam_git::{GitRepo, UserRepo, open_repo_with};
use treebeam_run::port::{AgentError, AgentReply, AgentRole, Repo as _};
use treebeam_store::{RunDir, RunStore, make_runs_root};
use treebeam_testkit::repo::TempRepo;

/// Observer that ignores everything.
pub(crate) struct Nobody;

impl DoorObserver for Nobody {
    fn on_wait(&self, _: &QuestionWait<'_>) {}
    fn on_note(&self, _: &str) {}
    fn wants_to_stop(&self) -> bool {
        false
    }
}

const PATIENCE: RetryPolicy = RetryPolicy {
    tries: 2,
    pause: Duration::from_millis(5),
    longest_pause: Duration::from_millis(20),
    wait: Duration::from_mins(1),
    rate_limit: Duration::from_millis(50),
    outage: Duration::from_millis(50),
    first_answer: Duration::ZERO,
    first_byte: None,
};

/// A repository with a run in it.
pub(crate) struct Workplace {
    pub(crate) repo: TempRepo,
    pub(crate) git: Arc<GitRepo>,
    pub(crate) store: RunStore,
    run: PathBuf,
    /// The run's `inputs`.
    pub(crate) inputs: Vec<WorktreePath>,
}

/// Returns the candidate that most tests use.
pub(crate) fn candidate() -> CodePlace {
    CodePlace::Candidate("0001".parse::<EvalId>().expect("an id"))
}

/// Returns an agent that is a shell script.
pub(crate) fn script(text: &str, edits: EditMode) -> AgentKind {
    let command = ["/bin/sh", "-c", text].map(str::to_owned).to_vec();
    AgentKind::Command(CommandAgent { command, key: None, edits })
}

impl Workplace {
    /// Creates a run with the worktree of a candidate.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let repo = TempRepo::with(files).expect("a repository");
        let user = opened(&repo);
        let runs = make_runs_root(repo.path()).expect("a folder for runs");
        let (store, _) = RunStore::create(&runs, &started(&user)).expect("a run");
        let run = repo.path().join(".treebeam/runs/t");
        let git = GitRepo::new(user, &run, "t".parse().expect("a run id"));
        let place =
            Self { git: Arc::new(git.expect("the run")), store, repo, run, inputs: Vec::new() };
        place.git.checkout_worktree(candidate(), &place.head()).expect("a worktree");
        place
    }

    pub(crate) fn head(&self) -> treebeam_core::id::Commit {
        opened(&self.repo).head
    }

    pub(crate) fn run(&self) -> &Path {
        &self.run
    }

    /// Returns the candidate's worktree.
    pub(crate) fn worktree(&self) -> PathBuf {
        self.run.join("cand/0001")
    }

    pub(crate) fn plan(&self, line: AgentKind, timeout: Duration) -> DoorPlan {
        let settings = AgentSettings { line, timeout };
        let role_agents = AgentRole::ALL.map(|role| (role, settings.clone()));
        let run = RunDir::new(self.run.clone());
        let id = "t".parse().expect("a run id");
        let (repo, fence) = (Arc::clone(&self.git), self.store.fence());
        let inputs = self.inputs.clone();
        DoorPlan {
            role_agents: RoleAgents::new(BTreeMap::from(role_agents)),
            prices: ModelPrices::default(),
            budget: Budget::default(),
            limits: AgentLimits::from(&RunLimits::default()),
            patience: PATIENCE,
            calls: CallStore::Run(run.clone()),
            replays: None,
            surroundings: AgentWorkspace::Run(RunWorkspace { repo, dir: run, id, fence, inputs }),
        }
    }

    /// Asks about the candidate.
    pub(crate) fn ask(&self, line: AgentKind, key: &str) -> Result<AgentReply, AgentError> {
        let plan = self.plan(line, Duration::from_mins(1));
        AgentDoor::open(&plan, &Nobody)?.answer_question(&question(
            key,
            AgentRole::Coder,
            candidate(),
        ))
    }

    /// Returns the files of the candidate's worktree with their content, without git's own.
    pub(crate) fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let mut files = BTreeMap::new();
        let mut folders = vec![self.worktree()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("a folder").flatten() {
                let path = entry.path();
                let name = path.strip_prefix(self.worktree()).expect("inside").to_owned();
                if entry.file_type().expect("a kind").is_dir() {
                    folders.push(path);
                } else if name != Path::new(".git") {
                    let bytes = fs::read(&path).unwrap_or_default();
                    files.insert(name.to_string_lossy().into_owned(), bytes);
                }
            }
        }
        files
    }
}

fn started(user: &UserRepo) -> RunStarted {
    RunStarted {
        run: "t".parse().expect("a run id"),
        world: WorldKind::Dry { seed: 7 },
        root: user.head.clone(),
        meaning: FixedSettings::default(),
        reach: RunLimits::default(),
        agents: RecordedAgents::default(),
        given: None,
        replays: None,
        rules_version: RulesVersion::LATEST,
        at: user.head_time,
    }
}

fn opened(repo: &TempRepo) -> UserRepo {
    open_repo_with(repo.path(), repo.variables()).expect("the repository")
}

pub(crate) fn question(key: &str, role: AgentRole, place: CodePlace) -> AgentQuestion {
    let prompt = "What?".into();
    AgentQuestion {
        key: key.to_owned(),
        role,
        round: 0,
        prompt,
        continues: None,
        place: Some(place),
        node: None,
    }
}
