//! The 270 pairs of small CSVs. Each agrees with the oracle in every figure, or is listed in
//! [`EXCEPTIONS`]: then it must not agree, and do what the table says instead.

use crate::figures::Figures;
use crate::reference::{self, ALL, Accident};
use crate::{json, path};
use serde_json::Value;
use std::collections::BTreeSet;
use treebeam_core::policy::ScorePolicy;
use treebeam_score::compare::compare_sweeps;
use treebeam_score::sweep_csv::Sweep;

/// Cases in which treebeam differs from the old system.
struct Exception {
    group: &'static str,
    why: &'static str,
    instead: Instead,
    cases: &'static [u64],
}

/// Expected behaviour of treebeam.
enum Instead {
    /// Gives the figures of the reference without this accident. A case with several accidents is
    /// in several groups.
    Without(Accident),
    /// Gives the figures of the reference; the old system stopped with an error.
    Goes,
    /// Refuses the case with an error that contains these texts.
    Refuses(&'static [&'static str]),
    /// The file is missing: core is not called.
    NoFile,
    /// The limit is not a `u32`: core cannot be called with it.
    NoLimit,
}

const EXCEPTIONS: [Exception; 12] = [
    Exception {
        group: "byte-order mark",
        why: "it is no part of a column's name; the old system lost `config_id` and fell back to the first N rows",
        instead: Instead::Without(Accident::ByteOrderMark),
        cases: &[
            88, 91, 101, 115, 124, 173, 191, 203, 205, 212, 233, 242, 272, 274, 289, 308, 340, 385,
            395,
        ],
    },
    Exception {
        group: "blank lines",
        why: "they are no rows and no header",
        instead: Instead::Without(Accident::BlankLines),
        cases: &[28, 101, 185, 232, 236, 256, 268, 323, 361, 373, 389, 395],
    },
    Exception {
        group: "other digits",
        why: "`1_000` and the digits of other scripts were numbers in the old system's language only",
        instead: Instead::Without(Accident::OtherDigits),
        cases: &[
            49, 88, 91, 92, 98, 155, 157, 164, 167, 170, 172, 178, 187, 188, 191, 200, 214, 215,
            221, 224, 227, 230, 238, 239, 242, 245, 268, 274, 278, 280, 281, 283, 289, 301, 310,
            316, 317, 337, 340, 346, 349, 356, 367, 368, 373, 379, 389, 397, 401,
        ],
    },
    Exception {
        group: "infinite id",
        why: "it is not a number, so the row is not selected; the old system could not convert it",
        instead: Instead::Goes,
        cases: &[40, 41],
    },
    Exception {
        group: "limit",
        why: "a limit that is not a non-negative integer is refused where it is read",
        instead: Instead::NoLimit,
        cases: &[68, 70, 71, 73, 74, 76, 77, 79, 80],
    },
    Exception {
        group: "missing file",
        why: "whoever opens the file says so",
        instead: Instead::NoFile,
        cases: &[29],
    },
    Exception {
        group: "duplicate column",
        why: "which of the two is meant is anyone's guess; the old system took the first",
        instead: Instead::Refuses(&[
            "`067_b.csv`, line 1: the columns 1 and 2 are both named `config_id`",
            "`094_c.csv`, line 1: the columns 7 and 12 are both named `Zeta`",
            "`107_c.csv`, line 1: the columns 12 and 22 are both named `sig_bootstrap_prob_mean_gt0`",
            "`110_c.csv`, line 1: the columns 10 and 21 are both named `core_topN_sharpe`",
            "`161_c.csv`, line 1: the columns 4 and 15 are both named `x,y`",
            "`176_c.csv`, line 1: the columns 5 and 19 are both named `sig_bootstrap_prob_mean_gt0`",
            "`265_c.csv`, line 1: the columns 2 and 15 are both named `core_topN_cvar_05`",
            "`296_c.csv`, line 1: the columns 13 and 19 are both named `mean_topN_avg_return_per_trade_pct`",
            "`299_c.csv`, line 1: the columns 12 and 15 are both named `mean_topN_avg_return_per_trade_pct`",
            "`331_c.csv`, line 1: the columns 11 and 17 are both named `mean_topN_avg_return_per_trade_pct_oos`",
            "`376_c.csv`, line 1: the columns 11 and 20 are both named `core_topN_volatility`",
            "`404_c.csv`, line 1: the columns 14 and 16 are both named `core_topN_cvar_05`",
        ]),
        cases: &[67, 94, 107, 110, 161, 176, 265, 296, 299, 331, 376, 404],
    },
    Exception {
        group: "nothing there",
        why: "an empty file or one with a header only is a sweep that failed, not one that scores 0",
        instead: Instead::Refuses(&[
            "`022_b.csv` is empty: not even a header",
            "`023_c.csv` is empty: not even a header",
            "`025_b.csv` has a header and no rows",
            "`026_b.csv` has a header and no rows",
        ]),
        cases: &[22, 23, 25, 26],
    },
    Exception {
        group: "only blank lines",
        why: "they are no rows, so there is a header only",
        instead: Instead::Refuses(&["`097_b.csv` has a header and no rows"]),
        cases: &[97],
    },
    Exception {
        group: "NUL byte",
        why: "a text has none; the cell was silently no number",
        instead: Instead::Refuses(&[
            "`031_b.csv`, line 2, column 2 (`mean_topN_avg_return_per_trade_pct_oos`): a NUL byte; this is no CSV in UTF-8",
        ]),
        cases: &[31],
    },
    Exception {
        group: "unterminated quote",
        why: "the rest of the file would be one cell; nobody can say what was meant",
        instead: Instead::Refuses(&[
            "`032_c.csv`, line 2, column 2 (`mean_topN_avg_return_per_trade_pct_oos`): a quote that is opened here is never closed",
        ]),
        cases: &[32],
    },
    Exception {
        group: "no shared column",
        why: "there is nothing to compare; a score of 0 would look like a result",
        instead: Instead::Refuses(&[
            "`038_c.csv`, line 1: the header is one column, `config_id;mean_topN_avg_return_per_trade_pct_oos;core_topN_m`; cells are separated by commas",
        ]),
        cases: &[38],
    },
];

