//! History of tried changes, parsed from the prompt that a model reads. Skips other ideas.

use super::change::ConstantChange;

/// Heading of the ideas that are in the present code.
const TAKEN_HEADING: &str = "=== IDEAS THAT LED HERE";
/// Heading of the other tried ideas.
const TRIED_HEADING: &str = "=== OTHER IDEAS THAT WERE TRIED";
/// Heading of the ideas that were refused as repeats.
const REPEATED_HEADING: &str = "=== YOU PROPOSED THESE";
/// Text of an idea that a budget cut off: it may be tried again.
const UNFINISHED_NOTE: &str = "not tried to its end";
/// Gate reasons of incomplete results, whose score is not used.
const INVALID_RESULT_REASONS: [&str; 8] = [
    "not_completed",
    "artifacts_damaged",
    "protected",
    "incomplete",
    "malformed",
    "primary_missing",
    "numbers_missing",
    "unrankable",
];

/// Tried changes that a prompt lists.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TunerHistory {
    /// Changes with their outcomes, in order.
    pub trials: Vec<TunerTrial>,
    /// Changes that may not be proposed again here.
    pub repeated: Vec<ConstantChange>,
}

/// Change that was tried.
#[derive(Clone, Debug, PartialEq)]
pub struct TunerTrial {
    /// Change that was made.
    pub change: ConstantChange,
    /// Number of the node that it was tried on: a larger one is newer.
    pub node: u32,
    /// Outcome of the change.
    pub outcome: TrialOutcome,
}

/// Outcome of a change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TrialOutcome {
    /// Gain of the score; positive only if the gate passed.
    Moved(f64),
    /// No metric changed.
    NoEffect,
    /// There was no usable result.
    Failed,
}

impl TunerHistory {
    /// Parses a prompt.
    #[must_use]
    pub fn from_prompt(prompt: &str) -> Self {
        let mut history = Self::default();
        let mut part = "";
        for line in prompt.lines() {
            if line.starts_with("=== ") {
                part = line;
                continue;
            }
            let Some((change, told)) = line.strip_prefix("- ").and_then(ConstantChange::parse)
            else {
                continue;
            };
            if told.ends_with(UNFINISHED_NOTE) {
                continue;
            }
            if part.starts_with(TAKEN_HEADING) || part.starts_with(TRIED_HEADING) {
                let (node, outcome) = parse_outcome(told);
                history.trials.push(TunerTrial { change, node, outcome });
            } else if part.starts_with(REPEATED_HEADING) {
                history.repeated.push(change);
            }
        }
        history
    }
}

/// Parses `: on n0001, mixed against the root, score 0.5 (n0001: 0.25), …; passed: …`.
fn parse_outcome(text: &str) -> (u32, TrialOutcome) {
    let node = number_after(text, "on n").unwrap_or(0);
    let scores = number_after::<f64>(text, "score ")
        .zip(number_after::<f64>(text, &format!("(n{node:04}: ")));
    let why = text.split_once("; ").map_or("", |(_, why)| why);
    let outcome = match scores {
        None => TrialOutcome::Failed,
        Some(_) if INVALID_RESULT_REASONS.iter().any(|broken| why.starts_with(broken)) => {
            TrialOutcome::Failed
        }
        Some(_) if why.starts_with("no_effect") => TrialOutcome::NoEffect,
        Some((score, before)) if why.starts_with("passed") => TrialOutcome::Moved(score - before),
        Some((score, before)) => TrialOutcome::Moved((score - before).min(0.0)),
    };
    (node, outcome)
}

fn number_after<T: std::str::FromStr>(text: &str, words: &str) -> Option<T> {
    let (_, rest) = text.split_once(words)?;
    let end = rest.find([' ', ',', ')', ';', ':']).unwrap_or(rest.len());
    rest.get(..end)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_read_as_they_are_told() {
        let check = |told: &str, node, expected| {
            let prompt = format!(
                "Propose 3\n- set `a` from 1 to 2 in `b.py`\n=== OTHER IDEAS THAT WERE TRIED ON THE WAY ===\n\
                 - Widen the window: on n0000, weak\n- Set `LR` from 0.1 to 0.2 in `t.py`{told}\n\n=== CONSTRAINTS ===\n- set `a` from 1 to 2 in `b.py`\n"
            );
            let history = TunerHistory::from_prompt(&prompt);
            let [trial] = history.trials.as_slice() else { panic!("{history:?}") };
            assert_eq!((trial.node, trial.outcome), (node, expected), "{told}");
            assert_eq!((trial.change.id.name.as_str(), trial.change.to.as_str()), ("LR", "0.2"));
        };
        let figures = ": on n0003, promising against the root, score 0.75 (n0003: 0.5), primary delta 1 (n0003: 0)";
        check(&format!("{figures}; passed: score 0.75"), 3, TrialOutcome::Moved(0.25));
        check(&format!("{figures}; primary_regressed: x"), 3, TrialOutcome::Moved(0.0));
        check(&format!("{figures}; no_effect: x"), 3, TrialOutcome::NoEffect);
        check(&format!("{figures}; incomplete: 3 of 5"), 3, TrialOutcome::Failed);
        check(": on n12345, failed: sweep: exit 1", 12345, TrialOutcome::Failed);
        check(": under way", 0, TrialOutcome::Failed);
        check("", 0, TrialOutcome::Failed);
        let cut = "=== OTHER IDEAS THAT WERE TRIED ON THE WAY ===\n- Set `a` from 1 to 2 in `b.py`: on n0000, not tried to its end\n";
        assert!(TunerHistory::from_prompt(cut).trials.is_empty(), "it may be tried yet");
        let prompt = "=== YOU PROPOSED THESE, BUT THEY WERE TRIED BEFORE ===\n- Set `a` from 1 to 2 in `b.py`\n";
        assert_eq!(TunerHistory::from_prompt(prompt).repeated.len(), 1);
    }
}
