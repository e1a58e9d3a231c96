//! Tests `report.html` and its parts: sound markup, escaped foreign text, working links, bounded
//! size. Holds at every moment of a run.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod sample;

use std::collections::{BTreeMap, BTreeSet};
use treebeam_core::audit::AuditFinding;
use treebeam_core::event::{EvalFailure, EvalStage, FailureKind};
use treebeam_core::facts::{
    CandidateFate, Eval, EvalList, ExpansionIdeas, Facts, Node, NodeOrigin, Stage, StoredVerdict,
};
use treebeam_core::id::{CodePlace, EvalId, NodeId, TurnId};
use treebeam_core::policy::Direction;
use treebeam_core::state::State;
use treebeam_score::compare::{ComparisonDetails, MetricUse};
use treebeam_testkit::hostile_text;
use treebeam_view::html::site::{self, EvalSearch, PagePart, ViewedRun};
use treebeam_view::html::{
    self, DocumentKind, PageMaterial, ReportExtra, RunDocument, SweepComparison, asset,
    render_comparison, render_tree,
};
use treebeam_view::{render_graph, render_results_tsv, render_tree_summary};

// ---- a reader of HTML that is stricter than a browser

/// A tag with its attributes.
struct Tag<'a> {
    name: &'a str,
    attributes: Vec<(&'a str, &'a str)>,
}

/// Elements without an end tag.
const VOID: [&str; 4] = ["meta", "link", "input", "br"];

/// Returns all tags, and checks each: it is closed in order, its attributes are quoted, and it is
/// none that foreign text would bring.
fn tags(html: &str) -> Vec<Tag<'_>> {
    let mut open = Vec::new();
    let mut tags = Vec::new();
    let mut rest = html.strip_prefix("<!DOCTYPE html>").unwrap_or(html);
    while let Some((text, after)) = rest.split_once('<') {
        assert!(!text.contains('>'), "a stray `>` in {:?}", shorten(text));
        let end = end_of_tag(after);
        let (tag, next) = (&after[..end], &after[end + 1..]);
        rest = next;
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "before {:?}", shorten(next));
            continue;
        }
        let tag = parsed(tag);
        if matches!(tag.name, "style" | "script") && !rest.starts_with('<') {
            rest = &rest[rest.find("</").unwrap()..];
        }
        if !VOID.contains(&tag.name) {
            open.push(tag.name);
        }
        tags.push(tag);
    }
    assert!(open.is_empty(), "not closed: {open:?}");
    tags
}

fn shorten(text: &str) -> String {
    text.chars().take(120).collect()
}

/// Returns the end of a tag: quotes may contain anything.
fn end_of_tag(text: &str) -> usize {
    let mut quoted = false;
    for (at, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '>' if !quoted => return at,
            '<' => assert!(quoted, "a tag in a tag: {:?}", shorten(text)),
            _ => {}
        }
    }
    panic!("a tag without an end: {:?}", shorten(text));
}

fn parsed(tag: &str) -> Tag<'_> {
    let (name, mut rest) = tag.split_once(' ').unwrap_or((tag, ""));
    assert!(!name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric()), "{tag}");
    let mut attributes = Vec::new();
    while !rest.is_empty() {
        let end = rest.find(['=', ' ']).unwrap_or(rest.len());
        let (key, after) = rest.split_at(end);
        assert!(key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'), "{tag}");
        let Some(value) = after.strip_prefix("=\"") else {
            attributes.push((key, ""));
            rest = after.trim_start();
            continue;
        };
        let (value, after) = value.split_once('"').unwrap();
        attributes.push((key, value));
        rest = after.trim_start();
    }
    Tag { name, attributes }
}

/// Checks what holds for every piece of markup.
fn must_be_sound(html: &str) {
    for c in html.chars() {
        assert!(!c.is_control() || matches!(c, '\n' | '\t'), "{c:?}");
        assert!(!('\u{202a}'..='\u{202e}').contains(&c), "{c:?}");
        assert!(!('\u{2066}'..='\u{2069}').contains(&c), "{c:?}");
    }
    let tags = tags(html);
    let count = |name| tags.iter().filter(|tag| tag.name == name).count();
    for name in ["iframe", "object", "embed", "base", "img", "image", "use", "foreignObject"] {
        assert_eq!(count(name), 0, "{name}");
    }
    assert!(count("script") <= 1 && count("style") <= 1 && count("link") == 0);
    for (key, value) in tags.iter().flat_map(|tag| &tag.attributes) {
        assert!(!key.starts_with("on") && *key != "style" && *key != "src", "{key}={value}");
        if *key == "href" {
            assert!(!value.contains(':') && !value.starts_with("//"), "{value}");
        }
    }
}

