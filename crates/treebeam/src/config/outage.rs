//! Parses the key `outage_patience`: how long a run waits for an agent server that is down or
//! overloaded.

use jiff::SignedDuration;
use serde::Deserialize;
use std::time::Duration;
use treebeam_agent::retry_layer::RetryPolicy;

const AUTO_PATIENCE: &str = "auto";
/// Maximum of `outage_patience`: thirty days.
const MAX_OUTAGE_PATIENCE: Duration = Duration::from_hours(30 * 24);

/// Time that a run waits for an agent server that is down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) enum OutagePatience {
    /// The built-in time, which is longer for a server that has answered in this run.
    #[default]
    Auto,
    /// A fixed time for every server.
    Set(Duration),
}

impl OutagePatience {
    /// Returns the built-in retry policy with this time for outages.
    pub(crate) fn apply_to(self, built_in: RetryPolicy) -> RetryPolicy {
        match self {
            Self::Auto => built_in,
            Self::Set(length) => built_in.with_outage(length),
        }
    }
}

impl TryFrom<String> for OutagePatience {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        let wrong = || {
            format!(
                "it must be a length of time up to 30 days, such as `6h` or `90m`, or `{AUTO_PATIENCE}`"
            )
        };
        if text == AUTO_PATIENCE {
            return Ok(Self::Auto);
        }
        let length: SignedDuration = text.parse().map_err(|_| wrong())?;
        let length =
            Duration::try_from(length).ok().filter(|length| *length <= MAX_OUTAGE_PATIENCE);
        length.map(Self::Set).ok_or_else(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_read_and_nonsense_is_refused() {
        let read = |text: &str| OutagePatience::try_from(text.to_owned());
        assert_eq!(read("auto"), Ok(OutagePatience::Auto));
        for (text, seconds) in [("6h", 21_600), ("90m", 5400), ("1h 30m", 5400), ("0s", 0)] {
            assert_eq!(read(text), Ok(OutagePatience::Set(Duration::from_secs(seconds))), "{text}");
        }
        for text in ["", "none", "6", "-1h", "31d", "1000h", "07:00"] {
            assert!(read(text).is_err(), "{text}");
        }
        assert_eq!(
            OutagePatience::Auto.apply_to(RetryPolicy::UNATTENDED_RUN).outage.as_secs(),
            21_600
        );
        let set = OutagePatience::Set(Duration::from_secs(7)).apply_to(RetryPolicy::UNATTENDED_RUN);
        assert_eq!((set.outage, set.first_answer), (set.outage, set.outage));
    }
}
