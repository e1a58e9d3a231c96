//! Measures real evals with instant agents and sweeps, against two shell scripts.
//!
//! One script makes only the program's git commands and starts its programs, the other is a
//! handwritten one for the same job.

use crate::dry::{Bench, MeasuredCost, timed};
use crate::gauge::{self, median};
use crate::script::{Recorder, Script};
use crate::{Outcome, must, own_release, released, row};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use tempfile::TempDir;

const EVALS_PER_COMMAND: u32 = 40;
const COMMAND_ROUNDS: usize = 5;

/// Instant programs. Each idea has a change of its own: twins would not be measured.
const INSTANT_PROGRAMS: [(&str, &str); 3] = [
    ("instant-coder", "#!/bin/sh\nexec sed \"s/^+x/+$TREEBEAM_EVAL/\" change.diff\n"),
    ("instant-reviewer", "#!/bin/sh\necho VERDICT: APPROVE\n"),
    ("instant-sweep", "#!/bin/sh\nexec cp base.csv \"$AGENTIC_RESULTS_CSV\"\n"),
];
const INSTANT_CONFIG: &str = "sweep_command = ['instant-sweep']\nscore.primary = 'a'\n\
    [agents.coder]\nprovider = 'command'\ncommand = ['instant-coder']\n\
    [agents.reviewer]\nprovider = 'command'\ncommand = ['instant-reviewer']\n";
const CHANGE_TEMPLATE: &str =
    "diff --git a/new b/new\nnew file mode 100644\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+x\n";

/// Handwritten eval of an idea: nine commands, as durable as ours.
const BY_HAND: &str = r#"
git worktree add -q --detach "../hand/$n" HEAD
cd "../hand/$n"
TREEBEAM_EVAL=$n instant-coder > "../$n.diff"
git apply --index "../$n.diff"
git diff --cached > "../$n.shown"
instant-reviewer < "../$n.shown" > "../$n.verdict"
git commit -q -m "idea $n"
AGENTIC_RESULTS_CSV="../$n.csv" instant-sweep
git branch -q "cand/$n"
cd "$repo"
git worktree remove --force "../hand/$n"
"#;
const COMMANDS_BY_HAND: usize = 9;

/// Prints the ratios, with fsync as it is on a disk and where it costs nothing.
pub(crate) fn eval() -> Outcome<()> {
    compare("on a disk", &gauge::on_disk()?)?;
    compare("where fsync costs nothing", &gauge::in_memory()?)
}

fn compare(name: &str, folder: &TempDir) -> Outcome<()> {
    let field = Field::new(folder)?;
    let scripts = [("its own commands", field.script()?), ("by hand", field.by_hand()?)];
    let (mut ours, mut theirs) = (Vec::new(), [Vec::new(), Vec::new()]);
    for _ in 0..COMMAND_ROUNDS {
        ours.push(field.ours()?);
        for ((_, script), took) in scripts.iter().zip(&mut theirs) {
            took.push(field.bench.theirs(script)?);
        }
    }
    let evals = f64::from(EVALS_PER_COMMAND);
    let each = |all: &[MeasuredCost]| {
        let walls: Vec<f64> = all.iter().map(|took| took.wall).collect();
        format!("{:.1} ms per eval", median(&walls) * 1000.0 / evals)
    };
    row(
        &format!("{name}: `treebeam eval`, {EVALS_PER_COMMAND} ideas, coder and reviewer"),
        &each(&ours),
    );
    for ((kind, script), theirs) in scripts.iter().zip(&theirs) {
        let both = || ours.iter().zip(theirs);
        let wall: Vec<f64> = both().map(|(run, shell)| run.wall / shell.wall).collect();
        let ticks = |took: &MeasuredCost| f64::from(took.ticks);
        let processor: Vec<f64> = both().map(|(run, shell)| ticks(run) / ticks(shell)).collect();
        row(&format!("{name}: {kind}, {} in a shell", script.calls), &each(theirs));
        row(&format!("{name}: eval / {kind} (target 1.3)"), &gauge::spread(&wall));
        row(&format!("{name}: eval / {kind}, processor time"), &gauge::spread(&processor));
    }
    Ok(())
}

