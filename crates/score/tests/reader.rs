//! Robustness of the reader: any bytes, in any pieces, are read or refused with the file's name,
//! without a panic. Results are tested elsewhere. `cargo xtask campaign reader` runs more cases.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "how many cases to run stands in the environment")]

use std::io::{self, Read};
use treebeam_core::policy::{Direction, Metric, ScorePolicy};
use treebeam_score::sweep_csv::{MAX_COLUMNS, Sweep};

fn cases() -> u64 {
    if std::env::var_os("TREEBEAM_CAMPAIGN").is_some() { 1_000_000 } else { 10_000 }
}

/// Pseudorandom numbers, the same in each run.
struct Mixed(u64);

impl Mixed {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// Returns a number below `end`.
    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(end.max(1)).unwrap()).unwrap()
    }

    fn one_in(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }

    fn pick<T: Copy>(&mut self, things: &[T]) -> T {
        things[self.below(things.len())]
    }
}

/// Pieces of CSV text, valid and invalid.
const PIECES: [&[u8]; 28] = [
    b"\"",
    b"\"\"",
    b"\"\"\"",
    b",",
    b",,,",
    b"\n",
    b"\r",
    b"\r\n",
    b"\n\r",
    b"\n\n",
    b"\0",
    b" ",
    b"\t",
    b"\xef\xbb\xbf",
    b"\xef\xbb",
    b"\xff\xfe",
    b"\xff",
    b"nan",
    b"-inf",
    b"1e400",
    b"-0.0",
    b"1_000",
    b"ok",
    b"config_id",
    b"m",
    b"1",
    b"\0end of file\0",
    b"\n\0end of file\0\n",
];
const CELLS: [&str; 14] = [
    "0",
    "1",
    "2",
    "7",
    "-1",
    "0.5",
    "1e16",
    "-1e-300",
    "ok",
    "error",
    "",
    " 3 ",
    "\"4\"",
    "\"a,\"\"b\"\"\nc\"",
];

/// Generates a valid CSV.
fn sound(mixed: &mut Mixed) -> Vec<u8> {
    let columns = if mixed.one_in(50) { 300 } else { mixed.below(6) };
    let line_end = mixed.pick(&["\n", "\r\n", "\r"]);
    let mut text = String::from(if mixed.one_in(8) { "\u{feff}" } else { "" });
    text.push_str(if mixed.one_in(8) { "m,config_id" } else { "config_id,status,m,cost" });
    text.extend((0..columns).map(|column| format!(",c{column}")));
    text.push_str(line_end);
    let cells = columns + 4;
    for row in 0..mixed.below(8) {
        text.push_str(&row.to_string());
        for _ in 1..cells {
            text.push(',');
            text.push_str(mixed.pick(&CELLS));
        }
        text.push_str(line_end);
    }
    text.into_bytes()
}

/// Applies one mutation to a text.
fn mutate(text: &mut Vec<u8>, mixed: &mut Mixed) {
    let at = mixed.below(text.len() + 1);
    match mixed.below(7) {
        0 => text.truncate(at),
        1 if at < text.len() => text[at] = u8::try_from(mixed.below(256)).unwrap(),
        2 if at < text.len() => {
            text.remove(at);
        }
        3 => {
            let end = (at + mixed.below(30)).min(text.len());
            let again = text[at..end].to_vec();
            text.splice(at..at, again);
        }
        4 => {
            let end = (at + mixed.below(30)).min(text.len());
            text.drain(at..end);
        }
        5 if mixed.one_in(20) => {
            let cell = vec![b'7'; mixed.below(6_000)];
            text.splice(at..at, cell);
        }
        _ => {
            let piece = mixed.pick(&PIECES).to_vec();
            text.splice(at..at, piece);
        }
    }
}

fn text(mixed: &mut Mixed) -> Vec<u8> {
    let length = mixed.below(120);
    match mixed.below(8) {
        0 => (0..length).map(|_| u8::try_from(mixed.below(256)).unwrap()).collect(),
        1 => (0..length / 3).flat_map(|_| mixed.pick(&PIECES).to_vec()).collect(),
        2 if mixed.one_in(500) => vec![b','; MAX_COLUMNS - 2 + mixed.below(4)],
        _ => {
            let mut text = sound(mixed);
            for _ in 0..mixed.below(5) {
                mutate(&mut text, mixed);
            }
            text
        }
    }
}

fn policy() -> ScorePolicy {
    let trading = ScorePolicy::trading_preset();
    let metric = |column: &str, direction| Metric {
        column: column.to_owned(),
        direction,
        ..trading.metrics[0].clone()
    };
    ScorePolicy {
        primary: "m".to_owned(),
        metrics: vec![metric("m", Direction::Higher), metric("cost", Direction::Lower)],
        invariant_columns: vec!["c0".to_owned()],
        ..trading
    }
}

/// Reader of bytes in pieces of a fixed size, interrupted now and then.
struct Pieces<'a> {
    rest: &'a [u8],
    size: usize,
    reads: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reads += 1;
        if self.reads.is_multiple_of(5) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let size = self.size.min(buffer.len());
        let (piece, rest) = self.rest.split_at(size.min(self.rest.len()));
        buffer[..piece.len()].copy_from_slice(piece);
        self.rest = rest;
        Ok(piece.len())
    }
}

