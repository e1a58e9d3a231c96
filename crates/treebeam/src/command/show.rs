//! `treebeam show`: all that is on record about one node, one eval or one conversation. Reads only.

mod document;

use super::Output;
use super::chosen::{self, Chosen};
use crate::failure::{Exit, Failure};
use crate::terminal;
use crate::wiring::Found;
use treebeam_core::id::{NodeId, Place};

/// Stands before the name of a conversation.
const CONVERSATION: &str = "conv";

/// What is to be shown of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item<'a> {
    /// The conversation of a node.
    Conversation(NodeId),
    /// A node or an eval, by its name.
    Place(&'a str),
}

/// What was typed: the run, where it is named, and what is to be shown of it.
pub(super) fn read(words: &[String]) -> Result<(Option<&str>, Item<'_>), Failure> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match *words {
        [id] => Ok((None, item(id))),
        // A run may have that name.
        [CONVERSATION, id] if chosen::conversation_after_word(id).is_ok() => {
            Ok((None, Item::Conversation(chosen::conversation_after_word(id)?)))
        }
        [run, id] => Ok((Some(run), item(id))),
        [run, CONVERSATION, id] => {
            Ok((Some(run), Item::Conversation(chosen::conversation_after_word(id)?)))
        }
        _ => Err(Failure::usage("more than a run and what is to be shown of it was named")
            .hint("say it like `treebeam show RUN n0003`, or `treebeam show RUN conv c0003`")),
    }
}

fn item(id: &str) -> Item<'_> {
    chosen::conversation(id).map_or(Item::Place(id), Item::Conversation)
}

pub(super) fn run(found: &Found, item: Item<'_>, output: Output) -> Result<Exit, Failure> {
    match item {
        Item::Conversation(node) => conversation(found, node, output),
        Item::Place(id) => place(found, id, output),
    }
}

fn place(found: &Found, id: &str, output: Output) -> Result<Exit, Failure> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_may_be_named_and_a_conversation_in_two_ways() {
        let talk = |number| Item::Conversation(NodeId::new(number));
        let check = |typed: &str, expect: (Option<&str>, Item<'_>)| {
            let words: Vec<String> = typed.split(' ').map(str::to_owned).collect();
            assert_eq!(read(&words).ok(), Some(expect), "{typed}");
        };
        check("n0003", (None, Item::Place("n0003")));
        check("t e0012", (Some("t"), Item::Place("e0012")));
        check("c0003", (None, talk(3)));
        check("t c0003", (Some("t"), talk(3)));
        check("conv 3", (None, talk(3)));
        check("conv c0003", (None, talk(3)));
        check("t conv c12", (Some("t"), talk(12)));
        check("conv conv 0003", (Some("conv"), talk(3)));
        check("conv n0003", (Some("conv"), Item::Place("n0003")));
        for odd in ["t conv n0003", "t conv first", "t talk c0003"] {
            let words: Vec<String> = odd.split(' ').map(str::to_owned).collect();
            assert!(read(&words).is_err(), "{odd}");
        }
    }
}