/// Checks a whole page: besides, its ids are unique and its links have targets.
fn must_be_a_sound_page(html: &str) {
    must_be_sound(html);
    let tags = tags(html);
    let named = |wanted: &str| {
        let all = tags
            .iter()
            .flat_map(|tag| tag.attributes.iter().filter(move |(key, _)| *key == wanted));
        all.map(|(_, value)| *value).collect::<Vec<_>>()
    };
    let ids: BTreeSet<_> = named("id").into_iter().collect();
    assert_eq!(ids.len(), named("id").len(), "an id stands twice");
    for link in named("href").iter().filter_map(|link| link.strip_prefix('#')) {
        assert!(ids.contains(link), "#{link} leads nowhere");
    }
    assert!(named("aria-labelledby").iter().all(|id| ids.contains(id)));
}

// ---- what is shown

fn metric(column: &str, before: f64, after: f64) -> MetricUse {
    MetricUse {
        column: column.to_owned(),
        direction: Direction::Lower,
        weight: treebeam_core::num::Finite::ZERO,
        baseline_mean: before,
        candidate_mean: after,
        raw_improvement: before - after,
        relative_improvement: (before - after) / before,
        paired: None,
    }
}

/// Returns the caller's material for a scored eval: so many configurations, and this text
/// everywhere.
fn material(facts: &Facts, eval: &Eval, configurations: u32, text: &str) -> PageMaterial {
    let document = |kind, name: &str| RunDocument {
        kind,
        path: format!("eval/{}/experiment/{name}", eval.id).parse().unwrap(),
        bytes: 100,
        text: Some(text.to_owned()),
    };
    let against = eval.scored_candidate().map(|measured| SweepComparison {
        details: ComparisonDetails {
            comparison: measured.scored.vs_root.clone(),
            columns: Vec::new(),
            metrics: facts
                .settings
                .score
                .metrics
                .iter()
                .map(|m| metric(&m.column, 4.0, 3.0))
                .collect(),
        },
        changes: (0..configurations).map(|at| f64::from(at) - 3.5).collect(),
    });
    PageMaterial {
        vs_parent: against.clone(),
        vs_root: against,
        documents: vec![
            document(DocumentKind::Idea, "idea.md"),
            document(DocumentKind::Diff, "candidate.diff"),
            document(DocumentKind::Prompt, "coder_prompt_round_0.txt"),
            RunDocument { text: None, bytes: 1 << 30, ..document(DocumentKind::Log, "sweep.log") },
        ],
    }
}

const DIFF: &str =
    "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-RATE = 0.1\n+RATE = \"<b>\"\n";

fn report(
    facts: &Facts,
    extra: ReportExtra<'_>,
    material: &mut dyn FnMut(&Eval) -> PageMaterial,
) -> String {
    html::render_report(facts, extra, material).collect()
}

fn whole(facts: &Facts) -> String {
    report(facts, ReportExtra::default(), &mut |eval| material(facts, eval, 8, DIFF))
}

#[test]
fn a_page_is_sound_at_every_moment_and_the_same_each_time() {
    let events = sample::events();
    for number in 1..=events.len() {
        let state = sample::after(&events, number);
        let page = whole(&state);
        must_be_a_sound_page(&page);
        assert_eq!(page, whole(&state));
    }
}

#[test]
fn a_page_shows_what_the_other_views_say() {
    let state = sample::finished();
    let page = whole(&state);
    for eval in state.evals.iter() {
        let name = CodePlace::Candidate(eval.id).to_string();
        assert!(page.contains(&format!("<details class=\"item\" id=\"{name}\"")), "{name}");
    }
    let rank = "+0.166667";
    assert!(render_tree_summary(&state).contains(rank) && page.contains(rank));
    assert!(page.contains("<strong>+0.166667</strong><span>n0003, 2 ideas from the root</span>"));
    assert!(
        page.contains("<strong>9</strong><span>3 promoted, 1 passed, 3 rejected, 2 failed</span>")
    );
    assert!(page.contains("all configurations are there and ok"));
    assert!(page.contains(
        "<span class=\"ins\">+RATE = <span class=\"s\">&quot;&lt;b&gt;&quot;</span></span>"
    ));
    assert!(page.contains("href=\"eval/0002/experiment/sweep.log\""));
    assert!(page.contains("Not checked yet"));
}

