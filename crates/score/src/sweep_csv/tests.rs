//! Results CSVs and what they are read as, by table.

use super::*;
use proptest::prelude::*;
use std::fmt::Write as _;
use treebeam_core::num::Finite;
use treebeam_core::policy::{Direction, Metric};

/// Primary and only metric `m`, invariant columns `p` and `q`.
fn policy() -> ScorePolicy {
    let metric = Metric {
        column: "m".to_owned(),
        direction: Direction::Higher,
        weight: Finite::ZERO,
        guard: false,
    };
    ScorePolicy {
        primary: "m".to_owned(),
        metrics: vec![metric],
        invariant_columns: vec!["p".to_owned(), "q".to_owned()],
        ..ScorePolicy::trading_preset()
    }
}

fn read(text: &[u8], limit: Option<u32>) -> Result<Sweep, SweepError> {
    Sweep::read_csv(text, "r.csv", limit, &policy())
}

/// The rows' ids in their order (`x`: not ok, `#`: text), then the means.
fn show(sweep: &Sweep) -> String {
    let mut shown = String::new();
    for row in &sweep.picked.rows {
        match row.id().as_number() {
            Some(id) => write!(shown, "{id}").unwrap(),
            None => shown.push('#'),
        }
        shown.push_str(if row.is_ok() { " " } else { "x " });
    }
    shown.push('|');
    for (column, mean) in sweep.column_means() {
        write!(shown, " {column}={mean}").unwrap();
    }
    shown
}

#[track_caller]
fn check(text: &str, limit: Option<u32>, expect: &str) {
    let shown =
        read(text.as_bytes(), limit).map_or_else(|error| error.to_string(), |sweep| show(&sweep));
    assert_eq!(shown, expect, "{text:?}");
}

#[test]
fn rows_are_selected_by_id_or_else_by_place() {
    let text = "config_id,m\n2,20\n0,0\n1.9,10\n-3,-30\nx,5\n7,70\n";
    check(text, None, "-3 0 1 2 7 # | config_id=1.58 m=12.5");
    check(text, Some(2), "-3 0 1 | config_id=-0.3666666666666667 m=-6.666666666666667");
    check(text, Some(0), "-3 | config_id=-3 m=-30");
    check("config_id,m\n7,1\n8,2\n9,3\n", Some(2), "7 8 | config_id=7.5 m=1.5");
    check("config_id,m\n7,1\n8,2\n0,3\n", Some(2), "0 | config_id=0 m=3");
    check("config_id,m\ninf,1\nnan,2\n1_0,3\n\u{661},4\n", Some(2), "# # | m=1.5");
    check("name,m\na,1\nb,2\nc,4\n", Some(2), "0 1 | m=1.5");
    check("name,m\na,1\nb,2\nc,4\n", Some(9), "0 1 2 | m=2.3333333333333335");
    check("name,m\na,1\n", Some(0), "|");
}

#[test]
fn a_row_is_ok_by_its_status_or_else_by_its_primary() {
    check(
        "config_id,status,m\n0, ok ,1\n1,OK,1\n2,error,1\n3\n",
        None,
        "0 1x 2x 3x | config_id=1.5 m=1",
    );
    check("config_id,m\n0,1\n1,nan\n2,\n3,-inf\n", None, "0 1x 2x 3x | config_id=1.5 m=1");
}

#[test]
fn the_text_around_the_cells_does_not_matter() {
    let expect = "0 1 | config_id=0.5 m=2";
    for text in [
        "config_id,m\n0,1\n1,3\n",
        "config_id,m\n0,1\n1,3",
        "\u{feff}config_id,m\n0,1\n1,3\n",
        "\u{feff}\"config_id\",m\n0,1\n1,3\n",
        "config_id,m\r\n0,1\r\n1,3\r\n",
        "config_id,m\r0,1\r1,3\r",
        "\n\nconfig_id,m\n\n0,1\n \n\n1,3\n\n",
        "\"config_id\",\"m\"\n\"0\",\" 1 \"\n 1 ,\"3\"\n",
        "config_id,m\n0,1,extra\n1,3\n",
    ] {
        check(text, None, expect);
        check(text, Some(2), expect);
    }
}

