//! What a run knows of each eval and seldom looks at, as it is held: there are thousands of them, so they are held as bytes.
//! What was put in comes out again to the letter. These bytes are never written to a disk.

use crate::bill::Bills;
use crate::facts::Measured;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::marker::PhantomData;

/// What can be packed, as a test shows: postcard cannot do it with every type.
pub trait Packable: Serialize + DeserializeOwned {}
impl Packable for Measured {}
impl Packable for Vec<Bills> {}

/// Something in as little room as will do.
pub struct Packed<T> {
    bytes: Box<[u8]>,
    of: PhantomData<fn() -> T>,
}

impl<T: Packable> From<&T> for Packed<T> {
    #[expect(
        clippy::expect_used,
        reason = "it fails for types that say not how long they are, and for nothing else"
    )]
    fn from(value: &T) -> Self {
        let bytes = postcard::to_allocvec(value).expect("every type in it can be packed").into();
        Self { bytes, of: PhantomData }
    }
}

impl<T: Packable> Packed<T> {
    /// What was put in.
    ///
    /// # Panics
    /// Never: nobody else makes such bytes.
    #[must_use]
    #[expect(clippy::expect_used, reason = "the bytes are those that `from` has made")]
    pub fn open(&self) -> T {
        postcard::from_bytes(&self.bytes).expect("what was packed can be opened")
    }
}

impl<T> Clone for Packed<T> {
    fn clone(&self) -> Self {
        Self { bytes: self.bytes.clone(), of: PhantomData }
    }
}

impl<T> PartialEq for Packed<T> {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

/// A time in full, as two numbers.
pub(super) mod time {
    use jiff::Timestamp;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

    pub(in crate::facts) fn serialize<S: Serializer>(
        time: &Timestamp,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        (time.as_second(), time.subsec_nanosecond()).serialize(serializer)
    }

    pub(in crate::facts) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Timestamp, D::Error> {
        let (seconds, nanoseconds) = Deserialize::deserialize(deserializer)?;
        Timestamp::new(seconds, nanoseconds).map_err(de::Error::custom)
    }
}

/// The same, where there may be none.
pub(super) mod time_if_any {
    use jiff::Timestamp;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct Time(#[serde(with = "super::time")] Timestamp);

    #[expect(clippy::ref_option, reason = "serde wants it so")]
    pub(in crate::facts) fn serialize<S: Serializer>(
        time: &Option<Timestamp>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        time.map(Time).serialize(serializer)
    }

    pub(in crate::facts) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Timestamp>, D::Error> {
        Ok(Option::deserialize(deserializer)?.map(|Time(time)| time))
    }
}

/// A candidate's results: nearly all are copied from files of the same long name.
pub(super) mod results {
    use crate::evidence::Artifact;
    use crate::path::RESULTS_CSV;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(in crate::facts) fn serialize<S: Serializer>(
        results: &Artifact,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let Artifact { path, sha256, source } = results;
        let folder = source.strip_suffix(RESULTS_CSV);
        (path, sha256, folder.is_some(), folder.unwrap_or(source)).serialize(serializer)
    }

    pub(in crate::facts) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Artifact, D::Error> {
        let (path, sha256, is_folder, source) = Deserialize::deserialize(deserializer)?;
        let source: String = source;
        let source = if is_folder { source + RESULTS_CSV } else { source };
        Ok(Artifact { path, sha256, source })
    }
}

impl<T: Packable + fmt::Debug> fmt::Debug for Packed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.open().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bill::{Bill, Cost, Usage};
    use crate::event::Approval;
    use crate::evidence::{
        Artifact, Comparison, Completeness, Form, Grade, LostNumbers, Paired, Reason,
        Recommendation, Scored,
    };
    use crate::facts::Work;
    use crate::id::Sha256;
    use crate::num::Finite;
    use crate::path::RESULTS_CSV;
    use crate::role::Role;
    use jiff::Timestamp;
    use proptest::option::of;
    use proptest::prelude::*;

    fn finite() -> impl Strategy<Value = Finite> {
        any::<f64>().prop_filter_map("not finite", Finite::new)
    }

    fn time() -> impl Strategy<Value = Timestamp> {
        let all = Timestamp::MIN.as_nanosecond()..=Timestamp::MAX.as_nanosecond();
        all.prop_map(|nanos| Timestamp::from_nanosecond(nanos).expect("a time"))
    }

    fn columns() -> impl Strategy<Value = Vec<String>> {
        proptest::collection::vec(any::<String>(), 0..3)
    }

