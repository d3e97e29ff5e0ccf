//! The whole conversation between cores, nodes and datacenters, as one enum.
//!
//! A message to a partition on the same core, on another core and on another node is the same value; only the last
//! is ever encoded. Messages know no protocol: a context is a value of whatever family it is.

use bytes::Bytes;
use ensue_types::{
    Args, Causes, Context, CoreId, DatacenterId, DatacenterSet, Dependency, DirectoryId, HomeMove,
    Incarnation, KeyspaceId, LogicalTime, OperationId, Part, PartitionId, Position, Reply, RequestId,
    SessionId, Stamp, TimeVector,
};

/// Where a message comes from or goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Address {
    Partition {
        datacenter: DatacenterId,
        partition: PartitionId,
    },
    /// The sessions of one core.
    Core {
        datacenter: DatacenterId,
        core: CoreId,
    },
}

impl Address {
    pub fn datacenter(self) -> DatacenterId {
        match self {
            Address::Partition { datacenter, .. } | Address::Core { datacenter, .. } => datacenter,
        }
    }
}

/// A message on its way.
#[derive(Clone, Debug, PartialEq, Hash)]
pub struct Envelope {
    pub from: Address,
    pub to: Address,
    /// The sender's logical time; the receiver's clock moves past it (Eiger, section 3.3).
    pub time: LogicalTime,
    pub message: Message,
}

/// A named context's key: sessions of one datacenter that share one past.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ContextName {
    pub keyspace: KeyspaceId,
    pub name: Bytes,
}

