//! Runs one command of a job: working directory, environment, log, and the report of its end.

use super::job_result::{JobFailure, StageRecord};
use super::limit::JobLimit;
use super::results::remove_entry;
use super::spec::{JobCommand, JobSpec, JobStage};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Instant;
use treebeam_core::event::{FailureKind, SweepSubject};
use treebeam_core::path;
use treebeam_process::{
    self, CapturedOutput, ChildLog, ChildProgram, EndedChild, ProcessError, ProcessTree,
};
use treebeam_run::port;
use treebeam_store::RunDir;
use treebeam_store::record_file::{self, RecordKind};

/// Bytes kept of the beginning and of the end of an output.
const LOG_HEAD_BYTES: usize = 4 << 20;
const LOG_TAIL_BYTES: usize = 1 << 20;
/// Maximum characters of the output's end in the result and in its message.
const MAX_TAIL_CHARS: usize = 4_000;
const MAX_MESSAGE_CHARS: usize = 1_000;

/// Runs the commands of a job.
pub(super) struct StageRunner<'a> {
    pub(super) spec: &'a JobSpec,
    pub(super) folder: &'a Path,
    pub(super) run: &'a RunDir,
    pub(super) limit: &'a JobLimit<'a>,
}

impl StageRunner<'_> {
    pub(super) fn worktree(&self) -> PathBuf {
        let own = || self.run.file_path(&self.spec.worktree);
        self.spec.in_place.clone().unwrap_or_else(own)
    }

    /// Runs a command, and ends all processes that it started.
    pub(super) fn run_command(
        &self,
        command: &JobCommand,
    ) -> (Option<StageRecord>, Result<(), JobFailure>) {
        let (stage, begun) = (command.stage, Instant::now());
        let ended = match self.build_program(command) {
            Ok(program) => program.run_until(&mut || self.limit.deadline()),
            Err(message) => {
                return (None, Err(stage_failure(stage, stage.failure_kind(), message)));
            }
        };
        let seconds = begun.elapsed().as_secs_f64();
        let ran = |status: Option<std::process::ExitStatus>, timed_out, tail| {
            let exit_code = status.and_then(|status| status.code());
            let signal = status.and_then(treebeam_process::exit_signal);
            StageRecord {
                ran: port::CommandRecord { stage, exit_code, signal, timed_out, seconds },
                tail,
            }
        };
        match ended {
            Ok(EndedChild { status, stdout, .. }) => {
                let tail = render_tail(&stdout, MAX_TAIL_CHARS);
                let record = ran(Some(status), false, tail.clone());
                let judged = if status.success() {
                    Ok(())
                } else {
                    let how = describe_exit(&record.ran);
                    Err(stage_failure(
                        stage,
                        stage.failure_kind(),
                        append_tail(&format!("{stage} {how}"), &tail),
                    ))
                };
                (Some(record), judged)
            }
            Err(ProcessError::Deadline { .. }) => {
                let tail = self.read_log_tail(stage);
                let most = self.limit.timeout().unwrap_or_default().as_secs_f64();
                let most = (most * 1000.0).round() / 1000.0;
                let message =
                    format!("{stage} was ended: {most} s were left for all commands together");
                let failure =
                    stage_failure(stage, FailureKind::Timeout, append_tail(&message, &tail));
                (Some(ran(None, true, tail)), Err(failure))
            }
            Err(error) => {
                let message = render_process_error(&error);
                (
                    Some(ran(None, false, String::new())),
                    Err(stage_failure(stage, stage.failure_kind(), message)),
                )
            }
        }
    }

    fn build_program(&self, command: &JobCommand) -> Result<ChildProgram, String> {
        let stage = command.stage;
        let Some((program, arguments)) = command.parts.split_first() else {
            return Err(format!("{stage} has no command"));
        };
        let mut cwd = self.worktree();
        cwd.extend(command.cwd.iter().flat_map(|cwd| cwd.as_str().split('/')));
        if !cwd.is_dir() {
            return Err(format!(
                "{stage} cannot run in `{}`: there is no such folder",
                cwd.display()
            ));
        }
        let log = self.create_log(stage);
        let log =
            log.map_err(|error| format!("`{}` cannot be written: {error}", stage.log_file()))?;
        let whole = ProcessTree::new(super::job_marker(self.folder), self.spec.times.grace);
        Ok(ChildProgram::new(Path::new(program), &cwd)
            .args(arguments)
            .envs(self.stage_variables())
            .log(ChildLog { file: log, head: LOG_HEAD_BYTES, tail: LOG_TAIL_BYTES })
            .in_tree(whole))
    }

    /// Returns the variables of the commands: those that the run passes, and the paths for results.
    fn stage_variables(&self) -> Vec<(OsString, OsString)> {
        let spec = self.spec;
        let passed = spec.variables.iter();
        let mut all: Vec<(OsString, OsString)> =
            passed.filter_map(|name| Some((name.into(), std::env::var_os(name)?))).collect();
        let mut set = |name: &str, value: OsString| all.push((name.into(), value));
        set("AGENTIC_OUTPUT_DIR", self.folder.into());
        set("AGENTIC_RESULTS_CSV", self.folder.join(path::RESULTS_CSV).into());
        set("GIT_CEILING_DIRECTORIES", self.run.root().into());
        set("TREEBEAM_RUN", spec.run.as_str().into());
        set("TREEBEAM_WORKTREE", self.worktree().into());
        if let Some(limit) = spec.sweep_config_limit {
            set("AGENTIC_SWEEP_CONFIG_LIMIT", limit.to_string().into());
        }
        if let SweepSubject::Eval(eval) = spec.subject {
            set("TREEBEAM_EVAL", eval.to_string().into());
        }
        all
    }

    /// Creates a new log. An existing file is removed first: an earlier command may have put a link
    /// in its place.
    fn create_log(&self, stage: JobStage) -> io::Result<File> {
        let path = self.folder.join(stage.log_file());
        remove_entry(&path)?;
        File::options().write(true).create_new(true).open(path)
    }

    /// Reads the end of the log of a command that was ended. Does not open a pipe that the command
    /// put in its place, as that would block.
    fn read_log_tail(&self, stage: JobStage) -> String {
        let path = self.folder.join(stage.log_file());
        let read = || -> io::Result<Vec<u8>> {
            let mut file = record_file::open_record(&path, RecordKind::Log)?;
            let most = (MAX_TAIL_CHARS as u64 * 4).min(file.metadata()?.len());
            file.seek(SeekFrom::End(-i64::try_from(most).unwrap_or(0)))?;
            let mut bytes = Vec::new();
            file.take(most).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        let bytes = read().unwrap_or_default();
        render_tail(&CapturedOutput { bytes, dropped: 0 }, MAX_TAIL_CHARS)
    }
}

