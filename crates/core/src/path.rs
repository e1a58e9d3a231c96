//! Paths of a run's files, relative to its directory, so that writers, readers and reports agree.

use crate::group::IdeaSource;
use crate::id::{EvalId, NodeId, RunPath};
use crate::subject::SweepSubject;

/// File name of the results CSV of a sweep.
pub const RESULTS_CSV: &str = "meta_config_sweep_results.csv";
/// Name of the root's results CSV for comparing candidates, if the user sets a separate one.
pub const ROOT_BASELINE_CSV: &str = "root_baseline.csv";
/// Name of the file that a finished job leaves in its folder.
pub const EVAL_RESULT_FILE: &str = "eval_result.json";
/// Name of the file with a candidate's complete diff, in the folder of the attempt that made it.
pub const CANDIDATE_DIFF_FILE: &str = "candidate.diff";
/// Maximum size of a candidate's diff file, in bytes.
pub const MAX_CANDIDATE_DIFF_BYTES: usize = 16 << 20;
/// Name of the file that compares an eval with the root, in the eval's experiment folder.
pub const SCORING_ROOT_FILE: &str = "scoring_root.json";
/// Name of the list of inputs at the time the root was measured, in the root's experiment folder.
pub const ROOT_INPUTS_FILE: &str = "inputs.list";
/// Names of the files with the output of a job's commands; each exists only if there was any.
pub const LOG_FILES: [&str; 3] = ["setup.log", "tests.log", "sweep.log"];
/// Folder of the copied files that decisions rest on.
pub const ARTIFACTS_FOLDER: &str = "artifacts";
/// Folder of the conversations of all branches.
pub const CONVERSATIONS_FOLDER: &str = "conversations";

fn named_subfolder(parent: &str, name: &impl ToString) -> RunPath {
    RunPath::from_folder(parent).join(&name.to_string())
}

/// Returns the folder of the ideas of all nodes, with a subfolder for each.
#[must_use]
pub fn all_ideas_folder() -> RunPath {
    RunPath::from_folder("node_ideas")
}

/// Returns the folder of a node's ideas.
#[must_use]
pub fn node_ideas_folder(node: NodeId) -> RunPath {
    named_subfolder("node_ideas", &node)
}

/// Returns the folder of the ideas of a node or of the control group.
#[must_use]
pub fn ideas_folder(source: IdeaSource) -> RunPath {
    named_subfolder("node_ideas", &source)
}

/// Returns the prompt context of a node's or the control group's n-th expansion, from 1.
#[must_use]
pub fn prompt_context_file(source: IdeaSource, expansion: u32) -> RunPath {
    let name = match expansion {
        0 | 1 => "prompt_context.txt".to_owned(),
        n => format!("prompt_context_{n}.txt"),
    };
    ideas_folder(source).join(&name)
}

/// Returns the file with a node's results on held-out data, which the search never sees.
#[must_use]
pub fn holdout_file(node: NodeId) -> RunPath {
    named_subfolder("holdout", &format!("{node}.csv"))
}

/// Returns the folder of an eval.
#[must_use]
pub fn eval_folder(eval: EvalId) -> RunPath {
    named_subfolder("eval", &eval)
}

/// Returns the folder of an eval's prompts, replies, diffs, logs and scores.
#[must_use]
pub fn experiment_folder(eval: EvalId) -> RunPath {
    self::eval_folder(eval).join("experiment")
}

/// Returns the folder of the prompts and replies of one attempt of an eval, counted from 1.
#[must_use]
pub fn attempt_folder(eval: EvalId, number: u32) -> RunPath {
    match number {
        0 | 1 => experiment_folder(eval),
        n => experiment_folder(eval).join(&format!("attempt_{n}")),
    }
}

/// Returns the folder of a swept code state.
#[must_use]
pub fn subject_folder(subject: SweepSubject) -> RunPath {
    match subject {
        SweepSubject::Root => named_subfolder("eval", &"root"),
        SweepSubject::Eval(id) => eval_folder(id),
    }
}

/// Returns the list of the inputs at the time the root was measured.
#[must_use]
pub fn root_inputs_file() -> RunPath {
    subject_folder(SweepSubject::Root).join("experiment").join(ROOT_INPUTS_FILE)
}

/// Returns the new output folder of one submission, counted from 1.
#[must_use]
pub fn submission_folder(subject: SweepSubject, number: u32) -> RunPath {
    subject_folder(subject).join(&format!("s{number}"))
}

/// Returns the name, below `artifacts/`, of the results CSV of one sweep attempt, counted from 1.
#[must_use]
pub fn artifact_name(subject: SweepSubject, attempt: u32) -> String {
    match attempt {
        0 | 1 => format!("{subject}.csv"),
        n => format!("{subject}-a{n}.csv"),
    }
}

/// Returns the file with the state of a node's conversation, which its next question continues.
#[must_use]
pub fn conversation_state(node: NodeId) -> RunPath {
    named_subfolder(CONVERSATIONS_FOLDER, &format!("c{node}.json"))
}

/// Returns the log of a node's conversation, one turn per line.
#[must_use]
pub fn conversation_log(node: NodeId) -> RunPath {
    named_subfolder(CONVERSATIONS_FOLDER, &format!("c{node}.jsonl"))
}

/// Returns the file with the summary of a node's conversation.
#[must_use]
pub fn conversation_summary(node: NodeId) -> RunPath {
    named_subfolder(CONVERSATIONS_FOLDER, &format!("c{node}_summary.md"))
}

/// Returns the path to which a damaged file of a conversation is moved.
#[must_use]
pub fn damaged_conversation(name: &str) -> RunPath {
    named_subfolder(CONVERSATIONS_FOLDER, &"damaged").join(name)
}

/// Returns the name of the summary question that precedes a question for ideas.
#[must_use]
pub fn summary_question_name(key: &str) -> String {
    format!("{key}-summary")
}

/// Returns the name of a question for ideas; expansions, and the turns of each, are counted from 1.
#[must_use]
pub fn idea_question_name(source: IdeaSource, expansion: u32, turn: u32) -> String {
    match source {
        IdeaSource::Node(node) => format!("ideas-n{node}-x{expansion}-a{turn}"),
        IdeaSource::Control => format!("ideas-control-x{expansion}-a{turn}"),
    }
}

/// Returns the file with the reply to a question for ideas.
#[must_use]
pub fn idea_reply_file(node: NodeId, question: &str) -> RunPath {
    node_ideas_folder(node).join("calls").join(&format!("{question}.txt"))
}

/// Returns the file with the prompt of a question for ideas.
#[must_use]
pub fn idea_prompt_file(node: NodeId, question: &str) -> RunPath {
    node_ideas_folder(node).join("calls").join(&format!("{question}_prompt.txt"))
}
