//! `treebeam serve`: the runs of a repository in a browser, live. Reads the runs as `treebeam watch` does, and asks for
//! changes as `pause`, `unpause`, `stop` and `idea add` do; it takes no lock and writes nothing else.
//!
//! # Layout
//! `guard` says who is let in, [`route`] is the table of all addresses, `pages` answers those that look, `act` those that ask
//! for a change, `live` those that stay open; `hub` keeps up with runs, `listing` remembers all of them in short, `news` says
//! what an event changes, `form` reads fields. `live.js` and `live.css` are added to the script and the style of a report.

mod act;
mod form;
mod guard;
mod hub;
mod listing;
mod live;
mod news;
mod pages;
pub(crate) mod route;

use super::Output;
use crate::cli::ServeArgs;
use crate::failure::{Exit, Failure};
use crate::terminal;
use crate::wiring::{Found, Home};
use guard::{Guard, Shown, Stranger};
use hub::{Hub, Watched};
use listing::Listing;
use pages::{Asked, Refusal};
use serde_json::json;
use std::env;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;
use treebeam_core::id::{RunId, Sha256};
use treebeam_edge::agent::shield;
use treebeam_edge::store::{RunDir, StoreError};
use treebeam_edge::web::{Answer, Request, RequestTimeouts, Server, Site};
use treebeam_edge::{interrupt, store, web};

/// The token, where the user wants to know it beforehand: so pages find their server again when it was started anew.
const TOKEN: &str = "TREEBEAM_SERVE_TOKEN";
/// How long the parts of a request may take to come.
const REQUEST_TIMEOUTS: RequestTimeouts =
    RequestTimeouts { head: Duration::from_secs(5), body: Duration::from_secs(10) };
/// A shorter one might be guessed.
const SHORTEST_TOKEN: usize = 20;

pub(super) fn run(here: &Path, args: &ServeArgs, output: Output) -> Result<Exit, Failure> {
    // The token is in this process. Where it cannot be shielded it is as open as any other program.
    drop(shield());
    let runs = Runs::find(here, args.run.as_deref())?;
    let (listener, at) = bind(args)?;
    let (guard, hub) = (Guard::new(at, token()?, runs.digest()), Hub::new(random()?));
    let start = runs.named.as_ref().map_or_else(|| "/".to_owned(), |(id, _)| format!("/runs/{id}"));
    let address = guard.address(at, &start);
    let (asked, is_asked) = channel();
    interrupt::listen(move || {
        let _ = asked.send(());
    })?;
    let runs = Arc::new(runs);
    let site = Dashboard { runs, guard, hub, listing: Listing::default() };
    let server = Server::start(listener, Arc::new(site), REQUEST_TIMEOUTS)?;
    match output {
        Output::Json => terminal::json(&json!({
            "schema": "treebeam.serve/1",
            "url": address,
            "host": at.ip(),
            "port": at.port(),
        }))?,
        Output::Text => {
            terminal::show(&format!("{address}\n"))?;
            terminal::note("whoever has this address can look, and steer; Ctrl-C ends it");
        }
    }
    // Nobody else sends: it ends when it is asked to.
    let _ = is_asked.recv();
    server.stop();
    Ok(Exit::Interrupted)
}

/// Where we are to be found.
fn bind(args: &ServeArgs) -> Result<(TcpListener, SocketAddr), Failure> {
    let ip: IpAddr = args.host;
    if ip.is_unspecified() {
        let what = format!("`--host {ip}` is no address that a browser could call");
        return Err(Failure::usage(what).hint("name the one under which this machine is reached"));
    }
    if !ip.is_loopback() {
        terminal::note(&format!(
            "whoever reaches {ip} can try this address, and what is said is not encrypted"
        ));
    }
    let unavailable = |error| {
        Failure::environment(format!("cannot listen at {ip}, port {}: {error}", args.port))
            .hint("leave `--port` out for one that is free")
    };
    let listener = TcpListener::bind((ip, args.port)).map_err(unavailable)?;
    let at = listener.local_addr().map_err(unavailable)?;
    Ok((listener, at))
}

fn token() -> Result<String, Failure> {
    match env::var(TOKEN).ok().filter(|token| !token.is_empty()) {
        None => random(),
        Some(token) => {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
            if token.len() >= SHORTEST_TOKEN && token.bytes().all(plain) {
                return Ok(token);
            }
            let what = format!("`{TOKEN}` is no token");
            let hint =
                format!("{SHORTEST_TOKEN} or more letters, digits, `-` and `_`; or leave it out");
            Err(Failure::usage(what).hint(hint))
        }
    }
}

