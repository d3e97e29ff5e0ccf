//! All that something depends on, the nearest apart.
//!
//! Whoever waits for the nearest has waited for all, since each of the others is a dependency of one of them, or is in
//! every datacenter. An operation stands in one of the two sets. When the nearest exceed their bound they fold into one
//! watermark a stream, and stand among the others one by one; when the others exceed theirs, they fold too.
//!
//! ```text
//! nearest | others: runs.rs                  nearest: number of series | series*
//! series: extent u8 (0 exact, 1 through) | datacenter u8 | partition | incarnation | count | first | difference*
//! ```
//!
//! Numbers without a size are of seven bits a byte, the lowest first, the last byte below 128. A series is of one
//! stream and one extent; its positions rise. So an operation beside another one of its stream takes a byte or two.
//! Decoding refuses what no encoding makes.

use super::runs::OperationRuns;
use super::{Malformed, dependency_set};
use crate::{DatacenterId, Dependency, Extent, Incarnation, OperationId, PartitionId, Position};

/// The others may be so many times more runs than the nearest are operations before they fold. Every write of a key
/// that is written often depends on all before it that are not everywhere yet: it carries this list, is encoded with
/// it, and keeps it with its version.
const OTHERS_FACTOR: usize = 4;
/// They may be so many times more operations, which are named one by one to a share of a read that lacks them.
const OPERATIONS_FACTOR: usize = 64;

/// See the module. Both sets are in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lists {
    pub nearest: Vec<Dependency>,
    pub others: OperationRuns,
}

impl Lists {
    pub(super) fn decode(mut bytes: &[u8]) -> Result<Lists, Malformed> {
        let lists = Lists { nearest: read_set(&mut bytes)?, others: OperationRuns::decode(&mut bytes)? };
        if bytes.is_empty() { Ok(lists) } else { Err(Malformed) }
    }

    pub(super) fn encode_into(&self, out: &mut Vec<u8>) {
        write_set(out, &self.nearest);
        self.others.encode_into(out);
    }

    /// How many bytes its encoding has.
    pub(super) fn encoded_bytes(&self) -> usize {
        set_bytes(&self.nearest) + self.others.encoded_bytes()
    }

    /// All operations that are named one by one.
    #[cfg(test)]
    fn named(&self) -> impl Iterator<Item = OperationId> + '_ {
        exact(&self.nearest).chain(self.others.iter().flat_map(|run| run.operations()))
    }

    /// The operations of one partition that are named one by one.
    pub fn named_of(&self, partition: PartitionId) -> impl Iterator<Item = OperationId> + '_ {
        let others = self.others.iter().filter(move |run| run.partition() == partition);
        let near = exact(&self.nearest).filter(move |operation| operation.partition == partition);
        near.chain(others.flat_map(|run| run.operations()))
    }

    /// Whether an operation is among those that are named one by one.
    pub fn names(&self, operation: &OperationId) -> bool {
        let exactly = Dependency { operation: *operation, extent: Extent::Exact };
        let near = self.nearest.binary_search_by_key(&dependency_set::order(&exactly), dependency_set::order);
        near.is_ok() || self.others.names(operation)
    }

    /// Whether more is depended on than can be named.
    pub fn is_folded(&self) -> bool {
        self.others.is_folded()
    }

    /// Adds what is depended on itself.
    pub fn add_nearest(&mut self, operation: OperationId) {
        let exactly = Dependency { operation, extent: Extent::Exact };
        if !self.others.names(&operation) {
            dependency_set::add(&mut self.nearest, [exactly], usize::MAX);
        }
    }

    /// Adds what something depends on that is added by itself.
    pub fn imply(&mut self, past: &Lists) {
        self.others.join(&past.others);
        self.others.add(exact(&past.nearest));
        self.part();
    }

    /// Adds another's past.
    pub fn join(&mut self, other: &Lists) {
        self.others.join(&other.others);
        dependency_set::add(&mut self.nearest, other.nearest.iter().copied(), usize::MAX);
        self.part();
    }

    /// Everything so far is what this depends on. What was near stands among the others, one by one.
    pub fn reset_to(&mut self, operation: OperationId) {
        self.others.add(exact(&self.nearest));
        self.nearest.clear();
        self.add_nearest(operation);
    }

    /// Keeps what this says of, which of a stream keeps none before one that it does not keep.
    pub fn retain(&mut self, keep: impl Fn(&OperationId) -> bool) {
        self.nearest.retain(|dependency| keep(&dependency.operation));
        self.others.retain(keep);
    }

    /// Folds what exceeds its bound.
    pub fn fold(&mut self, nearest_max: usize) {
        if self.nearest.len() > nearest_max {
            self.others.add(exact(&self.nearest));
            dependency_set::fold(&mut self.nearest);
        }
        let too_many = self.others.runs_count() > OTHERS_FACTOR * nearest_max
            || self.others.operations_count() > (OPERATIONS_FACTOR * nearest_max) as u64;
        if too_many {
            self.others.fold();
        }
    }

    /// What something else depends on is not near any more. A folded run among the others says so of nothing.
    fn part(&mut self) {
        let others = &self.others;
        self.nearest.retain(|dependency| {
            dependency.extent == Extent::Through || !others.names(&dependency.operation)
        });
    }
}