struct Field {
    bench: Bench,
    program: PathBuf,
    path: String,
}

impl Field {
    fn new(folder: &TempDir) -> Outcome<Self> {
        let bench = Bench::new(folder.path())?;
        let tools = bench.folder.join("tools");
        fs::create_dir_all(&tools)?;
        for (name, text) in INSTANT_PROGRAMS {
            fs::write(tools.join(name), text)?;
            fs::set_permissions(tools.join(name), fs::Permissions::from_mode(0o755))?;
        }
        let ideas: String =
            (0..EVALS_PER_COMMAND).map(|n| format!("Try it for the {n}th time\n\n")).collect();
        let files = [
            ("treebeam.toml", INSTANT_CONFIG),
            ("change.diff", CHANGE_TEMPLATE),
            ("base.csv", "config_id,status,a\n0,ok,1\n1,ok,2\n"),
            ("ideas.txt", &ideas),
        ];
        for (name, text) in files {
            fs::write(bench.folder.join("pristine").join(name), text)?;
        }
        bench.commit()?;
        let path = format!("{}:{}", tools.display(), std::env::var("PATH")?);
        Ok(Self { bench, program: released(&own_release()?)?, path })
    }

    fn variables(&self) -> Vec<(OsString, OsString)> {
        let others = self.bench.variables.iter().filter(|(name, _)| name != "PATH").cloned();
        others.chain([("PATH".into(), self.path.clone().into())]).collect()
    }

    fn drive(&self, variables: Vec<(OsString, OsString)>) -> Outcome<()> {
        let mut command = Command::new(&self.program);
        command.args([
            "eval",
            "--quiet",
            "--idea=ideas.txt",
            "--baseline=base.csv",
            "--run-id=bench",
        ]);
        command.current_dir(self.bench.repo()).env_clear().envs(variables);
        must(command.stdout(Stdio::null()).stderr(Stdio::null()))
    }

    /// Records an eval, and writes a script of its commands.
    fn script(&self) -> Outcome<Script> {
        self.bench.afresh()?;
        let programs = ["git", "instant-coder", "instant-reviewer", "instant-sweep"];
        let recorder = Recorder::new(&self.bench.folder, &programs, &self.path)?;
        self.drive(recorder.variables(&self.variables()))?;
        let run_dir = self.bench.repo().join(".treebeam/runs/bench");
        recorder.script(&run_dir, &self.bench.repo().join(".git"))
    }

    /// Returns the handwritten script.
    fn by_hand(&self) -> Outcome<Script> {
        let text = |(name, value): &(OsString, OsString)| {
            (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned())
        };
        let mut variables: BTreeMap<String, String> = self.variables().iter().map(text).collect();
        let settings = [
            ("user.name", "bench"),
            ("user.email", "bench@localhost"),
            ("core.fsync", "committed,loose-object,reference"),
        ];
        variables.insert("GIT_CONFIG_COUNT".to_owned(), settings.len().to_string());
        for (position, (name, value)) in settings.into_iter().enumerate() {
            variables.insert(format!("GIT_CONFIG_KEY_{position}"), name.to_owned());
            variables.insert(format!("GIT_CONFIG_VALUE_{position}"), value.to_owned());
        }
        let (repo, folder) = (self.bench.repo(), self.bench.folder.join("hand"));
        let text = format!(
            "set -e\nrepo='{0}'\nrm -rf '{1}'\nmkdir -p '{1}'\ncd \"$repo\"\nfor n in $(seq {EVALS_PER_COMMAND}); do{BY_HAND}done\n",
            repo.display(),
            folder.display()
        );
        let calls = COMMANDS_BY_HAND * usize::try_from(EVALS_PER_COMMAND)?;
        Script::new(self.bench.folder.join("by-hand.sh"), &text, variables, calls)
    }

    fn ours(&self) -> Outcome<MeasuredCost> {
        self.bench.afresh()?;
        timed(|| self.drive(self.variables()))
    }
}
