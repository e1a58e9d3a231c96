//! A whole run with the tuner as generator and coder, and with real git, store, loop and prompts.
//! The sweep computes a parabola of the constants in the worktree.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use treebeam_agent::bucket::AgentLimits;
use treebeam_agent::budget_layer::Budget;
use treebeam_agent::call_store::CallStore;
use treebeam_agent::command::{AgentWorkspace, RunWorkspace};
use treebeam_agent::price::ModelPrices;
use treebeam_agent::retry_layer::RetryPolicy;
use treebeam_agent::retry_timer::{DoorObserver, QuestionWait};
use treebeam_agent::role_agents::RoleAgents;
use treebeam_agent::settings::{AgentKind, AgentSettings, TunerAgent};
use treebeam_agent::{AgentDoor, DoorPlan};
use treebeam_core::event::{RunStarted, WorldKind};
use treebeam_core::facts::{Eval, Stage};
use treebeam_core::id::NodeId;
use treebeam_core::num::Finite;
use treebeam_core::path;
use treebeam_core::policy::{
    ChosenBy, Direction, FixedSettings, Metric, RecordedAgents, RunLimits, ScorePolicy,
};
use treebeam_core::rules_version::RulesVersion;
use treebeam_core::state::State;
use treebeam_dry::DryClock;
use treebeam_git::{GitRepo, open_repo_with};
use treebeam_run::port::{
    AgentRole, Executor, JobEnd, JobExit, JobKey, PortError, SilentUser, SweepJob,
};
use treebeam_run::prompt::PromptSet;
use treebeam_run::{RunPorts, drive_run};
use treebeam_store::{RunDir, RunFiles, RunStore, make_runs_root};
use treebeam_testkit::repo::TempRepo;
use treebeam_tuner::change::ConstantChange;
use treebeam_tuner::constant::find_constants;
use treebeam_tuner::history::{TrialOutcome, TunerHistory, TunerTrial};

const TRAIN: &str = "RATE = 0.01\r\nMOMENTUM = 0.5\r\n";
const MODEL: &str = "[model]\ndepth = 3\nseed = 1\n";
const JUDGE: &str = "SCALE = 1.0\n";

struct Nobody;

impl DoorObserver for Nobody {
    fn on_wait(&self, _: &QuestionWait<'_>) {}
    fn on_note(&self, _: &str) {}
    fn wants_to_stop(&self) -> bool {
        false
    }
}

/// Runner with immediate sweeps: the loss is lowest at rate 0.05, momentum 0.9 and depth 8.
struct Parabola {
    run: RunDir,
    jobs: Mutex<VecDeque<SweepJob>>,
}

impl Parabola {
    fn sweep(&self, job: &SweepJob) -> JobEnd {
        let worktree = self.run.file_path(&job.key.subject.code_place().worktree_path());
        let loss = loss(&|file| fs::read_to_string(worktree.join(file)).expect("a file"));
        let rows = (0..3).map(|id| format!("{id},ok,{}\n", loss + f64::from(id)));
        let csv = format!("config_id,status,loss\n{}", rows.collect::<String>());
        let folder = path::submission_folder(job.key.subject, job.key.submission);
        fs::create_dir_all(self.run.file_path(&folder)).expect("a folder");
        let results = folder.join(path::RESULTS_CSV);
        fs::write(self.run.file_path(&results), csv).expect("results");
        fs::write(self.run.file_path(&folder.join(path::EVAL_RESULT_FILE)), "{}")
            .expect("a result");
        JobEnd::new(job.key, JobExit::Done { results })
    }
}

fn loss(read: &dyn Fn(&str) -> String) -> f64 {
    let value = |file: &str, name: &str| {
        let found = find_constants(file, &read(file)).into_iter().find(|c| c.id.name == name);
        found.expect("a constant").literal.value()
    };
    let off = |value: f64, best: f64| (value / best).ln().powi(2);
    let momentum = value("train.py", "MOMENTUM");
    let odds = momentum / (1.0 - momentum);
    10.0 + 4.0 * off(value("train.py", "RATE"), 0.05)
        + 2.0 * off(odds, 9.0)
        + 6.0 * off(value("conf/model.toml", "model.depth"), 8.0)
        + 0.3 * others(&read("train.py"))
}

/// Returns the error of all other constants of a file; their best value is 1.5 times the first one.
fn others(text: &str) -> f64 {
    let is_other = |name: &str| name.starts_with("PART_");
    let found = find_constants("train.py", text).into_iter().filter(|c| is_other(&c.id.name));
    found.map(|constant| (constant.literal.value() / 1.5).ln().powi(2)).sum()
}

impl Executor for Parabola {
    fn submit_job(&self, job: &SweepJob) -> Result<(), PortError> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).push_back(job.clone());
        Ok(())
    }
    fn adopt_jobs(&self, _: &[SweepJob]) -> Result<Vec<JobKey>, PortError> {
        Ok(Vec::new())
    }
    fn wait_for_jobs(&self, _: Duration) -> Result<Vec<JobEnd>, PortError> {
        let job = self.jobs.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        Ok(job.iter().map(|job| self.sweep(job)).collect())
    }
}

