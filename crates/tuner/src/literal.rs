//! Literals: their value, and other values in the same form. A number keeps its point, exponent,
//! digit groups, sign and suffix, and gets no more digits than are significant.

use super::file_kind::FileKind;

/// Minimum number of significant digits of a new value.
const MIN_SIGNIFICANT_DIGITS: usize = 3;
/// Maximum number of significant digits: whole numbers of this length are exact.
const MAX_SIGNIFICANT_DIGITS: usize = 15;

/// Parsed literal of a constant.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// True or false.
    Flag {
        /// Value of the flag.
        value: bool,
        /// True for the spelling `True`, false for `true`.
        capital: bool,
    },
    /// A number.
    Number {
        /// Value of the number.
        value: f64,
        /// Form of the number.
        form: NumberForm,
    },
}

/// Form in which a number is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberForm {
    kind: NumberKind,
    plus: bool,
    /// True if it begins with its point.
    bare: bool,
    /// True if its digits are in groups of three.
    grouped: bool,
    /// Minimum number of digits after the point.
    decimals: usize,
    significant: usize,
    exponent: Option<ExponentForm>,
    suffix: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NumberKind {
    Whole,
    /// Floating-point by its suffix, without a point.
    WithoutPoint,
    Fraction,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ExponentForm {
    letter: char,
    plus: bool,
    width: usize,
}

impl Literal {
    /// Parses a complete literal.
    #[must_use]
    pub fn parse(text: &str, kind: FileKind) -> Option<Self> {
        let flag = |value, capital| Some(Self::Flag { value, capital });
        match (text, kind) {
            ("True", FileKind::Python | FileKind::Yaml) => flag(true, true),
            ("False", FileKind::Python | FileKind::Yaml) => flag(false, true),
            ("true" | "false", FileKind::Python) => None,
            ("true", _) => flag(true, false),
            ("false", _) => flag(false, false),
            _ => parse_number(text, kind),
        }
    }

    /// Returns the value; that of a flag is 0 or 1.
    #[must_use]
    pub const fn value(&self) -> f64 {
        match self {
            Self::Flag { value: true, .. } => 1.0,
            Self::Flag { value: false, .. } => 0.0,
            Self::Number { value, .. } => *value,
        }
    }

    /// Returns true if only whole numbers are allowed.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        match self {
            Self::Flag { .. } => true,
            Self::Number { form, .. } => form.kind == NumberKind::Whole,
        }
    }

    /// Formats another value in the same form, rounded.
    #[must_use]
    pub fn format_value(&self, value: f64) -> String {
        match self {
            Self::Flag { capital, .. } => {
                let word = if value > 0.5 { "true" } else { "false" };
                let (first, rest) = word.split_at(1);
                if *capital { first.to_uppercase() + rest } else { word.to_owned() }
            }
            Self::Number { form, .. } => form.format_value(value),
        }
    }
}

fn parse_number(text: &str, kind: FileKind) -> Option<Literal> {
    let (sign, rest) = match text.strip_prefix(['-', '+']) {
        Some(rest) => (text.get(..1)?, rest),
        None => ("", text),
    };
    let digits_end = rest.find(|c: char| !is_digit(c) && c != '.').unwrap_or(rest.len());
    let digits_end = rest.get(..digits_end)?.trim_end_matches('_').len();
    let (mantissa, after) = rest.split_at(digits_end);
    let (exponent, suffix) = parse_exponent(after)?;
    if !is_number_suffix(suffix, kind) {
        return None;
    }
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    if !is_whole_part(whole, fraction) || fraction.is_some_and(|text| text.contains(['.', '_'])) {
        return None;
    }
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let significant = digits.trim_start_matches('0').trim_end_matches('0').len();
    if digits.is_empty() || digits.len() > MAX_SIGNIFICANT_DIGITS {
        return None;
    }
    let power = exponent.map_or("", |(text, _)| text);
    let plain = format!("{sign}{}{power}", mantissa.replace('_', ""));
    let value: f64 = plain.parse().ok().filter(|value: &f64| value.is_finite())?;
    let has_point = fraction.is_some() || exponent.is_some();
    let form = NumberForm {
        kind: match suffix.trim_start_matches('_').starts_with(['f', 'F']) {
            _ if has_point => NumberKind::Fraction,
            true => NumberKind::WithoutPoint,
            false => NumberKind::Whole,
        },
        plus: sign == "+",
        bare: whole.is_empty(),
        grouped: whole.contains('_'),
        decimals: fraction.map_or(0, min_decimals),
        significant,
        exponent: exponent.map(|(_, form)| form),
        suffix: suffix.to_owned(),
    };
    Some(Literal::Number { value: value + 0.0, form })
}

