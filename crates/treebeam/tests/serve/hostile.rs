//! A hundred texts that try to be more than text, as ideas, reasons, logs and names of machines: on
//! every page of the server they stay plain text.

use super::browser::Serving;
use super::finished;
use serde_json::json;
use std::fs;
use treebeam_core::event::{
    ContextPack, EvalFailure, EvalStage, Event, FailureKind, Idea, IdeasProposed, NewEval, PaidStep,
};
use treebeam_core::facts::Facts;
use treebeam_core::group::IdeaSource;
use treebeam_core::id::{EvalId, RunPath, Sha256};
use treebeam_core::policy::RunLimits;
use treebeam_core::{bill::RoleBills, idea};
use treebeam_run::port::Journal as _;
use treebeam_store::{ForcePolicy, RunClaim, RunDir, RunStore};
use treebeam_testkit::hostile_text;
use treebeam_testkit::program::Site;

/// Maximum size of a page with a text of a megabyte.
const MOST_PAGE: usize = 2 << 20;

fn written(site: &Site, path: &str, text: &str) -> (RunPath, Sha256) {
    let full = site.path(path);
    fs::create_dir_all(full.parent().expect("a folder")).expect("a folder");
    fs::write(full, text).expect("a file");
    (path.parse().expect("a path"), Sha256::hash_bytes(text.as_bytes()))
}

/// Proposes each text as an idea, as the reason of its failure and as the output of its sweep.
fn proposed(site: &Site, facts: &Facts, texts: &[String]) -> Vec<Event> {
    let (node, first, at) = (facts.frontier[0], facts.next_eval_id().number(), facts.created_at);
    let idea = |(number, text): (u32, &String)| {
        let (path, sha256) = written(site, &format!("node_ideas/{node}/i{number}.md"), text);
        let _ = written(site, &format!("eval/{number:04}/experiment/sweep.log"), text);
        let (fingerprint, title) = (idea::idea_fingerprint(text), idea::idea_title(text));
        let idea = Idea { path, sha256, fingerprint, title, turn: Some(1) };
        NewEval { eval: EvalId::new(number), idea }
    };
    let queued: Vec<_> = (first..).zip(texts).map(idea).collect();
    let (path, sha256) = written(site, &format!("node_ideas/{node}/prompt_context.txt"), "");
    let source = IdeaSource::Node(node);
    let begin = |step| Event::StepStarted { step, attempt: 1, at };
    let failed = |(new, text): (&NewEval, &String)| {
        let (stage, kind) = (EvalStage::Implement, FailureKind::Agent);
        let failure = EvalFailure { stage, kind, message: text.clone() };
        let (eval, bills) = (new.eval, RoleBills::default());
        [begin(PaidStep::Implement(eval)), Event::EvalFailed { eval, failure, bills, at }]
    };
    let ends: Vec<_> = queued.iter().zip(texts).flat_map(failed).collect();
    let proposed = IdeasProposed {
        source,
        queued,
        untried: Vec::new(),
        repeats: Vec::new(),
        turns: 1,
        context: ContextPack { path, sha256, idea_files: Vec::new() },
        bills: RoleBills::default(),
        conversation: Vec::new(),
        at,
    };
    let asked = [begin(PaidStep::Propose(source)), Event::IdeasProposed(Box::new(proposed))];
    asked.into_iter().chain(ends).collect()
}

/// Reopens a run with these texts in it, and returns the first of their evals.
fn with(site: &Site, texts: &[String]) -> u32 {
    let run = RunDir::new(site.path(""));
    let (mut store, mut state, _) =
        RunStore::open_to_run(&run, RunClaim::from(ForcePolicy::No)).expect("a run");
    let reach = RunLimits { max_depth: 9, stop_on_empty_frontier: false, ..state.limits.clone() };
    let anew = Event::SettingsChanged { reach };
    state.apply(&anew).expect("what can follow");
    let first = state.next_eval_id().number();
    let mut events = vec![anew];
    events.extend(proposed(site, &state, texts));
    store.append(&events).expect("a journal");
    first
}

