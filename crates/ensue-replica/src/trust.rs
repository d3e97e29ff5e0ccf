//! Whether this replica may be counted on: one whose power failed under it may have lost what it had acknowledged.
//!
//! Such a replica is suspended: it neither votes nor stands for election. It is whole again when it holds every entry
//! that a leader had when that leader, after this start, was confirmed by a majority. If too many are suspended for any
//! leader, they wait until each has heard from all others; then they vote for the longest log of all, and the elected
//! leader begins a new epoch, for what was committed may be lost.

use crate::message::{Hello, Last};
use std::collections::BTreeMap;

#[derive(Debug)]
pub(crate) struct Trust {
    nonce: u64,
    life: u32,
    whole: bool,
    /// All others were heard: the end of the longest log.
    floor: Option<Last>,
    /// With this entry it is whole.
    resume_at: Option<u64>,
    heard: BTreeMap<u16, Hello>,
    /// Ticks until the promise that an earlier start may have given a leader, to elect nobody else, has run out.
    promised: u32,
}

impl Trust {
    pub(crate) fn new(nonce: u64, life: u32, whole: bool, promised: u32) -> Trust {
        let heard = BTreeMap::new();
        Trust { nonce, life, whole, floor: None, resume_at: None, heard, promised }
    }

    pub(crate) fn on_tick(&mut self) {
        self.promised = self.promised.saturating_sub(1);
    }

    /// Nobody is elected with its vote for so many ticks.
    pub(crate) fn promise(&mut self, ticks: u32) {
        self.promised = self.promised.max(ticks);
    }

    pub(crate) fn life(&self) -> u32 {
        self.life
    }

    /// What it says from here on, it says anew.
    pub(crate) fn begin_life(&mut self) {
        self.life += 1;
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.whole
    }

    /// Whether nothing is known against another node: a suspended replica says so before it votes.
    pub(crate) fn is_known_whole(&self, node: u16) -> bool {
        self.heard.get(&node).is_none_or(|hello| hello.id.is_some() && !hello.suspended)
    }

    /// Whether another node is told the same of who is meant to lead.
    pub(crate) fn is_of_one_mind(&self, node: u16, plan: u64) -> bool {
        self.heard.get(&node).is_none_or(|hello| hello.plan == plan)
    }

    pub(crate) fn hello(&self, of: u16, own: Hello) -> Hello {
        let heard = self.heard.get(&of).map_or(0, |hello| hello.nonce);
        let suspended = !self.whole;
        Hello { nonce: self.nonce, heard, life: self.life, suspended, answer: false, ..own }
    }

    /// Another node says of its replica what it is; `others` are the nodes of the other members with a vote.
    pub(crate) fn on_hello(&mut self, others: &[u16], node: u16, hello: &Hello, own: Last) {
        self.heard.insert(node, hello.clone());
        if self.whole {
            return;
        }
        let others = || others.iter().copied();
        let fresh = |other: u16| self.heard.get(&other).filter(|hello| hello.heard == self.nonce);
        let all = others().all(|other| fresh(other).is_some());
        let ends = others().filter_map(fresh).filter(|hello| hello.votes).map(|hello| hello.last);
        let ends = ends.chain([own]);
        // Of what they say now: one that has lost its power again may have less.
        self.floor = ends.max().filter(|_| all);
    }

    /// Whether it may vote for a candidate with this log, be it itself.
    pub(crate) fn may_vote_for(&self, candidate: Last) -> bool {
        self.promised == 0 && (self.whole || self.floor.is_some_and(|floor| floor <= candidate))
    }

    /// A leader has confirmed what is to be had.
    pub(crate) fn on_resume(&mut self, life: u32, index: u64) {
        if life == self.life && !self.whole {
            self.resume_at = Some(self.resume_at.map_or(index, |known| known.min(index)));
        }
    }

    /// Another term begins: what its leader has is not what was confirmed before.
    pub(crate) fn forget_resumption(&mut self) {
        self.resume_at = None;
    }

    /// Whether it has become whole, with everything up to this entry or as the owner.
    pub(crate) fn resumes(&mut self, applied: u64, leads: bool) -> bool {
        let resumes = !self.whole && (leads || self.resume_at.is_some_and(|index| index <= applied));
        if resumes {
            (self.whole, self.floor) = (true, None);
        }
        resumes
    }
}
