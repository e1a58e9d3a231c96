//! Conversations without a run: continued from another call or from a run; forks, invalid files,
//! kills, and a provider with a memory.

use crate::desk::{Desk, all, files, whole};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use treebeam_testkit::apart::is_campaign;
use treebeam_testkit::fault::Fault;
use treebeam_testkit::server::{Act, Hit, Server};

/// Heading of the earlier turns in a prompt.
const MEMORY: &str = "=== WHAT WAS SAID BEFORE IN THIS BRANCH ===";

fn text(path: &Path) -> String {
    fs::read_to_string(path).expect("a file")
}

/// Returns the turns of a conversation file.
fn turns(path: &Path) -> Vec<String> {
    let state: Value = serde_json::from_str(&text(path)).expect("JSON");
    let turns = state["turns"].as_array().expect("turns").iter();
    turns.map(|turn| turn["turn_id"].as_str().expect("a name").to_owned()).collect()
}

/// Flags of a conversation from one file to another, beside the desk.
fn talk(desk: &Desk, from: &str, to: &str) -> [String; 2] {
    [("in", from), ("out", to)]
        .map(|(way, name)| format!("--conversation-state-{way}={}", desk.dir.join(name).display()))
}

#[test]
fn one_call_goes_on_from_another_and_a_fork_knows_nothing_of_what_came_after() {
    let desk = Desk::new();
    for (call, title) in [(1, "first"), (2, "second"), (3, "third"), (4, "fourth")] {
        desk.says(Some(call), format!("An answer.\n{}", whole(title)));
    }
    let [_, out] = talk(&desk, "", "a.json");
    let document = desk.call(&["--count=1", &out]);
    assert_eq!(document["conversation"]["latest_turn_id"], "c0000-t1");
    assert!(!desk.prompt(1).contains(MEMORY));

    let [from, out] = talk(&desk, "a.json", "b.json");
    let document = desk.call(&["--count=2", &from, &out]);
    let said = &document["conversation"];
    assert_eq!(
        (&said["conversation_id"], &said["latest_turn_id"]),
        (&json!("c0000"), &json!("c0000-t2"))
    );
    assert_eq!(said["turns"].as_array().map(Vec::len), Some(1), "{said}");
    let told = "TURN c0000-t1: 1 asked for; 1 came: first\nAn answer.\nIDEA: first\n";
    assert!(desk.prompt(2).contains(MEMORY) && desk.prompt(2).contains(told), "{}", desk.prompt(2));
    let (a, b) = (desk.dir.join("a.json"), desk.dir.join("b.json"));
    assert_eq!(
        (turns(&a).join(" "), turns(&b).join(" ")),
        ("c0000-t1".to_owned(), "c0000-t1 c0000-t2".to_owned())
    );

    // Without the second answer, except for its idea, which is in the folder.
    let (before, [from, out]) = (text(&b), talk(&desk, "b.json", "c.json"));
    let document = desk.call(&["--count=3", &from, &out, "--fork-from-turn-id=c0000-t1"]);
    let said = &document["conversation"];
    assert_eq!(
        (&said["fork_from_turn_id"], &said["latest_turn_id"]),
        (&json!("c0000-t1"), &json!("c0001-t1"))
    );
    let prompt = desk.prompt(3);
    assert!(prompt.contains(told) && !prompt.contains("c0000-t2"), "{prompt}");
    assert_eq!(turns(&desk.dir.join("c.json")), ["c0000-t1", "c0001-t1"]);
    assert_eq!(text(&b), before, "what was forked from stays as it is");

    // The newest in full, the others in short.
    let [from, out] = talk(&desk, "b.json", "b.json");
    desk.site
        .repo
        .write(
            "short.toml",
            &format!(
                "idea_history_window_turns = 1\n{}",
                text(&desk.site.repo.path().join("treebeam.toml"))
            ),
        )
        .expect("a file");
    let config = desk.site.repo.path().join("short.toml").display().to_string();
    let _ = desk.call(&["--count=4", &from, &out, "--config", &config]);
    let prompt = desk.prompt(4);
    assert!(
        prompt.contains("SUMMARY OF EARLIER TURNS\n- c0000-t1: 1 asked for; 1 came: first\n"),
        "{prompt}"
    );
    assert_eq!(turns(&b), ["c0000-t1", "c0000-t2", "c0000-t3"]);
}

