//! Every step, killed before and after, resumed and compared.

use super::scenario::{Act, End, Scenario, all};
use super::transition::Transitions;
use super::{is_campaign, traces};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::thread;
use treebeam_testkit::fault::{Fault, Operation};
use treebeam_testkit::program::{SITE_RUN_ID, Site};

/// A moment to kill at: the nth operation of an act with these words in its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Point {
    act: usize,
    when: &'static str,
    nth: usize,
    words: Vec<String>,
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { act, when, nth, words } = self;
        write!(f, "act {act}: kill {when} {nth} {}", words.join(" "))
    }
}

/// The operations of each act of an undisturbed scenario.
struct Reference {
    scenario: Scenario,
    site: Site,
    operations: Vec<Vec<Operation>>,
}

impl Reference {
    fn of(scenario: Scenario) -> Self {
        let site = scenario.site();
        let operations = scenario.acts.iter().map(|act| perform(&site, act)).collect();
        settle(&site);
        Self { scenario, site, operations }
    }

    /// Returns the operations of the acts that are not killed by their own plan.
    fn of_interest(&self) -> impl Iterator<Item = (usize, usize, &Operation)> {
        let acts = self.operations.iter().enumerate();
        let acts = acts.filter(|(act, _)| self.scenario.acts[*act].code.is_some());
        acts.flat_map(|(act, all)| all.iter().enumerate().map(move |(at, one)| (act, at, one)))
    }

    /// Returns the moment at an operation, identified by these words.
    fn point(&self, act: usize, index: usize, when: &'static str, words: Vec<String>) -> Point {
        let meets = |operation: &&Operation| {
            let Operation { call, path, to, events, .. } = operation;
            let name = format!("{call} {path} {to} {}", events.join(","));
            words.iter().all(|word| name.contains(word.as_str()))
        };
        let nth = self.operations[act][..=index].iter().filter(meets).count();
        Point { act, when, nth, words }
    }
}

/// Makes a call, and asserts the exit code of its act.
#[track_caller]
fn perform(site: &Site, act: &Act) -> Vec<Operation> {
    (act.prepare)(site);
    let fault = Fault::plan(act.plan);
    let said = site.call_with_fault(&fault, &act.words);
    assert_eq!(said.code, act.code, "{:?}: {}", act.words, said.stderr);
    fault.operations()
}

/// Writes the reports, for the comparison.
#[track_caller]
fn settle(site: &Site) {
    let said = site.call(&["report", SITE_RUN_ID]).exits(0);
    assert!(said.stderr.contains("is sound"), "{}", said.stderr);
}

/// Returns words that identify an operation in another run: without random parts, and with one of
/// its events, because events may be written together or not.
fn words(operation: &Operation, event: Option<&String>) -> Vec<String> {
    let Operation { call, path, to, .. } = operation;
    let path = if to.is_empty() { path } else { to };
    let mut words = vec![call.clone()];
    if let Some((before, after)) = path.split_once(".new-") {
        words.push(format!("{before}.new-"));
        words.extend(after.split_once('/').map(|(_, rest)| format!("/{rest}")));
    } else if let Some((folder, name)) = path.rsplit_once('/').filter(|_| path.contains("/inbox/"))
    {
        // A message is named by the time and the process.
        words.push(format!("{folder}/"));
        words.extend(name.split_once('.').map(|(_, ending)| format!(".{ending}")));
    } else {
        words.push(path.clone());
    }
    words.extend(event.cloned());
    words
}

/// Executes a scenario, killed once on the way, and returns the operation of the kill. The end must
/// equal that of the reference.
fn disturbed(reference: &Reference, point: &Point) -> Option<Operation> {
    let site = reference.scenario.site();
    let mut fatal = None;
    for (number, act) in reference.scenario.acts.iter().enumerate() {
        if number != point.act {
            perform(&site, act);
            continue;
        }
        (act.prepare)(&site);
        let Point { when, nth, words, .. } = point;
        let fault = Fault::plan(&format!("kill {when} {nth} {}; {}", words.join(" "), act.plan));
        let said = site.call_with_fault(&fault, &act.words);
        fatal = fault.fatal();
        if said.code.is_none() && act.code.is_some() {
            again(&site, act);
        }
    }
    settle(&site);
    reference.site.must_equal(&site);
    traces::same(&reference.site, &site);
    fatal
}

/// Continues after a kill: with a plain `resume`, where the call has begun a run or its wish is on
/// record, or else with the same call.
#[track_caller]
fn again(site: &Site, act: &Act) {
    let is_there = site.path("").is_dir();
    let journal = fs::read_to_string(site.path("journal.jsonl")).unwrap_or_default();
    let wished = journal.contains("\"sent_back\"");
    let plain = is_there && act.words.starts_with(&["run"]) || wished;
    let words = if plain { &["resume", SITE_RUN_ID, "--quiet"][..] } else { &act.words };
    let said = site.call(words);
    // A process that was to be stopped, and was killed, is not stopped the second time.
    let unstopped = act.code == Some(130) && said.code == Some(0);
    assert!(said.code == act.code || unstopped, "{words:?}: {said:?}");
}

