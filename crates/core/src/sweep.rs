//! One results CSV, read in one pass: which rows count, each column's mean over them, and what later steps need to know
//! of each row. Holds no cell longer than its row; compares nothing and judges nothing.

mod cell;
mod nearest;
mod records;

use crate::evidence::Completeness;
use crate::exact::ExactSum;
use crate::policy::{ChosenBy, ScorePolicy};
use csv::ByteRecord;
use records::Records;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Read};

pub use cell::RowId;
pub use records::{MAX_COLUMNS, MAX_ROW_BYTES};

/// Why a results CSV was refused.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// There is nothing in it.
    #[error("`{file}` is empty: not even a header")]
    Empty {
        /// Which file.
        file: String,
    },
    /// There is only a header in it.
    #[error("`{file}` has a header and no rows")]
    NoRows {
        /// Which file.
        file: String,
    },
    /// A quote is opened and never closed.
    #[error("`{file}`, line {line}: a quote in the row that begins here is never closed")]
    UnterminatedQuote {
        /// Which file.
        file: String,
        /// Where the row begins.
        line: u64,
    },
    /// There is a NUL byte in it.
    #[error("`{file}`, line {line}, column {column}: a NUL byte; this is no CSV in UTF-8")]
    NulByte {
        /// Which file.
        file: String,
        /// Where the row begins.
        line: u64,
        /// Which column, from 1.
        column: usize,
    },
    /// A column's name is not UTF-8.
    #[error("`{file}`, line {line}, column {column}: the column's name is not UTF-8")]
    HeaderNotUtf8 {
        /// Which file.
        file: String,
        /// Where the header begins.
        line: u64,
        /// Which column, from 1.
        column: usize,
    },
    /// Two columns have the same name.
    #[error("`{file}`: the columns {first} and {second} are both named `{column}`")]
    DuplicateColumn {
        /// Which file.
        file: String,
        /// The name.
        column: String,
        /// The first that has it, from 1.
        first: usize,
        /// The second.
        second: usize,
    },
    /// The header is no header.
    #[error("`{file}`, line {line}: {columns} columns, more than the {MAX_COLUMNS} that are read")]
    TooManyColumns {
        /// Which file.
        file: String,
        /// Where the header begins.
        line: u64,
        /// How many there are.
        columns: usize,
    },
    /// A row is longer than is read.
    #[error(
        "`{file}`, line {line}: the row that begins here is longer than {} MiB (a quote that is never closed?)",
        MAX_ROW_BYTES >> 20
    )]
    RowTooLong {
        /// Which file.
        file: String,
        /// Where the row begins.
        line: u64,
    },
    /// The primary metric that the user named is not there.
    #[error("`{file}` has no column `{column}`, the primary metric{}", suggestion(.nearest))]
    NoPrimary {
        /// Which file.
        file: String,
        /// The primary metric.
        column: String,
        /// What may have been meant.
        nearest: Vec<String>,
    },
    /// It cannot be read.
    #[error("`{file}`, line {line}: cannot be read")]
    Io {
        /// Which file.
        file: String,
        /// How far it got.
        line: u64,
        /// Why.
        source: io::Error,
    },
}

fn suggestion(nearest: &[String]) -> String {
    if nearest.is_empty() {
        return String::new();
    }
    format!("; nearest: `{}`", nearest.join("`, `"))
}

/// One results CSV, as far as scoring needs it.
#[derive(Clone, Debug)]
pub struct Sweep {
    name: String,
    means: Vec<(String, f64)>,
    by_name: BTreeMap<String, usize>,
    rows: Vec<Row>,
    invariants: Vec<u64>,
    ragged_rows: u32,
}

/// One selected row, as far as scoring needs it.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Which configuration it is of; without an id column the row's number, from 0.
    pub id: RowId,
    /// Whether the configuration ran.
    pub ok: bool,
    /// The primary metric, where it is a finite number.
    pub primary: Option<f64>,
    /// The fingerprint of all configured metrics: equal where they are.
    pub metrics: u64,
}

impl Sweep {
    /// Reads a results CSV, called `name` in errors, with the rows that the limit selects.
    ///
    /// # Errors
    /// Where the text is no sound CSV with rows, cannot be read, or lacks the primary metric that the user named.
    pub fn read(
        reader: impl Read,
        name: &str,
        limit: Option<u32>,
        policy: &ScorePolicy,
    ) -> Result<Self, SweepError> {
        let mut records = Records::new(reader, name)?;
        let header = records.header()?;
        let index = index(&header, name)?;
        require_primary(&header, &index, name, policy)?;
        let mut tally = Tally::new(Layout::new(&index, policy), header.len(), limit);
        while let Some(record) = records.next()? {
            if !is_blank(record, header.len()) {
                tally.row(record);
            }
        }
        if tally.rows_read == 0 {
            return Err(SweepError::NoRows { file: name.to_owned() });
        }
        Ok(tally.finish(name, header))
    }

