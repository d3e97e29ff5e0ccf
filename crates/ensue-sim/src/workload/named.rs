//! Clients that give their session a name (`CAUSAL SESSION`), lose or leave their connection, and go on under the name
//! at whatever core of whatever datacenter they come to.
//!
//! In the history who comes back is a new session, whose first operation, which gives the name, adds the past of what
//! was last answered under the name in this datacenter: a name is known in one datacenter alone. It does not, if the
//! process that keeps the name has been started again since, or a datacenter was lost for good: what is discarded with
//! that is in nobody's past any more. Who is connected when the name is forgotten must be told so, once
//! (`FORGOTTEN`), and goes on with its own past.

use super::Workload;
use super::client::{Purpose, Request};
use super::command::{Command, Expect};
use super::mix::Draft;
use crate::oracle::history::{OperationIndex, Outcome};
use crate::oracle::{Violation, property};
use crate::random::Random;
use crate::resp::Answer;
use crate::world::World;
use crate::world::marks::{Mark, Marks};
use crate::world::options::Options;
use crate::world::shape::Site;
use ensue_types::DatacenterId;
use std::collections::BTreeMap;

/// Of a thousand clients of worlds with named sessions, so many have one.
const NAMED: u64 = 600;
/// Times in a thousand that such a client leaves its connection for another one.
const LEAVES: u64 = 80;
/// Times in a thousand that it stays in its datacenter.
const STAYS: u64 = 750;

/// What was last answered under a name in a datacenter.
#[derive(Clone, Copy, Debug)]
struct Last {
    operation: OperationIndex,
    /// The life of the process that keeps the name.
    life: u32,
    survivors: usize,
}

/// A client's name, and what is known of it.
#[derive(Clone, Debug)]
pub struct Named {
    name: String,
    last: BTreeMap<DatacenterId, Last>,
    /// The operation that gave the name on this connection, and what goes on with it, until something that needs its
    /// past is answered.
    resumes: Option<(OperationIndex, Last)>,
    /// The life of the process that keeps the name: when this connection began, when it was last asked something, and
    /// when it was last answered something that concerns the name.
    since: u32,
    asked: u32,
    known: Option<u32>,
}

impl Named {
    /// The name of a client, in worlds in which some have one.
    pub fn of(options: &Options, index: usize) -> Option<Named> {
        let random = &mut Random::stream(options.seed, &format!("name of client {index}"));
        let is_named = options.workload.named && random.chance(NAMED);
        is_named.then(|| Named {
            name: format!("session{index}"),
            last: BTreeMap::new(),
            resumes: None,
            since: 0,
            asked: 0,
            known: None,
        })
    }

    /// Nothing of before is known to go on under the name in a datacenter.
    fn forget(&mut self, datacenter: DatacenterId) {
        self.last.remove(&datacenter);
        self.resumes = None;
    }

    fn life(&self, world: &World, datacenter: DatacenterId) -> u32 {
        world.life_of_keeper(datacenter, self.name.as_bytes())
    }
}

impl Workload {
    /// A new connection gets the name of its client.
    pub(super) fn give_name(&mut self, world: &mut World, index: usize) {
        let datacenter = world.options.shape.datacenter(self.clients[index].site);
        let Some(named) = &mut self.clients[index].named else { return };
        let life = named.life(world, datacenter);
        (named.since, named.asked, named.known) = (life, life, None);
        let command = Command::new(&format!("CAUSAL SESSION {}", named.name), Expect::Ok);
        let draft = Draft { commands: vec![command], ..Draft::default() };
        let giving = self.history.next();
        let commands = self.enqueue(world, index, draft, Purpose::Name);
        if let Some(named) = &mut self.clients[index].named {
            named.resumes = named.last.get(&datacenter).map(|last| (giving, *last));
        }
        self.send(world, index, commands);
    }

    /// Whether a client leaves its connection to go on under its name somewhere else.
    pub(super) fn leaves_its_name(&mut self, world: &mut World, index: usize) -> bool {
        let client = &mut self.clients[index];
        if client.named.is_none() || !client.random.chance(LEAVES) {
            return false;
        }
        self.leave(world, index);
        true
    }

