//! One table: what is said to partition 0 of the first of three datacenters, of two cores and four partitions, and
//! the verdict.

use super::*;
use crate::DatacenterTopology;
use ensue_protocol::Options;
use ensue_types::{Context, Extent, RequestId, SessionId, Stamp, Vector};
use ensue_wire::Interest;

const OURS: DatacenterId = DatacenterId(0);
const TWIN: Address = Address::Partition { datacenter: DatacenterId(1), partition: PartitionId(0) };
const BESIDE: Address = Address::Partition { datacenter: OURS, partition: PartitionId(1) };
const SESSIONS: Address = Address::Core { datacenter: OURS, core: CoreId(1) };
const OWN: Address = Address::Partition { datacenter: OURS, partition: PartitionId(0) };
/// A key of partition 0, and one of another.
const OWN_KEY: &str = "b";
const OTHER_KEY: &str = "a";

fn topology() -> Topology {
    let placement = (0..4).map(|partition| CoreId(partition % 2)).collect::<Vec<_>>();
    let one = |number: u8| DatacenterTopology {
        replicas: Vec::new(),
        name: DatacenterId(number).to_string(),
        cores: 2,
        nodes: vec![1, 1],
        placement: placement.clone(),
    };
    Topology { datacenter: OURS, partitions: 4, datacenters: (0..3).map(one).collect() }
}

/// Keyspace 0 has write transactions, 1 goes by times and has none, 2 has branches.
fn protocols() -> Vec<Box<dyn Protocol>> {
    let by_name = |name| ensue_protocol::by_name(name, Options::default());
    ["eiger", "cure", "tardis"].into_iter().flat_map(by_name).collect()
}

fn verdict(from: Address, message: Message) -> Verdict {
    verdict_of(Envelope { from, to: OWN, time: LogicalTime::from_ms(1_700_000_000_000), message })
}

fn verdict_of(envelope: Envelope) -> Verdict {
    let (topology, protocols) = (topology(), protocols());
    Admission { topology: &topology, protocols: &protocols }.judge(CoreId(0), &envelope)
}

fn operation(datacenter: u8, partition: u16, position: u64) -> OperationId {
    let position = Position(position);
    OperationId {
        datacenter: DatacenterId(datacenter),
        incarnation: position.incarnation(),
        partition: PartitionId(partition),
        position,
    }
}

fn execute(keyspace: u8, line: &str) -> Message {
    let args = line.split_whitespace().map(|word| word.to_owned().into()).collect();
    let (request, context) = (RequestId::default(), Context::default());
    Message::Execute {
        request,
        keyspace: KeyspaceId(keyspace),
        context,
        commands: vec![args],
        together: false,
    }
}

/// A session that has seen this reads a key.
fn after(causes: Causes) -> Message {
    let mut execute = execute(0, &format!("GET {OWN_KEY}"));
    if let Message::Execute { context, .. } = &mut execute {
        context.causes = causes;
    }
    execute
}

fn vector(datacenters: usize) -> Box<Vector> {
    Box::new(Vector { times: TimeVector::uniform(datacenters, LogicalTime(5)), ..Vector::default() })
}

fn depends_on(operation: OperationId) -> Causes {
    Causes::Operations(vec![Dependency { operation, extent: Extent::Exact }])
}

fn transact(keyspace: u8, partitions: &[u16]) -> Message {
    let parts =
        partitions.iter().map(|partition| Part { partition: PartitionId(*partition), commands: vec![] });
    let (request, context) = (RequestId::default(), Context::default());
    Message::Transact { request, keyspace: KeyspaceId(keyspace), context, parts: parts.collect() }
}

