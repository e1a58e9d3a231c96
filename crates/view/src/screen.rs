//! The screen of `treebeam watch`: a run while it goes on. Pure: what is known ([`WatchScene`]), what the user is at ([`ScreenModel`])
//! and the size give the lines; a key gives the next model. Reads no file, no clock and no keyboard, and draws nothing.
//!
//! # Layout
//! [`model`] is what a key does, `tree` the rows, `current_work` what is going on and how long it
//! may take, `page` what lies over the tree, [`watch_history`] what is remembered of the journal,
//! [`mod@line`] a line with its looks, `inert_text` makes text harmless.

mod current_work;
mod inert_text;
pub mod line;
pub mod model;
mod page;
mod tree;
pub mod watch_history;

pub use line::{LineSpan, ScreenLine, ScreenTone};
pub use model::{FollowMode, ScreenKey, ScreenModel, ScreenUpdate, WantedFile, update_model};
pub use page::screen_files;
pub use watch_history::WatchHistory;

use crate::outcome::EvalCounts;
use crate::status;
use crate::words;
use jiff::Timestamp;
use model::ScreenPage;
use treebeam_core::facts::Facts;

/// What is known of a run.
#[derive(Clone, Copy, Debug)]
pub struct WatchScene<'a> {
    /// What is on record.
    pub facts: &'a Facts,
    /// What is remembered of its journal.
    pub history: &'a WatchHistory,
    /// Who runs it, if somebody does.
    pub runner: Option<&'a str>,
    /// The command that would go on with it.
    pub resume_command: &'a str,
    /// What time it is.
    pub now: Timestamp,
    /// Where the run lies.
    pub directory: &'a str,
    /// The file that the user wants to see, if it is there.
    pub paper: Option<&'a ScreenFile>,
    /// Why the record cannot be followed, if it cannot.
    pub trouble: Option<&'a str>,
}

/// The end of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScreenFile {
    /// Its name.
    pub name: String,
    /// Which one it is.
    pub number: usize,
    /// Of how many.
    pub count: usize,
    /// How many bytes before it are left out.
    pub skipped: u64,
    /// The rest of it.
    pub text: String,
}

/// How large the screen is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScreenSize {
    /// How wide.
    pub columns: usize,
    /// How high.
    pub rows: usize,
}

/// The smallest screen on which something can be seen.
const MIN_SCREEN_SIZE: ScreenSize = ScreenSize { columns: 40, rows: 10 };

/// The screen: as many lines as it has rows, none wider than its columns.
#[must_use]
pub fn draw_screen(
    scene: &WatchScene<'_>,
    model: &ScreenModel,
    size: ScreenSize,
) -> Vec<ScreenLine> {
    let mut lines = match model.pages.last() {
        _ if size.columns < MIN_SCREEN_SIZE.columns || size.rows < MIN_SCREEN_SIZE.rows => {
            too_small()
        }
        None | Some(ScreenPage::Filter) => overview_lines(scene, model, size),
        Some(page) => page::draw_page(scene, *page, size),
    };
    lines.resize(size.rows, ScreenLine::default());
    lines.into_iter().map(|line| line.fit_columns(size.columns)).collect()
}

fn too_small() -> Vec<ScreenLine> {
    let ScreenSize { columns, rows } = MIN_SCREEN_SIZE;
    vec![ScreenLine::new(ScreenTone::Plain, &format!("at least {columns}×{rows}, please"))]
}

/// How the rows of the overview are shared out.
struct RowShares {
    path: usize,
    slots: usize,
    tree: usize,
    events: usize,
}

impl RowShares {
    fn new(size: ScreenSize, path: usize, slots: usize) -> Self {
        let (most_path, most_slots, events) = match size.rows {
            ..16 => (0, 1, 0),
            16..24 => (0, 2, 1),
            24..40 => (0, 3, 3),
            40.. => (6, 8, 10),
        };
        let (path, slots) = (path.min(most_path), slots.clamp(1, most_slots));
        let rules = if events > 0 { 3 } else { 2 };
        let others = HEAD_LINES + path + slots + events + rules + 1;
        Self { path, slots, tree: size.rows.saturating_sub(others), events }
    }
}

/// How many lines say how the run stands.
const HEAD_LINES: usize = 4;

/// How many rows of the tree are seen.
fn tree_height(scene: &WatchScene<'_>, size: ScreenSize) -> usize {
    RowShares::new(
        size,
        current_work::best_path_ideas(scene.facts).len(),
        current_work::activity_lines(scene).len(),
    )
    .tree
}

fn overview_lines(
    scene: &WatchScene<'_>,
    model: &ScreenModel,
    size: ScreenSize,
) -> Vec<ScreenLine> {
    let (path, slots) =
        (current_work::best_path_ideas(scene.facts), current_work::activity_lines(scene));
    let shares = RowShares::new(size, path.len(), slots.len());
    let mut lines = head_lines(scene, &path, &shares);
    lines.extend(busy_lines(scene, slots, &shares, size));
    lines.extend(tree_lines(scene, model, shares.tree, size));
    if shares.events > 0 {
        lines.push(divider_line("last events (UTC)", size));
        let events = scene.history.last_events(shares.events);
        lines.extend(events.map(|(at, text)| {
            let time = at.strftime("%H:%M:%S").to_string();
            ScreenLine::new(ScreenTone::Dim, &format!("  {time}  "))
                .with_span(ScreenTone::Plain, text)
        }));
    }
    lines.resize(size.rows.saturating_sub(1), ScreenLine::default());
    lines.push(foot_line(scene, model));
    lines
}

