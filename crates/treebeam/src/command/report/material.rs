//! What `report.html` shows of a run's files: results, compared once more, and texts as far as they fit in. Whatever cannot be
//! read is not shown; finding that out is the business of `treebeam validate`.

use std::collections::BTreeMap;
use treebeam_core::evidence::Artifact;
use treebeam_core::facts::{Baseline, Eval, Facts, Node};
use treebeam_core::id::{RunPath, Sha256};
use treebeam_core::paired::primary_changes;
use treebeam_core::path::{self, LOGS};
use treebeam_core::score::compare;
use treebeam_core::sweep::Sweep;
use treebeam_edge::store::RunFiles;
use treebeam_run::port::Files as _;
use treebeam_view::html::{Against, Document, Kind, Material, weight};

/// The longest text that is shown in the page.
const LONGEST: usize = 48 << 10;
/// How much the texts of one eval take at most.
const MOST: usize = 192 << 10;
/// How much the texts of all evals take at most.
const MOST_OF_ALL: usize = 5 << 20;

/// The files of a run, read as they are asked for.
pub(in crate::command) struct Shelf<'a> {
    files: &'a RunFiles,
    facts: &'a Facts,
    /// What candidates are compared with: each is read once.
    baselines: BTreeMap<Sha256, Option<Sweep>>,
    /// How much the texts of one eval may take.
    room: usize,
}

impl<'a> Shelf<'a> {
    pub(super) fn new(files: &'a RunFiles, facts: &'a Facts) -> Self {
        let room = (MOST_OF_ALL / facts.evals.len().max(1)).min(MOST);
        Self { files, facts, baselines: BTreeMap::new(), room }
    }

    /// The same where evals are asked for one by one, and none takes the room of another.
    pub(in crate::command) const fn of_one(files: &'a RunFiles, facts: &'a Facts) -> Self {
        Self { files, facts, baselines: BTreeMap::new(), room: MOST }
    }

    /// The second of two sweeps against the first.
    pub(in crate::command) fn between(
        &mut self,
        first: &Artifact,
        second: &Artifact,
    ) -> Option<Against> {
        let second = self.read(second);
        self.against(Some(first), second.as_ref())
    }

    /// What there is of one eval.
    pub(in crate::command) fn material(&mut self, eval: &Eval) -> Material {
        let facts = self.facts;
        let root = match &facts.baseline {
            Baseline::Measured { results, .. } => Some(results),
            Baseline::Unmeasured | Baseline::Refused { .. } => None,
        };
        let parent = facts.node(eval.parent).and_then(|node| facts.baseline_of(node));
        let candidate = eval.measured().and_then(|measured| self.read(&measured.results));
        let candidate = candidate.as_ref();
        Material {
            vs_parent: self.against(parent.as_ref(), candidate),
            vs_root: self.against(root, candidate),
            documents: self.documents(eval),
        }
    }

    fn read(&self, artifact: &Artifact) -> Option<Sweep> {
        let meaning = &self.facts.meaning;
        let reader = self.files.open(artifact).ok()?;
        Sweep::read(reader, artifact.path.as_str(), meaning.limit(), &meaning.score).ok()
    }

    fn against(
        &mut self,
        baseline: Option<&Artifact>,
        candidate: Option<&Sweep>,
    ) -> Option<Against> {
        let (baseline, candidate) = (baseline?, candidate?);
        if !self.baselines.contains_key(&baseline.sha256) {
            self.baselines.insert(baseline.sha256, self.read(baseline));
        }
        let baseline = self.baselines.get(&baseline.sha256)?.as_ref()?;
        let policy = &self.facts.meaning.score;
        let changes = primary_changes(baseline, candidate, policy.primary_direction());
        Some(Against { details: compare(baseline, candidate, policy).ok()?, changes })
    }

    /// What was asked for ideas on a node, and answered.
    pub(in crate::command) fn questions(&self, node: &Node) -> Vec<Document> {
        let turns = node.conversation().into_iter();
        let paths = turns.flat_map(|turn| {
            [(Kind::Prompt, turn.prompt_path()), (Kind::Reply, turn.reply_path())]
        });
        let mut documents =
            paths.filter_map(|(kind, path)| self.document(kind, path)).collect::<Vec<_>>();
        fit(&mut documents, self.room);
        documents
    }

    /// An eval's texts in the order in which they came about. What matters most to a reader has the room first.
    pub(in crate::command) fn documents(&self, eval: &Eval) -> Vec<Document> {
        let mut documents = Vec::new();
        for (kind, path) in fixed(eval) {
            documents.extend(self.document(kind, path));
        }
        for round in 0..=eval.work().map_or(u32::MAX - 1, |work| work.rounds) {
            let told = self.in_round(eval, round);
            if told.is_empty() {
                break;
            }
            documents.extend(told);
        }
        for log in LOGS {
            documents
                .extend(self.document(Kind::Log, path::attempt(eval.id, eval.attempt).join(log)));
        }
        fit(&mut documents, self.room);
        documents
    }

    fn in_round(&self, eval: &Eval, round: u32) -> Vec<Document> {
        let folder = path::attempt(eval.id, eval.drafted_in());
        let names = [
            (Kind::Prompt, format!("coder_prompt_round_{round}.txt")),
            (Kind::Reply, format!("patch_round_{round}.diff")),
            (Kind::Prompt, format!("reviewer_prompt_round_{round}.txt")),
            (Kind::Review, format!("review_round_{round}.md")),
        ];
        names
            .into_iter()
            .filter_map(|(kind, name)| self.document(kind, folder.join(&name)))
            .collect()
    }

    fn document(&self, kind: Kind, path: RunPath) -> Option<Document> {
        let (bytes, text) = self.files.glance(&path, LONGEST)?;
        let text = text.map(|text| String::from_utf8_lossy(&text).into_owned());
        (bytes > 0).then_some(Document { kind, path, bytes, text })
    }
}

/// The texts that an eval has at most one of, before those of its rounds.
fn fixed(eval: &Eval) -> Vec<(Kind, RunPath)> {
    let folder = path::attempt(eval.id, eval.drafted_in());
    let names = [
        (Kind::Diff, "candidate.diff"),
        (Kind::Prompt, "coordinator_prompt.txt"),
        (Kind::Reply, "coordinator.md"),
        (Kind::Prompt, "planner_prompt.txt"),
        (Kind::Reply, "plan.md"),
    ];
    let rest = names.into_iter().map(|(kind, name)| (kind, folder.join(name)));
    std::iter::once((Kind::Idea, eval.idea.path.clone())).chain(rest).collect()
}

/// Leaves texts away that do not fit in: ideas and changes have the room first, then reviews and logs.
fn fit(documents: &mut [Document], mut room: usize) {
    let order = [Kind::Idea, Kind::Diff, Kind::Review, Kind::Log, Kind::Reply, Kind::Prompt];
    for kind in order {
        for document in documents.iter_mut().filter(|document| document.kind == kind) {
            let needed = document.text.as_deref().map_or(0, weight);
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
        let document = |kind, text: &str| Document {
            kind,
            path: "eval/0001/x".parse().unwrap(),
            bytes: 1,
            text: Some(text.to_owned()),
        };
        let mut all = [
            document(Kind::Prompt, "12345"),
            document(Kind::Log, "<"),
            document(Kind::Idea, "12"),
            document(Kind::Prompt, "1"),
        ];
        fit(&mut all, 7);
        let left: Vec<_> = all.iter().map(|document| document.text.as_deref()).collect();
        assert_eq!(left, [None, Some("<"), Some("12"), Some("1")]);
    }
}
