//! HTTP client: one request, the whole answer, three deadlines. The only file that uses the HTTP
//! library and its runtime. Answers are interpreted elsewhere.

use super::question::{ServerFault, TryCost, TryError};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::time::{Duration, Instant};
use tokio::time::timeout;
use treebeam_process::runtime_thread::{RuntimeThread, run_blocking};
use treebeam_run::port::PortError;

/// The longest answer that is read.
const MAX_RESPONSE_BYTES: usize = 64 << 20;
/// The longest time to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// A client for all servers.
pub(super) struct HttpClient {
    runtime: RuntimeThread,
    client: reqwest::Client,
}

/// A request to send.
pub(super) struct HttpRequest {
    pub(super) url: String,
    pub(super) headers: Vec<(&'static str, HeaderText)>,
    pub(super) body: String,
    pub(super) deadlines: HttpDeadlines,
}

/// The value of a header, public or secret.
pub(super) enum HeaderText {
    Open(String),
    /// A key, and the name of the variable that it is from.
    Key(String, String),
}

/// Deadlines of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct HttpDeadlines {
    /// Time until the answer begins.
    pub(super) first_byte: Duration,
    /// Time between two parts of an answer that has begun.
    pub(super) idle: Duration,
    /// Time for the whole answer.
    pub(super) total: Duration,
}

/// An answer, possibly cut off.
pub(super) struct HttpResponse {
    pub(super) status: u16,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: String,
    /// The reason why the answer broke off, if it did.
    pub(super) cut: Option<String>,
}

impl HttpClient {
    pub(super) fn new() -> Result<Self, PortError> {
        // Another part of the program may have installed a provider, which is as good.
        drop(rustls::crypto::ring::default_provider().install_default());
        let runtime = RuntimeThread::start()
            .map_err(|error| PortError::new("cannot start the HTTP client").with_cause(error))?;
        let builder = || {
            let agent = concat!("treebeam/", env!("CARGO_PKG_VERSION"));
            let builder =
                reqwest::Client::builder().user_agent(agent).connect_timeout(CONNECT_TIMEOUT);
            // A key goes only to the configured server.
            builder.redirect(Policy::none()).dns_resolver(ThreadResolver)
        };
        // A machine without certificates still reaches a server on itself.
        let client = builder().build().or_else(|_| builder().tls_certs_only([]).build());
        let client = client
            .map_err(|error| PortError::new("cannot start the HTTP client").with_cause(error))?;
        Ok(Self { runtime, client })
    }

    /// Sends a request and waits for the answer.
    pub(super) fn send(&self, request: HttpRequest) -> Result<HttpResponse, TryError> {
        let headers = build_headers(&request.headers)?;
        self.runtime.handle().block_on(self.send_with_headers(request, headers))
    }

    async fn send_with_headers(
        &self,
        request: HttpRequest,
        headers: HeaderMap,
    ) -> Result<HttpResponse, TryError> {
        let HttpRequest { url, body, deadlines, .. } = request;
        let due = Instant::now() + deadlines.total;
        let sent = self.client.post(url).headers(headers).body(body).send();
        let mut response = match timeout(deadlines.first_byte, sent).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(judge_send_error(error)),
            Err(_) => return Err(no_answer_error(deadlines.first_byte)),
        };
        let status = response.status().as_u16();
        let text = |(name, value): (&HeaderName, &HeaderValue)| {
            Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
        };
        let headers = response.headers().iter().filter_map(text).collect();
        let (mut bytes, mut last) = (Vec::new(), Instant::now());
        let cut = loop {
            let left = due.saturating_duration_since(Instant::now()).min(deadlines.idle);
            match timeout(left, response.chunk()).await {
                Ok(Ok(Some(chunk))) => {
                    bytes.extend_from_slice(&chunk);
                    last = Instant::now();
                }
                Ok(Ok(None)) => break None,
                Ok(Err(error)) => break Some(error_chain(&error.without_url())),
                Err(_) if due <= Instant::now() => {
                    break Some(slow_answer_reason(bytes.len(), last, deadlines.total));
                }
                Err(_) => break Some(format!("nothing more came for {:.1} s", left.as_secs_f32())),
            }
            if due <= Instant::now() {
                break Some(slow_answer_reason(bytes.len(), last, deadlines.total));
            }
            if bytes.len() > MAX_RESPONSE_BYTES {
                return Err(TryError::Unanswered {
                    why: format!("the answer is longer than {} MiB", MAX_RESPONSE_BYTES >> 20),
                    spent: TryCost::Unknown,
                });
            }
        };
        let body = String::from_utf8_lossy(&bytes).into_owned();
        Ok(HttpResponse { status, headers, body, cut })
    }
}

