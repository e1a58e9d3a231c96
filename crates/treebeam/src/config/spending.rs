//! What agents may cost and how fast they may be asked: the keys `max_cost_usd`, `max_tokens_total`, `llm_max_inflight`,
//! `llm_rate_limit` and `[prices]`. Flags and keys share the types.

use super::number::Fraction;
use super::table::Table;
use serde::de::{self, Deserializer, Unexpected, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use treebeam_core::num::Finite;
use treebeam_core::policy::RateLimit;
use treebeam_edge::agent::price::{Price, Prices};

const NONE: &str = "none";

/// The most dollars, or `none`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Dollars {
    None,
    At(f64),
}

impl Dollars {
    fn of(amount: f64) -> Result<Self, String> {
        // More than a million is a slip of the finger.
        if (0.0..=1e6).contains(&amount) {
            return Ok(Self::At(amount));
        }
        Err(format!("it must be from 0 to 1000000 dollars, not {amount}"))
    }
}

impl Dollars {
    /// As a number, if there is one.
    pub(crate) fn number(self) -> Option<Finite> {
        match self {
            Self::None => None,
            Self::At(amount) => Finite::new(amount),
        }
    }
}

impl FromStr for Dollars {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if text == NONE {
            return Ok(Self::None);
        }
        let number =
            text.parse().map_err(|_| format!("it must be a number of dollars, or `{NONE}`"));
        Self::of(number?)
    }
}

impl Serialize for Dollars {
    fn serialize<S: Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::None => writer.serialize_str(NONE),
            Self::At(amount) => writer.serialize_f64(*amount),
        }
    }
}

impl<'de> Deserialize<'de> for Dollars {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        struct Reader;
        impl Visitor<'_> for Reader {
            type Value = Dollars;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a number or `\"{NONE}\"`")
            }
            fn visit_f64<E: de::Error>(self, amount: f64) -> Result<Dollars, E> {
                Dollars::of(amount).map_err(E::custom)
            }
            fn visit_i64<E: de::Error>(self, amount: i64) -> Result<Dollars, E> {
                self.visit_f64(i32::try_from(amount).map_or(f64::INFINITY, f64::from))
            }
            fn visit_u64<E: de::Error>(self, amount: u64) -> Result<Dollars, E> {
                self.visit_i64(i64::try_from(amount).unwrap_or(i64::MAX))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Dollars, E> {
                if text == NONE {
                    Ok(Dollars::None)
                } else {
                    Err(E::invalid_value(Unexpected::Str(text), &self))
                }
            }
        }
        reader.deserialize_any(Reader)
    }
}

/// How many tokens.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(try_from = "i64")]
pub(crate) struct Tokens(pub(crate) u64);

const MOST_TOKENS: &str = "it must be a whole number of tokens, 0 or more";

impl TryFrom<i64> for Tokens {
    type Error = String;
    fn try_from(number: i64) -> Result<Self, String> {
        u64::try_from(number).map(Self).map_err(|_| format!("{MOST_TOKENS}, not {number}"))
    }
}

impl FromStr for Tokens {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        text.parse::<i64>().map_err(|_| MOST_TOKENS.to_owned())?.try_into()
    }
}

/// How many requests and tokens in a minute, as a file may say it: a bare number too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(crate) struct Rate(pub(crate) RateLimit);

impl FromStr for Rate {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().map(Self)
    }
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        struct Reader;
        impl Visitor<'_> for Reader {
            type Value = Rate;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of requests per minute or a text like `\"60rpm,100000tpm\"`")
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Rate, E> {
                number.to_string().parse().map_err(E::custom)
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Rate, E> {
                number.to_string().parse().map_err(E::custom)
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Rate, E> {
                text.parse().map_err(E::custom)
            }
        }
        reader.deserialize_any(Reader)
    }
}

/// `[prices."model"]`: dollars per million tokens.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub(crate) struct PricesTable(BTreeMap<String, Table<PriceTable>>);

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceTable {
    input: Fraction,
    output: Fraction,
    cached: Option<Fraction>,
}

impl PricesTable {
    /// These before the built-in ones. What is in a cache costs as much as what is not, unless somebody says so.
    pub(crate) fn prices(&self) -> Prices {
        let price = |Table(table): &Table<PriceTable>| Price {
            input: table.input.0.get(),
            output: table.output.0.get(),
            cached: table.cached.unwrap_or(table.input).0.get(),
        };
        Prices::new(self.0.iter().map(|(name, table)| (name.clone(), price(table))).collect())
    }
}
