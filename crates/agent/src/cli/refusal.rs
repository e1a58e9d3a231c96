//! Classifies the error of a coding agent: whether waiting helps, asking again helps, or neither.
//! Mostly only the error's text is known.

use crate::http_refusal::{SPENT_QUOTA_WORDS, shorten_to_line};
use crate::question::{ServerFault, TryCost, TryError};
use crate::settings::{CliAgent, CliTool};
use treebeam_run::port::PortError;

/// An error of a coding agent.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CliRefusal {
    /// Status of the server behind the agent, if known.
    pub(super) status: Option<u16>,
    pub(super) words: String,
    pub(super) spent: TryCost,
    pub(super) about: RefusalSubject,
}

/// The subject of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RefusalSubject {
    /// The question.
    Question,
    /// The session that the question continues.
    Session,
}

impl CliRefusal {
    /// Creates an error of which only the text is known.
    pub(super) fn from_words(words: impl Into<String>) -> Self {
        let (status, spent) = (None, TryCost::Unknown);
        Self { status, words: words.into(), spent, about: RefusalSubject::Question }
    }

    /// Creates the error of a missing session.
    pub(super) fn from_lost_session(words: impl Into<String>) -> Self {
        Self { spent: TryCost::Nothing, about: RefusalSubject::Session, ..Self::from_words(words) }
    }
}

/// Phrases that stand for a status.
const STATUS_WORDS: [(u16, &[&str]); 4] = [
    (
        401,
        &[
            "not logged in",
            "please run /login",
            "unauthorized",
            "authentication",
            "invalid api key",
            "api key not valid",
            "invalid auth method",
            "gemini_api_key",
            "missing environment variable",
            "login required",
        ],
    ),
    (429, &["rate limit", "ratelimit", "usage limit", "too many requests", "resource_exhausted"]),
    (529, &["overloaded", "serviceunavailable", "internalservererror", "api_error", "apierror"]),
    (0, &["connection", "econnrefused", "waiting for network", "fetch failed"]),
];

/// Classifies an error.
pub(super) fn judge_refusal(refusal: CliRefusal, cli: &CliAgent) -> TryError {
    let CliRefusal { status, words, spent, about } = refusal;
    let why = format!("{} says: {}", cli.tool.provider_name(), shorten_to_line(&words));
    if about == RefusalSubject::Session {
        return TryError::Forgotten(why);
    }
    let small = words.to_lowercase();
    if SPENT_QUOTA_WORDS.iter().any(|part| small.contains(part)) {
        let error = PortError::new(format!("the quota is spent: {why}"));
        return error.with_hint("fill up the account, then go on").into();
    }
    match status.or_else(|| find_status_number(&small)).or_else(|| status_from_words(&small)) {
        Some(401 | 403) => {
            PortError::new(format!("the key was refused: {why}")).with_hint(key_advice(cli)).into()
        }
        Some(402) => PortError::new(format!("the quota is spent: {why}")).into(),
        Some(404) => {
            let model = cli.model.as_deref().unwrap_or("of its own choice");
            let hint = format!("check `model`, `{model}`, and `base_url`");
            PortError::new(format!("it is not there: {why}")).with_hint(hint).into()
        }
        Some(429) => TryError::RateLimited { why, wait: None },
        Some(0) => TryError::Temporary { why, fault: ServerFault::Unreachable, wait: None, spent },
        Some(502..=504 | 529) => {
            TryError::Temporary { why, fault: ServerFault::Overloaded, wait: None, spent }
        }
        Some(408 | 409 | 425 | 500..) => {
            TryError::Temporary { why, fault: ServerFault::Answering, wait: None, spent }
        }
        Some(_) | None => TryError::Unanswered { why, spent },
    }
}

fn key_advice(cli: &CliAgent) -> String {
    match (&cli.key, cli.tool) {
        (Some(key), _) => {
            format!("put a key that is good there into the variable `{}`", key.variable)
        }
        (None, CliTool::Aider) => "name the variable that has the key in `api_key_env`".to_owned(),
        (None, tool) => {
            let program = tool.program_name();
            format!(
                "log in with `{program}`, or name the variable that has the key in `api_key_env`"
            )
        }
    }
}

/// Returns the first number in the text that can be a server's error status.
fn find_status_number(words: &str) -> Option<u16> {
    let parts = words.split(|c: char| !c.is_ascii_alphanumeric() && c != '.');
    let numbers = parts.filter(|part| part.len() == 3).filter_map(|part| part.parse().ok());
    numbers.into_iter().find(|number| (400..600).contains(number))
}

fn status_from_words(words: &str) -> Option<u16> {
    let fits = |(_, parts): &&(u16, &[&str])| parts.iter().any(|part| words.contains(part));
    STATUS_WORDS.iter().find(fits).map(|(status, _)| *status)
}