/// Looks up host names on a thread each. The client's own way panics where the system allows no
/// further thread.
struct ThreadResolver;

impl Resolve for ThreadResolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            // The client puts the port in.
            let look_up = move || (name.as_str(), 0).to_socket_addrs().map(Vec::from_iter);
            let found = run_blocking(look_up).await?;
            let found: Vec<SocketAddr> =
                found.ok_or_else(|| io::Error::other("the lookup panicked"))??;
            let addresses: Addrs = Box::new(found.into_iter());
            Ok(addresses)
        })
    }
}

fn build_headers(texts: &[(&'static str, HeaderText)]) -> Result<HeaderMap, PortError> {
    let mut headers = HeaderMap::new();
    for (name, text) in texts {
        let value = match text {
            HeaderText::Open(text) => HeaderValue::from_str(text)
                .map_err(|_| PortError::new(format!("the header `{name}` cannot be sent")))?,
            HeaderText::Key(text, variable) => {
                let mut value = HeaderValue::from_str(text).map_err(|_| {
                    let what = format!("the key in the variable `{variable}` is none: it has characters that no key has");
                    PortError::new(what).with_hint("look for line ends and spaces in it")
                })?;
                value.set_sensitive(true);
                value
            }
        };
        headers.insert(*name, value);
    }
    Ok(headers)
}

fn judge_send_error(error: reqwest::Error) -> TryError {
    let error = error.without_url();
    let why = error_chain(&error);
    if error.is_builder() {
        return PortError::new(why).with_hint("check `base_url`").into();
    }
    let (fault, spent) = if error.is_connect() {
        (ServerFault::Unreachable, TryCost::Nothing)
    } else if is_hung_up(&error) {
        (ServerFault::Unreachable, TryCost::Unknown)
    } else {
        (ServerFault::Answering, TryCost::Unknown)
    };
    TryError::Temporary { why, fault, wait: None, spent }
}

/// Returns true if the connection was closed before an answer, as by a proxy without its server.
fn is_hung_up(error: &(dyn Error + 'static)) -> bool {
    let io_kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
    matches!(
        io_kind,
        Some(
            io::ErrorKind::ConnectionReset
                | io::ErrorKind::ConnectionAborted
                | io::ErrorKind::BrokenPipe
        )
    ) || error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_incomplete_message)
        || error.source().is_some_and(is_hung_up)
}

/// Returns the reason for cutting an answer without an end: a server may send bytes forever.
fn slow_answer_reason(bytes: usize, last: Instant, total: Duration) -> String {
    let (total, ago) = (total.as_secs_f32(), last.elapsed().as_secs_f32());
    if ago > total / 2.0 {
        return format!("nothing more came for {ago:.1} s");
    }
    format!(
        "the answer trickled in and had no end after {total:.1} s (`timeout_sec`): {bytes} bytes came, the last {ago:.1} s before"
    )
}

fn no_answer_error(after: Duration) -> TryError {
    TryError::not_begun(format!("no answer began within {:.1} s", after.as_secs_f32()))
}

/// Formats an error with all its causes on one line.
fn error_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.contains(&said) {
            text.push_str(&format!(": {said}"));
        }
        cause = error.source();
    }
    text
}
