//! A history of clients as a recorder would have written it for the checker: `ensue_check::History`.
//!
//! The oracle and the checker have the observations in common and nothing else: no past, no order and no verdict
//! crosses here. What becomes what:
//!
//! - A location is a key: a register, a field (`h0/f3`), a member of a set (`s0/v12`), a counter. Operation 12 writes
//!   `v12`.
//! - An operation whose reads see one state is one transaction. Otherwise each of its reads is a transaction in a
//!   session of its own, behind what the session had done, and its writes are one transaction behind all of them. Where
//!   writes are not promised to take effect together, each of them stands for itself in the same way.
//! - A token that is shown, and a piece that was appended to another, are `merges`; without causality pieces are not.
//! - A power of two that is added is an addition, a sum a count. The sum that an addition answers stands behind it in
//!   its transaction; where reads stand for themselves it is counted without the operation's own addition.
//! - An operation without an answer is unknown, and so is each of its deletes by itself: they may have found nothing.
//! - The reads of the end are `final`, one transaction a datacenter.
//! - **Empty answers.** Where nobody deletes, they are the initial state. Where for each of them only one delete, or
//!   only the initial state, can be meant (`Emptiness`), each delete writes a value of its own, and they are reads of
//!   it. Elsewhere deletes write absence, and the checker itself finds the reads ambiguous.
//!
//! - **Removals.** The checker knows one order of all writes, and a removal has no place in it. Where somebody deletes,
//!   nothing is recorded, unless deletes are writes of nothing that go by their order (`folds`).
//!
//! Not recorded: what only says that something was there, private keys, keys with deadlines, and keys of which nothing
//! but convergence is asked. The oracle judges those alone.

mod emptiness;

use crate::oracle::Final;
use crate::oracle::history::{History, Location, Operation, OperationIndex, Outcome, Seen, Written};
use crate::oracle::values::value_of;
use emptiness::Emptiness;
use ensue_check::builder::Builder;
use ensue_check::history::{
    Operation as Step, Outcome as Ending, SessionIndex, Transaction, TransactionIndex,
};
use std::collections::BTreeSet;

/// The history, and what a fresh session read in each datacenter in the end: nothing of the end where a datacenter is
/// lost for good, because the checker knows of no writes that may be gone.
pub fn record(history: &History, finals: &[Final]) -> ensue_check::History {
    let finals = if history.dead.is_empty() { finals } else { &[] };
    let mut recorder = Recorder {
        history,
        builder: Builder::new(),
        emptiness: Emptiness::find(history, finals),
        wanted: history.operations.iter().filter_map(|operation| operation.merges).collect(),
        built_upon: history.built_on.values().copied().collect(),
        places: vec![None; history.operations.len()],
    };
    for index in 0..history.operations.len() {
        recorder.add(index);
    }
    recorder.add_pieces();
    for one in finals {
        recorder.add_final(one);
    }
    recorder.builder.finish()
}

struct Recorder<'a> {
    history: &'a History,
    builder: Builder,
    emptiness: Emptiness,
    /// Operations whose past others take over by a token, and those whose values others were built on.
    wanted: BTreeSet<OperationIndex>,
    built_upon: BTreeSet<OperationIndex>,
    /// The transaction of each operation that stands for all of it.
    places: Vec<Option<TransactionIndex>>,
}

