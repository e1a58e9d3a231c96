//! Turns made by hand: new ideas, repeats, ideas that lack a part; and arbitrary replies.

use super::*;
use proptest::prelude::*;

fn whole(title: &str) -> String {
    format!("IDEA: {title}\nRATIONALE: r\nREQUIRED_CHANGES: c\n")
}

fn batch(wanted: usize) -> IdeaBatch {
    IdeaBatch::new(wanted, DedupeScope::NodePlusAncestors, BTreeSet::new())
}

fn titles(batch: &IdeaBatch) -> Vec<(u32, String)> {
    batch.texts.iter().map(|(turn, text)| (*turn, idea::idea_title(text))).collect()
}

#[test]
fn what_is_repeated_is_named_and_asked_for_again() {
    let seen = [idea::idea_fingerprint(&whole("old"))].into();
    let mut batch = IdeaBatch::new(2, DedupeScope::NodePlusAncestors, seen);
    batch.add_reply(&[whole("new"), whole("OLD"), whole("new")].concat(), "a1");
    let request = batch.next_request();
    assert_eq!((request.count, request.repeated), (1, vec!["OLD".to_owned(), "new".to_owned()]));
    batch.add_reply(&[whole("newer"), whole("newest")].concat(), "a2");
    assert!(!batch.is_open());
    assert_eq!(titles(&batch), [(1, "new".to_owned()), (2, "newer".to_owned())]);
}

#[test]
fn without_a_scope_nothing_is_a_repeat() {
    let mut batch = IdeaBatch::new(2, DedupeScope::None, BTreeSet::new());
    batch.add_reply(&whole("a").repeat(2), "a1");
    assert_eq!((batch.texts.len(), batch.repeats.len()), (2, 0));
}

#[test]
fn missing_parts_are_asked_for_once() {
    let mut batch = batch(3);
    batch.add_reply(&(whole("a") + "IDEA: b\nIDEA: c\nRATIONALE: r\n"), "a1");
    let request = batch.next_request();
    assert_eq!(request.count, 2);
    let said =
        ["b: it lacks `RATIONALE:` and `REQUIRED_CHANGES:`", "c: it lacks `REQUIRED_CHANGES:`"];
    assert_eq!(request.incomplete, said);
    // The first idea is completed, another is left out, and a new one lacks a part, too.
    batch.add_reply(&(whole("B") + "IDEA: d\n"), "a2");
    assert!(batch.next_request().incomplete.is_empty(), "they are asked for once");
    batch.take_incomplete();
    let expect = [(1, "a".to_owned()), (2, "B".to_owned()), (2, "d".to_owned())];
    assert_eq!(titles(&batch), expect);
}

#[test]
fn what_lacks_a_part_will_do_where_nothing_else_comes() {
    for late in [None, Some("no"), Some("Sorry, no ideas.")] {
        let mut batch = batch(2);
        batch.add_reply("IDEA: a\n", "a1");
        assert!(batch.is_open() && batch.texts.is_empty());
        match late {
            None => {}
            Some("no") => batch.add_missed_turn("nobody is there".to_owned()),
            Some(text) => batch.add_reply(text, "a2"),
        }
        batch.take_incomplete();
        assert_eq!(titles(&batch), [(1, "a".to_owned())], "{late:?}");
    }
}

#[test]
fn a_reply_without_an_idea_says_where_it_is_kept() {
    let mut batch = batch(1);
    for turn in 1..=MAX_IDEA_TURNS {
        assert!(batch.is_open(), "{turn}");
        batch.add_reply("\u{0}\u{1}", &format!("a{turn}.txt"));
    }
    batch.take_incomplete();
    assert!(!batch.is_open());
    assert_eq!(batch.shortfall_reason(), "the reply has no `IDEA:` (kept as `a3.txt`)");
}

proptest! {
    #[test]
    fn whatever_is_said_it_ends_and_no_more_comes_than_was_wanted(
        replies in prop::collection::vec("(IDEA: [ab]\n|RATIONALE: r\n|REQUIRED_CHANGES: c\n|\\PC|\n){0,30}", 5),
        wanted in 1_usize..5,
    ) {
        let mut batch = batch(wanted);
        let mut asked = 0;
        for reply in &replies {
            if !batch.is_open() {
                break;
            }
            prop_assert!((1..=wanted).contains(&batch.next_request().count));
            batch.add_reply(reply, "kept");
            asked += 1;
        }
        batch.take_incomplete();
        prop_assert!(asked <= MAX_IDEA_TURNS && asked == batch.turns);
        prop_assert!(batch.texts.len() <= wanted);
        let prints: BTreeSet<Sha256> =
            batch.texts.iter().map(|(_, text)| idea::idea_fingerprint(text)).collect();
        prop_assert_eq!(prints.len(), batch.texts.len(), "no idea comes twice");
    }
}
