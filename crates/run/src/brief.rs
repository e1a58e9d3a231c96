//! Builds the input of each stage from the state at the start of its step: no stage sees the state.

mod control;

use crate::conversation::{ConversationBrief, build_thread};
use crate::outcome_line::{outcome_line, short_outcome_line};
use crate::port::{JobKey, RecordedMoment, SweepJob};
use crate::prompt::IdeaContext;
use crate::summary::EvalAttempt;
use jiff::Timestamp;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::time::Duration;
use treebeam_core::bill::RoleBills;
use treebeam_core::event::{EvalFailure, Leftover, SweepSubject};
use treebeam_core::evidence::Artifact;
use treebeam_core::facts::{Candidate, Eval, Facts, Node, RemovalState, RootBaseline, Stage};
use treebeam_core::group::IdeaSource;
use treebeam_core::id::{Commit, EvalId, NodeId, RunId, Sha256};
use treebeam_core::measure::WorktreePath;
use treebeam_core::plan::{self, Step};
use treebeam_core::policy::{ContextStrategy, DedupeScope, FixedSettings};
use treebeam_core::root_checks::{InputScope, RecordedInputs, RootChecks};
use treebeam_core::rules_version::RulesVersion;
use treebeam_core::state::State;

/// Largest number of other ideas' outcomes that a generator is shown in full, the newest: a deep
/// branch costs no more than a shallow one.
const MAX_FULL_OUTCOMES: usize = 60;
/// Largest number of older outcomes shown in short, so that their ideas are not proposed again.
const MAX_SHORT_OUTCOMES: usize = 600;

/// The input of the stage of a step.
pub(crate) enum StepBrief {
    Propose(Box<IdeaBrief>),
    Implement(Box<ImplementBrief>),
    Sweep(SweepBrief),
    Score(Box<ScoreBrief>),
    Promote(PromotionBrief),
    Discard(DiscardBrief),
}

pub(crate) struct IdeaBrief {
    pub(crate) source: IdeaSource,
    /// Number of the expansion, counted from 1.
    pub(crate) expansion: u32,
    /// Number of ideas wanted.
    pub(crate) count: u32,
    /// Number of the first new idea file.
    pub(crate) first_number: u32,
    /// Number of earlier turns.
    pub(crate) turns_before: u32,
    /// Fingerprints of ideas that may not be repeated.
    pub(crate) tried: BTreeSet<Sha256>,
    /// Scope in which repeats are looked for, if at all.
    pub(crate) scope: DedupeScope,
    /// Ideas that the user gave, for which no agent is asked.
    pub(crate) user_ideas: Option<Vec<String>>,
    /// End of the run's time.
    pub(crate) until: Option<Timestamp>,
    pub(crate) conversation: ConversationBrief,
    pub(crate) context: IdeaContext,
}

pub(crate) struct ImplementBrief {
    pub(crate) run: RunId,
    pub(crate) about: EvalAttempt,
    /// A candidate of an earlier attempt that is measured again without asking an agent.
    pub(crate) reused: Option<Candidate>,
    /// Failures of earlier attempts, oldest first.
    pub(crate) failures: Vec<EvalFailure>,
    /// Bills of the answers of earlier attempts.
    pub(crate) before: RoleBills,
    pub(crate) max_review_rounds: u32,
    pub(crate) proceed_on_max_review_rounds: bool,
    pub(crate) protect: Vec<String>,
    pub(crate) root_commit: Commit,
    /// The commands that measure the code.
    pub(crate) commands: Vec<String>,
    /// Folders below the worktree in which the commands run.
    pub(crate) command_folders: Vec<String>,
    /// Time limit for all answers together.
    pub(crate) timeout: Option<Duration>,
    /// End of the run's time.
    pub(crate) until: Option<Timestamp>,
}

pub(crate) struct SweepBrief {
    pub(crate) job: SweepJob,
    pub(crate) inputs: InputsBrief,
}

