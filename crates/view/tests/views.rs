//! Tests the views of a small run made by hand: their content, and what holds at every moment.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod sample;

use std::num::NonZeroU32;
use std::time::Duration;
use treebeam_core::audit::{AuditFinding, FindingSeverity};
use treebeam_core::bill::{AgentBill, Cost, RoleBills, TokenUsage};
use treebeam_core::event::{
    BudgetKind, Event, Leftover, LeftoverKind, PaidStep, RunStarted, RunnerProcess, StopReason,
    TakeoverReason,
};
use treebeam_core::facts::Facts;
use treebeam_core::id::{CodePlace, EvalId, NodeId};
use treebeam_core::num::Finite;
use treebeam_core::plan::{self, PlanMove, RedoKind, RunningSteps};
use treebeam_core::policy::{FixedSettings, RecordedAgents, RunLimits};
use treebeam_core::role::AgentRole;
use treebeam_core::state::State;
use treebeam_view::html::render_timeline;
use treebeam_view::list::{ListedRun, RunDigest};
use treebeam_view::results::RESULT_COLUMNS;
use treebeam_view::status::UnansweredCalls;
use treebeam_view::{
    EvalCounts, EvalStatus, log, render_best, render_graph, render_results_tsv, render_run_list,
    render_show, render_status, render_tree_summary, validation,
};

/// Command that resumes the sample.
const WAY_ON: &str = "treebeam resume 20260101-000000";

/// Returns the number of cells of a row: unescaped bars, less one.
fn cells(row: &str) -> usize {
    let mut bars = 0_usize;
    let mut chars = row.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            '|' => bars += 1,
            _ => {}
        }
    }
    bars.saturating_sub(1)
}

/// Checks that every table has as many cells in each row as in its head.
fn assert_tables_are_even(text: &str) {
    let mut columns = None;
    for line in text.lines() {
        if line.starts_with('|') {
            assert!(line.ends_with(" |"), "{line}");
            assert_eq!(*columns.get_or_insert(cells(line)), cells(line), "{line}");
        } else {
            columns = None;
        }
    }
}

fn all(facts: &Facts) -> [String; 4] {
    [
        render_tree_summary(facts),
        render_graph(facts),
        render_results_tsv(facts),
        render_status(facts, UnansweredCalls::default(), None, &[], WAY_ON),
    ]
}

#[test]
fn the_sample_has_every_outcome() {
    let state = sample::finished();
    let counts = EvalCounts::overall(&state);
    assert_eq!(counts.total(), 9);
    assert_eq!(counts.to_string(), "3 promoted, 1 passed, 3 rejected, 2 failed");
    assert_eq!(EvalCounts::open_depth(&state), EvalCounts::default());
    assert_eq!(state.stop_reason(), Some(StopReason::MaxEvals));
}

#[test]
fn summary_of_a_finished_run() {
    insta::assert_snapshot!(render_tree_summary(&sample::finished()));
}

#[test]
fn graph_of_a_finished_run() {
    insta::assert_snapshot!(render_graph(&sample::finished()));
}

#[test]
fn results_of_a_finished_run() {
    insta::assert_snapshot!(render_results_tsv(&sample::finished()));
}

#[test]
fn status_of_a_finished_run() {
    insta::assert_snapshot!(render_status(
        &sample::finished(),
        UnansweredCalls::default(),
        None,
        &[],
        WAY_ON
    ));
}

#[test]
fn a_run_that_has_just_begun() {
    let state = State::from_run_started(&sample::started());
    insta::assert_snapshot!(all(&state).join("\n-----\n"));
}

#[test]
fn a_run_half_way() {
    let events = sample::events();
    let second = events.iter().rposition(|e| matches!(e, Event::Implemented { .. })).unwrap();
    let state = sample::after(&events, second);
    insta::assert_snapshot!(all(&state).join("\n-----\n"));
}

