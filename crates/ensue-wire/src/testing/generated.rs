//! Envelopes of any shape within the limits, for properties.
//!
//! Numbers are drawn near those of a small cluster that has run for a while, at the ends of their ranges, and anywhere.

use crate::message::{
    Address, AtValues, ChannelKind, ContextName, CoreQuery, Decision, Envelope, FirstValues, HomeOutcome,
    HomeRequest, Interest, Introduction, Message, PeerStage, SnapshotOutcome, StreamAcknowledge,
};
use bytes::Bytes;
use ensue_types::causes::EXTENSION;
use ensue_types::limits::KEYSPACES;
use ensue_types::{
    Args, Causes, Context, CoreId, DatacenterId, DatacenterSet, Dependency, DirectoryId, Extent, HomeMove,
    HomeStep, Incarnation, KeyspaceId, LogicalTime, Opaque, OperationId, Part, PartitionId, Position, Reply,
    RequestId, SessionId, Stamp, TimeVector, Vector,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

pub fn envelope() -> impl Strategy<Value = Envelope> {
    (address(), address(), time(), message()).prop_map(|(from, to, time, message)| Envelope {
        from,
        to,
        time,
        message,
    })
}

fn message() -> impl Strategy<Value = Message> {
    prop_oneof![
        session(),
        answers(),
        control(),
        transaction(),
        stream(),
        snapshots(),
        times(),
        channels(),
        homes()
    ]
}

fn session() -> BoxedStrategy<Message> {
    let asked = (request(), keyspace(), context(), commands(), any::<bool>());
    prop_oneof![
        asked.prop_map(|(request, keyspace, context, commands, together)| Message::Execute {
            request,
            keyspace,
            context,
            commands,
            together
        }),
        (request(), keyspace(), commands()).prop_map(|(request, keyspace, commands)| Message::ReadFirst {
            request,
            keyspace,
            commands
        }),
        (request(), keyspace(), commands(), time(), operations()).prop_map(
            |(request, keyspace, commands, at, with)| Message::ReadAt {
                request,
                keyspace,
                commands,
                at,
                with
            }
        ),
        (request(), keyspace(), context(), vec(part(), 0..4)).prop_map(
            |(request, keyspace, context, parts)| Message::Transact { request, keyspace, context, parts }
        ),
    ]
    .boxed()
}

fn answers() -> BoxedStrategy<Message> {
    let first = (vec(reply(), 0..4), time(), causes())
        .prop_map(|(replies, earliest_valid, seen)| FirstValues { replies, earliest_valid, seen });
    let at = (vec(reply(), 0..4), causes()).prop_map(|(replies, seen)| AtValues { replies, seen });
    prop_oneof![
        (request(), context(), vec(reply(), 0..4))
            .prop_map(|(request, context, replies)| Message::Executed { request, context, replies }),
        (request(), context(), vec(reply(), 0..4), commands()).prop_map(
            |(request, context, replies, rest)| {
                Message::ExecutedInPart { request, context, replies, rest }
            }
        ),
        (request(), time(), option::of(first)).prop_map(|(request, latest_valid, values)| {
            Message::ReadFirstDone { request, latest_valid, values }
        }),
        (request(), option::of(at)).prop_map(|(request, values)| Message::ReadAtDone { request, values }),
        (request(), context(), placed_replies())
            .prop_map(|(request, context, replies)| Message::Transacted { request, context, replies }),
        (request(), reply()).prop_map(|(request, reply)| Message::Refused { request, reply }),
    ]
    .boxed()
}

fn control() -> BoxedStrategy<Message> {
    prop_oneof![
        (request(), dependencies(), time_vector(), any::<(u8, bool)>()).prop_map(
            |(request, dependencies, times, (datacenters, here))| Message::AwaitReplicas {
                request,
                dependencies,
                times,
                datacenters,
                here
            }
        ),
        (request(), any::<(u8, bool)>()).prop_map(|(request, (datacenters, here))| {
            Message::ReplicasReached { request, datacenters, here }
        }),
        (request(), dependencies(), time_vector()).prop_map(|(request, dependencies, times)| {
            Message::CountReplicas { request, dependencies, times }
        }),
        (request(), context_name()).prop_map(|(request, context)| Message::ContextFetch { request, context }),
        (request(), time(), context()).prop_map(|(request, since, context)| Message::ContextFetched {
            request,
            since,
            context
        }),
        (request(), context_name(), context()).prop_map(|(request, name, context)| Message::ContextMerge {
            request,
            name,
            context
        }),
        request().prop_map(|request| Message::ContextMerged { request }),
        request().prop_map(|request| Message::MetricsQuery { request }),
        (request(), metrics()).prop_map(|(request, metrics)| Message::MetricsAnswer { request, metrics }),
        (
            request(),
            prop_oneof![
                Just(CoreQuery::ClientList),
                Just(CoreQuery::Metrics),
                Just(CoreQuery::ResetStatistics),
                args().prop_map(CoreQuery::Order)
            ]
        )
            .prop_map(|(request, query)| Message::CoreQuery { request, query }),
        (request(), string(), metrics()).prop_map(|(request, text, metrics)| Message::CoreAnswer {
            request,
            text,
            metrics
        }),
        (any::<u16>(), string())
            .prop_map(|(partition, bytes)| Message::Replica { partition: PartitionId(partition), bytes }),
        (any::<u16>(), any::<u64>())
            .prop_map(|(partition, term)| Message::Leads { partition: PartitionId(partition), term }),
        (any::<u16>(), any::<u64>(), proptest::option::of((any::<u16>(), any::<u16>()))).prop_map(
            |(partition, number, wish)| {
                let wish = wish.map(|(from, to)| (CoreId(from), CoreId(to)));
                Message::GroupAsk { partition: PartitionId(partition), number, wish }
            }
        ),
        (any::<u64>(), any::<bool>(), string()).prop_map(|(number, is_done, text)| Message::GroupTold {
            number,
            is_done,
            text
        }),
        (any::<u64>(), args()).prop_map(|(number, words)| Message::BackupAsk { number, words }),
        (any::<u64>(), reply()).prop_map(|(number, reply)| Message::BackupTold { number, reply }),
        (any::<u64>(), option::of(any::<u8>().prop_map(DatacenterId)), dependencies()).prop_map(
            |(check, origin, dependencies)| Message::CheckDependencies { check, origin, dependencies }
        ),
        (any::<u64>(), dependencies())
            .prop_map(|(check, unrecoverable)| Message::DependenciesMet { check, unrecoverable }),
    ]
    .boxed()
}

fn channels() -> BoxedStrategy<Message> {
    let kind = || {
        prop_oneof![
            Just(ChannelKind::Channel),
            Just(ChannelKind::Pattern),
            Just(ChannelKind::Shard),
            Just(ChannelKind::Monitor)
        ]
    };
    let interest =
        (kind(), string(), any::<u32>()).prop_map(|(kind, name, sessions)| Interest { kind, name, sessions });
    let past = vec((keyspace(), context()), 0..4);
    prop_oneof![
        (any::<bool>(), vec(interest, 0..8)).prop_map(|(all, changes)| Message::Interest { all, changes }),
        any::<bool>().prop_map(|wanted| Message::ReportChanges { wanted }),
        (keyspace(), proptest::option::of(string()), string(), proptest::option::of(any::<u64>())).prop_map(
            |(keyspace, key, event, writer)| Message::Changed {
                keyspace,
                key,
                event,
                writer: writer.map(SessionId),
            }
        ),
        (any::<u64>(), kind(), string(), string(), past).prop_map(
            |(publisher, kind, channel, payload, past)| {
                Message::Publish { publisher: SessionId(publisher), kind, channel, payload, past }
            }
        ),
    ]
    .boxed()
}

fn moved() -> BoxedStrategy<HomeMove> {
    let step = (0..6u8).prop_map(|number| HomeStep::of_number(number).unwrap_or_default());
    let applied = vec((any::<u8>().prop_map(DatacenterId), any::<u64>().prop_map(Position)), 0..3);
    let datacenters = any::<[u8; 3]>().prop_map(|all| all.map(DatacenterId));
    let state = (any::<u64>(), step, any::<bool>());
    (keyspace(), string(), datacenters, state, applied, time_vector())
        .prop_map(
            |(keyspace, pattern, [configured, from, home], (version, step, is_claimed), applied, times)| {
                HomeMove {
                    keyspace,
                    pattern,
                    configured,
                    version,
                    from,
                    home,
                    step,
                    is_claimed,
                    applied,
                    times,
                }
            },
        )
        .boxed()
}

fn homes() -> BoxedStrategy<Message> {
    let outcome = prop_oneof![
        (context(), reply()).prop_map(|(context, reply)| HomeOutcome::Executed { context, reply }),
        reply().prop_map(|reply| HomeOutcome::Refused { reply }),
        Just(HomeOutcome::Forgotten),
        Just(HomeOutcome::Withdrawn),
    ];
    let names = (any::<u32>(), any::<u64>(), any::<u32>(), any::<u64>());
    let moves = (any::<bool>(), vec(moved(), 0..3));
    let kind = (any::<bool>(), any::<u64>(), any::<bool>());
    prop_oneof![
        any::<u32>().prop_map(|boot| Message::HomeReady { boot }),
        moves.prop_map(|(asks, moves)| Message::HomeMoves { asks, moves }),
        (any::<u32>(), any::<u64>(), outcome).prop_map(|(boot, number, outcome)| Message::HomeAnswer {
            boot,
            number,
            outcome
        }),
        (names, keyspace(), context(), kind, commands()).prop_map(
            |((boot, number, home_boot, below), keyspace, context, kind, commands)| {
                let (transaction, waits_ms, abandoned) = kind;
                Message::HomeRequest(HomeRequest {
                    boot,
                    number,
                    home_boot,
                    below,
                    keyspace,
                    context,
                    transaction,
                    waits_ms,
                    abandoned,
                    commands,
                })
            }
        ),
    ]
    .boxed()
}

fn transaction() -> BoxedStrategy<Message> {
    prop_oneof![
        (operation(), keyspace(), option::of(part()))
            .prop_map(|(transaction, keyspace, part)| Message::Prepare { transaction, keyspace, part }),
        operation().prop_map(|transaction| Message::Vote { transaction }),
        (operation(), decision())
            .prop_map(|(transaction, decision)| Message::Commit { transaction, decision }),
        (operation(), placed_replies(), causes())
            .prop_map(|(transaction, replies, seen)| Message::Committed { transaction, replies, seen }),
        operation().prop_map(|transaction| Message::Notify { transaction }),
        (any::<u64>(), operation(), time(), any::<bool>()).prop_map(|(check, transaction, at, waits)| {
            Message::CommitCheck { check, transaction, at, waits }
        }),
        (any::<u64>(), operation(), time()).prop_map(|(check, transaction, at)| Message::CommitUnannounced {
            check,
            transaction,
            at
        }),
        (any::<u64>(), operation(), option::of(decision())).prop_map(|(check, transaction, decision)| {
            Message::CommitChecked { check, transaction, decision }
        }),
        operations().prop_map(|operations| Message::PartsSynced { operations }),
        operations().prop_map(|operations| Message::PartsForgotten { operations }),
        operation().prop_map(|transaction| Message::Abandon { transaction }),
        operation().prop_map(|transaction| Message::PartUnrecoverable { transaction }),
        operation().prop_map(|transaction| Message::AwaitPart { transaction }),
        operation().prop_map(|transaction| Message::Discard { transaction }),
        operation().prop_map(|transaction| Message::ForgetVote { transaction }),
        (operation(), time()).prop_map(|(transaction, time)| Message::FindPart { transaction, time }),
        operation().prop_map(|transaction| Message::PartHeld { transaction }),
        operation().prop_map(|transaction| Message::TransactionOver { transaction }),
        Just(Message::FillQuery),
        any::<bool>().prop_map(|fills| Message::FillAnswer { fills }),
        any::<u64>().prop_map(|number| Message::Repeat { number }),
        any::<u64>().prop_map(|number| Message::Repeated { number }),
    ]
    .boxed()
}

fn stream() -> BoxedStrategy<Message> {
    let watermark = (datacenter(), incarnation(), position());
    let acknowledge = (incarnation(), position(), position(), vec(watermark, 0..20), position(), time())
        .prop_map(|(incarnation, received, synced, applied, end, shown)| StreamAcknowledge {
            incarnation,
            received,
            synced,
            applied,
            end,
            shown,
        });
    prop_oneof![
        (incarnation(), position())
            .prop_map(|(incarnation, received)| Message::StreamResume { incarnation, received }),
        (incarnation(), position(), vec(string(), 0..8))
            .prop_map(|(incarnation, first, entries)| Message::StreamEntries { incarnation, first, entries }),
        acknowledge.prop_map(Message::StreamAcknowledge),
        position().prop_map(|after| Message::TailFetch { after }),
        (position(), position(), vec(string(), 0..8))
            .prop_map(|(after, received, entries)| Message::TailFetched { after, received, entries }),
        (any::<u64>(), any::<u64>(), any::<bool>()).prop_map(|(copy, part, again)| Message::CopyFetch {
            copy,
            part,
            again
        }),
        (any::<u64>(), any::<u64>(), any::<bool>(), any::<u64>(), any::<u64>(), vec(string(), 0..8))
            .prop_map(|(copy, part, is_last, done, of, items)| Message::Copied {
                copy,
                part,
                is_last,
                done,
                of,
                items
            }),
        (any::<u64>(), any::<bool>()).prop_map(|(copy, cannot)| Message::CopyRefused { copy, cannot }),
        (datacenter(), position(), time(), option::of(datacenters())).prop_map(
            |(datacenter, received, time, ended)| Message::DatacenterFailed {
                datacenter,
                received,
                time,
                ended
            }
        ),
        (keyspace(), any::<u64>(), vec(any::<u64>(), 0..8))
            .prop_map(|(keyspace, state, live)| Message::BranchFetch { keyspace, state, live }),
        (keyspace(), string()).prop_map(|(keyspace, rebuilt)| Message::BranchFetched { keyspace, rebuilt }),
        (keyspace(), any::<u64>(), vec(datacenter(), 0..8))
            .prop_map(|(keyspace, state, failed)| Message::BranchLacking { keyspace, state, failed }),
        any::<u64>().prop_map(|ahead_ms| Message::ClockAhead { ahead_ms }),
        any::<u8>().prop_map(|step| Message::Retiring { step }),
        introduction().prop_map(Message::Introduce),
        (datacenter(), position()).prop_map(|(origin, after)| Message::PassOn { origin, after }),
        (datacenter(), vec(string(), 0..8))
            .prop_map(|(origin, entries)| Message::PassedOn { origin, entries }),
    ]
    .boxed()
}

fn introduction() -> impl Strategy<Value = Introduction> {
    let directory = || any::<u128>().prop_map(DirectoryId);
    let stage = prop_oneof![Just(PeerStage::Joining), Just(PeerStage::Recovering), Just(PeerStage::Serving)];
    let who = (directory(), stage, directory());
    let places = (position(), position(), position());
    let what = (position(), time(), any::<u64>(), places, any::<bool>(), any::<bool>());
    (who, what).prop_map(|((directory, stage, known), what)| {
        let (received, last, proof, (applied, end, elsewhere), is_whole, asks) = what;
        Introduction {
            directory,
            stage,
            known,
            received,
            last,
            proof,
            applied,
            end,
            elsewhere,
            is_whole,
            asks,
        }
    })
}

fn snapshots() -> BoxedStrategy<Message> {
    let outcome = prop_oneof![
        (context(), placed_replies())
            .prop_map(|(context, replies)| SnapshotOutcome::Read { context, replies }),
        Just(SnapshotOutcome::TooLate),
        (context(), reply()).prop_map(|(context, reply)| SnapshotOutcome::TimedOut { context, reply }),
    ];
    let values = (vec(reply(), 0..4), causes()).prop_map(|(replies, seen)| AtValues { replies, seen });
    prop_oneof![
        (request(), keyspace(), context(), vec(part(), 0..4)).prop_map(
            |(request, keyspace, context, parts)| Message::ReadSnapshot { request, keyspace, context, parts }
        ),
        (request(), outcome).prop_map(|(request, outcome)| Message::SnapshotRead { request, outcome }),
        (any::<u64>(), keyspace(), time_vector(), commands()).prop_map(
            |(read, keyspace, snapshot, commands)| {
                Message::ReadSnapshotPart { read, keyspace, snapshot, commands }
            }
        ),
        (any::<u64>(), option::of(values))
            .prop_map(|(read, values)| Message::SnapshotPartRead { read, values }),
        (request(), context(), vec(reply(), 0..4))
            .prop_map(|(request, context, replies)| Message::TimedOut { request, context, replies }),
    ]
    .boxed()
}

fn times() -> BoxedStrategy<Message> {
    prop_oneof![
        (any::<u64>(), time_vector(), option::of(keyspace()))
            .prop_map(|(check, times, readers)| Message::AwaitTimes { check, times, readers }),
        (time_vector(), time_vector(), operations()).prop_map(|(received, floor, globally_stable)| {
            Message::StabilizationReport { received, floor, globally_stable }
        }),
        (time_vector(), time_vector(), operations()).prop_map(|(received, floor, globally_stable)| {
            Message::Stable { received, floor, globally_stable }
        }),
        position().prop_map(|end| Message::Heartbeat { end }),
        Just(Message::AskTime),
        (datacenter(), time(), datacenters(), option::of(time())).prop_map(
            |(datacenter, whole, failed, doubtful)| Message::Ended { datacenter, whole, failed, doubtful }
        ),
        (datacenter(), time(), datacenters(), option::of(time())).prop_map(
            |(datacenter, whole, failed, doubtful)| Message::Lost { datacenter, whole, failed, doubtful }
        ),
        (any::<u64>(), text()).prop_map(|(read, missing)| Message::SnapshotPartLate { read, missing }),
        (any::<u64>(), reply()).prop_map(|(read, reply)| Message::SnapshotPartRefused { read, reply }),
    ]
    .boxed()
}

fn time_vector() -> impl Strategy<Value = TimeVector> {
    vec(time(), 0..16).prop_map(|times| times.into_iter().collect())
}

fn reply() -> impl Strategy<Value = Reply> {
    let leaf = prop_oneof![
        text().prop_map(|text| Reply::Status(text.into())),
        text().prop_map(|text| Reply::Error(text.into())),
        any::<i64>().prop_map(Reply::Integer),
        string().prop_map(Reply::Bulk),
        string().prop_map(Reply::Verbatim),
        string().prop_map(Reply::BigNumber),
        Just(Reply::Nil),
        Just(Reply::NilArray),
        // Everything but NaN, which equals nothing.
        any::<f64>().prop_map(Reply::Double),
        any::<bool>().prop_map(Reply::Boolean),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Reply::Array),
            vec(inner.clone(), 0..4).prop_map(Reply::Set),
            vec((inner.clone(), inner.clone()), 0..4).prop_map(Reply::Map),
            vec((inner.clone(), inner.clone()), 0..4).prop_map(Reply::Pairs),
            vec((inner.clone(), inner), 0..4).prop_map(Reply::Keyed),
        ]
    })
}

