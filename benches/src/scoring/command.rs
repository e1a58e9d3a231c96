//! Measures the whole command `treebeam score`, process start included, against `wc -l`.

use super::data::{COLUMN_COUNT, Digits, pair};
use crate::gauge::{WorkTime, median, middle_half, whole};
use crate::{Outcome, released, row};
use std::path::Path;
use std::process::Command;

const COMMAND_RUNS: usize = 200;
const WARM_UPS: usize = 10;

/// Prints the ratios at 100 rows. `release` is the folder of release builds.
pub(crate) fn command(folder: &Path, release: &Path) -> Outcome<()> {
    let program = released(release)?;
    let pair = pair(folder, 100, Digits::Five)?;
    let mut ours = Command::new(program);
    ours.arg("score").args(pair.files()).arg("--json");
    let mut floor = Command::new("wc");
    floor.arg("-l").args(pair.files());
    for _ in 0..WARM_UPS {
        whole(&mut ours)?;
        whole(&mut floor)?;
    }
    let (mut all, mut floors) = (Vec::new(), Vec::new());
    for _ in 0..COMMAND_RUNS {
        all.push(whole(&mut ours)?);
        floors.push(whole(&mut floor)?);
    }
    println!(
        "  100 x {COLUMN_COUNT}, `treebeam score BASE CAND --json` as a whole, runs: {COMMAND_RUNS}"
    );
    let ratio = |of: fn(&WorkTime) -> f64| {
        let runs = all.iter().zip(&floors);
        middle_half(&runs.map(|(ours, floor)| of(ours) / of(floor)).collect::<Vec<_>>())
    };
    row("  treebeam / `wc -l`, wall time (target 3)", &ratio(|took| took.wall));
    row("  treebeam / `wc -l`, processor time", &ratio(|took| took.processor));
    for (who, runs) in [("treebeam", &all), ("`wc -l`", &floors)] {
        let middle =
            |of: fn(&WorkTime) -> f64| median(&runs.iter().map(of).collect::<Vec<_>>()) * 1e3;
        let (processor, wall) = (middle(|took| took.processor), middle(|took| took.wall));
        let figures = format!("{processor:.2} ms, {wall:.2} ms");
        row(&format!("  {who}: processor time, wall time"), &figures);
    }
    Ok(())
}
