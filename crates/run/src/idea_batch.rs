//! What asking for ideas has brought so far, turn by turn, and what the next turn has to ask for. Who is asked, and about
//! what, is not known here.

use crate::reply;
use std::collections::BTreeSet;
use treebeam_core::event::RepeatedIdea;
use treebeam_core::id::Sha256;
use treebeam_core::idea::{self, IdeaPart};
use treebeam_core::policy::DedupeScope;

/// How often somebody is asked for ideas before what came has to do.
const MAX_IDEA_TURNS: u32 = 3;
/// The most repeats that are remembered: nobody wants to hear of more.
const MAX_REPEATS: usize = 1000;

/// What the asking has brought.
pub(crate) struct IdeaBatch {
    /// How many ideas there are to be in the end.
    wanted: usize,
    scope: DedupeScope,
    /// Fingerprints that may not come again.
    seen: BTreeSet<Sha256>,
    /// New ideas, each with the turn that brought it.
    pub(crate) texts: Vec<(u32, String)>,
    pub(crate) repeats: Vec<RepeatedIdea>,
    parts: IncompleteIdeas,
    /// How many turns are over.
    pub(crate) turns: u32,
    /// Why the last turn brought nothing.
    why: Option<String>,
}

/// Ideas that lack a part. They are asked for once; then they are taken as they are.
enum IncompleteIdeas {
    /// Those that came so far, each with the turn that brought it.
    Open(Vec<(u32, String)>),
    /// The question after these has been asked.
    AskedFor(Vec<(u32, String)>),
}

/// What the next turn asks for.
pub(crate) struct IdeaRequest {
    pub(crate) count: usize,
    /// What came, and is not new.
    pub(crate) repeated: Vec<String>,
    /// What came, and lacks a part: in words.
    pub(crate) incomplete: Vec<String>,
}

impl IdeaBatch {
    pub(crate) fn new(wanted: usize, scope: DedupeScope, seen: BTreeSet<Sha256>) -> Self {
        let (texts, repeats, parts) = (Vec::new(), Vec::new(), IncompleteIdeas::Open(Vec::new()));
        Self { wanted, scope, seen, texts, repeats, parts, turns: 0, why: None }
    }

    /// Whether there is something left to ask for, and a turn left to do it.
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

    /// Takes a turn's reply apart, which lies in `kept`.
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

    /// A turn without a reply.
    pub(crate) fn add_missed_turn(&mut self, why: String) {
        let before = self.begin_completion();
        self.turns += 1;
        self.why = Some(why);
        self.keep_incomplete(before);
    }

    /// What a user gave: as it is.
    pub(crate) fn add_user_idea(&mut self, text: String) {
        self.add_idea(1, text);
    }

    /// There are no more turns: what lacks a part has to do as it is.
    pub(crate) fn take_incomplete(&mut self) {
        let (IncompleteIdeas::Open(left) | IncompleteIdeas::AskedFor(left)) =
            std::mem::replace(&mut self.parts, IncompleteIdeas::AskedFor(Vec::new()));
        for (turn, text) in left {
            self.add_idea(turn, text);
        }
    }

    /// Why there is nothing.
    pub(crate) fn shortfall_reason(&self) -> String {
        self.why.clone().unwrap_or_else(|| "every idea was a repeat".to_owned())
    }

    /// Those whose parts the turn that ends now has asked for.
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

/// `Widen the window: lacks RATIONALE:, REQUIRED_CHANGES:`.
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