/// Those that are named one by one.
fn exact(set: &[Dependency]) -> impl Iterator<Item = OperationId> + '_ {
    let exact = set.iter().filter(|dependency| dependency.extent == Extent::Exact);
    exact.map(|dependency| dependency.operation)
}

/// How many bytes `write_set` writes.
fn set_bytes(set: &[Dependency]) -> usize {
    let (mut bytes, mut count) = (0, 0);
    for run in set.chunk_by(|one, next| kind(one) == kind(next)) {
        let ((_, partition, incarnation), _) = kind(&run[0]);
        count += 1;
        bytes += 2
            + number_bytes(u64::from(partition.0))
            + number_bytes(u64::from(incarnation.0))
            + number_bytes(run.len() as u64);
        let mut last = Position::before(incarnation).0;
        for dependency in run {
            let position = dependency.operation.position.0;
            bytes += number_bytes(position.wrapping_sub(last));
            last = position;
        }
    }
    number_bytes(count) + bytes
}

fn write_set(out: &mut Vec<u8>, set: &[Dependency]) {
    let runs = || set.chunk_by(|one, next| kind(one) == kind(next));
    write_number(out, runs().count() as u64);
    for run in runs() {
        let ((datacenter, partition, incarnation), extent) = kind(&run[0]);
        out.push(u8::from(extent == Extent::Through));
        out.push(datacenter.0);
        write_number(out, u64::from(partition.0));
        write_number(out, u64::from(incarnation.0));
        write_number(out, run.len() as u64);
        let mut last = Position::before(incarnation).0;
        for dependency in run {
            let position = dependency.operation.position.0;
            write_number(out, position.wrapping_sub(last));
            last = position;
        }
    }
}

fn kind(dependency: &Dependency) -> (dependency_set::Stream, Extent) {
    (dependency_set::stream(&dependency.operation), dependency.extent)
}

fn read_set(rest: &mut &[u8]) -> Result<Vec<Dependency>, Malformed> {
    let mut set: Vec<Dependency> = Vec::new();
    for _ in 0..read_number(rest)? {
        let extent = match read_byte(rest)? {
            0 => Extent::Exact,
            1 => Extent::Through,
            _ => return Err(Malformed),
        };
        let datacenter = DatacenterId(read_byte(rest)?);
        let partition = PartitionId(u16::try_from(read_number(rest)?).map_err(|_| Malformed)?);
        let incarnation = Incarnation(u16::try_from(read_number(rest)?).map_err(|_| Malformed)?);
        let mut position = Position::before(incarnation).0;
        let count = read_number(rest)?;
        let goes_on =
            set.last().is_some_and(|last| kind(last) == ((datacenter, partition, incarnation), extent));
        if count == 0 || goes_on {
            return Err(Malformed);
        }
        for _ in 0..count {
            position = position.checked_add(read_number(rest)?).ok_or(Malformed)?;
            let operation = OperationId { datacenter, incarnation, partition, position: Position(position) };
            let dependency = Dependency { operation, extent };
            if set
                .last()
                .is_some_and(|last| dependency_set::order(last) >= dependency_set::order(&dependency))
            {
                return Err(Malformed);
            }
            set.push(dependency);
        }
    }
    Ok(set)
}

/// How many bytes `write_number` writes.
pub(super) fn number_bytes(number: u64) -> usize {
    let bits = u64::BITS - (number | 1).leading_zeros();
    bits.div_ceil(7) as usize
}

pub(super) fn write_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

pub(super) fn read_number(rest: &mut &[u8]) -> Result<u64, Malformed> {
    // Nearly all are of one byte.
    if let Some((&byte, left)) = rest.split_first().filter(|(byte, _)| **byte < 0x80) {
        *rest = left;
        return Ok(byte.into());
    }
    let mut number = 0u64;
    for shift in (0..u64::BITS).step_by(7) {
        let byte = read_byte(rest)?;
        let bits = u64::from(byte & 0x7f);
        if bits << shift >> shift != bits {
            return Err(Malformed);
        }
        number |= bits << shift;
        if byte < 0x80 {
            // One text a number: no leading zeros.
            return if byte == 0 && shift > 0 { Err(Malformed) } else { Ok(number) };
        }
    }
    Err(Malformed)
}

