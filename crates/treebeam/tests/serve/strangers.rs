//! Requests that are refused, at every address.

use super::browser::{Answered, Serving};
use super::{finished, routes};
use std::io::{Read as _, Write as _};
use std::time::Instant;
use treebeam_testkit::program::Site;

/// Asserts the headers that every answer has.
#[track_caller]
fn must_be_sealed(answered: &Answered, what: &str) {
    for header in [
        "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
        "x-content-type-options: nosniff",
        "referrer-policy: same-origin",
        "cache-control: no-store",
        "x-frame-options: deny",
    ] {
        assert!(answered.head.contains(header), "{what}: no {header:?} in {}", answered.head);
    }
}

#[test]
fn strangers_are_refused_at_every_address() {
    let site = finished();
    let serving = Serving::start(&site, &[], None);
    let before = super::snapshot(&site);
    let host = ("host", serving.host());
    let cookie = ("cookie", format!("{}={}", serving.cookie, serving.token));
    let other = |name, value: &str| (name, value.to_owned());
    let wrong_token = other("cookie", &format!("{}={}x", serving.cookie, serving.token));
    let elsewhere = other("host", &format!("evil.invalid:{}", serving.port));
    let cases = [
        ("a foreign host", vec![elsewhere, cookie.clone()]),
        ("another port", vec![other("host", "127.0.0.1:1"), cookie.clone()]),
        ("no port", vec![other("host", "127.0.0.1"), cookie.clone()]),
        ("a whole address of another server", vec![host.clone(), cookie.clone()]),
        (
            "a foreign origin",
            vec![host.clone(), cookie.clone(), other("origin", "http://evil.invalid")],
        ),
        ("no origin in particular", vec![host.clone(), cookie.clone(), other("origin", "null")]),
        ("no token", vec![host.clone()]),
        ("another token", vec![host.clone(), wrong_token]),
    ];
    for (method, path) in routes(&site) {
        for (what, headers) in &cases {
            let target = match *what {
                "a whole address of another server" => format!("http://evil.invalid{path}"),
                _ => path.clone(),
            };
            let answered = serving.ask(&method, &target, headers, "");
            assert_eq!(answered.status, 403, "{what}: {method} {path}");
            must_be_sealed(&answered, what);
            assert!(
                !answered.head.contains("set-cookie") && !answered.body.contains("/runs/"),
                "{what}: {path}"
            );
        }
        let query =
            serving.ask(&method, &format!("{path}?token=nothing"), std::slice::from_ref(&host), "");
        assert_eq!(query.status, 403, "{method} {path}");
    }
    assert_eq!(super::snapshot(&site), before);
}

#[test]
fn nothing_but_the_right_way_to_ask_is_answered() {
    let site = finished();
    let serving = Serving::start(&site, &[], None);
    let before = super::snapshot(&site);
    for (method, path) in routes(&site) {
        for other in
            ["GET", "POST", "PUT", "DELETE", "OPTIONS"].into_iter().filter(|other| *other != method)
        {
            let answered = serving.ask(other, &path, &serving.known(), "");
            assert_eq!(answered.status, 405, "{other} {path}");
            must_be_sealed(&answered, &path);
        }
    }
    assert_eq!(super::snapshot(&site), before);
}

#[test]
fn the_token_in_the_address_becomes_a_cookie_that_no_script_sees() {
    let site = finished();
    let serving = Serving::start(&site, &[], None);
    let host = [("host", serving.host())];
    let answered = serving.ask("GET", &format!("/?token={}", serving.token), &host, "");
    let cookie = format!(
        "set-cookie: {}={}; path=/; httponly; samesite=strict",
        serving.cookie, serving.token
    );
    assert!(serving.cookie.starts_with(&format!("treebeam_{}_", serving.port)));
    assert!(answered.status == 200 && answered.head.contains(&cookie), "{}", answered.head);
    let local = [("host", format!("localhost:{}", serving.port))];
    assert_eq!(serving.ask("GET", &format!("/?token={}", serving.token), &local, "").status, 200);
    let other = Serving::start(&site, &[], None);
    assert!(other.token != serving.token && other.token.len() == 48);
    let named = Serving::start(&site, &[super::SITE_RUN_ID], None);
    let folder = |serving: &Serving| serving.cookie.rsplit('_').next().map(str::to_owned);
    assert_eq!(folder(&other), folder(&serving));
    assert_ne!(folder(&named), folder(&serving), "it serves the folder of one run");
}

