//! What a stage is told. Built from the state when the step starts, so that no stage ever sees the state.

mod control;
mod outcome_line;

use crate::conversation::{ForTalk, thread};
use crate::port::{Job, JobKey, Moment};
use crate::summary::About;
use jiff::Timestamp;
use outcome_line::outcome_line;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::time::Duration;
use treebeam_core::bill::Bills;
use treebeam_core::event::{Failure, Idea, Leftover, Subject};
use treebeam_core::evidence::Artifact;
use treebeam_core::facts::{Baseline, Eval, Facts, Node, Removal, Stage, Work};
use treebeam_core::group::IdeaSource;
use treebeam_core::id::{Commit, EvalId, NodeId, RunId, Sha256};
use treebeam_core::measure::WorktreePath;
use treebeam_core::plan::{self, Step};
use treebeam_core::policy::{ContextStrategy, DedupeScope, Meaning};
use treebeam_core::root_checks::{InputScope, RecordedInputs, RootChecks};
use treebeam_core::rules_version::RulesVersion;
use treebeam_core::state::State;

pub(crate) use outcome_line::short_line;

/// The most outcomes of other ideas that a generator is told, the newest: a deep branch costs no more than a shallow one.
const OUTCOMES: usize = 60;
/// The most of those before them, which are told in short: so that nobody proposes what the branch has tried.
const EARLIER: usize = 600;

/// Everything that the stage of a step needs to know.
pub(crate) enum Brief {
    Propose(Box<ForIdeas>),
    Implement(Box<ForCoder>),
    Sweep(ForSweep),
    Score(Box<ForScore>),
    Promote(ForPromotion),
    Discard(ForDiscard),
}

pub(crate) struct ForIdeas {
    pub(crate) source: IdeaSource,
    /// Which expansion, counted from 1.
    pub(crate) expansion: u32,
    /// How many ideas are wanted.
    pub(crate) count: u32,
    /// The number of the first new idea file.
    pub(crate) first_number: u32,
    /// How many turns there were before.
    pub(crate) turns_before: u32,
    /// Fingerprints that may not come again.
    pub(crate) tried: BTreeSet<Sha256>,
    /// Where repeats are looked for, if at all.
    pub(crate) scope: DedupeScope,
    /// Those that the user gave: nobody is asked then.
    pub(crate) given: Option<Vec<String>>,
    /// When the run's time is over.
    pub(crate) until: Option<Timestamp>,
    pub(crate) talk: ForTalk,
    pub(crate) told: Told,
}

/// What the idea generator is told about a node's branch.
pub(crate) struct Told {
    pub(crate) node: NodeId,
    pub(crate) root_commit: Commit,
    pub(crate) commit: Commit,
    pub(crate) parent_commit: Option<Commit>,
    /// The eval that became the node, with its figures; nothing for the root.
    pub(crate) standing: Option<(EvalId, String)>,
    /// The ideas that led here, each with its figures.
    pub(crate) chain: Vec<String>,
    /// What was tried before that, in short.
    pub(crate) earlier: Vec<String>,
    /// What else was tried on the way, with its outcome.
    pub(crate) outcomes: Vec<String>,
    /// The files of all ideas that are told of in full.
    pub(crate) idea_files: Vec<Idea>,
    pub(crate) protect: Vec<String>,
    /// What measures the code.
    pub(crate) commands: Vec<String>,
}

pub(crate) struct ForCoder {
    pub(crate) run: RunId,
    pub(crate) about: About,
    /// A candidate that is there already, where nobody is asked for another.
    pub(crate) again: Option<Work>,
    /// Why earlier attempts failed, oldest first.
    pub(crate) failures: Vec<Failure>,
    /// What their answers took.
    pub(crate) before: Bills,
    pub(crate) max_review_rounds: u32,
    pub(crate) proceed_on_max_review_rounds: bool,
    pub(crate) protect: Vec<String>,
    pub(crate) root_commit: Commit,
    /// What measures the code.
    pub(crate) commands: Vec<String>,
    /// Folders below the worktree in which they run.
    pub(crate) command_folders: Vec<String>,
    /// How long the answers may take together.
    pub(crate) timeout: Option<Duration>,
    /// When the run's time is over.
    pub(crate) until: Option<Timestamp>,
}

pub(crate) struct ForSweep {
    pub(crate) job: Job,
    pub(crate) inputs: ForInputs,
}

