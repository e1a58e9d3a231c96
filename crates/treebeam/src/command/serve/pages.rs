//! Answers the read-only addresses: pages, parts of pages and files, all under one strict policy.

use super::Dashboard;
use super::form::FormFields;
use super::route::{PartParam, RouteMethod, RouteParams};
use super::streams::{find_current_log, read_log_tail};
use crate::command::report::run_texts::RunTexts;
use crate::command::validate;
use crate::failure::{CommandExit, CommandFailure};
use jiff::Timestamp;
use treebeam_core::evidence::Artifact;
use treebeam_core::facts::{Eval, Facts, NodeTurn, RootBaseline};
use treebeam_core::id::{CodePlace, EvalId, RunId, RunPath};
use treebeam_core::path;
use treebeam_store::{RunFiles, StoreError};
use treebeam_view::html::site::{self, EvalSearch, SiteAddress, ViewedRun};
use treebeam_view::html::{Markup, PageMaterial, SweepComparison, asset, escape_hidden};
use treebeam_view::list::ListedRun;
use treebeam_web::{EventStream, WebAnswer, WebBody, WebRequest};

/// Content policy of pages: our own script and style, connections to this server, and nothing else.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
/// Maximum size of a file that is shown.
const MAX_SHOWN_FILE_BYTES: usize = 16 << 20;
/// Maximum size of an idea that is searched.
const MAX_SEARCHED_IDEA_BYTES: usize = 4 << 20;
/// Style of the live pages, added to that of a report.
const LIVE_STYLE: &str = include_str!("live.css");
/// Script of the live pages.
const LIVE_SCRIPT: &str = include_str!("live.js");

/// An admitted request, with the names in its address.
pub(super) struct AdmittedRequest<'a> {
    pub(super) request: &'a WebRequest,
    pub(super) names: RouteParams,
}

impl AdmittedRequest<'_> {
    pub(super) fn requested_place(&self) -> Result<CodePlace, PageRefusal> {
        self.names.place.ok_or_else(PageRefusal::not_found)
    }

    fn query_fields(&self) -> FormFields {
        FormFields::parse(self.request.query.as_bytes())
    }
}

/// An answer before the common headers are added.
pub(super) struct PageResponse {
    status: u16,
    kind: &'static str,
    body: WebBody,
}

