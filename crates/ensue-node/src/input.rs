//! Everything that can happen to a node, as one closed enum.

use crate::cpu::CpuReport;
use crate::errand::ErrandDone;
use crate::links::LinkReport;
use crate::memory::MemoryReport;
use crate::observation::Scope;
use crate::scrub::ScrubReport;
use ensue_store::disk::DiskDone;
use ensue_types::{Args, CoreId, DatacenterId, PartitionId, SessionId};
use ensue_wire::{CoreName, Envelope};

/// What whoever owns the sockets drops, because too many bytes wait there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dropped {
    /// A client that does not read what it subscribes to.
    Subscriber,
    /// A message to another core.
    Message,
}

/// One input. Each is run to completion; outputs are then drained.
#[derive(Clone, Debug, Hash)]
pub enum Input {
    /// A client connected; `address` is shown in `CLIENT LIST`.
    ClientConnected {
        session: SessionId,
        address: String,
        local_address: String,
    },
    /// Somebody who is no client asks once, as a client does: neither a pause of the clients nor a script that runs for
    /// long keeps it from looking at the node.
    VisitorConnected {
        session: SessionId,
        address: String,
        local_address: String,
    },
    /// A turn of one client, with the commands that follow, in the order in which it sent them; none if its session
    /// only goes on with
    /// what it has. Given when the client has read enough of its answers.
    ClientCommands {
        session: SessionId,
        commands: Vec<Args>,
    },
    /// The client's bytes were no Redis protocol: it gets this error after the answers before it, then is disconnected.
    ClientBroke {
        session: SessionId,
        error: String,
    },
    /// The client sends nothing any more, and may be gone: it still gets its answers, but none that are waited for.
    ClientEnded {
        session: SessionId,
    },
    /// The client is gone; what it asked goes on, unanswered.
    ClientGone {
        session: SessionId,
    },
    /// Somebody who is no client wants to see metrics: `Output::Observed` has them, with this number, which is that of
    /// no connection.
    Observe {
        session: SessionId,
        scope: Scope,
    },
    /// What came of an `Output::Errand`, with its number.
    ErrandDone {
        session: SessionId,
        number: u64,
        done: ErrandDone,
    },
    /// From another core of this process.
    Message(Envelope),
    /// From the core at the other end of a link.
    PeerMessage {
        peer: CoreName,
        envelope: Envelope,
    },
    /// A link to another core is up, both ways: given for every core that can be reached, those of this process
    /// included, once at the start and after each break. What was asked over an earlier link is asked again.
    LinkUp {
        datacenter: DatacenterId,
        core: CoreId,
    },
    LinkDown {
        datacenter: DatacenterId,
        core: CoreId,
    },
    /// This core owns a replicated partition from now on, in this term of its replicas. `epoch` counts how often what
    /// they had committed may have been lost.
    Lead {
        partition: PartitionId,
        term: u64,
        epoch: u64,
    },
    /// It does not any more.
    Follow {
        partition: PartitionId,
    },
    /// A core of any datacenter owns a replicated partition.
    Owner {
        datacenter: DatacenterId,
        partition: PartitionId,
        core: CoreId,
        term: u64,
    },
    /// The answer to an `Output::Confirm`, and to all before of that partition.
    Confirmed {
        partition: PartitionId,
        number: u64,
    },
    /// What `INFO` shall say of this core's links to a datacenter, in place of what was reported before.
    LinkReport(LinkReport),
    /// What `INFO memory` shall say of the process. Given to one core of each node, now and then.
    MemoryReport(MemoryReport),
    /// The same for `INFO cpu`.
    CpuReport(CpuReport),
    /// The answer to an `Output::Disk`, in the order of the operations, syncs apart.
    Disk {
        partition: PartitionId,
        done: DiskDone,
    },
    /// The time that `Node::next_timer` named has come.
    Timer,
    /// Every input of this turn has been given: gather the log records of the turn into one append a partition.
    TurnEnd,
    /// Stop accepting commands, sync, write the clean mark; `Output::Stopped` follows when that is done.
    Shutdown,
    /// Something that was published does not reach somebody, who is not told. A subscriber is gone after that.
    Dropped(Dropped),
    /// So many records of operators' commands could not be written since this was last said. Given to one core of each
    /// node.
    AuditLost(u64),
    /// What `INFO` shall say of how the disk is read in the background. Given to one core of each node, now and then.
    ScrubReport(ScrubReport),
}
