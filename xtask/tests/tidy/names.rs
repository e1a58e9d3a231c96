//! Rules on names of types, functions and constants, by the survey of the sources.

use xtask::figures::shared_type_names;

use crate::{Project, check, project_of, source};

/// Name that is an exception from a rule.
struct AllowedName {
    name: &'static str,
    reason: &'static str,
}

/// Type names that may stand in more than one module.
const ALLOWED_SHARED_TYPES: [AllowedName; 0] = [];

/// No type has the name of another type in the workspace.
pub(crate) fn type_names_are_unique(project: &Project) -> Vec<String> {
    shared_type_names(&project.survey().files)
        .into_iter()
        .filter(|(name, _)| !is_allowed(&ALLOWED_SHARED_TYPES, name))
        .map(|(name, places)| {
            let (first, others) = places.split_first().expect("a shared name has places");
            format!(
                "{first}: `{name}` is also the name of {}; give each a name of its own",
                others.join(", ")
            )
        })
        .collect()
}

#[test]
fn type_names_are_unique_can_fail() {
    let rule = type_names_are_unique;
    let files = |first: &str, second: &str, path: &str| {
        project_of([source("crates/core/src/a.rs", first), source(path, second)])
    };
    let other = "crates/run/src/b.rs";
    assert_eq!(rule(&files("struct EvalId;", "struct NodeId;", other)).len(), 0);
    assert_eq!(rule(&files("struct EvalId;", "enum EvalId {}", other)).len(), 1);
    assert_eq!(rule(&files("struct EvalId;", "trait EvalId {}", "xtask/src/b.rs")).len(), 1);
    let in_tests = "#[cfg(test)]\nmod tests { struct EvalId; }";
    assert_eq!(rule(&files("struct EvalId;", in_tests, other)).len(), 0);
    let platforms = [
        source("crates/process/src/unix.rs", "struct ProcessTree;"),
        source("crates/process/src/windows.rs", "struct ProcessTree;"),
    ];
    assert_eq!(rule(&project_of(platforms)).len(), 0);
}

/// Constructors are called `new`, `from_…`, `with_…` or `parse`, and never `of`.
pub(crate) fn constructors_are_not_called_of(project: &Project) -> Vec<String> {
    let files = project.survey().files.iter();
    files
        .flat_map(|file| {
            let called_of = file.functions.iter().filter(|function| function.name == "of");
            called_of.map(|function| {
                format!(
                    "{}:{}: rename `of`: a constructor is `new`, `from_…`, `with_…` or `parse`",
                    file.path, function.line
                )
            })
        })
        .collect()
}

#[test]
fn constructors_are_not_called_of_can_fail() {
    let rule = constructors_are_not_called_of;
    let path = "crates/core/src/rank.rs";
    check(rule, path, "impl Rank { fn from_evals() {} fn kind_of() {} }", 0);
    check(rule, path, "impl Rank { fn of() {} }\nfn of() {}", 2);
    check(rule, path, "#[cfg(test)]\nmod tests { fn of() {} }", 0);
}

/// Associated constants of one word, which are read with their type before them.
const ALLOWED_CONSTANTS: [AllowedName; 8] = [
    AllowedName { name: "ALL", reason: "list of a type's values, read as `Stage::ALL`" },
    AllowedName { name: "DEFAULT", reason: "value of the type itself" },
    AllowedName { name: "FIRST", reason: "value of the type itself, read as `Epoch::FIRST`" },
    AllowedName { name: "LATEST", reason: "value of the type itself" },
    AllowedName { name: "MAX", reason: "value of the type itself, as in `u64::MAX`" },
    AllowedName { name: "MIN", reason: "value of the type itself, as in `u64::MIN`" },
    AllowedName { name: "ROOT", reason: "value of the type itself, read as `NodeId::ROOT`" },
    AllowedName { name: "ZERO", reason: "value of the type itself, as in `Duration::ZERO`" },
];

/// Constants carry their subject and unit: `MAX_LOG_BYTES`, not `MOST`.
pub(crate) fn constants_name_their_subject(project: &Project) -> Vec<String> {
    let files = project.survey().files.iter();
    files
        .flat_map(|file| {
            let bare = file.constants.iter().filter(|constant| {
                let allowed =
                    constant.is_associated && is_allowed(&ALLOWED_CONSTANTS, &constant.name);
                !constant.name.trim_matches('_').contains('_') && constant.name != "_" && !allowed
            });
            bare.map(|constant| {
                format!(
                    "{}:{}: `{}` says too little; name its subject, and its unit if it has one",
                    file.path, constant.line, constant.name
                )
            })
        })
        .collect()
}

#[test]
fn constants_name_their_subject_can_fail() {
    let rule = constants_name_their_subject;
    let path = "crates/core/src/rank.rs";
    check(rule, path, "const MAX_LOG_BYTES: u8 = 1;\nconst _: () = ();", 0);
    for name in ["MOST", "LEAST", "GLANCE", "TRIES", "FUNERALS", "ALL", "ZERO"] {
        check(rule, path, &format!("const {name}: u8 = 1;"), 1);
    }
    check(rule, path, "fn rank() { static LIMIT: u8 = 1; }", 1);
    check(rule, path, "impl Rank { pub const ALL: u8 = 1; const MOST: u8 = 1; }", 1);
    check(rule, path, "trait Ranked { const ZERO: u8; const MOST: u8; }", 1);
    check(rule, path, "#[cfg(test)]\nmod tests { const MOST: u8 = 1; }", 0);
}

fn is_allowed(exceptions: &[AllowedName], name: &str) -> bool {
    exceptions.iter().any(|exception| exception.name == name)
}

#[test]
fn every_exception_has_a_reason() {
    for AllowedName { name, reason } in ALLOWED_SHARED_TYPES.iter().chain(&ALLOWED_CONSTANTS) {
        assert!(reason.split_whitespace().count() > 2, "`{name}` needs a reason");
    }
}

#[test]
fn an_exception_is_for_one_name() {
    assert!(is_allowed(&ALLOWED_CONSTANTS, "ALL"));
    assert!(!is_allowed(&ALLOWED_CONSTANTS, "MOST"));
}
