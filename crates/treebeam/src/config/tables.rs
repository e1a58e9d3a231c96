//! Defines [`ConfigTables`]: every key with the type that checks its value.
//!
//! Also applies the top-level keys to a run's settings. The other tables have modules of their own.

use super::agents::AgentsTable;
use super::bounded_values::{
    AtOnce, ConfigurationCount, FileKibibytes, FolderPath, LimitSetting, MemoryChars, PathGlobs,
    SilenceSeconds, TimeoutSeconds, TreeWidth, TurnCount, WholeNumber,
};
use super::control::ControlSetting;
use super::deadline::DeadlineSetting;
use super::gate::GateTable;
use super::measure::{MeasureOverrides, ValueOrNone};
use super::outage::OutagePatience;
use super::prompts::{ContextChars, ContextTable, PromptsTable, UserFilePath};
use super::score::{PrimaryMetric, ScoreContradiction, ScoreTable};
use super::spending::{DollarLimit, PricesTable, RateLimitSetting, TokenCount};
use super::summary_agent::SummaryAgentSetting;
use super::table;
use super::tuner::TunerTable;
use serde::Deserialize;
use treebeam_core::conversation::ConversationMode;
use treebeam_core::measure::{CommandLine, CommandWord, UserPath, VariableName, WorktreePath};
use treebeam_core::policy::{self, ContextStrategy, DedupeScope, FixedSettings, RunLimits};

/// All keys of a configuration, typed.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ConfigTables {
    ideas_per_node: Option<TreeWidth>,
    beam_width: Option<TreeWidth>,
    sweep_config_limit: Option<LimitSetting<ConfigurationCount>>,
    dedupe_scope: Option<DedupeScope>,
    ideas_context_strategy: Option<ContextStrategy>,
    protect: Option<PathGlobs>,
    control: Option<ControlSetting>,
    setup_command: Option<ValueOrNone<CommandLine>>,
    test_command: Option<ValueOrNone<CommandLine>>,
    test_cwd: Option<ValueOrNone<WorktreePath>>,
    sweep_command: Option<ValueOrNone<CommandLine>>,
    sweep_cwd: Option<ValueOrNone<WorktreePath>>,
    sweep_config_limit_flag: Option<ValueOrNone<CommandWord>>,
    results_csv: Option<ValueOrNone<WorktreePath>>,
    baseline_csv: Option<ValueOrNone<UserPath>>,
    pass_env: Option<Vec<VariableName>>,
    inputs: Option<Vec<WorktreePath>>,
    max_depth: Option<WholeNumber>,
    max_total_idea_evals: Option<LimitSetting<WholeNumber>>,
    stop_on_empty_frontier: Option<bool>,
    strict_fail_depth: Option<bool>,
    eval_retries: Option<WholeNumber>,
    eval_timeout_seconds: Option<LimitSetting<TimeoutSeconds>>,
    max_parallel_evals: Option<AtOnce>,
    max_parallel_per_node: Option<LimitSetting<AtOnce>>,
    sweep_max_parallel: Option<LimitSetting<AtOnce>>,
    max_review_rounds: Option<WholeNumber>,
    proceed_on_max_review_rounds: Option<bool>,
    keep_rejected_worktrees: Option<bool>,
    keep_failed_artifacts: Option<bool>,
    pub(super) lock_stale_seconds: Option<SilenceSeconds>,
    pub(super) ideas_file: Option<ValueOrNone<UserPath>>,
    pub(super) base_on_working_tree: Option<bool>,
    pub(super) keep_worktrees: Option<bool>,
    pub(super) max_new_file_kib: Option<FileKibibytes>,
    pub(super) runs_root: Option<FolderPath>,
    max_cost_usd: Option<DollarLimit>,
    max_tokens_total: Option<LimitSetting<TokenCount>>,
    deadline: Option<DeadlineSetting>,
    llm_max_inflight: Option<AtOnce>,
    llm_rate_limit: Option<RateLimitSetting>,
    pub(super) outage_patience: Option<OutagePatience>,
    idea_conversation_mode: Option<ConversationMode>,
    idea_history_window_turns: Option<TurnCount>,
    idea_history_max_chars: Option<MemoryChars>,
    summary_agent: Option<SummaryAgentSetting>,
    pub(super) confirm_above_usd: Option<DollarLimit>,
    pub(super) context_max_chars: Option<ContextChars>,
    pub(super) ideas_context_files: Option<Vec<UserFilePath>>,
    #[serde(deserialize_with = "table::deserialize_table")]
    pub(super) prices: PricesTable,
    #[serde(deserialize_with = "table::deserialize_table")]
    pub(super) agents: AgentsTable,
    #[serde(deserialize_with = "table::deserialize_table")]
    pub(super) prompts: PromptsTable,
    #[serde(deserialize_with = "table::deserialize_table")]
    pub(super) context: ContextTable,
    #[serde(deserialize_with = "table::deserialize_table")]
    pub(super) tuner: TunerTable,
    #[serde(deserialize_with = "table::deserialize_table")]
    pub(super) score: ScoreTable,
    #[serde(deserialize_with = "table::deserialize_table")]
    gate: GateTable,
}

