//! Defines values with bounds: numbers, column names, globs and paths, shared by flags and keys.
//!
//! They are checked while parsing, so that errors have a file and a line.

use serde::de::{self, Deserializer, Unexpected, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;
use std::marker::PhantomData;
use std::num::NonZeroU32;
use std::str::FromStr;
use treebeam_core::num::Finite;
use treebeam_core::protect::ProtectedPaths;

/// Number of ideas for a node, or of candidates in a beam: more is a typing error.
pub(crate) type TreeWidth = OneTo<1000>;
/// Number of configurations of a sweep that count.
pub(crate) type ConfigurationCount = OneTo<1_000_000>;
/// Duration in seconds: at most thirty days.
pub(crate) type TimeoutSeconds = OneTo<2_592_000>;
/// Number of concurrent evals or calls.
pub(crate) type AtOnce = OneTo<256>;

/// File size in KiB: at most one GiB.
pub(crate) type FileKibibytes = OneTo<1_048_576>;
/// Time in seconds that a process may be silent.
pub(crate) type SilenceSeconds = OneTo<{ u32::MAX }>;

/// Number of turns of a conversation.
pub(crate) type TurnCount = OneTo<1000>;
/// Number of characters of earlier turns.
pub(crate) type MemoryChars = OneTo<2_000_000>;

/// Bound above which a number counts as a typing error.
const MAX_POSITIVE_NUMBER: f64 = 1e6;

/// Any finite number.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "f64")]
pub(crate) struct FiniteNumber(pub(crate) Finite);

/// A number of 0 or more.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "f64")]
pub(crate) struct NonNegativeNumber(pub(crate) Finite);

/// A number from 0 to 1.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "f64")]
pub(crate) struct UnitNumber(pub(crate) Finite);

/// Sampling temperature of a model, from 0 to 2.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "f64")]
pub(crate) struct ModelTemperature(pub(crate) Finite);

/// A number above 0 and at most [`MAX_POSITIVE_NUMBER`].
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "f64")]
pub(crate) struct PositiveNumber(pub(crate) Finite);

/// A whole number of 0 or more.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(try_from = "i64")]
pub(crate) struct WholeNumber(pub(crate) u32);

/// A whole number from 1 to `MOST`.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(try_from = "i64")]
pub(crate) struct OneTo<const MOST: u32>(pub(crate) NonZeroU32);

/// A maximum, or `none` for no limit.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LimitSetting<T> {
    None,
    At(T),
}

/// Name of a column.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct ColumnName(pub(crate) String);

/// List of path globs.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Vec<String>")]
pub(crate) struct PathGlobs(pub(crate) Vec<String>);

/// Path of a folder.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct FolderPath(pub(crate) String);

fn check_bounds(number: f64, bounds: &str, holds: impl Fn(f64) -> bool) -> Result<Finite, String> {
    let good = Finite::new(number).filter(|number| holds(number.get()));
    good.ok_or_else(|| format!("it must be {bounds}, not {number}"))
}

impl TryFrom<f64> for FiniteNumber {
    type Error = String;
    fn try_from(number: f64) -> Result<Self, String> {
        check_bounds(number, "a finite number", |_| true).map(Self)
    }
}

impl TryFrom<f64> for NonNegativeNumber {
    type Error = String;
    fn try_from(number: f64) -> Result<Self, String> {
        check_bounds(number, "0 or more", |number| number >= 0.0).map(Self)
    }
}

impl TryFrom<f64> for UnitNumber {
    type Error = String;
    fn try_from(number: f64) -> Result<Self, String> {
        check_bounds(number, "from 0 to 1", |number| (0.0..=1.0).contains(&number)).map(Self)
    }
}

impl TryFrom<f64> for ModelTemperature {
    type Error = String;
    fn try_from(number: f64) -> Result<Self, String> {
        check_bounds(number, "from 0 to 2", |number| (0.0..=2.0).contains(&number)).map(Self)
    }
}

