//! What is said of an eval or a baseline that was cut off, and that it goes on as it is said.

use crate::desk::Desk;
use std::fs;
use treebeam_testkit::program::RUN;

/// A desk whose configuration lies elsewhere, with the flags that lead there and the command that goes on.
fn elsewhere(settings: &str) -> (Desk, [String; 4], String) {
    let desk = Desk::new(settings);
    let (top, file) = (desk.site.repo.path(), desk.dir.join("other.toml"));
    fs::rename(top.join("treebeam.toml"), &file).expect("to move");
    let [top, file] = [top, &file].map(|path| path.display().to_string());
    let way_on = format!("treebeam -C {top} resume {RUN} --config {file}");
    (desk, ["-C".to_owned(), top, "--config".to_owned(), file], way_on)
}

#[test]
fn an_eval_that_halts_says_the_whole_command_that_goes_on() {
    let (desk, [c, top, config, file], way_on) = elsewhere("baseline_csv = 'base.data'");
    desk.site.repo.write("base.data", "config_id,status,a\n0,error,1\n").expect("a file");
    let ideas = desk.ideas(&["good"]);
    let words = [&c, &top, "eval", "--run-id", RUN, "--idea", &ideas, &config, &file];
    let said = desk.site.call(&words).exits(4);
    let _ = said.says([&format!("with its results in `base.data`, `{way_on}` goes on from here")]);
}
