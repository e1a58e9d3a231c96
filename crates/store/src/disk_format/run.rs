//! Serialised forms of the manifest's single blocks: configuration, root and state.

use super::eval::require_field;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use treebeam_core::conversation::ConversationMode;
use treebeam_core::event::{
    BudgetKind, Leftover, LeftoverKind, PaidStep, StopReason, SweepSubject, UserIdeas, WorldKind,
};
use treebeam_core::evidence::Artifact;
use treebeam_core::facts::{
    ClosedDepth, Facts, FormerAgents, ReachedBudget, RemovalState, RootBaseline, RunPhase,
};
use treebeam_core::id::{
    CodePlace, Commit, Depth, EvalId, GitTree, NodeId, RunId, RunPath, Sha256,
};
use treebeam_core::path;
use treebeam_core::policy::{DedupeScope, FixedSettings, RecordedAgents, RunLimits};
use treebeam_core::root_checks::RootChecks;
use treebeam_core::rules_version::RulesVersion;
use treebeam_run::figures;

/// A copied file with its source and its digest.
#[derive(Serialize, Deserialize)]
pub(super) struct CopiedFile {
    source_path: String,
    copied_to_path: RunPath,
    sha256: Sha256,
}

impl CopiedFile {
    pub(super) fn from_artifact(artifact: &Artifact) -> Self {
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

/// The configuration of the run.
#[derive(Serialize, Deserialize)]
pub(super) struct RunConfig {
    pub(super) tree_run_id: RunId,
    pub(super) created_at: Timestamp,
    pub(super) world: WorldKind,
    #[serde(flatten)]
    pub(super) meaning: FixedSettings,
    #[serde(flatten)]
    pub(super) reach: RunLimits,
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
    pub(super) agents: RecordedAgents,
    /// Written only if agents that had answered something were replaced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) former_agents: Vec<FormerAgents>,
    /// Null if agents are asked for ideas; absent in older manifests.
    #[serde(default)]
    pub(super) given: Option<UserIdeas>,
    /// Null if agents are asked; absent in older manifests.
    #[serde(default)]
    pub(super) replays: Option<RunId>,
    /// Absent in the manifests of runs by the first rules.
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
    pub(super) fn from_facts(facts: &Facts) -> Self {
        Self {
            tree_run_id: facts.run.clone(),
            created_at: facts.created_at,
            world: facts.world,
            meaning: facts.settings.clone(),
            reach: facts.limits.clone(),
            dedupe: Some(DedupePolicy { policy: facts.settings.dedupe_scope }),
            artifact_policy: "copy_to_run_root",
            node_ideas_root_dir: "node_ideas",
            extra_context_dirs: [],
            agents: facts.agents.clone(),
            former_agents: facts.former_agents.clone(),
            given: facts.user_ideas.clone(),
            replays: facts.replays.clone(),
            rules_version: facts.rules_version,
        }
    }
}

/// The block `conversation_config`. It is derived: the values that count are in `run_config`.
#[derive(Serialize)]
pub(super) struct ConversationConfig {
    mode: ConversationMode,
    history_window_turns: NonZeroU32,
    history_max_chars: NonZeroU32,
    debug_log_path: Option<RunPath>,
}

impl ConversationConfig {
    pub(super) const fn from_limits(limits: &RunLimits) -> Self {
        Self {
            mode: limits.idea_conversation_mode,
            history_window_turns: limits.idea_history_window_turns,
            history_max_chars: limits.idea_history_max_chars,
            debug_log_path: None,
        }
    }
}

/// The root and its baseline.
#[derive(Serialize, Deserialize)]
pub(super) struct RootBlock {
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
    /// Absent in older manifests.
    #[serde(default)]
    parent_baseline_provenance: Option<CopiedFile>,
    /// Absent in older manifests.
    #[serde(default)]
    protected_inputs_sha256: Option<Sha256>,
    /// Absent in older manifests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    root_tree: Option<GitTree>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    checks: Option<Box<RootChecks>>,
}

impl RootBlock {
    pub(super) fn from_facts(facts: &Facts) -> Self {
        let root_tree = match &facts.baseline {
            RootBaseline::Measured { tree, .. } => tree.clone(),
            RootBaseline::Unmeasured | RootBaseline::Refused { .. } => None,
        };
        let (results, rows, parent, inputs, at) = match &facts.baseline {
            RootBaseline::Unmeasured | RootBaseline::Refused { .. } => {
                (None, None, None, None, None)
            }
            RootBaseline::Measured { results, rows, parent, protected_inputs, at, .. } => (
                Some(results),
                Some(*rows),
                parent.as_ref(),
                protected_inputs.as_deref().copied(),
                Some(*at),
            ),
        };
        let checks = match &facts.baseline {
            RootBaseline::Unmeasured | RootBaseline::Refused { .. } => None,
            RootBaseline::Measured { checks, .. } => checks.clone(),
        };
        Self {
            root_commit: facts.nodes.first().map(|root| root.commit.clone()),
            root_ref_name: CodePlace::Node(NodeId::ROOT).ref_name(&facts.run),
            root_baseline_csv_path: results.map(|artifact| artifact.path.clone()),
            root_baseline_provenance: results.map(CopiedFile::from_artifact),
            root_baseline_rows: rows,
            root_baseline_measured_at: at,
            root_baseline_refused: match &facts.baseline {
                RootBaseline::Refused { why } => Some(why.clone()),
                RootBaseline::Unmeasured | RootBaseline::Measured { .. } => None,
            },
            parent_baseline_provenance: parent.map(CopiedFile::from_artifact),
            protected_inputs_sha256: inputs,
            root_tree,
            checks,
        }
    }

    pub(super) fn into_baseline(self) -> Result<RootBaseline, String> {
        if let Some(why) = self.root_baseline_refused {
            return Ok(RootBaseline::Refused { why });
        }
        let Some(copied) = self.root_baseline_provenance else {
            return Ok(RootBaseline::Unmeasured);
        };
        Ok(RootBaseline::Measured {
            results: copied.into_artifact(),
            rows: require_field(self.root_baseline_rows, "root_baseline_rows")?,
            parent: self.parent_baseline_provenance.map(CopiedFile::into_artifact),
            protected_inputs: self.protected_inputs_sha256.map(Box::new),
            tree: self.root_tree,
            checks: self.checks,
            at: require_field(self.root_baseline_measured_at, "root_baseline_measured_at")?,
        })
    }
}

/// The position of the search.
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
    stop_reason: Option<StopReason>,
    stopped_at: Option<Timestamp>,
    #[serde(skip_deserializing)]
    llm_usage: Value,
    #[serde(skip_deserializing)]
    cost_usd: Option<f64>,
    deferred_cleanup: Vec<DeferredLine>,
    pending_cleanup: Vec<LeftoverLine>,
    kept: Vec<LeftoverLine>,
    /// Absent in the manifests of the first treebeam.
    #[serde(default)]
    removed: Vec<LeftoverLine>,
    #[serde(default)]
    budget_reached: Option<BudgetKind>,
    #[serde(default)]
    refused_steps: BTreeSet<PaidStep>,
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
struct LeftoverLine {
    #[serde(skip_deserializing)]
    path: String,
    kind: LeftoverKind,
    of: CodePlace,
}

#[derive(Serialize, Deserialize)]
struct DeferredLine {
    #[serde(flatten)]
    leftover: LeftoverLine,
    reason: String,
    attempts: u32,
    next_retry_at: Timestamp,
}

impl StateBlock {
    pub(super) fn from_facts(facts: &Facts) -> Self {
        let (deferred_cleanup, pending_cleanup, kept) = cleanup_lines(facts);
        let spent = facts.total_spend();
        let (phase, promoting_eval_ids, stop) = match &facts.phase {
            RunPhase::Measuring => (PhaseName::Measuring, Vec::new(), None),
            RunPhase::Searching => (PhaseName::Searching, Vec::new(), None),
            RunPhase::Promoting { left } => (PhaseName::Promoting, left.clone(), None),
            RunPhase::Stopped { reason, at } => {
                (PhaseName::Stopped, Vec::new(), Some((*reason, *at)))
            }
        };
        Self {
            current_depth: facts.depth,
            frontier_node_ids: facts.frontier.clone(),
            expanded_node_ids_by_depth: expanded_by_depth(facts),
            completed_depths: (0..).zip(&facts.closed).map(|(depth, _)| depth).collect(),
            closed_depths: facts.closed.iter().map(ClosedLine::from_closed_depth).collect(),
            next_node_id: Some(facts.next_node_id()),
            next_eval_id: Some(facts.next_eval_id()),
            phase,
            promoting_eval_ids,
            stop_reason: stop.map(|(reason, _)| reason),
            stopped_at: stop.map(|(_, at)| at),
            llm_usage: figures::usage_json(&spent),
            cost_usd: figures::cost_in_dollars(&spent),
            deferred_cleanup,
            pending_cleanup,
            kept,
            removed: facts
                .removed
                .iter()
                .map(|gone| LeftoverLine::from_leftover(gone, &facts.run))
                .collect(),
            budget_reached: facts.reached_budget.as_ref().map(|reached| reached.budget),
            refused_steps: facts.reached_budget.iter().flat_map(|r| &r.refused).copied().collect(),
        }
    }

    /// Copies the values of the block into the facts.
    pub(super) fn apply_to_facts(self, facts: &mut Facts) -> Result<(), String> {
        facts.depth = self.current_depth;
        facts.frontier = self.frontier_node_ids;
        facts.closed = self.closed_depths.into_iter().map(ClosedLine::into_closed_depth).collect();
        facts.phase = match self.phase {
            PhaseName::Measuring => RunPhase::Measuring,
            PhaseName::Searching => RunPhase::Searching,
            PhaseName::Promoting => RunPhase::Promoting { left: self.promoting_eval_ids },
            PhaseName::Stopped => RunPhase::Stopped {
                reason: require_field(self.stop_reason, "stop_reason")?,
                at: require_field(self.stopped_at, "stopped_at")?,
            },
        };
        let refused = self.refused_steps;
        facts.reached_budget = self.budget_reached.map(|budget| ReachedBudget { budget, refused });
        let pending =
            self.pending_cleanup.iter().map(|line| (line.to_leftover(), RemovalState::Due));
        facts.leftovers.extend(pending);
        let kept = self.kept.iter().map(|line| (line.to_leftover(), RemovalState::Kept));
        facts.leftovers.extend(kept);
        facts.removed.extend(self.removed.iter().map(LeftoverLine::to_leftover));
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

fn cleanup_lines(facts: &Facts) -> (Vec<DeferredLine>, Vec<LeftoverLine>, Vec<LeftoverLine>) {
    let (mut deferred, mut pending, mut kept) = (Vec::new(), Vec::new(), Vec::new());
    for (leftover, removal) in &facts.leftovers {
        let line = LeftoverLine::from_leftover(leftover, &facts.run);
        match removal {
            RemovalState::Kept => kept.push(line),
            RemovalState::Due => pending.push(line),
            RemovalState::Deferred { attempts, why, retry_at } => deferred.push(DeferredLine {
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
    fn from_closed_depth(closed: &ClosedDepth) -> Self {
        Self {
            expanded_node_ids: closed.expanded.clone(),
            evals_end: closed.evals_end,
            failed_count: closed.failed,
            beam_eval_ids: closed.beam.clone(),
            cut_short: closed.cut_short,
        }
    }
    fn into_closed_depth(self) -> ClosedDepth {
        ClosedDepth {
            expanded: self.expanded_node_ids,
            evals_end: self.evals_end,
            failed: self.failed_count,
            beam: self.beam_eval_ids,
            cut_short: self.cut_short,
        }
    }
}

impl LeftoverLine {
    fn from_leftover(leftover: &Leftover, run: &RunId) -> Self {
        let path = match leftover.kind {
            LeftoverKind::Worktree => leftover.place.worktree_path().to_string(),
            LeftoverKind::Branch => leftover.place.ref_name(run),
            LeftoverKind::Dir => match leftover.place {
                CodePlace::Candidate(eval) => path::eval_folder(eval).to_string(),
                CodePlace::Node(_) => path::subject_folder(SweepSubject::Root).to_string(),
            },
        };
        Self { path, kind: leftover.kind, of: leftover.place }
    }
    fn to_leftover(&self) -> Leftover {
        Leftover { place: self.of, kind: self.kind }
    }
}

impl DeferredLine {
    fn into_removal(self) -> (Leftover, RemovalState) {
        let (attempts, retry_at) = (self.attempts, self.next_retry_at);
        (
            self.leftover.to_leftover(),
            RemovalState::Deferred { attempts, why: self.reason, retry_at },
        )
    }
}