/// Everything that is ever said.
#[derive(Clone, Debug, PartialEq, Hash)]
pub enum Message {
    // Session to partition, and back.
    /// Evaluate these commands, all of this partition, in order; writes among them are stamped and logged.
    Execute {
        request: RequestId,
        keyspace: KeyspaceId,
        context: Context,
        commands: Vec<Args>,
        /// All of them are of one moment: what a turn has no room for is not given back.
        together: bool,
    },
    /// The answers to `Execute`, in order, and the session's context after them.
    Executed {
        request: RequestId,
        context: Context,
        replies: Vec<Reply>,
    },
    /// First round of a read transaction over several partitions (Eiger, section 4.1).
    ReadFirst {
        request: RequestId,
        keyspace: KeyspaceId,
        commands: Vec<Args>,
    },
    /// Answer to `ReadFirst`: the newest values and how long they have been and still are valid. Without values when
    /// an undecided write transaction covers a location (section 5.4).
    ReadFirstDone {
        request: RequestId,
        latest_valid: LogicalTime,
        values: Option<FirstValues>,
    },
    /// Second round: the values at one logical time (section 4.2), with these operations that may have come later
    /// (COPS, section 4.6).
    ReadAt {
        request: RequestId,
        keyspace: KeyspaceId,
        commands: Vec<Args>,
        at: LogicalTime,
        with: Vec<OperationId>,
    },
    /// Answer to `ReadAt`; nothing if the versions of that time are gone, and the transaction must start again.
    ReadAtDone {
        request: RequestId,
        values: Option<AtValues>,
    },
    /// Coordinate this write transaction over several partitions (section 5.1).
    Transact {
        request: RequestId,
        keyspace: KeyspaceId,
        context: Context,
        parts: Vec<Part>,
    },
    /// Answer to `Transact`: the replies by their places, and the session's context after it.
    Transacted {
        request: RequestId,
        context: Context,
        replies: Vec<(u32, Reply)>,
    },
    /// The request cannot be served now; the reply says why, as a typed error.
    Refused {
        request: RequestId,
        reply: Reply,
    },
    /// Tell me when this many datacenters, this one included, have durably applied these operations, and everything
    /// that each datacenter wrote in this partition up to these times (`CAUSAL WAIT`); and, if `here`, when this one
    /// is among them.
    AwaitReplicas {
        request: RequestId,
        dependencies: Vec<Dependency>,
        times: TimeVector,
        datacenters: u8,
        here: bool,
    },
    /// How many had when the wanted number was reached, and whether this one is among them.
    ReplicasReached {
        request: RequestId,
        datacenters: u8,
        here: bool,
    },
    /// How many have now: asked when the wait is over, which it ends; of nothing, when nobody wants to know any more,
    /// or to hear that everything that was asked before has been looked at.
    CountReplicas {
        request: RequestId,
        dependencies: Vec<Dependency>,
        times: TimeVector,
    },
    /// Reads a shared context (`CAUSAL SESSION`), kept by the partition that owns its name.
    ContextFetch {
        request: RequestId,
        context: ContextName,
    },
    /// `since` names this start of the partition: what was kept before it is forgotten.
    ContextFetched {
        request: RequestId,
        since: LogicalTime,
        context: Context,
    },
    /// Adds to a shared context.
    ContextMerge {
        request: RequestId,
        name: ContextName,
        context: Context,
    },
    ContextMerged {
        request: RequestId,
    },
    /// Metrics of a partition for `INFO` and `ensue status`.
    MetricsQuery {
        request: RequestId,
    },
    MetricsAnswer {
        request: RequestId,
        metrics: Vec<(String, i64)>,
    },
    /// Tell this core what is written to rows from now on, or no longer.
    ReportChanges {
        wanted: bool,
    },
    /// Something was written to this row, or to all rows if none is named, and readers of this datacenter can see it.
    Changed {
        keyspace: KeyspaceId,
        key: Option<Bytes>,
        /// What keyspace events call it.
        event: Bytes,
        /// The session that wrote it, if it is one of the core that is told.
        writer: Option<SessionId>,
    },
    /// What the script of this request has called, to a core that is told of changes; its answer follows. What its user
    /// was denied is told to every core.
    Called {
        request: RequestId,
        keyspace: KeyspaceId,
        commands: Vec<Args>,
        /// These are all of them, and not only the first ones.
        all: bool,
        denied: Vec<Args>,
    },
    /// The script of this request runs, and its session is to wait for longer.
    Runs {
        request: RequestId,
    },
    /// A question to all sessions of a core (`CLIENT LIST`, connection counts).
    CoreQuery {
        request: RequestId,
        query: CoreQuery,
    },
    CoreAnswer {
        request: RequestId,
        text: Bytes,
        metrics: Vec<(String, i64)>,
    },
    /// Between the replicas of a partition within a datacenter, in their own layout.
    Replica {
        partition: PartitionId,
        bytes: Bytes,
    },
    /// The sender owns the partition in its datacenter, since this term.
    Leads {
        partition: PartitionId,
        term: u64,
    },
    /// Who are the members of a partition's group here? And one replica is to move from this core to that one.
    GroupAsk {
        partition: PartitionId,
        number: u64,
        wish: Option<(CoreId, CoreId)>,
    },
    /// What the leader of the group says: lines of text, or why it is not done.
    GroupTold {
        number: u64,
        is_done: bool,
        text: Bytes,
    },

    // Reads of one cut through several partitions: session to the first of them, that one to the others, and back.
    /// Read all of these as of one cut, which you draw (Orbe, section 4.3; POCC, algorithm 2, line 14).
    ReadSnapshot {
        request: RequestId,
        keyspace: KeyspaceId,
        context: Context,
        parts: Vec<Part>,
    },
    /// Answer to `ReadSnapshot`.
    SnapshotRead {
        request: RequestId,
        outcome: SnapshotOutcome,
    },
    /// Read these as of this cut when you have received what it may show (POCC, algorithm 2, line 24).
    ReadSnapshotPart {
        read: u64,
        keyspace: KeyspaceId,
        snapshot: TimeVector,
        commands: Vec<Args>,
    },
    /// Answer to `ReadSnapshotPart`; nothing if versions of that cut are gone, and the cut must be drawn again.
    SnapshotPartRead {
        read: u64,
        values: Option<AtValues>,
    },
    /// The slice has waited as long as its protocol lets it; in words, what for.
    SnapshotPartLate {
        read: u64,
        missing: String,
    },
    /// The slice cannot be read: its partition has stopped.
    SnapshotPartRefused {
        read: u64,
        reply: Reply,
    },
    /// As `Executed`, of a session that gave up waiting for its past: what it had before no longer counts.
    TimedOut {
        request: RequestId,
        context: Context,
        replies: Vec<Reply>,
    },
    /// As `Executed`, of the first commands only: these are enough for one turn. The rest comes back, not executed.
    ExecutedInPart {
        request: RequestId,
        context: Context,
        replies: Vec<Reply>,
        rest: Vec<Args>,
    },