/// The expected state of the inputs, and the sweeps that may have changed them.
pub(crate) struct InputsBrief {
    /// Record of the inputs when the root was measured.
    pub(crate) since: Option<RecordedInputs>,
    /// Other evals whose sweeps are running.
    pub(crate) under_way: Vec<EvalId>,
}

/// The files that a candidate's sweep must leave unchanged.
pub(crate) struct SweepBounds {
    pub(crate) protect: Vec<String>,
    pub(crate) results_csv: Option<WorktreePath>,
    /// True if the root's own sweep was run: with `baseline_csv` its results were there already.
    pub(crate) root_was_swept: bool,
    /// Facts from the root's own sweep; `None` in older runs.
    pub(crate) checks: Option<RootChecks>,
    pub(crate) inputs: InputsBrief,
    /// True if artifacts were found changed while this candidate was swept.
    pub(crate) is_suspect: bool,
    /// The artifacts that decisions still rest on.
    pub(crate) artifacts: Vec<Artifact>,
}

/// The input for collecting the results of a job.
pub(crate) enum CollectBrief {
    Root { commit: Commit, settings: Box<FixedSettings>, watch: JobWatch },
    Eval { about: Box<EvalAttempt>, commit: Commit, bounds: Box<SweepBounds>, watch: JobWatch },
}

/// The origin of a job. A worktree from before a power cut may lack contents that were never
/// synced, so it says nothing about an adopted job's changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobWatch {
    /// The job was submitted by this process, in a worktree that was whole.
    Own,
    /// The job was submitted by an earlier process of the run.
    Adopted,
}

pub(crate) struct ScoreBrief {
    pub(crate) about: EvalAttempt,
    /// The older twin whose results are used instead of a sweep.
    pub(crate) same_code_as: Option<SweepSubject>,
    pub(crate) results: Artifact,
    pub(crate) parent: Artifact,
    pub(crate) root: Artifact,
    pub(crate) root_rows: u32,
    pub(crate) settings: FixedSettings,
    pub(crate) rules_version: RulesVersion,
}

pub(crate) struct PromotionBrief {
    pub(crate) eval: EvalId,
    pub(crate) node: NodeId,
    pub(crate) commit: Commit,
}

pub(crate) struct DiscardBrief {
    pub(crate) leftover: Leftover,
    pub(crate) attempt: u32,
}

/// Builds the brief of a step, or returns `None` if the state no longer has its subject.
pub(crate) fn step_brief(state: &State, step: Step) -> Option<StepBrief> {
    Some(match step {
        Step::Propose(IdeaSource::Node(node)) => {
            StepBrief::Propose(Box::new(idea_brief(state, state.node(node)?)))
        }
        Step::Propose(IdeaSource::Control) => StepBrief::Propose(Box::new(
            control::control_idea_brief(state, state.node(NodeId::ROOT)?),
        )),
        Step::Implement(eval) => {
            StepBrief::Implement(Box::new(implement_brief(state, &*state.eval(eval)?)?))
        }
        Step::Sweep(subject) => StepBrief::Sweep(SweepBrief {
            job: sweep_job(state, subject)?,
            inputs: inputs_brief(state, subject),
        }),
        Step::Score(eval) => StepBrief::Score(Box::new(score_brief(state, &*state.eval(eval)?)?)),
        Step::Promote(eval) => {
            let commit = state.eval(eval)?.candidate()?.commit;
            StepBrief::Promote(PromotionBrief { eval, node: state.next_node_id(), commit })
        }
        Step::Discard(leftover) => StepBrief::Discard(discard_brief(state, leftover)?),
    })
}

pub(crate) fn discard_brief(state: &State, leftover: Leftover) -> Option<DiscardBrief> {
    let attempt = match state.leftovers.get(&leftover)? {
        RemovalState::Kept | RemovalState::Due => 1,
        RemovalState::Deferred { attempts, .. } => attempts + 1,
    };
    Some(DiscardBrief { leftover, attempt })
}

