//! What is answered to each address: pages, parts of pages and files, all under one strict policy. To look changes nothing.

use super::Dashboard;
use super::form::Fields;
use super::live::{current, tail};
use super::route::{Method, Named, Names};
use crate::command::report::material::Shelf;
use crate::command::validate;
use crate::failure::{Exit, Failure};
use jiff::Timestamp;
use treebeam_core::evidence::Artifact;
use treebeam_core::facts::{Baseline, Eval, Facts, KnownTurn};
use treebeam_core::id::{EvalId, Place, RunId, RunPath};
use treebeam_core::path;
use treebeam_edge::store::{RunFiles, StoreError};
use treebeam_edge::web::{Answer, Body, Request, Stream};
use treebeam_view::html::site::{self, Address, Looked, Search};
use treebeam_view::html::{Against, Markup, Material, asset, visible};
use treebeam_view::list::Listed;

/// What a page may do: run our own script, show our own style, talk to us, and nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
/// The longest file that is shown.
const MOST_FILE: usize = 16 << 20;
/// The longest idea that is searched.
const MOST_IDEA: usize = 4 << 20;
/// What the pages of the site add to the style of a report.
const STYLE: &str = include_str!("live.css");
/// What they do by themselves.
const SCRIPT: &str = include_str!("live.js");

/// A request that was let in, and the names in its address.
pub(super) struct Asked<'a> {
    pub(super) request: &'a Request,
    pub(super) names: Names,
}

impl Asked<'_> {
    pub(super) fn place(&self) -> Result<Place, Refusal> {
        self.names.place.ok_or_else(Refusal::nothing)
    }

    fn fields(&self) -> Fields {
        Fields::read(self.request.query.as_bytes())
    }
}

/// An answer, before it is sealed.
pub(super) struct Page {
    status: u16,
    kind: &'static str,
    body: Body,
}

