//! The conversation of a node's branch: what is remembered of it, how the next question goes on from that, and the three
//! files that are kept of it. Who answers, and what is asked, is not known here.
//!
//! # Layout
//! `recall` makes a thread from the facts, `talk` leads the turns of one expansion, `sum_up` asks for a summary where
//! one is wanted, [`document`] is the form of the files.

pub mod document;
mod recall;
mod sum_up;
mod talk;

pub(crate) use recall::{Thread, thread};
pub(crate) use sum_up::sum_up;
pub(crate) use talk::{ForTalk, Said, Talk, Told};
