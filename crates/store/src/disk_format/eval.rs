//! Serialised form of an eval, which takes one line of the manifest.

use super::candidate::CandidateLine;
use super::comparison::ComparisonLine;
use super::csv_form::FormLine;
use super::decision::DecisionLine;
use super::document::SectionRow;
use super::run::CopiedFile;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use treebeam_core::bill::RoleBills;
use treebeam_core::event::{Approval, BudgetKind, EvalFailure, Idea, SweepSubject};
use treebeam_core::evidence::{Artifact, CandidateScore, SweepCompleteness};
use treebeam_core::facts::{Candidate, Eval, Facts, ScoredCandidate, Stage, StoredVerdict};
use treebeam_core::group::EvalGroup;
use treebeam_core::id::{
    CodePlace, Commit, Depth, EvalId, GitTree, NodeId, RunPath, Sha256, TurnId,
};
use treebeam_core::path;
use treebeam_core::rules_version::RulesVersion;
use treebeam_run::figures;

/// An eval, as it is written to the manifest.
#[derive(Serialize, Deserialize)]
pub(super) struct EvalLine {
    eval_id: EvalId,
    parent_node_id: NodeId,
    /// Absent for evals of the tree.
    #[serde(default, skip_serializing_if = "EvalGroup::is_tree")]
    group: EvalGroup,
    #[serde(skip_deserializing)]
    parent_commit: Option<Commit>,
    depth: Depth,
    #[serde(skip_deserializing)]
    idea_id: String,
    idea_path: RunPath,
    idea_sha256: Sha256,
    idea_fingerprint: Sha256,
    idea_title: String,
    /// Null for an idea that the user added.
    idea_turn: Option<u32>,
    #[serde(skip_deserializing)]
    status: &'static str,
    stage: StageName,
    attempt: u32,
    /// Absent in the manifests of the first treebeam.
    #[serde(default)]
    earlier_failures: Vec<EvalFailure>,
    /// A candidate that waits for another sweep. Rarely present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    measured_again: Option<Box<CandidateLine>>,
    #[serde(default)]
    superseded_by_eval_id: Option<EvalId>,
    #[serde(default)]
    unfinished_for: Option<BudgetKind>,
    queued_at: Timestamp,
    started_at: Option<Timestamp>,
    /// Absent in the manifests of older versions.
    #[serde(default)]
    implemented_at: Option<Timestamp>,
    finished_at: Option<Timestamp>,
    #[serde(skip_deserializing)]
    eval_output_root: Option<RunPath>,
    #[serde(skip_deserializing)]
    experiment_dir: Option<RunPath>,
    #[serde(skip_deserializing)]
    candidate_ref_name: String,
    candidate_commit: Option<Commit>,
    #[serde(skip_deserializing)]
    candidate_results_csv_path: Option<RunPath>,
    provenance: Vec<CopiedFile>,
    parent_relative: Option<ComparisonLine>,
    root_relative: Option<ComparisonLine>,
    completeness: Option<SweepCompleteness>,
    form: Option<FormLine>,
    has_effect: Option<bool>,
    /// Absent for scores by the first rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rules_version: Option<RulesVersion>,
    decision: Option<DecisionLine>,
    files_changed: Option<u32>,
    rounds: Option<u32>,
    approval: Option<Approval>,
    /// The attempt that made the candidate, if it is not the last attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    made_in_attempt: Option<u32>,
    /// The git tree of the candidate. Absent in older manifests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    candidate_tree: Option<GitTree>,
    /// The older twin whose results these are because it has the same git tree. Rarely present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    same_code_as: Option<SweepSubject>,
    #[serde(skip_deserializing)]
    llm_usage: Value,
    #[serde(skip_deserializing)]
    cost_usd: Option<f64>,
    /// Absent in the manifests of the first treebeam.
    #[serde(default)]
    bills: Vec<RoleBills>,
    #[serde(skip_deserializing)]
    idea_generation_conversation_id: Option<String>,
    #[serde(skip_deserializing)]
    idea_generation_turn_id: Option<TurnId>,
    error: Option<EvalFailure>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StageName {
    Queued,
    Implementing,
    Implemented,
    Sweeping,
    Swept,
    Scored,
    Decided,
    Failed,
    Unfinished,
    Superseded,
    SetAside,
}

impl EvalLine {
    /// Returns the manifest line of an eval.
    pub(super) fn from_eval(facts: &Facts, eval: &Eval) -> Self {
        let parent = facts.node(eval.parent);
        let work = eval.candidate();
        let work = work.as_ref();
        let measured = eval.scored_candidate();
        let measured = measured.as_ref();
        let experiment = path::experiment_folder(eval.id);
        let idea = &eval.idea;
        let (results, spent, turn) = (eval.results(), eval.total_spend(), eval.turn_id());
        let results = results.as_ref();
        Self {
            eval_id: eval.id,
            parent_node_id: eval.parent,
            group: eval.group,
            parent_commit: parent.map(|node| node.commit.clone()),
            depth: eval.depth,
            idea_id: eval.idea.chain_id().to_owned(),
            idea_path: idea.path.clone(),
            idea_sha256: idea.sha256,
            idea_fingerprint: idea.fingerprint,
            idea_title: idea.title.clone(),
            idea_turn: idea.turn,
            status: eval_status(&eval.stage),
            stage: stage_name(&eval.stage),
            attempt: eval.attempt,
            earlier_failures: eval.failures.clone(),
            measured_again: eval
                .again
                .as_deref()
                .map(|work| Box::new(CandidateLine::from_candidate(work))),
            superseded_by_eval_id: superseded_by(&eval.stage),
            unfinished_for: unfinished_for(&eval.stage),
            queued_at: eval.queued_at,
            started_at: started_at(eval),
            implemented_at: work.and_then(|work| work.implemented_at),
            finished_at: finished_at(eval),
            eval_output_root: Some(path::eval_folder(eval.id)),
            candidate_ref_name: CodePlace::Candidate(eval.id).ref_name(&facts.run),
            candidate_commit: work.map(|work| work.commit.clone()),
            candidate_results_csv_path: results.map(|results| results.path.clone()),
            provenance: results.map(CopiedFile::from_artifact).into_iter().collect(),
            parent_relative: measured.map(|m| {
                let baseline = parent.and_then(|node| facts.baseline_of(node));
                ComparisonLine::from_comparison(
                    &m.scored.vs_parent,
                    baseline.as_ref(),
                    experiment.join("scoring_parent.json"),
                )
            }),
            root_relative: measured.map(|m| {
                let baseline = facts.nodes.first().and_then(|node| facts.baseline_of(node));
                ComparisonLine::from_comparison(
                    &m.scored.vs_root,
                    baseline.as_ref(),
                    experiment.join("scoring_root.json"),
                )
            }),
            completeness: measured.map(|m| m.scored.completeness),
            form: measured.map(|m| FormLine::from(&m.scored.form)),
            has_effect: measured.map(|m| m.scored.has_effect),
            rules_version: measured
                .map(|m| m.scored.rules_version)
                .filter(|version| !version.is_of_older_records()),
            decision: DecisionLine::from_stage(&eval.stage, &facts.settings),
            files_changed: work.map(|work| work.files_changed),
            rounds: work.map(|work| work.rounds),
            approval: work.map(|work| work.approval),
            made_in_attempt: work.map(|work| work.made_in).filter(|made| *made != eval.attempt),
            candidate_tree: work.and_then(|work| work.tree.clone()),
            same_code_as: work.and_then(|work| work.same_code_as),
            llm_usage: figures::usage_json(&spent),
            cost_usd: figures::cost_in_dollars(&spent),
            bills: eval.bills.clone(),
            idea_generation_conversation_id: turn.map(|turn| format!("c{}", turn.node)),
            idea_generation_turn_id: turn,
            error: eval_failure(&eval.stage).cloned(),
            experiment_dir: Some(experiment),
        }
    }

