//! A run as a site: what `treebeam serve` puts around the parts of `report.html`. Parts have names, so that a page can ask for
//! one of them again when it has changed. Nothing here serves anything, and addresses are told apart in `link`.
//!
//! # Layout
//! [`frame`] stands around every page. [`runs`] lists runs, [`dashboard`] is the page of one, [`part`] one part of it,
//! [`evals`] the list that can be searched and [`found`] what it finds, [`place`] the page of a node or an eval, [`compared`] that of two, [`log`] what
//! a command prints, [`checks`] what a validation found, [`told`] what came of a wish. `link` makes the addresses.

mod form;
mod link;

pub use form::told;
pub use link::{Address, linked};

use super::page::{Assets, style_and_script};
use super::text::{Shown, title};
use super::{
    Against, Material, checked, compare, costs, eval, head, lineage, node, scores, slots, tree,
    trust,
};
use crate::list::Listed;
use crate::outcome::Outcome;
use crate::read;
use crate::words::{age, count};
use maud::{DOCTYPE, Markup, html};
use std::borrow::Cow;
use treebeam_core::audit::Finding;
use treebeam_core::facts::{Eval, Facts};
use treebeam_core::id::{EvalId, NodeId, Place, RunId};

/// How much the parts of a page take together before the next one has to be asked for.
const ROOM: usize = 700 << 10;
/// So many evals are listed at once.
const ROWS: usize = 100;
/// So many of them on the page of a run.
const FIRST_ROWS: usize = 25;

/// A part of a run's page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Who runs it, and what can be asked of them.
    Steering,
    /// How it stands.
    Overview,
    /// The tree.
    Tree,
    /// Every score.
    Scores,
    /// The newest evals.
    Evals,
    /// The nodes.
    Nodes,
    /// What answers took.
    Costs,
    /// What ran when.
    Slots,
    /// Which conversation goes on from which.
    Conversations,
}

impl Part {
    /// All of them, in the order of the page.
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

    /// Its name in an address.
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

    /// The one of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
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

/// A run as it is looked at.
#[derive(Clone, Copy, Debug)]
pub struct Looked<'a> {
    /// What is on record.
    pub facts: &'a Facts,
    /// Who runs it, if somebody does.
    pub runner: Option<&'a str>,
    /// Why what is shown may be old, if it may.
    pub trouble: Option<&'a str>,
    /// Up to where it was looked at; a page says so when it asks for news.
    pub version: &'a str,
}

/// Which evals are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Search {
    /// Each of these words is in its name, its outcome, or its idea's title or text, in whatever letters.
    pub find: String,
    /// It came before this one.
    pub before: Option<EvalId>,
}

impl Search {
    /// The text of an idea is asked for where the rest of it does not do.
    fn holds(&self, eval: &Eval, text: &dyn Fn(&Eval) -> Option<String>) -> bool {
        let known = format!("{} {} {}", read::eval_name(eval), eval.idea.title, Outcome::of(eval));
        let (known, find) = (known.to_lowercase(), self.find.to_lowercase());
        let mut missing = find.split_whitespace().filter(|word| !known.contains(word)).peekable();
        if missing.peek().is_none() {
            return true;
        }
        let text = text(eval).unwrap_or_default().to_lowercase();
        missing.all(|word| text.contains(word))
    }
}

