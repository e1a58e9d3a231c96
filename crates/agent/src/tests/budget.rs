//! Tests of the budget: refusals, the record on disk, and that crashes cannot overspend it.

use super::*;
use crate::budget_layer::{Budget, BudgetLayer};
use crate::call_store::CallAmount;
use crate::price::ModelPrices;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng as _;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::AtomicU64;
use treebeam_core::event::BudgetKind;
use treebeam_run::port::Cost;

/// The most tokens that one question of three bytes can take.
const WORST: u64 = 3 + 64 + 100;

fn tokens(most: u64) -> Budget {
    Budget { tokens: Some(most), cost: None }
}

/// Parts of a budget layer whose calls are in one folder.
struct Setting {
    calls: CallStore,
    role_agents: RoleAgents,
    prices: ModelPrices,
    watcher: Watcher,
}

impl Setting {
    fn new(folder: &Path) -> Self {
        let calls = CallStore::Folder(folder.to_owned());
        Self {
            calls,
            role_agents: role_agents(),
            prices: ModelPrices::default(),
            watcher: Watcher::default(),
        }
    }

    fn layer<A: AgentLayer>(
        &self,
        inner: A,
        budget: Budget,
    ) -> RecordLayer<'_, BudgetLayer<'_, A>> {
        let Self { calls, role_agents, prices, watcher } = self;
        let inner = BudgetLayer::new(inner, budget, calls, (role_agents, prices), watcher).unwrap();
        RecordLayer { inner, calls, role_agents, observer: watcher }
    }

    fn spent(&self) -> u64 {
        self.calls.total_spent().unwrap().tokens
    }
}

#[test]
fn real_usage_counts_and_the_next_start_knows_it() {
    let folder = tempfile::tempdir().unwrap();
    let setting = Setting::new(folder.path());
    let script = Script::of([Ok(reply("a")), Ok(reply("b"))]);
    let answer = setting
        .layer(&script, tokens(400))
        .answer_question(&question("a", "abc"), &DeadlineMeter::default())
        .unwrap();
    // gpt-4o: 10 tokens at 2.5, 5 at 10 dollars per million.
    assert_eq!(answer.cost, Some(Cost::from_dollars(75e-6)));
    assert_eq!(
        setting.calls.total_spent().unwrap(),
        CallAmount { tokens: 15, cost: Cost::from_dollars(75e-6) }
    );
    assert_eq!(files(folder.path()), ["a.json"]);
    // 15 are spent: one more of at most 167 fits into 182, and not into 181.
    let refused = setting
        .layer(&script, tokens(15 + WORST - 1))
        .answer_question(&question("b", "abc"), &DeadlineMeter::default());
    assert!(
        matches!(refused, Err(TryError::OverBudget { budget: BudgetKind::Tokens, .. })),
        "{refused:?}"
    );
    assert_eq!((files(folder.path()).len(), script.asked()), (1, 1));
    setting
        .layer(&script, tokens(15 + WORST))
        .answer_question(&question("b", "abc"), &DeadlineMeter::default())
        .unwrap();
    let dear = Budget { cost: Some(Cost::from_dollars(1e-3)), tokens: None };
    let refused = setting
        .layer(&script, dear)
        .answer_question(&question("c", "abc"), &DeadlineMeter::default());
    assert!(
        matches!(&refused, Err(TryError::OverBudget { budget: BudgetKind::Cost, why }) if why.contains("`max_cost_usd`")),
        "{refused:?}"
    );
    // A stored answer costs nothing more.
    setting
        .layer(&script, tokens(1))
        .answer_question(&question("a", "abc"), &DeadlineMeter::default())
        .unwrap();
}

