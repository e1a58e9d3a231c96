//! Checks figures of the page against values computed by hand: luck, costs by model, times.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod sample;

use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;
use treebeam_core::bill::{AgentBill, RoleBills};
use treebeam_core::event::{Event, SweepSubject};
use treebeam_core::evidence::PairedDifference;
use treebeam_core::facts::{Eval, Facts, ScoredCandidate, Stage};
use treebeam_core::id::{EvalId, NodeId};
use treebeam_core::num::Finite;
use treebeam_core::policy::{Direction, RecordedAgents};
use treebeam_core::role::AgentRole;
use treebeam_score::compare::{ComparisonDetails, MetricUse};
use treebeam_score::luck::{GainPosition, Luck, LuckEstimate, LuckYardstick, estimate_luck};
use treebeam_view::html::{render_costs, render_timeline, render_trust};
use treebeam_view::render_tree_summary;

// ---- luck

/// The sample, in which every sweep is complete.
fn facts() -> Facts {
    let mut facts = (*sample::finished()).clone();
    for eval in facts.evals.unpack_all() {
        change(eval, |measured| {
            let complete = &mut measured.scored.completeness;
            (complete.ok_count, complete.error_count) = (complete.expected_count, 0);
        });
    }
    facts
}

/// Changes the scores of an eval that has some.
fn change(eval: &mut Eval, how: impl FnOnce(&mut ScoredCandidate)) {
    if let Stage::Scored(measured) | Stage::Decided(measured, ..) = &mut eval.stage {
        how(measured);
    }
}

/// The sample, in which the mean difference of each candidate has this standard error.
fn with_error(error: f64, pairs: u32) -> Facts {
    let mut facts = facts();
    let end = |half: f64| Finite::new(half * 1.959_963_984_540_054).unwrap();
    let (low, high) = (end(-error), end(error));
    let paired =
        PairedDifference { pairs, mean_difference: Finite::ZERO, wins: 0, losses: 0, low, high };
    for eval in facts.evals.unpack_all() {
        change(eval, |measured| measured.scored.vs_parent.paired = Some(paired));
    }
    facts
}

fn close(number: Finite, expect: f64) {
    assert!((number.get() - expect).abs() < 1e-6, "{number} is not {expect}");
}

/// Depth 0 has the changes 0.3, 0.8, 0.05 and -0.4, depth 1 0.25 and 0.9. e(4) = 1.045756 and e(2)
/// = 0.681037.
#[test]
fn luck_is_what_it_is_by_hand() {
    let Luck { depths, without_effect, gain, by_configurations, by_candidates } =
        estimate_luck(&with_error(0.1, 5)).unwrap();
    let counts: Vec<_> = depths.iter().map(|at| (at.depth.0, at.candidates, at.step)).collect();
    assert_eq!(counts, [(0, 4, Some(EvalId::new(1))), (1, 2, Some(EvalId::new(6)))]);
    assert_eq!(without_effect, 0);
    close(gain.unwrap(), 0.55);
    let LuckYardstick { noise, expected, rarely } = by_configurations.yardstick().unwrap();
    close(noise, 0.1);
    close(expected, 0.1 * (1.045_755_5 + 0.681_037_1));
    assert!(rarely > expected);
    // Their median is 0.275, the distances from it 0.675, 0.225, 0.025, 0.025, 0.525 and 0.625, and
    // of these 0.375.
    let LuckYardstick { noise, expected, .. } = by_candidates.yardstick().unwrap();
    close(noise, 0.375 * 1.482_602_218_5);
    close(expected, 0.960_055_0);
}

#[test]
fn what_cannot_be_the_best_is_not_counted() {
    let mut facts = with_error(0.1, 4);
    assert_eq!(
        estimate_luck(&facts).unwrap().by_configurations,
        LuckEstimate::TooFew,
        "configurations"
    );
    let evals = facts.evals.unpack_all();
    change(&mut evals[0], |measured| measured.scored.has_effect = false);
    change(&mut evals[1], |measured| measured.scored.vs_parent.primary_delta = None);
    let left = estimate_luck(&facts).unwrap();
    assert_eq!((left.candidate_count(), left.without_effect), (4, 1));
    assert_eq!(
        (left.by_candidates, left.gain_position()),
        (LuckEstimate::TooFew, None),
        "candidates"
    );
    assert!(render_tree_summary(&facts).contains("How large luck is cannot be told"));
    assert_eq!(estimate_luck(&sample::after(&sample::events(), 3)), None);
}