/// Returns the moment that dates the recorded beginning of a step; `None` if there is none.
pub(crate) fn start_moment(state: &State, step: Step) -> Option<RecordedMoment> {
    match step {
        Step::Propose(source) => Some(expansion_moment(state, source.node_id())),
        Step::Implement(eval) => Some(RecordedMoment::Begun(eval, attempt_number(state, eval))),
        Step::Sweep(_) | Step::Score(_) | Step::Promote(_) | Step::Discard(_) => None,
    }
}

/// Returns the moment by which an expansion of a node at the open depth is dated.
pub(crate) fn expansion_moment(state: &Facts, node: NodeId) -> RecordedMoment {
    RecordedMoment::Expansion(node, state.first_open_eval_id())
}

pub(crate) fn attempt_number(state: &Facts, eval: EvalId) -> u32 {
    state.eval(eval).map_or(1, |eval| eval.attempt)
}

pub(crate) fn collect_brief(
    state: &State,
    subject: SweepSubject,
    watch: JobWatch,
) -> Option<CollectBrief> {
    Some(match subject {
        SweepSubject::Root => {
            let commit = state.node(NodeId::ROOT)?.commit.clone();
            CollectBrief::Root { commit, settings: Box::new(state.settings.clone()), watch }
        }
        SweepSubject::Eval(eval) => {
            let eval = state.eval(eval)?;
            let (about, commit) = (Box::new(eval_attempt(state, &eval)?), eval.candidate()?.commit);
            let bounds = SweepBounds {
                is_suspect: state.history.suspects.contains(&about.eval),
                protect: state.settings.protect.clone(),
                results_csv: state.settings.measure.results_csv.clone(),
                root_was_swept: state.settings.measure.baseline_csv.is_none(),
                checks: root_checks(state).cloned(),
                inputs: inputs_brief(state, subject),
                artifacts: decisive_artifacts(state),
            };
            CollectBrief::Eval { about, commit, bounds: Box::new(bounds), watch }
        }
    })
}

/// Returns the artifacts that later decisions rest on: those of the root, of the frontier, and of
/// the evals of the open depth.
pub(crate) fn decisive_artifacts(state: &Facts) -> Vec<Artifact> {
    let root = match &state.baseline {
        RootBaseline::Measured { results, .. } => Some(results.clone()),
        RootBaseline::Unmeasured | RootBaseline::Refused { .. } => None,
    };
    let nodes = state.nodes.first().into_iter();
    let nodes = nodes.chain(state.frontier.iter().filter_map(|id| state.node(*id)));
    let baselines = nodes.filter_map(|node| state.baseline_of(node));
    let open = state.open_evals().iter().filter_map(Eval::results);
    let all = root.into_iter().chain(baselines).chain(open);
    let by_path: BTreeMap<_, _> = all.map(|it| (it.path.clone(), it)).collect();
    by_path.into_values().collect()
}

fn root_checks(state: &Facts) -> Option<&RootChecks> {
    match &state.baseline {
        RootBaseline::Measured { checks, .. } => checks.as_deref(),
        RootBaseline::Unmeasured | RootBaseline::Refused { .. } => None,
    }
}

/// Builds the expected state of the inputs: as recorded for the root, once that is measured.
fn inputs_brief(state: &State, subject: SweepSubject) -> InputsBrief {
    let recorded = match &state.baseline {
        RootBaseline::Measured { protected_inputs, .. } => protected_inputs.as_deref().copied(),
        RootBaseline::Unmeasured | RootBaseline::Refused { .. } => None,
    };
    let scope = root_checks(state).map_or(InputScope::Protected, |checks| checks.inputs);
    let others = state.sweeping_evals().iter().filter(|eval| SweepSubject::Eval(**eval) != subject);
    InputsBrief {
        since: recorded.map(|sha256| RecordedInputs { sha256, scope }),
        under_way: others.copied().collect(),
    }
}

