//! Packed evals of a closed depth: postcard bytes that restore the exact evals. The bytes stay in
//! memory and are never written to disk.

use super::Eval;
use std::fmt;

/// Evals in compact form.
#[derive(Clone, PartialEq)]
pub(super) struct PackedEvals {
    bytes: Box<[u8]>,
    /// End of each eval in `bytes`.
    ends: Box<[usize]>,
}

impl PackedEvals {
    #[expect(
        clippy::expect_used,
        reason = "it fails for types that say not how long they are, and for nothing else"
    )]
    pub(super) fn from_evals(evals: impl Iterator<Item = Eval>) -> Self {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for eval in evals {
            bytes = postcard::to_extend(&eval, bytes).expect("every type in it can be packed");
            ends.push(bytes.len());
        }
        Self { bytes: bytes.into(), ends: ends.into() }
    }

    /// Returns the number of evals.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Unpacks the eval at an index, counted from 0.
    #[expect(clippy::expect_used, reason = "the bytes are those that `of` has made")]
    pub(super) fn get(&self, at: usize) -> Option<Eval> {
        let start = at.checked_sub(1).and_then(|before| self.ends.get(before));
        let bytes = self.bytes.get(start.copied().unwrap_or_default()..*self.ends.get(at)?)?;
        Some(postcard::from_bytes(bytes).expect("what was packed can be opened"))
    }

    /// Unpacks all evals, in order.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = Eval> + Clone {
        (0..self.len()).filter_map(|at| self.get(at))
    }
}

/// Serialises a time exactly, as two numbers.
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

/// Serialises an optional time exactly.
pub(super) mod time_if_any {
    use jiff::Timestamp;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct PackedTime(#[serde(with = "super::time")] Timestamp);

    #[expect(clippy::ref_option, reason = "serde wants it so")]
    pub(in crate::facts) fn serialize<S: Serializer>(
        time: &Option<Timestamp>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        time.map(PackedTime).serialize(serializer)
    }

    pub(in crate::facts) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Timestamp>, D::Error> {
        Ok(Option::deserialize(deserializer)?.map(|PackedTime(time)| time))
    }
}

/// Serialises a candidate's results: nearly all are copied from files with the same long name.
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

impl fmt::Debug for PackedEvals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bill::{AgentBill, Cost, RoleBills, TokenUsage};
    use crate::event::{
        Approval, BudgetKind, EvalFailure, EvalStage, FailureKind, Idea, SweepSubject,
    };
    use crate::evidence::{
        Artifact, CandidateScore, Comparison, Grade, LostNumbers, PairedDifference, PrimaryMeans,
        Recommendation, RecommendationReason, ResultsForm, SweepCompleteness,
    };
    use crate::facts::{Candidate, CandidateFate, ScoredCandidate, Stage, StoredVerdict};
    use crate::gate::{GateCheck, GateLimits, GateRule, GateVerdict};
    use crate::group::EvalGroup;
    use crate::id::{Depth, EvalId, GitTree, NodeId, Sha256};
    use crate::num::Finite;
    use crate::path::RESULTS_CSV;
    use crate::policy::FixedSettings;
    use crate::role::AgentRole;
    use crate::rules_version::RulesVersion;
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

    fn reasons() -> impl Strategy<Value = Vec<RecommendationReason>> {
        let reason = prop_oneof![
            Just(RecommendationReason::PrimaryMetricRegressed),
            columns().prop_map(RecommendationReason::RiskRegressed),
            Just(RecommendationReason::NetImprovement),
            Just(RecommendationReason::InsufficientSignal),
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
        ) -> PairedDifference {
            PairedDifference { pairs, mean_difference, wins, losses, low, high }
        }
    }

    prop_compose! {
        fn comparison()(
            [baseline_rows_used, candidate_rows_used] in any::<[u32; 2]>(),
            recommendation in recommendation(),
            primary_delta in of(finite()),
            paired in of(paired()),
            means in of([finite(), finite()]),
        ) -> Comparison {
            let means = means.map(|[baseline, candidate]| PrimaryMeans { baseline, candidate });
            Comparison {
                baseline_rows_used,
                candidate_rows_used,
                recommendation,
                primary_delta,
                paired,
                primary_means: means,
            }
        }
    }

