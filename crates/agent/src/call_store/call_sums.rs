//! Sums over the files of recorded calls: spending on answers, and spending without an answer.

use super::{CallAmount, list_file_names, read_call_file};
use serde::Deserialize;
use std::io::{self, Read as _};
use std::path::Path;
use treebeam_store::record_file::{self, RecordKind};

/// Length of the head of a file that holds its amount.
const CALL_HEAD_BYTES: usize = 256;

/// Sums of the amounts in the files of calls.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CallSums {
    pub(super) answered: CallAmount,
    pub(super) unanswered: CallAmount,
}

impl CallSums {
    /// Adds the files of a folder. A reservation whose answer exists is already in that answer.
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

/// Reads the amount in a file: its first field, so that the rest, maybe long, need not be read.
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
