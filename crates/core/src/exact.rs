//! Sums without rounding: what is added comes out the same in any order, and a mean is rounded once, at the end.
//! Knows nothing of columns or files, and does no statistics beyond the mean.

use std::num::NonZeroU128;

/// How many 64-bit limbs hold any sum of 2⁶⁴ numbers: 2098 bits of `f64` range, 64 of count, the sign.
const LIMBS: usize = 34;

/// The bits of an `f64`'s significand, with the one that is not stored.
const SIGNIFICAND: u32 = f64::MANTISSA_DIGITS;

/// The exact sum of the numbers added to it, as a two's complement integer in units of 2⁻¹⁰⁷⁴.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExactSum {
    limbs: [u64; LIMBS],
}

impl Default for ExactSum {
    fn default() -> Self {
        Self { limbs: [0; LIMBS] }
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
    /// Adds a finite number; one that is not finite is left out.
    pub fn add(&mut self, number: f64) {
        let bits = number.to_bits();
        let fraction = bits & ((1 << (SIGNIFICAND - 1)) - 1);
        let (significand, shift) = match (bits >> (SIGNIFICAND - 1)) & 0x7ff {
            0x7ff => return,
            0 => (fraction, 0),
            exponent => (fraction | 1 << (SIGNIFICAND - 1), exponent - 1),
        };
        let wide = u128::from(significand) << (shift % 64);
        let Some(limbs) = usize::try_from(shift / 64).ok().and_then(|at| self.limbs.get_mut(at..))
        else {
            return;
        };
        if number.is_sign_negative() { subtract_at(limbs, wide) } else { add_at(limbs, wide) }
    }

    /// Adds everything that was added to the other.
    pub fn merge(&mut self, other: &Self) {
        let mut carry = false;
        for (limb, more) in self.limbs.iter_mut().zip(other.limbs) {
            (*limb, carry) = limb.carrying_add(more, carry);
        }
    }

    /// The sum divided by `count`, rounded once to the nearest `f64`, ties to even. None where `count` is 0 or the
    /// quotient is too large, which a mean never is.
    #[must_use]
    pub fn mean(&self, count: u64) -> Option<f64> {
        let (negative, magnitude) = self.split();
        let number = divide(&magnitude, count)?.round()?;
        Some(if negative && number != 0.0 { -number } else { number })
    }

    fn split(&self) -> (bool, [u64; LIMBS]) {
        let mut limbs = self.limbs;
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

#[expect(clippy::cast_possible_truncation, reason = "the halves of a number are taken apart")]
const fn halves(wide: u128) -> (u64, u64) {
    (wide as u64, (wide >> 64) as u64)
}

fn add_at(limbs: &mut [u64], wide: u128) {
    let [first, second, rest @ ..] = limbs else { return };
    let (low, high) = halves(wide);
    let mut carry;
    (*first, carry) = first.overflowing_add(low);
    (*second, carry) = second.carrying_add(high, carry);
    for limb in rest {
        if !carry {
            return;
        }
        (*limb, carry) = limb.overflowing_add(1);
    }
}

fn subtract_at(limbs: &mut [u64], wide: u128) {
    let [first, second, rest @ ..] = limbs else { return };
    let (low, high) = halves(wide);
    let mut borrow;
    (*first, borrow) = first.overflowing_sub(low);
    (*second, borrow) = second.borrowing_sub(high, borrow);
    for limb in rest {
        if !borrow {
            return;
        }
        (*limb, borrow) = limb.overflowing_sub(1);
    }
}

/// The leading bits of a quotient, and how what follows them compares with half of their last one.
struct Quotient {
    /// At least 65 bits, or all there are.
    window: u128,
    /// How many bits the window stands above the unit.
    height: u32,
    /// Twice what is left below the window.
    twice_rest: u128,
    /// What it was divided by.
    divisor: u128,
    /// Whether there is anything else below.
    more: bool,
}

/// Long division, only as far as the result needs it.
fn divide(limbs: &[u64; LIMBS], count: u64) -> Option<Quotient> {
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
    Some(Quotient { window, height, twice_rest: rest << 1, divisor: divisor.get(), more })
}

impl Quotient {
    /// The nearest `f64`, ties to even.
    fn round(&self) -> Option<f64> {
        let bits = u128::BITS - self.window.leading_zeros();
        let dropped = bits.saturating_sub(SIGNIFICAND);
        let kept = u64::try_from(self.window >> dropped).ok()?;
        let up = if dropped == 0 {
            // Numbers this small are spaced by the unit: nothing finer than the rest decides.
            self.twice_rest > self.divisor || (self.twice_rest == self.divisor && kept & 1 == 1)
        } else {
            let below = self.window & ((1 << dropped) - 1);
            let half = 1 << (dropped - 1);
            let sticky = self.twice_rest != 0 || self.more;
            below > half || (below == half && (sticky || kept & 1 == 1))
        };
        // The significand's top bit is itself the exponent 1, so that adding carries over as it should.
        let exponent = u64::from(dropped + self.height);
        let encoded = kept + u64::from(up) + (exponent << (SIGNIFICAND - 1));
        (exponent < 0x7ff).then(|| f64::from_bits(encoded)).filter(|number| number.is_finite())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mean(numbers: &[f64]) -> Option<f64> {
        let sum: ExactSum = numbers.iter().copied().collect();
        sum.mean(numbers.len() as u64)
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
        assert_eq!(ExactSum::default().mean(0), None);
        assert_eq!(ExactSum::default().mean(7), Some(0.0));
        let mut sum = ExactSum::default();
        for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 2.5] {
            sum.add(number);
        }
        assert_eq!(sum.mean(1), Some(2.5));
        sum.merge(&[f64::MAX; 5].into_iter().collect());
        assert_eq!(sum.mean(1), None, "not the mean of what was added");
    }

    /// An independent exact answer: `total / (count · 2^scale)`, rounded by comparing neighbours in integers.
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
            // Integers over 2⁸: means between 2⁻¹⁴ and 2¹² have no bit below 2⁻⁶⁰ that a neighbour could hide.
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
        fn order_and_grouping_change_nothing(
            numbers in prop::collection::vec(any::<f64>().prop_filter("finite", |n| n.is_finite()), 1..50),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut reversed = numbers.clone();
            reversed.reverse();
            prop_assert_eq!(mean(&numbers), mean(&reversed));
            let (left, right) = numbers.split_at(cut.index(numbers.len()));
            let [one, mut two] = [left, right].map(|part| part.iter().copied().collect::<ExactSum>());
            two.merge(&one);
            prop_assert_eq!(two.mean(numbers.len() as u64), mean(&numbers));
        }

        #[test]
        fn what_is_taken_away_again_leaves_nothing(numbers in prop::collection::vec(any::<f64>(), 0..50)) {
            let sum: ExactSum = numbers.iter().flat_map(|number| [*number, -number]).collect();
            prop_assert_eq!(sum, ExactSum::default());
        }
    }
}
