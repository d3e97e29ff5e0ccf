//! The door for what other cores, nodes and datacenters say: what a message may name, given the topology and who
//! sends it.
//!
//! An envelope arrives, and a verdict leaves: admitted, or why not. Promises that the link rule (`link_rule`) holds of
//! it, and that whoever takes an admitted message may index by each keyspace, partition and datacenter in it, count on
//! from each position, and observe each time; and that a transaction is spoken of by those who take part in it. What
//! only the receiver's state can tell, such as whether a transaction is known, is left to the receiver, which ignores
//! what does not fit.
//!
//! - From another datacenter: what the link rule lets through, of things that there are.
//! - From sessions of this datacenter: requests, for keys of the partition that they are sent to.
//! - From partitions of this datacenter: reads of cuts, times, dependencies, the steps of transactions; and answers
//!   to sessions.
//!
//! What a stream brings is judged in the same way before it is logged (`entry`).

mod entry;

pub(crate) use entry::Arrival;

use crate::Topology;
use crate::homes::{is_check, is_on_keys, may_run_at_home};
use crate::link_rule::{self, NotTheirs};
use ensue_protocol::Protocol;
use ensue_types::{
    Args, Causes, Context, CoreId, DatacenterId, Dependency, HomeMove, HomeStep, Incarnation, KeyspaceId,
    LogicalTime, OperationId, Part, PartitionId, Position, TimeVector, limits, partition_of,
};
use ensue_wire::{
    Address, ChannelKind, Decision, Envelope, HomeOutcome, HomeRequest, Introduction, Message,
    SnapshotOutcome, StreamAcknowledge,
};
use std::collections::BTreeSet;

/// Admitted, or why not.
pub(crate) type Verdict = Result<(), &'static str>;

/// What a core knows without looking at any state.
#[derive(Clone, Copy)]
pub(crate) struct Admission<'a> {
    pub topology: &'a Topology,
    pub protocols: &'a [Box<dyn Protocol>],
}

/// An admission is decided by this.
fn admit(condition: bool, otherwise: &'static str) -> Verdict {
    if condition { Ok(()) } else { Err(otherwise) }
}

