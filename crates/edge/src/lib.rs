//! The world behind the ports of treebeam. It knows nothing of the search and prints nothing.
//!
//! # Layout
//! [`agent`] is the door to models and programs that answer, [`process`] starts child processes, [`executor`] runs tests and sweeps, [`interrupt`] hears when the program is to end, [`git`] is the user's repository,
//! [`store`] a run on disk, [`clock`] the time on the wall, [`input`] opens the user's own files, [`user_state`] is what treebeam keeps for a user, [`env_file`] reads `.env` files, [`web`] is a small web server, and [`dry`] is the world
//! without a model and without a sweep.

pub mod agent;
pub mod clock;
pub mod dry;
pub mod env_file;
pub mod executor;
pub mod git;
pub mod ideas_dir;
pub mod input;
pub mod interrupt;
pub mod process;
pub mod store;
pub mod transition;
pub mod user_state;
pub mod web;
