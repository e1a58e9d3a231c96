//! Tests that every screen fits its size, whatever is shown, and that its text is harmless.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod sample;

use jiff::Timestamp;
use treebeam_core::bill::{AgentBill, Cost, RoleBills, TokenUsage};
use treebeam_core::event::{Event, Leftover, LeftoverKind};
use treebeam_core::facts::{Eval, Facts, Node, NodeOrigin, RemovalState, Stage};
use treebeam_core::id::{CodePlace, EvalId, NodeId};
use treebeam_core::num::Finite;
use treebeam_core::role::AgentRole;
use treebeam_core::state::State;
use treebeam_testkit::hostile_text;
use treebeam_view::render_status;
use treebeam_view::screen::{
    FollowMode, ScreenFile, ScreenKey, ScreenLine, ScreenModel, ScreenSize, ScreenTone,
    ScreenUpdate, WatchHistory, WatchScene, draw_screen, screen_files, update_model,
};
use treebeam_view::status::UnansweredCalls;

/// Command that resumes the run.
const WAY_ON: &str =
    "treebeam resume a-run-id-of-forty-characters-0123456789a --max-cost-usd=5 --beam-width=2";

/// Maximum costs of calls without an answer.
const UNANSWERED: UnansweredCalls =
    UnansweredCalls { cost: Cost::from_pico_dollars(u64::MAX), tokens: u64::MAX };

/// A run with as much to show as possible: long names, wide characters, many deferred removals, and
/// every limit.
fn crowded(ideas: u32, leftovers: u32) -> Facts {
    let mut facts = sample::after(&sample::events(), 40).into_facts();
    facts.run = "a-run-id-of-forty-characters-0123456789a".parse().unwrap();
    facts.limits.max_cost_usd = Finite::new(123_456.789_012);
    facts.limits.max_tokens_total = Some(u64::MAX);
    facts.frontier = (0..200).map(NodeId::new).collect();
    facts.history.paused_since = Some(sample::now());
    let mut bills = RoleBills::default();
    let usage = TokenUsage { input: u64::MAX, cached: 0, output: 0 };
    let (calls, cost) = (u32::MAX, Cost::from_pico_dollars(u64::MAX));
    bills.add(
        AgentRole::Coder,
        AgentBill { calls, calls_without_price: 7, usage, cost, millis: u64::MAX },
    );
    let evals = facts.evals.unpack_all();
    evals[0].bills = vec![bills];
    for eval in evals {
        eval.idea.title = "広い文字".repeat(50);
    }
    let why = "the device is busy, ".repeat(20);
    facts.leftovers.clear();
    for number in 1..=leftovers {
        let place = CodePlace::Candidate(EvalId::new(number));
        let leftover = Leftover { place, kind: LeftoverKind::Worktree };
        let retry_at = sample::now();
        let removal = RemovalState::Deferred { attempts: 2, why: why.clone(), retry_at };
        facts.leftovers.insert(leftover, removal);
    }
    // A path of the wanted length, whose last node is the best.
    let template = facts.nodes[1].clone();
    for number in 1..=ideas {
        let (parent, from) = (NodeId::new(number - 1), EvalId::new(1));
        let forked_at = template.forked_at().unwrap();
        let origin = NodeOrigin::Promoted { parent, from, forked_at };
        facts.nodes.truncate(usize::try_from(number).unwrap());
        facts.nodes.push(Node { id: NodeId::new(number), origin, ..template.clone() });
    }
    if let Some(NodeOrigin::Promoted { from, .. }) =
        facts.nodes.last_mut().map(|node| &mut node.origin)
    {
        *from = EvalId::new(2);
    }
    facts
}

#[test]
fn a_status_is_one_screen_whatever_there_is_to_say() {
    let runner = "process 4711 on `a-host-with-a-rather-long-name.example`, since an hour ago";
    for ideas in [0, 1, 5, 60] {
        for leftovers in [0, 1, 9, 500] {
            for runner in [None, Some(runner)] {
                let facts = crowded(ideas, leftovers);
                let text = render_status(&facts, UNANSWERED, runner, &[], WAY_ON);
                let width = |line: &str| unicode_width::UnicodeWidthStr::width(line);
                let seen: usize = text.lines().map(|line| width(line).div_ceil(80)).sum();
                assert!(seen <= 23, "{ideas} {leftovers}\n{text}");
                let is_cut = |line: &str| width(line) <= 80 || line.ends_with(WAY_ON);
                assert!(text.lines().all(is_cut), "{text}");
                assert!(text.contains("best        n00"), "{text}");
                assert_eq!(text.contains("cleanup"), leftovers > 0, "{text}");
                assert!(text.contains(if runner.is_some() { "unpause" } else { "resume" }));
            }
        }
    }
    insta::assert_snapshot!(render_status(
        &crowded(60, 500),
        UNANSWERED,
        Some(runner),
        &[],
        WAY_ON
    ));
}

