//! What goes on at this moment, as far as the record tells: who is busy, with what, and since when that is known to be so. It
//! does not know whether anybody runs the run, and nothing of how often it was interrupted: reports show it.

use crate::outcome::{Outcome, reason};
use crate::read;
use jiff::Timestamp;
use treebeam_core::event::Idea;
use treebeam_core::facts::{Eval, Expansion, Facts, Ideas, Phase, Stage};
use treebeam_core::group::IdeaSource;
use treebeam_core::id::{EvalId, NodeId, Place};

/// Something that is being done.
pub(crate) struct Busy<'a> {
    /// To what.
    pub(crate) place: Place,
    /// What, in words.
    pub(crate) what: String,
    /// The idea that is tried, where one is.
    pub(crate) idea: Option<&'a Idea>,
    /// Since when, where that is on record.
    pub(crate) since: Option<Timestamp>,
}

/// All that is being done: the root, questions, evals, promotions.
pub(crate) fn busy(facts: &Facts) -> Vec<Busy<'_>> {
    let root = matches!(facts.phase, Phase::Measuring).then(|| of_root(facts));
    let asked = facts.all_expansions().filter(|(_, expansion)| is_asked(facts, expansion));
    let asked = asked.map(|(source, expansion)| of_question(source, expansion));
    let evals = facts.open_evals().iter().filter_map(of_eval);
    let left: &[EvalId] =
        if let Phase::Promoting { left } = &facts.phase { left } else { Default::default() };
    let promoted = left.iter().map(|id| Busy {
        place: Place::Candidate(*id),
        what: "becomes a node".to_owned(),
        idea: None,
        since: None,
    });
    root.into_iter().chain(asked).chain(evals).chain(promoted).collect()
}

fn of_root(facts: &Facts) -> Busy<'_> {
    Busy {
        place: Place::Node(NodeId::ROOT),
        what: read::given_baseline(facts).map_or("being swept", |_| "being taken in").to_owned(),
        idea: None,
        since: Some(facts.created_at),
    }
}

/// Whether a question of the open depth is not answered yet.
pub(crate) fn is_asked(facts: &Facts, expansion: &Expansion) -> bool {
    matches!(facts.phase, Phase::Searching)
        && expansion.depth == facts.depth
        && matches!(expansion.ideas, Ideas::Asked)
}

fn of_question(source: IdeaSource, expansion: &Expansion) -> Busy<'_> {
    let what = match source {
        IdeaSource::Node(_) => "asked for ideas",
        IdeaSource::Control => "asked for control ideas",
    };
    Busy {
        place: Place::Node(source.node()),
        what: what.to_owned(),
        idea: None,
        since: Some(expansion.started_at),
    }
}

fn of_eval(eval: &Eval) -> Option<Busy<'_>> {
    let since = if let Stage::Implementing(at) = eval.stage {
        Some(at)
    } else {
        eval.work().and_then(|work| work.implemented_at)
    };
    let what = doing(eval)?;
    Some(Busy { place: Place::Candidate(eval.id), what, idea: Some(&eval.idea), since })
}

/// What an eval is busy with, if it is.
pub(crate) fn doing(eval: &Eval) -> Option<String> {
    let busy = (Outcome::of(eval) == Outcome::Running).then(|| reason(eval))?;
    let tried = eval.attempt > 1 && !matches!(eval.stage, Stage::Sweeping(_));
    Some(if tried { format!("{busy}, try {}", eval.attempt) } else { busy })
}
