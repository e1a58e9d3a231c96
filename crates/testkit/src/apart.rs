//! Runs tests in namespaces of their own, to mount file systems or to have no network.
//!
//! Mounts are visible in the namespace only, and vanish with it. Where namespaces are not allowed,
//! a test is skipped with a message.

use std::env;
use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

/// Environment variable that is set for a test inside of a namespace.
const NAMESPACE_VARIABLE: &str = "TREEBEAM_TEST_APART";

/// Kind of namespace for a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Namespace {
    /// As root, which may mount anything.
    Mounts,
    /// As any user, who is root inside and may mount file systems in memory.
    User,
    /// As root, with a network that has no other host.
    Network,
    /// As any user, with a network that has no other host.
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

    /// Checks that a shell script succeeds in the namespace.
    ///
    /// # Errors
    /// When it does not, with the reason as text.
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

    /// Runs one test of this test program again, in the namespace.
    #[track_caller]
    pub fn run(self, test: &str) {
        let program = env::current_exe().expect("this test's own program");
        let mut command = self.command();
        command
            .arg(program)
            .args(["--exact", test, "--nocapture", "--include-ignored"])
            .env(NAMESPACE_VARIABLE, "1");
        let ended = command.stdin(Stdio::null()).status().expect("to run `unshare`");
        assert!(ended.success(), "`{test}` failed apart: {ended}");
    }
}

/// Returns true if this process is a test inside of a namespace.
#[must_use]
pub fn is_inside() -> bool {
    env::var_os(NAMESPACE_VARIABLE).is_some()
}

/// Runs a system program, which must succeed, and returns its output.
#[track_caller]
pub fn system<A: AsRef<OsStr>>(program: &str, arguments: impl IntoIterator<Item = A>) -> String {
    let ended = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let ended = ended.unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(ended.status.success(), "{program}: {}", String::from_utf8_lossy(&ended.stderr));
    String::from_utf8(ended.stdout).expect("output in UTF-8")
}

/// Unmounts a folder, which may be in use, or not mounted at all.
pub fn leave(folder: &Path) {
    drop(Command::new("umount").arg("--lazy").arg(folder).stderr(Stdio::null()).status());
}

/// Returns true if the long version of tests is requested.
#[must_use]
pub fn is_campaign() -> bool {
    env::var_os("TREEBEAM_CAMPAIGN").is_some()
}

/// Prints a message that is visible although the test succeeds.
pub fn remark(text: &str) {
    drop(writeln!(io::stderr(), "{text}"));
}

/// Skips a test that cannot run here; in a campaign it fails instead.
#[track_caller]
pub fn pass_over(test: &str, why: &str) {
    assert!(!is_campaign(), "`{test}` cannot be done here: {why}");
    remark(&format!("`{test}` is passed over: {why}"));
}
