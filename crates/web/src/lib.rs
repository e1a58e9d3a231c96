//! A small web server: passes requests to a [`WebSite`] and sends its answers, whole or as streams
//! of events. Permissions are the caller's; the cost of requests is bounded here: how many come at
//! once, how long their heads and bodies take, and how large they are.

mod connections;
mod stream;

pub use stream::{EventSender, EventStream, SendResult, event_channel};

use connections::{AnswerBody, ConnectionHandle, OpenConnections, PlainBody};
use http_body_util::{BodyExt as _, Either, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use treebeam_process::runtime_thread::{RuntimeThread, run_blocking};

/// Largest body of a request, in bytes.
pub const MAX_BODY_BYTES: usize = 256 << 10;
/// Largest head of a request, in bytes.
const MAX_HEAD_BYTES: usize = 32 << 10;
/// Interval at which a full server looks for room.
const ROOM_CHECK_INTERVAL: Duration = Duration::from_millis(10);
/// Pause after the system could not accept a connection.
const ACCEPT_RETRY_PAUSE: Duration = Duration::from_millis(100);

/// A request as it was sent, not yet validated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WebRequest {
    /// `GET`, `POST` or another method.
    pub method: String,
    /// The path, as it was sent.
    pub path: String,
    /// The part after the question mark, as it was sent.
    pub query: String,
    /// The server that the target names, with its port, where the target is a whole address.
    pub authority: Option<String>,
    /// The `host` header; `None` unless there is exactly one, in visible ASCII.
    pub host: Option<String>,
    /// The `origin` header: the site from which the request comes.
    pub origin: HeaderState,
    /// The cookie header, with values that were set before.
    pub cookie: Option<String>,
    /// The last event that a browser saw, where it reconnects to a stream.
    pub last_event: Option<String>,
    /// The body.
    pub body: Vec<u8>,
}

/// The state of a header for which absent and unreadable are different things.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HeaderState {
    /// The header is absent.
    #[default]
    Absent,
    /// The header is there once.
    Value(String),
    /// The header is there more than once, or not in visible ASCII.
    Invalid,
}

/// The answer to a request.
#[derive(Debug)]
pub struct WebAnswer {
    /// The status code.
    pub status: u16,
    /// The headers.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: WebBody,
}

/// The body of an answer.
#[derive(Debug)]
pub enum WebBody {
    /// All bytes at once.
    Whole(Vec<u8>),
    /// Events, as they come.
    Stream(EventStream),
}

/// The handler that answers requests.
pub trait WebSite: Send + Sync {
    /// Answers a request. It may block: other requests are answered meanwhile.
    fn answer_request(&self, request: &WebRequest) -> WebAnswer;
    /// Answers a request that is too long to be read.
    fn answer_too_long(&self) -> WebAnswer;
}

/// Time limits for the two parts of a request.
#[derive(Clone, Copy, Debug)]
pub struct RequestTimeouts {
    /// Limit for the head, from the opening of the connection or the end of the answer before.
    pub head: Duration,
    /// Limit for the body, from the end of the head.
    pub body: Duration,
}

/// A server, until it is dropped or stopped.
#[derive(Debug)]
pub struct WebServer(RuntimeThread);

impl WebServer {
    /// Starts to answer requests that come to this listener, within these times.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn start(
        listener: TcpListener,
        site: Arc<dyn WebSite>,
        timeouts: RequestTimeouts,
    ) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let runtime = RuntimeThread::start()?;
        let listener = {
            let _inside = runtime.handle().enter();
            tokio::net::TcpListener::from_std(listener)?
        };
        runtime.handle().spawn(accept_connections(listener, site, timeouts));
        Ok(Self(runtime))
    }

    /// Stops at once, even while requests are being answered.
    pub fn stop(self) {
        drop(self.0);
    }
}

