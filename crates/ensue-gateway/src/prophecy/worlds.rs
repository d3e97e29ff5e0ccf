//! Worlds with both machines: clients, a sketcher, replicas that agree, and a network that loses and delays. A replica
//! lies about what its application says, correct ones end and begin again, and what clients saw is judged.

use super::members::Protocol;
use super::{Handling, Service};
use ensue_byzantine::block::{Request, RequestNumber, Session};
use ensue_byzantine::keys::{Group, Member, Signer};
use ensue_byzantine::limits::CATCH_UP_BLOCKS;
use ensue_byzantine::message::Message;
use ensue_byzantine::replica::{Answer, Output, Replica as Machine};
use ensue_prophecy::history::judge::{Verdict, judge};
use ensue_prophecy::history::{History, Kind, ObjectId, Operation, Value};
use ensue_prophecy::random::Random;
use ensue_prophecy::replica_client::{CallNumber, CallOutput, Quorums, ReplicaClient, ReplicatedAnswer};
use ensue_prophecy::rule::Broken;
use ensue_prophecy::sessions::Exchange;
use ensue_prophecy::sketcher::{self, Config, Replica, RequestId, Sketcher};
use ensue_prophecy::table::Sequence;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

const REPLICAS: u32 = 4;
const CLIENTS: u64 = 4;
const SESSIONS: usize = 3;
const OPERATIONS: usize = 200;
const OBJECTS: u64 = 2;
const END_US: u64 = 120_000_000;

enum Event {
    Message { from: Member, to: Member, bytes: Arc<[u8]> },
    Asked { to: Member, request: Request },
    Fast { to: Replica, exchange: Exchange, request: Vec<u8> },
    FastAnswered { from: Replica, exchange: Exchange, response: Vec<u8> },
    Answered { from: Member, answer: Answer },
    Executed { at: Member, incarnation: u32 },
    Begin(u64),
    Restart(Member),
    Tick,
}

#[derive(Clone, Default)]
struct Application(BTreeMap<u64, u64>);

impl Application {
    fn execute(&mut self, body: &[u8]) -> Vec<u8> {
        let text = String::from_utf8(body.to_vec()).unwrap();
        let words: Vec<&str> = text.split("\r\n").skip(2).step_by(2).collect();
        let number = |place: usize| words[place].parse::<u64>().unwrap();
        if words[0] == "GET" {
            return number_reply(self.0.get(&number(1)).copied().unwrap_or_default());
        }
        self.0.insert(number(1), number(2));
        b"+OK\r\n".to_vec()
    }
}

fn number_reply(number: u64) -> Vec<u8> {
    format!("${}\r\n{number}\r\n", number.to_string().len()).into_bytes()
}

struct Place {
    machine: Machine,
    application: Application,
    queue: VecDeque<Vec<u8>>,
    blocks: Vec<Vec<u8>>,
    records: Vec<Vec<u8>>,
    incarnation: u32,
}

struct World {
    group: Arc<Group>,
    liars: u32,
    /// Whether liars answer what was long ago, or what never was.
    lies_are_old: bool,
    random: Random,
    network: (u64, u64),
    now_us: u64,
    events: BTreeMap<(u64, u64), Event>,
    scheduled: u64,
    places: Vec<Place>,
    sketcher: Sketcher<Service>,
    calls: Vec<(ReplicaClient, Option<Exchange>)>,
    open: BTreeMap<u64, Operation>,
    history: History,
    writes: u64,
}

fn signer(member: u32) -> Signer {
    Signer::new(&[member as u8 + 1; 32])
}

fn place(group: &Arc<Group>, member: u32) -> Place {
    Place {
        machine: Machine::new(Arc::clone(group), Member(member), signer(member)),
        application: Application::default(),
        queue: VecDeque::new(),
        blocks: Vec::new(),
        records: Vec::new(),
        incarnation: 0,
    }
}

impl World {
    fn new(seed: u64, liars: u32) -> World {
        let keys = (0..REPLICAS).map(|member| signer(member).public()).collect();
        let group = Arc::new(Group::new(keys, vec![signer(100).public()]).unwrap());
        let mut random = Random::stream(seed, "world");
        let network = (random.pick(&[0, 20, 100]), random.pick(&[500, 5_000, 50_000]));
        let mut config = Config::of(&["r1", "r2", "r3", "r4"], [7; 32], seed);
        (config.sessions, config.table_entries) = (SESSIONS, 64);
        let quorum = Quorums::of_prophecy(REPLICAS as usize).replicated;
        let client = || (ReplicaClient::new(REPLICAS as usize, quorum, Broken::none()), None);
        let mut world = World {
            places: (0..REPLICAS).map(|member| place(&group, member)).collect(),
            sketcher: Sketcher::new(&config, Service::new(Protocol::Redis, &Handling::default(), false))
                .unwrap(),
            calls: (0..SESSIONS).map(|_| client()).collect(),
            group,
            liars,
            lies_are_old: random.chance(500),
            network,
            now_us: 0,
            events: BTreeMap::new(),
            scheduled: 0,
            open: BTreeMap::new(),
            history: History::default(),
            writes: 0,
            random,
        };
        for member in 0..REPLICAS {
            world.places[member as usize].machine.on_restored(0);
            world.carry_out(Member(member));
        }
        (0..CLIENTS).for_each(|client| world.after(client, Event::Begin(client)));
        for _ in 0..world.random.below(4) {
            let correct = Member(world.random.below(u64::from(REPLICAS - liars)) as u32);
            let at_us = world.random.below(3_000_000);
            world.after(at_us, Event::Restart(correct));
        }
        world.after(1_000, Event::Tick);
        world
    }

