//! Measures long runs with a real journal in a world without git: late against early events.

use crate::gauge::{self, median, number, thread_time};
use crate::world::{Cleanup, ThinWorld, commit};
use crate::{Outcome, row};
use jiff::Timestamp;
use std::cell::Cell;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::num::NonZeroU32;
use std::path::Path;
use std::time::{Duration, Instant};
use treebeam_core::event::{Event, RunStarted, WorldKind};
use treebeam_core::policy::{FixedSettings, RecordedAgents, RunLimits};
use treebeam_core::rules_version::RulesVersion;
use treebeam_core::state::State;
use treebeam_run::port::{CheckpointKind, Journal, PortError};
use treebeam_store::{ForcePolicy, RunDir, RunStore};

/// Number of evals of a long run.
pub(crate) const SEARCH_EVALS: u32 = 20_100;
/// Number of evals in one sample.
const EVALS_PER_SAMPLE: u32 = 100;
/// Samples for the 200th eval, and for the 20,000th: the same number of evals, of one depth each.
const EARLY_SAMPLES: std::ops::Range<usize> = 1..11;
const LATE_SAMPLES: std::ops::Range<usize> = 191..201;
/// Number of runs for a median.
const SEARCH_REPEATS: usize = 3;

/// Shape of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) ideas: u32,
    pub(crate) beam: u32,
    pub(crate) cleanup: Cleanup,
}

/// 20,000 evals over many depths.
pub(crate) const DEEP_SHAPE: Shape = Shape { ideas: 100, beam: 10, cleanup: Cleanup::Works };
/// 20,000 evals on few nodes.
const WIDE_SHAPE: Shape = Shape { ideas: 2_000, beam: 4, cleanup: Cleanup::Works };
/// Many depths, with a fourth of all removals failing.
const STUCK_SHAPE: Shape = Shape { cleanup: Cleanup::Sticks, ..DEEP_SHAPE };

/// Cumulative figures of a run after some evals.
#[derive(Clone, Copy, Debug)]
struct Mark {
    events: u32,
    wall: Duration,
    thread: Duration,
    appended: u64,
}

/// Second destination of the journal's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mirror {
    Nowhere,
    /// A file on a disk, synced like the journal during samples that count.
    Disk,
}

/// Prints the cost of an event late in a run against early in it.
pub(crate) fn events() -> Outcome<()> {
    compare("K=100 B=10, many depths", DEEP_SHAPE, Mirror::Nowhere, SEARCH_REPEATS)?;
    compare("K=2000 B=4, few nodes", WIDE_SHAPE, Mirror::Nowhere, SEARCH_REPEATS)?;
    compare(
        "K=100 B=10, a fourth of the worktrees cannot be removed",
        STUCK_SHAPE,
        Mirror::Nowhere,
        1,
    )?;
    compare("K=100 B=10, each append synced to a disk", DEEP_SHAPE, Mirror::Disk, 1)
}

fn compare(name: &str, shape: Shape, mirror: Mirror, repeats: usize) -> Outcome<()> {
    let mut ratios: [Vec<f64>; 4] = Default::default();
    for _ in 0..repeats {
        let folder = gauge::in_memory()?;
        let samples = search(folder.path(), shape, mirror)?.samples;
        let thread = |sample: &SearchSample| sample.thread / sample.events;
        let wall = |sample: &SearchSample| sample.wall / sample.events;
        let figures = [
            grown(&samples, median, thread),
            grown(&samples, median, wall),
            grown(&samples, mean, wall),
            grown(&samples, mean, |sample| sample.bytes / sample.events),
        ];
        ratios.iter_mut().zip(figures).for_each(|(all, figure)| all.push(figure));
    }
    let [thread, wall, all, bytes] = ratios.map(|all| gauge::spread(&all));
    row(&format!("{name}: processor time of the loop, median sample"), &thread);
    row(&format!("{name}: wall time, median sample"), &wall);
    row(&format!("{name}: wall time, mean with proposals"), &all);
    row(&format!("{name}: journal bytes, mean with proposals"), &bytes);
    Ok(())
}

