//! Where the files of a run lie, relative to its directory. One place, so that writers, readers and reports agree.

use crate::event::Subject;
use crate::group::IdeaSource;
use crate::id::{EvalId, NodeId, RunPath};

/// What a sweep calls its results.
pub const RESULTS_CSV: &str = "meta_config_sweep_results.csv";
/// What candidates are compared with as the root's, where the user names it apart.
pub const ROOT_BASELINE_CSV: &str = "root_baseline.csv";
/// What a finished job leaves in its folder.
pub const EVAL_RESULT: &str = "eval_result.json";
/// The whole change of a candidate, in the folder of the attempt that made it.
pub const CANDIDATE_DIFF: &str = "candidate.diff";
/// The most that is kept of it, in bytes.
pub const CANDIDATE_DIFF_BYTES: usize = 16 << 20;
/// How an eval compares with the root, in its experiment.
pub const SCORING_ROOT: &str = "scoring_root.json";
/// The inputs as they were when the root was measured, in the root's experiment.
pub const ROOT_INPUTS: &str = "inputs.list";
/// What the commands of a job wrote to their outputs, each where there was one.
pub const LOGS: [&str; 3] = ["setup.log", "tests.log", "sweep.log"];
/// The copies that decisions rest on.
pub const ARTIFACTS: &str = "artifacts";
/// What was said in each branch.
pub const CONVERSATIONS: &str = "conversations";

fn folder(parent: &str, name: &impl ToString) -> RunPath {
    RunPath::below(parent).join(&name.to_string())
}

/// The ideas of all nodes, a folder for each.
#[must_use]
pub fn all_node_ideas() -> RunPath {
    RunPath::below("node_ideas")
}

/// The ideas of a node.
#[must_use]
pub fn node_ideas(node: NodeId) -> RunPath {
    folder("node_ideas", &node)
}

/// The ideas of a node, or of the control group.
#[must_use]
pub fn ideas(source: IdeaSource) -> RunPath {
    folder("node_ideas", &source)
}

/// What the generator was told at the n-th expansion of a node, or of the control group, counted from 1.
#[must_use]
pub fn prompt_context(source: IdeaSource, expansion: u32) -> RunPath {
    let name = match expansion {
        0 | 1 => "prompt_context.txt".to_owned(),
        n => format!("prompt_context_{n}.txt"),
    };
    ideas(source).join(&name)
}

/// What a node came to on results that the search never saw.
#[must_use]
pub fn holdout(node: NodeId) -> RunPath {
    folder("holdout", &format!("{node}.csv"))
}

/// An eval's own folder.
#[must_use]
pub fn eval(eval: EvalId) -> RunPath {
    folder("eval", &eval)
}

/// Prompts, replies, diffs, logs and scores of an eval.
#[must_use]
pub fn experiment(eval: EvalId) -> RunPath {
    self::eval(eval).join("experiment")
}

/// What was asked and answered in one attempt of an eval, counted from 1: each has a place of its own.
#[must_use]
pub fn attempt(eval: EvalId, number: u32) -> RunPath {
    match number {
        0 | 1 => experiment(eval),
        n => experiment(eval).join(&format!("attempt_{n}")),
    }
}

/// The folder that belongs to a swept code state.
#[must_use]
pub fn of_subject(subject: Subject) -> RunPath {
    match subject {
        Subject::Root => folder("eval", &"root"),
        Subject::Eval(id) => eval(id),
    }
}

/// The list of the inputs as they were when the root was measured.
#[must_use]
pub fn root_inputs() -> RunPath {
    of_subject(Subject::Root).join("experiment").join(ROOT_INPUTS)
}

/// The fresh output folder of one submission, counted from 1.
#[must_use]
pub fn submission(subject: Subject, number: u32) -> RunPath {
    of_subject(subject).join(&format!("s{number}"))
}

/// The name, below `artifacts/`, of the copy of a sweep's results, at which attempt, counted from 1.
#[must_use]
pub fn artifact_name(subject: Subject, attempt: u32) -> String {
    match attempt {
        0 | 1 => format!("{subject}.csv"),
        n => format!("{subject}-a{n}.csv"),
    }
}

/// The state of a node's conversation: what the next question goes on from.
#[must_use]
pub fn conversation_state(node: NodeId) -> RunPath {
    folder(CONVERSATIONS, &format!("c{node}.json"))
}

/// The log of a node's conversation, one turn to a line.
#[must_use]
pub fn conversation_log(node: NodeId) -> RunPath {
    folder(CONVERSATIONS, &format!("c{node}.jsonl"))
}

/// What was said in a node's conversation, in short.
#[must_use]
pub fn conversation_summary(node: NodeId) -> RunPath {
    folder(CONVERSATIONS, &format!("c{node}_summary.md"))
}

/// Where a damaged file of a conversation is put by.
#[must_use]
pub fn damaged_conversation(name: &str) -> RunPath {
    folder(CONVERSATIONS, &"damaged").join(name)
}

/// The name of the question for a summary that comes before a question for ideas.
#[must_use]
pub fn summary_question(key: &str) -> String {
    format!("{key}-summary")
}

/// The name of a question for ideas: of which expansion, and which of its turns, both counted from 1.
#[must_use]
pub fn idea_question(source: IdeaSource, expansion: u32, turn: u32) -> String {
    match source {
        IdeaSource::Node(node) => format!("ideas-n{node}-x{expansion}-a{turn}"),
        IdeaSource::Control => format!("ideas-control-x{expansion}-a{turn}"),
    }
}

/// Where the answer to such a question is kept.
#[must_use]
pub fn idea_reply(node: NodeId, question: &str) -> RunPath {
    node_ideas(node).join("calls").join(&format!("{question}.txt"))
}

/// Where such a question is kept, as it was asked.
#[must_use]
pub fn idea_prompt(node: NodeId, question: &str) -> RunPath {
    node_ideas(node).join("calls").join(&format!("{question}_prompt.txt"))
}