    fn take_candidate(&mut self) -> Result<Candidate, String> {
        Ok(Candidate {
            started_at: require_field(self.started_at, "started_at")?,
            implemented_at: self.implemented_at,
            commit: require_field(self.candidate_commit.take(), "candidate_commit")?,
            files_changed: require_field(self.files_changed, "files_changed")?,
            rounds: require_field(self.rounds, "rounds")?,
            approval: self.approval.unwrap_or_default(),
            made_in: self.made_in_attempt.unwrap_or(self.attempt),
            tree: self.candidate_tree.take(),
            same_code_as: self.same_code_as,
        })
    }

    fn take_results(&mut self) -> Result<Artifact, String> {
        require_field(self.provenance.pop().map(CopiedFile::into_artifact), "provenance")
    }

    fn take_scored_candidate(&mut self) -> Result<Box<ScoredCandidate>, String> {
        let scored = CandidateScore {
            vs_parent: require_field(self.parent_relative.take(), "parent_relative")?
                .into_comparison()?,
            vs_root: require_field(self.root_relative.take(), "root_relative")?
                .into_comparison()?,
            completeness: require_field(self.completeness, "completeness")?,
            form: require_field(self.form.take(), "form")?.into(),
            has_effect: require_field(self.has_effect, "has_effect")?,
            rules_version: self.rules_version.unwrap_or(RulesVersion::of_older_records()),
        };
        let at = require_field(self.finished_at, "finished_at")?;
        Ok(Box::new(ScoredCandidate {
            work: self.take_candidate()?,
            results: self.take_results()?,
            scored,
            at,
        }))
    }

    fn take_failed_stage(&mut self) -> Result<Stage, String> {
        Ok(Stage::Failed {
            started_at: require_field(self.started_at, "started_at")?,
            work: if self.candidate_commit.is_some() {
                Some(Box::new(self.take_candidate()?))
            } else {
                None
            },
            failure: Box::new(require_field(self.error.take(), "error")?),
            at: require_field(self.finished_at, "finished_at")?,
        })
    }

