//! Records the git and other commands of a run by stand-ins, and writes them as a shell script.

use crate::Outcome;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Recorder of calls, with stand-ins for the recorded programs.
pub(crate) struct Recorder {
    calls: PathBuf,
    bin: PathBuf,
}

/// One call of a program.
struct ProgramCall {
    program: String,
    arguments: Vec<String>,
    variables: BTreeMap<String, String>,
    folder: String,
    input: PathBuf,
}

/// A script, and the variables that it is started with.
pub(crate) struct Script {
    path: PathBuf,
    variables: BTreeMap<String, String>,
    /// Number of calls in the script.
    pub(crate) calls: usize,
}

impl Script {
    /// Writes a script of this many calls, to be started with these variables.
    pub(crate) fn new(
        path: PathBuf,
        text: &str,
        variables: BTreeMap<String, String>,
        calls: usize,
    ) -> Outcome<Self> {
        fs::write(&path, text)?;
        Ok(Self { path, variables, calls })
    }
}

impl Recorder {
    /// Creates stand-ins in a folder for these programs, which are found on this path.
    pub(crate) fn new(folder: &Path, programs: &[&str], path: &str) -> Outcome<Self> {
        let (calls, bin) = (folder.join("calls"), folder.join("bin"));
        fs::create_dir_all(&calls)?;
        fs::create_dir_all(&bin)?;
        for name in programs {
            let mut all = std::env::split_paths(path).map(|folder| folder.join(name));
            let program = all.find(|found| found.is_file()).ok_or("there is no such program")?;
            let text = format!(
                "#!/bin/sh\nown=$PATH\nPATH='{path}'\ncall='{}'/$(date +%s%N)-$$\n\
                 printf '%s\\0' \"$@\" > $call.arguments\nenv -0 > $call.variables\n\
                 pwd > $call.folder\necho '{1}' > $call.program\ncat > $call.input\n\
                 PATH=$own exec '{1}' \"$@\" < $call.input\n",
                calls.display(),
                program.display()
            );
            fs::write(bin.join(name), text)?;
            fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755))?;
        }
        Ok(Self { calls, bin })
    }

    /// Returns an environment in which the stand-ins are found first.
    pub(crate) fn variables(&self, like: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
        let others = like.iter().filter(|(name, _)| name != "PATH").cloned();
        let mut path = self.bin.clone().into_os_string();
        if let Some((_, like)) = like.iter().find(|(name, _)| name == "PATH") {
            path.push(":");
            path.push(like);
        }
        others.chain([("PATH".into(), path)]).collect()
    }

    /// Writes the script of all recorded calls.
    pub(crate) fn script(&self, run_dir: &Path, common_dir: &Path) -> Outcome<Script> {
        let calls = self.read()?;
        let first = calls.last().ok_or("nothing was recorded")?;
        let mut variables = first.variables.clone();
        variables.insert("PATH".to_owned(), std::env::var("PATH")?);
        let mut text = format!("mkdir -p '{0}/wt' '{0}/cand'", run_dir.display());
        for folder in calls.iter().filter_map(|call| call.variables.get("AGENTIC_OUTPUT_DIR")) {
            text.push_str(&format!(" {}", quoted(folder)));
        }
        text.push('\n');
        let (mut made, mut gone) = (BTreeSet::new(), BTreeSet::new());
        for (position, call) in calls.iter().enumerate() {
            text.push_str(&match call.as_filling(common_dir) {
                Some((again, _, _)) if !made.insert(call.folder.clone()) => {
                    line(&again, &variables)
                }
                Some((_, add, and_then)) => line(&add, &variables) + &and_then,
                None => line(call, &variables),
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
        Script::new(self.calls.with_file_name("script.sh"), &text, variables, calls.len())
    }

    fn read(&self) -> Outcome<Vec<ProgramCall>> {
        let mut names: Vec<PathBuf> = Vec::new();
        for entry in fs::read_dir(&self.calls)? {
            let path = entry?.path();
            if path.extension().is_some_and(|kind| kind == "arguments") {
                names.push(path);
            }
        }
        names.sort();
        names.iter().map(|path| ProgramCall::read(path)).collect()
    }
}

fn line(call: &ProgramCall, common: &BTreeMap<String, String>) -> String {
    let is_own =
        |name: &str| ["GIT_", "AGENTIC_", "TREEBEAM_"].iter().any(|own| name.starts_with(own));
    let own = call
        .variables
        .iter()
        .filter(|(name, value)| is_own(name) && common.get(*name) != Some(*value));
    let own: String = own.map(|(name, value)| format!("{name}={} ", quoted(value))).collect();
    let arguments: Vec<String> = call.arguments.iter().map(|text| quoted(text)).collect();
    format!(
        "cd {} && {own}{} {} < {} > /dev/null 2>&1\n",
        quoted(&call.folder),
        quoted(&call.program),
        arguments.join(" "),
        quoted(&call.input.to_string_lossy())
    )
}

impl ProgramCall {
    fn read(path: &Path) -> Outcome<Self> {
        let arguments = fs::read_to_string(path)?;
        let arguments = arguments.trim_end_matches('\0').split('\0').map(str::to_owned).collect();
        let variables = fs::read_to_string(path.with_extension("variables"))?;
        let variables = variables.split('\0').filter_map(|line| line.split_once('='));
        let variables =
            variables.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let folder = fs::read_to_string(path.with_extension("folder"))?.trim_end().to_owned();
        let program = fs::read_to_string(path.with_extension("program"))?.trim_end().to_owned();
        Ok(Self { program, arguments, variables, folder, input: path.with_extension("input") })
    }

    /// Returns the shell equivalent of making a worktree by hand and filling it: if it exists, fill
    /// it again; if not, a plain `git worktree add`, and then a name for its admin folder that
    /// later calls know.
    fn as_filling(&self, common_dir: &Path) -> Option<(Self, Self, String)> {
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
        let own = format!(
            "--git-dir={}",
            common_dir.join("worktrees").join(Path::new(made).file_name()?).display()
        );
        let known = |text: &String| {
            if text.starts_with("--git-dir=") { own.clone() } else { text.clone() }
        };
        let again = Self {
            program: self.program.clone(),
            arguments: self.arguments.iter().map(known).collect(),
            variables: self.variables.clone(),
            folder: self.folder.clone(),
            input: self.input.clone(),
        };
        let add = Self {
            program: self.program.clone(),
            arguments,
            variables: self.variables.clone(),
            folder: above,
            input: self.input.clone(),
        };
        let link = quoted(&format!("{}/.git", self.folder));
        let rename = format!(
            "mv \"$(sed 's/^gitdir: //' {link})\" '{admin}' && echo 'gitdir: {admin}' > {link}\n"
        );
        Some((again, add, rename))
    }

    /// Returns the candidate whose worktree the call is about.
    fn candidate(&self, run_dir: &Path) -> Option<String> {
        let folder = format!("{}/cand/", run_dir.display());
        let mut found = self.arguments.iter().filter_map(|text| text.split_once(&folder));
        found.next().map(|(_, name)| name.to_owned())
    }
}

impl Script {
    /// Runs the script to its end.
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
