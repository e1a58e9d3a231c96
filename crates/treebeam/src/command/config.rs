//! `treebeam config`: lists every key with value and origin, and variables of `.env` files.
//!
//! Reads only; of a variable only the name is shown, never its value.

use super::OutputFormat;
use crate::config::config_file::ConfigFile;
use crate::config::config_key::{CONFIG_KEYS, ConfigKey};
use crate::config::{Config, format_items, format_value, get_value};
use crate::dotenv::{self, Dotenv};
use crate::failure::{CommandExit, CommandFailure};
use crate::terminal;
use serde_json::{Value, json};

pub(super) fn run_config(
    config: &Config,
    dotenv: &Dotenv,
    output: OutputFormat,
) -> Result<CommandExit, CommandFailure> {
    let values = config.all_values()?;
    match output {
        OutputFormat::Json => terminal::print_json(&render_config_json(config, &values, dotenv))?,
        OutputFormat::Text => terminal::print_text(&render_config_text(config, &values, dotenv))?,
    }
    Ok(CommandExit::Done)
}

fn render_config_json(config: &Config, values: &Value, dotenv: &Dotenv) -> Value {
    let value = |key: &ConfigKey| {
        let origin = config.origin_of_value(key).render_json();
        json!({ "key": key.name, "value": get_value(values, key.name), "origin": origin })
    };
    let variable = |found: dotenv::DotenvVariable<'_>| json!({ "name": found.name, "file": found.file, "used": found.is_used() });
    json!({
        "schema": "treebeam.config/1",
        "file": config.file().map(ConfigFile::name),
        "values": CONFIG_KEYS.iter().map(value).collect::<Vec<_>>(),
        "variables": dotenv.iter_variables().map(variable).collect::<Vec<_>>(),
    })
}

fn render_config_text(config: &Config, values: &Value, dotenv: &Dotenv) -> String {
    let mut rows = vec![["key", "value", "origin"].map(str::to_owned)];
    for key in &CONFIG_KEYS {
        let value = get_value(values, key.name);
        let mut lines = format_items(value).into_iter();
        let first =
            if value.is_array() { lines.next() } else { Some(format_value(key.name, value)) };
        let first = first.unwrap_or_else(|| "[]".to_owned());
        rows.push([key.name.to_owned(), first, config.origin_of_value(key).describe_briefly()]);
        rows.extend(lines.map(|line| [String::new(), line, String::new()]));
    }
    let mut text = align_table(&rows);
    let mut rows = vec![["variable", "value", "origin"].map(str::to_owned)];
    for found in dotenv.iter_variables() {
        rows.push([found.name.to_owned(), "hidden".to_owned(), found.describe_source()]);
    }
    if rows.len() > 1 {
        text.push_str(&format!("\n{}", align_table(&rows)));
    }
    text
}

/// Formats rows with aligned columns.
fn align_table(rows: &[[String; 3]]) -> String {
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
