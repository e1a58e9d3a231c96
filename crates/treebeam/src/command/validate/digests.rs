//! Compares the files of a run with the digests that its journal has of them.

use std::collections::BTreeSet;
use treebeam_core::audit::{self, Finding, Reference};
use treebeam_core::facts::Facts;
use treebeam_core::id::RunPath;
use treebeam_edge::store::{self, RecordedDigests, RunDir};

/// The digests that the journal has of files. A journal that cannot be read has none; that is a
/// finding of its own.
pub(super) fn recorded(run: &RunDir) -> RecordedDigests {
    store::recorded_digests(run).unwrap_or_default()
}

/// Every file that the record refers to, each once, with its digest where one is recorded.
pub(super) fn references(facts: &Facts, digests: &RecordedDigests) -> Vec<Reference> {
    let paths = |all: &[Reference]| all.iter().map(|it| it.path.clone()).collect();
    let mut named = audit::references(facts);
    let recorded = audit::recorded_files(facts, &digests.by_path);
    let digested: BTreeSet<RunPath> = paths(&recorded);
    named.retain(|it| it.sha256.is_some() || !digested.contains(&it.path));
    let known: BTreeSet<RunPath> = paths(&named);
    named.extend(recorded.into_iter().filter(|it| !known.contains(&it.path)));
    named
}

/// Says once that the files of evals of an older run have no digests.
pub(super) fn note(facts: &Facts, digests: &RecordedDigests) -> Option<Finding> {
    let evals = audit::evals_without_digests(facts, &digests.by_path);
    let what = format!(
        "the prompts, patches and answers of {evals} evals have no recorded digest: \
         an older treebeam recorded none"
    );
    let advice = "none is needed: decisions rest on the artifacts, which have one";
    (evals > 0 && digests.from_the_start)
        .then(|| Finding::new(what, "journal.jsonl", advice).warning())
}