    // What the partitions of a datacenter know of the others' time.
    /// Tell me when you have received everything that the other datacenters wrote up to these times; and, with a
    /// keyspace, when every new session of it reads that here.
    AwaitTimes {
        check: u64,
        times: TimeVector,
        readers: Option<KeyspaceId>,
    },
    /// What the sender has received, the lowest cut that it reads at or may read at, and up to which operation of each
    /// stream every datacenter has had all for a while.
    StabilizationReport {
        received: TimeVector,
        floor: TimeVector,
        globally_stable: Vec<OperationId>,
    },
    /// The least of what all partitions have said (POCC, section 7.2), and up to where every datacenter has had each of
    /// their streams for a while (COPS, section 5.1).
    Stable {
        received: TimeVector,
        floor: TimeVector,
        globally_stable: Vec<OperationId>,
    },

    /// Everything that a dead datacenter wrote in this partition up to a time is here, and nothing more will come. Said
    /// again when all have said so: of what is here, the first that may depend on something later. `failed` are those
    /// that had been declared dead before the end was found, itself among them.
    Ended {
        datacenter: DatacenterId,
        whole: LogicalTime,
        failed: DatacenterSet,
        doubtful: Option<LogicalTime>,
    },
    /// The least of what all partitions have said, and all who had failed.
    Lost {
        datacenter: DatacenterId,
        whole: LogicalTime,
        failed: DatacenterSet,
        doubtful: Option<LogicalTime>,
    },

    // Partition, or a session that merges a token, to the partition a dependency names.
    /// Tell me when these have been applied here (section 3.1). The answer comes when all of them are. Under a number
    /// that was asked with before, it takes that question's place; without dependencies, it withdraws it. So does
    /// `AwaitTimes`.
    CheckDependencies {
        check: u64,
        /// Whose write depends on them; none if a session asks.
        origin: Option<DatacenterId>,
        dependencies: Vec<Dependency>,
    },
    DependenciesMet {
        check: u64,
        /// Of these nothing is to be waited for: they, or for a `Through` something before it, were discarded with a
        /// dead datacenter, or are nowhere. To a write of a datacenter that lives, such a thing is lost like a tail: it
        /// is not among these.
        unrecoverable: Vec<Dependency>,
    },

    // Between the participants of a write transaction within a datacenter. A local one is named by its coordinator and
    // its number there, a replicated one by its operation: the datacenter in the id tells them apart.
    /// Vote for your part. A local part comes along; a replicated one came by its own stream.
    Prepare {
        transaction: OperationId,
        keyspace: KeyspaceId,
        part: Option<Part>,
    },
    /// The participant is prepared; the envelope's time is below the commit time. Sent again after a restart, it also
    /// asks whether the transaction has been decided.
    Vote {
        transaction: OperationId,
    },
    /// The transaction is visible from this time on.
    Commit {
        transaction: OperationId,
        decision: Decision,
    },
    /// The participant has logged its part; replies to its commands and what they saw come along.
    Committed {
        transaction: OperationId,
        replies: Vec<(u32, Reply)>,
        seen: Causes,
    },
    /// A replicated part arrived and its own dependencies are met (section 5.3).
    Notify {
        transaction: OperationId,
    },
    /// Had the transaction committed at this past time (section 5.4)?
    ///
    /// If it has been decided to commit by then and nobody has been told yet, `waits` asks to be told when all are;
    /// otherwise the answer is `CommitUnannounced`.
    CommitCheck {
        check: u64,
        transaction: OperationId,
        at: LogicalTime,
        waits: bool,
    },
    /// The decision if there is one; otherwise it will commit after the time asked about.
    CommitChecked {
        check: u64,
        transaction: OperationId,
        decision: Option<Decision>,
    },
    /// It will commit at this time, which is not after the time asked about, and nobody has been told so yet: nobody
    /// has seen any of it.
    CommitUnannounced {
        check: u64,
        transaction: OperationId,
        at: LogicalTime,
    },

