//! What `treebeam ideas` did, in words and as a document.

use super::super::Output;
use super::there::There;
use crate::failure::{Exit, Failure};
use crate::terminal;
use serde_json::{Value, json};
use std::path::PathBuf;
use treebeam_core::id::Sha256;
use treebeam_core::idea;
use treebeam_edge::ideas_dir::{Aside, Batch, IdeasDir, NewFile};
use treebeam_run::alone::Brought;
use treebeam_run::conversation::document::Logged;
use treebeam_run::figures;

pub(super) struct Outcome {
    folder: PathBuf,
    generated: Vec<NewFile>,
    aside: Option<Aside>,
    brought: Option<Brought>,
}

impl Outcome {
    pub(super) fn nothing(dir: &IdeasDir) -> Self {
        Self::of(dir, Batch::default())
    }

    pub(super) fn of(dir: &IdeasDir, batch: Batch) -> Self {
        let Batch { aside, files: generated, .. } = batch;
        Self { folder: dir.folder().to_owned(), generated, aside, brought: None }
    }

    /// The same after what was finished first.
    pub(super) fn and_before(mut self, begun: Option<Self>) -> Self {
        if let Some(begun) = begun {
            self.generated.splice(0..0, begun.generated);
            self.aside = self.aside.or(begun.aside);
        }
        self
    }

    pub(super) fn with(self, brought: Brought) -> Self {
        Self { brought: Some(brought), ..self }
    }

    pub(super) fn tell(
        &self,
        there: &There,
        count: usize,
        output: Output,
    ) -> Result<Exit, Failure> {
        match output {
            Output::Json => terminal::json(&self.document(there, count))?,
            Output::Text => self.show(there)?,
        }
        let missing = count.saturating_sub(self.all(there).len());
        if missing > 0 {
            let why = self.brought.as_ref().and_then(|brought| brought.end.why());
            let why = why.unwrap_or("no more came");
            terminal::note(&format!("{missing} of {count} ideas are missing: {why}"));
        }
        Ok(Exit::Done)
    }

    /// The names of those that were there and stay.
    fn kept<'a>(&'a self, there: &'a There) -> impl Iterator<Item = (&'a str, &'a str)> {
        let is_gone = |name: &str| {
            let new = self.generated.iter().any(|file| file.name == name);
            let aside = self.aside.iter().flat_map(|aside| &aside.names).any(|gone| gone == name);
            new || aside
        };
        let own = there.own.iter().map(|file| (file.name.as_str(), file.text.as_str()));
        own.filter(move |(name, _)| !is_gone(name))
    }

    fn all<'a>(&'a self, there: &'a There) -> Vec<(&'a str, &'a str)> {
        let new = self.generated.iter().map(|file| (file.name.as_str(), file.text.as_str()));
        self.kept(there).chain(new).collect()
    }

    fn show(&self, there: &There) -> Result<(), Failure> {
        let line = |what: &str, name: &str, text: &str| {
            let file = self.folder.join(name);
            terminal::show(&format!("{what}  {}  {}\n", file.display(), idea::title(text)))
        };
        for (name, text) in self.kept(there) {
            line("kept", name, text)?;
        }
        for file in &self.generated {
            line("new ", &file.name, &file.text)?;
        }
        if let Some(Aside { folder, names }) = &self.aside {
            let folder = self.folder.join(folder);
            terminal::say(&format!("{} ideas are set aside in {}", names.len(), folder.display()));
        }
        Ok(())
    }

    fn document(&self, there: &There, count: usize) -> Value {
        let file = |(name, text): (&str, &str)| {
            json!({
                "file": name,
                "title": idea::title(text),
                "sha256": Sha256::of(text.as_bytes()),
            })
        };
        let generated = self.generated.iter().map(|new| file((&new.name, &new.text)));
        let context = there.context.iter().map(|known| file((&known.name, &known.text)));
        let repeats = self.brought.iter().flat_map(|brought| &brought.repeats);
        json!({
            "schema": "treebeam.ideas/1",
            "ideas_dir": self.folder,
            "count": count,
            "missing": count.saturating_sub(self.all(there).len()),
            "kept": self.kept(there).map(file).collect::<Vec<_>>(),
            "generated": generated.collect::<Vec<_>>(),
            "set_aside": self.aside,
            "context": context.collect::<Vec<_>>(),
            "repeats": repeats.map(|repeat| &repeat.title).collect::<Vec<_>>(),
            "turns": self.brought.as_ref().map_or(0, |brought| brought.turns),
            "usage": self.brought.as_ref().map(|brought| figures::usage(&brought.bills)),
            "cost_usd": self.brought.as_ref().and_then(|brought| figures::cost(&brought.bills)),
            "why": self.brought.as_ref().and_then(|brought| brought.end.why()),
            "conversation": self.brought.as_ref().and_then(conversation),
        })
    }
}

/// The conversation after what was said, and what was said.
fn conversation(brought: &Brought) -> Option<Value> {
    let said = brought.conversation.as_ref()?;
    let turn = |turn: &Logged| {
        json!({
            "turn_id": turn.turn_id,
            "key": turn.key,
            "mode": turn.mode,
            "asked": turn.asked,
            "prompt_sha256": turn.prompt_sha256,
            "reply_sha256": turn.reply_sha256,
            "continued_id": turn.continued_id,
            "provider_id": turn.provider_id,
            "note": turn.note,
            "at": turn.at,
        })
    };
    Some(json!({
        "conversation_id": format!("c{}", said.node_id),
        "fork_from_turn_id": said.fork_from_turn_id,
        "latest_turn_id": said.latest(),
        "turns": brought.said.iter().map(turn).collect::<Vec<_>>(),
    }))
}
