//! The screen of `treebeam watch`: a run while it goes on. Pure: what is known ([`Scene`]), what the user is at ([`Model`])
//! and the size give the lines; a key gives the next model. Reads no file, no clock and no keyboard, and draws nothing.
//!
//! # Layout
//! [`model`] is what a key does, `tree` the rows, `now` what is going on and how long it may take, `page` what lies over the
//! tree, [`diary`] what is remembered of the journal, [`line`] a line with its looks, `inert` makes text harmless.

pub mod diary;
mod inert;
pub mod line;
pub mod model;
mod now;
mod page;
mod tree;

pub use diary::Diary;
pub use line::{Line, Span, Tone};
pub use model::{Follow, Key, Model, Next, Wanted, update};
pub use page::papers;

use crate::outcome::Counts;
use crate::status;
use crate::words;
use jiff::Timestamp;
use model::Page;
use treebeam_core::facts::Facts;

/// What is known of a run.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    /// What is on record.
    pub facts: &'a Facts,
    /// What is remembered of its journal.
    pub diary: &'a Diary,
    /// Who runs it, if somebody does.
    pub runner: Option<&'a str>,
    /// The command that would go on with it.
    pub way_on: &'a str,
    /// What time it is.
    pub now: Timestamp,
    /// Where the run lies.
    pub directory: &'a str,
    /// The file that the user wants to see, if it is there.
    pub paper: Option<&'a Paper>,
    /// Why the record cannot be followed, if it cannot.
    pub trouble: Option<&'a str>,
}

/// The end of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paper {
    /// Its name.
    pub name: String,
    /// Which one it is.
    pub number: usize,
    /// Of how many.
    pub of: usize,
    /// How many bytes before it are left out.
    pub skipped: u64,
    /// The rest of it.
    pub text: String,
}

/// How large the screen is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// How wide.
    pub columns: usize,
    /// How high.
    pub rows: usize,
}

/// The smallest screen on which something can be seen.
const LEAST: Size = Size { columns: 40, rows: 10 };

/// The screen: as many lines as it has rows, none wider than its columns.
#[must_use]
pub fn draw(scene: &Scene<'_>, model: &Model, size: Size) -> Vec<Line> {
    let mut lines = match model.pages.last() {
        _ if size.columns < LEAST.columns || size.rows < LEAST.rows => too_small(),
        None | Some(Page::Filter) => overview(scene, model, size),
        Some(page) => page::draw(scene, *page, size),
    };
    lines.resize(size.rows, Line::default());
    lines.into_iter().map(|line| line.fit(size.columns)).collect()
}

fn too_small() -> Vec<Line> {
    let Size { columns, rows } = LEAST;
    vec![Line::of(Tone::Plain, &format!("at least {columns}×{rows}, please"))]
}

/// How the rows of the overview are shared out.
struct Shares {
    path: usize,
    slots: usize,
    tree: usize,
    events: usize,
}

impl Shares {
    fn of(size: Size, path: usize, slots: usize) -> Self {
        let (most_path, most_slots, events) = match size.rows {
            ..16 => (0, 1, 0),
            16..24 => (0, 2, 1),
            24..40 => (0, 3, 3),
            40.. => (6, 8, 10),
        };
        let (path, slots) = (path.min(most_path), slots.clamp(1, most_slots));
        let rules = if events > 0 { 3 } else { 2 };
        let others = HEAD + path + slots + events + rules + 1;
        Self { path, slots, tree: size.rows.saturating_sub(others), events }
    }
}

/// How many lines say how the run stands.
const HEAD: usize = 4;

/// How many rows of the tree are seen.
fn tree_height(scene: &Scene<'_>, size: Size) -> usize {
    Shares::of(size, now::path(scene.facts).len(), now::lines(scene).len()).tree
}

fn overview(scene: &Scene<'_>, model: &Model, size: Size) -> Vec<Line> {
    let (path, slots) = (now::path(scene.facts), now::lines(scene));
    let shares = Shares::of(size, path.len(), slots.len());
    let mut lines = head(scene, &path, &shares);
    lines.extend(busy(scene, slots, &shares, size));
    lines.extend(rows(scene, model, shares.tree, size));
    if shares.events > 0 {
        lines.push(rule("last events (UTC)", size));
        let events = scene.diary.last(shares.events);
        lines.extend(events.map(|(at, text)| {
            let time = at.strftime("%H:%M:%S").to_string();
            Line::of(Tone::Dim, &format!("  {time}  ")).add(Tone::Plain, text)
        }));
    }
    lines.resize(size.rows.saturating_sub(1), Line::default());
    lines.push(foot(scene, model));
    lines
}