    fn reasons() -> impl Strategy<Value = Vec<Reason>> {
        let reason = prop_oneof![
            Just(Reason::PrimaryMetricRegressed),
            columns().prop_map(Reason::RiskRegressed),
            Just(Reason::NetImprovement),
            Just(Reason::InsufficientSignal),
        ];
        proptest::collection::vec(reason, 0..4)
    }

    prop_compose! {
        fn recommendation()(
            should_explore in any::<bool>(),
            grade in prop_oneof![Just(Grade::Strong), Just(Grade::Mixed), Just(Grade::Weak)],
            score in finite(),
            [positive_signals, negative_signals, metrics_used] in any::<[u32; 3]>(),
            reasons in reasons(),
        ) -> Recommendation {
            let counts = (positive_signals, negative_signals, metrics_used);
            let (positive_signals, negative_signals, metrics_used) = counts;
            Recommendation {
                should_explore, grade, score, positive_signals, negative_signals, metrics_used, reasons,
            }
        }
    }

    prop_compose! {
        fn paired()(
            [pairs, wins, losses] in any::<[u32; 3]>(),
            [mean_difference, low, high] in [finite(), finite(), finite()],
        ) -> Paired {
            Paired { pairs, mean_difference, wins, losses, low, high }
        }
    }

    prop_compose! {
        fn comparison()(
            [baseline_rows_used, candidate_rows_used] in any::<[u32; 2]>(),
            recommendation in recommendation(),
            primary_delta in of(finite()),
            paired in of(paired()),
        ) -> Comparison {
            Comparison { baseline_rows_used, candidate_rows_used, recommendation, primary_delta, paired }
        }
    }

    prop_compose! {
        fn scored()(
            [vs_parent, vs_root] in [comparison(), comparison()],
            [expected_count, ok_count, error_count] in any::<[u32; 3]>(),
            [ragged_rows, duplicate_ids, unknown_ids, rows] in any::<[u32; 4]>(),
            changed_invariants in columns(),
            lost in columns(),
            has_effect in any::<bool>(),
        ) -> Scored {
            let lost_numbers = lost.into_iter().map(|column| LostNumbers { column, rows }).collect();
            Scored {
                vs_parent,
                vs_root,
                completeness: Completeness { expected_count, ok_count, error_count },
                form: Form { ragged_rows, duplicate_ids, unknown_ids, changed_invariants, lost_numbers },
                has_effect,
            }
        }
    }

    prop_compose! {
        fn measured()(
            [started_at, at] in [time(), time()],
            implemented_at in of(time()),
            commit in "[0-9a-f]{40}|[0-9a-f]{64}",
            [files_changed, rounds, made_in] in any::<[u32; 3]>(),
            approval in prop_oneof![Just(Approval::Unreviewed), Just(Approval::LetThrough)],
            path in "artifacts/[a-z0-9._-]{1,20}x",
            sha256 in any::<[u8; 32]>(),
            source in prop_oneof![any::<String>(), Just(format!("eval/0001/{RESULTS_CSV}"))],
            scored in scored(),
        ) -> Measured {
            let commit = commit.parse().expect("a commit");
            let path = path.parse().expect("a path");
            Measured {
                work: Work { started_at, implemented_at, commit, files_changed, rounds, approval, made_in },
                results: Artifact { path, sha256: Sha256::from_bytes(sha256), source },
                scored,
                at,
            }
        }
    }

    prop_compose! {
        fn bill()(
            [calls, calls_without_price] in any::<[u32; 2]>(),
            [input, cached, output, cost, millis] in any::<[u64; 5]>(),
        ) -> Bill {
            let usage = Usage { input, cached, output };
            Bill { calls, calls_without_price, usage, cost: Cost::pico(cost), millis }
        }
    }

    fn bills() -> impl Strategy<Value = Bills> {
        let role = proptest::sample::select(&Role::ALL[..]);
        proptest::collection::vec((role, bill()), 0..4).prop_map(|all| {
            let mut bills = Bills::default();
            for (role, bill) in all {
                bills.add(role, bill);
            }
            bills
        })
    }

    proptest! {
        #[test]
        fn what_is_packed_comes_out_to_the_letter(
            measured in measured(),
            bills in proptest::collection::vec(bills(), 0..3),
        ) {
            let packed = Packed::from(&measured);
            prop_assert_eq!(packed.open(), measured.clone());
            prop_assert_eq!(&packed, &Packed::from(&measured));
            prop_assert_eq!(Packed::from(&bills).open(), bills);
        }
    }
}
