//! Proposes roles for the columns of a results CSV: id, status, metrics, and configuration
//! parameters.
//!
//! A proposal for a person, never a decision.

use super::sample_config::SampleConfig;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::Read;

/// Maximum number of rows that are read.
const MAX_SAMPLED_ROWS: usize = 10_000;

/// Statistics of a column's values.
#[derive(Debug, Default)]
struct ColumnProfile {
    name: String,
    values: BTreeSet<String>,
    rows: usize,
    numbers: usize,
    whole: usize,
}

impl ColumnProfile {
    fn add_cell(&mut self, cell: &str) {
        let cell = cell.trim();
        self.rows += 1;
        self.values.insert(cell.to_owned());
        self.numbers += usize::from(cell.parse().is_ok_and(f64::is_finite));
        self.whole += usize::from(cell.parse::<i64>().is_ok());
    }

    fn is_number(&self) -> bool {
        self.numbers > 0
    }

    fn is_invariant(&self) -> bool {
        self.rows > 1 && (self.values.len() == 1 || self.whole == self.rows)
    }

    /// Returns true if each row has a different whole number.
    fn is_id(&self) -> bool {
        self.rows > 0 && self.whole == self.rows && self.values.len() == self.rows
    }
}

/// Reads a results CSV and adds the proposed columns to a sample configuration.
pub(crate) fn propose_columns(
    reader: impl Read,
    file: &str,
    sample: &mut SampleConfig,
) -> Result<(), csv::Error> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(reader);
    let named = |name: &str| ColumnProfile { name: name.to_owned(), ..ColumnProfile::default() };
    let mut columns: Vec<ColumnProfile> = reader.headers()?.iter().map(named).collect();
    for row in reader.records().take(MAX_SAMPLED_ROWS) {
        columns.iter_mut().zip(row?.iter()).for_each(|(column, cell)| column.add_cell(cell));
    }
    let id = find_column(&columns, "config_id", ColumnProfile::is_id);
    let status = find_column(&columns, "status", |column| column.values.contains("ok"));
    set_column(sample, "score.id_column", id, "config_id", file);
    set_column(sample, "score.status_column", status, "status", file);
    let others = || columns.iter().filter(|column| Some(column.name.as_str()) != id);
    let numbers = || others().filter(|column| column.is_number());
    let listed = |columns: &mut dyn Iterator<Item = &ColumnProfile>| -> Vec<String> {
        columns.map(|column| column.name.clone()).collect()
    };
    let invariant = listed(
        &mut others()
            .filter(|column| column.is_invariant() && Some(column.name.as_str()) != status),
    );
    let metrics = listed(&mut numbers().filter(|column| !invariant.contains(&column.name)));
    let note = |what: &str, value: &[String]| {
        format!("`{file}` has these {what}; choose: {}", Value::from(value))
    };
    if let Some(first) = metrics.first() {
        add_note(
            sample,
            "score.primary",
            format!("for example {}", json!(format!("{first}:higher"))),
        );
        add_note(sample, "score.metrics", note("columns of numbers", &metrics));
    }
    if !invariant.is_empty() {
        let what = "columns that are constant or whole numbers";
        add_note(sample, "score.invariant_columns", note(what, &invariant));
    }
    Ok(())
}

/// Returns the column of that name, or else the first that fits the test.
fn find_column<'a>(
    columns: &'a [ColumnProfile],
    name: &str,
    looks: impl Fn(&ColumnProfile) -> bool,
) -> Option<&'a str> {
    let named = columns.iter().find(|column| column.name == name);
    named.or_else(|| columns.iter().find(|column| looks(column))).map(|column| column.name.as_str())
}

fn set_column(
    sample: &mut SampleConfig,
    key: &'static str,
    found: Option<&str>,
    built_in: &str,
    file: &str,
) {
    match found {
        Some(name) if name == built_in => {}
        Some(name) => {
            add_note(sample, key, format!("from `{file}`"));
            sample.set.insert(key, json!(name));
        }
        None => add_note(sample, key, format!("`{file}` has no column that looks like it")),
    }
}

fn add_note(sample: &mut SampleConfig, key: &'static str, note: String) {
    sample.notes.entry(key).or_default().push(note);
}
