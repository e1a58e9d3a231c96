//! The heartbeat thread, which shows that a run is alive during long sweeps and slow answers. It
//! calls a function at intervals and on request, but never too often.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The longest time between two beats.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(10);
/// The shortest time between two beats.
const MIN_HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);

/// A running heartbeat. Dropping it waits for the last beat to end.
#[derive(Debug)]
pub(super) struct HeartbeatThread {
    /// Queue of one early-beat request; a second one would add nothing.
    nudge: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl HeartbeatThread {
    pub(super) fn start(beat: impl FnMut() + Send + 'static) -> io::Result<Self> {
        let (nudge, nudges) = sync_channel(1);
        let thread = thread::Builder::new().name("heartbeat".to_owned());
        let thread = thread.spawn(move || {
            run_heartbeat(&nudges, HEARTBEAT_INTERVAL, MIN_HEARTBEAT_INTERVAL, beat);
        })?;
        Ok(Self { nudge: Some(nudge), thread: Some(thread) })
    }

    /// Requests an early heartbeat because something has happened that others should see soon.
    pub(super) fn beat_soon(&self) {
        if let Some(nudge) = &self.nudge {
            let _ = nudge.try_send(());
        }
    }
}

impl Drop for HeartbeatThread {
    fn drop(&mut self) {
        drop(self.nudge.take());
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

fn run_heartbeat(nudges: &Receiver<()>, silence: Duration, rest: Duration, mut beat: impl FnMut()) {
    let mut last = Instant::now();
    let mut next = last + silence;
    loop {
        match nudges.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Ok(()) => next = next.min(last + rest),
            Err(RecvTimeoutError::Timeout) => {
                beat();
                last = Instant::now();
                next = last + silence;
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Counts the beats in a time span, with an early-beat request every millisecond or never.
    fn beats(silence: Duration, rest: Duration, is_nudged: bool, long: Duration) -> u32 {
        let (nudge, nudges) = sync_channel(1);
        let heart = thread::spawn(move || {
            let mut beats = 0;
            run_heartbeat(&nudges, silence, rest, || beats += 1);
            beats
        });
        let begun = Instant::now();
        while begun.elapsed() < long {
            if is_nudged {
                let _ = nudge.try_send(());
            }
            thread::sleep(MS);
        }
        drop(nudge);
        heart.join().unwrap()
    }

    #[test]
    fn it_beats_by_itself_and_sooner_when_nudged_but_not_too_often() {
        let hour = Duration::from_hours(1);
        assert_eq!(beats(hour, MS, false, 60 * MS), 0);
        assert_eq!(beats(hour, hour, true, 60 * MS), 0);
        assert!(beats(10 * MS, hour, false, 300 * MS) >= 2);
        let often = beats(hour, 50 * MS, true, 300 * MS);
        assert!((1..=6).contains(&often), "{often}");
    }

    #[test]
    fn it_stops_at_once() {
        let heart = HeartbeatThread::start(|| ()).unwrap();
        heart.beat_soon();
        let begun = Instant::now();
        drop(heart);
        assert!(begun.elapsed() < MIN_HEARTBEAT_INTERVAL);
    }
}