#[test]
fn what_is_not_valid_is_no_draw_and_of_fewer_than_five_nothing_is_told() {
    let mut facts = with_error(0.1, 20);
    let spoilt = |facts: &mut Facts, at: usize, how: &dyn Fn(&mut ScoredCandidate)| {
        change(&mut facts.evals.unpack_all()[at], how);
    };
    spoilt(&mut facts, 0, &|measured| measured.scored.completeness.ok_count = 1);
    let found = estimate_luck(&facts).unwrap();
    assert_eq!(found.candidate_count(), 5);
    assert!(found.by_configurations.yardstick().is_some());
    spoilt(&mut facts, 1, &|measured| measured.scored.form.ragged_rows = 1);
    let found = estimate_luck(&facts).unwrap();
    assert_eq!((found.candidate_count(), found.without_effect), (4, 0));
    assert_eq!(
        (found.by_configurations, found.by_candidates),
        (LuckEstimate::TooFew, LuckEstimate::TooFew)
    );
    let why = "How large luck is cannot be told: there are fewer than 5 valid candidates that changed a figure.";
    assert!(render_tree_summary(&facts).contains(why));
}

/// A twin has the figures of the older candidate with the same code, which counts already.
#[test]
fn a_twin_is_no_draw_of_its_own() {
    let mut facts = with_error(0.1, 20);
    let as_it_was = estimate_luck(&facts).unwrap();
    let older = Some(SweepSubject::Eval(EvalId::FIRST));
    change(&mut facts.evals.unpack_all()[1], |measured| measured.work.same_code_as = older);
    let found = estimate_luck(&facts).unwrap();
    assert_eq!((as_it_was.candidate_count(), found.candidate_count()), (6, 5));
    assert_eq!(found.depths[0].candidates, 3);
    assert_eq!(found.without_effect, as_it_was.without_effect);
}

#[test]
fn the_control_verdict_stands_where_no_candidate_is_valid() {
    let mut facts = facts();
    for eval in facts.evals.unpack_all() {
        change(eval, |measured| measured.scored.completeness.ok_count = 1);
    }
    assert_eq!(estimate_luck(&facts), None);
    assert_eq!(render_trust(&facts, None).into_string(), "");
    facts.settings.control = "best-of-n".parse().ok();
    let page = render_trust(&facts, None).into_string();
    assert!(page.contains("Control: nothing to compare between the tree and the root"), "{page}");
}

#[test]
fn the_same_words_stand_on_the_page_and_in_the_summary() {
    let check = |error: f64, about: &str, standing: GainPosition, words: &str| {
        let facts = with_error(error, 20);
        assert_eq!(estimate_luck(&facts).unwrap().gain_position(), Some(standing));
        let (page, summary) =
            (render_trust(&facts, None).into_string(), render_tree_summary(&facts));
        for text in [&page, &summary.replace('\\', "")] {
            assert!(text.contains("picked from 6 valid candidates, by the very results"), "{text}");
            assert!(text.contains("2 evals ended without a score."), "{text}");
            assert!(text.contains(about), "{text}");
            assert!(text.contains(words), "{text}");
            assert!(text.contains("Judge it on data that the search never saw"), "{text}");
        }
    };
    let between = "This one has a gain of +0.55: more than luck is likely to show by one measure, and not by the other.";
    check(0.1, "about +0.173 to +0.96 in", GainPosition::Between, between);
    // More than the best of a search without effect shows on average, but not a rare value.
    check(
        0.25,
        "about +0.432 to +0.96 in",
        GainPosition::Within,
        "has a gain of +0.55: luck alone may show that.",
    );
}

#[test]
fn no_noise_is_no_measure() {
    let mut facts = with_error(0.0, 20);
    for eval in facts.evals.unpack_all() {
        change(eval, |measured| measured.scored.vs_parent.primary_delta = Some(Finite::ZERO));
    }
    let luck = estimate_luck(&facts).unwrap();
    assert_eq!(luck.by_configurations, LuckEstimate::NoNoise);
    assert_eq!(luck.by_candidates, LuckEstimate::NoNoise);
    assert!(render_tree_summary(&facts).contains("How large luck is cannot be told"));
}

