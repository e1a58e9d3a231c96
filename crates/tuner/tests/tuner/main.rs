//! Tests of the tuner: in a beam against random search, on objectives with a known optimum.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "how many seeds to run stands in the environment")]

mod beam;
mod objective;
mod rules;

use beam::{Beam, random_search, tuned};
use objective::{Objective, Optimum};
use std::ops::Range;

/// Number of evals of both searches.
const EVALS: usize = 60;
/// Standard deviation of a measurement, as a share of the root's loss.
const NOISE: f64 = 0.05;

/// Results of several comparisons.
struct Figures {
    wins: u64,
    /// Mean logarithms of the true losses, of the tuner and of random search.
    ours: f64,
    theirs: f64,
}

fn compare(
    objective: Objective,
    optimum: Optimum,
    beam: Beam,
    noise: f64,
    seeds: Range<u32>,
) -> Figures {
    let mut figures = Figures { wins: 0, ours: 0.0, theirs: 0.0 };
    let count = f64::from(seeds.end - seeds.start);
    for seed in seeds.map(u64::from) {
        let world = objective.world(optimum, seed, noise);
        let ours = tuned(&world, seed, beam);
        let theirs = random_search(&world, seed, EVALS);
        figures.wins += u64::from(ours < theirs);
        figures.ours += ours.ln() / count;
        figures.theirs += theirs.ln() / count;
    }
    figures
}

#[test]
fn it_beats_random_search_in_16_of_20_seeds() {
    for objective in Objective::ALL {
        for width in [1, 2] {
            let beam = Beam { ideas: 5, width, evals: EVALS };
            let Figures { wins, .. } = compare(objective, Optimum::Near, beam, NOISE, 0..20);
            println!("{objective:?}, beam of {width}: {wins} of 20");
            assert!(wins >= 16, "{objective:?}, beam of {width}: {wins} of 20");
        }
    }
}

/// Ten times 20 seeds that were never used to tune the search.
#[test]
fn it_does_so_on_seeds_that_nobody_has_looked_at() {
    if std::env::var_os("TREEBEAM_CAMPAIGN").is_none() {
        return;
    }
    for objective in Objective::ALL {
        for (ideas, width) in [(5, 1), (5, 2), (7, 1)] {
            let beam = Beam { ideas, width, evals: EVALS };
            let group = |number: u32| {
                let first = 10_000 + 20 * number;
                compare(objective, Optimum::Near, beam, NOISE, first..first + 20).wins
            };
            let mut wins: Vec<u64> = (0..10).map(group).collect();
            wins.sort_unstable();
            println!("{objective:?}, {ideas} ideas, beam of {width}: wins of 20: {wins:?}");
            assert!(wins[0] >= 16, "{objective:?}, {ideas} ideas, beam of {width}: {wins:?}");
        }
    }
}

/// Prints the whole table, with many seeds, for people; asserts little.
#[test]
fn figures() {
    if std::env::var_os("TREEBEAM_CAMPAIGN").is_none() {
        return;
    }
    println!("| objective | optimum | noise | K | B | wins of 200 | loss | random search |");
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    for objective in Objective::ALL {
        for optimum in [Optimum::Near, Optimum::Anywhere] {
            for noise in [0.0, NOISE, 2.0 * NOISE] {
                for (ideas, width) in [(3, 1), (5, 1), (7, 1), (3, 2), (5, 2)] {
                    let beam = Beam { ideas, width, evals: EVALS };
                    let Figures { wins, ours, theirs } =
                        compare(objective, optimum, beam, noise, 0..200);
                    let (ours, theirs) = (ours.exp(), theirs.exp());
                    println!(
                        "| {objective:?} | {optimum:?} | {noise} | {ideas} | {width} | {wins} | {ours:.2} | {theirs:.2} |"
                    );
                    assert!(wins > 100, "no worse than chance");
                }
            }
        }
    }
}