impl Admission<'_> {
    /// Judges a message to one of this core's places.
    pub fn judge(&self, core: CoreId, envelope: &Envelope) -> Verdict {
        let Envelope { from, to, time, message } = envelope;
        let speaker = link_rule::core_of(self.topology, *from);
        let speaker = speaker.ok_or("a message of nobody that the cluster has")?;
        link_rule::admit(self.topology, core, speaker, envelope).map_err(NotTheirs::in_short)?;
        possible(*time)?;
        match (*from, *to) {
            _ if speaker.datacenter != self.topology.datacenter => self.of_a_datacenter(message),
            (Address::Core { .. }, Address::Partition { partition: own, .. }) => {
                self.of_a_session(own, message)
            }
            (Address::Partition { partition: from, .. }, Address::Partition { partition: own, .. }) => {
                self.of_a_partition(from, own, message)
            }
            (Address::Core { .. }, Address::Core { .. }) => match message {
                Message::Interest { .. } | Message::Publish { .. } => self.of_a_publisher(message),
                Message::CoreQuery { .. } | Message::CoreAnswer { .. } => Ok(()),
                Message::HomeMoves { moves, .. } => self.moves(moves),
                _ => Err("a message that no core sends another"),
            },
            (Address::Partition { .. }, Address::Core { .. }) => self.of_an_owner(message),
        }
    }

    /// What the same partition of another datacenter may say.
    fn of_a_datacenter(&self, message: &Message) -> Verdict {
        match message {
            Message::TailFetch { after } => position(*after),
            Message::TailFetched { after, received, .. } => {
                position(*after)?;
                position(*received)
            }
            Message::BranchFetch { keyspace, .. } | Message::BranchFetched { keyspace, .. } => {
                self.branching(*keyspace)
            }
            Message::BranchLacking { keyspace, failed, .. } => {
                self.branching(*keyspace)?;
                failed.iter().try_for_each(|datacenter| self.datacenter(*datacenter))
            }
            Message::DatacenterFailed { datacenter, received, .. } => {
                self.datacenter(*datacenter)?;
                position(*received)
            }
            Message::PassOn { origin, after } => {
                self.datacenter(*origin)?;
                position(*after)
            }
            Message::PassedOn { origin, .. } => self.datacenter(*origin),
            Message::StreamResume { incarnation, received } => place_in(*incarnation, *received),
            Message::StreamEntries { incarnation, first, entries } => {
                place_in(*incarnation, *first)?;
                let last = Position(first.0.saturating_add(entries.len() as u64));
                position(last)?;
                admit(*first > Position(0), "a stream that begins before its first place")
            }
            Message::StreamAcknowledge(acknowledge) => self.acknowledgement(acknowledge),
            Message::Heartbeat { end } => position(*end),
            Message::Interest { changes, .. } => {
                let monitors = changes.iter().any(|interest| interest.kind == ChannelKind::Monitor);
                admit(!monitors, "a datacenter that wants to be shown the commands of another one")
            }
            Message::Publish { kind, .. } => {
                admit(*kind != ChannelKind::Monitor, "a command of another datacenter for who monitors")?;
                self.of_a_publisher(message)
            }
            Message::HomeRequest(request) => self.of_an_origin(request),
            Message::HomeMoves { moves, .. } => {
                let has_stopped = moves.iter().all(|moved| moved.step >= HomeStep::Stopped);
                admit(has_stopped, "a home that moves, and whose former one has not stopped")?;
                self.moves(moves)
            }
            Message::HomeAnswer { outcome: HomeOutcome::Executed { context, .. }, .. } => {
                self.context(context)
            }
            Message::Introduce(introduction) => {
                let Introduction { received, last, applied, end, elsewhere, .. } = introduction;
                possible(*last)?;
                [received, applied, end, elsewhere].into_iter().try_for_each(|place| position(*place))
            }
            // The rest of the link rule's list names nothing.
            _ => Ok(()),
        }
    }

    fn acknowledgement(&self, acknowledge: &StreamAcknowledge) -> Verdict {
        let StreamAcknowledge { incarnation, received, synced, applied, end, shown } = acknowledge;
        place_in(*incarnation, *received)?;
        admit(synced <= received, "an acknowledgement of more as synced than as received")?;
        position(*end)?;
        possible(*shown)?;
        applied.iter().try_for_each(|(origin, _, applied)| {
            self.datacenter(*origin)?;
            position(*applied)
        })
    }

    /// What a session of this datacenter may ask a partition.
    fn of_a_session(&self, own: PartitionId, message: &Message) -> Verdict {
        match message {
            Message::Execute { keyspace, context, commands, .. } => {
                self.context(context)?;
                self.commands(own, *keyspace, commands)
            }
            Message::ReadFirst { keyspace, commands, .. } => self.commands(own, *keyspace, commands),
            Message::ReadAt { keyspace, commands, at, .. } => {
                possible(*at)?;
                self.commands(own, *keyspace, commands)
            }
            Message::Transact { keyspace, context, parts, .. } => {
                self.context(context)?;
                self.parts(*keyspace, parts)?;
                let together = self.protocol(*keyspace)?.capabilities().write_transactions;
                admit(together || parts.len() == 1, "a write transaction of a protocol that has none")
            }
            Message::ReadSnapshot { keyspace, context, parts, .. } => {
                self.context(context)?;
                self.parts(*keyspace, parts)
            }
            Message::AwaitReplicas { dependencies, times, .. }
            | Message::CountReplicas { dependencies, times, .. } => {
                self.times(times)?;
                dependencies.iter().try_for_each(|dependency| self.operation(&dependency.operation))
            }
            Message::ContextFetch { context: name, .. } => self.protocol(name.keyspace).map(drop),
            Message::ContextMerge { name, context, .. } => {
                self.context(context)?;
                self.protocol(name.keyspace).map(drop)
            }
            Message::MetricsQuery { .. } | Message::ReportChanges { .. } => Ok(()),
            Message::CheckDependencies { origin: None, dependencies, .. } => self.asked(own, dependencies),
            Message::AwaitTimes { times, readers, .. } => {
                self.times(times)?;
                readers.map_or(Ok(()), |keyspace| self.protocol(keyspace).map(drop))
            }
            _ => Err("a message that no session sends"),
        }
    }

    /// What another partition of this datacenter may say.
    fn of_a_partition(&self, from: PartitionId, own: PartitionId, message: &Message) -> Verdict {
        match message {
            Message::ReadSnapshotPart { keyspace, snapshot, commands, .. } => {
                self.times(snapshot)?;
                self.commands(own, *keyspace, commands)
            }
            Message::SnapshotPartRead { .. }
            | Message::SnapshotPartLate { .. }
            | Message::SnapshotPartRefused { .. }
            | Message::DatacenterFailed { .. }
            | Message::Retiring { .. } => Ok(()),
            Message::StabilizationReport { received, floor, globally_stable }
            | Message::Stable { received, floor, globally_stable } => {
                self.times(received)?;
                self.times(floor)?;
                globally_stable.iter().try_for_each(|operation| self.operation(operation))
            }
            Message::Ended { datacenter, .. } | Message::Lost { datacenter, .. } => self.other(*datacenter),
            Message::CheckDependencies { origin, dependencies, .. } => {
                origin.map_or(Ok(()), |origin| self.other(origin))?;
                self.asked(own, dependencies)
            }
            Message::DependenciesMet { unrecoverable, .. } => self.dependencies(unrecoverable),
            Message::Repeat { .. } | Message::Repeated { .. } => Ok(()),
            Message::HomeMoves { moves, .. } => self.moves(moves),
            Message::PartsSynced { operations } => {
                operations.iter().try_for_each(|operation| self.coordinated(own, operation))
            }
            Message::PartsForgotten { operations } => {
                operations.iter().try_for_each(|operation| self.coordinated(from, operation))
            }
            message => self.of_a_transaction(from, own, message),
        }
    }

    /// What its coordinator says of a transaction, and what is said to its coordinator.
    fn of_a_transaction(&self, from: PartitionId, own: PartitionId, message: &Message) -> Verdict {
        match message {
            Message::Prepare { transaction, keyspace, part } => {
                self.coordinated(from, transaction)?;
                self.protocol(*keyspace)?;
                let Some(part) = part else { return Ok(()) };
                admit(transaction.datacenter == self.topology.datacenter, "a part that its stream brings")?;
                admit(part.partition == own, "a part of another partition")?;
                self.part(*keyspace, part)
            }
            Message::Commit { transaction, decision } => self.decision(from, transaction, decision),
            Message::CommitChecked { transaction, decision: Some(decision), .. } => {
                self.decision(from, transaction, decision)
            }
            Message::CommitChecked { transaction, decision: None, .. } | Message::Abandon { transaction } => {
                self.coordinated(from, transaction)
            }
            Message::AwaitPart { transaction }
            | Message::Discard { transaction }
            | Message::TransactionOver { transaction }
            | Message::ForgetVote { transaction } => {
                self.coordinated(from, transaction)?;
                self.other(transaction.datacenter)
            }
            Message::Vote { transaction } | Message::Committed { transaction, .. } => {
                self.coordinated(own, transaction)
            }
            Message::CommitUnannounced { transaction, at, .. } => {
                possible(*at)?;
                self.coordinated(from, transaction)
            }
            Message::CommitCheck { transaction, at, .. } => {
                possible(*at)?;
                self.coordinated(own, transaction)
            }
            Message::FindPart { transaction, time } => {
                possible(*time)?;
                self.coordinated(from, transaction)?;
                self.other(transaction.datacenter)
            }
            Message::Notify { transaction }
            | Message::PartHeld { transaction }
            | Message::PartUnrecoverable { transaction } => {
                self.coordinated(own, transaction)?;
                self.other(transaction.datacenter)
            }
            Message::FillQuery | Message::FillAnswer { .. } => Ok(()),
            _ => Err("a message that no partition sends another of its datacenter"),
        }
    }

    /// What a partition may answer a session.
    fn of_an_owner(&self, message: &Message) -> Verdict {
        match message {
            Message::Executed { context, .. }
            | Message::ExecutedInPart { context, .. }
            | Message::TimedOut { context, .. }
            | Message::Transacted { context, .. } => self.context(context),
            Message::ContextFetched { since, context, .. } => {
                possible(*since)?;
                self.context(context)
            }
            Message::SnapshotRead { outcome, .. } => match outcome {
                SnapshotOutcome::Read { context, .. } | SnapshotOutcome::TimedOut { context, .. } => {
                    self.context(context)
                }
                SnapshotOutcome::TooLate => Ok(()),
            },
            Message::ReadFirstDone { latest_valid, values, .. } => {
                possible(*latest_valid)?;
                values.as_ref().map_or(Ok(()), |values| possible(values.earliest_valid))
            }
            Message::ReadAtDone { .. }
            | Message::Refused { .. }
            | Message::ReplicasReached { .. }
            | Message::ContextMerged { .. }
            | Message::MetricsAnswer { .. } => Ok(()),
            Message::Changed { keyspace, .. } | Message::Called { keyspace, .. } => {
                self.protocol(*keyspace).map(drop)
            }
            Message::DependenciesMet { unrecoverable, .. } => self.dependencies(unrecoverable),
            Message::HomeMoves { moves, .. } => self.moves(moves),
            _ => Err("a message that no partition answers"),
        }
    }

    /// Where homes of keys have moved, and what the former ones had.
    fn moves(&self, moves: &[HomeMove]) -> Verdict {
        moves.iter().try_for_each(|moved| {
            self.protocol(moved.keyspace)?;
            let is_possible = (1..=u64::from(HomeMove::VERSION_MAX)).contains(&moved.version);
            admit(is_possible, "a move of a home with a number that no operator reaches")?;
            let HomeMove { configured, from, home, .. } = moved;
            [configured, from, home].into_iter().try_for_each(|datacenter| self.datacenter(*datacenter))?;
            self.times(&moved.times)?;
            moved.applied.iter().try_for_each(|(origin, applied)| {
                self.datacenter(*origin)?;
                position(*applied)
            })
        })
    }

    /// What the sessions of any core may say about channels.
    fn of_a_publisher(&self, message: &Message) -> Verdict {
        let Message::Publish { kind, past, .. } = message else { return Ok(()) };
        admit(*kind != ChannelKind::Pattern, "a message that is published to a pattern")?;
        past.iter().try_for_each(|(keyspace, context)| {
            self.protocol(*keyspace)?;
            self.context(context)
        })
    }

    /// What a session of another datacenter may ask the home of keys: one command on keys, or those of a `MULTI`. Whose
    /// home this is, is known where homes are.
    fn of_an_origin(&self, request: &HomeRequest) -> Verdict {
        let HomeRequest { keyspace, context, transaction, commands, .. } = request;
        let branches = self.protocol(*keyspace)?.needs().branches;
        admit(!branches, "a command at the home of keys that can have none")?;
        self.context(context)?;
        let check = commands.first().filter(|args| *transaction && is_check(args));
        if let Some(check) = check {
            let most = 1 + 2 * limits::WATCHED_KEYS_MAX;
            admit(check.len() % 2 == 1 && check.len() <= most, "a check of no watched keys at a home")?;
        }
        let rest = &commands[usize::from(check.is_some())..];
        let most = if *transaction { limits::MULTI_COMMANDS_MAX } else { 1 };
        let least = usize::from(check.is_none());
        admit((least..=most).contains(&rest.len()), "more commands at a home than are asked for at once")?;
        rest.iter().try_for_each(|args| {
            let spec = args.first().and_then(|name| ensue_resp::lookup(name));
            let spec = spec.ok_or("an unknown command at the home of keys")?;
            let may = match transaction {
                true => may_run_at_home(spec),
                false => is_on_keys(spec) || spec.name == "watch",
            };
            admit(may, "a command that does not go to the home of keys")?;
            admit(ensue_resp::check_arity(spec, args.len()), "a command of another arity at the home of keys")
        })
    }

    // What messages are made of.

    fn datacenter(&self, datacenter: DatacenterId) -> Verdict {
        let exists = usize::from(datacenter.0) < self.topology.datacenters.len();
        admit(exists, "a datacenter that the cluster does not have")
    }

    /// A datacenter that is not this one.
    fn other(&self, datacenter: DatacenterId) -> Verdict {
        self.datacenter(datacenter)?;
        admit(datacenter != self.topology.datacenter, "a datacenter that is spoken of to itself")
    }

    fn partition(&self, partition: PartitionId) -> Verdict {
        admit(partition.0 < self.topology.partitions, "a partition that the cluster does not have")
    }

    fn protocol(&self, keyspace: KeyspaceId) -> Result<&dyn Protocol, &'static str> {
        let protocol = self.protocols.get(usize::from(keyspace.0));
        protocol.map(AsRef::as_ref).ok_or("a keyspace that is not configured")
    }

    fn branching(&self, keyspace: KeyspaceId) -> Verdict {
        admit(self.protocol(keyspace)?.needs().branches, "states of a keyspace that has no branches here")
    }

    fn operation(&self, operation: &OperationId) -> Verdict {
        self.datacenter(operation.datacenter)?;
        self.partition(operation.partition)?;
        position(operation.position)
    }

    /// A transaction that this partition coordinates.
    fn coordinated(&self, by: PartitionId, transaction: &OperationId) -> Verdict {
        self.operation(transaction)?;
        admit(transaction.partition == by, "a transaction that another partition coordinates")
    }

    fn decision(&self, by: PartitionId, transaction: &OperationId, decision: &Decision) -> Verdict {
        self.coordinated(by, transaction)?;
        self.coordinated(by, &decision.operation)?;
        let Decision { at, operation, stamp } = decision;
        possible(*at)?;
        possible(stamp.time)?;
        let fits = stamp.partition == by
            && stamp.datacenter == transaction.datacenter
            && operation.datacenter == transaction.datacenter;
        admit(fits, "a decision about another transaction")
    }

    fn dependencies(&self, dependencies: &[Dependency]) -> Verdict {
        dependencies.iter().try_for_each(|dependency| self.operation(&dependency.operation))
    }

    /// Dependencies that this partition knows of.
    fn asked(&self, own: PartitionId, dependencies: &[Dependency]) -> Verdict {
        self.dependencies(dependencies)?;
        let here = dependencies.iter().all(|dependency| dependency.operation.partition == own);
        admit(here, "a dependency check for another partition")
    }

    /// One time a datacenter. Those of others need not be possible: what a dead one wrote is here for ever. Another
    /// node of this datacenter may know some more, which have written nothing as long as this one does not know them.
    fn times(&self, times: &TimeVector) -> Verdict {
        admit(times.len() <= limits::DATACENTERS_MAX, "times of more datacenters than there can be")?;
        self.of_known(times)?;
        possible(times.at(self.topology.datacenter))
    }

    /// No time of a datacenter that is not known here: nobody would ever hear it, and who has it in its past would wait
    /// for ever.
    fn of_known(&self, times: &TimeVector) -> Verdict {
        let mut unknown = self.topology.datacenters.len()..times.len();
        let is_zero = |number| times.at(DatacenterId(number as u8)) == LogicalTime::ZERO;
        admit(unknown.all(is_zero), "a time of a datacenter that there is not")
    }

    /// What a session has seen.
    fn context(&self, context: &Context) -> Verdict {
        possible(context.time)?;
        match &context.causes {
            Causes::Times(vector) => {
                let parts = [&vector.times, &vector.abandoned, &vector.doubted];
                parts.into_iter().try_for_each(|times| self.of_known(times))
            }
            Causes::Operations(operations) => self.dependencies(operations),
            _ => Ok(()),
        }
    }

    /// Parts of one transaction or one cut, each of another partition.
    fn parts(&self, keyspace: KeyspaceId, parts: &[Part]) -> Verdict {
        let partitions: BTreeSet<PartitionId> = parts.iter().map(|part| part.partition).collect();
        admit(!parts.is_empty() && partitions.len() == parts.len(), "parts that are not one a partition")?;
        parts.iter().try_for_each(|part| self.part(keyspace, part))
    }

    fn part(&self, keyspace: KeyspaceId, part: &Part) -> Verdict {
        self.partition(part.partition)?;
        let spread = self.spread(keyspace)?;
        part.commands.iter().try_for_each(|(_, args)| command(part.partition, spread, args))
    }

    fn commands(&self, own: PartitionId, keyspace: KeyspaceId, commands: &[Args]) -> Verdict {
        let spread = self.spread(keyspace)?;
        commands.iter().try_for_each(|args| command(own, spread, args))
    }

    /// Over how many partitions, from the first on, the keys of a keyspace are spread.
    fn spread(&self, keyspace: KeyspaceId) -> Result<u16, &'static str> {
        let one = self.protocol(keyspace)?.needs().one_stream;
        Ok(if one { 1 } else { self.topology.partitions })
    }
}

/// A command with a name, and with keys of this partition only.
fn command(own: PartitionId, spread: u16, args: &Args) -> Verdict {
    let Some(name) = args.first() else { return Err("a command without a name") };
    // What is no command is answered as one that is not known.
    let Some(spec) = ensue_resp::lookup(name) else { return Ok(()) };
    let mut keys = ensue_resp::keys(spec, args);
    admit(keys.all(|key| partition_of(key, spread) == own), "a key of another partition")
}

fn possible(time: LogicalTime) -> Verdict {
    admit(time.ms() < limits::LOGICAL_MS_MAX, "a time that no clock shows")
}

fn position(position: Position) -> Verdict {
    admit(position.is_possible(), "a position that no stream comes to")
}

/// A place of a stream in the life that it is said to be of.
fn place_in(incarnation: Incarnation, place: Position) -> Verdict {
    position(place)?;
    admit(place.incarnation() == incarnation, "a position of another incarnation than it is said to be of")
}

#[cfg(test)]
mod tests;