fn command_folders(settings: &FixedSettings) -> Vec<String> {
    let folders = [&settings.measure.test_cwd, &settings.measure.sweep_cwd];
    folders.into_iter().flatten().map(|folder| folder.as_str().to_owned()).collect()
}

fn eval_attempt(state: &Facts, eval: &Eval) -> Option<EvalAttempt> {
    Some(EvalAttempt {
        eval: eval.id,
        attempt: eval.attempt,
        idea: eval.idea.clone(),
        parent: eval.parent,
        parent_commit: state.node(eval.parent)?.commit.clone(),
    })
}

/// Returns the sweep of a subject as it was last submitted.
pub(crate) fn sweep_job(state: &State, subject: SweepSubject) -> Option<SweepJob> {
    let commit = match subject {
        SweepSubject::Root => state.node(NodeId::ROOT)?.commit.clone(),
        SweepSubject::Eval(eval) => state.eval(eval)?.candidate()?.commit,
    };
    let key = JobKey { subject, submission: state.submission_count(subject) };
    let sweep_config_limit = state.settings.config_limit();
    Some(SweepJob { key, commit, sweep_config_limit, timeout: remaining_timeout(state, subject) })
}

/// Returns the time limit of one attempt of an eval, or of the root's sweep.
fn attempt_timeout(state: &Facts) -> Option<Duration> {
    state.limits.eval_timeout_seconds.map(|seconds| Duration::from_secs(seconds.get().into()))
}

/// Returns the time limit of an attempt minus the time that its answers took.
fn remaining_timeout(state: &Facts, subject: SweepSubject) -> Option<Duration> {
    let bills = match subject {
        SweepSubject::Root => None,
        SweepSubject::Eval(eval) => state.eval(eval).and_then(|eval| eval.spend_on_attempt()),
    };
    let took = bills.map_or(Duration::ZERO, |bills| bills.total().answer_time());
    Some(attempt_timeout(state)?.saturating_sub(took))
}

fn implement_brief(state: &State, eval: &Eval) -> Option<ImplementBrief> {
    Some(ImplementBrief {
        run: state.run.clone(),
        about: eval_attempt(state, eval)?,
        reused: eval.again.as_deref().cloned(),
        failures: eval.failures.clone(),
        before: eval.spend_before_attempt(),
        max_review_rounds: state.limits.max_review_rounds,
        proceed_on_max_review_rounds: state.limits.proceed_on_max_review_rounds,
        protect: state.settings.protected_globs(),
        root_commit: state.node(NodeId::ROOT)?.commit.clone(),
        commands: state.settings.command_lines(),
        command_folders: command_folders(&state.settings),
        timeout: attempt_timeout(state),
        until: state.deadline(),
    })
}

fn score_brief(state: &State, eval: &Eval) -> Option<ScoreBrief> {
    let (results, same_code_as) = if let Stage::Swept(_, results) = &eval.stage {
        (results.as_ref().clone(), None)
    } else {
        let original = state.original_of(eval)?;
        (state.results_for_twin(eval, original)?, Some(original))
    };
    let RootBaseline::Measured { results: root, rows, .. } = &state.baseline else { return None };
    let parent = state.baseline_of(state.node(eval.parent)?)?;
    Some(ScoreBrief {
        about: eval_attempt(state, eval)?,
        same_code_as,
        results,
        parent: parent.clone(),
        root: root.clone(),
        root_rows: *rows,
        settings: state.settings.clone(),
        rules_version: state.rules_version,
    })
}

