//! Defines the keys for agents' cost and rate: budgets, rate limits and `[prices]`.
//!
//! The keys are `max_cost_usd`, `max_tokens_total`, `llm_max_inflight`, `llm_rate_limit` and
//! `[prices]`. Flags and keys share the types.

use super::bounded_values::NonNegativeNumber;
use super::table::TableValue;
use serde::de::{self, Deserializer, Unexpected, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use treebeam_agent::price::{ModelPrice, ModelPrices};
use treebeam_core::num::Finite;
use treebeam_core::policy::RateLimit;

const NO_LIMIT: &str = "none";

/// A maximum in dollars, or `none`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum DollarLimit {
    None,
    At(f64),
}

impl DollarLimit {
    fn new(amount: f64) -> Result<Self, String> {
        // More than a million is a typing error.
        if (0.0..=1e6).contains(&amount) {
            return Ok(Self::At(amount));
        }
        Err(format!("it must be from 0 to 1000000 dollars, not {amount}"))
    }
}

impl DollarLimit {
    /// Returns the maximum as a number, if there is one.
    pub(crate) fn amount(self) -> Option<Finite> {
        match self {
            Self::None => None,
            Self::At(amount) => Finite::new(amount),
        }
    }
}

impl FromStr for DollarLimit {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if text == NO_LIMIT {
            return Ok(Self::None);
        }
        let number =
            text.parse().map_err(|_| format!("it must be a number of dollars, or `{NO_LIMIT}`"));
        Self::new(number?)
    }
}

impl Serialize for DollarLimit {
    fn serialize<S: Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::None => writer.serialize_str(NO_LIMIT),
            Self::At(amount) => writer.serialize_f64(*amount),
        }
    }
}

impl<'de> Deserialize<'de> for DollarLimit {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        struct DollarLimitVisitor;
        impl Visitor<'_> for DollarLimitVisitor {
            type Value = DollarLimit;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a number or `\"{NO_LIMIT}\"`")
            }
            fn visit_f64<E: de::Error>(self, amount: f64) -> Result<DollarLimit, E> {
                DollarLimit::new(amount).map_err(E::custom)
            }
            fn visit_i64<E: de::Error>(self, amount: i64) -> Result<DollarLimit, E> {
                self.visit_f64(i32::try_from(amount).map_or(f64::INFINITY, f64::from))
            }
            fn visit_u64<E: de::Error>(self, amount: u64) -> Result<DollarLimit, E> {
                self.visit_i64(i64::try_from(amount).unwrap_or(i64::MAX))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<DollarLimit, E> {
                if text == NO_LIMIT {
                    Ok(DollarLimit::None)
                } else {
                    Err(E::invalid_value(Unexpected::Str(text), &self))
                }
            }
        }
        reader.deserialize_any(DollarLimitVisitor)
    }
}

/// A number of tokens.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(try_from = "i64")]
pub(crate) struct TokenCount(pub(crate) u64);

const TOKEN_COUNT_MESSAGE: &str = "it must be a whole number of tokens, 0 or more";

impl TryFrom<i64> for TokenCount {
    type Error = String;
    fn try_from(number: i64) -> Result<Self, String> {
        u64::try_from(number).map(Self).map_err(|_| format!("{TOKEN_COUNT_MESSAGE}, not {number}"))
    }
}

impl FromStr for TokenCount {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        text.parse::<i64>().map_err(|_| TOKEN_COUNT_MESSAGE.to_owned())?.try_into()
    }
}

/// Maximum requests and tokens per minute; in a file also as a bare number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(crate) struct RateLimitSetting(pub(crate) RateLimit);

impl FromStr for RateLimitSetting {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().map(Self)
    }
}

impl<'de> Deserialize<'de> for RateLimitSetting {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        struct RateLimitVisitor;
        impl Visitor<'_> for RateLimitVisitor {
            type Value = RateLimitSetting;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of requests per minute or a text like `\"60rpm,100000tpm\"`")
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<RateLimitSetting, E> {
                number.to_string().parse().map_err(E::custom)
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<RateLimitSetting, E> {
                number.to_string().parse().map_err(E::custom)
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<RateLimitSetting, E> {
                text.parse().map_err(E::custom)
            }
        }
        reader.deserialize_any(RateLimitVisitor)
    }
}

/// Table `[prices."model"]`, in dollars per million tokens.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub(crate) struct PricesTable(BTreeMap<String, TableValue<PriceTable>>);

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceTable {
    input: NonNegativeNumber,
    output: NonNegativeNumber,
    cached: Option<NonNegativeNumber>,
}

impl PricesTable {
    /// Returns the configured prices, which precede the built-in ones. Cached input costs as much
    /// as other input unless configured.
    pub(crate) fn model_prices(&self) -> ModelPrices {
        let price = |TableValue(table): &TableValue<PriceTable>| ModelPrice {
            input: table.input.0.get(),
            output: table.output.0.get(),
            cached: table.cached.unwrap_or(table.input).0.get(),
        };
        ModelPrices::new(self.0.iter().map(|(name, table)| (name.clone(), price(table))).collect())
    }
}
