//! A set of operations as bytes: the context of the list family of protocols.
//!
//! ```text
//! version u8 = 1 | item*                     item, 14 bytes little endian:
//! extent u8 (0 exact, 1 through) | datacenter u8 | incarnation u16 | partition u16 | position u64
//! ```
//!
//! Items stand in the order of their bytes' meaning (stream, then extent, then position), each stream's `Through` at most
//! once and no `Exact` at or below it. Decoding refuses anything of another length or version, and never panics.

use crate::Malformed;
use ensue_types::{
    DatacenterId, Dependency, Extent, Incarnation, Opaque, OperationId, PartitionId, Position,
};

const VERSION: u8 = 1;
const ITEM: usize = 14;

/// One incarnation of a partition of a datacenter.
pub(crate) type Stream = (DatacenterId, PartitionId, Incarnation);

/// The dependencies in these bytes, in order.
pub fn decode(bytes: &Opaque) -> Result<Vec<Dependency>, Malformed> {
    let Some((version, items)) = bytes.0.split_first() else { return Ok(Vec::new()) };
    if *version != VERSION || items.len() % ITEM != 0 {
        return Err(Malformed);
    }
    items.chunks_exact(ITEM).map(decode_item).collect()
}

/// The bytes of these dependencies.
pub fn encode(dependencies: &[Dependency]) -> Opaque {
    if dependencies.is_empty() {
        return Opaque::default();
    }
    let mut bytes = Vec::with_capacity(1 + ITEM * dependencies.len());
    bytes.push(VERSION);
    for dependency in dependencies {
        let operation = dependency.operation;
        bytes.push(match dependency.extent {
            Extent::Exact => 0,
            Extent::Through => 1,
        });
        bytes.push(operation.datacenter.0);
        bytes.extend_from_slice(&operation.incarnation.0.to_le_bytes());
        bytes.extend_from_slice(&operation.partition.0.to_le_bytes());
        bytes.extend_from_slice(&operation.position.0.to_le_bytes());
    }
    Opaque(bytes)
}

/// Adds to a set, keeping it sorted and without what a `Through` covers; folds it when it exceeds the bound.
pub fn add(set: &mut Vec<Dependency>, more: impl IntoIterator<Item = Dependency>, bound: usize) {
    set.extend(more);
    set.sort_by_key(order);
    set.dedup();
    // What covers stands behind what it covers: from the back, each needs to be held against the last watermark alone.
    let mut through: Option<Dependency> = None;
    let mut kept: Vec<Dependency> = Vec::with_capacity(set.len());
    for dependency in set.iter().rev() {
        if through.is_some_and(|through| covers(&through, dependency)) {
            continue;
        }
        if dependency.extent == Extent::Through {
            through = Some(*dependency);
        }
        kept.push(*dependency);
    }
    kept.reverse();
    *set = kept;
    if set.len() > bound {
        fold(set);
    }
}

/// Replaces a set by one watermark a stream: stronger, safe, and bounded by the number of streams.
///
/// It cannot make two writes wait for each other: whatever stands in a stream at or below a position that a session
/// has met has a lower stamp than the session's next write, and dependencies always point to lower stamps. What a write
/// itself reads may have been logged after the write drew its time; that is never folded.
pub(crate) fn fold(set: &mut Vec<Dependency>) {
    let mut folded: Vec<Dependency> = Vec::new();
    for dependency in set.iter() {
        let through = Dependency { extent: Extent::Through, ..*dependency };
        match folded.last_mut() {
            Some(last) if stream(&last.operation) == stream(&through.operation) => {
                last.operation.position = last.operation.position.max(through.operation.position);
            }
            _ => folded.push(through),
        }
    }
    *set = folded;
}

fn covers(covering: &Dependency, covered: &Dependency) -> bool {
    covering.extent == Extent::Through
        && stream(&covering.operation) == stream(&covered.operation)
        && covering.operation.position >= covered.operation.position
}

pub(crate) fn stream(operation: &OperationId) -> Stream {
    (operation.datacenter, operation.partition, operation.incarnation)
}

pub(crate) fn order(dependency: &Dependency) -> (Stream, Extent, Position) {
    (stream(&dependency.operation), dependency.extent, dependency.operation.position)
}

fn decode_item(item: &[u8]) -> Result<Dependency, Malformed> {
    let extent = match item[0] {
        0 => Extent::Exact,
        1 => Extent::Through,
        _ => return Err(Malformed),
    };
    let u16_at = |at: usize| u16::from_le_bytes([item[at], item[at + 1]]);
    let position: [u8; 8] = item[6..ITEM].try_into().map_err(|_| Malformed)?;
    let operation = OperationId {
        datacenter: DatacenterId(item[1]),
        incarnation: Incarnation(u16_at(2)),
        partition: PartitionId(u16_at(4)),
        position: Position(u64::from_le_bytes(position)),
    };
    Ok(Dependency { operation, extent })
}
