//! One small run, scripted by hand. It has two interrupted sweeps, passes, failures, repeats,
//! untried ideas, deferred cleanup, a promotion that failed at first, a stop, changed limits,
//! another stop, two owners that did not leave cleanly, a pause and an idea by the user, work that
//! is done again, a budget that is reached twice, and worktrees that the user removes.

use jiff::Timestamp;
use std::num::NonZeroU32;
use treebeam_core::bill::{AgentBill, Cost, RoleBills, TokenUsage};
use treebeam_core::conversation::{Continuation, ContinuationKind, Turn, TurnSummary};
use treebeam_core::event::{
    Approval, ArtifactsRestored, BudgetKind, ContextPack, EvalFailure, EvalRerun, EvalStage, Event,
    FailureKind, FileDigest, FilesRecorded, Idea, IdeaAdded, IdeasProposed, Leftover, LeftoverKind,
    MessageId, NewEval, PaidStep, RepeatedIdea, RunStarted, RunnerProcess, SentBack, StopReason,
    SweepSubject, TakeoverReason, UserRequest, WorldKind,
};
use treebeam_core::evidence::{
    Artifact, CandidateScore, Comparison, Grade, LostNumbers, PairedDifference, PrimaryMeans,
    Recommendation, RecommendationReason, ResultsForm, SweepCompleteness,
};
use treebeam_core::gate::{self, GateVerdict};
use treebeam_core::group::IdeaSource;
use treebeam_core::id::{CodePlace, Depth, EvalId, NodeId, Sha256, TurnId};
use treebeam_core::num::Finite;
use treebeam_core::policy::{
    ChosenBy, Direction, FixedSettings, Metric, RecordedAgents, RunLimits, ScorePolicy,
};
use treebeam_core::role::AgentRole;
use treebeam_core::root_checks::{InputScope, RootChecks};
use treebeam_core::rules_version::RulesVersion;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_790_000_000 + second).unwrap()
}

fn finite(number: f64) -> Finite {
    Finite::new(number).unwrap()
}

fn metric(column: &str, guard: bool) -> Metric {
    let direction = Direction::Higher;
    Metric { column: column.to_owned(), direction, weight: finite(1.5), guard }
}

fn meaning() -> FixedSettings {
    let score = ScorePolicy {
        primary: "return".to_owned(),
        primary_chosen_by: ChosenBy::User,
        metrics: vec![metric("return", false), metric("draw, down", true)],
        ..ScorePolicy::trading_preset()
    };
    let ideas_per_node = NonZeroU32::new(3).unwrap();
    let sweep_config_limit = NonZeroU32::new(2);
    FixedSettings {
        ideas_per_node,
        sweep_config_limit,
        score,
        protect: vec![],
        ..FixedSettings::default()
    }
}

fn reach(evals: u32) -> RunLimits {
    RunLimits { max_total_idea_evals: Some(evals), ..RunLimits::default() }
}

fn agents(model: &str) -> RecordedAgents {
    let word = str::to_owned;
    let coder = [("provider", "openai-chat"), ("model", model), ("base_url", "http://localhost:1")];
    let coder = coder.map(|(name, value)| (word(name), word(value))).into();
    RecordedAgents([(word("coder"), coder)].into())
}

/// Returns the first event's data.
pub(crate) fn started() -> RunStarted {
    RunStarted {
        run: "20260921-120000".parse().unwrap(),
        world: WorldKind::Dry { seed: 7 },
        root: "0123456789abcdef0123456789abcdef01234567".parse().unwrap(),
        meaning: meaning(),
        reach: reach(4),
        agents: agents("small"),
        given: None,
        replays: None,
        rules_version: RulesVersion::First,
        at: at(0),
    }
}

fn artifact(name: &str) -> Artifact {
    Artifact {
        path: format!("artifacts/{name}.csv").parse().unwrap(),
        sha256: Sha256::hash_bytes(name.as_bytes()),
        source: format!("eval/{name}/s1/meta_config_sweep_results.csv"),
    }
}

