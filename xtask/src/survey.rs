//! Survey of the workspace's Rust sources: what each file defines and which modules it names.
//!
//! Tests are left out: items under `#[cfg(test)]`, files of modules declared so, `tests.rs` and
//! `tests/`. What macros expand to is not seen.
//!
//! # Layout
//! `place` says which module a file is, `syntax` collects one file's items, `test_code` finds what
//! is there for tests only, and `cycles` looks at the graph of a crate's modules.

mod cycles;
mod place;
mod syntax;
mod test_code;

use std::collections::BTreeSet;

pub use cycles::{ModuleCycle, ModuleEdge, module_cycles};
pub use place::ModulePlace;
pub use syntax::{ConstantItem, FunctionItem, ModuleReference, RootAlias, TypeItem};

use crate::sources::SourceFile;

/// Survey of all Rust files below the `src/` folders of the workspace, tests left out.
#[derive(Debug, Default)]
pub struct Survey {
    /// Surveyed files, in the order of their paths.
    pub files: Vec<FileSurvey>,
    /// One message for each file that does not parse.
    pub parse_errors: Vec<String>,
}

/// Items and lines of one file, tests left out.
#[derive(Debug)]
pub struct FileSurvey {
    /// Path relative to the repository's root.
    pub path: String,
    /// Module that the file is the source of.
    pub place: ModulePlace,
    /// Number of lines outside tests.
    pub all_lines: usize,
    /// Number of lines outside tests that are not blank.
    pub filled_lines: usize,
    /// Structs, enums, traits and unions, in the order of the text.
    pub types: Vec<TypeItem>,
    /// Functions and methods, in the order of the text.
    pub functions: Vec<FunctionItem>,
    /// Constants and statics, in the order of the text.
    pub constants: Vec<ConstantItem>,
    /// Top-level names of the crate that the file mentions.
    pub references: Vec<ModuleReference>,
    /// Names that the crate's root takes from its modules; empty for all other files.
    pub aliases: Vec<RootAlias>,
}

impl FileSurvey {
    /// Tells if the file belongs to the product, and not to `testkit`, `xtask` or `benches`.
    #[must_use]
    pub fn is_product(&self) -> bool {
        self.place.folder.starts_with("crates/") && self.place.folder != "crates/testkit"
    }
}

impl Survey {
    /// Parses the Rust files below the `src/` folders among `files`.
    #[must_use]
    pub fn from_sources(files: &[SourceFile]) -> Self {
        let parsed: Vec<_> = files.iter().filter_map(parse_source).collect();
        let test_modules: BTreeSet<String> = parsed
            .iter()
            .filter_map(|(_, place, syntax)| Some((place, syntax.as_ref().ok()?)))
            .flat_map(|(place, syntax)| test_code::test_module_files(place, syntax))
            .collect();
        let mut survey = Self::default();
        for (file, place, syntax) in parsed {
            if test_modules.iter().any(|stem| is_below_stem(&file.path, stem)) {
                continue;
            }
            match syntax {
                Ok(syntax) => survey.files.push(survey_file(file, place, &syntax)),
                Err(error) => {
                    let line = error.span().start().line;
                    survey.parse_errors.push(format!("{}:{line}: {error}", file.path));
                }
            }
        }
        survey
    }

    /// Iterates over the files of the product.
    pub fn product_files(&self) -> impl Iterator<Item = &FileSurvey> {
        self.files.iter().filter(|file| file.is_product())
    }
}

type ParsedSource<'a> = (&'a SourceFile, ModulePlace, syn::Result<syn::File>);

/// Parses one file, if it is one that the survey covers.
fn parse_source(file: &SourceFile) -> Option<ParsedSource<'_>> {
    let place = ModulePlace::from_path(&file.path)?;
    let syntax = syn::parse_file(&file.text);
    let only_tests = place.is_named_tests()
        || syntax.as_ref().is_ok_and(|syntax| test_code::are_test_only(&syntax.attrs));
    (!only_tests).then_some((file, place, syntax))
}

/// Tells if `path` is the file `<stem>.rs` or lies in the folder `<stem>/`.
fn is_below_stem(path: &str, stem: &str) -> bool {
    path.strip_prefix(stem).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
}

/// Collects the items of one parsed file and counts its lines.
fn survey_file(file: &SourceFile, place: ModulePlace, syntax: &syn::File) -> FileSurvey {
    let items = syntax::collect_items(&place, syntax);
    let outside_tests = |number: &usize| !items.test_lines.iter().any(|test| test.contains(number));
    let lines: Vec<&str> = (1..)
        .zip(file.text.lines())
        .filter(|(number, _)| outside_tests(number))
        .map(|(_, line)| line)
        .collect();
    FileSurvey {
        path: file.path.clone(),
        place,
        all_lines: lines.len(),
        filled_lines: lines.iter().filter(|line| !line.trim().is_empty()).count(),
        types: items.types,
        functions: items.functions,
        constants: items.constants,
        references: items.references,
        aliases: items.aliases,
    }
}

#[cfg(test)]
mod tests;
