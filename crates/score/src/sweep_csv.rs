//! Reader of one results CSV in one pass: selected rows, column means, and 16 bytes per row, plus
//! 16 per invariant column. Holds no cell longer than its row; compares and judges nothing.

mod cell;
mod decimal;
mod effect;
mod rows;
mod scan;
mod tally;

use rows::RowReader;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read};
use tally::{MAX_NAMED_ITEMS, RowTally, SelectedFigures};
use treebeam_core::evidence::SweepCompleteness;
use treebeam_core::nearest;
use treebeam_core::policy::{ChosenBy, ScorePolicy};

pub use cell::RowId;
pub use rows::{MAX_COLUMNS, MAX_ROW_BYTES};
pub use tally::RowSelection;

/// Error for a results CSV that was refused.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// The file is empty.
    #[error("`{file}` is empty: not even a header")]
    Empty {
        /// Name of the file.
        file: String,
    },
    /// The file has only a header.
    #[error("`{file}` has a header and no rows")]
    NoRows {
        /// Name of the file.
        file: String,
    },
    /// A quote is opened and never closed.
    #[error("`{file}`, line {line}, column {column}: a quote that is opened here is never closed")]
    UnterminatedQuote {
        /// Name of the file.
        file: String,
        /// Line on which the cell begins.
        line: u64,
        /// Number and name of the column.
        column: String,
    },
    /// The file contains a NUL byte.
    #[error("`{file}`, line {line}, column {column}: a NUL byte; this is no CSV in UTF-8")]
    NulByte {
        /// Name of the file.
        file: String,
        /// Line on which the cell begins.
        line: u64,
        /// Number and name of the column.
        column: String,
    },
    /// A cell is not UTF-8.
    #[error("`{file}`, line {line}, column {column}: not UTF-8")]
    NotUtf8 {
        /// Name of the file.
        file: String,
        /// Line on which the cell begins.
        line: u64,
        /// Number and name of the column.
        column: String,
    },
    /// Two columns have the same name.
    #[error("`{file}`, line {line}: the columns {first} and {second} {}", duplicate_name_text(.column))]
    DuplicateColumn {
        /// Name of the file.
        file: String,
        /// Line on which the header begins.
        line: u64,
        /// Name of both columns.
        column: String,
        /// Number of the first column, from 1.
        first: usize,
        /// Number of the second column.
        second: usize,
    },
    /// The header has too many columns to be one.
    #[error("`{file}`, line {line}: {columns} columns, more than the {MAX_COLUMNS} that are read")]
    TooManyColumns {
        /// Name of the file.
        file: String,
        /// Line on which the header begins.
        line: u64,
        /// Number of columns.
        columns: usize,
    },
    /// A row is longer than the limit.
    #[error(
        "`{file}`, line {line}: the row that begins here is longer than {} MiB (a quote that is never closed?)",
        MAX_ROW_BYTES >> 20
    )]
    RowTooLong {
        /// Name of the file.
        file: String,
        /// Line on which the row begins.
        line: u64,
    },
    /// The header is one column that contains another separator.
    #[error(
        "`{file}`, line {line}: the header is one column, `{header}`; cells are separated by commas"
    )]
    Separator {
        /// Name of the file.
        file: String,
        /// Line on which the header begins.
        line: u64,
        /// Header, or its beginning.
        header: String,
    },
    /// A column that the user named is missing.
    #[error("`{file}` has no column `{column}`, {role}{}", column_suggestion(.nearest, .others))]
    NoColumn {
        /// Name of the file.
        file: String,
        /// Name of the missing column.
        column: String,
        /// Role that the column was named for.
        role: ColumnRole,
        /// Similar names that may have been intended.
        nearest: Vec<String>,
        /// First other columns that may have been intended.
        others: Vec<String>,
    },
    /// Reading the file failed.
    #[error("`{file}`, line {line}: cannot be read")]
    Io {
        /// Name of the file.
        file: String,
        /// Line that was reached.
        line: u64,
        /// Cause of the failure.
        source: io::Error,
    },
}