fn address() -> impl Strategy<Value = Address> {
    (any::<bool>(), datacenter(), partition()).prop_map(|(is_core, datacenter, PartitionId(number))| {
        if is_core {
            Address::Core { datacenter, core: CoreId(number) }
        } else {
            Address::Partition { datacenter, partition: PartitionId(number) }
        }
    })
}

fn request() -> impl Strategy<Value = RequestId> {
    (any::<u16>(), any::<u32>(), any::<u64>(), any::<u64>()).prop_map(|(core, boot, session, sequence)| {
        RequestId { core: CoreId(core), boot, session: SessionId(session), sequence }
    })
}

fn operations() -> impl Strategy<Value = Vec<OperationId>> {
    vec(operation(), 0..8)
}

fn operation() -> impl Strategy<Value = OperationId> {
    let fitting = (datacenter(), partition(), position()).prop_map(|(datacenter, partition, position)| {
        let incarnation = position.incarnation();
        OperationId { datacenter, incarnation, partition, position }
    });
    let any = (datacenter(), incarnation(), partition(), position()).prop_map(
        |(datacenter, incarnation, partition, position)| OperationId {
            datacenter,
            incarnation,
            partition,
            position,
        },
    );
    prop_oneof![fitting, any]
}

fn dependencies() -> impl Strategy<Value = Vec<Dependency>> {
    let extent = prop_oneof![Just(Extent::Exact), Just(Extent::Through)];
    vec((operation(), extent).prop_map(|(operation, extent)| Dependency { operation, extent }), 0..6)
}