    /// Where a client goes whose connection is over: who has a name mostly stays in its datacenter.
    pub(super) fn next_site(&mut self, world: &World, index: usize) -> Site {
        let shape = world.options.shape;
        let client = &mut self.clients[index];
        let site = Site(client.random.index(shape.sites()));
        if client.named.is_some() && client.random.chance(STAYS) {
            return shape.site(shape.datacenter(client.site), shape.core(site));
        }
        site
    }

    /// Something is asked: by the answer it is known under which life of its process the name was fetched.
    pub(super) fn note_asked(&mut self, world: &World, index: usize) {
        let datacenter = world.options.shape.datacenter(self.clients[index].site);
        if let Some(named) = &mut self.clients[index].named {
            named.asked = named.life(world, datacenter);
        }
    }

    /// Something was answered: what its session has seen is kept under the name. That of before must be known to be
    /// there, or the session must have been told that it is not.
    pub(super) fn note_answered(
        &mut self,
        world: &World,
        marks: &mut Marks,
        index: usize,
        request: &Request,
    ) -> Result<(), Violation> {
        let operation = &self.history.operations[request.operation];
        let datacenter = operation.datacenter;
        let is_told_of = !operation.reads.is_empty() || !operation.writes.is_empty();
        let Some(named) = &mut self.clients[index].named else { return Ok(()) };
        // Each keyspace has a past of its own, and not every command needs it.
        let needs_past =
            is_told_of || matches!(request.purpose, Purpose::Merge { .. } | Purpose::Token { .. });
        if !needs_past || is_elsewhere(request) {
            return Ok(());
        }
        let life = named.life(world, datacenter);
        let is_sure = life == named.asked && !world.options.shape.is_replicated();
        if is_sure && named.known.is_some_and(|known| known < life) {
            let words = format!(
                "what was kept under the name {} is gone, and nobody said so: {}",
                named.name,
                self.history.describe(request.operation)
            );
            return Err(Violation::new(property::FORGOTTEN, words));
        }
        named.known = Some(life);
        let survivors = world.survivors().len();
        if let Some((giving, last)) = named.resumes.take() {
            if is_sure && last.life == life && last.survivors == survivors {
                self.history.operations[giving].merges = Some(last.operation);
                marks.add(Mark::NameResumed);
            }
        }
        if is_sure {
            named.last.insert(datacenter, Last { operation: request.operation, life, survivors });
        } else {
            named.last.remove(&datacenter);
        }
        Ok(())
    }

    /// Whether an error rightly says that what was kept under the name of the session is forgotten.
    pub(super) fn is_forgotten(
        &self,
        world: &World,
        index: usize,
        request: &Request,
        error: &Answer,
    ) -> bool {
        let datacenter = self.history.operations[request.operation].datacenter;
        let is_it = error.error().is_some_and(|text| text.starts_with("FORGOTTEN "));
        let begun_anew = |named: &Named| named.life(world, datacenter) > named.since;
        is_it
            && self.clients[index]
                .named
                .as_ref()
                .is_some_and(|named| begun_anew(named) || world.options.shape.is_replicated())
    }

    /// A session was told that what was kept under its name is forgotten: what was asked was not executed, and its own
    /// past goes on.
    pub(super) fn go_on_without_name(
        &mut self,
        world: &World,
        marks: &mut Marks,
        index: usize,
        request: &Request,
    ) {
        marks.add(Mark::NameForgotten);
        let operation = &mut self.history.operations[request.operation];
        (operation.outcome, operation.answered_us) = (Outcome::Refused, world.now());
        let datacenter = operation.datacenter;
        if let Some(named) = &mut self.clients[index].named {
            named.forget(datacenter);
            if !is_elsewhere(request) {
                named.known = Some(named.life(world, datacenter));
            }
        }
        if request.private {
            self.give_up_private(index, true);
        }
    }

    /// The session begins anew on its connection, with nothing of what it knew.
    pub(super) fn part_from_name(&mut self, datacenter: DatacenterId, index: usize) {
        if let Some(named) = &mut self.clients[index].named {
            named.forget(datacenter);
        }
    }
}

