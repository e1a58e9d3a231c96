//! Measures the pages of `treebeam serve` for a run of 2,000 evals.
//!
//! Three figures: the time of a page against a plain file of its size, the delay of an event on a
//! page against `treebeam log --follow`, and the cost of five open pages for the run.

mod client;

use crate::dry::Bench;
use crate::gauge::{self, median, middle_half};
use crate::long::{self, Tail};
use crate::{Outcome, must, own_release, released, row};
use client::{Address, Open, between};
use serde_json::Value;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

const SHOWN_RUN_EVALS: usize = 2_000;
const WEB_RUN_ID: &str = "bench";
/// Number of requests for each page.
const REQUESTS_PER_PAGE: usize = 31;
/// Number of events that are awaited; [`EVENT_PAUSE`] is the pause before each.
const AWAITED_EVENTS: usize = 15;
const EVENT_PAUSE: Duration = Duration::from_millis(1_500);
/// Increment of the pause, so that polling intervals do not fall into step with it.
const EVENT_PAUSE_STEP: Duration = Duration::from_millis(37);
/// Number of pages open at once. A sample is [`DEPTHS_PER_SAMPLE`] depths of [`EVALS_PER_DEPTH`]
/// evals, after one depth in which the pages are opened, or the earlier ones are dropped.
const OPEN_PAGES: usize = 5;
const EVALS_PER_DEPTH: usize = 40;
const DEPTHS_PER_SAMPLE: usize = 5;
const SAMPLE_PAIRS: usize = 7;
const JOURNAL_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Prints the ratios.
pub(crate) fn web() -> Outcome<()> {
    let folder = gauge::in_memory()?;
    let (bench, program) = (long::furnished(folder.path())?, released(&own_release()?)?);
    bench.afresh()?;
    must(&mut runner(&bench, &program, SHOWN_RUN_EVALS))?;
    pages(&bench, &program)?;
    delay(&bench, &program)?;
    throughput(&bench, &program)
}

