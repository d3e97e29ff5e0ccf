//! A set of operations as runs: those of one stream whose positions follow each other.
//!
//! Writes of a key that is written often mostly stand beside each other in their stream, so that thousands of them are
//! one run. A set that is folded names of each stream everything up to a position: such a run begins before the first
//! position of its incarnation, where no operation stands.
//!
//! ```text
//! number of streams | stream*
//! stream: datacenter u8 | partition | incarnation | number of runs | run*      run: gap | length less one
//! ```
//!
//! Numbers without a size are those of `lists.rs`. A gap is from the last position of the run before, at the beginning
//! from the place before the incarnation; 0 there begins a folded run. Streams and runs rise, and no two runs of a
//! stream touch. Decoding refuses what no encoding makes.

use super::Malformed;
use super::dependency_set::Stream;
use super::lists::{number_bytes, read_byte, read_number, write_number};
use crate::{DatacenterId, Incarnation, OperationId, PartitionId, Position};
#[cfg(test)]
use crate::{Dependency, Extent};

/// So many operations are added one by one.
const FEW: usize = 4;

/// Operations of one stream whose positions follow each other, or all up to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationRun {
    stream: Stream,
    first: Position,
    last: Position,
}

impl OperationRun {
    fn of(operation: &OperationId) -> OperationRun {
        let OperationId { position, .. } = *operation;
        OperationRun { stream: super::dependency_set::stream(operation), first: position, last: position }
    }

    /// The partition whose operations these are.
    pub fn partition(&self) -> PartitionId {
        self.stream.1
    }

    fn is_folded(&self) -> bool {
        self.first == Position::before(self.stream.2)
    }

    /// Whether its positions and the other one's, which begins no earlier, are one run.
    fn touches(&self, later: &OperationRun) -> bool {
        self.stream == later.stream && later.first <= self.last.next()
    }

    fn at(&self, position: Position) -> OperationId {
        let (datacenter, partition, incarnation) = self.stream;
        OperationId { datacenter, incarnation, partition, position }
    }

    /// Its operations, if they are named.
    pub fn operations(&self) -> impl Iterator<Item = OperationId> + use<> {
        let run = *self;
        let first = if run.is_folded() { run.last.next() } else { run.first };
        (first.0..=run.last.0).map(move |position| run.at(Position(position)))
    }

    fn len(&self) -> u64 {
        self.last.0 - self.first.0 + 1
    }
}

/// See the module. The runs are in order, and no two touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperationRuns(Vec<OperationRun>);

impl OperationRuns {
    pub const NONE: OperationRuns = OperationRuns(Vec::new());

    pub fn iter(&self) -> impl Iterator<Item = &OperationRun> {
        self.0.iter()
    }

    pub fn runs_count(&self) -> usize {
        self.0.len()
    }

    /// How many operations are named.
    pub fn operations_count(&self) -> u64 {
        self.0.iter().filter(|run| !run.is_folded()).map(OperationRun::len).sum()
    }

    /// Whether some are not named one by one.
    pub fn is_folded(&self) -> bool {
        self.0.iter().any(OperationRun::is_folded)
    }

    /// Whether it names this one.
    pub fn names(&self, operation: &OperationId) -> bool {
        let wanted = OperationRun::of(operation);
        let after = self.0.partition_point(|run| (run.stream, run.first) <= (wanted.stream, wanted.first));
        let run = after.checked_sub(1).map(|at| &self.0[at]);
        run.is_some_and(|run| run.stream == wanted.stream && run.last >= wanted.last && !run.is_folded())
    }

    /// Adds operations in any order.
    pub(super) fn add(&mut self, operations: impl Iterator<Item = OperationId>) {
        let mut runs: Vec<OperationRun> = operations.map(|operation| OperationRun::of(&operation)).collect();
        if runs.len() <= FEW {
            return runs.into_iter().for_each(|run| self.insert(run));
        }
        runs.sort_unstable_by_key(|run| (run.stream, run.first));
        self.join(&OperationRuns(runs));
    }

    /// Adds one run in its place: the others are not walked through.
    fn insert(&mut self, run: OperationRun) {
        let after = self.0.partition_point(|one| (one.stream, one.first) <= (run.stream, run.first));
        let at = match after.checked_sub(1).filter(|&before| self.0[before].touches(&run)) {
            Some(before) => {
                self.0[before].last = self.0[before].last.max(run.last);
                before
            }
            None => {
                self.0.insert(after, run);
                after
            }
        };
        let grown = self.0[at];
        let touched = self.0[at + 1..].iter().take_while(|later| grown.touches(later)).count();
        let last = self.0[at + touched].last;
        self.0[at].last = grown.last.max(last);
        self.0.drain(at + 1..at + 1 + touched);
    }

