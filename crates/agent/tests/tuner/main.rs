//! The tuner with real git: its diffs apply and change one constant, and a whole run improves.

#![cfg(test)]

mod diffs;
mod run;
