//! Five agents behind one door, each with another wire format, and short timeouts. Results are
//! checked elsewhere.

use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;
use treebeam_agent::bucket::AgentLimits;
use treebeam_agent::budget_layer::Budget;
use treebeam_agent::call_store::CallStore;
use treebeam_agent::command::AgentWorkspace;
use treebeam_agent::price::ModelPrices;
use treebeam_agent::question::AgentQuestion;
use treebeam_agent::retry_layer::RetryPolicy;
use treebeam_agent::retry_timer::{DoorObserver, QuestionWait};
use treebeam_agent::role_agents::RoleAgents;
use treebeam_agent::settings::{AgentKind, AgentSettings, ApiKey, ModelAgent, WireFormat};
use treebeam_agent::{AgentDoor, DoorPlan};
use treebeam_run::port::{AgentError, AgentReply, AgentRole, Continuation};
use treebeam_store::env_file::Secret;

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");
pub(crate) const VARIABLE: &str = "THE_KEY";

pub(crate) const WIRES: [WireFormat; 5] = [
    WireFormat::Responses,
    WireFormat::Chat,
    WireFormat::Messages,
    WireFormat::Gemini,
    WireFormat::Ollama,
];

/// Settings that all five have in common.
pub(crate) struct Five<'a> {
    /// URL of the server of a wire format.
    pub(crate) url: &'a dyn Fn(WireFormat) -> String,
    pub(crate) model: &'a str,
    pub(crate) extra: Map<String, Value>,
    /// Maximum time of one try.
    pub(crate) timeout: Duration,
    /// Maximum wait for a rate limit.
    pub(crate) wait: Duration,
}

struct Nobody;

impl DoorObserver for Nobody {
    fn on_wait(&self, _: &QuestionWait<'_>) {}
    fn on_note(&self, _: &str) {}
    fn wants_to_stop(&self) -> bool {
        false
    }
}

/// Sends questions to one of five agents.
pub(crate) struct Asker<'a>(&'a AgentDoor<'a>);

impl Five<'_> {
    /// Opens the door for an action, and closes it afterwards.
    pub(crate) fn meet<T>(&self, f: impl FnOnce(&Asker<'_>) -> T) -> T {
        let folder = tempfile::tempdir().expect("a folder");
        let settings = |wire| AgentSettings { line: self.line(wire), timeout: self.timeout };
        let role_agents =
            AgentRole::ALL.into_iter().zip(WIRES.map(settings)).collect::<BTreeMap<_, _>>();
        let many = NonZeroU32::MIN.saturating_add(999);
        let plan = DoorPlan {
            role_agents: RoleAgents::new(role_agents),
            prices: ModelPrices::default(),
            budget: Budget::default(),
            limits: AgentLimits { in_flight: many, requests: None, tokens: None },
            patience: RetryPolicy {
                tries: 3,
                pause: Duration::from_millis(200),
                longest_pause: Duration::from_secs(1),
                wait: self.wait * 4,
                rate_limit: self.wait,
                outage: Duration::ZERO,
                first_answer: Duration::ZERO,
                first_byte: None,
            },
            calls: CallStore::Folder(folder.path().join("calls")),
            replays: None,
            surroundings: AgentWorkspace::Folder(folder.path().to_owned()),
        };
        f(&Asker(&AgentDoor::open(&plan, &Nobody).expect("the door")))
    }

    fn line(&self, wire: WireFormat) -> AgentKind {
        let value = Secret::new("sk-for-tests".to_owned());
        AgentKind::Model(ModelAgent {
            wire,
            name: self.model.to_owned(),
            base_url: (self.url)(wire),
            key: Some(ApiKey { variable: VARIABLE.to_owned(), value }),
            temperature: None,
            max_tokens: 500,
            effort: None,
            extra: self.extra.clone(),
        })
    }
}

impl Asker<'_> {
    pub(crate) fn ask(&self, wire: WireFormat, prompt: &str) -> Result<AgentReply, AgentError> {
        self.go_on(wire, prompt, None)
    }

    /// Asks a question that continues from an answer.
    pub(crate) fn go_on(
        &self,
        wire: WireFormat,
        prompt: &str,
        continues: Option<Continuation>,
    ) -> Result<AgentReply, AgentError> {
        let place = WIRES.iter().position(|other| *other == wire).expect("one of five");
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        self.0.answer_question(&AgentQuestion {
            key: format!(
                "{}-{}",
                wire.provider_name(),
                prompt.chars().map(plain).collect::<String>()
            ),
            role: AgentRole::ALL[place],
            round: 0,
            prompt: prompt.into(),
            continues,
            place: None,
            node: None,
        })
    }
}
