//! The conversation of a node's branch: earlier turns, the continuation of the next question, and
//! three files. It does not depend on which agent answers, or on the content of questions.
//!
//! # Layout
//! [`mod@recall`] builds a thread from the facts, [`mod@session`] leads the turns of one expansion,
//! [`mod@sum_up`] asks for a summary where one is wanted, [`document`] is the form of the files.

pub mod document;
mod recall;
mod session;
mod sum_up;

pub(crate) use recall::{ConversationThread, build_thread};
pub(crate) use session::{ConversationBrief, ConversationSession, TurnContext, TurnExchange};
pub(crate) use sum_up::ask_for_summary;
