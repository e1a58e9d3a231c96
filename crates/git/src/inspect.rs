//! Inspects the user's repository for `treebeam doctor`: version, tracked files, filters. It only
//! reads, and nothing that opening a repository needs is here.

use super::UserRepo;
use std::collections::BTreeMap;
use treebeam_process::ChildInput;
use treebeam_run::port::PortError;

/// Maximum size of a list of files, in bytes.
const MAX_FILE_LIST_BYTES: usize = 256 << 20;
/// Values of git's `filter` attribute that mean no filter: unspecified, `-filter`, or no name.
const NO_FILTER: [&str; 3] = ["unspecified", "unset", "set"];

impl UserRepo {
    /// Returns git's version.
    ///
    /// # Errors
    /// When git cannot be run.
    pub fn git_version(&self) -> Result<String, PortError> {
        let answer = self.git.user_call(&self.toplevel, &["version"]).run_checked()?;
        Ok(answer.kept_text().trim().trim_start_matches("git version ").to_owned())
    }

    /// Returns the tracked paths; a very long list is truncated.
    ///
    /// # Errors
    /// When git fails.
    pub fn tracked_paths(&self) -> Result<Vec<String>, PortError> {
        let call = self
            .git
            .user_call(&self.toplevel, &["ls-files", "-z"])
            .keep_stdout(MAX_FILE_LIST_BYTES);
        let text = call.run_checked()?.kept_text();
        Ok(text.split_terminator('\0').map(str::to_owned).collect())
    }

    /// Returns the paths among `paths` that pass a filter, by its name, according to the attributes
    /// of the checked out commit.
    ///
    /// # Errors
    /// When git fails.
    pub fn filtered_paths(
        &self,
        paths: &[String],
    ) -> Result<BTreeMap<String, Vec<String>>, PortError> {
        let question = ["check-attr", "--source=HEAD", "-z", "--stdin", "filter"];
        let list: String = paths.iter().flat_map(|path| [path.as_str(), "\0"]).collect();
        let call = self.git.user_call(&self.toplevel, &question);
        let call = call
            .input(ChildInput::from_bytes(list.into_bytes()))
            .keep_stdout(2 * MAX_FILE_LIST_BYTES);
        let text = call.run_checked()?.kept_text();
        let cells: Vec<&str> = text.split_terminator('\0').collect();
        let mut filtered: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for cells in cells.chunks_exact(3) {
            if let [path, _, filter] = cells
                && !NO_FILTER.contains(filter)
            {
                filtered.entry((*filter).to_owned()).or_default().push((*path).to_owned());
            }
        }
        Ok(filtered)
    }
}