#[test]
fn the_best_path_at_the_end_on_the_way_and_before_anything() {
    let events = sample::events();
    let promoted = events.iter().position(|e| matches!(e, Event::NodeAdded { .. })).unwrap();
    let at = |number| render_best(&sample::after(&events, number), "/runs/x", "treebeam");
    let mut removed = events.clone();
    for kind in [LeftoverKind::Worktree, LeftoverKind::Branch] {
        let place = CodePlace::Node(sample::finished().best_node());
        let leftovers = vec![Leftover { place, kind }];
        removed.push(Event::RemovalAsked { leftovers });
        removed.push(Event::Discarded { leftover: Leftover { place, kind } });
    }
    let removed = render_best(&sample::after(&removed, removed.len()), "/runs/x", "treebeam");
    let shown = [at(events.len()), at(promoted), at(1), removed];
    insta::assert_snapshot!(shown.join("-----\n"));
}

/// The second depth in its middle, with all of its work sent back.
fn sent_back() -> State {
    let mut events = sample::events();
    let failed = events.iter().rposition(|e| matches!(e, Event::EvalFailed { .. })).unwrap();
    events.truncate(failed + 1);
    let reach = RunLimits { max_total_idea_evals: None, ..sample::started().reach };
    events.push(Event::SettingsChanged { reach });
    let mut state = sample::after(&events, events.len());
    let wishes = [RedoKind::RetryFailed, RedoKind::RerunEvals, RedoKind::RegenerateIdeas];
    let sent = plan::send_back(&state, &wishes, &|_| true, state.created_at).unwrap();
    state.apply(&Event::SentBack(Box::new(sent))).unwrap();
    state
}

#[test]
fn work_that_is_done_again() {
    let state = sent_back();
    let [summary, graph, results, status] = all(&state);
    assert_tables_are_even(&summary);
    let evals = summary.lines().filter(|line| line.starts_with("| e00"));
    let evals: Vec<_> = evals.filter(|line| line.contains("| n0002 |")).collect();
    let leaves: Vec<_> = graph.lines().filter(|line| line.contains("n0002 -.->")).collect();
    let rows: Vec<_> = results.lines().filter(|line| line.contains("\tn0002\t")).collect();
    let shown = render_show(&state, CodePlace::Candidate(EvalId::new(8)), "here").unwrap();
    let parts = [evals.join("\n"), leaves.join("\n"), rows.join("\n"), status, shown];
    insta::assert_snapshot!(parts.join("\n-----\n"));
}

/// The second depth, closed because a budget was reached before the end of its last two evals.
fn out_of_budget() -> State {
    let mut events = sample::events();
    let begins = |e: &Event| matches!(e, Event::StepStarted { step: PaidStep::Implement(_), .. });
    let last = events.iter().rposition(begins).unwrap();
    let begun = events[..last].iter().rposition(begins).unwrap();
    events.truncate(begun + 1);
    let Some(Event::StepStarted { step, .. }) = events.last() else { unreachable!() };
    let (budget, step) = (BudgetKind::Cost, *step);
    events.push(Event::BudgetReached { budget, step, bills: RoleBills::default() });
    let mut state = sample::after(&events, events.len());
    let moves = plan::next_moves(&state, &RunningSteps::default(), sample::now());
    let closed = moves.into_iter().find_map(|next| match next {
        PlanMove::Record(event) => Some(event),
        PlanMove::Start(_) | PlanMove::Stop(_) => None,
    });
    state.apply(&closed.unwrap()).unwrap();
    state
}

#[test]
fn a_budget_that_was_reached() {
    let state = out_of_budget();
    let [summary, _, results, status] = all(&state);
    assert_tables_are_even(&summary);
    for text in
        ["not tried: `max_cost_usd` reached", "not tried to its end: `max_cost_usd` reached"]
    {
        assert!(results.contains(text), "{results}");
    }
    assert_eq!(EvalCounts::overall(&state).get(EvalStatus::Unfinished), 2);
    assert!(summary.contains("2 unfinished") && status.contains("2 unfinished"), "{status}");
    let reach = RunLimits {
        max_cost_usd: Finite::new(2.5),
        max_tokens_total: Some(7),
        ..state.limits.clone()
    };
    let word = str::to_owned;
    let coder = [("provider", "openai"), ("model", "gpt-5")].map(|(a, b)| (word(a), word(b)));
    let agents = RecordedAgents([(word("coder"), coder.into())].into());
    let mut state = state;
    state.apply(&Event::SettingsChanged { reach }).unwrap();
    state.apply(&Event::AgentsChanged { agents }).unwrap();
    let [summary, _, _, status] = all(&state).map(|text| text.replace('\\', ""));
    for text in ["at most $2.5, at most 7 tokens", "coder openai gpt-5"] {
        assert!(summary.contains(text) && status.contains(text), "{summary}{status}");
    }
}

