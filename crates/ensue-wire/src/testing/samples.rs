//! Fixed envelopes, at least one of every message and one of every alternative inside. Golden files hold their bytes,
//! so a sample is never changed: a new one is added.

use crate::message::{
    Address, AtValues, ChannelKind, ContextName, CoreQuery, Decision, Envelope, FirstValues, HomeOutcome,
    HomeRequest, Interest, Introduction, Message, PeerStage, SnapshotOutcome, StreamAcknowledge,
};
use bytes::Bytes;
use ensue_types::{
    Args, Causes, Context, CoreId, DatacenterId, DatacenterSet, Dependency, DirectoryId, Extent, HomeMove,
    HomeStep, Incarnation, KeyspaceId, LogicalTime, Opaque, OperationId, Part, PartitionId, Position, Reply,
    RequestId, SessionId, Stamp, TimeVector,
};

pub(crate) fn envelopes() -> Vec<(&'static str, Envelope)> {
    let mut all = session();
    all.extend(control());
    all.extend(dependency());
    all.extend(transaction());
    all.extend(stream());
    all.extend(time());
    all.extend(channel());
    all.extend(home());
    all.into_iter().map(|(name, message)| (name, between(name, message))).collect()
}

/// Every kind of reply, nested as well.
pub(crate) fn every_reply() -> Vec<Reply> {
    vec![
        Reply::OK,
        Reply::Status("QUEUED".into()),
        Reply::error("ERR syntax error"),
        Reply::Integer(-42),
        Reply::bulk(&b"v\x00\xff"[..]),
        Reply::Verbatim(Bytes::from_static(b"# Server")),
        Reply::Nil,
        Reply::NilArray,
        Reply::Array(vec![Reply::Integer(1), Reply::Array(vec![]), Reply::Set(vec![Reply::Nil])]),
        Reply::Map(vec![(Reply::bulk("field"), Reply::Map(vec![]))]),
        Reply::Set(vec![Reply::bulk("a"), Reply::bulk("b")]),
        Reply::Double(-0.5),
        Reply::BigNumber(Bytes::from_static(b"12345678901234567890")),
        Reply::Boolean(false),
        Reply::Boolean(true),
    ]
}

/// Within a datacenter from a session to a partition; between datacenters from partition to partition.
fn between(name: &str, message: Message) -> Envelope {
    let to = Address::Partition { datacenter: DatacenterId(2), partition: PartitionId(0x0304) };
    let from = if name.starts_with("stream") {
        Address::Partition { datacenter: DatacenterId(1), partition: PartitionId(0x0304) }
    } else {
        Address::Core { datacenter: DatacenterId(2), core: CoreId(0x0506) }
    };
    Envelope { from, to, time: LogicalTime(0x0102_0304_0506_0708), message }
}

fn session() -> Vec<(&'static str, Message)> {
    let request = request();
    let keyspace = KeyspaceId(3);
    vec![
        (
            "execute",
            Message::Execute { request, keyspace, context: context(), commands: commands(), together: true },
        ),
        ("executed", Message::Executed { request, context: context(), replies: every_reply() }),
        (
            "executed_pairs",
            Message::Executed {
                request,
                context: context(),
                replies: vec![Reply::Pairs(vec![(Reply::bulk("member"), Reply::Double(1.5))])],
            },
        ),
        (
            "executed-in-part",
            Message::ExecutedInPart { request, context: context(), replies: every_reply(), rest: commands() },
        ),
        ("read-first", Message::ReadFirst { request, keyspace, commands: commands() }),
        (
            "read-first-done",
            Message::ReadFirstDone {
                request,
                latest_valid: LogicalTime(77),
                values: Some(FirstValues {
                    replies: vec![Reply::Nil],
                    earliest_valid: LogicalTime(66),
                    seen: causes(),
                }),
            },
        ),
        (
            "read-first-done-without-values",
            Message::ReadFirstDone { request, latest_valid: LogicalTime(77), values: None },
        ),
        (
            "read-at",
            Message::ReadAt {
                request,
                keyspace,
                commands: commands(),
                at: LogicalTime(70),
                with: vec![operation(5)],
            },
        ),
        (
            "read-at-done",
            Message::ReadAtDone {
                request,
                values: Some(AtValues { replies: vec![Reply::bulk("old")], seen: Causes::Nothing }),
            },
        ),
        ("read-at-done-without-values", Message::ReadAtDone { request, values: None }),
        (
            "transact",
            Message::Transact { request, keyspace, context: Context::default(), parts: vec![part(), part()] },
        ),
        ("transacted", Message::Transacted { request, context: context(), replies: placed_replies() }),
        ("refused", Message::Refused { request, reply: Reply::error("TRYAGAIN starting") }),
    ]
}