fn decision() -> impl Strategy<Value = Decision> {
    let stamp = (time(), datacenter(), partition()).prop_map(|(time, datacenter, partition)| Stamp {
        time,
        datacenter,
        partition,
    });
    (time(), operation(), stamp).prop_map(|(at, operation, stamp)| Decision { at, operation, stamp })
}

fn args() -> impl Strategy<Value = Args> {
    let word = |word: &'static str| Bytes::from_static(word.as_bytes());
    let name =
        prop_oneof![Just("GET"), Just("SET"), Just("INCR"), Just("MGET"), Just("HSET"), Just("CAUSAL")];
    let words = vec(prop_oneof![Just("a"), Just("b"), Just("{c}d"), Just("1")], 0..4);
    let known =
        (name, words).prop_map(move |(name, words)| std::iter::once(name).chain(words).map(word).collect());
    prop_oneof![known, vec(string(), 1..5)]
}

fn commands() -> impl Strategy<Value = Vec<Args>> {
    vec(args(), 0..4)
}

fn part() -> impl Strategy<Value = Part> {
    (partition(), vec((any::<u32>(), args()), 0..4))
        .prop_map(|(partition, commands)| Part { partition, commands })
}

fn placed_replies() -> impl Strategy<Value = Vec<(u32, Reply)>> {
    vec((any::<u32>(), reply()), 0..4)
}

