//! Prophecy in the simulator: clients, one or more sketchers with their replica clients, regions that move between
//! them, and writers on an external channel.

use super::clients::Clients;
use super::message::{Caller, Command, FromReplica, ToReplica, value_of};
use super::queue::Queue;
use super::service::{Effect, Service};
use super::shape::Shape;
use super::spread::Spread;
use super::{Ran, Violation};
use crate::distributed::FastAnswer;
use crate::handler::redis::RedisHandler;
use crate::handler::{Handler, Inspected};
use crate::random::Random;
use crate::regions::{Ownership, Region};
use crate::replica_client::{CallOutput, Quorums, ReplicaClient};
use crate::rule::Broken;
use crate::scale::{Member, Notice, Partition};
use crate::sessions::Exchange;
use crate::sketch::Sketching;
use crate::sketcher::{Config, Output, Path, Refusal, Replica, RequestId, Sketcher};
use crate::table::Sequence;
use std::collections::{BTreeMap, BTreeSet};

/// No run takes longer, if every message that a caller repeats arrives in the end.
const UNTIL_US: u64 = 3_600_000_000;
/// The longest time between two changes of the partition.
const CHANGE_US_MAX: u64 = 60_000;
/// What all sketchers share.
const SECRET: [u8; 32] = [7; 32];

#[derive(Clone, Debug)]
enum Event {
    Begin {
        client: usize,
    },
    Request {
        sketcher: usize,
        client: usize,
        command: Command,
    },
    Answer {
        client: usize,
        response: Vec<u8>,
    },
    ToReplica {
        replica: Replica,
        message: ToReplica,
    },
    FromReplica(FromReplica),
    Execute {
        replica: Replica,
    },
    /// A sketcher joins or leaves.
    Change,
    Notice(Notice),
    Acknowledged {
        member: Member,
        region: Region,
    },
    Drained {
        member: Member,
        region: Region,
    },
}

struct World {
    queue: Queue<Event>,
    service: Service,
    sketchers: Vec<Sketcher<RedisHandler>>,
    partition: Partition,
    /// Regions that each sketcher is to drain.
    draining: BTreeSet<(usize, Region)>,
    changes_left: usize,
    /// When each sketcher's latest notice arrives: the link is in order, as a connection is.
    notices_us: Vec<u64>,
    /// Of the partition, and of writes over the sketchers.
    random: Random,
    sessions: usize,
    /// One a session of each sketcher, and then one a writer.
    callers: Vec<ReplicaClient>,
    /// What each session does.
    exchanges: Vec<Option<Exchange>>,
    clients: Clients,
    sketched_clients: usize,
    /// Whose request this is.
    requests: BTreeMap<RequestId, (usize, Command)>,
    next_request: u64,
    /// One a sketcher.
    spreads: Vec<Spread>,
    fast_reads: usize,
    /// Where the latest replicated answer stands.
    answered_at: Sequence,
}

/// Runs a world until every client has done all.
pub(super) fn run(shape: &Shape, broken: Broken) -> Ran {
    let mut world = World::new(shape, broken);
    for client in 0..world.clients.count() {
        let think_us = world.clients.think_us();
        world.queue.after(think_us, Event::Begin { client });
    }
    if world.changes_left > 0 {
        world.queue.after(1, Event::Change);
    }
    while world.clients.unanswered() > 0 && world.queue.now_us < UNTIL_US && world.step() {}
    world.finish(shape)
}

