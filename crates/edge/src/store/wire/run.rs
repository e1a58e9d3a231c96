//! The manifest's single blocks: configuration, root, state, history.

use super::eval::needed;
use crate::store::manifest::Mark;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use treebeam_core::conversation::Mode;
use treebeam_core::event::{
    BudgetKind, Given, Intent, Leftover, LeftoverKind, MessageId, Stop, Subject, WorldKind,
};
use treebeam_core::evidence::Artifact;
use treebeam_core::facts::{
    Baseline, ClosedDepth, Facts, Former, History, Phase, Reached, Removal,
};
use treebeam_core::id::{Commit, Depth, EvalId, GitTree, NodeId, Place, RunId, RunPath, Sha256};
use treebeam_core::path;
use treebeam_core::policy::{Agents, DedupeScope, Meaning, Reach};
use treebeam_core::root_checks::RootChecks;
use treebeam_core::rules_version::RulesVersion;
use treebeam_run::figures;

/// Where a copy came from.
#[derive(Serialize, Deserialize)]
pub(super) struct CopiedFile {
    source_path: String,
    copied_to_path: RunPath,
    sha256: Sha256,
}

impl CopiedFile {
    pub(super) fn of(artifact: &Artifact) -> Self {
        Self {
            source_path: artifact.source.clone(),
            copied_to_path: artifact.path.clone(),
            sha256: artifact.sha256,
        }
    }
    pub(super) fn into_artifact(self) -> Artifact {
        Artifact { path: self.copied_to_path, sha256: self.sha256, source: self.source_path }
    }
}

/// What the run was asked for.
#[derive(Serialize, Deserialize)]
pub(super) struct RunConfig {
    pub(super) tree_run_id: RunId,
    pub(super) created_at: Timestamp,
    pub(super) world: WorldKind,
    #[serde(flatten)]
    pub(super) meaning: Meaning,
    #[serde(flatten)]
    pub(super) reach: Reach,
    #[serde(skip_deserializing)]
    dedupe: Option<DedupePolicy>,
    #[serde(skip_deserializing)]
    artifact_policy: &'static str,
    #[serde(skip_deserializing)]
    node_ideas_root_dir: &'static str,
    #[serde(skip_deserializing)]
    extra_context_dirs: [(); 0],
    /// Empty in the manifests of runs without agents.
    #[serde(default)]
    pub(super) agents: Agents,
    /// Only where others came in the place of agents that had answered something.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) former_agents: Vec<Former>,
    /// Null where agents are asked for ideas, and not in older manifests.
    #[serde(default)]
    pub(super) given: Option<Given>,
    /// Null where agents are asked, and not in older manifests.
    #[serde(default)]
    pub(super) replays: Option<RunId>,
    /// Not in the manifests of runs by the first rules.
    #[serde(
        default = "RulesVersion::of_older_records",
        skip_serializing_if = "RulesVersion::is_of_older_records"
    )]
    pub(super) rules_version: RulesVersion,
}

#[derive(Serialize)]
struct DedupePolicy {
    policy: DedupeScope,
}

impl RunConfig {
    pub(super) fn of(facts: &Facts) -> Self {
        Self {
            tree_run_id: facts.run.clone(),
            created_at: facts.created_at,
            world: facts.world,
            meaning: facts.meaning.clone(),
            reach: facts.reach.clone(),
            dedupe: Some(DedupePolicy { policy: facts.meaning.dedupe_scope }),
            artifact_policy: "copy_to_run_root",
            node_ideas_root_dir: "node_ideas",
            extra_context_dirs: [],
            agents: facts.agents.clone(),
            former_agents: facts.former.clone(),
            given: facts.given.clone(),
            replays: facts.replays.clone(),
            rules_version: facts.rules_version,
        }
    }
}

/// How conversations are led, as the block of that name says it: what counts is in `run_config`.
#[derive(Serialize)]
pub(super) struct ConversationConfig {
    mode: Mode,
    history_window_turns: NonZeroU32,
    history_max_chars: NonZeroU32,
    debug_log_path: Option<RunPath>,
}

impl ConversationConfig {
    pub(super) const fn of(reach: &Reach) -> Self {
        Self {
            mode: reach.idea_conversation_mode,
            history_window_turns: reach.idea_history_window_turns,
            history_max_chars: reach.idea_history_max_chars,
            debug_log_path: None,
        }
    }
}