fn idea(node: u32, number: u32, turn: u32) -> Idea {
    let title = format!("Try \"window\" {number} – über");
    Idea {
        path: format!("node_ideas/{node:04}/{number:03}_try_window.md").parse().unwrap(),
        sha256: Sha256::hash_bytes(title.as_bytes()),
        fingerprint: Sha256::hash_bytes(title.to_lowercase().as_bytes()),
        title,
        turn: Some(turn),
    }
}

fn turn(asked: u32, way: ContinuationKind) -> Turn {
    let tokens = u64::from(asked);
    let id = |number: u32| format!("resp-{number}");
    let native = way == ContinuationKind::Native;
    Turn {
        asked,
        way,
        prompt: Sha256::hash_bytes(&asked.to_be_bytes()),
        reply: native.then(|| Sha256::hash_bytes(b"reply")),
        continued: native.then(|| id(asked - 1)),
        continuation: native.then(|| Continuation { id: id(asked), tokens, taken: None }),
        summary: (!native).then(|| TurnSummary {
            until: TurnId { node: NodeId::ROOT, number: 1 },
            reply: Sha256::hash_bytes(b"in short"),
        }),
        note: (!native).then(|| "the provider has forgotten what was said".to_owned()),
    }
}

fn proposed(node: u32, queued: &[u32], untried: &[u32], second: i64) -> Event {
    let new = |number: &u32| NewEval { eval: EvalId::new(*number), idea: idea(node, *number, 1) };
    let file =
        |number| FileDigest { path: idea(0, number, 1).path, sha256: idea(0, number, 1).sha256 };
    Event::IdeasProposed(Box::new(IdeasProposed {
        source: IdeaSource::Node(NodeId::new(node)),
        queued: queued.iter().map(new).collect(),
        untried: untried.iter().map(|number| idea(node, *number, 2)).collect(),
        repeats: vec![RepeatedIdea {
            fingerprint: Sha256::hash_bytes(b"again"),
            title: "Again".to_owned(),
        }],
        turns: 2,
        context: ContextPack {
            path: format!("node_ideas/{node:04}/prompt_context.txt").parse().unwrap(),
            sha256: Sha256::hash_bytes(&[u8::try_from(node).unwrap()]),
            idea_files: (1..=node).map(file).collect(),
        },
        bills: bills(&[AgentRole::Ideas], queued.len()),
        conversation: vec![turn(1, ContinuationKind::Native), turn(2, ContinuationKind::Replay)],
        at: at(second),
    }))
}

fn comparison(score: f64, grade: Grade, reasons: Vec<RecommendationReason>) -> Comparison {
    let delta = finite(score / 3.0);
    let (low, high) = (finite(score - 0.1), finite(score + 0.1));
    Comparison {
        baseline_rows_used: 2,
        candidate_rows_used: 2,
        recommendation: Recommendation {
            should_explore: score > 0.0,
            grade,
            score: finite(score),
            positive_signals: 1,
            negative_signals: 1,
            metrics_used: 2,
            reasons,
        },
        primary_delta: Some(delta),
        paired: Some(PairedDifference {
            pairs: 2,
            mean_difference: delta,
            wins: 1,
            losses: 1,
            low,
            high,
        }),
        primary_means: Some(PrimaryMeans {
            baseline: finite(1.5),
            candidate: finite(1.5 + score / 3.0),
        }),
    }
}

fn good() -> CandidateScore {
    let better = || {
        comparison(
            0.123_456_789_012_345_68,
            Grade::Strong,
            vec![RecommendationReason::NetImprovement],
        )
    };
    CandidateScore {
        vs_parent: better(),
        vs_root: better(),
        completeness: SweepCompleteness { expected_count: 2, ok_count: 2, error_count: 0 },
        form: ResultsForm::default(),
        has_effect: true,
        rules_version: RulesVersion::LATEST,
    }
}

