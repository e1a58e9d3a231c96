//! Tests the part of prompts that shows a real repository. It has the files of a commit, is the
//! same each time, keeps the limit, and leaves out files that are no text, too long, or named like
//! a secret.

#![cfg(test)]

use std::error::Error;
use std::fs;
use std::num::NonZeroU32;
use std::sync::Mutex;
use treebeam_core::event::{RunStarted, WorldKind};
use treebeam_core::id::{Commit, RunId};
use treebeam_core::measure::{CommandLine, MeasureSettings};
use treebeam_core::policy::{FixedSettings, RecordedAgents, RunLimits};
use treebeam_core::rules_version::RulesVersion;
use treebeam_dry::{DryAgent, DryClock, DryExecutor};
use treebeam_git::{GitRepo, open_repo_with};
use treebeam_run::outline::{FileGlob, RepoContext};
use treebeam_run::port::{
    Agent, AgentError, AgentReply, AgentRequest, AgentRole, EditMode, Repo, SilentUser,
};
use treebeam_run::prompt::PromptSet;
use treebeam_run::{RunPorts, drive_run};
use treebeam_store::{RunFiles, RunStore};
use treebeam_testkit::repo::TempRepo;

type Outcome = Result<(), Box<dyn Error>>;

const TRAIN: &str = "RATE = 0.1\n```\n=== DO NOT TOUCH ===\n";

fn repo() -> Result<TempRepo, Box<dyn Error>> {
    let repo = TempRepo::with(&[
        ("README.md", "What this is.\n"),
        (".env", "KEY=sk-canary\n"),
        ("conf/deploy.key", "canary\n"),
        ("data/prices.csv", "1,2\n"),
        ("src/big.py", &format!("# {}\n", "b".repeat(300 << 10))),
        ("src/long.py", &"x = 1\n".repeat(3000)),
        ("src/train.py", TRAIN),
        ("ünïcode file.py", "u = 1\n"),
    ])?;
    fs::write(repo.path().join("src/blob.py"), b"a\0b")?;
    fs::write(repo.path().join("src/latin.py"), b"caf\xe9\n")?;
    repo.commit("bytes")?;
    Ok(repo)
}

/// The dry agent, recording the prompts that it gets.
struct Listening {
    agent: DryAgent,
    heard: Mutex<Vec<(String, String)>>,
}

impl Agent for Listening {
    fn can_answer(&self, role: AgentRole) -> bool {
        self.agent.can_answer(role)
    }
    fn edit_mode(&self, _: AgentRole) -> EditMode {
        EditMode::Diff
    }
    fn can_continue(&self, _: AgentRole) -> bool {
        false
    }
    fn ask(&self, ask: &AgentRequest) -> Result<AgentReply, AgentError> {
        self.heard.lock().expect("the list").push((ask.key.clone(), ask.prompt.to_string()));
        self.agent.ask(ask)
    }
}

/// Returns the prompts of a run of this name in this repository.
fn heard(
    repo: &TempRepo,
    name: &str,
    prompts: &PromptSet,
    depth: u32,
) -> Result<Vec<(String, String)>, Box<dyn Error>> {
    let user = open_repo_with(repo.path(), repo.variables())?;
    let runs = repo.beside("runs");
    fs::create_dir_all(&runs)?;
    let sweep = CommandLine::Program(vec!["python".to_owned(), "src/train.py".to_owned()]);
    let meaning = FixedSettings {
        ideas_per_node: NonZeroU32::new(3).ok_or("zero")?,
        measure: MeasureSettings { sweep_command: Some(sweep), ..MeasureSettings::default() },
        ..FixedSettings::default()
    };
    let started = RunStarted {
        run: name.parse::<RunId>()?,
        world: WorldKind::Dry { seed: 7 },
        root: user.head.clone(),
        meaning,
        reach: RunLimits { max_depth: depth, ..RunLimits::default() },
        agents: RecordedAgents::default(),
        given: None,
        replays: None,
        rules_version: RulesVersion::LATEST,
        at: user.head_time,
    };
    let (mut store, state) = RunStore::create(&runs, &started)?;
    let run = store.run_dir().clone();
    let git = GitRepo::new(user, run.root(), started.run.clone())?;
    let agent = Listening { agent: DryAgent::new(7, run.clone()), heard: Mutex::default() };
    let executor = DryExecutor::new(7, run.clone(), &started.meaning.score);
    let (files, clock) = (RunFiles::new(run), DryClock::new(started.at));
    let world = RunPorts {
        repo: &git,
        agent: &agent,
        executor: &executor,
        files: &files,
        inputs: &SilentUser,
        clock: &clock,
        interrupt: &SilentUser,
        inbox: &SilentUser,
        prompts,
    };
    drive_run(state, world, &mut store, &mut |_, _| {})?;
    let mut heard = agent.heard.into_inner()?;
    heard.sort();
    Ok(heard)
}