fn metrics() -> impl Strategy<Value = Vec<(String, i64)>> {
    vec((text(), any::<i64>()), 0..4)
}

fn context_name() -> impl Strategy<Value = ContextName> {
    (keyspace(), string()).prop_map(|(keyspace, name)| ContextName { keyspace, name })
}

fn context() -> impl Strategy<Value = Context> {
    (time(), causes()).prop_map(|(time, causes)| Context { time, causes })
}

fn causes() -> impl Strategy<Value = Causes> {
    let extension = (EXTENSION.., vec(any::<u8>(), 0..40))
        .prop_map(|(first, rest)| Causes::Extension(Opaque([vec![first], rest].concat())));
    let times = vec(time(), 0..4).prop_map(TimeVector::from_iter);
    prop_oneof![extension, times.prop_map(|times| Vector { times, ..Vector::default() }.into())]
}

fn string() -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..40).prop_map(Bytes::from)
}

fn text() -> impl Strategy<Value = String> {
    vec(any::<char>(), 0..12).prop_map(|letters| letters.into_iter().collect())
}

fn keyspace() -> impl Strategy<Value = KeyspaceId> {
    (0..KEYSPACES).prop_map(KeyspaceId)
}

fn time() -> impl Strategy<Value = LogicalTime> {
    // What a clock shows in the years around 2026, and what it counts within a millisecond.
    let near =
        (1_600_000_000_000_u64..1_900_000_000_000, 0..4_u64).prop_map(|(ms, count)| (ms << 16) + count);
    prop_oneof![4 => near, 1 => ends(), 1 => any::<u64>()].prop_map(LogicalTime)
}

