//! The configuration file `treebeam.toml`: which keys there are, and what they make of the built-in values. Flags are
//! above it, see `settings`.
//!
//! # Layout
//! One file per table: [`score`] is `[score]`, [`gate`] is `[gate]`; a new table is a field of [`Tables`] and a file here.
//! `file` finds and reads a file, and says where it is wrong; `number` are numbers that have bounds.

pub(crate) mod file;
pub(crate) mod gate;
mod number;
pub(crate) mod score;

use file::{Origin, Wrong};
use gate::GateTable;
use score::ScoreTable;
use serde::Deserialize;
use treebeam_core::policy::Meaning;

/// A configuration and where it was found; the built-in values where none was.
#[derive(Debug, Default)]
pub(crate) struct Config {
    pub(crate) tables: Tables,
    pub(crate) origin: Option<Origin>,
}

/// All that a configuration file can say.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub(crate) struct Tables {
    pub(crate) score: ScoreTable,
    pub(crate) gate: GateTable,
}

impl Config {
    /// What the file makes of a meaning.
    pub(crate) fn meaning(&self, before: Meaning) -> Result<Meaning, Wrong> {
        let score = self.tables.score.policy().map_err(|error| self.wrong("score", error))?;
        let gate = self.tables.gate.policy(&before.gate);
        Ok(Meaning { score, gate, ..before })
    }

    /// The first key that the file sets and a run began with another value of: the key, the run's value and the file's.
    pub(crate) fn changed(&self, run: &Meaning) -> Result<Option<[String; 3]>, Wrong> {
        let asked = self.meaning(run.clone())?;
        let score = self.tables.score.compared(&run.score, &asked.score);
        let gate = self.tables.gate.compared(&run.gate, &asked.gate);
        let mut rows = score.into_iter().chain(gate);
        Ok(rows.find(|[_, run, asked]| run != asked))
    }

    fn wrong(&self, table: &str, error: score::Contradiction) -> Wrong {
        let key = format!("{table}.{}", error.key);
        let origin = self.origin.as_ref();
        Wrong { place: origin.map(|origin| origin.place_of(&key)), what: error.what }
    }
}

#[cfg(test)]
mod tests;