fn prompts(context: &RepoContext, max_chars: usize) -> PromptSet {
    let mut prompts = PromptSet::built_in().clone();
    for role in AgentRole::ALL {
        prompts.for_role_mut(role).context = context.clone();
    }
    prompts.context_max_chars = max_chars;
    prompts
}

/// Returns the part of a prompt that shows the repository.
fn shown(prompt: &str) -> &str {
    let start = prompt.find("=== FILES, WITH").or_else(|| prompt.find("=== FILE ")).expect("files");
    let rest = &prompt[start..];
    let end = ["=== YOUR LAST", "=== YOUR CHANGE", "=== YOU PROPOSED"];
    let end = end.iter().filter_map(|head| rest.find(head)).min().unwrap_or(rest.len());
    &rest[..end]
}

#[test]
fn an_outline_is_what_git_has_and_the_same_each_time() -> Outcome {
    let (one, other) = (repo()?, repo()?);
    // Files that are only in the checkout are not shown.
    one.write("src/untracked.py", "canary = 1\n")?;
    one.write("README.md", "canary\n")?;
    let prompts = prompts(&RepoContext::Outline, 20_000);
    let heard_here = heard(&one, "r1", &prompts, 2)?;
    assert_eq!(heard_here, heard(&other, "r1", &prompts, 2)?, "wherever it lies");
    let (_, first) =
        heard_here.iter().find(|(key, _)| key.starts_with("ideas-n0000")).ok_or("ideas")?;
    let text = shown(first);
    for part in [
        ".env 14\n",
        "conf/deploy.key 7\n",
        "src/big.py 307203\n",
        "ünïcode file.py 6\n",
        "=== FILE README.md ===\n```\nWhat this is.\n```\n",
        &format!("=== FILE src/train.py ===\n````\n{TRAIN}````\n"),
        "=== FILE ünïcode file.py ===\n```\nu = 1\n```\n",
        "of 17999 characters are shown)\n",
    ] {
        assert!(text.contains(part), "no {part:?} in:\n{text}");
    }
    assert!(!text.contains("DIFFERS"), "{text}");
    let path = one.path().display().to_string();
    for (key, prompt) in &heard_here {
        for never in ["canary", "bbbb", "caf", "FILE src/blob", "FILE data/", &path] {
            assert!(!prompt.contains(never), "{key} has {never:?}:\n{prompt}");
        }
    }
    let (_, deeper) =
        heard_here.iter().find(|(key, _)| key.starts_with("ideas-n0001")).ok_or("a node")?;
    assert!(
        shown(deeper).contains("DIFFERS FROM THE ROOT BY THIS ===\n```\ndiff --git a/"),
        "{deeper}"
    );
    Ok(())
}

