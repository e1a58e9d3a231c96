//! `aider --message-file`: plain text, and no sessions. It ends well whatever happened, so that only its words say whether
//! it did.

use super::failure::Refusal;
use super::{Asked, Call, Output, Said};
use crate::agent::site::Doing;
use treebeam_run::port::{Cost, Usage};

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
        .option("--model", cli.model.as_deref())
        .option("--openai-api-base", cli.base_url.as_deref());
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
    call.arguments(cli.args.iter().cloned())
        .arguments(["--message-file".to_owned(), asked.prompt.display().to_string()])
}

pub(super) fn read(output: Output<'_>) -> Result<Said, Refusal> {
    let lines: Vec<&str> = output.stdout.lines().collect();
    let counts: Vec<Counts> = lines.iter().filter_map(|line| Counts::read(line)).collect();
    let complaint = |line: &&&str| line.starts_with("litellm.") && line.contains("Error");
    if counts.is_empty() {
        let why = lines.iter().rev().find(complaint).map_or(output.stderr.trim(), |line| line);
        let why = if why.is_empty() { output.stdout.trim() } else { why };
        return Err(Refusal::of(why));
    }
    let usage = counts.iter().fold(Usage::default(), |sum, Counts { usage, .. }| Usage {
        input: sum.input + usage.input,
        cached: sum.cached + usage.cached,
        output: sum.output + usage.output,
    });
    let cost = counts.iter().filter_map(|counts| counts.cost).reduce(|one, other| one + other);
    Ok(Said {
        text: output.stdout.trim().to_owned(),
        usage: Some(usage),
        cost: cost.map(Cost::dollars),
        ..Said::default()
    })
}

/// `Tokens: 2.4k sent, 1.1k cache hit, 16 received. Cost: $0.00091 message, $0.00091 session.`
struct Counts {
    usage: Usage,
    cost: Option<f64>,
}

impl Counts {
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
