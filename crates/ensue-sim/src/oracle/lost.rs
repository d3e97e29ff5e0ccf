//! Writes that a power failure took, within what `everysec` and `no` promise.
//!
//! An acknowledged write of one partition may be lost if the power of that partition failed in its datacenter, and the
//! write was answered after the beginning of the last sync that had ended by then. It counts as lost if nothing shows
//! that it survived. What shows it: a read in its datacenter after the failure, a final read, a read in another
//! datacenter (which had received it, and gives it back) unless the power failed there too before it was synced, its
//! acknowledgement that it had received it, likewise, or a value that survived and was built on it. A lost write is no
//! floor for any read; one that survived is a floor for all, so it cannot be gone for a while and come back. A
//! transaction over several partitions is never lost once it was answered, but with a directory: then all of it is.
//!
//! A lost write also takes with it what was known only by it: a session's next write carried the lost one as its
//! dependency, in the place of all that came before it. So a session is a new one after each lost write. Who saw a lost
//! write named that in the place of all that it covers, the session's own past too: it is a new one from there, and
//! whoever shows a token that names a lost write knows nothing of its past (seed 70006277 of `cops-gt`). So what an
//! operation writes that saw a lost write itself, as an addition sees the sum, tells its readers of nothing that came
//! before it (seed 110003447). The same goes for a write that may be lost of a key that the history does not tell of (a
//! counter of which only the total is checked, a key with a deadline).

use super::finals::Final;
use super::past::{Pasts, covers, join};
use super::writes::bit_of;
use crate::oracle::history::{History, Location, Operation, OperationIndex, Outcome, PowerLost, Seen};
use ensue_resp::command::{keys, lookup};
use ensue_types::{PartitionId, partition_of};
use std::collections::BTreeSet;

/// Writes, by their operation and place.
pub(super) type Lost = BTreeSet<(OperationIndex, Location)>;

/// The acknowledged writes that are gone.
pub(super) fn lost(history: &History, finals: &[Final]) -> Lost {
    let mut lost = possibly_lost(history);
    if lost.is_empty() {
        return history.discarded.clone();
    }
    let mut survived: Vec<(OperationIndex, Location)> = history.kept.iter().copied().collect();
    for reader in &history.operations {
        for &(location, seen) in &reader.reads {
            let proven = |index: &OperationIndex| {
                lost.contains(&(*index, location)) && proves(history, reader, *index, location)
            };
            let writers = writers(history, location, seen).into_iter().filter(proven);
            survived.extend(writers.map(|index| (index, location)));
        }
    }
    for one in finals {
        for &(location, seen) in &one.values {
            survived.extend(writers(history, location, seen).into_iter().map(|index| (index, location)));
        }
    }
    while let Some((index, location)) = survived.pop() {
        for at in together(history, index, location) {
            lost.remove(&(index, at));
        }
        if let Some(&base) = history.built_on.get(&index) {
            let at = history.operations[base].writes.iter().map(|write| (base, write.0));
            survived.extend(at.filter(|write| lost.contains(write)));
        }
    }
    lost.extend(&history.discarded);
    lost
}

