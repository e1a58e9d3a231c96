//! Every address that is answered, as one table: what is not in it is not there. An address is read with the types of its
//! parts, so that nothing else than a good name gets any further.

use super::Dashboard;
use super::pages::{self, Asked, Page, Refusal};
use super::{act, live};
use treebeam_core::id::{Place, RunId};
use treebeam_view::html::site::Part;

/// What is asked for by an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// To look: changes nothing.
    Get,
    /// To ask for a change.
    Post,
}

impl Method {
    /// As it stands in a request.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
        }
    }
}

type Answering = fn(&Dashboard, &Asked<'_>) -> Result<Page, Refusal>;

/// One address.
pub(crate) struct Route {
    /// How it is asked for.
    pub(crate) method: Method,
    /// What it looks like.
    pub(crate) pattern: &'static str,
    pub(super) answer: Answering,
}

const fn get(pattern: &'static str, answer: Answering) -> Route {
    Route { method: Method::Get, pattern, answer }
}

const fn post(pattern: &'static str, answer: Answering) -> Route {
    Route { method: Method::Post, pattern, answer }
}

/// All of them.
pub(crate) static ROUTES: [Route; 22] = [
    get("/", pages::runs),
    get("/list", pages::list),
    get("/events", live::runs),
    get("/style.css", pages::style),
    get("/script.js", pages::script),
    get("/runs/{run}", pages::run),
    get("/runs/{run}/part/{part}", pages::part),
    get("/runs/{run}/evals", pages::evals),
    get("/runs/{run}/evals/list", pages::found),
    get("/runs/{run}/compare", pages::compare),
    get("/runs/{run}/compare/both", pages::both),
    get("/runs/{run}/validation", pages::validation),
    get("/runs/{run}/file", pages::file),
    get("/runs/{run}/at/{place}", pages::place),
    get("/runs/{run}/at/{place}/log", pages::log),
    get("/runs/{run}/at/{place}/log/events", live::log),
    get("/runs/{run}/events", live::events),
    post("/runs/{run}/pause", act::pause),
    post("/runs/{run}/unpause", act::unpause),
    post("/runs/{run}/stop", act::stop),
    post("/runs/{run}/stop-after-depth", act::stop_after_depth),
    post("/runs/{run}/idea", act::idea),
];

/// The names in an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Names {
    pub(super) run: Option<RunId>,
    pub(super) place: Option<Place>,
    pub(super) part: Option<Named>,
}

/// A part of a page: of a run's, or of that of a node or an eval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Named {
    Part(Part),
    Place(Place),
}

/// What an address leads to.
pub(super) enum Found {
    Route(&'static Route, Names),
    /// There is such an address, to be asked for in this way.
    Otherwise(Method),
    Nothing,
}

/// Finds what an address leads to.
pub(super) fn find(method: &str, path: &str) -> Found {
    let fitting = ROUTES.iter().filter_map(|route| Some((route, names(route.pattern, path)?)));
    let mut other = None;
    for (route, names) in fitting {
        if route.method.name() == method {
            return Found::Route(route, names);
        }
        other = Some(route.method);
    }
    other.map_or(Found::Nothing, Found::Otherwise)
}

/// The names in a path, if it has this form and all of them are good.
fn names(pattern: &str, path: &str) -> Option<Names> {
    let (mut parts, mut names) = (path.split('/'), Names::default());
    for expected in pattern.split('/') {
        let found = parts.next()?;
        match expected {
            "{run}" => names.run = Some(found.parse().ok()?),
            "{place}" => names.place = Some(found.parse().ok()?),
            "{part}" => names.part = Some(named(found)?),
            word => (word == found).then_some(())?,
        }
    }
    parts.next().is_none().then_some(names)
}

fn named(text: &str) -> Option<Named> {
    let place = || text.parse().ok().map(Named::Place);
    Part::named(text).map(Named::Part).or_else(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_good_names_lead_anywhere() {
        let leads = |path: &str| matches!(find("GET", path), Found::Route(..));
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
            assert!(matches!(find("GET", path), Found::Nothing), "{path}");
        }
    }

    #[test]
    fn to_look_and_to_ask_for_a_change_are_two_things() {
        for route in &ROUTES {
            let path = route
                .pattern
                .replace("{run}", "t")
                .replace("{place}", "e0001")
                .replace("{part}", "costs");
            assert!(matches!(find(route.method.name(), &path), Found::Route(..)), "{path}");
            let methods = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "get"];
            for other in methods.into_iter().filter(|other| *other != route.method.name()) {
                assert!(matches!(find(other, &path), Found::Otherwise(_)), "{other} {path}");
            }
        }
    }
}
