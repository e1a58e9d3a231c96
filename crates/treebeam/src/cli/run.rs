//! Defines the flags of `treebeam run` and `treebeam resume`.

use super::{ConfigFlag, ContextStrategyFlag, ConversationFlags, SpendingFlags};
use crate::config::bounded_values::{
    AtOnce, ConfigurationCount, LimitSetting, SilenceSeconds, TimeoutSeconds, TreeWidth,
    WholeNumber,
};
use crate::config::control::ControlSetting;
use crate::config::deadline::DeadlineSetting;
use clap::{ArgAction, Args, ValueEnum};
use serde::Serialize;

/// Flag ids of [`RedoFlags`], for flags that conflict with all of them.
const REDO_FLAGS: [&str; 3] = ["retry_failed", "rerun_evals", "force_regenerate_ideas"];

#[derive(Debug, Default, Args)]
pub(crate) struct RunArgs {
    /// The run's name; by default the time it starts, as YYYYMMDD-HHMMSS in UTC
    #[arg(long, alias = "tree-run-id", value_name = "ID")]
    pub(crate) run_id: Option<String>,
    /// No model and no sweep: show the whole search on this repository with made-up ideas and results
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Go on with the run if there is one of that name (the default)
    #[arg(long, conflicts_with = "no_resume")]
    pub(crate) resume: bool,
    /// Refuse a run id that is taken
    #[arg(long, conflicts_with_all = REDO_FLAGS)]
    pub(crate) no_resume: bool,
    /// Start without asking, whatever it may cost
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Do a recorded run again: its ideas and edits come from disk and nobody is asked, its tests and sweeps are run; then
    /// say whether the tree is the same
    #[arg(long, value_name = "RUN", conflicts_with_all = ["dry_run", "resume", "report_only", "validate_only"], conflicts_with_all = REDO_FLAGS)]
    pub(crate) replay: Option<String>,
    /// Only validate and rewrite the reports, as `treebeam report` does
    #[arg(long, conflicts_with_all = ["dry_run", "validate_only"], conflicts_with_all = REDO_FLAGS)]
    pub(crate) report_only: bool,
    /// Only check the run's integrity, as `treebeam validate` does
    #[arg(long, conflicts_with = "dry_run", conflicts_with_all = REDO_FLAGS)]
    pub(crate) validate_only: bool,
    #[command(flatten)]
    pub(crate) config: ConfigFlag,
    #[command(flatten)]
    pub(crate) meaning: FixedSettingsFlags,
    #[command(flatten)]
    pub(crate) going: ResumableFlags,
}

#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// The run; the latest unfinished one if it is left out
    pub(crate) run: Option<String>,
    /// A run knows its world: this says nothing new
    #[arg(long, hide = true)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) config: ConfigFlag,
    #[command(flatten)]
    pub(crate) meaning: FixedSettingsFlags,
    #[command(flatten)]
    pub(crate) going: ResumableFlags,
}

/// What a result of the run means; cannot be changed on resume. Each flag is a configuration key by its own name.
#[derive(Debug, Default, Args, Serialize)]
#[command(next_help_heading = "What the run means (a resume cannot change it)")]
pub(crate) struct FixedSettingsFlags {
    /// K: how many ideas are tried on each node [default: 7]
    #[arg(long, value_name = "K", allow_negative_numbers = true)]
    pub(crate) ideas_per_node: Option<TreeWidth>,
    /// B: how many candidates of a depth are promoted [default: 1]
    #[arg(long, value_name = "B", allow_negative_numbers = true)]
    pub(crate) beam_width: Option<TreeWidth>,
    /// N: how many configurations of the sweep count, or `none` for all [default: all]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) sweep_config_limit: Option<LimitSetting<ConfigurationCount>>,
    /// Among which ideas a repeated one is looked for [default: `node_plus_ancestors`]
    #[arg(long, value_name = "SCOPE")]
    pub(crate) dedupe_scope: Option<DedupeScopeFlag>,
    /// Of which earlier ideas a generator is told [default: `node_plus_ancestors`]
    #[arg(long, value_name = "STRATEGY")]
    pub(crate) ideas_context_strategy: Option<ContextStrategyFlag>,
    /// A part of the evals goes to ideas that are tried on the root alone, and the report says whether the tree beat them at
    /// the same spend: `best-of-n` takes a quarter, `best-of-n=0.4` another part, or `none` [default: none]
    #[arg(long, value_name = "best-of-n[=PART]")]
    pub(crate) control: Option<ControlSetting>,
}

