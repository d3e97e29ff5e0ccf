//! What waits for a core that is away, and for how long.

use super::*;
use crate::config::{AppendFsync, DatacenterTopology, Topology, Tuning};
use ensue_types::{KeyspaceId, LogicalTime, PartitionId, RequestId};
use ensue_wire::Message;

const OWN: DatacenterId = DatacenterId(0);
const AWAY: CoreId = CoreId(1);

/// A datacenter of two cores, of which the other one has the only partition.
fn config() -> NodeConfig {
    let datacenter = DatacenterTopology { name: "dc1".into(), cores: 2, placement: vec![AWAY] };
    NodeConfig {
        topology: Topology { datacenter: OWN, partitions: 1, datacenters: vec![datacenter] },
        tuning: Tuning { request_timeout_ms: 1_000, ..Tuning::default() },
        ..crate::partition::tests::config(AppendFsync::default())
    }
}

fn park(router: &mut Router, ms: u64, sequence: u64) {
    let message = Message::ReadFirst {
        request: RequestId { sequence, ..RequestId::default() },
        keyspace: KeyspaceId(0),
        commands: Vec::new(),
    };
    let envelope = Envelope {
        from: Address::Core { datacenter: OWN, core: CoreId(0) },
        to: Address::Partition { datacenter: OWN, partition: PartitionId(0) },
        time: LogicalTime::from_ms(ms),
        message,
    };
    assert_eq!(router.park(&config(), now(ms), AWAY, envelope), None);
}

fn now(ms: u64) -> Now {
    Now { monotonic_us: 1_000 * ms, wall_ms: ms }
}

#[test]
fn a_request_leaves_when_its_time_is_over_though_the_core_stays_away() {
    let mut router = Router::default();
    park(&mut router, 0, 1);
    park(&mut router, 500, 2);
    park(&mut router, 999, 3);
    assert_eq!(router.parked[&AWAY].len(), 3);
    park(&mut router, 1_000, 4);
    assert_eq!(router.parked[&AWAY].len(), 3, "the first one is gone");
    let times = router.on_link_up(now(1_600), OWN, AWAY).into_iter().map(|envelope| envelope.time);
    assert_eq!(times.collect::<Vec<_>>(), [999, 1_000].map(LogicalTime::from_ms));
}