impl PageResponse {
    pub(super) fn from_html_body(
        name: &str,
        trail: &[(String, SiteAddress<'_>)],
        live: Option<(&str, &str)>,
        body: &Markup,
    ) -> Self {
        Self::from_text(
            "text/html; charset=utf-8",
            site::render_site_page(name, trail, live, body).into_string(),
        )
    }

    fn from_markup(markup: Markup) -> Self {
        Self::from_text("text/html; charset=utf-8", markup.into_string())
    }

    fn from_text(kind: &'static str, text: String) -> Self {
        Self { status: 200, kind, body: WebBody::Whole(text.into_bytes()) }
    }

    pub(super) const fn from_stream(stream: EventStream) -> Self {
        Self { status: 200, kind: "text/event-stream", body: WebBody::Stream(stream) }
    }

    /// Adds the headers that every answer has.
    pub(super) fn into_answer(self) -> WebAnswer {
        let headers = [
            ("content-type", self.kind),
            ("content-security-policy", CONTENT_SECURITY_POLICY),
            ("x-content-type-options", "nosniff"),
            // Keeps an address with the token from other sites; with `no-referrer`, a form would
            // not send its origin.
            ("referrer-policy", "same-origin"),
            ("cache-control", "no-store"),
            ("x-frame-options", "DENY"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
        ];
        let headers = headers.map(|(name, value)| (name, value.to_owned())).to_vec();
        WebAnswer { status: self.status, headers, body: self.body }
    }
}

/// Reason for not showing or doing something.
pub(super) struct PageRefusal {
    status: u16,
    why: String,
    hint: Option<String>,
}

impl PageRefusal {
    pub(super) fn new(status: u16, why: impl Into<String>) -> Self {
        Self { status, why: why.into(), hint: None }
    }

    pub(super) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(super) fn not_found() -> Self {
        Self::new(404, "there is nothing of that name")
    }

    pub(super) fn wrong_method(method: RouteMethod) -> Self {
        Self::new(405, format!("this is to be asked for by {}", method.name()))
    }

    pub(super) fn page_response(&self) -> PageResponse {
        let body = site::render_refusal(&self.why, self.hint.as_deref());
        PageResponse {
            status: self.status,
            ..PageResponse::from_html_body("Not this way", &[], None, &body)
        }
    }
}

impl From<CommandFailure> for PageRefusal {
    fn from(failure: CommandFailure) -> Self {
        let status = match failure.exit() {
            CommandExit::Usage => 400,
            CommandExit::Done
            | CommandExit::Failed
            | CommandExit::Locked
            | CommandExit::Environment
            | CommandExit::Invalid
            | CommandExit::Interrupted => 409,
        };
        let why = failure.chain().collect::<Vec<_>>().join(": ");
        Self { status, why, hint: failure.advice().map(str::to_owned) }
    }
}

impl From<StoreError> for PageRefusal {
    fn from(error: StoreError) -> Self {
        if matches!(error, StoreError::NotARun { .. }) {
            return Self::not_found();
        }
        Self { status: 500, ..CommandFailure::from(error).into() }
    }
}

#[expect(clippy::unnecessary_wraps, reason = "as every address answers")]
pub(super) fn answer_style(
    _: &Dashboard,
    _: &AdmittedRequest<'_>,
) -> Result<PageResponse, PageRefusal> {
    Ok(PageResponse::from_text(
        "text/css; charset=utf-8",
        format!("{}{LIVE_STYLE}", asset::PAGE_STYLE),
    ))
}

#[expect(clippy::unnecessary_wraps, reason = "as every address answers")]
pub(super) fn answer_script(
    _: &Dashboard,
    _: &AdmittedRequest<'_>,
) -> Result<PageResponse, PageRefusal> {
    Ok(PageResponse::from_text(
        "text/javascript; charset=utf-8",
        format!("{}{LIVE_SCRIPT}", asset::PAGE_SCRIPT),
    ))
}

pub(super) fn answer_runs(
    site: &Dashboard,
    _: &AdmittedRequest<'_>,
) -> Result<PageResponse, PageRefusal> {
    let body = site::render_runs_page(&list_served_runs(site)?);
    Ok(PageResponse::from_html_body("Runs", &[], Some(("/events", "")), &body))
}

/// Returns the changing part of the page of all runs.
pub(super) fn answer_run_list(
    site: &Dashboard,
    _: &AdmittedRequest<'_>,
) -> Result<PageResponse, PageRefusal> {
    Ok(PageResponse::from_markup(site::render_runs(&list_served_runs(site)?)))
}

fn list_served_runs(site: &Dashboard) -> Result<Vec<(RunId, ListedRun)>, PageRefusal> {
    Ok(site.listing.list_runs(site.runs.list_run_dirs()?, Timestamp::now()))
}

/// Returns the links to the pages of a run, for the head of each.
fn run_trail(facts: &Facts) -> Vec<(String, SiteAddress<'_>)> {
    let run = &facts.run;
    vec![
        (format!("Run {run}"), SiteAddress::Run(run)),
        ("Evals".to_owned(), SiteAddress::Evals(run)),
        ("Compare".to_owned(), SiteAddress::Compare(run, None)),
        ("Validation".to_owned(), SiteAddress::Checks(run)),
    ]
}

/// Returns a page of a run that updates itself.
fn live_page(looked: &ViewedRun<'_>, name: &str, body: &Markup) -> PageResponse {
    let events = SiteAddress::Events(&looked.facts.run).to_string();
    PageResponse::from_html_body(
        name,
        &run_trail(looked.facts),
        Some((&events, looked.version)),
        body,
    )
}

/// Returns a page of a run that does not change.
fn static_page(facts: &Facts, name: &str, body: &Markup) -> PageResponse {
    PageResponse::from_html_body(name, &run_trail(facts), None, body)
}

pub(super) fn answer_run(
    site: &Dashboard,
    asked: &AdmittedRequest<'_>,
) -> Result<PageResponse, PageRefusal> {
    Ok(site.watched_run(asked)?.with_snapshot(|looked| {
        live_page(looked, &format!("Run {}", looked.facts.run), &site::render_dashboard(looked))
    }))
}

pub(super) fn answer_part(
    site: &Dashboard,
    asked: &AdmittedRequest<'_>,
) -> Result<PageResponse, PageRefusal> {
    let watched = site.watched_run(asked)?;
    match asked.names.part.ok_or_else(PageRefusal::not_found)? {
        PartParam::Part(part) => {
            let text =
                watched.render_part(part, |looked| site::render_part(looked, part).into_string());
            Ok(PageResponse::from_text("text/html; charset=utf-8", text))
        }
        PartParam::Place(place) => {
            let files = RunFiles::new(watched.run.clone());
            watched.with_snapshot(|looked| {
                render_place(looked.facts, &files, place).map(PageResponse::from_markup)
            })
        }
    }
}

fn render_place(facts: &Facts, files: &RunFiles, place: CodePlace) -> Result<Markup, PageRefusal> {
    let material = match place {
        CodePlace::Candidate(id) => {
            facts.eval(id).map(|eval| RunTexts::for_one_eval(files, facts).eval_material(&eval))
        }
        CodePlace::Node(id) => facts.node(id).map(|node| {
            let documents = RunTexts::for_one_eval(files, facts).node_documents(node);
            PageMaterial { documents, ..PageMaterial::default() }
        }),
    };
    let markup = material.and_then(|material| site::render_place(facts, place, &material));
    markup.ok_or_else(|| PageRefusal::new(404, format!("run {} has no {place}", facts.run)))
}

pub(super) fn answer_place(
    site: &Dashboard,
    asked: &AdmittedRequest<'_>,
) -> Result<PageResponse, PageRefusal> {
    let (watched, place) = (site.watched_run(asked)?, asked.requested_place()?);
    let files = RunFiles::new(watched.run.clone());
    watched.with_snapshot(|looked| {
        let body = render_place(looked.facts, &files, place)?;
        let body = site::render_place_page(looked.facts, place, &body);
        Ok(live_page(looked, &place.to_string(), &body))
    })
}

fn parse_search(asked: &AdmittedRequest<'_>) -> Result<EvalSearch, PageRefusal> {
    let fields = asked.query_fields();
    let before = fields.get("before").map(str::parse::<EvalId>).transpose();
    let before = before.map_err(|error| PageRefusal::new(400, error.to_string()))?;
    Ok(EvalSearch { find: fields.get("find").unwrap_or_default().to_owned(), before })
}

/// Returns the text of an eval's idea, as far as it can be read.
fn read_idea_text(files: &RunFiles, eval: &Eval) -> Option<String> {
    let (_, bytes) = files.read_if_short(&eval.idea.path, MAX_SEARCHED_IDEA_BYTES)?;
    Some(String::from_utf8_lossy(&bytes?).into_owned())
}

pub(super) fn answer_evals(
    site: &Dashboard,
    asked: &AdmittedRequest<'_>,
) -> Result<PageResponse, PageRefusal> {
    let (watched, search) = (site.watched_run(asked)?, parse_search(asked)?);
    let files = RunFiles::new(watched.run.clone());
    Ok(watched.with_snapshot(|looked| {
        let body =
            site::render_evals_page(looked.facts, &search, &|eval| read_idea_text(&files, eval));
        live_page(looked, "Evals", &body)
    }))
}

/// Returns the changing part of the page of evals.
pub(super) fn answer_eval_list(
    site: &Dashboard,
    asked: &AdmittedRequest<'_>,
) -> Result<PageResponse, PageRefusal> {
    let (watched, search) = (site.watched_run(asked)?, parse_search(asked)?);
    let files = RunFiles::new(watched.run.clone());
    let found = |looked: &ViewedRun<'_>| {
        site::render_found_evals(looked.facts, &search, &|eval| read_idea_text(&files, eval))
    };
    Ok(PageResponse::from_markup(watched.with_snapshot(found)))
}

fn parse_sides(asked: &AdmittedRequest<'_>) -> Result<[Option<CodePlace>; 2], PageRefusal> {
    let fields = asked.query_fields();
    let read = |name: &str| {
        let text = fields.get(name).map(str::trim).filter(|text| !text.is_empty());
        text.map(str::parse::<CodePlace>)
            .transpose()
            .map_err(|error| PageRefusal::new(400, error.to_string()))
    };
    Ok([read("first")?, read("second")?])
}

pub(super) fn answer_compare(
    site: &Dashboard,
    asked: &AdmittedRequest<'_>,
) -> Result<PageResponse, PageRefusal> {
    let (watched, sides) = (site.watched_run(asked)?, parse_sides(asked)?);
    let files = RunFiles::new(watched.run.clone());
    Ok(watched.with_snapshot(|looked| {
        let against = match sides {
            [Some(first), Some(second)] => compare_places(looked.facts, &files, [first, second]),
            _ => None,
        };
        live_page(
            looked,
            "Compare",
            &site::render_compare_page(looked.facts, sides, against.as_ref()),
        )
    }))
}

/// Returns the changing part of the comparison page.
pub(super) fn answer_comparison_part(
    site: &Dashboard,
    asked: &AdmittedRequest<'_>,
) -> Result<PageResponse, PageRefusal> {
    let [Some(first), Some(second)] = parse_sides(asked)? else {
        return Err(PageRefusal::not_found());
    };
    let watched = site.watched_run(asked)?;
    let files = RunFiles::new(watched.run.clone());
    Ok(watched.with_snapshot(|looked| {
        let against = compare_places(looked.facts, &files, [first, second]);
        PageResponse::from_markup(site::render_compared_places(
            looked.facts,
            [first, second],
            against.as_ref(),
        ))
    }))
}

fn compare_places(
    facts: &Facts,
    files: &RunFiles,
    [first, second]: [CodePlace; 2],
) -> Option<SweepComparison> {
    RunTexts::for_one_eval(files, facts)
        .compare_artifacts(&results_of(facts, first)?, &results_of(facts, second)?)
}

fn results_of(facts: &Facts, place: CodePlace) -> Option<Artifact> {
    match place {
        CodePlace::Node(id) => facts.baseline_of(facts.node(id)?),
        CodePlace::Candidate(id) => {
            facts.eval(id)?.scored_candidate().map(|measured| measured.results)
        }
    }
}

pub(super) fn answer_validation(
    site: &Dashboard,
    asked: &AdmittedRequest<'_>,
) -> Result<PageResponse, PageRefusal> {
    let checked = validate::validate_run(&site.requested_run(asked)?)?;
    let body = site::render_checks(&checked.state.run, &checked.findings);
    Ok(static_page(&checked.state, "Validation", &body))
}

pub(super) fn answer_log(
    site: &Dashboard,
    asked: &AdmittedRequest<'_>,
) -> Result<PageResponse, PageRefusal> {
    let (watched, place) = (site.watched_run(asked)?, asked.requested_place()?);
    watched.with_snapshot(|looked| {
        let facts = looked.facts;
        let there = match place {
            CodePlace::Node(id) => facts.node(id).is_some(),
            CodePlace::Candidate(id) => facts.eval(id).is_some(),
        };
        if !there {
            return Err(PageRefusal::new(404, format!("run {} has no {place}", facts.run)));
        }
        let found = find_current_log(facts, place, &watched.run);
        let read = found.and_then(|path| {
            Some((read_log_tail(&watched.run.file_path(&path), path.as_str())?, path))
        });
        let body = match read {
            Some(((skipped, text, _), path)) => site::render_log(path.as_str(), skipped, &text),
            None => site::render_log("nothing was printed yet", 0, ""),
        };
        let events = SiteAddress::LogEvents(&facts.run, place).to_string();
        let name = format!("Log of {place}");
        Ok(PageResponse::from_html_body(&name, &run_trail(facts), Some((&events, "")), &body))
    })
}

/// Returns a file that the record names, as text. No other file is read, whatever the address says.
pub(super) fn answer_file(
    site: &Dashboard,
    asked: &AdmittedRequest<'_>,
) -> Result<PageResponse, PageRefusal> {
    let watched = site.watched_run(asked)?;
    let fields = asked.query_fields();
    let named = fields.get("path").and_then(|path| path.parse::<RunPath>().ok());
    let named = named.ok_or_else(PageRefusal::not_found)?;
    let files = RunFiles::new(watched.run.clone());
    if !watched.with_snapshot(|looked| is_on_record(looked.facts, &files, &named)) {
        return Err(PageRefusal::new(404, "the run has no such file on record"));
    }
    let text = match files.read_if_short(&named, MAX_SHOWN_FILE_BYTES) {
        Some((_, Some(bytes))) => escape_hidden(&String::from_utf8_lossy(&bytes)),
        Some((bytes, None)) => {
            return Err(PageRefusal::new(
                413,
                format!("the file has {bytes} bytes: too many to be shown"),
            ));
        }
        None => return Err(PageRefusal::not_found()),
    };
    Ok(PageResponse::from_text("text/plain; charset=utf-8", text))
}

fn is_on_record(facts: &Facts, files: &RunFiles, path: &RunPath) -> bool {
    let root = match &facts.baseline {
        RootBaseline::Measured { results, .. } => Some(&results.path),
        RootBaseline::Unmeasured | RootBaseline::Refused { .. } => None,
    };
    let of_nodes = facts.nodes.iter().any(|node| {
        let results = facts.baseline_of(node);
        let of_turn = |turn: &NodeTurn<'_>| [turn.prompt_path(), turn.reply_path()];
        results.is_some_and(|results| results.path == *path)
            || path::conversation_summary(node.id) == *path
            || path.is_below(path::node_ideas_folder(node.id).as_str())
                && node.conversation_turns().iter().flat_map(of_turn).any(|own| own == *path)
    });
    let of_evals = facts.evals.iter().any(|eval| {
        let results = eval.scored_candidate().map(|measured| measured.results);
        let own = || RunTexts::for_one_eval(files, facts).eval_documents(&eval).into_iter();
        results.is_some_and(|results| results.path == *path)
            || eval.idea.path == *path
            || path.is_below(path::eval_folder(eval.id).as_str())
                && own().any(|own| own.path == *path)
    });
    root == Some(path) || of_nodes || of_evals
}
