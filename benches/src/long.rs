//! A long run of the real program, with agents and a sweep that are over at once: what an eval costs in the last quarter of
//! it against the first, and how the runner's memory grows.

use crate::dry::Bench;
use crate::gauge::{self, median};
use crate::{Outcome, own_release, released, row};
use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const EVALS: usize = 2_000;
/// How many evals make one sample: one depth, but for the first.
const SAMPLE: usize = 40;
const QUARTER: usize = EVALS / SAMPLE / 4;
/// How often the journal is looked at.
const GLANCE: Duration = Duration::from_millis(20);

/// Ideas for a node, or a change that is a little better.
const AGENT: &str = r#"if [ "$TREEBEAM_ROLE" = ideas ]; then
    n=0
    while [ $n -lt 20 ]; do
        n=$((n + 1))
        printf 'IDEA: way %s of node %s\nRATIONALE: to see\nREQUIRED_CHANGES: model.txt\n\n' $n "$TREEBEAM_NODE"
    done
else
    read -r score < model.txt
    printf -- '--- a/model.txt\n+++ b/model.txt\n@@ -1 +1 @@\n-%s\n+%s\n' "$score" $((score + 50))
fi
"#;
const SWEEP: &str = r#"read -r score < model.txt
printf 'config_id,status,a\n0,ok,%s\n1,ok,%s\n' "$score" $((score + 1)) > "$AGENTIC_RESULTS_CSV"
"#;
const CONFIG: &str = "sweep_command = ['sh', 'sweep.sh']\nsweep_config_limit = 2\n\
    [score]\nprimary = 'a:higher'\nmetrics = [{ column = 'a', direction = 'higher', weight = 1.0 }]\n\
    [agents.ideas]\nprovider = 'command'\ncommand = ['sh', 'agent.sh']\n\
    [agents.coder]\nprovider = 'command'\ncommand = ['sh', 'agent.sh']\n";

/// How the run stood after some evals.
#[derive(Clone, Copy, Debug)]
struct Mark {
    evals: usize,
    wall: f64,
    /// Of the runner alone, in ticks.
    processor: u32,
    /// In KiB.
    memory: u32,
}

/// Prints what an eval costs late in the run against early in it.
pub(crate) fn long() -> Outcome<()> {
    let folder = gauge::in_memory()?;
    let bench = furnished(folder.path())?;
    let marks = run(&bench, &released(&own_release()?)?)?;
    let first = marks.get(..=QUARTER).ok_or("the run was too short")?;
    let last = marks.get(marks.len().saturating_sub(QUARTER + 1)..).unwrap_or_default();
    let wall = |marks: &[Mark]| median(&each(marks, |mark| mark.wall * 1000.0));
    let processor = |marks: &[Mark]| {
        let spent = |mark: &Mark| f64::from(mark.processor) * 10.0;
        let figures = each(marks, spent);
        figures.iter().sum::<f64>() / gauge::number(figures.len())
    };
    row(
        &format!("{EVALS} evals: first quarter, median"),
        &format!("{:.1} ms per eval", wall(first)),
    );
    row("the same, last quarter", &format!("{:.1} ms per eval", wall(last)));
    row(
        "last / first quarter, wall time (target 1.1)",
        &format!("{:.2}", wall(last) / wall(first)),
    );
    let figure =
        format!("{:.2} ({:.1} ms per eval)", processor(last) / processor(first), processor(last));
    row("last / first quarter, processor time of the runner", &figure);
    let memory = |marks: &[Mark]| marks.last().map_or(0, |mark| mark.memory);
    let figure = format!("{} and {} KiB", memory(first), memory(last));
    row("memory of the runner at the end of the first and of the last quarter", &figure);
    let (before, after) = (f64::from(memory(first)), f64::from(memory(last)));
    row("last / first quarter, memory (target 1.1)", &format!("{:.2}", after / before));
    let evals = |marks: &[Mark]| marks.last().map_or(0, |mark| mark.evals);
    let each = (after - before) / gauge::number(evals(last) - evals(first));
    row("the same, for each eval between", &format!("{each:.2} KiB"));
    Ok(())
}

/// What each eval took between one mark and the next.
fn each(marks: &[Mark], figure: impl Fn(&Mark) -> f64) -> Vec<f64> {
    let between = |pair: &[Mark]| match pair {
        [before, after] => {
            Some((figure(after) - figure(before)) / gauge::number(after.evals - before.evals))
        }
        _ => None,
    };
    marks.windows(2).filter_map(between).collect()
}

pub(crate) fn furnished(folder: &Path) -> Outcome<Bench> {
    let bench = Bench::new(folder)?;
    for (name, text) in [
        ("treebeam.toml", CONFIG),
        ("agent.sh", AGENT),
        ("sweep.sh", SWEEP),
        ("model.txt", "1000\n"),
    ] {
        fs::write(bench.folder.join("pristine").join(name), text)?;
    }
    bench.commit()?;
    Ok(bench)
}

/// Makes the run, and looks at it from outside.
fn run(bench: &Bench, program: &Path) -> Outcome<Vec<Mark>> {
    bench.afresh()?;
    let mut command = Command::new(program);
    command.args(["run", "--quiet", "--run-id=bench", "--ideas-per-node=20", "--beam-width=2"]);
    command.args(["--max-depth=100", &format!("--max-total-idea-evals={EVALS}")]);
    command.current_dir(bench.repo()).env_clear().envs(bench.variables.iter().cloned());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let begun = Instant::now();
    let mut runner = command.spawn()?;
    let path = bench.repo().join(".treebeam/runs/bench/journal.jsonl");
    let mut journal = Tail::new(&path);
    let mut marks = vec![Mark { evals: 0, wall: 0.0, processor: 0, memory: 0 }];
    while runner.try_wait()?.is_none() {
        thread::sleep(GLANCE);
        let evals = journal.scored()?;
        if evals / SAMPLE > marks.last().map_or(0, |mark| mark.evals) / SAMPLE {
            marks.extend(mark(&runner, evals, begun));
        }
    }
    if runner.wait()?.success() { Ok(marks) } else { Err("the run failed".into()) }
}

/// How the runner stands, while it is there.
fn mark(runner: &Child, evals: usize, begun: Instant) -> Option<Mark> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", runner.id())).ok()?;
    let status = fs::read_to_string(format!("/proc/{}/status", runner.id())).ok()?;
    let (_, stat) = stat.rsplit_once(')')?;
    let own = stat.split_whitespace().skip(11).take(2);
    let processor = own.filter_map(|ticks| ticks.parse::<u32>().ok()).sum();
    let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let memory = memory.split_whitespace().next()?.parse().ok()?;
    Some(Mark { evals, wall: begun.elapsed().as_secs_f64(), processor, memory })
}

/// A journal that grows.
pub(crate) struct Tail<'a> {
    path: &'a Path,
    read: u64,
    scored: usize,
}

impl<'a> Tail<'a> {
    pub(crate) fn new(path: &'a Path) -> Self {
        Self { path, read: 0, scored: 0 }
    }

    /// How many evals are scored by now.
    pub(crate) fn scored(&mut self) -> Outcome<usize> {
        let Ok(mut file) = File::open(self.path) else { return Ok(0) };
        file.seek(SeekFrom::Start(self.read))?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        // A line that is being written is read the next time.
        let whole = text.rfind('\n').and_then(|end| text.get(..=end)).unwrap_or_default();
        self.read += u64::try_from(whole.len())?;
        self.scored += whole.matches("\"type\":\"scored\"").count();
        Ok(self.scored)
    }
}