    /// Adds all of another set, whose runs may touch.
    pub(super) fn join(&mut self, other: &OperationRuns) {
        if other.0.is_empty() {
            return;
        }
        let (mut one, mut other) = (&self.0[..], &other.0[..]);
        let mut joined: Vec<OperationRun> = Vec::with_capacity(one.len().max(other.len()) + 1);
        loop {
            let earlier = match (one.first(), other.first()) {
                (Some(a), Some(b)) if (a.stream, a.first) <= (b.stream, b.first) => &mut one,
                (Some(_), None) => &mut one,
                (_, Some(_)) => &mut other,
                (None, None) => break,
            };
            let Some((run, rest)) = earlier.split_first() else { break };
            *earlier = rest;
            match joined.last_mut() {
                Some(last) if last.touches(run) => last.last = last.last.max(run.last),
                _ => joined.push(*run),
            }
        }
        self.0 = joined;
    }

    /// Of each stream everything up to the last.
    pub(super) fn fold(&mut self) {
        let mut folded: Vec<OperationRun> = Vec::new();
        for run in &self.0 {
            match folded.last_mut() {
                Some(last) if last.stream == run.stream => last.last = run.last,
                _ => folded.push(OperationRun { first: Position::before(run.stream.2), ..*run }),
            }
        }
        self.0 = folded;
    }

    /// Keeps what this says of, which of a stream keeps none before one that it does not keep. A folded run stays
    /// whole.
    pub(super) fn retain(&mut self, keep: impl Fn(&OperationId) -> bool) {
        let mut kept = None;
        self.0.retain_mut(|run| {
            if kept == Some(run.stream) {
                return true;
            }
            if !keep(&run.at(run.last)) {
                return false;
            }
            if !run.is_folded() && !keep(&run.at(run.first)) {
                let (mut gone, mut first) = (run.first.0, run.last.0);
                while first - gone > 1 {
                    let middle = gone + (first - gone) / 2;
                    match keep(&run.at(Position(middle))) {
                        true => first = middle,
                        false => gone = middle,
                    }
                }
                run.first = Position(first);
            }
            // All that follows in its stream is kept with it.
            kept = Some(run.stream);
            true
        });
    }

    /// Takes all out.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// The same as dependencies, a watermark for each that is folded.
    #[cfg(test)]
    pub(super) fn dependencies(&self) -> Vec<Dependency> {
        let of = |run: &OperationRun| -> Vec<Dependency> {
            match run.is_folded() {
                true => vec![Dependency { operation: run.at(run.last), extent: Extent::Through }],
                false => run
                    .operations()
                    .map(|operation| Dependency { operation, extent: Extent::Exact })
                    .collect(),
            }
        };
        self.0.iter().flat_map(of).collect()
    }

    /// How many bytes its encoding has.
    pub(super) fn encoded_bytes(&self) -> usize {
        let (mut bytes, mut streams) = (0, 0);
        for runs in self.0.chunk_by(|one, next| one.stream == next.stream) {
            let (_, partition, incarnation) = runs[0].stream;
            streams += 1;
            bytes += 1
                + number_bytes(u64::from(partition.0))
                + number_bytes(u64::from(incarnation.0))
                + number_bytes(runs.len() as u64);
            let mut last = Position::before(incarnation);
            for run in runs {
                bytes += number_bytes(run.first.0 - last.0) + number_bytes(run.last.0 - run.first.0);
                last = run.last;
            }
        }
        number_bytes(streams) + bytes
    }

    pub(super) fn encode_into(&self, out: &mut Vec<u8>) {
        let streams = || self.0.chunk_by(|one, next| one.stream == next.stream);
        write_number(out, streams().count() as u64);
        for runs in streams() {
            let (datacenter, partition, incarnation) = runs[0].stream;
            out.push(datacenter.0);
            write_number(out, u64::from(partition.0));
            write_number(out, u64::from(incarnation.0));
            write_number(out, runs.len() as u64);
            let mut last = Position::before(incarnation);
            for run in runs {
                write_number(out, run.first.0 - last.0);
                write_number(out, run.last.0 - run.first.0);
                last = run.last;
            }
        }
    }

