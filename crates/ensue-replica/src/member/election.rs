//! Whether a member that was elected may lack what was committed.
//!
//! A committed entry is with one of any majority, so with one of those that have elected the leader. It is there for
//! certain only if that one has not lost what it acknowledged: unless such voters are a majority by themselves, the
//! leader begins a new epoch. What it knows of members that have not voted for it does not count.

use super::Member;
use crate::leading::Leading;
use crate::replica::{Output, Outputs};
use crate::trust::Trust;
use bytes::Bytes;
use raft::StateRole;
use raft::eraftpb::{self, MessageType};
use std::collections::BTreeSet;

/// Those who have voted for this member in a term and have all that they ever acknowledged.
#[derive(Debug, Default)]
pub(super) struct Votes {
    term: u64,
    whole: BTreeSet<u64>,
}

impl Votes {
    pub(super) fn note(&mut self, term: u64, voter: u64) {
        if term > self.term {
            (self.term, self.whole) = (term, BTreeSet::new());
        }
        if term == self.term {
            self.whole.insert(voter);
        }
    }

    fn of(&self, term: u64) -> impl Iterator<Item = u64> + '_ {
        self.whole.iter().copied().filter(move |_| term == self.term)
    }
}

/// A vote says whether it is of a suspended replica: a message before it could be lost with a link.
pub(super) fn mark_vote(message: &mut eraftpb::Message, trust: &Trust) {
    if message.get_msg_type() == MessageType::MsgRequestVoteResponse && !trust.is_whole() {
        message.context = Bytes::from_static(b"suspended");
    }
}

pub(super) fn is_whole_vote(message: &eraftpb::Message) -> bool {
    !message.reject && message.context.is_empty()
}

impl Member {
    /// Whether this replica leads may have changed.
    pub(super) fn note_role(&mut self, out: &mut Outputs) {
        let (is_leader, term) = (self.raw.raft.state == StateRole::Leader, self.raw.raft.term);
        if let Some(leading) = self.leading.take_if(|leading| !is_leader || leading.term() != term) {
            if leading.has_partition() {
                out.push(Output::Follow);
            }
        }
        if !is_leader {
            return;
        }
        let needs_epoch = self.needs_epoch();
        match &mut self.leading {
            None => self.leading = Some(Leading::new(term, needs_epoch)),
            // Votes that come after the one that decided count, too.
            Some(leading) if !needs_epoch => leading.spare_epoch(),
            Some(_) => {}
        }
    }

    fn needs_epoch(&self) -> bool {
        let own = Some(self.id).filter(|_| self.trust.is_whole());
        let whole = self.votes.of(self.raw.raft.term).chain(own).collect();
        !self.raw.raft.prs().has_quorum(&whole)
    }
}
