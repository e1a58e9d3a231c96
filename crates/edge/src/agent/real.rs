//! Asks whoever is set for a role, once: a server, a program, a coding agent or the tuner. It neither waits nor tries again,
//! and what comes back has no key in it.

use super::cli;
use super::command::{self, Surroundings};
use super::crew::Crew;
use super::http::{Deadlines, HeaderText, Http, Request};
use super::judge::{Refusal, judge};
use super::question::{Answer, Meter, Question, Trouble};
use super::settings::{Key, Line, Model};
use super::{tuner, wire};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use treebeam_run::port::{PortError, Reply};

/// How long an answer that has begun may pause. A model that thinks may say nothing for minutes.
const IDLE: Duration = Duration::from_mins(3);
/// What stands in place of a key.
const HIDDEN: &str = "[hidden]";

/// The innermost layer.
pub(super) struct Real<'a> {
    pub(super) http: Http,
    pub(super) crew: &'a Crew,
    pub(super) surroundings: &'a Surroundings,
    /// The longest time until a server begins to answer.
    pub(super) first_byte: Option<Duration>,
}

impl Answer for Real<'_> {
    fn answer(&self, question: &Question, meter: &dyn Meter) -> Result<Reply, Trouble> {
        let settings = self.crew.settings(question.role)?;
        // Each try is asked about: there may be hours between two.
        self.surroundings.are_ours()?;
        let begun = Instant::now();
        let until_end = meter.end().map(|end| end.saturating_duration_since(begun));
        let within = [meter.left(), until_end].into_iter().flatten().min();
        if within == Some(Duration::ZERO) {
            return Err(Trouble::too_late("it was not asked"));
        }
        let timeout = within.map_or(settings.timeout, |within| within.min(settings.timeout));
        let answer = match &settings.line {
            Line::Model(model) => self.ask(model, timeout, question),
            Line::Command(program) => {
                command::answer(program, timeout, question, self.surroundings)
            }
            Line::Tuner(agent) => tuner::answer(agent, question, self.surroundings),
            Line::Cli(cli) => cli::answer(cli, timeout, question, self.surroundings),
        };
        let took = begun.elapsed();
        meter.tried(took);
        let answer = answer.map_err(|trouble| match within {
            Some(within) if took >= within => out_of_time(trouble, within),
            Some(_) | None => trouble,
        });
        let hide = |text: String| hide(text, settings.key());
        match answer {
            Ok(reply) => Ok(Reply {
                text: hide(reply.text),
                id: reply.id.map(hide),
                model: reply.model.map(hide),
                edits: reply.edits.map(hide),
                ..reply
            }),
            Err(trouble) => Err(hide_in(trouble, settings.key())),
        }
    }
}

impl Real<'_> {
    fn ask(&self, model: &Model, timeout: Duration, question: &Question) -> Result<Reply, Trouble> {
        let written = wire::write(model, question);
        let open = |text: &str| HeaderText::Open(text.to_owned());
        let mut headers = vec![("content-type", open("application/json"))];
        headers.extend(written.headers.into_iter().map(|(name, text)| (name, open(text))));
        if let Some(Key { variable, value }) = &model.key {
            let (name, before) = written.key_header;
            let text = format!("{before}{}", value.reveal().trim());
            headers.push((name, HeaderText::Key(text, variable.clone())));
        }
        let response = self.http.send(Request {
            url: format!("{}{}", model.base_url, written.path),
            headers,
            body: written.body.to_string(),
            deadlines: Deadlines {
                first_byte: self.first_byte.map_or(timeout, |first| first.min(timeout)),
                idle: IDLE.min(timeout),
                total: timeout,
            },
        })?;
        let body = hide(response.body, model.key.as_ref());
        if (200..300).contains(&response.status) {
            return wire::read(model, question, &body, response.cut.as_deref());
        }
        let headers: BTreeMap<String, String> = response.headers;
        let refusal = Refusal { status: response.status, headers: &headers, body: &body };
        Err(judge(&refusal, model, question.goes_on_from()))
    }
}

/// What ended because its time was over is not the agent's fault, and not worth another try.
fn out_of_time(trouble: Trouble, within: Duration) -> Trouble {
    match trouble {
        Trouble::Passing { spent, .. }
        | Trouble::Unanswered { spent, .. }
        | Trouble::Unreadable { spent, .. } => {
            let why = format!("{:.1} s were left for it", within.as_secs_f64());
            Trouble::OutOfTime { why, spent }
        }
        other @ (Trouble::TooMany { .. }
        | Trouble::Forgotten(_)
        | Trouble::OverBudget { .. }
        | Trouble::OutOfTime { .. }
        | Trouble::Interrupted
        | Trouble::Unavailable(_)) => other,
    }
}

/// A text without the key, in case somebody repeats it.
fn hide(text: String, key: Option<&Key>) -> String {
    match key.map(|key| key.value.reveal().trim()) {
        Some(key) if key.len() > 3 && text.contains(key) => text.replace(key, HIDDEN),
        Some(_) | None => text,
    }
}

/// The same of what is no text.
fn hide_bytes(bytes: Vec<u8>, key: Option<&Key>) -> Vec<u8> {
    match key.map(|key| key.value.reveal().trim()) {
        Some(key) if key.len() > 3 => replaced(&bytes, key.as_bytes(), HIDDEN.as_bytes()),
        Some(_) | None => bytes,
    }
}

fn replaced(mut bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
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

fn hide_in(trouble: Trouble, key: Option<&Key>) -> Trouble {
    let hide = |text: String| hide(text, key);
    match trouble {
        Trouble::Passing { why, fault, wait, spent } => {
            Trouble::Passing { why: hide(why), fault, wait, spent }
        }
        Trouble::TooMany { why, wait } => Trouble::TooMany { why: hide(why), wait },
        Trouble::Unanswered { why, spent } => Trouble::Unanswered { why: hide(why), spent },
        Trouble::Unreadable { why, raw, spent } => {
            Trouble::Unreadable { why: hide(why), raw: hide_bytes(raw, key), spent }
        }
        Trouble::Forgotten(why) => Trouble::Forgotten(hide(why)),
        Trouble::OverBudget { budget, why } => Trouble::OverBudget { budget, why: hide(why) },
        Trouble::OutOfTime { why, spent } => Trouble::OutOfTime { why: hide(why), spent },
        Trouble::Interrupted => Trouble::Interrupted,
        Trouble::Unavailable(PortError { what, hint, cause }) => {
            Trouble::Unavailable(PortError { what: hide(what), hint: hint.map(hide), cause })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::replaced;

    #[test]
    fn a_key_is_taken_out_of_what_is_no_text() {
        for (bytes, expect) in [
            (&b"\xffkey\xffkeykey"[..], &b"\xff*\xff**"[..]),
            (b"ke\xffy", b"ke\xffy"),
            (b"kekey", b"ke*"),
            (b"", b""),
        ] {
            assert_eq!(replaced(bytes, b"key", b"*"), expect);
        }
    }
}