fn poor() -> CandidateScore {
    let risk =
        RecommendationReason::RiskRegressed(vec!["draw, down".to_owned(), "cvar".to_owned()]);
    let reasons = vec![
        RecommendationReason::PrimaryMetricRegressed,
        risk,
        RecommendationReason::InsufficientSignal,
    ];
    let worse = comparison(-1e-7, Grade::Weak, reasons);
    let unknown =
        Comparison { primary_delta: None, paired: None, primary_means: None, ..worse.clone() };
    let form = ResultsForm {
        ragged_rows: 1,
        duplicate_ids: 1,
        unknown_ids: 3,
        changed_invariants: vec!["seed".to_owned()],
        lost_numbers: vec![LostNumbers { column: "sharpe".to_owned(), rows: 2 }],
        missing_columns: vec!["status".to_owned()],
        ragged_lines: vec![3],
        repeated_ids: vec!["0".to_owned()],
    };
    let completeness = SweepCompleteness { expected_count: 2, ok_count: 1, error_count: 1 };
    let (has_effect, rules_version) = (false, RulesVersion::LATEST);
    CandidateScore {
        vs_parent: worse,
        vs_root: unknown,
        completeness,
        form,
        has_effect,
        rules_version,
    }
}

/// Returns bills of so many answers of each role, one of them of unknown price.
fn bills(roles: &[AgentRole], calls: usize) -> RoleBills {
    let calls = u32::try_from(calls).unwrap();
    let usage = TokenUsage { input: 1000, cached: 200, output: 50 };
    let cost = Cost::from_pico_dollars(1_500_000_000 * u64::from(calls - 1));
    let mut bills = RoleBills::default();
    for role in roles {
        bills.add(*role, AgentBill { calls, calls_without_price: 1, usage, cost, millis: 1250 });
    }
    bills
}

fn begin(eval: u32, second: i64) -> Event {
    begin_again(eval, 1, second)
}

fn begin_again(eval: u32, attempt: u32, second: i64) -> Event {
    let step = PaidStep::Implement(EvalId::new(eval));
    Event::StepStarted { step, attempt, at: at(second) }
}

fn ask(node: u32, second: i64) -> Event {
    let step = PaidStep::Propose(IdeaSource::Node(NodeId::new(node)));
    Event::StepStarted { step, attempt: 1, at: at(second) }
}

fn implemented(eval: u32, second: i64) -> Event {
    Event::Implemented {
        eval: EvalId::new(eval),
        commit: format!("{eval:040x}").parse().unwrap(),
        tree: Some(format!("{eval:020x}{eval:020x}").parse().unwrap()),
        files_changed: eval,
        rounds: 2,
        approval: Approval::Approved,
        bills: bills(&[AgentRole::Planner, AgentRole::Coder, AgentRole::Reviewer], 2),
        at: at(second),
    }
}

fn submitted(subject: SweepSubject, submission: u32) -> Event {
    Event::SweepSubmitted { subject, submission }
}

fn swept(eval: u32, second: i64) -> Event {
    let results = artifact(&format!("{eval:04}"));
    Event::Swept { eval: EvalId::new(eval), results, at: at(second) }
}

fn scored(eval: u32, scored: CandidateScore, second: i64) -> Event {
    let (eval, scored, same_code_as) = (EvalId::new(eval), Box::new(scored), None);
    Event::Scored { eval, scored, same_code_as, at: at(second) }
}

fn failed(eval: u32, stage: EvalStage, kind: FailureKind, second: i64) -> Event {
    let message =
        "exit code 1\nTraceback: \"no\" \u{1F4A5}\t,\"sum\":\"0123456789abcdef\"}".to_owned();
    let failure = EvalFailure { stage, kind, message };
    let asked = stage == EvalStage::Implement;
    let bills = if asked { bills(&[AgentRole::Coder], 1) } else { RoleBills::default() };
    Event::EvalFailed { eval: EvalId::new(eval), failure, bills, at: at(second) }
}

fn leftover(eval: u32, kind: LeftoverKind) -> Leftover {
    Leftover { place: CodePlace::Candidate(EvalId::new(eval)), kind }
}

