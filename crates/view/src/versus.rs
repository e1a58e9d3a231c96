//! The tree against its control group in words: who did better with the same number of evals, what each side took, and what
//! that does not say. Compares nothing itself.

use crate::figure::change;
use crate::markdown::{Md, Table};
use crate::words::{cost, count};
use treebeam_core::bill::Bill;
use treebeam_core::facts::Facts;
use treebeam_core::id::Place;
use treebeam_core::versus::{Ahead, Compared, Side, Spent, Versus, versus};

/// What the comparison does not say.
const LIMITS: &str = "The same spend means what both share and the same number of evals of each side's own, in the order of their ids, failed ones included. Only \
    what passes the gate's checks counts as best, on both sides; nothing is decided by them for the control group. One run \
    is one draw: another may end the other way.";

/// Who did better with the same number of evals, in one sentence; nothing for a run without a control group.
#[must_use]
pub fn verdict(facts: &Facts) -> Option<String> {
    Some(match versus(facts)? {
        Versus::Nothing { control } => nothing(&control),
        Versus::Compared(compared) => compared_words(&compared),
    })
}

fn nothing(control: &Spent) -> String {
    let why = match control.evals {
        0 => "no eval of the control group has ended".to_owned(),
        evals => {
            let evals = count(evals, "eval");
            format!(
                "the control group has {evals}, and the tree none that is not tried on the root"
            )
        }
    };
    format!("nothing to compare between the tree and the root alone: {why}")
}

fn compared_words(compared: &Compared) -> String {
    let Compared { ahead, tree, root, .. } = compared;
    let each = count(tree.spent.evals, "eval");
    let (tree, root) = (best(tree), best(root));
    match ahead {
        Ahead::Tree => {
            format!("with {each} each, the tree beat the root alone: {tree} against {root}")
        }
        Ahead::Control => {
            format!("with {each} each, the root alone beat the tree: {root} against {tree}")
        }
        Ahead::Neither if tree == root => {
            format!("with {each} each, the tree and the root alone came to the same: {tree}")
        }
        Ahead::Neither => {
            format!(
                "with {each} each, the tree and the root alone came to the same: {tree} and {root}"
            )
        }
    }
}

/// `rank score +0.5 (e0012)`.
fn best(side: &Side) -> String {
    let score = change(Some(side.rank_score()));
    match side.best {
        Some(best) => format!("rank score {score} ({})", Place::Candidate(best.eval)),
        None => format!("rank score {score} (the root itself)"),
    }
}

/// What each side took with the same number of evals, and whether that is the same; nothing where nothing is compared.
#[must_use]
pub fn spending(facts: &Facts) -> Option<String> {
    let Versus::Compared(compared) = versus(facts)? else { return None };
    let (tree, root) = (compared.tree.spent.bills.total(), compared.root.spent.bills.total());
    Some(took(&tree, &root))
}

fn took(tree: &Bill, root: &Bill) -> String {
    if tree.calls + root.calls == 0 {
        return "the answers took nothing that was counted".to_owned();
    }
    let of = |bill: &Bill| format!("{}, {}", count(bill.usage.total(), "token"), cost(bill));
    let times = ratio(tree, root).map_or_else(String::new, |times| format!(": {times}"));
    format!("the tree's answers took {}; the root's took {}{times}", of(tree), of(root))
}

/// How much more one side took than the other, by cost where that is known, else by tokens.
fn ratio(tree: &Bill, root: &Bill) -> Option<String> {
    let known = |bill: &Bill| bill.known_cost().filter(|_| bill.calls_without_price == 0);
    let dollars = || Some((known(tree)?.in_dollars(), known(root)?.in_dollars(), "the cost"));
    #[expect(clippy::cast_precision_loss, reason = "shown to people")]
    let tokens = || (tree.usage.total() as f64, root.usage.total() as f64, "the tokens");
    let paid = dollars().filter(|(tree, root, _)| *tree > 0.0 && *root > 0.0);
    let (tree, root, what) = paid.unwrap_or_else(tokens);
    let times = tree / root;
    (times.is_finite() && times > 0.0).then(|| format!("{times:.2} times {what}"))
}

/// The section of the summary.
pub(crate) fn section(facts: &Facts) -> Option<String> {
    let control = facts.control_group()?;
    let head = "## Tree or root alone";
    let verdict = capital(&verdict(facts)?);
    let Some(Versus::Compared(compared)) = versus(facts) else {
        return Some(format!("{head}\n\n{verdict}."));
    };
    let mut table =
        Table::new(["evals", "number", "best", "rank score", "calls", "tokens", "cost"]);
    table.row(row("tree, first ones", &compared.tree));
    table.row(row("root alone, first ones", &compared.root));
    table.row(row("tree, all", &compared.whole_tree));
    table.row(row("root alone, all", &compared.whole_root));
    let Compared { shared, tree, root, control: own, .. } = &*compared;
    let took = capital(&took(&tree.spent.bills.total(), &root.spent.bills.total()));
    let begin = format!(
        "Control `{control}`: {} of {} went to ideas that were tried on the root alone. Both sides begin with what the tree \
         tried on the root ({}); from there the tree went on from its nodes, and the control group went on trying on the \
         root, told of nothing else.",
        count(own.evals, "eval"),
        facts.evals.len(),
        count(*shared, "eval"),
    );
    Some(format!("{head}\n\n**{verdict}.** {took}.\n\n{table}\n{begin} {LIMITS}"))
}

fn row(name: &str, side: &Side) -> [Md; 7] {
    let bill = side.spent.bills.total();
    let best = side.best.map(|best| Place::Candidate(best.eval).to_string());
    [
        Md::text(name),
        Md::text(&side.spent.evals.to_string()),
        Md::text(best.as_deref().unwrap_or("the root")),
        Md::text(&change(Some(side.rank_score()))),
        Md::text(&bill.calls.to_string()),
        Md::text(&bill.usage.total().to_string()),
        Md::text(&cost(&bill)),
    ]
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    first + chars.as_str()
}
