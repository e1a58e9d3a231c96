//! Measures a long run of the real program with instant agents and sweeps.
//!
//! Compares the cost of an eval in the last quarter with the first, and the growth of the process's
//! memory.

use crate::dry::Bench;
use crate::gauge::{self, median};
use crate::{Outcome, own_release, released, row};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use treebeam_store::{RunDir, open_to_read};

const LONG_RUN_EVALS: usize = 2_000;
/// Number of evals in one sample: a depth.
const EVALS_PER_SAMPLE: usize = 40;
/// Number of copies of the state for measuring one: enough that idle memory does not matter.
const STATE_COPIES: usize = 65;
/// Interval between polls of the journal.
const JOURNAL_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Agent with ideas for a node, or a slightly better change, different for each idea: twins would
/// not be measured.
const AGENT_SCRIPT: &str = r#"if [ "$TREEBEAM_ROLE" = ideas ]; then
    n=0
    while [ $n -lt 20 ]; do
        n=$((n + 1))
        printf 'IDEA: way %s of node %s\nRATIONALE: to see\nREQUIRED_CHANGES: model.txt\n\n' $n "$TREEBEAM_NODE"
    done
else
    read -r line < model.txt
    score=$((${line%% *} + 50))
    printf -- '--- a/model.txt\n+++ b/model.txt\n@@ -1 +1 @@\n-%s\n+%s\n' "$line" "$score $TREEBEAM_EVAL"
fi
"#;
const SWEEP_SCRIPT: &str = r#"read -r score eval < model.txt
printf 'config_id,status,a\n0,ok,%s\n1,ok,%s\n' "$score" $((score + 1)) > "$AGENTIC_RESULTS_CSV"
"#;
const LONG_RUN_CONFIG: &str = "sweep_command = ['sh', 'sweep.sh']\nsweep_config_limit = 2\n\
    [score]\nprimary = 'a:higher'\nmetrics = [{ column = 'a', direction = 'higher', weight = 1.0 }]\n\
    [agents.ideas]\nprovider = 'command'\ncommand = ['sh', 'agent.sh']\n\
    [agents.coder]\nprovider = 'command'\ncommand = ['sh', 'agent.sh']\n";

/// Cost of some evals.
#[derive(Clone, Copy, Debug)]
struct LongRunSample {
    /// Wall time in milliseconds, for each eval.
    wall: f64,
    /// Processor time of the run's process alone in milliseconds, for each eval.
    processor: f64,
}

/// Prints the cost of an eval late in a run against early in it. The last quarter of one run and
/// the first of another take turns, a depth each, so that other load affects both.
pub(crate) fn long() -> Outcome<()> {
    let folder = gauge::in_memory()?;
    let program = released(&own_release()?)?;
    let mut old = Run::start(&folder.path().join("old"), &program)?;
    // At the end of a depth, as at the end of the run, so that the same is in memory.
    let quarter = (LONG_RUN_EVALS / 4).next_multiple_of(EVALS_PER_SAMPLE);
    old.go_on_to(quarter)?;
    let before = old.memory()?;
    old.go_on_to(LONG_RUN_EVALS - LONG_RUN_EVALS / 4)?;
    let mut young = Run::start(&folder.path().join("young"), &program)?;
    let mut pairs = Vec::new();
    for _ in 0..LONG_RUN_EVALS / 4 / EVALS_PER_SAMPLE {
        let early = young.sample()?;
        let late = old.sample()?;
        pairs.push((early, late));
    }
    let (after, record) = (old.memory()?, old.record()? / gauge::number(LONG_RUN_EVALS));
    let each = |pick: fn(&(LongRunSample, LongRunSample)) -> f64| {
        pairs.iter().map(pick).collect::<Vec<f64>>()
    };
    let (early, late) = (each(|(early, _)| early.wall), each(|(_, late)| late.wall));
    let wall = each(|(early, late)| late.wall / early.wall);
    let processor = |pick| each(pick).iter().sum::<f64>();
    let processor = processor(|(_, late)| late.processor) / processor(|(early, _)| early.processor);
    let first = format!("{LONG_RUN_EVALS} evals: first quarter, median");
    row(&first, &format!("{:.1} ms per eval", median(&early)));
    row("the same, last quarter", &format!("{:.1} ms per eval", median(&late)));
    row("last / first quarter, wall time (target 1.1)", &gauge::middle_half(&wall));
    row("last / first quarter, processor time of the runner", &format!("{processor:.2}"));
    let figure = format!("{before} and {after} KiB");
    row("memory of the runner at the end of the first and of the last quarter", &figure);
    let (before, after) = (f64::from(before), f64::from(after));
    row("last / first quarter, memory (target 1.1)", &format!("{:.2}", after / before));
    let each = (after - before) / gauge::number(LONG_RUN_EVALS - quarter);
    row("the same, for each eval between", &format!("{each:.2} KiB"));
    row("of that, the record of an eval", &format!("{record:.2} KiB"));
    row("the most that it ever had, reports written", &format!("{} KiB", old.end()?));
    Ok(())
}

