//! Renders a run as a site for `treebeam serve`: pages around the parts of `report.html`. Parts
//! have names, so that a page can request one again when it has changed. It serves nothing itself.
//!
//! # Layout
//! [`mod@link`] makes the addresses, [`mod@form`] the forms. [`render_site_page`] is the frame of
//! every page, [`render_runs_page`] lists runs, [`render_dashboard`] is the page of a run and
//! [`render_part`] one part of it, [`render_evals_page`] searches evals, [`render_place_page`]
//! shows a node or an eval, [`render_compare_page`] two of them, [`render_log`] a log,
//! [`render_checks`] a validation.

mod form;
mod link;

pub use form::render_request_result;
pub use link::{SiteAddress, link_to_site};

use super::page::{PageAssets, render_style_and_script};
use super::visible_text::{VisibleText, short_title};
use super::{
    PageMaterial, SweepComparison, eval, node, render_comparison, render_costs, render_findings,
    render_lineage, render_run_head, render_timeline, render_tree, render_trust, scores,
};
use crate::list::ListedRun;
use crate::lookup;
use crate::outcome::EvalStatus;
use crate::words::{format_age, format_count};
use maud::{DOCTYPE, Markup, html};
use std::borrow::Cow;
use treebeam_core::audit::AuditFinding;
use treebeam_core::facts::{Eval, Facts};
use treebeam_core::id::{CodePlace, EvalId, NodeId, RunId};

/// Total size of the embedded parts of a page, in bytes; further parts are loaded on request.
const MAX_PARTS_BYTES: usize = 700 << 10;
/// Maximum number of evals on a list page.
const MAX_LISTED_EVALS: usize = 100;
/// Maximum number of evals on the page of a run.
const MAX_NEWEST_EVALS: usize = 25;

/// A part of a run's page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PagePart {
    /// Runner of the run, and buttons to steer it.
    Steering,
    /// State of the run.
    Overview,
    /// Drawn tree.
    Tree,
    /// All scores.
    Scores,
    /// Newest evals.
    Evals,
    /// All nodes.
    Nodes,
    /// Costs of answers.
    Costs,
    /// Time line.
    Slots,
    /// Conversations and their forks.
    Conversations,
}

impl PagePart {
    /// All parts, in the order of the page.
    pub const ALL: [Self; 9] = [
        Self::Steering,
        Self::Overview,
        Self::Tree,
        Self::Scores,
        Self::Evals,
        Self::Nodes,
        Self::Costs,
        Self::Slots,
        Self::Conversations,
    ];

    /// Returns the name of the part in an address.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Steering => "steering",
            Self::Overview => "overview",
            Self::Tree => "tree-section",
            Self::Scores => "scores",
            Self::Evals => "evals",
            Self::Nodes => "nodes",
            Self::Costs => "costs",
            Self::Slots => "slots",
            Self::Conversations => "conversations",
        }
    }

    /// Returns the part of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|part| part.name() == name)
    }

    const fn title(self) -> &'static str {
        match self {
            Self::Steering => "Steering",
            Self::Overview => "Overview",
            Self::Tree => "Tree",
            Self::Scores => "Scores",
            Self::Evals => "Evals",
            Self::Nodes => "Nodes",
            Self::Costs => "What answers took",
            Self::Slots => "What ran when",
            Self::Conversations => "Conversations",
        }
    }
}

/// A run as loaded for viewing.
#[derive(Clone, Copy, Debug)]
pub struct ViewedRun<'a> {
    /// Recorded facts.
    pub facts: &'a Facts,
    /// Process that runs it, if any.
    pub runner: Option<&'a str>,
    /// Reason why the facts may be outdated, if any.
    pub trouble: Option<&'a str>,
    /// Version of the loaded record; a page sends it when it asks for changes.
    pub version: &'a str,
}

/// A search for evals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EvalSearch {
    /// Words to find, ignoring case, in an eval's name, status, or its idea's title or text.
    pub find: String,
    /// Upper bound: only earlier evals are listed.
    pub before: Option<EvalId>,
}

