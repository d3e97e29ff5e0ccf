//! Everything a node can ask of its surroundings, as one closed enum. The order of outputs is the order of effects.

use crate::audit::Audit;
use crate::errand::Errand;
use crate::host_parameters::HostParameters;
use crate::observation::Observation;
use bytes::Bytes;
use ensue_store::disk::DiskOp;
use ensue_types::{CoreId, DatacenterId, PartitionId, SessionId};
use ensue_wire::Envelope;

/// One output.
#[derive(Clone, Debug, Hash)]
pub enum Output {
    /// Encoded answers to `answered` commands of a client. One that wants a turn has used up this one and waits, with
    /// commands that
    /// it was given, for the next `Input::ClientCommands`, which may bring none.
    Reply { session: SessionId, bytes: Vec<u8>, answered: u32, wants_turn: bool },
    /// Close this connection after what was written to it.
    Disconnect { session: SessionId },
    /// To another core, of this node or another, of this datacenter or another.
    Send { datacenter: DatacenterId, core: CoreId, envelope: Envelope },
    /// Disk work of a partition, in order.
    Disk { partition: PartitionId, op: DiskOp },
    /// Something worth telling the operator or the simulator.
    Trace(crate::trace::Trace),
    /// The node has shut down cleanly.
    Stopped,
    /// What a client subscribes to: bytes that answer no command.
    Push { session: SessionId, bytes: Bytes },
    /// Whether a new connection may do something before it has logged in, which has changed.
    Openness { is_open: bool },
    /// Something to be done for a session, whenever that is; `Input::ErrandDone` follows, with this number.
    Errand { session: SessionId, number: u64, errand: Errand },
    /// The answer to an `Input::Observe`.
    Observed { session: SessionId, observation: Box<Observation> },
    /// Does this core still own the replicated partition? `Input::Confirmed` follows if so.
    Confirm { partition: PartitionId, number: u64 },
    /// An operator's command, for the record of such; only where `NodeConfig::audits`.
    Audit(Box<Audit>),
    /// Parameters of the sockets and of the log, which hold from now on.
    Configure(Box<HostParameters>),
}