impl Page {
    pub(super) fn html(
        name: &str,
        trail: &[(String, Address<'_>)],
        live: Option<(&str, &str)>,
        body: &Markup,
    ) -> Self {
        Self::text("text/html; charset=utf-8", site::frame(name, trail, live, body).into_string())
    }

    fn part(markup: Markup) -> Self {
        Self::text("text/html; charset=utf-8", markup.into_string())
    }

    fn text(kind: &'static str, text: String) -> Self {
        Self { status: 200, kind, body: Body::Whole(text.into_bytes()) }
    }

    pub(super) const fn events(stream: Stream) -> Self {
        Self { status: 200, kind: "text/event-stream", body: Body::Stream(stream) }
    }

    /// With the headers that every answer has.
    pub(super) fn seal(self) -> Answer {
        let headers = [
            ("content-type", self.kind),
            ("content-security-policy", POLICY),
            ("x-content-type-options", "nosniff"),
            // Where an address has the token, no other site is told it; with `no-referrer`, a form would not say that it is ours.
            ("referrer-policy", "same-origin"),
            ("cache-control", "no-store"),
            ("x-frame-options", "DENY"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
        ];
        let headers = headers.map(|(name, value)| (name, value.to_owned())).to_vec();
        Answer { status: self.status, headers, body: self.body }
    }
}

/// Why something is not shown or done.
pub(super) struct Refusal {
    status: u16,
    why: String,
    hint: Option<String>,
}

impl Refusal {
    pub(super) fn new(status: u16, why: impl Into<String>) -> Self {
        Self { status, why: why.into(), hint: None }
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(super) fn nothing() -> Self {
        Self::new(404, "there is nothing of that name")
    }

    pub(super) fn only(method: Method) -> Self {
        Self::new(405, format!("this is to be asked for by {}", method.name()))
    }

    pub(super) fn page(&self) -> Page {
        let body = site::refused(&self.why, self.hint.as_deref());
        Page { status: self.status, ..Page::html("Not this way", &[], None, &body) }
    }
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        let status = match failure.exit() {
            Exit::Usage => 400,
            Exit::Done
            | Exit::Failed
            | Exit::Locked
            | Exit::Environment
            | Exit::Invalid
            | Exit::Interrupted => 409,
        };
        let why = failure.chain().collect::<Vec<_>>().join(": ");
        Self { status, why, hint: failure.advice().map(str::to_owned) }
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        if matches!(error, StoreError::NotARun { .. }) {
            return Self::nothing();
        }
        Self { status: 500, ..Failure::from(error).into() }
    }
}

#[expect(clippy::unnecessary_wraps, reason = "as every address answers")]
pub(super) fn style(_: &Dashboard, _: &Asked<'_>) -> Result<Page, Refusal> {
    Ok(Page::text("text/css; charset=utf-8", format!("{}{STYLE}", asset::STYLE)))
}

#[expect(clippy::unnecessary_wraps, reason = "as every address answers")]
pub(super) fn script(_: &Dashboard, _: &Asked<'_>) -> Result<Page, Refusal> {
    Ok(Page::text("text/javascript; charset=utf-8", format!("{}{SCRIPT}", asset::SCRIPT)))
}

pub(super) fn runs(site: &Dashboard, _: &Asked<'_>) -> Result<Page, Refusal> {
    let body = site::runs(&listed(site)?);
    Ok(Page::html("Runs", &[], Some(("/events", "")), &body))
}

/// What changes on that page.
pub(super) fn list(site: &Dashboard, _: &Asked<'_>) -> Result<Page, Refusal> {
    Ok(Page::part(site::all_runs(&listed(site)?)))
}

fn listed(site: &Dashboard) -> Result<Vec<(RunId, Listed)>, Refusal> {
    Ok(site.listing.of(site.runs.all()?, Timestamp::now()))
}

/// The pages of a run, for the head of each.
fn trail(facts: &Facts) -> Vec<(String, Address<'_>)> {
    let run = &facts.run;
    vec![
        (format!("Run {run}"), Address::Run(run)),
        ("Evals".to_owned(), Address::Evals(run)),
        ("Compare".to_owned(), Address::Compare(run, None)),
        ("Validation".to_owned(), Address::Checks(run)),
    ]
}

/// A page of a run that hears what changes.
fn live(looked: &Looked<'_>, name: &str, body: &Markup) -> Page {
    let events = Address::Events(&looked.facts.run).to_string();
    Page::html(name, &trail(looked.facts), Some((&events, looked.version)), body)
}

/// One that stays as it is.
fn still(facts: &Facts, name: &str, body: &Markup) -> Page {
    Page::html(name, &trail(facts), None, body)
}

pub(super) fn run(site: &Dashboard, asked: &Asked<'_>) -> Result<Page, Refusal> {
    Ok(site.watched(asked)?.with(|looked| {
        live(looked, &format!("Run {}", looked.facts.run), &site::dashboard(looked))
    }))
}

pub(super) fn part(site: &Dashboard, asked: &Asked<'_>) -> Result<Page, Refusal> {
    let watched = site.watched(asked)?;
    match asked.names.part.ok_or_else(Refusal::nothing)? {
        Named::Part(part) => {
            let text = watched.part(part, |looked| site::part(looked, part).into_string());
            Ok(Page::text("text/html; charset=utf-8", text))
        }
        Named::Place(place) => {
            let files = RunFiles::new(watched.run.clone());
            watched.with(|looked| of_place(looked.facts, &files, place).map(Page::part))
        }
    }
}

fn of_place(facts: &Facts, files: &RunFiles, place: Place) -> Result<Markup, Refusal> {
    let material = match place {
        Place::Candidate(id) => {
            facts.eval(id).map(|eval| Shelf::of_one(files, facts).material(&eval))
        }
        Place::Node(id) => facts.node(id).map(|node| {
            let documents = Shelf::of_one(files, facts).questions(node);
            Material { documents, ..Material::default() }
        }),
    };
    let markup = material.and_then(|material| site::place(facts, place, &material));
    markup.ok_or_else(|| Refusal::new(404, format!("run {} has no {place}", facts.run)))
}

pub(super) fn place(site: &Dashboard, asked: &Asked<'_>) -> Result<Page, Refusal> {
    let (watched, place) = (site.watched(asked)?, asked.place()?);
    let files = RunFiles::new(watched.run.clone());
    watched.with(|looked| {
        let body = of_place(looked.facts, &files, place)?;
        let body = site::around(looked.facts, place, &body);
        Ok(live(looked, &place.to_string(), &body))
    })
}

fn search(asked: &Asked<'_>) -> Result<Search, Refusal> {
    let fields = asked.fields();
    let before = fields.get("before").map(str::parse::<EvalId>).transpose();
    let before = before.map_err(|error| Refusal::new(400, error.to_string()))?;
    Ok(Search { find: fields.get("find").unwrap_or_default().to_owned(), before })
}

/// The text of an eval's idea, as far as it can be read.
fn idea_of(files: &RunFiles, eval: &Eval) -> Option<String> {
    let (_, bytes) = files.glance(&eval.idea.path, MOST_IDEA)?;
    Some(String::from_utf8_lossy(&bytes?).into_owned())
}

pub(super) fn evals(site: &Dashboard, asked: &Asked<'_>) -> Result<Page, Refusal> {
    let (watched, search) = (site.watched(asked)?, search(asked)?);
    let files = RunFiles::new(watched.run.clone());
    Ok(watched.with(|looked| {
        let body = site::evals(looked.facts, &search, &|eval| idea_of(&files, eval));
        live(looked, "Evals", &body)
    }))
}

/// What changes on that page.
pub(super) fn found(site: &Dashboard, asked: &Asked<'_>) -> Result<Page, Refusal> {
    let (watched, search) = (site.watched(asked)?, search(asked)?);
    let files = RunFiles::new(watched.run.clone());
    let found =
        |looked: &Looked<'_>| site::found(looked.facts, &search, &|eval| idea_of(&files, eval));
    Ok(Page::part(watched.with(found)))
}

fn sides(asked: &Asked<'_>) -> Result<[Option<Place>; 2], Refusal> {
    let fields = asked.fields();
    let read = |name: &str| {
        let text = fields.get(name).map(str::trim).filter(|text| !text.is_empty());
        text.map(str::parse::<Place>)
            .transpose()
            .map_err(|error| Refusal::new(400, error.to_string()))
    };
    Ok([read("first")?, read("second")?])
}

pub(super) fn compare(site: &Dashboard, asked: &Asked<'_>) -> Result<Page, Refusal> {
    let (watched, sides) = (site.watched(asked)?, sides(asked)?);
    let files = RunFiles::new(watched.run.clone());
    Ok(watched.with(|looked| {
        let against = match sides {
            [Some(first), Some(second)] => between(looked.facts, &files, [first, second]),
            _ => None,
        };
        live(looked, "Compare", &site::compared(looked.facts, sides, against.as_ref()))
    }))
}

/// What changes on that page.
pub(super) fn both(site: &Dashboard, asked: &Asked<'_>) -> Result<Page, Refusal> {
    let [Some(first), Some(second)] = sides(asked)? else { return Err(Refusal::nothing()) };
    let watched = site.watched(asked)?;
    let files = RunFiles::new(watched.run.clone());
    Ok(watched.with(|looked| {
        let against = between(looked.facts, &files, [first, second]);
        Page::part(site::both(looked.facts, [first, second], against.as_ref()))
    }))
}

fn between(facts: &Facts, files: &RunFiles, [first, second]: [Place; 2]) -> Option<Against> {
    Shelf::of_one(files, facts).between(&results(facts, first)?, &results(facts, second)?)
}

fn results(facts: &Facts, place: Place) -> Option<Artifact> {
    match place {
        Place::Node(id) => facts.baseline_of(facts.node(id)?),
        Place::Candidate(id) => facts.eval(id)?.measured().map(|measured| measured.results),
    }
}

pub(super) fn validation(site: &Dashboard, asked: &Asked<'_>) -> Result<Page, Refusal> {
    let checked = validate::look(&site.found(asked)?)?;
    let body = site::checks(&checked.state.run, &checked.findings);
    Ok(still(&checked.state, "Validation", &body))
}

pub(super) fn log(site: &Dashboard, asked: &Asked<'_>) -> Result<Page, Refusal> {
    let (watched, place) = (site.watched(asked)?, asked.place()?);
    watched.with(|looked| {
        let facts = looked.facts;
        let there = match place {
            Place::Node(id) => facts.node(id).is_some(),
            Place::Candidate(id) => facts.eval(id).is_some(),
        };
        if !there {
            return Err(Refusal::new(404, format!("run {} has no {place}", facts.run)));
        }
        let found = current(facts, place, &watched.run);
        let read =
            found.and_then(|path| Some((tail(&watched.run.path(&path), path.as_str())?, path)));
        let body = match read {
            Some(((skipped, text, _), path)) => site::log(path.as_str(), skipped, &text),
            None => site::log("nothing was printed yet", 0, ""),
        };
        let events = Address::LogEvents(&facts.run, place).to_string();
        let name = format!("Log of {place}");
        Ok(Page::html(&name, &trail(facts), Some((&events, "")), &body))
    })
}

/// A file that the record names, as text. No other one is read, whatever the address says.
pub(super) fn file(site: &Dashboard, asked: &Asked<'_>) -> Result<Page, Refusal> {
    let watched = site.watched(asked)?;
    let fields = asked.fields();
    let named = fields.get("path").and_then(|path| path.parse::<RunPath>().ok());
    let named = named.ok_or_else(Refusal::nothing)?;
    let files = RunFiles::new(watched.run.clone());
    if !watched.with(|looked| is_on_record(looked.facts, &files, &named)) {
        return Err(Refusal::new(404, "the run has no such file on record"));
    }
    let text = match files.glance(&named, MOST_FILE) {
        Some((_, Some(bytes))) => visible(&String::from_utf8_lossy(&bytes)),
        Some((bytes, None)) => {
            return Err(Refusal::new(
                413,
                format!("the file has {bytes} bytes: too many to be shown"),
            ));
        }
        None => return Err(Refusal::nothing()),
    };
    Ok(Page::text("text/plain; charset=utf-8", text))
}

fn is_on_record(facts: &Facts, files: &RunFiles, path: &RunPath) -> bool {
    let root = match &facts.baseline {
        Baseline::Measured { results, .. } => Some(&results.path),
        Baseline::Unmeasured | Baseline::Refused { .. } => None,
    };
    let of_nodes = facts.nodes.iter().any(|node| {
        let results = facts.baseline_of(node);
        let of_turn = |turn: &KnownTurn<'_>| [turn.prompt_path(), turn.reply_path()];
        results.is_some_and(|results| results.path == *path)
            || path::conversation_summary(node.id) == *path
            || path.is_below(path::node_ideas(node.id).as_str())
                && node.conversation().iter().flat_map(of_turn).any(|own| own == *path)
    });
    let of_evals = facts.evals.iter().any(|eval| {
        let results = eval.measured().map(|measured| measured.results);
        let own = || Shelf::of_one(files, facts).documents(&eval).into_iter();
        results.is_some_and(|results| results.path == *path)
            || eval.idea.path == *path
            || path.is_below(path::eval(eval.id).as_str()) && own().any(|own| own.path == *path)
    });
    root == Some(path) || of_nodes || of_evals
}
