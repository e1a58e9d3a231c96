//! Messages on disk are read in order and once; any other file is set aside, and nothing stops.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use jiff::Timestamp;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use tempfile::TempDir;
use treebeam_core::event::UserRequest;
use treebeam_core::id::NodeId;
use treebeam_run::port::{Inbox as _, InboxMessage, MessageContent, UserIdea};
use treebeam_store::RunDir;
use treebeam_store::inbox::{
    MessageStatus, OutgoingMessage, RunInbox, encode_message, message_status, post_message,
    withdraw_message,
};
use treebeam_store::user_state::{InboxSecret, UserStateError};

const EPOCH: u64 = 3;
const SECRET: InboxSecret = InboxSecret::new([7; 32]);

struct Home {
    _folder: TempDir,
    run: RunDir,
}

fn home() -> Home {
    let folder = TempDir::new().unwrap();
    let run = RunDir::new(folder.path().join("t"));
    fs::create_dir_all(run.root()).unwrap();
    Home { _folder: folder, run }
}

impl Home {
    fn inbox(&self, tell: fn(&str)) -> RunInbox {
        RunInbox::new(self.run.clone(), EPOCH, Ok(SECRET), tell)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.run.inbox_path().join(name)
    }

    fn write(&self, name: &str, letter: &Value) {
        fs::create_dir_all(self.run.inbox_path()).unwrap();
        fs::write(self.path(name), letter.to_string()).unwrap();
    }

    /// Writes a message as it is posted, under a given name.
    fn sign(&self, name: &str, message: &OutgoingMessage, secret: &InboxSecret) {
        fs::create_dir_all(self.run.inbox_path()).unwrap();
        let id = name.parse().unwrap();
        let at = Timestamp::UNIX_EPOCH;
        let bytes = encode_message(&self.run, &id, at, message, secret).unwrap();
        fs::write(self.path(&format!("{name}.json")), bytes).unwrap();
    }

    fn names(&self, folder: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.path(folder)) else { return Vec::new() };
        let name = |entry: std::io::Result<fs::DirEntry>| {
            entry.unwrap().file_name().to_string_lossy().into_owned()
        };
        let mut names: Vec<_> = entries.map(name).collect();
        names.sort();
        names
    }
}

fn letter(kind: &str, more: &Value) -> Value {
    let mut letter = json!({"message_version": 1, "at": Timestamp::UNIX_EPOCH, "kind": kind});
    for (name, value) in more.as_object().unwrap() {
        letter[name] = value.clone();
    }
    letter
}

fn wish(wish: UserRequest) -> OutgoingMessage {
    OutgoingMessage::Wish { wish, epoch: EPOCH }
}

#[test]
fn what_is_written_is_read_in_order_and_once() {
    let home = home();
    let inbox = home.inbox(|text| panic!("{text}"));
    assert_eq!(inbox.list_messages(), [], "a run without an inbox has no messages");
    let idea = UserIdea { node: Some(NodeId::new(3)), text: "IDEA: \"x\" – ü\n".to_owned() };
    let sent = [
        wish(UserRequest::Pause),
        OutgoingMessage::Idea(idea.clone()),
        wish(UserRequest::Unpause),
        wish(UserRequest::Stop),
        OutgoingMessage::Idea(UserIdea { node: None, ..idea.clone() }),
    ];
    let ids: Vec<_> =
        sent.iter().map(|message| post_message(&home.run, message, &SECRET).unwrap()).collect();
    assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?}");
    let read = inbox.list_messages();
    assert_eq!(read.iter().map(|message| message.id.clone()).collect::<Vec<_>>(), ids);
    assert_eq!(read[0].request, MessageContent::Wish(UserRequest::Pause));
    assert_eq!(read[1].request, MessageContent::Idea(idea));
    assert_eq!(inbox.list_messages(), read, "looking takes nothing");
    for id in &ids {
        assert_eq!(message_status(&home.run, id), MessageStatus::Waiting);
    }
    inbox.forget_message(&ids[0]);
    inbox.forget_message(&ids[0]);
    inbox.forget_message(&ids[1]);
    withdraw_message(&home.run, &ids[2]).unwrap();
    assert_eq!(message_status(&home.run, &ids[0]), MessageStatus::Taken);
    assert_eq!(message_status(&home.run, &ids[2]), MessageStatus::Taken);
    assert_eq!(inbox.list_messages(), read[3..]);
}