/// How the run stands, what it took and what it has found.
fn head(scene: &Scene<'_>, path: &[String], shares: &Shares) -> Vec<Line> {
    let facts = scene.facts;
    let best = format!("best   {}", status::best(facts));
    let mut lines = vec![
        Line::of(Tone::Strong, &format!("run    {}", facts.run))
            .add(Tone::Plain, &format!(" · {}", words::phase(facts)))
            .add(Tone::Busy, &standing(scene)),
        Line::of(Tone::Plain, &format!("depth  {}", status::depth(facts)))
            .add(Tone::Plain, &format!(" · evals {}", evals(facts))),
        Line::of(Tone::Plain, &format!("budget {}", now::budget(scene))),
    ];
    if shares.path == 0 {
        let path =
            if path.is_empty() { String::new() } else { format!(" · {}", path.join(" → ")) };
        lines.push(Line::of(Tone::Good, &best).add(Tone::Plain, &path));
        return lines;
    }
    lines.push(Line::of(Tone::Good, &best));
    // The last ones led to it most directly.
    let from = path.len().saturating_sub(shares.path);
    lines.extend(
        path.iter().skip(from).map(|idea| Line::of(Tone::Plain, &format!("       {idea}"))),
    );
    lines
}

/// How many evals there are, and what became of them: what is going on comes first, for the end of a line may be cut.
fn evals(facts: &Facts) -> String {
    let counts = Counts::overall(facts);
    let most = facts.reach.max_total_idea_evals;
    let total = most
        .map_or_else(|| counts.total().to_string(), |most| format!("{}/{most}", counts.total()));
    if counts.total() == 0 { total } else { format!("{total}: {}", counts.open_first()) }
}

/// Whether somebody runs it, and how it goes on if not.
fn standing(scene: &Scene<'_>) -> String {
    let facts = scene.facts;
    match (scene.runner, facts.stop_reason()) {
        (Some(_), _) if facts.history.paused_since.is_some() => {
            format!(" · paused: `treebeam unpause {}`", facts.run)
        }
        (Some(by), _) => match facts.to_stop_after() {
            Some(depth) => format!(" · stops after depth {depth} · running: {by}"),
            None => format!(" · running: {by}"),
        },
        (None, None) => format!(" · nobody runs it: `{}`", scene.way_on),
        (None, Some(_)) => String::new(),
    }
}

/// What is going on at this moment, or would be if somebody ran it.
fn busy(scene: &Scene<'_>, mut slots: Vec<Line>, shares: &Shares, size: Size) -> Vec<Line> {
    let most = words::count(scene.facts.reach.max_parallel_evals.get(), "eval");
    let title = match (slots.len(), scene.runner) {
        (begun @ 1.., None) => format!("now: nobody is at work, {begun} begun"),
        (busy, _) => format!("now: {busy} busy, at most {most} at once"),
    };
    let mut lines = vec![rule(&title, size)];
    if slots.len() > shares.slots {
        let more = slots.split_off(shares.slots - 1).len();
        slots.push(Line::of(Tone::Dim, &format!("  and {more} more")));
    }
    if slots.is_empty() {
        slots.push(Line::of(Tone::Dim, "  nothing"));
    }
    lines.extend(slots);
    lines
}

/// The rows of the tree around the cursor.
fn rows(scene: &Scene<'_>, model: &Model, height: usize, size: Size) -> Vec<Line> {
    let rows = tree::rows(scene.facts, &model.filter);
    let path = tree::Path::to_best(scene.facts);
    let cursor = tree::chosen(&rows, model.cursor);
    let top = cursor.saturating_sub(height / 2).min(rows.len().saturating_sub(height));
    let number = words::count(rows.len(), "row");
    let title = match model.filter.as_str() {
        "" => format!("tree: {number}"),
        filter => format!("tree: {number} with `{filter}`"),
    };
    let mut lines = vec![rule(&title, size)];
    let seen = rows.iter().enumerate().skip(top).take(height);
    lines.extend(seen.map(|(index, row)| {
        let line = tree::line(scene.facts, *row, &path).fit(size.columns);
        if index == cursor { line.chosen(size.columns) } else { line }
    }));
    lines.resize(height + 1, Line::default());
    lines
}

/// A line between two parts, with what comes below it.
fn rule(title: &str, size: Size) -> Line {
    let head = Line::of(Tone::Dim, &format!("── {title} "));
    let rest = size.columns.saturating_sub(head.columns());
    head.add(Tone::Dim, &"─".repeat(rest))
}

fn foot(scene: &Scene<'_>, model: &Model) -> Line {
    if model.pages.last() == Some(&Page::Filter) {
        return Line::of(Tone::Strong, &format!("filter: {}_", model.filter))
            .add(Tone::Dim, "  Enter keeps it, Esc shows all");
    }
    match scene.trouble {
        Some(why) => Line::of(Tone::Bad, &format!("cannot be followed: {why}")),
        None => Line::of(Tone::Dim, "↑↓ move  Enter open  l log  / filter  b best  ? help  q quit"),
    }
}
