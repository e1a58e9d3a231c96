//! Recorded settings of agents, as plain text, and the rate limit on their calls. No providers,
//! prices or keys.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

/// Settings of the agent of each role, by name, as text and without keys. Empty in the dry world.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RecordedAgents(pub BTreeMap<String, BTreeMap<String, String>>);

impl RecordedAgents {
    /// Returns the roles whose settings differ between the two.
    #[must_use]
    pub fn changed_roles(&self, other: &Self) -> Vec<String> {
        let names: std::collections::BTreeSet<_> = self.0.keys().chain(other.0.keys()).collect();
        names.into_iter().filter(|role| self.0.get(*role) != other.0.get(*role)).cloned().collect()
    }
}

/// Formats the agents as in `coder anthropic claude-sonnet-5, ideas command ./ideas.sh`.
impl fmt::Display for RecordedAgents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let agent = |(role, said): (&String, &BTreeMap<String, String>)| {
            let words = ["provider", "model", "command"].iter().filter_map(|name| said.get(*name));
            std::iter::once(role).chain(words).cloned().collect::<Vec<_>>().join(" ")
        };
        f.write_str(&self.0.iter().map(agent).collect::<Vec<_>>().join(", "))
    }
}

/// Requests and tokens per minute: `60`, `60rpm`, `100000tpm`, `60rpm,100000tpm` or `none`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RateLimit {
    /// Maximum number of requests per minute.
    pub requests: Option<NonZeroU32>,
    /// Maximum number of tokens per minute.
    pub tokens: Option<NonZeroU32>,
}

const NO_LIMIT: &str = "none";

impl FromStr for RateLimit {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("it must be like `60rpm`, `100000tpm`, `60rpm,100000tpm`, or `{NO_LIMIT}`");
        let mut limit = Self::default();
        if text == NO_LIMIT {
            return Ok(limit);
        }
        for part in text.split(',').map(str::trim) {
            let tokens = part.strip_suffix("tpm");
            let number = tokens.or_else(|| part.strip_suffix("rpm")).unwrap_or(part).trim();
            let number: NonZeroU32 = number.parse().map_err(|_| wrong())?;
            let place = if tokens.is_some() { &mut limit.tokens } else { &mut limit.requests };
            if place.replace(number).is_some() {
                return Err(wrong());
            }
        }
        Ok(limit)
    }
}

impl TryFrom<String> for RateLimit {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<RateLimit> for String {
    fn from(limit: RateLimit) -> Self {
        limit.to_string()
    }
}

impl fmt::Display for RateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts =
            [self.requests.map(|n| format!("{n}rpm")), self.tokens.map(|n| format!("{n}tpm"))];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        f.write_str(if parts.is_empty() { NO_LIMIT } else { "" })?;
        f.write_str(&parts.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates() {
        let check = |text: &str, expect: Option<&str>| {
            let found = text.parse::<RateLimit>().ok().map(|limit| limit.to_string());
            assert_eq!(found.as_deref(), expect, "{text}");
        };
        check("60", Some("60rpm"));
        check("60rpm", Some("60rpm"));
        check("100000tpm", Some("100000tpm"));
        check("9tpm, 8rpm", Some("8rpm,9tpm"));
        check("none", Some("none"));
        for wrong in ["", "0", "-1", "rpm", "1rpm,2rpm", "1,2", "fast", "1.5"] {
            check(wrong, None);
        }
    }

    #[test]
    fn a_reach_of_an_older_run_is_read() {
        use crate::policy::RunLimits;
        let mut reach = serde_json::to_value(RunLimits::default()).expect("JSON");
        for new in ["max_cost_usd", "max_tokens_total", "llm_max_inflight", "llm_rate_limit"] {
            assert!(reach.as_object_mut().expect("fields").remove(new).is_some(), "{new}");
        }
        assert_eq!(
            serde_json::from_value::<RunLimits>(reach).expect("a reach"),
            RunLimits::default()
        );
    }

    #[test]
    fn agents_that_are_set_otherwise_are_named() {
        let said = |model: &str| BTreeMap::from([("model".to_owned(), model.to_owned())]);
        let role_agents = |roles: &[(&str, &str)]| {
            RecordedAgents(
                roles.iter().map(|(role, model)| ((*role).to_owned(), said(model))).collect(),
            )
        };
        let before = role_agents(&[("coder", "a"), ("ideas", "b")]);
        assert_eq!(before.changed_roles(&before), [""; 0]);
        assert_eq!(
            before.changed_roles(&role_agents(&[("coder", "a"), ("ideas", "c")])),
            ["ideas"]
        );
        assert_eq!(before.changed_roles(&role_agents(&[("coder", "x")])), ["coder", "ideas"]);
        assert_eq!(before.to_string(), "coder a, ideas b");
    }
}