/// What the inputs have to be, and who may have changed them.
pub(crate) struct ForInputs {
    /// What they were when the root was measured.
    pub(crate) since: Option<RecordedInputs>,
    /// Other evals whose sweeps are under way.
    pub(crate) under_way: Vec<EvalId>,
}

/// What a candidate's sweep must leave as it was.
pub(crate) struct SweepBounds {
    pub(crate) protect: Vec<String>,
    pub(crate) results_csv: Option<WorktreePath>,
    /// Whether the root's own sweep was run: with `baseline_csv` its results were there already.
    pub(crate) root_was_swept: bool,
    /// What follows from the root's own sweep; nothing is known of it in older runs.
    pub(crate) checks: Option<RootChecks>,
    pub(crate) inputs: ForInputs,
    /// Whether artifacts were found changed while this candidate was swept.
    pub(crate) is_suspect: bool,
    /// The artifacts that decisions still rest on.
    pub(crate) artifacts: Vec<Artifact>,
}

/// What is needed to take in what a job left behind.
pub(crate) enum ForCollecting {
    Root { commit: Commit, meaning: Box<Meaning>, watch: JobWatch },
    Eval { about: Box<About>, commit: Commit, bounds: Box<SweepBounds>, watch: JobWatch },
}

/// Which process submitted a job. A worktree from before a power cut may lack contents that were
/// never synced, so it says nothing about what an adopted job did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobWatch {
    /// The job was submitted by this process, in a worktree that was whole.
    Own,
    /// The job was submitted by an earlier process of the run.
    Adopted,
}

pub(crate) struct ForScore {
    pub(crate) about: About,
    /// The older twin whose results these are, in place of an own sweep.
    pub(crate) same_code_as: Option<Subject>,
    pub(crate) results: Artifact,
    pub(crate) parent: Artifact,
    pub(crate) root: Artifact,
    pub(crate) root_rows: u32,
    pub(crate) meaning: Meaning,
    pub(crate) rules_version: RulesVersion,
}

pub(crate) struct ForPromotion {
    pub(crate) eval: EvalId,
    pub(crate) node: NodeId,
    pub(crate) commit: Commit,
}

pub(crate) struct ForDiscard {
    pub(crate) leftover: Leftover,
    pub(crate) attempt: u32,
}

/// The brief of a step, if the state still has what it is about.
pub(crate) fn of(state: &State, step: Step) -> Option<Brief> {
    Some(match step {
        Step::Propose(IdeaSource::Node(node)) => {
            Brief::Propose(Box::new(for_ideas(state, state.node(node)?)))
        }
        Step::Propose(IdeaSource::Control) => {
            Brief::Propose(Box::new(control::for_ideas(state, state.node(NodeId::ROOT)?)))
        }
        Step::Implement(eval) => Brief::Implement(Box::new(for_coder(state, &*state.eval(eval)?)?)),
        Step::Sweep(subject) => {
            Brief::Sweep(ForSweep { job: job(state, subject)?, inputs: inputs(state, subject) })
        }
        Step::Score(eval) => Brief::Score(Box::new(for_score(state, &*state.eval(eval)?)?)),
        Step::Promote(eval) => {
            let commit = state.eval(eval)?.work()?.commit;
            Brief::Promote(ForPromotion { eval, node: state.next_node(), commit })
        }
        Step::Discard(leftover) => Brief::Discard(for_discard(state, leftover)?),
    })
}

pub(crate) fn for_discard(state: &State, leftover: Leftover) -> Option<ForDiscard> {
    let attempt = match state.leftovers.get(&leftover)? {
        Removal::Kept | Removal::Due => 1,
        Removal::Deferred { attempts, .. } => attempts + 1,
    };
    Some(ForDiscard { leftover, attempt })
}

/// What the recorded beginning of a step is dated by; nothing where none is recorded, or it has no time.
pub(crate) fn beginning(state: &State, step: Step) -> Option<Moment> {
    match step {
        Step::Propose(source) => Some(expansion(state, source.node())),
        Step::Implement(eval) => Some(Moment::Begun(eval, attempt_of(state, eval))),
        Step::Sweep(_) | Step::Score(_) | Step::Promote(_) | Step::Discard(_) => None,
    }
}

/// What an expansion of a node at the open depth is dated by.
pub(crate) fn expansion(state: &Facts, node: NodeId) -> Moment {
    Moment::Expansion(node, state.first_open_eval())
}

pub(crate) fn attempt_of(state: &Facts, eval: EvalId) -> u32 {
    state.eval(eval).map_or(1, |eval| eval.attempt)
}

