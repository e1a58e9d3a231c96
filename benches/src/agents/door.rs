//! treebeam's side: the whole door with all its layers, every answer on disk before it is used. As many threads ask as calls
//! are to be under way.

use super::server::text;
use super::{Case, Contender, PROMPT};
use crate::Outcome;
use crate::gauge::{self, Took};
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use treebeam_edge::agent::bucket::Limits;
use treebeam_edge::agent::budgeted::Budget;
use treebeam_edge::agent::calls::Calls;
use treebeam_edge::agent::command::Surroundings;
use treebeam_edge::agent::crew::Crew;
use treebeam_edge::agent::price::Prices;
use treebeam_edge::agent::question::Question;
use treebeam_edge::agent::retrying::Patience;
use treebeam_edge::agent::settings::{Line, MAX_TOKENS, Model, Settings, Wire};
use treebeam_edge::agent::wait::{Observer, Wait};
use treebeam_edge::agent::{Door, Plan};
use treebeam_run::port::Role;

struct Nobody;

impl Observer for Nobody {
    fn waits(&self, _: &Wait<'_>) {}
    fn note(&self, _: &str) {}
    fn wants_to_stop(&self) -> bool {
        false
    }
}

/// A door, and how many questions went through it.
pub(super) struct Behind {
    door: Door<'static>,
    asked: AtomicU32,
}

impl Behind {
    pub(super) fn new(port: u16, folder: &Path) -> Outcome<Self> {
        // A door lives as long as what it is opened with: here as long as the process.
        let plan: &'static Plan = Box::leak(Box::new(plan(port, folder)));
        Ok(Self { door: Door::open(plan, &Nobody)?, asked: AtomicU32::new(0) })
    }

    fn ask(&self, expected: &str) -> Result<(), String> {
        let question = Question {
            key: format!("call-{}", self.asked.fetch_add(1, Ordering::Relaxed)),
            role: Role::Coder,
            round: 0,
            prompt: PROMPT.into(),
            continues: None,
            place: None,
            node: None,
        };
        let reply = self.door.answer(&question).map_err(|error| error.to_string())?;
        if reply.text == expected { Ok(()) } else { Err(format!("answered {:?}", reply.text)) }
    }
}

fn plan(port: u16, folder: &Path) -> Plan {
    let model = Model {
        wire: Wire::Chat,
        name: "m-1".to_owned(),
        base_url: format!("http://127.0.0.1:{port}/v1"),
        key: None,
        temperature: None,
        max_tokens: MAX_TOKENS,
        effort: None,
        extra: serde_json::Map::new(),
    };
    let settings = Settings { line: Line::Model(model), timeout: Duration::from_mins(1) };
    let many = NonZeroU32::MIN.saturating_add(999);
    Plan {
        crew: Crew::new(BTreeMap::from([(Role::Coder, settings)])),
        prices: Prices::default(),
        budget: Budget::default(),
        limits: Limits { in_flight: many, requests: None, tokens: None },
        patience: Patience::BRIEF,
        calls: Calls::Folder(folder.join("calls")),
        replays: None,
        surroundings: Surroundings::Folder(folder.to_owned()),
    }
}

impl Contender for Behind {
    fn round(&mut self, case: Case) -> Outcome<Took> {
        let (behind, expected): (&Self, _) = (self, text());
        let share = || (0..case.calls / case.at_once).try_for_each(|_| behind.ask(&expected));
        let (begun, before) = (Instant::now(), gauge::process_time()?);
        thread::scope(|scope| {
            let threads: Vec<_> = (0..case.at_once).map(|_| scope.spawn(share)).collect();
            let panicked = |_| Err("a thread panicked".to_owned());
            threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(panicked))
        })?;
        let processor = gauge::process_time()?.saturating_sub(before).as_secs_f64();
        Ok(Took { processor, wall: begun.elapsed().as_secs_f64() })
    }
}
