//! Tests of retries: number of tries, pauses, outages, stated waits, and the end of the time.

use super::*;

fn too_many(wait: Option<u64>) -> Result<AgentReply, TryError> {
    Err(TryError::RateLimited { why: "slow down".into(), wait: wait.map(Duration::from_secs) })
}

/// Counts the further tries that cost something.
#[derive(Default)]
struct Counter(AtomicU32);

impl TryMeter for Counter {
    fn another_try(&self) -> Result<(), TryError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

/// Returns the answer in words, the number of requests, the pauses and the number of paid retries.
fn retried(script: Vec<Result<AgentReply, TryError>>) -> (String, u32, Vec<Duration>, u32) {
    let (script, naps, counter) = (Script::of(script), Naps::default(), Counter::default());
    let (role_agents, calls) = nothing_recorded();
    let layer = RetryLayer::new(&script, &naps, PATIENCE, ServerBook::new(&role_agents, &calls), 7);
    let said = match layer.answer_question(&question("k", "p"), &counter) {
        Ok(reply) => reply.text,
        Err(TryError::Unanswered { why, .. }) => format!("unanswered: {why}"),
        Err(TryError::Unavailable(error)) => format!("unavailable: {}", error.what),
        Err(other) => format!("{other:?}"),
    };
    let naps = naps.0.into_inner().unwrap();
    (said, script.asked(), naps, counter.0.into_inner())
}

#[test]
fn what_may_go_away_is_tried_again_with_pauses_that_grow() {
    use TryCost::{Nothing, Unknown};
    let (said, asked, naps, paid) = retried(vec![
        passing(None, Nothing),
        passing(None, Unknown),
        passing(None, Nothing),
        Ok(reply("yes")),
    ]);
    assert_eq!((said.as_str(), asked, paid), ("yes", 4, 1));
    for (nap, most) in naps.iter().zip([1, 2, 2]) {
        let most = Duration::from_secs(most);
        assert!(*nap >= most / 2 && *nap <= most, "{naps:?}");
    }
    // A stated wait is respected, and never shortened by jitter.
    let (_, _, naps, _) = retried(vec![passing(Some(30), Nothing), Ok(reply("yes"))]);
    assert!(naps[0] >= Duration::from_secs(30) && naps[0] <= Duration::from_secs(31), "{naps:?}");
    let (said, asked, ..) = retried((0..4).map(|_| passing(None, Nothing)).collect());
    assert_eq!((said.as_str(), asked), ("unanswered: oops, 4 times", 4));
    // A server that has never answered may be configured wrongly, and is not waited for.
    for fault in [ServerFault::Unreachable, ServerFault::Overloaded] {
        let (said, asked, ..) = retried((0..4).map(|_| gone(fault)).collect());
        assert!(said.starts_with("unavailable: refused, 4 times in "), "{said}");
        assert_eq!(asked, 4);
    }
}

fn gone(fault: ServerFault) -> Result<AgentReply, TryError> {
    passing_as(fault, None)
}

fn gone_for(seconds: u64) -> Result<AgentReply, TryError> {
    passing_as(ServerFault::Overloaded, Some(seconds))
}

fn passing_as(fault: ServerFault, seconds: Option<u64>) -> Result<AgentReply, TryError> {
    let (why, wait) = ("refused".into(), seconds.map(Duration::from_secs));
    Err(TryError::Temporary { why, fault, wait, spent: TryCost::Nothing })
}

#[test]
fn who_has_answered_before_is_waited_for_while_it_is_gone() {
    use ServerFault::{Answering, Overloaded, Unreachable};
    let after_an_answer = |faults: Vec<ServerFault>| {
        let script = std::iter::once(Ok(reply("first"))).chain(faults.into_iter().map(gone));
        let script = Script::of(script.chain([Ok(reply("back"))]).collect::<Vec<_>>());
        let naps = Naps::default();
        let (role_agents, calls) = nothing_recorded();
        let layer =
            RetryLayer::new(&script, &naps, PATIENCE, ServerBook::new(&role_agents, &calls), 7);
        assert_eq!(
            layer.answer_question(&question("a", "p"), &DeadlineMeter::default()).unwrap().text,
            "first"
        );
        let second = layer
            .answer_question(&question("b", "p"), &DeadlineMeter::default())
            .map(|reply| reply.text);
        (second, naps.0.into_inner().unwrap())
    };
    for fault in [Unreachable, Overloaded] {
        let (said, naps) = after_an_answer(vec![fault; 50]);
        assert_eq!(said.expect("an answer"), "back");
        assert_eq!(naps.len(), 50);
        // The wait has an end.
        let (said, naps) = after_an_answer(vec![fault; 500]);
        assert!(matches!(&said, Err(TryError::Unavailable(_))), "{said:?}");
        let waited: Duration = naps.iter().sum();
        let slack = PATIENCE.longest_pause;
        assert!(waited >= PATIENCE.outage && waited <= PATIENCE.outage + slack, "{waited:?}");
    }
    // A server that restarts may answer badly once, which does not end the wait for it.
    let mut starts = vec![Unreachable; 20];
    starts.push(Answering);
    let (said, _) = after_an_answer(starts);
    assert_eq!(said.expect("an answer"), "back");
    let (said, naps) = after_an_answer(vec![Answering; 50]);
    assert!(matches!(&said, Err(TryError::Unanswered { .. })), "{said:?}");
    assert_eq!(naps.len(), 3);
}

#[test]
fn a_server_that_fails_every_question_is_waited_for_as_one_that_is_gone() {
    let (role_agents, calls) = nothing_recorded();
    let ask = |patience: RetryPolicy, failures: usize| {
        let lines = (0..failures).map(|_| gone(ServerFault::Undecided)).chain([Ok(reply("yes"))]);
        let (script, naps) = (Script::of(lines), Naps::default());
        let layer =
            RetryLayer::new(&script, &naps, patience, ServerBook::new(&role_agents, &calls), 7);
        let answer = layer.answer_question(&question("k", "p"), &DeadlineMeter::default());
        (answer.map(|reply| reply.text), (&naps).now().as_secs(), script.asked())
    };
    let (answer, waited, _) = ask(RetryPolicy::UNATTENDED_RUN, 20);
    assert_eq!(answer.expect("an answer"), "yes");
    assert!(waited > 60, "{waited}");
    let (answer, waited, _) = ask(RetryPolicy::UNATTENDED_RUN, 500);
    assert!(matches!(answer, Err(TryError::Unavailable(_))), "{answer:?}");
    assert!((1800..1860).contains(&waited), "{waited}");
    // Whoever waits for the command is not kept, and no patience is none.
    for patience in
        [RetryPolicy::ATTENDED_COMMAND, RetryPolicy::UNATTENDED_RUN.with_outage(Duration::ZERO)]
    {
        let (answer, waited, asked) = ask(patience, 500);
        assert!(matches!(answer, Err(TryError::Unanswered { .. })), "{answer:?}");
        assert!(waited < 60 && asked == patience.tries, "{waited}, {asked}");
    }
}

/// Fails one question always and answers all others. The tenth try waits for another answer.
struct FailsOne {
    tries: AtomicU32,
    is_other_answered: AtomicBool,
}

impl AgentLayer for &FailsOne {
    fn answer_question(
        &self,
        question: &AgentQuestion,
        _: &dyn TryMeter,
    ) -> Result<AgentReply, TryError> {
        if question.key != "poison" {
            return Ok(reply("yes"));
        }
        if self.tries.fetch_add(1, Ordering::SeqCst) == 9 {
            while !self.is_other_answered.load(Ordering::SeqCst) {
                thread::yield_now();
            }
        }
        gone(ServerFault::Undecided)
    }
}

#[test]
fn a_question_fails_alone_where_the_server_answers_others_meanwhile() {
    let (role_agents, calls) = nothing_recorded();
    let server = FailsOne { tries: AtomicU32::new(0), is_other_answered: AtomicBool::new(false) };
    let (naps, servers) = (Naps::default(), ServerBook::new(&role_agents, &calls));
    let layer = RetryLayer::new(&server, &naps, RetryPolicy::UNATTENDED_RUN, servers, 7);
    let ask = |key| layer.answer_question(&question(key, "p"), &DeadlineMeter::default());
    // An answer before the first trouble says nothing about an outage that began later.
    assert!(ask("before").is_ok());
    let answer = thread::scope(|scope| {
        let poison = scope.spawn(|| ask("poison"));
        while server.tries.load(Ordering::SeqCst) < 10 && !poison.is_finished() {
            thread::yield_now();
        }
        assert!(ask("other").is_ok());
        server.is_other_answered.store(true, Ordering::SeqCst);
        poison.join().expect("no panic")
    });
    assert!(matches!(answer, Err(TryError::Unanswered { .. })), "{answer:?}");
    assert_eq!(server.tries.load(Ordering::SeqCst), 10);
}

#[test]
fn a_pause_of_nothing_is_no_pause_and_ends_by_the_clock() {
    for trouble in [too_many, |wait: Option<u64>| passing_as(ServerFault::Overloaded, wait)] {
        // More errors than a server could send in the available time.
        let (said, asked, naps, _) = retried((0..500).map(|_| trouble(Some(0))).collect());
        assert!(said.starts_with("unavailable: "), "{said}");
        assert!(asked < 8, "{asked}");
        for (nap, least) in naps.iter().zip([500, 1000, 1000, 1000]) {
            assert!(*nap >= Duration::from_millis(least), "{naps:?}");
        }
    }
}

#[test]
fn a_stated_wait_is_honoured_beyond_the_patience_for_an_outage() {
    let minutes = |n: u64| gone_for(n * 60);
    // Here outages are waited for 2 minutes at most, and the whole wait is at most an hour.
    let script = vec![minutes(20), minutes(20), Ok(reply("yes"))];
    assert_eq!(retried(script).0, "yes");
    let (said, asked, naps, _) = retried((0..9).map(|_| minutes(25)).collect());
    assert!(said.starts_with("unavailable: "), "{said}");
    let waited: Duration = naps.iter().sum();
    assert_eq!((asked, waited.as_secs()), (4, 3600), "{naps:?}");
}

#[test]
fn a_stated_wait_is_a_day_at_most_whatever_the_patience_is() {
    let (role_agents, calls) = nothing_recorded();
    let day = Duration::from_hours(24);
    let patience = RetryPolicy::UNATTENDED_RUN.with_outage(day * 30);
    for trouble in [too_many(Some(40 * 86_400)), gone_for(40 * 86_400)] {
        let (script, naps) = (Script::of([trouble, Ok(reply("yes"))]), Naps::default());
        let layer =
            RetryLayer::new(&script, &naps, patience, ServerBook::new(&role_agents, &calls), 7);
        assert!(layer.answer_question(&question("k", "p"), &DeadlineMeter::default()).is_ok());
        let waited = (&naps).now();
        assert!(waited >= day && waited <= day + Duration::from_secs(1), "{waited:?}");
    }
}

#[test]
fn what_a_server_answered_one_role_counts_for_the_other_and_after_a_resume() {
    let line = |role: AgentRole| role_agents().settings_for(role).cloned();
    let coder = line(AgentRole::Coder).unwrap();
    let role_agents = RoleAgents::new(BTreeMap::from([
        (AgentRole::Coder, coder.clone()),
        (AgentRole::Coordinator, coder.clone()),
        (AgentRole::Ideas, {
            let AgentKind::Model(model) = coder.line.clone() else { panic!("a model") };
            let base_url = "http://127.0.0.1:8/v1".to_owned();
            AgentSettings { line: AgentKind::Model(ModelAgent { base_url, ..model }), ..coder }
        }),
    ]));
    let folder = tempfile::tempdir().unwrap();
    let calls = CallStore::Run(RunDir::new(folder.path()));
    let of = |role: AgentRole, key: &str| AgentQuestion { role, ..question(key, "p") };
    // An answer to the coder makes an outage of 60 s bearable for roles of the same server.
    let ask = |lines: Vec<Result<AgentReply, TryError>>, questions: [AgentQuestion; 2]| {
        let (script, naps) = (Script::of(lines), Naps::default());
        let layer =
            RetryLayer::new(&script, &naps, PATIENCE, ServerBook::new(&role_agents, &calls), 7);
        questions
            .map(|question| layer.answer_question(&question, &DeadlineMeter::default()).is_ok())
    };
    let outage = |n: usize| (0..n).map(|_| gone(ServerFault::Overloaded));
    let first = || std::iter::once(Ok(reply("first")));
    let script = || first().chain(outage(20)).chain(first()).collect::<Vec<_>>();
    assert_eq!(
        ask(script(), [of(AgentRole::Coder, "a"), of(AgentRole::Coordinator, "b")]),
        [true, true]
    );
    assert_eq!(
        ask(script(), [of(AgentRole::Coder, "a"), of(AgentRole::Ideas, "b")]),
        [true, false]
    );
    // Without a record, another process of the run does not know of the answer; with one it does.
    let script = || outage(20).chain([Ok(reply("one")), Ok(reply("two"))]).collect::<Vec<_>>();
    let twice = || [of(AgentRole::Coordinator, "b"), of(AgentRole::Coder, "c")];
    assert!(!ask(script(), twice())[0]);
    let settings = role_agents.settings_for(AgentRole::Coder).unwrap();
    let kept = calls.keep_reply(
        &of(AgentRole::Coder, "a"),
        settings,
        &reply("first"),
        Timestamp::UNIX_EPOCH,
    );
    kept.unwrap();
    assert_eq!(ask(script(), twice()), [true, true]);
}

#[test]
fn an_outage_at_the_first_question_of_a_run_does_not_end_it() {
    let (role_agents, calls) = nothing_recorded();
    let ask = |patience: RetryPolicy, failures: usize| {
        let lines = (0..failures).map(|_| gone(ServerFault::Overloaded)).chain([Ok(reply("yes"))]);
        let (script, naps) = (Script::of(lines), Naps::default());
        let layer =
            RetryLayer::new(&script, &naps, patience, ServerBook::new(&role_agents, &calls), 7);
        let answer = layer.answer_question(&question("k", "p"), &DeadlineMeter::default()).is_ok();
        (answer, (&naps).now().as_secs())
    };
    let (answer, waited) = ask(RetryPolicy::UNATTENDED_RUN, 20);
    assert!(answer && waited > 60, "{waited}");
    let (answer, waited) = ask(RetryPolicy::UNATTENDED_RUN, 500);
    assert!(!answer && (1800..1860).contains(&waited), "{waited}");
    let (answer, waited) =
        ask(RetryPolicy::UNATTENDED_RUN.with_outage(Duration::from_mins(3)), 500);
    assert!(!answer && (180..240).contains(&waited), "{waited}");
    let (answer, waited) = ask(RetryPolicy::ATTENDED_COMMAND, 500);
    assert!(!answer && waited < 5, "{waited}");
}

#[test]
fn a_server_that_is_given_up_is_given_up_for_all() {
    let (role_agents, calls) = nothing_recorded();
    let script = Script::of((0..5).map(|_| gone(ServerFault::Unreachable)).collect::<Vec<_>>());
    let naps = Naps::default();
    let layer = RetryLayer::new(&script, &naps, PATIENCE, ServerBook::new(&role_agents, &calls), 7);
    for (key, asked) in [("a", 4), ("b", 5)] {
        assert!(layer.answer_question(&question(key, "p"), &DeadlineMeter::default()).is_err());
        assert_eq!(script.asked(), asked);
    }
}

#[test]
fn a_rate_limit_is_waited_for_and_does_not_fail_the_question() {
    let mut script: Vec<_> = (0..20).map(|_| too_many(Some(60))).collect();
    script.push(Ok(reply("yes")));
    let (said, asked, naps, _) = retried(script);
    assert_eq!((said.as_str(), asked), ("yes", 21));
    assert!(naps.iter().all(|nap| *nap >= Duration::from_mins(1)), "{naps:?}");
    // An absurd value is capped, and after it there is no more waiting.
    let (said, asked, naps, _) = retried(vec![too_many(Some(u64::MAX / 2)), too_many(Some(1))]);
    assert!(said.starts_with("unavailable: the agent still takes no questions after 36"), "{said}");
    assert_eq!((asked, naps.len()), (2, 1));
    assert!(naps[0] <= PATIENCE.wait + Duration::from_secs(1), "{naps:?}");
}

#[test]
fn what_is_permanent_is_not_tried_again() {
    let unavailable = || Err(PortError::new("no key").into());
    for trouble in [
        Err(TryError::unanswered("too long")),
        Err(TryError::Unreadable { why: "?".into(), raw: vec![255], spent: TryCost::Nothing }),
        Err(TryError::Forgotten("who".into())),
        Err(TryError::OverBudget { budget: BudgetKind::Cost, why: "much".into() }),
        Err(TryError::OutOfTime { why: "late".into(), spent: TryCost::Nothing }),
        Err(TryError::Interrupted),
        unavailable(),
    ] {
        let (said, asked, naps, paid) = retried(vec![trouble]);
        assert_eq!((asked, naps.len(), paid), (1, 0, 0), "{said}");
    }
}

/// Layer that takes scripted seconds for each try, and answers the last one.
struct Slow {
    seconds: Mutex<VecDeque<u64>>,
    left: Mutex<Vec<Option<Duration>>>,
}

impl AgentLayer for &Slow {
    fn answer_question(
        &self,
        _: &AgentQuestion,
        meter: &dyn TryMeter,
    ) -> Result<AgentReply, TryError> {
        self.left.lock().unwrap().push(meter.remaining_time());
        let mut seconds = self.seconds.lock().unwrap();
        meter.record_try_time(Duration::from_secs(seconds.pop_front().unwrap()));
        if seconds.is_empty() { Ok(reply("yes")) } else { passing(None, TryCost::Nothing) }
    }
}

#[test]
fn an_answer_took_what_its_tries_took_and_none_has_more_than_is_left() {
    let slow = Slow { seconds: Mutex::new([3, 4, 5].into()), left: Mutex::default() };
    let naps = Naps::default();
    let folder = tempfile::tempdir().unwrap();
    let (calls, role_agents, watcher) =
        (CallStore::Folder(folder.path().join("c")), role_agents(), Watcher::default());
    let layer = RetryLayer::new(&slow, &naps, PATIENCE, ServerBook::new(&role_agents, &calls), 7);
    let layer =
        RecordLayer { inner: layer, calls: &calls, role_agents: &role_agents, observer: &watcher };
    let within = DeadlineMeter { tries: Some(Duration::from_secs(10)), end: None };
    let first = layer.answer_question(&question("k", "p"), &within).unwrap();
    assert_eq!(first.millis, Some(12_000), "pauses do not count");
    let left = slow.left.lock().unwrap().clone();
    assert_eq!(left, [10, 7, 3].map(|seconds| Some(Duration::from_secs(seconds))));
    let bill = first.bill();
    assert_eq!((bill.calls, bill.calls_without_price, bill.usage.total_tokens()), (1, 1, 15));
    // An answer from disk keeps its time, even if less time is left.
    let again = layer
        .answer_question(
            &question("k", "p"),
            &DeadlineMeter { tries: Some(Duration::ZERO), end: None },
        )
        .unwrap();
    assert_eq!(again, first);
}

#[test]
fn a_question_that_waits_is_not_asked_after_the_end() {
    let (role_agents, calls) = nothing_recorded();
    let servers = || ServerBook::new(&role_agents, &calls);
    for trouble in [too_many(Some(60)), passing(Some(60), TryCost::Nothing)] {
        let (script, naps) = (Script::of(vec![trouble, Ok(reply("too late"))]), Naps::default());
        let layer = RetryLayer::new(&script, &naps, PATIENCE, servers(), 7);
        let end = Instant::now().checked_add(Duration::from_secs(20));
        let answer =
            layer.answer_question(&question("k", "p"), &DeadlineMeter { tries: None, end });
        let spent = TryCost::Nothing;
        assert!(
            matches!(answer, Err(TryError::OutOfTime { spent: found, .. }) if found == spent),
            "{answer:?}"
        );
        let [nap] = naps.0.lock().unwrap()[..] else { panic!("one nap") };
        assert!((15..=20).contains(&nap.as_secs()), "until the end, not longer: {nap:?}");
    }
    // If the pause ends in time, the question is asked again.
    let (script, naps) = (Script::of(vec![too_many(Some(5)), Ok(reply("yes"))]), Naps::default());
    let layer = RetryLayer::new(&script, &naps, PATIENCE, servers(), 7);
    let end = Instant::now().checked_add(Duration::from_mins(1));
    assert_eq!(
        layer
            .answer_question(&question("k", "p"), &DeadlineMeter { tries: None, end })
            .unwrap()
            .text,
        "yes"
    );
}