#[test]
fn a_message_that_is_set_aside_is_found_with_its_reason() {
    static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let home = home();
    let inbox = home.inbox(|text| SAID.lock().unwrap().push(text.to_owned()));
    let id = post_message(&home.run, &wish(UserRequest::Pause), &SECRET).unwrap();
    inbox.set_aside(&id, "the run is over");
    assert_eq!(
        message_status(&home.run, &id),
        MessageStatus::Refused("the run is over".to_owned())
    );
    assert_eq!(inbox.list_messages(), []);
    let said = SAID.lock().unwrap().join("\n");
    assert_eq!(said, format!("`inbox/{id}.json` is set aside: the run is over"));
}

#[test]
fn a_wish_for_another_opening_of_the_run_is_not_for_this_one() {
    let home = home();
    let inbox = home.inbox(|_| {});
    let at = |epoch| {
        post_message(&home.run, &OutgoingMessage::Wish { wish: UserRequest::Stop, epoch }, &SECRET)
            .unwrap()
    };
    let (before, after) = (at(EPOCH - 1), at(EPOCH + 1));
    assert_eq!(inbox.list_messages(), []);
    let MessageStatus::Refused(why) = message_status(&home.run, &before) else {
        panic!("it is left")
    };
    assert_eq!(why, "this `stop` was meant for a process that had the run before");
    assert_eq!(
        message_status(&home.run, &after),
        MessageStatus::Waiting,
        "its reader may be there already"
    );
}

#[test]
fn what_is_no_message_is_set_aside_and_mentioned_once() {
    static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let home = home();
    let inbox = home.inbox(|text| SAID.lock().unwrap().push(text.to_owned()));
    let pause = json!({"to_epoch": EPOCH});
    home.write("a b.json", &letter("pause", &pause));
    home.write("a.txt", &letter("pause", &pause));
    home.write("b1.json", &json!(7));
    home.write("b2.json", &letter("dance", &pause));
    home.write("b3.json", &letter("pause", &json!({})));
    let mut newer = letter("pause", &pause);
    newer["message_version"] = json!(2);
    home.write("b4.json", &newer);
    home.sign("b5", &OutgoingMessage::Idea(UserIdea { node: None, text: " ".to_owned() }), &SECRET);
    home.write("b6.json", &letter("idea", &json!({"node": "x", "text": "IDEA: x"})));
    home.write("b7.json", &letter("idea", &json!({"node": null, "text": "x".repeat(300_000)})));
    fs::write(home.path("b8.json"), b"\xff\xfe{").unwrap();
    fs::write(home.path("b9.json"), "").unwrap();
    fs::create_dir(home.path("c1.json")).unwrap();
    fs::write(home.path("c1.json/in it"), "").unwrap();
    home.write(".new-half", &json!(7));
    home.sign("d", &wish(UserRequest::Pause), &SECRET);
    let read = inbox.list_messages();
    let [InboxMessage { id, request }] = &read[..] else { panic!("{read:?}") };
    assert_eq!((id.as_str(), request), ("d", &MessageContent::Wish(UserRequest::Pause)));
    assert_eq!(home.names(""), [".new-half", "d.json", "refused"], "half a message is left alone");
    let refused = home.names("refused");
    assert_eq!(refused.iter().filter(|name| name.ends_with(".why.txt")).count(), 12);
    let said = SAID.lock().unwrap().join("\n");
    for (name, why) in [
        ("a b.json", "its name is not that of a message"),
        ("b2.json", "unknown variant `dance`"),
        ("b4.json", "it has version 2; this treebeam knows version 1"),
        ("b5.json", "its idea: it says nothing"),
        ("b7.json", "it is longer than 262144 bytes"),
        ("c1.json", "it is no regular file"),
    ] {
        let lines = said.lines().filter(|line| line.contains(name)).collect::<Vec<_>>();
        assert_eq!(lines.len(), 1, "{name}: {said}");
        assert!(lines[0].contains(why), "{}", lines[0]);
    }
}

