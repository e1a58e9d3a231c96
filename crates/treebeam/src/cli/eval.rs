//! Defines the flags of `treebeam eval` and `treebeam baseline`.

use super::{ConfigFlag, SpendingFlags};
use crate::config::bounded_values::{
    AtOnce, ConfigurationCount, LimitSetting, TimeoutSeconds, TreeWidth, WholeNumber,
};
use clap::Args;
use serde::Serialize;
use serde_json::{Error, Value, json};
use std::path::PathBuf;

pub(super) const EVAL_HELP: &str = "\
An eval is a run whose ideas are given: nothing is promoted, and the commit of each idea is kept as `tree/<run>/e<n>`. A \
Markdown file is one idea, a text file one for each paragraph, a folder one for each of its `.md` and `.txt` files. \
Without `--baseline` the sweep is run at the root first. `treebeam resume` goes on with an eval that was cut off.

Exit code: 0 whatever the scores, 1 if every idea failed.

Example: treebeam eval --idea wider-window.md --baseline baseline.csv";

#[derive(Debug, Args)]
pub(crate) struct EvalArgs {
    /// A file with ideas, or a folder of them [default: `ideas_file` of the configuration]
    #[arg(long, value_name = "PATH")]
    pub(crate) idea: Option<PathBuf>,
    /// Results of the root that are there already: its sweep is not run [default: `baseline_csv` of the configuration]
    #[arg(long, value_name = "CSV")]
    pub(crate) baseline: Option<PathBuf>,
    /// What candidates are compared with as the root's, if not the baseline
    #[arg(long, value_name = "CSV")]
    pub(crate) root_baseline: Option<PathBuf>,
    /// Test and sweep the one idea in this worktree, and leave it there as a commit on a detached HEAD
    #[arg(long, alias = "no-worktree")]
    pub(crate) in_place: bool,
    /// Keep the worktrees of all candidates
    #[arg(long)]
    pub(crate) keep_worktrees: bool,
    /// Only the first N ideas
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) iterations: Option<TreeWidth>,
    /// Only configurations with an id below N count, or `none` for all [default: all]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) sweep_config_limit: Option<LimitSetting<ConfigurationCount>>,
    #[command(flatten)]
    pub(crate) new: EvalSettingsFlags,
}

impl EvalArgs {
    /// Returns the settings of the flags, by key.
    pub(crate) fn flag_settings(&self) -> Result<Vec<Value>, Error> {
        settings_from_flags(&self.new, self.sweep_config_limit)
    }

    /// Returns the settings of the flags in the form that a resume takes, by key.
    pub(crate) fn resume_settings(&self) -> Result<Vec<Value>, Error> {
        let kept = self.keep_worktrees.then_some(true);
        let kept = json!({ "keep_rejected_worktrees": kept, "keep_failed_artifacts": kept });
        Ok([self.flag_settings()?, vec![kept]].concat())
    }
}

pub(super) const BASELINE_HELP: &str = "\
The sweep is run as for any candidate: in a worktree of its own, with the tests before it. Its results are checked as \
those of a run's root, and kept in the run that it makes; `--output`, or else `baseline_csv` of the configuration, is \
where they are copied to.

Example: treebeam baseline --commit v1.2 --output baseline.csv";

#[derive(Debug, Args)]
pub(crate) struct BaselineArgs {
    /// The commit [default: HEAD]
    #[arg(long, value_name = "COMMIT")]
    pub(crate) commit: Option<String>,
    /// Where the results are copied to [default: `baseline_csv` of the configuration, if it is set]
    #[arg(long, short, value_name = "CSV")]
    pub(crate) output: Option<PathBuf>,
    /// Only configurations with an id below N count, or `none` for all [default: all]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) sweep_config_limit: Option<LimitSetting<ConfigurationCount>>,
    #[command(flatten)]
    pub(crate) new: EvalSettingsFlags,
}

impl BaselineArgs {
    /// Returns the settings of the flags, by key.
    pub(crate) fn flag_settings(&self) -> Result<Vec<Value>, Error> {
        settings_from_flags(&self.new, self.sweep_config_limit)
    }
}

fn settings_from_flags(
    new: &EvalSettingsFlags,
    limit: Option<LimitSetting<ConfigurationCount>>,
) -> Result<Vec<Value>, Error> {
    Ok(vec![serde_json::to_value(new)?, json!({ "sweep_config_limit": limit })])
}

/// What `eval` and `baseline` share. Those that are written out are configuration keys by their own names.
#[derive(Debug, Args, Serialize)]
pub(crate) struct EvalSettingsFlags {
    /// How often an eval that fails is tried again by itself [default: 0]
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    pub(crate) eval_retries: Option<WholeNumber>,
    /// How long one attempt of an eval may take, or `none` [default: no limit]
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    pub(crate) eval_timeout_seconds: Option<LimitSetting<TimeoutSeconds>>,
    /// How many evals are under way at once [default: 1]
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    pub(crate) max_parallel_evals: Option<AtOnce>,
    /// How many sweeps run at once, or `none` [default: no limit]
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    pub(crate) sweep_max_parallel: Option<LimitSetting<AtOnce>>,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) spending: SpendingFlags,
    /// The run's name; by default the time it starts, as YYYYMMDD-HHMMSS in UTC
    #[arg(long, value_name = "ID", help_heading = "Options")]
    #[serde(skip)]
    pub(crate) run_id: Option<String>,
    /// Start without asking, whatever it may cost
    #[arg(long, short, help_heading = "Options")]
    #[serde(skip)]
    pub(crate) yes: bool,
    /// Show no progress
    #[arg(long, short, help_heading = "Options")]
    #[serde(skip)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    #[serde(skip)]
    pub(crate) config: ConfigFlag,
}
