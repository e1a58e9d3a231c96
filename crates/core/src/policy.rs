//! Settings of a run: the [`FixedSettings`], which never change, and the [`RunLimits`], which may
//! change on resume. Defaults and presets are here; where a value came from (file, environment,
//! flag) is the program's business.

mod agents;
mod control;
mod deadline;

pub use agents::{RateLimit, RecordedAgents};
pub use control::{ControlPolicy, ControlShare};
pub use deadline::RunDeadline;

use crate::conversation::ConversationMode;
use crate::measure::MeasureSettings;
use crate::num::Finite;
use crate::role::AgentRole;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::num::NonZeroU32;

/// Settings that determine what a result means. A resume that would change them is refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FixedSettings {
    /// Number of ideas tried on each node (K).
    pub ideas_per_node: NonZeroU32,
    /// Number of candidates of a depth that are promoted (B).
    pub beam_width: NonZeroU32,
    /// Number of sweep configurations that count (N); `None` means all.
    pub sweep_config_limit: Option<NonZeroU32>,
    /// Ideas among which a repeated one is looked for.
    pub dedupe_scope: DedupeScope,
    /// Earlier ideas that the generator is shown.
    pub ideas_context_strategy: ContextStrategy,
    /// Settings for comparing two sweeps.
    pub score: ScorePolicy,
    /// Requirements on a candidate.
    pub gate: GatePolicy,
    /// Globs of paths that no candidate may change.
    pub protect: Vec<String>,
    /// Control group, if any. Fixed: it takes evals, and the final comparison rests on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<ControlPolicy>,
    /// Commands and inputs that measure a code state.
    #[serde(flatten)]
    pub measure: MeasureSettings,
}

/// Limits on the extent and speed of a run, and on what it leaves behind. They may change on
/// resume, as a recorded event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunLimits {
    /// Number of depths (D): nodes of the depths 0…D−1 are expanded.
    pub max_depth: u32,
    /// Maximum number of evals that the run may create.
    pub max_total_idea_evals: Option<u32>,
    /// True if a depth that promoted nothing ends the run; else its frontier is expanded again.
    pub stop_on_empty_frontier: bool,
    /// True if a failed eval ends the run after its depth.
    pub strict_fail_depth: bool,
    /// Number of automatic retries of a failed eval. Records of the first treebeam lack it.
    #[serde(default)]
    pub eval_retries: u32,
    /// Time limit in seconds for all measuring commands together. Older records lack it.
    #[serde(default)]
    pub eval_timeout_seconds: Option<NonZeroU32>,
    /// Maximum number of evals that run at once.
    pub max_parallel_evals: NonZeroU32,
    /// Maximum number of evals that run at once on one node.
    pub max_parallel_per_node: Option<NonZeroU32>,
    /// Maximum number of sweeps that run at once.
    pub sweep_max_parallel: Option<NonZeroU32>,
    /// Maximum number of times a patch returns to the coder after its first round.
    pub max_review_rounds: u32,
    /// True if a candidate that the reviewer rejects in every round proceeds anyway. Records of the
    /// first treebeam lack it.
    #[serde(default)]
    pub proceed_on_max_review_rounds: bool,
    /// True if candidates that were not promoted keep worktree and ref.
    pub keep_rejected_worktrees: bool,
    /// True if failed evals keep worktree, ref and raw sweep output.
    pub keep_failed_artifacts: bool,
    /// Maximum total cost of replies in dollars. Runs without agents lack this and all below.
    #[serde(default)]
    pub max_cost_usd: Option<Finite>,
    /// Maximum total number of tokens of agents' replies.
    #[serde(default)]
    pub max_tokens_total: Option<u64>,
    /// Time after which no new idea, question or sweep begins.
    #[serde(default)]
    pub deadline: Option<RunDeadline>,
    /// Maximum number of questions to agents in flight at once.
    #[serde(default = "llm_max_inflight")]
    pub llm_max_inflight: NonZeroU32,
    /// Maximum rate of questions to agents, per minute.
    #[serde(default)]
    pub llm_rate_limit: RateLimit,
    /// Way of using earlier turns for ideas. Runs without conversations lack this and the rest.
    #[serde(default = "ConversationMode::default_for_older_runs")]
    pub idea_conversation_mode: ConversationMode,
    /// Maximum number of turns that are replayed in full.
    #[serde(default = "idea_history_window_turns")]
    pub idea_history_window_turns: NonZeroU32,
    /// Maximum number of characters of the replayed history.
    #[serde(default = "idea_history_max_chars")]
    pub idea_history_max_chars: NonZeroU32,
    /// Role that writes the summary of older turns; `None`: one generated line per turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary_agent: Option<AgentRole>,
}

