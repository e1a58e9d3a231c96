//! What was seen, written down as it happens: a line per operation, with tabs between its number, thread, call, path,
//! second path, events and outcome. Only operations that change something are written down, and what a plan hit.

use crate::direct_calls;
use crate::operation::{FaultRoot, FileOperation, OperationKind, is_heartbeat};
use crate::plan::{Fault, FaultPlan, OperationName};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The folder in which operations are looked at.
const ROOT_VARIABLE: &str = "FAULT_ROOT";
/// The program that is meant, by the path of its file. No other process does anything here.
const PROGRAM_VARIABLE: &str = "FAULT_PROGRAM";
/// What is to happen.
const PLAN_VARIABLE: &str = "FAULT_PLAN";
/// Where the operations are written down.
const LOG_VARIABLE: &str = "FAULT_LOG";

/// What this process is to do.
#[derive(Debug)]
pub(super) struct ProcessFaults {
    pub(super) root: FaultRoot,
    process: u32,
    plan: FaultPlan,
    log: CString,
    count: AtomicU64,
}

static PROCESS_FAULTS: OnceLock<Option<ProcessFaults>> = OnceLock::new();

impl ProcessFaults {
    /// The orders of this process; none in any but the one that is meant, and in a child between its fork and its exec.
    pub(super) fn get() -> Option<&'static Self> {
        let orders = PROCESS_FAULTS.get_or_init(Self::from_env).as_ref()?;
        (orders.process == std::process::id()).then_some(orders)
    }

    fn from_env() -> Option<Self> {
        let path = |name| std::env::var_os(name).map(PathBuf::from);
        let (root, program, log) =
            (path(ROOT_VARIABLE)?, path(PROGRAM_VARIABLE)?, path(LOG_VARIABLE)?);
        if std::fs::read_link("/proc/self/exe").ok()? != program {
            return None;
        }
        let plan = std::env::var(PLAN_VARIABLE).unwrap_or_default();
        let plan =
            FaultPlan::parse(&plan).unwrap_or_else(|error| direct_calls::abort_process(&error));
        let log = CString::new(log.as_os_str().as_bytes()).ok()?;
        let (process, count) = (std::process::id(), AtomicU64::new(0));
        Some(Self { root: FaultRoot(root), process, plan, log, count })
    }

    /// Counts an operation, and says what is to happen to it.
    pub(super) fn count_operation(&self, operation: &FileOperation) -> CountedOperation {
        let thread = direct_calls::thread_name();
        let counts = operation.kind == OperationKind::Change && !is_heartbeat(&thread);
        let number = if counts { self.count.fetch_add(1, Ordering::Relaxed) + 1 } else { 0 };
        let name = operation.match_text(&thread);
        let fault = self.plan.fault_for(OperationName { name: &name, counts });
        CountedOperation { number, thread, fault }
    }

    /// Writes an operation down with its outcome.
    pub(super) fn log_operation(
        &self,
        operation: &FileOperation,
        met: &CountedOperation,
        outcome: &str,
    ) {
        if operation.kind == OperationKind::Look && met.fault.is_none() {
            return;
        }
        let FileOperation { call, path, to, events, .. } = operation;
        let CountedOperation { number, thread, .. } = met;
        let line = format!("{number}\t{thread}\t{call}\t{path}\t{to}\t{events}\t{outcome}\n");
        direct_calls::append_directly(&self.log, line.as_bytes());
    }
}

/// An operation that was counted.
#[derive(Debug)]
pub(super) struct CountedOperation {
    /// Which of those that change something; 0 for the others.
    number: u64,
    thread: String,
    pub(super) fault: Option<Fault>,
}
