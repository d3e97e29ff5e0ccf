//! Sessions of those who come by the metrics port: each has its commands executed as a client has, and is gone.
//!
//! Commands arrive all at once, and their answers leave as one, when the last of them is there. So what somebody may
//! see over HTTP is decided by the same rules as what a client may see, and refused and recorded like it. There are as
//! many visitors as that port has connections, and those that nobody waits for any more: each is over when its commands
//! are answered, which a session sees to within the time of a request.

use ensue_node::Input;
use ensue_types::{Args, SessionId};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::mpsc::Sender;

/// Commands of one session, and who waits for what they are answered.
#[derive(Debug)]
pub(crate) struct Visit {
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
    pub(crate) commands: Vec<Args>,
    /// Gets the answers, in the order of the commands; fewer if the session was ended.
    pub(crate) answers: Sender<Vec<u8>>,
}

/// Those whose commands are not all answered.
#[derive(Debug, Default)]
pub(crate) struct Visitors {
    visitors: HashMap<SessionId, Visitor, FixedState>,
}

#[derive(Debug)]
struct Visitor {
    answers: Sender<Vec<u8>>,
    bytes: Vec<u8>,
    unanswered: usize,
}

impl Visitors {
    /// Has the commands executed.
    pub(crate) fn admit(&mut self, session: SessionId, visit: Visit, inputs: &mut VecDeque<Input>) {
        let Visit { from, to, commands, answers } = visit;
        let visitor = Visitor { answers, bytes: Vec::new(), unanswered: commands.len() };
        self.visitors.insert(session, visitor);
        let (address, local_address) = (from.to_string(), to.to_string());
        let is_idle = commands.is_empty();
        inputs.push_back(Input::VisitorConnected { session, address, local_address });
        inputs.push_back(Input::ClientCommands { session, commands });
        if is_idle {
            self.end(session, inputs);
        }
    }

    pub(crate) fn has(&self, session: SessionId) -> bool {
        self.visitors.contains_key(&session)
    }

    /// The node answered so many commands; a session that wants a turn goes on with what it has.
    pub(crate) fn reply(
        &mut self,
        session: SessionId,
        bytes: &[u8],
        (answered, wants_turn): (u32, bool),
        inputs: &mut VecDeque<Input>,
    ) {
        let Some(visitor) = self.visitors.get_mut(&session) else { return };
        visitor.bytes.extend_from_slice(bytes);
        visitor.unanswered = visitor.unanswered.saturating_sub(answered as usize);
        if visitor.unanswered == 0 {
            self.end(session, inputs);
        } else if wants_turn {
            inputs.push_back(Input::ClientCommands { session, commands: Vec::new() });
        }
    }

    /// The session is over, and whoever waits gets what there is.
    pub(crate) fn end(&mut self, session: SessionId, inputs: &mut VecDeque<Input>) {
        let Some(visitor) = self.visitors.remove(&session) else { return };
        // Who asked may have given up.
        let _ = visitor.answers.send(visitor.bytes);
        inputs.push_back(Input::ClientGone { session });
    }

    /// The node stops.
    pub(crate) fn end_all(&mut self, inputs: &mut VecDeque<Input>) {
        let mut sessions: Vec<SessionId> = self.visitors.keys().copied().collect();
        sessions.sort_unstable();
        sessions.into_iter().for_each(|session| self.end(session, inputs));
    }
}

#[cfg(test)]
mod tests;