#[test]
fn a_status_is_one_screen_from_the_beginning_to_the_end() {
    let begun = State::from_run_started(&sample::started());
    for state in [begun, sample::finished()] {
        assert!(render_status(&state, UNANSWERED, None, &[], WAY_ON).lines().count() <= 23);
    }
}

// ---- the screen of `treebeam watch`

const SMALL: ScreenSize = ScreenSize { columns: 80, rows: 24 };
const LARGE: ScreenSize = ScreenSize { columns: 200, rows: 50 };

/// The screen of a watcher who saw the sample from its beginning: one event each minute.
struct Watch {
    state: State,
    diary: WatchHistory,
    now: Timestamp,
    runner: Option<&'static str>,
    paper: Option<ScreenFile>,
    model: ScreenModel,
    size: ScreenSize,
    /// Foreign text for the folder's name, the runner and the trouble.
    stranger: Option<String>,
}

impl Watch {
    fn of(events: &[Event]) -> Self {
        let mut diary = WatchHistory::default();
        let mut now = sample::now();
        for event in events {
            now += std::time::Duration::from_mins(1);
            diary.add_event(now, event);
        }
        now += std::time::Duration::from_secs(90);
        let state = State::from_events(events).unwrap();
        let (runner, model) = (Some("process 7 on `night`"), ScreenModel::default());
        Self { state, diary, now, runner, paper: None, model, size: SMALL, stranger: None }
    }

    fn over() -> Self {
        Self { runner: None, ..Self::of(&sample::events()) }
    }

    fn scene(&self) -> WatchScene<'_> {
        WatchScene {
            facts: &self.state,
            history: &self.diary,
            runner: self.stranger.as_deref().or(self.runner),
            resume_command: self.stranger.as_deref().unwrap_or(WAY_ON),
            now: self.now,
            directory: self.stranger.as_deref().unwrap_or("/runs/x"),
            paper: self.paper.as_ref(),
            trouble: self.stranger.as_deref(),
        }
    }

    fn press(mut self, keys: &[ScreenKey]) -> Self {
        for key in keys {
            let ScreenUpdate::Stay(model) =
                update_model(self.model.clone(), *key, &self.scene(), self.size)
            else {
                panic!("{key:?} quits");
            };
            self.model = model;
        }
        self
    }

    fn lines(&self) -> Vec<ScreenLine> {
        draw_screen(&self.scene(), &self.model, self.size)
    }

    fn text(&self) -> String {
        let lines = self.lines();
        lines.iter().map(|line| line.text().trim_end().to_owned() + "\n").collect()
    }

    /// Returns the text of the cursor's row.
    fn chosen(&self) -> String {
        let is_chosen =
            |line: &&ScreenLine| line.spans().iter().any(|span| span.tone() == ScreenTone::Chosen);
        let lines = self.lines();
        let chosen: Vec<_> = lines.iter().filter(is_chosen).collect();
        assert_eq!(chosen.len(), 1, "{}", self.text());
        chosen[0].text().trim().to_owned()
    }
}

fn typed(text: &str) -> Vec<ScreenKey> {
    text.chars().map(ScreenKey::Char).collect()
}

/// The second depth in its middle: one eval is implemented, others wait or have ended.
fn half_way() -> Vec<Event> {
    let events = sample::events();
    let second = events.iter().rposition(|e| matches!(e, Event::Implemented { .. })).unwrap();
    events[..second].to_vec()
}

#[test]
fn a_run_on_the_screen() {
    let watch = Watch::of(&half_way());
    let large = Watch { size: LARGE, ..Watch::of(&half_way()) };
    let begun = Watch::of(&sample::events()[..2]);
    let shown = [watch.text(), begun.text(), Watch::over().text(), large.text()];
    insta::assert_snapshot!(shown.join("=====\n"));
}

