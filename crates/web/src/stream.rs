//! A body that comes piece by piece: one end is given to a browser, into the other one whoever has news puts them. Nobody
//! waits for a browser that does not read.

use hyper::body::{Body, Bytes, Frame};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// How many pieces wait for a browser.
const MAX_WAITING_PIECES: usize = 16;

/// The end for a browser.
#[derive(Debug)]
pub struct EventStream(Receiver<Bytes>);

/// The end for whoever has news. The stream ends when it is dropped.
#[derive(Debug)]
pub struct EventSender(Sender<Bytes>);

/// What became of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendResult {
    /// It is on its way.
    Queued,
    /// The browser has not read what came before: later, perhaps.
    Full,
    /// The browser is gone.
    Closed,
}

/// Both ends.
#[must_use]
pub fn event_channel() -> (EventSender, EventStream) {
    let (sender, receiver) = channel(MAX_WAITING_PIECES);
    (EventSender(sender), EventStream(receiver))
}

impl EventSender {
    /// Sends a piece, if there is room for it.
    #[must_use]
    pub fn send(&self, piece: String) -> SendResult {
        match self.0.try_send(piece.into()) {
            Ok(()) => SendResult::Queued,
            Err(TrySendError::Full(_)) => SendResult::Full,
            Err(TrySendError::Closed(_)) => SendResult::Closed,
        }
    }

    /// Whether nobody reads any more.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }
}

impl Body for EventStream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}
