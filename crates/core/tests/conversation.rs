//! Replay of conversations: limits, order and determinism for any input, and the content of forks.

#![cfg(test)]

use proptest::prelude::*;
use treebeam_core::conversation::{
    Continuation, Conversation, PastTurn, WrittenSummary, count_summarised_turns, pack_turns,
    pack_with_summary,
};
use treebeam_core::id::{NodeId, TurnId};

fn turn_id(number: usize) -> TurnId {
    TurnId { node: NodeId::new(7), number: u32::try_from(number).expect("a small number") }
}

fn past(number: usize, in_short: &str, text: Option<String>) -> PastTurn {
    let in_short = in_short.to_owned();
    PastTurn { turn_id: turn_id(number), in_short, text, continuation: None }
}

fn pasts() -> impl Strategy<Value = Vec<PastTurn>> {
    let text = proptest::option::weighted(0.9, "(\\PC|\n|`|ü){0,120}");
    let one = ("(\\PC){0,80}", text);
    proptest::collection::vec(one, 0..20).prop_map(|turns| {
        let turns = turns.into_iter().enumerate();
        turns.map(|(n, (short, text))| past(n + 1, &short, text)).collect()
    })
}

fn chars(text: &str) -> usize {
    text.chars().count()
}

proptest! {
    #[test]
    fn no_memory_is_longer_than_its_limit(past in pasts(), window in 0_usize..15, most in 0_usize..3000) {
        let told = pack_turns(&past, window, most);
        prop_assert!(chars(&told) <= most, "{} of {most}: {told}", chars(&told));
        prop_assert_eq!(&told, &pack_turns(&past, window, most));
        prop_assert_eq!(told.is_empty(), past.is_empty() || most == 0);
    }

    #[test]
    fn the_newest_turn_and_the_summary_stay(past in pasts(), window in 1_usize..15, most in 400_usize..3000) {
        let told = pack_turns(&past, window, most);
        let newest = past.last().map(|past| format!("TURN {}:", past.turn_id));
        prop_assert!(newest.is_none_or(|newest| told.contains(&newest)), "{told}");
        let whole = past.iter().filter(|past| told.contains(&format!("TURN {}:", past.turn_id)));
        let whole = whole.count();
        prop_assert!(whole <= window);
        prop_assert_eq!(told.contains("SUMMARY OF EARLIER TURNS"), whole < past.len(), "{}", told);
    }

    /// If a turn is rendered in full, so are all newer ones; more room never shows fewer turns.
    #[test]
    fn the_oldest_goes_first(past in pasts(), window in 1_usize..15, most in 400_usize..3000) {
        let is_told = |told: &str, past: &PastTurn| told.contains(&format!("TURN {}:", past.turn_id));
        let told = pack_turns(&past, window, most);
        let first = past.iter().position(|past| is_told(&told, past)).unwrap_or(past.len());
        prop_assert!(past[first..].iter().all(|past| is_told(&told, past)), "{told}");
        let more = pack_turns(&past, window, 100_000);
        let all = past.len().min(window);
        prop_assert_eq!(past.iter().filter(|past| is_told(&more, past)).count(), all);
    }

    /// A written summary replaces the lines of the turns it covers, within the same limits; a
    /// summary of other turns is not used.
    #[test]
    fn what_somebody_wrote_stands_for_its_turns(
        past in pasts(), text in "(\\PC|\n){1,400}", until in 0_usize..22, window in 1_usize..15, most in 0_usize..3000,
    ) {
        let written = WrittenSummary { until: turn_id(until), text: format!("WRITTEN {text}") };
        let told = pack_with_summary(&past, Some(&written), window, most);
        prop_assert!(chars(&told) <= most, "{} of {most}: {told}", chars(&told));
        prop_assert_eq!(&told, &pack_with_summary(&past, Some(&written), window, most));
        let whole = |past: &&PastTurn| told.contains(&format!("TURN {}:", past.turn_id));
        let older = past.len() - past.iter().filter(whole).count();
        let is_about_older = (1..=older).contains(&until);
        prop_assert!(is_about_older || !told.contains("WRITTEN"), "{until} of {older}: {told}");
        prop_assert!(!is_about_older || most < 400 || told.contains("WRITTEN"), "{told}");
        let line = |number: usize| told.contains(&format!("- {}: ", turn_id(number)));
        prop_assert!(!is_about_older || (1..=until).all(|number| !line(number)), "{told}");
        prop_assert_eq!(pack_with_summary(&past, None, window, most), pack_turns(&past, window, most));
    }

    #[test]
    fn what_is_told_in_short_is_what_is_not_told_whole(
        past in pasts(), window in 1_usize..15, most in 400_usize..3000,
    ) {
        let told = pack_turns(&past, window, most);
        let whole = past.iter().filter(|past| told.contains(&format!("TURN {}:", past.turn_id)));
        prop_assert_eq!(count_summarised_turns(&past, window, most), past.len() - whole.count());
    }
}

#[test]
fn what_is_too_long_is_cut_with_a_mark() {
    let long = past(2, "3 asked for", Some("x".repeat(5000)));
    let told = pack_turns(&[past(1, "2 asked for", Some("short".to_owned())), long], 12, 500);
    assert_eq!(chars(&told), 500);
    assert!(told.starts_with("SUMMARY OF EARLIER TURNS\n- c0007-t1: 2 asked for\n"), "{told}");
    assert!(
        told.contains("TURN c0007-t2: 3 asked for\nxxx") && told.ends_with("… (cut)\n"),
        "{told}"
    );
    let lines: Vec<PastTurn> = (1..50).map(|n| past(n, &"y".repeat(90), None)).collect();
    let told = pack_turns(&lines, 1, 800);
    assert!(told.contains("c0007-t48: ") && !told.contains("c0007-t1: "), "{told}");
}

#[test]
fn a_fork_knows_nothing_of_what_came_after_it() {
    let named = |id: &str| Some(Continuation { id: id.to_owned(), tokens: 1, taken: None });
    let mut turns: Vec<PastTurn> =
        (1..=3).map(|n| past(n, "1 asked for", Some(n.to_string()))).collect();
    turns[1].continuation = named("r-2");
    let whole = Conversation { node_id: NodeId::new(7), fork_from_turn_id: None, turns };
    assert_eq!(whole.latest_continuation(), None, "the newest answer has no name");
    assert_eq!(whole.next_turn(), turn_id(4));
    let fork = whole.fork_at(NodeId::new(9), turn_id(2)).expect("such a turn");
    assert_eq!(fork.latest_turn(), Some(turn_id(2)));
    assert_eq!(fork.latest_continuation().map(|from| from.id.as_str()), Some("r-2"));
    assert_eq!(fork.next_turn(), TurnId { node: NodeId::new(9), number: 1 });
    assert_eq!(whole.fork_at(NodeId::new(9), turn_id(9)), None);
}
