//! A small run made by hand: the real plan and the real fold, driven by scripted step outcomes. It
//! has two depths, and every status once; titles and messages try to break out of their place.

use jiff::Timestamp;
use std::num::NonZeroU32;
use treebeam_core::bill::RoleBills;
use treebeam_core::event::{
    Approval, ContextPack, EvalFailure, EvalStage, Event, FailureKind, Idea, Leftover,
    LeftoverKind, RepeatedIdea, RunStarted, SweepSubject, WorldKind,
};
use treebeam_core::evidence::{
    Artifact, CandidateScore, Comparison, Grade, Recommendation, RecommendationReason, ResultsForm,
    SweepCompleteness,
};
use treebeam_core::group::IdeaSource;
use treebeam_core::id::{CodePlace, EvalId, NodeId, Sha256};
use treebeam_core::idea;
use treebeam_core::num::Finite;
use treebeam_core::plan::{self, IdeaProposal, PlanMove, RunningSteps, Step, StepOutcome};
use treebeam_core::policy::{FixedSettings, RecordedAgents, RunLimits};
use treebeam_core::root_checks::{InputScope, RootChecks};
use treebeam_core::rules_version::RulesVersion;
use treebeam_core::state::State;

/// Scripted outcome of an idea.
enum Script {
    /// Swept: score and primary delta against the parent, score against the root, number of ok
    /// rows.
    Swept(f64, Option<f64>, f64, u32),
    /// Failed at this stage.
    Fails(EvalStage, FailureKind, &'static str),
}

const EVALS: [(&str, Script); 9] = [
    ("Widen the window | twice", Script::Swept(0.045, Some(0.1 + 0.2), 0.045, 4)),
    ("Use \"robust\" means <b>everywhere</b>", Script::Swept(0.12, Some(0.8), 0.12, 4)),
    ("Smooth `signal_fast`\nover __two__ days", Script::Swept(0.031, Some(0.05), 0.031, 4)),
    ("Drop the *stop loss*", Script::Swept(0.01, Some(-0.4), 0.01, 4)),
    (
        "Cache the features",
        Script::Fails(
            EvalStage::Implement,
            FailureKind::Patch,
            "hunk 1 of `a|b.py`\ndoes not apply",
        ),
    ),
    ("Weigh trades by 1/volatility", Script::Swept(0.04, Some(0.25), 1.0 / 6.0, 4)),
    ("Trade half as often", Script::Swept(0.2, Some(0.9), 0.3, 3)),
    (
        "Refit every week; a title so long that it has to be cut before it is drawn at an edge",
        Script::Fails(EvalStage::Sweep, FailureKind::Sweep, "exit 1: ValueError: \"<nan>\""),
    ),
    ("Rename variables", Script::Swept(0.0, None, 0.0, 4)),
];

/// Time of all events.
pub(crate) fn now() -> Timestamp {
    Timestamp::from_second(1_767_225_600).unwrap()
}

/// The first event of the run.
pub(crate) fn started() -> RunStarted {
    let four = NonZeroU32::new(4);
    let beam_width = NonZeroU32::new(2).unwrap();
    let ideas_per_node = NonZeroU32::new(5).unwrap();
    RunStarted {
        run: "20260101-000000".parse().unwrap(),
        world: WorldKind::Dry { seed: 7 },
        root: commit(0),
        meaning: FixedSettings {
            ideas_per_node,
            beam_width,
            sweep_config_limit: four,
            ..FixedSettings::default()
        },
        reach: RunLimits { max_total_idea_evals: Some(9), ..RunLimits::default() },
        agents: RecordedAgents::default(),
        given: None,
        replays: None,
        rules_version: RulesVersion::LATEST,
        at: now(),
    }
}

/// The whole run, event by event.
pub(crate) fn events() -> Vec<Event> {
    events_of(started())
}

/// The whole run after another first event.
pub(crate) fn events_of(started: RunStarted) -> Vec<Event> {
    let mut state = State::from_run_started(&started);
    let mut events = vec![Event::RunStarted(Box::new(started))];
    let mut running = RunningSteps::default();
    while let Some(next) = plan::next_moves(&state, &running, now()).into_iter().next() {
        if let PlanMove::Start(step) = next {
            running.last_tries.extend(plan::last_discard_try(&state, step));
        }
        let new = match next {
            PlanMove::Record(event) => vec![event],
            PlanMove::Stop(reason) => vec![Event::Stopped { reason, at: now() }],
            PlanMove::Start(step) => perform(&state, step),
        };
        for event in new {
            state.apply(&event).unwrap();
            events.push(event);
        }
    }
    events
}

/// The run after its first events.
pub(crate) fn after(events: &[Event], number: usize) -> State {
    State::from_events(&events[..number]).unwrap()
}

/// The run at its end.
pub(crate) fn finished() -> State {
    State::from_events(&events()).unwrap()
}

fn perform(state: &State, step: Step) -> Vec<Event> {
    let announced = plan::start_event(state, step, now());
    let mut ahead = state.clone();
    if let Some(event) = &announced {
        ahead.apply(event).unwrap();
    }
    let outcome = plan::accept_outcome(&ahead, &outcome(step), now()).unwrap();
    announced.into_iter().chain([outcome]).collect()
}

fn outcome(step: Step) -> StepOutcome {
    match step {
        Step::Propose(IdeaSource::Node(node)) => proposed(node),
        Step::Propose(IdeaSource::Control) => proposed_for_control(),
        Step::Implement(eval) => match script(eval) {
            Script::Fails(EvalStage::Implement, kind, message) => {
                failed(eval, EvalStage::Implement, *kind, message)
            }
            Script::Fails(..) | Script::Swept(..) => StepOutcome::Implemented {
                eval,
                commit: commit(eval.number()),
                tree: tree(eval.number()),
                files_changed: eval.number() % 3 + 1,
                rounds: 1,
                approval: Approval::Unreviewed,
                bills: RoleBills::default(),
            },
        },
        Step::Sweep(SweepSubject::Root) => StepOutcome::RootMeasured {
            baseline: artifact("root baseline.csv"),
            rows: 4,
            parent: None,
            protected_inputs: None,
            tree: tree(0),
            checks: Box::new(RootChecks { rewritten: Vec::new(), inputs: InputScope::All }),
        },
        Step::Sweep(SweepSubject::Eval(eval)) => match script(eval) {
            Script::Fails(stage, kind, message) => failed(eval, *stage, *kind, message),
            Script::Swept(..) => {
                StepOutcome::Swept { eval, results: artifact(&format!("e{eval}.csv")) }
            }
        },
        Step::Score(eval) => {
            let (scored, same_code_as) = (Box::new(scored(eval)), None);
            StepOutcome::Scored { eval, scored, same_code_as }
        }
        Step::Promote(eval) => StepOutcome::Promoted(eval),
        Step::Discard(leftover) if leftover == stuck() => {
            StepOutcome::DiscardFailed { leftover, why: "device\nbusy".into() }
        }
        Step::Discard(leftover) => StepOutcome::Discarded(leftover),
    }
}

/// A worktree that cannot be removed.
fn stuck() -> Leftover {
    Leftover { place: CodePlace::Candidate(EvalId::new(4)), kind: LeftoverKind::Worktree }
}

fn proposed(node: NodeId) -> StepOutcome {
    let (first, last) = match node.number() {
        0 => (1, 5),
        2 => (6, 9),
        _ => {
            let why = "the agent answered nothing usable:\n<html>|503|</html>".into();
            return StepOutcome::ProposalFailed {
                source: IdeaSource::Node(node),
                why,
                turns: 2,
                bills: RoleBills::default(),
                conversation: Vec::new(),
            };
        }
    };
    let titles = (first..=last).map(|number| title(EvalId::new(number)));
    let mut ideas: Vec<_> = (1..).zip(titles).map(|(n, title)| new_idea(node, n, title)).collect();
    let mut repeats = Vec::new();
    if node != NodeId::ROOT {
        ideas.push(new_idea(node, 5, "Left | for another night"));
        let title = "WIDEN the window | twice".to_owned();
        repeats.push(RepeatedIdea { fingerprint: idea::idea_fingerprint(&title), title });
    }
    let path = format!("node_ideas/{node}/prompt_context.txt").parse().unwrap();
    let context =
        ContextPack { path, sha256: Sha256::hash_bytes(b"context"), idea_files: Vec::new() };
    let (bills, conversation) = (RoleBills::default(), Vec::new());
    let source = IdeaSource::Node(node);
    StepOutcome::Proposed(IdeaProposal {
        source,
        ideas,
        repeats,
        turns: 1,
        context,
        bills,
        conversation,
    })
}

/// One idea for the control group at each depth.
fn proposed_for_control() -> StepOutcome {
    let title = "Something else on the root";
    let path = "node_ideas/control/001_something_else.md".parse().unwrap();
    let ideas = vec![Idea { path, ..new_idea(NodeId::ROOT, 1, title) }];
    let path = "node_ideas/control/prompt_context.txt".parse().unwrap();
    let context =
        ContextPack { path, sha256: Sha256::hash_bytes(b"context"), idea_files: Vec::new() };
    let (source, repeats, conversation) = (IdeaSource::Control, Vec::new(), Vec::new());
    let bills = RoleBills::default();
    StepOutcome::Proposed(IdeaProposal {
        source,
        ideas,
        repeats,
        turns: 1,
        context,
        bills,
        conversation,
    })
}

fn new_idea(node: NodeId, number: u32, title: &str) -> Idea {
    let file = idea::idea_file_name(number, title);
    Idea {
        path: format!("node_ideas/{node}/{file}").parse().unwrap(),
        sha256: Sha256::hash_bytes(title.as_bytes()),
        fingerprint: idea::idea_fingerprint(title),
        title: title.to_owned(),
        turn: Some(1),
    }
}

fn title(eval: EvalId) -> &'static str {
    EVALS[eval.number() as usize - 1].0
}

