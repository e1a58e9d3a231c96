//! What was seen, written down as it happens: a line per operation, with tabs between its number, thread, call, path,
//! second path, events and outcome. Only operations that change something are written down, and what a plan hit.

use crate::calls;
use crate::plan::{Fault, Named, Plan};
use crate::sight::{Kind, Operation, Root, is_heartbeat};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The folder in which operations are looked at.
const ROOT: &str = "FAULT_ROOT";
/// The program that is meant, by the path of its file. No other process does anything here.
const PROGRAM: &str = "FAULT_PROGRAM";
/// What is to happen.
const PLAN: &str = "FAULT_PLAN";
/// Where the operations are written down.
const LOG: &str = "FAULT_LOG";

/// What this process is to do.
#[derive(Debug)]
pub(super) struct Orders {
    pub(super) root: Root,
    process: u32,
    plan: Plan,
    log: CString,
    count: AtomicU64,
}

static ORDERS: OnceLock<Option<Orders>> = OnceLock::new();

impl Orders {
    /// The orders of this process; none in any but the one that is meant, and in a child between its fork and its exec.
    pub(super) fn get() -> Option<&'static Self> {
        let orders = ORDERS.get_or_init(Self::read).as_ref()?;
        (orders.process == std::process::id()).then_some(orders)
    }

    fn read() -> Option<Self> {
        let path = |name| std::env::var_os(name).map(PathBuf::from);
        let (root, program, log) = (path(ROOT)?, path(PROGRAM)?, path(LOG)?);
        if std::fs::read_link("/proc/self/exe").ok()? != program {
            return None;
        }
        let plan = std::env::var(PLAN).unwrap_or_default();
        let plan = Plan::parse(&plan).unwrap_or_else(|error| calls::give_up(&error));
        let log = CString::new(log.as_os_str().as_bytes()).ok()?;
        let (process, count) = (std::process::id(), AtomicU64::new(0));
        Some(Self { root: Root(root), process, plan, log, count })
    }

    /// Counts an operation, and says what is to happen to it.
    pub(super) fn meet(&self, operation: &Operation) -> Met {
        let thread = calls::thread_name();
        let counts = operation.kind == Kind::Change && !is_heartbeat(&thread);
        let number = if counts { self.count.fetch_add(1, Ordering::Relaxed) + 1 } else { 0 };
        let name = operation.name(&thread);
        let fault = self.plan.meet(Named { name: &name, counts });
        Met { number, thread, fault }
    }

    /// Writes an operation down with its outcome.
    pub(super) fn note(&self, operation: &Operation, met: &Met, outcome: &str) {
        if operation.kind == Kind::Look && met.fault.is_none() {
            return;
        }
        let Operation { call, path, to, events, .. } = operation;
        let Met { number, thread, .. } = met;
        let line = format!("{number}\t{thread}\t{call}\t{path}\t{to}\t{events}\t{outcome}\n");
        calls::append(&self.log, line.as_bytes());
    }
}

/// An operation that was counted.
#[derive(Debug)]
pub(super) struct Met {
    /// Which of those that change something; 0 for the others.
    number: u64,
    thread: String,
    pub(super) fault: Option<Fault>,
}
