//! Where each rule is broken: under which protocols, in which worlds, and in how many of them.
//!
//! A rule that no row names is broken under `eiger`, in worlds as seeds draw them.

use ensue_types::Rule;
use std::fmt;

/// Seeds that are looked through, if no row says more, and where a rule is known to be hard to see.
const SEEDS: u64 = 25;
const SEEDS_OF_THE_HARD: u64 = 60;

/// What is added to worlds as seeds draw them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Worlds {
    Drawn,
    Losing,
    LosingDirectories,
    Joining,
    Retiring,
    /// In which the home of keys moves.
    MovingHomes,
    WildClocks,
    Replicas,
}

impl fmt::Display for Worlds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Worlds::Drawn => "",
            Worlds::Losing => "`--losing`",
            Worlds::LosingDirectories => "`--losing-directories`",
            Worlds::Joining => "`--joining`",
            Worlds::Retiring => "`--retiring`",
            Worlds::MovingHomes => "`--moving-homes`",
            Worlds::WildClocks => "`--wild-clocks`",
            Worlds::Replicas => "`--replicas`",
        })
    }
}

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) rule: Rule,
    pub(super) protocol: &'static str,
    pub(super) worlds: Worlds,
    /// Seeds that are looked through, at most.
    pub(super) seeds: u64,
}

/// All rows of a rule, one at least.
pub(super) fn places(rule: Rule) -> Vec<Place> {
    let named = ROWS.iter().filter(|row| row.rules.contains(&rule));
    let of_row = |row: &Row| {
        let (worlds, seeds) = (row.worlds, row.seeds);
        row.protocols.iter().map(move |protocol| Place { rule, protocol, worlds, seeds })
    };
    let mut places: Vec<Place> = named.flat_map(of_row).collect();
    if places.is_empty() {
        places.push(Place { rule, protocol: "eiger", worlds: Worlds::Drawn, seeds: SEEDS });
    }
    places
}

/// These rules under each of these protocols.
struct Row {
    worlds: Worlds,
    seeds: u64,
    protocols: &'static [&'static str],
    rules: &'static [Rule],
}