fn worktree(node: u32) -> Leftover {
    Leftover { place: CodePlace::Node(NodeId::new(node)), kind: LeftoverKind::Worktree }
}

fn deferred(leftover: Leftover, second: i64) -> Event {
    Event::DiscardDeferred { leftover, why: "file is in use".to_owned(), retry_at: at(second) }
}

fn taken_over(from: Option<u32>, because: TakeoverReason, second: i64) -> Event {
    let from = from.map(|pid| RunnerProcess {
        pid,
        hostname: "box".to_owned(),
        created_at: at(second - 9),
        last_heartbeat_at: at(second - 2),
    });
    Event::LockTakenOver { from, because, at: at(second) }
}

fn message(second: i64) -> MessageId {
    format!("20260921T1200{second:02}-000000007-4711").parse().unwrap()
}

fn asked(wish: UserRequest, second: i64) -> Event {
    Event::Asked { wish, message: Some(message(second)), at: at(second) }
}

fn added(node: u32, eval: u32, second: i64) -> Event {
    let path = format!("node_ideas/{node:04}/u01_try_window.md").parse().unwrap();
    Event::IdeaAdded(Box::new(IdeaAdded {
        message: message(second),
        node: NodeId::new(node),
        eval: EvalId::new(eval),
        idea: Idea { path, turn: None, ..idea(node, eval, 1) },
        at: at(second),
    }))
}

fn refused(second: i64) -> Event {
    let (title, why) = ("Try it again".to_owned(), "it repeats the idea of `e0001`".to_owned());
    Event::IdeaRefused { message: message(second), title, why, at: at(second) }
}

fn verdict(eval: u32, scored: &CandidateScore) -> (EvalId, GateVerdict) {
    (EvalId::new(eval), gate::judge_candidate(scored, eval, Approval::Approved, &meaning()))
}

/// Returns all events of the run, from its start on.
pub(crate) fn events() -> Vec<Event> {
    let mut events = vec![Event::RunStarted(Box::new(started()))];
    events.extend(first_depth());
    events.extend(second_depth());
    events.extend(after_the_stop());
    events.extend(done_again());
    events.extend(out_of_budget());
    events
}

fn first_depth() -> Vec<Event> {
    use LeftoverKind::{Branch, Worktree};
    let eval = |number| SweepSubject::Eval(EvalId::new(number));
    vec![
        submitted(SweepSubject::Root, 1),
        Event::RootRefused { why: "sweep exited 1".to_owned() },
        submitted(SweepSubject::Root, 2),
        Event::RootMeasured {
            baseline: artifact("root"),
            rows: 2,
            parent: None,
            protected_inputs: Some(Box::new(Sha256::hash_bytes(b"prices"))),
            tree: Some(format!("{:040x}", 7).parse().unwrap()),
            checks: Some(Box::new(RootChecks {
                rewritten: vec!["out/seen.log".to_owned()],
                inputs: InputScope::All,
            })),
            at: at(10),
        },
        ask(0, 11),
        proposed(0, &[1, 2, 3], &[], 12),
        begin(1, 13),
        implemented(1, 14),
        begin(2, 14),
        submitted(eval(1), 1),
        implemented(2, 15),
        submitted(eval(2), 1),
        taken_over(Some(4711), TakeoverReason::OwnerDead, 15),
        submitted(eval(2), 2),
        swept(1, 16),
        failed(2, EvalStage::Sweep, FailureKind::Sweep, 17),
        scored(1, good(), 18),
        deferred(leftover(1, Worktree), 20),
        begin(3, 21),
        implemented(3, 22),
        submitted(eval(3), 1),
        swept(3, 23),
        scored(3, poor(), 24),
        Event::DepthClosed {
            depth: Depth(0),
            verdicts: vec![verdict(1, &good()), verdict(3, &poor())],
            beam: vec![EvalId::new(1)],
            cut_short: false,
        },
        Event::PromotionFailed { eval: EvalId::new(1), why: "disk full".to_owned() },
        Event::NodeAdded { node: NodeId::new(1), from: EvalId::new(1), at: at(30) },
        Event::Discarded { leftover: leftover(2, Branch) },
    ]
}

