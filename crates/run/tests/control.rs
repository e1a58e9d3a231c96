//! The control group, with ports in memory: ideas that are tried on the root alone. The tree is
//! independent of it; cut off anywhere, with any number of workers, the run ends the same.

#![cfg(test)]

use proptest::prelude::*;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use treebeam_core::audit;
use treebeam_core::event::{Event, StopReason};
use treebeam_core::facts::{Eval, Facts, RunHistory, Stage};
use treebeam_core::group::EvalGroup;
use treebeam_core::id::{EvalId, NodeId};
use treebeam_core::num::Finite;
use treebeam_core::plan::{self, RedoKind};
use treebeam_core::policy::{ContextStrategy, DedupeScope, FixedSettings, RunLimits};
use treebeam_core::rank;
use treebeam_core::state::State;
use treebeam_run::port::{Clock as _, MessageContent, RecordedMoment, UserIdea};
use treebeam_run::{RunHalt, drive_run};
use treebeam_score::versus::{
    ComparedSides, ControlComparison, LeadingSide, SideResult, compare_with_control, side_verdict,
};
use treebeam_testkit::journal::MemoryJournal;
use treebeam_testkit::memory::{Disk, MemoryWorld};

fn number(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).expect("not zero")
}

fn meaning(control: Option<&str>) -> FixedSettings {
    FixedSettings {
        ideas_per_node: number(4),
        beam_width: number(2),
        sweep_config_limit: Some(number(4)),
        control: control.map(|text| text.parse().expect("a control")),
        ..FixedSettings::default()
    }
}

fn reach(workers: u32) -> RunLimits {
    RunLimits { max_depth: 3, max_parallel_evals: number(workers), ..RunLimits::default() }
}

fn go(journal: &mut MemoryJournal, world: &MemoryWorld) -> Result<State, RunHalt> {
    drive_run(journal.state(), world.ports(), journal, &mut |_, _| {})
}

/// A whole run, and its disk at the end.
fn whole(seed: u64, control: Option<&str>, reach: RunLimits) -> (State, Disk) {
    let world = MemoryWorld::new(seed, seed);
    let mut journal = MemoryJournal::begun(meaning(control), reach);
    let end = go(&mut journal, &world).expect("a run");
    (end, world.disk())
}

fn of(facts: &Facts, group: EvalGroup) -> impl Iterator<Item = Cow<'_, Eval>> {
    facts.evals.iter().filter(move |eval| eval.group == group)
}

#[derive(PartialEq)]
struct Settled {
    facts: Facts,
    refs: BTreeMap<String, String>,
    worktrees: Vec<String>,
    ideas: Vec<(String, Vec<u8>)>,
}

fn settled(state: State, disk: Disk) -> Settled {
    let mut facts = state.into_facts();
    facts.history = RunHistory::default();
    facts.limits.max_parallel_evals = NonZeroU32::MIN;
    let ideas = disk.files.into_iter().filter(|(path, _)| path.starts_with("node_ideas/"));
    let worktrees = disk.worktrees.into_keys().collect();
    Settled { facts, refs: disk.refs, worktrees, ideas: ideas.collect() }
}

#[test]
fn a_run_that_is_cut_off_after_any_event_ends_the_same() {
    let begun = |workers| {
        let one = FixedSettings { beam_width: number(1), ..meaning(Some("best-of-n=0.4")) };
        MemoryJournal::begun(one, RunLimits { max_depth: 2, ..reach(workers) })
    };
    let world = MemoryWorld::new(7, 7);
    let mut clean = begun(1);
    let end = go(&mut clean, &world).expect("a whole run");
    assert!(end.control.len() > 1 && of(&end, EvalGroup::Control).count() > 3, "worth cutting");
    let expected = settled(end, world.disk());
    for workers in [1, 4] {
        for cut in 1..clean.events.len() {
            let world = MemoryWorld::new(7, 7);
            let mut journal = begun(workers);
            journal.fuse = Some(cut);
            if go(&mut journal, &world).is_err() && cut % 2 == 0 {
                world.restart();
            }
            journal.fuse = None;
            let resumed = go(&mut journal, &world).expect("a resumed run");
            assert_eq!(journal.state(), resumed, "the events lead to the state");
            let same = settled(resumed, world.disk()) == expected;
            assert!(same, "cut after event {cut} with {workers} workers");
        }
    }
}

