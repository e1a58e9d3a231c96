//! The `local` executor and the program's hidden command `job`, through the port and with real
//! processes: all misbehaviours of tests and sweeps, and kills of any process at any time.

//!
//! # Layout
//! [`field`] is a run directory without a loop, [`ends`] tests how jobs end, [`many`] runs many at
//! once, [`kills`] kills runners and jobs, [`limits`] tests the time limits of adopted jobs,
//! [`left`] ends those of a run to be removed, [`drive`] is the whole loop, [`in_place`] jobs in a
//! user's worktree; [`transition`] reads the program's own list of its steps on disk.

#![cfg(test)]
#![cfg(target_os = "linux")]
#![expect(clippy::disallowed_methods, reason = "the tests start runners, and kill them")]

mod drive;
mod ends;
mod field;
mod in_place;
mod kills;
mod left;
mod limits;
mod many;
#[path = "../kill/transition.rs"]
mod transition;
