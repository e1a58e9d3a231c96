//! The whole command `treebeam score`, from the start of the process to its end, against `wc -l` of the same files.

use super::data::{Digits, pair};
use crate::gauge::{median, middle_half, whole};
use crate::{Outcome, must, row};
use std::path::Path;
use std::process::{Command, Stdio};

const RUNS: usize = 200;
const WARM_UPS: usize = 10;

/// Prints the ratios at 100 rows. `release` is the folder that release builds lie in.
pub(crate) fn command(folder: &Path, release: &Path) -> Outcome<()> {
    build(release)?;
    let pair = pair(folder, 100, Digits::Five)?;
    let mut ours = Command::new(release.join("treebeam"));
    ours.arg("score").args(pair.files()).arg("--json");
    let mut floor = Command::new("wc");
    floor.arg("-l").args(pair.files());
    for _ in 0..WARM_UPS {
        whole(&mut ours)?;
        whole(&mut floor)?;
    }
    let (mut all, mut floors) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        all.push(whole(&mut ours)?);
        floors.push(whole(&mut floor)?);
    }
    let name = "100 x 120, `treebeam score BASE CAND --json`";
    let runs = || all.iter().zip(&floors);
    let wall: Vec<f64> = runs().map(|(ours, floor)| ours.wall / floor.wall).collect();
    let processor: Vec<f64> =
        runs().map(|(ours, floor)| ours.processor / floor.processor).collect();
    row(&format!("{name} / `wc -l`, wall time, {RUNS} runs (target 3)"), &middle_half(&wall));
    row(&format!("{name} / `wc -l`, processor time"), &middle_half(&processor));
    for (who, took) in [("treebeam score", &all), ("wc -l", &floors)] {
        let wall: Vec<f64> = took.iter().map(|took| took.wall * 1e3).collect();
        let processor: Vec<f64> = took.iter().map(|took| took.processor * 1e3).collect();
        let figures = format!("{:.2} ms, {:.2} ms", median(&processor), median(&wall));
        row(&format!("{name}: {who}: processor and wall time"), &figures);
    }
    Ok(())
}

/// Builds the program as it is released, into the folder that this bench lies in.
fn build(release: &Path) -> Outcome<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let target = release.parent().ok_or("no target directory")?;
    must(
        Command::new(cargo)
            .args(["build", "--quiet", "--release", "--package", "treebeam", "--target-dir"])
            .arg(target)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .stdin(Stdio::null()),
    )
}