/// How the run goes on, now. Those that are written out are configuration keys by their own names.
#[derive(Debug, Default, Args, Serialize)]
pub(crate) struct ResumableFlags {
    /// Files, or folders of `.md` and `.txt` files, that a generator of ideas is told, seen from the repository's top
    #[arg(long, value_name = "PATH,…", value_delimiter = ',', help_heading = "Options")]
    pub(crate) ideas_context_files: Option<Vec<String>>,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) reach: RunLimitsFlags,
    #[command(flatten)]
    #[serde(skip)]
    pub(crate) again: RedoFlags,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) spending: SpendingFlags,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) talk: ConversationFlags,
    /// How long the run's owner on another host may be silent before it counts as dead [default: 600]
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, help_heading = "Options")]
    pub(crate) lock_stale_seconds: Option<SilenceSeconds>,
    /// Take the run from an owner on another host, and go on from the manifest alone if the journal is missing or too
    /// short; a living owner on this host keeps the run
    #[arg(long, help_heading = "Options")]
    #[serde(skip)]
    pub(crate) force: bool,
    /// Go on with a run though a configuration file of the repository, not committed as it is, names other programs, paths,
    /// variables or addresses than the run has on record; without it a terminal is asked
    #[arg(long, help_heading = "Options")]
    #[serde(skip)]
    pub(crate) accept_config: bool,
    /// Show no progress
    #[arg(long, short, help_heading = "Options")]
    #[serde(skip)]
    pub(crate) quiet: bool,
}

/// How far and how fast the run goes; may change on resume. Each flag is a configuration key by its own name.
#[derive(Debug, Default, Args, Serialize)]
#[command(next_help_heading = "How far and how fast it goes (a resume keeps what is not given)")]
pub(crate) struct RunLimitsFlags {
    /// D: nodes of the depths 0…D−1 are expanded [default: 3]
    #[arg(long, value_name = "D", allow_negative_numbers = true)]
    pub(crate) max_depth: Option<WholeNumber>,
    /// The most evals that the run may create, or `none` [default: no limit]
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    pub(crate) max_total_idea_evals: Option<LimitSetting<WholeNumber>>,
    /// Whether a depth that promotes nothing ends the run; if not, its nodes are expanded again [default: true]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", action = ArgAction::Set)]
    pub(crate) stop_on_empty_frontier: Option<bool>,
    /// Whether a failed eval ends the run after its depth [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", action = ArgAction::Set)]
    pub(crate) strict_fail_depth: Option<bool>,
    /// How often an eval that fails from now on is tried again by itself, each time with a new question to the coder; not
    /// one that changes nothing, or only what is protected [default: 0]
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    pub(crate) eval_retries: Option<WholeNumber>,
    /// How long one attempt of an eval may take, answers, setup, tests and sweep together, or `none` [default: no limit]
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    pub(crate) eval_timeout_seconds: Option<LimitSetting<TimeoutSeconds>>,
    /// How many evals are under way at once [default: 1]
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    pub(crate) max_parallel_evals: Option<AtOnce>,
    /// How many of them on one node, or `none` [default: no limit]
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    pub(crate) max_parallel_per_node: Option<LimitSetting<AtOnce>>,
    /// How many sweeps run at once, or `none` [default: no limit]
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    pub(crate) sweep_max_parallel: Option<LimitSetting<AtOnce>>,
    /// After this nothing begins any more, and only sweeps that run come to their end: a time of day such as `07:00`, how
    /// long after the run's beginning such as `8h`, a moment such as `2026-01-31T07:00:00Z`, or `none` [default: none]
    #[arg(long, value_name = "TIME")]
    pub(crate) deadline: Option<DeadlineSetting>,
    /// Keep worktree and ref of candidates that were not promoted [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", action = ArgAction::Set)]
    pub(crate) keep_rejected_worktrees: Option<bool>,
    /// Keep worktree, ref and raw sweep output of failed evals [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", action = ArgAction::Set)]
    pub(crate) keep_failed_artifacts: Option<bool>,
}

/// What is done again at the depth that is open, or at the last one where nothing was promoted from it; other closed depths
/// stand. Each is a wish for once, and no configuration key.
#[derive(Debug, Default, Args)]
#[command(
    next_help_heading = "Doing it again (once, as this call begins; at the open depth, or at the last one if it promoted nothing)"
)]
pub(crate) struct RedoFlags {
    /// Put failed evals back into the queue, whatever they failed of, as their next attempt: a candidate whose time was too
    /// short, or where no sweep of the depth came to its end, is swept again as it is, once; what else failed is implemented
    /// and swept anew. Nodes that no ideas came for are asked again. Given again, it acts on what has failed since
    #[arg(long)]
    pub(crate) retry_failed: bool,
    /// Evaluate completed evals again under new ids, which count as evals: each costs an implementation and a sweep. What
    /// was measured before stays on record, and counts no more
    #[arg(long)]
    pub(crate) rerun_evals: bool,
    /// Set ideas aside that have not begun, and ask for others in their place: costs a question for each node, and what
    /// the answers before have cost. Ideas that have begun stay; where no others come, those set aside are tried after all
    #[arg(long)]
    pub(crate) force_regenerate_ideas: bool,
}

#[derive(Clone, Copy, Debug, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DedupeScopeFlag {
    /// Those of the node and of its ancestors
    #[value(name = "node_plus_ancestors")]
    NodePlusAncestors,
    /// Those of the whole run
    #[value(name = "global")]
    Global,
    /// None: repeats are tried again
    #[value(name = "none")]
    None,
}
