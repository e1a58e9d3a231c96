//! Checks of a candidate's changes: protected paths, links and git's control files. Paths are
//! compared as on file systems that fold case and normalise Unicode, whatever this machine's does.

mod imports;
mod names;

pub use imports::{ProtectedImports, is_python_module};
pub use names::folded_path;

use globset::{Glob, GlobSet, GlobSetBuilder};
use names::{controls_git, refused_new_path};

/// Path that a candidate changes, as in git's index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathChange {
    /// Path relative to the repository, with `/` between its parts.
    pub path: String,
    /// True if the parent commit has nothing at this path.
    pub is_new: bool,
    /// Kind of the path after the change.
    pub to: PathKind,
}

/// Kind of a path in the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathKind {
    /// A file, executable or not.
    File,
    /// A symbolic link.
    Symlink,
    /// A submodule.
    Gitlink,
    /// Deleted: no path any more.
    Deleted,
}

/// Error for a glob that does not parse, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`protect` has a pattern that is no glob: {0}")]
pub struct BadGlob(String);

/// Set of paths that no candidate may change.
#[derive(Clone, Debug)]
pub struct ProtectedPaths {
    globs: GlobSet,
    /// Literal prefix of each glob, with which all its matches begin.
    beginnings: Vec<String>,
}

impl ProtectedPaths {
    /// Parses the globs.
    ///
    /// # Errors
    /// If one of them is not a glob.
    pub fn new(globs: &[String]) -> Result<Self, BadGlob> {
        let mut set = GlobSetBuilder::new();
        let beginnings = globs.iter().map(|glob| folded_path(literal_prefix(glob))).collect();
        for glob in globs {
            let as_written = Glob::new(glob).map_err(|error| BadGlob(error.to_string()))?;
            // Folding may break a valid glob, such as `[Z-a]`.
            set.add(Glob::new(&folded_path(glob)).unwrap_or(as_written));
        }
        let globs = set.build().map_err(|error| BadGlob(error.to_string()))?;
        Ok(Self { globs, beginnings })
    }

    /// Describes the violations among the changes, one line each; empty if all are allowed.
    #[must_use]
    pub fn list_violations(&self, changes: &[PathChange]) -> Vec<String> {
        changes.iter().filter_map(|change| self.find_violation(change)).collect()
    }

    /// Returns true if one of the globs matches the path.
    #[must_use]
    pub fn covers(&self, path: &str) -> bool {
        self.globs.is_match(folded_path(path))
    }

    /// Returns true if one of the globs could match a path below the folder.
    #[must_use]
    pub fn can_cover_below(&self, folder: &str) -> bool {
        let folder = format!("{}/", folded_path(folder));
        let may = |it: &String| it.starts_with(&folder) || folder.starts_with(it.as_str());
        self.beginnings.iter().any(may)
    }

    fn find_violation(&self, change: &PathChange) -> Option<String> {
        let path = &change.path;
        match change.to {
            PathKind::Symlink => Some(format!("`{path}` becomes a symbolic link")),
            PathKind::Gitlink => Some(format!("`{path}` becomes a submodule")),
            PathKind::File | PathKind::Deleted if controls_git(path) => {
                Some(format!("`{path}` controls git"))
            }
            PathKind::File | PathKind::Deleted if self.covers(path) => {
                Some(format!("`{path}` is protected"))
            }
            PathKind::File if change.is_new => {
                refused_new_path(path).map(|why| format!("`{path}` may not be added: {why}"))
            }
            PathKind::File | PathKind::Deleted => None,
        }
    }
}