/// Whether a request is about another keyspace than that of the history.
fn is_elsewhere(request: &Request) -> bool {
    request.commands.iter().any(|command| &command.args[0][..] == b"SELECT")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::history::Seen;
    use crate::rules::Rules;
    use crate::world::shape::{ProcessId, Shape};

    /// A world of two datacenters in which one client has a name, and is in the first.
    fn world() -> (World, Workload) {
        let shape = Shape { datacenters: 2, cores: 1, partitions: 2, one_process: true, replicas: 1 };
        let mut options = Options::calm(shape, 10, Rules::default());
        options.workload.named = true;
        options.workload.clients = 1;
        options.seed =
            (1..).find(|&seed| Named::of(&Options { seed, ..options.clone() }, 0).is_some()).unwrap_or(1);
        let mut world = World::new(options);
        let mut workload = Workload::new(&mut world);
        workload.clients[0].site = Site(0);
        (world, workload)
    }

    /// A new connection, and the operation that gives it its name.
    fn connect(world: &mut World, workload: &mut Workload) -> OperationIndex {
        workload.clients[0].waiting.clear();
        workload.clients[0].session = workload.history.session();
        let giving = workload.history.next();
        workload.give_name(world, 0);
        giving
    }

    /// A read that was asked before something happened to the world, and is answered after it.
    fn read(
        world: &mut World,
        workload: &mut Workload,
        meanwhile: impl Fn(&mut World),
    ) -> (Request, Result<(), &'static str>) {
        let command = Command::new("GET r0", Expect::Anything);
        let draft = Draft { commands: vec![command], ..Draft::default() };
        workload.enqueue(world, 0, draft, Purpose::Work);
        let request = workload.clients[0].waiting.pop_back().expect("it was just asked");
        let location = workload.history.location("r0");
        workload.history.operations[request.operation].reads.push((location, Seen::Nothing));
        meanwhile(world);
        let noted = workload.note_answered(world, &mut Marks::default(), 0, &request);
        (request, noted.map_err(|wrong| wrong.property))
    }

    fn restart(world: &mut World) {
        world.kill(ProcessId(0));
        world.start(ProcessId(0));
    }

    #[test]
    fn who_comes_back_has_what_was_answered_under_the_name_in_this_datacenter() {
        let (mut world, mut workload) = world();
        let nothing = |_: &mut World| {};
        let first = connect(&mut world, &mut workload);
        let (request, noted) = read(&mut world, &mut workload, nothing);
        assert_eq!((noted, workload.history.operations[first].merges), (Ok(()), None));
        let second = connect(&mut world, &mut workload);
        assert_eq!(workload.history.operations[second].merges, None, "nothing was answered yet");
        read(&mut world, &mut workload, nothing).1.expect("all is well");
        assert_eq!(workload.history.operations[second].merges, Some(request.operation));
        workload.clients[0].site = Site(1);
        let elsewhere = connect(&mut world, &mut workload);
        read(&mut world, &mut workload, nothing).1.expect("all is well");
        assert_eq!(workload.history.operations[elsewhere].merges, None, "a name is known in one datacenter");
        workload.clients[0].site = Site(0);
        let again = connect(&mut world, &mut workload);
        read(&mut world, &mut workload, restart).1.expect("it may have been fetched before or after");
        assert_eq!(workload.history.operations[again].merges, None, "it was forgotten perhaps");
    }

    #[test]
    fn who_is_connected_is_told_that_the_name_was_forgotten() {
        let (mut world, mut workload) = world();
        let nothing = |_: &mut World| {};
        let error = Answer::Error("FORGOTTEN the partition".to_owned());
        connect(&mut world, &mut workload);
        let (request, _) = read(&mut world, &mut workload, nothing);
        assert!(!workload.is_forgotten(&world, 0, &request, &error), "nothing was started again");
        restart(&mut world);
        let (request, noted) = read(&mut world, &mut workload, nothing);
        assert_eq!(noted, Err(property::FORGOTTEN));
        assert!(workload.is_forgotten(&world, 0, &request, &error));
        assert!(!workload.is_forgotten(&world, 0, &request, &Answer::Error("ERR".to_owned())));
        let mut marks = Marks::default();
        workload.go_on_without_name(&world, &mut marks, 0, &request);
        assert_eq!(marks.count(Mark::NameForgotten), 1);
        assert_eq!(workload.history.operations[request.operation].outcome, Outcome::Refused);
        assert_eq!(read(&mut world, &mut workload, nothing).1, Ok(()), "once is enough");
    }
}
