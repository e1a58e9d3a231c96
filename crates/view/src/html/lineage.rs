//! Renders the conversations and their forks: one row for each node that was asked for ideas.

use super::visible_text::short_line;
use crate::lookup;
use crate::markdown::percent_encode;
use crate::show;
use crate::words::format_count;
use maud::{Markup, html};
use treebeam_core::facts::{Facts, Node};
use treebeam_core::path;

/// Maximum length of a turn's note.
const MAX_NOTE_CHARS: usize = 160;

/// Renders the table of conversations.
#[must_use]
pub fn render_lineage(facts: &Facts) -> Markup {
    let asked: Vec<&Node> = facts.nodes.iter().filter(|node| node.turn_count() > 0).collect();
    html! {
        @if asked.is_empty() { p.note { "No idea generator was asked anything." } }
        @else {
            div.scroll tabindex="0" role="group" aria-label="Conversations" {
                table {
                    thead { tr { @for head in ["conversation", "of node", "goes on from", "turns", "remembered by"] { th scope="col" { (head) } } } }
                    tbody { @for node in asked { (render_conversation_row(facts, node)) } }
                }
            }
        }
    }
}

fn render_conversation_row(facts: &Facts, node: &Node) -> Markup {
    let name = lookup::node_name(node.id);
    let turns = node.conversation_turns();
    let told: Vec<_> = turns.iter().filter_map(|known| known.turn).collect();
    let notes = told.iter().filter_map(|turn| turn.note.as_ref());
    html! {
        tr {
            th scope="row" title=(show::format_lineage(facts, node)) {
                @if told.is_empty() { (lookup::conversation_name(node.id)) }
                @else { a href=(percent_encode(path::conversation_summary(node.id).as_str())) { (lookup::conversation_name(node.id)) } }
            }
            td { a href={ "#" (name) } { (name) } }
            td { @if let Some(turn) = node.forked_at() { (turn) } @else { "the beginning" } }
            td { (format_count(turns.len(), "turn")) }
            td {
                @if let Some(turn) = told.last() { (turn.way) } @else { "nothing: no memory" }
                @for note in notes { div.note { (short_line(note, MAX_NOTE_CHARS)) } }
            }
        }
    }
}