/// Default number of turns that are replayed in full.
const fn idea_history_window_turns() -> NonZeroU32 {
    NonZeroU32::MIN.saturating_add(11)
}

/// Default number of characters of the replayed history.
const fn idea_history_max_chars() -> NonZeroU32 {
    NonZeroU32::MIN.saturating_add(19_999)
}

/// Default number of questions to agents in flight at once.
const fn llm_max_inflight() -> NonZeroU32 {
    NonZeroU32::MIN.saturating_add(7)
}

impl FixedSettings {
    /// Returns N, the number of sweep configurations that count, as a plain number.
    #[must_use]
    pub fn config_limit(&self) -> Option<u32> {
        self.sweep_config_limit.map(NonZeroU32::get)
    }
}

impl FixedSettings {
    /// Returns the globs of what no candidate may change, including the path to which a sweep may
    /// write its results.
    #[must_use]
    pub fn protected_globs(&self) -> Vec<String> {
        let results = self.measure.results_csv.iter().map(|path| globset::escape(path.as_str()));
        self.protect.iter().cloned().chain(results).collect()
    }

    /// Returns the globs of protected inputs. The default globs for test files of any folder are
    /// left out: a virtual environment is full of such files.
    #[must_use]
    pub fn protected_input_globs(&self) -> Vec<String> {
        let anywhere =
            |glob: &&String| glob.starts_with("**/") && TEST_GLOBS.contains(&glob.as_str());
        self.protect.iter().filter(|glob| !anywhere(glob)).cloned().collect()
    }

    /// Returns the commands that measure a code state, one line each.
    #[must_use]
    pub fn command_lines(&self) -> Vec<String> {
        let MeasureSettings { setup_command, test_command, sweep_command, .. } = &self.measure;
        let all = [sweep_command, test_command, setup_command];
        all.into_iter().flatten().map(|command| command.to_argv().join(" ")).collect()
    }
}

impl Default for FixedSettings {
    fn default() -> Self {
        Self {
            ideas_per_node: NonZeroU32::MIN.saturating_add(6),
            beam_width: NonZeroU32::MIN,
            sweep_config_limit: None,
            dedupe_scope: DedupeScope::NodePlusAncestors,
            ideas_context_strategy: ContextStrategy::NodePlusAncestors,
            score: ScorePolicy::trading_preset(),
            gate: GatePolicy::default(),
            protect: with_own_globs(&TEST_GLOBS.map(str::to_owned)),
            control: None,
            measure: MeasureSettings::default(),
        }
    }
}

impl Default for RunLimits {
    fn default() -> Self {
        Self {
            max_depth: 3,
            max_total_idea_evals: None,
            stop_on_empty_frontier: true,
            strict_fail_depth: false,
            eval_retries: 0,
            eval_timeout_seconds: None,
            max_parallel_evals: NonZeroU32::MIN,
            max_parallel_per_node: None,
            sweep_max_parallel: None,
            max_review_rounds: 2,
            proceed_on_max_review_rounds: false,
            keep_rejected_worktrees: false,
            keep_failed_artifacts: false,
            max_cost_usd: None,
            max_tokens_total: None,
            deadline: None,
            llm_max_inflight: llm_max_inflight(),
            llm_rate_limit: RateLimit::default(),
            idea_conversation_mode: ConversationMode::default(),
            idea_history_window_turns: idea_history_window_turns(),
            idea_history_max_chars: idea_history_max_chars(),
            summary_agent: None,
        }
    }
}