/// What datacenters that are lost for good wrote, and nothing shows that a survivor has. It is shown by a read at a
/// survivor, by a final read, by the causal past of what is finally read, or by a survivor's acknowledgement that it
/// had received it, unless it is listed as discarded. Unlike what the power took it was there for whoever saw it: only
/// in the end it need not be there.
pub(super) fn left_with_the_dead(history: &History, pasts: &Pasts, finals: &[Final]) -> Lost {
    let mut left = Lost::new();
    for (index, operation) in history.operations.iter().enumerate() {
        if history.dead.contains(&operation.datacenter) && operation.outcome != Outcome::Refused {
            left.extend(operation.writes.iter().map(|write| (index, write.0)));
        }
    }
    let is_survivor = |reader: &&Operation| !history.dead.contains(&reader.datacenter);
    let mut shown: Vec<(OperationIndex, Location)> = Vec::new();
    for reader in history.operations.iter().filter(is_survivor) {
        for &(location, seen) in &reader.reads {
            let proven = |index: &OperationIndex| proves(history, reader, *index, location);
            let writers = writers(history, location, seen).into_iter().filter(proven);
            shown.extend(writers.map(|index| (index, location)));
        }
    }
    let mut past = vec![0; history.sessions.len()];
    let is_known = |index: &OperationIndex| *index < history.operations.len();
    for &(location, seen) in finals.iter().flat_map(|one| &one.values) {
        for index in writers(history, location, seen).into_iter().filter(is_known) {
            shown.push((index, location));
            if history.promises.causality {
                join(&mut past, &pasts.of_one_write(history, index));
            }
        }
    }
    for (index, location) in shown {
        for at in together(history, index, location) {
            left.remove(&(index, at));
        }
    }
    left.retain(|write| {
        let is_received = history.kept.contains(write) && !history.discarded.contains(write);
        !is_received && !covers(&past, &history.operations[write.0])
    });
    left
}

/// The operations of which something is lost, or, where the history does not tell what became of it, may be.
pub(super) fn gone(history: &History, lost: &Lost) -> BTreeSet<OperationIndex> {
    let mut gone: BTreeSet<OperationIndex> = lost.iter().map(|(index, _)| *index).collect();
    if !history.power_losses.is_empty() {
        let tried = history.operations.iter().enumerate();
        let tried = tried.filter(|(_, operation)| operation.outcome != Outcome::Refused);
        let may_be = |operation: &Operation| {
            untold(history, operation).any(|partition| !failures_of(history, operation, partition).is_empty())
        };
        gone.extend(tried.filter(|(_, operation)| may_be(operation)).map(|(index, _)| index));
    }
    gone
}

/// The partitions of what an operation writes to keys that have no location in the history.
fn untold<'a>(history: &'a History, operation: &'a Operation) -> impl Iterator<Item = PartitionId> + 'a {
    let written = operation.commands.iter().filter_map(|command| {
        let spec = lookup(command.first()?).filter(|spec| spec.is_write())?;
        Some(keys(spec, command))
    });
    let untold = written.flatten().filter(|key| !history.tells_of(key));
    untold.map(|key| partition_of(key, history.partitions.max(1)))
}

/// What a history is without what was known only by lost writes.
pub(super) struct Parted {
    pub(super) history: History,
    /// Operations that wrote, and saw a lost write: what they wrote tells of nothing before it. Each is a session by
    /// itself.
    pub(super) severed: BTreeSet<OperationIndex>,
}

/// The history in which a session ends with each of these operations, and where it has seen one of them.
pub(super) fn parted(history: &History, gone: &BTreeSet<OperationIndex>) -> Parted {
    let has_seen = |index: &OperationIndex| {
        let mut reads = history.operations[*index].reads.iter();
        let is_other = |by: &OperationIndex| by != index && gone.contains(by);
        reads.any(|&(location, seen)| writers(history, location, seen).iter().any(is_other))
    };
    let mut parted = Parted { history: history.clone(), severed: BTreeSet::new() };
    parted.history.sessions.clear();
    for operations in &history.sessions {
        for part in operations.split_inclusive(|index| gone.contains(index) || has_seen(index)) {
            let last =
                part.last().filter(|last| has_seen(last) && !history.operations[**last].writes.is_empty());
            parted.severed.extend(last);
            let before = part.len() - usize::from(last.is_some());
            for part in [&part[..before], &part[before..]].into_iter().filter(|part| !part.is_empty()) {
                parted.add_session(part);
            }
        }
    }
    parted
}

impl Parted {
    fn add_session(&mut self, operations: &[OperationIndex]) {
        let session = self.history.sessions.len();
        for (place, &index) in operations.iter().enumerate() {
            let operation = &mut self.history.operations[index];
            (operation.session, operation.number) = (session, place as u32 + 1);
        }
        self.history.sessions.push(operations.to_vec());
    }
}

