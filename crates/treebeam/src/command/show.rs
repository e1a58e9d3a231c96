//! `treebeam show`: shows the record of one node, eval or conversation. Reads only.

mod document;

use super::OutputFormat;
use super::chosen_place::{self, ChosenPlace};
use crate::failure::{CommandExit, CommandFailure};
use crate::run_location::RunLocation;
use crate::terminal;
use treebeam_core::id::{CodePlace, NodeId};

/// Argument before the number of a conversation.
const CONVERSATION_WORD: &str = "conv";

/// Item of a run to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShowTarget<'a> {
    /// Conversation of a node.
    Conversation(NodeId),
    /// Name of a node or an eval.
    Place(&'a str),
}

/// Parses the arguments: the run, if it is named, and the item to show.
pub(super) fn parse_show_words(
    words: &[String],
) -> Result<(Option<&str>, ShowTarget<'_>), CommandFailure> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match *words {
        [id] => Ok((None, parse_target(id))),
        // `conv` may also be the name of a run.
        [CONVERSATION_WORD, id] if chosen_place::require_conversation_id(id).is_ok() => {
            Ok((None, ShowTarget::Conversation(chosen_place::require_conversation_id(id)?)))
        }
        [run, id] => Ok((Some(run), parse_target(id))),
        [run, CONVERSATION_WORD, id] => {
            Ok((Some(run), ShowTarget::Conversation(chosen_place::require_conversation_id(id)?)))
        }
        _ => Err(CommandFailure::usage("more than a run and what is to be shown of it was named")
            .with_hint("say it like `treebeam show RUN n0003`, or `treebeam show RUN conv c0003`")),
    }
}

fn parse_target(id: &str) -> ShowTarget<'_> {
    chosen_place::parse_conversation_id(id).map_or(ShowTarget::Place(id), ShowTarget::Conversation)
}

pub(super) fn run_show(
    found: &RunLocation,
    item: ShowTarget<'_>,
    output: OutputFormat,
) -> Result<CommandExit, CommandFailure> {
    match item {
        ShowTarget::Conversation(node) => show_conversation(found, node, output),
        ShowTarget::Place(id) => show_place(found, id, output),
    }
}

fn show_place(
    found: &RunLocation,
    id: &str,
    output: OutputFormat,
) -> Result<CommandExit, CommandFailure> {
    let ChosenPlace { state, place } = ChosenPlace::find(found, id)?;
    let gone = || CommandFailure::usage(format!("there is no `{place}`"));
    match output {
        OutputFormat::Json => {
            terminal::print_json(&document::render_place_json(&state, place).ok_or_else(gone)?)?;
        }
        OutputFormat::Text => {
            let below = found.run.root().display().to_string();
            terminal::print_text(
                &treebeam_view::render_show(&state, place, &below).ok_or_else(gone)?,
            )?;
        }
    }
    Ok(CommandExit::Done)
}

fn show_conversation(
    found: &RunLocation,
    node: NodeId,
    output: OutputFormat,
) -> Result<CommandExit, CommandFailure> {
    let ChosenPlace { state, .. } = ChosenPlace::find(found, &CodePlace::Node(node).to_string())?;
    let gone = || CommandFailure::usage(format!("there is no `c{node}`"));
    match output {
        OutputFormat::Json => terminal::print_json(
            &document::render_conversation_json(&state, node).ok_or_else(gone)?,
        )?,
        OutputFormat::Text => {
            let below = found.run.root().display().to_string();
            let shown = treebeam_view::show::render_conversation(&state, node, &below);
            terminal::print_text(&shown.ok_or_else(gone)?)?;
        }
    }
    Ok(CommandExit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_may_be_named_and_a_conversation_in_two_ways() {
        let talk = |number| ShowTarget::Conversation(NodeId::new(number));
        let check = |typed: &str, expect: (Option<&str>, ShowTarget<'_>)| {
            let words: Vec<String> = typed.split(' ').map(str::to_owned).collect();
            assert_eq!(parse_show_words(&words).ok(), Some(expect), "{typed}");
        };
        check("n0003", (None, ShowTarget::Place("n0003")));
        check("t e0012", (Some("t"), ShowTarget::Place("e0012")));
        check("c0003", (None, talk(3)));
        check("t c0003", (Some("t"), talk(3)));
        check("conv 3", (None, talk(3)));
        check("conv c0003", (None, talk(3)));
        check("t conv c12", (Some("t"), talk(12)));
        check("conv conv 0003", (Some("conv"), talk(3)));
        check("conv n0003", (Some("conv"), ShowTarget::Place("n0003")));
        for odd in ["t conv n0003", "t conv first", "t talk c0003"] {
            let words: Vec<String> = odd.split(' ').map(str::to_owned).collect();
            assert!(parse_show_words(&words).is_err(), "{odd}");
        }
    }
}