    /// What it is called in errors.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many rows were selected.
    #[must_use]
    pub fn rows_used(&self) -> u32 {
        count(self.rows.len())
    }

    /// The selected rows, in the file's order.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The columns that have finite numbers in the selected rows, with the mean of these, in the header's order.
    pub fn means(&self) -> impl Iterator<Item = (&str, f64)> {
        self.means.iter().map(|(column, mean)| (column.as_str(), *mean))
    }

    /// The mean of one column.
    #[must_use]
    pub fn mean(&self, column: &str) -> Option<f64> {
        self.by_name.get(column).and_then(|at| self.means.get(*at)).map(|(_, mean)| *mean)
    }

    /// How many rows of the whole file are shorter or longer than the header.
    #[must_use]
    pub const fn ragged_rows(&self) -> u32 {
        self.ragged_rows
    }

    /// How many selected rows have the id of an earlier one.
    #[must_use]
    pub fn duplicate_ids(&self) -> u32 {
        let distinct: BTreeSet<RowId> = self.rows.iter().map(|row| row.id).collect();
        count(self.rows.len() - distinct.len())
    }

    /// What became of the expected configurations: with a limit N the ids 0…N−1, without one at least `min_rows`.
    #[must_use]
    pub fn completeness(&self, limit: Option<u32>, min_rows: u32) -> Completeness {
        let expected = |id: &RowId| match (limit, id) {
            (Some(limit), RowId::Number(id)) => (0..i64::from(limit)).contains(id),
            (Some(_), RowId::Text(_)) => false,
            (None, _) => true,
        };
        let ok = self.rows.iter().filter(|row| row.ok).map(|row| row.id).filter(expected);
        Completeness {
            expected_count: limit.unwrap_or(min_rows),
            ok_count: count(ok.collect::<BTreeSet<RowId>>().len()),
            error_count: count(self.rows.iter().filter(|row| !row.ok).count()),
        }
    }

    /// The selected rows' ids with the fingerprints of the invariant columns, in the policy's order.
    pub fn invariants(&self) -> impl Iterator<Item = (RowId, &[u64])> {
        let width = self.invariants.len() / self.rows.len().max(1);
        let cells =
            move |at: usize| self.invariants.get(at * width..(at + 1) * width).unwrap_or_default();
        self.rows.iter().enumerate().map(move |(at, row)| (row.id, cells(at)))
    }
}

fn count(rows: usize) -> u32 {
    u32::try_from(rows).unwrap_or(u32::MAX)
}

fn is_blank(record: &ByteRecord, columns: usize) -> bool {
    columns > 1 && record.len() == 1 && record.as_slice().trim_ascii().is_empty()
}

/// Where each name stands; a name may not stand twice.
fn index(header: &[String], file: &str) -> Result<BTreeMap<String, usize>, SweepError> {
    let mut index = BTreeMap::new();
    for (at, column) in header.iter().enumerate() {
        if let Some(first) = index.insert(column.clone(), at) {
            let (file, column) = (file.to_owned(), column.clone());
            return Err(SweepError::DuplicateColumn {
                file,
                column,
                first: first + 1,
                second: at + 1,
            });
        }
    }
    Ok(index)
}

fn require_primary(
    header: &[String],
    index: &BTreeMap<String, usize>,
    file: &str,
    policy: &ScorePolicy,
) -> Result<(), SweepError> {
    let column = &policy.primary;
    if policy.primary_chosen_by == ChosenBy::Preset || index.contains_key(column) {
        return Ok(());
    }
    let nearest = nearest::nearest(column, header);
    Err(SweepError::NoPrimary { file: file.to_owned(), column: column.clone(), nearest })
}

/// Where the columns that mean something stand.
struct Layout {
    id: Option<usize>,
    status: Option<usize>,
    primary: Option<usize>,
    metrics: Vec<Option<usize>>,
    invariants: Vec<Option<usize>>,
}

impl Layout {
    fn new(index: &BTreeMap<String, usize>, policy: &ScorePolicy) -> Self {
        let at = |column: &String| index.get(column).copied();
        Self {
            id: at(&policy.id_column),
            status: at(&policy.status_column),
            primary: at(&policy.primary),
            metrics: policy.metrics.iter().map(|metric| at(&metric.column)).collect(),
            invariants: policy.invariant_columns.iter().map(at).collect(),
        }
    }
}

