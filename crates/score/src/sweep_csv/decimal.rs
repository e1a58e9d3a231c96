//! Fast parser of plain decimal numbers, eight digits at a time and rounded once. Any other
//! notation, and numbers that need more than 64 bits to be rounded, are left to the general parser.

/// The number 1 in every byte of a word.
const BYTE_ONES: u64 = 0x0101_0101_0101_0101;

/// Parses the number from `start` to `end`: an optional sign, up to eight digits, then optionally a
/// point with up to 19 more, at most 64 bits together. `None` means that the general parser must
/// decide. Reads whole words, so that some text must follow.
#[inline]
pub(super) fn parse_decimal(text: &[u8], start: usize, end: usize) -> Option<f64> {
    let negative = *text.get(start)? == b'-';
    let start = start + usize::from(negative);
    let (whole, length) = leading_digits(load_digits(text, start)?)?;
    let point = start + length;
    let size = if point == end {
        f64::from(whole)
    } else if *text.get(point)? == b'.' {
        parse_places(whole, text, point + 1, end)?
    } else {
        return None;
    };
    Some(f64::from_bits(size.to_bits() | u64::from(negative) << 63))
}

/// Loads eight bytes, each digit turned into its number.
#[inline]
fn load_digits(text: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*text.get(at..)?.first_chunk()?) ^ (BYTE_ONES * 0x30))
}

/// Returns the top bit of each non-digit byte: only 0 to 9 stay below 0x80 with 0x76 added.
#[inline]
const fn non_digit_bits(word: u64) -> u64 {
    (((word & (BYTE_ONES * 0x7f)) + BYTE_ONES * 0x76) | word) & (BYTE_ONES * 0x80)
}

/// Parses the number at the start of a word, with its digit count; `None` without digits.
#[inline]
fn leading_digits(word: u64) -> Option<(u32, usize)> {
    let bits = non_digit_bits(word).trailing_zeros() & !7;
    Some((eight_digits(word.checked_shl(64 - bits)?), bits as usize / 8))
}

/// Converts eight digits, one per byte with the last one in the highest, into a number.
#[inline]
const fn eight_digits(digits: u64) -> u32 {
    const QUAD_MASK: u64 = 0x0000_00ff_0000_00ff;
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8);
    let upper = (pairs & QUAD_MASK).wrapping_mul(0x000f_4240_0000_0064);
    let lower = ((pairs >> 16) & QUAD_MASK).wrapping_mul(0x0000_2710_0000_0001);
    (upper.wrapping_add(lower) >> 32) as u32
}

/// Adds the decimal places from `start` to `end` to a whole number.
#[inline]
fn parse_places(whole: u32, text: &[u8], start: usize, end: usize) -> Option<f64> {
    let places =
        end.checked_sub(start).filter(|places| (1..=MAX_DECIMAL_PLACES).contains(places))?;
    let (mut at, mut mantissa, mut strange) = (start, u64::from(whole), 0);
    while at < end {
        let length = (end - at).min(8);
        let word = load_digits(text, at)? << (8 * (8 - length));
        strange |= non_digit_bits(word);
        mantissa = mantissa
            .checked_mul(*TEN_POWERS_U64.get(length)?)?
            .checked_add(eight_digits(word).into())?;
        at += length;
    }
    if strange == 0 { divide_by_power(mantissa, places) } else { None }
}

/// Divides a whole number by a power of ten, rounded to the nearest `f64`. `None` if it is too near
/// to the middle between two for 64 bits to decide.
#[inline]
fn divide_by_power(mantissa: u64, places: usize) -> Option<f64> {
    if mantissa < 1 << f64::MANTISSA_DIGITS {
        #[expect(
            clippy::cast_precision_loss,
            reason = "exact, and so is the power: rounded once"
        )]
        return Some(mantissa.cast_signed() as f64 / TEN_POWERS_F64.get(places)?);
    }
    let TenReciprocal { leading, bits } = *TEN_RECIPROCALS.get(places)?;
    let shift = mantissa.leading_zeros();
    let product = u128::from(mantissa << shift) * u128::from(leading);
    let high = product.leading_zeros();
    let top = ((product << high) >> 64) as u64;
    // The reciprocal is short by less than a unit, so the product by less than two units of its 64
    // leading bits, and these by less than one more. 53 are kept: where three units could lift the
    // other 11 to the middle, they decide nothing.
    let (kept, rest) = (top >> 11, top & 0x7ff);
    if (0x3fe..=0x400).contains(&rest) {
        return None;
    }
    // One less than the exponent: the top one of the 53 bits, which is not stored, adds the one.
    let exponent = u64::from(1_086 - shift - high - bits);
    Some(f64::from_bits((exponent << 52) + kept + (rest >> 10)))
}

