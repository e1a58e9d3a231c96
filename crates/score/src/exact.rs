//! Exact sums: independent of the order of addition, with a mean that is rounded once, at the end.
//! No columns, files or other statistics.

use std::num::NonZeroU128;

/// Number of 64-bit limbs for any sum of 2⁶⁴ numbers: 2098 bits of range, 64 of count, the sign.
const LIMB_COUNT: usize = 34;

/// Number of chunks that hold any such sum: each has 32 bits of its own and room for carries, the
/// top one has the sign.
const CHUNK_COUNT: usize = 2 * (LIMB_COUNT - 1) + 1;

/// Number of additions between carries. Each adds less than 2⁵² to a chunk, so that none overflows.
const CARRY_INTERVAL: u64 = 1_024;

/// Bits of an `f64`'s significand, including the one that is not stored.
const SIGNIFICAND_BITS: u32 = f64::MANTISSA_DIGITS;

/// Exact sum of the numbers added to it: chunk `i` counts in units of 2⁻¹⁰⁷⁴⁺³²ⁱ.
#[derive(Clone, Debug)]
pub struct ExactSum {
    added: u64,
    chunks: [i64; CHUNK_COUNT],
}

impl Default for ExactSum {
    fn default() -> Self {
        Self { added: 0, chunks: [0; CHUNK_COUNT] }
    }
}

impl FromIterator<f64> for ExactSum {
    fn from_iter<I: IntoIterator<Item = f64>>(numbers: I) -> Self {
        let mut sum = Self::default();
        for number in numbers {
            sum.add(number);
        }
        sum
    }
}

impl ExactSum {
    /// Adds a number; NaN and infinite ones are ignored.
    #[inline]
    pub fn add(&mut self, number: f64) {
        let bits = number.to_bits();
        let exponent = (bits >> (SIGNIFICAND_BITS - 1)) & 0x7ff;
        if exponent == 0x7ff {
            return;
        }
        let normal = u64::from(exponent != 0);
        let significand =
            (bits & ((1 << (SIGNIFICAND_BITS - 1)) - 1)) | (normal << (SIGNIFICAND_BITS - 1));
        let shift = exponent - normal;
        let (chunk, within) = (shift / 32, shift % 32);
        let sign = bits.cast_signed() >> 63;
        let low = ((significand << within) & 0xffff_ffff).cast_signed();
        let high = (significand >> (32 - within)).cast_signed();
        #[expect(clippy::cast_possible_truncation, reason = "at most 63")]
        let pair = self.chunks.get_mut(chunk as usize..chunk as usize + 2);
        let Some([first, second]) = pair else { return };
        *first += (low ^ sign) - sign;
        *second += (high ^ sign) - sign;
        self.added += 1;
        if self.added.is_multiple_of(CARRY_INTERVAL) {
            self.carry_chunks();
        }
    }

    /// Moves the bits of each chunk beyond its 32 into the next one.
    fn carry_chunks(&mut self) {
        let mut carry = 0;
        let [chunks @ .., top] = &mut self.chunks;
        for chunk in chunks {
            let whole = *chunk + carry;
            carry = whole >> 32;
            *chunk = whole & 0xffff_ffff;
        }
        *top += carry;
    }

    /// Returns the count of added numbers.
    #[must_use]
    pub fn number_count(&self) -> u32 {
        u32::try_from(self.added).unwrap_or(u32::MAX)
    }

    /// Returns the mean, rounded once to the nearest `f64`, ties to even; `None` without numbers.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        let (negative, magnitude) = self.sign_and_magnitude();
        let number = divide_limbs(&magnitude, self.added)?.round_to_f64()?;
        Some(if negative && number != 0.0 { -number } else { number })
    }

    /// Returns sign and magnitude, in units of 2⁻¹⁰⁷⁴.
    fn sign_and_magnitude(&self) -> (bool, [u64; LIMB_COUNT]) {
        let mut carried = self.clone();
        carried.carry_chunks();
        let mut limbs = [0; LIMB_COUNT];
        for (limb, chunks) in limbs.iter_mut().zip(carried.chunks.chunks(2)) {
            *limb = match *chunks {
                [low, high] => (low | (high << 32)).cast_unsigned(),
                [top] => top.cast_unsigned(),
                _ => 0,
            };
        }
        let negative = limbs.last().is_some_and(|top| top >> 63 == 1);
        if negative {
            let mut carry = true;
            for limb in &mut limbs {
                (*limb, carry) = (!*limb).overflowing_add(u64::from(carry));
            }
        }
        (negative, limbs)
    }
}