fn control() -> Vec<(&'static str, Message)> {
    let request = request();
    let name = ContextName { keyspace: KeyspaceId(3), name: Bytes::from_static(b"cart:17") };
    let metrics = vec![("keys".to_owned(), 12), ("lag_ms".to_owned(), -1)];
    vec![
        (
            "await-replicas",
            Message::AwaitReplicas {
                request,
                dependencies: dependencies(),
                times: TimeVector::default(),
                datacenters: 2,
                here: true,
            },
        ),
        ("replicas-reached", Message::ReplicasReached { request, datacenters: 3, here: true }),
        (
            "count-replicas",
            Message::CountReplicas {
                request,
                dependencies: Vec::new(),
                times: TimeVector::uniform(2, LogicalTime(7)),
            },
        ),
        ("context-fetch", Message::ContextFetch { request, context: name.clone() }),
        ("context-fetched", Message::ContextFetched { request, since: LogicalTime(7), context: context() }),
        ("context-merge", Message::ContextMerge { request, name, context: context() }),
        ("context-merged", Message::ContextMerged { request }),
        ("metrics-query", Message::MetricsQuery { request }),
        ("metrics-answer", Message::MetricsAnswer { request, metrics: metrics.clone() }),
        ("core-query-client-list", Message::CoreQuery { request, query: CoreQuery::ClientList }),
        (
            "core-query-order",
            Message::CoreQuery { request, query: CoreQuery::Order(vec![Bytes::from_static(b"unpause")]) },
        ),
        ("core-query-metrics", Message::CoreQuery { request, query: CoreQuery::Metrics }),
        ("core-query-reset-statistics", Message::CoreQuery { request, query: CoreQuery::ResetStatistics }),
        ("replica", Message::Replica { partition: PartitionId(3), bytes: Bytes::from_static(b"hello") }),
        ("leads", Message::Leads { partition: PartitionId(3), term: 7 }),
        (
            "group-ask",
            Message::GroupAsk { partition: PartitionId(3), number: 9, wish: Some((CoreId(1), CoreId(4))) },
        ),
        ("group-told", Message::GroupTold { number: 9, is_done: true, text: "leader:1".into() }),
        ("backup-ask", Message::BackupAsk { number: 9, words: args(&["list", "monday"]) }),
        ("backup-told", Message::BackupTold { number: 9, reply: Reply::Bulk(Bytes::from_static(b"bytes")) }),
        (
            "core-answer",
            Message::CoreAnswer { request, text: Bytes::from_static(b"id=7 addr=::1\n"), metrics },
        ),
    ]
}

fn dependency() -> Vec<(&'static str, Message)> {
    vec![
        (
            "check-dependencies",
            Message::CheckDependencies {
                check: 9,
                origin: Some(DatacenterId(2)),
                dependencies: dependencies(),
            },
        ),
        ("dependencies-met", Message::DependenciesMet { check: 9, unrecoverable: dependencies() }),
    ]
}

