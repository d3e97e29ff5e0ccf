//! The values that messages are made of, each as a pair: how it is written, and how it is read back.

use super::reader::Reader;
use super::writer::Writer;
use crate::error::Malformed;
use crate::limits;
use crate::message::{ContextName, Decision};
use ensue_types::limits::KEYSPACES;
use ensue_types::{
    Args, Causes, Context, CoreId, DatacenterId, Dependency, Extent, Incarnation, KeyspaceId, LogicalTime,
    OperationId, Part, PartitionId, Position, Reply, RequestId, SessionId, Stamp, TimeVector,
};

/// The least that an item of each list takes on the wire.
const ARGUMENT_BYTES_MIN: usize = 4;
const COMMAND_BYTES_MIN: usize = 4;
const PLACED_COMMAND_BYTES_MIN: usize = 4 + COMMAND_BYTES_MIN;
const PART_BYTES_MIN: usize = 2 + 4;
const REPLY_BYTES_MIN: usize = 1;
const PLACED_REPLY_BYTES_MIN: usize = 4 + REPLY_BYTES_MIN;
const OPERATION_BYTES: usize = 1 + 2 + 2 + 8;
const DEPENDENCY_BYTES: usize = 14;
const TIME_BYTES: usize = 8;
const METRIC_BYTES_MIN: usize = 4 + 8;

const EXTENT_EXACT: u8 = 0;
const EXTENT_THROUGH: u8 = 1;

impl Writer<'_> {
    pub(super) fn request(&mut self, id: RequestId) -> &mut Self {
        self.u16(id.core.0).u32(id.boot).u64(id.session.0).u64(id.sequence)
    }

    pub(super) fn keyspace(&mut self, id: KeyspaceId) -> &mut Self {
        self.u8(id.0)
    }

    pub(super) fn time(&mut self, time: LogicalTime) -> &mut Self {
        self.u64(time.0)
    }

    pub(super) fn times(&mut self, times: &TimeVector) -> &mut Self {
        let times: Vec<LogicalTime> = times.entries().map(|(_, time)| time).collect();
        self.list(limits::TIMES, &times, |w, time| {
            w.time(*time);
        })
    }

    pub(super) fn incarnation(&mut self, incarnation: Incarnation) -> &mut Self {
        self.u16(incarnation.0)
    }

    pub(super) fn position(&mut self, position: Position) -> &mut Self {
        self.u64(position.0)
    }

    pub(super) fn causes(&mut self, causes: &Causes) -> &mut Self {
        match causes.is_empty() {
            true => self.bytes(limits::CONTEXT_BYTES, &[]),
            false => self.bytes(limits::CONTEXT_BYTES, &causes.encode()),
        }
    }

    pub(super) fn context(&mut self, context: &Context) -> &mut Self {
        self.time(context.time).causes(&context.causes)
    }

    pub(super) fn context_name(&mut self, name: &ContextName) -> &mut Self {
        self.keyspace(name.keyspace).bytes(limits::NAME_BYTES, &name.name)
    }

    pub(super) fn operations(&mut self, operations: &[OperationId]) -> &mut Self {
        self.list(limits::DEPENDENCIES, operations, |w, operation| {
            w.operation(*operation);
        })
    }

    pub(super) fn operation(&mut self, id: OperationId) -> &mut Self {
        self.u8(id.datacenter.0).incarnation(id.incarnation).u16(id.partition.0).position(id.position)
    }

    pub(super) fn stamp(&mut self, stamp: Stamp) -> &mut Self {
        self.time(stamp.time).u8(stamp.datacenter.0).u16(stamp.partition.0)
    }

    pub(super) fn decision(&mut self, decision: &Decision) -> &mut Self {
        self.time(decision.at).operation(decision.operation).stamp(decision.stamp)
    }

    pub(super) fn dependencies(&mut self, dependencies: &[Dependency]) -> &mut Self {
        self.list(limits::DEPENDENCIES, dependencies, |w, dependency| {
            w.operation(dependency.operation).u8(match dependency.extent {
                Extent::Exact => EXTENT_EXACT,
                Extent::Through => EXTENT_THROUGH,
            });
        })
    }

    pub(super) fn args(&mut self, args: &Args) -> &mut Self {
        self.list(limits::ARGUMENTS, args, |w, argument| {
            w.bytes(limits::ARGUMENT_BYTES, argument);
        })
    }

    pub(super) fn commands(&mut self, commands: &[Args]) -> &mut Self {
        self.list(limits::COMMANDS, commands, |w, args| {
            w.args(args);
        })
    }

    pub(super) fn part(&mut self, part: &Part) -> &mut Self {
        self.u16(part.partition.0).list(limits::COMMANDS, &part.commands, |w, (place, args)| {
            w.u32(*place).args(args);
        })
    }

    pub(super) fn parts(&mut self, parts: &[Part]) -> &mut Self {
        self.list(limits::PARTS, parts, |w, part| {
            w.part(part);
        })
    }

    pub(super) fn replies(&mut self, replies: &[Reply]) -> &mut Self {
        self.list(limits::REPLIES, replies, |w, reply| {
            w.reply(reply);
        })
    }

    pub(super) fn placed_replies(&mut self, replies: &[(u32, Reply)]) -> &mut Self {
        self.list(limits::REPLIES, replies, |w, (place, reply)| {
            w.u32(*place).reply(reply);
        })
    }

    pub(super) fn metrics(&mut self, metrics: &[(String, i64)]) -> &mut Self {
        self.list(limits::METRICS, metrics, |w, (name, value)| {
            w.bytes(limits::METRIC_NAME_BYTES, name.as_bytes()).i64(*value);
        })
    }
}