/// `MONITOR` shows the commands of a datacenter to its own clients only.
#[test]
fn commands_are_shown_to_no_other_datacenter() {
    let message = |kind| {
        let (channel, payload) = (bytes::Bytes::new(), bytes::Bytes::new());
        Message::Publish { publisher: SessionId(1), kind, channel, payload, past: Vec::new() }
    };
    let interest = |kind| {
        let changes = vec![Interest { kind, name: bytes::Bytes::new(), sessions: 1 }];
        Message::Interest { all: false, changes }
    };
    let to = Address::Core { datacenter: OURS, core: CoreId(0) };
    let judged = |datacenter, message| {
        let from = Address::Core { datacenter: DatacenterId(datacenter), core: CoreId(1) };
        verdict_of(Envelope { from, to, time: LogicalTime::ZERO, message }).is_ok()
    };
    for made in [&message as &dyn Fn(ChannelKind) -> Message, &interest] {
        assert!(judged(0, made(ChannelKind::Monitor)) && judged(1, made(ChannelKind::Channel)));
        assert!(!judged(1, made(ChannelKind::Monitor)));
    }
}

fn commit(transaction: OperationId, by: u16) -> Message {
    let (at, partition) = (LogicalTime(9), PartitionId(by));
    let stamp = Stamp { time: at, datacenter: transaction.datacenter, partition };
    let operation = OperationId { position: Position(7), ..transaction };
    Message::Commit { transaction, decision: Decision { at, operation, stamp } }
}

fn entries(incarnation: u16, first: u64) -> Message {
    let incarnation = Incarnation(incarnation);
    Message::StreamEntries { incarnation, first: Position(first), entries: vec![Default::default(); 2] }
}

fn acknowledge(received: u64, synced: u64, of: u8) -> Message {
    Message::StreamAcknowledge(StreamAcknowledge {
        incarnation: Incarnation(1),
        received: Position(received),
        synced: Position(synced),
        applied: vec![(DatacenterId(of), Incarnation(1), Position(1))],
        end: Position(3),
        shown: LogicalTime::ZERO,
    })
}

#[test]
fn what_the_same_partition_of_another_datacenter_says() {
    let last = u64::from(u16::MAX - 1) << 48;
    for (message, expected) in [
        (entries(1, 4), Ok(())),
        (entries(1, 0), Err("a stream that begins before its first place")),
        (entries(2, 4), Err("a position of another incarnation than it is said to be of")),
        (entries(u16::MAX - 1, last - 2), Ok(())),
        (entries(u16::MAX - 1, last - 1), Err("a position that no stream comes to")),
        (Message::Heartbeat { end: Position(u64::MAX) }, Err("a position that no stream comes to")),
        (acknowledge(5, 5, 2), Ok(())),
        (acknowledge(5, 6, 2), Err("an acknowledgement of more as synced than as received")),
        (acknowledge(5, 5, 3), Err("a datacenter that the cluster does not have")),
        (Message::PassOn { origin: DatacenterId(2), after: Position(1) }, Ok(())),
        (
            Message::PassedOn { origin: DatacenterId(1), entries: vec![] },
            Err("a stream that is not one for its sender to speak of"),
        ),
        (
            Message::PassedOn { origin: DatacenterId(3), entries: vec![] },
            Err("a datacenter that the cluster does not have"),
        ),
        (
            Message::DatacenterFailed {
                datacenter: DatacenterId(9),
                received: Position(1),
                time: LogicalTime(1),
                ended: None,
            },
            Err("a datacenter that the cluster does not have"),
        ),
        (
            Message::BranchFetch { keyspace: KeyspaceId(0), state: 1, live: vec![] },
            Err("states of a keyspace that has no branches here"),
        ),
        (Message::BranchFetch { keyspace: KeyspaceId(2), state: 1, live: vec![] }, Ok(())),
        (execute(0, "GET b"), Err("a message that no datacenter sends another")),
        (
            Message::Vote { transaction: operation(0, 0, 1) },
            Err("a message that no datacenter sends another"),
        ),
    ] {
        assert_eq!(verdict(TWIN, message.clone()), expected, "{message:?}");
    }
}