impl EvalSearch {
    /// Returns true if an eval matches. The text of its idea is only read if the rest does not
    /// match.
    fn matches_eval(&self, eval: &Eval, text: &dyn Fn(&Eval) -> Option<String>) -> bool {
        let known = format!(
            "{} {} {}",
            lookup::eval_name(eval),
            eval.idea.title,
            EvalStatus::from_eval(eval)
        );
        let (known, find) = (known.to_lowercase(), self.find.to_lowercase());
        let mut missing = find.split_whitespace().filter(|word| !known.contains(word)).peekable();
        if missing.peek().is_none() {
            return true;
        }
        let text = text(eval).unwrap_or_default().to_lowercase();
        missing.all(|word| text.contains(word))
    }
}

/// Renders a whole page: title, breadcrumbs, and for live pages the address of events and the
/// version.
#[must_use]
pub fn render_site_page(
    name: &str,
    trail: &[(String, SiteAddress<'_>)],
    live: Option<(&str, &str)>,
    body: &Markup,
) -> Markup {
    let (events, version) = live.unzip();
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                link rel="icon" href="data:,";
                title { (name) }
                (render_style_and_script(PageAssets::Linked { style: "/style.css", script: "/script.js" }))
            }
            body data-events=[events] data-version=[version] {
                a.skip href="#main" { "Skip to the content" }
                header.top {
                    p.brand { a href="/" { "treebeam" } }
                    nav aria-label="Pages" { @for (name, to) in trail { a href=(to) { (name) } } }
                    @if events.is_some() { p.live role="status" {} }
                }
                main #main { h1 { (name) } (body) }
            }
        }
    }
}

/// Renders the page of all runs of a repository.
#[must_use]
pub fn render_runs_page(listed: &[(RunId, ListedRun)]) -> Markup {
    let body = render_runs(listed);
    html! { section aria-label="Runs" data-live="runs" data-from="/list" { (body) } }
}

/// Renders the list of runs, the part of its page that changes.
#[must_use]
pub fn render_runs(listed: &[(RunId, ListedRun)]) -> Markup {
    html! {
        @if listed.is_empty() { p { "There is no run in this repository yet: " code { "treebeam run" } " starts one." } }
        @else {
            div.scroll tabindex="0" role="group" aria-label="Runs" {
                table.figures {
                    thead { tr {
                        @for head in ["run", "outcome", "began"] { th scope="col" class="words" { (head) } }
                        @for head in ["depth", "nodes", "evals", "best rank score", "cost"] { th scope="col" { (head) } }
                    } }
                    tbody { @for (id, run) in listed { (render_run_row(id, run)) } }
                }
            }
        }
    }
}

fn render_run_row(id: &RunId, run: &ListedRun) -> Markup {
    let began = run.age.map_or_else(String::new, |ago| format!("{} ago", format_age(ago)));
    html! {
        tr {
            th scope="row" { a href=(SiteAddress::Run(id)) { (id) } }
            td.words.why { (run.describe_status()) }
            td.words { (began) }
            @for figure in run.format_figures() { td { (figure) } }
        }
    }
}

/// Renders the page of a run. Parts that would make it too large are loaded on request.
#[must_use]
pub fn render_dashboard(looked: &ViewedRun<'_>) -> Markup {
    let run = &looked.facts.run;
    let mut room = MAX_PARTS_BYTES;
    let fitting = PagePart::ALL.map(|which| {
        let markup = render_part(looked, which);
        let left = room.checked_sub(markup.0.len())?;
        room = left;
        Some(markup)
    });
    html! {
        @for (which, markup) in PagePart::ALL.into_iter().zip(&fitting) {
            (render_section(run, which, markup.as_ref()))
            @if which == PagePart::Steering { (form::render_request_forms(looked.facts)) }
        }
    }
}

fn render_section(run: &RunId, part: PagePart, markup: Option<&Markup>) -> Markup {
    let from = SiteAddress::Part(run, part.name());
    html! {
        section id=(part.name()) aria-label=(part.title()) data-live=(part.name()) data-from=(from) data-later[markup.is_none()] {
            @if let Some(markup) = markup { (markup) }
            @else { p { a href=(from) { (part.title()) } } }
        }
    }
}

