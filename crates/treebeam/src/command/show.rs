//! `treebeam show`: all that is on record about one node or one eval. Reads only.

mod document;

use super::Output;
use super::chosen::Chosen;
use crate::failure::{Exit, Failure};
use crate::terminal;
use crate::wiring::Found;

pub(super) fn run(found: &Found, id: &str, output: Output) -> Result<Exit, Failure> {
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
