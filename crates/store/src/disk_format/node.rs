//! Serialised forms of a node and of a conversation, each of which takes one line of the manifest.

use super::document::SectionRow;
use super::eval::require_field;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use treebeam_core::bill::RoleBills;
use treebeam_core::conversation::Turn;
use treebeam_core::event::{ContextPack, FileDigest, Idea, RepeatedIdea};
use treebeam_core::facts::{Expansion, ExpansionIdeas, Facts, Node, NodeOrigin};
use treebeam_core::id::{CodePlace, Commit, Depth, EvalId, NodeId, RunPath, Sha256, TurnId};
use treebeam_core::path;
use treebeam_core::policy::{ContextStrategy, DedupeScope};
use treebeam_run::figures;

/// A node, as it is written to the manifest.
#[derive(Serialize, Deserialize)]
pub(super) struct NodeLine {
    node_id: NodeId,
    parent_node_id: Option<NodeId>,
    depth: Depth,
    commit: Commit,
    #[serde(skip_deserializing)]
    ref_name: String,
    #[serde(skip_deserializing)]
    worktree_path: Option<RunPath>,
    #[serde(skip_deserializing)]
    baseline_results_csv_path: Option<RunPath>,
    #[serde(skip_deserializing)]
    idea_chain: Vec<String>,
    promoted_from_eval_id: Option<EvalId>,
    #[serde(skip_deserializing)]
    node_ideas_dir: Option<RunPath>,
    #[serde(skip_deserializing)]
    context_ideas_dirs: Vec<RunPath>,
    #[serde(skip_deserializing)]
    context_idea_files: Vec<FileDigest>,
    #[serde(skip_deserializing)]
    generated_idea_files: Vec<RunPath>,
    #[serde(skip_deserializing)]
    dedupe: Option<NodeDedupe>,
    #[serde(skip_deserializing)]
    conversation_id: String,
    fork_from_turn_id: Option<TurnId>,
    /// The turn that the node's children fork from.
    #[serde(skip_deserializing)]
    expansion_seed_turn_id: Option<TurnId>,
    #[serde(skip_deserializing)]
    latest_conversation_turn_id: Option<TurnId>,
    #[serde(skip_deserializing)]
    sweep_config_limit: Option<u32>,
    #[serde(skip_deserializing)]
    summary_json_path: Option<RunPath>,
    #[serde(skip_deserializing)]
    experiment_dir: Option<RunPath>,
    #[serde(skip_deserializing)]
    prompt_context_path: Option<RunPath>,
    #[serde(skip_deserializing)]
    prompt_context_sha256: Option<Sha256>,
    created_at: Timestamp,
    #[serde(skip_deserializing)]
    status: &'static str,
    #[serde(skip_deserializing)]
    llm_usage: Value,
    #[serde(skip_deserializing)]
    cost_usd: Option<f64>,
    expansions: Vec<ExpansionLine>,
}

