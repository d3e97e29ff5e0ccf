//! What every protocol must keep, whichever it is: run for each name in `NAMES`.

use crate::{NAMES, Protocol, Snapshot, Validity, Verdict, by_name};
use ensue_types::{
    DatacenterId, Dependency, Extent, Incarnation, LogicalTime, Opaque, OperationId, PartitionId, Position,
    Rules,
};

fn each(check: impl Fn(&dyn Protocol)) {
    for name in NAMES {
        let protocol = by_name(name, 8, Rules::default()).expect("every listed name is known");
        assert_eq!(protocol.name(), name);
        check(protocol.as_ref());
    }
}

fn operation(datacenter: u8, partition: u16, position: u64) -> OperationId {
    OperationId {
        datacenter: DatacenterId(datacenter),
        incarnation: Incarnation(1),
        partition: PartitionId(partition),
        position: Position(position),
    }
}

fn share(earliest: u64, latest: u64) -> Validity {
    Validity { earliest: Some(LogicalTime(earliest)), latest: LogicalTime(latest) }
}

#[test]
fn an_empty_past_waits_for_nothing() {
    each(|protocol| {
        let context = Opaque::default();
        assert_eq!(protocol.verdict(&protocol.dependencies(&context, &[])), Ok(Verdict::Now));
        assert_eq!(protocol.past(&context), Ok(Vec::new()));
    });
}

#[test]
fn a_causal_write_waits_for_what_its_session_read_and_wrote() {
    each(|protocol| {
        let mut context = Opaque::default();
        protocol.observe(&mut context, &[operation(0, 1, 4), operation(1, 0, 9)]);
        let verdict = protocol.verdict(&protocol.dependencies(&context, &[])).expect("own bytes");
        let covered = |wanted: OperationId, verdict: &Verdict| match verdict {
            Verdict::Now => false,
            Verdict::After(list) => list.iter().any(|d| {
                d.operation == wanted
                    || (d.extent == Extent::Through && d.operation.position >= wanted.position)
            }),
        };
        assert_eq!(covered(operation(0, 1, 4), &verdict), protocol.capabilities().causality);
        assert_eq!(covered(operation(1, 0, 9), &verdict), protocol.capabilities().causality);
        protocol.wrote(&mut context, operation(0, 0, 7));
        let verdict = protocol.verdict(&protocol.dependencies(&context, &[])).expect("own bytes");
        assert_eq!(covered(operation(0, 0, 7), &verdict), protocol.capabilities().causality);
    });
}

#[test]
fn a_long_context_stays_bounded_and_forgets_nothing() {
    each(|protocol| {
        let mut context = Opaque::default();
        for position in 1..=100 {
            protocol.observe(&mut context, &[operation(0, (position % 3) as u16, position)]);
        }
        let past = protocol.past(&context).expect("own bytes");
        assert!(past.len() <= 8 + 3, "{} has {} facts", protocol.name(), past.len());
        if protocol.capabilities().causality {
            for position in 1..=100u64 {
                let partition = PartitionId((position % 3) as u16);
                let covers = |d: &Dependency| {
                    d.operation.partition == partition
                        && (d.operation.position.0 == position
                            || (d.extent == Extent::Through && d.operation.position.0 >= position))
                };
                assert!(past.iter().any(covers), "{position} was forgotten");
            }
        }
    });
}

#[test]
fn joining_is_monotone_and_refuses_foreign_bytes() {
    each(|protocol| {
        let mut one = Opaque::default();
        let mut other = Opaque::default();
        protocol.observe(&mut one, &[operation(0, 0, 1)]);
        protocol.observe(&mut other, &[operation(1, 1, 2)]);
        let alone = protocol.past(&one).expect("own bytes");
        protocol.join(&mut one, &other).expect("own bytes");
        let joined = protocol.past(&one).expect("own bytes");
        assert!(alone.iter().all(|d| joined.contains(d)));
        if protocol.capabilities().causality {
            for garbage in [&b"\x02"[..], b"\x01abc", b"\x01\x09aaaaaaaaaaaaa"] {
                assert!(protocol.join(&mut one, &Opaque(garbage.to_vec())).is_err());
                assert!(protocol.verdict(&Opaque(garbage.to_vec())).is_err());
            }
        }
    });
}

#[test]
fn shares_valid_at_one_time_belong_together() {
    each(|protocol| {
        assert_eq!(protocol.snapshot(&[share(10, 30), share(20, 40)]), Snapshot::Consistent);
        // Trap 9: the only common time is both an earliest and a latest valid time.
        assert_eq!(protocol.snapshot(&[share(20, 20), share(10, 20)]), Snapshot::Consistent);
    });
}

#[test]
fn shares_without_a_common_time_are_read_again() {
    let protocol = by_name("eiger", 8, Rules::default()).expect("known");
    // Figure 4(b): location 1 answered at 10, location 2 was overwritten at 12.
    let snapshot = protocol.snapshot(&[share(3, 10), share(12, 17), share(5, 15)]);
    assert_eq!(snapshot, Snapshot::ReadAgain { at: LogicalTime(15), shares: vec![0] });
}

#[test]
fn a_pending_share_is_always_read_again() {
    let protocol = by_name("eiger", 8, Rules::default()).expect("known");
    // Trap 8: the pending share promised 50, the other was valid from 30 to 40.
    let pending = Validity { earliest: None, latest: LogicalTime(50) };
    let snapshot = protocol.snapshot(&[pending, share(30, 40)]);
    assert_eq!(snapshot, Snapshot::ReadAgain { at: LogicalTime(40), shares: vec![0] });
    let snapshot = protocol.snapshot(&[pending]);
    assert_eq!(snapshot, Snapshot::ReadAgain { at: LogicalTime(50), shares: vec![0] });
}