const ROWS: &[Row] = &[
    Row {
        worlds: Worlds::Drawn,
        seeds: SEEDS_OF_THE_HARD,
        protocols: &["eiger"],
        rules: &[
            Rule::RememberTheVote,
            Rule::TombstonesAreSeen,
            Rule::DeclareTheLost,
            Rule::CatchUpBeforeServing,
            Rule::PipelinedReadsAreOne,
            Rule::ForgottenMeansAgain,
            Rule::WhatIsAskedAnewIsForgotten,
            Rule::GoneAtTheDeadline,
            Rule::LostPartsHoldTheTime,
            Rule::KeepOldVersions,
            Rule::RefuseWhenFull,
            Rule::GiveTheVoteBack,
            Rule::ReportsAreOfThisLife,
            Rule::TheWitnessFollowsTheLog,
            Rule::MessagesWaitForTheirPast,
            Rule::ExecChecksWatches,
            Rule::WaitForThePastAtHome,
            Rule::PutsNameWhatTheyOverwrite,
            Rule::EndOnlyTheEarlier,
        ],
    },
    Row {
        worlds: Worlds::Drawn,
        seeds: SEEDS_OF_THE_HARD,
        protocols: &["eiger", "cure", "ha-pocc"],
        rules: &[Rule::NamesBringTheirPast],
    },
    Row {
        worlds: Worlds::Drawn,
        seeds: SEEDS,
        protocols: &["eiger", "eventual", "cure"],
        rules: &[Rule::RightsAreChecked, Rule::RightsCountOnce],
    },
    // Dependency lists.
    Row { worlds: Worlds::Drawn, seeds: SEEDS, protocols: &["log"], rules: &[Rule::OneStreamADatacenter] },
    Row {
        worlds: Worlds::Drawn,
        seeds: SEEDS,
        protocols: &["eiger", "cops", "cops-gt"],
        rules: &[
            Rule::WaitForDependencies,
            Rule::RememberReads,
            Rule::RememberWrites,
            Rule::FoldCoversAll,
            Rule::JoinKeepsBoth,
            Rule::DependOnWhatWasRead,
            Rule::DropWhatAllHave,
        ],
    },
    Row {
        worlds: Worlds::Drawn,
        seeds: SEEDS,
        protocols: &["eiger", "cops"],
        rules: &[Rule::CheckTheVeryOperation, Rule::AskTheOwner, Rule::LosersAreApplied, Rule::MergeWaits],
    },
    Row {
        worlds: Worlds::Drawn,
        seeds: SEEDS,
        protocols: &["eiger", "cops-gt"],
        rules: &[Rule::SecondRound, Rule::ReadAtEffectiveTime],
    },
    Row {
        worlds: Worlds::Drawn,
        seeds: SEEDS,
        protocols: &["cops", "cops-gt"],
        rules: &[Rule::NearestHoldsTheReads],
    },
    Row {
        worlds: Worlds::Drawn,
        seeds: SEEDS,
        protocols: &["cops-gt"],
        rules: &[Rule::AllDependenciesAreCarried, Rule::ForgetAfterTheReads, Rule::LateReadsBeginAgain],
    },
    Row {
        worlds: Worlds::Drawn,
        seeds: SEEDS,
        protocols: &["cops", "cops-gt", "orbe-dm", "orbe-clock"],
        rules: &[Rule::ResetKeepsTheWrite],
    },
    // Siblings and previous versions.
    Row {
        worlds: Worlds::Drawn,
        seeds: SEEDS,
        protocols: &["cops-cd"],
        rules: &[
            Rule::KeepSiblings,
            Rule::ReplaceEverySibling,
            Rule::FoldsIgnoreTheOrder,
            Rule::HandlersAreGivenAnOrder,
            Rule::CheckpointHoldsSiblings,
            Rule::ConflictsByThePrevious,
        ],
    },
    Row {
        worlds: Worlds::Drawn,
        seeds: SEEDS_OF_THE_HARD,
        protocols: &["cops-cd"],
        rules: &[Rule::FoldsAreReadWhole, Rule::ThePreviousIsADependency],
    },
    Row {
        worlds: Worlds::Drawn,
        seeds: SEEDS,
        protocols: &["orbe-dm", "orbe-clock"],
        rules: &[Rule::ApplyInTheOriginsOrder, Rule::ThePreviousIsADependency, Rule::ConflictsByThePrevious],
    },
    // Vectors of times.
    Row {
        worlds: Worlds::Drawn,
        seeds: SEEDS,
        protocols: &["cure"],
        rules: &[Rule::ChangesAreToldWhenSeen, Rule::WhatIsForgottenWasShown],
    },
    Row {
        worlds: Worlds::Drawn,
        seeds: SEEDS,
        protocols: &["cure", "pocc", "orbe-clock"],
        rules: &[Rule::ReadsWaitForThePast, Rule::HeartbeatsFollowEntries],
    },
    Row {
        worlds: Worlds::Drawn,
        seeds: SEEDS,
        protocols: &["cure", "pocc", "ha-pocc"],
        rules: &[Rule::CutsHoldWholePasts, Rule::ForgetWhatEveryViewShows],
    },
    Row {
        worlds: Worlds::Drawn,
        seeds: SEEDS,
        protocols: &["cure", "pocc", "ha-pocc", "orbe-clock"],
        rules: &[Rule::SnapshotsHoldTheSession],
    },
    Row {
        worlds: Worlds::Drawn,
        seeds: SEEDS,
        protocols: &["cure", "ha-pocc"],
        rules: &[Rule::StableIsTheLeast, Rule::RememberStable],
    },
    Row {
        worlds: Worlds::Drawn,
        seeds: SEEDS,
        protocols: &["cure", "pocc"],
        rules: &[Rule::FoldBelowEveryCut],
    },
    Row {
        worlds: Worlds::Drawn,
        seeds: SEEDS,
        protocols: &["cure"],
        rules: &[Rule::TellWhatTheLogProves, Rule::FlushesSettle],
    },
    Row {
        worlds: Worlds::Drawn,
        seeds: SEEDS,
        protocols: &["orbe-clock"],
        rules: &[Rule::FloorLeavesRoomForNewCuts],
    },
    Row {
        worlds: Worlds::Drawn,
        seeds: SEEDS,
        protocols: &["ha-pocc"],
        rules: &[
            Rule::OptimisticWritesHideUntilStable,
            Rule::FallbackForgets,
            Rule::PromotionJoinsBothPasts,
            Rule::StableSessionsReadWhatIsStable,
            Rule::WatchSeesAllOfItsDatacenter,
            Rule::WatchCountsWhatIsShown,
        ],
    },
    // Datacenters that failed permanently.
    Row {
        worlds: Worlds::Losing,
        seeds: SEEDS,
        protocols: &["eiger", "cure", "pocc"],
        rules: &[
            Rule::KeepForTheOthers,
            Rule::PassOnTheLast,
            Rule::DiscardWhatDependsOnLost,
            Rule::PartFromTheLost,
        ],
    },
    Row {
        worlds: Worlds::Losing,
        seeds: SEEDS,
        protocols: &["eiger", "pocc"],
        rules: &[Rule::RefuseTheLost, Rule::DecideWhenAllHaveTheEnd],
    },
    Row {
        worlds: Worlds::Losing,
        seeds: SEEDS,
        protocols: &["eiger"],
        rules: &[Rule::AwaitTheParts, Rule::DiscardNothingOfTheLiving, Rule::TheDeadStop],
    },
    Row {
        worlds: Worlds::LosingDirectories,
        seeds: SEEDS,
        protocols: &["cure"],
        rules: &[Rule::DoubtWhoFailedBeforeTheEnd],
    },
    // Where nothing waits for its past.
    Row {
        worlds: Worlds::Drawn,
        seeds: SEEDS_OF_THE_HARD,
        protocols: &["eventual"],
        rules: &[Rule::RemovedRowsStayRemoved],
    },
    // Directories.
    Row {
        worlds: Worlds::LosingDirectories,
        seeds: SEEDS,
        protocols: &["eiger"],
        rules: &[
            Rule::AskBeforeTheFirstServing,
            Rule::LeaveAForeignDirectory,
            Rule::NoticeAnOldCopy,
            Rule::HearWhatOthersHave,
            Rule::RecoverOnlyWhatCanBeHad,
            Rule::AskTheRightDirectory,
            Rule::LoseTailsTogether,
            Rule::HearAllBeforeLosing,
            Rule::HearAllBeforePromising,
            Rule::TakeBackTheDecision,
            Rule::RefuseThePeerAlone,
        ],
    },
    Row {
        worlds: Worlds::LosingDirectories,
        seeds: SEEDS_OF_THE_HARD,
        protocols: &["cops", "cure"],
        rules: &[Rule::CopyWhatIsDurable, Rule::KeepTombstonesForCopies],
    },
    Row {
        worlds: Worlds::Joining,
        seeds: SEEDS_OF_THE_HARD,
        protocols: &["cops", "cure"],
        rules: &[Rule::JoinWhenAllKnow, Rule::EndsAfterTheCopies, Rule::KeepWhatCopiesLack],
    },
    Row {
        worlds: Worlds::Retiring,
        seeds: SEEDS_OF_THE_HARD,
        protocols: &["cops", "cure"],
        rules: &[Rule::RetireWhenAllHaveIt, Rule::NothingIsLostWithTheRetired],
    },
    Row {
        worlds: Worlds::MovingHomes,
        seeds: SEEDS_OF_THE_HARD,
        protocols: &["cops", "cure"],
        rules: &[Rule::MoveHomeAfterItsWrites, Rule::TheFormerHomeStops],
    },
    Row {
        worlds: Worlds::Joining,
        seeds: SEEDS_OF_THE_HARD,
        protocols: &["eiger"],
        rules: &[Rule::FindPartsInCopies, Rule::CommitWhatCopiesHave, Rule::FillAllTogether],
    },
    // Clocks.
    Row {
        worlds: Worlds::WildClocks,
        seeds: SEEDS_OF_THE_HARD,
        protocols: &["eiger", "pocc"],
        rules: &[Rule::MostClocksDecide, Rule::ClocksThatAgreeStopNobody, Rule::NewTimesKeepTheOrder],
    },
    // Replicas.
    Row {
        worlds: Worlds::Replicas,
        seeds: SEEDS_OF_THE_HARD,
        protocols: &["eiger"],
        rules: &[
            Rule::OwnersAskTheOthers,
            Rule::OwnersBeginWithEverything,
            Rule::ReplicasSyncBeforeTheyAcknowledge,
            Rule::ReplicasWithoutPowerAreSuspended,
            Rule::TakeAwayWhatIsCommitted,
            Rule::HearOnlyTheOwner,
        ],
    },
    // Branches.
    Row {
        worlds: Worlds::Drawn,
        seeds: SEEDS,
        protocols: &["tardis"],
        rules: &[
            Rule::BranchesAreIsolated,
            Rule::ForksBeginChains,
            Rule::IdsAboveTheirParents,
            Rule::SerializabilityIsChecked,
            Rule::SnapshotIsolationIsChecked,
            Rule::BranchingIsBounded,
            Rule::MergesBringTheirBranches,
            Rule::MergesStayWhole,
            Rule::CommitsWaitForTheirParents,
            Rule::TheCollectedAreNoParents,
            Rule::EverySiteAgrees,
            Rule::KeepWhatOthersLack,
            Rule::CeilingsWaitForReaders,
            Rule::RunningHoldsItsState,
            Rule::ForkPointsStay,
            Rule::WriteSetsArePromoted,
            Rule::VersionsKeepTheirIds,
            Rule::EqualMergesAreOne,
            Rule::EveryForkPointCounts,
            Rule::ReadingMovesTheAnchor,
        ],
    },
    Row {
        worlds: Worlds::Losing,
        seeds: SEEDS,
        protocols: &["tardis"],
        rules: &[Rule::WhatCameFromTheLostGoes],
    },
];