    /// The participant's parts of these decided transactions are durable. Sent again after a restart.
    PartsSynced {
        operations: Vec<OperationId>,
    },
    /// Of these transactions nothing will be asked again: every participant has its part, and the coordinator's log
    /// says so.
    PartsForgotten {
        operations: Vec<OperationId>,
    },
    /// The transaction will never be decided. The coordinator does not know it, a local one: it lost the beginning with
    /// the power, before any decision. Or the entry of a replicated one was lost with the power where it came from.
    Abandon {
        transaction: OperationId,
    },
    /// A part of a replicated transaction is never shown: it depends on what was lost with a dead datacenter, or was
    /// lost itself.
    PartUnrecoverable {
        transaction: OperationId,
    },
    /// Everything else of this transaction of a dead datacenter is here: will your part come?
    AwaitPart {
        transaction: OperationId,
    },
    /// Something of this transaction of a dead datacenter is gone: it is never shown.
    Discard {
        transaction: OperationId,
    },
    /// The coordinator of this replicated transaction does not collect votes: it has been away, and waits for what the
    /// transaction depends on. The part has no place until it is asked for again.
    ForgetVote {
        transaction: OperationId,
    },
    /// My directory is filled, and this replicated transaction, stamped at this time, waits here for your part: where
    /// is it?
    FindPart {
        transaction: OperationId,
        time: LogicalTime,
    },
    /// No part of this transaction waits here or will come: everything that its origin stamped up to then is here and
    /// durable.
    PartHeld {
        transaction: OperationId,
    },
    /// The entry of this replicated transaction is applied here, and nobody votes on it any more.
    TransactionOver {
        transaction: OperationId,
    },
    /// My directory is empty: is yours being filled, too?
    FillQuery,
    /// Whether it is empty, or being filled and not served yet.
    FillAnswer {
        fills: bool,
    },
    /// I lost my tail: tell me again of every transaction that I take part in.
    Repeat {
        number: u64,
    },
    /// That was all.
    Repeated {
        number: u64,
    },

    // The same partition of two datacenters.
    /// My log may have lost its tail: my own stream ends here. What do you have of it beyond?
    TailFetch {
        after: Position,
    },
    /// The end of your stream as it was received here, and the next entries after the position asked about.
    TailFetched {
        after: Position,
        received: Position,
        entries: Vec<Bytes>,
    },
    /// My directory is empty, and the logs no longer have what it held: a copy of what you hold, by this number. All
    /// parts before this one are here. `again` after a broken link: what was sent of it and later may be lost.
    CopyFetch {
        copy: u64,
        part: u64,
        again: bool,
    },
    /// A part of that copy: items as a checkpoint has them, each behind its kind. With the last part it holds all that
    /// was applied when it began, and nothing that the sender could still lose. `done` of `of` rows were looked at.
    Copied {
        copy: u64,
        part: u64,
        is_last: bool,
        done: u64,
        of: u64,
        items: Vec<Bytes>,
    },
    /// I make no copy of this number, or no longer. `cannot`: I hold what no copy can hold.
    CopyRefused {
        copy: u64,
        cannot: bool,
    },
    /// A state of a branching keyspace came below one that is collected here. These states are: what do they lack of
    /// it?
    BranchFetch {
        keyspace: KeyspaceId,
        state: u64,
        live: Vec<u64>,
    },
    /// What was asked for, whole, in the keyspace's own bytes.
    BranchFetched {
        keyspace: KeyspaceId,
        rebuilt: Bytes,
    },
    /// Nor do I have it, nor ever will unless somebody else does: its datacenter is dead, and it came too late here,
    /// too. From these, who were declared dead, I take nothing more.
    BranchLacking {
        keyspace: KeyspaceId,
        state: u64,
        failed: Vec<DatacenterId>,
    },
    /// This datacenter was declared dead. Of its stream I have this much, durably, and everything that it wrote up to
    /// this time; from itself I take nothing more. `ended`: that is its end, and these had been declared dead before it
    /// was found.
    DatacenterFailed {
        datacenter: DatacenterId,
        received: Position,
        time: LogicalTime,
        ended: Option<DatacenterSet>,
    },
    /// My datacenter is being removed, and I have come to this step of it. From partition 0 to the others of its
    /// datacenter: all have.
    Retiring {
        step: u8,
    },
    /// Pass on what you have of a dead datacenter's stream beyond this position.
    PassOn {
        origin: DatacenterId,
        after: Position,
    },
    /// The next entries of a dead datacenter's stream after the position asked about, as they were received.
    PassedOn {
        origin: DatacenterId,
        entries: Vec<Bytes>,
    },
    /// The first message of a partition to the same partition of another datacenter on a link, sent again on request
    /// and
    /// when it has changed.
    Introduce(Introduction),
    /// Send your stream from the position after this one.
    StreamResume {
        incarnation: Incarnation,
        received: Position,
    },
    /// Entries at consecutive positions, the first of which is given.
    StreamEntries {
        incarnation: Incarnation,
        first: Position,
        entries: Vec<Bytes>,
    },
    /// What the receiver has of the sender's stream, and of every stream.
    StreamAcknowledge(StreamAcknowledge),
    /// So far is your datacenter's time ahead of the clock here: too far, so that nothing of it is taken. With 0 it
    /// is taken again.
    ClockAhead {
        ahead_ms: u64,
    },
    /// Everything that the sender will write has a higher stamp than the envelope's time, and what it has written ends
    /// at this position (POCC, algorithm 3, line 8).
    Heartbeat {
        end: Position,
    },
    /// Somebody waits here until you are past the envelope's time: move past it, and answer with a heartbeat.
    AskTime,

