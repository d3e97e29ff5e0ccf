//! How the world drives a node: one input, its outputs carried out in order, then the end of the turn.

use super::{Aim, Happening, Hold, World};
use crate::random::Random;
use crate::world::disk::Disk;
use crate::world::event::{Alarm, ConnectionId, Event};
use crate::world::marks::Mark;
use crate::world::nonsense;
use crate::world::shape::Site;
use ensue_node::link_rule::admit;
use ensue_node::{Input, Output, Trace};
use ensue_store::disk::{DiskDone, DiskOp};
use ensue_types::{DatacenterId, PartitionId, SessionId};
use ensue_wire::handshake::{Hello, negotiate};
use ensue_wire::{Address, CoreName, Envelope};

/// Of what a core says that talks nonsense, so many of a thousand messages have a lie before them.
const LIES_PER_MILLE: u64 = 150;
/// By then every core of a datacenter has heard of a new leader, over links that are as slow as any here.
pub(super) const HEARD_US: u64 = 1_000_000;
/// Of so many seeds, one checks the invariants of every partition after every turn, rows and all.
const INVARIANTS_EVERY: u64 = 8;

impl World {
    /// Carries out an event, unless it is for a core that has no time for it: then it waits there.
    pub(super) fn carry_out(&mut self, event: Event) {
        if let Event::Deliver { from, to, .. } = event {
            if let Some(until) = self.network.held_until(self.now, from, to) {
                return self.queue.push(until, event);
            }
        }
        match event.core() {
            Some(site) if !self.has_time(site) => self.cores[site.0].pending.push_back(event),
            Some(site) => {
                self.carry_out_now(event);
                self.spend(site);
            }
            None => self.carry_out_now(event),
        }
    }

    fn has_time(&self, site: Site) -> bool {
        let core = &self.cores[site.0];
        self.now >= core.busy_until && core.pending.is_empty()
    }

    /// An input was taken: a slow core is busy with it for a while, and so is one whose work has a price.
    fn spend(&mut self, site: Site) {
        let work_us = self.work.as_mut().map_or(0, |work| work.begin_us(site));
        let core = &mut self.cores[site.0];
        let cost_us = core.cost_us + work_us;
        if cost_us > 0 && core.node.is_some() {
            let until = core.busy_until.max(self.now) + cost_us;
            self.occupy(site, until);
        }
    }

    /// When what a core says now leaves it: when the work before it is done.
    fn said_at(&self, site: Site) -> u64 {
        self.now + self.work.as_ref().map_or(0, |work| work.lag_us(site))
    }

    /// The core takes nothing until then.
    pub(super) fn occupy(&mut self, site: Site, until: u64) {
        let boot = self.boot_of(site);
        let core = &mut self.cores[site.0];
        core.busy_until = core.busy_until.max(until);
        self.queue.push(core.busy_until, Event::Resume { site, boot });
        self.trouble(site, until);
    }

    /// Takes what waits, one after another, until the core is busy again.
    fn resume(&mut self, site: Site) {
        while self.now >= self.cores[site.0].busy_until {
            let Some(event) = self.cores[site.0].pending.pop_front() else { return };
            self.carry_out_now(event);
            self.spend(site);
        }
    }

