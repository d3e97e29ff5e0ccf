//! The world: nodes that crash, lose power and lose directories, links that are cut, and the judgement at the end.

use crate::config::{Config, Tuning};
use crate::moving::{Move, Refusal, Report as Group};
use crate::replica::{Absent, Output, Replica, on_message_to_nobody};
use crate::sim::disk::Disk;
use crate::sim::partition::{Acknowledged, Partition};
use crate::sim::random::Random;
use bytes::Bytes;
use ensue_store::disk::{DiskDone, DiskOp, FileName};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

#[cfg(test)]
mod scripted;

/// Which faults a seed draws.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub seed: u64,
    pub replicas: u16,
    /// Nodes that begin without a replica; while there are some, replicas move.
    pub spares: u16,
    /// Nothing is acknowledged before it is durable.
    pub always: bool,
    /// Leaders answer reads by their leases.
    pub lease: bool,
    pub crashes: bool,
    pub power: bool,
    pub directories: bool,
    pub cuts: bool,
    /// How long faults strike.
    pub lasts_us: u64,
}

/// What happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub acknowledged: usize,
    pub leaders: u64,
    pub epochs: u64,
    pub transfers: u64,
    pub confirmed: u64,
    pub power_failures: u64,
    pub directories_lost: u64,
    pub moves: u64,
    /// Replicas that began anew with empty directories.
    pub given_up: u64,
}

/// How long the replicas have for a leader, and for equal directories, when everything is healed.
const HEALED_US: u64 = 30_000_000;
const QUIET_US: u64 = 5_000_000;

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Tick {
        node: u16,
        life: u64,
    },
    Deliver {
        from: u16,
        to: u16,
        life: u64,
        link: u64,
        message: Bytes,
    },
    Run {
        node: u16,
        life: u64,
        op: OrdOp,
    },
    Synced {
        node: u16,
        life: u64,
        file: FileName,
    },
    Work {
        node: u16,
        life: u64,
    },
    Fault,
    Start {
        node: u16,
    },
    Heal {
        a: u16,
        b: u16,
    },
    /// The operator asks for a move.
    Wish,
}

/// The queue compares events of one time by their order of scheduling, never by what they are.
#[derive(Debug)]
struct OrdOp(DiskOp);

impl PartialEq for OrdOp {
    fn eq(&self, _: &OrdOp) -> bool {
        true
    }
}

impl Eq for OrdOp {}

impl PartialOrd for OrdOp {
    fn partial_cmp(&self, other: &OrdOp) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for OrdOp {
    fn cmp(&self, _: &OrdOp) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}

#[derive(Debug)]
struct Node {
    replica: Option<Replica>,
    partition: Option<Partition>,
    disk: Disk,
    life: u64,
    boot: u64,
    is_up: bool,
}

struct World {
    plan: Plan,
    now: u64,
    ordinal: u64,
    queue: BinaryHeap<Reverse<(u64, u64, Event)>>,
    nodes: Vec<Node>,
    /// The life of each link, lower node first; a cut one has an odd number.
    links: BTreeMap<(u16, u16), u64>,
    last_arrival: BTreeMap<(u16, u16), u64>,
    random: Random,
    acknowledged: Acknowledged,
    report: Report,
    healed: bool,
    resting: bool,
    /// What the replicas say to operators.
    troubles: Vec<(u16, String)>,
    /// There is an operator who heals what stopped.
    attended: bool,
    wish: Option<Move>,
}

/// Runs the world of a plan; the error says what went wrong.
pub fn run(plan: Plan) -> Result<Report, String> {
    let mut world = World::new(plan);
    world.run().map_err(|words| format!("seed {}, at {} us: {words}", plan.seed, world.now))
}

impl World {
    fn new(plan: Plan) -> World {
        let node =
            || Node { replica: None, partition: None, disk: Disk::default(), life: 0, boot: 1, is_up: false };
        World {
            plan,
            now: 0,
            ordinal: 0,
            queue: BinaryHeap::new(),
            nodes: (0..plan.replicas + plan.spares).map(|_| node()).collect(),
            links: BTreeMap::new(),
            last_arrival: BTreeMap::new(),
            random: Random::new(plan.seed, 1),
            acknowledged: Acknowledged::default(),
            report: Report::default(),
            healed: false,
            resting: false,
            troubles: Vec::new(),
            attended: false,
            wish: None,
        }
    }