#[test]
fn what_is_refused_and_where() {
    for (text, expect) in [
        (&b""[..], "`r.csv` is empty: not even a header"),
        (b"\xef\xbb\xbf", "`r.csv` is empty: not even a header"),
        (b"\n\r\n\n", "`r.csv` is empty: not even a header"),
        (b"config_id,m\n", "`r.csv` has a header and no rows"),
        (b"config_id,m\n\n\n", "`r.csv` has a header and no rows"),
        (
            b"a,m\n\n1,\"2\n3,4\n",
            "`r.csv`, line 3, column 2 (`m`): a quote that is opened here is never closed",
        ),
        (
            b"a,m\r\n\r\n1,\"2\r\n",
            "`r.csv`, line 3, column 2 (`m`): a quote that is opened here is never closed",
        ),
        (b"\"a", "`r.csv`, line 1, column 1: a quote that is opened here is never closed"),
        (
            b"a,m\n1,2\n\n3,\0\n",
            "`r.csv`, line 4, column 2 (`m`): a NUL byte; this is no CSV in UTF-8",
        ),
        (
            b"a,m\r\n1,2\r\n\0,4\r\n",
            "`r.csv`, line 3, column 1 (`a`): a NUL byte; this is no CSV in UTF-8",
        ),
        (b"\xff\xfea\0,\0m\0", "`r.csv`, line 1, column 1: a NUL byte; this is no CSV in UTF-8"),
        (
            b"a,m\n\0end of file\0\n1,2\n",
            "`r.csv`, line 2, column 1 (`a`): a NUL byte; this is no CSV in UTF-8",
        ),
        (b"\na,\xff\n1,2\n", "`r.csv`, line 2, column 2: not UTF-8"),
        (b"a,m\n1,\"x\n\ny\"\n2,\xe9t\xe9\n", "`r.csv`, line 5, column 2 (`m`): not UTF-8"),
        (b"a,m\r\n\"\r\n\",\xff\r\n", "`r.csv`, line 3, column 2 (`m`): not UTF-8"),
        (b"a,m\r1,2\r\"\r\",3,\xff\r", "`r.csv`, line 4, column 3: not UTF-8"),
        (
            b"config_id;m\n0;1\n",
            "`r.csv`, line 1: the header is one column, `config_id;m`; cells are separated by commas",
        ),
        (b"a,,\n1,2,3\n", "`r.csv`, line 1: the columns 2 and 3 have no name"),
        (b"\n\na,m,a\n1,2,3\n", "`r.csv`, line 3: the columns 1 and 3 are both named `a`"),
    ] {
        let error = read(text, None).unwrap_err().to_string();
        assert_eq!(error, expect, "{:?}", String::from_utf8_lossy(text));
    }
}

#[test]
fn what_has_no_end_is_not_held() {
    let endless = || b"a,m\n1,2\n".chain(io::repeat(b'7'));
    let error = Sweep::read_csv(endless(), "r.csv", None, &policy()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`r.csv`, line 3: the row that begins here is longer than 16 MiB (a quote that is never closed?)"
    );
    let wide = format!("{}\n", ",".repeat(MAX_COLUMNS));
    assert!(matches!(
        read(wide.as_bytes(), None),
        Err(SweepError::TooManyColumns { columns: 65_537, .. })
    ));
}

#[test]
fn a_reader_that_fails_is_named_with_its_reason() {
    struct Failing;
    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("disk on fire"))
        }
    }
    let error =
        Sweep::read_csv(b"a,m\n1,2\n".chain(Failing), "r.csv", None, &policy()).unwrap_err();
    assert!(
        matches!(&error, SweepError::Io { source, .. } if source.to_string().contains("disk on fire")),
        "{error:?}"
    );
}