#[test]
fn a_run_that_is_being_run_is_not_to_be_resumed() {
    let state = sample::after(&sample::events(), 5);
    let shown = render_status(
        &state,
        UnansweredCalls::default(),
        Some("process 7 on `night`"),
        &[],
        WAY_ON,
    );
    assert!(shown.contains("running     process 7 on `night`\n") && !shown.contains("go on "));
    let waits = ["coder since 22:00:00 UTC".to_owned(), "ideas".to_owned(), "planner".to_owned()];
    let shown =
        render_status(&state, UnansweredCalls::default(), Some("process 7"), &waits, WAY_ON);
    assert!(
        shown.ends_with("waits       coder since 22:00:00 UTC\n            and 2 questions more\n")
    );
}

#[test]
fn every_moment_of_a_run_can_be_shown() {
    let events = sample::events();
    let mut seen = Vec::new();
    for number in 1..=events.len() {
        let state = sample::after(&events, number);
        let [summary, graph, results, status] = all(&state);
        assert_eq!(all(&state), [summary.clone(), graph.clone(), results.clone(), status.clone()]);
        assert_tables_are_even(&summary);
        assert!(results.lines().all(|line| line.split('\t').count() == RESULT_COLUMNS.len()));
        assert_eq!(results.lines().count(), 1 + state.evals.len());
        assert!(graph.lines().all(|line| line.matches('"').count() % 2 == 0), "{graph}");
        assert!(status.lines().count() < 30);
        assert_eq!(status.contains("go on "), state.stop_reason().is_none());
        assert!([&summary, &graph, &results, &status].iter().all(|text| text.ends_with('\n')));
        seen.extend(state.evals.iter().map(|eval| EvalStatus::from_eval(&eval)));
    }
    seen.extend(out_of_budget().evals.iter().map(|eval| EvalStatus::from_eval(&eval)));
    seen.extend(sent_back().evals.iter().map(|eval| EvalStatus::from_eval(&eval)));
    seen.extend(
        State::from_events(&controlled())
            .unwrap()
            .evals
            .iter()
            .map(|eval| EvalStatus::from_eval(&eval)),
    );
    assert!(EvalStatus::ALL.iter().all(|outcome| seen.contains(outcome)));
}

#[test]
fn how_a_run_ran_is_not_in_its_reports() {
    let events = sample::events();
    for end in 1..=events.len() {
        let facts = sample::after(&events, end).into_facts();
        let other = ran_otherwise(&facts);
        assert_eq!(render_tree_summary(&facts), render_tree_summary(&other));
        assert_eq!(render_graph(&facts), render_graph(&other));
        assert_eq!(render_results_tsv(&facts), render_results_tsv(&other));
        assert_eq!(render_timeline(&facts).into_string(), render_timeline(&other).into_string());
    }
}

/// Returns the same facts of a run that was interrupted more often, and with changed settings.
fn ran_otherwise(facts: &Facts) -> Facts {
    let mut other = facts.clone();
    other.history.settings_changes = 9;
    other.history.lock_takeovers = 3;
    other.history.cleanups = 9;
    other.history.promotion_failures = 9;
    other.history.submissions.values_mut().for_each(|number| *number += 3);
    other.leftovers.clear();
    let many = NonZeroU32::new(16).unwrap();
    other.limits.max_parallel_evals = many;
    other.limits.max_parallel_per_node = Some(many);
    other.limits.sweep_max_parallel = Some(many);
    other.limits.keep_rejected_worktrees = true;
    other
}