/// The root and its baseline.
#[derive(Serialize, Deserialize)]
#[expect(clippy::struct_field_names, reason = "the names are those of the file")]
pub(super) struct Root {
    #[serde(skip_deserializing)]
    root_commit: Option<Commit>,
    #[serde(skip_deserializing)]
    root_ref_name: String,
    #[serde(skip_deserializing)]
    root_baseline_csv_path: Option<RunPath>,
    root_baseline_provenance: Option<CopiedFile>,
    root_baseline_rows: Option<u32>,
    root_baseline_measured_at: Option<Timestamp>,
    root_baseline_refused: Option<String>,
    /// Not in older manifests.
    #[serde(default)]
    parent_baseline_provenance: Option<CopiedFile>,
    /// Not in older manifests.
    #[serde(default)]
    protected_inputs_sha256: Option<Sha256>,
    /// Not in older manifests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    root_tree: Option<GitTree>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    checks: Option<Box<RootChecks>>,
}

impl Root {
    pub(super) fn of(facts: &Facts) -> Self {
        let root_tree = match &facts.baseline {
            Baseline::Measured { tree, .. } => tree.clone(),
            Baseline::Unmeasured | Baseline::Refused { .. } => None,
        };
        let (results, rows, parent, inputs, at) = match &facts.baseline {
            Baseline::Unmeasured | Baseline::Refused { .. } => (None, None, None, None, None),
            Baseline::Measured { results, rows, parent, protected_inputs, at, .. } => (
                Some(results),
                Some(*rows),
                parent.as_ref(),
                protected_inputs.as_deref().copied(),
                Some(*at),
            ),
        };
        let checks = match &facts.baseline {
            Baseline::Unmeasured | Baseline::Refused { .. } => None,
            Baseline::Measured { checks, .. } => checks.clone(),
        };
        Self {
            root_commit: facts.nodes.first().map(|root| root.commit.clone()),
            root_ref_name: Place::Node(NodeId::ROOT).ref_name(&facts.run),
            root_baseline_csv_path: results.map(|artifact| artifact.path.clone()),
            root_baseline_provenance: results.map(CopiedFile::of),
            root_baseline_rows: rows,
            root_baseline_measured_at: at,
            root_baseline_refused: match &facts.baseline {
                Baseline::Refused { why } => Some(why.clone()),
                Baseline::Unmeasured | Baseline::Measured { .. } => None,
            },
            parent_baseline_provenance: parent.map(CopiedFile::of),
            protected_inputs_sha256: inputs,
            root_tree,
            checks,
        }
    }

    pub(super) fn into_baseline(self) -> Result<Baseline, String> {
        if let Some(why) = self.root_baseline_refused {
            return Ok(Baseline::Refused { why });
        }
        let Some(copied) = self.root_baseline_provenance else { return Ok(Baseline::Unmeasured) };
        Ok(Baseline::Measured {
            results: copied.into_artifact(),
            rows: needed(self.root_baseline_rows, "root_baseline_rows")?,
            parent: self.parent_baseline_provenance.map(CopiedFile::into_artifact),
            protected_inputs: self.protected_inputs_sha256.map(Box::new),
            tree: self.root_tree,
            checks: self.checks,
            at: needed(self.root_baseline_measured_at, "root_baseline_measured_at")?,
        })
    }
}

