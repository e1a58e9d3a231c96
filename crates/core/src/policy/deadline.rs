//! Deadline of a run: a moment, or a duration after the run's beginning. Does not read the clock.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Time after which a run begins nothing new.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum RunDeadline {
    /// Deadline at this moment.
    At(Timestamp),
    /// Deadline this long after the run began.
    After(SignedDuration),
}

impl RunDeadline {
    /// Returns the deadline's moment for a run that began at `began`.
    #[must_use]
    pub fn to_timestamp(self, began: Timestamp) -> Timestamp {
        match self {
            Self::At(moment) => moment,
            Self::After(time) => began.saturating_add(time).unwrap_or(Timestamp::MAX),
        }
    }
}

impl FromStr for RunDeadline {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "it must be a time such as `2026-01-31T07:00:00Z`, or how long after the run's beginning, such as `8h` or `90m`";
        if let Ok(moment) = text.parse() {
            return Ok(Self::At(moment));
        }
        let time: SignedDuration = text.parse().map_err(|_| wrong().to_owned())?;
        if time <= SignedDuration::ZERO {
            return Err("it must be later than the run's beginning".to_owned());
        }
        Ok(Self::After(time))
    }
}

impl TryFrom<String> for RunDeadline {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<RunDeadline> for String {
    fn from(deadline: RunDeadline) -> Self {
        deadline.to_string()
    }
}

/// Formats the deadline so that it parses to the same value.
impl fmt::Display for RunDeadline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(moment) => write!(f, "{moment}"),
            Self::After(time) => write!(f, "{time:#}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_written_the_same() {
        let check = |text: &str, written: &str| {
            let deadline: RunDeadline = text.parse().expect("a deadline");
            assert_eq!(deadline.to_string(), written, "{text}");
            assert_eq!(written.parse(), Ok(deadline));
        };
        check("8h", "8h");
        check("90m", "1h 30m");
        check("PT2H", "2h");
        check("2026-01-31T07:00:00+01:00", "2026-01-31T06:00:00Z");
        for odd in ["", "soon", "-1h", "0s", "8", "2026-01-31", "25:00"] {
            assert!(odd.parse::<RunDeadline>().is_err(), "{odd}");
        }
    }

    #[test]
    fn a_time_counts_from_the_beginning_of_the_run() {
        let began: Timestamp = "2026-01-31T22:00:00Z".parse().expect("a time");
        let due = |text: &str| text.parse::<RunDeadline>().expect("a deadline").to_timestamp(began);
        assert_eq!(due("8h").to_string(), "2026-02-01T06:00:00Z");
        assert_eq!(due("2026-02-01T00:00:00Z").to_string(), "2026-02-01T00:00:00Z");
        assert_eq!(due("1000000000h"), Timestamp::MAX);
    }
}
