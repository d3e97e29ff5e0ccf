//! Clients that keep what they read until they are told that it has changed (`CLIENT TRACKING`), one in each datacenter
//! of some worlds.
//!
//! A cache has two connections, as clients of RESP2 have: one reads, the other one hears which keys have changed. It
//! drops what it hears of, all of it when a connection is lost, and an answer that was on its way when its key changed.
//! What it reads stands in no history: a cache is judged at the end. When all is at rest, what it still keeps must be
//! what its datacenter answers. A change that is not told, or told before readers see it, leaves an old value behind.

use super::model::normal;
use super::{Workload, next_answer};
use crate::oracle::{Final, Violation, property};
use crate::random::Random;
use crate::resp::{self, Answer, Answers};
use crate::world::World;
use crate::world::event::{Alarm, ConnectionId};
use crate::world::marks::{Mark, Marks};
use crate::world::shape::Site;
use ensue_types::{CoreId, DatacenterId};
use std::collections::{BTreeMap, VecDeque};

/// The longest time between two reads, and before a cache connects again.
const PAUSE_US: u64 = 30_000;

/// All of them.
#[derive(Debug)]
pub(super) struct Caches {
    /// The number of the first one among all who have alarms.
    first: usize,
    caches: Vec<Cache>,
}

#[derive(Debug)]
struct Cache {
    datacenter: DatacenterId,
    site: Site,
    random: Random,
    /// What it reads: commands, each of one key.
    reads: Vec<String>,
    /// Hears of changes.
    ear: Option<ConnectionId>,
    heard: Answers,
    reader: Option<ConnectionId>,
    answers: Answers,
    /// What the reader has asked for: nothing is tracking itself; a command, and whether its key changed meanwhile.
    asked: VecDeque<Option<(String, bool)>>,
    kept: BTreeMap<String, Answer>,
}

impl Caches {
    pub(super) fn new(world: &mut World, first: usize) -> Caches {
        let options = &world.options;
        let mut caches = Vec::new();
        if options.workload.caches {
            for place in 0..options.shape.datacenters {
                let mut random = Random::stream(options.seed, &format!("cache {place}"));
                let core = CoreId(random.below(u64::from(options.shape.cores)) as u16);
                let datacenter = DatacenterId(place);
                caches.push(Cache {
                    datacenter,
                    site: options.shape.site(datacenter, core),
                    random,
                    reads: reads(options.workload.keys),
                    ear: None,
                    heard: Answers::default(),
                    reader: None,
                    answers: Answers::default(),
                    asked: VecDeque::new(),
                    kept: BTreeMap::new(),
                });
            }
        }
        for place in 0..caches.len() {
            world.alarm(1_000, Alarm::Client(first + place));
        }
        Caches { first, caches }
    }

    /// What is kept is what readers see, in each datacenter that was asked at the end.
    pub(super) fn judge(&self, finals: &[Final]) -> Result<(), Violation> {
        for cache in &self.caches {
            let Some(last) = finals.iter().find(|last| last.datacenter == cache.datacenter) else { continue };
            for (read, kept) in &cache.kept {
                let shown = last.answers.iter().find(|(asked, _)| asked == read);
                if let Some((_, shown)) = shown.filter(|(_, shown)| *shown != kept.to_string()) {
                    let words = format!(
                        "a cache in {} keeps {read} = {kept} and was told of no change; readers see {shown}",
                        cache.datacenter
                    );
                    return Err(Violation::new(property::CACHES, words));
                }
            }
        }
        Ok(())
    }
}

/// Rows of every kind, as they are read at the end.
fn reads(keys: usize) -> Vec<String> {
    let texts = ["r", "d"].iter().flat_map(|class| (0..keys).map(move |k| format!("GET {class}{k}")));
    let others = ["HGETALL h", "SMEMBERS s", "ZRANGE z", "LRANGE q", "XRANGE st"];
    let rest = |read: &str| match read.split(' ').next() {
        Some("ZRANGE") => " 0 -1 WITHSCORES",
        Some("LRANGE") => " 0 -1",
        Some("XRANGE") => " - +",
        _ => "",
    };
    let others = others.iter().flat_map(|read| [0, 1].map(|k| format!("{read}{k}{}", rest(read))));
    texts.chain(others).collect()
}

/// The key that a command reads.
fn key_of(read: &str) -> Option<&str> {
    read.split(' ').nth(1)
}

impl Cache {
    fn forget(&mut self, name: Option<&str>) {
        let has_changed = |read: &str| name.is_none() || key_of(read) == name;
        self.kept.retain(|read, _| !has_changed(read));
        for (read, changed) in self.asked.iter_mut().flatten() {
            *changed |= has_changed(read);
        }
    }

