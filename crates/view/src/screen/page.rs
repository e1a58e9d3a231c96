//! Draws the pages over the tree: the record of a node or an eval, a file, and the help. A page has
//! as many lines as it needs; the model tells which are visible.

use super::line::{ScreenLine, ScreenTone};
use super::model::{FilePosition, ScreenPage};
use super::{ScreenFile, ScreenSize, WatchScene};
use crate::lookup;
use crate::render_show;
use crate::screen::inert_text::make_inert;
use crate::width::{column_pieces, wrap_text};
use crate::words::format_count;
use treebeam_core::event::SweepSubject;
use treebeam_core::facts::{Eval, Facts};
use treebeam_core::id::{CodePlace, NodeId, RunPath};
use treebeam_core::path;

/// Width of the field names on the screen of `treebeam show`.
const VALUE_INDENT: usize = 12;

const HELP_LINES: [(&str, &str); 13] = [
    ("↑ ↓ j k", "one line up or down"),
    ("PgUp PgDn Space", "one screen up or down"),
    ("Home End g G", "to the beginning, to the end"),
    ("Enter →", "all about the node or the eval under the cursor"),
    ("l", "its logs and files; the end of one that grows is followed"),
    ("Tab", "the next one of its files"),
    ("/ f", "only rows with a text: `failed`, `e0012`, a word of an idea"),
    ("b", "to the best node"),
    ("Esc ← h", "back, or show all rows again"),
    ("?", "this page"),
    ("q", "leave; the run goes on"),
    ("", ""),
    ("", "Nothing that is done here changes the run."),
];

/// Draws a page with title and keys.
pub(super) fn draw_page(
    scene: &WatchScene<'_>,
    page: ScreenPage,
    size: ScreenSize,
) -> Vec<ScreenLine> {
    let content = page_content(scene, page, size);
    let seen = page_height(size);
    let last = content.len().saturating_sub(seen);
    let top = match page {
        ScreenPage::Item { top, .. }
        | ScreenPage::Help { top }
        | ScreenPage::Paper { at: FilePosition::Line(top), .. } => top.min(last),
        ScreenPage::Paper { at: FilePosition::End, .. } | ScreenPage::Filter => last,
    };
    let (first, all) = (top + 1, content.len());
    let place = format!("{first}–{} of {all}", (top + seen).min(all));
    let mut lines = vec![title_line(scene, page)];
    lines.extend(content.into_iter().skip(top).take(seen));
    lines.resize(size.rows.saturating_sub(1), ScreenLine::default());
    lines.push(keys_line(page).with_span(ScreenTone::Dim, &place));
    lines
}

/// Returns the number of visible lines.
pub(super) const fn page_height(size: ScreenSize) -> usize {
    size.rows.saturating_sub(2)
}

fn title_line(scene: &WatchScene<'_>, page: ScreenPage) -> ScreenLine {
    let run = &scene.facts.run;
    match page {
        ScreenPage::Item { place, .. } => {
            ScreenLine::new(ScreenTone::Strong, &format!("{place} of run {run}"))
        }
        ScreenPage::Help { .. } | ScreenPage::Filter => {
            ScreenLine::new(ScreenTone::Strong, "keys of `treebeam watch`")
        }
        ScreenPage::Paper { place, .. } => match scene.paper {
            None => ScreenLine::new(ScreenTone::Strong, &format!("{place} of run {run}")),
            Some(ScreenFile { name, number, count: of, .. }) => {
                ScreenLine::new(ScreenTone::Strong, &format!("{place}: "))
                    .with_span(ScreenTone::Strong, name)
                    .with_span(
                        ScreenTone::Dim,
                        &format!(" ({number} of {})", format_count(*of, "file")),
                    )
            }
        },
    }
}

fn keys_line(page: ScreenPage) -> ScreenLine {
    ScreenLine::new(
        ScreenTone::Dim,
        match page {
            ScreenPage::Item { .. } => "↑↓ scroll  l log  Esc back  ? help  q quit  ",
            ScreenPage::Paper { at: FilePosition::End, .. } => {
                "following  ↑ scroll  Tab next file  Esc back  q quit  "
            }
            ScreenPage::Paper { at: FilePosition::Line(_), .. } => {
                "↑↓ scroll  G follow  Tab next file  Esc back  q quit  "
            }
            ScreenPage::Help { .. } | ScreenPage::Filter => "Esc back  q quit  ",
        },
    )
}

