//! Tally of the rows: selection, column sums, a few bytes of each. No parsing or comparing.

use super::cell::{self, RowId};
use super::rows::SweepRow;
use super::saturating_u32;
use crate::exact::ExactSum;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher};
use treebeam_core::policy::ScorePolicy;

/// Maximum number of figures of the configured metrics that are kept for pairwise comparison,
/// beyond which only the primary's are; also of missing numbers.
pub(super) const MAX_FIGURES: usize = 1 << 17;

/// Maximum number of lines and ids that an error names.
pub(super) const MAX_NAMED_ITEMS: usize = 5;
/// Maximum number of text ids that are kept to be named.
const MAX_ID_TEXTS: usize = 1 << 10;
/// Maximum number of characters of each.
const MAX_ID_TEXT_CHARS: usize = 40;

/// Positions of the columns with a role.
struct ColumnLayout {
    columns: usize,
    id: Option<usize>,
    status: Option<usize>,
    primary: Option<usize>,
    metrics: Vec<Option<usize>>,
    invariants: Vec<Option<usize>>,
}

impl ColumnLayout {
    fn new(index: &BTreeMap<String, usize>, policy: &ScorePolicy) -> Self {
        let at = |column: &String| index.get(column).copied();
        Self {
            columns: index.len(),
            id: at(&policy.id_column),
            status: at(&policy.status_column),
            primary: at(&policy.primary),
            metrics: policy.metrics.iter().map(|metric| at(&metric.column)).collect(),
            invariants: policy.invariant_columns.iter().map(at).collect(),
        }
    }
}

/// Selection of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowSelection {
    /// All rows.
    All,
    /// The first rows up to this number: no row was selected by its id.
    First(u32),
    /// Rows with an id below this number.
    ById(u32),
}

/// Selected row: its id, whether it is ok, and its primary metric.
#[derive(Clone, Copy, Debug)]
pub(super) struct SelectedRow {
    id_and_ok: i64,
    primary: f64,
}

impl SelectedRow {
    pub(super) const fn id(self) -> RowId {
        RowId::split_bit(self.id_and_ok).0
    }

    pub(super) const fn is_ok(self) -> bool {
        RowId::split_bit(self.id_and_ok).1
    }

    /// Returns the primary metric; NaN without a finite number.
    pub(super) const fn primary(self) -> f64 {
        self.primary
    }
}

/// Figures of the selected rows.
#[derive(Clone, Debug, Default)]
pub(super) struct SelectedFigures {
    /// Sum of each column's numbers.
    pub(super) sums: Vec<ExactSum>,
    /// Rows; ordered by id once all are read.
    pub(super) rows: Vec<SelectedRow>,
    /// Figures of each configured metric, ordered by id; empty if they became too many.
    pub(super) metrics: Vec<Vec<(RowId, f64)>>,
    /// Missing numbers of configured metrics that have a column: metric and row, in this order.
    pub(super) missing: Vec<(usize, RowId)>,
    /// True if there were more missing numbers than are kept.
    pub(super) missing_more: bool,
    /// Fingerprints of each invariant column by row, ordered by id.
    pub(super) invariants: Vec<Vec<(RowId, u64)>>,
    /// Fingerprint of all configured metrics in all rows.
    pub(super) fingerprint: u64,
    /// Fingerprint of all rows' ids, and of the configured metrics' text where there is no number.
    pub(super) shape: u64,
    /// Texts of ids that are not numbers, as far as kept.
    pub(super) id_texts: BTreeMap<RowId, String>,
}

impl SelectedFigures {
    fn new(layout: &ColumnLayout) -> Self {
        Self {
            sums: vec![ExactSum::default(); layout.columns],
            rows: Vec::new(),
            metrics: vec![Vec::new(); layout.metrics.len()],
            missing: Vec::new(),
            missing_more: false,
            invariants: vec![Vec::new(); layout.invariants.len()],
            fingerprint: 0,
            shape: 0,
            id_texts: BTreeMap::new(),
        }
    }

    fn add_row(&mut self, row: SweepRow<'_>, id: RowId, layout: &ColumnLayout) {
        for (sum, number) in self.sums.iter_mut().zip(row.numbers()) {
            sum.add(number);
        }
        let primary = layout.primary.and_then(|at| row.cell_number(at));
        let ok = match layout.status {
            Some(at) => row.cell_text(at).is_some_and(|status| status.trim_ascii() == b"ok"),
            None => primary.is_some(),
        };
        self.rows
            .push(SelectedRow { id_and_ok: id.with_bit(ok), primary: primary.unwrap_or(f64::NAN) });
        self.keep_metrics(row, id, layout);
        self.keep_missing(row, id, layout);
        let digest = fingerprint_cells(row, Some(id), &layout.metrics);
        self.fingerprint = self.fingerprint.wrapping_add(digest);
        self.shape = self.shape.wrapping_add(fingerprint_shape(row, id, &layout.metrics));
        for (kept, column) in self.invariants.iter_mut().zip(layout.invariants.chunks(1)) {
            kept.push((id, fingerprint_cells(row, None, column)));
        }
    }

    fn keep_metrics(&mut self, row: SweepRow<'_>, id: RowId, layout: &ColumnLayout) {
        if self.rows.len().saturating_mul(self.metrics.len()) > MAX_FIGURES {
            self.metrics = Vec::new();
        }
        for (kept, column) in self.metrics.iter_mut().zip(&layout.metrics) {
            let number = column.and_then(|at| row.cell_number(at));
            kept.push((id, number.unwrap_or(f64::NAN)));
        }
    }

