//! Counts operations and logs them as they happen, in lines with tab-separated fields. The fields
//! are number, thread, call, path, second path, events and outcome. Only operations that change
//! something, or that a plan hit, are logged.

use crate::direct_calls;
use crate::operation::{FaultRoot, FileOperation, OperationKind, is_heartbeat};
use crate::plan::{FaultEffect, FaultPlan, OperationName};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Variable with the folder below which operations are counted.
const ROOT_VARIABLE: &str = "FAULT_ROOT";
/// Variable with the path of the program's file. No other process is affected.
const PROGRAM_VARIABLE: &str = "FAULT_PROGRAM";
/// Variable with the plan.
const PLAN_VARIABLE: &str = "FAULT_PLAN";
/// Variable with the path of the log of operations.
const LOG_VARIABLE: &str = "FAULT_LOG";

/// The fault settings and counters of this process.
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
    /// Returns the settings, or `None` in other programs and in a child between fork and exec.
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

    /// Counts an operation, and returns its number and its fault.
    pub(super) fn count_operation(&self, operation: &FileOperation) -> CountedOperation {
        let thread = direct_calls::thread_name();
        let counts = operation.kind == OperationKind::Change && !is_heartbeat(&thread);
        let number = if counts { self.count.fetch_add(1, Ordering::Relaxed) + 1 } else { 0 };
        let name = operation.match_text(&thread);
        let fault = self.plan.fault_for(OperationName { name: &name, counts });
        CountedOperation { number, thread, fault }
    }

    /// Logs an operation with its outcome.
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

/// An operation after it was counted.
#[derive(Debug)]
pub(super) struct CountedOperation {
    /// Number among the operations that change something; 0 for all others.
    number: u64,
    thread: String,
    pub(super) fault: Option<FaultEffect>,
}