pub(super) fn stage_failure(stage: JobStage, kind: FailureKind, message: String) -> JobFailure {
    JobFailure { stage: Some(stage), kind, message }
}

fn describe_exit(ran: &port::CommandRecord) -> String {
    const FILE_SIZE_REASON: &str = "it reached the limit of a file's size (`ulimit -f`)";
    match (ran.exit_code, ran.signal) {
        (Some(code), _) if code == 128 + treebeam_process::FILE_SIZE_SIGNAL => {
            format!("exited {code}, {FILE_SIZE_REASON}")
        }
        (None, Some(treebeam_process::FILE_SIZE_SIGNAL)) => {
            format!(
                "was ended by signal {}, {FILE_SIZE_REASON}",
                treebeam_process::FILE_SIZE_SIGNAL
            )
        }
        (Some(code), _) => format!("exited {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "failed".to_owned(),
    }
}

fn append_tail(message: &str, tail: &str) -> String {
    let shown = last_chars(tail, MAX_MESSAGE_CHARS);
    if shown.is_empty() {
        format!("{message}; it said nothing")
    } else {
        format!("{message}:\n{shown}")
    }
}

/// Returns the end of an output as text; invalid bytes and control characters, which could move a
/// terminal's cursor, are replaced by a mark.
fn render_tail(output: &CapturedOutput, most: usize) -> String {
    let from = output.bytes.len().saturating_sub(most * 4);
    let text = String::from_utf8_lossy(output.bytes.get(from..).unwrap_or_default());
    let shown = |c: char| if c.is_control() && c != '\n' && c != '\t' { '\u{fffd}' } else { c };
    let text: String = text.replace("\r\n", "\n").chars().map(shown).collect();
    last_chars(text.trim(), most).to_owned()
}

fn last_chars(text: &str, most: usize) -> &str {
    let start = text.char_indices().rev().nth(most.saturating_sub(1)).map_or(0, |(at, _)| at);
    text.get(start..).unwrap_or_default()
}

fn render_process_error(error: &ProcessError) -> String {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}"));
    let cure = match error {
        ProcessError::Start { source, .. } => {
            treebeam_store::hint_for_io_error(source).map(|cure| format!("; {cure}"))
        }
        ProcessError::Lost { .. }
        | ProcessError::Interrupted { .. }
        | ProcessError::Deadline { .. } => None,
    };
    format!("{error}{}{}", cause.unwrap_or_default(), cure.unwrap_or_default())
}
