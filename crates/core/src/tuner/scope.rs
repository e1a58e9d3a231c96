//! Which files the tuner looks at: those that the user names, or else the usual ones, and never what is protected.

use super::kind::{FileKind, is_plain, is_usual};
use crate::policy;
use crate::protect::{BadGlob, Protected};

/// Before the protected paths in a generator's prompt, on one line.
const IN_A_LINE: &str = "- do not touch: ";
/// What heads them in a coder's, one below the other.
const IN_A_LIST: &str = "=== DO NOT TOUCH ===";

/// The files that may be looked at.
#[derive(Clone, Debug)]
pub struct Scope {
    named: Option<Protected>,
    protected: Protected,
}

impl Scope {
    /// Files that match one of these globs, or the usual ones where there are none, but for what a prompt protects.
    ///
    /// # Errors
    /// When there is something that is no glob.
    pub fn new(files: &[String], prompt: &str) -> Result<Self, BadGlob> {
        let named = if files.is_empty() { None } else { Some(Protected::new(files)?) };
        Ok(Self { named, protected: Protected::new(&policy::protect(&protected(prompt)))? })
    }

    /// Whether a file is looked at.
    #[must_use]
    pub fn has(&self, path: &str) -> bool {
        let wanted = self.named.as_ref().map_or_else(|| is_usual(path), |named| named.covers(path));
        wanted && self.may_change(path)
    }

    /// Whether a file that an idea names may be changed.
    #[must_use]
    pub fn may_change(&self, path: &str) -> bool {
        is_plain(path) && FileKind::of(path).is_some() && !self.protected.covers(path)
    }
}

/// The globs that a prompt says are not to be touched.
fn protected(prompt: &str) -> Vec<String> {
    let mut globs = Vec::new();
    let mut listed = false;
    for line in prompt.lines() {
        if line.starts_with("=== ") {
            listed = line == IN_A_LIST;
        } else if let Some(all) = line.strip_prefix(IN_A_LINE) {
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
            let scope = Scope::new(&[], prompt)?;
            for path in ["a.py", "src/a.rs"] {
                assert!(scope.has(path), "{path}");
            }
            for path in ["eval/a.py", "x.lock.json", "treebeam.toml", ".treebeam/a.py", "a.md"] {
                assert!(!scope.has(path) && !scope.may_change(path), "{path}");
            }
            assert!(!scope.has("tests/a.py") && scope.may_change("tests/a.py"));
        }
        let scope = Scope::new(&["conf/*.toml".to_owned(), "tests/**".to_owned()], line)?;
        assert!(scope.has("conf/a.toml") && scope.has("tests/a.py"));
        assert!(!scope.has("a.py") && !scope.has("eval/a.py"));
        assert!(Scope::new(&["a[".to_owned()], "").is_err());
        Ok(())
    }
}