/// Which rows are selected.
#[derive(Clone, Copy)]
enum Selection {
    /// All.
    All,
    /// The first so many, as long as no row is selected by its id.
    First(u32),
    /// Those with an id below.
    ById(u32),
}

/// One column's sum and how many numbers are in it.
#[derive(Clone, Default)]
struct Column {
    sum: ExactSum,
    numbers: u64,
}

/// What is known of the rows so far.
struct Tally {
    layout: Layout,
    selection: Selection,
    columns: Vec<Column>,
    rows: Vec<Row>,
    invariants: Vec<u64>,
    rows_read: u32,
    ragged_rows: u32,
    /// The current row's numbers, kept to be filled again.
    numbers: Vec<Option<f64>>,
}

impl Tally {
    fn new(layout: Layout, columns: usize, limit: Option<u32>) -> Self {
        let selection = limit.map_or(Selection::All, Selection::First);
        Self {
            layout,
            selection,
            columns: vec![Column::default(); columns],
            rows: Vec::new(),
            invariants: Vec::new(),
            rows_read: 0,
            ragged_rows: 0,
            numbers: Vec::with_capacity(columns),
        }
    }

    fn row(&mut self, record: &ByteRecord) {
        let number = self.rows_read;
        self.rows_read = number.saturating_add(1);
        let ragged = record.len() != self.columns.len();
        self.ragged_rows = self.ragged_rows.saturating_add(u32::from(ragged));
        let id_cell = self.layout.id.and_then(|at| record.get(at));
        let id_number = id_cell.and_then(cell::id_number);
        if self.selects(id_number) {
            let has_ids = self.layout.id.is_some();
            let row_number = RowId::Number(i64::from(number));
            self.add(record, if has_ids { cell::id(id_cell, id_number) } else { row_number });
        }
    }

    /// Whether the next row is selected. The first one selected by its id does away with those before it.
    fn selects(&mut self, id: Option<f64>) -> bool {
        let below = |limit: u32| id.is_some_and(|id| id.trunc() < f64::from(limit));
        match self.selection {
            Selection::All => true,
            Selection::First(limit) if below(limit) => {
                self.selection = Selection::ById(limit);
                self.columns.fill(Column::default());
                self.rows.clear();
                self.invariants.clear();
                true
            }
            Selection::First(limit) => count(self.rows.len()) < limit,
            Selection::ById(limit) => below(limit),
        }
    }

    fn add(&mut self, record: &ByteRecord, id: RowId) {
        self.numbers.clear();
        for (at, column) in self.columns.iter_mut().enumerate() {
            let number = record.get(at).and_then(cell::number);
            if let Some(number) = number {
                column.sum.add(number);
                column.numbers += 1;
            }
            self.numbers.push(number);
        }
        let primary = self.layout.primary.and_then(|at| self.number(at));
        let ok = match self.layout.status {
            Some(at) => record.get(at).is_some_and(|status| status.trim_ascii() == b"ok"),
            None => primary.is_some(),
        };
        let metrics = self.fingerprint(record, &self.layout.metrics);
        self.rows.push(Row { id, ok, primary, metrics });
        for column in &self.layout.invariants {
            self.invariants.push(self.fingerprint(record, std::slice::from_ref(column)));
        }
    }

    fn number(&self, at: usize) -> Option<f64> {
        self.numbers.get(at).copied().flatten()
    }

    fn fingerprint(&self, record: &ByteRecord, columns: &[Option<usize>]) -> u64 {
        let mut hasher = DefaultHasher::new();
        for column in columns {
            let cell = column.and_then(|at| record.get(at));
            cell::fingerprint(&mut hasher, cell, column.and_then(|at| self.number(at)));
        }
        hasher.finish()
    }

    fn finish(self, name: &str, header: Vec<String>) -> Sweep {
        let means: Vec<(String, f64)> = header
            .into_iter()
            .zip(&self.columns)
            .filter_map(|(name, column)| Some((name, column.sum.mean(column.numbers)?)))
            .collect();
        let by_name = means.iter().enumerate().map(|(at, (name, _))| (name.clone(), at)).collect();
        Sweep {
            name: name.to_owned(),
            means,
            by_name,
            rows: self.rows,
            invariants: self.invariants,
            ragged_rows: self.ragged_rows,
        }
    }
}

#[cfg(test)]
mod tests;
