//! The real program in hostile repositories, and with hostile candidates: no configured command
//! runs, and the user's files stay as they are, byte by byte, whatever is in a worktree.

#![cfg(test)]
#![cfg(unix)]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use treebeam_testkit::program::{SITE_RUN_ID, Site};
use treebeam_testkit::repo::{TempRepo, script};

const BINARY: &str = env!("CARGO_BIN_EXE_treebeam");
const SIZE: [&str; 4] =
    ["--ideas-per-node=3", "--max-depth=2", "--max-parallel-evals=2", "--quiet"];

/// Every hook that git knows.
const HOOKS: [&str; 27] = [
    "applypatch-msg",
    "pre-applypatch",
    "post-applypatch",
    "pre-commit",
    "pre-merge-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
    "pre-rebase",
    "post-checkout",
    "post-merge",
    "pre-push",
    "pre-receive",
    "update",
    "proc-receive",
    "post-receive",
    "post-update",
    "reference-transaction",
    "push-to-checkout",
    "pre-auto-gc",
    "post-rewrite",
    "sendemail-validate",
    "fsmonitor-watchman",
    "p4-changelist",
    "p4-pre-submit",
    "post-index-change",
    "p4-prepare-changelist",
];

/// Settings whose value is a command, each of which leaves a trace if it runs.
const COMMANDS: [&str; 26] = [
    "core.fsmonitor",
    "core.sshCommand",
    "core.editor",
    "core.pager",
    "core.askPass",
    "core.alternateRefsCommand",
    "core.gitProxy",
    "sequence.editor",
    "pager.diff-tree",
    "gpg.program",
    "gpg.ssh.program",
    "gc.recentObjectsHook",
    "diff.external",
    "diff.odd.command",
    "diff.odd.textconv",
    "merge.odd.driver",
    "filter.odd.clean",
    "filter.odd.smudge",
    "filter.odd.process",
    "filter.other = one.clean",
    "filter.other = one.smudge",
    "credential.helper",
    "uploadpack.packObjectsHook",
    "remote.origin.uploadpack",
    "interactive.diffFilter",
    "trailer.x.command",
];

/// A repository whose files have attributes for every kind of driver, and a place for traces.
struct Trap {
    site: Site,
    traces: PathBuf,
}

impl Trap {
    fn new() -> Self {
        let repo = TempRepo::with(&[
            ("model.py", "x = 1\n"),
            ("src/lib/part.txt", "a part\n"),
            (
                ".gitattributes",
                "*.py filter=odd diff=odd merge=odd\n*.txt filter=other\\ =\\ one\n",
            ),
        ]);
        let site = Site::from_repo(repo.expect("a repository"), BINARY);
        let traces = site.repo.beside("traces");
        fs::create_dir(&traces).expect("a folder");
        Self { site, traces }
    }

    /// A command that leaves a trace of this name.
    fn trace(&self, name: &str) -> String {
        let name = name.replace(' ', "_");
        format!("touch '{}/{name}' #", self.traces.display())
    }

    fn set(&self, key: &str, value: &str) {
        self.site.repo.git(["config", key, value]).expect("a setting");
    }

    fn set_commands(&self, keys: &[&str]) {
        for key in keys {
            self.set(key, &self.trace(key));
        }
    }

    fn hooks_in(&self, folder: &Path) {
        fs::create_dir_all(folder).expect("a folder");
        for hook in HOOKS {
            let text = format!("#!/bin/sh\n{}\nexit 1\n", self.trace(hook));
            script(&folder.join(hook), &text).expect("a hook");
        }
    }

    fn traces(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.traces).expect("traces");
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
    }

    /// Asserts for a whole run, and every reading command, that no command was run and nothing of
    /// the user's changed.
    fn must_hold(&self, what: &str, variables: &[(OsString, OsString)]) {
        fs::remove_dir_all(&self.traces).and_then(|()| fs::create_dir(&self.traces)).unwrap();
        let before = users(self.site.repo.path());
        let path = self.site.repo.path();
        let call = |arguments: &[&str]| self.site.call_with(path, variables.to_vec(), arguments);
        let _ =
            call(&[&["run", "--dry-run", "--run-id", SITE_RUN_ID], &SIZE[..]].concat()).exits(0);
        for command in [
            "status",
            "validate",
            "list",
            "doctor",
            "report",
            "log",
            "show t n0001",
            "diff t n0001",
            "diff t e0001 --json",
            "resume t --max-depth=3",
        ] {
            let arguments: Vec<&str> = command.split(' ').collect();
            let said = call(&arguments);
            assert!(matches!(said.code, Some(0 | 4)), "{what}: {command}: {}", said.stderr);
        }
        assert_eq!(self.traces(), [""; 0], "{what}");
        assert_same(&before, &users(path), what);
    }
}