#[derive(Serialize)]
struct NodeDedupe {
    policy: DedupeScope,
    skipped: Vec<Sha256>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct ExpansionLine {
    depth: Depth,
    started_at: Timestamp,
    status: ExpansionStatus,
    #[serde(default)]
    turns: u32,
    #[serde(default)]
    eval_ids: Vec<EvalId>,
    #[serde(default)]
    untried: Vec<Idea>,
    #[serde(default)]
    repeats: Vec<RepeatedIdea>,
    context: Option<ContextPack>,
    error: Option<String>,
    /// Evals of ideas that the user added. Absent in the manifests of the first treebeam.
    #[serde(default)]
    added_eval_ids: Vec<EvalId>,
    #[serde(default)]
    bills: RoleBills,
    /// Empty without conversations, and absent in older manifests.
    #[serde(default)]
    conversation: Vec<Turn>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ExpansionStatus {
    Asked,
    Proposed,
    Failed,
}

impl NodeLine {
    /// Returns the manifest line of a node.
    pub(super) fn from_node(facts: &Facts, node: &Node) -> Self {
        let from = match node.origin {
            NodeOrigin::Root => None,
            NodeOrigin::Promoted { from, .. } => Some(from),
        };
        let experiment_dir = from.map(path::experiment_folder);
        let (place, spent) = (CodePlace::Node(node.id), node.total_spend());
        let context =
            node.expansions.iter().rev().find_map(|expansion| expansion_context(facts, expansion));
        let prompt_context_path = context.as_ref().map(|pack| pack.path.clone());
        let prompt_context_sha256 = context.as_ref().map(|pack| pack.sha256);
        Self {
            node_id: node.id,
            parent_node_id: node.parent(),
            depth: node.depth,
            commit: node.commit.clone(),
            ref_name: place.ref_name(&facts.run),
            worktree_path: Some(place.worktree_path()),
            baseline_results_csv_path: facts.baseline_of(node).map(|csv| csv.path.clone()),
            idea_chain: facts
                .idea_chain(node.id)
                .iter()
                .map(|eval| eval.idea.chain_id().to_owned())
                .collect(),
            promoted_from_eval_id: from,
            node_ideas_dir: Some(path::node_ideas_folder(node.id)),
            context_ideas_dirs: context_dirs(facts, node.id),
            context_idea_files: context.map(|pack| pack.idea_files).unwrap_or_default(),
            generated_idea_files: idea_files(facts, node),
            dedupe: Some(NodeDedupe {
                policy: facts.settings.dedupe_scope,
                skipped: skipped_fingerprints(node),
            }),
            conversation_id: conversation_id(node.id),
            fork_from_turn_id: forked_at(node),
            expansion_seed_turn_id: latest_turn(node),
            latest_conversation_turn_id: latest_turn(node),
            sweep_config_limit: facts.settings.sweep_config_limit.map(std::num::NonZero::get),
            summary_json_path: experiment_dir.as_ref().map(|dir| dir.join("summary.json")),
            experiment_dir,
            prompt_context_path,
            prompt_context_sha256,
            created_at: node.created_at,
            status: node_status(facts, node),
            llm_usage: figures::usage_json(&spent),
            cost_usd: figures::cost_in_dollars(&spent),
            expansions: node
                .expansions
                .iter()
                .map(|expansion| ExpansionLine::from_expansion(facts, expansion))
                .collect(),
        }
    }

    fn node_origin(&self) -> Result<NodeOrigin, String> {
        let Some(parent) = self.parent_node_id else { return Ok(NodeOrigin::Root) };
        Ok(NodeOrigin::Promoted {
            parent,
            from: require_field(self.promoted_from_eval_id, "promoted_from_eval_id")?,
            forked_at: require_field(self.fork_from_turn_id, "fork_from_turn_id")?,
        })
    }
}

impl SectionRow for NodeLine {
    const SECTION_NAME: &'static str = "nodes";
    type Fact = Node;

    fn row_id(&self) -> String {
        self.node_id.to_string()
    }

    fn into_fact(self) -> Result<Node, String> {
        let origin = self.node_origin()?;
        let expansions = self.expansions.into_iter().map(ExpansionLine::into_fact);
        Ok(Node {
            id: self.node_id,
            origin,
            depth: self.depth,
            commit: self.commit,
            created_at: self.created_at,
            expansions: expansions.collect::<Result<_, _>>()?,
        })
    }
}

fn conversation_id(node: NodeId) -> String {
    format!("c{node}")
}

/// Returns the folders whose ideas the generator is shown: the root's first, the node's own last.
/// For all ideas of the run it is the one folder above them.
fn context_dirs(facts: &Facts, node: NodeId) -> Vec<RunPath> {
    let nodes = match facts.settings.ideas_context_strategy {
        ContextStrategy::NodeOnly => 1,
        ContextStrategy::NodePlusAncestors => usize::MAX,
        ContextStrategy::GlobalPriorIdeas => return vec![path::all_ideas_folder()],
    };
    let nodes = facts.lineage(node).take(nodes);
    let mut dirs: Vec<_> = nodes.map(|node| path::node_ideas_folder(node.id)).collect();
    dirs.reverse();
    dirs
}

fn expansion_context(facts: &Facts, expansion: &Expansion) -> Option<ContextPack> {
    match &expansion.ideas {
        ExpansionIdeas::Proposed { context, .. } => Some(context.to_context_pack(facts)),
        ExpansionIdeas::Asked | ExpansionIdeas::Failed { .. } => None,
    }
}

/// Returns the files of a node's ideas, tried or not, in the order in which they were proposed.
fn idea_files(facts: &Facts, node: &Node) -> Vec<RunPath> {
    let ideas = node.expansions.iter().flat_map(|expansion| facts.ideas_of(expansion));
    ideas.map(|idea| idea.path.clone()).collect()
}

fn skipped_fingerprints(node: &Node) -> Vec<Sha256> {
    let mut hashes = Vec::new();
    for expansion in &node.expansions {
        if let ExpansionIdeas::Proposed { repeats, .. } = &expansion.ideas {
            hashes.extend(repeats.iter().map(|repeat| repeat.fingerprint));
        }
    }
    hashes
}

fn forked_at(node: &Node) -> Option<TurnId> {
    match node.origin {
        NodeOrigin::Root => None,
        NodeOrigin::Promoted { forked_at, .. } => Some(forked_at),
    }
}

fn latest_turn(node: &Node) -> Option<TurnId> {
    (node.turn_count() > 0).then(|| node.latest_turn())
}

fn node_status(facts: &Facts, node: &Node) -> &'static str {
    if node.id == NodeId::ROOT {
        return "root";
    }
    match node.expansions.last().map(|expansion| &expansion.ideas) {
        Some(ExpansionIdeas::Asked) => "expanding",
        Some(ExpansionIdeas::Proposed { .. } | ExpansionIdeas::Failed { .. }) => "expanded",
        None if facts.frontier.contains(&node.id) => "frontier",
        None => "leaf",
    }
}

impl ExpansionLine {
    pub(super) fn from_expansion(facts: &Facts, expansion: &Expansion) -> Self {
        let mut line = Self {
            depth: expansion.depth,
            started_at: expansion.started_at,
            status: ExpansionStatus::Asked,
            turns: expansion.turn_count(),
            eval_ids: Vec::new(),
            untried: Vec::new(),
            repeats: Vec::new(),
            context: None,
            error: None,
            added_eval_ids: expansion.added.clone(),
            bills: expansion.bills.clone(),
            conversation: expansion.conversation.clone(),
        };
        match &expansion.ideas {
            ExpansionIdeas::Asked => {}
            ExpansionIdeas::Proposed { evals, untried, repeats, context, .. } => {
                line.status = ExpansionStatus::Proposed;
                line.eval_ids.clone_from(evals);
                line.untried.clone_from(untried);
                line.repeats.clone_from(repeats);
                line.context = Some(context.to_context_pack(facts));
            }
            ExpansionIdeas::Failed { why, .. } => {
                line.status = ExpansionStatus::Failed;
                line.error = Some(why.clone());
            }
        }
        line
    }

