//! Measures treebeam's agent door with all its layers: every answer is on disk before it is used.
//!
//! There are as many threads as concurrent calls.

use super::server::text;
use super::{CALL_PROMPT, CallCase, CallContender};
use crate::Outcome;
use crate::gauge::{self, WorkTime};
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use treebeam_agent::bucket::AgentLimits;
use treebeam_agent::budget_layer::Budget;
use treebeam_agent::call_store::CallStore;
use treebeam_agent::command::AgentWorkspace;
use treebeam_agent::price::ModelPrices;
use treebeam_agent::question::AgentQuestion;
use treebeam_agent::retry_layer::RetryPolicy;
use treebeam_agent::retry_timer::{DoorObserver, QuestionWait};
use treebeam_agent::role_agents::RoleAgents;
use treebeam_agent::settings::{
    AgentKind, AgentSettings, DEFAULT_MAX_TOKENS, ModelAgent, WireFormat,
};
use treebeam_agent::{AgentDoor, DoorPlan};
use treebeam_run::port::AgentRole;

struct Nobody;

impl DoorObserver for Nobody {
    fn on_wait(&self, _: &QuestionWait<'_>) {}
    fn on_note(&self, _: &str) {}
    fn wants_to_stop(&self) -> bool {
        false
    }
}

/// A door, and the number of questions through it.
pub(super) struct Behind {
    door: AgentDoor<'static>,
    asked: AtomicU32,
}

impl Behind {
    pub(super) fn new(port: u16, folder: &Path) -> Outcome<Self> {
        // A door lives as long as its plan: here as long as the process.
        let plan: &'static DoorPlan = Box::leak(Box::new(plan(port, folder)));
        Ok(Self { door: AgentDoor::open(plan, &Nobody)?, asked: AtomicU32::new(0) })
    }

    fn ask(&self, expected: &str) -> Result<(), String> {
        let question = AgentQuestion {
            key: format!("call-{}", self.asked.fetch_add(1, Ordering::Relaxed)),
            role: AgentRole::Coder,
            round: 0,
            prompt: CALL_PROMPT.into(),
            continues: None,
            place: None,
            node: None,
        };
        let reply = self.door.answer_question(&question).map_err(|error| error.to_string())?;
        if reply.text == expected { Ok(()) } else { Err(format!("answered {:?}", reply.text)) }
    }
}

fn plan(port: u16, folder: &Path) -> DoorPlan {
    let model = ModelAgent {
        wire: WireFormat::Chat,
        name: "m-1".to_owned(),
        base_url: format!("http://127.0.0.1:{port}/v1"),
        key: None,
        temperature: None,
        max_tokens: DEFAULT_MAX_TOKENS,
        effort: None,
        extra: serde_json::Map::new(),
    };
    let settings = AgentSettings { line: AgentKind::Model(model), timeout: Duration::from_mins(1) };
    let many = NonZeroU32::MIN.saturating_add(999);
    DoorPlan {
        role_agents: RoleAgents::new(BTreeMap::from([(AgentRole::Coder, settings)])),
        prices: ModelPrices::default(),
        budget: Budget::default(),
        limits: AgentLimits { in_flight: many, requests: None, tokens: None },
        patience: RetryPolicy::ATTENDED_COMMAND,
        calls: CallStore::Folder(folder.join("calls")),
        replays: None,
        surroundings: AgentWorkspace::Folder(folder.to_owned()),
    }
}

impl CallContender for Behind {
    fn round(&mut self, case: CallCase) -> Outcome<WorkTime> {
        let (behind, expected): (&Self, _) = (self, text());
        let share = || (0..case.calls / case.at_once).try_for_each(|_| behind.ask(&expected));
        let (begun, before) = (Instant::now(), gauge::process_time()?);
        thread::scope(|scope| {
            let threads: Vec<_> = (0..case.at_once).map(|_| scope.spawn(share)).collect();
            let panicked = |_| Err("a thread panicked".to_owned());
            threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(panicked))
        })?;
        let processor = gauge::process_time()?.saturating_sub(before).as_secs_f64();
        Ok(WorkTime { processor, wall: begun.elapsed().as_secs_f64() })
    }
}
