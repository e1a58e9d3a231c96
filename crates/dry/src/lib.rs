//! The dry world: no model and no sweep, everything else real. Ideas, patches and results are functions of the seed and of
//! the code they are about, so that every run of it ends the same, however parallel and however often interrupted.
//!
//! What will happen to an idea stands in its text: the coder appends the change to [`STATE_FILE`], the sweep computes its
//! CSV from that file, and the next node goes on from there.

mod agent;
mod clock;
mod executor;
mod recipe;
mod repo;
mod results;

pub use agent::DryAgent;
pub use clock::DryClock;
pub use executor::DryExecutor;
pub use recipe::DryRecipe;
pub use repo::FlakyCleanup;

/// The file of a candidate that says which changes were made to it, one a line.
pub const STATE_FILE: &str = "treebeam_dry_run.txt";
/// A second file, so that some changes touch two.
const NOTES_FILE: &str = "treebeam_dry_notes.txt";

/// A line of that file: whoever has it gets no ideas.
const NO_IDEAS_LINE: &str = "no-ideas";

/// A number that depends on the seed and the text alone.
fn draw_number(seed: u64, text: &str) -> u64 {
    let digest = treebeam_core::id::Sha256::hash_bytes(format!("{seed}/{text}").as_bytes());
    digest.as_bytes().iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}
