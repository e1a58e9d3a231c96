//! `aider --message-file`: plain text, and no sessions. It ends well whatever happened, so that only its words say whether
//! it did.

use super::failure::Refusal;
use super::{Asked, Call, Output, Said};
use crate::agent::command::Surroundings;
use crate::agent::question::Spent;
use crate::agent::settings::Cli;
use crate::agent::site::Doing;
use treebeam_run::port::{Cost, Usage};

/// What the name of a model begins with whose server speaks chat completions.
const SPEAKS: &str = "openai/";

/// Where git has been told no name it writes one into the settings of the user's repository, which all worktrees share.
const NAMED: [(&str, &str); 5] = [
    ("GIT_CONFIG_COUNT", "2"),
    ("GIT_CONFIG_KEY_0", "user.name"),
    ("GIT_CONFIG_VALUE_0", "treebeam"),
    ("GIT_CONFIG_KEY_1", "user.email"),
    ("GIT_CONFIG_VALUE_1", "treebeam@localhost"),
];

pub(super) fn call(asked: &Asked<'_>) -> Call {
    let cli = asked.cli;
    let call = Call::default()
        .arguments(["--yes-always", "--no-auto-commits", "--no-dirty-commits", "--no-gitignore"])
        .arguments(["--no-check-update", "--no-show-model-warnings", "--no-show-release-notes"])
        .arguments([
            "--no-stream",
            "--no-pretty",
            "--no-suggest-shell-commands",
            "--no-detect-urls",
        ])
        .arguments(["--analytics-disable"])
        .option("--model", model(cli).as_deref())
        .option("--openai-api-base", cli.base_url.as_deref())
        // It breaks lines where the terminal ends, in the middle of an answer.
        .variable("COLUMNS", Some("100000"));
    let call = match asked.doing {
        Doing::Reading => call.arguments(["--chat-mode", "ask"]),
        Doing::Editing => call,
    };
    // It hands its key on by the name that its model's maker gave it.
    let call = match cli.model.as_deref() {
        Some(model) if model.contains("claude") && cli.base_url.is_none() => {
            call.key("ANTHROPIC_API_KEY", cli)
        }
        Some(model) if model.contains("gemini") && cli.base_url.is_none() => {
            call.key("GEMINI_API_KEY", cli)
        }
        Some(_) | None => call.key("OPENAI_API_KEY", cli),
    };
    let call = match asked.surroundings {
        Surroundings::Run(_) => call,
        // It would find the user's repository above, and leave its files there.
        Surroundings::Folder(_) => call.arguments(["--no-git"]),
    };
    let beside = |name: &str| asked.prompt.with_file_name(name).display().to_string();
    NAMED
        .into_iter()
        .fold(call, |call, (name, value)| call.variable(name, Some(value)))
        .arguments(["--chat-history-file".to_owned(), beside("chat.md")])
        .arguments(["--input-history-file".to_owned(), beside("input.txt")])
        .arguments(cli.args.iter().cloned())
        .arguments(["--message-file".to_owned(), asked.prompt.display().to_string()])
}

/// The name that it knows a model by: one of another server has to say what that server speaks.
fn model(cli: &Cli) -> Option<String> {
    let name = cli.model.clone()?;
    let is_plain = cli.base_url.is_some() && !name.starts_with(SPEAKS);
    Some(if is_plain { format!("{SPEAKS}{name}") } else { name })
}

pub(super) fn read(output: Output<'_>) -> Result<Said, Refusal> {
    let (mut took, mut why, mut text) = (None::<Counts>, None, Vec::new());
    for line in after_greeting(output.stdout).lines() {
        if let Some(counts) = Counts::read(line) {
            took = Some(took.map_or(counts, |sum| sum.with(counts)));
            // What it complained of before has passed.
            why = None;
            continue;
        }
        if line.starts_with("litellm.") && line.contains("Error") {
            why = Some(line);
        }
        text.push(line);
    }
    match (took, why) {
        (Some(Counts { usage, cost }), None) => Ok(Said {
            text: text.join("\n").trim().to_owned(),
            usage: Some(usage),
            cost: cost.map(Cost::dollars),
            ..Said::default()
        }),
        // It asks again by itself, to mend what it wrote. What it leaves when that fails is half an answer.
        (took, why) => {
            let spent = took.map_or(Spent::Perhaps, |took| Spent::Known(took.usage));
            let said = [why.unwrap_or_default(), output.stderr.trim(), output.stdout.trim()];
            let words = said.into_iter().find(|words| !words.is_empty()).unwrap_or_default();
            Err(Refusal { spent, ..Refusal::of(words) })
        }
    }
}

/// What comes after the lines about itself; the last of them is about its map of the repository.
fn after_greeting(stdout: &str) -> &str {
    let rest = stdout.split_once("\nRepo-map: ").and_then(|(_, rest)| rest.split_once('\n'));
    rest.map_or(stdout, |(_, rest)| rest)
}

/// `Tokens: 2.4k sent, 1.1k cache hit, 16 received. Cost: $0.00091 message, $0.00091 session.`
#[derive(Clone, Copy)]
struct Counts {
    usage: Usage,
    cost: Option<f64>,
}

impl Counts {
    fn with(self, other: Self) -> Self {
        let usage = Usage {
            input: self.usage.input + other.usage.input,
            cached: self.usage.cached + other.usage.cached,
            output: self.usage.output + other.usage.output,
        };
        let cost = self.cost.into_iter().chain(other.cost).reduce(|one, two| one + two);
        Self { usage, cost }
    }

    fn read(line: &str) -> Option<Self> {
        let rest = line.strip_prefix("Tokens: ")?;
        let (tokens, cost) = rest.split_once(". Cost: $").unwrap_or((rest, ""));
        let mut usage = Usage::default();
        for part in tokens.trim_end_matches('.').split(", ") {
            let (number, what) = part.split_once(' ')?;
            let number = thousands(number)?;
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

/// `16`, `2.4k`, `12k`.
fn thousands(text: &str) -> Option<u64> {
    let Some(number) = text.strip_suffix('k') else { return text.replace(',', "").parse().ok() };
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    let tenth: u64 = part.get(..1)?.parse().ok()?;
    Some(whole.parse::<u64>().ok()? * 1000 + tenth * 100)
}
