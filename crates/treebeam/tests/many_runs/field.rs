//! A repository with several concurrent runs, with agents and a sweep that are scripts, which log
//! each call outside of the repository. Comparisons ignore times.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use treebeam_testkit::program::Site;
use treebeam_testkit::repo::TempRepo;
use treebeam_testkit::traces::{no_process, strays};

const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");
const SCRIPTS: [(&str, &str); 2] =
    [("agent.sh", include_str!("agent.sh")), ("sweep.sh", include_str!("sweep.sh"))];

/// Fields of a run that depend on the clock, beside all that end in `_at`.
const CLOCKED: [&str; 3] = ["at", "millis", "seconds"];

/// How large each run is.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    pub(crate) ideas: u32,
    pub(crate) depth: u32,
    pub(crate) beam: u32,
}

/// One of the runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lane {
    pub(crate) run: &'static str,
    pub(crate) at_once: &'static str,
}

pub(crate) struct Field {
    pub(crate) site: Site,
    dir: PathBuf,
    size: Size,
}

impl Field {
    pub(crate) fn new(size: Size) -> Self {
        let repo = TempRepo::with(&[("model.txt", "100\n"), ("src/part.txt", "a part\n")]);
        let repo = repo.expect("a repository");
        let dir = repo.beside("desk");
        fs::create_dir_all(&dir).expect("a folder");
        for (name, text) in SCRIPTS {
            fs::write(dir.join(name), text).expect("a script");
        }
        let (at, ideas) = (dir.display(), size.ideas);
        let agent = |role: &str| {
            let command = format!("['sh', '{at}/agent.sh', '{at}', '{ideas}']");
            format!("[agents.{role}]\nprovider = 'command'\ncommand = {command}\n")
        };
        let config = format!(
            "sweep_command = ['sh', '{at}/sweep.sh', '{at}']\nsweep_config_limit = 3\n\
             [score]\nprimary = 'a:higher'\n\
             metrics = [{{ column = 'a', direction = 'higher', weight = 1.0 }}]\n{}{}",
            agent("ideas"),
            agent("coder")
        );
        repo.write("treebeam.toml", &config).expect("a file");
        Self { site: Site::from_repo(repo, BINARY), dir, size }
    }

    /// Starts or resumes a run, as the leader of a process group.
    pub(crate) fn start(&self, lane: Lane) -> Child {
        let Size { ideas, depth, beam } = self.size;
        let said = |name| File::create(self.dir.join(format!("{name}-{}", lane.run)));
        let mut runner = Command::new(BINARY);
        runner
            .args(["run", "--quiet", "--run-id", lane.run, "--max-parallel-evals", lane.at_once])
            .args(["--ideas-per-node", &ideas.to_string(), "--max-depth", &depth.to_string()])
            .args(["--beam-width", &beam.to_string()])
            .current_dir(self.site.repo.path())
            .env_clear()
            .envs(self.site.repo.variables())
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(said("stdout").expect("a file"))
            .stderr(said("stderr").expect("a file"));
        runner.spawn().expect("the program")
    }

    /// Returns the standard error of a run's last process.
    pub(crate) fn said(&self, lane: Lane) -> String {
        fs::read_to_string(self.dir.join(format!("stderr-{}", lane.run))).unwrap_or_default()
    }

    pub(crate) fn run_dir(&self, lane: Lane) -> PathBuf {
        self.site.repo.path().join(".treebeam/runs").join(lane.run)
    }

    /// Returns the number of a run's events on record, without takeovers.
    pub(crate) fn events(&self, lane: Lane) -> usize {
        let journal = fs::read(self.run_dir(lane).join("journal.jsonl")).unwrap_or_default();
        let journal = String::from_utf8_lossy(&journal);
        journal.lines().filter(|line| !line.contains("lock_taken_over")).count()
    }