/// Returns the minimum decimals of a new value: trailing zeros are a habit, other digits are not.
fn min_decimals(fraction: &str) -> usize {
    if fraction.ends_with('0') { fraction.len() } else { fraction.len().min(1) }
}

fn is_digit(c: char) -> bool {
    c.is_ascii_digit() || c == '_'
}

/// Checks the digits before a point: no leading zero, which means another base in some languages,
/// and groups of three or none.
fn is_whole_part(whole: &str, fraction: Option<&str>) -> bool {
    if whole.is_empty() {
        return fraction.is_some_and(|digits| !digits.is_empty());
    }
    let groups: Vec<&str> = whole.split('_').collect();
    let even = groups.iter().skip(1).all(|group| group.len() == 3);
    let first = groups.first().map_or(0, |group| group.len());
    let in_groups = groups.len() == 1 || (even && (1..=3).contains(&first));
    in_groups && (whole == "0" || !whole.starts_with('0'))
}

/// Parses the exponent, as text and as form, and returns the rest too.
fn parse_exponent(text: &str) -> Option<(Option<(&str, ExponentForm)>, &str)> {
    let Some(rest) = text.strip_prefix(['e', 'E']) else { return Some((None, text)) };
    let digits = rest.strip_prefix(['-', '+']).unwrap_or(rest);
    let width = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let end = text.len() - digits.len() + width;
    let form = ExponentForm {
        letter: if text.starts_with('e') { 'e' } else { 'E' },
        plus: rest.starts_with('+'),
        width,
    };
    (width > 0).then_some(())?;
    Some((Some((text.get(..end)?, form)), text.get(end..)?))
}

fn is_number_suffix(suffix: &str, kind: FileKind) -> bool {
    const RUST_SUFFIXES: [&str; 14] = [
        "f32", "f64", "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64",
        "i128", "isize",
    ];
    match kind {
        _ if suffix.is_empty() => true,
        FileKind::Rust => RUST_SUFFIXES.contains(&suffix.trim_start_matches('_')),
        FileKind::CLike => suffix.len() <= 3 && suffix.chars().all(|c| "fFlLuU".contains(c)),
        FileKind::Python | FileKind::Toml | FileKind::Json | FileKind::Yaml => false,
    }
}

impl NumberForm {
    fn format_value(&self, value: f64) -> String {
        let digits = self.significant.clamp(MIN_SIGNIFICANT_DIGITS, MAX_SIGNIFICANT_DIGITS);
        let value = if self.kind == NumberKind::Whole { value.round() } else { value };
        let rounded = format!("{value:.*e}", digits - 1);
        let (mantissa, power) = rounded.split_once('e').unwrap_or((&rounded, "0"));
        let exponent = self.exponent.map(|form| form.format_power(power)).unwrap_or_default();
        let number = if exponent.is_empty() { &rounded } else { mantissa };
        let number: f64 = number.parse().unwrap_or(value);
        let size = self.format_plain(number.abs());
        let sign = match (number < 0.0, self.plus) {
            (true, _) => "-",
            (false, true) => "+",
            (false, false) => "",
        };
        format!("{sign}{size}{exponent}{}", self.suffix)
    }

