//! What can be done to the network of the world from outside.

use super::{Hold, VERSIONS, World};
use crate::random::Random;
use crate::world::event::Event;
use crate::world::network::Break;
use crate::world::shape::{ProcessId, Site};
use ensue_protocol::Availability;
use ensue_types::{CoreId, DatacenterId};
use ensue_wire::handshake::Settings;

impl World {
    /// Cuts every connection between two datacenters, until as many heals as cuts have come.
    pub fn cut_datacenters(&mut self, a: DatacenterId, b: DatacenterId, how: Break) {
        for (from, to) in self.pairs(a, b) {
            self.cut(from, to, how);
        }
    }

    pub fn heal_datacenters(&mut self, a: DatacenterId, b: DatacenterId) {
        for (from, to) in self.pairs(a, b) {
            self.heal(from, to);
        }
    }

    /// Cuts the connection between two cores.
    pub fn cut(&mut self, a: Site, b: Site, how: Break) {
        if self.options.shape.process(a) == self.options.shape.process(b) {
            return;
        }
        self.network.block(a, b, true);
        let news = self.network.sever(self.now, a, b, how);
        self.tell_ends(news);
    }

    /// Takes one cut away.
    pub fn heal(&mut self, a: Site, b: Site) {
        if self.network.block(a, b, false) {
            self.reconnect(a, b);
        }
    }

    /// Breaks a connection that may come back at once.
    pub fn flap(&mut self, a: Site, b: Site, how: Break) {
        let news = self.network.sever(self.now, a, b, how);
        self.tell_ends(news);
    }

    /// The same, at a later time.
    pub fn flap_at(&mut self, at: u64, a: Site, b: Site, how: Break) {
        self.queue.push(at.max(self.now), Event::Flap { a, b, how });
    }

    /// One direction between two cores takes so much longer for so long. A request may take that way several times: a
    /// datacenter where this takes longer than its clients wait is in trouble, and they may hear that nobody answered
    /// in time. Where a read may wait for other datacenters until shortly before its client gives up (`BLOCKED`), what
    /// is left is for its way there and back.
    pub fn slow_link(&mut self, from: Site, to: Site, by_us: u64, lasts_us: u64) {
        self.network.lag(from, to, by_us);
        let shape = self.options.shape;
        let within = shape.datacenter(from) == shape.datacenter(to);
        let timeout_us = self.options.tuning.request_timeout_ms * 1_000;
        // A write transaction: the request, the vote and what was executed, or their answers; and as much again for the
        // one before it in a row, which it waits for.
        let ways_us = 6 * by_us;
        // The question and the answer of the partition that draws a cut may go the same way.
        let blocks = self.options.promises().availability == Availability::Blocks;
        let blocked = blocks && 2 * by_us >= timeout_us / 5;
        if within && (blocked || ways_us >= timeout_us) {
            self.trouble(from, self.now + lasts_us + ways_us);
        }
    }

    /// Nothing that one core sends to another arrives for so long; the connection stays up.
    pub fn mute(&mut self, from: Site, to: Site, time_us: u64) {
        let (shape, until) = (self.options.shape, self.now + time_us);
        if shape.process(from) == shape.process(to) {
            return;
        }
        self.network.mute(from, to, until);
        if shape.datacenter(from) == shape.datacenter(to) {
            self.trouble(from, until);
        }
    }

    /// A process takes no input for so long; its connections stay up.
    pub fn pause(&mut self, process: ProcessId, time_us: u64) {
        for site in self.options.shape.sites_of(process) {
            self.occupy(site, self.now + time_us);
        }
    }

    /// From now on each input takes a core so long.
    pub fn slow_core(&mut self, site: Site, cost_us: u64) {
        self.cores[site.0].cost_us = cost_us;
        self.trouble(site, self.now);
    }

    /// No cut, no delay, no hold remains, and every process runs.
    pub fn heal_everything(&mut self) {
        self.is_healed = true;
        self.aims.clear();
        self.liars.clear();
        self.network.heal_everything();
        self.cores.iter_mut().for_each(|core| core.cost_us = 0);
        for process in 0..self.processes.len() {
            self.drift_clock(ProcessId(process), 0);
        }
        for process in 0..self.processes.len() {
            self.restart_with(ProcessId(process), VERSIONS);
            self.restart_configured(ProcessId(process), Settings::default());
        }
        for hold in self.holds.keys().copied().collect::<Vec<_>>() {
            self.release(hold);
        }
        self.heal_disks();
        self.let_everybody_know();
        self.add_joiner();
        self.retire();
        for process in (0..self.processes.len()).map(ProcessId) {
            if self.is_stopping(process) {
                self.kill(process);
            }
            self.start(process);
        }
        for site in 0..self.cores.len() {
            self.reconnect_all(Site(site));
        }
    }

    /// A core begins, or ceases, to say what cannot be.
    pub fn talk_nonsense(&mut self, site: Site, does: bool) {
        if does {
            let random = || Random::stream(self.options.seed, &format!("nonsense {}", site.0));
            self.liars.entry(site).or_insert_with(random);
        } else {
            self.liars.remove(&site);
        }
    }

    /// An operator tells a core of every other datacenter that this one is dead. Nobody waits for the answer: whoever
    /// did not hear of it is told by the others, or when everything is healed.
    pub fn declare_dead(&mut self, datacenter: DatacenterId) {
        for survivor in self.survivors() {
            self.operate(self.options.shape.site(survivor, CoreId(0)), datacenter);
        }
    }

    /// From now on keeps back what this partition sends to that datacenter.
    pub fn hold(&mut self, hold: Hold) {
        self.holds.entry(hold).or_default();
    }

    /// Sends what was kept back.
    pub fn release(&mut self, hold: Hold) {
        for (from, to, epoch, envelope) in self.holds.remove(&hold).unwrap_or_default() {
            if self.network.receives(self.now, from, to, epoch) {
                self.transmit(from, to, envelope);
            }
        }
    }

    /// Every connection between two datacenters, from a core of the first to one of the second.
    pub fn pairs(&self, a: DatacenterId, b: DatacenterId) -> Vec<(Site, Site)> {
        let shape = self.options.shape;
        let of = |d| (0..shape.sites()).map(Site).filter(move |&site| shape.datacenter(site) == d);
        of(a).flat_map(|from| of(b).map(move |to| (from, to))).collect()
    }
}

#[cfg(test)]
mod tests;