/// Pair of CSVs with the oracle's figures.
struct Case {
    id: u64,
    baseline: String,
    candidate: String,
    limit: Value,
    /// Figures of the old system; `None` if it stopped with an error.
    expected: Option<Figures>,
}

fn cases() -> Vec<Case> {
    let all = json("scoring/expected.json");
    let case = |case: &Value| Case {
        id: case["id"].as_u64().unwrap(),
        baseline: case["baseline"].as_str().unwrap().to_owned(),
        candidate: case["candidate"].as_str().unwrap().to_owned(),
        limit: case["config_id_limit"].clone(),
        expected: case.get("expected").map(Figures::of_json),
    };
    all["cases"].as_array().unwrap().iter().map(case).collect()
}

/// Arguments of a case that core can be called with.
struct Input {
    baseline: Vec<u8>,
    candidate: Vec<u8>,
    limit: Option<u32>,
}

impl Input {
    fn reference(&self, accidents: &[Accident]) -> Figures {
        reference::compare(&self.baseline, &self.candidate, self.limit, accidents)
    }
}

/// Actual behaviour in a case.
enum Outcome {
    Says(Figures),
    Refuses(String),
    NoFile,
    NoLimit,
}

impl Case {
    fn input(&self) -> Result<Input, Outcome> {
        let limit = match &self.limit {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                Some(self.limit.to_string())
            }
        };
        let limit =
            limit.map(|text| text.parse::<u32>()).transpose().map_err(|_| Outcome::NoLimit)?;
        let read = |name: &str| {
            let bytes = std::fs::read(path(&format!("scoring/{name}")));
            bytes.map_err(|error| {
                assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{name}");
                Outcome::NoFile
            })
        };
        Ok(Input { baseline: read(&self.baseline)?, candidate: read(&self.candidate)?, limit })
    }

    fn outcome(&self) -> Outcome {
        self.input().map_or_else(
            |outcome| outcome,
            |input| self.says(&input).map_or_else(Outcome::Refuses, Outcome::Says),
        )
    }

    fn says(&self, input: &Input) -> Result<Figures, String> {
        let policy = ScorePolicy::trading_preset();
        let read = |bytes: &[u8], name: &str| {
            Sweep::read_csv(bytes, name, input.limit, &policy).map_err(|error| error.to_string())
        };
        let baseline = read(&input.baseline, &self.baseline)?;
        let candidate = read(&input.candidate, &self.candidate)?;
        let details =
            compare_sweeps(&baseline, &candidate, &policy).map_err(|error| error.to_string())?;
        Ok(Figures::of_details(&details))
    }

    /// Returns the case's entries in the table.
    fn exceptions(&self) -> Vec<&'static Exception> {
        EXCEPTIONS.iter().filter(|exception| exception.cases.contains(&self.id)).collect()
    }

    /// Lists the differences from the oracle; `None` if the oracle has no figures.
    fn differences(&self, says: &Figures) -> Option<Vec<String>> {
        Some(says.differences(self.expected.as_ref()?, ["treebeam", "oracle"]))
    }
}