    fn carry_out_now(&mut self, event: Event) {
        match event {
            Event::Deliver { from, to, boot, epoch, envelope } if boot == self.boot_of(to) => {
                let held = self.hold_of(&envelope).is_some_and(|hold| self.holds.contains_key(&hold));
                if held {
                    self.keep_back(from, to, epoch, *envelope);
                } else if self.network.receives(self.now, from, to, epoch) {
                    if let Some(traffic) = &mut self.traffic {
                        traffic.on_receive(self.now, &envelope);
                    }
                    self.note_introduction(&envelope);
                    let shape = self.options.shape;
                    let peer = CoreName { datacenter: shape.datacenter(from), core: shape.core(from) };
                    self.give(to, Input::PeerMessage { peer, envelope: *envelope });
                }
            }
            Event::LinkEnd { site, peer, up, boot, epoch } if boot == self.boot_of(site) => {
                self.link_end(site, peer, up, epoch);
            }
            Event::Flap { .. } | Event::Restart { .. } if self.is_healed => {}
            Event::Flap { a, b, how } => self.flap(a, b, how),
            Event::Restart { process } if self.processes[process.0].alive => {
                self.kill(process);
                self.start(process);
            }
            Event::Resume { site, boot } if boot == self.boot_of(site) => self.resume(site),
            Event::RecoverClock { datacenter } => self.finish_recovering(datacenter),
            Event::Exit { process, boot } if boot == self.processes[process.0].boot => {
                self.kill(process);
                self.harm_the_stopped(process);
            }
            Event::Reconnect { a, b } => self.try_connect(a, b),
            Event::DiskRun { site, boot, partition, op } if boot == self.boot_of(site) => {
                self.disk_run(site, partition, op);
            }
            Event::DiskSynced { site, boot, partition, file } if boot == self.boot_of(site) => {
                let key = self.options.shape.disk(site, partition);
                if let (true, Some(disk)) = (self.cores[site.0].node.is_some(), self.disks.get_mut(&key)) {
                    let done = disk.sync_done(file);
                    self.note_known(site, partition, &done);
                    self.disk_answers(site, partition, done);
                }
            }
            Event::Timer { site, boot, at }
                if boot == self.boot_of(site) && self.cores[site.0].timer == Some(at) =>
            {
                self.cores[site.0].timer = None;
                self.timer(site);
            }
            Event::TurnEnd { site, boot } if boot == self.boot_of(site) => self.end_turn(site),
            Event::Client { site, boot, input } if boot == self.boot_of(site) => self.give(site, *input),
            Event::Answer { connection, bytes, .. } if self.operator_hears(connection, &bytes) => {}
            Event::Answer { connection, bytes, answered } => {
                self.happenings.push_back(Happening::Answer { connection, bytes, answered });
            }
            Event::Hangup { connection } => self.happenings.push_back(Happening::Hangup { connection }),
            Event::Alarm(alarm) => self.happenings.push_back(Happening::Alarm(alarm)),
            _ => {}
        }
    }

    /// Gives one input to a node and carries out what it asks; opens a turn if none is open.
    pub(super) fn give(&mut self, site: Site, input: Input) {
        let now = self.clock_of(site);
        let Some(node) = self.cores[site.0].node.as_mut() else { return };
        match (&mut self.stopwatch, &mut self.work) {
            (Some(stopwatch), _) => stopwatch.time(|| node.on_input(now, input)),
            (None, Some(work)) => work.take(site, &input).give(node, now, input),
            (None, None) => node.on_input(now, input),
        }
        self.drain(site);
        let longest = self.options.turn_us_max;
        let core = &mut self.cores[site.0];
        if core.node.is_some() && !core.turn_open {
            core.turn_open = true;
            let length = if core.turns.chance(500) { 0 } else { core.turns.between(0, longest) };
            let boot = self.boot_of(site);
            self.queue.push(self.now + length, Event::TurnEnd { site, boot });
        }
    }

    fn end_turn(&mut self, site: Site) {
        let now = self.clock_of(site);
        let Some(node) = self.cores[site.0].node.as_mut() else { return };
        match (&mut self.stopwatch, &mut self.work) {
            (Some(stopwatch), _) => stopwatch.time(|| node.on_input(now, Input::TurnEnd)),
            (None, Some(work)) => work.take(site, &Input::TurnEnd).give(node, now, Input::TurnEnd),
            (None, None) => node.on_input(now, Input::TurnEnd),
        }
        if self.options.seed % INVARIANTS_EVERY == 0 && self.stopwatch.is_none() && self.work.is_none() {
            node.check_invariants();
        }
        self.cores[site.0].turn_open = false;
        self.drain(site);
    }

    /// Carries out a node's outputs until there is none, or until an aimed crash has taken the node.
    pub(super) fn drain(&mut self, site: Site) {
        while let Some(output) = self.cores[site.0].node.as_mut().and_then(|node| node.next_output()) {
            self.audit.event(self.now, 1 + site.0 as u64, &output);
            if let Some(trace) = &mut self.trace {
                let _ = writeln!(trace, "{:>12}   core {} {output:?}", self.now, site.0);
            }
            match output {
                Output::Reply { session, bytes, answered, wants_turn } => {
                    if wants_turn {
                        self.give_turn(site, session);
                    }
                    self.answer(site, session, bytes, answered);
                }
                Output::Push { session, bytes } => self.answer(site, session, bytes.to_vec(), 0),
                Output::Disconnect { session } => self.disconnect(site, session),
                Output::Send { datacenter, core, envelope } => {
                    let to = self.options.shape.site(datacenter, core);
                    self.transmit(site, to, envelope);
                }
                Output::Disk { partition, op } => self.disk_plan(site, partition, op),
                Output::Trace(trace) => self.trace(site, trace),
                Output::Stopped => self.stopped(site),
                Output::Errand { session, number, errand } => {
                    // Nobody in this world has a file of users, and all salts are alike.
                    if let Ok(done) = errand.run(|bytes| bytes.fill(7)) {
                        self.give(site, Input::ErrandDone { session, number, done });
                    }
                }
                // Nobody in this world watches a node but by `INFO`.
                Output::Observed { .. }
                | Output::Openness { .. }
                | Output::Audit(_)
                | Output::Configure(_)
                | Output::Confirm { .. } => {}
            }
        }
        self.schedule_timer(site);
    }

