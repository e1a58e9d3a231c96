//! Maps events to the parts of pages that they change; pages request those parts again.

use std::collections::BTreeSet;
use treebeam_core::event::{Event, PaidStep, SweepSubject};
use treebeam_core::id::CodePlace;
use treebeam_view::html::site::PagePart;

/// Page parts that changed since they were last sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PageChanges {
    Parts(BTreeSet<String>),
    Everything,
}

impl Default for PageChanges {
    fn default() -> Self {
        Self::Parts(BTreeSet::new())
    }
}

/// Page parts that an event about one eval may change.
const EVAL_EVENT_PARTS: [PagePart; 7] = [
    PagePart::Overview,
    PagePart::Tree,
    PagePart::Scores,
    PagePart::Evals,
    PagePart::Nodes,
    PagePart::Costs,
    PagePart::Slots,
];

impl PageChanges {
    pub(super) fn from_event(event: &Event) -> Self {
        match event {
            Event::Implemented { eval, .. }
            | Event::Swept { eval, .. }
            | Event::Scored { eval, .. }
            | Event::EvalFailed { eval, .. }
            | Event::AttemptFailed { eval, .. } => Self::from_place(CodePlace::Candidate(*eval)),
            Event::SweepSubmitted { subject, .. } => Self::from_place(match subject {
                SweepSubject::Root => return Self::Everything,
                SweepSubject::Eval(eval) => CodePlace::Candidate(*eval),
            }),
            Event::StepStarted { step, .. } => Self::from_place(match step {
                PaidStep::Propose(source) => CodePlace::Node(source.node_id()),
                PaidStep::Implement(eval) => CodePlace::Candidate(*eval),
            }),
            Event::Asked { .. }
            | Event::IdeaRefused { .. }
            | Event::DeadlinePassed { .. }
            | Event::LockTakenOver { .. }
            | Event::JournalRestored { .. } => {
                Self::from_parts(&[PagePart::Steering, PagePart::Overview])
            }
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

    pub(super) fn from_parts(parts: &[PagePart]) -> Self {
        Self::Parts(parts.iter().map(|part| part.name().to_owned()).collect())
    }

    fn from_place(place: CodePlace) -> Self {
        let mut news = Self::from_parts(&EVAL_EVENT_PARTS);
        news.add(&Self::Parts(BTreeSet::from([place.to_string()])));
        news
    }

    pub(super) fn add(&mut self, more: &Self) {
        match (&mut *self, more) {
            (Self::Everything, _) => {}
            (_, Self::Everything) => *self = Self::Everything,
            (Self::Parts(known), Self::Parts(more)) => known.extend(more.iter().cloned()),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Self::Parts(names) if names.is_empty())
    }

    /// Returns the names for a browser; `*` stands for all.
    pub(super) fn browser_names(&self) -> Vec<&str> {
        match self {
            Self::Parts(names) => names.iter().map(String::as_str).collect(),
            Self::Everything => vec!["*"],
        }
    }
}
