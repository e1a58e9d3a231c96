//! A body that is sent piece by piece: a channel from a sender of events to a browser. Sending
//! never waits for a browser that does not read.

use hyper::body::{Body, Bytes, Frame};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Largest number of pieces that wait for a browser.
const MAX_WAITING_PIECES: usize = 16;

/// The browser's end of the channel.
#[derive(Debug)]
pub struct EventStream(Receiver<Bytes>);

/// The sender's end of the channel. Dropping it ends the stream.
#[derive(Debug)]
pub struct EventSender(Sender<Bytes>);

/// The result of sending a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendResult {
    /// The piece is on its way.
    Queued,
    /// The browser has not read earlier pieces yet; sending may succeed later.
    Full,
    /// The browser is gone.
    Closed,
}

/// Creates a channel and returns both ends.
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

    /// Returns true if the browser is gone.
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