/// The result of the tree without ids: ideas, their nodes, results and decisions.
fn tree(facts: &Facts) -> Vec<(u32, NodeId, String, String)> {
    let told = |eval: &Eval| {
        let fate = if let Stage::Decided(measured, word, fate) = &eval.stage {
            format!("{fate:?} {} {:?}", word.to_verdict(measured).reason(), measured.scored.vs_root)
        } else {
            format!("{:?}", std::mem::discriminant(&eval.stage))
        };
        (eval.depth.0, eval.parent, eval.idea.chain_id().to_owned(), fate)
    };
    of(facts, EvalGroup::Tree).map(|eval| told(&eval)).collect()
}

#[test]
fn the_tree_is_the_same_with_and_without_it_and_neither_is_told_of_the_other() {
    for seed in 0..6 {
        let run = |control| {
            let mut meaning = meaning(control);
            if seed % 2 == 1 {
                meaning.ideas_context_strategy = ContextStrategy::GlobalPriorIdeas;
                meaning.dedupe_scope = DedupeScope::Global;
            }
            let world = MemoryWorld::new(seed, seed);
            let mut journal = MemoryJournal::begun(meaning, reach(2));
            (go(&mut journal, &world).expect("a run"), world.disk())
        };
        let (alone, _) = run(None);
        let (beside, disk) = run(Some("best-of-n"));
        assert_eq!(tree(&alone), tree(&beside), "seed {seed}");
        assert_eq!(alone.stop_reason(), beside.stop_reason());
        let contexts = disk.files.iter().filter(|(path, _)| path.contains("/prompt_context"));
        for (path, text) in contexts {
            let text = String::from_utf8_lossy(text);
            let of_control = path.starts_with("node_ideas/control/");
            let strangers = if of_control { "ideas-n0001" } else { "ideas-control" };
            assert!(!text.contains(strangers), "{path}: {text}");
        }
    }
}

#[test]
fn each_question_tells_all_that_was_tried_on_the_root_before() {
    let (end, disk) = whole(7, Some("best-of-n=0.4"), reach(1));
    let text = |number: u32| {
        let path = match number {
            1 => "node_ideas/control/prompt_context.txt".to_owned(),
            n => format!("node_ideas/control/prompt_context_{n}.txt"),
        };
        String::from_utf8(disk.files.get(&path).expect("a context").clone()).expect("text")
    };
    let (first, second) = (text(1), text(2));
    for eval in end.evals.iter().filter(|eval| eval.depth.0 == 0) {
        let title = &eval.idea.title;
        assert!(second.contains(&format!("{title}: on n0000, ")), "{title}: {second}");
        // At the same depth no outcome is known yet, whichever eval was faster.
        let now = first.contains(&format!("{title}: under way"));
        assert_eq!(now, eval.group == EvalGroup::Tree, "{title}: {first}");
    }
}

#[test]
fn a_control_eval_is_no_part_of_the_tree() {
    let (end, disk) = whole(7, Some("best-of-n=0.4"), reach(2));
    assert!(audit::check_structure(&end).is_empty() && audit::check_beams(&end).is_empty());
    for eval in of(&end, EvalGroup::Control) {
        assert_eq!(eval.parent, NodeId::ROOT);
        assert!(matches!(eval.stage, Stage::Scored(_) | Stage::Failed { .. }), "{:?}", eval.stage);
        assert!(eval.turn_id().is_none(), "it is no turn of the root's conversation");
        assert!(eval.idea.path.as_str().starts_with("node_ideas/control/"));
        let name = format!("e{}", eval.id);
        assert!(!disk.refs.contains_key(&name) && !disk.worktrees.contains_key(&name), "{name}");
    }
    for closed in &end.closed {
        assert!(closed.beam.iter().all(|id| end.eval(*id).expect("one").group == EvalGroup::Tree));
    }
    // The ids of a depth's own evals come first.
    for depth in 0..3 {
        let groups = end.evals.iter().filter(|eval| eval.depth.0 == depth).map(|eval| eval.group);
        assert!(groups.is_sorted(), "depth {depth}");
    }
    let mut promoted = end.into_facts();
    let first =
        promoted.evals.unpack_all().iter_mut().find(|eval| eval.group == EvalGroup::Control);
    first.expect("one").group = EvalGroup::Tree;
    assert_eq!(audit::check_structure(&promoted).len(), 1, "one that changes sides is found");
}

