//! The world behind the ports of treebeam. It knows nothing of the search and prints nothing.
//!
//! # Layout
//! [`process`] starts child processes, [`git`] is the user's repository, [`store`] a run on disk.

pub mod git;
pub mod process;
pub mod store;