/// Chooses the moments to kill at: each event and each step where it occurs first in any scenario,
/// and each line of the journal of the whole run, of one that recovers, and of redone work. In a
/// campaign all; of the scenarios that repeat the whole run, the lasting ones.
fn plan<'a>(references: &'a [Reference], list: &Transitions) -> Vec<(&'a Reference, Point)> {
    let (mut chosen, mut seen) = (Vec::new(), BTreeSet::new());
    for reference in references {
        let thorough = ["whole", "torn line"].contains(&reference.scenario.name);
        for (act, index, operation) in reference.of_interest() {
            let retried = reference.scenario.acts[act].words.contains(&"--retry-failed");
            // A run that is killed while its journal has no name has lost it: only its events
            // count.
            if reference.scenario.name == "journal removed" && operation.events.is_empty() {
                continue;
            }
            let names = list.of(operation);
            let new: Vec<_> = names.iter().filter(|name| !seen.contains(*name)).cloned().collect();
            let everywhere = is_campaign() && (thorough || !names.is_empty());
            let is_line = (thorough || retried) && !operation.events.is_empty();
            if everywhere || is_line || !new.is_empty() {
                let events = if new.is_empty() {
                    names.iter().take(1).collect()
                } else {
                    new.iter().collect()
                };
                for (words, when) in moments(operation, events) {
                    chosen.push((reference, reference.point(act, index, when, words)));
                }
            }
            seen.extend(names);
        }
    }
    chosen
}

/// Returns the moments before and after an operation, one for each of these events if it is a line
/// of a journal; in a campaign also amid one that has halves.
fn moments(operation: &Operation, events: Vec<&String>) -> Vec<(Vec<String>, &'static str)> {
    let halves = is_campaign() && operation.call == "write";
    let whens: &[_] = if halves { &["before", "amid", "after"] } else { &["before", "after"] };
    let found = if operation.events.is_empty() {
        vec![words(operation, None)]
    } else {
        events.into_iter().map(|event| words(operation, Some(event))).collect()
    };
    found
        .into_iter()
        .flat_map(|words| whens.iter().map(move |when| (words.clone(), *when)))
        .collect()
}

/// Steps killed at, with the sides of the kills.
type Covered = BTreeMap<String, BTreeSet<String>>;

fn kill_at_all(points: Vec<(&Reference, Point)>, list: &Transitions) -> (Covered, Vec<String>) {
    let queue = Mutex::new(points.into_iter());
    let (covered, failures) = (Mutex::new(Covered::new()), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let next = queue.lock().expect("the queue").next();
            let Some((reference, point)) = next else { return };
            let done = catch_unwind(AssertUnwindSafe(|| disturbed(reference, &point)));
            match done {
                Ok(None) => {}
                Ok(Some(fatal)) => {
                    let mut covered = covered.lock().expect("what was killed at");
                    for name in list.of(&fatal) {
                        covered.entry(name).or_default().insert(fatal.outcome.clone());
                    }
                }
                Err(panic) => {
                    let text = panic.downcast_ref::<String>().cloned().unwrap_or_default();
                    let what = format!("{}, {point}: {text}", reference.scenario.name);
                    failures.lock().expect("the failures").push(what);
                }
            }
        }
    };
    let workers = thread::available_parallelism().map_or(2, std::num::NonZero::get);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(work);
        }
    });
    (covered.into_inner().expect("done"), failures.into_inner().expect("done"))
}

/// Events that no dry run has, because nothing is paid for there. The story of the store's tests
/// has both, and is cut everywhere.
const NOT_YET: [&str; 2] = ["agents_changed", "budget_reached"];

#[test]
fn a_run_that_is_killed_before_or_after_any_step_ends_the_same() {
    let references: Vec<_> = all().into_iter().map(Reference::of).collect();
    let list = Transitions::ask(&references[0].site);
    for reference in &references {
        if reference.scenario.end == End::AsWhole {
            references[0].site.must_equal(&reference.site);
        }
        traces::same(&reference.site, &reference.site);
    }
    let points = plan(&references, &list);
    let count = points.len();
    eprintln!("killing {count} times");
    let (covered, failures) = kill_at_all(points, &list);
    assert!(
        failures.is_empty(),
        "{} of {count} ended otherwise:\n{}",
        failures.len(),
        failures.join("\n")
    );
    for name in NOT_YET {
        assert!(!covered.contains_key(name), "`{name}` has a scenario now");
    }
    let both = ["killed after", "killed before"];
    let wrong: Vec<_> = list
        .names()
        .into_iter()
        .filter(|name| !NOT_YET.contains(&name.as_str()))
        .filter(|name| {
            let sides = covered.get(name);
            !both.iter().all(|side| sides.is_some_and(|sides| sides.contains(*side)))
        })
        .collect();
    assert!(wrong.is_empty(), "never killed before and after: {wrong:?}");
}
