//! The manifest as one JSON document, with one node, eval or conversation per line and a checksum
//! at the end. Written piece by piece, and read into facts without building a tree of values first.

use super::control::ControlBlock;
use super::eval::EvalLine;
use super::history::HistoryBlock;
use super::manifest_v1;
use super::node::{ConversationLine, NodeLine};
use super::run::{ConversationConfig, RootBlock, RunConfig, StateBlock};
use serde::Serialize;
use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error as _, MapAccess, Visitor};
use sha2::Digest as _;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::{self, Write};
use std::marker::PhantomData;
use treebeam_core::facts::{Facts, RunPhase};
use treebeam_core::id::{Depth, Sha256};

/// The manifest version that is written.
pub(crate) const MANIFEST_VERSION: u64 = 2;
/// First bytes of a document.
const DOCUMENT_START: &str = "{\n\"manifest_version\":";
/// First bytes of a document's last line.
const CHECKSUM_START: &str = "\"checksum\":\"";

/// Position of the journal when a manifest was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, serde::Deserialize)]
pub struct JournalMark {
    /// The last event that the manifest covers.
    pub seq: u64,
    /// The epoch in which the manifest was written.
    pub epoch: u64,
    /// The first event of the journal: 1, unless the run was continued from a manifest alone.
    pub journal_starts_at: u64,
    /// Offset of the line of the event `seq`, if it is in the journal.
    pub journal_line_at: Option<u64>,
}

/// The reason why a manifest cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// The manifest is not what was written.
    #[error("{0}")]
    Damaged(String),
    /// The manifest was written by a newer treebeam.
    #[error("it has version {0}")]
    Newer(u64),
}

/// Writes the manifest document of these facts.
pub(crate) fn write_document(facts: &Facts, mark: JournalMark, to: impl Write) -> io::Result<()> {
    let mut out = ChecksumWriter { to, digest: sha2::Sha256::new() };
    write!(out, "{DOCUMENT_START}{MANIFEST_VERSION},\n\"run_config\":")?;
    write_block(&mut out, &RunConfig::from_facts(facts))?;
    out.write_all(b",\n\"conversation_config\":")?;
    write_block(&mut out, &ConversationConfig::from_limits(&facts.limits))?;
    out.write_all(b",\n\"root\":")?;
    write_block(&mut out, &RootBlock::from_facts(facts))?;
    out.write_all(b",\n\"state\":")?;
    write_block(&mut out, &StateBlock::from_facts(facts))?;
    let nodes =
        facts.nodes.iter().map(|node| (node.id.to_string(), NodeLine::from_node(facts, node)));
    write_section(&mut out, "nodes", nodes)?;
    let evals =
        facts.evals.iter().map(|eval| (eval.id.to_string(), EvalLine::from_eval(facts, &eval)));
    write_section(&mut out, "evaluations", evals)?;
    if let Some(control) = ControlBlock::from_facts(facts) {
        out.write_all(b",\n\"control\":")?;
        write_block(&mut out, &control)?;
    }
    let conversations = facts.nodes.iter().map(ConversationLine::from_node);
    let conversations = conversations.map(|line| (line.conversation_id.clone(), line));
    write_section(&mut out, "conversations", conversations)?;
    out.write_all(b",\n\"history\":")?;
    write_block(&mut out, &HistoryBlock::from_history(&facts.history, mark))?;
    out.write_all(b",\n")?;
    let ChecksumWriter { mut to, digest } = out;
    let checksum = Sha256::from_bytes(digest.finalize().into());
    writeln!(to, "{CHECKSUM_START}{checksum}\"}}")?;
    to.flush()
}

fn write_block(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(out, value).map_err(io::Error::from)
}

fn write_section<T: Serialize>(
    out: &mut impl Write,
    section: &str,
    rows: impl Iterator<Item = (String, T)>,
) -> io::Result<()> {
    write!(out, ",\n\"{section}\":{{")?;
    let mut between = "\n";
    for (id, row) in rows {
        write!(out, "{between}\"{id}\":")?;
        write_block(out, &row)?;
        between = ",\n";
    }
    out.write_all(b"\n}")
}

/// A writer that passes bytes on and computes their digest.
struct ChecksumWriter<W> {
    to: W,
    digest: sha2::Sha256,
}

