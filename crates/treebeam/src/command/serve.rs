//! `treebeam serve`: shows the runs of a repository in a browser, live.
//!
//! Reads the runs as `treebeam watch` does, and requests changes as `pause`, `unpause`, `stop` and
//! `idea add` do; it takes no lock and writes nothing else.
//!
//! # Layout
//! [`mod@guard`] admits requests, [`mod@route`] is the table of all addresses, [`mod@pages`]
//! answers those that read, [`mod@actions`] those that request a change, [`mod@streams`] those that
//! stay open. [`mod@hub`] follows runs, [`mod@listing`] caches digests of all of them,
//! [`mod@page_changes`] maps events to changed parts, [`mod@form`] parses fields. `live.js` and
//! `live.css` are added to script and style of a report.

mod actions;
mod form;
mod guard;
mod hub;
mod listing;
mod page_changes;
mod pages;
pub(crate) mod route;
mod streams;

use super::OutputFormat;
use crate::cli::ServeArgs;
use crate::failure::{CommandExit, CommandFailure};
use crate::run_location::{RepoHome, RunLocation};
use crate::terminal;
use guard::{GuardRefusal, RequestGuard, TokenSource};
use hub::{RunHub, WatchedRun};
use listing::RunListingCache;
use pages::{AdmittedRequest, PageRefusal};
use serde_json::json;
use std::env;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;
use treebeam_agent::forbid_inspection;
use treebeam_core::id::{RunId, Sha256};
use treebeam_process::interrupt;
use treebeam_store::{RunDir, StoreError};
use treebeam_web::{RequestTimeouts, WebAnswer, WebRequest, WebServer, WebSite};

/// Environment variable with the token: with a known token, pages find a restarted server again.
const TOKEN_VARIABLE: &str = "TREEBEAM_SERVE_TOKEN";
/// Maximum time for receiving the parts of a request.
const REQUEST_TIMEOUTS: RequestTimeouts =
    RequestTimeouts { head: Duration::from_secs(5), body: Duration::from_secs(10) };
/// Minimum length of a token; a shorter one might be guessed.
const MIN_TOKEN_BYTES: usize = 20;

pub(super) fn run_serve(
    here: &Path,
    args: &ServeArgs,
    output: OutputFormat,
) -> Result<CommandExit, CommandFailure> {
    // This process holds the token. If it cannot be shielded it is as open as any other program.
    drop(forbid_inspection());
    let runs = ServedRuns::find(here, args.run.as_deref())?;
    let (listener, at) = bind_listener(args)?;
    let (guard, hub) = (
        RequestGuard::new(at, choose_token()?, runs.folder_digest()),
        RunHub::new(random_token()?),
    );
    let start = runs.named.as_ref().map_or_else(|| "/".to_owned(), |(id, _)| format!("/runs/{id}"));
    let address = guard.address_with_token(at, &start);
    let (asked, is_asked) = channel();
    interrupt::listen_for_interrupts(move || {
        let _ = asked.send(());
    })?;
    let runs = Arc::new(runs);
    let site = Dashboard { runs, guard, hub, listing: RunListingCache::default() };
    let server = WebServer::start(listener, Arc::new(site), REQUEST_TIMEOUTS)?;
    match output {
        OutputFormat::Json => terminal::print_json(&json!({
            "schema": "treebeam.serve/1",
            "url": address,
            "host": at.ip(),
            "port": at.port(),
        }))?,
        OutputFormat::Text => {
            terminal::print_text(&format!("{address}\n"))?;
            terminal::print_note("whoever has this address can look, and steer; Ctrl-C ends it");
        }
    }
    // There is no other sender: this ends on a request to stop.
    let _ = is_asked.recv();
    server.stop();
    Ok(CommandExit::Interrupted)
}

/// Binds the server's address.
fn bind_listener(args: &ServeArgs) -> Result<(TcpListener, SocketAddr), CommandFailure> {
    let ip: IpAddr = args.host;
    if ip.is_unspecified() {
        let what = format!("`--host {ip}` is no address that a browser could call");
        return Err(CommandFailure::usage(what)
            .with_hint("name the one under which this machine is reached"));
    }
    if !ip.is_loopback() {
        terminal::print_note(&format!(
            "whoever reaches {ip} can try this address, and what is said is not encrypted"
        ));
    }
    let unavailable = |error| {
        CommandFailure::environment(format!("cannot listen at {ip}, port {}: {error}", args.port))
            .with_hint("leave `--port` out for one that is free")
    };
    let listener = TcpListener::bind((ip, args.port)).map_err(unavailable)?;
    let at = listener.local_addr().map_err(unavailable)?;
    Ok((listener, at))
}

fn choose_token() -> Result<String, CommandFailure> {
    match env::var(TOKEN_VARIABLE).ok().filter(|token| !token.is_empty()) {
        None => random_token(),
        Some(token) => {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
            if token.len() >= MIN_TOKEN_BYTES && token.bytes().all(plain) {
                return Ok(token);
            }
            let what = format!("`{TOKEN_VARIABLE}` is no token");
            let hint =
                format!("{MIN_TOKEN_BYTES} or more letters, digits, `-` and `_`; or leave it out");
            Err(CommandFailure::usage(what).with_hint(hint))
        }
    }
}