    pub(super) fn decode(rest: &mut &[u8]) -> Result<OperationRuns, Malformed> {
        let mut runs: Vec<OperationRun> = Vec::new();
        for _ in 0..read_number(rest)? {
            let datacenter = DatacenterId(read_byte(rest)?);
            let partition = PartitionId(u16::try_from(read_number(rest)?).map_err(|_| Malformed)?);
            let incarnation = Incarnation(u16::try_from(read_number(rest)?).map_err(|_| Malformed)?);
            let stream = (datacenter, partition, incarnation);
            let count = read_number(rest)?;
            if count == 0 || runs.last().is_some_and(|last| last.stream >= stream) {
                return Err(Malformed);
            }
            let mut last = Position::before(incarnation);
            // Each has two bytes at least: what is said to be there may not be.
            runs.reserve(usize::try_from(count).map_or(rest.len(), |count| count.min(rest.len() / 2)));
            for number in 0..count {
                let gap = read_number(rest)?;
                let first = Position(last.0.checked_add(gap).ok_or(Malformed)?);
                last = Position(first.0.checked_add(read_number(rest)?).ok_or(Malformed)?);
                let run = OperationRun { stream, first, last };
                let is_named = number > 0 || gap > 0;
                // A folded run has something to name, and stays within its incarnation as all do.
                if (number > 0 && gap < 2)
                    || (!is_named && first == last)
                    || last.incarnation() != incarnation
                {
                    return Err(Malformed);
                }
                runs.push(run);
            }
        }
        Ok(OperationRuns(runs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn operation((datacenter, incarnation, number): (u8, u16, u64)) -> OperationId {
        let incarnation = Incarnation(incarnation);
        OperationId {
            datacenter: DatacenterId(datacenter),
            incarnation,
            partition: PartitionId(3),
            position: Position(Position::before(incarnation).0 + number),
        }
    }

    fn some() -> impl Strategy<Value = Vec<OperationId>> {
        proptest::collection::vec((0..2u8, 1..3u16, 1..30u64).prop_map(operation), 0..40)
    }

    fn runs(operations: &[OperationId]) -> OperationRuns {
        let mut runs = OperationRuns::default();
        runs.add(operations.iter().copied());
        runs
    }

    fn named(runs: &OperationRuns) -> BTreeSet<OperationId> {
        runs.iter().flat_map(OperationRun::operations).collect()
    }

    proptest! {
        #[test]
        fn a_set_of_runs_is_a_set(one in some(), other in some(), stable in 0..40u64) {
            let mut joined = runs(&one);
            joined.join(&runs(&other));
            let set: BTreeSet<OperationId> = one.iter().chain(&other).copied().collect();
            prop_assert_eq!(named(&joined), set.clone());
            prop_assert_eq!(joined.operations_count(), set.len() as u64);
            prop_assert_eq!(&joined, &runs(&set.iter().copied().collect::<Vec<_>>()), "one form a set");
            let mut grown = OperationRuns::default();
            one.iter().chain(&other).for_each(|operation| grown.add(std::iter::once(*operation)));
            prop_assert_eq!(&joined, &grown, "the same one by one");
            for operation in &set {
                prop_assert!(joined.names(operation));
            }
            let gone = |operation: &OperationId| {
                operation.datacenter == DatacenterId(1) && operation.position.0 <= stable
            };
            joined.retain(|operation| !gone(operation));
            let left: BTreeSet<OperationId> = set.into_iter().filter(|operation| !gone(operation)).collect();
            prop_assert_eq!(named(&joined), left);
        }

        #[test]
        fn a_folded_set_covers_what_was_named(one in some(), other in some()) {
            let mut folded = runs(&one);
            folded.fold();
            folded.join(&runs(&other));
            for operation in one.iter().chain(&other) {
                let covers = |dependency: &Dependency| {
                    let has = dependency.operation;
                    has == *operation
                        || dependency.extent == Extent::Through
                            && has.datacenter == operation.datacenter
                            && has.incarnation == operation.incarnation
                            && has.position >= operation.position
                };
                prop_assert!(folded.dependencies().iter().any(covers));
            }
            prop_assert_eq!(folded.is_folded(), !one.is_empty());
        }

        #[test]
        fn decoding_gives_back_what_was_encoded(one in some(), is_folded: bool) {
            let mut runs = runs(&one);
            if is_folded {
                runs.fold();
            }
            let mut bytes = Vec::new();
            runs.encode_into(&mut bytes);
            prop_assert_eq!(runs.encoded_bytes(), bytes.len());
            let mut rest = &bytes[..];
            prop_assert_eq!(OperationRuns::decode(&mut rest), Ok(runs));
            prop_assert!(rest.is_empty());
        }

        #[test]
        fn what_is_decoded_is_encoded_the_same(bytes in proptest::collection::vec(0..4u8, 0..12)) {
            let mut rest = &bytes[..];
            if let Ok(runs) = OperationRuns::decode(&mut rest) {
                let mut again = Vec::new();
                runs.encode_into(&mut again);
                prop_assert_eq!(&again[..], &bytes[..bytes.len() - rest.len()]);
            }
        }
    }
}
