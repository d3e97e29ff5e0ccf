//! The rules of the protocols by name, so that the simulator can break one and show the anomaly that follows.
//!
//! A server keeps every rule: `Rules::default()` has none broken. Another is built by the simulator, and by a server that
//! was compiled to be breakable, for torture runs that must fail.

/// One rule. The doc says what the code does while the rule holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// A replicated write waits until its dependencies are applied (Eiger 3.1).
    WaitForDependencies,
    /// A dependency check asks for the very operation, not for "a position at least as high" (trap 1).
    CheckTheVeryOperation,
    /// The losing side of arbitration is discarded (Eiger 3.3).
    LastWriterWins,
    /// A write's stamp is above its session's whole past.
    StampAboveThePast,
    /// A clock ticks past every latest valid time that it handed out (trap 4).
    TickPastPromises,
    /// The coordinator decides only when every participant has voted (Eiger 5.2).
    DecideAfterEveryVote,
    /// The coordinator of a replicated transaction waits until every part has arrived (Eiger 5.3; trap 12).
    WaitForEveryPart,
    /// A location with an undecided transaction answers a first round without a value (Eiger 5.4; trap 8).
    PendingAnswersNothing,
    /// A second round asks the coordinator about every undecided transaction that may come before its time (5.4).
    AskTheCoordinator,
    /// A coordinator that says "not committed at t" never commits at or before t (trap 4).
    KeepTheDenial,
    /// A read transaction whose first round shares no logical time reads again (Eiger 4.2).
    SecondRound,
    /// A second round reads at the effective time, not the newest value.
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
    /// The clock never shows a time again after a restart (trap 30).
    ClockAheadOfRestart,
    /// A delete of a column that is gone still carries what it saw (trap 18).
    TombstonesAreSeen,
    /// Changes to one row take effect in logical-time order, behind undecided transactions that may come before.
    RowsInTimeOrder,
}

impl Rule {
    pub const ALL: [Rule; 28] = [
        Rule::WaitForDependencies,
        Rule::CheckTheVeryOperation,
        Rule::LastWriterWins,
        Rule::StampAboveThePast,
        Rule::TickPastPromises,
        Rule::DecideAfterEveryVote,
        Rule::WaitForEveryPart,
        Rule::PendingAnswersNothing,
        Rule::AskTheCoordinator,
        Rule::KeepTheDenial,
        Rule::SecondRound,
        Rule::ReadAtEffectiveTime,
        Rule::KeepOldVersions,
        Rule::RememberTheVote,
        Rule::CompleteAfterCrash,
        Rule::ApplyOnce,
        Rule::RememberReceivedPosition,
        Rule::OutputsAfterLog,
        Rule::KeepUntilSynced,
        Rule::KeepTombstones,
        Rule::RememberReads,
        Rule::RememberWrites,
        Rule::CounterDependencies,
        Rule::BaseCoversSeenAdditions,
        Rule::MergeWaits,
        Rule::ClockAheadOfRestart,
        Rule::TombstonesAreSeen,
        Rule::RowsInTimeOrder,
    ];

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

/// Which rules hold: all of them, or all but one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    broken: Option<Rule>,
}

impl Rules {
    /// For the simulator only: a world in which one rule is broken.
    pub fn breaking(rule: Rule) -> Rules {
        Rules { broken: Some(rule) }
    }

    pub fn hold(self, rule: Rule) -> bool {
        self.broken != Some(rule)
    }

    pub fn broken(self) -> Option<Rule> {
        self.broken
    }
}
