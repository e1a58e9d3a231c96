//! The agent without a model: finds named constants, proposes changes of one at a time, and makes
//! the diffs. Its replies depend only on the prompt, the files and a seed. It opens no file and
//! keeps no state: tried changes and their outcomes are in the prompt, as for any agent.
//!
//! # Layout
//! [`file_kind`] and [`scope`] choose the files; [`constant`] finds the constants in them, with
//! [`mod@code_mask`], [`mod@json`] and [`mod@toml_yaml`] for the languages and [`literal`] for
//! values and their form. [`change`] is one change as a sentence and as a diff, [`history`] parses
//! what was tried. [`mod@axis`] and [`mod@curve`] model one constant, [`mod@luck_fit`] separates
//! effects from noise, [`search`] chooses among all.

pub mod change;
pub mod constant;
pub mod file_kind;
pub mod history;
pub mod literal;
mod named_span;
pub mod scope;
pub mod search;

mod axis;
mod code_mask;
mod curve;
mod json;
mod luck_fit;
mod toml_yaml;

use change::ConstantChange;
use constant::Constant;
use history::TunerHistory;
use search::TunerProposal;

/// Maximum number of ideas in one reply.
const MAX_IDEAS: usize = 1000;
/// Heading of an idea.
const IDEA_HEADING: &str = "=== IDEA ===";
/// Heading of the part of an idea that is parsed.
const REQUIRED_HEADING: &str = "REQUIRED_CHANGES:";
/// Start of a prompt for ideas, before their number.
const PROPOSE_PREFIX: &str = "propose ";
/// Maximum number of constants named in a description.
const MAX_NAMED_CONSTANTS: usize = 3;

/// Request that a prompt makes.
#[derive(Clone, Debug, PartialEq)]
pub enum TunerRequest {
    /// Ideas, this many.
    Ideas(usize),
    /// The diff of this change.
    Diff(ConstantChange),
    /// Anything else: the reply describes the constants.
    Description,
}

/// Parses the request of a prompt.
///
/// # Errors
/// If it requires a change that is not one constant; as a message.
pub fn parse_request(prompt: &str) -> Result<TunerRequest, String> {
    let first = prompt.trim_start();
    let asks = first
        .get(..PROPOSE_PREFIX.len())
        .is_some_and(|word| word.eq_ignore_ascii_case(PROPOSE_PREFIX));
    if asks {
        let count =
            first.get(PROPOSE_PREFIX.len()..).and_then(|rest| rest.split(' ').next()?.parse().ok());
        return Ok(TunerRequest::Ideas(count.unwrap_or(1).min(MAX_IDEAS)));
    }
    match required_lines(prompt) {
        Some(lines) => parse_required_change(&lines).map(TunerRequest::Diff),
        None if prompt.contains(IDEA_HEADING) => Err(refusal_message()),
        None => Ok(TunerRequest::Description),
    }
}

/// Returns the idea of a prompt if it is fenced, or else the whole prompt.
fn idea_in(prompt: &str) -> &str {
    let inside = || {
        let (_, after) = prompt.split_once(IDEA_HEADING)?;
        let (fence, text) = after.strip_prefix('\n')?.split_once('\n')?;
        let is_fence = fence.len() >= 3 && fence.bytes().all(|byte| byte == b'`');
        let (text, _) = text.split_once(&format!("\n{fence}")).filter(|_| is_fence)?;
        Some(text)
    };
    inside().unwrap_or(prompt)
}

/// Returns the lines that an idea requires; `None` without such a part.
fn required_lines(prompt: &str) -> Option<Vec<&str>> {
    let mut lines = idea_in(prompt)
        .lines()
        .map(strip_line_markers)
        .skip_while(|line| strip_required_heading(line).is_none());
    let first = lines.next().and_then(strip_required_heading)?;
    let rest = lines.take_while(|line| !line.starts_with("=== "));
    Some([first].into_iter().chain(rest).filter(|line| !line.is_empty()).collect())
}

/// Strips bullets and similar markers from a line.
fn strip_line_markers(line: &str) -> &str {
    line.trim().trim_start_matches(['-', '*', '#', '>', ' '])
}

fn strip_required_heading(line: &str) -> Option<&str> {
    let head = line.get(..REQUIRED_HEADING.len())?;
    let rest = line.get(REQUIRED_HEADING.len()..)?;
    head.eq_ignore_ascii_case(REQUIRED_HEADING).then(|| rest.trim_matches(['*', ' ']))
}

fn parse_required_change(lines: &[&str]) -> Result<ConstantChange, String> {
    let [line] = lines else { return Err(refusal_message()) };
    match ConstantChange::parse(line) {
        Some((change, "" | ".")) => Ok(change),
        Some(_) | None => Err(refusal_message()),
    }
}

fn refusal_message() -> String {
    format!(
        "the tuner can only make changes like ``set `NAME` from 1 to 2 in `FILE` ``, one in an idea, \
         as the only line under `{REQUIRED_HEADING}`"
    )
}

/// Replies to a prompt for ideas.
///
/// # Errors
/// If there is no constant, or nothing is left to try; as a message.
pub fn propose_ideas(
    constants: &[Constant],
    prompt: &str,
    seed: u64,
    count: usize,
) -> Result<String, String> {
    if constants.is_empty() {
        return Err(no_constants_message());
    }
    let proposals =
        search::propose_changes(constants, &TunerHistory::from_prompt(prompt), seed, count);
    let found = proposals.len();
    if found == 0 {
        return Err(format!(
            "the tuner has nothing left to try with {}",
            format_constant_count(constants)
        ));
    }
    let mut reply = String::new();
    if found < count {
        reply.push_str(&format!("{found} of {count}: nothing else is left to try.\n\n"));
    }
    let texts: Vec<String> = proposals.iter().map(render_idea).collect();
    reply.push_str(&texts.join("\n"));
    Ok(reply)
}