/// A whole page: its title, where one is within the site, and where its news come from, if it has any.
#[must_use]
pub fn frame(
    name: &str,
    trail: &[(String, Address<'_>)],
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
                (style_and_script(Assets::At { style: "/style.css", script: "/script.js" }))
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

/// The page of all runs of a repository.
#[must_use]
pub fn runs(listed: &[(RunId, Listed)]) -> Markup {
    let body = all_runs(listed);
    html! { section aria-label="Runs" data-live="runs" data-from="/list" { (body) } }
}

/// What changes on it.
#[must_use]
pub fn all_runs(listed: &[(RunId, Listed)]) -> Markup {
    html! {
        @if listed.is_empty() { p { "There is no run in this repository yet: " code { "treebeam run" } " starts one." } }
        @else {
            div.scroll tabindex="0" role="group" aria-label="Runs" {
                table.figures {
                    thead { tr {
                        @for head in ["run", "outcome", "began"] { th scope="col" class="words" { (head) } }
                        @for head in ["depth", "nodes", "evals", "best gain", "cost"] { th scope="col" { (head) } }
                    } }
                    tbody { @for (id, run) in listed { (one_run(id, run)) } }
                }
            }
        }
    }
}

fn one_run(id: &RunId, run: &Listed) -> Markup {
    let began = run.age.map_or_else(String::new, |ago| format!("{} ago", age(ago)));
    html! {
        tr {
            th scope="row" { a href=(Address::Run(id)) { (id) } }
            td.words.why { (run.outcome()) }
            td.words { (began) }
            @for figure in run.figures() { td { (figure) } }
        }
    }
}

/// The page of a run. What would make it too large has to be asked for.
#[must_use]
pub fn dashboard(looked: &Looked<'_>) -> Markup {
    let run = &looked.facts.run;
    let mut room = ROOM;
    let fitting = Part::ALL.map(|which| {
        let markup = part(looked, which);
        let left = room.checked_sub(markup.0.len())?;
        room = left;
        Some(markup)
    });
    html! {
        @for (which, markup) in Part::ALL.into_iter().zip(&fitting) {
            (section(run, which, markup.as_ref()))
            @if which == Part::Steering { (form::wishes(looked.facts)) }
        }
    }
}

fn section(run: &RunId, part: Part, markup: Option<&Markup>) -> Markup {
    let from = Address::Part(run, part.name());
    html! {
        section id=(part.name()) aria-label=(part.title()) data-live=(part.name()) data-from=(from) data-later[markup.is_none()] {
            @if let Some(markup) = markup { (markup) }
            @else { p { a href=(from) { (part.title()) } } }
        }
    }
}

/// One part of the page of a run, with its heading.
#[must_use]
pub fn part(looked: &Looked<'_>, part: Part) -> Markup {
    let facts = looked.facts;
    let body = match part {
        Part::Steering => return form::steering(looked),
        Part::Overview => return linked(&html! { (head(facts)) (trust(facts, None)) }, facts),
        Part::Tree => tree(facts),
        Part::Scores => html! { (scores::by_eval(facts)) (scores::by_depth(facts)) },
        Part::Evals => newest(facts),
        Part::Nodes => {
            html! { ul.rows { @for each in &facts.nodes { li { a.row href={ "#" (read::node_name(each.id)) } { (node::row(facts, each)) } } } } }
        }
        Part::Costs => costs(facts),
        Part::Slots => slots(facts),
        Part::Conversations => lineage(facts),
    };
    linked(&html! { h2 { (part.title()) } (body) }, facts)
}

fn newest(facts: &Facts) -> Markup {
    let all = facts.evals.len();
    html! {
        @if facts.evals.is_empty() { p.note { "None yet." } }
        @else { (rows(facts.evals.iter().rev().take(FIRST_ROWS))) }
        @if all > FIRST_ROWS { p { a href=(Address::Evals(&facts.run)) { "All " (count(all, "eval")) } } }
    }
}

fn rows<'a>(evals: impl Iterator<Item = Cow<'a, Eval>>) -> Markup {
    html! {
        div.rows.head aria-hidden="true" {
            span { "eval" } span { "idea" } span { "outcome" } span { "gain" } span { "rank score" }
        }
        ul.rows { @for each in evals { li { a.row href={ "#" (read::eval_name(&each)) } { (eval::row(&each)) } } } }
    }
}

/// The page of the evals that are wanted; `text` is that of an eval's idea.
#[must_use]
pub fn evals(facts: &Facts, search: &Search, text: &dyn Fn(&Eval) -> Option<String>) -> Markup {
    let from = Address::Found(&facts.run, &search.find, search.before);
    let list = found(facts, search, text);
    html! {
        (form::search(&facts.run, &search.find))
        section aria-label="Evals" data-live=(Part::Evals.name()) data-from=(from) { (list) }
    }
}

/// The evals that are wanted, the newest first.
#[must_use]
pub fn found(facts: &Facts, search: &Search, text: &dyn Fn(&Eval) -> Option<String>) -> Markup {
    let all = facts.evals.iter().rev();
    let found: Vec<_> = all.filter(|eval| search.holds(eval, text)).collect();
    let early = |eval: &&Cow<'_, Eval>| search.before.is_none_or(|before| eval.id < before);
    let mut listed = found.iter().filter(early).peekable();
    let shown: Vec<_> = listed.by_ref().take(ROWS).cloned().collect();
    let older = shown.last().filter(|_| listed.peek().is_some()).map(|last| last.id);
    let list = html! {
        p.note role="status" {
            @if search.find.is_empty() { (count(found.len(), "eval")) }
            @else { (found.len()) " of " (count(facts.evals.len(), "eval")) " with “" (title(&search.find)) "”" }
        }
        (rows(shown.into_iter()))
        @if let Some(last) = older { p { a href=(Address::Older(&facts.run, &search.find, last)) { "Older ones" } } }
    };
    linked(&list, facts)
}

/// A node or an eval, with what the caller knows of it; nothing where there is no such thing.
#[must_use]
pub fn place(facts: &Facts, place: Place, material: &Material) -> Option<Markup> {
    let body = match place {
        Place::Node(id) => html! {
            (node::page(facts, facts.node(id)?))
            @if !material.documents.is_empty() { h3 { "How ideas were asked for" } (eval::documents(material)) }
        },
        Place::Candidate(id) => eval::page(facts, &*facts.eval(id)?, material),
    };
    Some(linked(&body, facts))
}

/// What a page of a node or an eval is called, and what else can be done with it.
#[must_use]
pub fn around(facts: &Facts, at: Place, body: &Markup) -> Markup {
    let name = at.to_string();
    let from = Address::Part(&facts.run, &name);
    let (eval, is_swept) = match at {
        Place::Candidate(id) => (facts.eval(id), true),
        Place::Node(id) => (None, id == NodeId::ROOT),
    };
    html! {
        p.note {
            @if let Some(eval) = eval { (title(&eval.idea.title)) " · " }
            @if is_swept { a href=(Address::Log(&facts.run, at)) { "its log" } " · " }
            a href=(Address::Compare(&facts.run, Some(at))) { "compare it" }
        }
        section aria-label=(name) data-live=(shows(at)) data-from=(from) { (body) }
    }
}

/// What changes the page of a node or an eval, by name: that of a node has a line for each eval that was tried on it.
fn shows(at: Place) -> String {
    match at {
        Place::Node(_) => format!("{at} {}", Part::Evals.name()),
        Place::Candidate(_) => at.to_string(),
    }
}

/// The page of two nodes or evals, and a form to choose them.
#[must_use]
pub fn compared(facts: &Facts, sides: [Option<Place>; 2], against: Option<&Against>) -> Markup {
    let chosen = match sides {
        [Some(first), Some(second)] => Some([first, second]),
        _ => None,
    };
    html! {
        (form::sides(facts, sides))
        @if let Some(sides) = chosen {
            section aria-label="Comparison" data-live={ (sides[0]) " " (sides[1]) } data-from=(Address::Both(&facts.run, sides)) {
                (both(facts, sides, against))
            }
        } @else { (nothing_to_compare()) }
    }
}

/// Two nodes or evals side by side; nothing is compared where one of them is not there.
#[must_use]
pub fn both(facts: &Facts, [first, second]: [Place; 2], against: Option<&Against>) -> Markup {
    let both = compare(facts, first, second, against);
    both.map_or_else(nothing_to_compare, |both| linked(&both, facts))
}

fn nothing_to_compare() -> Markup {
    html! { p.note { "Choose two nodes or evals, such as n0000 and e0012." } }
}

/// What the commands of an eval or of the root printed so far. More of it comes to the page.
#[must_use]
pub fn log(name: &str, skipped: u64, text: &str) -> Markup {
    html! {
        p.note { code { (name) } span.without { (without(skipped)) } }
        pre.foreign #log tabindex="0" role="log" aria-label=(name) { (Shown(text)) }
    }
}

/// How much of a log is not shown, in words to stand behind its name; none where all of it is.
#[must_use]
pub fn without(skipped: u64) -> String {
    if skipped == 0 {
        return String::new();
    }
    format!(", without its first {}", count(skipped, "byte"))
}

/// What a validation found.
#[must_use]
pub fn checks(run: &RunId, findings: &[Finding]) -> Markup {
    checked(run.as_str(), Some(findings))
}

/// Something that cannot be shown, and why.
#[must_use]
pub fn refused(why: &str, hint: Option<&str>) -> Markup {
    html! { p { (Shown(why)) } @if let Some(hint) = hint { p.note { (Shown(hint)) } } }
}
