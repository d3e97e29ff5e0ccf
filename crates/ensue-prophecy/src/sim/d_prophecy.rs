//! D-Prophecy in the simulator: each client talks to the replicas itself, and the replicas have the sketches.

use super::clients::Clients;
use super::message::{Caller, Command, FromReplica, ToReplica, value_of};
use super::queue::Queue;
use super::service::{Effect, Service};
use super::shape::Shape;
use super::{Ran, Violation};
use crate::distributed::{ClientOutput, DistributedClient};
use crate::replica_client::Quorums;
use crate::rule::Broken;
use crate::sketcher::{Path, Replica};
use std::collections::BTreeSet;

/// No run takes longer, if every message that a caller repeats arrives in the end.
const UNTIL_US: u64 = 3_600_000_000;

#[derive(Clone, Debug)]
enum Event {
    Begin { client: usize },
    ToReplica { replica: Replica, message: ToReplica },
    FromReplica(FromReplica),
    Execute { replica: Replica },
}

struct World {
    queue: Queue<Event>,
    service: Service,
    machines: Vec<DistributedClient>,
    clients: Clients,
    fast_reads: usize,
    named: BTreeSet<Replica>,
}

/// Runs a world until every client has done all.
pub(super) fn run(shape: &Shape, broken: Broken) -> Ran {
    run_with(shape, Quorums::of_d_prophecy(shape.replicas), broken)
}

/// The same with other quorums.
pub(super) fn run_with(shape: &Shape, quorums: Quorums, broken: Broken) -> Ran {
    let machine =
        |client: usize| DistributedClient::new(shape.replicas, quorums, shape.seed ^ client as u64, broken);
    let mut world = World {
        queue: Queue::new(shape.network, shape.seed),
        service: Service::new(shape),
        machines: (0..shape.clients).map(machine).collect(),
        clients: Clients::new(shape, 0),
        fast_reads: 0,
        named: BTreeSet::new(),
    };
    for client in 0..shape.clients {
        let think_us = world.clients.think_us();
        world.queue.after(think_us, Event::Begin { client });
    }
    while world.clients.unanswered() > 0 && world.queue.now_us < UNTIL_US && world.step() {}
    world.finish(shape)
}

impl World {
    fn step(&mut self) -> bool {
        let deadline_us = self.machines.iter().filter_map(DistributedClient::next_deadline_us).min();
        match (self.queue.next_until(deadline_us.unwrap_or(u64::MAX)), deadline_us) {
            (Some(event), _) => self.on_event(event),
            (None, Some(deadline_us)) => {
                self.queue.pass_until(deadline_us);
                for client in 0..self.machines.len() {
                    self.machines[client].on_tick(deadline_us);
                    self.drain(client);
                }
            }
            (None, None) => return false,
        }
        true
    }

    fn on_event(&mut self, event: Event) {
        let now_us = self.queue.now_us;
        match event {
            Event::Begin { client } => {
                let Some(command) = self.clients.begin(now_us, client) else { return };
                match command {
                    Command::Get(_) => self.machines[client].on_read(now_us, command.encode()),
                    Command::Set(..) => self.machines[client].on_write(now_us, command.encode()),
                }
                self.drain(client);
            }
            Event::ToReplica { replica, message } => {
                let effects = self.service.on_message(replica, message);
                self.take_effects(effects);
            }
            Event::FromReplica(FromReplica::Fast { caller, attempt, replica, answer }) => {
                self.machines[caller.0].on_fast_answer(now_us, replica, attempt, answer);
                self.drain(caller.0);
            }
            Event::FromReplica(FromReplica::Call { caller, number, replica, answer }) => {
                self.machines[caller.0].on_replicated_answer(replica, number, answer);
                self.drain(caller.0);
            }
            Event::Execute { replica } => {
                let effects = self.service.execute(now_us, replica);
                self.take_effects(effects);
            }
        }
    }

    fn take_effects(&mut self, effects: Vec<Effect>) {
        Effect::enqueue(effects, &mut self.queue, Event::FromReplica, |replica| Event::Execute { replica });
    }

    fn drain(&mut self, client: usize) {
        let caller = Caller(client);
        while let Some(output) = self.machines[client].take_output() {
            match output {
                ClientOutput::SendFast { replica, attempt, request, executes } => {
                    let message = ToReplica::Fast { caller, attempt, request, executes };
                    self.queue.send(Event::ToReplica { replica, message });
                }
                ClientOutput::SendReplicated { replica, number, request } => {
                    let message = ToReplica::Call { caller, number, request };
                    self.queue.send(Event::ToReplica { replica, message });
                }
                // With more liars than tolerated only. The client is stuck, which is a violation.
                ClientOutput::Failed(_) => {}
                ClientOutput::Lied(replica) => {
                    self.named.insert(replica);
                }
                ClientOutput::Answer { response, path } => {
                    self.fast_reads += usize::from(path == Path::Fast);
                    let (now_us, value) = (self.queue.now_us, value_of(&response));
                    self.queue.note(value.0);
                    self.clients.end(now_us, client, value);
                    let think_us = self.clients.think_us();
                    self.queue.after(think_us, Event::Begin { client });
                }
            }
        }
    }

    fn finish(self, shape: &Shape) -> Ran {
        let mut violations = Vec::new();
        let unanswered = self.clients.unanswered();
        if unanswered > 0 {
            violations.push(Violation::Stuck { unanswered });
        }
        for replica in self.named.iter().filter(|replica| replica.0 as usize >= shape.liars) {
            violations.push(Violation::WronglyNamed { replica: format!("replica-{}", replica.0) });
        }
        Ran {
            history: self.clients.into_history(),
            fast_reads: self.fast_reads,
            statistics: Vec::new(),
            violations,
            event_hash: self.queue.hash(),
        }
    }
}