impl<W: Write> Write for ChecksumWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.digest.update(bytes.get(..written).unwrap_or_default());
        Ok(written)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Reads a document of this version or an older one.
pub(crate) fn read_document(bytes: &[u8]) -> Result<(Facts, JournalMark), ManifestError> {
    let damaged = |why: &dyn fmt::Display| ManifestError::Damaged(why.to_string());
    let document: ManifestDocument = match read_version(bytes)? {
        1 => {
            let old = serde_json::from_slice(bytes).map_err(|error| damaged(&error))?;
            let new = manifest_v1::upgrade_document(old).map_err(|why| damaged(&why))?;
            serde_json::from_value(new).map_err(|error| damaged(&error))?
        }
        MANIFEST_VERSION => {
            verify_checksum(bytes)?;
            serde_json::from_slice(bytes).map_err(|error| damaged(&error))?
        }
        version if version > MANIFEST_VERSION => return Err(ManifestError::Newer(version)),
        version => return Err(damaged(&format!("there is no version {version}"))),
    };
    Ok((document.facts, document.mark))
}

/// Returns the journal mark of a document with a wrong checksum; none if it is unreadable.
pub(crate) fn unverified_mark(bytes: &[u8]) -> Option<JournalMark> {
    serde_json::from_slice::<ManifestDocument>(bytes).ok().map(|document| document.mark)
}

/// Reads the version: at the document's start, as treebeam writes it, or wherever the key is.
fn read_version(bytes: &[u8]) -> Result<u64, ManifestError> {
    #[derive(serde::Deserialize)]
    struct DocumentHead {
        manifest_version: u64,
    }
    if let Some(rest) = bytes.strip_prefix(DOCUMENT_START.as_bytes()) {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let digits = rest.get(..digits).and_then(|digits| std::str::from_utf8(digits).ok());
        if let Some(version) = digits.and_then(|digits| digits.parse().ok()) {
            return Ok(version);
        }
    }
    let head: DocumentHead =
        serde_json::from_slice(bytes).map_err(|error| ManifestError::Damaged(error.to_string()))?;
    Ok(head.manifest_version)
}

fn verify_checksum(bytes: &[u8]) -> Result<(), ManifestError> {
    let damaged =
        |what: &str| ManifestError::Damaged(format!("{what}: {}", describe_damage(bytes)));
    let no_checksum = || damaged("it has no checksum at its end");
    let last_line = CHECKSUM_START.len() + 64 + "\"}\n".len();
    let at = bytes.len().checked_sub(last_line).ok_or_else(no_checksum)?;
    let (body, last) = bytes.split_at(at);
    let digits = last
        .strip_prefix(CHECKSUM_START.as_bytes())
        .and_then(|rest| rest.strip_suffix(b"\"}\n"))
        .ok_or_else(no_checksum)?;
    if digits == Sha256::hash_bytes(body).to_string().as_bytes() {
        Ok(())
    } else {
        Err(damaged("the checksum does not fit"))
    }
}

/// Describes the damage of a document whose checksum does not fit.
fn describe_damage(bytes: &[u8]) -> String {
    if let Err(error) = serde_json::from_slice::<serde::de::IgnoredAny>(bytes) {
        return format!("it is no JSON document: {error}");
    }
    match serde_json::from_slice::<ManifestDocument>(bytes) {
        Err(error) => error.to_string(),
        Ok(_) => {
            "a value in it was changed; `treebeam validate` compares it with the journal".to_owned()
        }
    }
}

/// A line of a manifest section that is a map by id.
pub(super) trait SectionRow: DeserializeOwned {
    /// Name of the section.
    const SECTION_NAME: &'static str;
    /// Type of the line in memory.
    type Fact;
    /// Returns the key that the line must have in the map.
    fn row_id(&self) -> String;
    /// Converts the line to a fact; an error names the missing field.
    fn into_fact(self) -> Result<Self::Fact, String>;
}

/// All lines of a section, as facts.
struct SectionRows<R: SectionRow>(Vec<R::Fact>);

impl<'de, R: SectionRow> Deserialize<'de> for SectionRows<R> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(SectionVisitor::<R>(PhantomData))
    }
}

struct SectionVisitor<R>(PhantomData<R>);