    /// Returns the calls that the scripts logged for a run, in order.
    pub(crate) fn calls(&self, lane: Lane) -> Vec<String> {
        let path = self.dir.join(format!("calls-{}", lane.run));
        fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// Returns the finished work by the files on disk, as prefixes of calls that must not be logged
    /// again.
    pub(crate) fn finished(&self, lane: Lane) -> BTreeSet<String> {
        let mut finished = BTreeSet::new();
        let run = self.run_dir(lane);
        for node in names(&run.join("node_ideas")) {
            // `ideas-n0001-x1-a1.json`
            for name in names(&run.join("node_ideas").join(&node).join("calls")) {
                let answered = name.strip_suffix(".json");
                finished.extend(answered.map(|_| format!("begin ideas {node} ")));
            }
        }
        for eval in names(&run.join("eval")) {
            let home = run.join("eval").join(&eval);
            // `coder-e0001-a1-r0.json`
            for name in names(&home.join("calls")) {
                let round = name.strip_suffix(".json").and_then(|key| key.rsplit_once("-r"));
                finished.extend(round.map(|(_, round)| format!("begin coder {eval} {round}")));
            }
            let is_swept = |name: &String| home.join(name).join("eval_result.json").exists();
            if names(&home).iter().any(is_swept) {
                finished.insert(format!("begin sweep {eval} "));
            }
        }
        finished
    }

    /// Asserts that a run is the same as in the other field, and has no leftovers.
    #[track_caller]
    pub(crate) fn must_equal(&self, other: &Self, lane: Lane) {
        let _ = self.site.call(&["validate", lane.run]).exits(0);
        assert_eq!(self.lasting(lane), other.lasting(lane), "{lane:?}");
        for folder in ["artifacts", "conversations", "node_ideas", "cand", "wt"] {
            let [ours, theirs] = [self, other].map(|it| files(&it.run_dir(lane).join(folder)));
            assert!(ours.keys().eq(theirs.keys()), "{:?}\n{:?}", ours.keys(), theirs.keys());
            for (path, bytes) in ours {
                assert!(theirs.get(&path) == Some(&bytes), "{lane:?}: {path} differs");
            }
        }
        let strays = strays(&self.run_dir(lane));
        assert!(strays.is_empty(), "{lane:?}: {strays:?}");
        assert!(!self.run_dir(lane).join("run.lock.json").exists(), "{lane:?} is let go of");
    }

    /// Asserts that the repository is the same, and that no process works in it any more.
    #[track_caller]
    pub(crate) fn must_be_as(&self, other: &Self) {
        for of_git in [
            &["for-each-ref", "--exclude=refs/treebeam/**"][..],
            &["worktree", "list", "--porcelain"],
        ] {
            let [ours, theirs] = [self, other].map(|it| {
                let repo = &it.site.repo;
                it.plain(&repo.git_in(repo.path(), of_git).expect("git"))
            });
            assert_eq!(ours, theirs);
        }
        no_process(self.site.repo.path());
        let [ours, theirs] = [self, other].map(Self::locks);
        assert_eq!(ours, theirs);
    }

    /// Returns the lock files of git.
    fn locks(&self) -> Vec<String> {
        let files = files(&self.site.repo.path().join(".git"));
        files.into_keys().filter(|path| path.strip_suffix(".lock").is_some()).collect()
    }

    /// Returns the part of a manifest that must be the same.
    fn lasting(&self, lane: Lane) -> String {
        let text = fs::read_to_string(self.run_dir(lane).join("manifest.json")).expect("a file");
        let mut manifest: Value = serde_json::from_str(&text).expect("JSON");
        for name in ["history", "checksum"] {
            assert!(manifest.as_object_mut().expect("an object").remove(name).is_some());
        }
        timeless(&mut manifest);
        self.plain(&format!("{manifest:#}"))
    }

    /// Returns a text without the path of the repository, and with the content of each commit for
    /// its name.
    fn plain(&self, text: &str) -> String {
        let is_name = |word: &&str| word.len() == 40 && word.bytes().all(|b| b.is_ascii_hexdigit());
        let words = text.split(|c: char| !c.is_ascii_alphanumeric());
        let commits: BTreeSet<&str> = words.filter(is_name).collect();
        let trees: Vec<String> = commits.iter().map(|name| format!("{name}^{{tree}}")).collect();
        let asked: Vec<&str> =
            ["rev-parse"].into_iter().chain(trees.iter().map(String::as_str)).collect();
        let repo = &self.site.repo;
        let trees = repo.git_in(repo.path(), &asked).expect("the trees");
        let place = self.dir.parent().expect("a folder").display().to_string();
        let text = text.replace(&place, "@");
        commits.iter().zip(trees.lines()).fold(text, |text, (name, tree)| text.replace(name, tree))
    }
}

/// Returns all files below a folder but the records of calls.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    collect(folder, "", &mut found);
    found.retain(|path, _| !path.contains("/calls/") && !path.ends_with("/.git"));
    found
}

/// Removes fields that depend on the clock.
fn timeless(value: &mut Value) {
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|name, _| !name.ends_with("_at") && !CLOCKED.contains(&name.as_str()));
        fields.values_mut().for_each(timeless);
    } else if let Some(values) = value.as_array_mut() {
        values.iter_mut().for_each(timeless);
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Returns the content of a file; without its times, if it is a list of turns.
fn content(path: &Path) -> Vec<u8> {
    let bytes = fs::read(path).unwrap_or_default();
    if path.extension().is_none_or(|kind| kind != "jsonl") {
        return bytes;
    }
    let line = |line: &str| {
        let mut line: Value = serde_json::from_str(line).expect("JSON");
        timeless(&mut line);
        format!("{line}\n")
    };
    String::from_utf8(bytes).expect("text").lines().map(line).collect::<String>().into_bytes()
}

fn collect(folder: &Path, above: &str, found: &mut BTreeMap<String, Vec<u8>>) {
    for name in names(folder) {
        let (path, shown) = (folder.join(&name), format!("{above}/{name}"));
        if path.is_dir() {
            collect(&path, &shown, found);
        } else {
            found.insert(shown, content(&path));
        }
    }
}
