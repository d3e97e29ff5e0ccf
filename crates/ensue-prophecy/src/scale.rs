//! Scale-out (section 5): several sketchers beside each other, each with the regions of the history table that
//! consistent hashing gives it, and regions that move when sketchers join, leave or fail.
//!
//! A request sketcher computes the region of a request and forwards it along [`Partition::route`]. The response
//! sketchers are [`Sketcher`](crate::sketcher::Sketcher)s. One `Partition` decides for all; the paper requires that the
//! partitioning be kept consistent, and a shell would keep it in a replicated store.
//!
//! - On a join or a leave: each region whose owner changes begins to move. Both owners are notified, and serve it by
//!   replicated reads only.
//! - On both acknowledgements: requests are routed to the new owner, and the former one is asked to drain.
//! - On drained: the new owner may serve fast reads. What it asked before enters no history table, because the former
//!   owner may have returned something newer since; the paper unsets the blacklist without this rule.
//! - On a failure: the failed sketcher counts as drained. It must have stopped for good: one that is only suspected
//!   must be fenced off its replicas first.

use crate::regions::{Ownership, REGIONS, Region};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Points of each sketcher on the ring: the shares of a few sketchers differ by some ten percent.
const POINTS: u32 = 64;

/// The number of a sketcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member(pub u32);

/// What is to be told to a sketcher, in the order of the notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Call `on_region` with this, and acknowledge it if the region moves.
    Set { member: Member, region: Region, ownership: Ownership },
    /// When no request of the region is left, let it be foreign, and say so.
    Drain { member: Member, region: Region },
}

/// A region on its way.
#[derive(Clone, Debug)]
struct Move {
    /// None if nobody has to be drained.
    from: Option<Member>,
    to: Member,
    unacknowledged: BTreeSet<Member>,
    is_draining: bool,
}

/// Who owns what, and what moves.
#[derive(Clone, Debug, Default)]
pub struct Partition {
    ring: BTreeMap<u64, Member>,
    members: BTreeSet<Member>,
    routes: BTreeMap<Region, Member>,
    moves: BTreeMap<Region, Move>,
    notices: VecDeque<Notice>,
}

impl Partition {
    /// No sketcher, and no region is served.
    pub fn new() -> Partition {
        Partition::default()
    }

    /// What is to be told, in this order.
    pub fn take_notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    /// Who is sent requests of this region.
    pub fn route(&self, region: Region) -> Option<Member> {
        self.routes.get(&region).copied()
    }

    /// The sketchers that take part.
    pub fn members(&self) -> &BTreeSet<Member> {
        &self.members
    }

    /// Regions that move.
    pub fn moving(&self) -> usize {
        self.moves.len()
    }

    /// A sketcher takes part from now on; all of its regions are foreign.
    pub fn on_join(&mut self, member: Member) {
        if self.members.insert(member) {
            self.ring.extend((0..POINTS).map(|point| (place(member, point), member)));
            self.settle_all();
        }
    }

    /// A sketcher shall serve nothing any longer, and works until its regions have moved. The last one stays.
    pub fn on_leave(&mut self, member: Member) {
        if self.members.len() > 1 && self.members.remove(&member) {
            self.ring.retain(|_, other| *other != member);
            self.settle_all();
        }
    }

    /// A sketcher has stopped for good.
    pub fn on_fail(&mut self, member: Member) {
        self.members.remove(&member);
        self.ring.retain(|_, other| *other != member);
        let moving: Vec<Region> = self.moves.keys().copied().collect();
        for region in moving {
            let Some(to) = self.owner(region) else { continue };
            let Some(moved) = self.moves.get_mut(&region) else { continue };
            moved.unacknowledged.remove(&member);
            moved.from = moved.from.filter(|from| *from != member);
            if moved.to == member {
                moved.to = to;
                if moved.from != Some(to) {
                    moved.unacknowledged.insert(to);
                    let ownership = Ownership::Moving;
                    self.notices.push_back(Notice::Set { member: to, region, ownership });
                }
            }
            self.advance(region);
        }
        let lost: Vec<Region> =
            self.routes.iter().filter(|(_, owner)| **owner == member).map(|(region, _)| *region).collect();
        for region in lost.into_iter().filter(|region| !self.moves.contains_key(region)) {
            self.routes.remove(&region);
        }
        self.settle_all();
    }

    /// A sketcher knows that this region moves.
    pub fn on_acknowledged(&mut self, member: Member, region: Region) {
        if let Some(moved) = self.moves.get_mut(&region) {
            moved.unacknowledged.remove(&member);
        }
        self.advance(region);
    }

    /// A sketcher has no request of this region left, and takes none.
    pub fn on_drained(&mut self, member: Member, region: Region) {
        if let Some(moved) = self.moves.get_mut(&region) {
            moved.from = moved.from.filter(|from| *from != member);
        }
        self.advance(region);
    }

    fn settle_all(&mut self) {
        (0..REGIONS).map(|region| Region(region as u8)).for_each(|region| self.settle(region));
    }

    /// Begins to move a region that is not where the ring has it.
    fn settle(&mut self, region: Region) {
        let (Some(to), false) = (self.owner(region), self.moves.contains_key(&region)) else { return };
        let from = self.route(region);
        if from == Some(to) {
            return;
        }
        let both: BTreeSet<Member> = from.into_iter().chain([to]).collect();
        for &member in &both {
            self.notices.push_back(Notice::Set { member, region, ownership: Ownership::Moving });
        }
        self.moves.insert(region, Move { from, to, unacknowledged: both, is_draining: false });
    }

    fn advance(&mut self, region: Region) {
        let Some(moved) = self.moves.get_mut(&region) else { return };
        if !moved.unacknowledged.is_empty() {
            return;
        }
        let (from, to) = (moved.from, moved.to);
        self.routes.insert(region, to);
        match from {
            Some(member) if !moved.is_draining => {
                moved.is_draining = true;
                self.notices.push_back(Notice::Drain { member, region });
            }
            Some(_) => {}
            None => {
                self.moves.remove(&region);
                self.notices.push_back(Notice::Set { member: to, region, ownership: Ownership::Owned });
                self.settle(region);
            }
        }
    }

    /// The sketcher whose point follows the region's place on the ring.
    fn owner(&self, region: Region) -> Option<Member> {
        let place = u64::from(region.0) << 56;
        let next = self.ring.range(place..).next().or_else(|| self.ring.first_key_value());
        next.map(|(_, member)| *member)
    }
}

fn place(member: Member, point: u32) -> u64 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"ensue-prophecy 1 ring").update(&member.0.to_le_bytes()).update(&point.to_le_bytes());
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    u64::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests;