/// Tests that break a rule and see it.
pub(super) fn tests(rule: Rule) -> Option<&'static str> {
    Some(match rule {
        Rule::GiveTheVoteBack => "crates/ensue-node/src/partition/tests/votes.rs",
        Rule::ReportsAreOfThisLife => "crates/ensue-node/src/partition/tests/collecting.rs",
        Rule::WhatIsForgottenWasShown => "crates/ensue-node/src/partition/tests/forgetting.rs",
        Rule::CopyWhatIsDurable | Rule::KeepTombstonesForCopies => {
            "crates/ensue-node/src/partition/tests/copies.rs"
        }
        Rule::WaitAtHomeOnlyWhileHeard | Rule::PutBackWhatNobodyHears => {
            "crates/ensue-node/src/session/tests/homes_waited_at.rs"
        }
        Rule::JoinWhenAllKnow
        | Rule::EndsAfterTheCopies
        | Rule::KeepWhatCopiesLack
        | Rule::FillAllTogether => "crates/ensue-node/src/partition/tests/growing.rs",
        Rule::FindPartsInCopies | Rule::CommitWhatCopiesHave => {
            "crates/ensue-node/src/partition/tests/filled.rs"
        }
        Rule::RetireWhenAllHaveIt | Rule::NothingIsLostWithTheRetired => {
            "crates/ensue-node/src/partition/tests/retiring.rs"
        }
        Rule::MoveHomeAfterItsWrites | Rule::TheFormerHomeStops => {
            "crates/ensue-node/src/partition/tests/moving.rs"
        }
        Rule::ExecuteHomeRequestsOnce | Rule::WaitForThePastAtHome => {
            "crates/ensue-node/src/session/tests/homes_serving.rs"
        }
        Rule::HomeCommandsRunAtHome => "crates/ensue-node/src/session/tests/homes.rs",
        Rule::NamesBringTheirPast => "crates/ensue-node/src/session/tests/shared.rs",
        Rule::MessagesWaitForTheirPast => "crates/ensue-node/src/session/tests/pubsub.rs",
        Rule::ApplyOnce => "crates/ensue-node/src/partition/tests.rs",
        Rule::RememberReceivedPosition => "crates/ensue-exhaust/tests/exhaustive.rs",
        Rule::TickPastPromises => "crates/ensue-sim/src/cli/breaks/tests.rs",
        Rule::HearOnlyTheOwner => "crates/ensue-node/src/node/tests.rs",
        Rule::OwnersAskTheOthers
        | Rule::OwnersBeginWithEverything
        | Rule::ReplicasSyncBeforeTheyAcknowledge
        | Rule::ReplicasWithoutPowerAreSuspended
        | Rule::TakeAwayWhatIsCommitted => "crates/ensue-replica/src/sim/tests.rs",
        _ => return None,
    })
}