/// Globs of treebeam's own files, which are always protected.
const OWN_GLOBS: [&str; 2] = ["treebeam.toml", ".treebeam/**"];
/// Globs that are protected by default: test files.
const TEST_GLOBS: [&str; 4] = ["**/test_*.py", "**/*_test.py", "**/conftest.py", "tests/**"];

/// Adds the globs of treebeam's own files to those of the user.
#[must_use]
pub fn with_own_globs(globs: &[String]) -> Vec<String> {
    let own = OWN_GLOBS.iter().filter(|own| !globs.iter().any(|glob| glob == *own));
    own.map(|own| (*own).to_owned()).chain(globs.iter().cloned()).collect()
}

/// Set of ideas among which a repeated one is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DedupeScope {
    /// Ideas of the node and of its ancestors.
    NodePlusAncestors,
    /// Ideas of the whole run.
    Global,
    /// No ideas: repeats are tried again.
    None,
}

impl fmt::Display for DedupeScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NodePlusAncestors => "node_plus_ancestors",
            Self::Global => "global",
            Self::None => "none",
        })
    }
}

/// Set of earlier ideas that the idea generator is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContextStrategy {
    /// Ideas of the ancestors, root first, and the node's own.
    NodePlusAncestors,
    /// Ideas of the node only.
    NodeOnly,
    /// Ideas of all earlier depths of the run.
    GlobalPriorIdeas,
}

impl fmt::Display for ContextStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NodePlusAncestors => "node_plus_ancestors",
            Self::NodeOnly => "node_only",
            Self::GlobalPriorIdeas => "global_prior_ideas",
        })
    }
}

/// Direction in which a metric is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Higher values are better.
    Higher,
    /// Lower values are better.
    Lower,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Higher => "higher",
            Self::Lower => "lower",
        })
    }
}

/// Column of the results CSV that enters the score.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// Column name in the CSV's header.
    pub column: String,
    /// Direction in which the metric is better.
    pub direction: Direction,
    /// Weight of the metric in the score.
    pub weight: Finite,
    /// True if a regression is a risk regression: the candidate is not worth exploring, whatever
    /// its other metrics.
    pub guard: bool,
}

/// Origin of the primary column, which decides how a CSV without it is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChosenBy {
    /// Named by the user: a CSV without it is an error.
    User,
    /// Named by a preset: a CSV without it has no primary delta.
    Preset,
}

/// Settings for comparing two sweeps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScorePolicy {
    /// Column of the metric that may not regress.
    pub primary: String,
    /// Origin of the primary column.
    pub primary_chosen_by: ChosenBy,
    /// Metrics that enter the score, in order.
    pub metrics: Vec<Metric>,
    /// Column with the id of a configuration.
    pub id_column: String,
    /// Column with the status of a configuration.
    pub status_column: String,
    /// Columns that a candidate may not change.
    pub invariant_columns: Vec<String>,
    /// Thresholds of the recommendation.
    pub thresholds: ScoreThresholds,
}

/// Thresholds of the recommendation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScoreThresholds {
    /// Share of the baseline; a primary metric that is worse by more has regressed.
    pub primary_regression: Finite,
    /// Share of the baseline; a guarded metric that is worse by more has regressed.
    pub risk_regression: Finite,
    /// Maximum relative improvement that counts, in either direction.
    pub clamp: Finite,
    /// Minimum score of the grade `strong`.
    pub strong: Finite,
    /// Minimum score of the grade `promising`, and of a candidate worth exploring.
    pub promising: Finite,
    /// Minimum score of the grade `mixed`; below it is `weak`.
    pub mixed: Finite,
}