/// Maximum number of decimal places.
const MAX_DECIMAL_PLACES: usize = 19;

/// Reciprocal of a power of ten: 64 leading bits, rounded down, and the power's bit length.
#[derive(Clone, Copy)]
struct TenReciprocal {
    leading: u64,
    bits: u32,
}

const TEN_RECIPROCALS: [TenReciprocal; MAX_DECIMAL_PLACES + 1] = {
    let mut table = [TenReciprocal { leading: u64::MAX, bits: 1 }; MAX_DECIMAL_PLACES + 1];
    let (mut places, mut power) = (1, 10_u128);
    while places <= MAX_DECIMAL_PLACES {
        let bits = u128::BITS - power.leading_zeros();
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a power of ten is no power of two: it is below 2⁶⁴"
        )]
        let leading = ((1_u128 << (bits + 63)) / power) as u64;
        table[places] = TenReciprocal { leading, bits };
        power *= 10;
        places += 1;
    }
    table
};

/// Powers of ten that eight digits need.
const TEN_POWERS_U64: [u64; 9] =
    [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// Powers of ten that an `f64` holds exactly.
const TEN_POWERS_F64: [f64; MAX_DECIMAL_PLACES + 1] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19,
];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(cell: &str) -> Option<f64> {
        let text = format!("{cell},                ");
        parse_decimal(text.as_bytes(), 0, cell.len())
    }

    /// A number parsed here must equal the general parser's; otherwise it must be left to that.
    #[track_caller]
    fn agrees(cell: &str) -> bool {
        let Some(number) = read(cell) else { return false };
        let expected: f64 = fast_float2::parse(cell).unwrap();
        assert_eq!(number.to_bits(), expected.to_bits(), "{cell}");
        true
    }

    #[test]
    fn what_is_read_here() {
        for cell in [
            "0",
            "-0",
            "7",
            "12345678",
            "-99999999",
            "0.0",
            "-0.5",
            "0.1",
            "1.0000000000000002",
            "0.30000000000000004",
            "-12.345678901234567",
            "0.0000000000000000001",
            "99999999.99999999",
            "9007199.254740993",
            "0.9007199254740993",
            "1.7976931348623157",
            "00012.50",
        ] {
            assert!(agrees(cell), "{cell}");
        }
    }

    #[test]
    fn what_is_left_to_others() {
        for cell in [
            "",
            "-",
            "+1",
            ".5",
            "5.",
            "-.",
            ".",
            "1e5",
            "1.5e5",
            "1_0",
            "1.2.3",
            "--1",
            "1 ",
            " 1",
            "nan",
            "inf",
            "123456789",
            "1.5x",
            "1.5\u{661}",
            "0.00000000000000000001",
            "99999999.999999999999",
            "1\0",
            // In the middle between two numbers.
            "9007199.254740992500000",
        ] {
            assert_eq!(read(cell), None, "{cell:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]
        #[test]
        fn all_digits_agree(whole in 0_u32..100_000_000, places in "[0-9]{1,19}", negative: bool) {
            agrees(&format!("{}{whole}.{places}", if negative { "-" } else { "" }));
        }

        #[test]
        fn printed_numbers_agree(fraction in 0_u64..1 << 52, scale in -20_i32..26, any in any::<f64>()) {
            let number = f64::from_bits(fraction | 1023 << 52) * f64::from(scale).exp2();
            let read = agrees(&number.to_string());
            prop_assert!(read || number < 0.01, "{}", number);
            agrees(&any.to_string());
        }

        /// Around the middle between two numbers, every parsed number is rounded to the right one.
        #[test]
        fn middles_agree(bits in 1_u64 << 52..1 << 53, off in -3_i64..=3) {
            let middle = (u128::from(bits) * 2 + 1) * 5_u128.pow(10);
            let digits = (middle.cast_signed() + i128::from(off)).to_string();
            let (whole, places) = digits.split_at(digits.len().saturating_sub(19).max(1));
            agrees(&format!("{whole}.{places}"));
        }

        #[test]
        fn any_text_is_read_or_left(cell in "[-+0-9.eE_x ]{0,24}") {
            if let Some(number) = read(&cell) {
                let expected: f64 = fast_float2::parse(&cell).unwrap();
                prop_assert_eq!(number.to_bits(), expected.to_bits(), "{}", cell);
            }
        }
    }
}