impl World {
    fn new(shape: &Shape, broken: Broken) -> World {
        let names: Vec<String> = (0..shape.replicas).map(|number| format!("replica-{number}")).collect();
        let names: Vec<&str> = names.iter().map(|name| &name[..]).collect();
        let mut config = Config::of(&names, SECRET, shape.seed);
        config.sessions = shape.sessions;
        config.table_entries = shape.table_entries;
        config.broken = broken;
        let quorum = Quorums::of_prophecy(shape.replicas).replicated;
        let sessions = shape.sketchers * shape.sessions;
        let callers = sessions + shape.external_writers;
        let sketcher = |number: usize| {
            config.seed = shape.seed ^ number as u64;
            Sketcher::new(&config, RedisHandler).expect("the shape is within bounds")
        };
        World {
            queue: Queue::new(shape.network, shape.seed),
            service: Service::new(shape),
            sketchers: (0..shape.sketchers).map(sketcher).collect(),
            partition: whole_partition(shape.sketchers),
            draining: BTreeSet::new(),
            changes_left: shape.changes,
            notices_us: vec![0; shape.sketchers],
            random: Random::stream(shape.seed, "partition"),
            sessions: shape.sessions,
            callers: vec![ReplicaClient::new(shape.replicas, quorum, broken); callers],
            exchanges: vec![None; sessions],
            clients: Clients::new(shape, shape.external_writers),
            sketched_clients: shape.clients,
            requests: BTreeMap::new(),
            next_request: 0,
            spreads: (0..shape.sketchers).map(|_| Spread::default()).collect(),
            fast_reads: 0,
            answered_at: Sequence::default(),
        }
        .with_first_regions()
    }

    /// In the beginning each region is owned by its sketcher.
    fn with_first_regions(mut self) -> World {
        for region in (0..=255).map(Region) {
            for number in 0..self.sketchers.len() {
                let is_owner = self.partition.route(region) == Some(Member(number as u32));
                let ownership = if is_owner { Ownership::Owned } else { Ownership::Foreign };
                self.sketchers[number].on_region(region, ownership);
            }
        }
        self
    }

    /// One event, or time; false if nothing will ever happen.
    fn step(&mut self) -> bool {
        let deadlines = self.callers.iter().map(ReplicaClient::next_deadline_us);
        let deadline_us =
            deadlines.chain(self.sketchers.iter().map(Sketcher::next_deadline_us)).flatten().min();
        match (self.queue.next_until(deadline_us.unwrap_or(u64::MAX)), deadline_us) {
            (Some(event), _) => self.on_event(event),
            (None, Some(deadline_us)) => self.on_deadline(deadline_us),
            (None, None) => return false,
        }
        true
    }