    prop_compose! {
        fn scored()(
            [vs_parent, vs_root] in [comparison(), comparison()],
            [expected_count, ok_count, error_count] in any::<[u32; 3]>(),
            [ragged_rows, duplicate_ids, unknown_ids, rows] in any::<[u32; 4]>(),
            changed_invariants in columns(),
            lost in columns(),
            [missing_columns, repeated_ids] in [columns(), columns()],
            ragged_lines in proptest::collection::vec(any::<u64>(), 0..3),
            [has_effect, is_latest] in any::<[bool; 2]>(),
        ) -> CandidateScore {
            let lost_numbers = lost.into_iter().map(|column| LostNumbers { column, rows }).collect();
            CandidateScore {
                vs_parent,
                vs_root,
                completeness: SweepCompleteness { expected_count, ok_count, error_count },
                form: ResultsForm {
                    ragged_rows,
                    duplicate_ids,
                    unknown_ids,
                    changed_invariants,
                    lost_numbers,
                    missing_columns,
                    ragged_lines,
                    repeated_ids,
                },
                has_effect,
                rules_version: if is_latest { RulesVersion::LATEST } else { RulesVersion::First },
            }
        }
    }

    prop_compose! {
        fn bill()(
            [calls, calls_without_price] in any::<[u32; 2]>(),
            [input, cached, output, cost, millis] in any::<[u64; 5]>(),
        ) -> AgentBill {
            let usage = TokenUsage { input, cached, output };
            AgentBill { calls, calls_without_price, usage, cost: Cost::from_pico_dollars(cost), millis }
        }
    }

    fn bills() -> impl Strategy<Value = RoleBills> {
        let role = proptest::sample::select(&AgentRole::ALL[..]);
        proptest::collection::vec((role, bill()), 0..4).prop_map(|all| {
            let mut bills = RoleBills::default();
            for (role, bill) in all {
                bills.add(role, bill);
            }
            bills
        })
    }

    prop_compose! {
        fn work()(
            [started_at, implemented] in [time(), time()],
            is_known in any::<bool>(),
            commit in "[0-9a-f]{40}|[0-9a-f]{64}",
            [files_changed, rounds, made_in, twin] in any::<[u32; 4]>(),
            tree in of("[0-9a-f]{40}|[0-9a-f]{64}"),
            approval in prop_oneof![Just(Approval::Unreviewed), Just(Approval::LetThrough)],
        ) -> Candidate {
            let commit = commit.parse().expect("a commit");
            let implemented_at = is_known.then_some(implemented);
            let tree = tree.map(|name| name.parse::<GitTree>().expect("a tree"));
            let same_code_as = is_known.then_some(SweepSubject::Eval(EvalId::new(twin)));
            Candidate {
                started_at,
                implemented_at,
                commit,
                files_changed,
                rounds,
                approval,
                made_in,
                tree,
                same_code_as,
            }
        }
    }

    prop_compose! {
        fn artifact()(
            path in "artifacts/[a-z0-9._-]{1,20}x",
            sha256 in any::<[u8; 32]>(),
            source in prop_oneof![any::<String>(), Just(format!("eval/0001/{RESULTS_CSV}"))],
        ) -> Artifact {
            Artifact { path: path.parse().expect("a path"), sha256: Sha256::from_bytes(sha256), source }
        }
    }

    prop_compose! {
        fn measured()(
            (work, results, scored, at) in (work(), artifact(), scored(), time()),
        ) -> Box<ScoredCandidate> {
            Box::new(ScoredCandidate { work, results, scored, at })
        }
    }

