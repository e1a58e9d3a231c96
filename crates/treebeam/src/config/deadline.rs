//! Parses the key `deadline`: a moment, a time of day, a duration from the start, or `none`.
//!
//! Flag and key share the type.

use jiff::civil::Time;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, ToSpan as _, Zoned};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use treebeam_core::policy::RunDeadline;

const NO_DEADLINE: &str = "none";

/// Moment after which a run begins nothing new, if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct DeadlineSetting(pub(crate) Option<RunDeadline>);

impl FromStr for DeadlineSetting {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if text == NO_DEADLINE {
            return Ok(Self(None));
        }
        if let Some(deadline) = next_time_of_day(text, &Zoned::now()) {
            return Ok(Self(Some(deadline)));
        }
        let deadline = text.parse().and_then(check_plausible);
        let why =
            |why| format!("{why}; a time of day such as `07:00`, or `{NO_DEADLINE}`, will do too");
        deadline.map(|deadline| Self(Some(deadline))).map_err(why)
    }
}

/// Maximum duration of a run: ten years.
const MAX_RUN_HOURS: i64 = 10 * 8766;
/// Years that a deadline may lie in.
const DEADLINE_YEARS: RangeInclusive<i16> = 2000..=2100;

/// Refuses a deadline that can only be a typing error. A record may have any.
fn check_plausible(deadline: RunDeadline) -> Result<RunDeadline, String> {
    match deadline {
        RunDeadline::After(time) if time > SignedDuration::from_hours(MAX_RUN_HOURS) => {
            Err(format!("it must be at most {MAX_RUN_HOURS}h after the run's beginning"))
        }
        RunDeadline::At(moment)
            if !DEADLINE_YEARS.contains(&moment.to_zoned(TimeZone::UTC).year()) =>
        {
            let (first, last) = (DEADLINE_YEARS.start(), DEADLINE_YEARS.end());
            Err(format!("it must lie in the years {first} to {last}"))
        }
        RunDeadline::After(_) | RunDeadline::At(_) => Ok(deadline),
    }
}

/// Returns the next moment with this local time of day, if the text is one.
fn next_time_of_day(text: &str, now: &Zoned) -> Option<RunDeadline> {
    let number = |digits: &str| digits.parse().ok().filter(|_| digits.len() == 2);
    let parts: Vec<i8> = text.split(':').map(number).collect::<Option<_>>()?;
    let time = match parts[..] {
        [hour, minute] => Time::new(hour, minute, 0, 0),
        [hour, minute, second] => Time::new(hour, minute, second, 0),
        _ => return None,
    };
    let time = time.ok()?;
    let today = now.date().to_datetime(time).to_zoned(now.time_zone().clone()).ok()?;
    let next = if today > *now { today } else { today.checked_add(1.day()).ok()? };
    Some(RunDeadline::At(next.timestamp()))
}

impl TryFrom<String> for DeadlineSetting {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<DeadlineSetting> for String {
    fn from(until: DeadlineSetting) -> Self {
        until.to_string()
    }
}

impl fmt::Display for DeadlineSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => f.write_str(NO_DEADLINE),
            Some(deadline) => write!(f, "{deadline}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_day_is_the_next_one() {
        let now: Zoned = "2026-01-31T22:15:00+01:00[+01:00]".parse().unwrap();
        let check = |text: &str, at: Option<&str>| {
            let found = next_time_of_day(text, &now).map(|deadline| deadline.to_string());
            assert_eq!(found.as_deref(), at, "{text}");
        };
        check("07:00", Some("2026-02-01T06:00:00Z"));
        check("22:16", Some("2026-01-31T21:16:00Z"));
        check("22:15", Some("2026-02-01T21:15:00Z"));
        check("07:00:30", Some("2026-02-01T06:00:30Z"));
        for odd in ["7:00", "24:00", "07:60", "07:00:60", "07:00:00:00", "07", "-7:00", "8h"] {
            check(odd, None);
        }
    }

    #[test]
    fn a_deadline_that_can_only_be_a_slip_is_refused() {
        for good in ["1s", "87660h", "2000-01-01T00:00:00Z", "2100-12-31T00:00:00Z"] {
            assert!(good.parse::<DeadlineSetting>().is_ok(), "{good}");
        }
        let slips = ["0s", "-8h", "87661h", "1000000000h", "99999999999999999999999h"];
        let years = ["1999-12-31T00:00:00Z", "9999-12-30T22:00:00Z", "-009999-01-03T00:00:00Z"];
        for slip in slips.into_iter().chain(years) {
            let why = slip.parse::<DeadlineSetting>().unwrap_err();
            assert!(why.starts_with("it must "), "{slip}: {why}");
        }
    }

    #[test]
    fn what_is_none_of_it_is_refused_with_all_that_it_can_be() {
        let why = "tomorrow".parse::<DeadlineSetting>().unwrap_err();
        for part in ["`8h`", "`2026-01-31T07:00:00Z`", "`07:00`", "`none`"] {
            assert!(why.contains(part), "{why}");
        }
        assert_eq!("none".parse::<DeadlineSetting>().unwrap().to_string(), "none");
    }
}
