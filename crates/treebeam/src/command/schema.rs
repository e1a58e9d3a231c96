//! `treebeam schema`: prints the JSON Schemas of what treebeam prints and writes.
//!
//! They are kept by hand beside this program, and a test checks them against real output.

use super::OutputFormat;
use super::serve::route;
use crate::failure::{CommandExit, CommandFailure};
use crate::terminal;
use serde_json::{Value, json};
use treebeam_store::transition;

/// A schema: its name, what it describes, and its text.
struct Schema {
    name: &'static str,
    about: &'static str,
    text: &'static str,
}

macro_rules! schema {
    ($name:literal, $about:literal) => {
        Schema {
            name: $name,
            about: $about,
            text: include_str!(concat!("../../schemas/", $name, ".json")),
        }
    };
}

static JSON_SCHEMAS: [Schema; 30] = [
    schema!("manifest", "a run's `manifest.json`"),
    schema!(
        "journal",
        "a line of a run's `journal.jsonl`; its `event` is what `run`, `resume` and `log` print with `--json`"
    ),
    schema!("eval_result", "a job's `eval_result.json`"),
    schema!("summary", "an eval's `summary.json`"),
    schema!("end", "the last line of `treebeam run`, `resume`, `demo` and `log` with `--json`"),
    schema!("list", "what `treebeam list --json` prints"),
    schema!("show", "what `treebeam show --json` prints"),
    schema!("diff", "what `treebeam diff --json` prints"),
    schema!("export", "what `treebeam export --json` prints"),
    schema!("best", "what `treebeam best --json` prints"),
    schema!("status", "what `treebeam status --json` prints"),
    schema!("agents", "what `treebeam agents --json` prints"),
    schema!("agents.check", "what `treebeam agents check --json` prints"),
    schema!("agents.ask", "what `treebeam agents ask --json` prints"),
    schema!("steer", "what `treebeam pause`, `unpause` and `stop` print with `--json`"),
    schema!("idea", "what `treebeam idea add --json` prints"),
    schema!("eval", "what `treebeam eval --json` prints"),
    schema!("baseline", "what `treebeam baseline --json` prints"),
    schema!("ideas", "what `treebeam ideas --json` prints"),
    schema!("score", "what `treebeam score --json` prints"),
    schema!("serve", "what `treebeam serve --json` prints"),
    schema!("validate", "what `treebeam validate --json` prints"),
    schema!("report", "what `treebeam report --json` prints"),
    schema!("clean", "what `treebeam clean --json` prints"),
    schema!("config", "what `treebeam config --json` prints"),
    schema!("doctor", "what `treebeam doctor --json` prints"),
    schema!("init", "what `treebeam init --json` prints"),
    schema!("completions", "what `treebeam completions --json` prints"),
    schema!("man", "what `treebeam man --json` prints"),
    schema!("schema", "what `treebeam schema --json` prints"),
];

/// Name of the printed list of transitions, which is no schema.
const TRANSITIONS_NAME: &str = "transitions";

/// Name of the printed list of routes, which is no schema.
const ROUTES_NAME: &str = "routes";

pub(super) fn run_schema(
    name: Option<&str>,
    output: OutputFormat,
) -> Result<CommandExit, CommandFailure> {
    if name == Some(TRANSITIONS_NAME) {
        terminal::print_json(&render_transitions_json())?;
        return Ok(CommandExit::Done);
    }
    if name == Some(ROUTES_NAME) {
        terminal::print_json(&render_routes_json())?;
        return Ok(CommandExit::Done);
    }
    let one = name.map(find_schema).transpose()?;
    match (output, one) {
        (OutputFormat::Json, Some(one)) => {
            terminal::print_json(&render_schemas_json(std::slice::from_ref(one))?)?;
        }
        (OutputFormat::Json, None) => terminal::print_json(&render_schemas_json(&JSON_SCHEMAS)?)?,
        (OutputFormat::Text, Some(one)) => terminal::print_text(one.text)?,
        (OutputFormat::Text, None) => terminal::print_text(&render_schema_list())?,
    }
    Ok(CommandExit::Done)
}

fn render_schema_list() -> String {
    let line = |name: &str, about: &str| format!("{name:<14}{about}\n");
    let mut list: String = JSON_SCHEMAS.iter().map(|one| line(one.name, one.about)).collect();
    list.push_str(&line(
        TRANSITIONS_NAME,
        "no schema: the list of all that a run makes last on disk",
    ));
    list.push_str(&line(ROUTES_NAME, "no schema: the list of all addresses of `treebeam serve`"));
    list
}

fn render_transitions_json() -> Value {
    json!({
        "schema": "treebeam.transitions/1",
        "events": transition::EVENT_KINDS,
        "steps": transition::STEPS,
    })
}

fn render_routes_json() -> Value {
    let routes = route::WEB_ROUTES.iter();
    let routes =
        routes.map(|route| json!({ "method": route.method.name(), "path": route.pattern }));
    json!({ "schema": "treebeam.routes/1", "routes": routes.collect::<Vec<_>>() })
}

fn find_schema(name: &str) -> Result<&'static Schema, CommandFailure> {
    let names = || JSON_SCHEMAS.each_ref().map(|schema| format!("`{}`", schema.name)).join(", ");
    JSON_SCHEMAS.iter().find(|schema| schema.name == name).ok_or_else(|| {
        let name: String = name.chars().take(80).collect();
        CommandFailure::usage(format!("there is no schema {name:?}"))
            .with_hint(format!("there are {}", names()))
    })
}

fn render_schemas_json(schemas: &[Schema]) -> Result<Value, CommandFailure> {
    let mut all = serde_json::Map::new();
    for schema in schemas {
        all.insert(schema.name.to_owned(), serde_json::from_str(schema.text)?);
    }
    Ok(json!({ "schema": "treebeam.schema/1", "schemas": all }))
}
