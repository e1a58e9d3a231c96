//! Describes the tree against its control group: which did better with equally many evals, and the
//! costs. Compares nothing itself.

use crate::figure::format_change;
use crate::markdown::{MarkdownTable, MarkdownText};
use crate::words::{format_cost, format_count};
use treebeam_core::bill::AgentBill;
use treebeam_core::facts::Facts;
use treebeam_core::id::CodePlace;
use treebeam_score::versus::{
    ComparedSides, ControlComparison, LeadingSide, SideResult, SideSpend, compare_with_control,
};

/// Limits of the comparison.
const COMPARISON_LIMITS: &str = "The same spend means what both share and the same number of evals of each side's own, in the order of their ids, failed ones included. Only \
    what the other side does not share and what passes the gate's checks counts as best; nothing is decided by the checks for \
    the control group. One run is one draw: another may end the other way.";

/// Describes in one sentence which side did better with the same number of evals; `None` without a
/// control group.
#[must_use]
pub fn control_verdict(facts: &Facts) -> Option<String> {
    Some(match compare_with_control(facts)? {
        ControlComparison::NothingToCompare { control } => describe_nothing_to_compare(&control),
        ControlComparison::Compared(compared) => describe_compared(&compared),
    })
}

fn describe_nothing_to_compare(control: &SideSpend) -> String {
    let why = match control.evals {
        0 => "no eval of the control group has ended".to_owned(),
        evals => {
            let evals = format_count(evals, "eval");
            format!(
                "the control group has {evals}, and the tree none that is not tried on the root"
            )
        }
    };
    format!("nothing to compare between the tree and the root alone: {why}")
}

fn describe_compared(compared: &ComparedSides) -> String {
    let ComparedSides { ahead, tree, root, .. } = compared;
    let each = format_count(tree.spent.evals, "eval");
    let (tree, root) = (format_side_best(tree), format_side_best(root));
    match ahead {
        LeadingSide::Tree => {
            format!("with {each} each, the tree beat the root alone: {tree} against {root}")
        }
        LeadingSide::Control => {
            format!("with {each} each, the root alone beat the tree: {root} against {tree}")
        }
        LeadingSide::Neither if tree == root => {
            format!("with {each} each, the tree and the root alone came to the same: {tree}")
        }
        LeadingSide::Neither => {
            format!(
                "with {each} each, the tree and the root alone came to the same: {tree} and {root}"
            )
        }
    }
}

/// Formats the best of a side as `rank score +0.5 (e0012)`.
fn format_side_best(side: &SideResult) -> String {
    let score = format_change(Some(side.rank_score()));
    match side.best {
        Some(best) => format!("rank score {score} ({})", CodePlace::Candidate(best.eval)),
        None => format!("rank score {score} (the root itself)"),
    }
}

/// Describes the costs of each side with the same number of evals; `None` if nothing is compared.
#[must_use]
pub fn control_spending(facts: &Facts) -> Option<String> {
    let ControlComparison::Compared(compared) = compare_with_control(facts)? else { return None };
    let (tree, root) = (compared.tree.spent.bills.total(), compared.root.spent.bills.total());
    Some(describe_spending(&tree, &root))
}

fn describe_spending(tree: &AgentBill, root: &AgentBill) -> String {
    if tree.calls + root.calls == 0 {
        return "the answers took nothing that was counted".to_owned();
    }
    let of = |bill: &AgentBill| {
        format!("{}, {}", format_count(bill.usage.total_tokens(), "token"), format_cost(bill))
    };
    let times = spending_ratio(tree, root).map_or_else(String::new, |times| format!(": {times}"));
    format!("the tree's answers took {}; the root's took {}{times}", of(tree), of(root))
}

/// Formats the ratio of the two sides' costs, by price if known, else by tokens.
fn spending_ratio(tree: &AgentBill, root: &AgentBill) -> Option<String> {
    let known = |bill: &AgentBill| bill.known_cost().filter(|_| bill.calls_without_price == 0);
    let dollars = || Some((known(tree)?.to_dollars(), known(root)?.to_dollars(), "the cost"));
    #[expect(clippy::cast_precision_loss, reason = "shown to people")]
    let tokens =
        || (tree.usage.total_tokens() as f64, root.usage.total_tokens() as f64, "the tokens");
    let paid = dollars().filter(|(tree, root, _)| *tree > 0.0 && *root > 0.0);
    let (tree, root, what) = paid.unwrap_or_else(tokens);
    let times = tree / root;
    (times.is_finite() && times > 0.0).then(|| format!("{times:.2} times {what}"))
}

/// Renders the section of the summary on the control group.
pub(crate) fn control_section(facts: &Facts) -> Option<String> {
    let control = facts.control_policy()?;
    let head = "## Tree or root alone";
    let verdict = capitalise_first(&control_verdict(facts)?);
    let Some(ControlComparison::Compared(compared)) = compare_with_control(facts) else {
        return Some(format!("{head}\n\n{verdict}."));
    };
    let mut table = MarkdownTable::new([
        "evals",
        "number",
        "best of its own",
        "rank score",
        "calls",
        "tokens",
        "cost",
    ]);
    table.add_row(side_row("tree, first ones", &compared.tree));
    table.add_row(side_row("root alone, first ones", &compared.root));
    table.add_row(side_row("tree, all", &compared.whole_tree));
    table.add_row(side_row("root alone, all", &compared.whole_root));
    let ComparedSides { shared, tree, root, control: own, .. } = &*compared;
    let took =
        capitalise_first(&describe_spending(&tree.spent.bills.total(), &root.spent.bills.total()));
    let begin = format!(
        "Control `{control}`: {} of {} went to ideas that were tried on the root alone. Both sides begin with what the tree \
         tried on the root ({}); from there the tree went on from its nodes, and the control group went on trying on the \
         root, told of nothing else.",
        format_count(own.evals, "eval"),
        facts.evals.len(),
        format_count(*shared, "eval"),
    );
    Some(format!("{head}\n\n**{verdict}.** {took}.\n\n{table}\n{begin} {COMPARISON_LIMITS}"))
}

fn side_row(name: &str, side: &SideResult) -> [MarkdownText; 7] {
    let bill = side.spent.bills.total();
    let best = side.best.map(|best| CodePlace::Candidate(best.eval).to_string());
    [
        MarkdownText::from_text(name),
        MarkdownText::from_text(&side.spent.evals.to_string()),
        MarkdownText::from_text(best.as_deref().unwrap_or("the root")),
        MarkdownText::from_text(&format_change(Some(side.rank_score()))),
        MarkdownText::from_text(&bill.calls.to_string()),
        MarkdownText::from_text(&bill.usage.total_tokens().to_string()),
        MarkdownText::from_text(&format_cost(&bill)),
    ]
}

fn capitalise_first(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    first + chars.as_str()
}
