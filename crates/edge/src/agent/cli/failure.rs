//! What a coding agent's complaint means: whether waiting helps, asking again helps, or nothing does. It has seldom more to
//! go by than words.

use crate::agent::judge::{SPENT, brief};
use crate::agent::question::{Fault, Spent, Trouble};
use crate::agent::settings::{Cli, Tool};
use treebeam_run::port::PortError;

/// A complaint.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Refusal {
    /// The status of the server behind the agent, where it is told.
    pub(super) status: Option<u16>,
    pub(super) words: String,
    pub(super) spent: Spent,
    pub(super) about: About,
}

/// What a complaint is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum About {
    /// The question.
    Question,
    /// The session that it goes on from.
    Session,
}

impl Refusal {
    /// A complaint of which nothing but its words is known.
    pub(super) fn of(words: impl Into<String>) -> Self {
        let (status, spent) = (None, Spent::Perhaps);
        Self { status, words: words.into(), spent, about: About::Question }
    }

    /// The session is not there.
    pub(super) fn of_session(words: impl Into<String>) -> Self {
        Self { spent: Spent::Nothing, about: About::Session, ..Self::of(words) }
    }
}

/// Words that stand for a status.
const WORDS: [(u16, &[&str]); 4] = [
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

/// What a complaint means.
pub(super) fn judge(refusal: Refusal, cli: &Cli) -> Trouble {
    let Refusal { status, words, spent, about } = refusal;
    let why = format!("{} says: {}", cli.tool.provider(), brief(&words));
    if about == About::Session {
        return Trouble::Forgotten(why);
    }
    let small = words.to_lowercase();
    if SPENT.iter().any(|part| small.contains(part)) {
        let error = PortError::new(format!("the quota is spent: {why}"));
        return error.hint("fill up the account, then go on").into();
    }
    match status.or_else(|| number(&small)).or_else(|| named(&small)) {
        Some(401 | 403) => {
            PortError::new(format!("the key was refused: {why}")).hint(advice(cli)).into()
        }
        Some(402) => PortError::new(format!("the quota is spent: {why}")).into(),
        Some(404) => {
            let model = cli.model.as_deref().unwrap_or("of its own choice");
            let hint = format!("check `model`, `{model}`, and `base_url`");
            PortError::new(format!("it is not there: {why}")).hint(hint).into()
        }
        Some(429) => Trouble::TooMany { why, wait: None },
        Some(0) => Trouble::Passing { why, fault: Fault::Unreachable, wait: None, spent },
        Some(502..=504 | 529) => {
            Trouble::Passing { why, fault: Fault::Overloaded, wait: None, spent }
        }
        Some(408 | 409 | 425 | 500..) => {
            Trouble::Passing { why, fault: Fault::Answering, wait: None, spent }
        }
        Some(_) | None => Trouble::Unanswered { why, spent },
    }
}

fn advice(cli: &Cli) -> String {
    match (&cli.key, cli.tool) {
        (Some(key), _) => {
            format!("put a key that is good there into the variable `{}`", key.variable)
        }
        (None, Tool::Aider) => "name the variable that has the key in `api_key_env`".to_owned(),
        (None, tool) => {
            let program = tool.program();
            format!(
                "log in with `{program}`, or name the variable that has the key in `api_key_env`"
            )
        }
    }
}

/// The first number in the words that a server may have answered.
fn number(words: &str) -> Option<u16> {
    let parts = words.split(|c: char| !c.is_ascii_alphanumeric() && c != '.');
    let numbers = parts.filter(|part| part.len() == 3).filter_map(|part| part.parse().ok());
    numbers.into_iter().find(|number| (400..600).contains(number))
}

fn named(words: &str) -> Option<u16> {
    let fits = |(_, parts): &&(u16, &[&str])| parts.iter().any(|part| words.contains(part));
    WORDS.iter().find(fits).map(|(status, _)| *status)
}