/// Renders one part of a run's page, with its heading.
#[must_use]
pub fn render_part(looked: &ViewedRun<'_>, part: PagePart) -> Markup {
    let facts = looked.facts;
    let body = match part {
        PagePart::Steering => return form::render_steering(looked),
        PagePart::Overview => {
            return link_to_site(
                &html! { (render_run_head(facts)) (render_trust(facts, None)) },
                facts,
            );
        }
        PagePart::Tree => render_tree(facts),
        PagePart::Scores => {
            html! { (scores::render_scores_by_eval(facts)) (scores::render_scores_by_depth(facts)) }
        }
        PagePart::Evals => render_newest_evals(facts),
        PagePart::Nodes => {
            html! { ul.rows { @for each in &facts.nodes { li { a.row href={ "#" (lookup::node_name(each.id)) } { (node::render_node_row(facts, each)) } } } } }
        }
        PagePart::Costs => render_costs(facts),
        PagePart::Slots => render_timeline(facts),
        PagePart::Conversations => render_lineage(facts),
    };
    link_to_site(&html! { h2 { (part.title()) } (body) }, facts)
}

fn render_newest_evals(facts: &Facts) -> Markup {
    let all = facts.evals.len();
    html! {
        @if facts.evals.is_empty() { p.note { "None yet." } }
        @else { (render_eval_rows(facts.evals.iter().rev().take(MAX_NEWEST_EVALS))) }
        @if all > MAX_NEWEST_EVALS { p { a href=(SiteAddress::Evals(&facts.run)) { "All " (format_count(all, "eval")) } } }
    }
}

fn render_eval_rows<'a>(evals: impl Iterator<Item = Cow<'a, Eval>>) -> Markup {
    html! {
        div.rows.head aria-hidden="true" {
            span { "eval" } span { "idea" } span { "outcome" } span { "gain" } span { "rank score" }
        }
        ul.rows { @for each in evals { li { a.row href={ "#" (lookup::eval_name(&each)) } { (eval::render_eval_row(&each)) } } } }
    }
}

/// Renders the page of an eval search; `text` reads the text of an eval's idea.
#[must_use]
pub fn render_evals_page(
    facts: &Facts,
    search: &EvalSearch,
    text: &dyn Fn(&Eval) -> Option<String>,
) -> Markup {
    let from = SiteAddress::Found(&facts.run, &search.find, search.before);
    let list = render_found_evals(facts, search, text);
    html! {
        (form::render_search_form(&facts.run, &search.find))
        section aria-label="Evals" data-live=(PagePart::Evals.name()) data-from=(from) { (list) }
    }
}

/// Renders the evals that match a search, the newest first.
#[must_use]
pub fn render_found_evals(
    facts: &Facts,
    search: &EvalSearch,
    text: &dyn Fn(&Eval) -> Option<String>,
) -> Markup {
    let all = facts.evals.iter().rev();
    let found: Vec<_> = all.filter(|eval| search.matches_eval(eval, text)).collect();
    let early = |eval: &&Cow<'_, Eval>| search.before.is_none_or(|before| eval.id < before);
    let mut listed = found.iter().filter(early).peekable();
    let shown: Vec<_> = listed.by_ref().take(MAX_LISTED_EVALS).cloned().collect();
    let older = shown.last().filter(|_| listed.peek().is_some()).map(|last| last.id);
    let list = html! {
        p.note role="status" {
            @if search.find.is_empty() { (format_count(found.len(), "eval")) }
            @else { (found.len()) " of " (format_count(facts.evals.len(), "eval")) " with “" (short_title(&search.find)) "”" }
        }
        (render_eval_rows(shown.into_iter()))
        @if let Some(last) = older { p { a href=(SiteAddress::Older(&facts.run, &search.find, last)) { "Older ones" } } }
    };
    link_to_site(&list, facts)
}

