//! What the user asked for: the run's [`FixedSettings`], which stays as it is, and its [`RunLimits`], which may change on resume.
//! Defaults and presets stand here; where a value came from (file, environment, flag) is the program's business.

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

/// Everything that decides what a result of this run means. A resume that would change it is refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FixedSettings {
    /// K: how many ideas are tried on each node.
    pub ideas_per_node: NonZeroU32,
    /// B: how many candidates of a depth are promoted.
    pub beam_width: NonZeroU32,
    /// N: how many configurations of the sweep count; none means all.
    pub sweep_config_limit: Option<NonZeroU32>,
    /// Among which ideas a repeated one is looked for.
    pub dedupe_scope: DedupeScope,
    /// Which earlier ideas the generator is shown.
    pub ideas_context_strategy: ContextStrategy,
    /// How two sweeps are compared.
    pub score: ScorePolicy,
    /// What a candidate must fulfil.
    pub gate: GatePolicy,
    /// Globs of paths that no candidate may change.
    pub protect: Vec<String>,
    /// What the tree is compared with: it takes its part of the evals, and what is said at the end rests on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<ControlPolicy>,
    /// What is run to measure a code state.
    #[serde(flatten)]
    pub measure: MeasureSettings,
}

/// How far and how fast the run goes, and what it leaves behind. May change on resume, as a recorded event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunLimits {
    /// D: nodes of the depths 0…D−1 are expanded.
    pub max_depth: u32,
    /// The most evals that the run may create.
    pub max_total_idea_evals: Option<u32>,
    /// Whether a depth that promoted nothing ends the run; otherwise its frontier is expanded again.
    pub stop_on_empty_frontier: bool,
    /// Whether a failed eval ends the run after its depth.
    pub strict_fail_depth: bool,
    /// How often an eval that failed is tried again by itself. Runs of the first treebeam do not say.
    #[serde(default)]
    pub eval_retries: u32,
    /// How long the commands that measure a code state may take together, in seconds. Older runs do not say.
    #[serde(default)]
    pub eval_timeout_seconds: Option<NonZeroU32>,
    /// How many evals are under way at once.
    pub max_parallel_evals: NonZeroU32,
    /// How many of them on one node.
    pub max_parallel_per_node: Option<NonZeroU32>,
    /// How many sweeps run at once.
    pub sweep_max_parallel: Option<NonZeroU32>,
    /// How often a patch may go back to the coder after its first round.
    pub max_review_rounds: u32,
    /// Whether a candidate that the reviewer rejects to the end goes on all the same. Runs of the first treebeam do not say.
    #[serde(default)]
    pub proceed_on_max_review_rounds: bool,
    /// Whether candidates that were not promoted keep worktree and ref.
    pub keep_rejected_worktrees: bool,
    /// Whether failed evals keep worktree, ref and raw sweep output.
    pub keep_failed_artifacts: bool,
    /// The most that answers of agents may cost in all, in dollars. Runs without agents do not say this or what follows.
    #[serde(default)]
    pub max_cost_usd: Option<Finite>,
    /// The most tokens that they may take in all.
    #[serde(default)]
    pub max_tokens_total: Option<u64>,
    /// After this nothing is begun any more: no idea, no question, no sweep.
    #[serde(default)]
    pub deadline: Option<RunDeadline>,
    /// How many questions to agents are under way at once.
    #[serde(default = "llm_max_inflight")]
    pub llm_max_inflight: NonZeroU32,
    /// How many of them in a minute.
    #[serde(default)]
    pub llm_rate_limit: RateLimit,
    /// How idea generators know what was said before. Runs without conversations do not say this or what follows.
    #[serde(default = "ConversationMode::default_for_older_runs")]
    pub idea_conversation_mode: ConversationMode,
    /// The most turns that they are told again word by word.
    #[serde(default = "idea_history_window_turns")]
    pub idea_history_window_turns: NonZeroU32,
    /// The most characters of all that they are told again.
    #[serde(default = "idea_history_max_chars")]
    pub idea_history_max_chars: NonZeroU32,
    /// Who sums up the turns that they are told in short; nobody, and each has its line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary_agent: Option<AgentRole>,
}

/// How many turns are told again, if the user says nothing.
const fn idea_history_window_turns() -> NonZeroU32 {
    NonZeroU32::MIN.saturating_add(11)
}

/// How many characters of them, if the user says nothing.
const fn idea_history_max_chars() -> NonZeroU32 {
    NonZeroU32::MIN.saturating_add(19_999)
}

/// How many questions to agents are under way at once, if the user says nothing.
const fn llm_max_inflight() -> NonZeroU32 {
    NonZeroU32::MIN.saturating_add(7)
}

impl FixedSettings {
    /// N as a plain number.
    #[must_use]
    pub fn config_limit(&self) -> Option<u32> {
        self.sweep_config_limit.map(NonZeroU32::get)
    }
}

