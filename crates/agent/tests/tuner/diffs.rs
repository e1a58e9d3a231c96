//! Diffs of the tuner in Python, TOML and Rust files made of awkward pieces. Each applies with real
//! git, changes exactly the named constant, and leaves every other byte alone.

use proptest::prelude::*;
use std::fs;
use treebeam_run::{patch, reply};
use treebeam_testkit::repo::TempRepo;
use treebeam_tuner::change::ConstantChange;
use treebeam_tuner::constant::{Constant, find_constants};
use treebeam_tuner::history::TunerHistory;
use treebeam_tuner::search::propose_changes;
use treebeam_tuner::{TunerRequest, parse_request, propose_ideas};

const PYTHON: [&str; 14] = [
    "RATE = 0.1  # RATE = 0.2",
    "größe: float = -2.5e-3",
    "\"\"\"\nRATE = 3\n\"\"\"",
    "s = 'RATE = 4'",
    "\tself.depth = 3",
    "rate = 1_000",
    "config = {\n    'momentum': 0.90,\n    \"on\": True,\n}",
    "",
    "def f():\n    width = 64\n    return width",
    "count = 0\ncount += 1",
    "bias = 0.0",
    "```",
    "# übrigens: x = 1",
    "off = -7",
];
const TOML: [&str; 10] = [
    "[model]\nrate = 0.1 # rate = 0.2",
    "[model.inner]\nrate = +3\non = false",
    "[[layer]]\nwidth = 8\n[[layer]]\nwidth = 16",
    "[text]\nt = \"\"\"\nrate = 9\n\"\"\"",
    "[\"größe\"]\n\"a b\" = 1_000_000",
    "[dates]\nday = 1979-05-27\nname = 'rate = 5'",
    "",
    "[lists]\nlist = [\n  1,\n  2,\n]",
    "[tabs]\n\trate\t=\t-0.25",
    "[small]\nrate = 1e-4",
];
const RUST: [&str; 10] = [
    "pub const RATE: f64 = 0.5; // RATE: f64 = 0.6",
    "const WIDTH: usize = 1_024;",
    "/* const NO: u8 = 1;\n /* nested */ const NO: u8 = 3; */",
    "static S: &str = \"\nconst NO: u8 = 4;\n\";",
    "static R: &str = r#\"\nconst NO: u8 = 5;\n\"#;",
    "fn f<'a>(x: &'a str) {\n\tlet scale = -2.0_f32;\n\tlet mut n = 0;\n}",
    "static ON: bool = true;",
    "",
    "fn g() -> P {\n    P {\n        depth: 3,\n        c: '\"',\n        ratio: 1.5e-3f64,\n    }\n}",
    "// größe",
];

#[derive(Clone, Debug)]
struct Case {
    file: &'static str,
    text: String,
    /// Index of the idea that is implemented.
    choice: usize,
    seed: u64,
}

fn case() -> impl Strategy<Value = Case> {
    let kinds = [("a b/train.py", &PYTHON[..]), ("größe.toml", &TOML), ("src/lib.rs", &RUST)];
    let pieces = (0..kinds.len(), proptest::collection::vec(0..100_usize, 1..9));
    let form = (prop_oneof![Just("\n"), Just("\r\n")], any::<bool>(), any::<bool>());
    (pieces, form, 0..1000_usize, 0..50_u64).prop_map(
        move |((kind, picks), (end, ended, mark), choice, seed)| {
            let (file, all) = kinds[kind];
            let lines: Vec<&str> = picks.iter().map(|pick| all[pick % all.len()]).collect();
            let mut text = lines.join("\n").replace('\n', end);
            if ended {
                text.push_str(end);
            }
            if mark {
                text.insert(0, '\u{feff}');
            }
            Case { file, text, choice, seed }
        },
    )
}

/// Returns the value of each constant.
fn values(found: &[Constant]) -> Vec<(String, String)> {
    let value = |c: &Constant| (format!("{} {}", c.id.name, c.id.nth), c.text.clone());
    found.iter().map(value).collect()
}

fn check(case: &Case) -> Result<(), TestCaseError> {
    let Case { file, text, choice, seed } = case;
    let found = find_constants(file, text);
    let proposals = propose_changes(&found, &TunerHistory::default(), *seed, 1000);
    prop_assert_eq!(proposals.is_empty(), found.is_empty());
    if found.is_empty() {
        return Ok(());
    }
    let chosen = &proposals[choice % proposals.len()].change;
    let change = through_an_idea(&found, *seed, chosen);
    let diff = change.to_diff(text).map_err(TestCaseError::fail)?;
    let diff = patch::find_patch(&format!("Here it is:\n\n{diff}")).map_err(TestCaseError::fail)?;

    let repo = TempRepo::with(&[(file, text)]).expect("a repository");
    fs::write(repo.beside("change.diff"), &diff).expect("a file");
    let file_of_it = repo.beside("change.diff");
    let applied = repo.git(["apply", "--index", &file_of_it.to_string_lossy()]);
    prop_assert!(applied.is_ok(), "{:?}\n{}", applied, diff);
    let after = fs::read_to_string(repo.path().join(file)).expect("a file");
    let at = found.iter().position(|constant| constant.id == change.id).expect("a constant");
    let span = found[at].span.clone();
    let expected = format!("{}{}{}", &text[..span.start], change.to, &text[span.end..]);
    prop_assert_eq!(&after, &expected, "every other byte is the same");
    let mut expected = values(&found);
    expected[at].1.clone_from(&change.to);
    prop_assert_eq!(values(&find_constants(file, &after)), expected, "the value reads back");
    Ok(())
}

/// Returns the change as a coder reads it from the idea's text.
fn through_an_idea(found: &[Constant], seed: u64, chosen: &ConstantChange) -> ConstantChange {
    let said = propose_ideas(found, "", seed, 1000).expect("ideas");
    let texts = reply::parse_ideas(&said);
    let read = texts.iter().map(|text| match parse_request(text) {
        Ok(TunerRequest::Diff(change)) => change,
        other => panic!("{text}: {other:?}"),
    });
    read.into_iter().find(|change| change == chosen).expect("the idea is among them")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn every_diff_applies_and_changes_one_constant(case in case()) {
        check(&case)?;
    }
}