impl<'de, R: SectionRow> Visitor<'de> for SectionVisitor<R> {
    type Value = SectionRows<R>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} by id", R::SECTION_NAME)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<SectionRows<R>, A::Error> {
        let wrong = |key: &str, why: &dyn fmt::Display| {
            A::Error::custom(format!("{}.{key}: {why}", R::SECTION_NAME))
        };
        let mut facts = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            let row: R = map.next_value().map_err(|error| wrong(&key, &error))?;
            if row.row_id() != key {
                return Err(wrong(&key, &format!("holds {}", row.row_id())));
            }
            facts.push(row.into_fact().map_err(|why| wrong(&key, &why))?);
        }
        Ok(SectionRows(facts))
    }
}

/// A parsed document: the facts and the journal mark.
struct ManifestDocument {
    facts: Facts,
    mark: JournalMark,
}

impl<'de> Deserialize<'de> for ManifestDocument {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(DocumentVisitor)
    }
}

/// The blocks of a document, in any order.
#[derive(Default)]
struct ManifestBlocks {
    run_config: Option<RunConfig>,
    root: Option<RootBlock>,
    state: Option<StateBlock>,
    nodes: Option<SectionRows<NodeLine>>,
    evaluations: Option<SectionRows<EvalLine>>,
    control: Option<ControlBlock>,
    history: Option<HistoryBlock>,
}

struct DocumentVisitor;

impl<'de> Visitor<'de> for DocumentVisitor {
    type Value = ManifestDocument;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a manifest")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ManifestDocument, A::Error> {
        let mut blocks = ManifestBlocks::default();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "run_config" => blocks.run_config = Some(read_block(&mut map, &key)?),
                "root" => blocks.root = Some(read_block(&mut map, &key)?),
                "state" => blocks.state = Some(read_block(&mut map, &key)?),
                "history" => blocks.history = Some(read_block(&mut map, &key)?),
                "control" => blocks.control = Some(read_block(&mut map, &key)?),
                "nodes" => blocks.nodes = Some(map.next_value()?),
                "evaluations" => blocks.evaluations = Some(map.next_value()?),
                _ => drop(map.next_value::<serde::de::IgnoredAny>()?),
            }
        }
        blocks.into_document().map_err(A::Error::custom)
    }
}

/// Reads the next block; an error names it.
fn read_block<'de, A: MapAccess<'de>, T: Deserialize<'de>>(
    map: &mut A,
    name: &str,
) -> Result<T, A::Error> {
    map.next_value().map_err(|error| A::Error::custom(format!("{name}: {error}")))
}

impl ManifestBlocks {
    fn into_document(self) -> Result<ManifestDocument, String> {
        let missing = |block: &str| format!("there is no `{block}`");
        let config = self.run_config.ok_or_else(|| missing("run_config"))?;
        let root = self.root.ok_or_else(|| missing("root"))?;
        let state = self.state.ok_or_else(|| missing("state"))?;
        let history = self.history.ok_or_else(|| missing("history"))?;
        let mark = history.mark;
        let control = self.control.map_or(Ok(Vec::new()), ControlBlock::into_expansions);
        let mut facts = Facts {
            run: config.tree_run_id,
            world: config.world,
            created_at: config.created_at,
            settings: config.meaning,
            limits: config.reach,
            agents: config.agents,
            former_agents: config.former_agents,
            user_ideas: config.given,
            replays: config.replays,
            rules_version: config.rules_version,
            baseline: root.into_baseline().map_err(|why| format!("root: {why}"))?,
            nodes: self.nodes.ok_or_else(|| missing("nodes"))?.0,
            evals: self.evaluations.ok_or_else(|| missing("evaluations"))?.0.into(),
            control: control.map_err(|why| format!("control: {why}"))?,
            depth: Depth(0),
            frontier: Vec::new(),
            closed: Vec::new(),
            phase: RunPhase::Measuring,
            reached_budget: None,
            leftovers: BTreeMap::new(),
            removed: BTreeSet::new(),
            history: history.into_history().map_err(|why| format!("history: {why}"))?,
        };
        state.apply_to_facts(&mut facts).map_err(|why| format!("state: {why}"))?;
        facts.compact_memory();
        Ok(ManifestDocument { facts, mark })
    }
}