#[test]
fn without_a_limit_the_rule_for_rows_is_said_in_words() {
    let base = sample::started();
    let meaning = FixedSettings { sweep_config_limit: None, ..base.meaning };
    let reach = RunLimits { max_total_idea_evals: None, ..base.reach };
    let state = State::from_run_started(&RunStarted { meaning, reach, ..base });
    let text = render_tree_summary(&state);
    assert!(
        text.contains("| at least as many rows as the root baseline, at least 100 % of them ok |")
    );
    assert!(text.contains("| budget | no limit |"));
}

#[test]
fn what_answers_took_is_told_by_role_node_and_eval() {
    let mut facts = sample::finished().into_facts();
    assert!(!render_tree_summary(&facts).contains("## What answers took"), "nothing was counted");
    let bills = |role, calls: u32| {
        let usage = TokenUsage { input: 1000, cached: 200, output: u64::from(calls) };
        let cost = Cost::from_pico_dollars(2_000_000_000);
        let mut bills = RoleBills::default();
        bills.add(role, AgentBill { calls, calls_without_price: 1, usage, cost, millis: 90_000 });
        bills
    };
    facts.nodes[0].expansions[0].bills = bills(AgentRole::Ideas, 1);
    let evals = facts.evals.unpack_all();
    evals[0].bills = vec![bills(AgentRole::Coder, 2), bills(AgentRole::Reviewer, 3)];
    evals[5].bills = vec![bills(AgentRole::Coder, 4)];
    let text = render_tree_summary(&facts);
    assert_tables_are_even(&text);
    let (_, section) = text.split_once("## What answers took").unwrap();
    let (section, rest) = section.split_once("\nGrade, ").unwrap();
    let evals = rest.lines().filter(|line| line.contains(" calls, ")).collect::<Vec<_>>();
    insta::assert_snapshot!([section, &evals.join("\n")].join("\n-----\n"));
}

/// The sample with a control group.
fn controlled() -> Vec<Event> {
    let base = sample::started();
    let meaning = FixedSettings { control: "best-of-n".parse().ok(), ..base.meaning };
    sample::events_of(RunStarted { meaning, ..base })
}

#[test]
fn a_control_group_stands_beside_the_tree() {
    let events = controlled();
    let state = State::from_events(&events).unwrap();
    let text = render_tree_summary(&state);
    assert_tables_are_even(&text);
    let (_, section) = text.split_once("## Tree or root alone").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let results = render_results_tsv(&state);
    let rows = results.lines().filter(|line| line.ends_with("\tcontrol")).collect::<Vec<_>>();
    let asked = events.iter().map(|event| log::format_log_line(sample::now(), event));
    let asked = asked.filter(|line| line.contains("  control  ")).collect::<String>();
    let parts = [
        section.to_owned(),
        render_best(&state, "RUN", "treebeam"),
        shown(&state, "e0006"),
        rows.join("\n"),
        asked,
    ];
    insta::assert_snapshot!(parts.join("\n-----\n"));
}

#[test]
fn a_node_that_the_budget_leaves_out_is_listed() {
    let base = sample::started();
    let meaning = FixedSettings { beam_width: NonZeroU32::new(3).unwrap(), ..base.meaning };
    let events = sample::events_of(RunStarted { meaning, ..base });
    let text = render_tree_summary(&State::from_events(&events).unwrap());
    assert!(text.contains("\n- n0003: not expanded, the budget was used up\n"), "{text}");
}

#[test]
fn a_frontier_that_stays_is_shown_at_each_depth() {
    let base = sample::started();
    let mut meaning = FixedSettings { sweep_config_limit: None, ..base.meaning };
    meaning.gate.min_ok_rate = Finite::new(2.0).unwrap();
    let reach = RunLimits { stop_on_empty_frontier: false, ..base.reach };
    let events = sample::events_of(RunStarted { meaning, reach, ..base });
    let text = render_tree_summary(&State::from_events(&events).unwrap());
    assert_tables_are_even(&text);
    let (_, second) = text.split_once("\n## Depth 1\n").unwrap();
    assert!(
        second.contains("\n| e0006 | n0000 |") && !second.contains("\n| node | parent |"),
        "{text}"
    );
    assert!(text.contains("**Best**: the root"), "{text}");
}