fn idea_brief(state: &State, node: &Node) -> IdeaBrief {
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let expansions = match node.expansion_at(state.depth) {
        Some(_) => node.expansions.len(),
        None => node.expansions.len() + 1,
    };
    let written = node.expansions.iter().map(|expansion| state.ideas_of(expansion).count());
    let source = IdeaSource::Node(node.id);
    IdeaBrief {
        source,
        expansion: number(expansions),
        count: state.wanted_idea_count(node),
        first_number: number(written.sum::<usize>()) + 1,
        turns_before: node.turn_count(),
        tried: plan::tried_before(state, source).into_iter().map(|(_, idea)| idea).collect(),
        scope: state.settings.dedupe_scope,
        user_ideas: state.user_ideas.as_ref().map(|given| given.ideas.clone()),
        until: state.deadline(),
        conversation: conversation_brief(state, node),
        context: idea_context(state, node),
    }
}

fn conversation_brief(state: &State, node: &Node) -> ConversationBrief {
    let number = |number: NonZeroU32| usize::try_from(number.get()).unwrap_or(usize::MAX);
    let begun = node.expansion_at(state.depth);
    let parent = node.parent().and_then(|parent| state.node(parent));
    let own = build_thread(state, node, state.depth, None);
    let parent = parent.map(|parent| build_thread(state, parent, state.depth, Some(&own)));
    ConversationBrief {
        mode: state.limits.idea_conversation_mode,
        window: number(state.limits.idea_history_window_turns),
        max_chars: number(state.limits.idea_history_max_chars),
        summary_agent: state.limits.summary_agent,
        own,
        parent,
        at: begun.map_or(node.created_at, |expansion| expansion.started_at),
    }
}

/// Returns the facts known when the node was made: none of its own depth, so that it does not
/// depend on what finished first.
fn idea_context(state: &State, node: &Node) -> IdeaContext {
    let chain = state.idea_chain(node.id);
    let mut beside = related_evals(state, node, &chain);
    let mut newest: Vec<_> = beside.by_ref().take(MAX_FULL_OUTCOMES).collect();
    let mut earlier: Vec<_> =
        beside.take(MAX_SHORT_OUTCOMES).map(|eval| short_outcome_line(state, &eval)).collect();
    newest.reverse();
    earlier.reverse();
    let mentioned = chain.iter().chain(&newest);
    IdeaContext {
        node: node.id,
        root_commit: state.nodes.first().map_or(&node.commit, |root| &root.commit).clone(),
        commit: node.commit.clone(),
        parent_commit: node.parent().and_then(|up| state.node(up)).map(|up| up.commit.clone()),
        node_eval: chain.last().map(|eval| (eval.id, outcome_line(state, eval))),
        chain: chain.iter().map(|eval| outcome_line(state, eval)).collect(),
        earlier,
        outcomes: newest.iter().map(|eval| outcome_line(state, eval)).collect(),
        idea_files: mentioned.map(|eval| eval.idea.clone()).collect(),
        protect: state.settings.protected_globs(),
        commands: state.settings.command_lines(),
    }
}

/// Returns the evals that a generator may be shown besides those that led to its node, the newest
/// first.
fn related_evals<'a>(
    state: &'a State,
    node: &'a Node,
    chain: &'a [Cow<'_, Eval>],
) -> impl Iterator<Item = Cow<'a, Eval>> {
    let of = |node: &'a Node| {
        let before = node.expansions.iter().rev().filter(|expansion| expansion.depth < state.depth);
        before.flat_map(|expansion| expansion.eval_ids().rev()).filter_map(|id| state.eval(*id))
    };
    let evals: Box<dyn Iterator<Item = Cow<'_, Eval>>> = match state.settings.ideas_context_strategy
    {
        ContextStrategy::NodeOnly => Box::new(of(node)),
        ContextStrategy::NodePlusAncestors => Box::new(state.lineage(node.id).flat_map(of)),
        ContextStrategy::GlobalPriorIdeas => {
            let open = state.open_evals().len();
            let evals = state.evals.iter().rev().skip(open);
            Box::new(evals.filter(|eval| eval.group.is_tree()))
        }
    };
    let on_chain = |eval: &Eval| chain.iter().any(|link| link.id == eval.id);
    evals.filter(move |eval| eval.is_current() && !on_chain(eval))
}
