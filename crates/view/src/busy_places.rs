//! Lists current activities of a run from its record: place, activity and, if known, since when. It
//! does not know whether a process runs the run, nor how often it was interrupted: reports show it.

use crate::lookup;
use crate::outcome::{EvalStatus, eval_reason};
use jiff::Timestamp;
use treebeam_core::event::Idea;
use treebeam_core::facts::{Eval, Expansion, ExpansionIdeas, Facts, RunPhase, Stage};
use treebeam_core::group::IdeaSource;
use treebeam_core::id::{CodePlace, EvalId, NodeId};

/// A node or candidate with a current activity.
pub(crate) struct BusyPlace<'a> {
    /// Node or candidate.
    pub(crate) place: CodePlace,
    /// Description of the activity.
    pub(crate) what: String,
    /// Idea that is tried, if any.
    pub(crate) idea: Option<&'a Idea>,
    /// Start of the activity, if recorded.
    pub(crate) since: Option<Timestamp>,
}

/// Lists all current activities: the root's sweep, requests for ideas, evals, promotions.
pub(crate) fn busy_places(facts: &Facts) -> Vec<BusyPlace<'_>> {
    let root = matches!(facts.phase, RunPhase::Measuring).then(|| busy_root(facts));
    let asked = facts.all_expansions().filter(|(_, expansion)| is_question_open(facts, expansion));
    let asked = asked.map(|(source, expansion)| busy_question(source, expansion));
    let evals = facts.open_evals().iter().filter_map(busy_eval);
    let left: &[EvalId] =
        if let RunPhase::Promoting { left } = &facts.phase { left } else { Default::default() };
    let promoted = left.iter().map(|id| BusyPlace {
        place: CodePlace::Candidate(*id),
        what: "becomes a node".to_owned(),
        idea: None,
        since: None,
    });
    root.into_iter().chain(asked).chain(evals).chain(promoted).collect()
}

fn busy_root(facts: &Facts) -> BusyPlace<'_> {
    BusyPlace {
        place: CodePlace::Node(NodeId::ROOT),
        what: lookup::user_baseline(facts).map_or("being swept", |_| "being taken in").to_owned(),
        idea: None,
        since: Some(facts.created_at),
    }
}

/// Returns true if a request for ideas of the open depth is not answered yet.
pub(crate) fn is_question_open(facts: &Facts, expansion: &Expansion) -> bool {
    matches!(facts.phase, RunPhase::Searching)
        && expansion.depth == facts.depth
        && matches!(expansion.ideas, ExpansionIdeas::Asked)
}

fn busy_question(source: IdeaSource, expansion: &Expansion) -> BusyPlace<'_> {
    let what = match source {
        IdeaSource::Node(_) => "asked for ideas",
        IdeaSource::Control => "asked for control ideas",
    };
    BusyPlace {
        place: CodePlace::Node(source.node_id()),
        what: what.to_owned(),
        idea: None,
        since: Some(expansion.started_at),
    }
}

fn busy_eval(eval: &Eval) -> Option<BusyPlace<'_>> {
    let since = if let Stage::Implementing(at) = eval.stage {
        Some(at)
    } else {
        eval.candidate().and_then(|work| work.implemented_at)
    };
    let what = current_activity(eval)?;
    Some(BusyPlace { place: CodePlace::Candidate(eval.id), what, idea: Some(&eval.idea), since })
}

/// Describes the activity of a running eval; `None` for any other eval.
pub(crate) fn current_activity(eval: &Eval) -> Option<String> {
    let busy = (EvalStatus::from_eval(eval) == EvalStatus::Running).then(|| eval_reason(eval))?;
    let tried = eval.attempt > 1 && !matches!(eval.stage, Stage::Sweeping(_));
    Some(if tried { format!("{busy}, try {}", eval.attempt) } else { busy })
}
