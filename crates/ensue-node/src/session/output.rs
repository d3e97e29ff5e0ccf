//! What leaves the sessions of a core. The order is the order of effects.

use crate::Trace;
use crate::audit::Audit;
use crate::errand::Errand;
use crate::host_parameters::HostParameters;
use crate::observation::Observation;
use bytes::Bytes;
use ensue_types::SessionId;
use ensue_wire::Envelope;

/// One output.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SessionOutput {
    /// Encoded answers to `answered` commands of a client, and whether it waits for its next turn.
    Reply {
        session: SessionId,
        bytes: Vec<u8>,
        answered: u32,
        wants_turn: bool,
    },
    /// Bytes that answer no command: what a client subscribes to.
    Push {
        session: SessionId,
        bytes: Bytes,
    },
    /// Close this connection after what was written to it.
    Disconnect {
        session: SessionId,
    },
    /// Something that somebody else does for a session; its number comes back with what comes of it.
    Errand {
        session: SessionId,
        number: u64,
        errand: Errand,
    },
    /// What somebody wanted to see, who is no client.
    Observed {
        session: SessionId,
        observation: Box<Observation>,
    },
    /// Whether a new connection is somebody before it has logged in, which has changed.
    Openness {
        is_open: bool,
    },
    /// Parameters of whoever owns the sockets and the log were set.
    Configure(Box<HostParameters>),
    /// An operator's command and what came of it.
    Audit(Box<Audit>),
    /// To a partition or a core of this datacenter.
    Send(Envelope),
    Trace(Trace),
}