fn random() -> Result<String, Failure> {
    Ok(web::random()?.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The runs that are shown: those of the repository, and the one that was named.
struct Runs {
    home: Option<Home>,
    named: Option<(RunId, Found)>,
}

impl Runs {
    fn find(here: &Path, name: Option<&str>) -> Result<Self, Failure> {
        let Some(name) = name else {
            return Ok(Self { home: Some(Home::find(here)?), named: None });
        };
        let found = Found::find(here, Some(name))?;
        let id = store::open_to_read(&found.run)?.state.run.clone();
        Ok(Self { home: Home::find(here).ok(), named: Some((id, found)) })
    }

    /// The digest of the folder that is served: that of the run that was named, or else the one of all runs.
    fn digest(&self) -> Sha256 {
        let named = self.named.as_ref().map(|(_, found)| found.run.root());
        let folder = named.or_else(|| self.home.as_ref().map(|home| home.runs_root.as_path()));
        let folder = folder.unwrap_or(Path::new(""));
        let real = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        Sha256::of(real.as_os_str().as_encoded_bytes())
    }
}

impl Runs {
    /// All of them, the newest first, and where each lies.
    fn all(&self) -> Result<Vec<(RunId, RunDir)>, StoreError> {
        let ids = self
            .home
            .as_ref()
            .map_or_else(|| Ok(Vec::new()), |home| store::runs(&home.runs_root))?;
        let here = self
            .home
            .iter()
            .flat_map(|home| ids.iter().rev().map(|id| (id.clone(), home.named(id))));
        let named = self.named.iter().map(|(id, found)| (id.clone(), found.run.clone()));
        let other = named.filter(|(id, _)| !ids.contains(id));
        let all = other.chain(here).collect();
        Ok(all)
    }
}

/// What is behind the addresses.
struct Dashboard {
    runs: Arc<Runs>,
    guard: Guard,
    hub: Hub,
    listing: Listing,
}

impl Dashboard {
    fn named(&self, id: &RunId) -> Result<Found, Refusal> {
        if let Some((_, found)) = self.runs.named.as_ref().filter(|(named, _)| named == id) {
            return Ok(Found { run: found.run.clone(), repo: found.repo.clone() });
        }
        let home = self.runs.home.as_ref().ok_or_else(Refusal::nothing)?;
        let run = home.named(id);
        if !run.journal().is_file() && !run.manifest().is_file() {
            return Err(Refusal::new(404, format!("there is no run {id}")));
        }
        Ok(Found { run, repo: Some(home.repo.clone()) })
    }

    fn found(&self, asked: &Asked<'_>) -> Result<Found, Refusal> {
        self.named(asked.names.run.as_ref().ok_or_else(Refusal::nothing)?)
    }

    fn watched(&self, asked: &Asked<'_>) -> Result<Arc<Watched>, Refusal> {
        let id = asked.names.run.as_ref().ok_or_else(Refusal::nothing)?;
        Ok(self.hub.run(id, &self.named(id)?.run)?)
    }

    fn admit(&self, request: &Request) -> Result<Answer, Refusal> {
        let shown = self.guard.check(request).map_err(stranger)?;
        let (route, names) = match route::find(&request.method, &request.path) {
            route::Found::Route(route, names) => (route, names),
            route::Found::Otherwise(method) => return Err(Refusal::only(method)),
            route::Found::Nothing => return Err(Refusal::nothing()),
        };
        let mut answer = (route.answer)(self, &Asked { request, names })?.seal();
        if shown == Shown::InAddress {
            answer.headers.push(("set-cookie", self.guard.cookie()));
        }
        Ok(answer)
    }
}

impl Site for Dashboard {
    fn answer(&self, request: &Request) -> Answer {
        self.admit(request).unwrap_or_else(|refusal| refusal.page().seal())
    }

    fn too_long(&self) -> Answer {
        Refusal::new(413, "this is more than is read at once").page().seal()
    }
}

fn stranger(stranger: Stranger) -> Refusal {
    let why = match stranger {
        Stranger::Host => "this server is not known by that name",
        Stranger::Origin => "another site may not ask for this",
        Stranger::Token => "this address lacks its token",
    };
    Refusal::new(403, why).hint("open the address that `treebeam serve` printed")
}
