//! What asking for ideas has brought so far, turn by turn, and what the next turn has to ask for. Who is asked, and about
//! what, is not known here.

use crate::reply;
use std::collections::BTreeSet;
use treebeam_core::event::Repeat;
use treebeam_core::id::Sha256;
use treebeam_core::idea::{self, Part};
use treebeam_core::policy::DedupeScope;

/// How often somebody is asked for ideas before what came has to do.
const ASKS: u32 = 3;
/// The most repeats that are remembered: nobody wants to hear of more.
const MOST_REPEATS: usize = 1000;

/// What the asking has brought.
pub(crate) struct Haul {
    /// How many ideas there are to be in the end.
    wanted: usize,
    scope: DedupeScope,
    /// Fingerprints that may not come again.
    seen: BTreeSet<Sha256>,
    /// New ideas, each with the turn that brought it.
    pub(crate) texts: Vec<(u32, String)>,
    pub(crate) repeats: Vec<Repeat>,
    parts: Parts,
    /// How many turns are over.
    pub(crate) turns: u32,
    /// Why the last turn brought nothing.
    why: Option<String>,
}

/// Ideas that lack a part. They are asked for once; then they are taken as they are.
enum Parts {
    /// Those that came so far, each with the turn that brought it.
    Open(Vec<(u32, String)>),
    /// The question after these has been asked.
    AskedFor(Vec<(u32, String)>),
}

/// What the next turn asks for.
pub(crate) struct Request {
    pub(crate) count: usize,
    /// What came, and is not new.
    pub(crate) repeated: Vec<String>,
    /// What came, and lacks a part: in words.
    pub(crate) incomplete: Vec<String>,
}

impl Haul {
    pub(crate) fn new(wanted: usize, scope: DedupeScope, seen: BTreeSet<Sha256>) -> Self {
        let (texts, repeats, parts) = (Vec::new(), Vec::new(), Parts::Open(Vec::new()));
        Self { wanted, scope, seen, texts, repeats, parts, turns: 0, why: None }
    }

    /// Whether there is something left to ask for, and a turn left to do it.
    pub(crate) fn is_open(&self) -> bool {
        self.texts.len() < self.wanted && self.turns < ASKS
    }

    pub(crate) fn request(&self) -> Request {
        let incomplete = match &self.parts {
            Parts::Open(texts) => texts.iter().map(|(_, text)| lacking(text)).collect(),
            Parts::AskedFor(_) => Vec::new(),
        };
        Request {
            count: self.wanted - self.texts.len(),
            repeated: self.repeats.iter().map(|repeat| repeat.title.clone()).collect(),
            incomplete,
        }
    }

    /// Takes a turn's reply apart, which lies in `kept`.
    pub(crate) fn hear(&mut self, reply: &str, kept: &str) {
        let before = self.asked_for();
        self.turns += 1;
        let ideas = reply::ideas(reply);
        if ideas.is_empty() {
            self.why = Some(format!("the reply has no `IDEA:` (kept as `{kept}`)"));
        }
        for text in ideas {
            self.sort(text);
        }
        self.keep_those_not_completed(before);
    }

    /// A turn without a reply.
    pub(crate) fn miss(&mut self, why: String) {
        let before = self.asked_for();
        self.turns += 1;
        self.why = Some(why);
        self.keep_those_not_completed(before);
    }

    /// What a user gave: as it is.
    pub(crate) fn take_given(&mut self, text: String) {
        self.take(1, text);
    }

    /// There are no more turns: what lacks a part has to do as it is.
    pub(crate) fn end(&mut self) {
        let (Parts::Open(left) | Parts::AskedFor(left)) =
            std::mem::replace(&mut self.parts, Parts::AskedFor(Vec::new()));
        for (turn, text) in left {
            self.take(turn, text);
        }
    }

    /// Why there is nothing.
    pub(crate) fn why(&self) -> String {
        self.why.clone().unwrap_or_else(|| "every idea was a repeat".to_owned())
    }

    /// Those whose parts the turn that ends now has asked for.
    fn asked_for(&mut self) -> Vec<(u32, String)> {
        match &mut self.parts {
            Parts::Open(texts) if !texts.is_empty() => {
                let asked = std::mem::take(texts);
                self.parts = Parts::AskedFor(Vec::new());
                asked
            }
            Parts::Open(_) | Parts::AskedFor(_) => Vec::new(),
        }
    }

    fn keep_those_not_completed(&mut self, before: Vec<(u32, String)>) {
        let title = |text: &str| idea::normalise(&idea::title(text));
        let came: BTreeSet<String> = self.texts.iter().map(|(_, text)| title(text)).collect();
        let left = before.into_iter().filter(|(_, text)| !came.contains(&title(text)));
        if let Parts::AskedFor(kept) = &mut self.parts {
            kept.extend(left);
        }
    }

    fn sort(&mut self, text: String) {
        let turn = self.turns;
        let is_new =
            self.scope == DedupeScope::None || !self.seen.contains(&idea::fingerprint(&text));
        match &mut self.parts {
            Parts::Open(texts) if is_new && !reply::missing(&text).is_empty() => {
                if texts.len() < self.wanted {
                    texts.push((turn, text));
                }
            }
            Parts::Open(_) | Parts::AskedFor(_) => self.take(turn, text),
        }
    }

    fn take(&mut self, turn: u32, text: String) {
        let fingerprint = idea::fingerprint(&text);
        if !self.seen.insert(fingerprint) && self.scope != DedupeScope::None {
            if self.repeats.len() < MOST_REPEATS {
                self.repeats.push(Repeat { fingerprint, title: idea::title(&text) });
            }
        } else if self.texts.len() < self.wanted {
            self.texts.push((turn, text));
        }
    }
}

/// `Widen the window: lacks RATIONALE:, REQUIRED_CHANGES:`.
fn lacking(text: &str) -> String {
    let keys: Vec<String> =
        reply::missing(text).into_iter().map(Part::key).map(|key| format!("`{key}:`")).collect();
    format!("{}: it lacks {}", idea::title(text), keys.join(" and "))
}

#[cfg(test)]
mod tests;