/// Leading bits of a quotient, and how the rest compares with half of their last one.
struct ExactQuotient {
    /// Leading bits: at least 65, or all there are.
    window: u128,
    /// Number of bits of the window's last bit above the unit.
    height: u32,
    /// Twice the remainder below the window.
    twice_rest: u128,
    /// Divisor of the quotient.
    divisor: u128,
    /// True if any further bit below is set.
    more: bool,
}

/// Divides by long division, only as far as the result needs it.
fn divide_limbs(limbs: &[u64; LIMB_COUNT], count: u64) -> Option<ExactQuotient> {
    let divisor = NonZeroU128::new(count.into())?;
    let (mut window, mut rest, mut height) = (0_u128, 0_u128, 0_u32);
    let used = limbs.iter().rposition(|limb| *limb != 0).map_or(0, |at| at + 1);
    let mut below = limbs.get(..used)?;
    while let [lower @ .., limb] = below {
        let part = (rest << 64) | u128::from(*limb);
        window = (window << 64) | (part / divisor);
        rest = part % divisor;
        below = lower;
        if window >> 64 != 0 {
            height = u32::try_from(lower.len() * 64).ok()?;
            break;
        }
    }
    let more = below.iter().any(|limb| *limb != 0);
    Some(ExactQuotient { window, height, twice_rest: rest << 1, divisor: divisor.get(), more })
}

impl ExactQuotient {
    /// Rounds to the nearest `f64`, ties to even.
    fn round_to_f64(&self) -> Option<f64> {
        let bits = u128::BITS - self.window.leading_zeros();
        let dropped = bits.saturating_sub(SIGNIFICAND_BITS);
        let kept = u64::try_from(self.window >> dropped).ok()?;
        let up = if dropped == 0 {
            // Numbers this small are spaced by the unit: only the remainder decides.
            self.twice_rest > self.divisor || (self.twice_rest == self.divisor && kept & 1 == 1)
        } else {
            let below = self.window & ((1 << dropped) - 1);
            let half = 1 << (dropped - 1);
            let sticky = self.twice_rest != 0 || self.more;
            below > half || (below == half && (sticky || kept & 1 == 1))
        };
        // The significand's top bit is itself the exponent 1, so that adding carries as it should.
        let exponent = u64::from(dropped + self.height);
        let encoded = kept + u64::from(up) + (exponent << (SIGNIFICAND_BITS - 1));
        (exponent < 0x7ff).then(|| f64::from_bits(encoded)).filter(|number| number.is_finite())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mean(numbers: &[f64]) -> Option<f64> {
        numbers.iter().copied().collect::<ExactSum>().mean()
    }

    #[track_caller]
    fn check(numbers: &[f64], expect: f64) {
        assert_eq!(mean(numbers).map(f64::to_bits), Some(expect.to_bits()), "{numbers:?}");
    }

    #[test]
    fn means_that_a_rounding_sum_gets_wrong() {
        let tiny = f64::from_bits(1);
        check(&[1e16, 1.0, -1e16], 1.0 / 3.0);
        check(&[1e308, 1e308], 1e308);
        check(&[f64::MAX, f64::MAX, f64::MAX], f64::MAX);
        check(&[-f64::MAX, f64::MAX], 0.0);
        check(&[f64::MAX, tiny, -f64::MAX], 0.0);
        check(&[0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1], 0.1);
        check(&[-0.0], 0.0);
        check(&[-0.0, -0.0], 0.0);
        check(&[tiny], tiny);
        check(&[tiny, 0.0], 0.0);
        check(&[-tiny, 0.0], 0.0);
        check(&[tiny, tiny, 0.0], tiny);
        check(&[f64::from_bits(3), 0.0], f64::from_bits(2));
        check(&[f64::from_bits(5), 0.0], f64::from_bits(2));
        check(&[f64::MIN_POSITIVE, f64::MIN_POSITIVE, 0.0, 0.0], f64::MIN_POSITIVE / 2.0);
        check(&[f64::MIN_POSITIVE, -tiny], f64::from_bits(1 << 51));
        check(&[1.0, f64::EPSILON], f64::midpoint(1.0, f64::EPSILON));
    }

    #[test]
    fn nothing_and_what_is_no_number() {
        assert_eq!(ExactSum::default().mean(), None);
        assert_eq!(mean(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 2.5]), Some(2.5));
    }

