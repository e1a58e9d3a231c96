//! `treebeam config`: every key with its value and where that is from, and the names of the variables in `.env` files.
//! Reads only; a variable's value is never shown.

use super::Output;
use crate::config::file::ConfigFile;
use crate::config::key::{KEYS, Key};
use crate::config::{Config, get, items, shown};
use crate::dotenv::{self, Dotenv};
use crate::failure::{Exit, Failure};
use crate::terminal;
use serde_json::{Value, json};

pub(super) fn run(config: &Config, dotenv: &Dotenv, output: Output) -> Result<Exit, Failure> {
    let values = config.values()?;
    match output {
        Output::Json => terminal::json(&document(config, &values, dotenv))?,
        Output::Text => terminal::show(&text(config, &values, dotenv))?,
    }
    Ok(Exit::Done)
}

fn document(config: &Config, values: &Value, dotenv: &Dotenv) -> Value {
    let value = |key: &Key| {
        let origin = config.origin_of_value(key).document();
        json!({ "key": key.name, "value": get(values, key.name), "origin": origin })
    };
    let variable = |found: dotenv::Found<'_>| json!({ "name": found.name, "file": found.file, "used": found.is_used() });
    json!({
        "schema": "treebeam.config/1",
        "file": config.file().map(ConfigFile::name),
        "values": KEYS.iter().map(value).collect::<Vec<_>>(),
        "variables": dotenv.found().map(variable).collect::<Vec<_>>(),
    })
}

fn text(config: &Config, values: &Value, dotenv: &Dotenv) -> String {
    let mut rows = vec![["key", "value", "origin"].map(str::to_owned)];
    for key in &KEYS {
        let value = get(values, key.name);
        let mut lines = items(value).into_iter();
        let first = if value.is_array() { lines.next() } else { Some(shown(key.name, value)) };
        let first = first.unwrap_or_else(|| "[]".to_owned());
        rows.push([key.name.to_owned(), first, config.origin_of_value(key).brief()]);
        rows.extend(lines.map(|line| [String::new(), line, String::new()]));
    }
    let mut text = table(&rows);
    let mut rows = vec![["variable", "value", "origin"].map(str::to_owned)];
    for found in dotenv.found() {
        rows.push([found.name.to_owned(), "hidden".to_owned(), found.in_words()]);
    }
    if rows.len() > 1 {
        text.push_str(&format!("\n{}", table(&rows)));
    }
    text
}

/// Rows with their columns below each other.
fn table(rows: &[[String; 3]]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let (first, second) = (width(0), width(1));
    let row = |[a, b, c]: &[String; 3]| {
        format!("{a:first$}  {b:second$}  {c}").trim_end().to_owned() + "\n"
    };
    rows.iter().map(row).collect()
}
