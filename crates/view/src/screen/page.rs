//! The pages that lie over the tree: all about a node or an eval, a file of it, and the keys. A page is as many lines as it
//! needs; which of them are seen is said by the model.

use super::line::{Line, Tone};
use super::model::{At, Page};
use super::{Paper, Scene, Size};
use crate::read;
use crate::screen::inert::inert;
use crate::show;
use crate::width::{pieces, wrap};
use crate::words::count;
use treebeam_core::event::Subject;
use treebeam_core::facts::{Eval, Facts};
use treebeam_core::id::{NodeId, Place, RunPath};
use treebeam_core::path;

/// What stands beside the name of a field, in the screen of `treebeam show`.
const INDENT: usize = 12;

const HELP: [(&str, &str); 13] = [
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

/// The page with its title and its keys.
pub(super) fn draw(scene: &Scene<'_>, page: Page, size: Size) -> Vec<Line> {
    let content = content(scene, page, size);
    let seen = height(size);
    let last = content.len().saturating_sub(seen);
    let top = match page {
        Page::Item { top, .. } | Page::Help { top } | Page::Paper { at: At::Line(top), .. } => {
            top.min(last)
        }
        Page::Paper { at: At::End, .. } | Page::Filter => last,
    };
    let (first, all) = (top + 1, content.len());
    let place = format!("{first}–{} of {all}", (top + seen).min(all));
    let mut lines = vec![title(scene, page)];
    lines.extend(content.into_iter().skip(top).take(seen));
    lines.resize(size.rows.saturating_sub(1), Line::default());
    lines.push(keys(page).add(Tone::Dim, &place));
    lines
}

/// How many lines of it are seen.
pub(super) const fn height(size: Size) -> usize {
    size.rows.saturating_sub(2)
}

fn title(scene: &Scene<'_>, page: Page) -> Line {
    let run = &scene.facts.run;
    match page {
        Page::Item { place, .. } => Line::of(Tone::Strong, &format!("{place} of run {run}")),
        Page::Help { .. } | Page::Filter => Line::of(Tone::Strong, "keys of `treebeam watch`"),
        Page::Paper { place, .. } => match scene.paper {
            None => Line::of(Tone::Strong, &format!("{place} of run {run}")),
            Some(Paper { name, number, of, .. }) => Line::of(Tone::Strong, &format!("{place}: "))
                .add(Tone::Strong, name)
                .add(Tone::Dim, &format!(" ({number} of {})", count(*of, "file"))),
        },
    }
}

fn keys(page: Page) -> Line {
    Line::of(
        Tone::Dim,
        match page {
            Page::Item { .. } => "↑↓ scroll  l log  Esc back  ? help  q quit  ",
            Page::Paper { at: At::End, .. } => {
                "following  ↑ scroll  Tab next file  Esc back  q quit  "
            }
            Page::Paper { at: At::Line(_), .. } => {
                "↑↓ scroll  G follow  Tab next file  Esc back  q quit  "
            }
            Page::Help { .. } | Page::Filter => "Esc back  q quit  ",
        },
    )
}

/// All lines of a page, none wider than the screen.
pub(super) fn content(scene: &Scene<'_>, page: Page, size: Size) -> Vec<Line> {
    match page {
        Page::Filter => Vec::new(),
        Page::Item { place, .. } => item(scene, place, size),
        Page::Paper { .. } => paper(scene.paper, size),
        Page::Help { .. } => HELP
            .iter()
            .map(|(key, what)| {
                Line::of(Tone::Strong, &format!("  {key:<18}")).add(Tone::Plain, what)
            })
            .collect(),
    }
}

fn item(scene: &Scene<'_>, place: Place, size: Size) -> Vec<Line> {
    let text = show(scene.facts, place, scene.directory);
    let text = text.unwrap_or_else(|| "it is not on record any more".to_owned());
    text.lines().flat_map(|line| hanging(line, size.columns)).collect()
}

/// A line that goes on below its value where it is too long.
fn hanging(line: &str, columns: usize) -> Vec<Line> {
    let line = inert(line);
    let name: String = line.chars().take(INDENT).collect();
    let value = line.get(name.len()..).unwrap_or_default();
    let words = value.trim_start();
    let indent = value.len() - words.len();
    let parts = wrap(words, columns.saturating_sub(INDENT + indent).max(1));
    let below = " ".repeat(INDENT);
    let names = std::iter::once(name.as_str()).chain(std::iter::repeat(below.as_str()));
    let pair = |(name, value): (&str, &String)| {
        Line::of(Tone::Dim, name).add(Tone::Plain, &format!("{:indent$}{value}", ""))
    };
    names.zip(&parts).map(pair).collect()
}

fn paper(paper: Option<&Paper>, size: Size) -> Vec<Line> {
    let Some(paper) = paper else {
        return vec![Line::of(Tone::Dim, "nothing has been written yet")];
    };
    let skipped = (paper.skipped > 0).then(|| {
        Line::of(Tone::Dim, &format!("({} before are not shown)", count(paper.skipped, "byte")))
    });
    let lines = paper.text.lines().flat_map(|line| {
        // What was written over on its line, as progress is, is not seen on a terminal either.
        let last = line.trim_end_matches('\r').rsplit('\r').next().unwrap_or(line);
        pieces(&inert(last), size.columns)
    });
    skipped.into_iter().chain(lines.map(|line| Line::of(Tone::Plain, &line))).collect()
}

/// The files of a node or an eval that are worth reading, what is looked at most first; of each, the places where it may
/// lie.
#[must_use]
pub fn papers(facts: &Facts, place: Place) -> Vec<Vec<RunPath>> {
    let eval = match place {
        Place::Node(NodeId::ROOT) => return of_root(facts),
        Place::Node(id) => facts.node(id).and_then(|node| read::source(facts, node)),
        Place::Candidate(id) => facts.eval(id),
    };
    eval.map_or_else(Vec::new, |eval| of_eval(facts, &eval))
}

fn of_root(facts: &Facts) -> Vec<Vec<RunPath>> {
    let folder = path::submission(Subject::Root, facts.submissions(Subject::Root));
    path::LOGS.iter().rev().map(|log| vec![folder.join(log)]).collect()
}

fn of_eval(facts: &Facts, eval: &Eval) -> Vec<Vec<RunPath>> {
    let subject = Subject::Eval(eval.id);
    let output = path::submission(subject, facts.submissions(subject));
    let [drafted, measured] =
        [eval.drafted_in(), eval.attempt].map(|attempt| path::attempt(eval.id, attempt));
    let logs = path::LOGS.iter().rev().map(|log| vec![output.join(log), measured.join(log)]);
    let texts = ["candidate.diff", "idea.md"];
    let experiment = path::experiment(eval.id);
    let texts = texts.iter().map(|name| vec![drafted.join(name), experiment.join(name)]);
    logs.chain(texts).collect()
}