/// Requirements on a candidate beyond the recommendation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GatePolicy {
    /// Maximum loss of the primary metric against the parent.
    pub primary_tolerance: Finite,
    /// Minimum number of rows without a limit N; `None` means as many as the root baseline has.
    pub min_rows: Option<u32>,
    /// Minimum share of ok rows without a limit N.
    pub min_ok_rate: Finite,
}

fn finite_literal(literal: f64) -> Finite {
    Finite::new(literal).unwrap_or_default()
}

impl Default for ScoreThresholds {
    fn default() -> Self {
        Self {
            primary_regression: finite_literal(0.05),
            risk_regression: finite_literal(0.10),
            clamp: finite_literal(2.0),
            strong: finite_literal(0.10),
            promising: finite_literal(0.03),
            mixed: finite_literal(-0.02),
        }
    }
}

impl Default for GatePolicy {
    fn default() -> Self {
        Self { primary_tolerance: Finite::ZERO, min_rows: None, min_ok_rate: finite_literal(1.0) }
    }
}

impl ScorePolicy {
    /// Default column with the id of a configuration.
    pub const DEFAULT_ID_COLUMN: &str = "config_id";
    /// Default column with the status of a configuration.
    pub const DEFAULT_STATUS_COLUMN: &str = "status";

    /// Names of the built-in presets.
    pub const PRESET_NAMES: [&str; 1] = ["trading"];

    /// Returns the preset with this name.
    #[must_use]
    pub fn from_preset(name: &str) -> Option<Self> {
        match name {
            "trading" => Some(Self::trading_preset()),
            _ => None,
        }
    }

    /// Returns the built-in preset `trading`.
    #[must_use]
    pub fn trading_preset() -> Self {
        use Direction::{Higher, Lower};
        let plain = |column: &str, direction, weight| Metric {
            column: column.to_owned(),
            direction,
            weight: finite_literal(weight),
            guard: false,
        };
        let guarded = |column, weight| Metric { guard: true, ..plain(column, Higher, weight) };
        Self {
            primary: "mean_topN_avg_return_per_trade_pct_oos".to_owned(),
            primary_chosen_by: ChosenBy::Preset,
            metrics: vec![
                plain("mean_topN_avg_return_per_trade_pct_oos", Higher, 3.0),
                plain("core_topN_cagr", Higher, 2.0),
                plain("core_topN_sharpe", Higher, 1.5),
                plain("core_topN_sortino", Higher, 1.5),
                plain("core_topN_calmar", Higher, 1.5),
                plain("rel_equity_ratio_end", Higher, 1.5),
                plain("rel_equity_ratio_cagr", Higher, 1.0),
                plain("rel_pct_outperform", Higher, 1.0),
                plain("rel_pct_underperform", Lower, 1.0),
                plain("core_topN_volatility", Lower, 0.75),
                guarded("core_topN_max_drawdown", 1.0),
                guarded("core_topN_cvar_05", 0.75),
                plain("sig_t_stat", Higher, 0.5),
                plain("sig_t_p_value", Lower, 0.5),
                plain("sig_bootstrap_prob_mean_gt0", Higher, 0.5),
            ],
            id_column: Self::DEFAULT_ID_COLUMN.to_owned(),
            status_column: Self::DEFAULT_STATUS_COLUMN.to_owned(),
            invariant_columns: Vec::new(),
            thresholds: ScoreThresholds::default(),
        }
    }

    /// Returns the direction of the primary metric: `Higher` if it is not among the metrics.
    #[must_use]
    pub fn primary_direction(&self) -> Direction {
        self.metrics
            .iter()
            .find(|metric| metric.column == self.primary)
            .map_or(Direction::Higher, |metric| metric.direction)
    }
}
