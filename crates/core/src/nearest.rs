//! Suggestions for a mistyped name, by edit distance alone: no dictionary, no phonetics.

/// Returns the names nearest to `wanted`, nearest first; names that differ in more than half of
/// their letters are left out.
#[must_use]
pub fn nearest_names(wanted: &str, names: &[impl AsRef<str>]) -> Vec<String> {
    const MAX_NEAREST: usize = 3;
    let wanted: Vec<char> = wanted.to_lowercase().chars().take(MAX_COMPARED_CHARS).collect();
    let mut ranked: Vec<(usize, &str)> = names
        .iter()
        .map(AsRef::as_ref)
        .map(|name: &str| (edit_distance(&wanted, &name.to_lowercase()), name))
        .filter(|(distance, name)| *distance * 2 <= wanted.len().max(name.chars().count()))
        .collect();
    ranked.sort_unstable();
    ranked.into_iter().take(MAX_NEAREST).map(|(_, name)| name.to_owned()).collect()
}

/// Maximum number of characters of a name that are compared.
const MAX_COMPARED_CHARS: usize = 200;

/// Counts the letters to insert, delete or replace to turn one name into the other.
fn edit_distance(from: &[char], to: &str) -> usize {
    let mut row: Vec<usize> = (0..=from.len()).collect();
    for (line, letter) in to.chars().take(MAX_COMPARED_CHARS).enumerate() {
        let mut diagonal = line;
        let mut left = line + 1;
        if let Some(first) = row.first_mut() {
            *first = left;
        }
        for (above, other) in row.iter_mut().skip(1).zip(from) {
            let cost = diagonal + usize::from(letter != *other);
            diagonal = *above;
            left = cost.min(left + 1).min(diagonal + 1);
            *above = left;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (from, to, expect) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("kitten", "sitting", 3),
            ("flaw", "lawn", 2),
            ("é", "e", 1),
        ] {
            assert_eq!(edit_distance(&from.chars().collect::<Vec<_>>(), to), expect, "{from} {to}");
        }
    }

    #[test]
    fn the_nearest_come_first_and_strangers_not_at_all() {
        let names = ["config_id", "status", "sharpe", "sharp_e", "shape"].map(str::to_owned);
        assert_eq!(nearest_names("Sharpe", &names), ["sharpe", "shape", "sharp_e"]);
        assert!(nearest_names("volatility", &names).is_empty());
    }
}
