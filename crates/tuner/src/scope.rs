//! Files that the tuner searches: those the user names, or the usual ones, never protected ones.

use super::file_kind::{FileKind, is_plain_path, is_usual_path};
use treebeam_core::policy;
use treebeam_core::protect::{BadGlob, ProtectedPaths};

/// Start of the line of protected paths in a generator's prompt.
const PROTECTED_LINE_PREFIX: &str = "- do not touch: ";
/// Heading of the list of protected paths in a coder's prompt.
const PROTECTED_LIST_HEADING: &str = "=== DO NOT TOUCH ===";

/// Files that the tuner may search.
#[derive(Clone, Debug)]
pub struct TunerScope {
    named: Option<ProtectedPaths>,
    protected: ProtectedPaths,
}

impl TunerScope {
    /// Creates the scope of these globs, or of the usual files without any, minus the paths that a
    /// prompt protects.
    ///
    /// # Errors
    /// If something is not a glob.
    pub fn new(files: &[String], prompt: &str) -> Result<Self, BadGlob> {
        let named = if files.is_empty() { None } else { Some(ProtectedPaths::new(files)?) };
        Ok(Self {
            named,
            protected: ProtectedPaths::new(&policy::with_own_globs(&parse_protected_globs(
                prompt,
            )))?,
        })
    }

    /// Returns true if a file is searched.
    #[must_use]
    pub fn contains(&self, path: &str) -> bool {
        let wanted =
            self.named.as_ref().map_or_else(|| is_usual_path(path), |named| named.covers(path));
        wanted && self.can_change(path)
    }

    /// Returns true if a file that an idea names may be changed.
    #[must_use]
    pub fn can_change(&self, path: &str) -> bool {
        is_plain_path(path) && FileKind::from_path(path).is_some() && !self.protected.covers(path)
    }
}

/// Parses the globs that a prompt protects.
fn parse_protected_globs(prompt: &str) -> Vec<String> {
    let mut globs = Vec::new();
    let mut listed = false;
    for line in prompt.lines() {
        if line.starts_with("=== ") {
            listed = line == PROTECTED_LIST_HEADING;
        } else if let Some(all) = line.strip_prefix(PROTECTED_LINE_PREFIX) {
            globs.extend(all.split(", ").map(str::to_owned));
        } else if let Some(glob) = line.strip_prefix("- ").filter(|_| listed) {
            globs.push(glob.to_owned());
        }
    }
    globs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_protected_is_left_alone() -> Result<(), BadGlob> {
        let line = "Propose 2\n=== CONSTRAINTS ===\n- do not touch: eval/**, *.lock.json\n";
        let list = "=== IDEA ===\n- x\n\n=== DO NOT TOUCH ===\n- eval/**\n- *.lock.json\n\n=== MORE ===\n- a.py\n";
        for prompt in [line, list] {
            let scope = TunerScope::new(&[], prompt)?;
            for path in ["a.py", "src/a.rs"] {
                assert!(scope.contains(path), "{path}");
            }
            for path in ["eval/a.py", "x.lock.json", "treebeam.toml", ".treebeam/a.py", "a.md"] {
                assert!(!scope.contains(path) && !scope.can_change(path), "{path}");
            }
            assert!(!scope.contains("tests/a.py") && scope.can_change("tests/a.py"));
        }
        let scope = TunerScope::new(&["conf/*.toml".to_owned(), "tests/**".to_owned()], line)?;
        assert!(scope.contains("conf/a.toml") && scope.contains("tests/a.py"));
        assert!(!scope.contains("a.py") && !scope.contains("eval/a.py"));
        assert!(TunerScope::new(&["a[".to_owned()], "").is_err());
        Ok(())
    }
}