#[test]
fn leaves_of_a_big_run_are_counted() {
    let mut facts = sample::finished().into_facts();
    let evals = facts.evals.unpack_all();
    let rejected = evals[3].clone();
    evals.extend(std::iter::repeat_n(rejected, 500));
    let text = render_graph(&facts);
    assert!(text.contains("n0000 -.-> l0000([\"1 passed, 501 rejected, 1 failed\"])"), "{text}");
    assert!(text.len() < 10_000);
}

#[test]
fn findings_are_a_table_and_none_is_said_clearly() {
    let finding = |what: &str, severity| AuditFinding {
        what: what.to_owned(),
        place: "artifacts/e0001.csv".to_owned(),
        severity,
        advice: "restore it from a backup, or run the eval again".to_owned(),
    };
    let findings = [
        finding("no ref keeps commit abc | def", FindingSeverity::Warning),
        finding("the sha256 is not\nthe recorded one", FindingSeverity::Error),
    ];
    let run = "20260101-000000";
    let report = validation::render_validation_report(run, &findings);
    assert_tables_are_even(&report);
    insta::assert_snapshot!(format!(
        "{report}\n-----\n{}",
        validation::render_validation_report(run, &[])
    ));
}

// ---- one thing at a time

const BELOW: &str = "/runs/20260101-000000";

fn shown(facts: &Facts, name: &str) -> String {
    render_show(facts, name.parse().unwrap(), BELOW).unwrap()
}

#[test]
fn an_eval_of_each_outcome() {
    let state = sample::finished();
    let names = ["e0002", "e0003", "e0004", "e0005", "e0008"];
    insta::assert_snapshot!(names.map(|name| shown(&state, name)).join("\n-----\n"));
}

#[test]
fn a_node_in_the_middle_and_the_root() {
    let state = sample::finished();
    insta::assert_snapshot!(
        ["n0000", "n0001", "n0003"].map(|name| shown(&state, name)).join("\n-----\n")
    );
}

#[test]
fn everything_can_be_shown_at_every_moment() {
    let events = sample::events();
    for number in 1..=events.len() {
        let state = sample::after(&events, number);
        let nodes = state.nodes.iter().map(|node| CodePlace::Node(node.id));
        let evals = state.evals.iter().map(|eval| CodePlace::Candidate(eval.id));
        for place in nodes.chain(evals) {
            let text = render_show(&state, place, BELOW).unwrap();
            assert!(text.contains(&place.to_string()) && text.ends_with('\n'), "{text}");
            assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
        }
        assert_eq!(render_show(&state, CodePlace::Node(state.next_node_id()), BELOW), None);
        assert_eq!(render_show(&state, CodePlace::Candidate(state.next_eval_id()), BELOW), None);
    }
}

#[test]
fn a_log_has_one_line_for_each_event() {
    let events = sample::events();
    let lines: Vec<_> =
        events.iter().map(|event| log::format_log_line(sample::now(), event)).collect();
    assert!(lines.iter().all(|line| line.ends_with('\n') && line.lines().count() == 1));
    insta::assert_snapshot!(lines.concat());
}

#[test]
fn a_takeover_says_from_whom_and_why() {
    let at = sample::now();
    let from = || RunnerProcess {
        pid: 4711,
        hostname: "night\u{1b}[2J".to_owned(),
        created_at: at,
        last_heartbeat_at: at,
    };
    let check = |from, because, expected: &str| {
        let line = log::format_log_line(at, &Event::LockTakenOver { from, because, at });
        let what = line.split_once("  run     ").map(|(_, what)| what.trim_end());
        assert_eq!(what, Some(expected), "{line}");
    };
    let known = "taken over from process 4711 on `night [2J`, ";
    check(Some(from()), TakeoverReason::OwnerDead, &format!("{known}which is dead"));
    check(
        Some(from()),
        TakeoverReason::HeartbeatStale,
        &format!("{known}which was silent for too long"),
    );
    check(Some(from()), TakeoverReason::Forced, &format!("{known}by force"));
    check(None, TakeoverReason::Forced, "taken over from a process that is not known, by force");
}