/// Returns the command that runs the run up to this number of evals.
fn runner(bench: &Bench, program: &Path, evals: usize) -> Command {
    let mut command = called(bench, program);
    command.args([
        "run",
        "--quiet",
        "--run-id",
        WEB_RUN_ID,
        "--ideas-per-node=20",
        "--beam-width=2",
    ]);
    command.args(["--max-depth=1000", &format!("--max-total-idea-evals={evals}")]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn called(bench: &Bench, program: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(bench.repo()).env_clear().envs(bench.variables.iter().cloned());
    command.stdin(Stdio::null());
    command
}

fn run_folder(bench: &Bench) -> PathBuf {
    bench.repo().join(".treebeam/runs").join(WEB_RUN_ID)
}

/// A child process that is killed on drop.
struct RunningChild {
    process: Child,
    output: Option<BufReader<ChildStdout>>,
}

impl RunningChild {
    fn start(command: &mut Command) -> Outcome<Self> {
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let output = process.stdout.take().map(BufReader::new);
        Ok(Self { process, output })
    }

    fn line(&mut self) -> Outcome<String> {
        let mut line = String::new();
        self.output.as_mut().ok_or("a process without output")?.read_line(&mut line)?;
        Ok(line)
    }
}

impl Drop for RunningChild {
    fn drop(&mut self) {
        let _killed = self.process.kill();
        let _ended = self.process.wait();
    }
}

fn serve(bench: &Bench, program: &Path) -> Outcome<(RunningChild, Address)> {
    let mut running = RunningChild::start(called(bench, program).args(["serve", "--json"]))?;
    let said: Value = serde_json::from_str(&running.line()?)?;
    let port: u16 = said["port"].as_u64().ok_or("no port")?.try_into()?;
    let token = said["url"].as_str().and_then(|url| url.split_once("token=")).ok_or("no token")?.1;
    let cookie = format!("treebeam_{port}={token}");
    Ok((running, Address { port, cookie }))
}

// ---- pages

/// Measures each page alternately with a file of the same bytes from Python's own server.
fn pages(bench: &Bench, program: &Path) -> Outcome<()> {
    let (_serving, address) = serve(bench, program)?;
    let folder = bench.folder.join("files");
    fs::create_dir_all(&folder)?;
    let mut python = Command::new("python3");
    python
        .args(["-u", "-m", "http.server", "--bind=127.0.0.1", "--directory"])
        .arg(&folder)
        .arg("0");
    let mut python = RunningChild::start(&mut python)?;
    let port: u16 = between(&python.line()?, " port ", " ")?.parse()?;
    let files = Address { port, cookie: "none".to_owned() };
    for (name, path) in [
        ("the page of the run", format!("/runs/{WEB_RUN_ID}")),
        ("its evals", format!("/runs/{WEB_RUN_ID}/evals")),
        ("an eval", format!("/runs/{WEB_RUN_ID}/at/e1234")),
    ] {
        let (body, _) = address.timed(&path)?;
        fs::write(folder.join("page.html"), &body)?;
        let _warm = files.timed("/page.html")?;
        let (mut ours, mut ratios) = (Vec::new(), Vec::new());
        for _ in 0..REQUESTS_PER_PAGE {
            let (made, sent) = (address.timed(&path)?.1, files.timed("/page.html")?.1);
            ours.push(made * 1000.0);
            ratios.push(made / sent);
        }
        let kib = gauge::number(body.len()) / 1024.0;
        row(&format!("{name}, {kib:.0} KiB"), &format!("{:.1} ms", median(&ours)));
        row(&format!("{name} / a file of that size by Python's server"), &middle_half(&ratios));
    }
    Ok(())
}

// ---- delay

/// Appends the end of the journal again, event by event, and measures when each event arrives.
fn delay(bench: &Bench, program: &Path) -> Outcome<()> {
    let journal = run_folder(bench).join("journal.jsonl");
    let whole = fs::read_to_string(&journal)?;
    let (begin, steps) = cut(&whole);
    // Events that a manifest contains would not be news.
    let aside = |name: &str| (run_folder(bench).join(name), bench.folder.join(name));
    let manifests = ["manifest.json", "manifest.json.prev"].map(aside);
    for (there, kept) in &manifests {
        fs::copy(there, kept)?;
        fs::remove_file(there)?;
    }
    fs::write(&journal, begin)?;
    let measured = heard(bench, program, &journal, &steps);
    for (there, kept) in &manifests {
        fs::copy(kept, there)?;
    }
    fs::write(&journal, &whole)?;
    let (page, log) = measured?;
    let ratios: Vec<f64> = page.iter().zip(&log).map(|(page, log)| page / log).collect();
    let each = |all: &[f64]| {
        format!("{} ms", middle_half(&all.iter().map(|s| s * 1000.0).collect::<Vec<_>>()))
    };
    row("an event is on record, until an open page hears of it", &each(&page));
    row("the same, until `treebeam log --follow` prints it", &each(&log));
    row("page / log", &middle_half(&ratios));
    Ok(())
}

/// Splits off the last events of a journal; those that change no page are joined with the next one.
fn cut(whole: &str) -> (&str, Vec<&str>) {
    let mut ends: Vec<usize> = whole.match_indices('\n').map(|(at, _)| at + 1).collect();
    let shown = |ends: &[usize]| match ends {
        [from, to] => {
            whole.get(*from..*to).is_some_and(|line| !line.contains("\"type\":\"discard"))
        }
        _ => false,
    };
    let last: Vec<usize> = ends.windows(2).filter(|pair| shown(pair)).map(|pair| pair[1]).collect();
    ends = last.into_iter().rev().take(AWAITED_EVENTS + 1).collect();
    ends.reverse();
    let steps = ends.windows(2).filter_map(|pair| whole.get(pair[0]..pair[1])).collect();
    (ends.first().and_then(|end| whole.get(..*end)).unwrap_or_default(), steps)
}

fn heard(
    bench: &Bench,
    program: &Path,
    journal: &Path,
    steps: &[&str],
) -> Outcome<(Vec<f64>, Vec<f64>)> {
    let (_serving, address) = serve(bench, program)?;
    let (text, _) = address.timed(&format!("/runs/{WEB_RUN_ID}"))?;
    let seen = String::from_utf8(text)?;
    let news =
        lines(address.listen(WEB_RUN_ID, between(&seen, "data-version=\"", "\"")?)?, "data: ");
    let mut follow = called(bench, program);
    let mut follow = RunningChild::start(follow.args(["log", WEB_RUN_ID, "--follow", "--json"]))?;
    let log = lines(follow.output.take().ok_or("a process without output")?, "{");
    let (mut page, mut printed) = (Vec::new(), Vec::new());
    for (step, number) in steps.iter().zip(0..) {
        thread::sleep(EVENT_PAUSE + EVENT_PAUSE_STEP * number);
        // Discards messages about earlier events.
        while news.try_recv().is_ok() || log.try_recv().is_ok() {}
        let mut file = File::options().append(true).open(journal)?;
        let begun = Instant::now();
        file.write_all(step.as_bytes())?;
        let patience = Duration::from_secs(30);
        page.push((news.recv_timeout(patience)? - begun).as_secs_f64());
        printed.push((log.recv_timeout(patience)? - begun).as_secs_f64());
    }
    Ok((page, printed))
}

/// Sends the times at which lines with this beginning arrive.
fn lines(from: impl std::io::BufRead + Send + 'static, begin: &'static str) -> Receiver<Instant> {
    let (say, told) = channel();
    thread::spawn(move || {
        let all = from.lines().map_while(Result::ok);
        for _line in all.filter(|line| line.starts_with(begin)) {
            if say.send(Instant::now()).is_err() {
                return;
            }
        }
    });
    told
}

// ---- throughput

/// Continues the run depth by depth, with pages open at every other one.
fn throughput(bench: &Bench, program: &Path) -> Outcome<()> {
    let (_serving, address) = serve(bench, program)?;
    let journal = run_folder(bench).join("journal.jsonl");
    let mut tail = Tail::new(&journal);
    let begin = tail.scored()?;
    // One depth more at either end: the first is incomplete, the last ends with reports.
    let all = begin + EVALS_PER_DEPTH * (2 * SAMPLE_PAIRS * (DEPTHS_PER_SAMPLE + 1) + 2);
    let process = runner(bench, program, all).spawn()?;
    let mut running = RunningChild { process, output: None };
    let mut until = |evals: usize| -> Outcome<Instant> {
        while tail.scored()? < evals {
            if running.process.try_wait()?.is_some() {
                return Err("the run ended early".into());
            }
            thread::sleep(JOURNAL_POLL_INTERVAL);
        }
        Ok(Instant::now())
    };
    let mut end = begin + EVALS_PER_DEPTH;
    until(end)?;
    let (mut ratios, mut fetched) = (Vec::new(), 0);
    for pair in 0..SAMPLE_PAIRS {
        // Alternates which of both comes first.
        let open = if pair % 2 == 0 { [0, OPEN_PAGES] } else { [OPEN_PAGES, 0] };
        let mut took = [0.0; 2];
        for count in open {
            let open = Open::pages(&address, WEB_RUN_ID, count)?;
            let from = until(end + EVALS_PER_DEPTH)?;
            end += EVALS_PER_DEPTH * (DEPTHS_PER_SAMPLE + 1);
            took[usize::from(count > 0)] = (until(end)? - from).as_secs_f64();
            fetched += open.close();
        }
        let [without, with] = took;
        ratios.push(without / with);
    }
    let parts = gauge::number(fetched)
        / gauge::number(SAMPLE_PAIRS * OPEN_PAGES * EVALS_PER_DEPTH * (DEPTHS_PER_SAMPLE + 1));
    row(&format!("evals per second with {OPEN_PAGES} open pages / without"), &middle_half(&ratios));
    row("parts fetched by each page for each eval", &format!("{parts:.2}"));
    Ok(())
}
