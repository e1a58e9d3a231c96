//! Applies the patches found in replies with real git, in every form that models use.

use std::error::Error;
use std::fs;
use treebeam_core::id::{CodePlace, EvalId, RunId};
use treebeam_git::{GitRepo, open_repo_with};
use treebeam_run::patch;
use treebeam_run::port::{ApplyResult, Repo as _};
use treebeam_testkit::repo::TempRepo;

type Outcome = Result<(), Box<dyn Error>>;

const BEFORE: &str = "import math\n\nRATE = 1\n\n\ndef f(x):\n    y = x + 1\n    return y\n\n\ndef g(x):\n    y = x + 1\n    return 2 * y\n";

/// Returns the file after the patch of a reply, or git's complaint about the patch.
fn after(before: &str, reply: &str) -> Result<String, Box<dyn Error>> {
    let repo = TempRepo::with(&[("m.py", before)])?;
    let run_dir = repo.path().join(".treebeam/runs/r1");
    fs::create_dir_all(&run_dir)?;
    let user = open_repo_with(repo.path(), repo.variables())?;
    let (head, git) = (user.head.clone(), GitRepo::new(user, &run_dir, "r1".parse::<RunId>()?)?);
    let place = CodePlace::Candidate(EvalId::new(1));
    git.checkout_worktree(place, &head)?;
    let found = patch::find_patch(reply)?;
    for diff in [&found, &patch::with_carriage_returns(&found)] {
        if git.apply_to_worktree(place, diff)? == ApplyResult::Cleanly {
            return Ok(fs::read_to_string(
                run_dir.join(place.worktree_path().as_str()).join("m.py"),
            )?);
        }
    }
    Ok("refused".to_owned())
}

#[test]
fn whatever_form_a_model_chose() -> Outcome {
    let hunk = "@@ -5,4 +5,4 @@\n \n def f(x):\n-    y = x + 1\n+    y = x + 2\n     return y\n";
    let names = "--- a/m.py\n+++ b/m.py\n";
    let expect = BEFORE.replacen("x + 1", "x + 2", 1);
    for reply in [
        format!("diff --git a/m.py b/m.py\n{names}{hunk}"),
        format!("Of course!\n\n```diff\n{names}{hunk}```\n\n- it adds two\n"),
        format!("{names}{hunk}").replace('\n', "\r\n"),
        format!("{names}{hunk}").trim_end().to_owned(),
        // Wrong line counts, a wrong place, and missing line numbers.
        format!("```\n{names}{}```", hunk.replace("-5,4 +5,4", "-5,9 +5,2")),
        format!("```\n{names}{}```", hunk.replace("-5,4 +5,4", "-3,4 +3,4")),
        format!("```\n{names}{}```", hunk.replace("@@ -5,4 +5,4 @@", "@@ def f(x):")),
        // A blank line lost its space.
        format!("{names}{}", hunk.replace("\n \n", "\n\n")),
        "*** Begin Patch\n*** Update File: m.py\n@@ def f(x):\n def f(x):\n-    y = x + 1\n+    y = x + 2\n     return y\n*** End Patch".to_owned(),
    ] {
        assert_eq!(after(BEFORE, &reply)?, expect, "{reply}");
    }
    // Two blocks, each with a part of the patch.
    let last =
        "@@ -11,3 +11,3 @@\n def g(x):\n     y = x + 1\n-    return 2 * y\n+    return 3 * y\n";
    let both = format!("```diff\n{names}{hunk}```\nand\n```diff\n{names}{last}```\n");
    assert_eq!(after(BEFORE, &both)?, expect.replace("2 * y", "3 * y"));
    Ok(())
}

#[test]
fn lines_keep_the_ends_that_the_file_has() -> Outcome {
    let before = BEFORE.replace('\n', "\r\n");
    let reply = "--- a/m.py\n+++ b/m.py\n@@ -1,4 +1,5 @@\n import math\n \n-RATE = 1\n+RATE = 2\n+MORE = 3\n \n";
    let expect = before.replace("RATE = 1\r\n", "RATE = 2\r\nMORE = 3\r\n");
    assert_eq!(after(&before, reply)?, expect);
    assert_eq!(after(&before, &reply.replace('\n', "\r\n"))?, expect);
    Ok(())
}

#[test]
fn what_is_staged_can_be_shown() -> Outcome {
    let repo = TempRepo::with(&[("m.py", BEFORE)])?;
    let run_dir = repo.path().join(".treebeam/runs/r1");
    fs::create_dir_all(&run_dir)?;
    let user = open_repo_with(repo.path(), repo.variables())?;
    let (head, git) = (user.head.clone(), GitRepo::new(user, &run_dir, "r1".parse::<RunId>()?)?);
    let place = CodePlace::Candidate(EvalId::new(1));
    git.checkout_worktree(place, &head)?;
    assert_eq!(git.staged_diff(place, 1000)?, "");
    let diff =
        "--- a/m.py\n+++ b/m.py\n@@ -1,4 +1,4 @@\n import math\n \n-RATE = 1\n+RATE = 2ü\n \n";
    assert_eq!(git.apply_to_worktree(place, diff)?, ApplyResult::Cleanly);
    let shown = git.staged_diff(place, 1000)?;
    assert!(shown.starts_with("diff --git a/m.py b/m.py\n"), "{shown}");
    assert!(shown.contains("\n-RATE = 1\n+RATE = 2ü\n"), "{shown}");
    let end = shown.find('ü').unwrap_or(0);
    for limit in [0, end, end + 1, end + 2] {
        assert!(git.staged_diff(place, limit)?.len() <= limit);
    }
    Ok(())
}

#[test]
fn what_fits_nowhere_is_refused() -> Outcome {
    let reply = "--- a/m.py\n+++ b/m.py\n@@ -1,2 +1,2 @@\n import os\n-x\n+y\n";
    assert_eq!(after(BEFORE, reply)?, "refused");
    Ok(())
}