impl Recorder<'_> {
    fn add(&mut self, index: OperationIndex) {
        let operation = &self.history.operations[index];
        let done = operation.outcome == Outcome::Done;
        let reads: &[(Location, Seen)] = if done { &operation.reads } else { &[] };
        let (mut parts, mut main) = match operation.snapshot {
            true => (Vec::new(), self.as_one(index, operation, reads)),
            false => self.in_parts(index, operation, reads),
        };
        if parts.len() == 1 && main.is_empty() {
            main = parts.remove(0);
        }
        let deletes = if done { Vec::new() } else { self.uncertain_deletes(index, operation) };
        let needed = operation.merges.is_some() || self.wanted.contains(&index);
        if main.is_empty() && parts.is_empty() && deletes.is_empty() && !needed {
            return;
        }
        let session = self.builder.session(&format!("s{}", operation.session));
        let before = self.builder.history().sessions[session.0 as usize].transactions.last().copied();
        let shown = operation.merges.and_then(|merged| self.places[merged]);
        let mut merges: Vec<TransactionIndex> = shown.into_iter().collect();
        for (place, part) in parts.into_iter().enumerate() {
            let name = format!("s{}.{}.{place}", operation.session, operation.number);
            let side = self.builder.session(&name);
            let past = before.into_iter().chain(shown).collect();
            merges.push(self.commit(index, side, past, part));
        }
        // Nobody who goes on says that the parts of an operation without an answer all took effect.
        if !main.is_empty() || needed || done {
            self.places[index] = Some(self.commit(index, session, merges, main));
        }
        for delete in deletes {
            self.commit(index, session, Vec::new(), vec![delete]);
        }
    }

    fn commit(
        &mut self,
        index: OperationIndex,
        session: SessionIndex,
        merges: Vec<TransactionIndex>,
        operations: Vec<Step>,
    ) -> TransactionIndex {
        let operation = &self.history.operations[index];
        let outcome = match operation.outcome {
            Outcome::Refused => Ending::Failed,
            Outcome::Unknown if !self.built_upon.contains(&index) => Ending::Unknown,
            Outcome::Unknown | Outcome::Done => Ending::Committed,
        };
        let datacenter = Some(self.builder.datacenter(&operation.datacenter.to_string()));
        self.builder.add(Transaction {
            datacenter,
            start_us: operation.invoked_us,
            end_us: operation.answered_us,
            outcome,
            merges,
            operations,
            ..Transaction::committed(session)
        })
    }

    /// Reads of others, then the writes, then what was read of these.
    fn as_one(
        &mut self,
        index: OperationIndex,
        operation: &Operation,
        reads: &[(Location, Seen)],
    ) -> Vec<Step> {
        let own = |&&(location, seen): &&(Location, Seen)| {
            seen == Seen::Value(index) || own_bit(operation, location).is_some()
        };
        let mut steps = Vec::new();
        for &(location, seen) in reads.iter().filter(|read| !own(read)) {
            steps.extend(self.read(index, location, seen));
        }
        steps.extend(self.writes(index, operation));
        for &(location, seen) in reads.iter().filter(own) {
            steps.extend(self.read(index, location, seen));
        }
        steps
    }

    /// The parts that stand for themselves, and what follows them.
    fn in_parts(
        &mut self,
        index: OperationIndex,
        operation: &Operation,
        reads: &[(Location, Seen)],
    ) -> (Vec<Vec<Step>>, Vec<Step>) {
        let mut parts = Vec::new();
        let mut behind = Vec::new();
        for &(location, seen) in reads {
            let own = own_bit(operation, location).map(|bit| 1 << bit);
            match (seen, own) {
                (Seen::Bits(bits), Some(own)) if bits & own == own => {
                    parts.push(self.read(index, location, Seen::Bits(bits & !own)).into_iter().collect());
                }
                // An addition that does not count itself: said as it is.
                (Seen::Bits(_), Some(_)) => behind.extend(self.read(index, location, seen)),
                _ if seen == Seen::Value(index) => behind.extend(self.read(index, location, seen)),
                _ => parts.push(self.read(index, location, seen).into_iter().collect()),
            }
        }
        let mut writes = self.writes(index, operation);
        if !operation.together {
            parts.extend(std::mem::take(&mut writes).into_iter().map(|write| vec![write]));
        }
        parts.retain(|part| !part.is_empty());
        writes.extend(behind);
        (parts, writes)
    }

    /// Whether one order of its writes explains what is read of a location.
    fn has_order(&self, location: Location) -> bool {
        self.history.promises.folds || !self.emptiness.is_deleted(location)
    }

    fn read(&mut self, reader: OperationIndex, location: Location, seen: Seen) -> Option<Step> {
        if !self.has_order(location) {
            return None;
        }
        let name = self.history.name(location);
        Some(match seen {
            Seen::Value(writer) => self.builder.read(name, Some(&value_of(writer))),
            Seen::Nothing => {
                let delete = self.emptiness.delete_read_by(reader, location);
                self.builder.read(name, delete.map(tombstone).as_deref())
            }
            Seen::Bits(bits) => self.builder.count(name, i64::try_from(bits).unwrap_or(i64::MAX)),
            Seen::Something => return None,
        })
    }

    /// What it surely writes if it took effect.
    fn writes(&mut self, index: OperationIndex, operation: &Operation) -> Vec<Step> {
        let certain = |&&(location, written): &&(Location, Written)| {
            (written != Written::Nothing || operation.outcome == Outcome::Done) && self.has_order(location)
        };
        let writes: Vec<_> = operation.writes.iter().filter(certain).copied().collect();
        writes.into_iter().map(|write| self.write(index, write)).collect()
    }

    fn uncertain_deletes(&mut self, index: OperationIndex, operation: &Operation) -> Vec<Step> {
        let deletes = |&&(location, written): &&(Location, Written)| {
            written == Written::Nothing && self.has_order(location)
        };
        let deletes: Vec<_> = operation.writes.iter().filter(deletes).copied().collect();
        deletes.into_iter().map(|write| self.write(index, write)).collect()
    }

    fn write(&mut self, index: OperationIndex, (location, written): (Location, Written)) -> Step {
        let name = self.history.name(location);
        match written {
            Written::Value => self.builder.write(name, Some(&value_of(index))),
            Written::Nothing => {
                let told_apart = self.emptiness.tells_apart(location);
                self.builder.write(name, told_apart.then(|| tombstone(index)).as_deref())
            }
            Written::Bit(bit) => self.builder.add_to(name, 1 << bit),
        }
    }

    /// A piece may have been appended to one that was sent later, so these come when all transactions are there.
    /// Without causality a piece carries no past: only its value does.
    fn add_pieces(&mut self) {
        if !self.history.promises.causality {
            return;
        }
        for (&later, &earlier) in &self.history.built_on {
            let place = |index: OperationIndex| self.places.get(index).copied().flatten();
            if let (Some(later), Some(earlier)) = (place(later), place(earlier)) {
                self.builder.transaction_mut(later).merges.push(earlier);
            }
        }
    }

    fn add_final(&mut self, one: &Final) {
        let session = self.builder.session(&format!("final {}", one.datacenter));
        let reader = emptiness::FINAL;
        let operations =
            one.values.iter().filter_map(|&(location, seen)| self.read(reader, location, seen)).collect();
        let datacenter = Some(self.builder.datacenter(&one.datacenter.to_string()));
        let end = Transaction { datacenter, is_final: true, operations, ..Transaction::committed(session) };
        self.builder.add(end);
    }
}

fn own_bit(operation: &Operation, location: Location) -> Option<u32> {
    operation.writes.iter().find_map(|&(at, written)| match written {
        Written::Bit(bit) if at == location => Some(bit),
        _ => None,
    })
}

fn tombstone(delete: OperationIndex) -> String {
    format!("deleted by {}", value_of(delete))
}