impl ConfigTables {
    /// Returns the fixed settings with the configured values applied; `primary` is the primary
    /// metric that a flag chose.
    pub(super) fn fixed_settings(
        &self,
        before: FixedSettings,
        primary: Option<&PrimaryMetric>,
    ) -> Result<FixedSettings, ScoreContradiction> {
        Ok(FixedSettings {
            ideas_per_node: self.ideas_per_node.map_or(before.ideas_per_node, |n| n.0),
            beam_width: self.beam_width.map_or(before.beam_width, |n| n.0),
            sweep_config_limit: resolve_limit(
                self.sweep_config_limit,
                before.sweep_config_limit,
                |n| n.0,
            ),
            dedupe_scope: self.dedupe_scope.unwrap_or(before.dedupe_scope),
            ideas_context_strategy: self
                .ideas_context_strategy
                .unwrap_or(before.ideas_context_strategy),
            score: self.score.build_policy(primary)?,
            gate: self.gate.apply_to(&before.gate),
            protect: match &self.protect {
                Some(globs) => policy::with_own_globs(&globs.0),
                None => before.protect,
            },
            control: self.control.map_or(before.control, |control| control.0),
            measure: self.measure_overrides().apply_to(before.measure),
        })
    }

    pub(super) fn measure_overrides(&self) -> MeasureOverrides<'_> {
        MeasureOverrides {
            setup_command: self.setup_command.as_ref(),
            test_command: self.test_command.as_ref(),
            test_cwd: self.test_cwd.as_ref(),
            sweep_command: self.sweep_command.as_ref(),
            sweep_cwd: self.sweep_cwd.as_ref(),
            sweep_config_limit_flag: self.sweep_config_limit_flag.as_ref(),
            results_csv: self.results_csv.as_ref(),
            baseline_csv: self.baseline_csv.as_ref(),
            pass_env: self.pass_env.as_ref(),
            inputs: self.inputs.as_ref(),
        }
    }

    /// Returns the run limits with the configured values applied.
    pub(super) fn run_limits(&self, before: &RunLimits) -> RunLimits {
        RunLimits {
            max_depth: self.max_depth.map_or(before.max_depth, |n| n.0),
            max_total_idea_evals: resolve_limit(
                self.max_total_idea_evals,
                before.max_total_idea_evals,
                |n| n.0,
            ),
            stop_on_empty_frontier: self
                .stop_on_empty_frontier
                .unwrap_or(before.stop_on_empty_frontier),
            strict_fail_depth: self.strict_fail_depth.unwrap_or(before.strict_fail_depth),
            eval_retries: self.eval_retries.map_or(before.eval_retries, |n| n.0),
            eval_timeout_seconds: resolve_limit(
                self.eval_timeout_seconds,
                before.eval_timeout_seconds,
                |n| n.0,
            ),
            max_parallel_evals: self.max_parallel_evals.map_or(before.max_parallel_evals, |n| n.0),
            max_parallel_per_node: resolve_limit(
                self.max_parallel_per_node,
                before.max_parallel_per_node,
                |n| n.0,
            ),
            sweep_max_parallel: resolve_limit(
                self.sweep_max_parallel,
                before.sweep_max_parallel,
                |n| n.0,
            ),
            max_review_rounds: self.max_review_rounds.map_or(before.max_review_rounds, |n| n.0),
            proceed_on_max_review_rounds: self
                .proceed_on_max_review_rounds
                .unwrap_or(before.proceed_on_max_review_rounds),
            keep_rejected_worktrees: self
                .keep_rejected_worktrees
                .unwrap_or(before.keep_rejected_worktrees),
            keep_failed_artifacts: self
                .keep_failed_artifacts
                .unwrap_or(before.keep_failed_artifacts),
            max_cost_usd: self.max_cost_usd.map_or(before.max_cost_usd, DollarLimit::amount),
            max_tokens_total: resolve_limit(self.max_tokens_total, before.max_tokens_total, |n| {
                n.0
            }),
            deadline: self.deadline.map_or(before.deadline, |until| until.0),
            llm_max_inflight: self.llm_max_inflight.map_or(before.llm_max_inflight, |n| n.0),
            llm_rate_limit: self.llm_rate_limit.map_or(before.llm_rate_limit, |rate| rate.0),
            idea_conversation_mode: self
                .idea_conversation_mode
                .unwrap_or(before.idea_conversation_mode),
            idea_history_window_turns: self
                .idea_history_window_turns
                .map_or(before.idea_history_window_turns, |n| n.0),
            idea_history_max_chars: self
                .idea_history_max_chars
                .map_or(before.idea_history_max_chars, |n| n.0),
            summary_agent: self.summary_agent.map_or(before.summary_agent, |who| who.0),
        }
    }
}

/// Returns a configured limit, `none` included, or else the earlier one.
fn resolve_limit<T, N>(
    set: Option<LimitSetting<T>>,
    before: Option<N>,
    of: impl FnOnce(T) -> N,
) -> Option<N> {
    set.map_or(before, |limit| limit.map_limit(of))
}