    pub(super) fn transmit(&mut self, from: Site, to: Site, envelope: Envelope) {
        match &mut self.traffic {
            Some(traffic) => traffic.on_send(self.now, &envelope),
            None => {
                self.staleness.on_send(self.now, &envelope);
                self.said.on_send(self.life_of(from, &envelope), &envelope);
            }
        }
        // Worlds with prices are large, and compare; others have looked at the same messages.
        if self.work.is_none() {
            self.check_admission(from, to, &envelope);
        }
        self.note_acknowledgement(&envelope);
        let lie = self.lie(from, to, &envelope);
        lie.into_iter().chain([envelope]).for_each(|envelope| self.dispatch(from, to, envelope));
    }

    /// The life of a partition that says something: of its process, or, if it is replicated, of its owner.
    fn life_of(&self, from: Site, envelope: &Envelope) -> u32 {
        let term = match envelope.from {
            Address::Partition { partition, .. } => self.terms.get(&(from, partition)),
            Address::Core { .. } => None,
        };
        term.map_or(self.boot_of(from), |term| *term as u32)
    }

    fn dispatch(&mut self, from: Site, to: Site, envelope: Envelope) {
        if let Some((at, epoch)) = self.network.send(self.said_at(from), from, to) {
            let boot = self.boot_of(to);
            self.queue.push(at, Event::Deliver { from, to, boot, epoch, envelope: Box::new(envelope) });
        }
    }

    /// What a core says that talks nonsense, before what it really says. Cores of one process share memory, and trust
    /// each other.
    fn lie(&mut self, from: Site, to: Site, envelope: &Envelope) -> Option<Envelope> {
        let shape = self.options.shape;
        let random = self.liars.get_mut(&from).filter(|_| shape.process(from) != shape.process(to))?;
        random.chance(LIES_PER_MILLE).then(|| nonsense::lie(random, shape, envelope))
    }

    /// The time is often no longer the one that the node waits for.
    fn timer(&mut self, site: Site) {
        let now = self.clock_of(site).monotonic_us;
        let due = self.cores[site.0].node.as_ref().and_then(|node| node.next_timer());
        if due.is_some_and(|due| due <= now) {
            self.give(site, Input::Timer);
        } else {
            self.schedule_timer(site);
        }
    }

    /// As in the server, a timer that comes due within a turn waits for the turn's end.
    fn schedule_timer(&mut self, site: Site) {
        if self.cores[site.0].turn_open {
            return;
        }
        let Some(node) = self.cores[site.0].node.as_ref() else { return };
        let Some(due) = node.next_timer() else { return };
        let monotonic = self.clock_of(site).monotonic_us;
        let at = self.now + due.saturating_sub(monotonic).max(1);
        let core = &mut self.cores[site.0];
        if core.timer.is_none_or(|set| set > at) {
            core.timer = Some(at);
            let boot = self.boot_of(site);
            self.queue.push(at, Event::Timer { site, boot, at });
        }
    }

