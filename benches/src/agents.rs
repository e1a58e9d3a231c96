//! Measures calls through the agent door, against a provider's Python library and bare bytes.
//!
//! The server answers at once, so that the difference is the overhead of each side. It judges
//! nothing.

mod bare;
mod door;
mod library;
mod server;

use crate::gauge::{self, WorkTime, middle_half};
use crate::{Outcome, row};
use bare::Bare;
use door::Behind;
use library::Library;
use server::Answers;

pub(crate) use server::serve;

/// Name of the task of a process that [`serve`]s.
pub(crate) const AGENTS_TASK: &str = "answers";

/// Prompt of each call.
const CALL_PROMPT: &str = "Say something.";

/// Number of concurrent calls, of calls in a round, and of rounds.
#[derive(Clone, Copy, Debug)]
struct CallCase {
    at_once: u32,
    calls: u32,
    rounds: usize,
}

const CALL_CASES: [CallCase; 2] = [
    CallCase { at_once: 1, calls: 200, rounds: 15 },
    CallCase { at_once: 200, calls: 2000, rounds: 9 },
];

/// A side of the comparison.
trait CallContender {
    /// Makes the calls of a round, and returns their cost.
    fn round(&mut self, case: CallCase) -> Outcome<WorkTime>;
}

/// Prints the cost of a call.
pub(crate) fn agents() -> Outcome<()> {
    let server = Answers::start()?;
    let (memory, disk) = (gauge::in_memory()?, gauge::on_disk()?);
    let mut bare = Bare::new(server.port);
    let mut door = Behind::new(server.port, memory.path())?;
    let mut door_on_disk = Behind::new(server.port, disk.path())?;
    let mut library = Library::start(server.port)?;
    println!("  with {}; (a to b) is the middle half of the rounds", library.version);
    for case in CALL_CASES {
        let mut all: [&mut dyn CallContender; 4] =
            [&mut bare, &mut door, &mut door_on_disk, &mut library];
        print(case, &measure(case, &mut all)?);
    }
    Ok(())
}

/// Measures each round of each contender. The first round is a warm-up, and each round starts with
/// another contender.
fn measure(case: CallCase, all: &mut [&mut dyn CallContender; 4]) -> Outcome<[Vec<WorkTime>; 4]> {
    let mut rounds: [Vec<WorkTime>; 4] = Default::default();
    for round in 0..=case.rounds {
        for turn in 0..all.len() {
            let place = (round + turn) % all.len();
            let took = all[place].round(case)?;
            if round > 0 {
                rounds[place].push(took);
            }
        }
    }
    Ok(rounds)
}

fn print(case: CallCase, [bare, door, door_on_disk, library]: &[Vec<WorkTime>; 4]) {
    let CallCase { at_once, calls, .. } = case;
    let calls = f64::from(calls);
    let say = |what: &str, figures: Vec<f64>| {
        row(&format!("{at_once} at once: {what}"), &middle_half(&figures));
    };
    let per_second = |rounds: &[WorkTime]| rounds.iter().map(|took| calls / took.wall).collect();
    let against = |one: &[WorkTime], other: &[WorkTime], of: fn(&WorkTime) -> f64| {
        one.iter().zip(other).map(|(one, other)| of(one) / of(other)).collect::<Vec<f64>>()
    };
    let added = |rounds: &[WorkTime]| {
        rounds.iter().zip(bare).map(|(took, bare)| (took.wall - bare.wall) / calls * 1e3).collect()
    };
    say("calls per second, bare exchange", per_second(bare));
    say("calls per second, library", per_second(library));
    say("calls per second, door, where fsync costs nothing", per_second(door));
    say("calls per second, door on a disk", per_second(door_on_disk));
    say(
        "door / library, calls per second, where fsync costs nothing",
        against(library, door, |t| t.wall),
    );
    say("door / library, calls per second, on a disk", against(library, door_on_disk, |t| t.wall));
    say(
        "door / library, processor time, where fsync costs nothing",
        against(door, library, |t| t.processor),
    );
    if at_once == 1 {
        say("added to a call by the library, ms", added(library));
        say("added to a call by the door where fsync costs nothing, ms", added(door));
        say("added to a call by the door on a disk, ms", added(door_on_disk));
    }
}