/// A candidate can write into the run's folder, and read the user's messages there.
#[test]
fn a_message_without_the_users_secret_is_set_aside_and_named() {
    static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let (home, other) = (home(), home());
    let inbox = home.inbox(|text| SAID.lock().unwrap().push(text.to_owned()));
    let (stop, idea) =
        (wish(UserRequest::Stop), UserIdea { node: None, text: "Mine\n".to_owned() });
    home.write("a-none.json", &letter("stop", &json!({"to_epoch": EPOCH})));
    home.write("a-idea.json", &letter("idea", &json!({"node": null, "text": "Mine"})));
    home.write("a-odd.json", &letter("stop", &json!({"to_epoch": EPOCH, "signature": ""})));
    home.sign("b-other-secret", &stop, &InboxSecret::new([8; 32]));
    // A message of the user's under another name, with other content, and of another run.
    let own = post_message(&home.run, &wish(UserRequest::Pause), &SECRET).unwrap();
    let text = fs::read_to_string(home.path(&format!("{own}.json"))).unwrap();
    fs::write(home.path("c-again.json"), &text).unwrap();
    withdraw_message(&home.run, &own).unwrap();
    fs::write(home.path(&format!("{own}.json")), text.replace("pause", "stop")).unwrap();
    home.sign("d-idea", &OutgoingMessage::Idea(idea), &SECRET);
    let changed = fs::read_to_string(home.path("d-idea.json")).unwrap().replace("Mine", "Theirs");
    fs::write(home.path("d-idea.json"), changed).unwrap();
    let elsewhere = RunDir::new(other.run.root().with_file_name("u"));
    fs::create_dir_all(elsewhere.root()).unwrap();
    let id = "e-elsewhere".parse().unwrap();
    let bytes = encode_message(&elsewhere, &id, Timestamp::UNIX_EPOCH, &stop, &SECRET).unwrap();
    fs::write(home.path("e-elsewhere.json"), bytes).unwrap();
    assert_eq!(inbox.list_messages(), []);
    assert_eq!(home.names(""), ["refused"]);
    let said = SAID.lock().unwrap().clone();
    assert_eq!(said.len(), 8, "{said:?}");
    assert!(said.iter().all(|line| line.contains("is set aside: it does not carry")), "{said:?}");
    home.sign("f", &stop, &SECRET);
    assert_eq!(inbox.list_messages().len(), 1, "and one that has it is acted upon");
}

#[test]
fn without_a_secret_nothing_is_acted_upon() {
    let home = home();
    let _ = post_message(&home.run, &wish(UserRequest::Stop), &SECRET).unwrap();
    let none = Err(UserStateError::Nowhere);
    let inbox = RunInbox::new(home.run.clone(), EPOCH, none, |text| {
        assert!(text.contains("there is no place for the user's state"), "{text}");
    });
    assert_eq!(inbox.list_messages(), []);
    assert_eq!(home.names(""), ["refused"]);
}

#[cfg(unix)]
#[test]
fn a_pipe_and_a_link_are_not_opened_and_one_that_cannot_be_moved_is_passed_over() {
    use std::os::unix::fs::symlink;
    static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let home = home();
    let inbox = home.inbox(|text| SAID.lock().unwrap().push(text.to_owned()));
    let id = post_message(&home.run, &wish(UserRequest::Unpause), &SECRET).unwrap();
    treebeam_testkit::repo::pipe(&home.path("a1.json")).unwrap();
    symlink(home.path(&format!("{id}.json")), home.path("a2.json")).unwrap();
    symlink("/dev/zero", home.path("a3.json")).unwrap();
    // A file in place of the folder for refused messages.
    fs::write(home.path("refused"), "").unwrap();
    for _ in 0..3 {
        assert_eq!(inbox.list_messages().len(), 1);
    }
    let said = SAID.lock().unwrap().clone();
    assert_eq!(said.len(), 3, "each once: {said:?}");
    assert!(said.iter().all(|text| text.ends_with("is left alone: it is no regular file")));
}