    fn trace(&mut self, site: Site, trace: Trace) {
        // Asked now: the process may die before anybody looks at what happened.
        let is_excused = self.note_retired(site, &trace) || self.is_excused(site, &trace);
        if let Trace::PartitionReady { partition, .. } | Trace::TailLost { partition } = trace {
            let home = (self.options.shape.datacenter(site), partition);
            if self.disks.get(&home).is_some_and(Disk::is_harmed) {
                self.happenings.push_back(Happening::ServesTheRest { site, partition });
            }
        }
        if let Trace::PartitionReady { partition, .. } = trace {
            self.cores[site.0].ready.insert(partition);
            let heard = if self.options.shape.is_replicated() { HEARD_US } else { 0 };
            self.trouble(site, self.now + heard);
        }
        if let Trace::PartitionStopped { partition, .. } | Trace::LeadsNoMore { partition } = trace {
            self.cores[site.0].ready.remove(&partition);
        }
        if let Trace::Leads { partition, term } = trace {
            self.terms.insert((site, partition), term);
        }
        if let Trace::Leads { .. } | Trace::LeadsNoMore { .. } = trace {
            self.marks.add(Mark::LeaderChanged);
            self.trouble(site, self.now + HEARD_US);
        }
        if let Trace::ReplicaDismissed { .. } = trace {
            self.marks.add(Mark::ReplicaDismissed);
        }
        self.note_ailing(site, &trace);
        self.note_stuck(site, &trace);
        let aim = self.aim_at(site, &trace);
        self.happenings.push_back(Happening::Trace { site, trace, is_excused });
        if let Some(aim) = aim {
            let process = self.options.shape.process(site);
            if aim.power {
                self.lose_power(process);
            } else {
                self.kill(process);
            }
            if let Some(lasts_us) = aim.lasts_us {
                self.alarm(self.now + lasts_us, Alarm::Start(process));
            }
            self.happenings.push_back(Happening::Struck { aim });
        }
    }

    fn aim_at(&mut self, site: Site, trace: &Trace) -> Option<Aim> {
        let Trace::TransactionStep { transaction, step, .. } = trace else { return None };
        let remote = transaction.datacenter != self.options.shape.datacenter(site);
        let index = self.aims.iter().position(|aim| aim.step == *step && aim.remote == remote)?;
        if self.aims[index].skip > 0 {
            self.aims[index].skip -= 1;
            return None;
        }
        Some(self.aims.remove(index))
    }

    /// A session that has used up its turn has the next one a moment later.
    fn give_turn(&mut self, site: Site, session: SessionId) {
        let (boot, commands) = (self.boot_of(site), Vec::new());
        let input = Box::new(Input::ClientCommands { session, commands });
        self.queue.push(self.now + 1, Event::Client { site, boot, input });
    }

    fn answer(&mut self, site: Site, session: SessionId, bytes: Vec<u8>, answered: u32) {
        let Some((connection, at)) = self.reach_client(site, session) else { return };
        self.queue.push(at, Event::Answer { connection, bytes, answered });
    }

    fn disconnect(&mut self, site: Site, session: SessionId) {
        let Some((connection, at)) = self.reach_client(site, session) else { return };
        self.sessions.remove(&(site, session));
        if let Some(state) = self.connections.get_mut(&connection) {
            state.open = false;
        }
        self.queue.push(at, Event::Hangup { connection });
    }

    fn reach_client(&mut self, site: Site, session: SessionId) -> Option<(ConnectionId, u64)> {
        let said_at = self.said_at(site);
        let delay = self.cores[site.0].client_links.between(5, 60);
        let id = *self.sessions.get(&(site, session))?;
        let connection = self.connections.get_mut(&id)?;
        let at = connection.last_to_client.max(said_at + delay);
        connection.last_to_client = at;
        Some((id, at))
    }

    fn disk_plan(&mut self, site: Site, partition: PartitionId, op: DiskOp) {
        let key = self.options.shape.disk(site, partition);
        let boot = self.boot_of(site);
        let disk = self.disks.entry(key).or_default();
        if let DiskOp::Overwrite { .. } = op {
            disk.run(op);
            return;
        }
        let seed = self.options.seed;
        let chances = self.disk_chances.entry(key).or_insert_with(|| disk_chances(seed, key));
        let times = disk.plan(self.now, &op, &self.options.disk, chances);
        if let DiskOp::Sync { file } = op {
            self.queue.push(times.run_at, Event::DiskRun { site, boot, partition, op });
            self.queue.push(times.synced_at, Event::DiskSynced { site, boot, partition, file });
        } else {
            self.queue.push(times.run_at, Event::DiskRun { site, boot, partition, op });
        }
    }

    fn disk_run(&mut self, site: Site, partition: PartitionId, op: DiskOp) {
        if self.cores[site.0].node.is_none() {
            return;
        }
        let key = self.options.shape.disk(site, partition);
        let done: Option<DiskDone> = self.disks.get_mut(&key).and_then(|disk| disk.run(op));
        if let Some(done) = done {
            self.disk_answers(site, partition, done);
        }
    }

