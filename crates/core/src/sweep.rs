//! One results CSV, read in one pass: which rows count, each column's mean over them, and what later steps need to know
//! of each row: 16 bytes. Holds no cell longer than its row; compares nothing and judges nothing.

mod cell;
mod decimal;
mod nearest;
mod rows;
mod scan;
mod tally;

use crate::evidence::Completeness;
use crate::policy::{ChosenBy, ScorePolicy};
use rows::Rows;
use std::collections::BTreeMap;
use std::io::{self, Read};
use tally::{Picked, Tally};

pub use cell::RowId;
pub use rows::{MAX_COLUMNS, MAX_ROW_BYTES};

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
    #[error("`{file}`, line {line}, column {column}: a quote that is opened here is never closed")]
    UnterminatedQuote {
        /// Which file.
        file: String,
        /// Where the cell begins.
        line: u64,
        /// Which column: its number, and its name.
        column: String,
    },
    /// There is a NUL byte in it.
    #[error("`{file}`, line {line}, column {column}: a NUL byte; this is no CSV in UTF-8")]
    NulByte {
        /// Which file.
        file: String,
        /// Where the cell begins.
        line: u64,
        /// Which column: its number, and its name.
        column: String,
    },
    /// A cell is not UTF-8.
    #[error("`{file}`, line {line}, column {column}: not UTF-8")]
    NotUtf8 {
        /// Which file.
        file: String,
        /// Where the cell begins.
        line: u64,
        /// Which column: its number, and its name.
        column: String,
    },
    /// Two columns have the same name.
    #[error("`{file}`, line {line}: the columns {first} and {second} are both named `{column}`")]
    DuplicateColumn {
        /// Which file.
        file: String,
        /// Where the header begins.
        line: u64,
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

impl SweepError {
    /// What to do about it.
    #[must_use]
    pub const fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Empty { .. } | Self::NoRows { .. } => {
                Some("the sweep has to write a header and one row for each configuration")
            }
            Self::UnterminatedQuote { .. } => {
                Some("close the quote, or write a quote inside quotes twice")
            }
            Self::NulByte { .. } | Self::NotUtf8 { .. } => Some("save the file as UTF-8"),
            Self::DuplicateColumn { .. } => Some("give each column a name of its own"),
            Self::TooManyColumns { .. } => Some("the first line has to be the header"),
            Self::NoPrimary { .. } => {
                Some("choose the primary with `--primary COL`, or with `primary` in `[score]`")
            }
            Self::RowTooLong { .. } | Self::Io { .. } => None,
        }
    }
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
    /// How many numbers are behind each mean.
    numbers: Vec<u32>,
    by_name: BTreeMap<String, usize>,
    picked: Picked,
    ragged_rows: u32,
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
        let mut rows = Rows::new(reader, name)?;
        let header = rows.header().to_vec();
        let index = index(&header, name, rows.header_line())?;
        require_primary(&header, &index, name, policy)?;
        let mut tally = Tally::new(&index, policy, limit);
        while let Some(row) = rows.next()? {
            tally.row(row);
        }
        if tally.rows_read() == 0 {
            return Err(SweepError::NoRows { file: name.to_owned() });
        }
        Ok(Self::new(name, header, tally))
    }

    fn new(name: &str, header: Vec<String>, tally: Tally) -> Self {
        let (picked, ragged_rows) = tally.finish();
        let columns = header.into_iter().zip(&picked.sums);
        let (means, numbers): (Vec<(String, f64)>, Vec<u32>) =
            columns.filter_map(|(column, sum)| Some(((column, sum.mean()?), sum.added()))).unzip();
        let by_name = means.iter().enumerate().map(|(at, (name, _))| (name.clone(), at)).collect();
        Self { name: name.to_owned(), means, numbers, by_name, picked, ragged_rows }
    }

    /// What it is called in errors.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many rows were selected.
    #[must_use]
    pub fn rows_used(&self) -> u32 {
        count(self.picked.rows.len())
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

    /// How many finite numbers one column has.
    pub(crate) fn numbers(&self, column: &str) -> u32 {
        self.by_name.get(column).and_then(|at| self.numbers.get(*at)).copied().unwrap_or_default()
    }

    /// How many rows of the whole file are shorter or longer than the header.
    #[must_use]
    pub const fn ragged_rows(&self) -> u32 {
        self.ragged_rows
    }

    /// How many selected rows have the id of another one that was counted.
    #[must_use]
    pub fn duplicate_ids(&self) -> u32 {
        let distinct = self.picked.rows.chunk_by(|one, other| one.id() == other.id()).count();
        count(self.picked.rows.len() - distinct)
    }

    /// What became of the expected configurations: with a limit N the ids 0…N−1, without one at least `min_rows`.
    #[must_use]
    pub fn completeness(&self, limit: Option<u32>, min_rows: u32) -> Completeness {
        let expected = |id: RowId| {
            let below = |limit: u32| id.number().is_some_and(|id| (0..limit.into()).contains(&id));
            limit.is_none_or(below)
        };
        let rows = &self.picked.rows;
        let ids = rows.chunk_by(|one, other| one.id() == other.id());
        let ok = ids.filter(|rows| {
            rows.iter().any(|row| row.ok()) && rows.first().is_some_and(|row| expected(row.id()))
        });
        Completeness {
            expected_count: limit.unwrap_or(min_rows),
            ok_count: count(ok.count()),
            error_count: count(rows.iter().filter(|row| !row.ok()).count()),
        }
    }

    /// Each selected row's id and primary metric, NaN where that is no finite number, in the order of the ids.
    pub(crate) fn primaries(&self) -> impl Iterator<Item = (RowId, f64)> {
        self.picked.rows.iter().map(|row| (row.id(), row.primary()))
    }

    /// The same for the configured metric of this number; none where there were too many rows to keep it.
    pub(crate) fn metric(&self, at: usize) -> Option<impl Iterator<Item = (RowId, f64)>> {
        self.picked.metrics.get(at).map(|column| column.iter().copied())
    }

    /// Each selected row's id with the fingerprint of the invariant column of this number, in the order of the ids.
    pub(crate) fn invariant(&self, at: usize) -> &[(RowId, u64)] {
        self.picked.invariants.get(at).map_or(&[], Vec::as_slice)
    }

    /// One fingerprint of all configured metrics in all selected rows, whatever the rows' order.
    pub(crate) const fn fingerprint(&self) -> u64 {
        self.picked.fingerprint
    }
}

fn count(rows: usize) -> u32 {
    u32::try_from(rows).unwrap_or(u32::MAX)
}

/// Where each name stands; a name may not stand twice.
fn index(header: &[String], file: &str, line: u64) -> Result<BTreeMap<String, usize>, SweepError> {
    let mut index = BTreeMap::new();
    for (at, column) in header.iter().enumerate() {
        if let Some(first) = index.insert(column.clone(), at) {
            let (file, column) = (file.to_owned(), column.clone());
            let (first, second) = (first + 1, at + 1);
            return Err(SweepError::DuplicateColumn { file, line, column, first, second });
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

#[cfg(test)]
mod tests;