#[test]
fn no_path_leads_out_of_what_is_on_record() {
    let site = finished();
    let serving = Serving::start(&site, &[], None);
    let secret = site.repo.beside("secret.txt");
    std::fs::write(&secret, "secret").expect("a file");
    let paths = [
        "/runs/..",
        "/runs/../t",
        "/runs/%2e%2e/t",
        "/runs/t%2f..%2ft",
        "/runs/t%00",
        "/runs/./t",
        "//runs/t",
        "/runs/t/",
        "/runs/t/at/..",
        "/runs/t/at/e0001%2f..",
        "/runs/t/at/e9999",
        "/runs/t/at/e9999/log",
        "/runs/t/part/..",
        "/runs/nope",
        "/runs/t/part/e9999",
        "/runs/t/at/n0000/../../journal.jsonl",
        "/journal.jsonl",
        "/runs/t/journal.jsonl",
        "/runs/t/file",
        "/runs/t/file?path=",
        "/runs/t/file?path=journal.jsonl",
        "/runs/t/file?path=manifest.json",
        "/runs/t/file?path=../t/journal.jsonl",
        "/runs/t/file?path=eval/0001/../../journal.jsonl",
        "/runs/t/file?path=eval%2F0001%2F..%2F..%2Fjournal.jsonl",
        "/runs/t/file?path=/etc/passwd",
        "/runs/t/file?path=eval/0001%00.txt",
        "/runs/t/file?path=wt/0000/model.py",
        "/runs/t/file?path=run.lock.json",
        "/runs/t/file?path=eval/0001/experiment",
        "/runs/t/file?path=artifacts",
    ];
    for path in paths {
        let answered = serving.ask("GET", path, &serving.known(), "");
        assert_eq!(answered.status, 404, "{path}: {}", answered.body);
        must_be_sealed(&answered, path);
    }
    for path in ["/runs/t/compare?first=../x&second=n0000", "/runs/t/evals?before=x"] {
        assert_eq!(serving.ask("GET", path, &serving.known(), "").status, 400, "{path}");
    }
    let asked = "/runs/t/file?path=node_ideas/0000/calls/ideas-n0000-x1-a1";
    for (end, status) in [(".txt", 200), ("_prompt.txt", 200), ("x.txt", 404), ("/../x", 404)] {
        let answered = serving.ask("GET", &format!("{asked}{end}"), &serving.known(), "");
        assert_eq!(answered.status, status, "{end}: {}", answered.body);
    }
    let page = serving.page("/runs/t/at/e0001");
    let (_, named) = page.split_once("href=\"/runs/t/file?path=").expect("a file on record");
    let (named, _) = named.split_once('"').expect("its end");
    let answered = serving.ask("GET", &format!("/runs/t/file?path={named}"), &serving.known(), "");
    assert!(
        answered.status == 200 && answered.head.contains("text/plain"),
        "{named}: {}",
        answered.head
    );
    // A recorded name that is a link by now is not followed.
    let file = site.path(named);
    std::fs::remove_file(&file).expect("to remove it");
    std::os::unix::fs::symlink(&secret, &file).expect("a link");
    let answered = serving.ask("GET", &format!("/runs/t/file?path={named}"), &serving.known(), "");
    assert!(answered.status == 404 && !answered.body.contains("secret"), "{}", answered.body);
}

#[test]
fn what_is_too_much_is_refused() {
    let site = finished();
    let serving = Serving::start(&site, &[], None);
    let long = format!("text={}", "x".repeat(300 << 10));
    assert_eq!(serving.post("/runs/t/idea", &long).status, 413);
    let mut connection = serving.connect();
    let head = format!(
        "GET / HTTP/1.1\r\nhost: {}\r\nx: {}\r\n\r\n",
        serving.host(),
        "x".repeat(64 << 10)
    );
    drop(connection.write_all(head.as_bytes()));
    let mut answer = Vec::new();
    drop(connection.read_to_end(&mut answer));
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
    let mut streams = Vec::new();
    for _ in 0..32 {
        let mut events = serving.listen("/runs/t/events", None);
        let _ = events.next("retry: ");
        streams.push(events);
    }
    for path in ["/runs/t/events", "/runs/t/at/e0001/log/events"] {
        assert_eq!(serving.ask("GET", path, &serving.known(), "").status, 503, "{path}");
    }
    assert!(serving.page("/runs/t").contains("Over."), "pages are still there");
}

#[test]
fn a_connection_without_its_request_is_closed_after_five_seconds() {
    let site = finished();
    let serving = Serving::start(&site, &[], None);
    for half in ["", "GET / HTTP/1.1\r\nhost: "] {
        let begun = Instant::now();
        let mut connection = serving.connect();
        connection.write_all(half.as_bytes()).expect("half a head");
        drop(connection.read_to_end(&mut Vec::new()));
        let waited = begun.elapsed().as_secs();
        assert!((4..9).contains(&waited), "{half:?} was waited for {waited} s");
    }
}

#[test]
fn an_idea_that_is_none_is_refused() {
    let site: Site = finished();
    let serving = Serving::start(&site, &[], None);
    let check = |body: &str, status: u16, says: &str| {
        let answered = serving.post("/runs/t/idea", body);
        assert!(
            answered.status == status && answered.body.contains(says),
            "{body}: {}",
            answered.body
        );
        must_be_sealed(&answered, body);
    };
    check("", 400, "this is no idea");
    check("text=Widen+it&node=e0001", 400, "one such as n0003");
    check("text=Widen+it&node=../x", 400, "one such as n0003");
    check("text=Widen+it", 400, "not added");
    for wish in ["pause", "unpause", "stop", "stop-after-depth"] {
        let answered = serving.post(&format!("/runs/t/{wish}"), "");
        assert!(answered.status == 409 && answered.body.contains("is over"), "{}", answered.body);
    }
}
