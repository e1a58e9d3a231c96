//! Which files may hold constants, by name alone, and how their text is to be read. Opens nothing.

/// How a file's text is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// Python.
    Python,
    /// Rust.
    Rust,
    /// C and those that look like it: C++, Java, JavaScript, TypeScript, Go, C#, Kotlin, Swift.
    CLike,
    /// TOML.
    Toml,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

/// Folders that hold what nobody wrote by hand, or what judges the rest.
const SKIPPED_FOLDERS: [&str; 9] =
    ["node_modules", "target", "venv", "__pycache__", "dist", "build", "vendor", "test", "tests"];
/// Files that say how a project is built, not what it does.
const SKIPPED_FILES: [&str; 11] = [
    "treebeam.toml",
    "Cargo.toml",
    "pyproject.toml",
    "rustfmt.toml",
    "clippy.toml",
    "deny.toml",
    "package.json",
    "package-lock.json",
    "tsconfig.json",
    "setup.py",
    "conftest.py",
];
/// The longest path.
const MAX_PATH_CHARS: usize = 200;

impl FileKind {
    /// The kind of a file by its name; none where it is not known.
    #[must_use]
    pub fn from_path(path: &str) -> Option<Self> {
        let (_, ending) = path.rsplit_once('.')?;
        Some(match ending.to_ascii_lowercase().as_str() {
            "py" => Self::Python,
            "rs" => Self::Rust,
            "toml" => Self::Toml,
            "json" => Self::Json,
            "yaml" | "yml" => Self::Yaml,
            "c" | "h" | "cc" | "cpp" | "cxx" | "hh" | "hpp" | "java" | "js" | "mjs" | "ts"
            | "go" | "cs" | "kt" | "swift" => Self::CLike,
            _ => return None,
        })
    }

    /// Whether names stand for variables, which may change while the program runs.
    pub(super) const fn is_code(self) -> bool {
        matches!(self, Self::Python | Self::Rust | Self::CLike)
    }
}

/// Whether a path can be named in an idea and in a diff as it is.
#[must_use]
pub fn is_plain_path(path: &str) -> bool {
    let odd = |c: char| c.is_control() || matches!(c, '`' | '"' | '\\');
    !path.is_empty() && path.chars().count() <= MAX_PATH_CHARS && !path.contains(odd)
}

/// Whether a file is looked at where nobody says which: no tests, nothing hidden, nothing that only builds or was built.
#[must_use]
pub fn is_usual_path(path: &str) -> bool {
    let mut parts = path.split('/').rev();
    let name = parts.next().unwrap_or_default();
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let is_test = stem.starts_with("test_") || stem.ends_with("_test") || stem == "tests";
    !name.starts_with('.')
        && !is_test
        && !SKIPPED_FILES.contains(&name)
        && !parts.any(|folder| folder.starts_with('.') || SKIPPED_FOLDERS.contains(&folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_files_are_looked_at() {
        for path in ["train.py", "src/model.rs", "conf/Model.YAML", "a b/naïve.toml", "x.cpp"] {
            assert!(
                FileKind::from_path(path).is_some() && is_usual_path(path) && is_plain_path(path),
                "{path}"
            );
        }
        for path in [
            "tests/a.py",
            "a/test_x.py",
            "x_test.go",
            "src/tests.rs",
            ".github/w.yml",
            ".a.json",
            "Cargo.toml",
            "x/node_modules/a.js",
        ] {
            assert!(!is_usual_path(path), "{path}");
        }
        assert_eq!(FileKind::from_path("README.md"), None);
        assert_eq!(FileKind::from_path("Makefile"), None);
        assert!(!is_plain_path("a`b.py") && !is_plain_path("a\nb.py") && !is_plain_path(""));
    }
}