#[test]
fn the_limit_is_kept_and_files_can_be_named() -> Outcome {
    let repo = repo()?;
    for max_chars in [1, 400, 2_000, 10_000] {
        let prompts = prompts(&RepoContext::Outline, max_chars);
        let asked = heard(&repo, &format!("r{max_chars}"), &prompts, 1)?;
        for (key, prompt) in asked {
            let bare = !prompt.contains("=== FILES, WITH") && !prompt.contains("=== FILE ");
            let length = if bare { 0 } else { shown(&prompt).trim_end().chars().count() };
            assert!(length <= max_chars, "{key}: {length} > {max_chars}");
            assert!(bare || max_chars >= 300, "{prompt}");
        }
    }
    let glob = |glob| FileGlob::new(glob).map_err(Box::<dyn Error>::from);
    let named = RepoContext::Files(vec![glob("data/*")?, glob("**/.env")?, glob("src/blob.py")?]);
    let asked = heard(&repo, "named", &prompts(&named, 20_000), 1)?;
    let (_, prompt) = asked.first().ok_or("a question")?;
    assert_eq!(shown(prompt).trim_end(), "=== FILE data/prices.csv ===\n```\n1,2\n```");
    Ok(())
}

#[test]
fn files_and_texts_of_a_commit() -> Outcome {
    let repo = repo()?;
    let user = open_repo_with(repo.path(), repo.variables())?;
    let head: Commit = user.head.clone();
    let folder = repo.beside("run");
    fs::create_dir_all(&folder)?;
    let git = GitRepo::new(user, &folder, "r1".parse::<RunId>()?)?;
    let files = git.list_files(&head)?;
    let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
    assert!(paths.is_sorted() && paths.len() == 10, "{paths:?}");
    let texts = git.read_texts(&files)?;
    let of = |path: &str| {
        let at = paths.iter().position(|known| *known == path).expect("a file");
        texts[at].clone()
    };
    assert_eq!(of("src/train.py").as_deref(), Some(TRAIN));
    assert_eq!(of("src/big.py").map(|text| text.len()), Some(307_203));
    assert_eq!((of("src/blob.py"), of("src/latin.py")), (None, None));
    assert_eq!(git.read_texts(&[])?, Vec::<Option<String>>::new());
    Ok(())
}

#[test]
fn links_and_submodules_are_no_files() -> Outcome {
    let repo = TempRepo::with(&[("a.py", "a\n")])?;
    let link = repo.git(["hash-object", "-w", "a.py"])?;
    let cache = |mode: &str, object: &str, path: &str| format!("{mode},{object},{path}");
    let head = repo.git(["rev-parse", "HEAD"])?;
    let link = cache("120000", link.trim(), "link.py");
    let module = cache("160000", head.trim(), "module");
    repo.git(["update-index", "--add", "--cacheinfo", &link, "--cacheinfo", &module])?;
    repo.git(["commit", "--quiet", "-m", "links"])?;
    let user = open_repo_with(repo.path(), repo.variables())?;
    let head = user.head.clone();
    let folder = repo.beside("run");
    fs::create_dir_all(&folder)?;
    let git = GitRepo::new(user, &folder, "r1".parse::<RunId>()?)?;
    let paths: Vec<String> = git.list_files(&head)?.into_iter().map(|file| file.path).collect();
    assert_eq!(paths, ["a.py"]);
    Ok(())
}

/// Commits and objects are immutable, so git is called only once for each.
#[test]
fn what_was_asked_once_needs_no_git() -> Outcome {
    let repo = repo()?;
    let user = open_repo_with(repo.path(), repo.variables())?;
    let (head, above) = (user.head.clone(), repo.git(["rev-parse", "HEAD^"])?);
    let folder = repo.beside("run");
    fs::create_dir_all(&folder)?;
    let git = GitRepo::new(user, &folder, "r1".parse::<RunId>()?)?;
    let files = git.list_files(&head)?;
    let (some, rest) = files.split_at(5);
    let (texts, objects) = (git.read_texts(some)?, repo.path().join(".git/objects"));
    fs::rename(&objects, repo.beside("objects"))?;
    assert_eq!((git.list_files(&head)?, git.read_texts(some)?), (files.clone(), texts));
    assert!(git.list_files(&above.trim().parse::<Commit>()?).is_err(), "another commit");
    assert!(git.read_texts(rest).map_or(true, |texts| texts.iter().all(Option::is_none)));
    // An object that was missing is requested again.
    fs::rename(repo.beside("objects"), &objects)?;
    assert!(git.read_texts(rest)?.iter().any(Option::is_some));
    Ok(())
}