fn render_idea(proposal: &TunerProposal) -> String {
    let TunerProposal { change, why } = proposal;
    format!("IDEA: {}\nRATIONALE: {why}\n{REQUIRED_HEADING}\n- {change}\n", change.title())
}

/// Describes the constants that were found.
///
/// # Errors
/// If there are none; as a message.
pub fn describe_constants(constants: &[Constant]) -> Result<String, String> {
    if constants.is_empty() {
        return Err(no_constants_message());
    }
    let named = constants
        .iter()
        .take(MAX_NAMED_CONSTANTS)
        .map(|constant| format!("`{}`", constant.id.name));
    let more = if constants.len() > MAX_NAMED_CONSTANTS { ", …" } else { "" };
    Ok(format!(
        "{}: {}{more}\n",
        format_constant_count(constants),
        named.collect::<Vec<_>>().join(", ")
    ))
}

fn no_constants_message() -> String {
    "the tuner finds no number and no flag that is given to a name; `tuner.files` says where it looks"
        .to_owned()
}

fn format_constant_count(constants: &[Constant]) -> String {
    let mut files: Vec<&str> = constants.iter().map(|constant| constant.id.file.as_str()).collect();
    files.dedup();
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    let (number, files) = (constants.len(), files.len());
    format!("{number} constant{} in {files} file{}", plural(number), plural(files))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found() -> Vec<Constant> {
        constant::find_constants("train.py", "RATE = 0.1\nDEPTH = 3\nON = True\n")
    }

    #[test]
    fn what_a_prompt_wants() {
        let change = "set `RATE` from 0.1 to 0.2 in `train.py`";
        let check = |prompt: &str, expected: &str| {
            let said = match parse_request(prompt) {
                Ok(TunerRequest::Ideas(count)) => format!("{count} ideas"),
                Ok(TunerRequest::Diff(change)) => change.to_string(),
                Ok(TunerRequest::Description) => "a word".to_owned(),
                Err(why) => why,
            };
            assert!(said.contains(expected), "{prompt:?}: {said}");
        };
        check("Propose 7 new ideas\n=== IDEA ===", "7 ideas");
        check("propose some", "1 ideas");
        check("Reply with the single word: ok", "a word");
        check(&format!("IDEA: x\nREQUIRED_CHANGES:\n- {change}\n\n=== MORE ===\n- y"), change);
        check(&format!("**Required_Changes:** {change}."), change);
        check(&format!("REQUIRED_CHANGES:\n- {change}\n- rewrite the loop\n"), "can only make");
        check(&format!("REQUIRED_CHANGES:\n- {change} and more"), "can only make");
        check("REQUIRED_CHANGES:\n- widen the window\n", "can only make");
        check("Implement this\n\n=== IDEA ===\nIDEA: Widen the window\n", "can only make");
        let quoted = |idea: &str| {
            format!(
                "Implement this\n\n=== IDEA ===\n````\n{idea}\n````\n\n=== PLAN ===\n```\nREQUIRED_CHANGES:\n- x\n```\n"
            )
        };
        check(&quoted(&format!("IDEA: x\nREQUIRED_CHANGES:\n- {change}")), change);
        check(&quoted(&format!("REQUIRED_CHANGES:\n- {change}\n```\nmore")), "can only make");
        check(&quoted("IDEA: Widen the window"), "can only make");
    }

    #[test]
    fn ideas_have_the_form_of_any_other() {
        let reply = propose_ideas(&found(), "", 0, 2).expect("ideas");
        assert_eq!(reply.matches("IDEA: Set `").count(), 2, "{reply}");
        assert_eq!(reply, propose_ideas(&found(), "", 0, 2).expect("ideas"), "the same each time");
        for text in reply.split("\n\n") {
            assert!(matches!(parse_request(text), Ok(TunerRequest::Diff(_))), "{text}");
        }
        let all = propose_ideas(&found(), "", 0, 100).expect("ideas");
        assert!(all.starts_with("5 of 100: nothing else is left to try.\n\nIDEA: "), "{all}");
    }

    #[test]
    fn nothing_is_said_to_be_nothing() {
        assert!(propose_ideas(&[], "", 0, 1).is_err_and(|why| why.contains("`tuner.files`")));
        assert!(describe_constants(&[]).is_err());
        assert_eq!(
            describe_constants(&found()).as_deref(),
            Ok("3 constants in 1 file: `RATE`, `DEPTH`, `ON`\n")
        );
        let repeated: String = ["`RATE` from 0.1 to 0.183", "`RATE` from 0.1 to 0.0523"]
            .iter()
            .chain(&["`DEPTH` from 3 to 6", "`DEPTH` from 3 to 1", "`ON` from True to False"])
            .map(|change| format!("- Set {change} in `train.py`\n"))
            .collect();
        let prompt = format!("=== YOU PROPOSED THESE, BUT THEY WERE TRIED BEFORE ===\n{repeated}");
        let why = propose_ideas(&found(), &prompt, 0, 3);
        assert_eq!(why, Err("the tuner has nothing left to try with 3 constants in 1 file".into()));
    }
}
