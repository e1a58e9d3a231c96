//! What a page shows beyond the record: texts and results, read by the caller and handed over as they are. Nothing here reads.

use treebeam_core::id::RunPath;
use treebeam_score::compare::ComparisonDetails;

/// What is known of one eval beyond the record, or of a node: that has texts alone. Whatever could not be read is not there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PageMaterial {
    /// The candidate's results against its parent's.
    pub vs_parent: Option<SweepComparison>,
    /// The same against the root's.
    pub vs_root: Option<SweepComparison>,
    /// Its texts, in the order in which they came about.
    pub documents: Vec<RunDocument>,
}

/// Two sweeps, compared once more from their files.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepComparison {
    /// Metric by metric.
    pub details: ComparisonDetails,
    /// By how much the primary got better in each configuration that both have, the worst first.
    pub changes: Vec<f64>,
}

/// A text of the run's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunDocument {
    /// What it is.
    pub kind: DocumentKind,
    /// Where it lies.
    pub path: RunPath,
    /// How long it is.
    pub bytes: u64,
    /// The text itself, or nothing where it is too long to be shown here.
    pub text: Option<String>,
}

/// What a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DocumentKind {
    /// The idea, as it was proposed.
    Idea,
    /// What the candidate changes.
    Diff,
    /// What an agent was told.
    Prompt,
    /// What an agent said.
    Reply,
    /// What a reviewer said.
    Review,
    /// What a command printed.
    Log,
}

impl DocumentKind {
    /// What it is, in a word or two.
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Idea => "Idea",
            Self::Diff => "Change",
            Self::Prompt => "Prompt",
            Self::Reply => "Reply",
            Self::Review => "Review",
            Self::Log => "Log",
        }
    }
}
