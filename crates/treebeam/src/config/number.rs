//! Numbers with bounds, refused where they are read: the reader then knows their line. And column names, which have one
//! bound: there must be something in them.

use serde::Deserialize;
use treebeam_core::num::Finite;

/// What counts as a slip of the finger.
const MOST: f64 = 1e6;

/// Any finite number.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "f64")]
pub(crate) struct Number(pub(crate) Finite);

/// A part of something: 0 or more.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "f64")]
pub(crate) struct Fraction(pub(crate) Finite);

/// A part of a whole: from 0 to 1.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "f64")]
pub(crate) struct Rate(pub(crate) Finite);

/// A size: more than 0 and at most [`MOST`].
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "f64")]
pub(crate) struct Size(pub(crate) Finite);

/// How many.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "i64")]
pub(crate) struct Count(pub(crate) u32);

/// A column's name.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct ColumnName(pub(crate) String);

fn within(number: f64, bounds: &str, holds: impl Fn(f64) -> bool) -> Result<Finite, String> {
    let good = Finite::new(number).filter(|number| holds(number.get()));
    good.ok_or_else(|| format!("it must be {bounds}, not {number}"))
}

impl TryFrom<f64> for Number {
    type Error = String;
    fn try_from(number: f64) -> Result<Self, String> {
        within(number, "a finite number", |_| true).map(Self)
    }
}

impl TryFrom<f64> for Fraction {
    type Error = String;
    fn try_from(number: f64) -> Result<Self, String> {
        within(number, "0 or more", |number| number >= 0.0).map(Self)
    }
}

impl TryFrom<f64> for Rate {
    type Error = String;
    fn try_from(number: f64) -> Result<Self, String> {
        within(number, "from 0 to 1", |number| (0.0..=1.0).contains(&number)).map(Self)
    }
}

impl TryFrom<f64> for Size {
    type Error = String;
    fn try_from(number: f64) -> Result<Self, String> {
        let bounds = format!("more than 0 and at most {MOST}");
        within(number, &bounds, |number| number > 0.0 && number <= MOST).map(Self)
    }
}

impl TryFrom<i64> for Count {
    type Error = String;
    fn try_from(number: i64) -> Result<Self, String> {
        let bounds = u32::MAX;
        u32::try_from(number)
            .map(Self)
            .map_err(|_| format!("it must be a whole number from 0 to {bounds}, not {number}"))
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
