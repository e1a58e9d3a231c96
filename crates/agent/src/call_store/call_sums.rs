//! Sums over the files of recorded calls: what was answered, and what was spent without an answer.

use super::{CallAmount, list_file_names, read_call_file};
use serde::Deserialize;
use std::io::{self, Read as _};
use std::path::Path;
use treebeam_store::record_file::{self, RecordKind};

/// How much of a file has what it cost.
const CALL_HEAD_BYTES: usize = 256;

/// Sums of what the files of calls say was spent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CallSums {
    pub(super) answered: CallAmount,
    pub(super) unanswered: CallAmount,
}

impl CallSums {
    /// Puts the files of a folder on it. A reservation whose answer is there was for that answer.
    pub(super) fn add_folder(&mut self, folder: &Path) -> io::Result<()> {
        for name in list_file_names(folder)? {
            let Some((key, kind)) = name.split_once('.') else { continue };
            let answered = || folder.join(format!("{key}.json")).exists();
            let sum = match kind.split_once('-').map_or(kind, |(kind, _)| kind) {
                "json" | "old" => &mut self.answered,
                "lost" => &mut self.unanswered,
                "pending" if !answered() => &mut self.unanswered,
                _ => continue,
            };
            if let Some(amount) = read_amount(&folder.join(&name)) {
                *sum += amount;
            }
        }
        Ok(())
    }
}

/// Reads what a file says was spent. Its first field says so: the rest, which may be long, need not be read.
pub(super) fn read_amount(file: &Path) -> Option<CallAmount> {
    #[derive(Deserialize)]
    struct AmountField {
        amount: CallAmount,
    }
    let mut head = Vec::with_capacity(CALL_HEAD_BYTES);
    let opened = record_file::open_record(file, RecordKind::RecordedCall).ok()?;
    opened.take(CALL_HEAD_BYTES as u64).read_to_end(&mut head).ok()?;
    let first = head.strip_prefix(br#"{"amount":"#).and_then(|rest| {
        serde_json::Deserializer::from_slice(rest).into_iter::<CallAmount>().next()?.ok()
    });
    first.or_else(|| {
        Some(serde_json::from_slice::<AmountField>(&read_call_file(file).ok()?).ok()?.amount)
    })
}
