//! Ends of jobs, for all behaviours of their commands.

use crate::field::{BINARY, Field, GOOD, counted, ends, key, said, shell, sweep};
use serde_json::Value;
use std::fs;
use std::process::Command;
use std::time::Duration;
use treebeam_core::event::FailureKind;
use treebeam_core::measure::{CommandLine, MeasureSettings};
use treebeam_executor::{LocalExecutor, LocalExecutorConfig};
use treebeam_run::port::{Executor as _, JobEnd, SweepJob};
use treebeam_testkit::hostile;

/// Returns the end of a single job.
fn end(field: &Field, local: LocalExecutorConfig, eval: u32) -> JobEnd {
    let executor = LocalExecutor::new(local);
    executor.submit_job(&field.job(eval, 1)).expect("to submit");
    ends(&executor, 1).remove(0)
}

fn result(field: &Field, eval: u32) -> Value {
    let text = fs::read(field.folder(key(eval, 1)).join("eval_result.json")).expect("a result");
    serde_json::from_slice(&text).expect("JSON")
}

/// Returns the schema's complaints about a result, unknown fields included.
fn misfits(schema: &Value, result: &Value) -> Vec<String> {
    let closed: Value = serde_json::from_str(
        &schema
            .to_string()
            .replace(r#""properties":{"#, r#""additionalProperties":false,"properties":{"#),
    )
    .expect("a schema");
    let validator = jsonschema::validator_for(&closed).expect("a schema");
    validator.iter_errors(result).map(|error| error.to_string()).collect()
}

#[test]
#[expect(clippy::too_many_lines, reason = "it is a table")]
fn each_ends_as_it_should() {
    use FailureKind::{NoResults, Results, Setup, Sweep, Tests, Timeout};
    let field = Field::new();
    let good = || sweep(GOOD);
    let after = |script: &str| sweep(&format!("{GOOD}; {script}"));
    let python = |code: &str| {
        let code = format!("import os\np = os.environ['AGENTIC_RESULTS_CSV']\n{code}");
        let parts = ["python3", "-c", &code].map(str::to_owned);
        MeasureSettings {
            sweep_command: Some(CommandLine::Program(parts.into())),
            ..MeasureSettings::default()
        }
    };
    let path = |text: &str| Some(text.to_owned().try_into().expect("a path"));
    let cases: Vec<(&str, MeasureSettings, Option<FailureKind>, &str)> = vec![
        (
            "all good",
            MeasureSettings { setup_command: shell("true"), test_command: shell("true"), ..good() },
            None,
            "done",
        ),
        (
            "setup fails",
            MeasureSettings { setup_command: shell("echo no; exit 3"), ..good() },
            Some(Setup),
            "the setup exited 3:\nno",
        ),
        (
            "tests fail",
            MeasureSettings { test_command: shell("echo 1 failed >&2; exit 1"), ..good() },
            Some(Tests),
            "the test command exited 1:\n1 failed",
        ),
        (
            "tests are killed",
            MeasureSettings { test_command: shell("kill -9 $$"), ..good() },
            Some(Tests),
            "the test command was ended by signal 9; it said nothing",
        ),
        (
            "a perfect CSV is not enough",
            after("exit 1"),
            Some(Sweep),
            "the sweep exited 1; it said nothing",
        ),
        (
            "no such program",
            MeasureSettings {
                sweep_command: Some(CommandLine::Program(vec!["no-such-program".to_owned()])),
                ..good()
            },
            Some(Sweep),
            "`no-such-program` could not be started",
        ),
        (
            "no such folder",
            MeasureSettings { sweep_cwd: path("none"), ..good() },
            Some(Sweep),
            "there is no such folder",
        ),
        (
            "no CSV",
            sweep("true"),
            Some(NoResults),
            "the sweep succeeded, but wrote no `meta_config_sweep_results.csv`",
        ),
        (
            "a CSV of the tests",
            MeasureSettings { test_command: shell(GOOD), ..sweep("true") },
            Some(NoResults),
            "wrote no",
        ),
        (
            "a link",
            python("open(p + 'x', 'w').write('a'); os.symlink(p + 'x', p)"),
            Some(Results),
            "are a link",
        ),
        (
            "a second name",
            python("open(p, 'w').write('a'); os.link(p, p + 'x')"),
            Some(Results),
            "are a file with more than one name",
        ),
        ("a pipe", python("os.mkfifo(p)"), Some(Results), "are no regular file"),
        ("a folder", python("os.mkdir(p)"), Some(Results), "are a folder"),
        (
            "3 GB",
            python("open(p, 'wb').truncate(3 << 30)"),
            Some(Results),
            "are larger than 1024 MiB",
        ),
        (
            "hangs",
            after("sleep 300"),
            Some(Timeout),
            "the sweep was ended: 2 s were left for all commands together",
        ),
        (
            "hangs, with a pipe in place of its log",
            sweep(r#"cd "$AGENTIC_OUTPUT_DIR"; rm sweep.log; mkfifo sweep.log; sleep 300"#),
            Some(Timeout),
            "the sweep was ended: 2 s were left for all commands together; it said nothing",
        ),
        (
            "tests that want another file written",
            MeasureSettings {
                test_command: shell(
                    r#"echo a > kept; ln -s "$PWD/kept" "$AGENTIC_OUTPUT_DIR/sweep.log""#,
                ),
                ..after("echo b; grep -q a kept")
            },
            None,
            "done",
        ),
        (
            "hangs while testing",
            MeasureSettings { test_command: shell("echo begun; sleep 300"), ..good() },
            Some(Timeout),
            "the test command was ended: 2 s were left for all commands together:\nbegun",
        ),
        ("deletes its .git", after("rm -f .git"), None, "done"),
        (
            "binary garbage",
            after(r"printf '\377\376\033[2J\000x'; exit 2"),
            Some(Sweep),
            "the sweep exited 2:\n\u{fffd}\u{fffd}\u{fffd}[2J\u{fffd}x",
        ),
        (
            "clears its folder",
            sweep(&format!(r#"rm -rf "$AGENTIC_OUTPUT_DIR"/*; {GOOD}"#)),
            None,
            "done",
        ),
        (
            "writes its own verdict",
            after(r#"echo '{}' > "$AGENTIC_OUTPUT_DIR/eval_result.json""#),
            Some(Sweep),
            "a command wrote `eval_result.json`, which is not its to write",
        ),
        (
            "puts a link in place of its log",
            after(r#"ln -sf /etc/passwd "$AGENTIC_OUTPUT_DIR/sweep.log""#),
            None,
            "done",
        ),
        (
            "heeds no variable",
            MeasureSettings {
                results_csv: path("out/r.csv"),
                ..sweep("mkdir -p out; echo a > out/r.csv")
            },
            None,
            "done",
        ),
        (
            "the same, from before",
            MeasureSettings {
                results_csv: path("r.csv"),
                setup_command: shell("echo old > r.csv"),
                ..sweep("true")
            },
            Some(NoResults),
            "wrote no `r.csv`",
        ),
        (
            "the same, a link",
            MeasureSettings { results_csv: path("r.csv"), ..sweep("ln -s /etc/passwd r.csv") },
            Some(Results),
            "the results `r.csv` are a link",
        ),
        (
            "the same, below a link",
            MeasureSettings { results_csv: path("out/passwd"), ..sweep("ln -s /etc out") },
            Some(Results),
            "a link leads to the results `out/passwd`",
        ),
        (
            "an input that is not there",
            MeasureSettings { inputs: vec![path("data").expect("a path")], ..good() },
            Some(Setup),
            "the input `data` cannot be linked: there is no",
        ),
    ];
    let start = |(number, (_, measure, _, _)): (u32, &(&str, MeasureSettings, _, _))| {
        let short = matches!(cases[number as usize - 1].2, Some(Timeout));
        let timeout = Duration::from_secs(if short { 2 } else { 150 });
        let executor = field.executor(measure.clone());
        let job = SweepJob { timeout: Some(timeout), ..field.job(number, 1) };
        executor.submit_job(&job).expect("to submit");
        executor
    };
    let schema = field.site.call(&["schema", "eval_result"]).exits(0).stdout;
    let schema: Value = serde_json::from_str(&schema).expect("a schema");
    let executors: Vec<LocalExecutor> = (1..).zip(&cases).map(start).collect();
    for ((number, executor), (name, _, kind, message)) in (1..).zip(executors).zip(&cases) {
        let end = ends(&executor, 1).remove(0);
        let (found, words) = said(&end);
        assert_eq!(found, *kind, "{name}: {words}");
        assert!(words.contains(message), "{name}: {words}");
        let result = result(&field, number);
        assert_eq!(result["failure"].is_null(), kind.is_none(), "{name}: {result}");
        assert_eq!(result["results"].is_null(), kind.is_some(), "{name}: {result}");
        assert_eq!(misfits(&schema, &result), Vec::<String>::new(), "{name}: {result}");
        for log in &end.logs {
            assert!(
                fs::symlink_metadata(field.run.file_path(log)).expect("a log").is_file(),
                "{name}: {log}"
            );
        }
        assert!(
            executor.wait_for_jobs(Duration::ZERO).expect("to wait").is_empty(),
            "{name}: said once"
        );
    }
}

#[test]
fn a_result_says_all() {
    let field = Field::new();
    let busy = "python3 -c 'x = bytearray(60 << 20); sum(range(3000000))'";
    let measure = MeasureSettings {
        test_command: shell("echo tested"),
        ..sweep(&format!("{GOOD}; {busy}; echo swept"))
    };
    let end = end(&field, field.local(measure), 1);
    let logs: Vec<String> = end.logs.iter().map(ToString::to_string).collect();
    assert_eq!(logs, ["eval/0001/s1/tests.log", "eval/0001/s1/sweep.log"]);
    assert_eq!(fs::read_to_string(field.run.file_path(&end.logs[1])).expect("a log"), "swept\n");
    let result = result(&field, 1);
    assert_eq!(result["schema"], "treebeam.eval_result/1");
    assert_eq!(result["job"], "tree-t-e0001-sweep-s1");
    assert_eq!(result["stages"][0]["stage"], "tests");
    assert_eq!(result["stages"][0]["tail"], "tested");
    assert_eq!(result["stages"][1]["exit_code"], 0);
    assert_eq!(result["results"]["bytes"], 26);
    assert_eq!(result["results"]["sha256"].as_str().map(str::len), Some(64));
    assert!(result["usage"]["cpu_seconds"].as_f64() > Some(0.01), "{result}");
    assert!(result["usage"]["peak_memory_bytes"].as_u64() > Some(60 << 20), "{result}");
    assert!(result["usage"]["wall_seconds"].as_f64() > Some(0.01), "{result}");
}

#[test]
fn commands_know_what_they_are_told_and_nothing_else() {
    let field = Field::new();
    fs::create_dir_all(field.site.repo.path().join("data/big")).expect("a folder");
    fs::write(field.site.repo.path().join("data/big/rows"), "1\n").expect("a file");
    let measure = MeasureSettings {
        sweep_cwd: Some("sub".to_owned().try_into().expect("a path")),
        setup_command: shell("mkdir sub"),
        sweep_config_limit_flag: Some("--limit".to_owned().try_into().expect("a word")),
        inputs: vec!["data/big".to_owned().try_into().expect("a path")],
        ..sweep(&format!(
            r#"{GOOD}; cat ../data/big/rows; cat; env | sort > "$AGENTIC_OUTPUT_DIR/env"; echo"#
        ))
    };
    let mut local = field.local(measure);
    local.variables.push(("PASSED".into(), "yes".into()));
    let end = end(&field, local, 7);
    assert_eq!(said(&end).0, None, "{:?}", said(&end));
    let folder = field.folder(key(7, 1));
    assert_eq!(fs::read_to_string(folder.join("sweep.log")).expect("a log"), "1\n--limit 3\n");
    let known = fs::read_to_string(folder.join("env")).expect("the variables");
    let value = |name: &str| {
        let line = known.lines().find_map(|line| line.strip_prefix(&format!("{name}=")));
        line.unwrap_or_else(|| panic!("no {name} in {known}")).to_owned()
    };
    let mut names: Vec<&str> =
        known.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    names.retain(|name| !["PWD", "OLDPWD", "SHLVL", "_"].contains(name));
    assert_eq!(
        names,
        [
            "AGENTIC_OUTPUT_DIR",
            "AGENTIC_RESULTS_CSV",
            "AGENTIC_SWEEP_CONFIG_LIMIT",
            "GIT_CEILING_DIRECTORIES",
            "PASSED",
            "PATH",
            "TREEBEAM_EVAL",
            "TREEBEAM_MARK",
            "TREEBEAM_RUN",
            "TREEBEAM_WORKTREE"
        ]
    );
    assert_eq!(value("AGENTIC_OUTPUT_DIR"), folder.display().to_string());
    assert_eq!(value("AGENTIC_SWEEP_CONFIG_LIMIT"), "3");
    assert_eq!(value("GIT_CEILING_DIRECTORIES"), field.run.root().display().to_string());
    assert_eq!(
        (value("TREEBEAM_EVAL"), value("TREEBEAM_RUN")),
        ("0007".to_owned(), "t".to_owned())
    );
    let spec = fs::read_to_string(folder.join("job.json")).expect("the job");
    assert!(!spec.contains("yes"), "no value of a variable is in the file of a job: {spec}");
}

#[test]
fn two_gigabytes_of_output_take_no_memory() {
    let field = Field::new();
    let bytes: u64 = 2 << 30;
    let loud = format!("{GOOD}; head -c {bytes} /dev/zero; echo; echo the end");
    let quiet = field.spec(sweep(GOOD), &field.job(1, 1));
    let loud = field.spec(sweep(&loud), &field.job(2, 1));
    let wrapper = "import resource, subprocess, sys\n\
        subprocess.run(sys.argv[1:], check=True, stdin=subprocess.DEVNULL)\n\
        print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)";
    let peak = |spec: &std::path::Path| -> u64 {
        let mut python = Command::new("python3");
        python.args(["-c", wrapper, BINARY, "job"]).arg(spec);
        let ended = python.env_clear().envs(field.site.repo.variables()).output().expect("python3");
        let said = String::from_utf8_lossy(&ended.stdout).into_owned();
        said.trim()
            .parse()
            .unwrap_or_else(|_| panic!("{said}{}", String::from_utf8_lossy(&ended.stderr)))
    };
    let (before, after) = (peak(&quiet), peak(&loud));
    assert!(after < before + (16 << 10), "{before} KB and {after} KB");
    let log = fs::read(field.folder(key(2, 1)).join("sweep.log")).expect("a log");
    assert!(log.len() < 6 << 20, "{}", log.len());
    assert!(log.ends_with(b"\0\nthe end\n"));
    let note = format!("\n[{} bytes are left out here]\n", bytes + 9 - (5 << 20));
    assert!(String::from_utf8_lossy(&log).contains(&note));
}

#[test]
fn nothing_is_left_when_a_command_ends_by_itself() {
    let field = Field::new();
    let word = format!("left-{}", field.site.repo.path().display());
    let parts =
        ["python3", "-c", hostile::PROCESS_TREE_SCRIPT, &word, "leave", "bare"].map(str::to_owned);
    let measure =
        MeasureSettings { test_command: Some(CommandLine::Program(parts.into())), ..sweep(GOOD) };
    let end = end(&field, field.local(measure), 1);
    assert_eq!(said(&end).0, None, "{:?}", said(&end));
    assert_eq!(hostile::survivors(&word), Vec::<u32>::new());
    assert_eq!(fs::read(field.folder(key(1, 1)).join("tests.log")).expect("a log"), b"ready\n");
}

#[test]
fn a_job_by_hand() {
    let field = Field::new();
    let job = |spec: &std::path::Path| field.site.call(&["job", &spec.display().to_string()]);
    let _ = job(&field.run.root().join("none")).exits(2).says(["is no job"]);
    let spec = field.spec(counted(GOOD), &field.job(1, 1));
    let _ = job(&spec).exits(0);
    let _ = job(&spec).exits(1).says(["the job `tree-t-e0001-sweep-s1` has a result already"]);
    assert_eq!(field.begun(1), 1);
    let executor = field.executor(counted(&format!("{GOOD}; sleep 300")));
    executor.submit_job(&field.job(2, 1)).expect("to submit");
    field.await_begun(2, 1);
    let folder = field.folder(key(2, 1));
    let _ = job(&folder.join("job.json")).exits(3).says(["another process does the job"]);
    crate::kills::kill(
        crate::field::process_of(&folder).expect("a process"),
        treebeam_testkit::program::Signal::Terminate,
    );
    let (_, words) = said(&ends(&executor, 1)[0]);
    assert!(words.starts_with("lost: its process ended without a result"), "{words}");
    assert_eq!(field.begun(2), 1);
}