#[test]
fn the_conversation_of_a_run_can_be_gone_on_from() {
    let desk = Desk::new();
    desk.site.run(&["--quiet", "--ideas-per-node=3", "--max-depth=2"]);
    desk.says(None, whole("mine"));
    let [_, out] = talk(&desk, "", "mine.json");
    let state = desk.site.path("conversations/c0001.json");
    let from = format!("--conversation-state-in={}", state.display());
    let before = turns(&state);
    let _ = desk.call(&["--count=1", &from, &out]);
    let after = turns(&desk.dir.join("mine.json"));
    assert_eq!((&after[..before.len()], after.len()), (&before[..], before.len() + 1));
    assert!(after[before.len()].starts_with("c0001-t"), "{after:?}");
    for turn in &before {
        assert!(desk.prompt(1).contains(&format!("TURN {turn}: ")), "{}", desk.prompt(1));
    }
    assert_eq!(turns(&state), before);
    // A fork from a turn of the parent's.
    desk.says(Some(2), whole("another"));
    let _ = desk.call(&["--count=2", &from, "--fork-from-turn-id=c0000-t1"]);
    assert!(!desk.prompt(2).contains("TURN c0001-t1"), "{}", desk.prompt(2));
}

#[test]
fn a_file_that_is_no_conversation_is_refused_before_anything_is_paid_for() {
    let desk = Desk::new();
    desk.says(None, whole("a"));
    let [from, out] = talk(&desk, "a.json", "a.json");
    let _ = desk.call(&["--count=1", &out]);
    let good = text(&desk.dir.join("a.json"));
    let turn =
        |id: &str| json!({"turn_id": id, "in_short": "", "text": null, "continuation": null});
    let state = |turns: &[Value]| {
        json!({"schema": "treebeam.conversation/1", "conversation_id": "c0000", "latest_turn_id": null,
            "node_id": "0000", "fork_from_turn_id": null, "turns": turns})
    };
    let cases = [
        (good[..good.len() / 2].to_owned(), "at line 9"),
        (String::new(), "at line 1 column 0"),
        ("# a page\n".to_owned(), "expected value at line 1 column 1"),
        ("{}\n".to_owned(), "missing field `schema`"),
        (
            good.replace("treebeam.conversation/1", "treebeam.conversation/9"),
            "`schema` is \"treebeam.conversation/9\"",
        ),
        (good.replace("c0000-t1", "one"), "is not a turn id such as `c0003-t1`"),
        (state(&[turn("c0000-t1"), turn("c0000-t1")]).to_string(), "`c0000-t1` is in it twice"),
        (state(&[turn("c0000-t4294967295")]).to_string(), "is too high"),
    ];
    for (text, why) in cases {
        fs::write(desk.dir.join("a.json"), &text).expect("a file");
        let said = desk.site.call(&desk.words(&["--count=2", &from, &out])).exits(2);
        let _ = said.says(["a.json` is no conversation: ", why, "hint: give a file that"]);
        assert_eq!(desk.calls(), 1, "{why}");
        assert_eq!(fs::read_to_string(desk.dir.join("a.json")).expect("a file"), text, "{why}");
    }
    fs::write(desk.dir.join("a.json"), &good).expect("a file");
    let call = |flags: &[&str]| desk.site.call(&desk.words(&[&["--count=2"], flags].concat()));
    let _ = call(&[&from, "--fork-from-turn-id=c0000-t9"])
        .exits(2)
        .says(["a.json` has no turn `c0000-t9`", "hint: its last turns are `c0000-t1`"]);
    let _ = call(&["--fork-from-turn-id=c0000-t1"]).exits(2).says(["--conversation-state-in"]);
    let _ = call(&[&from, "--fork-from-turn-id=1"]).exits(2).says(["a turn id such as"]);
    let [missing, nowhere] = talk(&desk, "none.json", "none/none.json");
    let _ = call(&[&missing]).exits(1).says(["there is no file"]);
    let _ = call(&[&nowhere]).exits(1).says(["cannot write"]);
    let _ =
        call(&["--conversation-mode=native"]).exits(2).says(["`command` keeps no conversations"]);
    assert_eq!(desk.calls(), 1);
}