fn datacenter() -> impl Strategy<Value = DatacenterId> {
    prop_oneof![8 => 0..4_u8, 1 => any::<u8>()].prop_map(DatacenterId)
}

fn datacenters() -> impl Strategy<Value = DatacenterSet> {
    any::<u16>().prop_map(DatacenterSet)
}

fn partition() -> impl Strategy<Value = PartitionId> {
    prop_oneof![8 => 0..5_u16, 1 => any::<u16>()].prop_map(PartitionId)
}

/// Both ends of the range of a number, and what lies beside them.
fn ends() -> impl Strategy<Value = u64> {
    prop_oneof![0..3_u64, u64::MAX - 2..=u64::MAX, Just(1 << 63), Just((1 << 63) - 1)]
}

fn incarnation() -> impl Strategy<Value = Incarnation> {
    prop_oneof![4 => 0..3_u16, 1 => Just(u16::MAX), 1 => any::<u16>()].prop_map(Incarnation)
}

fn position() -> impl Strategy<Value = Position> {
    let near_an_incarnation =
        (0..4_u16, 0..30_u64).prop_map(|(life, number)| Position::before(Incarnation(life)).0 + number);
    prop_oneof![4 => 0..200_u64, 2 => near_an_incarnation, 1 => ends(), 1 => any::<u64>()].prop_map(Position)
}
