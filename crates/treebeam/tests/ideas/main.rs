//! `treebeam ideas` on a plain repository, with an agent that is a script: what is there is kept, what is missing comes, and
//! nothing is paid for twice.

#![cfg(test)]
#![cfg(target_os = "linux")]

mod desk;
mod kills;
mod replies;
mod talks;
mod ways;
