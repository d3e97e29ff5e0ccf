//! The replica group: one log in the order in which a correct engine would have agreed, and replicas that execute it.
//!
//! - On a replicated request at a replica: it gets the next place of the log, unless it has one. Each replica executes
//!   the log in its order, late; then it answers. A replica that has executed a request answers it again.
//! - On a fast read at a correct replica: the state as far as it has executed the log; or, in D-Prophecy, the sketch.
//! - Liars answer what `liar.rs` makes up, as soon as they can.

use super::liar::Liars;
use super::message::{Caller, Command, FromReplica, REPLY_OF_WRITE, ToReplica, reply_of};
use super::queue::Queue;
use super::shape::Shape;
use crate::distributed::{FastAnswer, ReplicaSketcher};
use crate::history::{INITIAL, ObjectId, Value};
use crate::random::Random;
use crate::replica_client::{CallNumber, ReplicatedAnswer};
use crate::sketch::Sketching;
use crate::sketcher::Replica;
use crate::table::Sequence;
use std::collections::BTreeMap;

struct Ordered {
    caller: Caller,
    number: CallNumber,
    request: Vec<u8>,
}

struct Member {
    is_liar: bool,
    executed: usize,
    values: BTreeMap<ObjectId, Value>,
    /// The latest answer to each caller.
    answers: BTreeMap<Caller, (CallNumber, ReplicatedAnswer)>,
    paused_until_us: u64,
    sketcher: ReplicaSketcher,
}

/// What the group wants done.
pub(super) enum Effect {
    Send(FromReplica),
    /// Call [`Service::execute`] for this replica after so many microseconds.
    Execute {
        replica: Replica,
        delay_us: u64,
    },
}

impl Effect {
    /// Puts effects into a world's queue, as its own events.
    pub(super) fn enqueue<E: Clone>(
        effects: Vec<Effect>,
        queue: &mut Queue<E>,
        sent: fn(FromReplica) -> E,
        executed: fn(Replica) -> E,
    ) {
        for effect in effects {
            match effect {
                Effect::Send(message) => queue.send(sent(message)),
                Effect::Execute { replica, delay_us } => queue.after(delay_us, executed(replica)),
            }
        }
    }
}

pub(super) struct Service {
    log: Vec<Ordered>,
    places: BTreeMap<(Caller, CallNumber), usize>,
    members: Vec<Member>,
    liars: Liars,
    random: Random,
    pause: (u64, u64),
    delay_us_max: u64,
}

impl Service {
    pub(super) fn new(shape: &Shape) -> Service {
        let member = |number: usize| Member {
            is_liar: number < shape.liars,
            executed: 0,
            values: BTreeMap::new(),
            answers: BTreeMap::new(),
            paused_until_us: 0,
            sketcher: ReplicaSketcher::new(shape.table_entries).expect("the shape is within bounds"),
        };
        Service {
            log: Vec::new(),
            places: BTreeMap::new(),
            members: (0..shape.replicas).map(member).collect(),
            liars: Liars::new(shape.lie, shape.seed),
            random: Random::stream(shape.seed, "service"),
            pause: (shape.pause_per_mille, shape.pause_us_max),
            delay_us_max: shape.network.delay_us_max,
        }
    }

    /// A message arrives at a replica.
    pub(super) fn on_message(&mut self, replica: Replica, message: ToReplica) -> Vec<Effect> {
        match message {
            ToReplica::Fast { caller, attempt, request, executes } => {
                let answer = self.fast_answer(replica, &request, executes);
                let send = |answer| Effect::Send(FromReplica::Fast { caller, attempt, replica, answer });
                answer.map(send).into_iter().collect()
            }
            ToReplica::Call { caller, number, request } => self.on_call(replica, caller, number, request),
        }
    }

