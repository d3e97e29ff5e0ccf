//! A link that is cut under load: what each protocol goes on to answer, and what it has to remember meanwhile.
//!
//! The first datacenter loses both its links at once, and gets them back after a while. The other two still hear each
//! other. Clients on all sides go on; whoever gets no answer in `PATIENCE_US`, or an error, counts as not served.

pub mod chart;
mod clients;
pub mod table;

use super::Contestant;
use super::demand::Demand;
use clients::Clients;
use ensue_sim::resp::args;
use ensue_sim::resp::{Answer, Answers};
use ensue_sim::world::event::ConnectionId;
use ensue_sim::world::network::Break;
use ensue_sim::world::{Happening, World};
use ensue_types::{CoreId, DatacenterId};
use std::collections::BTreeMap;

/// An answer that comes later is none.
pub const PATIENCE_US: u64 = 1_000_000;
/// The datacenter that is cut off.
pub(crate) const ALONE: DatacenterId = DatacenterId(0);
const SECOND_US: u64 = 1_000_000;

/// When the links are cut, and for how long, in virtual seconds.
#[derive(Clone, Copy, Debug)]
pub struct Outage {
    pub before: u64,
    pub cut: u64,
    pub after: u64,
}

impl Outage {
    pub fn seconds(&self) -> u64 {
        self.before + self.cut + self.after
    }

    /// Whether something asked at this second was asked while the links were cut.
    fn is_cut(&self, second: u64) -> bool {
        (self.before..self.before + self.cut).contains(&second)
    }
}

/// What clients ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Question {
    Get,
    Set,
    /// Of four keys.
    Mget,
    /// Of two keys in two partitions.
    Mset,
    /// A session goes on at the other side of the cut, with its token.
    Move,
    /// A write of one of the two that hear each other is seen in the other.
    News,
}

pub const QUESTIONS: [Question; 6] =
    [Question::Get, Question::Set, Question::Mget, Question::Mset, Question::Move, Question::News];

/// How many were asked, and how many were served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    pub asked: u64,
    pub served: u64,
}

impl Served {
    fn add(&mut self, served: bool) {
        self.asked += 1;
        self.served += u64::from(served);
    }

    fn join(self, other: Served) -> Served {
        Served { asked: self.asked + other.asked, served: self.served + other.served }
    }

    /// Of a hundred; nothing if nobody asked.
    pub fn percent(&self) -> Option<f64> {
        (self.asked > 0).then(|| 100.0 * self.served as f64 / self.asked as f64)
    }
}

/// What all nodes hold at the end of a second, added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Bytes of rows, versions and what they depend on.
    pub rows: u64,
    /// Of these, bytes of what they depend on.
    pub dependencies: u64,
    /// Versions that are kept until they are settled.
    pub versions: u64,
    /// Entries that were received and wait.
    pub waiting: u64,
    /// Bytes of the log kept for others.
    pub backlog: u64,
}

/// A protocol's run.
#[derive(Clone, Debug)]
pub struct Course {
    pub name: String,
    pub outage: Outage,
    /// By question and by the second in which it was asked. A question that the protocol refuses has none.
    served: BTreeMap<Question, Vec<Served>>,
    /// By the second.
    pub held: Vec<Held>,
}

impl Course {
    /// What was served of these questions of all that were asked while the links were cut, or while they were not.
    pub fn served(&self, questions: &[Question], while_cut: bool) -> Served {
        let counted = self.served.iter().filter(|(question, _)| questions.contains(question));
        let seconds = counted.flat_map(|(_, seconds)| (0..).zip(seconds));
        seconds
            .filter(|(second, _)| self.outage.is_cut(*second) == while_cut)
            .fold(Served::default(), |sum, (_, served)| sum.join(*served))
    }

    /// What was served of these questions in a second.
    pub fn served_at(&self, questions: &[Question], second: u64) -> Served {
        let counted = self.served.iter().filter(|(question, _)| questions.contains(question));
        counted
            .filter_map(|(_, seconds)| seconds.get(second as usize))
            .fold(Served::default(), |sum, served| sum.join(*served))
    }
}