/// Role of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnRole {
    /// The metric that may not regress.
    Primary,
    /// Another metric.
    Metric,
    /// The id of the configuration.
    Id,
    /// The status of the configuration.
    Status,
    /// A column that a candidate may not change.
    Invariant,
}

impl fmt::Display for ColumnRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Primary => "the primary metric",
            Self::Metric => "a metric",
            Self::Id => "the id column",
            Self::Status => "the status column",
            Self::Invariant => "an invariant column",
        })
    }
}

impl SweepError {
    /// Returns advice for the user, if there is any.
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
            Self::Separator { .. } => Some("write the file with commas"),
            Self::NoColumn { role: ColumnRole::Primary, .. } => {
                Some("choose the primary with `--primary COL`, or with `primary` in `[score]`")
            }
            Self::NoColumn { .. } => Some("see `[score]` in the configuration"),
            Self::RowTooLong { .. } | Self::Io { .. } => None,
        }
    }
}

fn duplicate_name_text(name: &str) -> String {
    if name.is_empty() { "have no name".to_owned() } else { format!("are both named `{name}`") }
}

fn column_suggestion(nearest: &[String], others: &[String]) -> String {
    match (nearest, others) {
        ([], []) => String::new(),
        ([], others) => format!("; its columns: `{}`", others.join("`, `")),
        (nearest, _) => format!("; nearest: `{}`", nearest.join("`, `")),
    }
}

/// Results of one sweep, as far as scoring needs them.
#[derive(Clone, Debug)]
pub struct Sweep {
    name: String,
    header: Vec<String>,
    index: BTreeMap<String, usize>,
    /// Mean and count of the numbers of each column that has any.
    means: Vec<Option<(f64, u32)>>,
    has_ids: bool,
    selection: RowSelection,
    picked: SelectedFigures,
    ragged_rows: u32,
    ragged_lines: Vec<u64>,
}

impl Sweep {
    /// Reads a results CSV, called `name` in errors, with the rows that the limit selects.
    ///
    /// # Errors
    /// If the text is not a valid CSV with rows, or cannot be read.
    pub fn read_csv(
        reader: impl Read,
        name: &str,
        limit: Option<u32>,
        policy: &ScorePolicy,
    ) -> Result<Self, SweepError> {
        let mut rows = RowReader::new(reader, name)?;
        let (header, line) = (rows.header().to_vec(), rows.header_line());
        let index = index_columns(&header, name, line)?;
        let mut tally = RowTally::new(&index, policy, limit);
        while let Some(row) = rows.next_row()? {
            tally.add_row(row);
        }
        if tally.rows_read() == 0 {
            return Err(SweepError::NoRows { file: name.to_owned() });
        }
        let (mut picked, selection, ragged_rows, ragged_lines) = tally.finish();
        let sums = std::mem::take(&mut picked.sums);
        let means = sums.iter().map(|sum| Some((sum.mean()?, sum.number_count()))).collect();
        let (name, has_ids) = (name.to_owned(), index.contains_key(&policy.id_column));
        Ok(Self {
            name,
            header,
            index,
            means,
            has_ids,
            selection,
            picked,
            ragged_rows,
            ragged_lines,
        })
    }

    /// Refuses a sweep that lacks the primary metric.
    ///
    /// # Errors
    /// Names the metric and the columns that may have been intended.
    pub fn require_primary(&self, policy: &ScorePolicy) -> Result<(), SweepError> {
        require_column(&policy.primary, ColumnRole::Primary, &self.header, &self.name)
    }