fn script(eval: EvalId) -> &'static Script {
    &EVALS[eval.number() as usize - 1].1
}

fn failed(eval: EvalId, stage: EvalStage, kind: FailureKind, message: &str) -> StepOutcome {
    let failure = EvalFailure { stage, kind, message: message.to_owned() };
    StepOutcome::EvalFailed { eval, failure, bills: RoleBills::default() }
}

fn scored(eval: EvalId) -> CandidateScore {
    let Script::Swept(score, primary, root_score, ok) = *script(eval) else {
        panic!("eval {eval} has no score");
    };
    let parent_gain = if eval.number() > 5 { 0.1 + 0.2 } else { 0.0 };
    CandidateScore {
        vs_parent: comparison(score, primary),
        vs_root: comparison(root_score, primary.map(|delta| delta + parent_gain)),
        completeness: SweepCompleteness { expected_count: 4, ok_count: ok, error_count: 4 - ok },
        form: ResultsForm::default(),
        has_effect: true,
        rules_version: RulesVersion::LATEST,
    }
}

fn comparison(score: f64, primary: Option<f64>) -> Comparison {
    let grade = match score {
        _ if score >= 0.1 => Grade::Strong,
        _ if score >= 0.03 => Grade::Promising,
        _ if score >= -0.02 => Grade::Mixed,
        _ => Grade::Weak,
    };
    let should_explore = score >= 0.03;
    let reason = if should_explore {
        RecommendationReason::NetImprovement
    } else {
        RecommendationReason::InsufficientSignal
    };
    Comparison {
        baseline_rows_used: 4,
        candidate_rows_used: 4,
        recommendation: Recommendation {
            should_explore,
            grade,
            score: Finite::new(score).unwrap(),
            positive_signals: 3,
            negative_signals: 1,
            metrics_used: if primary.is_some() { 4 } else { 0 },
            reasons: vec![reason],
        },
        primary_delta: primary.and_then(Finite::new),
        paired: None,
        primary_means: None,
    }
}

fn artifact(name: &str) -> Artifact {
    Artifact {
        path: format!("artifacts/{name}").parse().unwrap(),
        sha256: Sha256::hash_bytes(name.as_bytes()),
        source: format!("eval/{name}"),
    }
}

fn tree(number: u32) -> treebeam_core::id::GitTree {
    format!("{number:020x}{number:020x}").parse().unwrap()
}

fn commit(number: u32) -> treebeam_core::id::Commit {
    Sha256::hash_bytes(&number.to_be_bytes()).to_string()[..40].parse().unwrap()
}
