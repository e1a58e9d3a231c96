//! Collects the ideas of a proposal turn by turn, and decides what the next turn asks for. It does
//! not depend on the agent or on the topic.

use crate::reply;
use std::collections::BTreeSet;
use treebeam_core::event::RepeatedIdea;
use treebeam_core::id::Sha256;
use treebeam_core::idea::{self, IdeaPart};
use treebeam_core::policy::DedupeScope;

/// Largest number of turns in which ideas are asked for.
const MAX_IDEA_TURNS: u32 = 3;
/// Largest number of repeats that are kept.
const MAX_REPEATS: usize = 1000;

/// The ideas collected so far.
pub(crate) struct IdeaBatch {
    /// Number of ideas wanted in the end.
    wanted: usize,
    scope: DedupeScope,
    /// Fingerprints of ideas that may not be repeated.
    seen: BTreeSet<Sha256>,
    /// New ideas, each with its turn.
    pub(crate) texts: Vec<(u32, String)>,
    pub(crate) repeats: Vec<RepeatedIdea>,
    parts: IncompleteIdeas,
    /// Number of finished turns.
    pub(crate) turns: u32,
    /// Reason why the last turn brought nothing.
    why: Option<String>,
}

/// Ideas that lack a part. Their parts are asked for once; then the ideas are accepted as they are.
enum IncompleteIdeas {
    /// Ideas that came so far, each with its turn.
    Open(Vec<(u32, String)>),
    /// Ideas that came after the question for missing parts.
    AskedFor(Vec<(u32, String)>),
}

/// The request of the next turn.
pub(crate) struct IdeaRequest {
    pub(crate) count: usize,
    /// Titles of answered ideas that are not new.
    pub(crate) repeated: Vec<String>,
    /// Descriptions of answered ideas that lack a part.
    pub(crate) incomplete: Vec<String>,
}

impl IdeaBatch {
    pub(crate) fn new(wanted: usize, scope: DedupeScope, seen: BTreeSet<Sha256>) -> Self {
        let (texts, repeats, parts) = (Vec::new(), Vec::new(), IncompleteIdeas::Open(Vec::new()));
        Self { wanted, scope, seen, texts, repeats, parts, turns: 0, why: None }
    }

    /// Returns true if ideas are missing and a turn is left.
    pub(crate) fn is_open(&self) -> bool {
        self.texts.len() < self.wanted && self.turns < MAX_IDEA_TURNS
    }

    pub(crate) fn next_request(&self) -> IdeaRequest {
        let incomplete = match &self.parts {
            IncompleteIdeas::Open(texts) => {
                texts.iter().map(|(_, text)| describe_missing_parts(text)).collect()
            }
            IncompleteIdeas::AskedFor(_) => Vec::new(),
        };
        IdeaRequest {
            count: self.wanted - self.texts.len(),
            repeated: self.repeats.iter().map(|repeat| repeat.title.clone()).collect(),
            incomplete,
        }
    }

    /// Adds the ideas of a turn's reply, which is kept in the file `kept`.
    pub(crate) fn add_reply(&mut self, reply: &str, kept: &str) {
        let before = self.begin_completion();
        self.turns += 1;
        let ideas = reply::parse_ideas(reply);
        if ideas.is_empty() {
            self.why = Some(format!("the reply has no `IDEA:` (kept as `{kept}`)"));
        }
        for text in ideas {
            self.sort_idea(text);
        }
        self.keep_incomplete(before);
    }

    /// Adds a turn without a reply.
    pub(crate) fn add_missed_turn(&mut self, why: String) {
        let before = self.begin_completion();
        self.turns += 1;
        self.why = Some(why);
        self.keep_incomplete(before);
    }

    /// Adds an idea of the user's as it is.
    pub(crate) fn add_user_idea(&mut self, text: String) {
        self.add_idea(1, text);
    }

    /// Accepts the ideas that lack a part, after the last turn.
    pub(crate) fn take_incomplete(&mut self) {
        let (IncompleteIdeas::Open(left) | IncompleteIdeas::AskedFor(left)) =
            std::mem::replace(&mut self.parts, IncompleteIdeas::AskedFor(Vec::new()));
        for (turn, text) in left {
            self.add_idea(turn, text);
        }
    }

    /// Returns the reason why there are no ideas.
    pub(crate) fn shortfall_reason(&self) -> String {
        self.why.clone().unwrap_or_else(|| "every idea was a repeat".to_owned())
    }

    /// Takes the ideas whose missing parts were asked for in the turn that ends now.
    fn begin_completion(&mut self) -> Vec<(u32, String)> {
        match &mut self.parts {
            IncompleteIdeas::Open(texts) if !texts.is_empty() => {
                let asked = std::mem::take(texts);
                self.parts = IncompleteIdeas::AskedFor(Vec::new());
                asked
            }
            IncompleteIdeas::Open(_) | IncompleteIdeas::AskedFor(_) => Vec::new(),
        }
    }

    fn keep_incomplete(&mut self, before: Vec<(u32, String)>) {
        let title = |text: &str| idea::normalise_idea(&idea::idea_title(text));
        let came: BTreeSet<String> = self.texts.iter().map(|(_, text)| title(text)).collect();
        let left = before.into_iter().filter(|(_, text)| !came.contains(&title(text)));
        if let IncompleteIdeas::AskedFor(kept) = &mut self.parts {
            kept.extend(left);
        }
    }

    fn sort_idea(&mut self, text: String) {
        let turn = self.turns;
        let is_new =
            self.scope == DedupeScope::None || !self.seen.contains(&idea::idea_fingerprint(&text));
        match &mut self.parts {
            IncompleteIdeas::Open(texts) if is_new && !reply::missing_parts(&text).is_empty() => {
                if texts.len() < self.wanted {
                    texts.push((turn, text));
                }
            }
            IncompleteIdeas::Open(_) | IncompleteIdeas::AskedFor(_) => self.add_idea(turn, text),
        }
    }

    fn add_idea(&mut self, turn: u32, text: String) {
        let fingerprint = idea::idea_fingerprint(&text);
        if !self.seen.insert(fingerprint) && self.scope != DedupeScope::None {
            if self.repeats.len() < MAX_REPEATS {
                self.repeats.push(RepeatedIdea { fingerprint, title: idea::idea_title(&text) });
            }
        } else if self.texts.len() < self.wanted {
            self.texts.push((turn, text));
        }
    }
}

/// Describes the missing parts: `Widen the window: it lacks …`.
fn describe_missing_parts(text: &str) -> String {
    let keys: Vec<String> = reply::missing_parts(text)
        .into_iter()
        .map(IdeaPart::key)
        .map(|key| format!("`{key}:`"))
        .collect();
    format!("{}: it lacks {}", idea::idea_title(text), keys.join(" and "))
}

#[cfg(test)]
mod tests;