/// Returns all lines of a page, none wider than the screen.
pub(super) fn page_content(
    scene: &WatchScene<'_>,
    page: ScreenPage,
    size: ScreenSize,
) -> Vec<ScreenLine> {
    match page {
        ScreenPage::Filter => Vec::new(),
        ScreenPage::Item { place, .. } => item_lines(scene, place, size),
        ScreenPage::Paper { .. } => file_lines(scene.paper, size),
        ScreenPage::Help { .. } => HELP_LINES
            .iter()
            .map(|(key, what)| {
                ScreenLine::new(ScreenTone::Strong, &format!("  {key:<18}"))
                    .with_span(ScreenTone::Plain, what)
            })
            .collect(),
    }
}

fn item_lines(scene: &WatchScene<'_>, place: CodePlace, size: ScreenSize) -> Vec<ScreenLine> {
    let text = render_show(scene.facts, place, scene.directory);
    let text = text.unwrap_or_else(|| "it is not on record any more".to_owned());
    text.lines().flat_map(|line| hanging_lines(line, size.columns)).collect()
}

/// Wraps a line; continuation lines are indented below its value.
fn hanging_lines(line: &str, columns: usize) -> Vec<ScreenLine> {
    let line = make_inert(line);
    let name: String = line.chars().take(VALUE_INDENT).collect();
    let value = line.get(name.len()..).unwrap_or_default();
    let words = value.trim_start();
    let indent = value.len() - words.len();
    let parts = wrap_text(words, columns.saturating_sub(VALUE_INDENT + indent).max(1));
    let below = " ".repeat(VALUE_INDENT);
    let names = std::iter::once(name.as_str()).chain(std::iter::repeat(below.as_str()));
    let pair = |(name, value): (&str, &String)| {
        ScreenLine::new(ScreenTone::Dim, name)
            .with_span(ScreenTone::Plain, &format!("{:indent$}{value}", ""))
    };
    names.zip(&parts).map(pair).collect()
}

fn file_lines(paper: Option<&ScreenFile>, size: ScreenSize) -> Vec<ScreenLine> {
    let Some(paper) = paper else {
        return vec![ScreenLine::new(ScreenTone::Dim, "nothing has been written yet")];
    };
    let skipped = (paper.skipped > 0).then(|| {
        ScreenLine::new(
            ScreenTone::Dim,
            &format!("({} before are not shown)", format_count(paper.skipped, "byte")),
        )
    });
    let lines = paper.text.lines().flat_map(|line| {
        // Text overwritten by a carriage return, such as progress, is not visible on a terminal
        // either.
        let last = line.trim_end_matches('\r').rsplit('\r').next().unwrap_or(line);
        column_pieces(&make_inert(last), size.columns)
    });
    skipped.into_iter().chain(lines.map(|line| ScreenLine::new(ScreenTone::Plain, &line))).collect()
}

/// Returns the files of a node or an eval, the most useful first; for each, its possible paths.
#[must_use]
pub fn screen_files(facts: &Facts, place: CodePlace) -> Vec<Vec<RunPath>> {
    let eval = match place {
        CodePlace::Node(NodeId::ROOT) => return root_files(facts),
        CodePlace::Node(id) => facts.node(id).and_then(|node| lookup::source_eval(facts, node)),
        CodePlace::Candidate(id) => facts.eval(id),
    };
    eval.map_or_else(Vec::new, |eval| eval_files(facts, &eval))
}

fn root_files(facts: &Facts) -> Vec<Vec<RunPath>> {
    let folder =
        path::submission_folder(SweepSubject::Root, facts.submission_count(SweepSubject::Root));
    path::LOG_FILES.iter().rev().map(|log| vec![folder.join(log)]).collect()
}

fn eval_files(facts: &Facts, eval: &Eval) -> Vec<Vec<RunPath>> {
    let subject = SweepSubject::Eval(eval.id);
    let output = path::submission_folder(subject, facts.submission_count(subject));
    let [drafted, measured] = [eval.candidate_attempt(), eval.attempt]
        .map(|attempt| path::attempt_folder(eval.id, attempt));
    let logs = path::LOG_FILES.iter().rev().map(|log| vec![output.join(log), measured.join(log)]);
    let texts = ["candidate.diff", "idea.md"];
    let experiment = path::experiment_folder(eval.id);
    let texts = texts.iter().map(|name| vec![drafted.join(name), experiment.join(name)]);
    logs.chain(texts).collect()
}