/// The places of an operation's writes that take effect together with the one at a location.
fn together(history: &History, index: OperationIndex, location: Location) -> Vec<Location> {
    if history.operations[index].together {
        return history.operations[index].writes.iter().map(|write| write.0).collect();
    }
    vec![location]
}

/// The writes that power failures may have taken.
fn possibly_lost(history: &History) -> Lost {
    if history.power_losses.is_empty() {
        return Lost::new();
    }
    // One of unknown outcome may have been seen before it was lost.
    let tried =
        history.operations.iter().enumerate().filter(|(_, operation)| operation.outcome != Outcome::Refused);
    let writes =
        tried.flat_map(|(index, operation)| operation.writes.iter().map(move |write| (index, write.0)));
    writes.filter(|&(index, at)| !failures(history, &history.operations[index], at).is_empty()).collect()
}

/// The power failures that may have taken what an operation wrote at a location: of a transaction over several
/// partitions the loss of one directory may take all.
fn failures<'a>(history: &'a History, operation: &Operation, location: Location) -> Vec<&'a PowerLost> {
    let partition = history.partition_of(location);
    let others: BTreeSet<PartitionId> = match operation.together {
        true => operation.writes.iter().map(|write| history.partition_of(write.0)).collect(),
        false => BTreeSet::new(),
    };
    let mut failures = failures_of(history, operation, partition);
    let others: Vec<PartitionId> = others.into_iter().filter(|other| *other != partition).collect();
    if !others.is_empty() {
        failures.extend(others.iter().flat_map(|other| failures_of(history, operation, *other)));
        failures.retain(|loss| loss.is_whole);
    }
    failures
}

/// The power failures that may have taken what an operation wrote in a partition.
pub(super) fn failures_of<'a>(
    history: &'a History,
    operation: &Operation,
    partition: PartitionId,
) -> Vec<&'a PowerLost> {
    let took = |loss: &&PowerLost| {
        loss.datacenter == operation.datacenter
            && loss.partition == partition
            && loss.since_us <= operation.answered_us
            && operation.invoked_us <= loss.at_us
    };
    history.power_losses.iter().filter(took).collect()
}

/// Whether a power failure may have taken what an answered transaction over several partitions did at a location. It is
/// not lost for that: its commands are evaluated again, at any later time and on the data of that time, so that a
/// removal among them may end what came after its answer, if a clock that is behind gave that a lower stamp
/// (`docs/limits.md`). The history tells of no stamps.
pub(super) fn may_be_evaluated_again(history: &History, index: OperationIndex, location: Location) -> bool {
    let operation = &history.operations[index];
    let partition = history.partition_of(location);
    operation.together
        && operation.writes.iter().any(|write| history.partition_of(write.0) != partition)
        && !failures_of(history, operation, partition).is_empty()
}

/// Whether what a reader saw proves that the write survived.
fn proves(history: &History, reader: &Operation, writer: OperationIndex, location: Location) -> bool {
    let written = &history.operations[writer];
    let failures = failures(history, written, location);
    if reader.datacenter == written.datacenter {
        return failures.iter().all(|loss| reader.invoked_us > loss.at_us);
    }
    if failures.is_empty() {
        return true;
    }
    // The reader's datacenter may have lost it too.
    let partition = history.partition_of(location);
    !history.power_losses.iter().any(|loss| {
        loss.datacenter == reader.datacenter
            && loss.partition == partition
            && loss.since_us <= reader.answered_us
            && reader.invoked_us <= loss.at_us
    })
}

fn writers(history: &History, location: Location, seen: Seen) -> Vec<OperationIndex> {
    match seen {
        Seen::Value(writer) => vec![writer],
        Seen::Bits(bits) => {
            let adds = history.adds.get(&location).into_iter().flatten().copied();
            let seen = |index: &OperationIndex| {
                bit_of(history, *index, location).is_some_and(|bit| bits >> bit & 1 == 1)
            };
            adds.filter(seen).collect()
        }
        Seen::Nothing | Seen::Something => Vec::new(),
    }
}