    fn disk_answers(&mut self, site: Site, partition: PartitionId, done: DiskDone) {
        let broken = matches!(done, DiskDone::Failed { full: false, .. });
        self.give(site, Input::Disk { partition, done });
        let home = (self.options.shape.datacenter(site), partition);
        // A partition that was told to stop, and gave up for a full disk, is over already and says nothing more.
        let is_stopping = self.is_stopping(self.options.shape.process(site));
        if broken && !is_stopping && self.cores[site.0].node.is_some() && !self.ailing.stopped.contains(&home)
        {
            self.happenings.push_back(Happening::WentOn { site, partition });
        }
    }

    fn try_connect(&mut self, a: Site, b: Site) {
        let shape = self.options.shape;
        let alive = |site| self.processes[shape.process(site).0].alive;
        if !alive(a) || !alive(b) || self.network.is_up(a, b) {
            return;
        }
        if negotiate(&self.hello(a), &self.hello(b)).is_err() || self.are_configured_differently(a, b) {
            self.marks.add(Mark::HandshakeRefused);
            return self.queue.push(self.now + 20_000, Event::Reconnect { a, b });
        }
        match self.network.connect(self.now, a, b) {
            Ok(news) => self.tell_ends(news),
            Err(Some(again)) => self.queue.push(again, Event::Reconnect { a, b }),
            Err(None) => {}
        }
    }

    fn are_configured_differently(&self, a: Site, b: Site) -> bool {
        let shape = self.options.shape;
        let settings = |site| &self.processes[shape.process(site).0].settings;
        let same_datacenter = shape.datacenter(a) == shape.datacenter(b);
        !settings(a).differences(settings(b), same_datacenter).is_empty() || !self.know_each_other(a, b)
    }

    /// What a core says first on a connection.
    fn hello(&self, site: Site) -> Hello {
        let shape = self.options.shape;
        let process = &self.processes[shape.process(site).0];
        Hello {
            wire_version_min: process.versions.min,
            wire_version_max: process.versions.max,
            cluster: "sim".into(),
            datacenter: shape.datacenter(site).to_string(),
            core: shape.core(site),
            boot: process.boot,
            nonce: [0; 32],
            flags: 0,
        }
    }

    /// A node says nothing over a link that a server would refuse there: the rule is wrong, or the node is.
    fn check_admission(&self, from: Site, to: Site, envelope: &Envelope) {
        let shape = self.options.shape;
        let peer = CoreName { datacenter: shape.datacenter(from), core: shape.core(from) };
        let topology = shape.topology(shape.datacenter(to));
        let admitted = admit(&topology, shape.core(to), peer, envelope);
        assert_eq!(admitted, Ok(()), "over the link of {peer}: {envelope:?}");
    }

    /// A node has stopped cleanly; its process exits when every disk operation before that is carried out.
    fn stopped(&mut self, site: Site) {
        let shape = self.options.shape;
        let idle = shape
            .partitions_of(site)
            .into_iter()
            .filter_map(|partition| self.disks.get(&shape.disk(site, partition)).map(Disk::idle_at));
        self.cores[site.0].stopped_at = Some(idle.max().unwrap_or(0).max(self.now) + 1);
        let process = shape.process(site);
        let ends = shape.sites_of(process).into_iter().map(|site| self.cores[site.0].stopped_at);
        if let Some(at) = ends.max().flatten().filter(|_| {
            shape.sites_of(process).into_iter().all(|site| self.cores[site.0].stopped_at.is_some())
        }) {
            let boot = self.processes[process.0].boot;
            self.queue.push(at, Event::Exit { process, boot });
        }
    }

    fn hold_of(&self, envelope: &Envelope) -> Option<Hold> {
        match envelope.from {
            Address::Partition { datacenter, partition } if datacenter != envelope.to.datacenter() => {
                Some(Hold { partition, from: datacenter, to: envelope.to.datacenter() })
            }
            _ => None,
        }
    }

    fn keep_back(&mut self, from: Site, to: Site, epoch: u32, envelope: Envelope) {
        if let Some(kept) = self.hold_of(&envelope).and_then(|hold| self.holds.get_mut(&hold)) {
            kept.push((from, to, epoch, envelope));
        }
    }
}

/// What decides how long the operations of a partition's disk take, and what a power failure leaves of them.
pub(super) fn disk_chances(seed: u64, (datacenter, partition): (DatacenterId, PartitionId)) -> Random {
    Random::stream(seed, &format!("disk {datacenter} {partition}"))
}

#[cfg(test)]
mod tests;
