//! Defines the texts and results that a page shows beyond the record. The caller reads them;
//! nothing here does.

use treebeam_core::id::RunPath;
use treebeam_score::compare::ComparisonDetails;

/// Texts and comparisons of an eval, or texts of a node. Whatever could not be read is left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PageMaterial {
    /// Candidate's results against its parent's.
    pub vs_parent: Option<SweepComparison>,
    /// Candidate's results against the root's.
    pub vs_root: Option<SweepComparison>,
    /// Texts in the order of their creation.
    pub documents: Vec<RunDocument>,
}

/// Two sweeps, compared again from their files.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepComparison {
    /// Comparison metric by metric.
    pub details: ComparisonDetails,
    /// Improvement of the primary in each configuration that both have, the worst first.
    pub changes: Vec<f64>,
}

/// A text file of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunDocument {
    /// Kind of the text.
    pub kind: DocumentKind,
    /// Path in the run directory.
    pub path: RunPath,
    /// Length in bytes.
    pub bytes: u64,
    /// Content, or `None` if it is too long to be shown.
    pub text: Option<String>,
}

/// Kind of a text file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DocumentKind {
    /// Idea as it was proposed.
    Idea,
    /// Change of the candidate.
    Diff,
    /// Prompt to an agent.
    Prompt,
    /// Reply of an agent.
    Reply,
    /// Review of a candidate.
    Review,
    /// Output of a command.
    Log,
}

impl DocumentKind {
    /// Returns the kind in a word or two.
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