/// Why no seed of a row shows it.
pub(super) fn why_unseen(rule: Rule) -> Option<&'static str> {
    Some(match rule {
        Rule::KeepOldVersions => {
            "a read that does not find its version starts again, and is correct; it lasts longer"
        }
        Rule::RefuseWhenFull => {
            "what is refused here would fail a moment later, when the disk says that it is full"
        }
        Rule::GiveTheVoteBack => "it takes a lost tail and a coordinator that begins anew at once",
        Rule::ReportsAreOfThisLife => {
            "it takes a datacenter that reports, loses the tail that it had reported, and gets parts back"
        }
        Rule::CopyWhatIsDurable => "it takes a donor that loses its power between the copy and its next sync",
        Rule::KeepTombstonesForCopies => {
            "it takes a tombstone that is collected between the beginning of a copy and its own row"
        }
        Rule::FillAllTogether => {
            "no seed loses the directories of single partitions where transactions span several"
        }
        Rule::FlushesSettle => "a flush that stays beside versions hides the same; it only takes memory",
        Rule::TellWhatTheLogProves => {
            "it takes a datacenter that restarts alone behind a token from elsewhere"
        }
        Rule::WhatIsForgottenWasShown => {
            "it takes a token that is faster than the news, within a datacenter, that its past is stable"
        }
        Rule::HearOnlyTheOwner => "it takes a slow link, and an owner that changes meanwhile",
        Rule::WatchSeesAllOfItsDatacenter => {
            "it takes a session that fell back, and a write that becomes stable between its WATCH and its EXEC"
        }
        Rule::WatchCountsWhatIsShown => "the oracle judges watched keys that one datacenter alone writes",
        Rule::StableSessionsReadWhatIsStable => "no two clients of a seed share a name at one time",
        Rule::DiscardNothingOfTheLiving => "no seed has a survivor lose its power beside a lost datacenter",
        Rule::TheDeadStop => "no seed declares a datacenter dead that lives on",
        Rule::ApplyInTheOriginsOrder => {
            "causality does not rest on it here: a dependency names all through a position, which is known exactly"
        }
        Rule::AllDependenciesAreCarried
        | Rule::SecondRound
        | Rule::ReadAtEffectiveTime
        | Rule::LateReadsBeginAgain
        | Rule::ForgetAfterTheReads => {
            "in `cops-gt`, which has no write transactions, it takes two writes, or three, between the rounds of a read"
        }
        Rule::DropWhatAllHave => "in `cops-gt` what is dropped has been globally stable for a while",
        Rule::FoldBelowEveryCut => {
            "a part of a snapshot that finds its versions collected says so, and the snapshot is read again"
        }
        Rule::ReadsWaitForThePast => {
            "in `cure` what a session has seen was stable, so received everywhere in its datacenter; \
             in `orbe-clock` two parts of one snapshot must be read with an arrival in between"
        }
        Rule::HeartbeatsFollowEntries => {
            "in `orbe-clock` two parts of one snapshot must be read with an arrival in between"
        }
        Rule::FloorLeavesRoomForNewCuts => {
            "a snapshot whose versions are collected is read in two rounds, which is correct; `late_cuts` counts it"
        }
        Rule::PromotionJoinsBothPasts => "the oracle takes a session that fell back for a new one",
        Rule::ConflictsByThePrevious => "it decides what is counted as a conflict; no answer depends on it",
        Rule::ThePreviousIsADependency => {
            "in the two Orbes it decides what is counted as a conflict, and the last writer wins"
        }
        _ => return None,
    })
}