/// Current activities are what a watcher looks for: they are on the line however many evals have
/// ended.
#[test]
fn what_is_running_and_queued_fits_on_a_small_screen() {
    let mut watch = Watch::of(&half_way());
    let mut facts = watch.state.clone().into_facts();
    facts.limits.max_total_idea_evals = Some(200);
    let evals = facts.evals.unpack_all();
    let last = evals.last().unwrap().clone();
    for number in 10..=120 {
        let stage = if number % 2 == 0 { Stage::Queued } else { last.stage.clone() };
        evals.push(Eval { id: EvalId::new(number), stage, ..last.clone() });
    }
    watch.state = State::from_facts(facts).unwrap();
    let text = watch.text();
    let line = text.lines().find(|line| line.starts_with("depth")).unwrap();
    assert!(line.contains("56 running, 56 queued"), "{text}");
}

#[test]
fn what_was_begun_is_not_busy_where_nobody_runs_it() {
    let text = |runner| Watch { runner, ..Watch::of(&half_way()) }.text();
    assert!(text(Some("process 7 on `night`")).contains("now: 1 busy, at most "));
    let left = text(None);
    assert!(left.contains("now: nobody is at work, 1 begun") && left.contains("being "), "{left}");
    assert!(Watch::over().text().contains("now: 0 busy"));
}

#[test]
fn an_eval_its_file_the_filter_and_the_keys_on_the_screen() {
    let item = Watch::over().press(&typed("jj")).press(&[ScreenKey::Enter]);
    let mut paper = Watch::over().press(&typed("jl"));
    paper.paper = Some(ScreenFile {
        name: "eval/0002/s1/sweep.log".to_owned(),
        number: 1,
        count: 2,
        skipped: 77,
        text: "row 1\r 50 %\r100 %\r\n\u{1b}[31mred\u{1b}[0m\ttab\n".to_owned()
            + &"wide 日本 ".repeat(20),
    });
    let filter = Watch::over().press(&typed("/failed"));
    let help = Watch::over().press(&typed("?"));
    let shown = [item.text(), paper.text(), filter.text(), help.text()];
    insta::assert_snapshot!(shown.join("=====\n"));
}

#[test]
fn the_cursor_stays_where_it_is_put() {
    let all =
        ["n0000", "n0002", "n0003", "e0007", "e0008", "e0009", "n0001", "e0003", "e0004", "e0005"];
    let mut watch = Watch::over();
    for name in all {
        assert!(watch.chosen().contains(name), "{name}: {}", watch.chosen());
        watch = watch.press(&[ScreenKey::Down]);
    }
    assert!(watch.chosen().contains("e0005"), "the last row is the last");
    assert!(watch.press(&[ScreenKey::Home]).chosen().contains("n0000"));
    let at = |keys: &[ScreenKey]| Watch::over().press(keys).chosen();
    assert!(at(&[ScreenKey::End, ScreenKey::Up]).contains("e0004"));
    assert!(at(&[ScreenKey::PageDown, ScreenKey::PageUp]).contains("n0000"));
    assert!(at(&typed("b")).contains("n0003"));
    // The tree grows above and below the row; the cursor stays on it.
    let early = Watch::of(&half_way()).press(&[ScreenKey::End]);
    assert!(early.chosen().contains("e0005"));
    let later = Watch { model: early.model, ..Watch::over() };
    assert!(later.chosen().contains("e0005"));
}

#[test]
fn a_filter_shows_what_it_says_until_it_is_taken_back() {
    let watch = Watch::over().press(&typed("/FAILED"));
    assert!(watch.text().contains("2 rows with `FAILED`"), "{}", watch.text());
    let watch = watch.press(&[ScreenKey::Enter, ScreenKey::Down]);
    assert!(watch.chosen().contains("e0005"));
    let watch = watch.press(&[ScreenKey::Escape]);
    assert!(watch.text().contains("10 rows") && watch.chosen().contains("e0005"));
    let cut = Watch::over().press(&typed("/xyz")).press(&[ScreenKey::Backspace; 3]);
    assert!(cut.text().contains("tree: 10 rows") && cut.text().contains("filter: _"));
    // Letters that are commands elsewhere are typed into the filter here.
    let quit = Watch::over().press(&typed("/q?lb"));
    assert!(quit.text().contains("0 rows with `q?lb`"), "{}", quit.text());
    let keys = [
        ScreenKey::Enter,
        ScreenKey::Down,
        ScreenKey::PageDown,
        ScreenKey::Enter,
        ScreenKey::Right,
        ScreenKey::Char('l'),
    ];
    let none = quit.press(&keys);
    assert!(none.text().contains("tree: 0 rows"), "nothing is chosen, nothing opens");
    assert!(
        none.press(&[ScreenKey::Escape]).chosen().contains("n0000"),
        "where the cursor was before"
    );
}