#[test]
fn what_a_failure_has_cost_counts() {
    let check = |trouble: TryError, expect: u64| {
        let folder = tempfile::tempdir().unwrap();
        let setting = Setting::new(folder.path());
        let said = format!("{trouble:?}");
        let script = Script::of([Err(trouble), Ok(reply("a"))]);
        let layer = setting.layer(&script, tokens(10_000));
        assert!(layer.answer_question(&question("a", "abc"), &DeadlineMeter::default()).is_err());
        assert_eq!(setting.spent(), expect, "{said}");
        layer.answer_question(&question("a", "abc"), &DeadlineMeter::default()).unwrap();
        assert_eq!(setting.spent(), expect + 15, "{said}");
    };
    let usage = TokenUsage { input: 30, cached: 0, output: 4 };
    check(TryError::unanswered("no"), 0);
    check(TryError::Interrupted, 0);
    check(TryError::Unanswered { why: "cut".into(), spent: TryCost::Known(usage) }, 34);
    check(TryError::Unanswered { why: "cut".into(), spent: TryCost::Unknown }, WORST);
    check(TryError::broken_off("half"), WORST);
}

#[test]
fn each_further_try_that_may_be_paid_for_is_reserved_too() {
    let folder = tempfile::tempdir().unwrap();
    let setting = Setting::new(folder.path());
    let naps = Naps::default();
    let lines =
        || [passing(None, TryCost::Unknown), passing(None, TryCost::Unknown), Ok(reply("a"))];
    let script = Script::of(lines());
    let (role_agents, calls) = nothing_recorded();
    let servers = || ServerBook::new(&role_agents, &calls);
    let retrying = RetryLayer::new(&script, &naps, PATIENCE, servers(), 7);
    setting
        .layer(retrying, tokens(3 * WORST))
        .answer_question(&question("a", "abc"), &DeadlineMeter::default())
        .unwrap();
    assert_eq!(setting.spent(), 2 * WORST + 15);
    let script = Script::of(lines());
    let retrying = RetryLayer::new(&script, &naps, PATIENCE, servers(), 7);
    let layer = setting.layer(retrying, tokens(2 * WORST + 15 + 2 * WORST));
    let refused = layer.answer_question(&question("b", "abc"), &DeadlineMeter::default());
    assert!(
        matches!(refused, Err(TryError::OverBudget { budget: BudgetKind::Tokens, .. })),
        "{refused:?}"
    );
    assert_eq!((script.asked(), setting.spent()), (2, 4 * WORST + 15));
}

/// Layer that calls a function while it is asked.
struct Meanwhile<F>(F);

impl<F: Fn() + Sync> AgentLayer for Meanwhile<F> {
    fn answer_question(&self, _: &AgentQuestion, _: &dyn TryMeter) -> Result<AgentReply, TryError> {
        (self.0)();
        Ok(reply("a"))
    }
}

#[test]
fn two_processes_share_the_budget_of_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let setting = Setting::new(folder.path());
    let script = Script::of([Ok(reply("c"))]);
    let budget = tokens(2 * WORST - 1);
    let second = setting.layer(&script, budget);
    let refused = Mutex::new(None);
    let ask = || {
        *refused.lock().unwrap() =
            Some(second.answer_question(&question("b", "abc"), &DeadlineMeter::default()));
    };
    let first = setting.layer(Meanwhile(ask), budget);
    first.answer_question(&question("a", "abc"), &DeadlineMeter::default()).unwrap();
    let refused = refused.into_inner().unwrap().unwrap();
    assert!(matches!(refused, Err(TryError::OverBudget { .. })), "what is under way counts");
    second.answer_question(&question("c", "abc"), &DeadlineMeter::default()).unwrap();
    assert_eq!((script.asked(), setting.spent()), (1, 30), "what it took is less");
}