fn second_depth() -> Vec<Event> {
    vec![
        ask(1, 31),
        proposed(1, &[4], &[5, 6], 32),
        begin(4, 33),
        failed(4, EvalStage::Implement, FailureKind::Patch, 34),
        Event::DepthClosed { depth: Depth(1), verdicts: vec![], beam: vec![], cut_short: true },
        Event::Discarded { leftover: leftover(1, LeftoverKind::Worktree) },
        Event::Stopped { reason: StopReason::MaxEvals, at: at(35) },
    ]
}

fn after_the_stop() -> Vec<Event> {
    let node = NodeId::new(1);
    vec![
        Event::SettingsChanged {
            reach: RunLimits { max_depth: 9, summary_agent: Some(AgentRole::Planner), ..reach(6) },
        },
        ask(1, 40),
        asked(UserRequest::Pause, 40),
        Event::ProposalFailed {
            source: IdeaSource::Node(node),
            why: "no idea in the reply".to_owned(),
            turns: 3,
            bills: bills(&[AgentRole::Ideas], 3),
            conversation: vec![turn(3, ContinuationKind::Replay)],
            at: at(41),
        },
        Event::Asked { wish: UserRequest::Unpause, message: None, at: at(41) },
        refused(41),
        added(1, 5, 42),
        asked(UserRequest::Stop, 43),
        asked(UserRequest::StopAfterDepth, 44),
        begin(5, 43),
        failed(5, EvalStage::Implement, FailureKind::Agent, 43),
        Event::DepthClosed { depth: Depth(2), verdicts: vec![], beam: vec![], cut_short: false },
        deferred(leftover(3, LeftoverKind::Branch), 44),
        taken_over(None, TakeoverReason::Forced, 44),
        Event::JournalRestored { at: at(44) },
        Event::Stopped { reason: StopReason::EmptyFrontier, at: at(45) },
    ]
}

fn done_again() -> Vec<Event> {
    let eval = EvalId::new;
    let failure = EvalFailure {
        stage: EvalStage::Implement,
        kind: FailureKind::Patch,
        message: "the diff does not apply\nat all".to_owned(),
    };
    vec![
        Event::SettingsChanged { reach: RunLimits { max_depth: 9, eval_retries: 1, ..reach(20) } },
        ask(1, 50),
        proposed(1, &[6, 7, 8], &[], 51),
        begin(6, 52),
        Event::AttemptFailed {
            eval: eval(6),
            attempt: 1,
            failure,
            bills: bills(&[AgentRole::Coder], 3),
            at: at(53),
        },
        begin_again(6, 2, 54),
        failed(6, EvalStage::Implement, FailureKind::NoChange, 55),
        begin(7, 56),
        implemented(7, 57),
        submitted(SweepSubject::Eval(eval(7)), 1),
        swept(7, 58),
        scored(7, good(), 59),
        Event::SentBack(Box::new(SentBack {
            reopened: None,
            retried: vec![eval(6)],
            swept: vec![],
            rerun: vec![EvalRerun { of: eval(7), eval: eval(9) }],
            set_aside: vec![eval(8)],
            asked: vec![NodeId::new(1)],
            at: at(60),
        })),
        proposed(1, &[10], &[], 61),
        begin_again(6, 3, 62),
        implemented(6, 63),
        begin(9, 64),
        failed(9, EvalStage::Implement, FailureKind::Agent, 65),
        submitted(SweepSubject::Eval(eval(6)), 1),
        swept(6, 66),
        scored(6, poor(), 67),
        begin(10, 68),
        failed(10, EvalStage::Implement, FailureKind::Protected, 69),
        Event::DepthClosed {
            depth: Depth(3),
            verdicts: vec![verdict(6, &poor())],
            beam: vec![],
            cut_short: false,
        },
        Event::Stopped { reason: StopReason::EmptyFrontier, at: at(70) },
        Event::SentBack(Box::new(SentBack {
            reopened: Some(Depth(3)),
            retried: vec![eval(9)],
            swept: vec![],
            rerun: vec![],
            set_aside: vec![],
            asked: vec![],
            at: at(71),
        })),
        begin_again(9, 2, 72),
        implemented(9, 73),
        submitted(SweepSubject::Eval(eval(9)), 1),
        failed(9, EvalStage::Sweep, FailureKind::Timeout, 74),
        Event::DepthClosed { depth: Depth(3), verdicts: vec![], beam: vec![], cut_short: false },
        Event::Stopped { reason: StopReason::EmptyFrontier, at: at(75) },
        Event::SentBack(Box::new(SentBack {
            reopened: Some(Depth(3)),
            retried: vec![eval(9)],
            swept: vec![eval(9)],
            rerun: vec![],
            set_aside: vec![],
            asked: vec![],
            at: at(76),
        })),
        begin_again(9, 3, 77),
        implemented(9, 78),
        submitted(SweepSubject::Eval(eval(9)), 2),
        changed_artifact(9),
        recorded("eval/0009/experiment/sweep.log"),
        failed(9, EvalStage::Sweep, FailureKind::Sweep, 79),
        Event::DepthClosed { depth: Depth(3), verdicts: vec![], beam: vec![], cut_short: false },
        Event::Stopped { reason: StopReason::EmptyFrontier, at: at(80) },
    ]
}

