//! The conversation of a node's branch: what is remembered of it, how the next question goes on from that, and the three
//! files that are kept of it. Who answers, and what is asked, is not known here.
//!
//! # Layout
//! `recall` makes a thread from the facts, `session` leads the turns of one expansion, `sum_up`
//! asks for a summary where one is wanted, [`document`] is the form of the files.

pub mod document;
mod recall;
mod session;
mod sum_up;

pub(crate) use recall::{ConversationThread, build_thread};
pub(crate) use session::{ConversationBrief, ConversationSession, TurnContext, TurnExchange};
pub(crate) use sum_up::ask_for_summary;