    /// Refuses a sweep that lacks a column that the user named: as a baseline it would void that
    /// setting. Default names and the metrics of a preset were not named by the user.
    ///
    /// # Errors
    /// Names the first such column.
    pub fn require_columns(&self, policy: &ScorePolicy) -> Result<(), SweepError> {
        let has = |column: &str, role| require_column(column, role, &self.header, &self.name);
        if policy.primary_chosen_by == ChosenBy::User {
            has(&policy.primary, ColumnRole::Primary)?;
            let preset = ScorePolicy::trading_preset().metrics;
            let mut own = policy.metrics.iter().filter(|metric| !preset.contains(metric));
            own.try_for_each(|metric| has(&metric.column, ColumnRole::Metric))?;
        }
        if policy.id_column != ScorePolicy::DEFAULT_ID_COLUMN {
            has(&policy.id_column, ColumnRole::Id)?;
        }
        if policy.status_column != ScorePolicy::DEFAULT_STATUS_COLUMN {
            has(&policy.status_column, ColumnRole::Status)?;
        }
        policy.invariant_columns.iter().try_for_each(|column| has(column, ColumnRole::Invariant))
    }

    /// Returns the name of the file in errors.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the number of selected rows.
    #[must_use]
    pub fn rows_used(&self) -> u32 {
        saturating_u32(self.picked.rows.len())
    }

    /// Returns true if the rows have ids; otherwise a row's number is its id.
    #[must_use]
    pub const fn has_ids(&self) -> bool {
        self.has_ids
    }

    /// Returns how the rows were selected.
    #[must_use]
    pub const fn selection(&self) -> RowSelection {
        self.selection
    }

    /// Returns the columns with finite numbers in the selected rows, with means, in header order.
    pub fn column_means(&self) -> impl Iterator<Item = (&str, f64)> {
        let columns = self.header.iter().zip(&self.means);
        columns.filter_map(|(column, mean)| Some((column.as_str(), mean.as_ref()?.0)))
    }

    /// Returns the mean of one column.
    #[must_use]
    pub fn column_mean(&self, column: &str) -> Option<f64> {
        self.column_figures(column).map(|(mean, _)| mean)
    }

    /// Counts the finite numbers of one column.
    pub(crate) fn number_count(&self, column: &str) -> u32 {
        self.column_figures(column).map_or(0, |(_, numbers)| numbers)
    }

    fn column_figures(&self, column: &str) -> Option<(f64, u32)> {
        self.means.get(*self.index.get(column)?).copied().flatten()
    }

    /// Returns the rows in which the metric with this index has no number; `None` if these are too
    /// many to keep, or the metric has no column.
    pub(crate) fn rows_without_number(
        &self,
        metric: usize,
        column: &str,
    ) -> Option<&[(usize, RowId)]> {
        if self.picked.missing_more || !self.index.contains_key(column) {
            return None;
        }
        let all = &self.picked.missing;
        let [start, end] =
            [metric, metric + 1].map(|metric| all.partition_point(|(other, _)| *other < metric));
        all.get(start..end)
    }

    /// Counts the ids of another sweep that this one does not have, if both have ids.
    pub(crate) fn count_unknown_ids(&self, other: &Self) -> u32 {
        if !self.has_ids || !other.has_ids {
            return 0;
        }
        let ids = other.picked.rows.chunk_by(|one, other| one.id() == other.id());
        saturating_u32(
            ids.filter_map(<[_]>::first).filter(|row| self.is_row_ok(row.id()).is_none()).count(),
        )
    }

    /// Returns true if the row with this id is ok; `None` if there is no such row.
    pub(crate) fn is_row_ok(&self, id: RowId) -> Option<bool> {
        let rows = &self.picked.rows;
        let at = rows.partition_point(|row| row.id() < id);
        rows.get(at).filter(|row| row.id() == id).map(|row| row.is_ok())
    }

    /// Counts the rows of the whole file that are shorter or longer than the header.
    #[must_use]
    pub const fn ragged_rows(&self) -> u32 {
        self.ragged_rows
    }

    /// Returns the lines of the first rows that are shorter or longer than the header.
    #[must_use]
    pub fn ragged_lines(&self) -> &[u64] {
        &self.ragged_lines
    }

    /// Returns true if the header has a column of this name.
    #[must_use]
    pub fn has_column(&self, column: &str) -> bool {
        self.index.contains_key(column)
    }

