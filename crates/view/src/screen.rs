//! Draws the screen of `treebeam watch`: a run in progress. Pure: the known data ([`WatchScene`]),
//! the user's position ([`ScreenModel`]) and the size determine the lines; a key determines the
//! next model. Reads no file, clock or keyboard, and prints nothing.
//!
//! # Layout
//! [`model`] handles keys, [`mod@tree`] makes the rows of the tree, [`mod@current_work`] lists
//! activities and estimates, [`mod@page`] draws the pages over the tree, [`watch_history`] keeps
//! recent events, [`line`] is a styled line, [`mod@inert_text`] makes text harmless.

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

/// Data that the screen shows of a run.
#[derive(Clone, Copy, Debug)]
pub struct WatchScene<'a> {
    /// Recorded facts.
    pub facts: &'a Facts,
    /// Recent events of the journal.
    pub history: &'a WatchHistory,
    /// Process that runs the run, if any.
    pub runner: Option<&'a str>,
    /// Command that resumes the run.
    pub resume_command: &'a str,
    /// Current time.
    pub now: Timestamp,
    /// Run directory.
    pub directory: &'a str,
    /// File that the user wants to see, if it exists.
    pub paper: Option<&'a ScreenFile>,
    /// Reason why the record cannot be followed, if any.
    pub trouble: Option<&'a str>,
}

/// End of a file, for showing it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScreenFile {
    /// Name of the file.
    pub name: String,
    /// Number of the file among the available ones.
    pub number: usize,
    /// Number of available files.
    pub count: usize,
    /// Number of bytes skipped before the text.
    pub skipped: u64,
    /// Text of the rest of the file.
    pub text: String,
}

/// Size of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScreenSize {
    /// Width in columns.
    pub columns: usize,
    /// Height in rows.
    pub rows: usize,
}

/// Smallest usable screen.
const MIN_SCREEN_SIZE: ScreenSize = ScreenSize { columns: 40, rows: 10 };

/// Draws the screen: as many lines as it has rows, none wider than its columns.
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

/// Numbers of rows of the parts of the overview.
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

/// Number of lines that show the state of the run.
const HEAD_LINES: usize = 4;

/// Returns the number of visible rows of the tree.
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

/// Returns the lines with state, costs and best path.
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
    // The last ideas are the most relevant ones.
    let from = path.len().saturating_sub(shares.path);
    lines.extend(
        path.iter()
            .skip(from)
            .map(|idea| ScreenLine::new(ScreenTone::Plain, &format!("       {idea}"))),
    );
    lines
}

/// Formats the number of evals by status, unfinished ones first, because the end of a line may be
/// cut.
fn format_evals(facts: &Facts) -> String {
    let counts = EvalCounts::overall(facts);
    let most = facts.limits.max_total_idea_evals;
    let total = most
        .map_or_else(|| counts.total().to_string(), |most| format!("{}/{most}", counts.total()));
    if counts.total() == 0 { total } else { format!("{total}: {}", counts.format_open_first()) }
}

/// Describes which process runs the run, or how to resume it.
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

/// Returns the lines with current activities, or with those begun if no process runs the run.
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

/// Returns the rows of the tree around the cursor.
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

/// Returns a line between two parts, with a title.
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
