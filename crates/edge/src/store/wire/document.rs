//! The manifest as one JSON document: written piece by piece, one node, eval or conversation to a line, and a checksum
//! at the end. Read into facts without building a tree of values first.

use super::control::ControlBlock;
use super::eval::EvalLine;
use super::node::{ConversationLine, NodeLine};
use super::run::{ConversationConfig, HistoryBlock, Root, RunConfig, StateBlock};
use super::v1;
use crate::store::manifest::{Mark, Unreadable};
use serde::Serialize;
use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error as _, MapAccess, Visitor};
use sha2::Digest as _;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::{self, Write};
use std::marker::PhantomData;
use treebeam_core::facts::{Facts, Phase};
use treebeam_core::id::{Depth, Sha256};

/// The version that is written.
pub(in crate::store) const VERSION: u64 = 2;
/// How the document begins.
const START: &str = "{\n\"manifest_version\":";
/// How its last line begins.
const CHECKSUM: &str = "\"checksum\":\"";

/// Writes the document.
pub(in crate::store) fn write(facts: &Facts, mark: Mark, to: impl Write) -> io::Result<()> {
    let mut out = Summed { to, digest: sha2::Sha256::new() };
    write!(out, "{START}{VERSION},\n\"run_config\":")?;
    block(&mut out, &RunConfig::of(facts))?;
    out.write_all(b",\n\"conversation_config\":")?;
    block(&mut out, &ConversationConfig::of(&facts.reach))?;
    out.write_all(b",\n\"root\":")?;
    block(&mut out, &Root::of(facts))?;
    out.write_all(b",\n\"state\":")?;
    block(&mut out, &StateBlock::of(facts))?;
    let nodes = facts.nodes.iter().map(|node| (node.id.to_string(), NodeLine::of(facts, node)));
    lines(&mut out, "nodes", nodes)?;
    let evals = facts.evals.iter().map(|eval| (eval.id.to_string(), EvalLine::of(facts, &eval)));
    lines(&mut out, "evaluations", evals)?;
    if let Some(control) = ControlBlock::of(facts) {
        out.write_all(b",\n\"control\":")?;
        block(&mut out, &control)?;
    }
    let conversations = facts.nodes.iter().map(ConversationLine::of);
    let conversations = conversations.map(|line| (line.conversation_id.clone(), line));
    lines(&mut out, "conversations", conversations)?;
    out.write_all(b",\n\"history\":")?;
    block(&mut out, &HistoryBlock::of(&facts.history, mark))?;
    out.write_all(b",\n")?;
    let Summed { mut to, digest } = out;
    let checksum = Sha256::from_bytes(digest.finalize().into());
    writeln!(to, "{CHECKSUM}{checksum}\"}}")?;
    to.flush()
}

fn block(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(out, value).map_err(io::Error::from)
}

fn lines<T: Serialize>(
    out: &mut impl Write,
    section: &str,
    rows: impl Iterator<Item = (String, T)>,
) -> io::Result<()> {
    write!(out, ",\n\"{section}\":{{")?;
    let mut between = "\n";
    for (id, row) in rows {
        write!(out, "{between}\"{id}\":")?;
        block(out, &row)?;
        between = ",\n";
    }
    out.write_all(b"\n}")
}

/// Passes bytes on and digests them.
struct Summed<W> {
    to: W,
    digest: sha2::Sha256,
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.digest.update(bytes.get(..written).unwrap_or_default());
        Ok(written)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Reads a document of this or an older version.
pub(in crate::store) fn read(bytes: &[u8]) -> Result<(Facts, Mark), Unreadable> {
    let damaged = |why: &dyn fmt::Display| Unreadable::Damaged(why.to_string());
    let document: Document = match version(bytes)? {
        1 => {
            let old = serde_json::from_slice(bytes).map_err(|error| damaged(&error))?;
            let new = v1::upgrade(old).map_err(|why| damaged(&why))?;
            serde_json::from_value(new).map_err(|error| damaged(&error))?
        }
        VERSION => {
            verify(bytes)?;
            serde_json::from_slice(bytes).map_err(|error| damaged(&error))?
        }
        version if version > VERSION => return Err(Unreadable::Newer(version)),
        version => return Err(damaged(&format!("there is no version {version}"))),
    };
    Ok((document.facts, document.mark))
}

/// Where the journal stood when a document was written whose checksum does not fit; none where it says nothing of that.
pub(in crate::store) fn unverified_mark(bytes: &[u8]) -> Option<Mark> {
    serde_json::from_slice::<Document>(bytes).ok().map(|document| document.mark)
}

/// The version: at the beginning, where this program puts it, or else wherever it stands.
fn version(bytes: &[u8]) -> Result<u64, Unreadable> {
    #[derive(serde::Deserialize)]
    struct Head {
        manifest_version: u64,
    }
    if let Some(rest) = bytes.strip_prefix(START.as_bytes()) {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let digits = rest.get(..digits).and_then(|digits| std::str::from_utf8(digits).ok());
        if let Some(version) = digits.and_then(|digits| digits.parse().ok()) {
            return Ok(version);
        }
    }
    let head: Head =
        serde_json::from_slice(bytes).map_err(|error| Unreadable::Damaged(error.to_string()))?;
    Ok(head.manifest_version)
}

fn verify(bytes: &[u8]) -> Result<(), Unreadable> {
    let damaged = |what: &str| Unreadable::Damaged(format!("{what}: {}", whereabouts(bytes)));
    let no_checksum = || damaged("it has no checksum at its end");
    let last_line = CHECKSUM.len() + 64 + "\"}\n".len();
    let at = bytes.len().checked_sub(last_line).ok_or_else(no_checksum)?;
    let (body, last) = bytes.split_at(at);
    let digits = last
        .strip_prefix(CHECKSUM.as_bytes())
        .and_then(|rest| rest.strip_suffix(b"\"}\n"))
        .ok_or_else(no_checksum)?;
    if digits == Sha256::of(body).to_string().as_bytes() {
        Ok(())
    } else {
        Err(damaged("the checksum does not fit"))
    }
}

/// Where a document is damaged, as far as it says so itself.
fn whereabouts(bytes: &[u8]) -> String {
    if let Err(error) = serde_json::from_slice::<serde::de::IgnoredAny>(bytes) {
        return format!("it is no JSON document: {error}");
    }
    match serde_json::from_slice::<Document>(bytes) {
        Err(error) => error.to_string(),
        Ok(_) => {
            "a value in it was changed; `treebeam validate` compares it with the journal".to_owned()
        }
    }
}

/// A line of a section that is a map by id.
pub(super) trait Row: DeserializeOwned {
    /// The section's name.
    const SECTION: &'static str;
    /// What it is in memory.
    type Fact;
    /// The key under which it must stand.
    fn id(&self) -> String;
    /// What it says; an error names what is missing.
    fn into_fact(self) -> Result<Self::Fact, String>;
}

/// All lines of a section.
struct Rows<R: Row>(Vec<R::Fact>);

impl<'de, R: Row> Deserialize<'de> for Rows<R> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(RowsVisitor::<R>(PhantomData))
    }
}

