use super::*;

fn survey(files: &[(&str, &str)]) -> Survey {
    let files: Vec<SourceFile> =
        files.iter().map(|(path, text)| SourceFile::new(*path, *text)).collect();
    let survey = Survey::from_sources(&files);
    assert!(survey.parse_errors.is_empty(), "{:?}", survey.parse_errors);
    survey
}

fn survey_one(text: &str) -> FileSurvey {
    survey(&[("crates/core/src/rank.rs", text)]).files.remove(0)
}

fn cycles(files: &[(&str, &str)]) -> Vec<Vec<String>> {
    module_cycles(&survey(files).files).into_iter().map(|cycle| cycle.modules).collect()
}

#[test]
fn all_kinds_of_types_are_found() {
    let file = survey_one(
        "struct A; enum B {} trait C {} union D { x: u8 } type E = u8; fn f() { struct G; }",
    );
    let names: Vec<&str> = file.types.iter().map(|item| &*item.name).collect();
    assert_eq!(names, ["A", "B", "C", "D", "G"]);
}

#[test]
fn functions_of_traits_and_impls_are_found_with_their_length() {
    let file = survey_one(
        "trait T {\n    fn a();\n    fn b() {\n    }\n}\n\nimpl X {\n    /// Doc.\n    #[must_use]\n    pub fn c_d() {\n\n        fn e() {}\n    }\n}\n",
    );
    let found: Vec<_> = file.functions.iter().map(|item| (&*item.name, item.length)).collect();
    assert_eq!(found, [("a", None), ("b", Some(2)), ("c_d", Some(4)), ("e", Some(1))]);
    assert!(file.functions[0].is_one_word() && !file.functions[2].is_one_word());
}

#[test]
fn words_of_a_type_are_its_capitalised_parts() {
    for (name, expected) in [("Eval", true), ("EvalId", false), ("URL", true), ("Sha256", true)] {
        let item = TypeItem { name: name.to_owned(), line: 1 };
        assert_eq!(item.is_one_word(), expected, "{name}");
    }
}

#[test]
fn tests_are_left_out() {
    let file = survey_one(
        "struct A;\n\n#[cfg(all(test, unix))]\nstruct B;\n#[cfg(not(test))]\nstruct C;\nimpl A {\n    #[cfg(test)]\n    fn b() {}\n}\n#[cfg(test)]\nmod tests {\n    struct D;\n}\n",
    );
    let names: Vec<&str> = file.types.iter().map(|item| &*item.name).collect();
    assert_eq!(names, ["A", "C"]);
    assert!(file.functions.is_empty());
    assert_eq!((file.all_lines, file.filled_lines), (6, 5));
}

#[test]
fn files_of_tests_are_left_out() {
    let files = survey(&[
        ("crates/core/src/lib.rs", "#[cfg(test)]\nmod samples;\nmod rank;\n"),
        ("crates/core/src/samples.rs", ""),
        ("crates/core/src/samples/more.rs", ""),
        ("crates/core/src/rank.rs", ""),
        ("crates/core/src/rank/tests.rs", ""),
        ("crates/core/src/rank/tests/more.rs", ""),
        ("crates/core/src/gate.rs", "#![cfg(test)]\n"),
        ("crates/core/tests/rank.rs", ""),
        ("crates/core/tests/data/src/rank.rs", ""),
        ("xtask/src/main.rs", ""),
    ]);
    let paths: Vec<&str> = files.files.iter().map(|file| &*file.path).collect();
    assert_eq!(paths, ["crates/core/src/lib.rs", "crates/core/src/rank.rs", "xtask/src/main.rs"]);
}

#[test]
fn a_file_that_does_not_parse_is_named() {
    let survey = Survey::from_sources(&[SourceFile::new("crates/core/src/id.rs", "\nfn (")]);
    assert!(survey.parse_errors[0].starts_with("crates/core/src/id.rs:2: "));
}

#[test]
fn a_cycle_is_found_however_a_module_is_named() {
    let two = |first: &str, second: &str| {
        cycles(&[("crates/core/src/a.rs", first), ("crates/core/src/b.rs", second)])
    };
    for mention in [
        "use crate::b::X;",
        "use crate::{b::X, c};",
        "use crate::b::*;",
        "use super::b::X;",
        "mod inner { use super::super::b::X; }",
        "fn f() { crate::b::g() }",
        "fn f() { println!(\"{}\", crate::b::X) }",
        "fn f() { vec![super::b::X] }",
        "fn f() { run!(return super::b::X, crate::c::Y(1)) }",
        "fn f() { run!(a: super::b::X) }",
        "struct S { #[serde(with = \"crate::b\")] x: u8 }",
    ] {
        assert_eq!(two(mention, "use crate::a::Y;"), [["a", "b"]], "{mention}");
    }
    for mention in ["use crate::a::b;", "mod b; use self::b::X;", "mod i { use super::b::X; }"] {
        assert!(two(mention, "use crate::a::Y;").is_empty(), "{mention}");
    }
}

#[test]
fn a_cycle_through_the_root_is_found() {
    let found = cycles(&[
        ("crates/core/src/lib.rs", "mod a; mod b; pub use b::X;"),
        ("crates/core/src/a.rs", "use crate::X;"),
        ("crates/core/src/b/deep.rs", "use super::super::a::Y;"),
    ]);
    assert_eq!(found, [["a", "b"]]);
}

#[test]
fn modules_of_two_crates_form_no_cycle() {
    let files =
        [("crates/core/src/a.rs", "use crate::b::X;"), ("crates/run/src/b.rs", "use crate::a::X;")];
    assert!(cycles(&files).is_empty());
}
