//! What a generator was told, as it is held: an idea file that is an eval's is held with the eval, and named by it here. What
//! was recorded comes out again to the letter. Nothing here says what is told.

use super::{Expansion, ExpansionIdeas, Facts, Stage};
use crate::event::{ContextPack, FileDigest};
use crate::gate::StoredVerdict;
use crate::id::{Depth, EvalId, NodeId, RunPath, Sha256};
use crate::path;

/// What a generator was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredContext {
    /// The file with the text.
    pub path: RunPath,
    /// Its digest.
    pub sha256: Sha256,
    files: ContextFiles,
}

/// The idea files that it mentions.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ContextFiles {
    /// Those of these evals.
    OfEvals(Box<[EvalId]>),
    /// Some that are no eval's, or of an expansion that brought none.
    Named(Box<[FileDigest]>),
}

impl From<ContextPack> for StoredContext {
    fn from(pack: ContextPack) -> Self {
        let ContextPack { path, sha256, idea_files } = pack;
        Self { path, sha256, files: ContextFiles::Named(idea_files.into()) }
    }
}

impl StoredContext {
    /// As it was recorded.
    #[must_use]
    pub fn to_context_pack(&self, facts: &Facts) -> ContextPack {
        let (path, sha256) = (self.path.clone(), self.sha256);
        let of_eval = |id: &EvalId| {
            let eval = facts.eval(*id)?;
            Some(FileDigest { path: eval.idea.path.clone(), sha256: eval.idea.sha256 })
        };
        let idea_files = match &self.files {
            ContextFiles::OfEvals(evals) => evals.iter().filter_map(of_eval).collect(),
            ContextFiles::Named(files) => files.to_vec(),
        };
        ContextPack { path, sha256, idea_files }
    }

    /// The same in as little room as will do, where it was told before this eval was there.
    #[must_use]
    pub(crate) fn into_compact(self, facts: &Facts, depth: Depth, before: Option<EvalId>) -> Self {
        let (ContextFiles::Named(named), Some(before)) = (&self.files, before) else { return self };
        let evals = named.iter().map(|file| facts.find_eval_by_file(file, depth, before));
        match evals.collect::<Option<_>>() {
            Some(evals) => Self { files: ContextFiles::OfEvals(evals), ..self },
            None => self,
        }
    }
}

impl Facts {
    /// The newest eval before another one whose idea is in this file.
    fn find_eval_by_file(&self, file: &FileDigest, depth: Depth, before: EvalId) -> Option<EvalId> {
        let expansions = self.expansions_with_ideas_in(&file.path)?;
        // Later ones are not looked at: there may be thousands.
        let known = expansions.partition_point(|expansion| expansion.depth <= depth);
        let known = expansions.get(..known)?.iter().rev();
        let evals =
            known.flat_map(|expansion| expansion.eval_ids().rev()).filter(|id| **id < before);
        let is_it = |id: &EvalId| {
            let eval = self.eval(*id);
            eval.is_some_and(|eval| eval.idea.path == file.path && eval.idea.sha256 == file.sha256)
        };
        evals.copied().find(is_it)
    }

    /// The expansions whose ideas lie in the folder of this one.
    fn expansions_with_ideas_in(&self, idea: &RunPath) -> Option<&[Expansion]> {
        let below = idea.as_str().strip_prefix(path::all_ideas_folder().as_str())?;
        let folder = below.strip_prefix('/')?.split('/').next()?;
        Some(match folder.parse::<NodeId>() {
            Ok(node) => &self.node(node)?.expansions,
            Err(_) => &self.control,
        })
    }

    /// What an expansion's generator was told, in as little room as will do.
    fn compact_context(&self, expansion: &Expansion) -> Option<StoredContext> {
        let ExpansionIdeas::Proposed { evals, context, .. } = &expansion.ideas else { return None };
        Some(context.clone().into_compact(self, expansion.depth, evals.first().copied()))
    }

    /// Holds what follows from the rest in as little room as will do, as [`State::apply`](crate::state::State::apply) does.
    pub fn compact_memory(&mut self) {
        let expansions = self.nodes.iter().flat_map(|node| &node.expansions).chain(&self.control);
        let told: Vec<_> = expansions.map(|expansion| self.compact_context(expansion)).collect();
        let nodes = self.nodes.iter_mut();
        let expansions = nodes.flat_map(|node| &mut node.expansions).chain(&mut self.control);
        for (expansion, told) in expansions.zip(told) {
            if let (ExpansionIdeas::Proposed { context, .. }, Some(told)) =
                (&mut expansion.ideas, told)
            {
                *context = told;
            }
        }
        for eval in self.evals.unpacked_evals_mut() {
            if let Stage::Decided(measured, word, _) = &mut eval.stage
                && let StoredVerdict::Recorded(verdict) = word
            {
                *word = StoredVerdict::from_verdict(verdict, measured, &self.settings);
            }
        }
        self.pack_closed_depths();
    }
}