/// The remainder of subtracting equal changes is not noise.
#[test]
fn rounding_is_no_noise() {
    let facts = with_error(4.25e-17, 20);
    let (page, summary) = (render_trust(&facts, None).into_string(), render_tree_summary(&facts));
    for text in [&page, &summary.replace('\\', "")] {
        let words = "By configurations there is no noise to measure by: \
            most candidates change the primary metric alike in all of them.";
        assert!(text.contains(words), "{text}");
        assert!(text.contains("about +0.96 in"), "the other measure is there: {text}");
        assert!(!text.contains("e-17") && !text.contains("00 times"), "{text}");
    }
    let mut alike = with_error(0.0, 20);
    for (number, eval) in (0_u32..).zip(alike.evals.unpack_all()) {
        let delta = Finite::new(0.3 + 1e-16 * f64::from(number % 3));
        change(eval, |measured| measured.scored.vs_parent.primary_delta = delta);
    }
    let said = self::render_tree_summary(&alike);
    assert!(said.contains("there is no noise to measure it by"), "{said}");
    assert!(!said.contains(" times |") && !said.contains("luck is likely"), "{said}");
}

#[test]
fn depths_that_follow_each_other_add_up() {
    let page = render_trust(&with_error(0.1, 20), None).into_string();
    let row = "<th scope=\"row\">0</th><td>4</td><td><a href=\"#e0001\">e0001</a></td><td>+0.3</td>\
        <td>+0.105</td><td>+0.581</td>";
    assert!(page.contains(row), "{page}");
    let all =
        "<th scope=\"row\">all</th><td>6</td><td></td><td>+0.55</td><td>+0.173</td><td>+0.96</td>";
    assert!(page.contains(all), "{page}");
    assert!(page.contains("<td>3.2 times</td>") && page.contains("<td>0.6 times</td>"), "{page}");
}

#[test]
fn a_hold_out_stands_in_place_of_the_advice() {
    let facts = facts();
    let primary = &facts.settings.score.primary;
    let details = |after: f64| {
        let metric = MetricUse {
            column: primary.clone(),
            direction: Direction::Higher,
            weight: Finite::ZERO,
            baseline_mean: 1.0,
            candidate_mean: after,
            raw_improvement: after - 1.0,
            relative_improvement: after - 1.0,
            paired: None,
        };
        let comparison =
            facts.eval(EvalId::FIRST).unwrap().scored_candidate().unwrap().scored.vs_root;
        ComparisonDetails { comparison, columns: Vec::new(), metrics: vec![metric] }
    };
    let (seen, unseen) = (details(1.5), details(1.125));
    let page = render_trust(&facts, Some((&seen, &unseen))).into_string();
    assert!(page.contains("<strong>25 %</strong> of the primary's gain is left"), "{page}");
    assert!(!page.contains("Judge it on data"));
}

#[test]
fn where_nothing_is_better_there_is_nothing_to_trust() {
    let mut facts = facts();
    facts.nodes.truncate(1);
    assert_eq!(facts.best_node(), NodeId::ROOT);
    let page = render_trust(&facts, None).into_string();
    assert!(
        page.contains("No node ranks above the root; 6 valid candidates had figures of their own."),
        "{page}"
    );
    assert!(!page.contains("This one has") && !page.contains("Judge it"), "{page}");
}

// ---- models

fn agents(model: &str) -> RecordedAgents {
    let said = BTreeMap::from([("model".to_owned(), model.to_owned())]);
    RecordedAgents(BTreeMap::from([("coder".to_owned(), said)]))
}

/// The sample, whose coder needs so many calls for each idea, and changes after the first of these
/// events.
fn with_models(changes: &[(usize, &str)]) -> Facts {
    let mut started = sample::started();
    started.agents = agents("small");
    let mut bills = RoleBills::default();
    bills.add(AgentRole::Coder, AgentBill { calls: 1, millis: 1_000, ..AgentBill::default() });
    let mut events = sample::events_of(started);
    for event in &mut events {
        if let Event::Implemented { bills: own, .. } = event {
            own.clone_from(&bills);
        }
    }
    let implemented = |event: &Event| matches!(event, Event::Implemented { .. });
    let ends: Vec<_> = (1..).zip(&events).filter(|(_, event)| implemented(event)).collect();
    let ends: Vec<usize> = ends.into_iter().map(|(end, _)| end).collect();
    for (after, model) in changes.iter().rev() {
        let at = after.checked_sub(1).map_or(1, |last| ends[last]);
        events.insert(at, Event::AgentsChanged { agents: agents(model) });
    }
    (*sample::after(&events, events.len())).clone()
}

