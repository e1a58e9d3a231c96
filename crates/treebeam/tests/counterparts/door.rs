//! Five agents behind one door, each with another wire format, and little patience. What comes back is judged elsewhere.

use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;
use treebeam_edge::agent::bucket::Limits;
use treebeam_edge::agent::budgeted::Budget;
use treebeam_edge::agent::calls::Calls;
use treebeam_edge::agent::command::Surroundings;
use treebeam_edge::agent::crew::Crew;
use treebeam_edge::agent::price::Prices;
use treebeam_edge::agent::question::Question;
use treebeam_edge::agent::retrying::Patience;
use treebeam_edge::agent::settings::{Key, Line, Model, Settings, Wire};
use treebeam_edge::agent::wait::{Observer, Wait};
use treebeam_edge::agent::{Door, Plan};
use treebeam_edge::env_file::Secret;
use treebeam_run::port::{AgentError, Continuation, Reply, Role};

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");
pub(crate) const VARIABLE: &str = "THE_KEY";

pub(crate) const WIRES: [Wire; 5] =
    [Wire::Responses, Wire::Chat, Wire::Messages, Wire::Gemini, Wire::Ollama];

/// What all five have in common.
pub(crate) struct Five<'a> {
    /// Where the server of a wire format is.
    pub(crate) url: &'a dyn Fn(Wire) -> String,
    pub(crate) model: &'a str,
    pub(crate) extra: Map<String, Value>,
    /// How long one try may take.
    pub(crate) timeout: Duration,
    /// How long a rate limit is waited for.
    pub(crate) wait: Duration,
}

struct Nobody;

impl Observer for Nobody {
    fn waits(&self, _: &Wait<'_>) {}
    fn note(&self, _: &str) {}
    fn wants_to_stop(&self) -> bool {
        false
    }
}

/// Asks one of five.
pub(crate) struct Asker<'a>(&'a Door<'a>);

impl Five<'_> {
    /// Opens the door, and closes it afterwards.
    pub(crate) fn meet<T>(&self, f: impl FnOnce(&Asker<'_>) -> T) -> T {
        let folder = tempfile::tempdir().expect("a folder");
        let settings = |wire| Settings { line: self.line(wire), timeout: self.timeout };
        let crew = Role::ALL.into_iter().zip(WIRES.map(settings)).collect::<BTreeMap<_, _>>();
        let many = NonZeroU32::MIN.saturating_add(999);
        let plan = Plan {
            crew: Crew::new(crew),
            prices: Prices::default(),
            budget: Budget::default(),
            limits: Limits { in_flight: many, requests: None, tokens: None },
            patience: Patience {
                tries: 3,
                pause: Duration::from_millis(200),
                longest_pause: Duration::from_secs(1),
                wait: self.wait * 4,
                rate_limit: self.wait,
                outage: Duration::ZERO,
                first_answer: Duration::ZERO,
                first_byte: None,
            },
            calls: Calls::Folder(folder.path().join("calls")),
            replays: None,
            surroundings: Surroundings::Folder(folder.path().to_owned()),
        };
        f(&Asker(&Door::open(&plan, &Nobody).expect("the door")))
    }

    fn line(&self, wire: Wire) -> Line {
        let value = Secret::new("sk-for-tests".to_owned());
        Line::Model(Model {
            wire,
            name: self.model.to_owned(),
            base_url: (self.url)(wire),
            key: Some(Key { variable: VARIABLE.to_owned(), value }),
            temperature: None,
            max_tokens: 500,
            effort: None,
            extra: self.extra.clone(),
        })
    }
}

impl Asker<'_> {
    pub(crate) fn ask(&self, wire: Wire, prompt: &str) -> Result<Reply, AgentError> {
        self.go_on(wire, prompt, None)
    }

    /// The same, going on from an answer.
    pub(crate) fn go_on(
        &self,
        wire: Wire,
        prompt: &str,
        continues: Option<Continuation>,
    ) -> Result<Reply, AgentError> {
        let place = WIRES.iter().position(|other| *other == wire).expect("one of five");
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        self.0.answer(&Question {
            key: format!("{}-{}", wire.provider(), prompt.chars().map(plain).collect::<String>()),
            role: Role::ALL[place],
            round: 0,
            prompt: prompt.into(),
            continues,
            place: None,
            node: None,
        })
    }
}
