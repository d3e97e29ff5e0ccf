//! The rules of the protocols by name, so that the simulator can break one and show the anomaly that follows.
//!
//! `rule.holds()` stands where the rule is kept, and is compiled to nothing but with the feature `breakable`. With it,
//! a thread can break one rule: that of a simulated world, or of a server under torture that must fail. No build for
//! use has it.

use std::cell::Cell;
use std::marker::PhantomData;

/// Declares the rules once, as an enum and as a list.
macro_rules! rules {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// One rule. The doc says what the code does while the rule holds, and where it comes from: a section of the
        /// Eiger paper, or the number of a trap.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule {
            $($(#[$doc])* $name,)*
        }

        impl Rule {
            pub const ALL: [Rule; [$(Rule::$name),*].len()] = [$(Rule::$name),*];
        }
    };
}

rules! {
    /// A replicated write waits until its dependencies are applied (Eiger 3.1).
    WaitForDependencies,
    /// A dependency check asks for the very operation, not for "a position at least as high" (trap 1).
    CheckTheVeryOperation,
    /// What is asked anew under a number is asked once: what was waited for before under that number does not count
    /// (trap 13).
    WhatIsAskedAnewIsForgotten,
    /// Who changes a bounded counter spends rights that it has, and is refused without (trap 67).
    RightsAreChecked,
    /// Rights that another datacenter gave count once, whoever tells of them (trap 67).
    RightsCountOnce,
    /// The losing side of arbitration is discarded (Eiger 3.3).
    LastWriterWins,
    /// A write's stamp is above its session's whole past.
    StampAboveThePast,
    /// A clock ticks past every latest valid time that it handed out (trap 4).
    TickPastPromises,
    /// The coordinator decides only when every participant has voted (Eiger 5.2).
    DecideAfterEveryVote,
    /// The coordinator of a replicated transaction waits until every part has arrived (Eiger 5.3; trap 63).
    WaitForEveryPart,
    /// What meets an undecided transaction is not answered as if it were not there: its coordinator is asked first
    /// (Eiger 5.4; trap 61).
    PendingAnswersNothing,
    /// A second round asks the coordinator about every undecided transaction that may come before its time (5.4).
    AskTheCoordinator,
    /// A coordinator that says "not committed at t" never commits at or before t (trap 4).
    KeepTheDenial,
    /// A decision that a coordinator found in its log may have been announced, and seen, before it restarted: readers
    /// wait until it is announced again (decision 40).
    FoundDecisionsMayBeKnown,
    /// A read passes over a transaction that nobody has seen only if all that it reads was valid before that commits:
    /// several rows are read as of one time (decision 40).
    PassOverOnlyFromBefore,
    /// A read transaction whose first round shares no logical time reads again (Eiger 4.2).
    SecondRound,
    /// A second round reads at the effective time, or what the first has named, not the newest value (Eiger 4.2; COPS
    /// 4.6).
    ReadAtEffectiveTime,
    /// Versions overwritten since a first round are kept for the second (Eiger 4.3).
    KeepOldVersions,
    /// A participant that voted remembers it after a crash (trap 17).
    RememberTheVote,
    /// A logged transaction is completed after its coordinator's crash (trap 17).
    CompleteAfterCrash,
    /// A replicated entry is applied once (trap 12).
    ApplyOnce,
    /// The receiver's position is durable with what it received (trap 12).
    RememberReceivedPosition,
    /// Outputs leave only after the log records that they rest on.
    OutputsAfterLog,
    /// A sender keeps entries until every datacenter has synced them.
    KeepUntilSynced,
    /// A tombstone stays until no older write can arrive (trap 14).
    KeepTombstones,
    /// A read adds what it saw to the session's context (Eiger 3.2).
    RememberReads,
    /// A write adds itself to the session's context (Eiger 3.2).
    RememberWrites,
    /// A counter carries one dependency for each datacenter that added to it (Eiger 3.3).
    CounterDependencies,
    /// A base value subtracts the additions that it saw.
    BaseCoversSeenAdditions,
    /// A token shown in another datacenter waits for the past that it carries (trap 13).
    MergeWaits,
    /// What is published is handed out in a datacenter when its publisher's past is visible to new sessions there.
    MessagesWaitForTheirPast,
    /// Who caches what was read is told of another datacenter's write when readers see it (decision 37).
    ChangesAreToldWhenSeen,
    /// Who reads a write of which it is forgotten what it carries takes over its stamp as the time of every datacenter:
    /// what it carried had lower ones.
    WhatIsForgottenWasShown,
    /// EXEC does nothing if a key that it watches has changed in its datacenter.
    ExecChecksWatches,
    /// Nobody hears what the former owner of a replicated partition said once another one is known (decision 50).
    HearOnlyTheOwner,
    /// What a session watches that does not see all that its datacenter wrote there has changed (decision 34).
    WatchSeesAllOfItsDatacenter,
    /// What another datacenter has written, and was hidden when a key was watched, counts as a change when it is shown.
    WatchCountsWhatIsShown,
    /// Commands on keys with a home run there, wherever their client is (decision 33).
    HomeCommandsRunAtHome,
    /// A request that reaches its home again after a reconnect is not executed a second time (decision 33).
    ExecuteHomeRequestsOnce,
    /// A home executes a request when the past of its session is visible there (decision 33).
    WaitForThePastAtHome,
    /// After a command at a home its session goes on here when what it did there is visible here (decision 33).
    WaitForWhatHappenedAtHome,
    /// What waits at a home for a session elsewhere stops waiting when that cannot be told what was popped (decision
    /// 51).
    WaitAtHomeOnlyWhileHeard,
    /// A home that moves begins at its new place when that has applied, and shows, all that former homes executed
    /// (decision 56).
    MoveHomeAfterItsWrites,
    /// A home that has begun to move executes nothing any more at its old place.
    TheFormerHomeStops,
    /// What was popped at a home for a session that has gone meanwhile is put back (decision 51).
    PutBackWhatNobodyHears,
    /// The clock never shows a time again after a restart (trap 30).
    ClockAheadOfRestart,
    /// A delete of a column that is gone still carries what it saw (trap 18).
    TombstonesAreSeen,
    /// Changes to one row take effect in logical-time order, behind undecided transactions that may come before.
    RowsInTimeOrder,

    // A lost tail.
    /// A partition that lost its tail takes back what the others have of it before it goes on (trap 15).
    TakeBackTheTail,
    /// A decision that comes back with a lost tail is the decision of the transaction that was begun here under the
    /// name that it carries: nothing is decided a second time.
    TakeBackTheDecision,
    /// Those who wait for an operation that was declared lost wait no longer (trap 15).
    DeclareTheLost,
    /// A decision is durable before any participant hears of it, whatever `appendfsync` says (trap 17).
    SyncTheDecision,
    /// A partition that lost its tail shows nothing before it has again whatever it may have shown of the others (trap
    /// 15).
    CatchUpBeforeServing,
    /// A participant that lost its part of a decided transaction gets it back from the coordinator (trap 17).
    GiveThePartBack,
    /// A vote for a replicated transaction whose coordinator waits again for what it depends on is given back: the part
    /// would stand before that in its rows (trap 17).
    GiveTheVoteBack,
    /// While parts that were lost may be given back, at the times of their decisions, no time is said to be over and
    /// nothing is collected (traps 14 and 17).
    LostPartsHoldTheTime,

    // Directories.
    /// A datacenter that starts with an empty directory serves nothing before the others have said that it has not lost
    /// an earlier one, or before it has all of that again.
    AskBeforeTheFirstServing,
    /// A partition that all others know on another directory, two at least, does not serve the one that it runs on.
    LeaveAForeignDirectory,
    /// A datacenter whose own stream ends before what others have received of it writes nothing more.
    NoticeAnOldCopy,
    /// While a datacenter is away that, as another one says, has received more of this one's stream than there is here,
    /// nothing is exchanged with who says so.
    HearWhatOthersHave,
    /// A log that lost its end goes on only if the others can still send all that it lacks.
    RecoverOnlyWhatCanBeHad,
    /// What a datacenter has of a lost tail is asked of the directory that is known to be its own: another one in its
    /// place has nothing, which says nothing of what the right one has.
    AskTheRightDirectory,
    /// When one partition of a datacenter has lost the end of its log, the others end their incarnations, too: they may
    /// have lost entries that nobody has received.
    LoseTailsTogether,
    /// They do so only when every other datacenter has said how much it has: what one of them has is taken back.
    HearAllBeforeLosing,
    /// A partition that has started sends nothing that it wrote since, and promises no time, while somebody who can be
    /// reached has not said how much of its stream it has: the directory may be an old copy.
    HearAllBeforePromising,
    /// What a datacenter requests or claims without ground ends the exchange with it, and stops nobody else.
    RefuseThePeerAlone,
    /// The last part of a copy for an empty directory leaves when the donor's log is durable up to all that it holds.
    CopyWhatIsDurable,
    /// While a copy is made, nothing is collected of what it may bring again.
    KeepTombstonesForCopies,
    /// The log keeps what a datacenter has received and not applied: a copy that it gives lacks that.
    KeepWhatCopiesLack,
    /// A datacenter that is added writes nothing before every core of all others knows of it.
    JoinWhenAllKnow,
    /// A datacenter that is removed says that its streams are complete when every other one has applied them durably.
    RetireWhenAllHaveIt,
    /// Nothing is lost with a datacenter that was removed: no time of it is one that may have been lost (decision 53).
    NothingIsLostWithTheRetired,
    /// Where streams end, up to which a directory that was empty is filled before it is served, counts from when all
    /// its partitions have their copies.
    EndsAfterTheCopies,
    /// In a directory that is filled, the coordinator of a replicated transaction asks for parts that do not come: they
    /// may be in the copies of their partitions.
    FindPartsInCopies,
    /// A part that comes to a directory that is filled is committed when its coordinator's copy has the transaction.
    CommitWhatCopiesHave,
    /// Where write transactions span partitions, a copy is taken when all partitions of the datacenter take one.
    FillAllTogether,

    // Dependencies and contexts.
    /// A dependency on another partition is checked with the owner of that partition in this datacenter (Eiger 3.1).
    AskTheOwner,
    /// A write that lost arbitration counts as applied, so that checks for it end (trap 60).
    LosersAreApplied,
    /// A dependency is dropped only when every datacenter has durably applied it (trap 29).
    DropWhatAllHave,
    /// A context above its bound folds into watermarks that cover all of it.
    FoldCoversAll,
    /// Joined pasts keep what both had.
    JoinKeepsBoth,
    /// A write that reads to write depends on what it read, beside its session's past.
    DependOnWhatWasRead,
    /// The entry that names a write transaction carries its session's past (Eiger 3.2).
    TransactionsCarryThePast,
    /// The past of a token becomes the session's, so that its later writes carry it (trap 13).
    TokenBecomesPast,
    /// What is kept under the name of a session becomes the past of a connection that uses the name (trap 13).
    NamesBringTheirPast,
    /// A token from too far ahead of this machine's clock is refused (trap 31).
    RefuseFarTokens,
    /// A token that names what its own datacenter has never issued is refused: whoever followed it would be invisible
    /// elsewhere.
    RefuseWhatWasNeverIssued,
    /// A datacenter takes itself to be ahead only if most clocks say so, not because one does, which may be behind
    /// (trap 31).
    MostClocksDecide,
    /// Whose own clock agrees with those of others nearly, and whose time it believes, was drawn ahead by somebody
    /// else: the others believe it in a moment, and no write is refused (decision 18).
    ClocksThatAgreeStopNobody,
    /// The times that a datacenter gets in the place of those that were too far ahead are in the same order (decision
    /// 18).
    NewTimesKeepTheOrder,

    // Reads.
    /// A share that answered without a value is always read again (trap 61).
    PendingIsReadAgain,
    /// The effective time is at or above every earliest valid time of the first round (Eiger 4.2).
    EffectiveTimeCoversAll,
    /// A latest valid time equal to the highest earliest one will do as effective time (trap 62).
    EqualTimesWillDo,
    /// A second round whose moment is forgotten starts again; it never gets the newest value instead (trap 6).
    ForgottenMeansAgain,
    /// Pipelined reads over several owners are of one moment (decision 8).
    PipelinedReadsAreOne,

    // Write transactions.
    /// The commit time is above the clock of every vote (trap 4).
    CommitAboveEveryVote,
    /// A replicated part shows only at the time that its coordinator decided (trap 5).
    PartsWaitForTheDecision,
    /// The write set is logged before any participant hears of it (trap 17).
    LogBeforeAsking,
    /// A participant prepares once, however often it is asked (trap 17).
    PrepareOnce,
    /// A participant that has executed its part says so again when it is told again (trap 17).
    TellAgainWhatIsDone,
    /// What was asked over a broken connection is asked again when it is back (traps 13, 17).
    AskAgain,

    // Replicas.
    /// An owner says nothing before a majority has heard of it since (Raft, section 8).
    OwnersAskTheOthers,
    /// An owner begins when everything of earlier owners is carried out.
    OwnersBeginWithEverything,
    /// Under `always` a replica acknowledges what is durable.
    ReplicasSyncBeforeTheyAcknowledge,
    /// A replica whose power failed does not count before a leader has made it whole.
    ReplicasWithoutPowerAreSuspended,
    /// What takes bytes away is carried out when it is committed.
    TakeAwayWhatIsCommitted,

    // Values.
    /// Who reads below a flush that not every datacenter knows of has seen it.
    FlushesAreSeen,
    /// Equal times are ordered by datacenter, then partition, the same everywhere (trap 26).
    TiesByDatacenter,
    /// A counter's epoch ends with the delete that covers it.
    SeriesEndsWithItsDelete,
    /// A new value covers the additions of deletes that are forgotten here.
    CoverForgottenAdditions,
    /// A row is gone from its deadline on.
    GoneAtTheDeadline,
    /// A removal ends what it had observed, also what arrives after it (decision 27).
    RemovalsEndWhatTheySaw,
    /// A removal of all columns of a row ends what it had observed of them also where that comes later (decision 27).
    RemovedRowsStayRemoved,
    /// A removal ends nothing but what it had observed, whatever the stamps (decision 27).
    RemovalsSpareTheConcurrent,
    /// A put that lost by its stamp is kept while a removal may come that had seen only the winner (decision 27).
    KeepUndominatedPuts,
    /// A put names what it overwrites of other datacenters, and ends that for good (decision 27).
    PutsNameWhatTheyOverwrite,
    /// A part of a transaction that was lost and is evaluated again ends nothing that has a higher stamp than it: that
    /// came after its decision (decision 27).
    EndOnlyTheEarlier,
    /// What is not shown is forgotten when the views of every datacenter show it, not when it is applied there
    /// (decision 27).
    ForgetWhatEveryViewShows,
    /// A flush hides older writes that arrive after it (decision 5).
    FlushHidesLateWrites,
    /// A flush that is settled hides what is settled, and what is settled later, from below it.
    FlushesSettle,

    // Streams and forgetting.
    /// A stream goes on where its receiver says that it stopped.
    ResumeWhereItStopped,
    /// A tombstone also waits here until the older writes of the others have come (trap 14).
    CatchUpBeforeCollecting,
    /// What a datacenter reported before it lost its tail collects no tombstone (trap 14).
    ReportsAreOfThisLife,

    // Nearest dependencies, and one stream.
    /// A write depends on everything that was read since its session's last write, and on that write (COPS 4.3).
    NearestHoldsTheReads,
    /// A write carries all that it depends on, the nearest marked, and a read passes it on (COPS 4.3).
    AllDependenciesAreCarried,
    /// Dependencies are forgotten only when no read transaction runs any more that may need them (COPS 5.1; trap 7).
    ForgetAfterTheReads,
    /// A read transaction whose first round took too long starts again, whatever it found (COPS 5.1).
    LateReadsBeginAgain,
    /// All that a datacenter writes is one stream (COPS 6.4).
    OneStreamADatacenter,

    // Matrices.
    /// After a write the matrix, or the nearest dependencies, hold that write (Orbe 3.2; COPS 4.3).
    ResetKeepsTheWrite,
    /// A write is applied after everything before it in its origin's stream (Orbe 3.2).
    ApplyInTheOriginsOrder,

    // Previous versions.
    /// What a write replaces is compared with what it replaced at its writer (Orbe 3.4).
    ConflictsByThePrevious,
    /// A write waits for what it replaced at its writer (COPS 5.3).
    ThePreviousIsADependency,

    // Siblings.
    /// A write stands beside what its writer did not know; it replaces only what its writer replaced (COPS 5.3).
    KeepSiblings,
    /// A write names everything that it replaces, not only the newest of it (COPS 5.3).
    ReplaceEverySibling,
    /// Who reads a fold has read every value in it (COPS, appendix A).
    FoldsAreReadWhole,
    /// A fold does not depend on the order in which its values came (COPS 3).
    FoldsIgnoreTheOrder,
    /// A handler is given values in the order of their stamps, in whatever order they came (COPS 3).
    HandlersAreGivenAnOrder,
    /// A checkpoint holds all values that stand beside each other.
    CheckpointHoldsSiblings,

    // Vectors, heartbeats and cuts.
    /// A read waits until its partition has received what its session, or its cut, may hold (POCC, algorithm 2).
    ReadsWaitForThePast,
    /// A heartbeat counts only after the entries that went before it (traps 8, 24).
    HeartbeatsFollowEntries,
    /// What is stable is the least of what all partitions have received (POCC 7.2).
    StableIsTheLeast,
    /// A cut holds its session's past (traps 3, 22, 28).
    SnapshotsHoldTheSession,
    /// A version is within a cut when its whole past is (POCC, algorithm 2, line 28).
    CutsHoldWholePasts,
    /// Versions are folded only below every cut that is or may be read at (traps 23, 35).
    FoldBelowEveryCut,
    /// What is collected leaves room for the cuts that begin now (trap 23).
    FloorLeavesRoomForNewCuts,
    /// What an optimistic session wrote shows to stable ones when it is stable (trap 36).
    OptimisticWritesHideUntilStable,
    /// A session that falls back starts with an empty past (POCC 7.1).
    FallbackForgets,
    /// A promoted session has the past of both its modes (trap 41).
    PromotionJoinsBothPasts,
    /// A stable session reads when all of its past is stable where it reads: a name may have brought what an optimistic
    /// session has seen.
    StableSessionsReadWhatIsStable,
    /// A restart knows what had been shown as stable (trap 32).
    RememberStable,
    /// What a partition's log proves to be everywhere in its datacenter it tells the others after a restart: they may
    /// know it from heartbeats only, which are not logged (POCC 7.2).
    TellWhatTheLogProves,

    // Log, checkpoint and restart.
    /// Under `appendfsync always` an answer waits for the sync, not only for the write (trap 12).
    SyncBeforeAnswering,
    /// A checkpoint replays from the oldest record that anyone still needs (decision 6).
    KeepNeededRecords,
    /// A checkpoint holds how far every stream had been received and applied.
    CheckpointHoldsStreams,
    /// A checkpoint holds tombstones too (trap 14).
    CheckpointHoldsTombstones,
    /// Own entries that a checkpoint holds are not merged again: their tombstones may be forgotten (trap 14).
    CheckpointedIsNotReplayed,
    /// After a restart it is known what was applied of each stream (trap 16).
    RememberApplied,
    /// What was received and not applied is taken up again after a restart (trap 12).
    TakeUpWhatWaited,

    // A datacenter that is lost for good.
    /// What was received of a stream is kept until every datacenter has it (decision 11).
    KeepForTheOthers,
    /// The survivors pass on to each other what a dead datacenter had sent to some of them (decision 11).
    PassOnTheLast,
    /// What depends on what was lost is discarded (POCC 7.1; of a list, whatever names it or what is discarded).
    DiscardWhatDependsOnLost,
    /// What a datacenter wrote that failed before the streams of another one had their ends is believed only up to
    /// where these are whole: it may have received more of them than is left (decision 11).
    DoubtWhoFailedBeforeTheEnd,
    /// Nothing is discarded of a datacenter that lives, or lived when the end of the lost stream was found: what it
    /// named it had shown, and lost with its power.
    DiscardNothingOfTheLiving,
    /// What was lost with a datacenter is decided when every survivor has its streams up to their ends: nobody writes
    /// on what only he has (decision 11).
    DecideWhenAllHaveTheEnd,
    /// A transaction of a dead datacenter whose part is nowhere is discarded with all its parts.
    AwaitTheParts,
    /// A datacenter that hears that it was declared dead acknowledges and shows nothing more.
    TheDeadStop,
    /// A session that may have seen what is discarded is told, and begins anew (POCC 7.1).
    PartFromTheLost,
    /// A token whose past was lost with a dead datacenter is refused, and no datacenter is counted to hold such a past.
    RefuseTheLost,

    // A failing disk.
    /// A partition stops when a sync of its log has failed (trap 55).
    StopAfterAFailedSync,
    /// What an earlier process wrote and did not sync is written anew before it is synced (trap 55).
    RewriteTheUnsyncedTail,
    /// After each sync the witness says how far the log is durable, before anything leaves that rests on it (decision
    /// 16).
    TheWitnessFollowsTheLog,
    /// A partition whose disk is full refuses writes and takes nothing from other datacenters (trap 56).
    RefuseWhenFull,
    /// What was written of an append that found no room is cut off before the next try (trap 56).
    CutAPartialAppend,

    // Branches (TARDiS).
    /// A read sees a version only if its state comes from the one that wrote it (TARDiS 6.1.3).
    BranchesAreIsolated,
    /// A second child of a state begins a chain of its own (trap 10).
    ForksBeginChains,
    /// The id of a state is above those of its parents (trap 45).
    IdsAboveTheirParents,
    /// Serializability holds where nothing was written since that the transaction read (TARDiS 5.1).
    SerializabilityIsChecked,
    /// Snapshot isolation holds where nothing was written since that the transaction writes (TARDiS 5.1).
    SnapshotIsolationIsChecked,
    /// A bound on branching is looked at where the transaction commits (trap 50).
    BranchingIsBounded,
    /// On the way over a merge state counts what it brings from the other branches.
    MergesBringTheirBranches,
    /// A merge does not go past a write of what its branches disagree on.
    MergesStayWhole,
    /// A commit of another site is put below the states that it was made below, when they are here (TARDiS 6.4).
    CommitsWaitForTheirParents,
    /// A state that was taken over is never a parent (trap 48).
    TheCollectedAreNoParents,
    /// States are collected above the ceilings of every site (TARDiS 6.3; trap 49).
    EverySiteAgrees,
    /// A site that collects alone keeps a state until every other has it for good: what comes late there must be whole
    /// here (TARDiS 6.4).
    KeepWhatOthersLack,
    /// What came from a state that was lost everywhere is discarded (TARDiS 6.5).
    WhatCameFromTheLostGoes,
    /// A ceiling is told when nothing that runs reads above it (trap 49).
    CeilingsWaitForReaders,
    /// A state that a running transaction reads, or a waiting commit names, is not collected (TARDiS 6.3).
    RunningHoldsItsState,
    /// Fork points are not collected (TARDiS 6.3).
    ForkPointsStay,
    /// A state that takes another one over has written what that one wrote (trap 53).
    WriteSetsArePromoted,
    /// A version keeps the id of the state that wrote it, whoever takes that state over.
    VersionsKeepTheirIds,
    /// Equal merges of the same states are one state (trap 11).
    EqualMergesAreOne,
    /// Every fork point counts, with its weight (trap 46).
    EveryForkPointCounts,
    /// What a session has read at is what it goes on from, though reading leaves no state (trap 52).
    ReadingMovesTheAnchor,
}