struct RowsVisitor<R>(PhantomData<R>);

impl<'de, R: Row> Visitor<'de> for RowsVisitor<R> {
    type Value = Rows<R>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} by id", R::SECTION)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Rows<R>, A::Error> {
        let wrong = |key: &str, why: &dyn fmt::Display| {
            A::Error::custom(format!("{}.{key}: {why}", R::SECTION))
        };
        let mut facts = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            let row: R = map.next_value().map_err(|error| wrong(&key, &error))?;
            if row.id() != key {
                return Err(wrong(&key, &format!("holds {}", row.id())));
            }
            facts.push(row.into_fact().map_err(|why| wrong(&key, &why))?);
        }
        Ok(Rows(facts))
    }
}

/// The document as facts.
struct Document {
    facts: Facts,
    mark: Mark,
}

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(DocumentVisitor)
    }
}

/// The document's blocks, in whatever order they come.
#[derive(Default)]
struct Blocks {
    run_config: Option<RunConfig>,
    root: Option<Root>,
    state: Option<StateBlock>,
    nodes: Option<Rows<NodeLine>>,
    evaluations: Option<Rows<EvalLine>>,
    control: Option<ControlBlock>,
    history: Option<HistoryBlock>,
}

struct DocumentVisitor;

impl<'de> Visitor<'de> for DocumentVisitor {
    type Value = Document;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a manifest")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Document, A::Error> {
        let mut blocks = Blocks::default();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "run_config" => blocks.run_config = Some(named(&mut map, &key)?),
                "root" => blocks.root = Some(named(&mut map, &key)?),
                "state" => blocks.state = Some(named(&mut map, &key)?),
                "history" => blocks.history = Some(named(&mut map, &key)?),
                "control" => blocks.control = Some(named(&mut map, &key)?),
                "nodes" => blocks.nodes = Some(map.next_value()?),
                "evaluations" => blocks.evaluations = Some(map.next_value()?),
                _ => drop(map.next_value::<serde::de::IgnoredAny>()?),
            }
        }
        blocks.into_document().map_err(A::Error::custom)
    }
}

/// The next block; an error names it.
fn named<'de, A: MapAccess<'de>, T: Deserialize<'de>>(
    map: &mut A,
    name: &str,
) -> Result<T, A::Error> {
    map.next_value().map_err(|error| A::Error::custom(format!("{name}: {error}")))
}

impl Blocks {
    fn into_document(self) -> Result<Document, String> {
        let missing = |block: &str| format!("there is no `{block}`");
        let config = self.run_config.ok_or_else(|| missing("run_config"))?;
        let root = self.root.ok_or_else(|| missing("root"))?;
        let state = self.state.ok_or_else(|| missing("state"))?;
        let history = self.history.ok_or_else(|| missing("history"))?;
        let mark = history.mark;
        let control = self.control.map_or(Ok(Vec::new()), ControlBlock::into_facts);
        let mut facts = Facts {
            run: config.tree_run_id,
            world: config.world,
            created_at: config.created_at,
            meaning: config.meaning,
            reach: config.reach,
            agents: config.agents,
            former: config.former_agents,
            given: config.given,
            replays: config.replays,
            rules_version: config.rules_version,
            baseline: root.into_baseline().map_err(|why| format!("root: {why}"))?,
            nodes: self.nodes.ok_or_else(|| missing("nodes"))?.0,
            evals: self.evaluations.ok_or_else(|| missing("evaluations"))?.0.into(),
            control: control.map_err(|why| format!("control: {why}"))?,
            depth: Depth(0),
            frontier: Vec::new(),
            closed: Vec::new(),
            phase: Phase::Measuring,
            reached: None,
            leftovers: BTreeMap::new(),
            removed: BTreeSet::new(),
            history: history.into_history().map_err(|why| format!("history: {why}"))?,
        };
        state.enter(&mut facts).map_err(|why| format!("state: {why}"))?;
        facts.condense();
        Ok(Document { facts, mark })
    }
}
