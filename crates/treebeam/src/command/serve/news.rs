//! Which parts of which pages an event changes, by name. A page that shows one of them asks for it again.

use std::collections::BTreeSet;
use treebeam_core::event::{Event, Intent, Subject};
use treebeam_core::id::Place;
use treebeam_view::html::site::Part;

/// What has changed since somebody last looked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum News {
    These(BTreeSet<String>),
    Everything,
}

impl Default for News {
    fn default() -> Self {
        Self::These(BTreeSet::new())
    }
}

/// What an event that is about one eval may change on the page of its run.
const BY_EVAL: [Part; 7] =
    [Part::Overview, Part::Tree, Part::Scores, Part::Evals, Part::Nodes, Part::Costs, Part::Slots];

impl News {
    pub(super) fn of(event: &Event) -> Self {
        match event {
            Event::Implemented { eval, .. }
            | Event::Swept { eval, .. }
            | Event::Scored { eval, .. }
            | Event::EvalFailed { eval, .. }
            | Event::AttemptFailed { eval, .. } => Self::about(Place::Candidate(*eval)),
            Event::SweepSubmitted { subject, .. } => Self::about(match subject {
                Subject::Root => return Self::Everything,
                Subject::Eval(eval) => Place::Candidate(*eval),
            }),
            Event::StepStarted { step, .. } => Self::about(match step {
                Intent::Propose(source) => Place::Node(source.node()),
                Intent::Implement(eval) => Place::Candidate(*eval),
            }),
            Event::Asked { .. }
            | Event::IdeaRefused { .. }
            | Event::DeadlinePassed { .. }
            | Event::LockTakenOver { .. }
            | Event::JournalRestored { .. } => Self::parts(&[Part::Steering, Part::Overview]),
            Event::Discarded { .. }
            | Event::FilesRecorded(_)
            | Event::DiscardDeferred { .. }
            | Event::RemovalAsked { .. } => Self::default(),
            Event::RunStarted(_)
            | Event::RootMeasured { .. }
            | Event::RootRefused { .. }
            | Event::IdeasProposed(_)
            | Event::ProposalFailed { .. }
            | Event::BudgetReached { .. }
            | Event::SentBack(_)
            | Event::ArtifactsRestored(_)
            | Event::DepthClosed { .. }
            | Event::NodeAdded { .. }
            | Event::PromotionFailed { .. }
            | Event::SettingsChanged { .. }
            | Event::AgentsChanged { .. }
            | Event::RulesChanged { .. }
            | Event::IdeaAdded(_)
            | Event::Stopped { .. } => Self::Everything,
        }
    }

    pub(super) fn parts(parts: &[Part]) -> Self {
        Self::These(parts.iter().map(|part| part.name().to_owned()).collect())
    }

    fn about(place: Place) -> Self {
        let mut news = Self::parts(&BY_EVAL);
        news.add(&Self::These(BTreeSet::from([place.to_string()])));
        news
    }

    pub(super) fn add(&mut self, more: &Self) {
        match (&mut *self, more) {
            (Self::Everything, _) => {}
            (_, Self::Everything) => *self = Self::Everything,
            (Self::These(known), Self::These(more)) => known.extend(more.iter().cloned()),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Self::These(names) if names.is_empty())
    }

    /// The names for a browser; `*` stands for all.
    pub(super) fn names(&self) -> Vec<&str> {
        match self {
            Self::These(names) => names.iter().map(String::as_str).collect(),
            Self::Everything => vec!["*"],
        }
    }
}
