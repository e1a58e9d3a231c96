//! Prices per million tokens, the user's before the built-in ones. Unknown models have no price.

use std::collections::BTreeMap;
use treebeam_run::port::{Cost, TokenUsage};

/// Date of the built-in prices. They change: a table in the configuration overrides them.
pub const PRICES_DATE: &str = "2026-11";

/// Price of a model in dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModelPrice {
    /// Price of input tokens.
    pub input: f64,
    /// Price of output tokens.
    pub output: f64,
    /// Price of input tokens from a cache.
    pub cached: f64,
}

/// Built-in prices by the longest prefix of the model's name: input, output, cached. If a price
/// rises with the prompt's length, the highest counts; without a cached price, that of the input.
const BUILT_IN_PRICES: [(&str, [f64; 3]); 48] = [
    ("claude-fable-5", [10.0, 50.0, 1.0]),
    ("claude-fable-5-1", [10.0, 50.0, 0.25]),
    ("claude-haiku-4-5", [1.0, 5.0, 0.1]),
    ("claude-haiku-5-5", [0.5, 2.5, 0.05]),
    ("claude-opus-4", [15.0, 75.0, 1.5]),
    ("claude-opus-4-5", [5.0, 25.0, 0.5]),
    ("claude-opus-4-6", [5.0, 25.0, 0.5]),
    ("claude-opus-4-7", [5.0, 25.0, 0.5]),
    ("claude-opus-4-8", [5.0, 25.0, 0.5]),
    ("claude-opus-5", [5.0, 25.0, 0.5]),
    ("claude-opus-5-5", [4.0, 20.0, 0.2]),
    ("claude-sonnet-4", [3.0, 15.0, 0.3]),
    ("claude-sonnet-5", [2.0, 10.0, 0.2]),
    ("claude-sonnet-5-5", [2.0, 10.0, 0.2]),
    ("gemini-2.5-flash", [0.3, 2.5, 0.03]),
    ("gemini-2.5-flash-lite", [0.1, 0.4, 0.01]),
    ("gemini-2.5-pro", [2.5, 15.0, 0.25]),
    ("gemini-3-flash", [0.5, 3.0, 0.05]),
    ("gemini-3.1-flash-lite", [0.25, 1.5, 0.025]),
    ("gemini-3.1-pro", [4.0, 18.0, 0.4]),
    ("gemini-3.5-flash", [1.5, 9.0, 0.15]),
    ("gpt-4.1", [2.0, 8.0, 0.5]),
    ("gpt-4.1-mini", [0.4, 1.6, 0.1]),
    ("gpt-4.1-nano", [0.1, 0.4, 0.025]),
    ("gpt-4o", [2.5, 10.0, 1.25]),
    ("gpt-4o-mini", [0.15, 0.6, 0.075]),
    ("gpt-5", [1.25, 10.0, 0.125]),
    ("gpt-5-mini", [0.25, 2.0, 0.025]),
    ("gpt-5-nano", [0.05, 0.4, 0.005]),
    ("gpt-5-pro", [15.0, 120.0, 15.0]),
    ("gpt-5.1", [1.25, 10.0, 0.125]),
    ("gpt-5.2", [1.75, 14.0, 0.175]),
    ("gpt-5.4", [5.0, 22.5, 0.5]),
    ("gpt-5.4-mini", [0.75, 4.5, 0.075]),
    ("gpt-5.4-nano", [0.2, 1.25, 0.02]),
    ("gpt-5.4-pro", [60.0, 270.0, 60.0]),
    ("gpt-5.5", [10.0, 45.0, 1.0]),
    ("gpt-5.5-pro", [60.0, 270.0, 60.0]),
    ("gpt-5.6", [8.0, 30.0, 0.8]),
    ("gpt-5.6-luna", [0.4, 1.8, 0.04]),
    ("gpt-5.6-sol", [8.0, 30.0, 0.8]),
    ("gpt-5.6-terra", [4.0, 18.0, 0.4]),
    ("gpt-6-astra", [20.0, 75.0, 2.0]),
    ("gpt-6-luna", [0.2, 0.75, 0.02]),
    ("gpt-6-sol", [4.0, 15.0, 0.4]),
    ("o3", [2.0, 8.0, 0.5]),
    ("o3-pro", [20.0, 80.0, 20.0]),
    ("o4-mini", [1.1, 4.4, 0.275]),
];

