//! When an update can be seen in another datacenter: sessions without a past ask for it until they are given it.
//!
//! The first asks when the update is applied there, the next ones every `INTERVAL_US`. Each is a new session, since one
//! that knows something may be shown more. Only updates of keys of their own are looked for, so that no later write
//! hides them.

use ensue_sim::resp::args;
use ensue_sim::resp::{Answer, Answers};
use ensue_sim::world::World;
use ensue_sim::world::event::{Alarm, ConnectionId};
use ensue_sim::world::shape::Site;
use ensue_sim::world::traffic::{Key, WriteNumber};

/// Between two sessions that ask for the same update.
const INTERVAL_US: u64 = 500;

/// The search for one update in one datacenter.
#[derive(Debug)]
struct Probe {
    site: Site,
    key: Key,
    number: WriteNumber,
    /// When a client knew that it was written, and how long the link took.
    written_us: u64,
    link_us: u64,
    asked_us: u64,
    connection: Option<ConnectionId>,
    answers: Answers,
}

/// All searches.
#[derive(Debug, Default)]
pub(super) struct Probes {
    probes: Vec<Probe>,
    /// Their alarms have numbers from here on.
    first: usize,
    /// What was found: how long it took, in microseconds, beyond the link's delay.
    pub delays_us: Vec<u64>,
}

impl Probes {
    pub fn new(first: usize) -> Probes {
        Probes { first, ..Probes::default() }
    }

    /// An update was applied here.
    pub fn seek(
        &mut self,
        world: &mut World,
        site: Site,
        (key, number): (Key, WriteNumber),
        written_us: u64,
        link_us: u64,
    ) {
        let answers = Answers::default();
        let connection = None;
        self.probes.push(Probe { site, key, number, written_us, link_us, asked_us: 0, connection, answers });
        self.ask(world, self.probes.len() - 1);
    }

    /// Asks; `number` is that of an alarm.
    pub fn on_alarm(&mut self, world: &mut World, number: usize) {
        self.ask(world, number - self.first);
    }

    fn ask(&mut self, world: &mut World, index: usize) {
        let probe = &mut self.probes[index];
        let connection = world.connect(probe.site);
        world.send(connection, vec![args(&format!("GET {}", probe.key))]);
        probe.connection = Some(connection);
        probe.asked_us = world.now();
    }

    /// The answer to a probe, or the rest of one.
    pub fn on_answer(
        &mut self,
        world: &mut World,
        connection: ConnectionId,
        bytes: &[u8],
    ) -> Result<(), String> {
        // The newest are at the end.
        let found = self.probes.iter().rposition(|probe| probe.connection == Some(connection));
        let Some(index) = found else { return Ok(()) };
        let probe = &mut self.probes[index];
        probe.answers.extend(bytes);
        let Some(answer) = probe.answers.pop()? else { return Ok(()) };
        probe.connection = None;
        world.close(connection);
        match answer {
            Answer::Nil => {
                world.alarm(probe.asked_us + INTERVAL_US, Alarm::Client(self.first + index));
            }
            Answer::Bulk(value) if WriteNumber::parse(&value) == Some(probe.number) => {
                self.delays_us.push(probe.asked_us.saturating_sub(probe.written_us + probe.link_us));
            }
            answer => return Err(format!("GET {} was answered {answer}", probe.key)),
        }
        Ok(())
    }

    /// Updates that nobody has found yet.
    pub fn unfound(&self) -> usize {
        self.probes.len() - self.delays_us.len()
    }
}
