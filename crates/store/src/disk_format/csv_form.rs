//! Serialised form of [`ResultsForm`], the shape of a candidate's CSV, in the manifest. Later
//! fields are written only if not empty, so that an older run's manifest is rewritten unchanged.

use serde::{Deserialize, Serialize};
use treebeam_core::evidence::{LostNumbers, ResultsForm};

/// A [`ResultsForm`], as it is written to the manifest.
#[derive(Serialize, Deserialize)]
pub(super) struct FormLine {
    ragged_rows: u32,
    duplicate_ids: u32,
    #[serde(default)]
    unknown_ids: u32,
    changed_invariants: Vec<String>,
    #[serde(default)]
    lost_numbers: Vec<LostNumbers>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    missing_columns: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ragged_lines: Vec<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    repeated_ids: Vec<String>,
}

impl From<&ResultsForm> for FormLine {
    fn from(form: &ResultsForm) -> Self {
        let form = form.clone();
        Self {
            ragged_rows: form.ragged_rows,
            duplicate_ids: form.duplicate_ids,
            unknown_ids: form.unknown_ids,
            changed_invariants: form.changed_invariants,
            lost_numbers: form.lost_numbers,
            missing_columns: form.missing_columns,
            ragged_lines: form.ragged_lines,
            repeated_ids: form.repeated_ids,
        }
    }
}

impl From<FormLine> for ResultsForm {
    fn from(line: FormLine) -> Self {
        Self {
            ragged_rows: line.ragged_rows,
            duplicate_ids: line.duplicate_ids,
            unknown_ids: line.unknown_ids,
            changed_invariants: line.changed_invariants,
            lost_numbers: line.lost_numbers,
            missing_columns: line.missing_columns,
            ragged_lines: line.ragged_lines,
            repeated_ids: line.repeated_ids,
        }
    }
}