/// Returns a figure of the late samples, divided by that of the early ones.
fn grown(
    samples: &[SearchSample],
    middle: fn(&[f64]) -> f64,
    figure: impl Fn(&SearchSample) -> f64,
) -> f64 {
    let of = |range: std::ops::Range<usize>| {
        let samples = samples.get(range).unwrap_or_default().iter();
        middle(&samples.map(&figure).collect::<Vec<_>>())
    };
    of(LATE_SAMPLES) / of(EARLY_SAMPLES)
}

fn mean(figures: &[f64]) -> f64 {
    figures.iter().sum::<f64>() / number(figures.len())
}

/// Cost of some evals, without the manifests written meanwhile.
#[derive(Clone, Copy, Debug)]
struct SearchSample {
    events: f64,
    wall: f64,
    thread: f64,
    bytes: f64,
}

/// A finished run.
pub(crate) struct Searched {
    samples: Vec<SearchSample>,
    pub(crate) run: RunDir,
    pub(crate) evals: u32,
}

/// Makes a run in a folder.
pub(crate) fn search_in(folder: &Path, shape: Shape) -> Outcome<Searched> {
    search(folder, shape, Mirror::Nowhere)
}

fn search(folder: &Path, shape: Shape, mirror: Mirror) -> Outcome<Searched> {
    let world = ThinWorld::new(shape.cleanup);
    let (store, state) = RunStore::create(folder, &started(shape)?)?;
    let run = store.run_dir().clone();
    let meter = Meter::default();
    let mut journal = Metered::new(store, &meter, mirror)?;
    let (mut marks, mut ended) = (vec![meter.mark()], 0);
    let state = treebeam_run::drive_run(state, world.ports(), &mut journal, &mut |_, events| {
        meter.events.set(meter.events.get() + u32::try_from(events.len()).unwrap_or(0));
        ended += events.iter().filter(|event| is_end(event)).count();
        if ended >= marks.len() * usize::try_from(EVALS_PER_SAMPLE).unwrap_or(1) {
            marks.push(meter.mark());
            meter.counts.set(
                EARLY_SAMPLES.contains(&(marks.len() - 1))
                    || LATE_SAMPLES.contains(&(marks.len() - 1)),
            );
        }
    })?;
    let samples = marks.iter().zip(marks.iter().skip(1)).map(|(a, b)| b.since(a)).collect();
    Ok(Searched { samples, run, evals: u32::try_from(state.evals.len())? })
}

fn is_end(event: &Event) -> bool {
    matches!(event, Event::Scored { .. } | Event::EvalFailed { .. })
}

pub(crate) fn started(shape: Shape) -> Outcome<RunStarted> {
    let at_least_one = |n| NonZeroU32::new(n).unwrap_or(NonZeroU32::MIN);
    let meaning = FixedSettings {
        ideas_per_node: at_least_one(shape.ideas),
        beam_width: at_least_one(shape.beam),
        sweep_config_limit: NonZeroU32::new(4),
        ..FixedSettings::default()
    };
    let reach = RunLimits {
        max_depth: 1_000,
        max_total_idea_evals: Some(SEARCH_EVALS),
        ..RunLimits::default()
    };
    let (world, root) = (WorldKind::Dry { seed: 1 }, commit(0, "root")?);
    Ok(RunStarted {
        run: "bench".parse()?,
        world,
        root,
        meaning,
        reach,
        agents: RecordedAgents::default(),
        given: None,
        replays: None,
        rules_version: RulesVersion::LATEST,
        at: Timestamp::UNIX_EPOCH,
    })
}

/// Meter of the resources used so far, and of those to subtract.
struct Meter {
    begun: Instant,
    events: Cell<u32>,
    appended: Cell<u64>,
    /// True during samples that count.
    counts: Cell<bool>,
    apart: Cell<(Duration, Duration)>,
}

impl Default for Meter {
    fn default() -> Self {
        Self {
            begun: Instant::now(),
            events: Cell::default(),
            appended: Cell::default(),
            counts: Cell::new(false),
            apart: Cell::default(),
        }
    }
}