    /// Formats a positive number without an exponent.
    fn format_plain(&self, size: f64) -> String {
        let shortest = size.to_string();
        let (whole, fraction) = shortest.split_once('.').unwrap_or((&shortest, ""));
        let whole = if self.grouped { group_with_underscores(whole) } else { whole.to_owned() };
        let whole = if self.bare && whole == "0" && !fraction.is_empty() { "" } else { &whole };
        let needs_point = self.kind == NumberKind::Fraction && self.exponent.is_none();
        if self.decimals == 0 && fraction.is_empty() {
            return if needs_point { format!("{whole}.") } else { whole.to_owned() };
        }
        format!("{whole}.{fraction:0<width$}", width = self.decimals)
    }
}

impl ExponentForm {
    fn format_power(self, power: &str) -> String {
        let (sign, digits) = match power.strip_prefix('-') {
            Some(digits) => ("-", digits),
            None => (if self.plus { "+" } else { "" }, power),
        };
        format!("{}{sign}{digits:0>width$}", self.letter, width = self.width)
    }
}

/// Groups digits by three.
fn group_with_underscores(digits: &str) -> String {
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push('_');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::FileKind::{CLike, Json, Python, Rust, Toml};
    use super::*;

    #[test]
    fn another_value_has_the_same_form() {
        let check = |kind, text: &str, factor: f64, expected: &str| {
            let literal = Literal::parse(text, kind).expect(text);
            let written = literal.format_value(literal.value() * factor);
            assert_eq!(written, expected, "{text} × {factor}");
            assert!(Literal::parse(&written, kind).is_some(), "{written} reads back");
        };
        check(Python, "0.1", 2.0, "0.2");
        check(Python, "0.1", 2.0 / 3.0, "0.0667");
        check(Python, "1.0", 2.0, "2.0");
        check(Python, "1.00", 1.5, "1.50");
        check(Python, "5.", 2.0, "10.");
        check(Python, ".5", 1.5, ".75");
        check(Python, ".5", 3.0, "1.5");
        check(Python, "-3", 2.0, "-6");
        check(Python, "+3", 1.5, "+5");
        check(Python, "3", 1.5, "5");
        check(Python, "1e-3", 1.5, "1.5e-3");
        check(Python, "1.0e-03", 2.0, "2.0e-03");
        check(Python, "2E+05", 10.0, "2E+06");
        check(Python, "1_000", 1.5, "1_500");
        check(Toml, "100_000", 20.0, "2_000_000");
        check(Toml, "12345", 2.0, "24690");
        check(Json, "1000", 1.0 / 3.0, "333");
        check(Rust, "0.5f32", 1.5, "0.75f32");
        check(Rust, "1_f64", 1.5, "1.5_f64");
        check(Rust, "7usize", 2.0, "14usize");
        check(CLike, "0.25f", 2.0, "0.5f");
        check(CLike, "10UL", 2.0, "20UL");
        check(Python, "True", 0.0, "False");
        check(Rust, "false", 1.0, "false");
        assert_eq!(
            Literal::parse("false", Rust).map(|flag| flag.format_value(1.0)),
            Some("true".into())
        );
        assert_eq!(
            Literal::parse("0.0", Python).map(|zero| zero.format_value(-0.1)),
            Some("-0.1".into())
        );
    }

    #[test]
    fn what_is_no_literal() {
        for text in [
            "",
            "-",
            ".",
            "e5",
            "1e",
            "0x1f",
            "007",
            "1.2.3",
            "1__0",
            "10_00",
            "_1",
            "1_",
            "1j",
            "0.5f32",
            "1-2",
            "1e5.0",
            "nan",
            "inf",
            "1e999",
            "1234567890123456",
            "1 2",
            "0b1",
        ] {
            assert_eq!(Literal::parse(text, FileKind::Python), None, "{text}");
        }
        assert_eq!(Literal::parse("true", FileKind::Python), None);
        assert_eq!(Literal::parse("1979-05-27", FileKind::Toml), None);
        assert_eq!(Literal::parse("3px", FileKind::CLike), None);
    }
}
