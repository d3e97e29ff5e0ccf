//! What a client does when it is answered `BLOCKED` or `FALLBACK`.

use super::waiting_commands;
use crate::oracle::history::Outcome;
use crate::oracle::{Violation, property};
use crate::resp::args;
use crate::rules::Rules;
use crate::workload::Workload;
use crate::workload::clients::Clients;
use crate::world::event::Alarm;
use crate::world::event::ConnectionId;
use crate::world::marks::{Mark, Marks};
use crate::world::options::Options;
use crate::world::{Happening, World};
use ensue_protocol::Promises;

/// A world in which a client has asked several things at once.
struct Asked {
    world: World,
    workload: Workload,
    marks: Marks,
    connection: ConnectionId,
    client: usize,
}

impl Asked {
    fn of(protocol: &str) -> Asked {
        let mut options = Options::draw_with(7, Rules::default(), "eiger");
        options.workload.pipeline = 1_000;
        options.workload.move_rate = 0;
        options.workload.merge_rate = 0;
        let mut world = World::new(options);
        let mut workload = Workload::new(&mut world);
        workload.history.promises = Promises::of(protocol).expect("it is known");
        let until = world.now() + 1_000_000;
        while let Some(happening) = world.step(until) {
            let Happening::Alarm(Alarm::Client(client)) = happening else { continue };
            workload.on_alarm(&mut world, client);
            if workload.clients[client].waiting.len() > 1 {
                let connection = workload.clients[client].connection.expect("it is connected");
                return Asked { world, workload, marks: Marks::default(), connection, client };
            }
        }
        panic!("nobody asks several things at once");
    }

    /// The first request is answered with this error, as often as it has answers.
    fn answer(&mut self, error: &str) -> Result<(), Violation> {
        let missing = self.workload.clients[self.client].waiting[0].missing;
        let bytes = format!("-{error}\r\n").repeat(missing);
        self.workload.on_answer(&mut self.world, &mut self.marks, self.connection, bytes.as_bytes())
    }
}

#[test]
fn after_blocked_the_session_goes_on() {
    let mut asked = Asked::of("pocc");
    let client = &asked.workload.clients[asked.client];
    let (session, operation, waiting) = (client.session, client.waiting[0].operation, client.waiting.len());
    asked.answer("BLOCKED what the session has seen is not here yet").unwrap();
    let client = &asked.workload.clients[asked.client];
    assert_eq!((client.session, client.waiting.len()), (session, waiting - 1));
    assert!(client.connection.is_some());
    assert_eq!(asked.workload.history.operations[operation].outcome, Outcome::Refused);
    assert_eq!(asked.marks.count(Mark::Blocked), 1);
}

#[test]
fn after_a_fallback_what_was_sent_behind_is_a_new_session() {
    let mut asked = Asked::of("ha-pocc");
    let client = &asked.workload.clients[asked.client];
    let (session, prefix) = (client.session, client.prefix.clone());
    let operations: Vec<usize> = client.waiting.iter().map(|request| request.operation).collect();
    asked.answer("FALLBACK the session has waited too long").unwrap();
    let client = &asked.workload.clients[asked.client];
    assert_ne!((client.session, &client.prefix), (session, &prefix));
    assert!(client.connection.is_some());
    let history = &asked.workload.history;
    assert_eq!(history.sessions[session], operations[..1]);
    assert_eq!(history.sessions[client.session], operations[1..]);
    assert_eq!(asked.marks.count(Mark::FellBack), 1);
}

#[test]
fn who_promises_to_answer_may_not_refuse() {
    let mut asked = Asked::of("cure");
    // The datacenter has been up for a while.
    let until = asked.world.now() + 100_000;
    while asked.world.step(until).is_some() {}
    let operation = asked.workload.clients[asked.client].waiting[0].operation;
    asked.workload.history.operations[operation].invoked_us = until;
    asked.workload.clients[asked.client].waiting[0].invoked_us = until;
    let violation = asked.answer("BLOCKED for no reason").unwrap_err();
    assert_eq!(violation.property, property::AVAILABILITY);
}

#[test]
fn nothing_waits_in_a_world_of_one_datacenter() {
    let mut asked = Asked::of("pocc");
    asked.world.options.shape.datacenters = 1;
    let violation = asked.answer("BLOCKED for no reason").unwrap_err();
    assert_eq!(violation.property, property::AVAILABILITY);
}

#[test]
fn each_command_outside_a_multi_may_wait_by_itself() {
    let count = |words: &str| waiting_commands(&words.split("; ").map(args).collect::<Vec<_>>());
    assert_eq!(count("SELECT 1; INCRBY a 3; SELECT 0"), 1);
    assert_eq!(count("MULTI; GET a; GET b; EXEC"), 1);
    assert_eq!(count("WATCH a; GET a; MULTI; SET a 1; EXEC"), 3);
}