#[test]
fn the_policy_lets_in_this_style_and_this_script_alone() {
    let page = whole(&sample::finished());
    assert!(page.contains("default-src 'none'; style-src 'sha256-"));
    let (_, after) = page.split_once("<style>").unwrap();
    assert!(after.starts_with(asset::PAGE_STYLE));
    let (_, after) = page.split_once("<script>").unwrap();
    assert!(after.starts_with(asset::PAGE_SCRIPT));
}

#[test]
fn findings_and_a_hold_out_are_shown_where_there_are_any() {
    let state = sample::finished();
    let found = [AuditFinding::new("<b>gone</b>", "eval 0001", "restore the file").into_warning()];
    let eval = state.evals.iter().find(|eval| eval.scored_candidate().is_some()).unwrap();
    let mut unseen = material(&state, &eval, 3, "").vs_root.unwrap().details;
    let primary = state.settings.score.primary.clone();
    unseen.metrics = vec![metric(&primary, 4.0, 3.5)];
    let seen = material(&state, &eval, 3, "").vs_root.unwrap().details;
    let extra = ReportExtra { findings: Some(&found), holdout: Some((&seen, &unseen)) };
    let page = report(&state, extra, &mut |_| PageMaterial::default());
    must_be_a_sound_page(&page);
    assert!(page.contains("&lt;b&gt;gone&lt;/b&gt;") && page.contains("1 warning, no error"));
    assert!(page.contains("<strong>50 %</strong> of the primary's gain is left"));
    let none = ReportExtra { findings: Some(&[]), ..ReportExtra::default() };
    assert!(report(&state, none, &mut |_| PageMaterial::default()).contains("Nothing found."));
}

#[test]
fn any_two_can_be_compared() {
    let state = sample::finished();
    let (root, node) = (CodePlace::Node(NodeId::ROOT), CodePlace::Node(NodeId::new(1)));
    let eval = CodePlace::Candidate(EvalId::new(5));
    for (first, second) in [(root, node), (node, eval), (eval, eval), (eval, root)] {
        must_be_sound(&render_comparison(&state, first, second, None).unwrap().into_string());
    }
    let nobody = CodePlace::Candidate(EvalId::new(99));
    assert!(render_comparison(&state, root, nobody, None).is_none());
}

// ---- foreign text

/// The sample with this text everywhere that a foreign text can appear.
fn tainted(text: &str) -> Facts {
    let mut facts: Facts = (*sample::finished()).clone();
    for eval in facts.evals.unpack_all() {
        text.clone_into(&mut eval.idea.title);
        eval.failures.push(failure(text));
        if let Stage::Failed { failure: last, .. } = &mut eval.stage {
            **last = failure(text);
        }
        if let Stage::Decided(measured, word, _) = &mut eval.stage {
            let mut verdict = word.to_verdict(measured);
            verdict.checks.iter_mut().for_each(|check| text.clone_into(&mut check.figures));
            *word = StoredVerdict::Recorded(Box::new(verdict));
        }
    }
    for node in &mut facts.nodes {
        for expansion in &mut node.expansions {
            if let ExpansionIdeas::Failed { why, .. } = &mut expansion.ideas {
                text.clone_into(why);
            }
        }
    }
    text.clone_into(&mut facts.settings.score.primary);
    facts.settings.score.metrics.iter_mut().for_each(|metric| text.clone_into(&mut metric.column));
    let said = BTreeMap::from([("model".to_owned(), text.to_owned())]);
    facts.agents.0.insert("coder".to_owned(), said);
    facts
}

fn failure(text: &str) -> EvalFailure {
    EvalFailure { stage: EvalStage::Sweep, kind: FailureKind::Sweep, message: text.to_owned() }
}

#[test]
fn foreign_text_is_text_in_every_part_of_a_page() {
    for text in hostile_text::short() {
        let facts = tainted(&text);
        let finding = [AuditFinding::new(&text, &text, &text)];
        let extra = ReportExtra { findings: Some(&finding), ..ReportExtra::default() };
        let page = report(&facts, extra, &mut |eval| material(&facts, eval, 8, &text));
        must_be_a_sound_page(&page);
    }
}