    // Between the sessions of all cores, of every datacenter.
    /// So many sessions of mine subscribe to these from now on; none, if the number is 0. `all`: the rest of what I
    /// said before no longer counts.
    Interest {
        all: bool,
        changes: Vec<Interest>,
    },
    /// Hand this to your subscribers, once what its publisher had seen is visible in your datacenter.
    Publish {
        publisher: SessionId,
        kind: ChannelKind,
        channel: Bytes,
        payload: Bytes,
        /// The publisher's past in each keyspace where it has one. Empty within a datacenter.
        past: Vec<(KeyspaceId, Context)>,
    },

    // Between the sessions of cores of two datacenters: commands that are executed at the home of their keys.
    /// The first message on a link, where keys have homes: this run of my process takes requests, and makes them.
    HomeReady {
        boot: u32,
    },
    HomeRequest(HomeRequest),
    /// Answer to `HomeRequest`, by the run of the process that made it and its number.
    HomeAnswer {
        boot: u32,
        number: u64,
        outcome: HomeOutcome,
    },

    /// From a partition: what it knows, durably, of homes that have moved. To the same partition of another datacenter;
    /// to partition 0 of its own, and from there to the others, how far all of them are; to the cores of its own, which
    /// tell each other, too. `asks`: say what you know.
    HomeMoves {
        asks: bool,
        moves: Vec<HomeMove>,
    },

    // Within a datacenter, for sessions that copy what all its nodes hold.
    /// Do this for a copy of what the disks of your node hold: the words behind `CAUSAL BACKUP`.
    BackupAsk {
        number: u64,
        words: Args,
    },
    /// What a client of that node would have been answered.
    BackupTold {
        number: u64,
        reply: Reply,
    },
}

/// Commands of one session, to be executed once at the home of their keys.
#[derive(Clone, Debug, PartialEq, Hash)]
pub struct HomeRequest {
    /// The run of the process that makes the request, and its number in that run.
    pub boot: u32,
    pub number: u64,
    /// The run of the receiver's process that the request was first sent to: no other one may execute it.
    pub home_boot: u32,
    /// Requests to the receiver below this number have their answers, or need none any more.
    pub below: u64,
    pub keyspace: KeyspaceId,
    /// The session's past, which the commands wait for.
    pub context: Context,
    /// Whether they are those of a `MULTI`; otherwise there is one.
    pub transaction: bool,
    /// How long it waits at most for something to pop or to read; 0 is a command that does not wait, and the highest
    /// number is for ever.
    pub waits_ms: u64,
    /// Nobody wants its answer any more: it is not executed, it stops waiting, and what it has popped is put back.
    pub abandoned: bool,
    pub commands: Vec<Args>,
}

