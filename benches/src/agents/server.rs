//! Runs a server with a fixed answer: the same stream for every question, on open connections.
//!
//! It runs in a process of its own, and reads no more of a question than it must.

use super::AGENTS_TASK;
use crate::Outcome;
use crate::companion::Companion;
use crate::gauge::CHILD_FLAG;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::thread;

/// Number of pieces of the answer.
const ANSWER_PIECES: u32 = 20;

/// Returns the text of the answer.
pub(super) fn text() -> String {
    (0..ANSWER_PIECES).map(|n| format!("word {n} ")).collect()
}

/// A server process, stopped on drop.
pub(super) struct Answers {
    _process: Companion,
    pub(super) port: u16,
}

impl Answers {
    pub(super) fn start() -> Outcome<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        let mut process = Companion::start(command.args([CHILD_FLAG, AGENTS_TASK]))?;
        let port = process.ask("port")?.parse()?;
        Ok(Self { _process: process, port })
    }
}

/// Serves answers until standard input ends.
pub(crate) fn serve() -> Outcome<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    let answer: &'static [u8] = answer().leak();
    thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            // A broken connection is the end of its client, and not reported.
            thread::spawn(move || drop(converse(&connection, answer)));
        }
    });
    println!("ready");
    for line in io::stdin().lock().lines() {
        line?;
        println!("{port}");
    }
    Ok(())
}

/// Returns the whole answer in its wire format.
fn answer() -> Vec<u8> {
    let piece = |choices: &str, usage: &str| {
        format!(
            "data: {{\"id\":\"chat-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m-1\",\"choices\":[{choices}],\"usage\":{usage}}}\n\n"
        )
    };
    let mut body = String::new();
    for n in 0..ANSWER_PIECES {
        let delta = format!("{{\"role\":\"assistant\",\"content\":\"word {n} \"}}");
        let choice = format!("{{\"index\":0,\"delta\":{delta},\"finish_reason\":null}}");
        body.push_str(&piece(&choice, "null"));
    }
    body.push_str(&piece("{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}", "null"));
    let usage = "{\"prompt_tokens\":11,\"completion_tokens\":40,\"total_tokens\":51}";
    body.push_str(&piece("", usage));
    body.push_str("data: [DONE]\n\n");
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    (head + &body).into_bytes()
}

fn converse(mut connection: &TcpStream, answer: &[u8]) -> io::Result<()> {
    connection.set_nodelay(true)?;
    let mut reader = BufReader::new(connection);
    while let Some(length) = content_length(&mut reader)? {
        io::copy(&mut reader.by_ref().take(length), &mut io::sink())?;
        connection.write_all(answer)?;
    }
    Ok(())
}

/// Reads the head of a message, and returns the length of its body; `None` at the end.
pub(super) fn content_length(reader: &mut BufReader<&TcpStream>) -> io::Result<Option<u64>> {
    let (mut line, mut length) = (String::new(), 0);
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        match line.trim_end().split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse().unwrap_or(0);
            }
            _ if line == "\r\n" => return Ok(Some(length)),
            _ => {}
        }
    }
}
