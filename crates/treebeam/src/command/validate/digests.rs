//! Compares the files of a run with the digests in its journal.

use super::add_journal_damage;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use treebeam_core::audit::{self, AuditFinding, FileReference};
use treebeam_core::facts::Facts;
use treebeam_core::id::{RunPath, Sha256};
use treebeam_store::{RecordedDigests, RunDir};

/// Loads the digests of files from the journal. An unreadable journal has none, and is a finding.
pub(super) fn load_recorded_digests(
    run: &RunDir,
    findings: &mut Vec<AuditFinding>,
) -> RecordedDigests {
    treebeam_store::read_recorded_digests(run).unwrap_or_else(|error| {
        add_journal_damage(&error, findings);
        RecordedDigests::default()
    })
}

/// Returns true if a recorded answer of this digest was put aside as `<key>.old-<n>`: its question
/// has changed since, and was not answered anew.
pub(super) fn is_set_aside(run: &RunDir, path: &RunPath, sha256: Sha256) -> bool {
    let file = run.file_path(path);
    let (Some(folder), Some(key)) = (file.parent(), file.file_stem().and_then(OsStr::to_str))
    else {
        return false;
    };
    let begin = format!("{key}.old-");
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut aside = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&begin));
    aside.any(|entry| treebeam_store::digest_file(&entry.path()).is_ok_and(|found| found == sha256))
}

/// Lists every file that the record refers to, once each, with its digest where one is recorded.
pub(super) fn list_references(facts: &Facts, digests: &RecordedDigests) -> Vec<FileReference> {
    let paths = |all: &[FileReference]| all.iter().map(|it| it.path.clone()).collect();
    let mut named = audit::recorded_references(facts);
    let recorded = audit::recorded_files(facts, &digests.by_path);
    let digested: BTreeSet<RunPath> = paths(&recorded);
    named.retain(|it| it.sha256.is_some() || !digested.contains(&it.path));
    let known: BTreeSet<RunPath> = paths(&named);
    named.extend(recorded.into_iter().filter(|it| !known.contains(&it.path)));
    named
}

/// Returns one finding if evals of an older run have no digests of their files.
pub(super) fn note_missing_digests(
    facts: &Facts,
    digests: &RecordedDigests,
) -> Option<AuditFinding> {
    let evals = audit::evals_without_digests(facts, &digests.by_path);
    let what = format!(
        "the prompts, patches and answers of {evals} evals have no recorded digest: \
         an older treebeam recorded none"
    );
    let advice = "none is needed: decisions rest on the artifacts, which have one";
    (evals > 0 && digests.from_the_start)
        .then(|| AuditFinding::new(what, "journal.jsonl", advice).into_warning())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_was_put_aside_is_known_by_its_digest() {
        let folder = tempfile::tempdir().expect("a folder");
        let run = RunDir::new(folder.path());
        let path: RunPath = "eval/0001/calls/coder-e0001-a1-r0.json".parse().expect("a path");
        let answer = run.file_path(&path);
        fs::create_dir_all(answer.parent().expect("a folder")).expect("a folder");
        let is_known = || is_set_aside(&run, &path, Sha256::hash_bytes(b"an answer"));
        assert!(!is_known());
        fs::write(answer.with_extension("old-1"), "another answer").expect("to write");
        fs::write(answer.with_extension("raw"), "an answer").expect("to write");
        assert!(!is_known());
        fs::write(answer.with_extension("old-2"), "an answer").expect("to write");
        assert!(is_known());
    }
}