#[test]
fn a_wish_to_remove_is_counted() {
    let leftover = |kind, number| Leftover { place: CodePlace::Node(NodeId::new(number)), kind };
    let worktrees = (0..2).map(|number| leftover(LeftoverKind::Worktree, number));
    let leftovers = worktrees.chain([leftover(LeftoverKind::Branch, 1)]).collect();
    let line = log::format_log_line(sample::now(), &Event::RemovalAsked { leftovers });
    assert!(line.ends_with("  run     to be removed: 2 worktrees, 1 ref\n"), "{line}");
}

/// The depth limit may be lowered below the depths that are done.
#[test]
fn depths_beyond_the_reach_are_done_all_the_same() {
    let done = |max_depth| {
        let mut facts = sample::finished().into_facts();
        facts.limits.max_depth = max_depth;
        let text = render_status(&facts, UnansweredCalls::default(), None, &[], WAY_ON);
        let line = text.lines().find_map(|line| line.strip_prefix("depth ")).map(str::trim);
        line.map(str::to_owned)
    };
    let closed = u32::try_from(sample::finished().closed.len()).unwrap();
    assert_eq!(done(closed), Some(format!("{closed} of {closed} done")));
    let expected = format!("{closed} done, more than the {} that are wanted now", closed - 1);
    assert_eq!(done(closed - 1), Some(expected));
}

#[test]
fn runs_are_listed_however_they_stand() {
    let events = sample::events();
    let (open, over) = (sample::after(&events, 5), sample::finished());
    let mut to_stop = (*open).clone();
    to_stop.history.stop_after = Some(to_stop.depth);
    let listed = |run: &str, hours: Option<u64>, found| ListedRun {
        run: run.to_owned(),
        age: hours.map(|hours| Duration::from_secs(hours * 3600)),
        digest: found,
    };
    let by = || Some("process 7 on `night`".to_owned());
    let spent = |calls_without_price| {
        let (usage, cost) = (TokenUsage::default(), Cost::from_dollars(12.345));
        let mut bills = RoleBills::default();
        bills.add(
            AgentRole::Coder,
            AgentBill { calls: 2, calls_without_price, usage, cost, millis: 0 },
        );
        bills
    };
    let runs = [
        listed("tonight", Some(1), Ok(RunDigest::from_facts(&open, by(), WAY_ON))),
        listed("killed", Some(3), Ok(RunDigest::from_facts(&open, None, "treebeam resume killed"))),
        listed("soon", Some(1), Ok(RunDigest::from_facts(&to_stop, by(), WAY_ON))),
        listed(
            "later",
            Some(1),
            Ok(RunDigest::from_facts(&to_stop, None, "treebeam resume later")),
        ),
        listed("20260101-000000", Some(72), Ok(RunDigest::from_facts(&over, None, WAY_ON))),
        listed(
            "priced",
            Some(1),
            Ok(RunDigest { spent: spent(0), ..RunDigest::from_facts(&over, None, WAY_ON) }),
        ),
        listed(
            "partly",
            Some(1),
            Ok(RunDigest { spent: spent(1), ..RunDigest::from_facts(&over, None, WAY_ON) }),
        ),
        listed(
            "unpriced",
            Some(1),
            Ok(RunDigest { spent: spent(2), ..RunDigest::from_facts(&over, None, WAY_ON) }),
        ),
        listed("bad", None, Err("`journal.jsonl` line 3: the checksum\ndoes not fit".to_owned())),
    ];
    assert_eq!(
        runs.each_ref().map(ListedRun::status_word),
        [
            "running",
            "resumable",
            "running",
            "resumable",
            "stopped",
            "stopped",
            "stopped",
            "stopped",
            "unreadable"
        ]
    );
    insta::assert_snapshot!(render_run_list(&runs));
}