/// Where the search stands.
#[derive(Serialize, Deserialize)]
pub(super) struct StateBlock {
    current_depth: Depth,
    frontier_node_ids: Vec<NodeId>,
    #[serde(skip_deserializing)]
    expanded_node_ids_by_depth: BTreeMap<u32, Vec<NodeId>>,
    #[serde(skip_deserializing)]
    completed_depths: Vec<u32>,
    closed_depths: Vec<ClosedLine>,
    #[serde(skip_deserializing)]
    next_node_id: Option<NodeId>,
    #[serde(skip_deserializing)]
    next_eval_id: Option<EvalId>,
    phase: PhaseName,
    promoting_eval_ids: Vec<EvalId>,
    stop_reason: Option<Stop>,
    stopped_at: Option<Timestamp>,
    #[serde(skip_deserializing)]
    llm_usage: Value,
    #[serde(skip_deserializing)]
    cost_usd: Option<f64>,
    deferred_cleanup: Vec<DeferredLine>,
    pending_cleanup: Vec<PendingLine>,
    kept: Vec<PendingLine>,
    /// Not in the manifests of the first treebeam.
    #[serde(default)]
    removed: Vec<PendingLine>,
    #[serde(default)]
    budget_reached: Option<BudgetKind>,
    #[serde(default)]
    refused_steps: BTreeSet<Intent>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum PhaseName {
    Measuring,
    Searching,
    Promoting,
    Stopped,
}

#[derive(Serialize, Deserialize)]
struct ClosedLine {
    expanded_node_ids: Vec<NodeId>,
    evals_end: EvalId,
    failed_count: u32,
    beam_eval_ids: Vec<EvalId>,
    cut_short: bool,
}

#[derive(Serialize, Deserialize)]
struct PendingLine {
    #[serde(skip_deserializing)]
    path: String,
    kind: LeftoverKind,
    of: Place,
}

#[derive(Serialize, Deserialize)]
struct DeferredLine {
    #[serde(flatten)]
    leftover: PendingLine,
    reason: String,
    attempts: u32,
    next_retry_at: Timestamp,
}

impl StateBlock {
    pub(super) fn of(facts: &Facts) -> Self {
        let (deferred_cleanup, pending_cleanup, kept) = cleanup(facts);
        let spent = facts.spent();
        let (phase, promoting_eval_ids, stop) = match &facts.phase {
            Phase::Measuring => (PhaseName::Measuring, Vec::new(), None),
            Phase::Searching => (PhaseName::Searching, Vec::new(), None),
            Phase::Promoting { left } => (PhaseName::Promoting, left.clone(), None),
            Phase::Stopped { reason, at } => (PhaseName::Stopped, Vec::new(), Some((*reason, *at))),
        };
        Self {
            current_depth: facts.depth,
            frontier_node_ids: facts.frontier.clone(),
            expanded_node_ids_by_depth: expanded_by_depth(facts),
            completed_depths: (0..).zip(&facts.closed).map(|(depth, _)| depth).collect(),
            closed_depths: facts.closed.iter().map(ClosedLine::of).collect(),
            next_node_id: Some(facts.next_node()),
            next_eval_id: Some(facts.next_eval()),
            phase,
            promoting_eval_ids,
            stop_reason: stop.map(|(reason, _)| reason),
            stopped_at: stop.map(|(_, at)| at),
            llm_usage: figures::usage(&spent),
            cost_usd: figures::cost(&spent),
            deferred_cleanup,
            pending_cleanup,
            kept,
            removed: facts.removed.iter().map(|gone| PendingLine::of(gone, &facts.run)).collect(),
            budget_reached: facts.reached.as_ref().map(|reached| reached.budget),
            refused_steps: facts.reached.iter().flat_map(|r| &r.refused).copied().collect(),
        }
    }

