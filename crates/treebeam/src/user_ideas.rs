//! Reads the user's ideas from a file, a folder of files, or a text with several ideas.
//!
//! The format of a single idea is defined in [`treebeam_run::reply`].

use crate::failure::CommandFailure;
use std::fs;
use std::path::Path;
use treebeam_run::port::PortError;
use treebeam_run::reply;
use treebeam_store::input::{self, InputError};

/// Maximum size of an idea file; the length of a single idea is checked elsewhere.
const MAX_IDEA_FILE_BYTES: u64 = 1 << 20;
/// Extensions of idea files in a folder.
const IDEA_FILE_EXTENSIONS: [&str; 2] = ["md", "txt"];
/// Maximum number of ideas in one call.
const MAX_USER_IDEAS: usize = 1000;

/// Loads the ideas of a file or of a folder, in order.
pub(crate) fn load_ideas(here: &Path, named: &Path) -> Result<Vec<String>, CommandFailure> {
    let path = here.join(named);
    let ideas = if path.is_dir() {
        load_idea_folder(&path, named)?.into_iter().map(|file| file.text).collect()
    } else {
        load_idea_file(&path, named)?
    };
    match ideas.len() {
        0 => Err(CommandFailure::usage(format!("there is no idea in `{}`", named.display()))
            .with_hint(IDEA_FORM_HINT)),
        1..=MAX_USER_IDEAS => Ok(ideas),
        many => {
            let what =
                format!("`{}` has {many} ideas, and {MAX_USER_IDEAS} is the most", named.display());
            Err(CommandFailure::usage(what).with_hint("`--iterations N` tries the first N alone"))
        }
    }
}

const IDEA_FORM_HINT: &str = "write `IDEA:`, `RATIONALE:` and `REQUIRED_CHANGES:`, or plain text; in a text file a blank line ends an idea";

/// An idea file of a folder, by name.
pub(crate) struct IdeaFile {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// Loads one idea for each file, in the order of their names.
pub(crate) fn load_idea_folder(
    folder: &Path,
    named: &Path,
) -> Result<Vec<IdeaFile>, CommandFailure> {
    let mut files = Vec::new();
    let entries = fs::read_dir(folder).map_err(|error| {
        let what = format!("cannot read the folder `{}`", named.display());
        CommandFailure::from(PortError::new(what).with_cause(error))
    });
    for entry in entries? {
        let path = entry?.path();
        let ending = path.extension().and_then(|ending| ending.to_str());
        if ending.is_some_and(|ending| IDEA_FILE_EXTENSIONS.contains(&ending)) && !is_hidden(&path)
        {
            files.push(path);
        }
    }
    files.sort();
    files
        .iter()
        .map(|file| {
            let name = file.file_name().unwrap_or_default();
            let text = read_single_idea(file, &named.join(name))?;
            Ok(IdeaFile { name: name.to_string_lossy().into_owned(), text })
        })
        .collect()
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'))
}

fn read_single_idea(path: &Path, named: &Path) -> Result<String, CommandFailure> {
    let name = named.display().to_string();
    parse_single_idea(&read_idea_text(path, &name)?, &name)
}

/// Reads the text of an idea file; a missing file is a usage error.
fn read_idea_text(path: &Path, name: &str) -> Result<String, CommandFailure> {
    input::read_text(path, name, MAX_IDEA_FILE_BYTES).map_err(|error| {
        match (&error, error.hint()) {
            (InputError::Missing { .. }, Some(hint)) => {
                CommandFailure::usage(error.to_string()).with_hint(hint)
            }
            _ => error.into(),
        }
    })
}

fn parse_single_idea(text: &str, name: &str) -> Result<String, CommandFailure> {
    reply::parse_user_idea(text).map_err(|why| {
        CommandFailure::usage(format!("`{name}` is no idea: {why}")).with_hint(IDEA_FORM_HINT)
    })
}

/// Loads the ideas of one file: a Markdown file is one, a text has one for each paragraph, and
/// `IDEA:` markers take precedence over both.
fn load_idea_file(path: &Path, named: &Path) -> Result<Vec<String>, CommandFailure> {
    let name = named.display().to_string();
    let text = read_idea_text(path, &name)?;
    let marked = reply::parse_ideas(&text);
    match marked.len() {
        0 if path.extension().is_some_and(|ending| ending == "md") => {
            Ok(vec![parse_single_idea(&text, &name)?])
        }
        0 => parse_paragraphs(&text, &name),
        1 => Ok(vec![parse_single_idea(&text, &name)?]),
        _ => Ok(marked),
    }
}

fn parse_paragraphs(text: &str, name: &str) -> Result<Vec<String>, CommandFailure> {
    let mut ideas: Vec<(usize, String)> = Vec::new();
    let mut open = false;
    for (number, line) in (1..).zip(text.trim_start_matches('\u{feff}').lines()) {
        if line.trim().is_empty() {
            open = false;
            continue;
        }
        if !open {
            ideas.push((number, String::new()));
            open = true;
        }
        if let Some((_, idea)) = ideas.last_mut() {
            idea.push_str(line);
            idea.push('\n');
        }
    }
    ideas
        .iter()
        .map(|(line, idea)| parse_single_idea(idea, &format!("{name}, line {line}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_ideas_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let check = |name: &str, text: &str, expect: &[&str]| {
            fs::write(folder.path().join(name), text).expect("a file");
            let found = load_ideas(folder.path(), Path::new(name)).expect("ideas");
            assert_eq!(found, expect, "{name}");
        };
        check(
            "a.txt",
            "Widen\r\nbecause\n\n \n\nNarrow\n",
            &["IDEA: Widen\nbecause\n", "IDEA: Narrow\n"],
        );
        check("a.md", "# Widen\n\nbecause\n", &["IDEA: Widen\n\nbecause\n"]);
        check(
            "b.md",
            "IDEA: a\n\nRATIONALE: x\n\nIDEA: b\n",
            &["IDEA: a\n\nRATIONALE: x\n", "IDEA: b\n"],
        );
        check("ideas", "IDEA: a\n\nRATIONALE: x\n", &["IDEA: a\n\nRATIONALE: x\n"]);
    }

    #[test]
    fn a_folder_is_read_in_the_order_of_names() {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in [("b.md", "B\n\nb"), ("a.txt", "A\n\na"), (".c.md", "C"), ("d.py", "D")]
        {
            fs::write(folder.path().join(name), text).expect("a file");
        }
        let found = load_ideas(folder.path(), Path::new("")).expect("ideas");
        assert_eq!(found, ["IDEA: A\n\na\n", "IDEA: B\n\nb\n"]);
    }

    #[test]
    fn what_is_no_idea_is_named_with_its_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let says = |name: &str, text: &str, expect: &str| {
            fs::write(folder.path().join(name), text).expect("a file");
            let failure = load_ideas(folder.path(), Path::new(name)).expect_err("no idea");
            let said: Vec<_> = failure.chain().collect();
            assert!(said.join(": ").contains(expect), "{said:?}");
        };
        says("a.txt", "Widen\n\n---\n", "a.txt, line 3");
        says("b.md", "\n", "says nothing");
        says("c.txt", "\n", "there is no idea");
    }
}