#[test]
fn the_primary_that_the_user_named_must_be_there() {
    let (primary, invariant_columns) = ("sharp".to_owned(), Vec::new());
    let mut policy = ScorePolicy { primary, invariant_columns, ..policy() };
    let text = &b"config_id,sharpe\n0,1\n"[..];
    let read = |policy: &ScorePolicy| Sweep::read_csv(text, "r.csv", None, policy).unwrap();
    assert!(read(&policy).require_columns(&policy).is_ok(), "a preset's may be missing");
    policy.primary_chosen_by = ChosenBy::User;
    assert!(read(&policy).require_columns(&policy).is_err(), "a user's may not");
    assert_eq!(
        read(&policy).require_primary(&policy).unwrap_err().to_string(),
        "`r.csv` has no column `sharp`, the primary metric; nearest: `sharpe`"
    );
    policy.primary = "volatility".to_owned();
    assert_eq!(
        read(&policy).require_primary(&policy).unwrap_err().to_string(),
        "`r.csv` has no column `volatility`, the primary metric; its columns: `config_id`, `sharpe`"
    );
}

#[test]
fn rows_of_the_wrong_length_and_repeated_ids_are_counted() {
    let sweep = read(b"config_id,m\n0,1\n1\n1,2,3\nx,1\nx,1\n,1\n2,1\n", None).unwrap();
    assert_eq!((sweep.ragged_rows(), sweep.duplicate_ids(), sweep.rows_used()), (2, 2, 7));
    let sweep = read(b"config_id,m\n0,1\n5\n5,1\n1,2\n", Some(2)).unwrap();
    assert_eq!((sweep.ragged_rows(), sweep.duplicate_ids(), sweep.rows_used()), (1, 0, 2));
}

#[test]
fn lines_of_the_wrong_length_and_repeated_ids_are_named() {
    let text = b"config_id,m\n0,1\n\n1\n1,2,3\nx,1\n y,1\nx,1\n3,\"1\n\"\n3\n";
    let sweep = read(text, None).unwrap();
    assert_eq!(sweep.ragged_lines(), [4, 5, 11]);
    assert_eq!(sweep.repeated_ids(), ["1", "3", "x"]);
    let many: String = (0..20).map(|id| format!("{id}\n{id},1\n")).collect();
    let sweep = read(format!("config_id,m\n{many}").as_bytes(), None).unwrap();
    assert_eq!(sweep.ragged_lines(), [2, 4, 6, 8, 10]);
    assert_eq!(sweep.repeated_ids(), ["0", "1", "2", "3", "4"]);
}

#[test]
fn rounding_is_no_difference_however_many_rows_there_are() {
    let count = tally::MAX_FIGURES + 10;
    let rows = |last: f64| {
        let text: String = (1..count).map(|id| format!("{id},{id}\n")).collect();
        read(format!("config_id,m\n0,{last}\n{text}").as_bytes(), None).unwrap()
    };
    let differ = |one: f64, other: f64| rows(one).differs_beyond_rounding(&rows(other), &policy());
    assert!(!differ(0.3, 0.1 + 0.2) && !differ(0.3, 0.3));
    assert!(differ(0.3, 0.300_000_001), "the primary is compared row by row");
}

#[test]
fn completeness_counts_distinct_expected_ids() {
    let text = b"config_id,status,m\n0,ok,1\n0,ok,1\n1,error,1\n2,ok,1\n-1,ok,1\n9,ok,1\nx,ok,1\n";
    for (limit, expect) in [(Some(3), (3, 2, 1)), (Some(10), (10, 3, 1)), (None, (4, 5, 1))] {
        let complete = read(text, limit).unwrap().completeness(limit, 4);
        assert_eq!(
            (complete.expected_count, complete.ok_count, complete.error_count),
            expect,
            "{limit:?}"
        );
    }
}

