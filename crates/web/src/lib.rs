//! A small web server: takes requests one by one to whoever answers them, and answers back, whole or as a stream of events.
//! What a request may do, and to whom it is answered at all, is for the caller to say; what it may cost is bounded here:
//! how many come at once, how long their heads and their bodies take, and how large they are.

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

/// The longest body of a request.
pub const MAX_BODY_BYTES: usize = 256 << 10;
/// The longest head of a request.
const MAX_HEAD_BYTES: usize = 32 << 10;
/// How often a full server looks for room.
const ROOM_CHECK_INTERVAL: Duration = Duration::from_millis(10);
/// How long nobody is let in after the system had no room for one.
const ACCEPT_RETRY_PAUSE: Duration = Duration::from_millis(100);

/// What somebody asks for. Nothing of it has been believed yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WebRequest {
    /// `GET`, `POST` or another one.
    pub method: String,
    /// The path, as it was sent.
    pub path: String,
    /// What came after the question mark, as it was sent.
    pub query: String,
    /// The server that the target names, with its port, where the target is a whole address.
    pub authority: Option<String>,
    /// Under which name we were called; none where it is not said once and in plain letters.
    pub host: Option<String>,
    /// From which site the request comes.
    pub origin: HeaderState,
    /// What we gave to this browser before.
    pub cookie: Option<String>,
    /// The event that a browser saw last, where it comes back to a stream.
    pub last_event: Option<String>,
    /// The body.
    pub body: Vec<u8>,
}

/// A header that means something else when it is there and cannot be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HeaderState {
    /// It is not there.
    #[default]
    Absent,
    /// It is there once.
    Value(String),
    /// It is there, and not as it should be.
    Invalid,
}

/// What it is answered.
#[derive(Debug)]
pub struct WebAnswer {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: WebBody,
}

/// The body of an answer.
#[derive(Debug)]
pub enum WebBody {
    /// All of it.
    Whole(Vec<u8>),
    /// Events, as they come.
    Stream(EventStream),
}

/// Whoever answers requests.
pub trait WebSite: Send + Sync {
    /// The answer to a request. It may take its time: others are answered meanwhile.
    fn answer_request(&self, request: &WebRequest) -> WebAnswer;
    /// The answer to one that is too long to be read.
    fn answer_too_long(&self) -> WebAnswer;
}

/// How long the two parts of a request may take to come.
#[derive(Clone, Copy, Debug)]
pub struct RequestTimeouts {
    /// The head, from the moment that the connection is open or the answer before it was sent.
    pub head: Duration,
    /// The body, from the end of the head.
    pub body: Duration,
}

/// A server, until it is dropped or stopped.
#[derive(Debug)]
pub struct WebServer(RuntimeThread);

impl WebServer {
    /// Answers whoever comes here, within these times.
    ///
    /// # Errors
    /// When the system does not let us.
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

    /// Ends at once, whoever is being answered.
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
    // One that breaks off was not worth more than that.
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

/// A header that may stand there once, in plain letters.
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

/// An answer as it is sent; none where a header of it cannot be.
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

/// Bytes that nobody can guess.
///
/// # Errors
/// When the system has none.
pub fn random_bytes() -> io::Result<[u8; 24]> {
    let mut bytes = [0; 24];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes)
}
