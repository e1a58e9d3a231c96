//! Patches found in replies. That git accepts the result is tested elsewhere with a real git.

use super::*;

const BARE: &str = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,1 +1,2 @@ fn f\n a\n+b\n";

#[test]
fn a_diff_is_found_whatever_is_around_it() {
    for reply in [
        BARE.to_owned(),
        format!("Here you are:\n```diff\n{BARE}```\nThat is all: `x` grows.\n- really\n"),
        BARE.replace('\n', "\r\n"),
        BARE.trim_end().to_owned(),
        format!("{BARE}\nHope this helps\n"),
        format!("{BARE}\n- a point\n+ another\n"),
        format!("~~~\n{BARE}\n\n~~~\n"),
        BARE.replace("-1,1 +1,2", "-1 +1,2"),
        format!("```\n{}```\n", BARE.replace("-1,1 +1,2", "-1,7 +1,9")),
        BARE.replace("--- a/x", "--- a/x\t2026-01-01 00:00:00"),
    ] {
        assert_eq!(find_patch(&reply).as_deref(), Ok(BARE), "{reply:?}");
    }
    for none in ["I would rather not.", "--- a/x\nno hunk", "", "```diff\n```", "*** Begin Patch\n"]
    {
        assert_eq!(find_patch(none), Err("the answer has no unified diff".to_owned()), "{none:?}");
    }
    assert!(
        find_patch(&"x".repeat(MAX_REPLY_BYTES + 1))
            .is_err_and(|why| why.contains("longer than 4 MiB"))
    );
}

/// Cuts each diff at every byte, except where only the end of its last line is lost.
#[test]
fn a_diff_that_was_cut_is_refused_wherever_that_was() {
    let two = format!(
        "{BARE}@@ -9,3 +10,3 @@\n c\n-d\n+e\n f\ndiff --git a/y b/y\n--- a/y\n+++ b/y\n@@ -1,2 +1,2 @@\n-g\n+h\n i\n"
    );
    // Here a diff without a fence looks complete: after a hunk, and inside the last line.
    let ends = [BARE.len(), two.find("diff --git a/y").unwrap_or(0), two.len()];
    let looks_whole = |cut: usize| ends.iter().any(|end| (end - 2..=*end).contains(&cut));
    for before in ["", "So:\n```diff\n"] {
        for cut in (0..two.len()).filter(|cut| !looks_whole(*cut)) {
            let found = find_patch(&format!("{before}{}", &two[..cut]));
            assert!(found.is_err(), "{cut}: {found:?}");
        }
        assert!(find_patch(&format!("{before}{two}")).is_ok());
    }
    let why = find_patch(&two[..two.len() - 6]).unwrap_err();
    let lacks = "its last hunk, `@@ -1,2 +1,2 @@`, has 1 of 2 old and 0 of 2 new lines";
    assert_eq!(why, format!("the diff was cut off: {lacks}; answer with the whole diff"));
    let why = find_patch("*** Begin Patch\n*** Update File: a\n@@\n x\n-y\n").unwrap_err();
    assert!(why.contains("`*** End Patch`"), "{why}");
    let empty = "diff --git a/e b/e\nnew file mode 100644\nindex 0000000..e69de29\n";
    assert_eq!(find_patch(empty).as_deref(), Ok(empty));
    assert!(find_patch(&empty.replace("e69de29", "1234567")).is_err());
}

#[test]
fn several_diffs_become_one() {
    let bare = "--- a/y\n+++ b/y\n@@ -4,2 +4,1 @@\n c\n-d\n";
    let reply = format!("First:\n```diff\n{BARE}```\nand then\n```diff\n{bare}```\n");
    assert_eq!(find_patch(&reply), Ok(format!("{BARE}{bare}")));
    assert_eq!(find_patch(&format!("{BARE}{bare}")), Ok(format!("{BARE}{bare}")));
}