    /// Both connections end, and everything is forgotten with them.
    fn leave(&mut self, world: &mut World) {
        for connection in [self.ear.take(), self.reader.take()].into_iter().flatten() {
            world.close(connection);
        }
        self.heard = Answers::default();
        self.answers = Answers::default();
        self.asked.clear();
        self.kept.clear();
    }

    fn listen(&mut self, world: &mut World) {
        let ear = world.connect(self.site);
        self.ear = Some(ear);
        world.send(ear, vec![resp::args("CLIENT ID"), resp::args("SUBSCRIBE __redis__:invalidate")]);
    }

    fn ask(&mut self, world: &mut World) {
        let missing: Vec<&String> = self.reads.iter().filter(|read| !self.kept.contains_key(*read)).collect();
        let (Some(reader), false) = (self.reader, missing.is_empty()) else { return };
        let read = missing[self.random.index(missing.len())].clone();
        world.send(reader, vec![resp::args(&read)]);
        self.asked.push_back(Some((read, false)));
    }

    /// What the listening connection was sent. False if the cache has to begin anew.
    fn hear(&mut self, world: &mut World, answer: &Answer) -> bool {
        match answer {
            Answer::Integer(own) => {
                let reader = world.connect(self.site);
                self.reader = Some(reader);
                self.asked.push_back(None);
                world.send(reader, vec![resp::args(&format!("CLIENT TRACKING ON REDIRECT {own}"))]);
                true
            }
            Answer::Array(items) => match items.get(2) {
                Some(Answer::Array(names)) => {
                    names.iter().for_each(|name| self.forget(name.text()));
                    true
                }
                Some(Answer::Nil) => {
                    self.forget(None);
                    true
                }
                // The subscription.
                other => matches!(other, Some(Answer::Integer(_))),
            },
            _ => false,
        }
    }

    /// What the reading connection was answered. False if the cache has to begin anew.
    fn learn(&mut self, marks: &mut Marks, answer: Answer) -> bool {
        match self.asked.pop_front() {
            Some(Some((read, changed))) => {
                if answer.error().is_none() && !changed {
                    marks.add(Mark::Cached);
                    let answer = normal(&resp::args(&read), answer);
                    self.kept.insert(read, answer);
                }
                true
            }
            Some(None) => answer.error().is_none(),
            None => false,
        }
    }
}

impl Workload {
    /// A cache connects, or reads something, if this is one.
    pub(super) fn caches(&mut self, world: &mut World, index: usize) -> bool {
        let stopping = self.stopping;
        let Some(place) = index.checked_sub(self.caches.first) else { return false };
        let Some(cache) = self.caches.caches.get_mut(place) else { return false };
        if stopping {
            return true;
        }
        match cache.ear {
            None => cache.listen(world),
            Some(_) => cache.ask(world),
        }
        let pause_us = cache.random.skewed(1_000, PAUSE_US);
        world.alarm(world.now() + pause_us, Alarm::Client(index));
        true
    }

    /// Whether bytes are for a cache.
    pub(super) fn cache_answers(
        &mut self,
        world: &mut World,
        marks: &mut Marks,
        connection: ConnectionId,
        bytes: &[u8],
    ) -> Result<bool, Violation> {
        let Some(place) = self.caches.place_of(connection) else { return Ok(false) };
        let cache = &mut self.caches.caches[place];
        let hears = cache.ear == Some(connection);
        let incoming = if hears { &mut cache.heard } else { &mut cache.answers };
        incoming.extend(bytes);
        loop {
            let incoming = if hears { &mut cache.heard } else { &mut cache.answers };
            let Some(answer) = next_answer(incoming)? else { return Ok(true) };
            let goes_on = match hears {
                true => cache.hear(world, &answer),
                false => cache.learn(marks, answer),
            };
            if !goes_on {
                cache.leave(world);
                return Ok(true);
            }
        }
    }

    /// Whether a lost connection was that of a cache, which then begins anew.
    pub(super) fn loses_cache(&mut self, world: &mut World, connection: ConnectionId) -> bool {
        let Some(place) = self.caches.place_of(connection) else { return false };
        self.caches.caches[place].leave(world);
        true
    }

    /// See `Caches::judge`.
    pub(crate) fn judge_caches(&self, finals: &[Final]) -> Result<(), Violation> {
        self.caches.judge(finals)
    }
}

impl Caches {
    fn place_of(&self, connection: ConnectionId) -> Option<usize> {
        let is_its = |cache: &Cache| [cache.ear, cache.reader].contains(&Some(connection));
        self.caches.iter().position(is_its)
    }
}