#[test]
fn keys_act_on_the_row_that_is_shown_as_chosen() {
    // The cursor's row is not among the filtered ones.
    let filtered = || Watch::over().press(&typed("/failed")).press(&[ScreenKey::Enter]);
    assert!(filtered().chosen().contains("e0008"), "{}", filtered().text());
    let check = |keys: &[ScreenKey], expected: &str| {
        let watch = filtered().press(keys);
        assert!(watch.text().contains(expected), "{keys:?}: {}", watch.text());
    };
    check(&[ScreenKey::Enter], "e0008 of run");
    check(&[ScreenKey::Right], "e0008 of run");
    check(&[ScreenKey::Char('l')], "e0008 of run");
    check(&[ScreenKey::Enter, ScreenKey::Char('l')], "e0008 of run");
    check(&[ScreenKey::Down, ScreenKey::Enter], "e0005 of run");
    check(&[ScreenKey::Up, ScreenKey::Enter], "e0008 of run");
    assert!(filtered().press(&[ScreenKey::Escape]).chosen().contains("e0008"), "it stays chosen");
    // A filter that is cancelled while it is typed does not move the cursor.
    let given_up = Watch::over().press(&typed("j/failed")).press(&[ScreenKey::Escape]);
    assert!(given_up.chosen().contains("n0002"), "{}", given_up.text());
}

#[test]
fn pages_lie_over_each_other_and_q_leaves() {
    let watch =
        Watch::over().press(&[ScreenKey::Enter, ScreenKey::Char('l'), ScreenKey::Char('?')]);
    assert!(watch.text().contains("keys of"));
    let watch = watch.press(&[ScreenKey::Escape]);
    assert!(watch.text().contains("nothing has been written yet"));
    let watch = watch.press(&[ScreenKey::Left]);
    assert!(watch.text().contains("n0000 of run"));
    let watch = watch.press(&[ScreenKey::Escape]);
    assert!(watch.text().contains("tree: 10 rows"));
    assert_eq!(watch.model, ScreenModel::default());
    for before in [&[][..], &[ScreenKey::Enter], &[ScreenKey::Char('l')], &[ScreenKey::Char('?')]] {
        let watch = Watch::over().press(before);
        let next = update_model(watch.model.clone(), ScreenKey::Char('q'), &watch.scene(), SMALL);
        assert_eq!(next, ScreenUpdate::Quit, "{before:?}");
    }
}

#[test]
fn the_end_of_a_file_is_followed_until_somebody_scrolls() {
    let paper = |lines: usize| {
        let text = (1..=lines).map(|n| format!("line {n}\n")).collect();
        Some(ScreenFile { name: "sweep.log".to_owned(), number: 1, count: 1, skipped: 0, text })
    };
    let mut watch = Watch::over().press(&typed("jl"));
    let follow = |watch: &Watch| watch.model.wanted_file().unwrap().follow;
    watch.paper = paper(100);
    assert!(watch.text().contains("line 100\n") && follow(&watch) == FollowMode::Yes);
    watch.paper = paper(150);
    assert!(watch.text().contains("line 150\n"));
    let mut watch = watch.press(&[ScreenKey::Up]);
    assert!(watch.text().contains("line 149\n") && !watch.text().contains("line 150\n"));
    assert_eq!(follow(&watch), FollowMode::No);
    watch.paper = paper(200);
    assert!(watch.text().contains("line 149\n") && !watch.text().contains("line 150\n"));
    let watch = watch.press(&[ScreenKey::Home]);
    assert!(watch.text().contains("line 1\n") && watch.text().contains("1–22 of 200"));
    let watch = watch.press(&[ScreenKey::PageDown]);
    assert!(watch.text().contains("22–43 of 200"), "one line stays: {}", watch.text());
    let watch = watch.press(&typed("G"));
    assert_eq!(follow(&watch), FollowMode::Yes);
    let watch = watch.press(&[ScreenKey::Tab]);
    assert_eq!(watch.model.wanted_file().unwrap().which, 1);
}