pub(crate) fn for_collecting(
    state: &State,
    subject: Subject,
    watch: JobWatch,
) -> Option<ForCollecting> {
    Some(match subject {
        Subject::Root => {
            let commit = state.node(NodeId::ROOT)?.commit.clone();
            ForCollecting::Root { commit, meaning: Box::new(state.meaning.clone()), watch }
        }
        Subject::Eval(eval) => {
            let eval = state.eval(eval)?;
            let (about, commit) = (Box::new(about(state, &eval)?), eval.work()?.commit);
            let bounds = SweepBounds {
                is_suspect: state.history.suspects.contains(&about.eval),
                protect: state.meaning.protect.clone(),
                results_csv: state.meaning.measure.results_csv.clone(),
                root_was_swept: state.meaning.measure.baseline_csv.is_none(),
                checks: root_checks(state).cloned(),
                inputs: inputs(state, subject),
                artifacts: decisive_artifacts(state),
            };
            ForCollecting::Eval { about, commit, bounds: Box::new(bounds), watch }
        }
    })
}

/// The artifacts that later decisions rest on: those of the root, of the frontier, and of the evals
/// of the open depth.
pub(crate) fn decisive_artifacts(state: &Facts) -> Vec<Artifact> {
    let root = match &state.baseline {
        Baseline::Measured { results, .. } => Some(results.clone()),
        Baseline::Unmeasured | Baseline::Refused { .. } => None,
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
        Baseline::Measured { checks, .. } => checks.as_deref(),
        Baseline::Unmeasured | Baseline::Refused { .. } => None,
    }
}

/// What the inputs have to be: what they were for the root, once that is measured.
fn inputs(state: &State, subject: Subject) -> ForInputs {
    let recorded = match &state.baseline {
        Baseline::Measured { protected_inputs, .. } => protected_inputs.as_deref().copied(),
        Baseline::Unmeasured | Baseline::Refused { .. } => None,
    };
    let scope = root_checks(state).map_or(InputScope::Protected, |checks| checks.inputs);
    let others = state.sweeping().iter().filter(|eval| Subject::Eval(**eval) != subject);
    ForInputs {
        since: recorded.map(|sha256| RecordedInputs { sha256, scope }),
        under_way: others.copied().collect(),
    }
}

fn command_folders(meaning: &Meaning) -> Vec<String> {
    let folders = [&meaning.measure.test_cwd, &meaning.measure.sweep_cwd];
    folders.into_iter().flatten().map(|folder| folder.as_str().to_owned()).collect()
}

fn about(state: &Facts, eval: &Eval) -> Option<About> {
    Some(About {
        eval: eval.id,
        attempt: eval.attempt,
        idea: eval.idea.clone(),
        parent: eval.parent,
        parent_commit: state.node(eval.parent)?.commit.clone(),
    })
}

/// The sweep of a subject as it was last submitted.
pub(crate) fn job(state: &State, subject: Subject) -> Option<Job> {
    let commit = match subject {
        Subject::Root => state.node(NodeId::ROOT)?.commit.clone(),
        Subject::Eval(eval) => state.eval(eval)?.work()?.commit,
    };
    let key = JobKey { subject, submission: state.submissions(subject) };
    let sweep_config_limit = state.meaning.limit();
    Some(Job { key, commit, sweep_config_limit, timeout: time_left(state, subject) })
}

/// How long one attempt of an eval may take, or the root's sweep.
fn timeout(state: &Facts) -> Option<Duration> {
    state.reach.eval_timeout_seconds.map(|seconds| Duration::from_secs(seconds.get().into()))
}

/// What the answers of an attempt have left of that.
fn time_left(state: &Facts, subject: Subject) -> Option<Duration> {
    let bills = match subject {
        Subject::Root => None,
        Subject::Eval(eval) => state.eval(eval).and_then(|eval| eval.spent_on_attempt()),
    };
    let took = bills.map_or(Duration::ZERO, |bills| bills.total().time());
    Some(timeout(state)?.saturating_sub(took))
}

fn for_coder(state: &State, eval: &Eval) -> Option<ForCoder> {
    Some(ForCoder {
        run: state.run.clone(),
        about: about(state, eval)?,
        again: eval.again.as_deref().cloned(),
        failures: eval.failures.clone(),
        before: eval.spent_before_attempt(),
        max_review_rounds: state.reach.max_review_rounds,
        proceed_on_max_review_rounds: state.reach.proceed_on_max_review_rounds,
        protect: state.meaning.protected(),
        root_commit: state.node(NodeId::ROOT)?.commit.clone(),
        commands: state.meaning.commands(),
        command_folders: command_folders(&state.meaning),
        timeout: timeout(state),
        until: state.deadline(),
    })
}