    fn on_deadline(&mut self, deadline_us: u64) {
        self.queue.pass_until(deadline_us);
        for sketcher in 0..self.sketchers.len() {
            self.sketchers[sketcher].on_tick(deadline_us);
            self.drain_sketcher(sketcher);
        }
        for caller in 0..self.callers.len() {
            self.callers[caller].on_tick(deadline_us);
            self.drain_caller(Caller(caller));
        }
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::Begin { client } => self.begin(client),
            Event::Request { sketcher, client, command } => self.on_request(sketcher, client, command),
            Event::Answer { client, response } => self.on_answer(client, &response),
            Event::ToReplica { replica, message } => {
                let effects = self.service.on_message(replica, message);
                self.take_effects(effects);
            }
            Event::FromReplica(message) => self.on_replica(message),
            Event::Execute { replica } => {
                let effects = self.service.execute(self.queue.now_us, replica);
                self.take_effects(effects);
            }
            Event::Change => self.change(),
            Event::Notice(notice) => self.on_notice(notice),
            Event::Acknowledged { member, region } => {
                self.partition.on_acknowledged(member, region);
                self.send_notices();
            }
            Event::Drained { member, region } => {
                self.partition.on_drained(member, region);
                self.send_notices();
            }
        }
    }

    fn begin(&mut self, client: usize) {
        let now_us = self.queue.now_us;
        let Some(command) = self.clients.begin(now_us, client) else { return };
        if client < self.sketched_clients {
            self.forward(client, command);
        } else {
            let caller = Caller(self.exchanges.len() + client - self.sketched_clients);
            self.callers[caller.0].on_call(now_us, command.encode());
            self.drain_caller(caller);
        }
    }

    /// What a request sketcher does: a read goes to the owner of its region, a write to any sketcher.
    fn forward(&mut self, client: usize, command: Command) {
        let sketcher = match RedisHandler.inspect(&command.encode()) {
            Ok(Inspected::Read { canonical }) => {
                let region = Region::of(&Sketching::keyed(&SECRET).request(&canonical));
                self.partition.route(region).expect("every region is served").0 as usize
            }
            _ => self.random.index(self.sketchers.len()),
        };
        self.queue.deliver(Event::Request { sketcher, client, command });
    }

    fn on_request(&mut self, sketcher: usize, client: usize, command: Command) {
        self.next_request += 1;
        let id = RequestId(self.next_request);
        self.requests.insert(id, (client, command));
        self.sketchers[sketcher].on_request(self.queue.now_us, id, command.encode());
        self.drain_sketcher(sketcher);
    }

    /// A sketcher joins, if one is left out by chance, or one leaves.
    fn change(&mut self) {
        let member = Member(self.random.index(self.sketchers.len()) as u32);
        if self.partition.members().contains(&member) {
            self.partition.on_leave(member);
        } else {
            self.partition.on_join(member);
        }
        self.send_notices();
        self.changes_left -= 1;
        if self.changes_left > 0 {
            let delay_us = self.random.between(100, CHANGE_US_MAX);
            self.queue.after(delay_us, Event::Change);
        }
    }

    fn send_notices(&mut self) {
        while let Some(notice) = self.partition.take_notice() {
            let (Notice::Set { member, .. } | Notice::Drain { member, .. }) = notice;
            let last_us = &mut self.notices_us[member.0 as usize];
            self.queue.deliver_in_order(last_us, Event::Notice(notice));
        }
    }

    fn on_notice(&mut self, notice: Notice) {
        match notice {
            Notice::Set { member, region, ownership } => {
                self.sketchers[member.0 as usize].on_region(region, ownership);
                if ownership == Ownership::Moving {
                    self.queue.deliver(Event::Acknowledged { member, region });
                }
            }
            Notice::Drain { member, region } => {
                self.draining.insert((member.0 as usize, region));
                self.look_drained(member.0 as usize);
            }
        }
    }

    fn look_drained(&mut self, sketcher: usize) {
        let machine = &mut self.sketchers[sketcher];
        let queue = &mut self.queue;
        self.draining.retain(|&(of, region)| {
            let is_over = of == sketcher && machine.requests_of_region(region) == 0;
            if is_over {
                machine.on_region(region, Ownership::Foreign);
                queue.deliver(Event::Drained { member: Member(of as u32), region });
            }
            !is_over
        });
    }

    fn on_answer(&mut self, client: usize, response: &[u8]) {
        let (now_us, value) = (self.queue.now_us, value_of(response));
        self.queue.note(value.0);
        self.clients.end(now_us, client, value);
        let think_us = self.clients.think_us();
        self.queue.after(think_us, Event::Begin { client });
    }

    fn on_replica(&mut self, message: FromReplica) {
        match message {
            FromReplica::Fast { caller, attempt, replica, answer } => {
                let (sketcher, session) = (caller.0 / self.sessions, caller.0 % self.sessions);
                let exchange = Exchange { session: session as u32, attempt };
                if let FastAnswer::Response(response, _) = answer {
                    self.sketchers[sketcher].on_fast_answer(self.queue.now_us, exchange, replica, response);
                    self.drain_sketcher(sketcher);
                }
            }
            FromReplica::Call { caller, number, replica, answer } => {
                self.callers[caller.0].on_answer(replica, number, answer);
                self.drain_caller(caller);
            }
        }
    }

    fn take_effects(&mut self, effects: Vec<Effect>) {
        Effect::enqueue(effects, &mut self.queue, Event::FromReplica, |replica| Event::Execute { replica });
    }

    fn drain_caller(&mut self, caller: Caller) {
        // Writers on the external channel tell the first sketcher who lied.
        let sketcher = if caller.0 < self.exchanges.len() { caller.0 / self.sessions } else { 0 };
        while let Some(output) = self.callers[caller.0].take_output() {
            let now_us = self.queue.now_us;
            match output {
                CallOutput::Send { replica, number, request } => {
                    let message = ToReplica::Call { caller, number, request };
                    self.queue.send(Event::ToReplica { replica, message });
                }
                CallOutput::Lied(replica) => self.sketchers[sketcher].on_lie(replica),
                // With more liars than tolerated only. Who waits for it is stuck, which is a violation.
                CallOutput::Failed(failure) => {
                    if let Some(exchange) = self.exchanges.get_mut(caller.0).and_then(Option::take) {
                        self.sketchers[sketcher].on_replicated_failure(now_us, exchange, failure);
                        self.drain_sketcher(sketcher);
                    }
                }
                CallOutput::Accepted(answer) => match self.exchanges.get_mut(caller.0) {
                    Some(exchange) => {
                        let exchange = exchange.take().expect("the session issued it");
                        self.answered_at = answer.sequence;
                        let machine = &mut self.sketchers[sketcher];
                        machine.on_replicated_answer(now_us, exchange, answer.response, answer.sequence);
                        self.drain_sketcher(sketcher);
                    }
                    None => {
                        let client = caller.0 - self.exchanges.len() + self.sketched_clients;
                        self.queue.after(0, Event::Answer { client, response: answer.response });
                    }
                },
            }
        }
    }

    fn drain_sketcher(&mut self, sketcher: usize) {
        while let Some(output) = self.sketchers[sketcher].take_output() {
            let caller = |exchange: Exchange| Caller(sketcher * self.sessions + exchange.session as usize);
            match output {
                Output::Fast { exchange, replica, request } => {
                    self.spreads[sketcher].on_fast_read(replica);
                    let (caller, attempt) = (caller(exchange), exchange.attempt);
                    let message = ToReplica::Fast { caller, attempt, request, executes: true };
                    self.queue.send(Event::ToReplica { replica, message });
                }
                Output::Replicated { exchange, request } => {
                    let caller = caller(exchange);
                    self.exchanges[caller.0] = Some(exchange);
                    self.callers[caller.0].on_call(self.queue.now_us, request);
                    self.drain_caller(caller);
                }
                Output::Answer { id, response, path } => self.answer(sketcher, id, response, path),
                Output::Refuse { id, reason: Refusal::ForeignRegion } => {
                    let (client, command) = self.requests.remove(&id).expect("it is answered once");
                    self.forward(client, command);
                }
                Output::Refuse { id, reason: Refusal::Unanswered(_) } => {
                    self.requests.remove(&id);
                }
                Output::Refuse { reason, .. } => {
                    unreachable!("clients are few and send good requests: {reason}")
                }
            }
        }
        self.look_drained(sketcher);
    }

    fn answer(&mut self, sketcher: usize, id: RequestId, response: Vec<u8>, path: Path) {
        let (client, command) = self.requests.remove(&id).expect("it is answered once");
        self.fast_reads += usize::from(path == Path::Fast);
        if let Command::Get(object) = command {
            self.spreads[sketcher].on_answer(object, value_of(&response), path, self.answered_at);
        }
        self.queue.deliver(Event::Answer { client, response });
    }

    fn finish(self, shape: &Shape) -> Ran {
        let violations = self.spreads.iter().flat_map(|spread| spread.violations(shape.sessions));
        let mut violations: Vec<Violation> = violations.collect();
        let unanswered = self.clients.unanswered();
        if unanswered > 0 {
            violations.push(Violation::Stuck { unanswered });
        }
        let statistics: Vec<_> =
            self.sketchers.iter().map(|sketcher| sketcher.statistics().clone()).collect();
        let honest = statistics.iter().flat_map(|statistics| statistics.replicas.iter().skip(shape.liars));
        for replica in honest.filter(|replica| replica.lied > 0) {
            violations.push(Violation::WronglyNamed { replica: replica.name.clone() });
        }
        Ran {
            history: self.clients.into_history(),
            fast_reads: self.fast_reads,
            statistics,
            violations,
            event_hash: self.queue.hash(),
        }
    }
}

/// Every sketcher has joined, and no region moves.
fn whole_partition(sketchers: usize) -> Partition {
    let mut partition = Partition::new();
    (0..sketchers as u32).for_each(|number| partition.on_join(Member(number)));
    while let Some(notice) = partition.take_notice() {
        match notice {
            Notice::Set { member, region, ownership: Ownership::Moving } => {
                partition.on_acknowledged(member, region);
            }
            Notice::Set { .. } => {}
            Notice::Drain { member, region } => partition.on_drained(member, region),
        }
    }
    partition
}
