//! What a script has called, for the core of its session: clients that monitor are shown it, and those that are told of
//! changes are told of those of the keys that it has read.

use super::Keyspaces;
use crate::partition::cx::Cx;
use crate::partition::work::Execution;
use bytes::Bytes;
use ensue_types::{Args, limits};
use ensue_wire::Message;

/// The commands of the scripts of one request, in their order, as far as there is room.
#[derive(Clone, Debug, Default)]
pub(super) struct ScriptCalls {
    commands: Vec<Args>,
    bytes: usize,
    is_full: bool,
}

impl ScriptCalls {
    pub(super) fn note(&mut self, args: &[Bytes]) {
        let bytes: usize = args.iter().map(Bytes::len).sum();
        self.is_full |= self.commands.len() == limits::CALLS_TOLD_MAX
            || self.bytes + bytes > limits::CALLS_TOLD_BYTES_MAX;
        if !self.is_full {
            self.bytes += bytes;
            self.commands.push(args.to_vec());
        }
    }
}

impl Keyspaces {
    /// Tells the core of a session what its scripts have called, before it is answered.
    pub(super) fn tell_calls(&mut self, cx: &mut Cx, execution: &Execution) {
        let ScriptCalls { commands, is_full, .. } = std::mem::take(&mut self.called);
        if commands.is_empty() && !is_full {
            return;
        }
        let (request, keyspace) = (execution.request, execution.keyspace);
        cx.send(execution.from, Message::Called { request, keyspace, commands, all: !is_full });
    }
}