#[test]
fn off_is_as_if_there_were_none() {
    let (with, without) = (Desk::new(), Desk::new());
    for desk in [&with, &without] {
        desk.says(None, whole("a"));
        desk.says(Some(3), whole("b"));
    }
    fs::write(with.dir.join("a.json"), "no conversation").expect("a file");
    let [from, out] = talk(&with, "a.json", "b.json");
    let document = with.call(&["--count=2", &from, &out, "--conversation-mode=off"]);
    assert_eq!(document["conversation"], Value::Null);
    let _ = without.call(&["--count=2", "--conversation-mode=off"]);
    for call in 1..=3 {
        assert_eq!(with.prompt(call), without.prompt(call));
        assert!(!with.prompt(call).contains(MEMORY));
    }
    assert!(!with.dir.join("b.json").exists());
    // A second question contains the first answer.
    let auto = Desk::new();
    auto.says(None, whole("a"));
    auto.says(Some(3), whole("b"));
    let _ = auto.call(&["--count=2"]);
    assert_eq!(auto.prompt(1), without.prompt(1));
    assert!(
        auto.prompt(3).contains("TURN c0000-t2: 1 asked for; nothing new came"),
        "{}",
        auto.prompt(3)
    );
}

#[test]
fn where_nobody_is_asked_a_conversation_is_handed_on_and_never_overwritten() {
    let desk = Desk::new();
    desk.says(None, whole("a"));
    let [_, out] = talk(&desk, "", "a.json");
    let _ = desk.call(&["--count=1", &out]);
    let [from, out] = talk(&desk, "a.json", "b.json");
    let _ = desk.call(&["--count=1", &from, &out]);
    assert_eq!(turns(&desk.dir.join("b.json")), ["c0000-t1"]);
    fs::write(desk.dir.join("b.json"), "more").expect("a file");
    let _ = desk.call(&["--count=1", &from, &out]);
    assert_eq!((text(&desk.dir.join("b.json")), desk.calls()), ("more".to_owned(), 1));
}

/// An answer without an idea does not count as an answer to the next call.
#[test]
fn who_calls_again_after_nothing_came_asks_again() {
    let desk = Desk::new();
    desk.says(None, "Sorry.\n");
    let [from, out] = talk(&desk, "a.json", "a.json");
    let _ = desk.site.call(&desk.words(&["--count=1", &out])).exits(1).says(["no `IDEA:`"]);
    assert!(!desk.dir.join("a.json").exists(), "nothing was said that is worth remembering");
    desk.says(Some(4), whole("a"));
    let _ = desk.call(&["--count=1", &out]);
    assert_eq!((desk.names(""), desk.calls()), (vec!["001_a.md".to_owned()], 4));
    // An idea that the user has deleted is not restored.
    fs::remove_file(desk.ideas.join("001_a.md")).expect("thrown away");
    desk.says(Some(5), whole("b"));
    let document = desk.call(&["--count=1", &from, &out]);
    assert_eq!(files(&document, "generated"), ["001_b.md"]);
}