#[test]
fn what_sessions_of_the_datacenter_ask() {
    let together = Err("a write transaction of a protocol that has none");
    let times = |count| TimeVector::uniform(count, LogicalTime(5));
    for (message, expected) in [
        (execute(0, &format!("SET {OWN_KEY} 1")), Ok(())),
        (execute(0, &format!("SET {OTHER_KEY} 1")), Err("a key of another partition")),
        (execute(2, &format!("SET {OTHER_KEY} 1")), Ok(())),
        (execute(3, "DBSIZE"), Err("a keyspace that is not configured")),
        (execute(0, "NONSENSE x"), Ok(())),
        (execute(0, ""), Err("a command without a name")),
        (transact(0, &[0, 3]), Ok(())),
        (transact(0, &[]), Err("parts that are not one a partition")),
        (transact(0, &[0, 0]), Err("parts that are not one a partition")),
        (transact(0, &[0, 4]), Err("a partition that the cluster does not have")),
        (transact(1, &[0]), Ok(())),
        (transact(1, &[0, 1]), together),
        (Message::AwaitTimes { check: 1, times: times(3), readers: None }, Ok(())),
        (
            Message::AwaitTimes { check: 1, times: times(17), readers: None },
            Err("times of more datacenters than there can be"),
        ),
        (
            Message::AwaitTimes { check: 1, times: times(4), readers: None },
            Err("a time of a datacenter that there is not"),
        ),
        (after(Causes::Times(vector(3))), Ok(())),
        (after(Causes::Times(vector(4))), Err("a time of a datacenter that there is not")),
        (after(depends_on(operation(2, 3, 9))), Ok(())),
        (after(depends_on(operation(3, 0, 9))), Err("a datacenter that the cluster does not have")),
        (Message::AskTime, Err("a message that is only said between datacenters")),
        (Message::Vote { transaction: operation(0, 0, 9) }, Err("a message that no session sends")),
    ] {
        assert_eq!(verdict(SESSIONS, message.clone()), expected, "{message:?}");
    }
}

#[test]
fn what_other_partitions_of_the_datacenter_say() {
    let stranger = Err("a transaction that another partition coordinates");
    let asked = |operation| {
        let dependency = Dependency { operation, extent: ensue_types::Extent::Exact };
        Message::CheckDependencies { check: 1, origin: None, dependencies: vec![dependency] }
    };
    for (message, expected) in [
        (commit(operation(2, 1, 9), 1), Ok(())),
        (commit(operation(2, 0, 9), 0), stranger),
        (commit(operation(2, 1, 9), 2), Err("a decision about another transaction")),
        (Message::Vote { transaction: operation(0, 0, 9) }, Ok(())),
        (Message::Vote { transaction: operation(0, 1, 9) }, stranger),
        (
            Message::Notify { transaction: operation(0, 0, 9) },
            Err("a datacenter that is spoken of to itself"),
        ),
        (
            Message::Notify { transaction: operation(2, 0, u64::MAX) },
            Err("a position that no stream comes to"),
        ),
        (asked(operation(1, 0, 5)), Ok(())),
        (asked(operation(1, 3, 5)), Err("a dependency check for another partition")),
        (asked(operation(3, 0, 5)), Err("a datacenter that the cluster does not have")),
        (entries(1, 4), Err("a message that is only said between datacenters")),
        (execute(0, "GET b"), Err("a message that no partition sends another of its datacenter")),
    ] {
        assert_eq!(verdict(BESIDE, message.clone()), expected, "{message:?}");
    }
}