#[test]
fn a_megabyte_in_a_word_is_cut_where_it_is_a_title() {
    for text in hostile_text::all().iter().filter(|text| text.len() >= 1 << 20) {
        let facts = tainted(text);
        let page = report(&facts, ReportExtra::default(), &mut |_| PageMaterial::default());
        must_be_a_sound_page(&page);
        assert!(page.len() < 1 << 20, "{} bytes", page.len());
    }
}

#[test]
fn a_text_can_be_read_back_from_the_page() {
    let text = "<script>alert(\"1\")</script> & \u{202e}\u{1b}[2J";
    let facts = sample::finished();
    let page = report(&facts, ReportExtra::default(), &mut |eval| material(&facts, eval, 2, text));
    let shown = "&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt; &amp; \\u{202e}\\u{1b}[2J";
    assert!(page.contains(shown));
}

#[test]
fn foreign_text_is_text_in_markdown_mermaid_and_tables() {
    let long = hostile_text::all().pop();
    for text in hostile_text::short().into_iter().chain(long) {
        let facts = tainted(&text);
        for view in [render_tree_summary(&facts), render_graph(&facts)] {
            let bad =
                |c: &char| c.is_control() && *c != '\n' || ('\u{202a}'..='\u{202e}').contains(c);
            assert_eq!(view.chars().find(bad), None);
            assert!(!view.contains("<script") && !view.contains("<img") && !view.contains("<svg"));
        }
        let graph = render_graph(&facts);
        assert_eq!(graph.matches("```").count(), 2, "{text:?}");
        let drawing = graph.split("```").nth(1).unwrap();
        for line in drawing.lines() {
            assert_eq!(line.matches('"').count() % 2, 0, "{line}");
            assert!(!line.trim_start().starts_with("click") && !line.contains("%%"), "{line}");
        }
        let rows = render_results_tsv(&facts);
        assert!(rows.lines().all(|row| row.split('\t').count() == 21), "{text:?}");
        assert_eq!(rows.lines().count(), facts.evals.len() + 1);
    }
}

// ---- the pages of a site

/// Returns all pages of a run that a server shows, with this text in them.
fn pages(facts: &Facts, text: &str) -> Vec<String> {
    let looked = ViewedRun { facts, runner: Some(text), trouble: Some(text), version: "x-1" };
    let found = EvalSearch { find: text.to_owned(), before: Some(EvalId::new(3)) };
    let (root, last) = (CodePlace::Node(NodeId::ROOT), facts.evals.last().unwrap());
    let eval = CodePlace::Candidate(last.id);
    let material = material(facts, &last, 8, text);
    let finding = [AuditFinding::new(text, text, text)];
    let against = material.vs_root.as_ref();
    let mut pages = vec![
        site::render_dashboard(&looked),
        site::render_evals_page(facts, &found, &|_| None),
        site::render_place_page(facts, root, &site::render_place(facts, root, &material).unwrap()),
        site::render_place_page(facts, eval, &site::render_place(facts, eval, &material).unwrap()),
        site::render_compare_page(facts, [Some(root), Some(eval)], against),
        site::render_compare_page(facts, [None, None], None),
        site::render_log("sweep.log", 3, text),
        site::render_checks(&facts.run, &finding),
        site::render_refusal(text, Some(text)),
        site::render_request_result(&facts.run, text),
    ];
    pages.extend(PagePart::ALL.map(|part| site::render_part(&looked, part)));
    pages.into_iter().map(html::Markup::into_string).collect()
}

#[test]
fn foreign_text_is_text_on_every_page_of_a_site() {
    for text in hostile_text::short() {
        for page in pages(&tainted(&text), &text) {
            must_be_sound(&page);
        }
    }
}

#[test]
fn every_page_of_a_site_is_sound_at_every_moment() {
    let events = sample::events();
    for number in 1..=events.len() {
        let state = sample::after(&events, number);
        let looked = ViewedRun { facts: &state, runner: None, trouble: None, version: "x-1" };
        let page = site::render_dashboard(&looked).into_string();
        must_be_sound(&page);
        assert!(!page.contains("href=\"#e0") && !page.contains("href=\"#n0"), "{page}");
        assert_eq!(page, site::render_dashboard(&looked).into_string());
    }
}

// ---- sizes