impl Meter {
    fn mark(&self) -> Mark {
        let (wall, thread) = self.apart.get();
        Mark {
            events: self.events.get(),
            wall: self.begun.elapsed().saturating_sub(wall),
            thread: thread_time().saturating_sub(thread),
            appended: self.appended.get(),
        }
    }

    /// Runs work whose cost is subtracted.
    fn apart<T>(&self, work: impl FnOnce() -> T) -> T {
        let (begun, thread) = (Instant::now(), thread_time());
        let done = work();
        let before = self.apart.get();
        let thread = thread_time().saturating_sub(thread);
        self.apart.set((before.0 + begun.elapsed(), before.1 + thread));
        done
    }
}

impl Mark {
    fn since(&self, before: &Self) -> SearchSample {
        SearchSample {
            events: f64::from(self.events - before.events),
            wall: self.wall.saturating_sub(before.wall).as_secs_f64(),
            thread: self.thread.saturating_sub(before.thread).as_secs_f64(),
            bytes: number(self.appended - before.appended),
        }
    }
}

/// The real journal with a meter.
struct Metered<'a> {
    store: RunStore,
    meter: &'a Meter,
    journal: File,
    mirror: Option<File>,
}

impl<'a> Metered<'a> {
    fn new(store: RunStore, meter: &'a Meter, mirror: Mirror) -> Outcome<Self> {
        let journal = File::open(store.run_dir().journal_path())?;
        let mirror = match mirror {
            Mirror::Nowhere => None,
            Mirror::Disk => Some(tempfile::tempfile()?),
        };
        Ok(Self { store, meter, journal, mirror })
    }

    /// Copies the last appended bytes to the disk.
    fn reflect(&mut self) -> std::io::Result<()> {
        let Some(mirror) = &mut self.mirror else { return Ok(()) };
        let mut bytes = Vec::new();
        self.journal.read_to_end(&mut bytes)?;
        mirror.write_all(&bytes)?;
        if self.meter.counts.get() { mirror.sync_data() } else { Ok(()) }
    }
}

impl Journal for Metered<'_> {
    fn append(&mut self, events: &[Event]) -> Result<(), PortError> {
        self.store.append(events)?;
        let length =
            std::fs::metadata(self.store.run_dir().journal_path()).map_or(0, |file| file.len());
        self.meter.appended.set(length);
        self.reflect().map_err(|error| PortError::new("no mirror").with_cause(error))
    }

    fn write_checkpoint(&mut self, state: &State, moment: CheckpointKind) -> Result<(), PortError> {
        self.meter.apart(|| self.store.write_checkpoint(state, moment))
    }
}

/// Prints the memory that a long run and its resume need.
pub(crate) fn memory() -> Outcome<()> {
    let folder = gauge::in_memory()?;
    let bare = gauge::peak_of("nothing", folder.path())?;
    let run = gauge::peak_of("search", folder.path())?;
    let open = gauge::peak_of("open", folder.path())?;
    let per_eval = |peak: u32| {
        format!(
            "{:.1} KiB per eval",
            f64::from(peak.saturating_sub(bare)) / f64::from(SEARCH_EVALS)
        )
    };
    row("peak memory of a run of 20,000 evals, above a bare process", &per_eval(run));
    row("peak memory of opening it again, above a bare process", &per_eval(open));
    let manifest = RunDir::new(folder.path().join("bench")).manifest_path().metadata()?.len();
    row(
        "its manifest",
        &format!("{:.1} KiB per eval", number(manifest / 1024) / f64::from(SEARCH_EVALS)),
    );
    Ok(())
}

/// Runs a task in this process, and prints its peak memory.
pub(crate) fn child(task: &str, folder: &Path) -> Outcome<()> {
    match task {
        "search" => drop(search_in(folder, DEEP_SHAPE)?),
        "open" => drop(RunStore::open_to_run(&RunDir::new(folder.join("bench")), ForcePolicy::No)?),
        _ => {}
    }
    println!("{}", gauge::peak_memory());
    Ok(())
}