/// Asserts that a page contains only known tags, and nothing that a text could have brought.
#[track_caller]
fn must_be_inert(page: &str, what: &str) {
    let bidi =
        |c: char| ('\u{202a}'..='\u{202e}').contains(&c) || ('\u{2066}'..='\u{2069}').contains(&c);
    let bad = |c: &char| c.is_control() && !"\n\t".contains(*c) || bidi(*c);
    assert_eq!(page.chars().find(bad), None, "{what}");
    for piece in page.split('<').skip(1) {
        let (tag, _) = piece.split_once('>').unwrap_or((piece, ""));
        let name: String = tag.chars().take_while(char::is_ascii_alphanumeric).collect();
        let known = tag.starts_with('/')
            || tag == "!DOCTYPE html"
            || TAGS.split(' ').any(|known| known == name);
        assert!(known, "{what}: <{tag}>");
        // Outside of quotes there are names of attributes, and these are ours.
        let outside: String = tag.split('"').step_by(2).collect();
        let odd = outside.split_whitespace().skip(1).find(|name| {
            let name = name.trim_end_matches(['=', '/']);
            name.starts_with("on") || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
        });
        assert_eq!(odd, None, "{what}: <{tag}>");
        for link in ["href=\"", "src=\"", "action=\""] {
            let target = tag.split_once(link).map(|(_, rest)| rest);
            let near =
                |target: &str| target.starts_with(['/', '#']) || target.starts_with("data:,\"");
            let near = target.is_none_or(|target| near(target) && !target.starts_with("//"));
            assert!(near, "{what}: <{tag}>");
        }
    }
    assert!(page.matches("<script").count() <= 1, "{what}: another script");
}

const TAGS: &str = "a body br button caption circle code dd defs del details div dl dt em fieldset figcaption figure footer form \
g h1 h2 h3 h4 head header html input ins label legend li line link main mark meta nav ol p path pattern polyline pre rect \
script section small span strong summary svg table tbody td text textarea tfoot th thead title tr tspan ul use";

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

#[test]
fn what_is_hostile_is_text_on_every_page() {
    let (site, texts) = (finished(), hostile_text::all());
    let first = with(&site, &texts);
    let serving = Serving::start(&site, &[], None);
    let see = |path: &str| {
        let page = serving.page(path);
        must_be_inert(&page, path);
        assert!(page.len() < MOST_PAGE, "{path}: {} bytes", page.len());
        page
    };
    for (number, text) in (first..).zip(&texts) {
        let name = format!("e{number:04}");
        for path in ["at/{}", "at/{}/log", "part/{}", "compare?first=n0000&second={}"] {
            let _ = see(&format!("/runs/t/{}", path.replace("{}", &name)));
        }
        // A longer text does not fit into an address.
        if text.len() < 4 << 10 {
            let page = see(&format!("/runs/t/evals?find={}", encoded(text)));
            assert!(page.contains(&format!("/at/{name}\"")), "{text:?} does not find itself");
        }
    }
    for (method, path) in super::routes(&site) {
        if method == "GET" && path.starts_with("/runs/") && !path.contains("/e0001") {
            let ends = ["/events", "/file"];
            if !ends.iter().any(|end| path.ends_with(end)) {
                let _ = see(&path);
            }
        }
    }
    assert!(see("/runs/t/evals").contains("Older ones"), "more than a hundred");
}

#[test]
fn what_a_process_says_of_itself_is_text_in_the_list_of_runs() {
    let site = finished();
    let serving = Serving::start(&site, &[], None);
    let lock = fs::File::open(site.path("run.lock")).expect("a lock");
    lock.lock().expect("to have it");
    for text in hostile_text::short() {
        let now = jiff::Timestamp::now();
        let note = json!({
            "pid": 7, "hostname": text, "boot_id": "another", "created_at": now, "last_heartbeat_at": now, "epoch": 1
        });
        fs::write(site.path("run.lock.json"), note.to_string()).expect("a note");
        for path in ["/", "/list"] {
            let page = serving.page(path);
            assert!(page.contains("running"), "{text:?}: {page}");
            must_be_inert(&page, &format!("{path} with {text:?}"));
        }
    }
    drop(lock);
    fs::write(site.path("journal.jsonl"), "<script>alert(1)</script>\n").expect("a journal");
    fs::remove_file(site.path("manifest.json")).expect("no manifest");
    fs::remove_file(site.path("manifest.json.prev")).ok();
    let page = serving.page("/");
    must_be_inert(&page, "a run that cannot be read");
    assert!(page.contains("cannot be opened"), "{page}");
}