/// A run with so many evals, seven on each node, of which one becomes a node.
fn large(evals: u32) -> Facts {
    let state = sample::finished();
    let mut facts: Facts = (*state).clone();
    let of = |wanted: fn(&Stage) -> bool| {
        state.evals.iter().find(|eval| wanted(&eval.stage)).unwrap().into_owned()
    };
    let promoted = of(|stage| matches!(stage, Stage::Decided(_, _, CandidateFate::Promoted(_))));
    let dropped = of(|stage| matches!(stage, Stage::Decided(_, _, CandidateFate::Dropped)));
    let failed = of(|stage| matches!(stage, Stage::Failed { .. }));
    facts.nodes.truncate(1);
    facts.evals = EvalList::default();
    for number in 1..=evals {
        let parent = NodeId::new((number - 1) / 7);
        let mut eval = [&promoted, &dropped, &dropped, &failed][number as usize % 7 % 4].clone();
        if number % 7 == 0 {
            let id = facts.next_node_id();
            if let Stage::Decided(_, _, fate) = &mut eval.stage {
                *fate = CandidateFate::Promoted(id);
            }
            let from = EvalId::new(number);
            let origin = NodeOrigin::Promoted {
                parent,
                from,
                forked_at: TurnId { node: parent, number: 1 },
            };
            let root = facts.nodes[0].clone();
            facts.nodes.push(Node { id, origin, expansions: Vec::new(), ..root });
        } else if let Stage::Decided(_, _, fate) = &mut eval.stage {
            *fate = CandidateFate::Dropped;
        }
        (eval.id, eval.parent) = (EvalId::new(number), parent);
        eval.idea.title =
            format!("Idea {number}: widen the window of the slow signal, and weigh by its age");
        facts.evals.unpack_all().push(eval);
    }
    facts
}

/// Checks a drawing: within the limits of Git hosts, arrows with both ends, best path and root
/// present.
fn must_be_drawn(graph: &str) {
    let drawing = graph.split("```").nth(1).unwrap();
    assert!(drawing.encode_utf16().count() < 50_000, "{} bytes", drawing.len());
    let arrows = ["==>", "-->", "-.->"];
    let edges: Vec<_> =
        drawing.lines().filter(|line| arrows.iter().any(|arrow| line.contains(arrow))).collect();
    assert!(!edges.is_empty() && edges.len() <= 500, "{} edges", edges.len());
    for from in edges.iter().map(|edge| edge.split_whitespace().next().unwrap()) {
        assert!(drawing.contains(&format!("    {from}[")), "{from} is not drawn");
    }
    assert!(drawing.contains("n0000 · root") && drawing.contains(" · best"));
}

#[test]
fn two_thousand_evals_fit() {
    let mut facts = large(2_000);
    let text = DIFF.repeat(40);
    let page =
        report(&facts, ReportExtra::default(), &mut |eval| material(&facts, eval, 120, &text));
    must_be_a_sound_page(&page);
    assert!(page.len() < 15_000_000, "{} bytes", page.len());
    let is_small = |piece: String| piece.len() < 1_000_000;
    let small =
        html::render_report(&facts, ReportExtra::default(), &mut |_| PageMaterial::default())
            .all(is_small);
    assert!(small, "it is made piece by piece");
    let looked = ViewedRun { facts: &facts, runner: None, trouble: None, version: "x-1" };
    let first =
        site::render_site_page("Run", &[], Some(("/", "x-1")), &site::render_dashboard(&looked))
            .into_string();
    assert!(first.len() < 1_000_000 && first.contains("data-later"), "{} bytes", first.len());
    assert!(page.contains("In short, to keep this page small."));
    must_be_drawn(&render_graph(&facts));
    let tree = render_tree(&facts).into_string();
    assert!(tree.len() < 800_000, "{} bytes", tree.len());
    for part in [
        html::scores::render_scores_by_eval(&facts),
        html::render_timeline(&facts),
        html::render_costs(&facts),
    ] {
        must_be_sound(&part.into_string());
    }
    facts.evals.unpack_all().iter_mut().for_each(|eval| eval.idea.title = "😀\"".repeat(50));
    must_be_drawn(&render_graph(&facts));
}

#[test]
fn pruned_evals_beyond_a_dozen_are_one_mark() {
    let mut facts = large(40);
    facts.evals.unpack_all().iter_mut().for_each(|eval| eval.parent = NodeId::ROOT);
    let marks = |facts: &Facts| render_tree(facts).into_string().matches("<a class=\"mark").count();
    // The root, five nodes, eleven leaves and one mark for the rest.
    assert_eq!(marks(&facts), 1 + 5 + 11 + 1);
    assert!(render_tree(&facts).into_string().contains("24 more: "));
    let state: State = sample::finished();
    assert_eq!(marks(&state), state.evals.len() + 1);
}