impl TryFrom<f64> for PositiveNumber {
    type Error = String;
    fn try_from(number: f64) -> Result<Self, String> {
        let bounds = format!("more than 0 and at most {MAX_POSITIVE_NUMBER}");
        check_bounds(number, &bounds, |number| number > 0.0 && number <= MAX_POSITIVE_NUMBER)
            .map(Self)
    }
}

impl TryFrom<i64> for WholeNumber {
    type Error = String;
    fn try_from(number: i64) -> Result<Self, String> {
        let count = u32::try_from(number);
        count.map(Self).map_err(|_| format!("{}, not {number}", whole_number_range(0, u32::MAX)))
    }
}

impl<const MOST: u32> TryFrom<i64> for OneTo<MOST> {
    type Error = String;
    fn try_from(number: i64) -> Result<Self, String> {
        let count = u32::try_from(number).ok().filter(|number| *number <= MOST);
        let count = count.and_then(NonZeroU32::new).map(Self);
        count.ok_or_else(|| format!("{}, not {number}", whole_number_range(1, MOST)))
    }
}

fn whole_number_range(least: u32, most: u32) -> String {
    format!("it must be a whole number from {least} to {most}")
}

impl FromStr for WholeNumber {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().map(Self).map_err(|_| whole_number_range(0, u32::MAX))
    }
}

impl<const MOST: u32> FromStr for OneTo<MOST> {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.parse().ok().filter(|number: &NonZeroU32| number.get() <= MOST);
        number.map(Self).ok_or_else(|| whole_number_range(1, MOST))
    }
}

const NO_LIMIT: &str = "none";

impl<T> LimitSetting<T> {
    /// Returns the limit as a number, if there is one.
    pub(crate) fn map_limit<N>(self, number: impl FnOnce(T) -> N) -> Option<N> {
        match self {
            Self::None => None,
            Self::At(limit) => Some(number(limit)),
        }
    }
}

impl<T: FromStr<Err = String>> FromStr for LimitSetting<T> {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if text == NO_LIMIT {
            return Ok(Self::None);
        }
        text.parse().map(Self::At).map_err(|why| format!("{why}, or `{NO_LIMIT}`"))
    }
}

impl<T: Serialize> Serialize for LimitSetting<T> {
    fn serialize<S: Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::None => writer.serialize_str(NO_LIMIT),
            Self::At(limit) => limit.serialize(writer),
        }
    }
}

impl<'de, T: TryFrom<i64, Error = String>> Deserialize<'de> for LimitSetting<T> {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        reader.deserialize_any(LimitVisitor(PhantomData))
    }
}

struct LimitVisitor<T>(PhantomData<T>);

impl<T: TryFrom<i64, Error = String>> Visitor<'_> for LimitVisitor<T> {
    type Value = LimitSetting<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number or `\"{NO_LIMIT}\"`")
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<LimitSetting<T>, E> {
        T::try_from(number).map(LimitSetting::At).map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<LimitSetting<T>, E> {
        self.visit_i64(i64::try_from(number).unwrap_or(i64::MAX))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<LimitSetting<T>, E> {
        if text == NO_LIMIT {
            return Ok(LimitSetting::None);
        }
        Err(E::invalid_value(Unexpected::Str(text), &self))
    }
}

impl TryFrom<Vec<String>> for PathGlobs {
    type Error = String;
    fn try_from(globs: Vec<String>) -> Result<Self, String> {
        if globs.iter().any(|glob| glob.trim().is_empty()) {
            return Err("a glob cannot be empty".to_owned());
        }
        for glob in &globs {
            ProtectedPaths::new(std::slice::from_ref(glob)).map_err(|error| error.to_string())?;
        }
        Ok(Self(globs))
    }
}

impl TryFrom<String> for FolderPath {
    type Error = String;
    fn try_from(path: String) -> Result<Self, String> {
        if path.trim().is_empty() {
            return Err("the path of a folder cannot be empty".to_owned());
        }
        Ok(Self(path))
    }
}

impl TryFrom<String> for ColumnName {
    type Error = String;
    fn try_from(name: String) -> Result<Self, String> {
        if name.trim().is_empty() {
            return Err("a column's name cannot be empty".to_owned());
        }
        Ok(Self(name))
    }
}
