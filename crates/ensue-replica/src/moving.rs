//! Replicas that move from node to node: what the leader is asked for, and what it tells of the group.
//!
//! A wish lasts as long as somebody repeats it: who asks may go away at any time, and nothing is left half done. A
//! group never has fewer replicas on the way: the new one learns first, and takes the place of the old one in one joint
//! change.

use crate::config::node_of;
use crate::held::Held;
use crate::members::is_joint;
use raft::RawNode;

/// A wish that was not repeated for so many ticks is over.
const WISH_TICKS: u32 = 250;
/// Another wish is not heard while this one is so young: whoever has it repeats it.
const FRESH_TICKS: u32 = 100;
/// A new leader leaves a replica that only learns alone for so many ticks: whoever wants it may not have found the
/// leader yet.
const PATIENCE_TICKS: u32 = 500;

/// A replica is to be on another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    pub from: u16,
    pub to: u16,
}

/// Why a replica does not move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("this replica does not lead")]
    LeadsNot,
    #[error("the node to move from has no replica")]
    NothingThere,
    #[error("the node to move to has a replica already")]
    Taken,
    #[error("no replica of the partition may be on the node to move to")]
    NoSuchNode,
    #[error("another replica of the partition moves at present")]
    Busy,
}

/// One member of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberReport {
    pub node: u16,
    /// It counts in majorities; otherwise it only learns.
    pub votes: bool,
    /// It was heard within the last two election timeouts.
    pub is_heard: bool,
    /// The entry up to which it is known to have everything.
    pub has: u64,
}

/// A group, as its leader knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub leader: u16,
    pub term: u64,
    /// The last entry that is committed.
    pub committed: u64,
    /// A change of members is under way.
    pub changes: bool,
    pub members: Vec<MemberReport>,
}

impl Report {
    /// How many members with a vote are heard, and how many there are.
    fn votes(&self) -> (usize, usize) {
        let voters = self.members.iter().filter(|member| member.votes);
        (voters.clone().filter(|member| member.is_heard).count(), voters.count())
    }

    /// How many of the replicas that a group is meant to have neither vote nor are heard. One that moves is there twice
    /// for a moment.
    pub fn votes_missing(&self, wanted: usize) -> usize {
        wanted.saturating_sub(self.votes().0)
    }

    /// Whether the group has no majority any more if one more of those with a vote is lost.
    pub fn is_fragile(&self) -> bool {
        let (heard, voters) = self.votes();
        heard <= voters / 2 + 1
    }

    /// How many entries the member lacks that is furthest behind of those that are heard.
    pub fn lag_entries(&self) -> u64 {
        let heard = self.members.iter().filter(|member| member.is_heard);
        heard.map(|member| self.committed.saturating_sub(member.has)).max().unwrap_or(0)
    }
}

/// What a leader is asked for.
#[derive(Debug, Default)]
pub(crate) struct Moving {
    wish: Option<Move>,
    /// Since the wish was last heard, or since this replica leads.
    ticks: u32,
}

impl Moving {
    pub(crate) fn on_tick(&mut self) {
        self.ticks = self.ticks.saturating_add(1);
        if self.ticks >= WISH_TICKS {
            self.wish = None;
        }
    }

    /// A wish is heard, or heard again.
    pub(crate) fn on_wish(&mut self, raw: &RawNode<Held>, wish: Move) -> Result<(), Refusal> {
        match (votes_on(raw, wish.from), votes_on(raw, wish.to)) {
            // While the members change, both count.
            (true, true) if is_joint(raw) => {}
            (true, true) => return Err(Refusal::Taken),
            (false, false) => return Err(Refusal::NothingThere),
            // It has come true, or nearly.
            (false, true) => {}
            // Two that wish for different things would undo each other's for ever.
            (true, false) if self.wish.is_some_and(|known| known != wish) && self.ticks < FRESH_TICKS => {
                return Err(Refusal::Busy);
            }
            (true, false) => (self.wish, self.ticks) = (Some(wish), 0),
        }
        Ok(())
    }

    pub(crate) fn wish(&self) -> Option<Move> {
        self.wish
    }

    /// Whether a replica on this node, which had none, is to become a member.
    pub(crate) fn wants(&self, node: u16) -> bool {
        self.wish.is_some_and(|wish| wish.to == node)
    }

    /// Whether it is certain that nobody wants a replica that only learns on this node.
    pub(crate) fn is_stray(&self, node: u16) -> bool {
        match self.wish {
            Some(wish) => wish.to != node,
            None => self.ticks >= PATIENCE_TICKS,
        }
    }
}

/// The group, as its leader knows it.
pub(crate) fn report(raw: &RawNode<Held>, is_heard: impl Fn(u64) -> bool) -> Report {
    let (raft, conf) = (&raw.raft, raw.raft.prs().conf());
    let member = |(id, progress): (&u64, &raft::Progress)| MemberReport {
        node: node_of(*id),
        votes: conf.voters().contains(*id),
        is_heard: is_heard(*id),
        has: progress.matched,
    };
    let mut members: Vec<MemberReport> = raft.prs().iter().map(member).collect();
    members.sort_unstable_by_key(|member| (member.node, member.votes));
    Report {
        leader: node_of(raft.id),
        term: raft.term,
        committed: raft.raft_log.committed,
        changes: is_joint(raw) || raft.has_pending_conf(),
        members,
    }
}

/// Whether a member of the group has a vote on this node.
pub(crate) fn votes_on(raw: &RawNode<Held>, node: u16) -> bool {
    raw.raft.prs().conf().voters().ids().iter().any(|id| node_of(id) == node)
}