/// Renders a node or an eval with the caller's material; `None` if it does not exist.
#[must_use]
pub fn render_place(facts: &Facts, place: CodePlace, material: &PageMaterial) -> Option<Markup> {
    let body = match place {
        CodePlace::Node(id) => html! {
            (node::render_node_page(facts, facts.node(id)?))
            @if !material.documents.is_empty() { h3 { "How ideas were asked for" } (eval::render_documents(material)) }
        },
        CodePlace::Candidate(id) => eval::render_eval_page(facts, &*facts.eval(id)?, material),
    };
    Some(link_to_site(&body, facts))
}

/// Renders the page of a node or an eval around its body, with title and links.
#[must_use]
pub fn render_place_page(facts: &Facts, at: CodePlace, body: &Markup) -> Markup {
    let name = at.to_string();
    let from = SiteAddress::Part(&facts.run, &name);
    let (eval, is_swept) = match at {
        CodePlace::Candidate(id) => (facts.eval(id), true),
        CodePlace::Node(id) => (None, id == NodeId::ROOT),
    };
    html! {
        p.note {
            @if let Some(eval) = eval { (short_title(&eval.idea.title)) " · " }
            @if is_swept { a href=(SiteAddress::Log(&facts.run, at)) { "its log" } " · " }
            a href=(SiteAddress::Compare(&facts.run, Some(at))) { "compare it" }
        }
        section aria-label=(name) data-live=(live_part_names(at)) data-from=(from) { (body) }
    }
}

/// Returns the names of the parts whose change affects the page of a place: a node's page lists its
/// evals.
fn live_part_names(at: CodePlace) -> String {
    match at {
        CodePlace::Node(_) => format!("{at} {}", PagePart::Evals.name()),
        CodePlace::Candidate(_) => at.to_string(),
    }
}

/// Renders the page that compares two nodes or evals, with a form to choose them.
#[must_use]
pub fn render_compare_page(
    facts: &Facts,
    sides: [Option<CodePlace>; 2],
    against: Option<&SweepComparison>,
) -> Markup {
    let chosen = match sides {
        [Some(first), Some(second)] => Some([first, second]),
        _ => None,
    };
    html! {
        (form::render_compare_form(facts, sides))
        @if let Some(sides) = chosen {
            section aria-label="Comparison" data-live={ (sides[0]) " " (sides[1]) } data-from=(SiteAddress::Both(&facts.run, sides)) {
                (render_compared_places(facts, sides, against))
            }
        } @else { (nothing_to_compare()) }
    }
}

/// Renders two nodes or evals side by side, or a note if one of them does not exist.
#[must_use]
pub fn render_compared_places(
    facts: &Facts,
    [first, second]: [CodePlace; 2],
    against: Option<&SweepComparison>,
) -> Markup {
    let both = render_comparison(facts, first, second, against);
    both.map_or_else(nothing_to_compare, |both| link_to_site(&both, facts))
}

fn nothing_to_compare() -> Markup {
    html! { p.note { "Choose two nodes or evals, such as n0000 and e0012." } }
}

/// Renders the log so far of an eval's or the root's commands; the page adds what follows.
#[must_use]
pub fn render_log(name: &str, skipped: u64, text: &str) -> Markup {
    html! {
        p.note { code { (name) } span.without { (skipped_note(skipped)) } }
        pre.foreign #log tabindex="0" role="log" aria-label=(name) { (VisibleText(text)) }
    }
}

/// Returns a note on how much of a log is not shown, to follow its name; empty if nothing is
/// skipped.
#[must_use]
pub fn skipped_note(skipped: u64) -> String {
    if skipped == 0 {
        return String::new();
    }
    format!(", without its first {}", format_count(skipped, "byte"))
}

/// Renders the findings of a validation.
#[must_use]
pub fn render_checks(run: &RunId, findings: &[AuditFinding]) -> Markup {
    render_findings(run.as_str(), Some(findings))
}

/// Renders the reason why something cannot be shown.
#[must_use]
pub fn render_refusal(why: &str, hint: Option<&str>) -> Markup {
    html! { p { (VisibleText(why)) } @if let Some(hint) = hint { p.note { (VisibleText(hint)) } } }
}
