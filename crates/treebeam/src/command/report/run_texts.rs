//! Loads the results and texts of a run's files for `report.html`, within size limits.
//!
//! Unreadable files are not shown; `treebeam validate` reports them.

use std::collections::BTreeMap;
use treebeam_core::evidence::Artifact;
use treebeam_core::facts::{Eval, Facts, Node, RootBaseline};
use treebeam_core::id::{RunPath, Sha256};
use treebeam_core::path::{self, LOG_FILES};
use treebeam_run::port::FileStore as _;
use treebeam_score::compare::compare_sweeps;
use treebeam_score::paired::primary_changes;
use treebeam_score::sweep_csv::Sweep;
use treebeam_store::RunFiles;
use treebeam_view::html::{DocumentKind, PageMaterial, RunDocument, SweepComparison, shown_bytes};

/// Maximum size of a text in the page.
const MAX_TEXT_BYTES: usize = 48 << 10;
/// Maximum size of the texts of one eval.
const MAX_EVAL_TEXT_BYTES: usize = 192 << 10;
/// Maximum size of the texts of all evals.
const MAX_RUN_TEXT_BYTES: usize = 5 << 20;

/// Files of a run, read on request.
pub(in crate::command) struct RunTexts<'a> {
    files: &'a RunFiles,
    facts: &'a Facts,
    /// Baselines of candidates, each read once.
    baselines: BTreeMap<Sha256, Option<Sweep>>,
    /// Maximum size of the texts of one eval in this page.
    room: usize,
}

impl<'a> RunTexts<'a> {
    pub(super) fn new(files: &'a RunFiles, facts: &'a Facts) -> Self {
        let room = (MAX_RUN_TEXT_BYTES / facts.evals.len().max(1)).min(MAX_EVAL_TEXT_BYTES);
        Self { files, facts, baselines: BTreeMap::new(), room }
    }

    /// Creates a loader for pages of single evals, where none shares its space with others.
    pub(in crate::command) const fn for_one_eval(files: &'a RunFiles, facts: &'a Facts) -> Self {
        Self { files, facts, baselines: BTreeMap::new(), room: MAX_EVAL_TEXT_BYTES }
    }

    /// Compares the second sweep with the first.
    pub(in crate::command) fn compare_artifacts(
        &mut self,
        first: &Artifact,
        second: &Artifact,
    ) -> Option<SweepComparison> {
        let second = self.read_sweep(second);
        self.compare_with_baseline(Some(first), second.as_ref())
    }

    /// Loads the results and texts of one eval.
    pub(in crate::command) fn eval_material(&mut self, eval: &Eval) -> PageMaterial {
        let facts = self.facts;
        let root = match &facts.baseline {
            RootBaseline::Measured { results, .. } => Some(results),
            RootBaseline::Unmeasured | RootBaseline::Refused { .. } => None,
        };
        let parent = facts.node(eval.parent).and_then(|node| facts.baseline_of(node));
        let candidate =
            eval.scored_candidate().and_then(|measured| self.read_sweep(&measured.results));
        let candidate = candidate.as_ref();
        PageMaterial {
            vs_parent: self.compare_with_baseline(parent.as_ref(), candidate),
            vs_root: self.compare_with_baseline(root, candidate),
            documents: self.eval_documents(eval),
        }
    }

    fn read_sweep(&self, artifact: &Artifact) -> Option<Sweep> {
        let settings = &self.facts.settings;
        let reader = self.files.open_artifact(artifact).ok()?;
        Sweep::read_csv(reader, artifact.path.as_str(), settings.config_limit(), &settings.score)
            .ok()
    }

    fn compare_with_baseline(
        &mut self,
        baseline: Option<&Artifact>,
        candidate: Option<&Sweep>,
    ) -> Option<SweepComparison> {
        let (baseline, candidate) = (baseline?, candidate?);
        if !self.baselines.contains_key(&baseline.sha256) {
            self.baselines.insert(baseline.sha256, self.read_sweep(baseline));
        }
        let baseline = self.baselines.get(&baseline.sha256)?.as_ref()?;
        let policy = &self.facts.settings.score;
        let changes = primary_changes(baseline, candidate, policy.primary_direction());
        Some(SweepComparison {
            details: compare_sweeps(baseline, candidate, policy).ok()?,
            changes,
        })
    }