    fn keep_missing(&mut self, row: SweepRow<'_>, id: RowId, layout: &ColumnLayout) {
        for (at, column) in layout.metrics.iter().enumerate() {
            if column.is_none_or(|column| row.cell_number(column).is_some()) {
                continue;
            }
            self.missing_more |= self.missing.len() == MAX_FIGURES;
            if !self.missing_more {
                self.missing.push((at, id));
            }
        }
    }

    /// Keeps the text of an id that is not a number, so that a repeated one can be named.
    fn keep_id_text(&mut self, id: RowId, cell: Option<&[u8]>) {
        if id.as_number().is_some() || self.id_texts.len() >= MAX_ID_TEXTS {
            return;
        }
        let text = String::from_utf8_lossy(cell.unwrap_or_default());
        let text = text.trim().chars().take(MAX_ID_TEXT_CHARS).collect();
        self.id_texts.entry(id).or_insert(text);
    }

    /// Sorts everything by id, then by number, so that the order of rows does not matter.
    fn sort_by_id(&mut self) {
        self.rows.sort_unstable_by(|one, other| {
            let by_number = || one.primary.total_cmp(&other.primary);
            one.id_and_ok.cmp(&other.id_and_ok).then_with(by_number)
        });
        for metric in &mut self.metrics {
            metric.sort_unstable_by(|one, other| {
                one.0.cmp(&other.0).then_with(|| one.1.total_cmp(&other.1))
            });
        }
        self.missing.sort_unstable();
        self.invariants.iter_mut().for_each(|column| column.sort_unstable());
    }
}

/// Computes the fingerprint of some cells of a row.
fn fingerprint_cells(row: SweepRow<'_>, id: Option<RowId>, columns: &[Option<usize>]) -> u64 {
    let mut hasher = DefaultHasher::new();
    if let Some(id) = id {
        hasher.write_i64(id.with_bit(false));
    }
    for column in columns {
        let number = column.and_then(|at| row.cell_number(at));
        let text = if number.is_some() { None } else { column.and_then(|at| row.cell_text(at)) };
        cell::hash_cell(&mut hasher, text.as_deref(), number);
    }
    hasher.finish()
}

/// Computes the fingerprint of a row's id, and of these columns' text where there is no number.
fn fingerprint_shape(row: SweepRow<'_>, id: RowId, columns: &[Option<usize>]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write_i64(id.with_bit(false));
    for (column, at) in columns.iter().enumerate() {
        if at.is_some_and(|at| row.cell_number(at).is_some()) {
            continue;
        }
        hasher.write_usize(column);
        cell::hash_cell(&mut hasher, at.and_then(|at| row.cell_text(at)).as_deref(), None);
    }
    hasher.finish()
}

/// Tally of the rows so far.
pub(super) struct RowTally {
    layout: ColumnLayout,
    selection: RowSelection,
    picked: SelectedFigures,
    rows_read: u32,
    ragged_rows: u32,
    /// Lines on which the first ragged rows begin.
    ragged_lines: Vec<u64>,
}

impl RowTally {
    pub(super) fn new(
        index: &BTreeMap<String, usize>,
        policy: &ScorePolicy,
        limit: Option<u32>,
    ) -> Self {
        let layout = ColumnLayout::new(index, policy);
        let selection = limit.map_or(RowSelection::All, RowSelection::First);
        let picked = SelectedFigures::new(&layout);
        let (rows_read, ragged_rows, ragged_lines) = (0, 0, Vec::new());
        Self { layout, selection, picked, rows_read, ragged_rows, ragged_lines }
    }

    pub(super) const fn rows_read(&self) -> u32 {
        self.rows_read
    }

    pub(super) fn add_row(&mut self, row: SweepRow<'_>) {
        let number = self.rows_read;
        self.rows_read = number.saturating_add(1);
        let ragged = row.cell_count() != self.layout.columns;
        self.ragged_rows = self.ragged_rows.saturating_add(u32::from(ragged));
        if ragged && self.ragged_lines.len() < MAX_NAMED_ITEMS {
            self.ragged_lines.push(row.line());
        }
        let id_cell = self.layout.id.and_then(|at| row.cell_text(at));
        let id_number = id_cell.as_deref().and_then(cell::parse_id_number);
        if self.is_selected(id_number) {
            let has_ids = self.layout.id.is_some();
            let id = if has_ids {
                cell::row_id(id_cell.as_deref(), id_number)
            } else {
                RowId::from_row_number(number)
            };
            self.picked.add_row(row, id, &self.layout);
            if has_ids {
                self.picked.keep_id_text(id, id_cell.as_deref());
            }
        }
    }

    /// Returns true if the next row is selected. The first one selected by id discards all before.
    fn is_selected(&mut self, id: Option<f64>) -> bool {
        let below = |limit: u32| id.is_some_and(|id| id.trunc() < f64::from(limit));
        match self.selection {
            RowSelection::All => true,
            RowSelection::First(limit) if below(limit) => {
                self.selection = RowSelection::ById(limit);
                self.picked = SelectedFigures::new(&self.layout);
                true
            }
            RowSelection::First(limit) => saturating_u32(self.picked.rows.len()) < limit,
            RowSelection::ById(limit) => below(limit),
        }
    }

    /// Returns the selected figures, the kind of selection, the number of ragged rows and the lines
    /// of the first of these.
    pub(super) fn finish(mut self) -> (SelectedFigures, RowSelection, u32, Vec<u64>) {
        self.picked.sort_by_id();
        (self.picked, self.selection, self.ragged_rows, self.ragged_lines)
    }
}