    fn run(&mut self) -> Result<Report, String> {
        self.begin();
        self.push(1_000_000, Event::Fault);
        if self.plan.spares > 0 {
            self.push(1_500_000, Event::Wish);
        }
        self.run_until(self.plan.lasts_us)?;
        self.finish()
    }

    fn begin(&mut self) {
        (0..self.count()).for_each(|node| self.push(1 + u64::from(node) * 300, Event::Start { node }));
    }

    /// Nothing goes wrong any more, and everything must come to rest.
    fn finish(&mut self) -> Result<Report, String> {
        self.heal();
        let before = self.acknowledged.records.len();
        self.run_until(self.now + HEALED_US)?;
        if self.acknowledged.records.len() <= before {
            let words: Vec<&str> = self.replicas().map(Replica::describe).collect();
            return Err(format!("nothing is acknowledged when everything is healed: {words:?}"));
        }
        self.resting = true;
        self.run_until(self.now + QUIET_US)?;
        self.judge_rest()?;
        self.report.acknowledged = self.acknowledged.records.len();
        self.report.epochs = self.acknowledged.epoch;
        Ok(self.report)
    }

    fn count(&self) -> u16 {
        self.nodes.len() as u16
    }

    fn replicas(&self) -> impl Iterator<Item = &Replica> {
        self.nodes.iter().filter_map(|node| node.replica.as_ref())
    }

    /// The group, as the latest leader knows it.
    fn group(&self) -> Option<Group> {
        self.replicas().filter_map(Replica::report).max_by_key(|group| group.term)
    }

    /// When nothing happens any more, all directories of members are equal, and all others are empty.
    fn judge_rest(&self) -> Result<(), String> {
        if let Some(wish) = self.wish {
            let words: Vec<&str> = self.replicas().map(Replica::describe).collect();
            return Err(format!("{wish:?} is not over: {words:?}, {:?}", self.group()));
        }
        let group = self.group().ok_or("nobody leads at the end")?;
        let voters = group.members.iter().filter(|member| member.votes).count();
        if voters != usize::from(self.plan.replicas) || group.members.len() != voters {
            return Err(format!("the group is not what it was: {group:?}"));
        }
        let first = self.nodes[usize::from(group.leader)].disk.contents();
        for (number, node) in self.nodes.iter().enumerate() {
            let contents = node.disk.contents();
            if group.members.iter().all(|member| usize::from(member.node) != number) {
                if node.replica.is_some() || !contents.is_empty() {
                    let words = node.replica.as_ref().map(Replica::describe);
                    return Err(format!(
                        "node {number} is no member, and has {words:?}, {:?}",
                        contents.keys()
                    ));
                }
                continue;
            }
            if contents != first {
                let lengths = |contents: &BTreeMap<FileName, Vec<u8>>| {
                    contents.iter().map(|(name, bytes)| (*name, bytes.len())).collect::<Vec<_>>()
                };
                let (here, there) = (lengths(&contents), lengths(&first));
                let words: Vec<&str> = self.replicas().map(Replica::describe).collect();
                return Err(format!("node {number} has {here:?}, the leader has {there:?}: {words:?}"));
            }
        }
        Ok(())
    }

    fn push(&mut self, at: u64, event: Event) {
        self.ordinal += 1;
        self.queue.push(Reverse((at.max(self.now), self.ordinal, event)));
    }

    fn run_until(&mut self, end: u64) -> Result<(), String> {
        while let Some(Reverse((at, ..))) = self.queue.peek() {
            if *at > end {
                break;
            }
            let Some(Reverse((at, _, event))) = self.queue.pop() else { break };
            self.now = at;
            self.carry_out(event)?;
        }
        self.now = end;
        Ok(())
    }

    fn node(&mut self, node: u16) -> &mut Node {
        &mut self.nodes[usize::from(node)]
    }

