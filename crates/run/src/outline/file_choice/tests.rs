//! The choice and order of files by names and sizes, without a real git.

use super::*;

fn file(path: &str, bytes: u64) -> RepoFile {
    RepoFile { path: path.to_owned(), bytes, object: String::new() }
}

fn paths(files: &[&RepoFile]) -> Vec<String> {
    files.iter().map(|file| file.path.clone()).collect()
}

#[test]
fn what_was_named_comes_first() {
    let files = [
        file("README.md", 900),
        file("assets/logo.svg", 10),
        file("conf/base.yaml", 40),
        file("data/prices.csv", 100),
        file("docs/README.md", 5),
        file("node_modules/x/main.js", 5),
        file("pkg/features.py", 300),
        file("pkg/main.py", 200),
        file("pkg/model.py", 500),
        file("pkg/tiny.py", 1),
        file("tools/sweep_all.sh", 70),
        file("treebeam.toml", 10),
    ];
    let said =
        ["IDEA: a wider window\nREQUIRED_CHANGES:\n- `pkg/model.py`: the window. See features.py."];
    let commands = ["/bin/sh -c bash ./tools/sweep_all.sh --fast".to_owned()];
    assert_eq!(
        paths(&likely_files(&files, &said, &commands)),
        [
            "pkg/model.py",
            "pkg/features.py",
            "README.md",
            "tools/sweep_all.sh",
            "pkg/main.py",
            "pkg/tiny.py",
            "conf/base.yaml",
        ]
    );
    // Data is shown if the text mentions it.
    let said = ["look at data/prices.csv and at node_modules/x/main.js"];
    let first = paths(&likely_files(&files, &said, &[]));
    assert_eq!(first[..2], ["node_modules/x/main.js", "data/prices.csv"]);
}

#[test]
fn some_files_are_never_shown() {
    for path in [
        ".env",
        "conf/.env",
        ".env.local",
        "a/id_rsa",
        "id_ed25519.pub",
        "server.pem",
        "tls/Server.KEY",
        "credentials.json",
        "secrets.yaml",
        ".netrc",
    ] {
        let files = [file(path, 9)];
        assert!(likely_files(&files, &[path], &[]).is_empty(), "{path}");
        assert!(
            files_by_globs(&files, &[FileGlob::new("**").expect("a glob")]).is_empty(),
            "{path}"
        );
    }
    for (path, bytes) in [("a.py", 0), ("a.py", MAX_SHOWN_FILE_BYTES + 1)] {
        assert!(likely_files(&[file(path, bytes)], &[path], &[]).is_empty());
    }
    for path in ["environment.py", "secrets_test.py", "key.py"] {
        assert_eq!(likely_files(&[file(path, MAX_SHOWN_FILE_BYTES)], &[], &[]).len(), 1, "{path}");
    }
}

#[test]
fn globs_count_in_their_order() {
    let files = [file("a/z.py", 9), file("b.md", 9), file("c.py", 9)];
    let globs = ["b.*", "**/*.py"].map(|glob| FileGlob::new(glob).expect("a glob"));
    assert_eq!(paths(&files_by_globs(&files, &globs)), ["b.md", "a/z.py", "c.py"]);
    assert!(files_by_globs(&files, &[]).is_empty());
}

#[test]
fn as_many_as_fit() {
    let (a, b, c) = (file("a", 50), file("b", 1000), file("c", 1));
    let fit = |room| files_that_fit(&[&a, &b, &c], room, 100).len();
    assert_eq!([fit(0), fit(1), fit(50), fit(51), fit(150), fit(151)], [0, 1, 1, 2, 2, 3]);
}
