//! Prompt contexts as held in memory: idea files are stored as eval ids where possible. The
//! recorded form is restored exactly. The content of a context is chosen elsewhere.

use super::{Expansion, ExpansionIdeas, Facts, Stage, StoredVerdict};
use crate::event::{ContextPack, FileDigest};
use crate::id::{Depth, EvalId, NodeId, RunPath, Sha256};
use crate::path;

/// Recorded context of a generator's prompt, in compact form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredContext {
    /// File with the text.
    pub path: RunPath,
    /// Digest of the text.
    pub sha256: Sha256,
    files: ContextFiles,
}

/// Idea files that a context mentions.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ContextFiles {
    /// Idea files of these evals.
    OfEvals(Box<[EvalId]>),
    /// Explicit list, used if a file is not an eval's or the expansion made no evals.
    Named(Box<[FileDigest]>),
}

impl From<ContextPack> for StoredContext {
    fn from(pack: ContextPack) -> Self {
        let ContextPack { path, sha256, idea_files } = pack;
        Self { path, sha256, files: ContextFiles::Named(idea_files.into()) }
    }
}

impl StoredContext {
    /// Restores the context as it was recorded.
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

    /// Replaces the file list by eval ids, if every file belongs to an eval older than `before`.
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
    /// Finds the newest eval older than `before` whose idea is in this file.
    fn find_eval_by_file(&self, file: &FileDigest, depth: Depth, before: EvalId) -> Option<EvalId> {
        let expansions = self.expansions_with_ideas_in(&file.path)?;
        // Later expansions are skipped: there may be thousands.
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

    /// Returns the expansions whose ideas are in the same folder as this idea file.
    fn expansions_with_ideas_in(&self, idea: &RunPath) -> Option<&[Expansion]> {
        let below = idea.as_str().strip_prefix(path::all_ideas_folder().as_str())?;
        let folder = below.strip_prefix('/')?.split('/').next()?;
        Some(match folder.parse::<NodeId>() {
            Ok(node) => &self.node(node)?.expansions,
            Err(_) => &self.control,
        })
    }

    /// Returns the compact form of an expansion's context.
    fn compact_context(&self, expansion: &Expansion) -> Option<StoredContext> {
        let ExpansionIdeas::Proposed { evals, context, .. } = &expansion.ideas else { return None };
        Some(context.clone().into_compact(self, expansion.depth, evals.first().copied()))
    }

    /// Compacts all derivable data in memory, as [`State::apply`](crate::state::State::apply) does.
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
