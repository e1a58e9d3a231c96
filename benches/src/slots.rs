//! Measures evals whose sweeps sleep for three to six seconds, against the ideal schedule.
//!
//! The real program's total time is compared with the list schedule of the sleeping alone, in the
//! order of ids.

use crate::dry::Bench;
use crate::gauge;
use crate::{Outcome, must, own_release, released, row};
use jiff::Timestamp;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const SLEEPING_EVALS: u32 = 24;
const SLOT_COUNTS: [u32; 3] = [2, 4, 8];

/// Sweep that sleeps by the eval's number.
const SWEEP_SCRIPT: &str = r#"eval=${AGENTIC_OUTPUT_DIR%/*}
number=${eval##*/}
number=${number#0}; number=${number#0}; number=${number#0}
milli=$((3000 + number * 1237 % 3001))
sleep "$((milli / 1000)).$(printf %03d $((milli % 1000)))"
cp base.csv "$AGENTIC_RESULTS_CSV"
"#;
/// Coder with a different change for each idea: twins would not be measured.
const CODER_SCRIPT: &str = "exec sed \"s/^+x/+$TREEBEAM_EVAL/\" change.diff\n";
const CHANGE_TEMPLATE: &str =
    "diff --git a/new b/new\nnew file mode 100644\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+x\n";

/// Returns the time that the sweep of an eval sleeps, in seconds.
fn sleeps(eval: u32) -> f64 {
    f64::from(3000 + eval * 1237 % 3001) / 1000.0
}

/// Prints the ratios.
pub(crate) fn slots() -> Outcome<()> {
    let folder = gauge::on_disk()?;
    let (bench, program) = (furnished(folder.path())?, released(&own_release()?)?);
    for slots in SLOT_COUNTS {
        let took = makespan(&bench, &program, slots)?;
        let ideal = list_schedule(slots);
        row(
            &format!("{SLEEPING_EVALS} evals of 3 to 6 s, {slots} at once"),
            &format!("{took:.2} s"),
        );
        let what = format!("the same / the list schedule of the sleeping alone, {ideal:.2} s");
        row(&what, &format!("{:.3}", took / ideal));
    }
    Ok(())
}

fn furnished(folder: &Path) -> Outcome<Bench> {
    let bench = Bench::new(folder)?;
    let ideas: String =
        (0..SLEEPING_EVALS).map(|n| format!("Try it for the {n}th time\n\n")).collect();
    let config = "sweep_command = ['sh', 'sweep.sh']\nscore.primary = 'a'\n\
                  [agents.coder]\nprovider = 'command'\ncommand = ['sh', 'coder.sh']\n";
    for (name, text) in [
        ("treebeam.toml", config),
        ("sweep.sh", SWEEP_SCRIPT),
        ("coder.sh", CODER_SCRIPT),
        ("change.diff", CHANGE_TEMPLATE),
        ("base.csv", "config_id,status,a\n0,ok,1\n1,ok,2\n"),
        ("ideas.txt", &ideas),
    ] {
        fs::write(bench.folder.join("pristine").join(name), text)?;
    }
    bench.commit()?;
    Ok(bench)
}

/// Measures the time from the beginning of the first eval to the end of the last.
fn makespan(bench: &Bench, program: &PathBuf, slots: u32) -> Outcome<f64> {
    bench.afresh()?;
    let mut command = Command::new(program);
    command.args(["eval", "--quiet", "--idea=ideas.txt", "--baseline=base.csv", "--run-id=bench"]);
    command.args(["--max-parallel-evals", &slots.to_string()]);
    command.current_dir(bench.repo()).env_clear().envs(bench.variables.iter().cloned());
    must(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()))?;
    let manifest = fs::read(bench.repo().join(".treebeam/runs/bench/manifest.json"))?;
    let manifest: Value = serde_json::from_slice(&manifest)?;
    let evals = manifest["evaluations"].as_object().ok_or("no evals")?;
    let (mut begun, mut ended) = (Vec::new(), Vec::new());
    for eval in evals.values() {
        for (name, times) in [("started_at", &mut begun), ("finished_at", &mut ended)] {
            times.push(eval[name].as_str().ok_or("no time")?.parse::<Timestamp>()?);
        }
    }
    let (first, last) = (begun.iter().min().ok_or("no evals")?, ended.iter().max());
    Ok(last.ok_or("no evals")?.duration_since(*first).as_secs_f64())
}

/// Computes the total time if each eval, in turn, takes the first free slot.
fn list_schedule(slots: u32) -> f64 {
    let mut free: Vec<f64> = (0..slots).map(|_| 0.0).collect();
    for eval in 1..=SLEEPING_EVALS {
        free.sort_by(f64::total_cmp);
        if let Some(first) = free.first_mut() {
            *first += sleeps(eval);
        }
    }
    free.into_iter().fold(0.0, f64::max)
}
