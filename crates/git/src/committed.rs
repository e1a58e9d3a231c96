//! Compares a text with a file of the checked out commit, without reading from the checkout.

use super::call::GitTarget;
use super::{UserRepo, paths};
use treebeam_run::port::PortError;

/// Bytes read beyond the length of the text: line ends in the commit may be two bytes long.
const MAX_LINE_END_BYTES: usize = 1 << 20;

impl UserRepo {
    /// Returns true if the checked out commit has a regular file with this path, relative to the
    /// top of the checkout, and this text. Both kinds of line ends are equal, because a checkout
    /// may change them.
    ///
    /// # Errors
    /// When git fails.
    pub fn has_committed(&self, file: &str, text: &str) -> Result<bool, PortError> {
        let target = GitTarget {
            git_dir: paths::git_path(&self.common_dir.to_string_lossy()),
            work_tree: paths::git_path(&self.toplevel.to_string_lossy()),
        };
        let question = ["ls-tree", "-z", "--full-tree", self.head.as_str(), "--", file];
        let entry =
            self.git.sealed_call(&target, &question).with_subject(file).run_checked()?.kept_text();
        let Some(object) = parse_regular_file(&entry, file) else { return Ok(false) };
        let call = self.git.sealed_call(&target, &["cat-file", "blob", object]).with_subject(file);
        let answer =
            call.keep_stdout(text.len().saturating_add(MAX_LINE_END_BYTES)).run_checked()?;
        let lines = |text: &str| text.replace("\r\n", "\n");
        Ok(std::str::from_utf8(&answer.stdout.bytes).is_ok_and(|held| lines(held) == lines(text)))
    }
}

/// Returns the object id of a regular file from `100644 blob 1234…\tpath\0`.
fn parse_regular_file<'a>(entry: &'a str, file: &str) -> Option<&'a str> {
    let (head, path) = entry.strip_suffix('\0')?.split_once('\t')?;
    let mut words = head.split(' ');
    let is_file = matches!(words.next()?, "100644" | "100755") && words.next()? == "blob";
    words.next().filter(|_| is_file && path == file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_regular_file_of_this_name_counts() {
        let object = |entry: &str| parse_regular_file(entry, "a b").map(str::to_owned);
        assert_eq!(object("100644 blob 12ab\ta b\0").as_deref(), Some("12ab"));
        assert_eq!(object("100755 blob 12ab\ta b\0").as_deref(), Some("12ab"));
        for other in [
            "",
            "120000 blob 12ab\ta b\0",
            "040000 tree 12ab\ta b\0",
            "100644 blob 12ab\ta\0",
            "100644 blob 12ab\ta b\x00100644 blob 12ab\tc\0",
        ] {
            assert_eq!(object(other), None, "{other:?}");
        }
    }
}
