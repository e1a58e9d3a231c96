//! The configuration file `treebeam.toml`: which keys there are, and what they make of the built-in values. Flags are
//! above it, see `settings`.
//!
//! # Layout
//! One file per table: [`score`] is `[score]`, [`gate`] is `[gate]`; a new table is a field of [`Tables`] and a file here.
//! `file` finds and reads a file, and says where it is wrong; `words` says it for people; `table` reads tables, and
//! `number` numbers that have bounds.

pub(crate) mod file;
pub(crate) mod gate;
mod number;
pub(crate) mod score;
mod table;
mod words;

use file::{Origin, Place, Wrong};
use gate::GateTable;
use score::{Contradiction, Primary, Said, ScoreTable};
use serde::Deserialize;
use treebeam_core::policy::Meaning;

/// A configuration and where it was found; the built-in values where none was.
#[derive(Debug, Default)]
pub(crate) struct Config {
    pub(crate) tables: Tables,
    pub(crate) origin: Option<Origin>,
    /// `--primary`, which chooses among the metrics of the tables.
    pub(crate) primary: Option<Primary>,
}

/// All that a configuration file can say.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Tables {
    #[serde(deserialize_with = "table::read")]
    pub(crate) score: ScoreTable,
    #[serde(deserialize_with = "table::read")]
    pub(crate) gate: GateTable,
}

/// A key that a file sets: what a run began with, and what the file asks for.
#[derive(Debug)]
pub(crate) struct Compared {
    pub(crate) key: String,
    pub(crate) run: String,
    pub(crate) asked: String,
}

impl Config {
    /// What the file makes of a meaning.
    pub(crate) fn meaning(&self, before: Meaning) -> Result<Meaning, Wrong> {
        let score = self.tables.score.policy(self.primary.as_ref());
        let score = score.map_err(|error| self.wrong("score", error))?;
        let gate = self.tables.gate.policy(&before.gate);
        Ok(Meaning { score, gate, ..before })
    }

    /// The first key that the file sets and a run began with another value of.
    pub(crate) fn changed(&self, run: &Meaning) -> Result<Option<Compared>, Wrong> {
        let asked = self.meaning(run.clone())?;
        let score = self.tables.score.compared(&run.score, &asked.score);
        let gate = self.tables.gate.compared(&run.gate, &asked.gate);
        let mut rows = score.into_iter().chain(gate);
        Ok(rows.find(|row| row.run != row.asked))
    }

    fn wrong(&self, table: &str, error: Contradiction) -> Wrong {
        let place = match error.by {
            Said::Flag(flag) => Some(Place::Flag(flag)),
            Said::Key(key) => {
                let key = format!("{table}.{key}");
                self.origin.as_ref().map(|origin| origin.place_of(&key))
            }
        };
        Wrong { place, what: error.what }
    }
}

/// Of some keys those that are set, by their full names; each with the run's value and with the one asked for.
fn set_keys<const N: usize>(table: &str, keys: [(bool, &str, [String; 2]); N]) -> Vec<Compared> {
    let set = keys.into_iter().filter(|(set, ..)| *set);
    set.map(|(_, key, [run, asked])| Compared { key: format!("{table}.{key}"), run, asked })
        .collect()
}

#[cfg(test)]
mod tests;