    fn take_stage(&mut self) -> Result<Stage, String> {
        Ok(match self.stage {
            StageName::Queued => Stage::Queued,
            StageName::Implementing => {
                Stage::Implementing(require_field(self.started_at, "started_at")?)
            }
            StageName::Implemented => Stage::Implemented(Box::new(self.take_candidate()?)),
            StageName::Sweeping => Stage::Sweeping(Box::new(self.take_candidate()?)),
            StageName::Swept => {
                Stage::Swept(Box::new(self.take_candidate()?), Box::new(self.take_results()?))
            }
            StageName::Scored => Stage::Scored(self.take_scored_candidate()?),
            StageName::Decided => {
                let (verdict, fate) =
                    require_field(self.decision.take(), "decision")?.into_verdict()?;
                Stage::Decided(
                    self.take_scored_candidate()?,
                    StoredVerdict::Recorded(Box::new(verdict)),
                    fate,
                )
            }
            StageName::Failed => self.take_failed_stage()?,
            StageName::Unfinished => Stage::Unfinished {
                started_at: self.started_at,
                budget: require_field(self.unfinished_for, "unfinished_for")?,
            },
            StageName::Superseded => {
                let by = require_field(self.superseded_by_eval_id, "superseded_by_eval_id")?;
                Stage::Superseded(self.take_scored_candidate()?, by)
            }
            StageName::SetAside => Stage::SetAside,
        })
    }
}

impl SectionRow for EvalLine {
    const SECTION_NAME: &'static str = "evaluations";
    type Fact = Eval;

    fn row_id(&self) -> String {
        self.eval_id.to_string()
    }

    fn into_fact(mut self) -> Result<Eval, String> {
        let stage = self.take_stage()?;
        let idea = Idea {
            path: self.idea_path,
            sha256: self.idea_sha256,
            fingerprint: self.idea_fingerprint,
            title: self.idea_title,
            turn: self.idea_turn,
        };
        let (id, parent, group) = (self.eval_id, self.parent_node_id, self.group);
        let (attempt, failures) = (self.attempt, self.earlier_failures);
        let again = self.measured_again.map(|line| Box::new(line.into_candidate()));
        let (queued_at, depth) = (self.queued_at, self.depth);
        Ok(Eval {
            id,
            parent,
            group,
            depth,
            idea,
            attempt,
            failures,
            again,
            bills: self.bills,
            queued_at,
            stage,
        })
    }
}

/// Returns the value of a field that this stage requires; an error names the missing field.
pub(super) fn require_field<T>(value: Option<T>, field: &str) -> Result<T, String> {
    value.ok_or_else(|| format!("`{field}` is missing"))
}

fn stage_name(stage: &Stage) -> StageName {
    match stage {
        Stage::Queued => StageName::Queued,
        Stage::Implementing(_) => StageName::Implementing,
        Stage::Implemented(_) => StageName::Implemented,
        Stage::Sweeping(_) => StageName::Sweeping,
        Stage::Swept(..) => StageName::Swept,
        Stage::Scored(_) => StageName::Scored,
        Stage::Decided(..) => StageName::Decided,
        Stage::Failed { .. } => StageName::Failed,
        Stage::Unfinished { .. } => StageName::Unfinished,
        Stage::Superseded(..) => StageName::Superseded,
        Stage::SetAside => StageName::SetAside,
    }
}

fn superseded_by(stage: &Stage) -> Option<EvalId> {
    if let Stage::Superseded(_, by) = stage { Some(*by) } else { None }
}

fn unfinished_for(stage: &Stage) -> Option<BudgetKind> {
    if let Stage::Unfinished { budget, .. } = stage { Some(*budget) } else { None }
}

fn eval_status(stage: &Stage) -> &'static str {
    match stage_name(stage) {
        StageName::Queued => "pending",
        StageName::Implementing
        | StageName::Implemented
        | StageName::Sweeping
        | StageName::Swept => "running",
        StageName::Scored | StageName::Decided | StageName::Superseded => "completed",
        StageName::Failed => "failed",
        StageName::Unfinished => "unfinished",
        StageName::SetAside => "set_aside",
    }
}

fn eval_failure(stage: &Stage) -> Option<&EvalFailure> {
    if let Stage::Failed { failure, .. } = stage { Some(failure) } else { None }
}

fn started_at(eval: &Eval) -> Option<Timestamp> {
    match &eval.stage {
        Stage::Queued | Stage::SetAside => None,
        Stage::Unfinished { started_at, .. } => *started_at,
        Stage::Implementing(at) | Stage::Failed { started_at: at, .. } => Some(*at),
        Stage::Implemented(_)
        | Stage::Sweeping(_)
        | Stage::Swept(..)
        | Stage::Scored(_)
        | Stage::Decided(..)
        | Stage::Superseded(..) => eval.candidate().map(|work| work.started_at),
    }
}

fn finished_at(eval: &Eval) -> Option<Timestamp> {
    match &eval.stage {
        Stage::Scored(measured) | Stage::Decided(measured, ..) | Stage::Superseded(measured, _) => {
            Some(measured.at)
        }
        Stage::Failed { at, .. } => Some(*at),
        Stage::Queued
        | Stage::Unfinished { .. }
        | Stage::SetAside
        | Stage::Implementing(_)
        | Stage::Implemented(_)
        | Stage::Sweeping(_)
        | Stage::Swept(..) => None,
    }
}