#[test]
fn where_it_comes_from_and_where_it_goes() {
    let ask = |from, to, ms| {
        let time = LogicalTime::from_ms(ms);
        verdict_of(Envelope { from, to, time, message: Message::AskTime })
    };
    let partition = |datacenter, partition| Address::Partition {
        datacenter: DatacenterId(datacenter),
        partition: PartitionId(partition),
    };
    assert_eq!(ask(TWIN, OWN, 1), Ok(()));
    assert_eq!(ask(TWIN, OWN, limits::LOGICAL_MS_MAX), Err("a time that no clock shows"));
    assert_eq!(ask(partition(1, 2), OWN, 1), Err("a message in another's name"));
    assert_eq!(ask(TWIN, partition(0, 1), 1), Err("a message for another core"));
    assert_eq!(ask(TWIN, partition(2, 0), 1), Err("a message for another core"));
    assert_eq!(ask(TWIN, partition(0, 4), 1), Err("a message for another core"));
    for nobody in [partition(3, 0), partition(1, 4), Address::Core { datacenter: OURS, core: CoreId(2) }] {
        assert_eq!(ask(nobody, OWN, 1), Err("a message of nobody that the cluster has"));
    }
    let core = Address::Core { datacenter: DatacenterId(1), core: CoreId(0) };
    assert_eq!(ask(core, OWN, 1), Err("a message in another's name"));
}

#[test]
fn a_session_elsewhere_asks_the_home_of_keys_for_commands_on_keys() {
    let asked = |keyspace, transaction, lines: &[&str]| {
        let args = |line: &&str| line.split(' ').map(|word| word.to_owned().into()).collect();
        let request = HomeRequest {
            boot: 1,
            number: 1,
            home_boot: 1,
            below: 0,
            keyspace: KeyspaceId(keyspace),
            context: Context::default(),
            transaction,
            waits_ms: 0,
            abandoned: false,
            commands: lines.iter().map(args).collect(),
        };
        let message = Message::HomeRequest(request);
        let from = Address::Core { datacenter: DatacenterId(1), core: CoreId(0) };
        let to = Address::Core { datacenter: OURS, core: CoreId(0) };
        verdict_of(Envelope { from, to, time: LogicalTime::ZERO, message }).is_ok()
    };
    assert!(asked(0, false, &["SET a 1"]) && asked(1, true, &["SET a 1", "PING", "INCR b"]));
    assert!(!asked(2, false, &["SET a 1"]), "states have no homes");
    assert!(!asked(7, false, &["SET a 1"]), "no such keyspace");
    assert!(!asked(0, false, &[]) && !asked(0, false, &["SET a 1", "SET b 1"]), "one command");
    let strange = ["FLUSHALL", "CAUSAL DEAD dc1", "CLIENT KILL x", "EXEC", "NOSUCH a", "SET a", "PING"];
    for line in strange {
        assert!(!asked(0, false, &[line]), "{line}");
    }
    for line in &strange[..6] {
        assert!(!asked(0, true, &[line, "SET a 1"]), "{line}");
    }
}

#[test]
fn a_move_of_a_home_has_a_number_that_can_be_followed_by_another_and_is_told_elsewhere_when_it_has_stopped() {
    let moved = |version, step| {
        let moved = HomeMove {
            keyspace: KeyspaceId(0),
            pattern: "a*".into(),
            configured: OURS,
            version,
            from: OURS,
            home: DatacenterId(1),
            step,
            is_claimed: false,
            applied: Vec::new(),
            times: TimeVector::default(),
        };
        Message::HomeMoves { asks: false, moves: vec![moved] }
    };
    let most = u64::from(HomeMove::VERSION_MAX);
    for (version, is_possible) in [(0, false), (1, true), (most, true), (most + 1, false), (u64::MAX, false)]
    {
        for from in [TWIN, BESIDE] {
            assert_eq!(verdict(from, moved(version, HomeStep::Stopped)).is_ok(), is_possible, "{version}");
        }
    }
    for step in [HomeStep::Unknown, HomeStep::Closing, HomeStep::Closed] {
        assert!(verdict(TWIN, moved(1, step)).is_err(), "{step:?}");
        assert!(verdict(BESIDE, moved(1, step)).is_ok(), "{step:?}");
    }
}