/// What became of a request at its home.
#[derive(Clone, Debug, PartialEq, Hash)]
pub enum HomeOutcome {
    /// The answer, and the past of the session after it.
    Executed { context: Context, reply: Reply },
    /// Nothing happened, for this reason.
    Refused { reply: Reply },
    /// It may have been executed: what became of it is not known any more.
    Forgotten,
    /// It has waited, and waits no longer: nothing was executed, or it was put back.
    Withdrawn,
}

/// What became of a read of one cut.
#[derive(Clone, Debug, PartialEq, Hash)]
pub enum SnapshotOutcome {
    /// The replies by their places, and the session's context after them.
    Read { context: Context, replies: Vec<(u32, Reply)> },
    /// It has waited too long, and there is no older cut that the session could accept: read by logical time.
    TooLate,
    /// It has waited too long: the error, and what becomes of the session.
    TimedOut { context: Context, reply: Reply },
}

/// What a coordinator decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Decision {
    /// When the transaction becomes visible in this datacenter.
    pub at: LogicalTime,
    /// The name under which others depend on it: the place of its `Transaction` entry at its origin.
    pub operation: OperationId,
    /// Its arbitration time, the same in every datacenter.
    pub stamp: Stamp,
}

/// First-round values of one partition.
#[derive(Clone, Debug, PartialEq, Hash)]
pub struct FirstValues {
    pub replies: Vec<Reply>,
    /// The highest earliest valid time of the locations read.
    pub earliest_valid: LogicalTime,
    /// What the protocol wants remembered of these reads.
    pub seen: Causes,
}

/// Second-round values of one partition.
#[derive(Clone, Debug, PartialEq, Hash)]
pub struct AtValues {
    pub replies: Vec<Reply>,
    pub seen: Causes,
}

/// Which directory a partition runs on, and what it knows of the receiver's.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Introduction {
    pub directory: DirectoryId,
    pub stage: PeerStage,
    /// The receiver's directory as the sender knows it; unknown if they have never met.
    pub known: DirectoryId,
    /// How far the sender has received the receiver's stream, and the time of the last entry of that; zero if it has
    /// none.
    pub received: Position,
    pub last: LogicalTime,
    /// `DirectoryId::proof` of these with the known directory: what is said is about that very directory.
    pub proof: u64,
    /// How far the sender has applied the receiver's stream.
    pub applied: Position,
    /// The end of the sender's own stream.
    pub end: Position,
    /// How far any third datacenter has applied the receiver's stream, as the sender has heard.
    pub elsewhere: Position,
    /// The sender's log has everything of both streams that the receiver, as it introduced itself, lacks.
    pub is_whole: bool,
    /// The sender wants an introduction in return.
    pub asks: bool,
}

/// How far a partition that introduces itself is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PeerStage {
    /// Its directory is new, and whether the datacenter has lost an earlier one is not known yet.
    Joining,
    /// It lost the end of its log, and requests it.
    Recovering,
    Serving,
}

/// Positions that a receiver reports: the sender forgets only below what every datacenter has synced.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StreamAcknowledge {
    pub incarnation: Incarnation,
    pub received: Position,
    pub synced: Position,
    /// For each origin the watermark below which everything is durably applied at the receiver, its own included.
    pub applied: Vec<(DatacenterId, Incarnation, Position)>,
    /// The end of the receiver's own stream when it said this.
    pub end: Position,
    /// Whatever has a stamp up to this is shown by every view of those writes that the receiver makes from now on;
    /// zero where views show all that is applied.
    pub shown: LogicalTime,
}

/// What is subscribed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChannelKind {
    Channel,
    /// Every channel whose name matches.
    Pattern,
    /// A channel of `SPUBLISH`, with names of its own.
    Shard,
    /// The commands of all clients of a datacenter, for `MONITOR`. It has no name.
    Monitor,
}

/// How many sessions of a core subscribe to one name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Interest {
    pub kind: ChannelKind,
    pub name: Bytes,
    pub sessions: u32,
}

/// A question to all sessions of a core.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CoreQuery {
    ClientList,
    Metrics,
    /// Count from zero again, sessions and partitions.
    ResetStatistics,
    /// Do this, and answer a reply as it is encoded for a client.
    Order(Args),
}