async fn accept_connections(
    listener: tokio::net::TcpListener,
    site: Arc<dyn WebSite>,
    timeouts: RequestTimeouts,
) {
    let connections = OpenConnections::default();
    loop {
        let Ok((connection, _)) = listener.accept().await else {
            connections.close_longest_waiting();
            sleep(ACCEPT_RETRY_PAUSE).await;
            continue;
        };
        while !connections.make_room() {
            sleep(ROOM_CHECK_INTERVAL).await;
        }
        let handle = connections.add();
        let id = handle.id();
        let task = tokio::spawn(serve_connection(connection, Arc::clone(&site), timeouts, handle));
        connections.set_task(id, task.abort_handle());
    }
}

async fn serve_connection(
    connection: TcpStream,
    site: Arc<dyn WebSite>,
    timeouts: RequestTimeouts,
    handle: ConnectionHandle,
) {
    let handle = Arc::new(handle);
    let answering = service_fn(move |request| {
        let (site, handle) = (Arc::clone(&site), Arc::clone(&handle));
        async move { Ok::<_, Infallible>(handle_request(request, site, timeouts.body, &handle).await) }
    });
    let conversation = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(timeouts.head)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(connection), answering);
    // A connection that breaks off needs no handling.
    drop(conversation.await);
}

type WebResponse = Response<AnswerBody>;

async fn handle_request(
    request: hyper::Request<Incoming>,
    site: Arc<dyn WebSite>,
    body_timeout: Duration,
    handle: &ConnectionHandle,
) -> WebResponse {
    let (head, body) = request.into_parts();
    let mut request = WebRequest {
        method: head.method.to_string(),
        path: head.uri.path().to_owned(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        authority: head.uri.authority().map(ToString::to_string),
        host: single_header(&head.headers, &header::HOST),
        origin: read_header(&head.headers, &header::ORIGIN),
        cookie: single_header(&head.headers, &header::COOKIE),
        last_event: single_header(&head.headers, &HeaderName::from_static("last-event-id")),
        body: Vec::new(),
    };
    let read = timeout(body_timeout, Limited::new(body, MAX_BODY_BYTES).collect()).await;
    let mark = handle.begin_answer();
    let answered = match read {
        Ok(Ok(body)) => {
            request.body = body.to_bytes().to_vec();
            run_blocking(move || site.answer_request(&request)).await
        }
        Ok(Err(_)) | Err(_) => Ok(Some(site.answer_too_long())),
    };
    let plain = match answered {
        Ok(answer) => answer
            .and_then(build_response)
            .unwrap_or_else(|| empty_response(StatusCode::INTERNAL_SERVER_ERROR)),
        // The system allows no further thread now: the browser may ask again.
        Err(_) => empty_response(StatusCode::SERVICE_UNAVAILABLE),
    };
    plain.map(|body| AnswerBody::new(body, mark))
}

/// Returns the value of a header that is there exactly once, in visible ASCII.
fn single_header(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    match read_header(headers, name) {
        HeaderState::Value(value) => Some(value),
        HeaderState::Absent | HeaderState::Invalid => None,
    }
}

fn read_header(headers: &HeaderMap, name: &HeaderName) -> HeaderState {
    let mut values = headers.get_all(name).iter();
    match (values.next().map(HeaderValue::to_str), values.next()) {
        (None, _) => HeaderState::Absent,
        (Some(Ok(value)), None) => HeaderState::Value(value.to_owned()),
        (Some(_), _) => HeaderState::Invalid,
    }
}

/// Builds the response to send, or returns `None` if one of its headers is invalid.
fn build_response(answer: WebAnswer) -> Option<Response<PlainBody>> {
    let body = match answer.body {
        WebBody::Whole(bytes) => Either::Left(Full::new(Bytes::from(bytes))),
        WebBody::Stream(stream) => Either::Right(stream),
    };
    let mut response = Response::builder().status(answer.status);
    for (name, value) in answer.headers {
        response = response.header(name, value);
    }
    response.body(body).ok()
}

fn empty_response(status: StatusCode) -> Response<PlainBody> {
    let mut response = Response::new(Either::Left(Full::default()));
    *response.status_mut() = status;
    response
}

/// Returns random bytes that cannot be guessed.
///
/// # Errors
/// When the system has none.
pub fn random_bytes() -> io::Result<[u8; 24]> {
    let mut bytes = [0; 24];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes)
}
