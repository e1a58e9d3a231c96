//! Defines the table of all addresses; any other address is not found.
//!
//! An address is parsed with the types of its parts, so that only valid names get any further.

use super::Dashboard;
use super::pages::{self, AdmittedRequest, PageRefusal, PageResponse};
use super::{actions, streams};
use treebeam_core::id::{CodePlace, RunId};
use treebeam_view::html::site::PagePart;

/// HTTP method of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RouteMethod {
    /// Read: changes nothing.
    Get,
    /// Request for a change.
    Post,
}

impl RouteMethod {
    /// Returns the name of the method in a request.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
        }
    }
}

type RouteHandler = fn(&Dashboard, &AdmittedRequest<'_>) -> Result<PageResponse, PageRefusal>;

/// A route: method, pattern and handler.
pub(crate) struct WebRoute {
    /// Method of the route.
    pub(crate) method: RouteMethod,
    /// Pattern of the path.
    pub(crate) pattern: &'static str,
    pub(super) answer: RouteHandler,
}

const fn get_route(pattern: &'static str, answer: RouteHandler) -> WebRoute {
    WebRoute { method: RouteMethod::Get, pattern, answer }
}

const fn post_route(pattern: &'static str, answer: RouteHandler) -> WebRoute {
    WebRoute { method: RouteMethod::Post, pattern, answer }
}

/// All routes of the server.
pub(crate) static WEB_ROUTES: [WebRoute; 22] = [
    get_route("/", pages::answer_runs),
    get_route("/list", pages::answer_run_list),
    get_route("/events", streams::stream_runs_events),
    get_route("/style.css", pages::answer_style),
    get_route("/script.js", pages::answer_script),
    get_route("/runs/{run}", pages::answer_run),
    get_route("/runs/{run}/part/{part}", pages::answer_part),
    get_route("/runs/{run}/evals", pages::answer_evals),
    get_route("/runs/{run}/evals/list", pages::answer_eval_list),
    get_route("/runs/{run}/compare", pages::answer_compare),
    get_route("/runs/{run}/compare/both", pages::answer_comparison_part),
    get_route("/runs/{run}/validation", pages::answer_validation),
    get_route("/runs/{run}/file", pages::answer_file),
    get_route("/runs/{run}/at/{place}", pages::answer_place),
    get_route("/runs/{run}/at/{place}/log", pages::answer_log),
    get_route("/runs/{run}/at/{place}/log/events", streams::stream_log),
    get_route("/runs/{run}/events", streams::stream_run_events),
    post_route("/runs/{run}/pause", actions::pause_run),
    post_route("/runs/{run}/unpause", actions::unpause_run),
    post_route("/runs/{run}/stop", actions::stop_run),
    post_route("/runs/{run}/stop-after-depth", actions::stop_run_after_depth),
    post_route("/runs/{run}/idea", actions::add_idea),
];

/// Names parsed from an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RouteParams {
    pub(super) run: Option<RunId>,
    pub(super) place: Option<CodePlace>,
    pub(super) part: Option<PartParam>,
}

/// A part of a page: of a run's, or of that of a node or an eval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartParam {
    Part(PagePart),
    Place(CodePlace),
}

/// Result of looking up an address.
pub(super) enum RouteMatch {
    Route(&'static WebRoute, RouteParams),
    /// The address exists with this other method.
    OtherMethod(RouteMethod),
    Nothing,
}

/// Finds the route of an address.
pub(super) fn find_route(method: &str, path: &str) -> RouteMatch {
    let fitting =
        WEB_ROUTES.iter().filter_map(|route| Some((route, match_pattern(route.pattern, path)?)));
    let mut other = None;
    for (route, names) in fitting {
        if route.method.name() == method {
            return RouteMatch::Route(route, names);
        }
        other = Some(route.method);
    }
    other.map_or(RouteMatch::Nothing, RouteMatch::OtherMethod)
}

/// Returns the names in a path, if it matches the pattern and all of them are valid.
fn match_pattern(pattern: &str, path: &str) -> Option<RouteParams> {
    let (mut parts, mut names) = (path.split('/'), RouteParams::default());
    for expected in pattern.split('/') {
        let found = parts.next()?;
        match expected {
            "{run}" => names.run = Some(found.parse().ok()?),
            "{place}" => names.place = Some(found.parse().ok()?),
            "{part}" => names.part = Some(parse_part_param(found)?),
            word => (word == found).then_some(())?,
        }
    }
    parts.next().is_none().then_some(names)
}

fn parse_part_param(text: &str) -> Option<PartParam> {
    let place = || text.parse().ok().map(PartParam::Place);
    PagePart::from_name(text).map(PartParam::Part).or_else(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_good_names_lead_anywhere() {
        let leads = |path: &str| matches!(find_route("GET", path), RouteMatch::Route(..));
        for path in [
            "/",
            "/runs/t",
            "/runs/20260131-220000/at/e0012",
            "/runs/t/part/n0000",
            "/runs/t/part/costs",
        ] {
            assert!(leads(path), "{path}");
        }
        for path in [
            "",
            "//",
            "/runs",
            "/runs/",
            "/runs//",
            "/runs/..",
            "/runs/../x",
            "/runs/%2e%2e",
            "/runs/t%2f..",
            "/runs/t\0",
            "/runs/t%00",
            "/runs/t/",
            "/runs/t/at/../events",
            "/runs/t/at/e12",
            "/runs/t/at/e0012%2f..",
            "/runs/t/at/n0000/..",
            "/runs/t/part/x",
            "/runs/t/at/e0012/log/",
            "/style.css/",
            "/./",
            "/runs/CON",
            "/runs/\u{fc}",
            "/runs/t\\x",
        ] {
            assert!(matches!(find_route("GET", path), RouteMatch::Nothing), "{path}");
        }
    }

    #[test]
    fn to_look_and_to_ask_for_a_change_are_two_things() {
        for route in &WEB_ROUTES {
            let path = route
                .pattern
                .replace("{run}", "t")
                .replace("{place}", "e0001")
                .replace("{part}", "costs");
            assert!(
                matches!(find_route(route.method.name(), &path), RouteMatch::Route(..)),
                "{path}"
            );
            let methods = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "get"];
            for other in methods.into_iter().filter(|other| *other != route.method.name()) {
                assert!(
                    matches!(find_route(other, &path), RouteMatch::OtherMethod(_)),
                    "{other} {path}"
                );
            }
        }
    }
}