fn transaction() -> Vec<(&'static str, Message)> {
    let transaction = operation(5);
    let (check, at) = (9, LogicalTime(70));
    vec![
        ("prepare", Message::Prepare { transaction, keyspace: KeyspaceId(3), part: Some(part()) }),
        ("prepare-replicated", Message::Prepare { transaction, keyspace: KeyspaceId(3), part: None }),
        ("vote", Message::Vote { transaction }),
        ("commit", Message::Commit { transaction, decision: decision() }),
        ("committed", Message::Committed { transaction, replies: placed_replies(), seen: causes() }),
        ("notify", Message::Notify { transaction }),
        ("commit-check", Message::CommitCheck { check, transaction, at, waits: true }),
        ("commit-checked", Message::CommitChecked { check, transaction, decision: Some(decision()) }),
        ("commit-checked-undecided", Message::CommitChecked { check, transaction, decision: None }),
        ("commit-unannounced", Message::CommitUnannounced { check, transaction, at }),
        ("parts-synced", Message::PartsSynced { operations: vec![operation(5), operation(6)] }),
        ("parts-forgotten", Message::PartsForgotten { operations: vec![operation(5)] }),
        ("abandon", Message::Abandon { transaction }),
        ("part-unrecoverable", Message::PartUnrecoverable { transaction }),
        ("await-part", Message::AwaitPart { transaction }),
        ("discard", Message::Discard { transaction }),
        ("forget-vote", Message::ForgetVote { transaction }),
        ("find-part", Message::FindPart { transaction, time: at }),
        ("part-held", Message::PartHeld { transaction }),
        ("transaction-over", Message::TransactionOver { transaction }),
        ("fill-query", Message::FillQuery),
        ("fill-answer", Message::FillAnswer { fills: true }),
        ("repeat", Message::Repeat { number: 9 }),
        ("repeated", Message::Repeated { number: 9 }),
    ]
}

fn stream() -> Vec<(&'static str, Message)> {
    let incarnation = Incarnation(0x0708);
    let entries = vec![Bytes::from_static(b"entry one"), Bytes::new(), Bytes::from_static(b"three")];
    vec![
        ("stream-resume", Message::StreamResume { incarnation, received: Position(1000) }),
        (
            "stream-entries",
            Message::StreamEntries { incarnation, first: Position(1001), entries: entries.clone() },
        ),
        ("tail-fetch", Message::TailFetch { after: Position(1000) }),
        (
            "tail-fetched",
            Message::TailFetched {
                after: Position(1000),
                received: Position(1009),
                entries: entries.clone(),
            },
        ),
        ("copy-fetch", Message::CopyFetch { copy: 7, part: 1000, again: true }),
        (
            "copied",
            Message::Copied { copy: 7, part: 1001, is_last: false, done: 5, of: 9, items: entries.clone() },
        ),
        ("copy-refused", Message::CopyRefused { copy: 7, cannot: true }),
        (
            "datacenter-failed",
            Message::DatacenterFailed {
                datacenter: DatacenterId(1),
                received: Position(1009),
                time: LogicalTime(70),
                ended: Some(DatacenterSet(0b110)),
            },
        ),
        (
            "branch-fetch",
            Message::BranchFetch { keyspace: KeyspaceId(3), state: 0x0102_0304, live: vec![7, 9] },
        ),
        (
            "branch-fetched",
            Message::BranchFetched { keyspace: KeyspaceId(3), rebuilt: Bytes::from_static(b"rebuilt") },
        ),
        (
            "branch-lacking",
            Message::BranchLacking {
                keyspace: KeyspaceId(3),
                state: 0x0102_0304,
                failed: vec![DatacenterId(1), DatacenterId(2)],
            },
        ),
        (
            "introduce",
            Message::Introduce(Introduction {
                directory: DirectoryId(0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10),
                stage: PeerStage::Serving,
                known: DirectoryId(0x1112),
                received: Position(1003),
                last: LogicalTime(70),
                proof: 0x2122,
                applied: Position(1002),
                end: Position(90),
                elsewhere: Position(1004),
                is_whole: true,
                asks: false,
            }),
        ),
        ("clock-ahead", Message::ClockAhead { ahead_ms: 7_200_000 }),
        ("retiring", Message::Retiring { step: 2 }),
        ("pass-on", Message::PassOn { origin: DatacenterId(1), after: Position(1000) }),
        ("passed-on", Message::PassedOn { origin: DatacenterId(1), entries }),
        (
            "stream-acknowledge",
            Message::StreamAcknowledge(StreamAcknowledge {
                incarnation,
                received: Position(1003),
                synced: Position(1002),
                applied: vec![
                    (DatacenterId(0), Incarnation(1), Position(50)),
                    (DatacenterId(1), incarnation, Position(1001)),
                ],
                end: Position(2000),
                shown: LogicalTime(1_700_000_000_000_000),
            }),
        ),
    ]
}