#[test]
fn each_group_keeps_to_its_part_of_the_budget() {
    for most in [0, 1, 3, 4, 9, 16, 20] {
        let limited = RunLimits { max_total_idea_evals: Some(most), ..reach(2) };
        let (end, _) = whole(7, Some("best-of-n"), limited);
        let (tree, control) =
            (of(&end, EvalGroup::Tree).count(), of(&end, EvalGroup::Control).count());
        let part = usize::try_from(most / 4).expect("a number");
        let rest = usize::try_from(most).expect("a number") - part;
        assert_eq!((tree, control), (rest.min(20), part), "of {most}");
        if most < 20 {
            assert_eq!(end.stop_reason(), Some(StopReason::MaxEvals), "of {most}");
        }
    }
}

#[test]
fn a_budget_of_money_leaves_it_out_and_it_catches_up() {
    let mut seen = 0;
    for answers in 1..24 {
        let world = MemoryWorld::new(7, 7).with_purse(answers);
        let mut journal = MemoryJournal::begun(meaning(Some("best-of-n=0.4")), reach(1));
        let stopped = go(&mut journal, &world).expect("a run");
        if stopped.stop_reason() != Some(StopReason::MaxCost) {
            continue;
        }
        seen += 1;
        assert!(audit::check_structure(&stopped).is_empty(), "{answers} answers");
        journal.events.push(Event::SettingsChanged { reach: reach(1) });
        let end = go(&mut journal, &world.fork(7)).expect("a run");
        let (tree, control) =
            (of(&end, EvalGroup::Tree).count(), of(&end, EvalGroup::Control).count());
        assert_eq!(control, tree * 2 / 3, "beside {tree}, after {answers} answers");
    }
    assert!(seen > 10, "{seen}");
}

#[test]
fn ids_do_not_depend_on_when_an_idea_of_the_users_came() {
    let generated = |after: Option<u64>| {
        let world = MemoryWorld::new(7, 7);
        if let Some(after) = after {
            let own = UserIdea { node: Some(NodeId::ROOT), text: "IDEA: gain 1 mine\n".to_owned() };
            world.post("20260101T000000-000000001-1", MessageContent::Idea(own), after);
        }
        let one = RunLimits { max_depth: 1, ..reach(1) };
        let mut journal = MemoryJournal::begun(meaning(Some("best-of-n=0.5")), one);
        let end = go(&mut journal, &world).expect("a run");
        let asked = end.evals.iter().filter(|eval| eval.idea.turn.is_some());
        asked.map(|eval| (eval.id, eval.group, eval.idea.clone())).collect::<Vec<_>>()
    };
    let expected = generated(None);
    assert_eq!(expected.len(), 8);
    for after in 0..25 {
        assert_eq!(generated(Some(after)), expected, "after {after} looks");
    }
}

#[test]
fn what_is_done_again_stays_on_its_side() {
    let scored = |state: &Facts| {
        let is_scored = |eval: &Eval| matches!(eval.stage, Stage::Scored(_));
        state.depth.0 == 0 && of(state, EvalGroup::Control).any(|eval| is_scored(&eval))
    };
    let cut_off = (0..20).find_map(|seed| {
        let world = MemoryWorld::new(seed, seed);
        let mut journal = MemoryJournal::begun(meaning(Some("best-of-n=0.5")), reach(1));
        go(&mut journal, &world).expect("a run");
        let whole = journal.events.len();
        let cut = (1..whole).find(|cut| {
            let state = State::from_events(&journal.events[..*cut]).expect("events of a run");
            scored(&state) && !state.queued_evals().all(|(_, evals)| evals.is_empty())
        })?;
        let world = MemoryWorld::new(seed, seed);
        let mut journal = MemoryJournal::begun(meaning(Some("best-of-n=0.5")), reach(1));
        journal.fuse = Some(cut);
        assert!(go(&mut journal, &world).is_err());
        scored(&journal.state()).then_some((journal, world))
    });
    let (mut journal, world) = cut_off.expect("a moment at which one of them is scored");
    journal.fuse = None;
    let state = journal.state();
    let wishes = [RedoKind::RetryFailed, RedoKind::RerunEvals, RedoKind::RegenerateIdeas];
    let at = world.recorded_time(RecordedMoment::SentBack(state.next_eval_id()));
    let sent = plan::send_back(&state, &wishes, &|_| true, at).expect("something to do again");
    let again: Vec<_> = sent.rerun.iter().map(|rerun| (rerun.of, rerun.eval)).collect();
    journal.events.push(Event::SentBack(Box::new(sent)));
    let end = go(&mut journal, &world).expect("a run");
    let group = |id: EvalId| end.eval(id).expect("an eval").group;
    assert!(again.iter().any(|(of, _)| group(*of) == EvalGroup::Control));
    assert!(again.iter().all(|(of, eval)| group(*of) == group(*eval)));
    assert!(audit::check_structure(&end).is_empty());
}