impl FixedSettings {
    /// What no candidate may change, as globs: where a sweep may write its results is among it.
    #[must_use]
    pub fn protected_globs(&self) -> Vec<String> {
        let results = self.measure.results_csv.iter().map(|path| globset::escape(path.as_str()));
        self.protect.iter().cloned().chain(results).collect()
    }

    /// What makes an input a protected one, as globs. That test files of any folder are protected by itself says nothing of a
    /// virtual environment, which is full of them.
    #[must_use]
    pub fn protected_input_globs(&self) -> Vec<String> {
        let anywhere =
            |glob: &&String| glob.starts_with("**/") && TEST_GLOBS.contains(&glob.as_str());
        self.protect.iter().filter(|glob| !anywhere(glob)).cloned().collect()
    }

    /// What measures a code state, each in one line.
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

/// Treebeam's own files, which are always protected.
const OWN_GLOBS: [&str; 2] = ["treebeam.toml", ".treebeam/**"];
/// What is protected where the user says nothing else: test files.
const TEST_GLOBS: [&str; 4] = ["**/test_*.py", "**/*_test.py", "**/conftest.py", "tests/**"];

/// What no candidate may change: treebeam's own files, and these.
#[must_use]
pub fn with_own_globs(globs: &[String]) -> Vec<String> {
    let own = OWN_GLOBS.iter().filter(|own| !globs.iter().any(|glob| glob == *own));
    own.map(|own| (*own).to_owned()).chain(globs.iter().cloned()).collect()
}

/// Among which ideas a repeated one is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DedupeScope {
    /// Those of the node and of its ancestors.
    NodePlusAncestors,
    /// Those of the whole run.
    Global,
    /// None: repeats are tried again.
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

/// Which earlier ideas the idea generator is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContextStrategy {
    /// Those of the ancestors, root first, and the node's own.
    NodePlusAncestors,
    /// The node's own.
    NodeOnly,
    /// Those of the whole run, of the depths before.
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

/// Which way a metric is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// More is better.
    Higher,
    /// Less is better.
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

/// One column that counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// Its name in the CSV's header.
    pub column: String,
    /// Which way it is better.
    pub direction: Direction,
    /// How much it counts.
    pub weight: Finite,
    /// Whether a regression of it is a risk regression: then the candidate is not worth exploring, whatever else it does.
    pub guard: bool,
}

/// Who chose the primary column, which decides what its absence means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChosenBy {
    /// The user named it: a CSV without it is an error.
    User,
    /// A preset: a CSV without it has no primary delta.
    Preset,
}

/// How two sweeps are compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScorePolicy {
    /// The metric that may not regress.
    pub primary: String,
    /// Who chose it.
    pub primary_chosen_by: ChosenBy,
    /// What counts, in order.
    pub metrics: Vec<Metric>,
    /// The column that names a configuration.
    pub id_column: String,
    /// The column that says whether a configuration ran.
    pub status_column: String,
    /// Columns that a candidate may not change.
    pub invariant_columns: Vec<String>,
    /// The numbers that the recommendation compares with.
    pub thresholds: ScoreThresholds,
}

/// The numbers that the recommendation compares with.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScoreThresholds {
    /// Worse by more than this part of the baseline: the primary has regressed.
    pub primary_regression: Finite,
    /// Worse by more than this part of the baseline: a guarded metric has regressed.
    pub risk_regression: Finite,
    /// A relative improvement counts as at most this, either way.
    pub clamp: Finite,
    /// Scores from here up are `strong`.
    pub strong: Finite,
    /// Scores from here up are `promising`, and worth exploring.
    pub promising: Finite,
    /// Scores from here up are `mixed`; below, `weak`.
    pub mixed: Finite,
}

/// What a candidate must fulfil beyond the recommendation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GatePolicy {
    /// How far the primary may fall below the parent's.
    pub primary_tolerance: Finite,
    /// Without a limit N: the fewest rows; none means as many as the root baseline has.
    pub min_rows: Option<u32>,
    /// Without a limit N: the smallest part of the rows that must be ok.
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
    /// The column that names a configuration, if the user says nothing.
    pub const DEFAULT_ID_COLUMN: &str = "config_id";
    /// The column that says whether a configuration ran, if the user says nothing.
    pub const DEFAULT_STATUS_COLUMN: &str = "status";

    /// The names of the built-in presets.
    pub const PRESET_NAMES: [&str; 1] = ["trading"];

    /// The preset of that name.
    #[must_use]
    pub fn from_preset(name: &str) -> Option<Self> {
        match name {
            "trading" => Some(Self::trading_preset()),
            _ => None,
        }
    }

    /// The built-in preset `trading`.
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

    /// The primary metric's direction; higher where it is no configured metric.
    #[must_use]
    pub fn primary_direction(&self) -> Direction {
        self.metrics
            .iter()
            .find(|metric| metric.column == self.primary)
            .map_or(Direction::Higher, |metric| metric.direction)
    }
}