/// Runs a protocol through an outage.
pub fn run(contestant: &Contestant, seed: u64, outage: Outage) -> Result<Course, String> {
    let mut world = contestant.world(seed, Demand::default());
    let mut clients = Clients::new(&mut world);
    clients.load(&mut world)?;
    let begun_us = world.now();
    let mut surveys = Surveys::default();
    for second in 0..outage.seconds() {
        if second == outage.before {
            others(&world).for_each(|other| world.cut_datacenters(ALONE, other, Break::Reset));
        }
        if second == outage.before + outage.cut {
            others(&world).for_each(|other| world.heal_datacenters(ALONE, other));
        }
        clients.second = second;
        let end_us = begun_us + (second + 1) * SECOND_US;
        step(&mut world, &mut clients, &mut surveys, end_us)?;
        surveys.begin(&mut world, second);
    }
    // What was asked last is answered, or was not in time.
    clients.stop();
    let end_us = world.now() + 2 * PATIENCE_US;
    step(&mut world, &mut clients, &mut surveys, end_us)?;
    let (name, served) = (contestant.name(), clients.served());
    Ok(Course { name, outage, served, held: surveys.held.into_values().collect() })
}

fn others(world: &World) -> impl Iterator<Item = DatacenterId> + use<> {
    let all = (0..world.options.shape.datacenters).map(DatacenterId);
    all.filter(|datacenter| *datacenter != ALONE)
}

fn step(world: &mut World, clients: &mut Clients, surveys: &mut Surveys, end_us: u64) -> Result<(), String> {
    while let Some(happening) = world.step(end_us) {
        match happening {
            Happening::Alarm(ensue_sim::world::event::Alarm::Client(number)) => {
                clients.on_alarm(world, number)
            }
            Happening::Answer { connection, bytes, .. } => match surveys.on_answer(connection, &bytes)? {
                true => {}
                false => clients.on_answer(world, connection, &bytes)?,
            },
            _ => {}
        }
    }
    Ok(())
}

/// The figures of all datacenters, asked for at the end of each second.
#[derive(Debug, Default)]
struct Surveys {
    asked: BTreeMap<ConnectionId, (u64, Answers)>,
    held: BTreeMap<u64, Held>,
}

impl Surveys {
    fn begin(&mut self, world: &mut World, second: u64) {
        let shape = world.options.shape;
        for datacenter in (0..shape.datacenters).map(DatacenterId) {
            let connection = world.connect(shape.site(datacenter, CoreId(0)));
            world.send(connection, vec![args("INFO memory ensue")]);
            self.asked.insert(connection, (second, Answers::default()));
        }
    }

    fn on_answer(&mut self, connection: ConnectionId, bytes: &[u8]) -> Result<bool, String> {
        let Some((second, answers)) = self.asked.get_mut(&connection) else { return Ok(false) };
        answers.extend(bytes);
        let Some(answer) = answers.pop()? else { return Ok(true) };
        let held = self.held.entry(*second).or_default();
        held.rows += figure(&answer, "used_memory")?;
        held.dependencies += figure(&answer, "ensue_dependency_bytes")?;
        held.versions += figure(&answer, "ensue_unsettled_versions")?;
        held.waiting += figure(&answer, "ensue_waiting_entries")?;
        held.backlog += figure(&answer, "ensue_backlog_bytes")?;
        Ok(true)
    }
}

fn figure(info: &Answer, name: &str) -> Result<u64, String> {
    let text = info.text().ok_or_else(|| format!("INFO was answered {info}"))?;
    let prefix = format!("{name}:");
    let value =
        text.lines().find_map(|line| line.strip_prefix(&prefix)).and_then(|value| value.trim().parse().ok());
    value.ok_or_else(|| format!("INFO has no figure {prefix}"))
}

#[cfg(test)]
mod tests;
