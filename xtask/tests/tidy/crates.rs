//! Rules on crates: what each may depend on, and that its lints are in place.

use xtask::survey::module_cycles;

use crate::{Project, check, project_of, source};

/// Dependences that a crate may have.
struct Allowed {
    name: &'static str,
    ours: &'static [&'static str],
    /// Packages from outside, or `None` for all that `deny.toml` lets through.
    outside: Option<&'static [&'static str]>,
}

/// Crates depend on crates to their left only; the pure ones and the loop also name what they use
/// from outside.
const CRATE_LINE: [Allowed; 15] = [
    Allowed {
        name: "core",
        ours: &[],
        outside: Some(&[
            "globset",
            "jiff",
            "postcard",
            "serde",
            "sha2",
            "thiserror",
            "unicode-normalization",
        ]),
    },
    Allowed {
        name: "score",
        ours: &["treebeam-core"],
        outside: Some(&["fast-float2", "memchr", "rand_pcg", "thiserror"]),
    },
    Allowed { name: "tuner", ours: &["treebeam-core"], outside: Some(&[]) },
    Allowed {
        name: "view",
        ours: &["treebeam-core", "treebeam-score"],
        outside: Some(&["jiff", "maud", "unicode-width"]),
    },
    Allowed {
        name: "run",
        ours: &["treebeam-core", "treebeam-score"],
        outside: Some(&["jiff", "serde", "serde_json", "thiserror"]),
    },
    Allowed { name: "process", ours: &["treebeam-run"], outside: None },
    Allowed {
        name: "git",
        ours: &["treebeam-core", "treebeam-process", "treebeam-run"],
        outside: None,
    },
    Allowed {
        name: "store",
        ours: &["treebeam-core", "treebeam-git", "treebeam-run"],
        outside: None,
    },
    Allowed {
        name: "agent",
        ours: &[
            "treebeam-core",
            "treebeam-git",
            "treebeam-process",
            "treebeam-run",
            "treebeam-store",
            "treebeam-tuner",
        ],
        outside: None,
    },
    Allowed {
        name: "executor",
        ours: &[
            "treebeam-core",
            "treebeam-git",
            "treebeam-process",
            "treebeam-run",
            "treebeam-store",
        ],
        outside: None,
    },
    Allowed {
        name: "dry",
        ours: &["treebeam-core", "treebeam-run", "treebeam-store"],
        outside: None,
    },
    Allowed { name: "web", ours: &["treebeam-process"], outside: None },
    Allowed { name: "fault", ours: &[], outside: Some(&["libc"]) },
    Allowed {
        name: "testkit",
        ours: &["treebeam-core", "treebeam-fault", "treebeam-run", "treebeam-score"],
        outside: None,
    },
    Allowed {
        name: "treebeam",
        ours: &[
            "treebeam-agent",
            "treebeam-core",
            "treebeam-dry",
            "treebeam-executor",
            "treebeam-git",
            "treebeam-process",
            "treebeam-run",
            "treebeam-score",
            "treebeam-store",
            "treebeam-tuner",
            "treebeam-view",
            "treebeam-web",
        ],
        outside: None,
    },
];

/// Crates depend on nothing but what [`CRATE_LINE`] allows.
pub(crate) fn crates_look_left(project: &Project) -> Vec<String> {
    let mut complaints = Vec::new();
    for name in project.crate_names() {
        let path = format!("crates/{name}/Cargo.toml");
        let Some(allowed) = CRATE_LINE.iter().find(|allowed| allowed.name == name) else {
            complaints.push(format!(
                "{path}: a crate without a place in the line; give it one in `CRATE_LINE`"
            ));
            continue;
        };
        for dependency in dependencies(project.text_of(&path).unwrap_or_default()) {
            if !may_depend(allowed, dependency) {
                complaints.push(format!(
                    "{path}: `{name}` may not depend on `{dependency}`; move the code that needs it"
                ));
            }
        }
    }
    complaints
}

/// Tells if a crate may depend on a package.
fn may_depend(allowed: &Allowed, dependency: &str) -> bool {
    if dependency.starts_with("treebeam") {
        return allowed.ours.contains(&dependency);
    }
    allowed.outside.is_none_or(|outside| outside.contains(&dependency))
}

/// Packages that a manifest needs to be built, for any target; not those of its tests.
fn dependencies(manifest: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut listed = false;
    for line in manifest.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[') {
            let header = header.trim_end_matches(']');
            listed = is_dependency_table(header);
            if let Some((table, name)) = header.rsplit_once('.')
                && is_dependency_table(table)
            {
                names.push(name);
            }
        } else if listed && !line.is_empty() && !line.starts_with('#') {
            names.push(package(line));
        }
    }
    names
}

/// Tells if a table of a manifest lists packages that the crate needs to be built.
fn is_dependency_table(header: &str) -> bool {
    let table = header.rsplit('.').next().unwrap_or(header);
    matches!(table, "dependencies" | "build-dependencies")
}