impl Rule {
    /// The name used on the command line and in tables, in words with dashes.
    pub fn name(self) -> String {
        let mut name = String::new();
        for letter in format!("{self:?}").chars() {
            if letter.is_ascii_uppercase() && !name.is_empty() {
                name.push('-');
            }
            name.push(letter.to_ascii_lowercase());
        }
        name
    }
}

impl Rule {
    /// Whether this build can break a rule.
    pub const BREAKABLE: bool = cfg!(feature = "breakable");

    /// Whether the rule is kept: always, and then what asks is compiled to nothing, but on a thread of a breakable
    /// build that breaks this one.
    #[inline(always)]
    pub fn holds(self) -> bool {
        !Rule::BREAKABLE || BROKEN.get() != Some(self)
    }

    /// Whether this thread breaks no rule.
    #[inline(always)]
    pub fn all_hold() -> bool {
        !Rule::BREAKABLE || BROKEN.get().is_none()
    }
}

thread_local! {
    static BROKEN: Cell<Option<Rule>> = const { Cell::new(None) };
}

/// While this value lives, its thread breaks one rule, or keeps all of them.
#[derive(Debug)]
#[must_use = "the rule is broken only as long as this lives"]
pub struct Breaking {
    before: Option<Rule>,
    /// It is of one thread.
    _here: PhantomData<*const ()>,
}

impl Breaking {
    /// Breaks this rule on this thread, and on no other one.
    ///
    /// # Panics
    /// If a build that keeps every rule is asked to break one: what it would show is not true.
    pub fn only(broken: Option<Rule>) -> Breaking {
        assert!(Rule::BREAKABLE || broken.is_none(), "this build keeps every rule (feature `breakable`)");
        Breaking { before: BROKEN.replace(broken), _here: PhantomData }
    }
}

impl Drop for Breaking {
    fn drop(&mut self) {
        BROKEN.set(self.before);
    }
}

#[cfg(all(test, feature = "breakable"))]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_broken_on_one_thread_as_long_as_somebody_wants_it() {
        let rule = Rule::ApplyOnce;
        {
            let _breaking = Breaking::only(Some(rule));
            assert!(!rule.holds() && Rule::LastWriterWins.holds());
            std::thread::scope(|scope| {
                scope.spawn(|| assert!(rule.holds()));
            });
            let _none = Breaking::only(None);
            assert!(rule.holds());
        }
        assert!(rule.holds());
    }
}