/// The best score of the evals that pass the gate, computed independently; 0 for the root.
fn best(facts: &Facts, evals: &[Cow<'_, Eval>]) -> f64 {
    let passed =
        evals.iter().filter(|eval| side_verdict(facts, eval).is_some_and(|word| word.has_passed()));
    let scores =
        passed.filter_map(|eval| rank::rank_score(&eval.scored_candidate()?.scored.vs_root));
    scores.map(Finite::get).fold(0.0, f64::max)
}

fn is_shared(eval: &Eval) -> bool {
    eval.group == EvalGroup::Tree && eval.parent == NodeId::ROOT
}

/// The best score of those that only one side has.
fn best_own(facts: &Facts, evals: &[Cow<'_, Eval>]) -> f64 {
    let own: Vec<_> = evals.iter().filter(|eval| !is_shared(eval)).cloned().collect();
    best(facts, &own)
}

fn check(end: &Facts, compared: &ComparedSides) {
    let tree: Vec<_> = of(end, EvalGroup::Tree).collect();
    let root: Vec<_> = end.evals.iter().filter(|eval| eval.parent == NodeId::ROOT).collect();
    let shared = root.iter().filter(|eval| is_shared(eval)).count();
    let own = tree.len().min(root.len()) - shared;
    let first = |evals: &[Cow<'_, Eval>]| -> Vec<_> {
        let (both, mine): (Vec<_>, Vec<_>) =
            evals.iter().map(|eval| (**eval).clone()).partition(is_shared);
        both.into_iter().chain(mine.into_iter().take(own)).map(Cow::<Eval>::Owned).collect()
    };
    let (tree_first, root_first) = (first(&tree), first(&root));
    let is = |side: &SideResult, evals: &[Cow<'_, Eval>]| {
        assert_eq!(usize::try_from(side.spent.evals).ok(), Some(evals.len()));
        assert!((side.rank_score().get() - best_own(end, evals)).abs() < 1e-12);
        let coding: u64 =
            evals.iter().map(|eval| eval.total_spend().total().usage.total_tokens()).sum();
        assert!(side.spent.bills.total().usage.total_tokens() >= coding);
    };
    is(&compared.tree, &tree_first);
    is(&compared.root, &root_first);
    is(&compared.whole_tree, &tree);
    is(&compared.whole_root, &root);
    // Both sides share the evals of the tree on the root; everything together is the total spend.
    assert_eq!(usize::try_from(compared.shared).ok(), Some(shared));
    let all = compared.whole_tree.spent.bills.total().usage.total_tokens()
        + compared.control.bills.total().usage.total_tokens();
    assert_eq!(all, end.total_spend().total().usage.total_tokens());
    let expected = match best_own(end, &tree_first).total_cmp(&best_own(end, &root_first)) {
        std::cmp::Ordering::Greater => LeadingSide::Tree,
        std::cmp::Ordering::Equal => LeadingSide::Neither,
        std::cmp::Ordering::Less => LeadingSide::Control,
    };
    assert_eq!(compared.ahead, expected);
}

#[test]
fn both_sides_are_compared_at_the_same_spend() {
    let mut seen = Vec::new();
    for seed in 0..30 {
        let (end, _) = whole(seed, Some("best-of-n=0.4"), reach(1));
        match compare_with_control(&end).expect("a control group") {
            ControlComparison::Compared(compared) => {
                check(&end, &compared);
                seen.push(compared.ahead);
            }
            ControlComparison::NothingToCompare { .. } => {
                assert_eq!(end.nodes.len(), 1, "seed {seed}");
            }
        }
    }
    for ahead in [LeadingSide::Tree, LeadingSide::Neither, LeadingSide::Control] {
        assert!(seen.contains(&ahead), "{ahead:?} is nowhere among {seen:?}");
    }
    let (alone, _) = whole(7, None, reach(1));
    assert_eq!(compare_with_control(&alone), None);
    let (flat, _) = whole(7, Some("best-of-n=0.5"), RunLimits { max_depth: 1, ..reach(1) });
    assert!(
        matches!(compare_with_control(&flat), Some(ControlComparison::NothingToCompare { control }) if control.evals == 4)
    );
}

#[test]
fn a_best_that_both_sides_share_tells_neither_ahead() {
    let mut seen = 0;
    for seed in 0..60 {
        let (end, _) = whole(seed, Some("best-of-n=0.4"), reach(1));
        let Some(ControlComparison::Compared(compared)) = compare_with_control(&end) else {
            continue;
        };
        let shared: Vec<_> = end.evals.iter().filter(|eval| is_shared(eval)).collect();
        let own = |group| -> Vec<_> {
            let own = of(&end, group).filter(|eval| !is_shared(eval));
            own.take((compared.tree.spent.evals - compared.shared).try_into().unwrap()).collect()
        };
        let (tree, control) =
            (best(&end, &own(EvalGroup::Tree)), best(&end, &own(EvalGroup::Control)));
        if best(&end, &shared) > control && control > tree {
            seen += 1;
            assert_eq!(compared.ahead, LeadingSide::Control, "seed {seed}");
            assert!((compared.root.rank_score().get() - control).abs() < 1e-12, "seed {seed}");
        }
    }
    assert!(seen > 0, "no control group that is ahead below what both share");
}

/// A frontier that stays is tried again at each depth: then the tree has nothing of its own,
/// whatever the control group found.
#[test]
fn a_tree_that_never_left_the_root_is_compared_with_nothing() {
    let mut seen = 0;
    for seed in 0..300 {
        let stays = RunLimits { stop_on_empty_frontier: false, max_depth: 2, ..reach(1) };
        let (end, _) = whole(seed, Some("best-of-n=0.4"), stays);
        if end.evals.iter().any(|eval| eval.parent != NodeId::ROOT) {
            continue;
        }
        seen += 1;
        let found = compare_with_control(&end).expect("a control group");
        assert!(
            matches!(found, ControlComparison::NothingToCompare { .. }),
            "seed {seed}: {found:?}"
        );
    }
    assert!(seen > 0, "no such tree");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_order_of_completion_gives_the_same_run(
        seed in 0_u64..1000,
        order in any::<u64>(),
        workers in 2_u32..9,
        scope in prop_oneof![
            Just(DedupeScope::None),
            Just(DedupeScope::Global),
            Just(DedupeScope::NodePlusAncestors)
        ],
        budget in prop_oneof![Just(None), (1_u32..24).prop_map(Some)],
        part in prop_oneof![Just("best-of-n"), Just("best-of-n=0.6")],
        stop_on_empty_frontier: bool,
    ) {
        let run = |workers, order| {
            let world = MemoryWorld::new(seed, order);
            let reach = RunLimits { max_total_idea_evals: budget, stop_on_empty_frontier, ..reach(workers) };
            let meaning = FixedSettings { dedupe_scope: scope, ..meaning(Some(part)) };
            let mut journal = MemoryJournal::begun(meaning, reach);
            let end = go(&mut journal, &world).expect("a run");
            let over = |eval: &Eval| match eval.group {
                EvalGroup::Tree => matches!(eval.stage, Stage::Decided(..) | Stage::Failed { .. }),
                EvalGroup::Control => matches!(eval.stage, Stage::Scored(..) | Stage::Failed { .. }),
            };
            prop_assert!(end.evals.iter().all(|eval| over(&eval)));
            prop_assert_eq!(&journal.state(), &end);
            prop_assert!(audit::check_structure(&end).is_empty() && audit::check_beams(&end).is_empty());
            Ok(settled(end, world.disk()))
        };
        prop_assert!(run(1, 0)? == run(workers, order)?);
    }
}
