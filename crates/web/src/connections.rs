//! The open connections of the server, and which of them wait for a request. A full server closes
//! the connection that has waited longest, so that idle clients never keep a browser out. This
//! module reads and sends nothing.

use super::stream::EventStream;
use http_body_util::{Either, Full};
use hyper::body::{Body, Bytes, Frame, SizeHint};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tokio::task::AbortHandle;

/// Largest number of connections that are open at once.
const MAX_OPEN_CONNECTIONS: usize = 256;

/// All open connections of a server.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenConnections(Arc<Mutex<ConnectionTable>>);

#[derive(Debug, Default)]
struct ConnectionTable {
    next: u64,
    open: BTreeMap<u64, OpenConnection>,
}

/// An open connection: the task that serves it, and since when it waits for a request.
#[derive(Debug)]
struct OpenConnection {
    task: Option<AbortHandle>,
    /// Place in the order of waiting; `None` while a request is answered.
    waiting_since: Option<u64>,
}

impl ConnectionTable {
    const fn next_number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

impl OpenConnections {
    fn lock_table(&self) -> MutexGuard<'_, ConnectionTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes room for one more connection. Returns false if all connections are being answered.
    pub(super) fn make_room(&self) -> bool {
        let is_full = self.lock_table().open.len() >= MAX_OPEN_CONNECTIONS;
        !is_full || self.close_longest_waiting()
    }

    /// Closes the connection that has waited longest for a request. Returns false if none waits.
    pub(super) fn close_longest_waiting(&self) -> bool {
        let mut table = self.lock_table();
        let waiting = table.open.iter().filter_map(|(id, open)| Some((open.waiting_since?, *id)));
        let Some((_, id)) = waiting.min() else { return false };
        let closed = table.open.remove(&id);
        drop(table);
        if let Some(task) = closed.and_then(|closed| closed.task) {
            task.abort();
        }
        true
    }

    /// Adds a connection, which waits for its first request. Dropping the handle removes it.
    pub(super) fn add(&self) -> ConnectionHandle {
        let mut table = self.lock_table();
        let id = table.next_number();
        table.open.insert(id, OpenConnection { task: None, waiting_since: Some(id) });
        drop(table);
        ConnectionHandle { all: self.clone(), id }
    }

    /// Sets the task of a connection, unless the connection has ended by now.
    pub(super) fn set_task(&self, id: u64, task: AbortHandle) {
        if let Some(open) = self.lock_table().open.get_mut(&id) {
            open.task = Some(task);
        }
    }

    fn set_waiting(&self, id: u64, is_waiting: bool) {
        let mut table = self.lock_table();
        let number = table.next_number();
        if let Some(open) = table.open.get_mut(&id) {
            open.waiting_since = is_waiting.then_some(number);
        }
    }
}

/// A connection in the table, for the task that serves it.
#[derive(Debug)]
pub(super) struct ConnectionHandle {
    all: OpenConnections,
    id: u64,
}

impl ConnectionHandle {
    pub(super) const fn id(&self) -> u64 {
        self.id
    }

    /// Marks the connection as being answered, until the mark is dropped.
    pub(super) fn begin_answer(&self) -> AnswerInProgress {
        self.all.set_waiting(self.id, false);
        AnswerInProgress { all: self.all.clone(), id: self.id }
    }
}

impl Drop for ConnectionHandle {
    fn drop(&mut self) {
        self.all.lock_table().open.remove(&self.id);
    }
}

/// A mark for a request that is being answered: its connection is not closed to make room.
#[derive(Debug)]
pub(super) struct AnswerInProgress {
    all: OpenConnections,
    id: u64,
}

impl Drop for AnswerInProgress {
    fn drop(&mut self) {
        self.all.set_waiting(self.id, true);
    }
}

/// The body of an answer, whole or a stream.
pub(super) type PlainBody = Either<Full<Bytes>, EventStream>;

/// The body of an answer, with the mark that lasts until the body is handed over.
#[derive(Debug)]
pub(super) struct AnswerBody {
    body: PlainBody,
    _mark: AnswerInProgress,
}

impl AnswerBody {
    pub(super) const fn new(body: PlainBody, mark: AnswerInProgress) -> Self {
        Self { body, _mark: mark }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = <PlainBody as Body>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_that_has_waited_longest_is_closed_and_none_that_is_answered() {
        let all = OpenConnections::default();
        let mut open: Vec<_> = (0..MAX_OPEN_CONNECTIONS).map(|_| all.add()).collect();
        let ids = |all: &OpenConnections| all.lock_table().open.keys().copied().collect::<Vec<_>>();
        let first_two = [open[0].begin_answer(), open[1].begin_answer()];
        assert!(all.make_room());
        assert_eq!(ids(&all)[..3], [1, 2, 4], "the third was the oldest that waits");
        assert!(all.make_room(), "there is room now");
        assert_eq!(all.lock_table().open.len(), MAX_OPEN_CONNECTIONS - 1);
        drop(first_two);
        open.push(all.add());
        assert!(all.make_room());
        assert_eq!(ids(&all)[..3], [1, 2, 5], "an answered one waits only since its answer");
        let answers: Vec<_> = open.iter().map(ConnectionHandle::begin_answer).collect();
        open.push(all.add());
        assert!(all.make_room() && !all.close_longest_waiting());
        drop((answers, open));
        assert!(ids(&all).is_empty());
    }
}
