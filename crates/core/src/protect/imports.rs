//! Python modules that protected files import, and new files that would shadow them. Imports are
//! found line by line (`import a`, `from a import b`); other ways to import are not seen.

use super::names::{folded_path, has_ending};
use std::collections::BTreeSet;

/// File endings of compiled code that Python can import.
const EXTENSION_MODULES: [&str; 2] = ["so", "pyd"];

/// Module as Python finds it: the folder that is searched, and the name.
type PythonModule = (String, String);

/// Returns true if Python could import a file at this path as a module or a package.
#[must_use]
pub fn is_python_module(path: &str) -> bool {
    python_module(&folded_path(path)).is_some()
}

/// Modules that protected Python files import, and the places where a new file would shadow one.
#[derive(Debug, Default)]
pub struct ProtectedImports {
    /// Names of the imported modules.
    names: BTreeSet<String>,
    /// Folders that Python may search for the modules.
    roots: BTreeSet<String>,
    /// Protected modules, and the folders above protected files.
    protected: BTreeSet<PythonModule>,
    /// Existing modules, packages and folders.
    there: BTreeSet<PythonModule>,
}

impl ProtectedImports {
    /// Creates the index of a code state from its file paths and the folders in which commands run.
    #[must_use]
    pub fn new<'a>(paths: impl IntoIterator<Item = &'a str>, folders: &[&str]) -> Self {
        let mut imports = Self::default();
        let usual = ["", "src"].into_iter().chain(folders.iter().copied());
        imports.roots.extend(usual.map(folded_path));
        for path in paths.into_iter().map(folded_path) {
            imports.there.extend(python_module(&path));
            let folders = path.match_indices('/').filter_map(|(at, _)| path.get(..at));
            imports.there.extend(folders.map(split_last_part));
        }
        imports
    }

    /// Adds a protected Python file.
    pub fn add_protected(&mut self, path: &str, text: &str) {
        let path = folded_path(path);
        self.protected.extend(python_module(&path));
        for folder in path.match_indices('/').filter_map(|(at, _)| path.get(..at)) {
            // Python searches the folder of a script; tests are found from the folders above.
            self.roots.insert(folder.to_owned());
            // `eval.py` and `eval/__init__.py` run in place of, or before, the files in `eval`.
            self.protected.insert(split_last_part(folder));
        }
        self.names.extend(text.lines().flat_map(imported_names));
    }

    /// Describes the module that a new file at this path would shadow, if any.
    #[must_use]
    pub fn find_violation(&self, path: &str) -> Option<String> {
        let module = python_module(&folded_path(path))?;
        let (folder, name) = &module;
        if self.protected.contains(&module) {
            let what = "would be imported in place of a protected module or package";
            return Some(format!("`{path}` {what}"));
        }
        let is_found_first = self.roots.contains(folder)
            && self.names.contains(name)
            && !self.there.contains(&module);
        is_found_first.then(|| {
            format!("`{path}` may not be added: protected files import `{name}` from elsewhere")
        })
    }
}

/// Returns the module of a file: `a/b.py`, `a/b/__init__.py` and `a/b.so` are all `b` in `a`.
fn python_module(path: &str) -> Option<PythonModule> {
    let (folder, file) = split_last_part(path);
    let name = if let Some(name) = file.strip_suffix(".py") {
        name
    } else if has_ending(&file, &EXTENSION_MODULES) {
        file.split('.').next()?
    } else {
        return None;
    };
    match name {
        "" => None,
        "__init__" => Some(split_last_part(&folder)).filter(|(_, name)| !name.is_empty()),
        name => Some((folder.clone(), name.to_owned())),
    }
}

fn split_last_part(path: &str) -> PythonModule {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    (folder.to_owned(), name.to_owned())
}

/// Returns the names that a line of Python imports: the first part of each module, after the dots
/// of a relative one.
fn imported_names(line: &str) -> Vec<String> {
    let statements = line.split(';').map(str::trim_start);
    statements.flat_map(names_of_statement).map(|name| folded_path(&name)).collect()
}

fn names_of_statement(statement: &str) -> Vec<String> {
    let mut words = statement.split_whitespace();
    match words.next() {
        Some("import") => listed_names(statement.trim_start_matches("import")),
        Some("from") => {
            let from = words.next().unwrap_or_default();
            let of_package = from.trim_start_matches('.');
            match (of_package.is_empty(), statement.split_once(" import ")) {
                (false, _) => leading_name(of_package).into_iter().collect(),
                (true, Some((_, names))) => listed_names(names),
                (true, None) => Vec::new(),
            }
        }
        Some(_) | None => Vec::new(),
    }
}

/// Parses a list of modules: `a.b as c, d` gives `a` and `d`.
fn listed_names(list: &str) -> Vec<String> {
    let list = list.split('#').next().unwrap_or_default();
    list.split(',').filter_map(leading_name).collect()
}

fn leading_name(module: &str) -> Option<String> {
    let module = module.trim_matches([' ', '\t', '(', ')', '\\']);
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let end = module.find(|c| !is_name(c)).unwrap_or(module.len());
    module.get(..end).filter(|name| !name.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_are_found_line_by_line() {
        for (line, names) in [
            ("import numpy", &["numpy"][..]),
            ("  import a.b as c, d # e", &["a", "d"]),
            ("from pandas.core import frame", &["pandas"]),
            ("from .metrics import rate", &["metrics"]),
            ("from . import (helper, other as x)", &["helper", "other"]),
            ("import os; import Random", &["os", "random"]),
            ("imported = 3", &[]),
            ("# import a", &[]),
            ("x = 'from a'", &[]),
        ] {
            assert_eq!(imported_names(line), names, "{line}");
        }
    }

    #[test]
    fn a_new_module_before_an_imported_one_is_found() {
        let paths = ["eval/score.py", "eval/tools.py", "model.py", "lib/parts/a.py", "flat.py"];
        let mut imports = ProtectedImports::new(paths, &["research"]);
        let text = "import random\nimport model, flat\nfrom eval import tools\nimport lib.parts\n";
        imports.add_protected("eval/score.py", text);
        imports.add_protected("tests/deep/check.py", "");
        for path in [
            "random.py",
            "Random.py",
            "eval/random.py",
            "src/random/__init__.py",
            "research/random.py",
            "random.cpython-311-x86_64-linux-gnu.so",
            "eval/score/__init__.py",
            "eval/score.so",
            "eval/model.py",
            // A folder without `__init__.py` is a namespace package: both forms shadow it.
            "eval.py",
            "Eval.py",
            "eval/__init__.py",
            "tests.py",
            "tests/deep.so",
            "tests/deep/__init__.py",
        ] {
            assert!(imports.find_violation(path).is_some(), "{path}");
        }
        for path in [
            "features.py",
            "lib/random.py",
            "random.txt",
            "random/data.csv",
            "random/part.py",
            // These exist already and are not protected.
            "model/__init__.py",
            "flat/__init__.py",
            "lib/__init__.py",
        ] {
            assert_eq!(imports.find_violation(path), None, "{path}");
        }
    }
}