#[test]
fn figures_are_kept_until_they_are_too_many() {
    let rows = |count: usize| {
        let text: String = (0..count).map(|id| format!("{id},{id}\n")).collect();
        read(format!("config_id,m\n{text}").as_bytes(), None).unwrap()
    };
    let (most, more) = (rows(tally::MAX_FIGURES), rows(tally::MAX_FIGURES + 1));
    assert_eq!(most.metric_figures(0).map(Iterator::count), Some(tally::MAX_FIGURES));
    assert!(more.metric_figures(0).is_none());
    assert_eq!(
        more.primary_figures().count(),
        tally::MAX_FIGURES + 1,
        "the primary is kept all the same"
    );
}

#[test]
fn fingerprints_tell_values_apart_and_not_their_spelling() {
    let of = |cell: &str| {
        let sweep = read(format!("config_id,m,p\n0,{cell},{cell}\n").as_bytes(), None).unwrap();
        (sweep.metrics_fingerprint(), sweep.invariant_fingerprints(0).to_vec())
    };
    for (one, other) in [("1.0", "1.00"), ("0", "-0.0"), (" 1e0", "1"), ("text", " text ")] {
        assert_eq!(of(one), of(other), "{one:?} {other:?}");
    }
    let different = ["", "nan", "inf", "text", "0", "1", "1.0000000000000002"].map(of);
    for (at, one) in different.iter().enumerate() {
        assert!(!different[..at].contains(one), "{at}");
    }
}

/// Result of another CSV reader: the header's names, then each row's cell count and its cells up to
/// the header's length.
fn seen_by_csv(text: &str) -> Vec<(usize, Vec<String>)> {
    let mut reader =
        csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    let width = rows.first().map_or(0, csv::StringRecord::len);
    let shown = |row: &csv::StringRecord| row.iter().take(width).map(str::to_owned).collect();
    rows.iter().map(|row| (row.len(), shown(row))).collect()
}

fn seen_here(
    text: &str,
    piece: usize,
    buffer: usize,
) -> Result<Vec<(usize, Vec<String>)>, SweepError> {
    let mut rows =
        match RowReader::with_buffer(Pieces { text: text.as_bytes(), piece }, "r.csv", buffer) {
            Err(SweepError::Empty { .. }) => return Ok(Vec::new()),
            rows => rows?,
        };
    let mut seen = vec![(rows.header().len(), rows.header().to_vec())];
    while let Some(row) = rows.next_row()? {
        let cells = (0..).map_while(|at| row.cell_text(at));
        let cells = cells.map(|cell| String::from_utf8(cell.into_owned()).unwrap()).collect();
        seen.push((row.cell_count(), cells));
    }
    Ok(seen)
}

/// Text that arrives in pieces.
struct Pieces<'a> {
    text: &'a [u8],
    piece: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = buffer.len().min(self.piece);
        self.text.read(&mut buffer[..length])
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn cells_are_where_others_see_them(text in "([a1.-]{0,3}[,\"\n\r\u{b}\u{e9}]{0,2}){0,20}", piece in 1_usize..9, buffer in 66_usize..90) {
        match seen_here(&text, piece, buffer) {
            Ok(seen) => prop_assert_eq!(seen, seen_by_csv(&text)),
            Err(error) => prop_assert!(matches!(error, SweepError::UnterminatedQuote { .. }), "{}", error),
        }
    }

}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]
    /// Rows that the end of the buffer cuts anywhere.
    #[test]
    fn rows_longer_than_a_reading_are_whole(length in 100_000_usize..300_000, quoted: bool, ends in "\n|\r\n|\r") {
        let long = "7".repeat(length);
        let cell = if quoted { format!("\"{long},{ends}\"") } else { long };
        let text = format!("a,b{ends}{cell},1{ends}2,{cell}{ends}");
        prop_assert_eq!(seen_here(&text, 1 << 20, 128 << 10).unwrap(), seen_by_csv(&text));
    }
}