fn channel() -> Vec<(&'static str, Message)> {
    let interest = |kind, name: &'static str, sessions| Interest { kind, name: name.into(), sessions };
    let changes = vec![
        interest(ChannelKind::Channel, "news", 2),
        interest(ChannelKind::Pattern, "n*", 1),
        interest(ChannelKind::Shard, "", 0),
    ];
    let (publisher, channel) = (SessionId(7), Bytes::from_static(b"news"));
    let (payload, past) = (Bytes::from_static(b"rain"), vec![(KeyspaceId(3), context())]);
    vec![
        ("interest", Message::Interest { all: true, changes }),
        ("report-changes", Message::ReportChanges { wanted: true }),
        (
            "changed",
            Message::Changed {
                keyspace: KeyspaceId(3),
                key: Some(Bytes::from_static(b"k")),
                event: Bytes::from_static(b"set"),
                writer: Some(SessionId(7)),
            },
        ),
        (
            "changed-everything",
            Message::Changed { keyspace: KeyspaceId(3), key: None, event: Bytes::new(), writer: None },
        ),
        (
            "called",
            Message::Called {
                request: request(),
                keyspace: KeyspaceId(3),
                commands: commands(),
                all: true,
                denied: commands(),
            },
        ),
        ("runs", Message::Runs { request: request() }),
        ("publish", Message::Publish { publisher, kind: ChannelKind::Channel, channel, payload, past }),
    ]
}

fn moved() -> HomeMove {
    HomeMove {
        keyspace: KeyspaceId(3),
        pattern: Bytes::from_static(b"lock:*"),
        configured: DatacenterId(0),
        version: 0x0102_0304,
        from: DatacenterId(1),
        home: DatacenterId(2),
        step: HomeStep::Stopped,
        is_claimed: false,
        applied: vec![(DatacenterId(1), Position(0x1112_1314))],
        times: [LogicalTime(0x2122_2324)].into_iter().collect(),
    }
}

fn home() -> Vec<(&'static str, Message)> {
    let answer = |outcome| Message::HomeAnswer { boot: 0x1112_1314, number: 9, outcome };
    let request = HomeRequest {
        boot: 0x1112_1314,
        number: 9,
        home_boot: 0x2122_2324,
        below: 7,
        keyspace: KeyspaceId(3),
        context: context(),
        transaction: true,
        waits_ms: 0x3132_3334,
        abandoned: false,
        commands: commands(),
    };
    vec![
        ("home-ready", Message::HomeReady { boot: 0x1112_1314 }),
        ("home-request", Message::HomeRequest(request)),
        ("home-answer", answer(HomeOutcome::Executed { context: context(), reply: Reply::OK })),
        ("home-answer-refused", answer(HomeOutcome::Refused { reply: Reply::error("HOMEAWAY") })),
        ("home-answer-forgotten", answer(HomeOutcome::Forgotten)),
        ("home-answer-withdrawn", answer(HomeOutcome::Withdrawn)),
        ("home-moves", Message::HomeMoves { asks: true, moves: vec![moved()] }),
    ]
}

