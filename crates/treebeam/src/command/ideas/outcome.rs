//! Renders the outcome of `treebeam ideas` as text and JSON.

use super::super::OutputFormat;
use super::existing_ideas::ExistingIdeas;
use crate::failure::{CommandExit, CommandFailure};
use crate::terminal;
use serde_json::{Value, json};
use std::path::PathBuf;
use treebeam_core::id::Sha256;
use treebeam_core::idea;
use treebeam_run::conversation::document::LoggedTurn;
use treebeam_run::figures;
use treebeam_run::standalone_ideas::StandaloneIdeas;
use treebeam_store::ideas_dir::{IdeasDir, IdeasDirBatch, NewIdeaFile, SetAsideFiles};

pub(super) struct IdeasDirOutcome {
    folder: PathBuf,
    generated: Vec<NewIdeaFile>,
    aside: Option<SetAsideFiles>,
    brought: Option<StandaloneIdeas>,
}

impl IdeasDirOutcome {
    pub(super) fn empty(dir: &IdeasDir) -> Self {
        Self::from_batch(dir, IdeasDirBatch::default())
    }

    pub(super) fn from_batch(dir: &IdeasDir, batch: IdeasDirBatch) -> Self {
        let IdeasDirBatch { aside, files: generated, .. } = batch;
        Self { folder: dir.folder().to_owned(), generated, aside, brought: None }
    }

    /// Merges the outcome of an earlier, completed call into this one.
    pub(super) fn with_earlier(mut self, begun: Option<Self>) -> Self {
        if let Some(begun) = begun {
            self.generated.splice(0..0, begun.generated);
            self.aside = self.aside.or(begun.aside);
        }
        self
    }

    pub(super) fn with_ideas(self, brought: StandaloneIdeas) -> Self {
        Self { brought: Some(brought), ..self }
    }

    pub(super) fn show_and_exit(
        &self,
        there: &ExistingIdeas,
        count: usize,
        output: OutputFormat,
    ) -> Result<CommandExit, CommandFailure> {
        match output {
            OutputFormat::Json => terminal::print_json(&self.render_json(there, count))?,
            OutputFormat::Text => self.show_text(there)?,
        }
        let missing = count.saturating_sub(self.all_ideas(there).len());
        if missing > 0 {
            let why = self.brought.as_ref().and_then(|brought| brought.end.shortfall_reason());
            let why = why.unwrap_or("no more came");
            terminal::print_note(&format!("{missing} of {count} ideas are missing: {why}"));
        }
        Ok(CommandExit::Done)
    }

    /// Returns name and text of the ideas that existed and stay.
    fn kept_ideas<'a>(
        &'a self,
        there: &'a ExistingIdeas,
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        let is_gone = |name: &str| {
            let new = self.generated.iter().any(|file| file.name == name);
            let aside = self.aside.iter().flat_map(|aside| &aside.names).any(|gone| gone == name);
            new || aside
        };
        let own = there.own.iter().map(|file| (file.name.as_str(), file.text.as_str()));
        own.filter(move |(name, _)| !is_gone(name))
    }

    fn all_ideas<'a>(&'a self, there: &'a ExistingIdeas) -> Vec<(&'a str, &'a str)> {
        let new = self.generated.iter().map(|file| (file.name.as_str(), file.text.as_str()));
        self.kept_ideas(there).chain(new).collect()
    }

    fn show_text(&self, there: &ExistingIdeas) -> Result<(), CommandFailure> {
        let line = |what: &str, name: &str, text: &str| {
            let file = self.folder.join(name);
            terminal::print_text(&format!(
                "{what}  {}  {}\n",
                file.display(),
                idea::idea_title(text)
            ))
        };
        for (name, text) in self.kept_ideas(there) {
            line("kept", name, text)?;
        }
        for file in &self.generated {
            line("new ", &file.name, &file.text)?;
        }
        if let Some(SetAsideFiles { folder, names }) = &self.aside {
            let folder = self.folder.join(folder);
            terminal::print_line(&format!(
                "{} ideas are set aside in {}",
                names.len(),
                folder.display()
            ));
        }
        Ok(())
    }

    fn render_json(&self, there: &ExistingIdeas, count: usize) -> Value {
        let file = |(name, text): (&str, &str)| {
            json!({
                "file": name,
                "title": idea::idea_title(text),
                "sha256": Sha256::hash_bytes(text.as_bytes()),
            })
        };
        let generated = self.generated.iter().map(|new| file((&new.name, &new.text)));
        let context = there.context.iter().map(|known| file((&known.name, &known.text)));
        let repeats = self.brought.iter().flat_map(|brought| &brought.repeats);
        json!({
            "schema": "treebeam.ideas/1",
            "ideas_dir": self.folder,
            "count": count,
            "missing": count.saturating_sub(self.all_ideas(there).len()),
            "kept": self.kept_ideas(there).map(file).collect::<Vec<_>>(),
            "generated": generated.collect::<Vec<_>>(),
            "set_aside": self.aside,
            "context": context.collect::<Vec<_>>(),
            "repeats": repeats.map(|repeat| &repeat.title).collect::<Vec<_>>(),
            "turns": self.brought.as_ref().map_or(0, |brought| brought.turns),
            "usage": self.brought.as_ref().map(|brought| figures::usage_json(&brought.bills)),
            "cost_usd": self.brought.as_ref().and_then(|brought| figures::cost_in_dollars(&brought.bills)),
            "why": self.brought.as_ref().and_then(|brought| brought.end.shortfall_reason()),
            "conversation": self.brought.as_ref().and_then(render_turns_json),
        })
    }
}

/// Renders the new turns of the conversation.
fn render_turns_json(brought: &StandaloneIdeas) -> Option<Value> {
    let said = brought.conversation.as_ref()?;
    let turn = |turn: &LoggedTurn| {
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
        "latest_turn_id": said.latest_turn(),
        "turns": brought.new_turns.iter().map(turn).collect::<Vec<_>>(),
    }))
}
