//! The dry world: ideas, patches and results without a model or a sweep, everything else real. They
//! are functions of the seed and of the code, so that a run always ends the same, however parallel
//! and however often interrupted.
//!
//! An idea's effect is part of its text: the coder appends the change to [`STATE_FILE`], the sweep
//! computes its CSV from that file, and the next node continues from there.

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

/// File of a candidate that lists the changes made to it, one per line.
pub const STATE_FILE: &str = "treebeam_dry_run.txt";
/// A second file, so that some changes touch two.
const NOTES_FILE: &str = "treebeam_dry_notes.txt";

/// Line of the state file that makes a node get no ideas.
const NO_IDEAS_LINE: &str = "no-ideas";

/// Returns a number that depends only on the seed and the text.
fn draw_number(seed: u64, text: &str) -> u64 {
    let digest = treebeam_core::id::Sha256::hash_bytes(format!("{seed}/{text}").as_bytes());
    digest.as_bytes().iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}
