//! Resolves the node or eval that a user typed: `n0003`, `e0012`, or an unambiguous number.
//!
//! A number is unambiguous if only one of the two has it. Nothing is shown here.

use crate::failure::CommandFailure;
use crate::run_location::RunLocation;
use crate::terminal;
use treebeam_core::facts::Facts;
use treebeam_core::id::{CodePlace, EvalId, NodeId};
use treebeam_core::state::State;

/// A run's state on disk, and the requested node or eval in it.
pub(super) struct ChosenPlace {
    pub(super) state: State,
    pub(super) place: CodePlace,
}

impl ChosenPlace {
    pub(super) fn find(found: &RunLocation, id: &str) -> Result<Self, CommandFailure> {
        let wanted = TypedPlace::parse(id)?;
        let opened = treebeam_store::open_to_read(&found.run)?;
        terminal::print_notes(&opened.notes);
        let place = wanted.resolve(&opened.state)?;
        Ok(Self { state: opened.state, place })
    }
}

/// Parses the name or number of a node. Its existence is not checked.
pub(super) fn parse_node_id(text: &str) -> Result<NodeId, CommandFailure> {
    match TypedPlace::parse(text)? {
        TypedPlace::Named(CodePlace::Node(id)) => Ok(id),
        TypedPlace::Number(number) => Ok(NodeId::new(number)),
        TypedPlace::Named(eval @ CodePlace::Candidate(_)) => {
            Err(CommandFailure::usage(format!("`{eval}` is an eval, not a node"))
                .with_hint("name a node such as `n0003`"))
        }
    }
}

/// Parses the name of a conversation, such as `c0003`, to its node; `None` for any other text.
pub(super) fn parse_conversation_id(text: &str) -> Option<NodeId> {
    match TypedPlace::parse(&format!("n{}", text.strip_prefix('c')?)).ok()? {
        TypedPlace::Named(CodePlace::Node(id)) => Some(id),
        TypedPlace::Named(CodePlace::Candidate(_)) | TypedPlace::Number(_) => None,
    }
}

/// Parses the name or number of a conversation, such as `c0003` or `3`, to its node.
pub(super) fn require_conversation_id(text: &str) -> Result<NodeId, CommandFailure> {
    parse_conversation_id(&format!("c{}", text.strip_prefix('c').unwrap_or(text))).ok_or_else(
        || {
            let text: String = text.chars().take(80).collect();
            CommandFailure::usage(format!("{text:?} is no conversation"))
                .with_hint("name it by its node: that of `n0003` is `c0003`")
        },
    )
}

/// A name or a bare number as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TypedPlace {
    Named(CodePlace),
    Number(u32),
}

impl TypedPlace {
    fn parse(text: &str) -> Result<Self, CommandFailure> {
        let number = |digits: &str| {
            let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
            plain.then(|| digits.parse().ok()).flatten()
        };
        let read = match text.split_at_checked(1) {
            Some(("n", digits)) => number(digits).map(NodeId::new).map(CodePlace::Node),
            Some(("e", digits)) => number(digits).map(EvalId::new).map(CodePlace::Candidate),
            _ => return number(text).map(Self::Number).ok_or_else(|| unknown_name(text)),
        };
        read.map(Self::Named).ok_or_else(|| unknown_name(text))
    }

    fn resolve(self, facts: &Facts) -> Result<CodePlace, CommandFailure> {
        match self {
            Self::Named(place) if has_place(facts, place) => Ok(place),
            Self::Named(place) => Err(missing_place(facts, &format!("no `{place}`"))),
            Self::Number(number) => {
                let (node, eval) = (NodeId::new(number), EvalId::new(number));
                let (node, eval) = (CodePlace::Node(node), CodePlace::Candidate(eval));
                match (has_place(facts, node), has_place(facts, eval)) {
                    (true, true) => Err(ambiguous_number(number, node, eval)),
                    (true, false) => Ok(node),
                    (false, true) => Ok(eval),
                    (false, false) => {
                        Err(missing_place(facts, &format!("neither `{node}` nor `{eval}`")))
                    }
                }
            }
        }
    }
}

fn has_place(facts: &Facts, place: CodePlace) -> bool {
    match place {
        CodePlace::Node(id) => facts.node(id).is_some(),
        CodePlace::Candidate(id) => facts.eval(id).is_some(),
    }
}

fn unknown_name(text: &str) -> CommandFailure {
    let text: String = text.chars().take(80).collect();
    CommandFailure::usage(format!("{text:?} is neither a node nor an eval"))
        .with_hint("name a node such as `n0003` or an eval such as `e0012`, after the run if that is to be named too")
}

fn ambiguous_number(number: u32, node: CodePlace, eval: CodePlace) -> CommandFailure {
    CommandFailure::usage(format!("`{number}` is a node and an eval"))
        .with_hint(format!("say `{node}` for the node, or `{eval}` for the eval"))
}

fn missing_place(facts: &Facts, what: &str) -> CommandFailure {
    let last = CodePlace::Node(NodeId::new(facts.next_node_id().number().saturating_sub(1)));
    let nodes = format!("nodes `n0000` to `{last}`");
    let evals = match facts.evals.last() {
        Some(last) => format!("evals `e0001` to `{}`", CodePlace::Candidate(last.id)),
        None => "no evals yet".to_owned(),
    };
    CommandFailure::usage(format!("run `{}` has {what}", facts.run))
        .with_hint(format!("it has {nodes} and {evals}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_with_and_without_zeros() {
        let check = |text: &str, wanted| assert_eq!(TypedPlace::parse(text).ok(), wanted, "{text}");
        let (node, eval) = (CodePlace::Node(NodeId::new(3)), CodePlace::Candidate(EvalId::new(12)));
        check("n0003", Some(TypedPlace::Named(node)));
        check("n3", Some(TypedPlace::Named(node)));
        check("e0012", Some(TypedPlace::Named(eval)));
        check("12", Some(TypedPlace::Number(12)));
        check("0012", Some(TypedPlace::Number(12)));
        for odd in ["", "n", "e", "x3", "n-3", "+3", "n3x", "é", "99999999999"] {
            check(odd, None);
        }
    }
}