type Files = BTreeMap<String, Vec<u8>>;

/// Returns the user's files: all of the checkout, and of git's folder all but objects and what
/// belongs to runs.
fn users(root: &Path) -> Files {
    let mut files = Files::new();
    collect(root, "", &mut files);
    let ours = [
        ".treebeam/",
        ".git/objects/",
        ".git/refs/heads/tree/",
        ".git/refs/treebeam/",
        ".git/worktrees/",
    ];
    files.retain(|path, _| {
        path != ".git/treebeam.lock" && !ours.iter().any(|folder| path.starts_with(folder))
    });
    files
}

fn collect(folder: &Path, name: &str, files: &mut Files) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let entry = entry.expect("an entry");
        let name = format!("{name}{}", entry.file_name().to_string_lossy());
        if entry.file_type().expect("a kind").is_dir() {
            collect(&entry.path(), &format!("{name}/"), files);
        } else {
            files.insert(name, fs::read(entry.path()).unwrap_or_default());
        }
    }
}

#[track_caller]
fn assert_same(before: &Files, after: &Files, what: &str) {
    for (path, bytes) in before {
        assert!(after.get(path) == Some(bytes), "{what}: {path} was changed");
    }
    let added: Vec<_> = after.keys().filter(|path| !before.contains_key(*path)).collect();
    assert!(added.is_empty(), "{what}: {added:?} came to be");
}