/// Package named by a line such as `serde.workspace = true` or `x = { package = "serde_json" }`.
fn package(line: &str) -> &str {
    let renamed = line.split_once("package = \"").and_then(|(_, rest)| rest.split('"').next());
    let key = line.split(['.', '=', ' ']).next().unwrap_or(line);
    renamed.unwrap_or(key).trim_matches('"')
}

#[test]
fn crates_look_left_can_fail() {
    check(
        crates_look_left,
        "crates/core/Cargo.toml",
        "[dependencies]\nglobset.workspace = true\n",
        0,
    );
    check(
        crates_look_left,
        "crates/core/Cargo.toml",
        "[dev-dependencies]\nserde_json = \"1\"\n",
        0,
    );
    check(crates_look_left, "crates/core/Cargo.toml", "[dependencies]\nserde_json = \"1\"\n", 1);
    check(
        crates_look_left,
        "crates/core/Cargo.toml",
        "[dependencies.serde_json]\nversion = \"1\"\n",
        1,
    );
    check(
        crates_look_left,
        "crates/core/Cargo.toml",
        "[target.'cfg(unix)'.dependencies]\nx = { package = \"nix\" }\n",
        1,
    );
    check(
        crates_look_left,
        "crates/run/Cargo.toml",
        "[dependencies]\ntreebeam-core = { path = \"\" }\n",
        0,
    );
    check(
        crates_look_left,
        "crates/run/Cargo.toml",
        "[dependencies]\ntreebeam-store.workspace = true\n",
        1,
    );
    check(crates_look_left, "crates/store/Cargo.toml", "[dependencies]\nnix = \"0.31\"\n", 0);
    check(
        crates_look_left,
        "crates/store/Cargo.toml",
        "[dependencies]\ntreebeam-testkit.workspace = true\n",
        1,
    );
    check(crates_look_left, "crates/new/Cargo.toml", "", 1);
}

/// The crates that may not touch the world say so in a `clippy.toml` of their own, with reasons.
pub(crate) fn purity_is_enforced(project: &Project) -> Vec<String> {
    let mut complaints = Vec::new();
    for name in project.crate_names() {
        let path = format!("crates/{name}/clippy.toml");
        let bans = project.text_of(&path).unwrap_or_default();
        if matches!(name, "core" | "score" | "tuner" | "view" | "run")
            && !bans.contains("std::fs::")
        {
            complaints.push(format!("{path}: has to ban the file system, among others"));
        }
        let bare =
            bans.lines().filter(|line| line.contains("path = ") && !line.contains("reason = "));
        complaints.extend(bare.map(|line| format!("{path}: give a reason: `{}`", line.trim())));
        let manifest = format!("crates/{name}/Cargo.toml");
        if !project.text_of(&manifest).unwrap_or_default().contains("[lints]\nworkspace = true") {
            complaints.push(format!("{manifest}: add `[lints]` with `workspace = true`"));
        }
    }
    complaints
}

#[test]
fn purity_is_enforced_can_fail() {
    let manifest = |text: &str| source("crates/core/Cargo.toml", text);
    let good = manifest("[lints]\nworkspace = true\n");
    let bans = source("crates/core/clippy.toml", "{ path = \"std::fs::read\", reason = \"pure\" }");
    assert_eq!(purity_is_enforced(&project_of([good, bans])).len(), 0);
    let bans = source("crates/core/clippy.toml", "{ path = \"std::fs::read\" }");
    assert_eq!(
        purity_is_enforced(&project_of([manifest("[lints]\nworkspace = true\n"), bans])).len(),
        1
    );
    assert_eq!(purity_is_enforced(&project_of([manifest("[lints]\nworkspace = true\n")])).len(), 1);
    assert_eq!(purity_is_enforced(&project_of([manifest("")])).len(), 2);
}

// ---- modules

/// Top-level modules of a crate depend on each other in one direction only.
pub(crate) fn modules_form_no_cycle(project: &Project) -> Vec<String> {
    let cycles = module_cycles(&project.survey().files);
    cycles
        .into_iter()
        .map(|cycle| {
            let edges = cycle
                .edges
                .iter()
                .map(|edge| format!("`{}` → `{}` ({})", edge.from, edge.to, edge.example));
            format!(
                "{}: modules {} form a cycle, cut it: {}",
                cycle.folder,
                cycle.modules.join(", "),
                edges.collect::<Vec<_>>().join(", ")
            )
        })
        .collect()
}

#[test]
fn modules_form_no_cycle_can_fail() {
    let rule = modules_form_no_cycle;
    let files = |first: &str, second: &str| {
        let path = "crates/core/src/facts/lookup.rs";
        project_of([source("crates/core/src/gate.rs", first), source(path, second)])
    };
    assert_eq!(rule(&files("use crate::facts::Eval;", "use super::Eval;")).len(), 0);
    assert_eq!(rule(&files("use crate::facts::Eval;", "use crate::gate::Verdict;")).len(), 1);
    assert_eq!(rule(&files("use super::facts::Eval;", "use crate::{gate, rank};")).len(), 1);
    let in_tests = "#[cfg(test)]\nmod tests { use crate::gate::Verdict; }";
    assert_eq!(rule(&files("use crate::facts::Eval;", in_tests)).len(), 0);
}
