//! Kills at random moments, again and again: a larger run, with a seed that is printed on failure.

use super::{BINARY, is_campaign, traces};
use treebeam_testkit::fault::Fault;
use treebeam_testkit::program::{SITE_RUN_ID, Site};

/// Number of kills in each run.
const KILLS: u32 = 30;
/// Number of runs; in a campaign enough for a thousand kills.
const RUNS: u64 = 3;
const CAMPAIGN: u64 = 34;

const LARGE: [&str; 4] = ["--ideas-per-node=5", "--max-depth=3", "--beam-width=2", "--quiet"];

fn words(parallel: &str) -> Vec<&str> {
    let start = ["run", "--dry-run", "--run-id", SITE_RUN_ID, "--max-parallel-evals", parallel];
    [&start[..], &LARGE].concat()
}

/// Pseudo-random numbers from a seed.
struct Lot(u64);

impl Lot {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}

/// Makes a run of this seed, killed on the way; each process makes at most this many operations.
fn killed(seed: u64, longest: u64) -> (Site, Vec<String>) {
    let (site, mut lot, mut plans) = (Site::new(BINARY), Lot(seed), Vec::new());
    let words = words(["1", "4", "2"][usize::try_from(seed % 3).expect("small")]);
    for _ in 0..KILLS {
        let when = ["before", "amid", "after"][usize::try_from(lot.below(3)).expect("small")];
        let plan = format!("kill {when} {}", 1 + lot.below(longest));
        let said = site.call_with_fault(&Fault::plan(&plan), &words);
        plans.push(plan);
        let ended = format!("seed {seed}, after {plans:?}: {}", said.stderr);
        assert_eq!(said.code, None, "it was through, or failed: {ended}");
    }
    let said = site.call(&words);
    assert_eq!(said.code, Some(0), "seed {seed}, after {plans:?}: {}", said.stderr);
    (site, plans)
}

#[test]
fn a_run_that_is_killed_at_random_ends_the_same() {
    let (whole, fault) = (Site::new(BINARY), Fault::none());
    let _ = whole.call_with_fault(&fault, &words("1")).exits(0);
    whole.must_be_sound();
    let all =
        fault.operations().iter().map(|operation| operation.number).max().expect("operations");
    // On average half of this is done each time, and a part of that is done again the next time.
    let longest = all / 20;
    for seed in 0..if is_campaign() { CAMPAIGN } else { RUNS } {
        let (site, plans) = killed(seed, longest);
        eprintln!("seed {seed}, of {all} operations: {plans:?}");
        site.must_be_sound();
        whole.must_equal(&site);
        traces::same(&whole, &site);
    }
}