/// Returns the part of a glob before its first special character.
fn literal_prefix(glob: &str) -> &str {
    let end = glob.find(['*', '?', '[', '{', '\\']).unwrap_or(glob.len());
    glob.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_that_no_glob_leads_to_are_known() -> Result<(), BadGlob> {
        let may = |glob: &str, folder: &str| {
            ProtectedPaths::new(&[glob.to_owned()]).map(|it| it.can_cover_below(folder))
        };
        for (glob, folder, expected) in [
            ("data/**", "data", true),
            ("data/**", "data/raw", true),
            ("data/raw/*.csv", "data", true),
            ("data/raw/*.csv", "data/new", false),
            ("data/**", "database", false),
            ("dat?/**", "data", true),
            ("{data,more}/**", "data", true),
            ("**/*.csv", ".venv", true),
            ("eval/**", ".venv", false),
            ("data/raw.csv", "more", false),
            ("data\\*/x", "data*", true),
        ] {
            assert_eq!(may(glob, folder)?, expected, "{glob} {folder}");
        }
        Ok(())
    }

    #[test]
    fn what_may_not_be_touched_is_named() -> Result<(), BadGlob> {
        let protected = ProtectedPaths::new(&["eval/**".to_owned(), "*.lock".to_owned()])?;
        let check = |path: &str, to| {
            let change = PathChange { path: path.to_owned(), is_new: false, to };
            protected.list_violations(&[change]).join("; ")
        };
        assert_eq!(check("src/model.py", PathKind::File), "");
        assert_eq!(check("eval/score.py", PathKind::File), "`eval/score.py` is protected");
        assert_eq!(check("eval/score.py", PathKind::Deleted), "`eval/score.py` is protected");
        assert_eq!(check("data", PathKind::Symlink), "`data` becomes a symbolic link");
        assert_eq!(check("lib", PathKind::Gitlink), "`lib` becomes a submodule");
        assert_eq!(
            check("sub/.gitattributes", PathKind::File),
            "`sub/.gitattributes` controls git"
        );
        assert!(ProtectedPaths::new(&["a[".to_owned()]).is_err());
        Ok(())
    }

    #[test]
    fn paths_are_compared_without_case_and_normalised() -> Result<(), BadGlob> {
        let globs = ["sweep.py", "Eval/**", "caf\u{e9}/*.py", "[Z-a].txt"];
        let protected = ProtectedPaths::new(&globs.map(str::to_owned))?;
        for path in ["SWEEP.PY", "Sweep.py", "eval/x.py", "EVAL/X.PY", "cafe\u{301}/A.py"] {
            assert!(protected.covers(path), "{path}");
        }
        assert!(!protected.covers("sweeps.py"));
        assert!(protected.can_cover_below("EVAL") && protected.can_cover_below("CAFE\u{301}"));
        let check = |path: &str| {
            let change = PathChange { path: path.to_owned(), is_new: false, to: PathKind::File };
            protected.list_violations(&[change]).join("; ")
        };
        assert_eq!(check("SWEEP.PY"), "`SWEEP.PY` is protected");
        for path in [".GITATTRIBUTES", "a/.GitModules", ".Git/config", "a/.GIT/hooks/x", "git~1/x"]
        {
            assert_eq!(check(path), format!("`{path}` controls git"));
        }
        assert_eq!(check(".gitignore"), "");
        Ok(())
    }

    #[test]
    fn some_new_files_cannot_come_in() -> Result<(), BadGlob> {
        let protected = ProtectedPaths::new(&[])?;
        let check = |path: &str, is_new, to| {
            let change = PathChange { path: path.to_owned(), is_new, to };
            !protected.list_violations(&[change]).is_empty()
        };
        for path in [
            "hook.pth",
            "lib/A.PTH",
            "sitecustomize.py",
            "src/UserCustomize.py",
            "sitecustomize/__init__.py",
            "usercustomize.cpython-311-x86_64-linux-gnu.so",
            "conftest.py",
            "a/b/Conftest.py",
            "__pycache__/model.cpython-311.pyc",
            "a/__PyCache__/notes.txt",
            "model.pyc",
            "model.PYO",
            "CON",
            "a/nul/b.py",
            "aux.txt",
            "Com1.tar.gz",
            "lpt\u{b2}.py",
            "a /b.py",
            "a.py.",
            "a:b.py",
            "a\\b.py",
        ] {
            assert!(check(path, true, PathKind::File), "{path:?}");
            assert!(!check(path, false, PathKind::File), "{path:?} is there already");
            assert!(!check(path, false, PathKind::Deleted), "{path:?} goes");
        }
        for path in ["model.py", "console.py", "aux_data/x.py", ".config", "a.b/c d.py", "com0"] {
            assert!(!check(path, true, PathKind::File), "{path:?}");
        }
        Ok(())
    }
}
