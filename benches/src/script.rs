//! The same git commands in a shell: what a run asks of git is recorded by a stand-in, and written down as a script.

use crate::Outcome;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where calls are written down, with a stand-in for git that does so.
pub(crate) struct Recorder {
    calls: PathBuf,
    bin: PathBuf,
    git: PathBuf,
}

/// One call of git.
struct Call {
    arguments: Vec<String>,
    variables: BTreeMap<String, String>,
    folder: String,
    input: PathBuf,
}

/// A script, and the variables that it is started with.
pub(crate) struct Script {
    path: PathBuf,
    variables: BTreeMap<String, String>,
    /// How many calls of git it makes.
    pub(crate) calls: usize,
}

impl Recorder {
    /// Makes the stand-in in a folder.
    pub(crate) fn new(folder: &Path) -> Outcome<Self> {
        let (calls, bin) = (folder.join("calls"), folder.join("bin"));
        fs::create_dir_all(&calls)?;
        fs::create_dir_all(&bin)?;
        let path = std::env::var("PATH")?;
        let mut all = std::env::split_paths(&path).map(|folder| folder.join("git"));
        let git = all.find(|git| git.is_file()).ok_or("there is no git")?;
        let text = format!(
            "#!/bin/sh\nPATH='{path}'\ncall='{}'/$(date +%s%N)-$$\n\
             printf '%s\\0' \"$@\" > $call.arguments\nenv -0 > $call.variables\n\
             pwd > $call.folder\ncat > $call.input\nexec '{}' \"$@\" < $call.input\n",
            calls.display(),
            git.display()
        );
        fs::write(bin.join("git"), text)?;
        fs::set_permissions(bin.join("git"), fs::Permissions::from_mode(0o755))?;
        Ok(Self { calls, bin, git })
    }

    /// An environment in which git is the stand-in.
    pub(crate) fn variables(&self, like: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
        let others = like.iter().filter(|(name, _)| name != "PATH").cloned();
        others.chain([("PATH".into(), self.bin.clone().into_os_string())]).collect()
    }

    /// Writes the script of everything that was recorded.
    pub(crate) fn script(&self, run_dir: &Path, common_dir: &Path) -> Outcome<Script> {
        let calls = self.read()?;
        let first = calls.last().ok_or("nothing was recorded")?;
        let mut variables = first.variables.clone();
        variables.insert("PATH".to_owned(), std::env::var("PATH")?);
        let mut text = format!("mkdir -p '{0}/wt' '{0}/cand'\n", run_dir.display());
        let mut gone = BTreeSet::new();
        for (position, call) in calls.iter().enumerate() {
            text.push_str(&match call.as_worktree_add(common_dir) {
                Some((add, and_then)) => self.line(&add, &variables) + &and_then,
                None => self.line(call, &variables),
            });
            let candidate = call.candidate(run_dir);
            let Some(name) = candidate.filter(|name| !gone.contains(name)) else { continue };
            let later = calls.iter().skip(position + 1);
            if later.filter_map(|call| call.candidate(run_dir)).all(|other| other != name) {
                let (run, admin) = (run_dir.display(), common_dir.display());
                text.push_str(&format!(
                    "rm -rf '{run}/cand/{name}' '{admin}'/worktrees/*-e{name}\n"
                ));
                gone.insert(name);
            }
        }
        let path = self.calls.with_file_name("script.sh");
        fs::write(&path, text)?;
        Ok(Script { path, variables, calls: calls.len() })
    }

    fn read(&self) -> Outcome<Vec<Call>> {
        let mut names: Vec<PathBuf> = Vec::new();
        for entry in fs::read_dir(&self.calls)? {
            let path = entry?.path();
            if path.extension().is_some_and(|kind| kind == "arguments") {
                names.push(path);
            }
        }
        names.sort();
        names.iter().map(|path| Call::read(path)).collect()
    }

    fn line(&self, call: &Call, common: &BTreeMap<String, String>) -> String {
        let own = call
            .variables
            .iter()
            .filter(|(name, value)| name.starts_with("GIT_") && common.get(*name) != Some(*value));
        let own: String = own.map(|(name, value)| format!("{name}={} ", quoted(value))).collect();
        let arguments: Vec<String> = call.arguments.iter().map(|text| quoted(text)).collect();
        format!(
            "cd {} && {own}{} {} < {} > /dev/null 2>&1\n",
            quoted(&call.folder),
            quoted(&self.git.to_string_lossy()),
            arguments.join(" "),
            quoted(&call.input.to_string_lossy())
        )
    }
}

impl Call {
    fn read(path: &Path) -> Outcome<Self> {
        let arguments = fs::read_to_string(path)?;
        let arguments = arguments.trim_end_matches('\0').split('\0').map(str::to_owned).collect();
        let variables = fs::read_to_string(path.with_extension("variables"))?;
        let variables = variables.split('\0').filter_map(|line| line.split_once('='));
        let variables =
            variables.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let folder = fs::read_to_string(path.with_extension("folder"))?.trim_end().to_owned();
        Ok(Self { arguments, variables, folder, input: path.with_extension("input") })
    }

    /// What a shell would do instead of making a worktree by hand and filling it: a plain `git worktree add`, and then
    /// a name for its admin folder that later calls know.
    fn as_worktree_add(&self, common_dir: &Path) -> Option<(Self, String)> {
        let fill = self.arguments.iter().position(|text| text == "read-tree")?;
        let commit = self.arguments.last()?;
        let made = self.arguments.iter().find_map(|text| text.strip_prefix("--git-dir="))?;
        let admin = common_dir.join("worktrees").join(Path::new(made).file_name()?);
        let (admin, common) = (admin.display(), format!("--git-dir={}", common_dir.display()));
        let keep = |text: &String| {
            if text.starts_with("--git-dir=") { common.clone() } else { text.clone() }
        };
        let add = ["worktree", "add", "--detach", "--lock", "--quiet", "--", &self.folder, commit];
        let before = self.arguments.iter().take(fill).map(keep);
        let arguments = before.chain(add.iter().map(|&text| text.to_owned())).collect();
        let above = Path::new(&self.folder).parent()?.display().to_string();
        let add = Self {
            arguments,
            variables: self.variables.clone(),
            folder: above,
            input: self.input.clone(),
        };
        let link = quoted(&format!("{}/.git", self.folder));
        let rename = format!(
            "mv \"$(sed 's/^gitdir: //' {link})\" '{admin}' && echo 'gitdir: {admin}' > {link}\n"
        );
        Some((add, rename))
    }

    /// The candidate whose worktree it is about.
    fn candidate(&self, run_dir: &Path) -> Option<String> {
        let folder = format!("{}/cand/", run_dir.display());
        let mut found = self.arguments.iter().filter_map(|text| text.split_once(&folder));
        found.next().map(|(_, name)| name.to_owned())
    }
}

impl Script {
    /// Runs it to its end.
    pub(crate) fn run(&self) -> Outcome<()> {
        let mut command = Command::new("/bin/sh");
        command.arg(&self.path).env_clear().envs(&self.variables).stdin(Stdio::null());
        let ended = command.status()?;
        if ended.success() { Ok(()) } else { Err(format!("the script ended with {ended}").into()) }
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
