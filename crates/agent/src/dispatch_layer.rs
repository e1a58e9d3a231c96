//! The innermost layer: sends a question once to the server, program, coding agent or tuner of its
//! role. It neither waits nor tries again, and its results never contain the key.

use super::cli;
use super::command::{self, AgentWorkspace};
use super::http::{HeaderText, HttpClient, HttpDeadlines, HttpRequest};
use super::http_refusal::{HttpRefusal, judge_refusal};
use super::question::{AgentLayer, AgentQuestion, TryError, TryMeter};
use super::role_agents::RoleAgents;
use super::settings::{AgentKind, ApiKey, ModelAgent};
use super::{tuner, wire};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use treebeam_run::port::{AgentReply, PortError};

/// The longest pause in an answer that has begun. A model that thinks may send nothing for minutes.
const STREAM_IDLE_TIMEOUT: Duration = Duration::from_mins(3);
/// Replacement text for a key.
const HIDDEN_KEY_TEXT: &str = "[hidden]";

/// The innermost layer.
pub(super) struct DispatchLayer<'a> {
    pub(super) http: HttpClient,
    pub(super) role_agents: &'a RoleAgents,
    pub(super) surroundings: &'a AgentWorkspace,
    /// The longest time until a server begins to answer.
    pub(super) first_byte: Option<Duration>,
}

impl AgentLayer for DispatchLayer<'_> {
    fn answer_question(
        &self,
        question: &AgentQuestion,
        meter: &dyn TryMeter,
    ) -> Result<AgentReply, TryError> {
        let settings = self.role_agents.settings_for(question.role)?;
        // Checked at each try: hours may pass between two.
        self.surroundings.check_fence()?;
        let begun = Instant::now();
        let until_end = meter.deadline().map(|end| end.saturating_duration_since(begun));
        let within = [meter.remaining_time(), until_end].into_iter().flatten().min();
        if within == Some(Duration::ZERO) {
            return Err(TryError::too_late("it was not asked"));
        }
        let timeout = within.map_or(settings.timeout, |within| within.min(settings.timeout));
        let answer = match &settings.line {
            AgentKind::Model(model) => self.ask_model(model, timeout, question),
            AgentKind::Command(program) => {
                command::answer_with_command(program, timeout, question, self.surroundings)
            }
            AgentKind::Tuner(agent) => tuner::answer_with_tuner(agent, question, self.surroundings),
            AgentKind::Cli(cli) => cli::answer_with_cli(cli, timeout, question, self.surroundings),
        };
        let took = begun.elapsed();
        meter.record_try_time(took);
        let answer = answer.map_err(|trouble| match within {
            Some(within) if took >= within => out_of_time(trouble, within),
            Some(_) | None => trouble,
        });
        let hide = |text: String| hide_key(text, settings.api_key());
        match answer {
            Ok(reply) => Ok(AgentReply {
                text: hide(reply.text),
                id: reply.id.map(hide),
                model: reply.model.map(hide),
                edits: reply.edits.map(hide),
                ..reply
            }),
            Err(trouble) => Err(hide_key_in_error(trouble, settings.api_key())),
        }
    }
}

impl DispatchLayer<'_> {
    fn ask_model(
        &self,
        model: &ModelAgent,
        timeout: Duration,
        question: &AgentQuestion,
    ) -> Result<AgentReply, TryError> {
        let written = wire::build_request(model, question);
        let open = |text: &str| HeaderText::Open(text.to_owned());
        let mut headers = vec![("content-type", open("application/json"))];
        headers.extend(written.headers.into_iter().map(|(name, text)| (name, open(text))));
        if let Some(ApiKey { variable, value }) = &model.key {
            let (name, before) = written.key_header;
            let text = format!("{before}{}", value.reveal().trim());
            headers.push((name, HeaderText::Key(text, variable.clone())));
        }
        let response = self.http.send(HttpRequest {
            url: format!("{}{}", model.base_url, written.path),
            headers,
            body: written.body.to_string(),
            deadlines: HttpDeadlines {
                first_byte: self.first_byte.map_or(timeout, |first| first.min(timeout)),
                idle: STREAM_IDLE_TIMEOUT.min(timeout),
                total: timeout,
            },
        })?;
        let body = hide_key(response.body, model.key.as_ref());
        if (200..300).contains(&response.status) {
            return wire::parse_reply(model, question, &body, response.cut.as_deref());
        }
        let headers: BTreeMap<String, String> = response.headers;
        let refusal = HttpRefusal { status: response.status, headers: &headers, body: &body };
        Err(judge_refusal(&refusal, model, question.continues_from()))
    }
}