    fn after(&mut self, delay_us: u64, event: Event) {
        self.scheduled += 1;
        self.events.insert((self.now_us + delay_us, self.scheduled), event);
    }

    fn send(&mut self, event: Event) {
        if !self.random.chance(self.network.0) {
            let delay_us = self.random.between(20, self.network.1);
            self.after(delay_us, event);
        }
    }

    fn run(mut self) -> (Verdict, u64) {
        while let Some(((at_us, _), event)) = self.events.pop_first() {
            self.now_us = at_us;
            if at_us > END_US || (self.history.operations.len() >= OPERATIONS && self.open.is_empty()) {
                break;
            }
            self.step(event);
            self.serve();
        }
        assert!(self.history.operations.len() >= OPERATIONS, "the world stands still");
        let fast = self.sketcher.statistics().fast;
        (judge(&self.history).unwrap(), fast)
    }

    fn step(&mut self, event: Event) {
        let now_us = self.now_us;
        match event {
            Event::Message { from, to, bytes } => {
                let message = Message::decode(&bytes).unwrap();
                self.places[to.0 as usize].machine.on_message(now_us, from, message);
                self.carry_out(to);
            }
            Event::Asked { to, request } => {
                self.places[to.0 as usize].machine.on_request(now_us, request);
                self.carry_out(to);
            }
            Event::Executed { at, incarnation } => self.execute(at, incarnation),
            Event::Fast { to, exchange, request } => {
                let response = self.places[to.0 as usize].application.execute(&request);
                let response = self.spoiled(Member(to.0), response);
                self.send(Event::FastAnswered { from: to, exchange, response });
            }
            Event::FastAnswered { from, exchange, response } => {
                self.sketcher.on_fast_answer(now_us, exchange, from, response);
            }
            Event::Answered { from, answer } => {
                let session = answer.session.number as usize;
                let (number, sequence) = (CallNumber(answer.number.call), Sequence(answer.sequence));
                let answer = ReplicatedAnswer { response: answer.response.to_vec(), sequence };
                self.calls[session].0.on_answer(Replica(from.0), number, answer);
                self.carry_out_calls(session);
            }
            Event::Begin(client) => self.begin(client),
            Event::Restart(member) => self.restart(member),
            Event::Tick => self.tick(),
        }
    }

    fn tick(&mut self) {
        self.after(1_000, Event::Tick);
        for member in (0..REPLICAS).map(Member) {
            let machine = &mut self.places[member.0 as usize].machine;
            if machine.next_deadline_us() <= self.now_us {
                machine.on_tick(self.now_us);
                self.carry_out(member);
            }
        }
        self.sketcher.on_tick(self.now_us);
        for session in 0..SESSIONS {
            self.calls[session].0.on_tick(self.now_us);
            self.carry_out_calls(session);
        }
    }

    fn begin(&mut self, client: u64) {
        let object = ObjectId(self.random.below(OBJECTS));
        let is_write = self.random.chance(250);
        let words = if is_write {
            self.writes += 1;
            vec!["SET".to_string(), object.0.to_string(), self.writes.to_string()]
        } else {
            vec!["GET".to_string(), object.0.to_string()]
        };
        let mut request = Vec::new();
        ensue_resp::encode::encode_command(&words, &mut request);
        self.open.insert(
            client,
            Operation {
                process: client as u32,
                object,
                kind: if is_write { Kind::Write } else { Kind::Read },
                value: Value(if is_write { self.writes } else { 0 }),
                invoked_us: self.now_us,
                returned_us: None,
            },
        );
        self.sketcher.on_request(self.now_us, RequestId(client), request);
    }

    /// A client has its answer, or none: a write may have happened then.
    fn end(&mut self, client: u64, response: Option<Vec<u8>>) {
        let Some(mut operation) = self.open.remove(&client) else { return };
        operation.returned_us = response.is_some().then_some(self.now_us);
        if let (Kind::Read, Some(response)) = (operation.kind, &response) {
            let text = String::from_utf8_lossy(response).into_owned();
            operation.value = Value(text.split("\r\n").nth(1).unwrap().parse().unwrap());
        }
        if operation.kind == Kind::Write || response.is_some() {
            self.history.operations.push(operation);
        }
        if self.history.operations.len() < OPERATIONS {
            let pause_us = self.random.between(1, 2_000);
            self.after(pause_us, Event::Begin(client));
        }
    }

