//! The forms of the site: each asks for something, none does anything by itself.

use super::Looked;
use super::link::Address;
use crate::html::text::Shown;
use crate::line::one_line;
use crate::words;
use maud::{Markup, html};
use treebeam_core::facts::Facts;
use treebeam_core::id::{Depth, Place, RunId};

/// What can be asked of whoever runs a run.
#[derive(Clone, Copy)]
enum Steering {
    /// Nobody runs it.
    Nobody,
    /// Somebody does.
    Running,
    /// Somebody does, until this depth is at its end.
    Stopping(Depth),
    /// Somebody does, and starts nothing new.
    Paused,
}

impl Steering {
    const fn of(looked: &Looked<'_>) -> Self {
        let facts = looked.facts;
        match (looked.runner, facts.history.paused_since, facts.history.stop_after) {
            (None, ..) => Self::Nobody,
            (Some(_), Some(_), _) => Self::Paused,
            (Some(_), None, Some(depth)) => Self::Stopping(depth),
            (Some(_), None, None) => Self::Running,
        }
    }

    /// The wishes that mean something now, each with what a button says.
    const fn wishes(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Nobody => &[],
            Self::Running => &[
                ("pause", "Pause"),
                ("stop-after-depth", "Stop after this depth"),
                ("stop", "Stop"),
            ],
            Self::Stopping(_) => {
                &[("pause", "Pause"), ("unpause", "Do not stop after it"), ("stop", "Stop now")]
            }
            Self::Paused => &[("unpause", "Go on"), ("stop", "Stop")],
        }
    }
}

/// Who runs a run, and the buttons to steer it by.
pub(super) fn steering(looked: &Looked<'_>) -> Markup {
    let (run, state) = (&looked.facts.run, Steering::of(looked));
    let over = looked.facts.stop_reason();
    let word = match state {
        Steering::Nobody if over.is_some() => "Over.".to_owned(),
        Steering::Nobody => match looked.facts.stopped_after() {
            Some(depth) => format!("Stopped after depth {depth}: nobody runs it."),
            None => "Nobody runs it.".to_owned(),
        },
        Steering::Running => "Running.".to_owned(),
        Steering::Stopping(depth) => format!("Running: stops after depth {depth}."),
        Steering::Paused => "Paused: what is running ends, nothing new starts.".to_owned(),
    };
    html! {
        @if let Some(trouble) = looked.trouble { p.trouble role="alert" { "What is shown may be old: " (Shown(trouble)) } }
        div.steering {
            strong { (word) }
            @if let Some(by) = looked.runner { span.note { (one_line(by)) } }
            @if let Some(reason) = over {
                span.note data-over { (words::stop(reason)) ", so that nothing is left to steer and no idea can be added" }
            }
            @for (wish, says) in state.wishes().iter().filter(|_| over.is_none()) {
                form.wish method="post" action=(Address::Wish(run, wish)) { button type="submit" { (says) } }
            }
        }
    }
}

/// What came of the last wish, and a form for an idea of the user's own. They stand apart from what is made anew while
/// somebody reads and types; once the run is over there is nothing to ask for.
pub(super) fn wishes(facts: &Facts) -> Markup {
    let run = &facts.run;
    html! {
        p.said role="status" {}
        details.idea-form hidden[facts.stop_reason().is_some()] {
            summary { "Add an idea" }
            form.wish method="post" action=(Address::Wish(run, "idea")) {
                label for="idea-text" { "What is worth trying? The first line is its title." }
                textarea #idea-text name="text" rows="5" required {}
                label for="idea-node" { "On which node? Left open: the first of the frontier." }
                input #idea-node name="node" placeholder="n0003" autocomplete="off" pattern="n[0-9]{4,}";
                button type="submit" { "Add it" }
            }
        }
    }
}

/// A search for ideas.
pub(super) fn search(run: &RunId, find: &str) -> Markup {
    html! {
        form.filter role="search" method="get" action=(Address::Evals(run)) {
            label { "Find " input type="search" name="find" value=(one_line(find)) placeholder="words of ideas, id or outcome" autocomplete="off"; }
            button type="submit" { "Search" }
        }
    }
}

/// Two nodes or evals to compare.
pub(super) fn sides(facts: &Facts, sides: [Option<Place>; 2]) -> Markup {
    let value = |side: Option<Place>| side.map(|place| place.to_string());
    let [first, second] = sides.map(value);
    html! {
        form.filter method="get" action=(Address::Compare(&facts.run, None)) {
            label { "Compare " input name="first" value=[first] placeholder="n0000" autocomplete="off" required; }
            label { "with " input name="second" value=[second] placeholder="e0012" autocomplete="off" required; }
            button type="submit" { "Compare" }
        }
    }
}

/// What came of a wish, with the way back.
#[must_use]
pub fn told(run: &RunId, text: &str) -> Markup {
    html! { p.said { (Shown(text)) } p { a href=(Address::Run(run)) { "Back to run " (run) } } }
}
