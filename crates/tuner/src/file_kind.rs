//! Kinds of files that may hold constants, by name alone. No file is opened here.

/// Language of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// Python code.
    Python,
    /// Rust code.
    Rust,
    /// C and similar languages: C++, Java, JavaScript, TypeScript, Go, C#, Kotlin, Swift.
    CLike,
    /// TOML data.
    Toml,
    /// JSON data.
    Json,
    /// YAML data.
    Yaml,
}

/// Folders of generated or third-party files, or of tests.
const SKIPPED_FOLDERS: [&str; 9] =
    ["node_modules", "target", "venv", "__pycache__", "dist", "build", "vendor", "test", "tests"];
/// Files that define the build of a project.
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
/// Maximum length of a path.
const MAX_PATH_CHARS: usize = 200;

impl FileKind {
    /// Determines the kind of a file by its name; `None` if unknown.
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

    /// Returns true if names are variables, which may change while the program runs.
    pub(super) const fn is_code(self) -> bool {
        matches!(self, Self::Python | Self::Rust | Self::CLike)
    }
}

/// Returns true if a path can be written unquoted in an idea and in a diff.
#[must_use]
pub fn is_plain_path(path: &str) -> bool {
    let odd = |c: char| c.is_control() || matches!(c, '`' | '"' | '\\');
    !path.is_empty() && path.chars().count() <= MAX_PATH_CHARS && !path.contains(odd)
}

/// Returns true if a file is searched by default: no tests, hidden files, build files or output.
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
