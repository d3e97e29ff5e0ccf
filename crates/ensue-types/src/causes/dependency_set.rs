//! A set of operations, in order, without what it covers twice.
//!
//! ```text
//! item*                                      item, 14 bytes little endian:
//! extent u8 (0 exact, 1 through) | datacenter u8 | incarnation u16 | partition u16 | position u64
//! ```
//!
//! Items stand in the order of their bytes' meaning (stream, then extent, then position), each stream's `Through` at
//! most once and no `Exact` at or below it. Decoding refuses anything of another length, and never panics.

use super::Malformed;
use crate::{DatacenterId, Dependency, Extent, Incarnation, OperationId, PartitionId, Position};

const ITEM: usize = 14;

/// One incarnation of a partition of a datacenter.
pub(super) type Stream = (DatacenterId, PartitionId, Incarnation);

pub(super) fn decode(items: &[u8]) -> Result<Vec<Dependency>, Malformed> {
    if items.len() % ITEM != 0 {
        return Err(Malformed);
    }
    items.chunks_exact(ITEM).map(decode_item).collect()
}

pub(super) fn encode_into(dependencies: &[Dependency], out: &mut Vec<u8>) {
    for dependency in dependencies {
        let operation = dependency.operation;
        out.push(match dependency.extent {
            Extent::Exact => 0,
            Extent::Through => 1,
        });
        out.push(operation.datacenter.0);
        out.extend_from_slice(&operation.incarnation.0.to_le_bytes());
        out.extend_from_slice(&operation.partition.0.to_le_bytes());
        out.extend_from_slice(&operation.position.0.to_le_bytes());
    }
}

pub(super) fn encoded_bytes(dependencies: &[Dependency]) -> usize {
    ITEM * dependencies.len()
}

/// Adds to a set, keeping it sorted and without what a `Through` covers; folds it when it exceeds the bound.
pub fn add(set: &mut Vec<Dependency>, more: impl IntoIterator<Item = Dependency>, bound: usize) {
    let mut more: Vec<Dependency> = more.into_iter().collect();
    if !more.is_sorted_by_key(order) {
        more.sort_by_key(order);
    }
    if !more.is_empty() {
        // One that came from a client may be in any order.
        if !set.is_sorted_by_key(order) {
            set.sort_by_key(order);
        }
        *set = merged(set, &more);
    }
    if set.len() > bound {
        fold(set);
    }
}

/// Both, in order and without what is covered.
fn merged(one: &[Dependency], other: &[Dependency]) -> Vec<Dependency> {
    let (mut one, mut other) = (one, other);
    let mut through: Option<Dependency> = None;
    let mut kept: Vec<Dependency> = Vec::with_capacity(one.len() + other.len());
    // What covers stands behind what it covers: from the back, each needs to be held against the last watermark alone.
    loop {
        let longer = match (one.last(), other.last()) {
            (Some(a), Some(b)) if order(a) >= order(b) => &mut one,
            (Some(_), None) => &mut one,
            (_, Some(_)) => &mut other,
            (None, None) => break,
        };
        let Some((dependency, rest)) = longer.split_last() else { break };
        *longer = rest;
        if kept.last() == Some(dependency) || through.is_some_and(|through| covers(&through, dependency)) {
            continue;
        }
        if dependency.extent == Extent::Through {
            through = Some(*dependency);
        }
        kept.push(*dependency);
    }
    kept.reverse();
    kept
}

/// Replaces a set by one watermark a stream: stronger, safe, and bounded by the number of streams.
///
/// It cannot make two writes wait for each other: whatever stands in a stream at or below a position that a session
/// has met has a lower stamp than the session's next write, and dependencies always point to lower stamps. What a write
/// itself reads may have been logged after the write drew its time; that is never folded.
pub(super) fn fold(set: &mut Vec<Dependency>) {
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

pub(super) fn stream(operation: &OperationId) -> Stream {
    (operation.datacenter, operation.partition, operation.incarnation)
}

pub(super) fn order(dependency: &Dependency) -> (Stream, Extent, Position) {
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
