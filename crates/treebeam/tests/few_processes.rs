//! Commands that need threads, as a user who may have only a few: they end in time, with words and
//! no panic. The limit does not hold for root, so that the program runs as another user here; where
//! this test cannot change users it says so.

#![cfg(test)]
#![cfg(target_os = "linux")]

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt as _, lchown};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};
use treebeam_testkit::program::{Said, Signal, Site};
use treebeam_testkit::repo::{TempRepo, script};

const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");
/// No command takes this long under any limit.
const LIMIT: Duration = Duration::from_mins(1);
/// Users with no other process, one for each test: the limit counts all processes of a user.
const COMMAND_USER: u32 = 48_213;
const SERVER_USER: u32 = 48_214;

const FILES: [(&str, &str); 4] = [
    ("a.txt", "a\n"),
    ("one.csv", "config_id,status,gain\n0,ok,1\n1,ok,2\n"),
    ("other.csv", "config_id,status,gain\n0,ok,2\n1,ok,3\n"),
    (
        "treebeam.toml",
        "sweep_command = ['true']\n[score]\nprimary = 'gain'\n[[score.metrics]]\ncolumn = 'gain'\n\
         [agents.ideas]\nprovider = 'openai-chat'\nmodel = 'm'\nbase_url = 'http://127.0.0.1:9/v1'\n\
         [agents.coder]\nprovider = 'openai-chat'\nmodel = 'm'\nbase_url = 'http://127.0.0.1:10/v1'\n",
    ),
];

fn give_away(path: &Path, user: u32) {
    lchown(path, Some(user), Some(user)).expect("to give it away");
    if fs::symlink_metadata(path).expect("it").is_dir() {
        for entry in fs::read_dir(path).expect("a folder") {
            give_away(&entry.expect("an entry").path(), user);
        }
    }
}

/// A repository of the other user's, with the program under this limit; none where this process
/// cannot change users or the other user cannot run the program.
fn site(user: u32, limit: u32) -> Option<Site> {
    let set_user = format!("exec setpriv --reuid={user} --regid={user} --clear-groups");
    let site = Site::new("true");
    let switch = site.repo.beside("switch");
    script(&switch, &format!("#!/bin/sh\n{set_user} '{BINARY}' --version\n")).expect("it");
    let is_able =
        Site::from_repo(site.repo, switch.to_str().expect("a path")).call(&[]).code == Some(0);
    if !is_able {
        println!("not tested: the program cannot be run as another user here");
        return None;
    }
    let repo = TempRepo::with(&FILES).expect("a repository");
    let limited = repo.beside("limited");
    let text = format!("#!/bin/sh\n{set_user} prlimit --nproc={limit} '{BINARY}' \"$@\"\n");
    script(&limited, &text).expect("a script");
    give_away(repo.path().parent().expect("a folder"), user);
    assert_eq!(fs::metadata(repo.path()).expect("it").uid(), user);
    Some(Site::from_repo(repo, limited.to_str().expect("a path")))
}

#[track_caller]
fn must_have_words(limit: u32, said: &Said) {
    assert!(!said.stderr.contains("has a bug"), "{limit}: {}", said.stderr);
    assert!(matches!(said.code, Some(1 | 4)), "{limit}: {said:?}");
    assert!(said.stderr.contains("error: "), "{limit}: {}", said.stderr);
}

#[test]
fn a_command_without_enough_threads_says_so() {
    let mut refused = 0;
    for limit in 1..=4 {
        let Some(site) = site(COMMAND_USER, limit) else { return };
        for arguments in [&["score", "one.csv", "other.csv"][..], &["agents", "check"]] {
            let said = site.begin(arguments).end(LIMIT);
            let is_score = arguments[0] == "score";
            if is_score && limit > 1 {
                assert_eq!(said.code, Some(0), "{limit}: {said:?}");
            } else {
                must_have_words(limit, &said);
            }
            refused += u32::from(said.stderr.contains("ulimit -u"));
        }
    }
    assert!(refused >= 3, "{refused}");
}

#[test]
fn a_server_without_enough_threads_refuses_and_never_hangs() {
    let (mut served, mut refused) = (0, 0);
    for limit in 1..=6 {
        let Some(site) = site(SERVER_USER, limit) else { return };
        let mut call = site.begin(&["serve"]);
        let begun = Instant::now();
        while call.said_so_far().is_empty() && call.goes_on() && begun.elapsed() < LIMIT {
            thread::sleep(Duration::from_millis(5));
        }
        let address = call.said_so_far();
        if let Some((host, target)) =
            address.trim().strip_prefix("http://").and_then(|address| address.split_once('/'))
        {
            served += 1;
            let mut connection = TcpStream::connect(host).expect("a connection");
            connection.set_read_timeout(Some(LIMIT)).expect("a timeout");
            let request =
                format!("GET /{target} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
            connection.write_all(request.as_bytes()).expect("a request");
            let mut answer = String::new();
            let _ = connection.read_to_string(&mut answer).expect("an answer in time");
            assert!(answer.starts_with("HTTP/1.1 "), "{limit}: {answer:?}");
            call.signal(Signal::Interrupt);
            let said = call.end(LIMIT);
            assert!(!said.stderr.contains("has a bug"), "{limit}: {}", said.stderr);
            assert_eq!(said.code, Some(130), "{limit}: {said:?}");
        } else {
            refused += 1;
            must_have_words(limit, &call.end(LIMIT));
        }
    }
    assert!(served > 1 && refused > 1, "{served} served, {refused} refused");
}