#[test]
fn each_case_agrees_or_stands_in_the_table() {
    let (mut agree, mut to_the_bit, mut excepted) = (0, 0, 0);
    for case in cases() {
        let (outcome, exceptions) = (case.outcome(), case.exceptions());
        if !exceptions.is_empty() {
            excepted += 1;
            for exception in exceptions {
                holds(exception, &case, &outcome);
            }
            continue;
        }
        let Outcome::Says(says) = outcome else { panic!("case {}: no figures", case.id) };
        let differences = case
            .differences(&says)
            .unwrap_or_else(|| panic!("case {}: the oracle stopped", case.id));
        assert!(differences.is_empty(), "case {}:\n{}", case.id, differences.join("\n"));
        agree += 1;
        to_the_bit += u32::from(case.expected.is_some_and(|expected| expected.is_exactly(&says)));
    }
    assert_eq!((agree, excepted), (170, 100));
    assert_eq!(to_the_bit, agree, "all that agree do so to the bit");
}

/// Checks that a case does what the table says, and not what the oracle says.
fn holds(exception: &Exception, case: &Case, outcome: &Outcome) {
    let what = format!("case {} ({}: {})", case.id, exception.group, exception.why);
    match (&exception.instead, outcome) {
        (Instead::Without(accident), Outcome::Says(says)) => {
            let differences = case.differences(says).unwrap_or_default();
            assert!(!differences.is_empty(), "{what}: agrees with the oracle after all");
            let input = case.input().ok().unwrap();
            same(&input.reference(&[]), says, &what);
            let with = input.reference(&[*accident]);
            assert_ne!(with.differences(says, ["", ""]), [""; 0], "{what}: makes no difference");
        }
        (Instead::Goes, Outcome::Says(says)) => {
            assert!(case.expected.is_none(), "{what}: the oracle has figures");
            same(&case.input().ok().unwrap().reference(&[]), says, &what);
        }
        (Instead::Refuses(messages), Outcome::Refuses(message)) => {
            let at = exception.cases.iter().position(|id| *id == case.id).unwrap();
            assert_eq!(messages[at], message, "{what}");
            assert!(case.expected.is_some(), "{what}: the oracle stopped too");
        }
        (Instead::NoFile, Outcome::NoFile) | (Instead::NoLimit, Outcome::NoLimit) => {}
        (_, Outcome::Says(_)) => panic!("{what}: gives figures"),
        (_, Outcome::Refuses(message)) => panic!("{what}: refused: {message}"),
        (_, Outcome::NoFile | Outcome::NoLimit) => panic!("{what}: cannot be asked"),
    }
}

#[track_caller]
fn same(reference: &Figures, says: &Figures, what: &str) {
    let differences = reference.differences(says, ["reference", "treebeam"]);
    assert!(differences.is_empty(), "{what}:\n{}", differences.join("\n"));
}

#[test]
fn each_accident_that_sets_a_case_apart_is_named() {
    for case in cases() {
        let (Ok(input), Outcome::Says(says)) = (case.input(), case.outcome()) else { continue };
        same(&input.reference(&[]), &says, &format!("case {}", case.id));
        let makes_a_difference = |accident: &&Accident| {
            !input.reference(&[**accident]).differences(&says, ["", ""]).is_empty()
        };
        let found: Vec<Accident> = ALL.iter().filter(makes_a_difference).copied().collect();
        let named = case.exceptions().into_iter().filter_map(|exception| match exception.instead {
            Instead::Without(accident) => Some(accident),
            Instead::Goes | Instead::Refuses(_) | Instead::NoFile | Instead::NoLimit => None,
        });
        assert_eq!(named.collect::<Vec<_>>(), found, "case {}", case.id);
    }
}

#[test]
fn with_all_accidents_the_reference_says_what_the_oracle_says() {
    let mut compared = 0;
    for case in cases() {
        let (Ok(input), Some(expected)) = (case.input(), &case.expected) else { continue };
        let differences = input.reference(&ALL).differences(expected, ["reference", "oracle"]);
        assert!(differences.is_empty(), "case {}:\n{}", case.id, differences.join("\n"));
        compared += 1;
    }
    assert_eq!(compared, 258, "all but 7 whose limit is no number and 5 where the oracle stopped");
}

#[test]
fn the_table_names_cases_that_exist_and_each_once() {
    let known: BTreeSet<u64> = cases().iter().map(|case| case.id).collect();
    assert_eq!(known.len(), 270);
    for Exception { group, cases, instead, .. } in &EXCEPTIONS {
        assert!(cases.is_sorted_by(|one, next| one < next), "{group}: in order, each once");
        assert!(cases.iter().all(|case| known.contains(case)), "{group}");
        if let Instead::Refuses(messages) = instead {
            assert_eq!(messages.len(), cases.len(), "{group}: a message for each");
        }
    }
}