fn for_score(state: &State, eval: &Eval) -> Option<ForScore> {
    let (results, same_code_as) = if let Stage::Swept(_, results) = &eval.stage {
        (results.as_ref().clone(), None)
    } else {
        let original = state.original_of(eval)?;
        (state.results_for_twin(eval, original)?, Some(original))
    };
    let Baseline::Measured { results: root, rows, .. } = &state.baseline else { return None };
    let parent = state.baseline_of(state.node(eval.parent)?)?;
    Some(ForScore {
        about: about(state, eval)?,
        same_code_as,
        results,
        parent: parent.clone(),
        root: root.clone(),
        root_rows: *rows,
        meaning: state.meaning.clone(),
        rules_version: state.rules_version,
    })
}

fn for_ideas(state: &State, node: &Node) -> ForIdeas {
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let expansions = match node.expansion_at(state.depth) {
        Some(_) => node.expansions.len(),
        None => node.expansions.len() + 1,
    };
    let written = node.expansions.iter().map(|expansion| state.ideas_of(expansion).count());
    let source = IdeaSource::Node(node.id);
    ForIdeas {
        source,
        expansion: number(expansions),
        count: state.ideas_wanted(node),
        first_number: number(written.sum::<usize>()) + 1,
        turns_before: node.turns(),
        tried: plan::tried_before(state, source).into_iter().map(|(_, idea)| idea).collect(),
        scope: state.meaning.dedupe_scope,
        given: state.given.as_ref().map(|given| given.ideas.clone()),
        until: state.deadline(),
        talk: for_talk(state, node),
        told: told(state, node),
    }
}

fn for_talk(state: &State, node: &Node) -> ForTalk {
    let number = |number: NonZeroU32| usize::try_from(number.get()).unwrap_or(usize::MAX);
    let begun = node.expansion_at(state.depth);
    let parent = node.parent().and_then(|parent| state.node(parent));
    let own = thread(state, node, state.depth, None);
    let parent = parent.map(|parent| thread(state, parent, state.depth, Some(&own)));
    ForTalk {
        mode: state.reach.idea_conversation_mode,
        window: number(state.reach.idea_history_window_turns),
        max_chars: number(state.reach.idea_history_max_chars),
        summary_agent: state.reach.summary_agent,
        own,
        parent,
        at: begun.map_or(node.created_at, |expansion| expansion.started_at),
    }
}

/// What was known when the node was made: nothing of its own depth, so that it does not depend on what finished first.
fn told(state: &State, node: &Node) -> Told {
    let chain = state.idea_chain(node.id);
    let mut beside = beside(state, node, &chain);
    let mut newest: Vec<_> = beside.by_ref().take(OUTCOMES).collect();
    let mut earlier: Vec<_> = beside.take(EARLIER).map(|eval| short_line(state, &eval)).collect();
    newest.reverse();
    earlier.reverse();
    let mentioned = chain.iter().chain(&newest);
    Told {
        node: node.id,
        root_commit: state.nodes.first().map_or(&node.commit, |root| &root.commit).clone(),
        commit: node.commit.clone(),
        parent_commit: node.parent().and_then(|up| state.node(up)).map(|up| up.commit.clone()),
        standing: chain.last().map(|eval| (eval.id, outcome_line(state, eval))),
        chain: chain.iter().map(|eval| outcome_line(state, eval)).collect(),
        earlier,
        outcomes: newest.iter().map(|eval| outcome_line(state, eval)).collect(),
        idea_files: mentioned.map(|eval| eval.idea.clone()).collect(),
        protect: state.meaning.protected(),
        commands: state.meaning.commands(),
    }
}

/// The evals that a generator may be told of beside those that led to its node, the newest first.
fn beside<'a>(
    state: &'a State,
    node: &'a Node,
    chain: &'a [Cow<'_, Eval>],
) -> impl Iterator<Item = Cow<'a, Eval>> {
    let of = |node: &'a Node| {
        let before = node.expansions.iter().rev().filter(|expansion| expansion.depth < state.depth);
        before.flat_map(|expansion| expansion.evals().rev()).filter_map(|id| state.eval(*id))
    };
    let evals: Box<dyn Iterator<Item = Cow<'_, Eval>>> = match state.meaning.ideas_context_strategy
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
    evals.filter(move |eval| eval.stands() && !on_chain(eval))
}