type Setting = (&'static str, fn(&Trap));

/// Settings that a user, or an attacker with access to the user's configuration, may have made.
const SETTINGS: [Setting; 6] = [
    ("hooks", |trap| trap.hooks_in(&trap.site.repo.path().join(".git/hooks"))),
    ("hooks elsewhere", |trap| {
        let folder = trap.site.repo.beside("hooks");
        trap.hooks_in(&folder);
        trap.set("core.hooksPath", &folder.display().to_string());
    }),
    ("commands", |trap| {
        trap.set_commands(&COMMANDS);
        let flags = ["commit.gpgSign", "tag.gpgSign", "filter.odd.required", "log.showSignature"];
        for key in flags {
            trap.set(key, "true");
        }
        for name in ["worktree", "read-tree", "apply", "commit-tree", "diff-tree", "status"] {
            trap.set(&format!("alias.{name}"), &format!("!{}", trap.trace(name)));
        }
        trap.set("url.ext::sh -c touch% x.insteadOf", "https://");
    }),
    ("commands of the whole machine's", |trap| {
        let mut text = String::new();
        for driver in ["filter \"odd\"", "diff \"odd\"", "merge \"odd\""] {
            text.push_str(&format!("[{driver}]\n"));
            for key in ["clean", "smudge", "process", "command", "textconv", "driver"] {
                let trace = trap.trace(&format!("global-{key}"));
                text.push_str(&format!("{key} = \"{trace}\"\n"));
            }
        }
        let file = trap.site.repo.home().join(".gitconfig");
        fs::write(file, format!("{text}[filter \"odd\"]\nrequired = true\n")).expect("a file");
    }),
    ("included and per worktree", |trap| {
        let repo = &trap.site.repo;
        let (smudge, monitor) = (trap.trace("included"), trap.trace("worktree-fsmonitor"));
        let included = format!("[filter \"odd\"]\nsmudge = \"{smudge}\"\nrequired = true\n");
        fs::write(repo.beside("included"), included).expect("a file");
        trap.set("includeIf.gitdir:**.path", &repo.beside("included").display().to_string());
        trap.set("include.path", &repo.beside("included").display().to_string());
        trap.set("extensions.worktreeConfig", "true");
        repo.git(["config", "--worktree", "core.fsmonitor", &monitor]).expect("a setting");
        repo.git(["config", "--worktree", "filter.odd.clean", &monitor]).expect("a setting");
    }),
    ("a checkout elsewhere, and attributes beside the commit", |trap| {
        let repo = &trap.site.repo;
        trap.set("core.worktree", &repo.path().display().to_string());
        fs::write(repo.beside("attributes"), "* filter=odd diff=odd\n").expect("a file");
        trap.set("core.attributesFile", &repo.beside("attributes").display().to_string());
        fs::create_dir_all(repo.path().join(".git/info")).expect("a folder");
        fs::write(repo.path().join(".git/info/attributes"), "* filter=odd diff=odd\n").unwrap();
        trap.set_commands(&["filter.odd.clean", "filter.odd.smudge", "diff.odd.textconv"]);
    }),
];

#[test]
fn nothing_that_is_configured_runs() {
    for (what, set) in SETTINGS {
        let trap = Trap::new();
        let git = |arguments: &[&str]| trap.site.repo.git_in(trap.site.repo.path(), arguments);
        trap.site.repo.write("model.py", "x = 3\n").expect("a file");
        git(&["stash", "push", "--quiet"]).expect("a stash");
        git(&["branch", "other"]).expect("a branch");
        set(&trap);
        trap.must_hold(what, &trap.site.repo.variables());
    }
}

/// Possible attacks of a candidate on the `.git` of its worktree, as shell scripts that run there.
const SABOTAGES: [(&str, &str); 6] = [
    ("deleted", "rm -f .git"),
    ("the user's own", "rm -rf .git; echo 'gitdir: {repo}/.git' > .git"),
    ("a link to the user's own", "rm -rf .git; ln -s '{repo}/.git' .git"),
    ("another repository", "rm -rf .git; echo 'gitdir: {evil}/.git' > .git"),
    ("a whole repository", "rm -rf .git; cp -r '{evil}/.git' .git"),
    ("no text", "rm -rf .git; head -c 5000 /dev/zero > .git"),
];

/// A git that first attacks the worktree as a candidate may, before each call that works there.
const STAND_IN: &str = "#!/bin/sh\nPATH='{path}'\ncase \" $* \" in\n*' apply '*|*' diff-index '*|*' write-tree '*|*' commit-tree '*|*' --stdin '*)\n  case \"$PWD\" in */cand/*) {sabotage}; echo x >> '{done}';; esac;;\nesac\nexec git \"$@\"\n";

#[test]
fn whatever_a_candidate_does_to_its_worktree_stays_there() {
    let peaceful = Trap::new();
    peaceful.must_hold("peaceful", &peaceful.site.repo.variables());
    for (what, sabotage) in SABOTAGES {
        let trap = Trap::new();
        let (repo, evil, bin) =
            (&trap.site.repo, trap.site.repo.beside("evil"), trap.site.repo.beside("bin"));
        fs::create_dir(&evil).expect("a folder");
        repo.git_in(&evil, &["init", "--quiet"]).expect("a repository");
        trap.hooks_in(&evil.join(".git/hooks"));
        for key in COMMANDS {
            repo.git_in(&evil, &["config", key, &trap.trace(key)]).expect("a setting");
        }
        fs::create_dir(&bin).expect("a folder");
        let done = repo.beside("done");
        let text = STAND_IN
            .replace("{sabotage}", sabotage)
            .replace("{path}", &std::env::var("PATH").expect("a path"))
            .replace("{done}", &done.display().to_string())
            .replace("{repo}", &repo.path().display().to_string())
            .replace("{evil}", &evil.display().to_string());
        script(&bin.join("git"), &text).expect("a script");
        let mut variables = repo.variables();
        variables.retain(|(name, _)| name != "PATH");
        variables.push(("PATH".into(), bin.into_os_string()));
        let untouched = users(&evil);
        trap.must_hold(what, &variables);
        assert_same(&untouched, &users(&evil), what);
        let times = fs::read_to_string(&done).expect("what was done").lines().count();
        assert!(times >= 20, "{what}: done {times} times");
        trap.site.must_equal(&peaceful.site);
    }
}