/// How the run stands, what it took and what it has found.
fn head_lines(scene: &WatchScene<'_>, path: &[String], shares: &RowShares) -> Vec<ScreenLine> {
    let facts = scene.facts;
    let best = format!("best   {}", status::format_best(facts));
    let mut lines = vec![
        ScreenLine::new(ScreenTone::Strong, &format!("run    {}", facts.run))
            .with_span(ScreenTone::Plain, &format!(" · {}", words::describe_phase(facts)))
            .with_span(ScreenTone::Busy, &format_run_status(scene)),
        ScreenLine::new(ScreenTone::Plain, &format!("depth  {}", status::format_depth(facts)))
            .with_span(ScreenTone::Plain, &format!(" · evals {}", format_evals(facts))),
        ScreenLine::new(
            ScreenTone::Plain,
            &format!("budget {}", current_work::format_budget(scene)),
        ),
    ];
    if shares.path == 0 {
        let path =
            if path.is_empty() { String::new() } else { format!(" · {}", path.join(" → ")) };
        lines.push(ScreenLine::new(ScreenTone::Good, &best).with_span(ScreenTone::Plain, &path));
        return lines;
    }
    lines.push(ScreenLine::new(ScreenTone::Good, &best));
    // The last ones led to it most directly.
    let from = path.len().saturating_sub(shares.path);
    lines.extend(
        path.iter()
            .skip(from)
            .map(|idea| ScreenLine::new(ScreenTone::Plain, &format!("       {idea}"))),
    );
    lines
}

/// How many evals there are, and what became of them: what is going on comes first, for the end of a line may be cut.
fn format_evals(facts: &Facts) -> String {
    let counts = EvalCounts::overall(facts);
    let most = facts.limits.max_total_idea_evals;
    let total = most
        .map_or_else(|| counts.total().to_string(), |most| format!("{}/{most}", counts.total()));
    if counts.total() == 0 { total } else { format!("{total}: {}", counts.format_open_first()) }
}

/// Whether somebody runs it, and how it goes on if not.
fn format_run_status(scene: &WatchScene<'_>) -> String {
    let facts = scene.facts;
    match (scene.runner, facts.stop_reason()) {
        (Some(_), _) if facts.history.paused_since.is_some() => {
            format!(" · paused: `treebeam unpause {}`", facts.run)
        }
        (Some(by), _) => match facts.pending_stop_after() {
            Some(depth) => format!(" · stops after depth {depth} · running: {by}"),
            None => format!(" · running: {by}"),
        },
        (None, None) => format!(" · nobody runs it: `{}`", scene.resume_command),
        (None, Some(_)) => String::new(),
    }
}

/// What is going on at this moment, or would be if somebody ran it.
fn busy_lines(
    scene: &WatchScene<'_>,
    mut slots: Vec<ScreenLine>,
    shares: &RowShares,
    size: ScreenSize,
) -> Vec<ScreenLine> {
    let most = words::format_count(scene.facts.limits.max_parallel_evals.get(), "eval");
    let title = match (slots.len(), scene.runner) {
        (begun @ 1.., None) => format!("now: nobody is at work, {begun} begun"),
        (busy, _) => format!("now: {busy} busy, at most {most} at once"),
    };
    let mut lines = vec![divider_line(&title, size)];
    if slots.len() > shares.slots {
        let more = slots.split_off(shares.slots - 1).len();
        slots.push(ScreenLine::new(ScreenTone::Dim, &format!("  and {more} more")));
    }
    if slots.is_empty() {
        slots.push(ScreenLine::new(ScreenTone::Dim, "  nothing"));
    }
    lines.extend(slots);
    lines
}

/// The rows of the tree around the cursor.
fn tree_lines(
    scene: &WatchScene<'_>,
    model: &ScreenModel,
    height: usize,
    size: ScreenSize,
) -> Vec<ScreenLine> {
    let rows = tree::tree_rows(scene.facts, &model.filter);
    let path = tree::BestPathNodes::from_facts(scene.facts);
    let cursor = tree::cursor_row(&rows, model.cursor);
    let top = cursor.saturating_sub(height / 2).min(rows.len().saturating_sub(height));
    let number = words::format_count(rows.len(), "row");
    let title = match model.filter.as_str() {
        "" => format!("tree: {number}"),
        filter => format!("tree: {number} with `{filter}`"),
    };
    let mut lines = vec![divider_line(&title, size)];
    let seen = rows.iter().enumerate().skip(top).take(height);
    lines.extend(seen.map(|(index, row)| {
        let line = tree::tree_line(scene.facts, *row, &path).fit_columns(size.columns);
        if index == cursor { line.highlighted(size.columns) } else { line }
    }));
    lines.resize(height + 1, ScreenLine::default());
    lines
}

/// A line between two parts, with what comes below it.
fn divider_line(title: &str, size: ScreenSize) -> ScreenLine {
    let head = ScreenLine::new(ScreenTone::Dim, &format!("── {title} "));
    let rest = size.columns.saturating_sub(head.columns());
    head.with_span(ScreenTone::Dim, &"─".repeat(rest))
}

fn foot_line(scene: &WatchScene<'_>, model: &ScreenModel) -> ScreenLine {
    if model.pages.last() == Some(&ScreenPage::Filter) {
        return ScreenLine::new(ScreenTone::Strong, &format!("filter: {}_", model.filter))
            .with_span(ScreenTone::Dim, "  Enter keeps it, Esc shows all");
    }
    match scene.trouble {
        Some(why) => ScreenLine::new(ScreenTone::Bad, &format!("cannot be followed: {why}")),
        None => ScreenLine::new(
            ScreenTone::Dim,
            "↑↓ move  Enter open  l log  / filter  b best  ? help  q quit",
        ),
    }
}
