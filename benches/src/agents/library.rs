//! Measures a provider's own Python library, as installed by `cargo xtask counterparts`.
//!
//! Its process lives through all rounds and reports its own usage: starting it and loading the
//! library do not count. `agents.py` is its side.

use super::server::text;
use super::{CALL_PROMPT, CallCase, CallContender};
use crate::Outcome;
use crate::companion::Companion;
use crate::gauge::WorkTime;
use treebeam_testkit::counterpart;

const CLIENT_SCRIPT_PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/agents.py");

pub(super) struct Library {
    process: Companion,
    pub(super) version: String,
}

impl Library {
    pub(super) fn start(port: u16) -> Outcome<Self> {
        if std::env::var_os("TREEBEAM_COUNTERPARTS").is_none() {
            return Err(
                "`TREEBEAM_COUNTERPARTS` names no folder: call `cargo xtask bench agents`".into()
            );
        }
        let mut command = counterpart::python("sdks");
        let url = format!("http://127.0.0.1:{port}/v1");
        let mut process =
            Companion::start(command.args([CLIENT_SCRIPT_PATH, &url, CALL_PROMPT, &text()]))?;
        let version = process.ask("version")?;
        Ok(Self { process, version })
    }
}

impl CallContender for Library {
    fn round(&mut self, case: CallCase) -> Outcome<WorkTime> {
        let answer = self.process.ask(&format!("{} {}", case.at_once, case.calls))?;
        let [processor, wall] = answer.split_whitespace().collect::<Vec<_>>()[..] else {
            return Err(format!("the library answered `{answer}`").into());
        };
        Ok(WorkTime { processor: processor.parse()?, wall: wall.parse()? })
    }
}
