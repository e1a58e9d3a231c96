//! Parses the reply of a reviewer: `VERDICT: APPROVE` or `REJECT`, `ISSUES:`, `NOTES:`. Pure and
//! bounded. A verdict that cannot be parsed is a rejection.

use crate::reply::truncate_text;

/// Largest list of issues that goes back to a coder, in bytes.
const MAX_ISSUES_BYTES: usize = 16 << 10;

/// The verdict of a review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReviewVerdict {
    /// The change is accepted.
    Approved,
    /// The change is refused, for these issues.
    Rejected {
        /// Issues as the reviewer wrote them.
        issues: String,
    },
}

/// The parts of a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReviewPart {
    Verdict,
    Issues,
    Notes,
}

/// Parses a review.
pub(crate) fn parse_review(reply: &str) -> ReviewVerdict {
    let mut verdicts: Vec<&str> = Vec::new();
    let (mut issues, mut part) = (String::new(), None);
    for line in reply.lines() {
        let (begun, rest) = match parse_key(line) {
            Some((begun, rest)) => (Some(begun), rest),
            None => (None, line),
        };
        part = begun.or(part);
        match part {
            Some(ReviewPart::Verdict) if begun.is_some() => verdicts.push(rest),
            Some(ReviewPart::Issues) if issues.len() < MAX_ISSUES_BYTES => {
                issues.push_str(rest.trim_end());
                issues.push('\n');
            }
            Some(_) | None => {}
        }
    }
    judge_verdicts(&verdicts, truncate_text(issues.trim(), MAX_ISSUES_BYTES))
}

/// Parses a line that begins a part; Markdown around the key is ignored.
fn parse_key(line: &str) -> Option<(ReviewPart, &str)> {
    let bare = line.trim_start_matches(['#', '*', '_', ' ', '\t', '-', '>']);
    let (key, rest) = bare.split_once(':')?;
    let part = match key.trim_matches(['*', '_', ' ']).to_ascii_uppercase().as_str() {
        "VERDICT" => ReviewPart::Verdict,
        "ISSUES" => ReviewPart::Issues,
        "NOTES" => ReviewPart::Notes,
        _ => return None,
    };
    Some((part, rest.trim_start_matches(['*', '_', ' '])))
}

fn judge_verdicts(verdicts: &[&str], issues: &str) -> ReviewVerdict {
    let words: Vec<Option<bool>> = verdicts.iter().map(|text| parse_verdict(text)).collect();
    let rejected = |issues: &str| ReviewVerdict::Rejected { issues: issues.to_owned() };
    match words.as_slice() {
        [] => rejected("the review has no line `VERDICT: APPROVE` or `VERDICT: REJECT`"),
        [Some(first), rest @ ..] if rest.iter().all(|word| *word == Some(*first)) => match first {
            true => ReviewVerdict::Approved,
            false if issues.is_empty() => rejected("the reviewer rejects it and names no issue"),
            false => rejected(issues),
        },
        _ => rejected(&format!(
            "the verdict cannot be read: {:?} is neither `APPROVE` nor `REJECT`",
            truncate_text(&verdicts.join("; "), 200)
        )),
    }
}

/// Returns true for an approval, false for a rejection, `None` for anything else.
fn parse_verdict(text: &str) -> Option<bool> {
    let word: String = text.chars().take_while(char::is_ascii_alphabetic).collect();
    let bare = text.get(word.len()..)?.trim_matches(['*', '_', '`', '.', '!', ' ']);
    match (word.to_ascii_uppercase().as_str(), bare) {
        ("APPROVE" | "APPROVED", "") => Some(true),
        ("REJECT" | "REJECTED", "") => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_reviewers_say() {
        let check = |reply: &str, expect: &str| {
            let said = match parse_review(reply) {
                ReviewVerdict::Approved => "approved".to_owned(),
                ReviewVerdict::Rejected { issues } => issues,
            };
            assert_eq!(said, expect, "{reply:?}");
        };
        check("VERDICT: APPROVE\nISSUES:\n- none\nNOTES: fine", "approved");
        check("Let me see.\n\n## **Verdict:** Approved.\n", "approved");
        check("**VERDICT**: APPROVE", "approved");
        check("VERDICT: REJECT\nISSUES:\n- a\n- b: c\nNOTES:\nno", "- a\n- b: c");
        check("ISSUES: a\nVERDICT: rejected\n", "a");
        check("VERDICT: REJECT", "the reviewer rejects it and names no issue");
        let none = "the review has no line `VERDICT: APPROVE` or `VERDICT: REJECT`";
        check("Looks good to me!", none);
        check("", none);
        check("I APPROVE this.", none);
        let unread = |said: &str| {
            format!("the verdict cannot be read: {said:?} is neither `APPROVE` nor `REJECT`")
        };
        check("VERDICT: APPROVE|REJECT", &unread("APPROVE|REJECT"));
        check("VERDICT: APPROVE with reservations", &unread("APPROVE with reservations"));
        check("VERDICT: not APPROVE", &unread("not APPROVE"));
        check("VERDICT: APPROVE\nVERDICT: REJECT\nISSUES: x", &unread("APPROVE; REJECT"));
        check("VERDICT:", &unread(""));
        check("VERDICT: REJECT\nVERDICT: REJECT\nISSUES: x", "x");
        let long = format!("VERDICT: REJECT\nISSUES: {}", "é\n".repeat(MAX_ISSUES_BYTES));
        assert!(
            matches!(parse_review(&long), ReviewVerdict::Rejected { issues } if issues.len() <= MAX_ISSUES_BYTES)
        );
    }
}