    /// A replica executes what the log has by now.
    pub(super) fn execute(&mut self, now_us: u64, replica: Replica) -> Vec<Effect> {
        let member = &mut self.members[replica.0 as usize];
        if member.paused_until_us > now_us {
            return vec![Effect::Execute { replica, delay_us: member.paused_until_us - now_us }];
        }
        let mut effects = Vec::new();
        while member.executed < self.log.len() {
            let place = member.executed;
            let Ordered { caller, number, request } = &self.log[place];
            let sequence = Sequence(place as u64 + 1);
            member.executed += 1;
            let response = member.apply(Command::decode(request), request, sequence);
            let truth = ReplicatedAnswer { response, sequence };
            let answer =
                if member.is_liar { lie_about(&mut self.liars, request, truth) } else { Some(truth) };
            if let Some(answer) = answer {
                member.answers.insert(*caller, (*number, answer.clone()));
                let (caller, number) = (*caller, *number);
                effects.push(Effect::Send(FromReplica::Call { caller, number, replica, answer }));
            }
        }
        if !member.is_liar && self.random.chance(self.pause.0) {
            member.paused_until_us = now_us + self.random.between(1, self.pause.1);
        }
        effects
    }

    fn on_call(
        &mut self,
        replica: Replica,
        caller: Caller,
        number: CallNumber,
        request: Vec<u8>,
    ) -> Vec<Effect> {
        if let Some((answered, answer)) = self.members[replica.0 as usize].answers.get(&caller) {
            if *answered == number {
                let answer = answer.clone();
                return vec![Effect::Send(FromReplica::Call { caller, number, replica, answer })];
            }
        }
        // A caller has one request at a time, so an earlier number is a late copy.
        let is_late = self.places.range((caller, number)..=(caller, CallNumber(u64::MAX))).next().is_some();
        if is_late {
            return Vec::new();
        }
        if let Command::Set(object, value) = Command::decode(&request) {
            self.liars.learn(object, value, Sequence(self.log.len() as u64 + 1));
        }
        self.places.insert((caller, number), self.log.len());
        self.log.push(Ordered { caller, number, request });
        let replicas = (0..self.members.len() as u32).map(Replica);
        replicas
            .map(|replica| Effect::Execute { replica, delay_us: self.random.between(10, self.delay_us_max) })
            .collect()
    }

    fn fast_answer(&mut self, replica: Replica, request: &[u8], executes: bool) -> Option<FastAnswer> {
        let Command::Get(object) = Command::decode(request) else { return None };
        let member = &mut self.members[replica.0 as usize];
        if member.is_liar {
            let response = self.liars.answer(object, Sequence(u64::MAX))?;
            let sketch = Some(Sketching::public().response(&response));
            return Some(if executes {
                FastAnswer::Response(response, sketch)
            } else {
                FastAnswer::Sketch(sketch)
            });
        }
        let sketch = member.sketcher.on_fast_read(request);
        Some(if executes {
            FastAnswer::Response(reply_of(member.value(object)), sketch)
        } else {
            FastAnswer::Sketch(sketch)
        })
    }
}

impl Member {
    fn value(&self, object: ObjectId) -> Value {
        self.values.get(&object).copied().unwrap_or(INITIAL)
    }

    fn apply(&mut self, command: Command, request: &[u8], sequence: Sequence) -> Vec<u8> {
        match command {
            Command::Set(object, value) => {
                self.values.insert(object, value);
                REPLY_OF_WRITE.to_vec()
            }
            Command::Get(object) => {
                let response = reply_of(self.value(object));
                self.sketcher.on_replicated_read(request, &response, sequence);
                response
            }
        }
    }
}

/// A liar's answer in the place of the true one, at the true sequence number. Writes are acknowledged truly: a liar
/// that does not is a silent one.
fn lie_about(liars: &mut Liars, request: &[u8], truth: ReplicatedAnswer) -> Option<ReplicatedAnswer> {
    match Command::decode(request) {
        Command::Set(..) => Some(truth),
        Command::Get(object) => {
            Some(ReplicatedAnswer { response: liars.answer(object, truth.sequence)?, ..truth })
        }
    }
}