    /// Returns the first ids that more than one selected row has, as far as their text was kept.
    #[must_use]
    pub fn repeated_ids(&self) -> Vec<String> {
        let by_id = self.picked.rows.chunk_by(|one, other| one.id() == other.id());
        let repeated = by_id.filter(|rows| rows.len() > 1).filter_map(<[_]>::first);
        let named = repeated.filter_map(|row| match row.id().as_number() {
            Some(number) => Some(number.to_string()),
            None => self.picked.id_texts.get(&row.id()).cloned(),
        });
        named.take(MAX_NAMED_ITEMS).collect()
    }

    /// Counts the selected rows that repeat an id.
    #[must_use]
    pub fn duplicate_ids(&self) -> u32 {
        let distinct = self.picked.rows.chunk_by(|one, other| one.id() == other.id()).count();
        saturating_u32(self.picked.rows.len() - distinct)
    }

    /// Counts expected, successful and failed configurations: with a limit N the ids 0…N−1 are
    /// expected, without one at least `min_rows`.
    #[must_use]
    pub fn completeness(&self, limit: Option<u32>, min_rows: u32) -> SweepCompleteness {
        let expected = |id: RowId| {
            let below =
                |limit: u32| id.as_number().is_some_and(|id| (0..limit.into()).contains(&id));
            limit.is_none_or(below)
        };
        let rows = &self.picked.rows;
        let ids = rows.chunk_by(|one, other| one.id() == other.id());
        let ok = ids.filter(|rows| {
            rows.iter().any(|row| row.is_ok()) && rows.first().is_some_and(|row| expected(row.id()))
        });
        SweepCompleteness {
            expected_count: limit.unwrap_or(min_rows),
            ok_count: saturating_u32(ok.count()),
            error_count: saturating_u32(rows.iter().filter(|row| !row.is_ok()).count()),
        }
    }

    /// Returns id and primary metric of each selected row that is ok, ordered by id; NaN if it has
    /// no finite number.
    pub(crate) fn primary_figures(&self) -> impl Iterator<Item = (RowId, f64)> {
        let ok = self.picked.rows.iter().filter(|row| row.is_ok());
        ok.map(|row| (row.id(), row.primary()))
    }

    /// Returns id and value of the configured metric with this index, ordered by id; `None` if
    /// there were too many rows to keep it.
    pub(crate) fn metric_figures(&self, at: usize) -> Option<impl Iterator<Item = (RowId, f64)>> {
        self.picked.metrics.get(at).map(|column| column.iter().copied())
    }

    /// Returns each selected row's id and fingerprint of this invariant column, ordered by id.
    pub(crate) fn invariant_fingerprints(&self, at: usize) -> &[(RowId, u64)] {
        self.picked.invariants.get(at).map_or(&[], Vec::as_slice)
    }

    /// Returns an order-independent fingerprint of all configured metrics in all selected rows.
    pub(crate) const fn metrics_fingerprint(&self) -> u64 {
        self.picked.fingerprint
    }
}

fn saturating_u32(rows: usize) -> u32 {
    u32::try_from(rows).unwrap_or(u32::MAX)
}

/// Maximum number of characters of a header in an error.
const MAX_SHOWN_HEADER_CHARS: usize = 60;

/// Indexes the columns by name, which may not repeat.
fn index_columns(
    header: &[String],
    file: &str,
    line: u64,
) -> Result<BTreeMap<String, usize>, SweepError> {
    if let [one] = header
        && one.contains([';', '\t'])
    {
        let header = one.chars().take(MAX_SHOWN_HEADER_CHARS).collect();
        return Err(SweepError::Separator { file: file.to_owned(), line, header });
    }
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

/// Refuses a header without a column that the user named.
fn require_column(
    column: &str,
    role: ColumnRole,
    header: &[String],
    file: &str,
) -> Result<(), SweepError> {
    if header.iter().any(|name| name == column) {
        return Ok(());
    }
    let nearest = nearest::nearest_names(column, header);
    let others =
        header.iter().filter(|name| !name.is_empty()).take(MAX_NAMED_ITEMS).cloned().collect();
    let (file, column) = (file.to_owned(), column.to_owned());
    Err(SweepError::NoColumn { file, column, role, nearest, others })
}

#[cfg(test)]
mod tests;