#[test]
fn killed_at_any_operation_no_turn_is_said_twice() {
    // Two ideas exist; of the next answer one is a repeat, so that there are two turns.
    let begun = || {
        let desk = Desk::new();
        desk.says(None, all(&["a", "c"]));
        desk.says(Some(1), all(&["a", "b"]));
        let [from, out] = talk(&desk, "a.json", "a.json");
        let _ = desk.call(&["--count=2", &out]);
        let script = text(&desk.dir.join("agent.sh"));
        let knows = format!(
            "{script}if grep -q 'c0000-t2' \"$dir/prompt-$number\"; then cat \"$dir/more\"; fi\n"
        );
        fs::write(desk.dir.join("agent.sh"), knows).expect("the script");
        fs::write(desk.dir.join("more"), all(&["d"])).expect("a reply");
        (desk, ["--count=4".to_owned(), from, out])
    };
    let whole = ["c0000-t1", "c0000-t2", "c0000-t3"];
    let (desk, words) = begun();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let fault = Fault::none().below(desk.dir.parent().expect("a folder"));
    let _ = desk.site.call_with_fault(&fault, &desk.words(&words)).exits(0);
    let expect = (turns(&desk.dir.join("a.json")), desk.names(""), desk.calls());
    assert_eq!(expect.0, whole);
    assert_eq!(
        (&expect.1[2..], expect.2),
        (&["003_c.md".to_owned(), "004_d.md".to_owned()][..], 3)
    );
    let operations = fault.operations().iter().map(|one| one.number).max().expect("operations");
    let step = if is_campaign() { 1 } else { operations.div_ceil(10) };
    // The last operations are those that write.
    for number in (1..=operations).rev().step_by(usize::try_from(step).expect("small")) {
        let (desk, words) = begun();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let fault = Fault::plan(&format!("kill before {number}"));
        let fault = fault.below(desk.dir.parent().expect("a folder"));
        let said = desk.site.call_with_fault(&fault, &desk.words(&words));
        assert_eq!(said.code, None, "{number}: {}", said.stderr);
        let (paid, answered) = (desk.calls(), desk.answers());
        let _ = desk.call(&words);
        let what = format!("killed before {number} of {operations}: {:?}", fault.fatal());
        assert_eq!(turns(&desk.dir.join("a.json")), whole, "{what}");
        assert_eq!(desk.names(""), expect.1, "{what}");
        assert_eq!(desk.calls() - paid, 3 - answered, "{what}");
        let _ = desk.call(&words);
        assert_eq!(turns(&desk.dir.join("a.json")), whole, "{what}: nothing is left to be said");
    }
}

#[test]
fn a_provider_that_remembers_is_gone_on_from() {
    let server = Server::start(|hit: &Hit| {
        let body: Value = serde_json::from_str(&hit.body).expect("JSON");
        if body["previous_response_id"] == "resp-1" {
            let error = json!({"error": {"message": "no 'previous_response_id' of that name"}});
            return Act::answer(400, &[], &error.to_string());
        }
        let text = whole(&format!("idea {}", hit.number));
        let output =
            json!([{"type": "message", "content": [{"type": "output_text", "text": text}]}]);
        let usage = json!({"input_tokens": 5, "output_tokens": 5});
        let id = format!("resp-{}", hit.number);
        let answer = json!({"id": id, "status": "completed", "output": output, "usage": usage});
        Act::answer(200, &[], &answer.to_string())
    });
    let desk = Desk::new();
    let agent = format!(
        "[agents.ideas]\nprovider = 'openai'\nmodel = 'm'\nbase_url = '{}'\n",
        server.url()
    );
    desk.site.repo.write("treebeam.toml", &agent).expect("a file");
    let [from, out] = talk(&desk, "a.json", "a.json");
    let mode = "--conversation-mode=native";
    let _ = desk.call(&["--count=1", &out, mode, "--yes"]);
    let document = desk.call(&["--count=2", &from, &out, mode, "--yes"]);
    assert_eq!(document["conversation"]["turns"][0]["continued_id"], "resp-0");
    // A forgotten conversation is replayed, with a note.
    let document = desk.call(&["--count=3", &from, &out, mode, "--yes"]);
    let turn = &document["conversation"]["turns"][0];
    assert_eq!((&turn["mode"], &turn["turn_id"]), (&json!("replay"), &json!("c0000-t3")));
    assert!(turn["note"].as_str().is_some_and(|note| note.contains("has forgotten")), "{turn}");
    // Two forks of one answer.
    for count in ["--count=4", "--count=5"] {
        let _ = desk.call(&[count, &from, mode, "--fork-from-turn-id=c0000-t1", "--yes"]);
    }
    let hits = server.hits();
    let bodies: Vec<Value> =
        hits.iter().map(|hit| serde_json::from_str(&hit.body).expect("JSON")).collect();
    let asked: Vec<&Value> = bodies.iter().map(|body| &body["previous_response_id"]).collect();
    let none = Value::Null;
    let resp = |number: usize| json!(format!("resp-{number}"));
    assert_eq!(asked, [&none, &resp(0), &resp(1), &none, &resp(0), &resp(0)]);
    let told: Vec<bool> =
        bodies.iter().map(|body| body.to_string().contains("WHAT WAS SAID BEFORE")).collect();
    assert_eq!(told, [false, false, false, true, false, false]);
}