#[test]
fn hunks_are_counted_again_and_the_next_ones_move() {
    let reply = "```\ndiff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n a\n\n+b\n+c\n d\n@@ -20,3 +20,3 @@\n e\n-f\n g\n\n```\n";
    let expect = "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1,3 +1,5 @@\n a\n \n+b\n+c\n d\n@@ -20,3 +22,2 @@\n e\n-f\n g\n";
    assert_eq!(find_patch(reply).as_deref(), Ok(expect));
    // A blank line at the end counts if the header's numbers include it.
    let wanted = "--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@\n+a\n b\n\n";
    assert_eq!(find_patch(wanted), Ok("--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@\n+a\n b\n \n".to_owned()));
    let unnumbered = "```\n--- a/x\n+++ b/x\n@@ def f():\n a\n-b\n c\n@@\n d\n+e\n f\n```";
    let expect = "--- a/x\n+++ b/x\n@@ -2,3 +2,2 @@\n a\n-b\n c\n@@ -6,2 +5,3 @@\n d\n+e\n f\n";
    assert_eq!(find_patch(unnumbered).as_deref(), Ok(expect));
}

#[test]
fn files_that_come_go_or_change_their_mode() {
    let check =
        |diff: &str| assert_eq!(find_patch(&format!("So:\n```\n{diff}```\n")).as_deref(), Ok(diff));
    check(
        "diff --git a/n b/n\nnew file mode 100644\n--- /dev/null\n+++ b/n\n@@ -0,0 +1,1 @@\n+x\n\\ No newline at end of file\n",
    );
    check(
        "diff --git a/n b/n\ndeleted file mode 100644\n--- a/n\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-x\n",
    );
    check("diff --git a/n b/m\nsimilarity index 100%\nrename from n\nrename to m\n");
    check("diff --git a/n b/n\nold mode 100644\nnew mode 100755\n");
    check("diff --git a/e b/e\nnew file mode 100644\nindex 0000000..e69de29\n");
}

#[test]
fn the_other_form_becomes_gits() {
    let reply = "Sure.\n*** Begin Patch\n*** Update File: src/a.py\n@@ def f():\n x = 1\n-y = 2\n+y = 3\n z = 4\n*** Add File: b.txt\n+one\n+two\n*** End Patch\nDone.\n";
    let expect = "diff --git a/src/a.py b/src/a.py\n--- a/src/a.py\n+++ b/src/a.py\n@@ -2,3 +2,3 @@\n x = 1\n-y = 2\n+y = 3\n z = 4\n\
        diff --git a/b.txt b/b.txt\nnew file mode 100644\n--- /dev/null\n+++ b/b.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n";
    assert_eq!(find_patch(reply).as_deref(), Ok(expect));
    let gone = find_patch("*** Begin Patch\n*** Delete File: a\n*** End Patch");
    assert!(gone.is_err_and(|why| why.contains("answer with a unified diff")));
}

#[test]
fn for_files_of_another_system() {
    let expect = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,1 +1,2 @@ fn f\n a\r\n+b\r\n";
    assert_eq!(with_carriage_returns(BARE), expect);
}

/// Returns true if each hunk has as many lines as its header says.
fn counts_fit(patch: &str) -> bool {
    let lines: Vec<&str> = patch.lines().collect();
    let mut at = 0;
    while at < lines.len() {
        if lines[at].starts_with("@@") {
            let HunkHeader { old, new, .. } = parse_hunk_header(lines[at]);
            let (mut before, mut after) = (0, 0);
            while (before, after) != (old, new) {
                at += 1;
                match lines.get(at).and_then(|line| line.chars().next()) {
                    Some(' ') => (before, after) = (before + 1, after + 1),
                    Some('-') => before += 1,
                    Some('+') => after += 1,
                    Some('\\') => {}
                    _ => return false,
                }
            }
        }
        at += 1;
    }
    true
}

proptest::proptest! {
    #[test]
    fn whatever_is_said_the_counts_fit(lines in proptest::collection::vec(
        "(diff --git a/x b/x|--- a/x|\\+\\+\\+ b/x|@@ -1,2 \\+1,3 @@|@@|```|\\*\\*\\* Begin Patch|\\*\\*\\* Update File: x|[ +\\-\\\\]?[a-z]{0,3}|)", 0..24)
    ) {
        if let Ok(found) = find_patch(&lines.join("\n")) {
            proptest::prop_assert!(counts_fit(&found), "{}", found);
        }
    }
}

#[test]
fn a_carriage_return_belongs_to_the_file_where_the_head_has_none() {
    let dos = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\r\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n";
    assert_eq!(find_patch(&format!("So:\n\n{dos}")).as_deref(), Ok(dos));
    assert_eq!(find_patch(&BARE.replace('\n', "\r\n")).as_deref(), Ok(BARE), "all lines have one");
}