/// Turns an error into `OutOfTime` if the time was over: the agent is not at fault then.
fn out_of_time(trouble: TryError, within: Duration) -> TryError {
    match trouble {
        TryError::Temporary { spent, .. }
        | TryError::Unanswered { spent, .. }
        | TryError::Unreadable { spent, .. } => {
            let why = format!("{:.1} s were left for it", within.as_secs_f64());
            TryError::OutOfTime { why, spent }
        }
        other @ (TryError::RateLimited { .. }
        | TryError::Forgotten(_)
        | TryError::OverBudget { .. }
        | TryError::OutOfTime { .. }
        | TryError::Interrupted
        | TryError::Unavailable(_)) => other,
    }
}

/// Removes the key from a text, in case the answer repeats it.
fn hide_key(text: String, key: Option<&ApiKey>) -> String {
    match key.map(|key| key.value.reveal().trim()) {
        Some(key) if key.len() > 3 && text.contains(key) => text.replace(key, HIDDEN_KEY_TEXT),
        Some(_) | None => text,
    }
}

/// Removes the key from bytes that are not text.
fn hide_key_bytes(bytes: Vec<u8>, key: Option<&ApiKey>) -> Vec<u8> {
    match key.map(|key| key.value.reveal().trim()) {
        Some(key) if key.len() > 3 => {
            replace_bytes(&bytes, key.as_bytes(), HIDDEN_KEY_TEXT.as_bytes())
        }
        Some(_) | None => bytes,
    }
}

fn replace_bytes(mut bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut all = Vec::with_capacity(bytes.len());
    while let Some((first, rest)) = bytes.split_first() {
        let after = bytes.strip_prefix(from);
        match after {
            Some(_) => all.extend_from_slice(to),
            None => all.push(*first),
        }
        bytes = after.unwrap_or(rest);
    }
    all
}

fn hide_key_in_error(trouble: TryError, key: Option<&ApiKey>) -> TryError {
    let hide = |text: String| hide_key(text, key);
    match trouble {
        TryError::Temporary { why, fault, wait, spent } => {
            TryError::Temporary { why: hide(why), fault, wait, spent }
        }
        TryError::RateLimited { why, wait } => TryError::RateLimited { why: hide(why), wait },
        TryError::Unanswered { why, spent } => TryError::Unanswered { why: hide(why), spent },
        TryError::Unreadable { why, raw, spent } => {
            TryError::Unreadable { why: hide(why), raw: hide_key_bytes(raw, key), spent }
        }
        TryError::Forgotten(why) => TryError::Forgotten(hide(why)),
        TryError::OverBudget { budget, why } => TryError::OverBudget { budget, why: hide(why) },
        TryError::OutOfTime { why, spent } => TryError::OutOfTime { why: hide(why), spent },
        TryError::Interrupted => TryError::Interrupted,
        TryError::Unavailable(PortError { what, hint, cause }) => {
            TryError::Unavailable(PortError { what: hide(what), hint: hint.map(hide), cause })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::replace_bytes;

    #[test]
    fn a_key_is_taken_out_of_what_is_no_text() {
        for (bytes, expect) in [
            (&b"\xffkey\xffkeykey"[..], &b"\xff*\xff**"[..]),
            (b"ke\xffy", b"ke\xffy"),
            (b"kekey", b"ke*"),
            (b"", b""),
        ] {
            assert_eq!(replace_bytes(bytes, b"key", b"*"), expect);
        }
    }
}
