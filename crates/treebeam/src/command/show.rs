//! `treebeam show`: all that is on record about one node, one eval or one conversation. Reads only.

mod document;

use super::Output;
use super::chosen::{self, Chosen};
use crate::failure::{Exit, Failure};
use crate::terminal;
use crate::wiring::Found;
use treebeam_core::id::{NodeId, Place};

pub(super) fn run(found: &Found, id: &str, output: Output) -> Result<Exit, Failure> {
    if let Some(node) = chosen::conversation(id) {
        return conversation(found, node, output);
    }
    let Chosen { state, place } = Chosen::find(found, id)?;
    let gone = || Failure::usage(format!("there is no `{place}`"));
    match output {
        Output::Json => terminal::json(&document::of(&state, place).ok_or_else(gone)?)?,
        Output::Text => {
            let below = found.run.root().display().to_string();
            terminal::show(&treebeam_view::show(&state, place, &below).ok_or_else(gone)?)?;
        }
    }
    Ok(Exit::Done)
}

fn conversation(found: &Found, node: NodeId, output: Output) -> Result<Exit, Failure> {
    let Chosen { state, .. } = Chosen::find(found, &Place::Node(node).to_string())?;
    let gone = || Failure::usage(format!("there is no `c{node}`"));
    match output {
        Output::Json => terminal::json(&document::conversation(&state, node).ok_or_else(gone)?)?,
        Output::Text => {
            let below = found.run.root().display().to_string();
            let shown = treebeam_view::show::conversation(&state, node, &below);
            terminal::show(&shown.ok_or_else(gone)?)?;
        }
    }
    Ok(Exit::Done)
}