fn meaning(ideas: u32) -> FixedSettings {
    let column = "loss".to_owned();
    let direction = Direction::Lower;
    let metric = Metric { column, direction, weight: Finite::new(1.0).unwrap(), guard: false };
    let score = ScorePolicy {
        primary: "loss".to_owned(),
        primary_chosen_by: ChosenBy::User,
        metrics: vec![metric],
        ..ScorePolicy::trading_preset()
    };
    let protect = vec!["judge/**".to_owned()];
    let ideas_per_node = NonZeroU32::new(ideas).unwrap();
    FixedSettings { ideas_per_node, score, protect, ..FixedSettings::default() }
}

fn plan(grounds: RunWorkspace) -> DoorPlan {
    let agent = AgentSettings {
        line: AgentKind::Tuner(TunerAgent::default()),
        timeout: Duration::from_mins(1),
    };
    let role_agents = [(AgentRole::Ideas, agent.clone()), (AgentRole::Coder, agent)];
    DoorPlan {
        role_agents: RoleAgents::new(BTreeMap::from(role_agents)),
        prices: ModelPrices::default(),
        budget: Budget::default(),
        limits: AgentLimits::from(&RunLimits::default()),
        patience: RetryPolicy::ATTENDED_COMMAND,
        calls: CallStore::Run(grounds.dir.clone()),
        replays: None,
        surroundings: AgentWorkspace::Run(grounds),
    }
}

/// Drives a run to its end, with so many ideas at each of six depths.
fn searched(repo: &TempRepo, ideas: u32) -> State {
    let user = open_repo_with(repo.path(), repo.variables()).expect("the repository");
    let max_depth = 6;
    let started = RunStarted {
        run: "t".parse().expect("a run id"),
        world: WorldKind::Dry { seed: 0 },
        root: user.head.clone(),
        meaning: meaning(ideas),
        reach: RunLimits { max_depth, stop_on_empty_frontier: false, ..RunLimits::default() },
        agents: RecordedAgents::default(),
        given: None,
        replays: None,
        rules_version: RulesVersion::LATEST,
        at: user.head_time,
    };
    let runs = make_runs_root(repo.path()).expect("a folder for runs");
    let (mut store, state) = RunStore::create(&runs, &started).expect("a run");
    let run = RunDir::new(repo.path().join(".treebeam/runs/t"));
    let git = GitRepo::new(user, run.root(), state.run.clone()).expect("git");
    let git = Arc::new(git);
    let (repo, id) = (Arc::clone(&git), state.run.clone());
    let plan =
        plan(RunWorkspace { repo, dir: run.clone(), id, fence: store.fence(), inputs: Vec::new() });
    let door = AgentDoor::open(&plan, &Nobody).expect("the door");
    let world = RunPorts {
        repo: git.as_ref(),
        agent: &door,
        executor: &Parabola { run: run.clone(), jobs: Mutex::default() },
        files: &RunFiles::new(run),
        inputs: &SilentUser,
        clock: &DryClock::new(state.created_at),
        interrupt: &SilentUser,
        inbox: &SilentUser,
        prompts: PromptSet::built_in(),
    };
    drive_run(state, world, &mut store, &mut |_, _| {}).expect("a whole run")
}

fn repository(train: &str) -> TempRepo {
    let files = [("train.py", train), ("conf/model.toml", MODEL), ("judge/eval.py", JUDGE)];
    TempRepo::with(&files).expect("a repository")
}

fn idea_files(repo: &TempRepo, end: &State) -> Vec<String> {
    let read = |path: &str| fs::read_to_string(repo.path().join(".treebeam/runs/t").join(path));
    end.evals.iter().map(|eval| read(eval.idea.path.as_str()).expect("an idea")).collect()
}