/// The table that a price is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PriceOrigin {
    /// The user's own table.
    Configured,
    /// The built-in table.
    BuiltIn,
}

/// All prices.
#[derive(Clone, Debug, Default)]
pub struct ModelPrices(BTreeMap<String, ModelPrice>);

impl ModelPrices {
    /// Wraps the user's own prices, by the full name of the model; they override the built-in ones.
    #[must_use]
    pub const fn new(own: BTreeMap<String, ModelPrice>) -> Self {
        Self(own)
    }

    /// Returns the price of a model and the table that it is from.
    #[must_use]
    pub fn find_price(&self, model: &str) -> Option<(ModelPrice, PriceOrigin)> {
        if let Some(price) = self.0.get(model) {
            return Some((*price, PriceOrigin::Configured));
        }
        let fits = BUILT_IN_PRICES.iter().filter(|(name, _)| is_version_of(model, name));
        let (_, [input, output, cached]) = fits.max_by_key(|(name, _)| name.len())?;
        let price = ModelPrice { input: *input, output: *output, cached: *cached };
        Some((price, PriceOrigin::BuiltIn))
    }
}

/// Returns true if a name is this model with a date or version, as `gpt-4o-2024-08-06`; any other
/// suffix is another model, as `gpt-4o-audio`.
fn is_version_of(model: &str, name: &str) -> bool {
    let Some(rest) = model.strip_prefix(name) else { return false };
    let version = |part: &str| {
        part == "latest" || part == "preview" || part.bytes().all(|byte| byte.is_ascii_digit())
    };
    rest.is_empty() || rest.strip_prefix('-').is_some_and(|rest| rest.split('-').all(version))
}

impl ModelPrice {
    /// The price of a model that costs nothing.
    pub const ZERO: Self = Self { input: 0.0, output: 0.0, cached: 0.0 };

    /// Computes the cost of this usage.
    #[must_use]
    pub fn cost_of(&self, usage: &TokenUsage) -> Cost {
        let cached = usage.cached.min(usage.input);
        token_cost(self.input, usage.input - cached)
            + token_cost(self.cached, cached)
            + token_cost(self.output, usage.output)
    }
}

/// Computes the cost of tokens: a dollar per million tokens is a million pico-dollars per token.
fn token_cost(price: f64, tokens: u64) -> Cost {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
    let each = (price * 1e6).round() as u64;
    Cost::from_pico_dollars(each.saturating_mul(tokens))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_has_the_price_of_its_longest_name() {
        let check = |model: &str, expect: Option<f64>| {
            assert_eq!(
                ModelPrices::default().find_price(model).map(|(price, _)| price.input),
                expect,
                "{model}"
            );
        };
        check("gpt-4o", Some(2.5));
        check("gpt-4o-2024-08-06", Some(2.5));
        check("gpt-4o-mini", Some(0.15));
        check("gpt-4o-audio-preview", None);
        check("claude-opus-4-1-20250805", Some(15.0));
        check("claude-opus-4-5-20251101", Some(5.0));
        check("claude-sonnet-4-5", Some(3.0));
        check("claude-haiku-4-5-latest", Some(1.0));
        check("gemini-3.1-pro-preview", Some(4.0));
        check("gpt-50", None);
        check("my-own", None);
        let own = BTreeMap::from([(
            "gpt-4o".to_owned(),
            ModelPrice { input: 9.0, output: 1.0, cached: 1.0 },
        )]);
        let (price, origin) = ModelPrices::new(own).find_price("gpt-4o").expect("a price");
        assert_eq!((price.input, origin), (9.0, PriceOrigin::Configured));
    }

    #[test]
    fn cached_input_is_part_of_the_input() {
        let price = ModelPrice { input: 3.0, output: 15.0, cached: 0.3 };
        let usage = TokenUsage { input: 1_000_000, cached: 400_000, output: 100_000 };
        assert_eq!(price.cost_of(&usage), Cost::from_dollars(1.8 + 0.12 + 1.5));
        let odd = TokenUsage { input: 1, cached: 5, output: 0 };
        assert_eq!(price.cost_of(&odd), Cost::from_dollars(0.3e-6));
        assert_eq!(
            price.cost_of(&TokenUsage { input: u64::MAX, cached: 0, output: 9 }),
            Cost::from_pico_dollars(u64::MAX)
        );
    }
}