    pub(super) fn into_fact(self) -> Result<Expansion, String> {
        let turns = self.turns;
        let ideas = match self.status {
            ExpansionStatus::Asked => ExpansionIdeas::Asked,
            ExpansionStatus::Proposed => ExpansionIdeas::Proposed {
                evals: self.eval_ids,
                untried: self.untried,
                repeats: self.repeats,
                turns,
                context: require_field(self.context, "expansions.context")?.into(),
            },
            ExpansionStatus::Failed => ExpansionIdeas::Failed {
                why: require_field(self.error, "expansions.error")?,
                turns,
            },
        };
        let (depth, started_at, added) = (self.depth, self.started_at, self.added_eval_ids);
        let (bills, conversation) = (self.bills, self.conversation);
        Ok(Expansion { depth, started_at, ideas, added, bills, conversation })
    }
}

/// A node's conversation, as it is written to the manifest. All of it is derived.
#[derive(Serialize)]
pub(super) struct ConversationLine {
    pub(super) conversation_id: String,
    node_id: NodeId,
    parent_conversation_id: Option<String>,
    fork_from_turn_id: Option<TurnId>,
    latest_turn_id: Option<TurnId>,
    /// Mode of the last turn: how it continued the conversation.
    mode: String,
    /// The provider's ids of the conversation's answers, oldest first.
    provider_ids: Vec<String>,
    /// Path of the state file; none without memory, as are `turns_path` and `summary_path`.
    state_path: Option<RunPath>,
    turns_path: Option<RunPath>,
    summary_path: Option<RunPath>,
}

impl ConversationLine {
    /// Returns the manifest line of a node's conversation.
    pub(super) fn from_node(node: &Node) -> Self {
        let turns = || node.expansions.iter().flat_map(|expansion| &expansion.conversation);
        let ids = turns().filter_map(|turn| Some(turn.continuation.as_ref()?.id.clone()));
        let kept = |path: fn(NodeId) -> RunPath| turns().next().map(|_| path(node.id));
        Self {
            conversation_id: conversation_id(node.id),
            node_id: node.id,
            parent_conversation_id: node.parent().map(conversation_id),
            fork_from_turn_id: forked_at(node),
            latest_turn_id: latest_turn(node),
            mode: turns().last().map_or_else(|| "off".to_owned(), |turn| turn.way.to_string()),
            provider_ids: ids.collect(),
            state_path: kept(path::conversation_state),
            turns_path: kept(path::conversation_log),
            summary_path: kept(path::conversation_summary),
        }
    }
}
