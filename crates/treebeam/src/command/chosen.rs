//! Which node or eval a user means: `n0003`, `e0012`, or a number, if only one of the two has it. Nothing is shown here.

use crate::failure::Failure;
use crate::terminal;
use crate::wiring::Found;
use treebeam_core::facts::Facts;
use treebeam_core::id::{EvalId, NodeId, Place};
use treebeam_core::state::State;
use treebeam_edge::store;

/// A run as it is on disk, and the node or eval in it that was asked for.
pub(super) struct Chosen {
    pub(super) state: State,
    pub(super) place: Place,
}

impl Chosen {
    pub(super) fn find(found: &Found, id: &str) -> Result<Self, Failure> {
        let wanted = Wanted::read(id)?;
        let opened = store::open_to_read(&found.run)?;
        terminal::notes(&opened.notes);
        let place = wanted.place(&opened.state)?;
        Ok(Self { state: opened.state, place })
    }
}

/// The node that is meant where no eval can be. Whether it is there is not looked at.
pub(super) fn node(text: &str) -> Result<NodeId, Failure> {
    match Wanted::read(text)? {
        Wanted::This(Place::Node(id)) => Ok(id),
        Wanted::Number(number) => Ok(NodeId::new(number)),
        Wanted::This(eval @ Place::Candidate(_)) => {
            Err(Failure::usage(format!("`{eval}` is an eval, not a node"))
                .hint("name a node such as `n0003`"))
        }
    }
}

/// The node whose conversation is meant, where one is: `c0003`.
pub(super) fn conversation(text: &str) -> Option<NodeId> {
    match Wanted::read(&format!("n{}", text.strip_prefix('c')?)).ok()? {
        Wanted::This(Place::Node(id)) => Some(id),
        Wanted::This(Place::Candidate(_)) | Wanted::Number(_) => None,
    }
}

/// The same where nothing but a conversation can be meant: `c0003` or its number.
pub(super) fn conversation_after_word(text: &str) -> Result<NodeId, Failure> {
    conversation(&format!("c{}", text.strip_prefix('c').unwrap_or(text))).ok_or_else(|| {
        let text: String = text.chars().take(80).collect();
        Failure::usage(format!("{text:?} is no conversation"))
            .hint("name it by its node: that of `n0003` is `c0003`")
    })
}

/// What was typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    This(Place),
    Number(u32),
}

impl Wanted {
    fn read(text: &str) -> Result<Self, Failure> {
        let number = |digits: &str| {
            let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
            plain.then(|| digits.parse().ok()).flatten()
        };
        let read = match text.split_at_checked(1) {
            Some(("n", digits)) => number(digits).map(NodeId::new).map(Place::Node),
            Some(("e", digits)) => number(digits).map(EvalId::new).map(Place::Candidate),
            _ => return number(text).map(Self::Number).ok_or_else(|| odd(text)),
        };
        read.map(Self::This).ok_or_else(|| odd(text))
    }

    fn place(self, facts: &Facts) -> Result<Place, Failure> {
        match self {
            Self::This(place) if is_there(facts, place) => Ok(place),
            Self::This(place) => Err(missing(facts, &format!("no `{place}`"))),
            Self::Number(number) => {
                let (node, eval) = (NodeId::new(number), EvalId::new(number));
                let (node, eval) = (Place::Node(node), Place::Candidate(eval));
                match (is_there(facts, node), is_there(facts, eval)) {
                    (true, true) => Err(both(number, node, eval)),
                    (true, false) => Ok(node),
                    (false, true) => Ok(eval),
                    (false, false) => {
                        Err(missing(facts, &format!("neither `{node}` nor `{eval}`")))
                    }
                }
            }
        }
    }
}

fn is_there(facts: &Facts, place: Place) -> bool {
    match place {
        Place::Node(id) => facts.node(id).is_some(),
        Place::Candidate(id) => facts.eval(id).is_some(),
    }
}

fn odd(text: &str) -> Failure {
    let text: String = text.chars().take(80).collect();
    Failure::usage(format!("{text:?} is neither a node nor an eval"))
        .hint("name a node such as `n0003` or an eval such as `e0012`, after the run if that is to be named too")
}

fn both(number: u32, node: Place, eval: Place) -> Failure {
    Failure::usage(format!("`{number}` is a node and an eval"))
        .hint(format!("say `{node}` for the node, or `{eval}` for the eval"))
}

fn missing(facts: &Facts, what: &str) -> Failure {
    let last = Place::Node(NodeId::new(facts.next_node().number().saturating_sub(1)));
    let nodes = format!("nodes `n0000` to `{last}`");
    let evals = match facts.evals.last() {
        Some(last) => format!("evals `e0001` to `{}`", Place::Candidate(last.id)),
        None => "no evals yet".to_owned(),
    };
    Failure::usage(format!("run `{}` has {what}", facts.run))
        .hint(format!("it has {nodes} and {evals}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_with_and_without_zeros() {
        let check = |text: &str, wanted| assert_eq!(Wanted::read(text).ok(), wanted, "{text}");
        let (node, eval) = (Place::Node(NodeId::new(3)), Place::Candidate(EvalId::new(12)));
        check("n0003", Some(Wanted::This(node)));
        check("n3", Some(Wanted::This(node)));
        check("e0012", Some(Wanted::This(eval)));
        check("12", Some(Wanted::Number(12)));
        check("0012", Some(Wanted::Number(12)));
        for odd in ["", "n", "e", "x3", "n-3", "+3", "n3x", "é", "99999999999"] {
            check(odd, None);
        }
    }
}