    fn carry_out(&mut self, event: Event) -> Result<(), String> {
        match event {
            Event::Start { node } => self.start(node),
            Event::Fault => {
                self.strike();
                Ok(())
            }
            Event::Heal { a, b } => {
                let link = self.links.entry((a, b)).or_default();
                *link += *link % 2;
                Ok(())
            }
            Event::Tick { node, life } if self.node(node).life == life => {
                // A clock that goes a little slower or faster than the others.
                let tick = 20_000 + self.random.between(0, 2_000);
                self.push(self.now + tick, Event::Tick { node, life });
                let now = self.now;
                self.give(node, |replica| replica.on_tick(now))
            }
            Event::Deliver { from, to, life, link, message } if self.node(to).life == life => {
                match self.links.get(&(from.min(to), from.max(to))) {
                    Some(now) if *now != link => Ok(()),
                    _ => self.deliver(from, to, message),
                }
            }
            Event::Run { node, life, op } if self.node(node).life == life => {
                match self.node(node).disk.run(op.0) {
                    Some(done) => self.give(node, |replica| replica.on_disk(done)),
                    None => Ok(()),
                }
            }
            Event::Synced { node, life, file } if self.node(node).life == life => {
                let done = self.node(node).disk.synced(file);
                self.give(node, |replica| replica.on_disk(done))
            }
            Event::Wish => self.ask(),
            Event::Work { node, life } if self.node(node).life == life => self.work(node),
            _ => Ok(()),
        }
    }

    fn config(&mut self, node: u16) -> Config {
        let (boot, life) = (self.node(node).boot, self.node(node).life);
        let mut boot_id = [0; 16];
        boot_id[..8].copy_from_slice(&boot.to_le_bytes());
        let seed = Random::new(self.plan.seed, 1_000 + u64::from(node) * 1_000 + life).next();
        let tuning = Tuning {
            journal_bytes: 3_000,
            appended_bytes: 8_000,
            held_bytes: 2_600,
            chunk_bytes: 200,
            message_bytes: 500,
            ..Tuning::default()
        };
        let (nodes, founders) = ((0..self.count()).collect(), (0..self.plan.replicas).collect());
        let (always, lease) = (self.plan.always, self.plan.lease);
        Config { node, nodes, founders, always, lease, boot_id, seed, tuning }
    }

    fn start(&mut self, node: u16) -> Result<(), String> {
        if self.node(node).is_up {
            return Ok(());
        }
        self.node(node).life += 1;
        self.node(node).is_up = true;
        let life = self.node(node).life;
        let first = self.random.between(1, 20_000);
        self.push(self.now + first, Event::Tick { node, life });
        if node < self.plan.replicas || self.node(node).disk.has_journal() { self.host(node) } else { Ok(()) }
    }

    fn host(&mut self, node: u16) -> Result<(), String> {
        let config = self.config(node);
        self.node(node).replica = Some(Replica::new(config));
        self.drain(node)
    }

    fn deliver(&mut self, from: u16, to: u16, message: Bytes) -> Result<(), String> {
        if self.node(to).replica.is_none() {
            let plan = self.config(to).plan();
            match on_message_to_nobody(message.clone(), plan) {
                Absent::Invited => self.host(to)?,
                Absent::Answers(answer) => self.send(to, from, answer),
                Absent::Nothing => {}
            }
        }
        self.give(to, |replica| replica.on_message(from, message))
    }

    /// The operator repeats a wish until it is over, or has another one.
    fn ask(&mut self) -> Result<(), String> {
        let slowest = if self.plan.crashes { 600_000 } else { 20_000 };
        let next = self.random.between(1_000, slowest);
        self.push(self.now + next, Event::Wish);
        let group = self.group();
        let is_over = |wish: &Move| {
            let votes = |node| {
                let mut members = group.iter().flat_map(|group| &group.members);
                members.any(|member| member.node == node && member.votes)
            };
            group.as_ref().is_some_and(|group| !group.changes) && votes(wish.to) && !votes(wish.from)
        };
        if self.wish.take_if(|wish| is_over(wish)).is_some() {
            self.report.moves += 1;
        }
        // Where nothing else goes wrong, no wish is given up.
        if !self.healed && self.plan.crashes && self.random.permille(30) {
            self.wish = None;
        }
        if self.wish.is_none() && !self.healed && self.random.permille(400) {
            let count = u64::from(self.count());
            let (from, to) = (self.random.between(0, count - 1), self.random.between(0, count - 1));
            let wish = Move { from: from as u16, to: to as u16 };
            let members = group.iter().flat_map(|group| &group.members);
            let has = |node| members.clone().any(|member| member.node == node);
            self.wish = Some(wish).filter(|wish| has(wish.from) && !has(wish.to));
        }
        if let Some(wish) = self.wish {
            for node in 0..self.count() {
                let replica = self.node(node).replica.as_mut();
                let refused = replica.and_then(|replica| replica.on_wish(wish).err());
                if refused == Some(Refusal::Taken) && !self.plan.crashes {
                    return Err(format!("{wish:?} is refused while it comes true"));
                }
                // An earlier wish may have come true after all.
                if refused.is_some_and(|refusal| !matches!(refusal, Refusal::LeadsNot | Refusal::Busy)) {
                    self.wish = None;
                }
            }
        }
        Ok(())
    }