pub(super) fn read_byte(rest: &mut &[u8]) -> Result<u8, Malformed> {
    let (byte, left) = rest.split_first().ok_or(Malformed)?;
    *rest = left;
    Ok(*byte)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{Lists, OPERATIONS_FACTOR};
    use crate::causes::Causes;
    use crate::{DatacenterId, Dependency, Extent, Incarnation, OperationId, PartitionId, Position};
    use proptest::prelude::*;

    fn operation(datacenter: u8, partition: u16, incarnation: u16, number: u64) -> OperationId {
        let incarnation = Incarnation(incarnation);
        OperationId {
            datacenter: DatacenterId(datacenter),
            incarnation,
            partition: PartitionId(partition),
            position: Position(Position::before(incarnation).0 + number),
        }
    }

    #[test]
    fn what_is_within_its_bound_is_not_folded() {
        let mut lists = Lists::default();
        (1..=4).for_each(|number| lists.add_nearest(operation(0, number as u16, 1, number)));
        let (before, mut more) = (lists.clone(), lists.clone());
        lists.fold(4);
        assert_eq!(lists, before);
        more.fold(3);
        assert_ne!(more, before);
    }

    fn any_operation() -> impl Strategy<Value = OperationId> {
        (0..3u8, 0..300u16, 1..3u16, 1..400u64).prop_map(|(d, p, i, n)| operation(d, p, i, n))
    }

    pub(crate) fn any_lists() -> impl Strategy<Value = Lists> {
        let some = || proptest::collection::vec(any_operation(), 0..20);
        (some(), some(), proptest::option::of(1..8usize)).prop_map(|(near, far, bound)| {
            let mut past = Lists::default();
            far.into_iter().for_each(|operation| past.add_nearest(operation));
            let mut lists = Lists::default();
            lists.imply(&past);
            near.into_iter().for_each(|operation| lists.add_nearest(operation));
            bound.into_iter().for_each(|bound| lists.fold(bound));
            lists
        })
    }

    fn covers(set: &[Dependency], wanted: OperationId) -> bool {
        set.iter().any(|dependency| {
            let has = dependency.operation;
            let stream = |o: OperationId| (o.datacenter, o.partition, o.incarnation);
            has == wanted
                || (dependency.extent == Extent::Through
                    && stream(has) == stream(wanted)
                    && has.position >= wanted.position)
        })
    }

    proptest! {
        /// Joined pasts wait for what either of them waits for, and name what either names, folded or not.
        #[test]
        fn joining_and_folding_lose_nothing(one in any_lists(), other in any_lists(), bound in 1..8usize) {
            let mut both = one.clone();
            both.join(&other);
            both.fold(bound);
            for lists in [&one, &other] {
                for operation in lists.named() {
                    let all = [both.nearest.clone(), both.others.dependencies()].concat();
                    prop_assert!(covers(&all, operation));
                }
                for near in &lists.nearest {
                    let implied = [one.others.dependencies(), other.others.dependencies()].concat();
                    let implied = covers(&implied, near.operation);
                    prop_assert!(implied || covers(&both.nearest, near.operation));
                }
            }
        }
    }

    #[test]
    fn neighbours_take_a_byte() {
        let mut lists = Lists::default();
        (1..=1_000).for_each(|number| lists.add_nearest(operation(0, 7, 1, 5_000_000 + number)));
        let bytes = Causes::from(lists).encoded_bytes();
        assert!(bytes < 1_020, "{bytes} bytes");
    }

    #[test]
    fn what_something_read_depends_on_is_not_near() {
        let (first, second, third) = (operation(0, 0, 1, 1), operation(0, 1, 1, 1), operation(1, 0, 1, 1));
        let mut lists = Lists::default();
        lists.add_nearest(first);
        let mut past = Lists::default();
        past.add_nearest(first);
        lists.imply(&past);
        lists.add_nearest(second);
        let near = |lists: &Lists| lists.nearest.iter().map(|d| d.operation).collect::<Vec<_>>();
        assert_eq!(near(&lists), [second]);
        lists.add_nearest(first);
        assert_eq!(near(&lists), [second], "the second still depends on it");
        lists.reset_to(third);
        assert_eq!(near(&lists), [third]);
        assert_eq!(lists.named().collect::<Vec<_>>(), [third, first, second]);
    }

    #[test]
    fn a_long_run_is_folded_though_it_is_one() {
        let mut lists = Lists::default();
        let most = OPERATIONS_FACTOR as u64 * 4;
        for number in 1..=most + 1 {
            lists.reset_to(operation(0, 0, 1, number));
        }
        lists.fold(4);
        assert_eq!((lists.others.runs_count(), lists.others.operations_count()), (1, most));
        lists.reset_to(operation(0, 0, 1, most + 2));
        lists.fold(4);
        assert_eq!((lists.others.runs_count(), lists.is_folded()), (1, true));
    }

    #[test]
    fn a_folded_past_is_waited_for_and_says_so() {
        let mut lists = Lists::default();
        (1..=9).for_each(|number| lists.add_nearest(operation(0, 0, 1, number)));
        lists.fold(4);
        assert_eq!((lists.nearest.len(), lists.others.operations_count(), lists.is_folded()), (1, 9, false));
        assert_eq!(lists.nearest[0].extent, Extent::Through);
        (10..=70).for_each(|number| lists.add_nearest(operation(0, 0, 1, 2 * number)));
        lists.fold(4);
        assert_eq!((lists.nearest.len(), lists.others.runs_count(), lists.is_folded()), (1, 1, true));
        // That the same watermark stands among the others does not make it met.
        assert_eq!(lists.nearest, lists.others.dependencies());
        let folded = lists.clone();
        lists.join(&folded);
        assert_eq!(lists, folded);
    }
}
