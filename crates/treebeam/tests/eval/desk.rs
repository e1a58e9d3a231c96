//! A repository with agents, tests and a sweep that are scripts, and ideas that select their
//! behaviour. The scripts log each call, outside of the repository.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use treebeam_testkit::hostile;
use treebeam_testkit::program::{SITE_RUN_ID, Said, Site};
use treebeam_testkit::repo::TempRepo;

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");
/// Maximum time of anything, unless it hangs.
const LONG: Duration = Duration::from_mins(3);
const SCRIPTS: [(&str, &str); 3] = [
    ("agent.sh", include_str!("agent.sh")),
    ("sweep.sh", include_str!("sweep.sh")),
    ("test.sh", include_str!("test.sh")),
];
pub(crate) const ROLES: [&str; 4] = ["coordinator", "planner", "coder", "reviewer"];

pub(crate) struct Desk {
    pub(crate) site: Site,
    /// Folder of the scripts and their logs.
    pub(crate) dir: PathBuf,
}

impl Desk {
    /// Creates a repository whose configuration has these lines, too.
    pub(crate) fn new(settings: &str) -> Self {
        let files = [
            ("model.txt", "mode root\nround 0\n"),
            ("tests/old_test.txt", "x\n"),
            (".gitignore", "*.data\nresults.csv\n"),
        ];
        let repo = TempRepo::with(&files).expect("a repository");
        let dir = repo.beside("desk");
        fs::create_dir_all(&dir).expect("a folder");
        for (name, text) in SCRIPTS {
            let text = text.replace("@DIR@", &dir.display().to_string());
            let bytes =
                if treebeam_testkit::apart::is_campaign() { "2147483648" } else { "268435456" };
            fs::write(dir.join(name), text.replace("@BYTES@", bytes)).expect("a script");
        }
        fs::write(dir.join("tree.py"), hostile::PROCESS_TREE_SCRIPT).expect("a script");
        let desk = Self { site: Site::from_repo(repo, BINARY), dir };
        desk.configure(settings);
        desk
    }

    pub(crate) fn configure(&self, settings: &str) {
        let dir = self.dir.display();
        let mut text = format!(
            "sweep_command = [\"sh\", \"{dir}/sweep.sh\"]\ntest_command = [\"sh\", \"{dir}/test.sh\"]\n\
             results_csv = \"results.csv\"\n{settings}\n[score]\nprimary = \"a:higher\"\n\
             metrics = [{{ column = \"a\", direction = \"higher\", weight = 1.0 }}]\n"
        );
        for role in ROLES {
            let agent = format!("provider = \"command\"\ncommand = [\"sh\", \"{dir}/agent.sh\"]\n");
            text.push_str(&format!("[agents.{role}]\n{agent}"));
        }
        self.site.repo.write("treebeam.toml", &text).expect("a file");
    }

    /// A folder with an idea for each of these modes, in this order.
    pub(crate) fn ideas(&self, modes: &[&str]) -> String {
        let folder = self.dir.join("ideas");
        drop(fs::remove_dir_all(&folder));
        fs::create_dir_all(&folder).expect("a folder");
        for (number, mode) in modes.iter().enumerate() {
            let text =
                format!("IDEA: try {mode}\nRATIONALE: to see\nREQUIRED_CHANGES: MODE: {mode}\n");
            fs::write(folder.join(format!("{number:03}_{mode}.md")), text).expect("an idea");
        }
        folder.display().to_string()
    }

    /// Tries ideas of these modes.
    pub(crate) fn eval(&self, modes: &[&str], flags: &[&str]) -> Said {
        let ideas = self.ideas(modes);
        self.site.call(&[&["eval", "--run-id", SITE_RUN_ID, "--idea", &ideas], flags].concat())
    }

    /// Tries ideas of these modes, and returns the JSON document after checking the exit code.
    pub(crate) fn document(&self, modes: &[&str], flags: &[&str], code: i32) -> Value {
        let said = self.eval(modes, &[&["--json"], flags].concat()).exits(code);
        serde_json::from_str(&said.stdout).expect("one document")
    }

    /// Returns the calls, in order.
    pub(crate) fn calls(&self) -> Vec<String> {
        let text = fs::read_to_string(self.dir.join("calls")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Returns the calls about this mode.
    pub(crate) fn calls_of(&self, mode: &str) -> Vec<String> {
        let about = |call: &String| call.split(' ').nth(1) == Some(mode);
        self.calls().into_iter().filter(about).collect()
    }

    /// Makes the calls of a role, of `tests` or of `sweep` wait from now on.
    pub(crate) fn hold(&self, who: &str) {
        fs::write(self.dir.join(format!("hold-{who}")), "").expect("a file");
    }

    pub(crate) fn let_go(&self, who: &str) {
        fs::remove_file(self.dir.join(format!("hold-{who}"))).expect("to let go");
    }

    /// Returns a file of an eval's experiment.
    #[track_caller]
    pub(crate) fn experiment(&self, eval: &str, name: &str) -> String {
        self.site.text(&format!("eval/{}/experiment/{name}", eval.trim_start_matches('e')))
    }

    /// Returns all of the user's state that must stay as it is.
    pub(crate) fn users(&self) -> Vec<String> {
        let repo = &self.site.repo;
        let git = |arguments: &[&str]| repo.git_in(repo.path(), arguments).expect("git");
        let read = |path: &Path| format!("{:?}", fs::read(path).unwrap_or_default());
        vec![
            read(&repo.path().join(".git/index")),
            read(&repo.path().join(".git/HEAD")),
            read(&repo.path().join(".git/config")),
            read(&repo.path().join("model.txt")),
            git(&["--no-optional-locks", "status", "--porcelain", "--branch"]),
            git(&["rev-parse", "main"]),
            git(&["stash", "list"]),
        ]
    }
}

/// Returns the eval of this mode in a document.
#[track_caller]
pub(crate) fn of<'a>(document: &'a Value, mode: &str) -> &'a Value {
    let title = format!("try {mode}");
    let evals = document["evals"].as_array().expect("a list");
    let found = evals.iter().find(|eval| eval["title"] == *title);
    found.unwrap_or_else(|| panic!("no {mode}: {document:#}"))
}

#[track_caller]
pub(crate) fn until(what: &str, mut so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !so() {
        assert!(begun.elapsed() < LONG, "it never came to be so: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