    /// Puts what it says into the facts.
    pub(super) fn enter(self, facts: &mut Facts) -> Result<(), String> {
        facts.depth = self.current_depth;
        facts.frontier = self.frontier_node_ids;
        facts.closed = self.closed_depths.into_iter().map(ClosedLine::into_closed).collect();
        facts.phase = match self.phase {
            PhaseName::Measuring => Phase::Measuring,
            PhaseName::Searching => Phase::Searching,
            PhaseName::Promoting => Phase::Promoting { left: self.promoting_eval_ids },
            PhaseName::Stopped => Phase::Stopped {
                reason: needed(self.stop_reason, "stop_reason")?,
                at: needed(self.stopped_at, "stopped_at")?,
            },
        };
        let refused = self.refused_steps;
        facts.reached = self.budget_reached.map(|budget| Reached { budget, refused });
        let pending = self.pending_cleanup.iter().map(|line| (line.leftover(), Removal::Due));
        facts.leftovers.extend(pending);
        let kept = self.kept.iter().map(|line| (line.leftover(), Removal::Kept));
        facts.leftovers.extend(kept);
        facts.removed.extend(self.removed.iter().map(PendingLine::leftover));
        let deferred = self.deferred_cleanup.into_iter().map(DeferredLine::into_removal);
        facts.leftovers.extend(deferred);
        Ok(())
    }
}

fn expanded_by_depth(facts: &Facts) -> BTreeMap<u32, Vec<NodeId>> {
    let mut by_depth: BTreeMap<u32, Vec<NodeId>> =
        (0..).zip(&facts.closed).map(|(depth, closed)| (depth, closed.expanded.clone())).collect();
    let open: Vec<_> = facts.expanded_at_open_depth().collect();
    if !open.is_empty() {
        by_depth.entry(facts.depth.0).or_insert(open);
    }
    by_depth
}

fn cleanup(facts: &Facts) -> (Vec<DeferredLine>, Vec<PendingLine>, Vec<PendingLine>) {
    let (mut deferred, mut pending, mut kept) = (Vec::new(), Vec::new(), Vec::new());
    for (leftover, removal) in &facts.leftovers {
        let line = PendingLine::of(leftover, &facts.run);
        match removal {
            Removal::Kept => kept.push(line),
            Removal::Due => pending.push(line),
            Removal::Deferred { attempts, why, retry_at } => deferred.push(DeferredLine {
                leftover: line,
                reason: why.clone(),
                attempts: *attempts,
                next_retry_at: *retry_at,
            }),
        }
    }
    (deferred, pending, kept)
}

impl ClosedLine {
    fn of(closed: &ClosedDepth) -> Self {
        Self {
            expanded_node_ids: closed.expanded.clone(),
            evals_end: closed.evals_end,
            failed_count: closed.failed,
            beam_eval_ids: closed.beam.clone(),
            cut_short: closed.cut_short,
        }
    }
    fn into_closed(self) -> ClosedDepth {
        ClosedDepth {
            expanded: self.expanded_node_ids,
            evals_end: self.evals_end,
            failed: self.failed_count,
            beam: self.beam_eval_ids,
            cut_short: self.cut_short,
        }
    }
}

impl PendingLine {
    fn of(leftover: &Leftover, run: &RunId) -> Self {
        let path = match leftover.kind {
            LeftoverKind::Worktree => leftover.place.worktree().to_string(),
            LeftoverKind::Branch => leftover.place.ref_name(run),
            LeftoverKind::Dir => match leftover.place {
                Place::Candidate(eval) => path::eval(eval).to_string(),
                Place::Node(_) => path::of_subject(Subject::Root).to_string(),
            },
        };
        Self { path, kind: leftover.kind, of: leftover.place }
    }
    fn leftover(&self) -> Leftover {
        Leftover { place: self.of, kind: self.kind }
    }
}

impl DeferredLine {
    fn into_removal(self) -> (Leftover, Removal) {
        let (attempts, retry_at) = (self.attempts, self.next_retry_at);
        (self.leftover.leftover(), Removal::Deferred { attempts, why: self.reason, retry_at })
    }
}

/// What depends on how often the run was interrupted, and where the journal stood.
#[derive(Serialize, Deserialize)]
pub(super) struct HistoryBlock {
    #[serde(flatten)]
    pub(super) mark: Mark,
    submissions: BTreeMap<String, u32>,
    settings_changes: u32,
    promotion_failures: u32,
    deferred_cleanups: u32,
    cleanups: u32,
    /// Not in the manifests of the first treebeam.
    #[serde(default)]
    lock_takeovers: u32,
    /// Written only where it happened: manifests of older runs have no such field.
    #[serde(default, skip_serializing_if = "is_zero")]
    journal_restorations: u32,
    #[serde(default)]
    paused_since: Option<Timestamp>,
    #[serde(default)]
    stop_after_depth: Option<Depth>,
    #[serde(default)]
    messages: Vec<MessageId>,
    /// Seldom there.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    replaced_sweeps: BTreeMap<EvalId, CopiedFile>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    suspects: BTreeSet<EvalId>,
}

impl HistoryBlock {
    pub(super) fn of(history: &History, mark: Mark) -> Self {
        let submissions = history.submissions.iter();
        Self {
            mark,
            submissions: submissions.map(|(subject, n)| (subject.to_string(), *n)).collect(),
            settings_changes: history.settings_changes,
            promotion_failures: history.promotion_failures,
            deferred_cleanups: history.deferred_cleanups,
            cleanups: history.cleanups,
            lock_takeovers: history.lock_takeovers,
            journal_restorations: history.journal_restorations,
            paused_since: history.paused_since,
            stop_after_depth: history.stop_after,
            messages: history.messages.clone(),
            replaced_sweeps: history
                .replaced_sweeps
                .iter()
                .map(|(eval, results)| (*eval, CopiedFile::of(results)))
                .collect(),
            suspects: history.suspects.clone(),
        }
    }

    pub(super) fn into_history(self) -> Result<History, String> {
        let submissions = self.submissions.into_iter().map(|(text, n)| Ok((subject(&text)?, n)));
        let replaced = self.replaced_sweeps.into_iter();
        Ok(History {
            submissions: submissions.collect::<Result<_, String>>()?,
            settings_changes: self.settings_changes,
            promotion_failures: self.promotion_failures,
            deferred_cleanups: self.deferred_cleanups,
            cleanups: self.cleanups,
            lock_takeovers: self.lock_takeovers,
            journal_restorations: self.journal_restorations,
            paused_since: self.paused_since,
            stop_after: self.stop_after_depth,
            messages: self.messages,
            replaced_sweeps: replaced.map(|(eval, file)| (eval, file.into_artifact())).collect(),
            suspects: self.suspects,
        })
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

fn subject(text: &str) -> Result<Subject, String> {
    if text == "root" {
        return Ok(Subject::Root);
    }
    match text.parse() {
        Ok(Place::Candidate(eval)) => Ok(Subject::Eval(eval)),
        Ok(Place::Node(_)) | Err(_) => Err(format!("`submissions` has {text:?}")),
    }
}