/// Returns role, model and calls of each line of the table.
fn lines(facts: &Facts) -> Vec<String> {
    let page = render_costs(facts).into_string();
    let lines = page.split("<tr><th scope=\"row\">").skip(1);
    let cells = lines.map(|line| line.replace("</th><td class=\"words\">", " "));
    cells
        .map(|line| line.replace("</td><td>", " ").split(' ').take(3).collect::<Vec<_>>().join(" "))
        .collect()
}

#[test]
fn each_model_has_what_it_took() {
    assert_eq!(lines(&with_models(&[])), ["coder small 8", "all  8"]);
    let changed = with_models(&[(2, "large"), (5, "huge")]);
    let expect = ["coder small 2", "coder large 3", "coder huge 3", "all  8"];
    assert_eq!(lines(&changed), expect);
    assert_eq!(changed.former_agents.len(), 2);
    let back = with_models(&[(2, "large"), (5, "small")]);
    assert_eq!(lines(&back), ["coder small 5", "coder large 3", "all  8"]);
}

#[test]
fn who_answered_nothing_is_not_remembered() {
    let changed = with_models(&[(0, "large"), (3, "other"), (3, "huge")]);
    assert_eq!(lines(&changed), ["coder large 3", "coder huge 5", "all  8"]);
    assert_eq!(changed.former_agents.len(), 1);
}

// ---- the time line

/// Sweep, implementation and request for ideas whose end is not on record.
#[test]
fn what_is_under_way_is_drawn_and_said() {
    let events = sample::events();
    let pages =
        (1..events.len()).map(|end| render_timeline(&sample::after(&events, end)).into_string());
    let pages: Vec<String> = pages.collect();
    for said in ["being swept", "being implemented", "asked for ideas"] {
        let said = format!("</a> {said}, since <time datetime=\"2026-01-01T00:00:00Z\">");
        assert!(pages.iter().any(|page| page.contains(&said)), "{said}");
    }
    assert!(!render_timeline(&facts()).into_string().contains("Under way"));
}

#[test]
fn what_is_under_way_lasts_until_the_latest_time() {
    let events = sample::events();
    let is_swept =
        |facts: &Facts| facts.evals.iter().any(|eval| matches!(eval.stage, Stage::Sweeping(_)));
    let mut states = (1..events.len()).map(|end| (*sample::after(&events, end)).clone());
    let mut facts = states.find(is_swept).unwrap();
    let at = |seconds: i64| -> Timestamp { sample::now() + SignedDuration::from_secs(seconds) };
    let [first, second, ..] = facts.evals.unpack_all().as_mut_slice() else { panic!("too few") };
    let Stage::Sweeping(work) = &mut first.stage else { panic!("{:?}", first.stage) };
    (work.started_at, work.implemented_at) = (at(20), Some(at(50)));
    second.queued_at = at(100);
    let page = render_timeline(&facts).into_string();
    let bar = "<rect class=\"bar open\" x=\"430\" y=\"2\" width=\"417.5\"";
    assert!(page.contains(bar), "{page}");
    assert!(page.contains("e0001 running: Widen the window"), "{page}");
}

#[test]
fn waiting_and_implementing_can_be_told_from_the_sweep() {
    let mut facts = facts();
    let at = |seconds: i64| -> Timestamp { sample::now() + SignedDuration::from_secs(seconds) };
    let eval = &mut facts.evals.unpack_all()[0];
    eval.queued_at = at(10);
    change(eval, |measured| {
        measured.work.started_at = at(30);
        measured.work.implemented_at = Some(at(60));
        measured.at = at(100);
    });
    let page = render_timeline(&facts).into_string();
    // The drawing goes from 12 to 848, for 100 seconds.
    let line = "<line class=\"waits\" x1=\"95.6\" x2=\"262.8\"";
    assert!(page.contains(line), "{page}");
    let making = "<rect class=\"bar pale kept\" x=\"262.8\" y=\"2\" width=\"250.3\"";
    assert!(page.contains(making), "{page}");
    let full = "<rect class=\"bar kept\" x=\"513.6\" y=\"2\" width=\"333.9\"";
    assert!(page.contains(full), "{page}");
    assert!(page.contains("waited 20 s; implementing 30 s; sweep and score 40 s (70 s)"), "{page}");
}
