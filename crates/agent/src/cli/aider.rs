//! Adapter for `aider --message-file`: plain text, no sessions. Its exit status is always success,
//! so that only its output tells of a failure.

use super::refusal::CliRefusal;
use super::{CliCall, CliOutput, CliRequest, CliStreams};
use crate::command::AgentWorkspace;
use crate::question::TryCost;
use crate::settings::CliAgent;
use crate::workspace::AccessMode;
use treebeam_run::port::{Cost, TokenUsage};

/// Model name prefix for a server that speaks chat completions.
const CHAT_MODEL_PREFIX: &str = "openai/";

/// Git identity for `aider`. Without one it writes a name into the settings of the user's
/// repository, which all worktrees share.
const GIT_IDENTITY_VARIABLES: [(&str, &str); 5] = [
    ("GIT_CONFIG_COUNT", "2"),
    ("GIT_CONFIG_KEY_0", "user.name"),
    ("GIT_CONFIG_VALUE_0", "treebeam"),
    ("GIT_CONFIG_KEY_1", "user.email"),
    ("GIT_CONFIG_VALUE_1", "treebeam@localhost"),
];

pub(super) fn build_call(asked: &CliRequest<'_>) -> CliCall {
    let cli = asked.cli;
    let call = CliCall::default()
        .with_arguments([
            "--yes-always",
            "--no-auto-commits",
            "--no-dirty-commits",
            "--no-gitignore",
        ])
        .with_arguments([
            "--no-check-update",
            "--no-show-model-warnings",
            "--no-show-release-notes",
        ])
        .with_arguments([
            "--no-stream",
            "--no-pretty",
            "--no-suggest-shell-commands",
            "--no-detect-urls",
        ])
        .with_arguments(["--analytics-disable"])
        .with_option("--model", model_argument(cli).as_deref())
        .with_option("--openai-api-base", cli.base_url.as_deref())
        // `aider` breaks lines at the terminal's width, in the middle of an answer.
        .with_variable("COLUMNS", Some("100000"));
    let call = match asked.doing {
        AccessMode::Reading => call.with_arguments(["--chat-mode", "ask"]),
        AccessMode::Editing => call,
    };
    // `aider` reads the key from the variable that the model's maker uses.
    let call = match cli.model.as_deref() {
        Some(model) if model.contains("claude") && cli.base_url.is_none() => {
            call.with_key("ANTHROPIC_API_KEY", cli)
        }
        Some(model) if model.contains("gemini") && cli.base_url.is_none() => {
            call.with_key("GEMINI_API_KEY", cli)
        }
        Some(_) | None => call.with_key("OPENAI_API_KEY", cli),
    };
    let call = match asked.surroundings {
        AgentWorkspace::Run(_) => call,
        // With git, `aider` would find the user's repository above, and leave its files there.
        AgentWorkspace::Folder(_) => call.with_arguments(["--no-git"]),
    };
    let beside = |name: &str| asked.prompt.with_file_name(name).display().to_string();
    GIT_IDENTITY_VARIABLES
        .into_iter()
        .fold(call, |call, (name, value)| call.with_variable(name, Some(value)))
        .with_arguments(["--chat-history-file".to_owned(), beside("chat.md")])
        .with_arguments(["--input-history-file".to_owned(), beside("input.txt")])
        .with_arguments(cli.args.iter().cloned())
        .with_arguments(["--message-file".to_owned(), asked.prompt.display().to_string()])
}

/// Returns the model's name for `aider`; for another server it begins with the protocol.
fn model_argument(cli: &CliAgent) -> Option<String> {
    let name = cli.model.clone()?;
    let is_plain = cli.base_url.is_some() && !name.starts_with(CHAT_MODEL_PREFIX);
    Some(if is_plain { format!("{CHAT_MODEL_PREFIX}{name}") } else { name })
}

pub(super) fn parse_output(output: CliStreams<'_>) -> Result<CliOutput, CliRefusal> {
    let (mut took, mut why, mut text) = (None::<AiderUsage>, None, Vec::new());
    for line in after_greeting(output.stdout).lines() {
        if let Some(counts) = AiderUsage::parse(line) {
            took = Some(took.map_or(counts, |sum| sum.sum_with(counts)));
            // Later token counts mean that an earlier error was overcome.
            why = None;
            continue;
        }
        if line.starts_with("litellm.") && line.contains("Error") {
            why = Some(line);
        }
        text.push(line);
    }
    match (took, why) {
        (Some(AiderUsage { usage, cost }), None) => Ok(CliOutput {
            text: text.join("\n").trim().to_owned(),
            usage: Some(usage),
            cost: cost.map(Cost::from_dollars),
            ..CliOutput::default()
        }),
        // `aider` asks again to repair its edits. If that fails, its output is half an answer.
        (took, why) => {
            let spent = took.map_or(TryCost::Unknown, |took| TryCost::Known(took.usage));
            let said = [why.unwrap_or_default(), output.stderr.trim(), output.stdout.trim()];
            let words = said.into_iter().find(|words| !words.is_empty()).unwrap_or_default();
            Err(CliRefusal { spent, ..CliRefusal::from_words(words) })
        }
    }
}

/// Returns the output after the introductory lines, the last of which is on the repository map.
fn after_greeting(stdout: &str) -> &str {
    let rest = stdout.split_once("\nRepo-map: ").and_then(|(_, rest)| rest.split_once('\n'));
    rest.map_or(stdout, |(_, rest)| rest)
}

/// Usage from a line such as `Tokens: 2.4k sent, 1.1k cache hit, 16 received. Cost: $0.00091
/// message, $0.00091 session.`
#[derive(Clone, Copy)]
struct AiderUsage {
    usage: TokenUsage,
    cost: Option<f64>,
}

impl AiderUsage {
    fn sum_with(self, other: Self) -> Self {
        let usage = TokenUsage {
            input: self.usage.input + other.usage.input,
            cached: self.usage.cached + other.usage.cached,
            output: self.usage.output + other.usage.output,
        };
        let cost = self.cost.into_iter().chain(other.cost).reduce(|one, two| one + two);
        Self { usage, cost }
    }

    fn parse(line: &str) -> Option<Self> {
        let rest = line.strip_prefix("Tokens: ")?;
        let (tokens, cost) = rest.split_once(". Cost: $").unwrap_or((rest, ""));
        let mut usage = TokenUsage::default();
        for part in tokens.trim_end_matches('.').split(", ") {
            let (number, what) = part.split_once(' ')?;
            let number = parse_thousands(number)?;
            match what {
                "received" => usage.output += number,
                "cache hit" => usage.cached += number,
                "sent" => usage.input += number,
                _ => {}
            }
        }
        let cost = cost.split(' ').next().and_then(|number| number.parse().ok());
        Some(Self { usage, cost })
    }
}

/// Parses a count such as `16`, `2.4k` or `12k`.
fn parse_thousands(text: &str) -> Option<u64> {
    let Some(number) = text.strip_suffix('k') else { return text.replace(',', "").parse().ok() };
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    let tenth: u64 = part.get(..1)?.parse().ok()?;
    Some(whole.parse::<u64>().ok()? * 1000 + tenth * 100)
}
