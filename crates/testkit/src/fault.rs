//! Runs the real program with faults at chosen moments, and reads back its operations. Linux only.
//!
//! Plans are defined in `treebeam_fault::plan`, whose library is loaded into the program.

use crate::program::{Call, Said, Site};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A plan of faults, and the log of operations. Numbers start anew with every call of the program.
#[derive(Debug)]
pub struct Fault {
    plan: String,
    root: Option<PathBuf>,
    log: TempDir,
}

/// An operation of the program that changed files, or that a plan hit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Number among those that change files, from 1; 0 for the heartbeat's and for others.
    pub number: u64,
    /// Thread of the operation.
    pub thread: String,
    /// System call: `create`, `write`, `copy`, `fsync`, `ftruncate`, `rename`, `link`, `symlink`,
    /// `unlink`, `mkdir`, `rmdir`; `open`, `read`, `flock`, `dup`, `pipe`, `socketpair` where the
    /// plan hit them.
    pub call: String,
    /// Path relative to the root.
    pub path: String,
    /// Target of a rename or a link, also relative.
    pub to: String,
    /// Types of the events in a write to a journal.
    pub events: Vec<String>,
    /// Result: `done`, `error N`, `failed N` (by the plan), `short`, `killed before`,
    /// `killed amid`, `killed after`.
    pub outcome: String,
}

impl Operation {
    /// Returns true if the program was killed at this operation.
    #[must_use]
    pub fn killed(&self) -> bool {
        self.outcome.starts_with("killed")
    }

    fn parse(line: &str) -> Self {
        let mut cells = line.split('\t').map(str::to_owned);
        let mut next = || cells.next().unwrap_or_else(|| panic!("too few cells: {line:?}"));
        let number = next().parse().expect("a number");
        let (thread, call, path, to) = (next(), next(), next(), next());
        let events =
            next().split(',').filter(|event| !event.is_empty()).map(str::to_owned).collect();
        Self { number, thread, call, path, to, events, outcome: next() }
    }
}

impl Fault {
    /// Creates a plan for the operations below the repository.
    #[must_use]
    pub fn plan(plan: &str) -> Self {
        let log = tempfile::tempdir().expect("a folder for the log");
        Self { plan: plan.to_owned(), root: None, log }
    }

    /// Creates a plan without faults: the operations are only logged.
    #[must_use]
    pub fn none() -> Self {
        Self::plan("")
    }

    /// Restricts the plan to the operations below another folder.
    #[must_use]
    pub fn below(self, root: &Path) -> Self {
        let root = root.canonicalize().expect("a folder");
        Self { root: Some(root), ..self }
    }

    /// Returns the operations of all calls with this plan, in the order in which they ended.
    #[must_use]
    pub fn operations(&self) -> Vec<Operation> {
        let text = fs::read(self.log()).unwrap_or_default();
        String::from_utf8_lossy(&text).lines().map(Operation::parse).collect()
    }

    /// Returns the operation that the program was killed at, if any.
    #[must_use]
    pub fn fatal(&self) -> Option<Operation> {
        self.operations().into_iter().find(Operation::killed)
    }

    fn log(&self) -> PathBuf {
        self.log.path().join("operations")
    }
}

impl Site {
    /// Starts the program with a fault in the background.
    #[must_use]
    pub fn begin_with_fault(&self, fault: &Fault, arguments: &[&str]) -> Call {
        let root = fault.root.as_deref().unwrap_or(self.repo.path());
        let program = self.binary().canonicalize().expect("the program");
        let mut variables = self.repo.variables();
        variables.extend([
            ("LD_PRELOAD".into(), library().into()),
            ("FAULT_ROOT".into(), root.into()),
            ("FAULT_PROGRAM".into(), program.into()),
            ("FAULT_PLAN".into(), fault.plan.clone().into()),
            ("FAULT_LOG".into(), fault.log().into()),
        ]);
        self.begin_with(variables, arguments)
    }

    /// Calls the program with a fault.
    #[must_use]
    pub fn call_with_fault(&self, fault: &Fault, arguments: &[&str]) -> Said {
        self.begin_with_fault(fault, arguments).wait()
    }
}

/// Returns the path of the fault library, which is beside the running test because the testkit
/// depends on its crate.
#[must_use]
pub fn library() -> PathBuf {
    let test = std::env::current_exe().expect("a path of this test");
    let library = test.with_file_name("libtreebeam_fault.so");
    assert!(library.is_file(), "`{}` is missing: was it built?", library.display());
    library
}
