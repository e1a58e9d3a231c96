//! `treebeam ideas` on a plain repository, with an agent that is a script: existing ideas are kept,
//! missing ones are added, and nothing is paid for twice.

#![cfg(test)]
#![cfg(target_os = "linux")]

mod desk;
mod kills;
mod replies;
mod talks;
mod ways;