    fn serve(&mut self) {
        while let Some(output) = self.sketcher.take_output() {
            match output {
                sketcher::Output::Fast { exchange, replica, request } => {
                    self.send(Event::Fast { to: replica, exchange, request });
                }
                sketcher::Output::Replicated { exchange, request } => {
                    let session = exchange.session as usize;
                    self.calls[session].1 = Some(exchange);
                    self.calls[session].0.on_call(self.now_us, request);
                    self.carry_out_calls(session);
                }
                sketcher::Output::Answer { id, response, .. } => self.end(id.0, Some(response)),
                sketcher::Output::Refuse { id, .. } => self.end(id.0, None),
            }
        }
    }

    fn carry_out_calls(&mut self, session: usize) {
        while let Some(output) = self.calls[session].0.take_output() {
            match (output, self.calls[session].1) {
                (CallOutput::Send { replica, number, request }, _) => {
                    let whose = Session { client: Member(0), number: session as u32 };
                    let which = RequestNumber { incarnation: 1, call: number.0 };
                    let request = Request::sign(&self.group, &signer(100), whose, which, request);
                    self.send(Event::Asked { to: Member(replica.0), request });
                }
                (CallOutput::Accepted(ReplicatedAnswer { response, sequence }), Some(exchange)) => {
                    self.sketcher.on_replicated_answer(self.now_us, exchange, response, sequence);
                }
                (CallOutput::Failed(failure), Some(exchange)) => {
                    self.sketcher.on_replicated_failure(self.now_us, exchange, failure);
                }
                (CallOutput::Lied(replica), _) => {
                    let is_liar = replica.0 >= REPLICAS - self.liars;
                    assert!(is_liar || self.liars > 1, "a correct replica is called a liar");
                    self.sketcher.on_lie(replica);
                }
                (CallOutput::Accepted(_) | CallOutput::Failed(_), None) => panic!("nothing was asked"),
            }
        }
    }

    fn carry_out(&mut self, at: Member) {
        let place = at.0 as usize;
        while let Some(output) = self.places[place].machine.take_output() {
            match output {
                Output::Log(record) => self.places[place].records.push(record),
                Output::Decided { record, .. } => {
                    self.places[place].blocks.push(record);
                    self.places[place].records.clear();
                }
                Output::Execute { body, .. } => {
                    self.places[place].queue.push_back(body);
                    let incarnation = self.places[place].incarnation;
                    let delay_us = self.random.between(10, 3_000);
                    self.after(delay_us, Event::Executed { at, incarnation });
                }
                Output::Send { to, bytes } => self.send(Event::Message { from: at, to, bytes }),
                Output::Fetch { to, height } => {
                    let blocks = self.places[place].blocks.iter().skip(height as usize - 1);
                    let blocks: Vec<Vec<u8>> = blocks.take(CATCH_UP_BLOCKS as usize).cloned().collect();
                    for block in blocks {
                        let bytes = Message::bytes_of_decided(&block).into();
                        self.send(Event::Message { from: at, to, bytes });
                    }
                }
                Output::Answer(mut answer) => {
                    answer.response = self.spoiled(at, answer.response.to_vec()).into();
                    self.send(Event::Answered { from: at, answer });
                }
            }
        }
    }

    fn execute(&mut self, at: Member, incarnation: u32) {
        let place = &mut self.places[at.0 as usize];
        if place.incarnation != incarnation {
            return;
        }
        let Some(body) = place.queue.pop_front() else { return };
        let response = place.application.execute(&body);
        place.machine.on_executed(self.now_us, response.into());
        self.carry_out(at);
    }

    fn restart(&mut self, at: Member) {
        let fresh = place(&self.group, at.0);
        let before = std::mem::replace(&mut self.places[at.0 as usize], fresh);
        let now = &mut self.places[at.0 as usize];
        (now.blocks, now.records, now.incarnation) = (before.blocks, before.records, before.incarnation + 1);
        for block in &now.blocks {
            now.machine.restore_block(block).unwrap();
            while let Some(output) = now.machine.take_output() {
                if let Output::Execute { body, .. } = output {
                    now.machine.on_executed(0, now.application.execute(&body).into());
                }
            }
        }
        for record in &now.records {
            now.machine.restore_record(self.now_us, record).unwrap();
        }
        now.machine.on_restored(self.now_us);
        self.carry_out(at);
    }

    /// Liars say the same, as if they had agreed on it.
    fn spoiled(&self, at: Member, response: Vec<u8>) -> Vec<u8> {
        match () {
            () if at.0 < REPLICAS - self.liars || !response.starts_with(b"$") => response,
            () if self.lies_are_old => number_reply(0),
            () => number_reply(1_000_000),
        }
    }
}

#[test]
fn what_clients_see_is_delay_once_linearizable_with_one_liar() {
    let mut fast = 0;
    for seed in 0..24 {
        let (verdict, served) = World::new(seed, 1).run();
        assert_eq!(verdict.violations, [], "seed {seed}");
        fast += served;
    }
    assert!(fast > 500, "{fast} fast reads");
}

#[test]
fn two_liars_who_agree_are_seen_by_the_judge() {
    assert!((0..10).any(|seed| !World::new(seed, 2).run().0.violations.is_empty()));
}
