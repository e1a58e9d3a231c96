//! Finds `.env` files and selects the variables that are used from them.
//!
//! Variables of the environment take precedence. The files are for keys and other secrets; settings
//! of treebeam come from the process's environment alone.

use crate::config::Config;
use crate::config::config_file::find_toplevel;
use crate::config::config_key::VARIABLE_PREFIX;
use crate::failure::CommandFailure;
use std::path::Path;
use treebeam_store::env_file::{EnvVariables, Secret};

const DOTENV_FILE_NAME: &str = ".env";

/// Variables of the `.env` files of a repository and its configuration.
#[derive(Debug, Default)]
pub(crate) struct Dotenv(EnvVariables);

/// A variable of a `.env` file, without its value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DotenvVariable<'a> {
    pub(crate) name: &'a str,
    pub(crate) file: &'a str,
    use_: VariableUse,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VariableUse {
    Used,
    /// Not used: the environment sets it already.
    Overridden,
    /// Not used: its name is that of a setting, which `.env` files cannot set.
    Setting,
}

impl Dotenv {
    /// Reads the files: first in the repository's root, then beside the configuration file.
    pub(crate) fn load(here: &Path, config: &Config) -> Result<Self, CommandFailure> {
        let mut variables = EnvVariables::default();
        let here = here.canonicalize().unwrap_or_else(|_| here.to_owned());
        let top = find_toplevel(&here).map(Path::to_owned);
        if let Some(top) = &top {
            variables.add_file(&top.join(DOTENV_FILE_NAME), DOTENV_FILE_NAME)?;
        }
        let file = config.file().and_then(|file| file.path().canonicalize().ok());
        let beside = file.as_deref().and_then(Path::parent);
        if let Some(folder) = beside.filter(|folder| top.as_deref() != Some(*folder)) {
            let path = folder.join(DOTENV_FILE_NAME);
            let below = top.as_deref().and_then(|top| path.strip_prefix(top).ok());
            variables.add_file(&path, &below.unwrap_or(&path).display().to_string())?;
        }
        Ok(Self(variables))
    }

    /// Returns the value of a variable, and its file unless it is from the environment. An empty
    /// value counts as unset.
    pub(crate) fn find_secret(&self, name: &str) -> Option<(Secret, Option<String>)> {
        let own = std::env::var(name).ok().map(|value| (Secret::new(value), None));
        let read = || self.0.get(name).map(|found| (found.value.clone(), Some(found.file.clone())));
        own.or_else(read).filter(|(value, _)| !value.reveal().trim().is_empty())
    }

    /// Iterates over all variables of the files, by name.
    pub(crate) fn iter_variables(&self) -> impl Iterator<Item = DotenvVariable<'_>> {
        self.0.iter().map(|(name, variable)| {
            let use_ = if name.starts_with(VARIABLE_PREFIX) {
                VariableUse::Setting
            } else if std::env::var_os(name).is_some() {
                VariableUse::Overridden
            } else {
                VariableUse::Used
            };
            DotenvVariable { name, file: &variable.file, use_ }
        })
    }
}

impl DotenvVariable<'_> {
    /// Returns true if the value from the file is used.
    pub(crate) fn is_used(&self) -> bool {
        self.use_ == VariableUse::Used
    }

    /// Returns true if the name of the variable is that of a setting.
    pub(crate) fn is_setting(&self) -> bool {
        self.use_ == VariableUse::Setting
    }

    /// Describes the file of the variable, and why it is not used if that is so.
    pub(crate) fn describe_source(&self) -> String {
        let why = match self.use_ {
            VariableUse::Used => "",
            VariableUse::Overridden => ": the environment's own counts",
            VariableUse::Setting => ": not read as a setting",
        };
        format!("{}{why}", self.file)
    }
}
