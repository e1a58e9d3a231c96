//! The tuner with real git: its diffs apply and change one constant, and a whole run with it gets better.

#![cfg(test)]

mod diffs;
mod run;