    #[test]
    fn carries_are_not_lost_however_many_numbers_there_are() {
        // An odd significand in the highest place of its chunk makes both parts as large as can be.
        for exponent in [0.0_f64, 31.0, -1000.0, 900.0] {
            let number = (2.0 - f64::EPSILON) * exponent.exp2();
            for sign in [1.0, -1.0] {
                check(&vec![sign * number; 100_000], sign * number);
            }
        }
    }

    /// Exact mean computed independently: `total / (count · 2^scale)`, rounded by comparing
    /// neighbours in integers.
    fn nearest(total: i128, count: u64, scale: u32) -> f64 {
        let divisor = i128::from(count) << scale;
        #[expect(clippy::cast_precision_loss, reason = "a first guess, corrected below")]
        let guess = total as f64 / divisor as f64;
        let off = |number: f64| {
            let scaled = number * 2_f64.powi(60);
            #[expect(
                clippy::cast_possible_truncation,
                reason = "exact: the test's numbers are coarse"
            )]
            let integer = scaled as i128;
            (integer * divisor - (total << 60)).unsigned_abs()
        };
        [guess.next_down(), guess, guess.next_up()]
            .into_iter()
            .min_by_key(|number| (off(*number), number.to_bits() & 1))
            .unwrap_or(guess)
    }

    proptest! {
        #[test]
        fn agrees_with_integers(parts in prop::collection::vec(-(1_i64 << 20)..(1 << 20), 1..40)) {
            // Integers over 2⁸: means from 2⁻¹⁴ to 2¹² have no bit below 2⁻⁶⁰ that a neighbour
            // could hide.
            let numbers: Vec<f64> = parts.iter().map(|part| f64::from(i32::try_from(*part).unwrap()) / 256.0).collect();
            let total: i128 = parts.iter().map(|part| i128::from(*part)).sum();
            prop_assume!(total.unsigned_abs() > 1 << 10);
            prop_assert_eq!(mean(&numbers), Some(nearest(total, parts.len() as u64, 8)));
        }

        #[test]
        fn one_number_many_times_is_itself(bits in any::<u64>(), times in 1_usize..300) {
            let number = f64::from_bits(bits);
            prop_assume!(number.is_finite() && number != 0.0);
            prop_assert_eq!(mean(&vec![number; times]), Some(number));
        }

        #[test]
        fn two_numbers_are_halved_like_their_rounded_sum(a in any::<f64>(), b in any::<f64>()) {
            if (a + b).is_finite() && (a + b).abs() > 1e-290 {
                prop_assert_eq!(mean(&[a, b]), Some((a + b) * 0.5));
            }
        }

        #[test]
        fn order_changes_nothing(
            numbers in prop::collection::vec(any::<f64>().prop_filter("finite", |n| n.is_finite()), 1..50),
        ) {
            let mut reversed = numbers.clone();
            reversed.reverse();
            prop_assert_eq!(mean(&numbers), mean(&reversed));
        }

        #[test]
        fn what_is_taken_away_again_leaves_nothing(numbers in prop::collection::vec(any::<f64>(), 0..50)) {
            let sum: ExactSum = numbers.iter().flat_map(|number| [*number, -number]).collect();
            prop_assert_eq!(sum.mean().unwrap_or_default().to_bits(), 0);
        }
    }
}