/// Everything visible of a sweep: columns with bits of their means, and counts; or the error.
type Seen = Result<(Vec<(String, u64)>, [u32; 9]), String>;

fn seen(reader: impl Read, limit: Option<u32>, policy: &ScorePolicy) -> Seen {
    let sweep =
        Sweep::read_csv(reader, "any.csv", limit, policy).map_err(|error| error.to_string())?;
    for (column, mean) in sweep.column_means() {
        assert!(mean.is_finite(), "{column}: {mean}");
        assert_eq!(sweep.column_mean(column).map(f64::to_bits), Some(mean.to_bits()), "{column}");
    }
    let (with, without) = (sweep.completeness(limit, 3), sweep.completeness(None, 3));
    let (rows, again) = (sweep.rows_used(), sweep.duplicate_ids());
    assert!(with.ok_count <= without.ok_count && with.error_count == without.error_count);
    assert!(without.ok_count + with.error_count <= rows && again <= rows.saturating_sub(1));
    let means =
        sweep.column_means().map(|(column, mean)| (column.to_owned(), mean.to_bits())).collect();
    let counts = [
        rows,
        again,
        sweep.ragged_rows(),
        with.expected_count,
        with.ok_count,
        with.error_count,
        without.expected_count,
        without.ok_count,
        without.error_count,
    ];
    Ok((means, counts))
}

/// Reads a text at once and in pieces.
fn check(text: &[u8], limit: Option<u32>, policy: &ScorePolicy, what: &str) -> Seen {
    let whole = seen(text, limit, policy);
    if let Err(error) = &whole {
        assert!(error.starts_with("`any.csv`"), "{what}: does not name the file: {error}");
    }
    for size in [1, 2, 3, 7, 4096] {
        let pieces = Pieces { rest: text, size, reads: 0 };
        let same = seen(pieces, limit, policy) == whole;
        assert!(same, "{what}: otherwise in pieces of {size}: {:?}", String::from_utf8_lossy(text));
    }
    whole
}

#[test]
fn any_bytes_are_read_or_refused_and_alike_in_any_pieces() {
    let policy = policy();
    let (mut read, mut refused) = (0, 0);
    for case in 0..cases() {
        let mut mixed = Mixed(case.wrapping_mul(0x1234_5678_9abc_def1));
        let text = text(&mut mixed);
        let limit = mixed.pick(&[None, Some(0), Some(1), Some(3), Some(u32::MAX)]);
        match check(&text, limit, &policy, &format!("case {case}")) {
            Ok(_) => read += 1,
            Err(_) => refused += 1,
        }
    }
    assert!(read > cases() / 10 && refused > cases() / 10, "{read} read, {refused} refused");
}

#[test]
fn the_same_line_and_the_same_names_in_any_pieces() {
    for (text, expected) in [
        // The line end that shows how lines are counted may arrive in two pieces…
        (
            "config_id,m\r\n1\r\n\0\r\n",
            "`any.csv`, line 3, column 1 (`config_id`): a NUL byte; this is no CSV in UTF-8",
        ),
        (
            "config_id,m\r\n1\r\n\"2",
            "`any.csv`, line 3, column 1 (`config_id`): a quote that is opened here is never closed",
        ),
        // …and a second byte-order mark may be a piece of its own.
        ("\u{feff}\u{feff}", "`any.csv` is empty: not even a header"),
        ("\u{feff}\u{feff}m\n", "`any.csv` has a header and no rows"),
    ] {
        assert_eq!(check(text.as_bytes(), None, &policy(), text), Err(expected.to_owned()));
    }
}

#[test]
fn a_sound_text_cut_anywhere_is_read_or_refused() {
    let policy = policy();
    for case in 0..40 {
        let text = sound(&mut Mixed(case));
        let text = &text[..text.len().min(400)];
        for end in 0..text.len() {
            let what = format!("case {case} cut at {end}");
            drop(check(&text[..end], Some(3), &policy, &what));
        }
    }
}

#[test]
fn what_stands_at_the_edge_of_a_buffer_is_read_alike() {
    let policy = policy();
    // First read, less the padding behind it.
    let edge = (128 << 10) - 64;
    for piece in ["\r\n", "\"\"\"\"", "\",\"", "\u{e9}", "\r", "\n\n", "\"\r\n\""] {
        let expected = seen(near(10, piece).as_slice(), None, &policy);
        for place in edge - 6..=edge + 6 {
            let found = check(&near(place, piece), None, &policy, piece);
            assert_eq!(found, expected, "{piece:?} at {place}");
        }
    }
}

/// Creates a text with `piece` after `place` bytes.
fn near(place: usize, piece: &str) -> Vec<u8> {
    let head = "config_id,note,m\n0,x";
    let pad = "x".repeat(place.saturating_sub(head.len()));
    format!("{head}{pad},1.5\n1,{piece},2.5\n2,x,4.25\n").into_bytes()
}

#[test]
fn a_reader_that_fails_is_an_error_that_names_the_file() {
    struct Failing;
    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("gone"))
        }
    }
    let text = b"config_id,m\n0,1\n1,\"2\"\n";
    for end in 0..=text.len() {
        let error = seen(text[..end].chain(Failing), None, &policy()).unwrap_err();
        assert!(
            error.starts_with("`any.csv`, line ") && error.ends_with("cannot be read"),
            "{error}"
        );
    }
}
