//! Tests that mount file systems, or that may reach nobody, run in namespaces of their own: what they mount is seen by
//! nobody else, and is gone with them however they end. Where that is not allowed, a test is passed over, and says so.

use std::env;
use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

/// Tells a test that it runs apart.
const INSIDE: &str = "TREEBEAM_TEST_APART";

/// How a test comes to run apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Namespace {
    /// As root, who may mount anything.
    Mounts,
    /// As anybody, who is root in there and may mount what is in memory.
    User,
    /// As root, with a network that has nobody else in it.
    Network,
    /// The same as anybody.
    UserNetwork,
}

impl Namespace {
    const fn flag(self) -> &'static str {
        match self {
            Self::Mounts => "-m",
            Self::User => "-Urm",
            Self::Network => "-n",
            Self::UserNetwork => "-Urn",
        }
    }

    /// Whether a shell script succeeds in there; if not, in words why.
    ///
    /// # Errors
    /// When it does not.
    pub fn can(self, script: &str) -> Result<(), String> {
        let tried = self.command().args(["sh", "-c", script]).stdin(Stdio::null()).output();
        let tried = tried.map_err(|error| format!("`unshare` cannot be run: {error}"))?;
        if tried.status.success() {
            return Ok(());
        }
        Err(String::from_utf8_lossy(&tried.stderr).trim().replace('\n', "; "))
    }

    fn command(self) -> Command {
        let mut command = Command::new("unshare");
        command.arg(self.flag());
        command
    }

    /// Runs one test of this test program once more, in there.
    #[track_caller]
    pub fn run(self, test: &str) {
        let program = env::current_exe().expect("this test's own program");
        let mut command = self.command();
        command
            .arg(program)
            .args(["--exact", test, "--nocapture", "--include-ignored"])
            .env(INSIDE, "1");
        let ended = command.stdin(Stdio::null()).status().expect("to run `unshare`");
        assert!(ended.success(), "`{test}` failed apart: {ended}");
    }
}

/// Whether this is such a test.
#[must_use]
pub fn is_inside() -> bool {
    env::var_os(INSIDE).is_some()
}

/// Runs a program of the system, which must succeed, and says what it said.
#[track_caller]
pub fn system<A: AsRef<OsStr>>(program: &str, arguments: impl IntoIterator<Item = A>) -> String {
    let ended = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let ended = ended.unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(ended.status.success(), "{program}: {}", String::from_utf8_lossy(&ended.stderr));
    String::from_utf8(ended.stdout).expect("output in UTF-8")
}

/// Unmounts what may be in use, or not mounted at all.
pub fn leave(folder: &Path) {
    drop(Command::new("umount").arg("--lazy").arg(folder).stderr(Stdio::null()).status());
}

/// Whether the long version of a test is wanted.
#[must_use]
pub fn is_campaign() -> bool {
    env::var_os("TREEBEAM_CAMPAIGN").is_some()
}

/// Says something that is seen although the test succeeds.
pub fn remark(text: &str) {
    drop(writeln!(io::stderr(), "{text}"));
}

/// Passes over a test that cannot be done here; one that was asked for by name fails.
#[track_caller]
pub fn pass_over(test: &str, why: &str) {
    assert!(!is_campaign(), "`{test}` cannot be done here: {why}");
    remark(&format!("`{test}` is passed over: {why}"));
}
