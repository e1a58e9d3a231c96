//! Measures the exchange of bytes alone, on open connections. Nothing is parsed or kept.

use super::server::content_length;
use super::{CALL_PROMPT, CallCase, CallContender};
use crate::Outcome;
use crate::gauge::{self, WorkTime};
use std::io::{self, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::thread;
use std::time::Instant;

pub(super) struct Bare {
    port: u16,
}

impl Bare {
    pub(super) const fn new(port: u16) -> Self {
        Self { port }
    }
}

impl CallContender for Bare {
    fn round(&mut self, case: CallCase) -> Outcome<WorkTime> {
        let (begun, before) = (Instant::now(), gauge::process_time()?);
        let exchanges = || exchange(self.port, case.calls / case.at_once);
        thread::scope(|scope| {
            let threads: Vec<_> = (0..case.at_once).map(|_| scope.spawn(exchanges)).collect();
            threads.into_iter().try_for_each(|thread| thread.join().unwrap_or(Ok(())))
        })?;
        let processor = gauge::process_time()?.saturating_sub(before).as_secs_f64();
        Ok(WorkTime { processor, wall: begun.elapsed().as_secs_f64() })
    }
}

fn exchange(port: u16, times: u32) -> io::Result<()> {
    let body = format!(
        "{{\"model\":\"m-1\",\"stream\":true,\"messages\":[{{\"role\":\"user\",\"content\":\"{CALL_PROMPT}\"}}]}}"
    );
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let connection = TcpStream::connect(("127.0.0.1", port))?;
    connection.set_nodelay(true)?;
    let mut reader = BufReader::new(&connection);
    for _ in 0..times {
        (&connection).write_all(request.as_bytes())?;
        let length = content_length(&mut reader)?.unwrap_or(0);
        io::copy(&mut reader.by_ref().take(length), &mut io::sink())?;
    }
    Ok(())
}
