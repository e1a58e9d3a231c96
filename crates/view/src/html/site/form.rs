//! Renders the forms of the site. Each sends a request; none changes anything by itself.

use super::ViewedRun;
use super::link::SiteAddress;
use crate::html::visible_text::VisibleText;
use crate::safe_text::one_line;
use crate::words;
use maud::{Markup, html};
use treebeam_core::facts::Facts;
use treebeam_core::id::{CodePlace, Depth, RunId};

/// State of a run with regard to requests.
#[derive(Clone, Copy)]
enum SteeringState {
    /// No process runs it.
    Nobody,
    /// A process runs it.
    Running,
    /// A process runs it until the end of this depth.
    Stopping(Depth),
    /// A process runs it, but starts nothing new.
    Paused,
}

impl SteeringState {
    const fn from_run(looked: &ViewedRun<'_>) -> Self {
        let facts = looked.facts;
        match (looked.runner, facts.history.paused_since, facts.history.stop_after) {
            (None, ..) => Self::Nobody,
            (Some(_), Some(_), _) => Self::Paused,
            (Some(_), None, Some(depth)) => Self::Stopping(depth),
            (Some(_), None, None) => Self::Running,
        }
    }

    /// Returns the requests that are possible now, with the labels of their buttons.
    const fn available_requests(self) -> &'static [(&'static str, &'static str)] {
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

/// Renders the runner of a run, and the buttons to steer it.
pub(super) fn render_steering(looked: &ViewedRun<'_>) -> Markup {
    let (run, state) = (&looked.facts.run, SteeringState::from_run(looked));
    let over = looked.facts.stop_reason();
    let word = match state {
        SteeringState::Nobody if over.is_some() => "Over.".to_owned(),
        SteeringState::Nobody => match looked.facts.stopped_after() {
            Some(depth) => format!("Stopped after depth {depth}: nobody runs it."),
            None => "Nobody runs it.".to_owned(),
        },
        SteeringState::Running => "Running.".to_owned(),
        SteeringState::Stopping(depth) => format!("Running: stops after depth {depth}."),
        SteeringState::Paused => "Paused: what is running ends, nothing new starts.".to_owned(),
    };
    html! {
        @if let Some(trouble) = looked.trouble { p.trouble role="alert" { "What is shown may be old: " (VisibleText(trouble)) } }
        div.steering {
            strong { (word) }
            @if let Some(by) = looked.runner { span.note { (one_line(by)) } }
            @if let Some(reason) = over {
                span.note data-over { (words::describe_stop(reason)) ", so that nothing is left to steer and no idea can be added" }
            }
            @for (wish, says) in state.available_requests().iter().filter(|_| over.is_none()) {
                form.wish method="post" action=(SiteAddress::Wish(run, wish)) { button type="submit" { (says) } }
            }
        }
    }
}

/// Renders the result of the last request and a form for a user's idea. Both are outside of the
/// parts that are reloaded while a user types; once the run is over, the form is hidden.
pub(super) fn render_request_forms(facts: &Facts) -> Markup {
    let run = &facts.run;
    html! {
        p.said role="status" {}
        details.idea-form hidden[facts.stop_reason().is_some()] {
            summary { "Add an idea" }
            form.wish method="post" action=(SiteAddress::Wish(run, "idea")) {
                label for="idea-text" { "What is worth trying? The first line is its title." }
                textarea #idea-text name="text" rows="5" required {}
                label for="idea-node" { "On which node? Left open: the first of the frontier." }
                input #idea-node name="node" placeholder="n0003" autocomplete="off" pattern="n[0-9]{4,}";
                button type="submit" { "Add it" }
            }
        }
    }
}

/// Renders a search form for evals.
pub(super) fn render_search_form(run: &RunId, find: &str) -> Markup {
    html! {
        form.filter role="search" method="get" action=(SiteAddress::Evals(run)) {
            label { "Find " input type="search" name="find" value=(one_line(find)) placeholder="words of ideas, id or outcome" autocomplete="off"; }
            button type="submit" { "Search" }
        }
    }
}

/// Renders a form to choose two nodes or evals.
pub(super) fn render_compare_form(facts: &Facts, sides: [Option<CodePlace>; 2]) -> Markup {
    let value = |side: Option<CodePlace>| side.map(|place| place.to_string());
    let [first, second] = sides.map(value);
    html! {
        form.filter method="get" action=(SiteAddress::Compare(&facts.run, None)) {
            label { "Compare " input name="first" value=[first] placeholder="n0000" autocomplete="off" required; }
            label { "with " input name="second" value=[second] placeholder="e0012" autocomplete="off" required; }
            button type="submit" { "Compare" }
        }
    }
}

/// Renders the result of a request, with a link back.
#[must_use]
pub fn render_request_result(run: &RunId, text: &str) -> Markup {
    html! { p.said { (VisibleText(text)) } p { a href=(SiteAddress::Run(run)) { "Back to run " (run) } } }
}
