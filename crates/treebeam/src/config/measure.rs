//! The keys that say how a code state is measured: commands, where they run, and what they find. They stand at the top of
//! the configuration; `"none"` takes back what a lower layer says.

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error as _};
use serde_json::Value;
use treebeam_core::measure::{CommandLine, Measure, UserPath, Variable, Word, WorktreePath};

/// A value, or none where there is to be none.
#[derive(Clone, Debug)]
pub(crate) enum OrNone<T> {
    None,
    Some(T),
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for OrNone<T> {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(reader)?;
        if value == "none" {
            return Ok(Self::None);
        }
        T::deserialize(value).map(Self::Some).map_err(D::Error::custom)
    }
}

impl<T: Clone> OrNone<T> {
    /// What was said, or what was before.
    fn over(said: Option<&Self>, before: Option<T>) -> Option<T> {
        match said {
            None => before,
            Some(Self::None) => None,
            Some(Self::Some(value)) => Some(value.clone()),
        }
    }
}

/// The values of these keys.
#[derive(Debug)]
pub(crate) struct Said<'a> {
    pub(crate) setup_command: Option<&'a OrNone<CommandLine>>,
    pub(crate) test_command: Option<&'a OrNone<CommandLine>>,
    pub(crate) test_cwd: Option<&'a OrNone<WorktreePath>>,
    pub(crate) sweep_command: Option<&'a OrNone<CommandLine>>,
    pub(crate) sweep_cwd: Option<&'a OrNone<WorktreePath>>,
    pub(crate) sweep_config_limit_flag: Option<&'a OrNone<Word>>,
    pub(crate) results_csv: Option<&'a OrNone<WorktreePath>>,
    pub(crate) baseline_csv: Option<&'a OrNone<UserPath>>,
    pub(crate) pass_env: Option<&'a Vec<Variable>>,
    pub(crate) inputs: Option<&'a Vec<WorktreePath>>,
}

impl Said<'_> {
    /// What they make of how a code state is measured.
    pub(crate) fn over(&self, before: Measure) -> Measure {
        Measure {
            setup_command: OrNone::over(self.setup_command, before.setup_command),
            test_command: OrNone::over(self.test_command, before.test_command),
            test_cwd: OrNone::over(self.test_cwd, before.test_cwd),
            sweep_command: OrNone::over(self.sweep_command, before.sweep_command),
            sweep_cwd: OrNone::over(self.sweep_cwd, before.sweep_cwd),
            sweep_config_limit_flag: OrNone::over(
                self.sweep_config_limit_flag,
                before.sweep_config_limit_flag,
            ),
            results_csv: OrNone::over(self.results_csv, before.results_csv),
            baseline_csv: OrNone::over(self.baseline_csv, before.baseline_csv),
            root_baseline_csv: before.root_baseline_csv,
            pass_env: self.pass_env.cloned().unwrap_or(before.pass_env),
            inputs: self.inputs.cloned().unwrap_or(before.inputs),
        }
    }
}
