//! Facts and decisions of treebeam, as pure functions and plain data. No files, processes,
//! environment, clock, threads, git, network or JSON text.
//!
//! # Layout
//! - Vocabulary: [`id`], [`num`], [`role`], [`group`] (tree or control group), [`path`] (files of a
//!   run), [`rules_version`].
//! - Input: [`policy`] and [`measure`] (what the user set), [`evidence`] (what was measured),
//!   [`event`] (what happened), with [`approval`], [`failure`] and [`subject`] (parts of events
//!   that other modules need without them).
//! - Search: [`facts`] (what is known), [`state`] (the fold of events into facts), [`plan`] (what
//!   to do next).
//! - Judgements: [`gate`], [`rank`], [`root_checks`] (checks that follow from the root's own
//!   sweep), [`protect`] (what may be changed), [`idea`] (what was tried before), [`audit`] (checks
//!   a whole run).
//! - Agents: [`bill`] (what their replies cost), [`conversation`] (the turns of a branch).
//!   [`nearest`] suggests a known name for a mistyped one.

pub mod approval;
pub mod audit;
pub mod bill;
pub mod conversation;
pub mod event;
pub mod evidence;
pub mod facts;
pub mod failure;
pub mod gate;
pub mod group;
pub mod id;
pub mod idea;
pub mod measure;
pub mod nearest;
pub mod num;
pub mod path;
pub mod plan;
pub mod policy;
pub mod protect;
pub mod rank;
pub mod role;
pub mod root_checks;
pub mod rules_version;
pub mod state;
pub mod subject;