pub(crate) fn furnished(folder: &Path) -> Outcome<Bench> {
    let bench = Bench::new(folder)?;
    for (name, text) in [
        ("treebeam.toml", LONG_RUN_CONFIG),
        ("agent.sh", AGENT_SCRIPT),
        ("sweep.sh", SWEEP_SCRIPT),
        ("model.txt", "1000\n"),
    ] {
        fs::write(bench.folder.join("pristine").join(name), text)?;
    }
    bench.commit()?;
    Ok(bench)
}

/// A run observed from outside, which is stopped except while it is measured.
struct Run {
    runner: Child,
    journal: Tail,
    folder: RunDir,
}

impl Run {
    fn start(folder: &Path, program: &Path) -> Outcome<Self> {
        fs::create_dir(folder)?;
        let bench = furnished(folder)?;
        bench.afresh()?;
        let mut command = Command::new(program);
        command.args(["run", "--quiet", "--run-id=bench", "--ideas-per-node=20", "--beam-width=2"]);
        command.args([
            "--max-depth=100",
            &format!("--max-total-idea-evals={}", LONG_RUN_EVALS + EVALS_PER_SAMPLE),
        ]);
        command.current_dir(bench.repo()).env_clear().envs(bench.variables.iter().cloned());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let runner = command.spawn()?;
        let folder = RunDir::new(bench.repo().join(".treebeam/runs/bench"));
        let journal = Tail::new(&folder.journal_path());
        let mut run = Self { runner, journal, folder };
        // The root's own sweep is no eval's.
        run.go_on_to(1)?;
        Ok(run)
    }

    /// Continues the run until this number of evals is scored.
    fn go_on_to(&mut self, evals: usize) -> Outcome<()> {
        self.tell(Signal::SIGCONT)?;
        while self.journal.scored()? < evals {
            if self.runner.try_wait()?.is_some() {
                return Err("the run has ended too early".into());
            }
            thread::sleep(JOURNAL_POLL_INTERVAL);
        }
        self.tell(Signal::SIGSTOP)
    }

    /// Measures the next evals.
    fn sample(&mut self) -> Outcome<LongRunSample> {
        let (before, ticks) = (self.journal.scored()?, self.ticks()?);
        let begun = Instant::now();
        self.go_on_to(before + EVALS_PER_SAMPLE)?;
        let wall = begun.elapsed().as_secs_f64() * 1000.0;
        let evals = gauge::number(self.journal.scored()? - before);
        let processor = f64::from(self.ticks()? - ticks) * 10.0;
        Ok(LongRunSample { wall: wall / evals, processor: processor / evals })
    }

    fn tell(&self, signal: Signal) -> Outcome<()> {
        Ok(kill(Pid::from_raw(i32::try_from(self.runner.id())?), signal)?)
    }

    /// Returns the processor time of the run's process.
    fn ticks(&self) -> Outcome<u32> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.runner.id()))?;
        let (_, stat) = stat.rsplit_once(')').ok_or("no name in `stat`")?;
        let own = stat.split_whitespace().skip(11).take(2);
        Ok(own.filter_map(|ticks| ticks.parse::<u32>().ok()).sum())
    }

    /// Returns the memory of the run's process, in KiB.
    fn memory(&self) -> Outcome<u32> {
        gauge::memory(&self.runner.id().to_string())
    }

    /// Continues the run to its end, and returns its peak memory in KiB.
    fn end(mut self) -> Outcome<u32> {
        self.tell(Signal::SIGCONT)?;
        let mut most = 0;
        while self.runner.try_wait()?.is_none() {
            // A process that has just ended has no figure.
            most = gauge::most_memory(&self.runner.id().to_string()).unwrap_or(most);
            thread::sleep(JOURNAL_POLL_INTERVAL);
        }
        Ok(most)
    }

    /// Returns the size of the run's state in memory, in KiB, measured by copies in this process.
    fn record(&self) -> Outcome<f64> {
        let state = open_to_read(&self.folder)?.state;
        let before = gauge::memory("self")?;
        let copies = vec![state; STATE_COPIES];
        let taken = gauge::memory("self")?.saturating_sub(before);
        drop(copies);
        Ok(f64::from(taken) / gauge::number(STATE_COPIES - 1))
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        drop(self.runner.kill());
        drop(self.runner.wait());
    }
}

/// A growing journal.
pub(crate) struct Tail {
    path: PathBuf,
    read: u64,
    scored: usize,
}

impl Tail {
    pub(crate) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), read: 0, scored: 0 }
    }

    /// Returns the number of scored evals so far.
    pub(crate) fn scored(&mut self) -> Outcome<usize> {
        let Ok(mut file) = File::open(&self.path) else { return Ok(0) };
        file.seek(SeekFrom::Start(self.read))?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        // An incomplete line is read the next time.
        let whole = text.rfind('\n').and_then(|end| text.get(..=end)).unwrap_or_default();
        self.read += u64::try_from(whole.len())?;
        self.scored += whole.matches("\"type\":\"scored\"").count();
        Ok(self.scored)
    }
}
