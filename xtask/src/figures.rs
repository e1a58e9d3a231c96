//! `cargo xtask figures`: the survey of the product's sources in numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::survey::{FileSurvey, ModuleCycle, Survey, module_cycles};

/// Numbers that say how readable the product's sources are, tests left out.
#[derive(Debug)]
pub struct SourceFigures {
    /// Lines that are not blank.
    pub filled_lines: usize,
    /// Number of structs, enums, traits and unions.
    pub types: usize,
    /// Number of types whose name another type has.
    pub shared_types: usize,
    /// Number of types whose name has one capitalised part.
    pub one_word_types: usize,
    /// Number of functions and methods.
    pub functions: usize,
    /// Number of functions whose name has no underscore.
    pub one_word_functions: usize,
    /// Length that nine in ten functions with a body do not exceed, in lines.
    pub function_length_p90: usize,
    /// Path and lines of the longest file.
    pub longest_file: Option<(String, usize)>,
    /// Cycles between top-level modules of a crate.
    pub cycles: Vec<ModuleCycle>,
}

impl SourceFigures {
    /// Counts what the survey found in the product's files.
    #[must_use]
    pub fn from_survey(survey: &Survey) -> Self {
        let files: Vec<&FileSurvey> = survey.product_files().collect();
        let types: Vec<_> = files.iter().flat_map(|file| &file.types).collect();
        let functions: Vec<_> = files.iter().flat_map(|file| &file.functions).collect();
        let lengths = functions.iter().filter_map(|function| function.length).collect();
        let longest = files.iter().max_by_key(|file| file.all_lines);
        Self {
            filled_lines: files.iter().map(|file| file.filled_lines).sum(),
            types: types.len(),
            shared_types: shared_type_names(files.iter().copied()).values().map(Vec::len).sum(),
            one_word_types: types.iter().filter(|item| item.is_one_word()).count(),
            functions: functions.len(),
            one_word_functions: functions.iter().filter(|item| item.is_one_word()).count(),
            function_length_p90: ninth_decile(lengths),
            longest_file: longest.map(|file| (file.path.clone(), file.all_lines)),
            cycles: module_cycles(files),
        }
    }
}

/// Type names that stand in more than one module, with each place as `path:line`.
///
/// A type that `unix.rs` and `windows.rs` define beside each other is one type.
pub fn shared_type_names<'a>(
    files: impl IntoIterator<Item = &'a FileSurvey>,
) -> BTreeMap<&'a str, Vec<String>> {
    let mut places: BTreeMap<&str, (BTreeSet<String>, Vec<String>)> = BTreeMap::new();
    for file in files {
        for item in &file.types {
            let (modules, mentions) = places.entry(&item.name).or_default();
            modules.insert(file.place.without_platform());
            mentions.push(format!("{}:{}", file.path, item.line));
        }
    }
    places
        .into_iter()
        .filter(|(_, (modules, _))| modules.len() > 1)
        .map(|(name, (_, mentions))| (name, mentions))
        .collect()
}

/// Smallest of the values that at least nine in ten do not exceed, or 0 without values.
fn ninth_decile(mut values: Vec<usize>) -> usize {
    values.sort_unstable();
    let rank = (values.len() * 9).div_ceil(10);
    rank.checked_sub(1).and_then(|index| values.get(index)).copied().unwrap_or(0)
}

impl fmt::Display for SourceFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut row = |name: &str, value: String| writeln!(f, "{name:<34} {value}");
        row("source lines outside tests", self.filled_lines.to_string())?;
        row("types", self.types.to_string())?;
        row("types that share their name", share(self.shared_types, self.types))?;
        row("types of one word", share(self.one_word_types, self.types))?;
        row("functions", self.functions.to_string())?;
        row("functions of one word", share(self.one_word_functions, self.functions))?;
        row("function length p90, lines", self.function_length_p90.to_string())?;
        if let Some((path, lines)) = &self.longest_file {
            row("longest file, lines", format!("{lines} ({path})"))?;
        }
        row("cycles between modules of a crate", self.cycles.len().to_string())?;
        self.cycles.iter().try_for_each(|cycle| write!(f, "{cycle}"))
    }
}

impl fmt::Display for ModuleCycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  {}: {}", self.folder, self.modules.join(", "))?;
        self.edges.iter().try_for_each(|edge| {
            let (from, to, mentions) = (&edge.from, &edge.to, edge.mentions);
            writeln!(f, "    {from} → {to} ×{mentions}, first at {}", edge.example)
        })
    }
}

/// Share of `part` in `whole` in per cent, with the number itself.
fn share(part: usize, whole: usize) -> String {
    let tenths = (part * 1000 + whole / 2).checked_div(whole).unwrap_or(0);
    format!("{}.{} % ({part})", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::SourceFile;

    fn figures(files: &[(&str, &str)]) -> SourceFigures {
        let files: Vec<SourceFile> =
            files.iter().map(|(path, text)| SourceFile::new(*path, *text)).collect();
        SourceFigures::from_survey(&Survey::from_sources(&files))
    }

    #[test]
    fn figures_are_of_the_product_alone() {
        let figures = figures(&[
            ("crates/core/src/a.rs", "struct Said;\n\nstruct EvalId;\nfn of() {}\n"),
            ("crates/run/src/b.rs", "struct Said;\nfn read_all() {\n}\n"),
            ("crates/testkit/src/lib.rs", "struct EvalId;\n"),
            ("xtask/src/main.rs", "struct EvalId;\n"),
        ]);
        assert_eq!((figures.filled_lines, figures.types, figures.functions), (6, 3, 2));
        assert_eq!((figures.shared_types, figures.one_word_types), (2, 2));
        assert_eq!((figures.one_word_functions, figures.function_length_p90), (1, 2));
        assert_eq!(figures.longest_file, Some(("crates/core/src/a.rs".to_owned(), 4)));
    }

    #[test]
    fn a_type_of_two_platforms_is_one() {
        let text = "struct ProcessTree;";
        let twins = [("crates/process/src/unix.rs", text), ("crates/process/src/windows.rs", text)];
        assert_eq!(figures(&twins).shared_types, 0);
    }

    #[test]
    fn the_ninth_decile_is_one_of_the_values() {
        assert_eq!(ninth_decile(Vec::new()), 0);
        assert_eq!(ninth_decile(vec![7]), 7);
        assert_eq!(ninth_decile((1..=10).rev().collect()), 9);
    }

    #[test]
    fn the_table_shows_shares_and_cycles() {
        let text = figures(&[
            ("crates/core/src/a.rs", "use crate::b::X;"),
            ("crates/core/src/b.rs", "pub struct X;\n\nuse super::a;"),
        ])
        .to_string();
        assert!(text.contains("types of one word                  100.0 % (1)\n"), "{text}");
        assert!(text.contains("  crates/core: a, b\n"), "{text}");
        assert!(text.contains("    b → a ×1, first at crates/core/src/b.rs:3\n"), "{text}");
    }
}
