//! The number of each message on the wire. A number is never used again for anything else.
//!
//! The high byte is the family, which is also the module that knows the layout.

use crate::message::Message;

/// Messages whose layouts stand in one module.
pub(super) enum Family {
    Session,
    Control,
    Dependency,
    Transaction,
    Stream,
    Time,
    Channel,
    Home,
}

impl Family {
    pub(super) fn of(tag: u16) -> Option<Family> {
        match tag >> 8 {
            1 => Some(Family::Session),
            2 => Some(Family::Control),
            3 => Some(Family::Dependency),
            4 => Some(Family::Transaction),
            5 => Some(Family::Stream),
            6 => Some(Family::Time),
            7 => Some(Family::Channel),
            8 => Some(Family::Home),
            _ => None,
        }
    }
}

/// Declares the tags, the list of all, and the exhaustive table from message to tag.
macro_rules! tags {
    ($($tag:ident = $number:literal => $variant:ident),+ $(,)?) => {
        $(pub(super) const $tag: u16 = $number;)+

        #[cfg(test)]
        pub(crate) const ALL: &[(u16, &str)] = &[$(($number, stringify!($variant))),+];

        /// The tag of a message.
        pub(crate) fn tag_of(message: &Message) -> u16 {
            match message {
                $(Message::$variant { .. } => $tag,)+
            }
        }
    };
}

tags! {
    EXECUTE = 0x0101 => Execute,
    EXECUTED = 0x0102 => Executed,
    READ_FIRST = 0x0103 => ReadFirst,
    READ_FIRST_DONE = 0x0104 => ReadFirstDone,
    READ_AT = 0x0105 => ReadAt,
    READ_AT_DONE = 0x0106 => ReadAtDone,
    TRANSACT = 0x0107 => Transact,
    TRANSACTED = 0x0108 => Transacted,
    REFUSED = 0x0109 => Refused,
    EXECUTED_IN_PART = 0x010a => ExecutedInPart,

    AWAIT_REPLICAS = 0x0201 => AwaitReplicas,
    REPLICAS_REACHED = 0x0202 => ReplicasReached,
    COUNT_REPLICAS = 0x0203 => CountReplicas,
    CONTEXT_FETCH = 0x0204 => ContextFetch,
    CONTEXT_FETCHED = 0x0205 => ContextFetched,
    CONTEXT_MERGE = 0x0206 => ContextMerge,
    CONTEXT_MERGED = 0x0207 => ContextMerged,
    METRICS_QUERY = 0x0208 => MetricsQuery,
    METRICS_ANSWER = 0x0209 => MetricsAnswer,
    CORE_QUERY = 0x020a => CoreQuery,
    CORE_ANSWER = 0x020b => CoreAnswer,
    REPLICA = 0x020c => Replica,
    LEADS = 0x020d => Leads,
    GROUP_ASK = 0x020e => GroupAsk,
    GROUP_TOLD = 0x020f => GroupTold,
    BACKUP_ASK = 0x0210 => BackupAsk,
    BACKUP_TOLD = 0x0211 => BackupTold,

    CHECK_DEPENDENCIES = 0x0301 => CheckDependencies,
    DEPENDENCIES_MET = 0x0302 => DependenciesMet,

    PREPARE = 0x0401 => Prepare,
    VOTE = 0x0402 => Vote,
    COMMIT = 0x0403 => Commit,
    COMMITTED = 0x0404 => Committed,
    NOTIFY = 0x0405 => Notify,
    COMMIT_CHECK = 0x0406 => CommitCheck,
    COMMIT_CHECKED = 0x0407 => CommitChecked,
    PARTS_SYNCED = 0x0408 => PartsSynced,
    PARTS_FORGOTTEN = 0x0409 => PartsForgotten,
    ABANDON = 0x040a => Abandon,
    REPEAT = 0x040b => Repeat,
    REPEATED = 0x040c => Repeated,
    PART_UNRECOVERABLE = 0x040d => PartUnrecoverable,
    AWAIT_PART = 0x040e => AwaitPart,
    DISCARD = 0x040f => Discard,
    FORGET_VOTE = 0x0410 => ForgetVote,
    COMMIT_UNANNOUNCED = 0x0411 => CommitUnannounced,
    FIND_PART = 0x0412 => FindPart,
    PART_HELD = 0x0413 => PartHeld,
    TRANSACTION_OVER = 0x0414 => TransactionOver,
    FILL_QUERY = 0x0415 => FillQuery,
    FILL_ANSWER = 0x0416 => FillAnswer,

    STREAM_RESUME = 0x0501 => StreamResume,
    STREAM_ENTRIES = 0x0502 => StreamEntries,
    STREAM_ACKNOWLEDGE = 0x0503 => StreamAcknowledge,
    TAIL_FETCH = 0x0504 => TailFetch,
    TAIL_FETCHED = 0x0505 => TailFetched,
    DATACENTER_FAILED = 0x0506 => DatacenterFailed,
    PASS_ON = 0x0507 => PassOn,
    PASSED_ON = 0x0508 => PassedOn,
    BRANCH_FETCH = 0x0509 => BranchFetch,
    BRANCH_FETCHED = 0x050a => BranchFetched,
    BRANCH_LACKING = 0x050b => BranchLacking,
    INTRODUCE = 0x050c => Introduce,
    COPY_FETCH = 0x050d => CopyFetch,
    COPIED = 0x050e => Copied,
    COPY_REFUSED = 0x050f => CopyRefused,
    CLOCK_AHEAD = 0x0510 => ClockAhead,
    RETIRING = 0x0511 => Retiring,

    READ_SNAPSHOT = 0x0601 => ReadSnapshot,
    SNAPSHOT_READ = 0x0602 => SnapshotRead,
    READ_SNAPSHOT_PART = 0x0603 => ReadSnapshotPart,
    SNAPSHOT_PART_READ = 0x0604 => SnapshotPartRead,
    TIMED_OUT = 0x0605 => TimedOut,
    AWAIT_TIMES = 0x0606 => AwaitTimes,
    STABILIZATION_REPORT = 0x0607 => StabilizationReport,
    STABLE = 0x0608 => Stable,
    HEARTBEAT = 0x0609 => Heartbeat,
    ASK_TIME = 0x060a => AskTime,
    SNAPSHOT_PART_REFUSED = 0x060b => SnapshotPartRefused,
    SNAPSHOT_PART_LATE = 0x060c => SnapshotPartLate,
    ENDED = 0x060d => Ended,
    LOST = 0x060e => Lost,

    INTEREST = 0x0701 => Interest,
    PUBLISH = 0x0702 => Publish,
    REPORT_CHANGES = 0x0703 => ReportChanges,
    CHANGED = 0x0704 => Changed,
    CALLED = 0x0705 => Called,
    RUNS = 0x0706 => Runs,

    HOME_READY = 0x0801 => HomeReady,
    HOME_REQUEST = 0x0802 => HomeRequest,
    HOME_ANSWER = 0x0803 => HomeAnswer,
    HOME_MOVES = 0x0804 => HomeMoves,
}