fn random_token() -> Result<String, CommandFailure> {
    Ok(treebeam_web::random_bytes()?.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The served runs: those of the repository, and the one that was named.
struct ServedRuns {
    home: Option<RepoHome>,
    named: Option<(RunId, RunLocation)>,
}

impl ServedRuns {
    fn find(here: &Path, name: Option<&str>) -> Result<Self, CommandFailure> {
        let Some(name) = name else {
            return Ok(Self { home: Some(RepoHome::find(here)?), named: None });
        };
        let found = RunLocation::find(here, Some(name))?;
        let id = treebeam_store::open_to_read(&found.run)?.state.run.clone();
        Ok(Self { home: RepoHome::find(here).ok(), named: Some((id, found)) })
    }

    /// Returns the digest of the served folder: that of the named run, or else the one of all runs.
    fn folder_digest(&self) -> Sha256 {
        let named = self.named.as_ref().map(|(_, found)| found.run.root());
        let folder = named.or_else(|| self.home.as_ref().map(|home| home.runs_root.as_path()));
        let folder = folder.unwrap_or(Path::new(""));
        let real = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        Sha256::hash_bytes(real.as_os_str().as_encoded_bytes())
    }
}

impl ServedRuns {
    /// Lists all runs with their directories, the newest first.
    fn list_run_dirs(&self) -> Result<Vec<(RunId, RunDir)>, StoreError> {
        let ids = self
            .home
            .as_ref()
            .map_or_else(|| Ok(Vec::new()), |home| treebeam_store::list_runs(&home.runs_root))?;
        let here = self
            .home
            .iter()
            .flat_map(|home| ids.iter().rev().map(|id| (id.clone(), home.run_dir(id))));
        let named = self.named.iter().map(|(id, found)| (id.clone(), found.run.clone()));
        let other = named.filter(|(id, _)| !ids.contains(id));
        let all = other.chain(here).collect();
        Ok(all)
    }
}

/// State of the server behind the addresses.
struct Dashboard {
    runs: Arc<ServedRuns>,
    guard: RequestGuard,
    hub: RunHub,
    listing: RunListingCache,
}

impl Dashboard {
    fn find_run(&self, id: &RunId) -> Result<RunLocation, PageRefusal> {
        if let Some((_, found)) = self.runs.named.as_ref().filter(|(named, _)| named == id) {
            return Ok(RunLocation { run: found.run.clone(), repo: found.repo.clone() });
        }
        let home = self.runs.home.as_ref().ok_or_else(PageRefusal::not_found)?;
        let run = home.run_dir(id);
        if !run.journal_path().is_file() && !run.manifest_path().is_file() {
            return Err(PageRefusal::new(404, format!("there is no run {id}")));
        }
        Ok(RunLocation { run, repo: Some(home.repo.clone()) })
    }

    fn requested_run(&self, asked: &AdmittedRequest<'_>) -> Result<RunLocation, PageRefusal> {
        self.find_run(asked.names.run.as_ref().ok_or_else(PageRefusal::not_found)?)
    }

    fn watched_run(&self, asked: &AdmittedRequest<'_>) -> Result<Arc<WatchedRun>, PageRefusal> {
        let id = asked.names.run.as_ref().ok_or_else(PageRefusal::not_found)?;
        Ok(self.hub.watch_run(id, &self.find_run(id)?.run)?)
    }

    fn admit_request(&self, request: &WebRequest) -> Result<WebAnswer, PageRefusal> {
        let shown = self.guard.check_request(request).map_err(refuse_request)?;
        let (route, names) = match route::find_route(&request.method, &request.path) {
            route::RouteMatch::Route(route, names) => (route, names),
            route::RouteMatch::OtherMethod(method) => {
                return Err(PageRefusal::wrong_method(method));
            }
            route::RouteMatch::Nothing => return Err(PageRefusal::not_found()),
        };
        let mut answer = (route.answer)(self, &AdmittedRequest { request, names })?.into_answer();
        if shown == TokenSource::InAddress {
            answer.headers.push(("set-cookie", self.guard.set_cookie_header()));
        }
        Ok(answer)
    }
}

impl WebSite for Dashboard {
    fn answer_request(&self, request: &WebRequest) -> WebAnswer {
        self.admit_request(request).unwrap_or_else(|refusal| refusal.page_response().into_answer())
    }

    fn answer_too_long(&self) -> WebAnswer {
        PageRefusal::new(413, "this is more than is read at once").page_response().into_answer()
    }
}

fn refuse_request(stranger: GuardRefusal) -> PageRefusal {
    let why = match stranger {
        GuardRefusal::Host => "this server is not known by that name",
        GuardRefusal::Origin => "another site may not ask for this",
        GuardRefusal::Token => "this address lacks its token",
    };
    PageRefusal::new(403, why).with_hint("open the address that `treebeam serve` printed")
}