#[test]
fn a_run_with_the_tuner_gets_better_and_is_the_same_each_time() {
    let repo = repository(TRAIN);
    let end = searched(&repo, 3);
    assert_eq!(end.evals.len(), 18, "three ideas at each of six depths");
    for eval in end.evals.iter() {
        let Stage::Decided(measured, ..) = &eval.stage else { panic!("{:?}", eval.stage) };
        assert_eq!(measured.work.files_changed, 1);
    }
    let last = end.nodes.last().expect("a node");
    let at = |file: &str| {
        let shown = repo.git(["show", &format!("{}:{file}", last.commit)]);
        shown.expect("a file of the last node") + "\n"
    };
    assert_eq!(at("judge/eval.py"), JUDGE, "what is protected stays as it is");
    assert!(at("conf/model.toml").contains("seed = 1\n"), "luck is not tuned");
    assert!(at("train.py").contains("\r\n"), "line ends stay");
    let root = loss(&|file| if file == "train.py" { TRAIN.into() } else { MODEL.into() });
    let reached = loss(&|file| at(file));
    assert!(reached - 10.0 < 0.2 * (root - 10.0), "{root} became {reached}");

    let texts = idea_files(&repo, &end);
    assert!(texts.iter().any(|text| text.contains("was better by")), "{texts:#?}");
    let again = repository(TRAIN);
    assert_eq!(texts, idea_files(&again, &searched(&again, 3)), "the same each time");
}

/// Checks that the prompt of the last node lists every trial of its branch, at least `least`.
fn check_told(repo: &TempRepo, end: &State, least: usize) {
    let node = end.nodes.iter().rfind(|node| !node.expansions.is_empty()).expect("a node").id;
    let told = format!(".treebeam/runs/t/node_ideas/{node}/prompt_context.txt");
    let prompt = fs::read_to_string(repo.path().join(told)).expect("a context pack");
    let history = TunerHistory::from_prompt(&prompt);
    let is_above = |id: NodeId| id != node && end.lineage(node).any(|up| up.id == id);
    let before: Vec<_> = end.evals.iter().filter(|eval| is_above(eval.parent)).collect();
    assert!(before.len() >= least, "{} were tried", before.len());
    assert_eq!(history.trials.len(), before.len(), "{prompt}");
    for eval in before {
        let Stage::Decided(measured, word, _) = &eval.stage else { panic!("{:?}", eval.stage) };
        let is_told = |trial: &&TunerTrial| {
            NodeId::new(trial.node) == eval.parent && trial.change.title() == eval.idea.title
        };
        let told = history.trials.iter().find(is_told).expect("each eval is told of");
        let TrialOutcome::Moved(gain) = told.outcome else { panic!("{told:?}") };
        let score = measured.scored.vs_parent.recommendation.score;
        assert_eq!(gain > 0.0, word.has_passed() && score > Finite::ZERO, "{told:?}");
    }
}

#[test]
fn what_a_prompt_tells_is_what_was_decided() {
    let repo = repository(TRAIN);
    check_told(&repo, &searched(&repo, 3), 6);
}

/// The branch has more trials than a prompt lists with all figures.
#[test]
fn a_long_branch_is_never_asked_for_the_same_twice() {
    let parts: String = (0..15).map(|n| format!("PART_{n} = 1.{n}\r\n")).collect();
    let repo = repository(&format!("{TRAIN}{parts}"));
    let end = searched(&repo, 16);
    check_told(&repo, &end, 70);
    for eval in end.evals.iter() {
        let above: Vec<NodeId> = end.lineage(eval.parent).map(|node| node.id).collect();
        let set =
            |eval: &Eval| ConstantChange::parse(&eval.idea.title).map(|(it, _)| (it.id, it.to));
        let earlier = end.evals.iter().filter(|other| other.id < eval.id);
        let mut same =
            earlier.filter(|other| above.contains(&other.parent) && set(other) == set(&eval));
        // A change that passed but was not promoted may be combined with the promoted one.
        let passed =
            |other: &Eval| matches!(&other.stage, Stage::Decided(_, word, _) if word.has_passed());
        let paid = |other: &Eval| other.parent != eval.parent && passed(other);
        assert!(same.all(|other| paid(&other)), "{} comes again", eval.idea.title);
    }
}
