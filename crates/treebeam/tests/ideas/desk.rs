//! A repository whose idea generator is a script with prepared answers, which logs each call.

use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use treebeam_testkit::program::Site;

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");

pub(crate) struct Desk {
    pub(crate) site: Site,
    /// Folder of the script and its log.
    pub(crate) dir: PathBuf,
    /// The folder of ideas.
    pub(crate) ideas: PathBuf,
}

/// Formats an idea with all of its sections.
pub(crate) fn whole(title: &str) -> String {
    format!("IDEA: {title}\nRATIONALE: to see\nREQUIRED_CHANGES:\n- model.py: {title}\n")
}

/// Formats several ideas.
pub(crate) fn all(titles: &[&str]) -> String {
    titles.iter().map(|title| whole(title)).collect()
}

impl Desk {
    pub(crate) fn new() -> Self {
        let site = Site::new(BINARY);
        let dir = site.repo.beside("desk");
        fs::create_dir_all(&dir).expect("a folder");
        let script = include_str!("agent.sh").replace("@DIR@", &dir.display().to_string());
        fs::write(dir.join("agent.sh"), script).expect("a script");
        let agent = format!(
            "context.ideas = 'none'\n[agents.ideas]\nprovider = 'command'\ncommand = ['sh', '{}/agent.sh']\n",
            dir.display()
        );
        site.repo.write("treebeam.toml", &agent).expect("a file");
        site.repo.commit("agents").expect("a commit");
        let ideas = dir.join("ideas");
        Self { site, dir, ideas }
    }

    /// Creates a desk that can also make runs of one depth: each idea adds a file, and the sweep
    /// counts them.
    pub(crate) fn for_runs(more: &str) -> Self {
        let desk = Self::new();
        let coder = "printf -- '--- /dev/null\\n+++ b/g%s.txt\\n@@ -0,0 +1 @@\\n+1\\n' \"$TREEBEAM_EVAL\"\n";
        let sweep = "n=$(ls g*.txt 2>/dev/null | wc -l)\nprintf 'config_id,status,gain\\n0,ok,%s\\n' \"$((n + 1))\" > \"$AGENTIC_RESULTS_CSV\"\n";
        let repo = &desk.site.repo;
        repo.write("coder.sh", coder).expect("a file");
        repo.write("sweep.sh", sweep).expect("a file");
        let agents = fs::read_to_string(repo.path().join("treebeam.toml")).expect("a file");
        let config = format!(
            "sweep_command = ['sh', 'sweep.sh']\nideas_per_node = 2\nmax_depth = 1\n{more}\n{agents}\
             [agents.coder]\nprovider = 'command'\ncommand = ['sh', 'coder.sh']\n\
             [score]\nprimary = 'gain'\nmetrics = [{{ column = 'gain', direction = 'higher', weight = 1.0 }}]\n"
        );
        repo.write("treebeam.toml", &config).expect("a file");
        repo.commit("what a run needs").expect("a commit");
        desk
    }

    /// Sets the answer of the script: to one call, or to all calls without an own one.
    pub(crate) fn says(&self, call: Option<usize>, reply: impl AsRef<[u8]>) {
        let name = call.map_or("reply".to_owned(), |call| format!("reply-{call}"));
        fs::write(self.dir.join(name), reply).expect("a reply");
    }

    pub(crate) fn words<'a>(&'a self, flags: &[&'a str]) -> Vec<&'a str> {
        let ideas = self.ideas.to_str().expect("a path");
        [&["ideas", "--ideas-dir", ideas, "--json"], flags].concat()
    }

    /// Calls the program, and returns the document.
    #[track_caller]
    pub(crate) fn call(&self, flags: &[&str]) -> Value {
        let said = self.site.call(&self.words(flags)).exits(0);
        serde_json::from_str(&said.stdout).expect("one document")
    }

    /// Returns the number of the script's calls.
    pub(crate) fn calls(&self) -> usize {
        fs::read_to_string(self.dir.join("calls")).unwrap_or_default().lines().count()
    }

    /// Returns the number of answers on disk.
    pub(crate) fn answers(&self) -> usize {
        let calls = fs::read_dir(self.site.repo.path().join(".treebeam/calls")).expect("the calls");
        let is_answer =
            |name: &str| name.starts_with("ideas-") && name.strip_suffix(".json").is_some();
        calls.flatten().filter(|entry| is_answer(&entry.file_name().to_string_lossy())).count()
    }

    pub(crate) fn prompt(&self, call: usize) -> String {
        fs::read_to_string(self.dir.join(format!("prompt-{call}"))).expect("a prompt")
    }

    /// Returns the names in the folder of ideas, or below it.
    pub(crate) fn names(&self, below: &str) -> Vec<String> {
        let entries = fs::read_dir(self.ideas.join(below)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

/// Returns the files of a part of a document.
pub(crate) fn files(document: &Value, part: &str) -> Vec<String> {
    let files = document[part].as_array().into_iter().flatten();
    files.map(|file| file["file"].as_str().expect("a name").to_owned()).collect()
}
