//! Defines the flags of `treebeam ideas`.

use super::agents::ConversationModeFlag;
use super::{ConfigFlag, SpendingFlags};
use crate::config::bounded_values::TreeWidth;
use clap::{Args, ValueEnum};
use serde::Serialize;
use std::path::PathBuf;
use treebeam_core::id::TurnId;

pub(super) const IDEAS_HELP: &str = "\
Ideas that are in the folder are kept, and as many are asked for as are missing: each becomes a file `NNN_<slug>.md`. A \
repeat of one that is there is asked for again. The agent of the role `ideas` answers; its answers are kept in \
`.treebeam/calls`, so that a call that was cut off pays for nothing twice. `treebeam eval --idea DIR` tries the ideas.

Exit code: 1 if no idea came, 3 if another process writes into the folder.

Example: treebeam ideas --count 5 --ideas-dir ideas";

#[derive(Debug, Args)]
pub(crate) struct IdeasArgs {
    /// How many ideas there are to be in the folder [default: `ideas_per_node` of the configuration]
    #[arg(long, value_name = "K", allow_negative_numbers = true)]
    pub(crate) count: Option<TreeWidth>,
    /// The folder of ideas; it is made if need be
    #[arg(long, value_name = "DIR")]
    pub(crate) ideas_dir: PathBuf,
    /// A folder of ideas that are told, and not to be proposed again; may be given several times
    #[arg(long, value_name = "DIR")]
    pub(crate) context_ideas_dir: Vec<PathBuf>,
    /// Which ideas are told [default: `ideas_context_strategy` of the configuration]
    #[arg(long, value_name = "STRATEGY")]
    pub(crate) context_strategy: Option<ContextStrategyFlag>,
    /// A text about the baseline that is told, such as the results of a sweep
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline_context: Option<PathBuf>,
    /// Files, or folders of `.md` and `.txt` files, that are told, seen from the repository's top
    #[arg(long, value_name = "PATH,…", value_delimiter = ',')]
    pub(crate) ideas_context_files: Option<Vec<String>>,
    /// Set the ideas aside that are in the folder, into `set_aside/<time>`, and ask for others in their place
    #[arg(long)]
    pub(crate) force_regenerate_ideas: bool,
    /// A conversation to go on from: a file that the next flag wrote, or one of a run, `conversations/c0003.json`
    #[arg(long, value_name = "FILE")]
    pub(crate) conversation_state_in: Option<PathBuf>,
    /// Where the conversation goes, with what is said now; it may be the same file
    #[arg(long, value_name = "FILE")]
    pub(crate) conversation_state_out: Option<PathBuf>,
    /// How the agent knows what was said before [default: `idea_conversation_mode` of the configuration]
    #[arg(long, value_name = "MODE")]
    pub(crate) conversation_mode: Option<ConversationModeFlag>,
    /// Go on from this turn, such as `c0000-t1`, as if nothing had been said after it
    #[arg(long, value_name = "TURN", requires = "conversation_state_in")]
    pub(crate) fork_from_turn_id: Option<TurnId>,
    #[command(flatten)]
    pub(crate) spending: SpendingFlags,
    /// Start without asking, whatever it may cost
    #[arg(long, short, help_heading = "Options")]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) config: ConfigFlag,
}

/// Which earlier ideas a generator is told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ContextStrategyFlag {
    /// Those of the node and of its ancestors; without a run, those of the folder and of the context folders
    #[value(name = "node_plus_ancestors")]
    NodePlusAncestors,
    /// Those of the node; without a run, those of the folder
    #[value(name = "node_only")]
    NodeOnly,
    /// Those of the whole run; without a run, those of the repository's runs too
    #[value(name = "global_prior_ideas")]
    GlobalPriorIdeas,
}