    fn give(&mut self, node: u16, input: impl FnOnce(&mut Replica)) -> Result<(), String> {
        let Some(replica) = &mut self.node(node).replica else { return Ok(()) };
        input(replica);
        self.drain(node)
    }

    fn drain(&mut self, node: u16) -> Result<(), String> {
        while let Some(output) = self.node(node).replica.as_mut().and_then(Replica::next_output) {
            let life = self.node(node).life;
            match output {
                Output::Send { node: to, message } => self.send(node, to, message),
                Output::Disk(op) => {
                    let mut random = self.random.clone();
                    let (run_at, synced_at) = {
                        let now = self.now;
                        self.node(node).disk.plan(now, &op, &mut random)
                    };
                    self.random = random;
                    let file = match op {
                        DiskOp::Sync { file } => Some(file),
                        _ => None,
                    };
                    self.push(run_at, Event::Run { node, life, op: OrdOp(op) });
                    if let Some(file) = file {
                        self.push(synced_at.max(run_at), Event::Synced { node, life, file });
                    }
                }
                Output::Lead { term, epoch } => {
                    self.report.leaders += 1;
                    let (partition, ops) = Partition::start(term, epoch, self.plan.always);
                    self.node(node).partition = Some(partition);
                    self.request(node, ops);
                    self.push(self.now + 1_000, Event::Work { node, life });
                }
                Output::Follow => self.node(node).partition = None,
                Output::Dismissed => self.node(node).replica = None,
                Output::Done(done) => self.on_done(node, done)?,
                Output::Confirmed(number) => {
                    self.report.confirmed += 1;
                    let acknowledged = &self.acknowledged;
                    let place = &mut self.nodes[usize::from(node)];
                    if let Some(partition) = &mut place.partition {
                        partition.on_confirmed(number, acknowledged).map_err(|words| on(node, &words))?;
                    }
                }
                Output::Troubled(words) => {
                    self.report.given_up += u64::from(words.contains("is given up"));
                    self.troubles.push((node, words));
                }
                Output::Stopped(words) => self.on_stopped(node, words)?,
            }
        }
        Ok(())
    }

    fn on_stopped(&mut self, node: u16, words: String) -> Result<(), String> {
        self.node(node).partition = None;
        if self.attended {
            // The operator makes room, or empties the directory, and starts the node again.
            self.troubles.push((node, words));
            self.crash(node, 3_000_000);
            let disk = &mut self.node(node).disk;
            if disk.is_full() {
                disk.make_room(None)
            } else {
                disk.empty()
            }
            return Ok(());
        }
        if words != "this node is shutting down" {
            return Err(on(node, &words));
        }
        let now = self.now;
        let place = self.node(node);
        (place.replica, place.is_up) = (None, false);
        place.disk.kill(now);
        let again = self.random.between(10_000, 400_000);
        self.push(now + again, Event::Start { node });
        Ok(())
    }

    fn on_done(&mut self, node: u16, done: DiskDone) -> Result<(), String> {
        let acknowledged = &mut self.acknowledged;
        let Some(partition) = &mut self.nodes[usize::from(node)].partition else { return Ok(()) };
        if self.attended && matches!(done, DiskDone::Failed { .. }) {
            // It stops.
            self.node(node).partition = None;
            return Ok(());
        }
        let ops = partition.on_done(done, acknowledged).map_err(|words| on(node, &words))?;
        self.request(node, ops);
        Ok(())
    }

    fn request(&mut self, node: u16, ops: Vec<DiskOp>) {
        if let Some(replica) = &mut self.node(node).replica {
            ops.into_iter().for_each(|op| replica.on_request(op));
        }
    }