fn time() -> Vec<(&'static str, Message)> {
    let (request, keyspace) = (request(), KeyspaceId(3));
    let times: TimeVector = [70, 0, 90].into_iter().map(LogicalTime).collect();
    let values = Some(AtValues { replies: vec![Reply::bulk("old")], seen: causes() });
    let read = SnapshotOutcome::Read { context: context(), replies: placed_replies() };
    let timed_out = SnapshotOutcome::TimedOut { context: context(), reply: Reply::error("FALLBACK") };
    let floor = TimeVector::default();
    vec![
        (
            "read-snapshot",
            Message::ReadSnapshot { request, keyspace, context: context(), parts: vec![part()] },
        ),
        ("snapshot-read", Message::SnapshotRead { request, outcome: read }),
        ("snapshot-read-too-late", Message::SnapshotRead { request, outcome: SnapshotOutcome::TooLate }),
        ("snapshot-read-timed-out", Message::SnapshotRead { request, outcome: timed_out }),
        (
            "read-snapshot-part",
            Message::ReadSnapshotPart { read: 9, keyspace, snapshot: times.clone(), commands: commands() },
        ),
        ("snapshot-part-read", Message::SnapshotPartRead { read: 9, values }),
        ("snapshot-part-read-without-values", Message::SnapshotPartRead { read: 9, values: None }),
        ("timed-out", Message::TimedOut { request, context: context(), replies: vec![Reply::Nil] }),
        ("await-times", Message::AwaitTimes { check: 9, times: times.clone(), readers: None }),
        (
            "await-times-readers",
            Message::AwaitTimes { check: 9, times: times.clone(), readers: Some(KeyspaceId(3)) },
        ),
        (
            "stabilization-report",
            Message::StabilizationReport {
                received: times.clone(),
                floor,
                globally_stable: vec![operation(5)],
            },
        ),
        ("stable", Message::Stable { received: times.clone(), floor: times, globally_stable: Vec::new() }),
        ("stream-heartbeat", Message::Heartbeat { end: Position(2000) }),
        ("stream-ask-time", Message::AskTime),
        (
            "ended",
            Message::Ended {
                datacenter: DatacenterId(1),
                whole: LogicalTime(70),
                failed: DatacenterSet(0b10),
                doubtful: None,
            },
        ),
        (
            "lost",
            Message::Lost {
                datacenter: DatacenterId(1),
                whole: LogicalTime(70),
                failed: DatacenterSet(0b110),
                doubtful: Some(LogicalTime(90)),
            },
        ),
        (
            "snapshot-part-late",
            Message::SnapshotPartLate { read: 9, missing: "dc2 is 35 ms behind at p1".to_owned() },
        ),
        ("snapshot-part-refused", Message::SnapshotPartRefused { read: 9, reply: Reply::error("STOPPED") }),
    ]
}

fn request() -> RequestId {
    RequestId {
        core: CoreId(0x0506),
        boot: 0x1112_1314,
        session: SessionId(0x2122_2324_2526_2728),
        sequence: 0x3132_3334_3536_3738,
    }
}

fn causes() -> Causes {
    Causes::Extension(Opaque(vec![0xc0, 0xff, 0xee]))
}

fn context() -> Context {
    Context { time: LogicalTime(55), causes: causes() }
}

fn args(words: &[&'static str]) -> Args {
    words.iter().map(|word| Bytes::from_static(word.as_bytes())).collect()
}

fn commands() -> Vec<Args> {
    vec![args(&["SET", "key", ""]), args(&["GET", "key"])]
}

fn part() -> Part {
    Part {
        partition: PartitionId(0x0304),
        commands: vec![(0, args(&["SET", "a", "1"])), (2, args(&["PING"]))],
    }
}

fn placed_replies() -> Vec<(u32, Reply)> {
    vec![(0, Reply::OK), (2, Reply::Integer(7))]
}

fn operation(position: u64) -> OperationId {
    OperationId {
        datacenter: DatacenterId(1),
        incarnation: Incarnation(0x0708),
        partition: PartitionId(0x0304),
        position: Position(position),
    }
}

fn dependencies() -> Vec<Dependency> {
    vec![
        Dependency { operation: operation(5), extent: Extent::Exact },
        Dependency { operation: operation(6), extent: Extent::Through },
    ]
}

fn decision() -> Decision {
    let stamp = Stamp { time: LogicalTime(80), datacenter: DatacenterId(1), partition: PartitionId(0x0304) };
    Decision { at: LogicalTime(81), operation: operation(5), stamp }
}