impl Reader<'_> {
    pub(super) fn request(&mut self) -> Result<RequestId, Malformed> {
        Ok(RequestId {
            core: CoreId(self.u16()?),
            boot: self.u32()?,
            session: SessionId(self.u64()?),
            sequence: self.u64()?,
        })
    }

    pub(super) fn keyspace(&mut self) -> Result<KeyspaceId, Malformed> {
        match self.u8()? {
            number if number < KEYSPACES => Ok(KeyspaceId(number)),
            value => Err(Malformed::UnknownKind { what: "keyspace", value }),
        }
    }

    pub(super) fn time(&mut self) -> Result<LogicalTime, Malformed> {
        Ok(LogicalTime(self.u64()?))
    }

    pub(super) fn times(&mut self) -> Result<TimeVector, Malformed> {
        let times = self.list(limits::TIMES, TIME_BYTES, Reader::time)?;
        // One encoding a vector: it never ends with a zero.
        match times.last() {
            Some(&LogicalTime::ZERO) => Err(Malformed::UnknownKind { what: "end of a vector", value: 0 }),
            _ => Ok(times.into_iter().collect()),
        }
    }

    pub(super) fn incarnation(&mut self) -> Result<Incarnation, Malformed> {
        Ok(Incarnation(self.u16()?))
    }

    pub(super) fn position(&mut self) -> Result<Position, Malformed> {
        Ok(Position(self.u64()?))
    }

    pub(super) fn causes(&mut self) -> Result<Causes, Malformed> {
        Causes::decode(self.slice(limits::CONTEXT_BYTES)?).map_err(|_| Malformed::NoContext)
    }

    pub(super) fn context(&mut self) -> Result<Context, Malformed> {
        Ok(Context { time: self.time()?, causes: self.causes()? })
    }

    pub(super) fn context_name(&mut self) -> Result<ContextName, Malformed> {
        Ok(ContextName { keyspace: self.keyspace()?, name: self.bytes(limits::NAME_BYTES)? })
    }

    pub(super) fn operations(&mut self) -> Result<Vec<OperationId>, Malformed> {
        self.list(limits::DEPENDENCIES, OPERATION_BYTES, Reader::operation)
    }

    pub(super) fn operation(&mut self) -> Result<OperationId, Malformed> {
        Ok(OperationId {
            datacenter: DatacenterId(self.u8()?),
            incarnation: self.incarnation()?,
            partition: PartitionId(self.u16()?),
            position: self.position()?,
        })
    }

    pub(super) fn stamp(&mut self) -> Result<Stamp, Malformed> {
        Ok(Stamp {
            time: self.time()?,
            datacenter: DatacenterId(self.u8()?),
            partition: PartitionId(self.u16()?),
        })
    }

    pub(super) fn decision(&mut self) -> Result<Decision, Malformed> {
        Ok(Decision { at: self.time()?, operation: self.operation()?, stamp: self.stamp()? })
    }

    pub(super) fn dependencies(&mut self) -> Result<Vec<Dependency>, Malformed> {
        self.list(limits::DEPENDENCIES, DEPENDENCY_BYTES, |r| {
            let operation = r.operation()?;
            let extent = match r.u8()? {
                EXTENT_EXACT => Extent::Exact,
                EXTENT_THROUGH => Extent::Through,
                value => return Err(Malformed::UnknownKind { what: "extent of a dependency", value }),
            };
            Ok(Dependency { operation, extent })
        })
    }

    /// A command has at least its name.
    pub(super) fn args(&mut self) -> Result<Args, Malformed> {
        let args = self.list(limits::ARGUMENTS, ARGUMENT_BYTES_MIN, |r| r.bytes(limits::ARGUMENT_BYTES))?;
        if args.is_empty() { Err(Malformed::NoCommand) } else { Ok(args) }
    }

    pub(super) fn commands(&mut self) -> Result<Vec<Args>, Malformed> {
        self.list(limits::COMMANDS, COMMAND_BYTES_MIN, Reader::args)
    }

    pub(super) fn part(&mut self) -> Result<Part, Malformed> {
        let partition = PartitionId(self.u16()?);
        let commands =
            self.list(limits::COMMANDS, PLACED_COMMAND_BYTES_MIN, |r| Ok((r.u32()?, r.args()?)))?;
        Ok(Part { partition, commands })
    }

    pub(super) fn parts(&mut self) -> Result<Vec<Part>, Malformed> {
        self.list(limits::PARTS, PART_BYTES_MIN, Reader::part)
    }

    pub(super) fn replies(&mut self) -> Result<Vec<Reply>, Malformed> {
        self.list(limits::REPLIES, REPLY_BYTES_MIN, Reader::reply)
    }

    pub(super) fn placed_replies(&mut self) -> Result<Vec<(u32, Reply)>, Malformed> {
        self.list(limits::REPLIES, PLACED_REPLY_BYTES_MIN, |r| Ok((r.u32()?, r.reply()?)))
    }

    pub(super) fn metrics(&mut self) -> Result<Vec<(String, i64)>, Malformed> {
        self.list(limits::METRICS, METRIC_BYTES_MIN, |r| {
            Ok((r.text(limits::METRIC_NAME_BYTES)?.to_owned(), r.i64()?))
        })
    }
}