fn recorded(file: &str) -> Event {
    let files = vec![FileDigest {
        path: file.parse().unwrap(),
        sha256: Sha256::hash_bytes(file.as_bytes()),
    }];
    Event::FilesRecorded(Box::new(FilesRecorded { files }))
}

fn changed_artifact(suspect: u32) -> Event {
    let (artifacts, suspects) =
        (vec!["artifacts/root.csv".parse().unwrap()], vec![EvalId::new(suspect)]);
    Event::ArtifactsRestored(Box::new(ArtifactsRestored { artifacts, suspects, at: at(79) }))
}

fn reached(budget: BudgetKind, step: PaidStep) -> Event {
    Event::BudgetReached { budget, step, bills: bills(&[AgentRole::Planner], 1) }
}

fn timed() -> RunLimits {
    RunLimits { max_depth: 10, deadline: "8h".parse().ok(), ..reach(30) }
}

fn out_of_budget() -> Vec<Event> {
    let node = NodeId::new(1);
    let goes_on = || Event::SettingsChanged { reach: RunLimits { max_depth: 10, ..reach(30) } };
    vec![
        goes_on(),
        ask(1, 80),
        proposed(1, &[11, 12, 13], &[], 81),
        begin(11, 82),
        begin(12, 82),
        implemented(11, 83),
        reached(BudgetKind::Cost, PaidStep::Implement(EvalId::new(12))),
        submitted(SweepSubject::Eval(EvalId::new(11)), 1),
        swept(11, 84),
        scored(11, poor(), 85),
        Event::DepthClosed {
            depth: Depth(4),
            verdicts: vec![verdict(11, &poor())],
            beam: vec![],
            cut_short: true,
        },
        Event::Stopped { reason: StopReason::MaxCost, at: at(86) },
        goes_on(),
        Event::AgentsChanged { agents: agents("large") },
        Event::RulesChanged { rules_version: RulesVersion::LATEST },
        ask(1, 87),
        reached(BudgetKind::Tokens, PaidStep::Propose(IdeaSource::Node(node))),
        Event::Stopped { reason: StopReason::MaxTokens, at: at(88) },
        Event::SettingsChanged { reach: timed() },
        Event::DeadlinePassed { at: at(89) },
        Event::Stopped { reason: StopReason::Deadline, at: at(89) },
        Event::RemovalAsked { leftovers: vec![worktree(0), worktree(1)] },
        Event::Discarded { leftover: worktree(0) },
    ]
}