#[test]
fn what_a_call_took_is_read_from_its_beginning() {
    let folder = tempfile::tempdir().unwrap();
    let setting = Setting::new(folder.path());
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    let amount = r#""amount":{"cost":5,"tokens":7}"#;
    write("a.json", &format!("{{{amount},\"reply\":\"{}", "x".repeat(9000)));
    write("b.json", &format!("{{\"a\":\"{}\",{amount}}}", "x".repeat(9000)));
    write("c.json", "{\"amount\":");
    assert_eq!(setting.spent(), 14, "cut off, in another order, and damaged");
    for name in ["a.pending", "e.pending", "e.lost-1", "a.lost-2"] {
        write(name, &format!("{{{amount}}}"));
    }
    let unanswered = setting.calls.spent_unanswered().unwrap().tokens;
    assert_eq!((setting.spent(), unanswered), (35, 21), "one reservation was for its answer");
    for name in ["a.pending", "e.pending", "e.lost-1", "a.lost-2"] {
        fs::remove_file(folder.path().join(name)).unwrap();
    }
    let script = Script::of([Ok(reply("d"))]);
    setting
        .layer(&script, tokens(9000))
        .answer_question(&question("d", "abc"), &DeadlineMeter::default())
        .unwrap();
    let kept = fs::read_to_string(folder.path().join("d.json")).unwrap();
    assert!(kept.starts_with(r#"{"amount":{"cost":75000000,"tokens":15},"#), "{kept}");
}

/// Provider that charges, and then answers, fails or never returns.
struct Bank<'a> {
    charged: &'a AtomicU64,
    luck: Mutex<Pcg64Mcg>,
}

impl AgentLayer for Bank<'_> {
    fn answer_question(&self, _: &AgentQuestion, _: &dyn TryMeter) -> Result<AgentReply, TryError> {
        let (fate, output) = {
            let mut luck = self.luck.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            (luck.next_u32() % 8, u64::from(luck.next_u32() % 101))
        };
        let usage = TokenUsage { input: 20, cached: 0, output };
        let charge = || self.charged.fetch_add(usage.total_tokens(), Ordering::SeqCst);
        match fate {
            0 => power_cut(),
            1 => {
                charge();
                power_cut()
            }
            2 => Err(TryError::unanswered("no")),
            3 => {
                charge();
                Err(TryError::broken_off("half"))
            }
            4 => {
                charge();
                Err(TryError::Unanswered { why: "cut".into(), spent: TryCost::Known(usage) })
            }
            _ => {
                charge();
                Ok(AgentReply { usage: Some(usage), ..reply("yes") })
            }
        }
    }
}

/// Ends a thread without a message.
fn power_cut() -> ! {
    resume_unwind(Box::new("the power is gone"))
}

/// Simulates a run of several starts, each ended by the first crash, with three questions at once.
fn simulated(seed: u64) -> (u64, u64) {
    let memory = Path::new("/dev/shm");
    let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    let folder = tempfile::tempdir_in(parent).unwrap();
    let (charged, budget) = (AtomicU64::new(0), 300 + seed % 1500);
    for start in 0..6 {
        let setting = Setting::new(folder.path());
        let luck = Mutex::new(Pcg64Mcg::new(u128::from(seed * 31 + start)));
        let layer = setting.layer(Bank { charged: &charged, luck }, tokens(budget));
        let crashed = AtomicBool::new(false);
        thread::scope(|scope| {
            for lane in 0..3 {
                let (layer, crashed) = (&layer, &crashed);
                scope.spawn(move || {
                    for n in 0..4 {
                        if crashed.load(Ordering::SeqCst) {
                            return;
                        }
                        let question = question(&format!("q-{lane}-{n}"), "abc");
                        let asked = AssertUnwindSafe(|| {
                            drop(layer.answer_question(&question, &DeadlineMeter::default()));
                        });
                        if catch_unwind(asked).is_err() {
                            crashed.store(true, Ordering::SeqCst);
                        }
                    }
                });
            }
        });
        assert!(
            setting.spent() >= charged.load(Ordering::SeqCst),
            "seed {seed}: the ledger knows less than the bank"
        );
    }
    (charged.into_inner(), budget)
}

#[test]
fn crashes_cannot_overspend() {
    let mut reached = 0;
    for seed in 0..1000 {
        let (charged, budget) = simulated(seed);
        // Thanks to the reservation the budget itself is the bound, not three calls more.
        assert!(charged <= budget, "seed {seed}: {charged} of {budget}");
        reached += u32::from(charged + 3 * WORST > budget);
    }
    assert!(reached > 300, "only {reached} runs came near their budget");
}