    prop_compose! {
        fn idea()(
            path in "node_ideas/[a-z0-9._-]{1,20}x",
            [sha256, fingerprint] in any::<[[u8; 32]; 2]>(),
            title in any::<String>(),
            turn in of(any::<u32>()),
        ) -> Idea {
            let [sha256, fingerprint] = [sha256, fingerprint].map(Sha256::from_bytes);
            Idea { path: path.parse().expect("a path"), sha256, fingerprint, title, turn }
        }
    }

    fn failure() -> impl Strategy<Value = EvalFailure> {
        any::<String>().prop_map(|message| {
            let (stage, kind) = (EvalStage::Sweep, FailureKind::Inputs);
            EvalFailure { stage, kind, message }
        })
    }

    prop_compose! {
        fn verdict()(rank_score in of(finite()), figures in any::<String>()) -> Box<GateVerdict> {
            let checks = vec![GateCheck { rule: GateRule::Completed, passed: false, figures }];
            Box::new(GateVerdict { checks, rank_score })
        }
    }

    fn word() -> impl Strategy<Value = StoredVerdict> {
        let derived = any::<bool>().prop_map(|passed| {
            let rules = GateLimits::from_settings(&FixedSettings::default());
            StoredVerdict::Derived { rules, passed }
        });
        prop_oneof![derived, verdict().prop_map(StoredVerdict::Recorded)]
    }

    fn fate() -> impl Strategy<Value = CandidateFate> {
        let promoted = any::<u32>().prop_map(|node| CandidateFate::Promoted(NodeId::new(node)));
        prop_oneof![Just(CandidateFate::Dropped), Just(CandidateFate::Chosen), promoted]
    }

    /// Generates every stage.
    fn stage() -> impl Strategy<Value = Stage> {
        let failed =
            (time(), of(work()), failure(), time()).prop_map(|(started_at, work, failure, at)| {
                let (work, failure) = (work.map(Box::new), Box::new(failure));
                Stage::Failed { started_at, work, failure, at }
            });
        let unfinished = of(time()).prop_map(|started_at| {
            let budget = BudgetKind::Deadline;
            Stage::Unfinished { started_at, budget }
        });
        let superseded = (measured(), any::<u32>());
        prop_oneof![
            Just(Stage::Queued),
            time().prop_map(Stage::Implementing),
            work().prop_map(|work| Stage::Implemented(Box::new(work))),
            work().prop_map(|work| Stage::Sweeping(Box::new(work))),
            (work(), artifact())
                .prop_map(|(work, results)| Stage::Swept(Box::new(work), Box::new(results))),
            measured().prop_map(Stage::Scored),
            (measured(), word(), fate())
                .prop_map(|(measured, word, fate)| Stage::Decided(measured, word, fate)),
            failed,
            unfinished,
            superseded.prop_map(|(measured, by)| Stage::Superseded(measured, EvalId::new(by))),
            Just(Stage::SetAside),
        ]
    }

    prop_compose! {
        fn eval()(
            [id, parent, depth, attempt] in any::<[u32; 4]>(),
            group in prop_oneof![Just(EvalGroup::Tree), Just(EvalGroup::Control)],
            idea in idea(),
            failures in proptest::collection::vec(failure(), 0..3),
            again in of(work()),
            bills in proptest::collection::vec(bills(), 0..3),
            queued_at in time(),
            stage in stage(),
        ) -> Eval {
            let (id, parent, depth) = (EvalId::new(id), NodeId::new(parent), Depth(depth));
            let again = again.map(Box::new);
            Eval { id, parent, group, depth, idea, attempt, failures, again, bills, queued_at, stage }
        }
    }

    proptest! {
        #[test]
        fn what_is_packed_comes_out_to_the_letter(evals in proptest::collection::vec(eval(), 0..4)) {
            let packed = PackedEvals::from_evals(evals.iter().cloned());
            prop_assert_eq!(packed.len(), evals.len());
            prop_assert!(packed.iter().eq(evals.iter().cloned()));
            prop_assert_eq!(packed.get(0), evals.first().cloned());
            prop_assert_eq!(packed.get(evals.len()), None);
            prop_assert_eq!(&packed, &PackedEvals::from_evals(evals.into_iter()));
        }
    }
}
