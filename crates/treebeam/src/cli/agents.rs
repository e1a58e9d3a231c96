//! Defines the flags of `treebeam agents`, and those about spending and conversations.

use super::ConfigFlag;
use crate::config::bounded_values::{AtOnce, LimitSetting, MemoryChars, TurnCount};
use crate::config::spending::{DollarLimit, RateLimitSetting, TokenCount};
use crate::config::summary_agent::SummaryAgentSetting;
use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use treebeam_run::port::AgentRole;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct AgentsArgs {
    #[command(subcommand)]
    pub(crate) act: Option<AgentsCommand>,
    #[command(flatten)]
    pub(crate) config: ConfigFlag,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AgentsCommand {
    /// Ask every agent one tiny question, which may cost a little
    #[command(
        after_help = "Exit code: 4 where an agent cannot be used, 1 where one did not answer.\n\nExample: treebeam agents check"
    )]
    Check(AgentsCheckArgs),
    /// Ask one question, from standard input, and print the answer
    #[command(
        after_help = "Answers are kept in `.treebeam/calls`: the same key and question is answered from there.\n\nExample: echo 'Say hello.' | treebeam agents ask --role coder"
    )]
    Ask(AgentsAskArgs),
}

#[derive(Debug, Args)]
pub(crate) struct AgentsCheckArgs {
    #[command(flatten)]
    pub(crate) config: ConfigFlag,
    #[command(flatten)]
    pub(crate) spending: SpendingFlags,
}

#[derive(Debug, Args)]
pub(crate) struct AgentsAskArgs {
    /// Who is asked: coordinator, planner, coder, reviewer or ideas
    #[arg(long)]
    pub(crate) role: AgentRole,
    /// A name for the question: asked again under it, the answer comes from disk [default: a new one]
    #[arg(long)]
    pub(crate) key: Option<String>,
    #[command(flatten)]
    pub(crate) config: ConfigFlag,
    #[command(flatten)]
    pub(crate) spending: SpendingFlags,
}

/// What agents may cost and how fast they may be asked. Each flag is a configuration key by its own name.
#[derive(Debug, Default, Args, Serialize)]
#[command(next_help_heading = "What agents may cost")]
pub(crate) struct SpendingFlags {
    /// The most that answers may cost in all, in dollars, or `none` [default: no limit]
    #[arg(long, value_name = "USD", allow_negative_numbers = true)]
    pub(crate) max_cost_usd: Option<DollarLimit>,
    /// The most tokens that answers may take in all, or `none` [default: no limit]
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    pub(crate) max_tokens_total: Option<LimitSetting<TokenCount>>,
    /// How many questions are under way at once [default: 8]
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    pub(crate) llm_max_inflight: Option<AtOnce>,
    /// How many requests and tokens per minute, such as `60rpm,100000tpm`, or `none` [default: no limit]
    #[arg(long, value_name = "RATE")]
    pub(crate) llm_rate_limit: Option<RateLimitSetting>,
}

/// How idea generators know what was said before; may change on resume. Each flag is a configuration key by its own name.
#[derive(Debug, Default, Args, Serialize)]
#[command(next_help_heading = "What idea generators remember (a resume keeps what is not given)")]
pub(crate) struct ConversationFlags {
    /// How they know what was said before in their branch [default: auto]
    #[arg(long, value_name = "MODE")]
    pub(crate) idea_conversation_mode: Option<ConversationModeFlag>,
    /// The most turns that they are told again word by word [default: 12]
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    pub(crate) idea_history_window_turns: Option<TurnCount>,
    /// The most characters of all that they are told again [default: 20000]
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    pub(crate) idea_history_max_chars: Option<MemoryChars>,
    /// Whose agent sums up the turns that no longer fit, a question each time: coordinator, planner, reviewer or ideas
    /// [default: none, they have a line each]
    #[arg(long, value_name = "ROLE")]
    pub(crate) summary_agent: Option<SummaryAgentSetting>,
}

#[derive(Clone, Copy, Debug, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ConversationModeFlag {
    /// Not at all
    Off,
    /// By the provider's own memory where it has one, else by being told again
    Auto,
    /// By the provider's own memory
    Native,
    /// By being told again
    Replay,
}