    fn work(&mut self, node: u16) -> Result<(), String> {
        let life = self.node(node).life;
        if self.node(node).partition.is_none() {
            return Ok(());
        }
        let mut random = self.random.clone();
        let resting = self.resting;
        let ops = match &mut self.node(node).partition {
            Some(partition) if !resting => partition.work(&mut random),
            _ => Vec::new(),
        };
        self.random = random;
        self.request(node, ops);
        let asks = self.random.permille(300);
        let place = &mut self.nodes[usize::from(node)];
        if let (Some(partition), Some(replica), true) = (&mut place.partition, &mut place.replica, asks) {
            if partition.is_serving() {
                replica.confirm(self.now, partition.ask(&self.acknowledged));
            }
        }
        let next = self.random.between(2_000, 60_000);
        self.push(self.now + next, Event::Work { node, life });
        self.drain(node)
    }

    fn send(&mut self, from: u16, to: u16, message: Bytes) {
        if message.first() == Some(&4) {
            self.report.transfers += 1;
        }
        let link = *self.links.entry((from.min(to), from.max(to))).or_default();
        if link % 2 == 1 || !self.node(to).is_up {
            return;
        }
        let slow = if self.random.permille(20) { 40 } else { 1 };
        let delay = self.random.between(50, 800) * slow;
        let arrival = self.last_arrival.entry((from, to)).or_default();
        *arrival = (*arrival + 1).max(self.now + delay);
        let (at, life) = (*arrival, self.nodes[usize::from(to)].life);
        self.push(at, Event::Deliver { from, to, life, link, message });
    }

    // Faults.

    fn strike(&mut self) {
        let next = self.random.between(50_000, 1_500_000);
        self.push(self.now + next, Event::Fault);
        if self.healed {
            return;
        }
        let node = self.random.between(0, u64::from(self.count()) - 1) as u16;
        let down = self.random.between(5_000, 1_500_000);
        match self.random.between(0, 6) {
            0 if self.plan.crashes => self.crash(node, down),
            1 if self.plan.power => {
                self.crash(node, down);
                self.lose_power(node);
            }
            2 if self.plan.power && self.random.permille(250) => {
                for node in 0..self.count() {
                    self.crash(node, down);
                    self.lose_power(node);
                }
            }
            3 if self.plan.directories && self.others_follow(node) => {
                self.crash(node, down);
                self.report.directories_lost += 1;
                self.node(node).disk.empty();
            }
            4 if self.plan.cuts => {
                let other = (node + 1) % self.count();
                self.cut(node, other, down);
            }
            5 if self.plan.cuts => {
                for other in (0..self.count()).filter(|other| *other != node).collect::<Vec<_>>() {
                    self.cut(node, other, down);
                }
            }
            6 if self.plan.crashes => {
                self.node(node).partition = None;
                let stops = self.random.permille(500);
                if let Some(replica) = &mut self.node(node).replica {
                    if stops { replica.shut_down() } else { replica.hand_over() }
                }
                let _ = self.drain(node);
            }
            _ => {}
        }
    }

    /// Whether all members but this one are members that count.
    fn others_follow(&self, node: u16) -> bool {
        let Some(group) = self.group().filter(|group| !group.changes) else { return false };
        let others = group.members.iter().filter(|member| member.votes && member.node != node);
        let counts = |replica: &Replica| matches!(replica.describe(), "leads" | "follows");
        others
            .map(|member| &self.nodes[usize::from(member.node)])
            .all(|other| other.replica.as_ref().is_some_and(counts))
    }

    fn crash(&mut self, node: u16, down: u64) {
        let now = self.now;
        let place = self.node(node);
        place.replica = None;
        place.partition = None;
        place.is_up = false;
        place.life += 1;
        place.disk.kill(now);
        self.push(now + down, Event::Start { node });
    }

    fn lose_power(&mut self, node: u16) {
        self.report.power_failures += 1;
        let (now, mut random) = (self.now, self.random.clone());
        let place = self.node(node);
        place.boot += 1;
        place.disk.lose_power(now, &mut random);
        self.random = random;
    }

    fn cut(&mut self, a: u16, b: u16, lasts: u64) {
        let (a, b) = (a.min(b), a.max(b));
        let link = self.links.entry((a, b)).or_default();
        if *link % 2 == 0 {
            *link += 1;
            self.push(self.now + lasts, Event::Heal { a, b });
        }
    }

    fn heal(&mut self) {
        self.healed = true;
        for link in self.links.values_mut() {
            *link += *link % 2;
        }
        for node in 0..self.count() {
            self.push(self.now + 1, Event::Start { node });
        }
    }
}

fn on(node: u16, words: &str) -> String {
    format!("node {node}: {words}")
}
