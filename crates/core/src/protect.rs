//! What a candidate may not touch: protected paths, links, and git's own control files.

use globset::{Glob, GlobSet, GlobSetBuilder};

/// One path that a candidate changes, as git's index has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The path, `/` between its parts, relative to the repository.
    pub path: String,
    /// What it becomes.
    pub to: Mode,
}

/// What a path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A file, executable or not.
    File,
    /// A symbolic link.
    Symlink,
    /// A submodule.
    Gitlink,
    /// Nothing any more.
    Deleted,
}

/// Globs that do not parse, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`protect` has a pattern that is no glob: {0}")]
pub struct BadGlob(String);

/// The paths that no candidate may change.
#[derive(Clone, Debug)]
pub struct Protected {
    globs: GlobSet,
    /// What all that a glob matches begins with, of each glob.
    beginnings: Vec<String>,
}

impl Protected {
    /// Reads the globs.
    ///
    /// # Errors
    /// When one of them is no glob.
    pub fn new(globs: &[String]) -> Result<Self, BadGlob> {
        let mut set = GlobSetBuilder::new();
        let beginnings = globs.iter().map(|glob| beginning(glob).to_owned()).collect();
        for glob in globs {
            set.add(Glob::new(glob).map_err(|error| BadGlob(error.to_string()))?);
        }
        let globs = set.build().map_err(|error| BadGlob(error.to_string()))?;
        Ok(Self { globs, beginnings })
    }

    /// What is wrong with these changes, in words, one line each; nothing when they may stand.
    #[must_use]
    pub fn violations(&self, changes: &[Change]) -> Vec<String> {
        changes.iter().filter_map(|change| self.violation(change)).collect()
    }

    /// Whether one of the globs matches a path.
    #[must_use]
    pub fn covers(&self, path: &str) -> bool {
        self.globs.is_match(path)
    }

    /// Whether one of the globs could match a path below this folder.
    #[must_use]
    pub fn may_cover_below(&self, folder: &str) -> bool {
        let folder = format!("{folder}/");
        let may = |it: &String| it.starts_with(&folder) || folder.starts_with(it.as_str());
        self.beginnings.iter().any(may)
    }

    fn violation(&self, change: &Change) -> Option<String> {
        let path = &change.path;
        let name = path.rsplit('/').next().unwrap_or(path);
        match change.to {
            Mode::Symlink => Some(format!("`{path}` becomes a symbolic link")),
            Mode::Gitlink => Some(format!("`{path}` becomes a submodule")),
            Mode::File | Mode::Deleted if matches!(name, ".gitattributes" | ".gitmodules") => {
                Some(format!("`{path}` controls git"))
            }
            Mode::File | Mode::Deleted => {
                self.covers(path).then(|| format!("`{path}` is protected"))
            }
        }
    }
}

/// What a glob has before the first character that may stand for another one.
fn beginning(glob: &str) -> &str {
    let end = glob.find(['*', '?', '[', '{', '\\']).unwrap_or(glob.len());
    glob.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_that_no_glob_leads_to_are_known() -> Result<(), BadGlob> {
        let may = |glob: &str, folder: &str| {
            Protected::new(&[glob.to_owned()]).map(|it| it.may_cover_below(folder))
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
        let protected = Protected::new(&["eval/**".to_owned(), "*.lock".to_owned()])?;
        let check = |path: &str, to| {
            protected.violations(&[Change { path: path.to_owned(), to }]).join("; ")
        };
        assert_eq!(check("src/model.py", Mode::File), "");
        assert_eq!(check("eval/score.py", Mode::File), "`eval/score.py` is protected");
        assert_eq!(check("eval/score.py", Mode::Deleted), "`eval/score.py` is protected");
        assert_eq!(check("data", Mode::Symlink), "`data` becomes a symbolic link");
        assert_eq!(check("lib", Mode::Gitlink), "`lib` becomes a submodule");
        assert_eq!(check("sub/.gitattributes", Mode::File), "`sub/.gitattributes` controls git");
        assert!(Protected::new(&["a[".to_owned()]).is_err());
        Ok(())
    }
}