#[test]
fn the_files_of_an_eval_are_named_where_they_may_lie() {
    let state = sample::finished();
    let names = |place| {
        let papers = screen_files(&state, place);
        papers.iter().map(|paths| paths[0].to_string()).collect::<Vec<_>>()
    };
    let eval = names(CodePlace::Candidate(EvalId::new(2)));
    assert_eq!(eval[0], "eval/0002/s1/sweep.log");
    assert!(eval.contains(&"eval/0002/experiment/candidate.diff".to_owned()), "{eval:?}");
    // A node has the files of the eval that it was promoted from.
    assert_eq!(names(CodePlace::Node(NodeId::new(1))), eval);
    assert_eq!(names(CodePlace::Node(NodeId::ROOT))[0], "eval/root/s1/sweep.log");
    assert!(names(CodePlace::Node(NodeId::new(99))).is_empty());
}

/// Text that a terminal would obey, hide or misread, in addition to `hostile_text::all`.
const HOSTILE: [&str; 7] = [
    "\u{1b}[?1049l\u{1b}c",
    "\u{1b}]52;c;ZXZpbA==\u{1b}\\",
    "\u{2028}\u{2029}\u{feff}\u{200b}\u{200d}\u{ad}",
    "e\u{301}\u{302}\u{303}\u{304}\u{305}\u{306}\u{307}\u{308}",
    "日本語日本語日本語日本語日本語日本語日本語日本語日本語日本語日本語",
    "\u{1160}\u{3164}\u{ffa0}\u{115f}",
    "\t\t\t\t\t\t\t\t\t\t\t\t",
];

/// A screen on which every foreign text is this one.
fn written_by_a_stranger(hostile: &str) -> Watch {
    let mut watch = Watch::of(&half_way());
    let mut facts = watch.state.clone().into_facts();
    for eval in facts.evals.unpack_all() {
        eval.idea.title = format!("{hostile} end");
        if let Stage::Failed { failure, .. } = &mut eval.stage {
            failure.message = format!("{hostile} end");
        }
    }
    watch.state = State::from_facts(facts).unwrap();
    let text = format!("{hostile}\n{hostile} end\n");
    let (name, of) = (hostile.to_owned(), 1);
    watch.paper = Some(ScreenFile { name, number: 1, count: of, skipped: 0, text });
    watch.stranger = Some(hostile.to_owned());
    watch
}

#[test]
fn no_text_is_more_than_text_whatever_the_size() {
    let more = HOSTILE.iter().map(|text| (*text).to_owned());
    for hostile in hostile_text::all().into_iter().chain(more) {
        let mut watch = written_by_a_stranger(&hostile);
        let pages: [&[ScreenKey]; 6] = [
            &[],
            &[ScreenKey::Down, ScreenKey::Enter],
            &[ScreenKey::End, ScreenKey::Enter],
            &[ScreenKey::Down, ScreenKey::Char('l')],
            &[ScreenKey::Char('/'), ScreenKey::Char('d')],
            &[ScreenKey::Char('?')],
        ];
        for keys in pages {
            watch.model = ScreenModel::default();
            watch = watch.press(keys);
            let sizes = [(80, 24), (200, 50), (40, 10), (41, 17), (3, 2), (0, 0)];
            let few = if hostile.len() > 1000 { 1 } else { sizes.len() };
            for (columns, rows) in sizes.into_iter().take(few) {
                watch.size = ScreenSize { columns, rows };
                assert_inert(&watch, &hostile);
            }
            watch.size = SMALL;
        }
    }
}

fn assert_inert(watch: &Watch, hostile: &str) {
    let lines = watch.lines();
    assert_eq!(lines.len(), watch.size.rows);
    for line in lines {
        let text = line.text();
        let bad = |c: char| {
            c.is_control()
                || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
        };
        assert!(!text.chars().any(bad), "{hostile:?}: {text:?}");
        assert!(line.columns() <= watch.size.columns, "{hostile:?}: {text:?}");
        let width: usize =
            text.chars().map(|c| unicode_width::UnicodeWidthChar::width(c).unwrap()).sum();
        assert_eq!(width, line.columns());
    }
}

#[test]
fn what_can_still_take_long_is_estimated_only_while_it_runs() {
    let text = |events: &[Event], runner| Watch { runner, ..Watch::of(events) }.text();
    let runner = Some("process 7 on `night`");
    let events = sample::events();
    let ended = |e: &&Event| matches!(e, Event::Scored { .. } | Event::EvalFailed { .. });
    let second = events.iter().filter(ended).count();
    assert!(second > 3, "the sample has enough ends");
    assert!(text(&half_way(), runner).contains("≈ "), "{}", text(&half_way(), runner));
    for quiet in [text(&half_way(), None), text(&events, None), text(&events[..8], runner)] {
        assert!(!quiet.contains('≈'), "{quiet}");
    }
}
