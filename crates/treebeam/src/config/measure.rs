//! Defines the top-level keys for measuring a code state: commands, their folders, and results.
//!
//! `"none"` unsets the value of a lower layer.

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error as _};
use serde_json::Value;
use treebeam_core::measure::{
    CommandLine, CommandWord, MeasureSettings, UserPath, VariableName, WorktreePath,
};

/// A value, or `none` to unset it.
#[derive(Clone, Debug)]
pub(crate) enum ValueOrNone<T> {
    None,
    Some(T),
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for ValueOrNone<T> {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(reader)?;
        if value == "none" {
            return Ok(Self::None);
        }
        T::deserialize(value).map(Self::Some).map_err(D::Error::custom)
    }
}

impl<T: Clone> ValueOrNone<T> {
    /// Returns the configured value, or the earlier one if nothing is configured.
    fn resolve_over(said: Option<&Self>, before: Option<T>) -> Option<T> {
        match said {
            None => before,
            Some(Self::None) => None,
            Some(Self::Some(value)) => Some(value.clone()),
        }
    }
}

/// Configured values of the keys for measuring a code state.
#[derive(Debug)]
pub(crate) struct MeasureOverrides<'a> {
    pub(crate) setup_command: Option<&'a ValueOrNone<CommandLine>>,
    pub(crate) test_command: Option<&'a ValueOrNone<CommandLine>>,
    pub(crate) test_cwd: Option<&'a ValueOrNone<WorktreePath>>,
    pub(crate) sweep_command: Option<&'a ValueOrNone<CommandLine>>,
    pub(crate) sweep_cwd: Option<&'a ValueOrNone<WorktreePath>>,
    pub(crate) sweep_config_limit_flag: Option<&'a ValueOrNone<CommandWord>>,
    pub(crate) results_csv: Option<&'a ValueOrNone<WorktreePath>>,
    pub(crate) baseline_csv: Option<&'a ValueOrNone<UserPath>>,
    pub(crate) pass_env: Option<&'a Vec<VariableName>>,
    pub(crate) inputs: Option<&'a Vec<WorktreePath>>,
}

impl MeasureOverrides<'_> {
    /// Returns the measure settings with the configured values applied.
    pub(crate) fn apply_to(&self, before: MeasureSettings) -> MeasureSettings {
        MeasureSettings {
            setup_command: ValueOrNone::resolve_over(self.setup_command, before.setup_command),
            test_command: ValueOrNone::resolve_over(self.test_command, before.test_command),
            test_cwd: ValueOrNone::resolve_over(self.test_cwd, before.test_cwd),
            sweep_command: ValueOrNone::resolve_over(self.sweep_command, before.sweep_command),
            sweep_cwd: ValueOrNone::resolve_over(self.sweep_cwd, before.sweep_cwd),
            sweep_config_limit_flag: ValueOrNone::resolve_over(
                self.sweep_config_limit_flag,
                before.sweep_config_limit_flag,
            ),
            results_csv: ValueOrNone::resolve_over(self.results_csv, before.results_csv),
            baseline_csv: ValueOrNone::resolve_over(self.baseline_csv, before.baseline_csv),
            root_baseline_csv: before.root_baseline_csv,
            pass_env: self.pass_env.cloned().unwrap_or(before.pass_env),
            inputs: self.inputs.cloned().unwrap_or(before.inputs),
        }
    }
}
