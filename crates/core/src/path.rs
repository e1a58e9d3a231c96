//! Where the files of a run lie, relative to its directory. One place, so that writers, readers and reports agree.

use crate::event::SweepSubject;
use crate::group::IdeaSource;
use crate::id::{EvalId, NodeId, RunPath};

/// What a sweep calls its results.
pub const RESULTS_CSV: &str = "meta_config_sweep_results.csv";
/// What candidates are compared with as the root's, where the user names it apart.
pub const ROOT_BASELINE_CSV: &str = "root_baseline.csv";
/// What a finished job leaves in its folder.
pub const EVAL_RESULT_FILE: &str = "eval_result.json";
/// The whole change of a candidate, in the folder of the attempt that made it.
pub const CANDIDATE_DIFF_FILE: &str = "candidate.diff";
/// The most that is kept of it, in bytes.
pub const MAX_CANDIDATE_DIFF_BYTES: usize = 16 << 20;
/// How an eval compares with the root, in its experiment.
pub const SCORING_ROOT_FILE: &str = "scoring_root.json";
/// The inputs as they were when the root was measured, in the root's experiment.
pub const ROOT_INPUTS_FILE: &str = "inputs.list";
/// What the commands of a job wrote to their outputs, each where there was one.
pub const LOG_FILES: [&str; 3] = ["setup.log", "tests.log", "sweep.log"];
/// The copies that decisions rest on.
pub const ARTIFACTS_FOLDER: &str = "artifacts";
/// What was said in each branch.
pub const CONVERSATIONS_FOLDER: &str = "conversations";

fn named_subfolder(parent: &str, name: &impl ToString) -> RunPath {
    RunPath::from_folder(parent).join(&name.to_string())
}

/// The ideas of all nodes, a folder for each.
#[must_use]
pub fn all_ideas_folder() -> RunPath {
    RunPath::from_folder("node_ideas")
}

/// The ideas of a node.
#[must_use]
pub fn node_ideas_folder(node: NodeId) -> RunPath {
    named_subfolder("node_ideas", &node)
}

/// The ideas of a node, or of the control group.
#[must_use]
pub fn ideas_folder(source: IdeaSource) -> RunPath {
    named_subfolder("node_ideas", &source)
}

/// What the generator was told at the n-th expansion of a node, or of the control group, counted from 1.
#[must_use]
pub fn prompt_context_file(source: IdeaSource, expansion: u32) -> RunPath {
    let name = match expansion {
        0 | 1 => "prompt_context.txt".to_owned(),
        n => format!("prompt_context_{n}.txt"),
    };
    ideas_folder(source).join(&name)
}

/// What a node came to on results that the search never saw.
#[must_use]
pub fn holdout_file(node: NodeId) -> RunPath {
    named_subfolder("holdout", &format!("{node}.csv"))
}

/// An eval's own folder.
#[must_use]
pub fn eval_folder(eval: EvalId) -> RunPath {
    named_subfolder("eval", &eval)
}

/// Prompts, replies, diffs, logs and scores of an eval.
#[must_use]
pub fn experiment_folder(eval: EvalId) -> RunPath {
    self::eval_folder(eval).join("experiment")
}

/// What was asked and answered in one attempt of an eval, counted from 1: each has a place of its own.
#[must_use]
pub fn attempt_folder(eval: EvalId, number: u32) -> RunPath {
    match number {
        0 | 1 => experiment_folder(eval),
        n => experiment_folder(eval).join(&format!("attempt_{n}")),
    }
}

/// The folder that belongs to a swept code state.
#[must_use]
pub fn subject_folder(subject: SweepSubject) -> RunPath {
    match subject {
        SweepSubject::Root => named_subfolder("eval", &"root"),
        SweepSubject::Eval(id) => eval_folder(id),
    }
}

/// The list of the inputs as they were when the root was measured.
#[must_use]
pub fn root_inputs_file() -> RunPath {
    subject_folder(SweepSubject::Root).join("experiment").join(ROOT_INPUTS_FILE)
}

/// The fresh output folder of one submission, counted from 1.
#[must_use]
pub fn submission_folder(subject: SweepSubject, number: u32) -> RunPath {
    subject_folder(subject).join(&format!("s{number}"))
}

/// The name, below `artifacts/`, of the copy of a sweep's results, at which attempt, counted from 1.
#[must_use]
pub fn artifact_name(subject: SweepSubject, attempt: u32) -> String {
    match attempt {
        0 | 1 => format!("{subject}.csv"),
        n => format!("{subject}-a{n}.csv"),
    }
}

/// The state of a node's conversation: what the next question goes on from.
#[must_use]
pub fn conversation_state(node: NodeId) -> RunPath {
    named_subfolder(CONVERSATIONS_FOLDER, &format!("c{node}.json"))
}

/// The log of a node's conversation, one turn to a line.
#[must_use]
pub fn conversation_log(node: NodeId) -> RunPath {
    named_subfolder(CONVERSATIONS_FOLDER, &format!("c{node}.jsonl"))
}

/// What was said in a node's conversation, in short.
#[must_use]
pub fn conversation_summary(node: NodeId) -> RunPath {
    named_subfolder(CONVERSATIONS_FOLDER, &format!("c{node}_summary.md"))
}

/// Where a damaged file of a conversation is put by.
#[must_use]
pub fn damaged_conversation(name: &str) -> RunPath {
    named_subfolder(CONVERSATIONS_FOLDER, &"damaged").join(name)
}

/// The name of the question for a summary that comes before a question for ideas.
#[must_use]
pub fn summary_question_name(key: &str) -> String {
    format!("{key}-summary")
}

/// The name of a question for ideas: of which expansion, and which of its turns, both counted from 1.
#[must_use]
pub fn idea_question_name(source: IdeaSource, expansion: u32, turn: u32) -> String {
    match source {
        IdeaSource::Node(node) => format!("ideas-n{node}-x{expansion}-a{turn}"),
        IdeaSource::Control => format!("ideas-control-x{expansion}-a{turn}"),
    }
}

/// Where the answer to such a question is kept.
#[must_use]
pub fn idea_reply_file(node: NodeId, question: &str) -> RunPath {
    node_ideas_folder(node).join("calls").join(&format!("{question}.txt"))
}

/// Where such a question is kept, as it was asked.
#[must_use]
pub fn idea_prompt_file(node: NodeId, question: &str) -> RunPath {
    node_ideas_folder(node).join("calls").join(&format!("{question}_prompt.txt"))
}