    /// Loads the prompts and replies of the idea questions on a node.
    pub(in crate::command) fn node_documents(&self, node: &Node) -> Vec<RunDocument> {
        let turns = node.conversation_turns().into_iter();
        let paths = turns.flat_map(|turn| {
            [(DocumentKind::Prompt, turn.prompt_path()), (DocumentKind::Reply, turn.reply_path())]
        });
        let mut documents =
            paths.filter_map(|(kind, path)| self.read_document(kind, path)).collect::<Vec<_>>();
        fit_documents(&mut documents, self.room);
        documents
    }

    /// Loads an eval's texts in the order in which they were written. The most important ones get
    /// space first.
    pub(in crate::command) fn eval_documents(&self, eval: &Eval) -> Vec<RunDocument> {
        let mut documents = Vec::new();
        for (kind, path) in list_fixed_texts(eval) {
            documents.extend(self.read_document(kind, path));
        }
        for round in 0..=eval.candidate().map_or(u32::MAX - 1, |work| work.rounds) {
            let told = self.round_documents(eval, round);
            if told.is_empty() {
                break;
            }
            documents.extend(told);
        }
        for log in LOG_FILES {
            documents.extend(self.read_document(
                DocumentKind::Log,
                path::attempt_folder(eval.id, eval.attempt).join(log),
            ));
        }
        fit_documents(&mut documents, self.room);
        documents
    }

    fn round_documents(&self, eval: &Eval, round: u32) -> Vec<RunDocument> {
        let folder = path::attempt_folder(eval.id, eval.candidate_attempt());
        let names = [
            (DocumentKind::Prompt, format!("coder_prompt_round_{round}.txt")),
            (DocumentKind::Reply, format!("patch_round_{round}.diff")),
            (DocumentKind::Prompt, format!("reviewer_prompt_round_{round}.txt")),
            (DocumentKind::Review, format!("review_round_{round}.md")),
        ];
        names
            .into_iter()
            .filter_map(|(kind, name)| self.read_document(kind, folder.join(&name)))
            .collect()
    }

    fn read_document(&self, kind: DocumentKind, path: RunPath) -> Option<RunDocument> {
        let (bytes, text) = self.files.read_if_short(&path, MAX_TEXT_BYTES)?;
        let text = text.map(|text| String::from_utf8_lossy(&text).into_owned());
        (bytes > 0).then_some(RunDocument { kind, path, bytes, text })
    }
}

/// Lists the texts that an eval has at most one of, before those of its rounds.
fn list_fixed_texts(eval: &Eval) -> Vec<(DocumentKind, RunPath)> {
    let folder = path::attempt_folder(eval.id, eval.candidate_attempt());
    let names = [
        (DocumentKind::Diff, "candidate.diff"),
        (DocumentKind::Prompt, "coordinator_prompt.txt"),
        (DocumentKind::Reply, "coordinator.md"),
        (DocumentKind::Prompt, "planner_prompt.txt"),
        (DocumentKind::Reply, "plan.md"),
    ];
    let rest = names.into_iter().map(|(kind, name)| (kind, folder.join(name)));
    std::iter::once((DocumentKind::Idea, eval.idea.path.clone())).chain(rest).collect()
}

/// Drops texts beyond the limit: ideas and diffs get space first, then reviews and logs.
fn fit_documents(documents: &mut [RunDocument], mut room: usize) {
    let order = [
        DocumentKind::Idea,
        DocumentKind::Diff,
        DocumentKind::Review,
        DocumentKind::Log,
        DocumentKind::Reply,
        DocumentKind::Prompt,
    ];
    for kind in order {
        for document in documents.iter_mut().filter(|document| document.kind == kind) {
            let needed = document.text.as_deref().map_or(0, shown_bytes);
            match room.checked_sub(needed) {
                Some(left) => room = left,
                None => document.text = None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idea_has_its_room_before_a_prompt() {
        let document = |kind, text: &str| RunDocument {
            kind,
            path: "eval/0001/x".parse().unwrap(),
            bytes: 1,
            text: Some(text.to_owned()),
        };
        let mut all = [
            document(DocumentKind::Prompt, "12345"),
            document(DocumentKind::Log, "<"),
            document(DocumentKind::Idea, "12"),
            document(DocumentKind::Prompt, "1"),
        ];
        fit_documents(&mut all, 7);
        let left: Vec<_> = all.iter().map(|document| document.text.as_deref()).collect();
        assert_eq!(left, [None, Some("<"), Some("12"), Some("1")]);
    }
}
