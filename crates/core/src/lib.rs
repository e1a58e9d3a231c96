//! Facts and decisions of treebeam. Pure: no files, processes, environment, clock, threads, git, network or JSON text.
//!
//! # Layout
//! [`id`] and [`num`] are the vocabulary, [`policy`] and [`measure`] what the user asked for, [`evidence`] what was measured and
//! [`event`] what happened, [`group`] to which part of the run, [`path`] where things lie. [`facts`] are what is known, [`state`] the fold that makes them and [`plan`] what to do next. The judgements:
//! [`sweep`] reads a results CSV, [`score`] and [`paired`] compare two of them, [`gate`] and [`rank`] decide by the rules of a [`rules_version`], [`versus`] compares the tree with its control group, [`mod@luck`] the best with what chance would show,
//! [`bill`] is what the answers of agents took, by [`role`]; [`protect`] and [`idea`] say what may be changed and what was tried before, [`audit`] checks a whole run.
//! [`conversation`] is what a branch has said and is told again. [`tuner`] is the agent that needs no model. [`root_checks`] is what follows for candidates from the root's own sweep. [`mod@nearest`] finds the name that a mistyped one was meant to be.

pub mod audit;
pub mod bill;
pub mod conversation;
pub mod event;
pub mod evidence;
pub mod facts;
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
