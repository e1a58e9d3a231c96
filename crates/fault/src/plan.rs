//! The rules of a fault plan: which fault happens at which operation. Rules are separated by `;`,
//! and the first one that matches counts:
//!
//! ```text
//! kill before 17                     the 17th operation that changes something never happens
//! kill after 3 rename manifest.json  death right after the 3rd operation that has both words
//! kill amid 2 journal.jsonl          half of the bytes are written before the program dies
//! fail ENOSPC 23+ write              every write from the 23rd on fails
//! fail EIO 4-6 fsync                 three of them fail, then the disk is well again
//! short 5 write                      half of the bytes are written, and the call says so
//! lose 2 write swept                 right after the operation its file has no name any more
//! ```
//!
//! A rule without words counts operations that change files, except the heartbeat's, which come at
//! no fixed moments. A rule with words counts every operation with all of them in its name.

use std::sync::atomic::{AtomicU64, Ordering};

/// The effect of a rule on an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultEffect {
    /// The program dies.
    Kill(KillMoment),
    /// The operation does not happen and returns this error number.
    Fail(i32),
    /// Half of the operation happens.
    Short,
    /// The operation happens, and its file loses its name right after.
    Lose,
}

/// The moment at which the program dies, relative to an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KillMoment {
    /// Right before the operation.
    Before,
    /// After half of the bytes are written; an operation without bytes does not happen.
    Amid,
    /// Right after the operation.
    After,
}

/// The facts about an operation that rules match.
#[derive(Clone, Copy, Debug)]
pub struct OperationName<'a> {
    /// The call, its paths and the types of its events.
    pub name: &'a str,
    /// True if a rule without words counts the operation.
    pub counts: bool,
}

/// A rule and how often it was met.
#[derive(Debug)]
struct FaultRule {
    fault: FaultEffect,
    first: u64,
    last: u64,
    words: Vec<String>,
    met: AtomicU64,
}

/// All rules of a plan, in order.
#[derive(Debug, Default)]
pub struct FaultPlan(Vec<FaultRule>);

impl FaultPlan {
    /// Parses a plan.
    ///
    /// # Errors
    /// The first rule that cannot be parsed.
    pub fn parse(text: &str) -> Result<Self, String> {
        let rules = text.split(';').map(str::trim).filter(|rule| !rule.is_empty());
        let rule = |text: &str| FaultRule::parse(text).ok_or_else(|| format!("no rule: {text:?}"));
        rules.map(rule).collect::<Result<_, _>>().map(Self)
    }

    /// Returns the fault for this operation, and counts the operation in every rule.
    pub fn fault_for(&self, operation: OperationName<'_>) -> Option<FaultEffect> {
        let mut met = self.0.iter().filter_map(|rule| rule.fault_for(operation));
        let first = met.next();
        met.for_each(drop);
        first
    }
}

impl FaultRule {
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let fault = match words.next()? {
            "kill" => FaultEffect::Kill(match words.next()? {
                "before" => KillMoment::Before,
                "amid" => KillMoment::Amid,
                "after" => KillMoment::After,
                _ => return None,
            }),
            "fail" => FaultEffect::Fail(parse_error_name(words.next()?)?),
            "short" => FaultEffect::Short,
            "lose" => FaultEffect::Lose,
            _ => return None,
        };
        let (first, last) = parse_range(words.next()?)?;
        let words = words.map(str::to_owned).collect();
        Some(Self { fault, first, last, words, met: AtomicU64::new(0) })
    }

    fn fault_for(&self, operation: OperationName<'_>) -> Option<FaultEffect> {
        let counts = match self.words.as_slice() {
            [] => operation.counts,
            words => words.iter().all(|word| operation.name.contains(word.as_str())),
        };
        if !counts {
            return None;
        }
        let met = self.met.fetch_add(1, Ordering::Relaxed) + 1;
        (self.first..=self.last).contains(&met).then_some(self.fault)
    }
}

/// Parses a range of operation numbers: `3`, `3+` or `3-5`.
fn parse_range(text: &str) -> Option<(u64, u64)> {
    if let Some(first) = text.strip_suffix('+') {
        return Some((first.parse().ok()?, u64::MAX));
    }
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Some((first.parse().ok()?, last.parse().ok()?))
}

/// Errors that a plan may name; the numbers are the same on all of Linux's common machines.
const ERROR_NUMBERS: [(&str, i32); 9] = [
    ("EIO", 5),
    ("EACCES", 13),
    ("EBUSY", 16),
    ("EMFILE", 24),
    ("ENFILE", 23),
    ("ENOSPC", 28),
    ("EROFS", 30),
    ("EDQUOT", 122),
    ("ENOLCK", 37),
];

fn parse_error_name(name: &str) -> Option<i32> {
    ERROR_NUMBERS.iter().find(|(known, _)| *known == name).map(|(_, number)| *number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn met(plan: &str, names: &[&str]) -> Vec<Option<FaultEffect>> {
        let plan = FaultPlan::parse(plan).unwrap();
        let counts = |name: &str| !name.contains("read") && !name.contains("heartbeat");
        names
            .iter()
            .map(|name| plan.fault_for(OperationName { name, counts: counts(name) }))
            .collect()
    }

    #[test]
    fn a_rule_counts_what_it_is_about() {
        let kill = Some(FaultEffect::Kill(KillMoment::Before));
        assert_eq!(met("kill before 2", &["a", "read a", "heartbeat", "b"])[3], kill);
        assert_eq!(met("kill before 1 read", &["a", "read a"]), [None, kill]);
        let full = Some(FaultEffect::Fail(28));
        assert_eq!(met("fail ENOSPC 2+", &["a", "b", "c"]), [None, full, full]);
        assert_eq!(met("fail ENOSPC 1-2 x", &["ax", "b", "xc", "x"]), [full, None, full, None]);
        let both = met("short 2 a; fail EIO 2", &["a", "ba"]);
        assert_eq!(both, [None, Some(FaultEffect::Short)]);
        assert_eq!(met("short 1 a b", &["a", "b", "a b"]), [None, None, Some(FaultEffect::Short)]);
    }

    #[test]
    fn what_makes_no_sense_is_said() {
        for text in ["kill", "kill 3", "kill after", "fail EWHAT 3", "short x", "stop 3"] {
            assert_eq!(FaultPlan::parse(text).unwrap_err(), format!("no rule: {text:?}"));
        }
        assert!(FaultPlan::parse("; ;").unwrap().0.is_empty());
    }
}
