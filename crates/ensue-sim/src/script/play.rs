//! Plays a script in a world of its own.

use super::parse::{DiskOrder, Line, Place, Say, Step, Wanted};
use crate::random::Random;
use crate::resp::args;
use crate::resp::{Answer, Answers};
use crate::run::{to_screen, unexcused};
use crate::workload::forgery;
use crate::workload::model::normal;
use crate::world::clock::EPOCH_MS;
use crate::world::event::{Alarm, ConnectionId};
use crate::world::network::Break;
use crate::world::options::Options;
use crate::world::shape::{ProcessId, Site};
use crate::world::{Happening, World};
use bytes::Bytes;
use ensue_node::Trace;
use ensue_types::{Args, CoreId, DatacenterId, PartitionId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// An answer that was waited for comes within this time.
const ANSWER_US_MAX: u64 = 5_000_000;
const AGAIN_US: u64 = 1_000;
/// What is forged is from so far ahead: less than clocks may differ.
const FORGED_AHEAD_MS: u64 = 30_000;
/// Until every partition has read its log for the first time.
const START_US_MAX: u64 = 2_000_000;

struct Speaker {
    connection: ConnectionId,
    incoming: Answers,
    asked: VecDeque<Args>,
    answers: VecDeque<Answer>,
}

struct Player {
    world: World,
    speakers: BTreeMap<(DatacenterId, String), Speaker>,
    kept: BTreeMap<String, Vec<u8>>,
    probes: u64,
    /// What no disk gave a partition a reason to, if that has happened.
    unexcused: Option<String>,
    /// Whose partitions may stop all the same.
    may_stop: BTreeSet<DatacenterId>,
}

pub(super) fn play(options: Options, lines: &[Line], print: bool) -> Result<(), String> {
    let mut world = World::new(options);
    world.trace = print.then(to_screen);
    let (speakers, kept) = (BTreeMap::new(), BTreeMap::new());
    let mut player = Player { world, speakers, kept, probes: 0, unexcused: None, may_stop: BTreeSet::new() };
    player.start()?;
    for line in lines {
        let stepped = player.step(&line.step).and_then(|()| player.unexcused.take().map_or(Ok(()), Err));
        stepped.map_err(|why| format!("line {}: {}: {why}", line.number, line.text))?;
    }
    // What was held was said when it was sent, not when it is released.
    let is_held = lines.iter().any(|line| matches!(line.step, Step::Hold(_)));
    if let Some(words) = player.world.said.taken_back().filter(|_| !is_held) {
        return Err(format!("what was said to be durable, received or over is taken back: {words}"));
    }
    if !player.world.aims.is_empty() {
        return Err("a crash was aimed at a step that was never taken".to_owned());
    }
    Ok(())
}

impl Player {
    fn start(&mut self) -> Result<(), String> {
        let deadline = self.world.now() + START_US_MAX;
        for datacenter in 0..self.world.options.shape.datacenters {
            while self.world.healthy_since(DatacenterId(datacenter)).is_none() {
                if self.world.now() >= deadline {
                    return Err("a datacenter does not start".to_owned());
                }
                self.run(AGAIN_US);
            }
        }
        self.run(200_000);
        Ok(())
    }

    fn step(&mut self, step: &Step) -> Result<(), String> {
        match step {
            Step::Say(say) => {
                self.say(say)?;
                let wanted = say.wanted.clone().unwrap_or(Wanted::OneOf(vec!["any".to_owned()]));
                self.hear((say.place.datacenter, say.client.clone()), &wanted)
            }
            Step::Send(say) => self.say(say),
            Step::Await { client, wanted } => self.hear(self.key_of(client)?, wanted),
            Step::Silent { client } => {
                let speaker = self.speakers.get(&self.key_of(client)?);
                match speaker.and_then(|s| s.answers.front()) {
                    None => Ok(()),
                    Some(answer) => Err(format!("answered {answer}")),
                }
            }
            Step::Eventually { within_us, say } => self.repeat(say, *within_us, true),
            Step::Always { for_us, say } => self.repeat(say, *for_us, false),
            Step::Figure { name, value, within_us } => self.figure(name, *value, *within_us),
            Step::Converge(within_us) => self.converge(*within_us),
            Step::Forge { name, from, place, partition } => {
                let token = self.kept.get(from).ok_or("nothing kept under this name")?;
                let options = &self.world.options;
                let at_ms = EPOCH_MS + self.world.now() / 1_000 + FORGED_AHEAD_MS;
                let place = (place.datacenter, *partition);
                let forged =
                    forgery::naming(token, options.protocol, place, at_ms).ok_or("this is no token")?;
                self.kept.insert(name.clone(), forged);
                Ok(())
            }
            Step::Stops(place) => {
                self.may_stop.insert(place.datacenter);
                Ok(())
            }
            Step::Restamp(place) => match self.world.restamp(place.datacenter)? {
                0 => Err("there was no time beyond the bound".to_owned()),
                _ => Ok(()),
            },
            other => {
                self.act(other);
                Ok(())
            }
        }
    }

    fn act(&mut self, step: &Step) {
        match *step {
            Step::Run(time) => self.run(time),
            Step::At(time) => self.run(time.saturating_sub(self.world.now())),
            Step::Cut(a, b) => self.pairs(a, b, |world, a, b| world.cut(a, b, Break::Prompt)),
            Step::Heal(a, b) => self.pairs(a, b, World::heal),
            Step::Slow(a, b, time) => self.pairs(a, b, |world, a, b| world.network.lag(a, b, time)),
            Step::Delay(a, b, time) => {
                let (a, b) = (usize::from(a.datacenter.0), usize::from(b.datacenter.0));
                self.world.network.set_delay(a, b, time);
            }
            Step::Kill(place) => self.processes(place, World::kill),
            Step::Power { place, all: true } => self.processes(place, World::lose_all_unsynced),
            Step::Power { place, all: false } => self.processes(place, |world, process| {
                world.lose_power(process);
            }),
            Step::Lose(place) => self.world.lose(place.datacenter),
            Step::Restart(place) => self.processes(place, World::start),
            Step::Stop(place) => self.processes(place, World::shut_down),
            Step::Wipe(place) => self.world.wipe(place.datacenter),
            Step::Copy(place) => self.world.copy_directories(place.datacenter),
            Step::Restore(place) => {
                self.world.restore_directories(place.datacenter);
                self.world.open(place.datacenter);
            }
            Step::Exchange(place) => {
                self.world.exchange_directories(place.datacenter);
                self.world.open(place.datacenter);
            }
            Step::PutBack(place) => self.world.put_back(place.datacenter),
            Step::Tear { place, partition, bytes } => self.world.tear(place.datacenter, partition, bytes),
            Step::Disk { place, partition, order } => self.disk(place.datacenter, partition, order),
            Step::Hold(hold) => self.world.hold(hold),
            Step::Release(hold) => self.world.release(hold),
            Step::Aim(aim) => self.world.aims.push(aim),
            Step::Clock { place, by_ms } => {
                self.processes(place, |world, process| world.jump_clock(process, by_ms));
            }
            _ => {}
        }
    }

    fn disk(&mut self, datacenter: DatacenterId, partition: PartitionId, order: DiskOrder) {
        let world = &mut self.world;
        match order {
            DiskOrder::FailSync => world.disk(datacenter, partition).fail_next_sync(),
            DiskOrder::FailWrite(share) => world.disk(datacenter, partition).fail_next_write(share),
            DiskOrder::FailRead => world.disk(datacenter, partition).fail_next_read(),
            DiskOrder::Full { room, crowded } => world.fill_disk(datacenter, partition, room, crowded),
            DiskOrder::Free => world.free_disk(datacenter, partition),
            DiskOrder::Rot(chance) => {
                world.disk(datacenter, partition).rot(&mut Random::stream(chance, "bit"));
            }
            DiskOrder::Restore => world.disk(datacenter, partition).restore(),
            DiskOrder::Harm(harm) => {
                world.disk(datacenter, partition).harm(harm);
            }
            DiskOrder::Mend => {
                world.disk(datacenter, partition).mend();
            }
        }
    }

    fn run(&mut self, time: u64) {
        let until = self.world.now() + time;
        self.world.alarm(until, Alarm::Pause);
        while let Some(happening) = self.world.step(until) {
            self.on_happening(happening);
        }
    }

    fn on_happening(&mut self, happening: Happening) {
        match happening {
            Happening::Answer { connection, bytes, .. } => {
                let found = self.speakers.values_mut().find(|speaker| speaker.connection == connection);
                let Some(speaker) = found else { return };
                speaker.incoming.extend(&bytes);
                while let Ok(Some(answer)) = speaker.incoming.pop() {
                    let asked = speaker.asked.pop_front().unwrap_or_default();
                    speaker.answers.push_back(normal(&asked, answer));
                }
            }
            Happening::Hangup { connection } => {
                self.speakers.retain(|_, speaker| speaker.connection != connection);
            }
            Happening::Struck { .. } | Happening::Trace { is_excused: true, .. } | Happening::Alarm(_) => {}
            Happening::Trace { site, trace, .. } => {
                let datacenter = self.world.options.shape.datacenter(site);
                if matches!(trace, Trace::PartitionStopped { .. }) && self.may_stop.contains(&datacenter) {
                    return;
                }
                self.unexcused.get_or_insert(unexcused(datacenter, &trace).to_string());
            }
            Happening::WentOn { site, partition } => {
                let datacenter = self.world.options.shape.datacenter(site);
                self.unexcused.get_or_insert(format!("{datacenter} {partition} went on after a disk error"));
            }
            Happening::ServesTheRest { site, partition } => {
                let datacenter = self.world.options.shape.datacenter(site);
                self.unexcused
                    .get_or_insert(format!("{datacenter} {partition} serves a log that lost its end"));
            }
        }
    }

    fn say(&mut self, say: &Say) -> Result<(), String> {
        let key = (say.place.datacenter, say.client.clone());
        let site = self.world.options.shape.site(say.place.datacenter, CoreId(say.place.core.unwrap_or(0)));
        let mut command: Args = Vec::new();
        for word in &say.words {
            command.push(match word.strip_prefix('$') {
                Some(name) => Bytes::from(self.kept.get(name).ok_or("nothing kept under this name")?.clone()),
                None => Bytes::from(word.clone()),
            });
        }
        let world = &mut self.world;
        let speaker = self.speakers.entry(key).or_insert_with(|| Speaker {
            connection: world.connect(site),
            incoming: Answers::default(),
            asked: VecDeque::new(),
            answers: VecDeque::new(),
        });
        speaker.asked.push_back(command.clone());
        world.send(speaker.connection, vec![command]);
        Ok(())
    }

    fn answer(&mut self, key: &(DatacenterId, String)) -> Result<Answer, String> {
        let deadline = self.world.now() + ANSWER_US_MAX;
        loop {
            let Some(speaker) = self.speakers.get_mut(key) else {
                return Ok(Answer::Error("the connection is lost".to_owned()));
            };
            if let Some(answer) = speaker.answers.pop_front() {
                return Ok(answer);
            }
            match self.world.step(deadline) {
                Some(happening) => self.on_happening(happening),
                None => return Err("no answer".to_owned()),
            }
        }
    }

    fn hear(&mut self, key: (DatacenterId, String), wanted: &Wanted) -> Result<(), String> {
        let answer = self.answer(&key)?;
        match wanted {
            Wanted::Keep(name) => {
                // Of several the first: what `CAUSAL DEAD` shows begins with its digest.
                let first = match &answer {
                    Answer::Array(items) => items.first().unwrap_or(&answer),
                    other => other,
                };
                let bytes = first.bytes().ok_or_else(|| format!("answered {answer}"))?;
                self.kept.insert(name.clone(), bytes.to_vec());
                Ok(())
            }
            Wanted::OneOf(texts) if texts.iter().any(|text| matches(text, &answer)) => Ok(()),
            Wanted::OneOf(_) => Err(format!("answered {answer}")),
        }
    }

    fn repeat(&mut self, say: &Say, time: u64, until_right: bool) -> Result<(), String> {
        let deadline = self.world.now() + time;
        let wanted = say.wanted.clone().ok_or("no answer is named")?;
        loop {
            self.say(say)?;
            let heard = self.hear((say.place.datacenter, say.client.clone()), &wanted);
            let over = self.world.now() >= deadline;
            match heard {
                Ok(()) if until_right || over => return Ok(()),
                Err(why) if !until_right || over => return Err(why),
                _ => self.run(AGAIN_US),
            }
        }
    }

    fn probe(&mut self, datacenter: DatacenterId, core: u16, text: &str) -> Result<Answer, String> {
        self.probes += 1;
        let place = Place { datacenter, core: Some(core) };
        let client = format!("probe {}", self.probes);
        let words = args(text).iter().map(|w| String::from_utf8_lossy(w).into_owned()).collect();
        self.say(&Say { place, client: client.clone(), words, wanted: None })?;
        let answer = self.answer(&(datacenter, client.clone()))?;
        if let Some(speaker) = self.speakers.remove(&(datacenter, client)) {
            self.world.close(speaker.connection);
        }
        Ok(answer)
    }

    fn figure(&mut self, name: &str, value: u64, within_us: u64) -> Result<(), String> {
        let deadline = self.world.now() + within_us;
        loop {
            let mut figures = Vec::new();
            for datacenter in self.world.survivors() {
                let info = self.probe(datacenter, 0, "INFO")?;
                let text = info.text().unwrap_or_default().to_owned();
                let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name}:")));
                figures.push(line.and_then(|n| n.trim().parse::<u64>().ok()));
            }
            // Nobody tells it while all partitions of a datacenter read their logs.
            let sum = figures.into_iter().sum::<Option<u64>>();
            if sum == Some(value) {
                return Ok(());
            }
            if self.world.now() >= deadline {
                return Err(sum.map_or("no such figure in INFO".into(), |sum| format!("is {sum}")));
            }
            self.run(10 * AGAIN_US);
        }
    }

    fn converge(&mut self, within_us: u64) -> Result<(), String> {
        let deadline = self.world.now() + within_us;
        loop {
            let mut digests = Vec::new();
            for datacenter in self.world.survivors() {
                digests.push(self.probe(datacenter, 0, "CAUSAL DIGEST")?.to_string());
            }
            if digests.iter().all(|digest| *digest == digests[0] && !digest.starts_with("error")) {
                return Ok(());
            }
            if self.world.now() >= deadline {
                return Err(digests.join(" | "));
            }
            self.run(10 * AGAIN_US);
        }
    }

    fn key_of(&self, client: &str) -> Result<(DatacenterId, String), String> {
        let found = self.speakers.keys().find(|(_, name)| name == client).cloned();
        found.ok_or_else(|| "this client has said nothing, or its connection is lost".to_owned())
    }

    fn sites(&self, place: Place) -> Vec<Site> {
        let shape = self.world.options.shape;
        let all = |core: &u16| place.core.is_none_or(|wanted| wanted == *core);
        (0..shape.cores).filter(all).map(|core| shape.site(place.datacenter, CoreId(core))).collect()
    }

    fn pairs(&mut self, a: Place, b: Place, action: impl Fn(&mut World, Site, Site)) {
        for from in self.sites(a) {
            for to in self.sites(b) {
                action(&mut self.world, from, to);
            }
        }
    }

    fn processes(&mut self, place: Place, action: impl Fn(&mut World, ProcessId)) {
        let shape = self.world.options.shape;
        let mut processes: Vec<ProcessId> = self.sites(place).into_iter().map(|s| shape.process(s)).collect();
        processes.dedup();
        for process in processes {
            action(&mut self.world, process);
        }
    }
}

/// `any`, `error`, or the text itself; quotes around a bulk string may be left out.
fn matches(text: &str, answer: &Answer) -> bool {
    let shown = answer.to_string();
    match text {
        "any" => true,
        "error" => answer.error().is_some(),
        _ => match (text.strip_prefix("error "), answer.error()) {
            (Some(beginning), Some(error)) => error.starts_with(beginning),
            _ => shown == text || shown == format!("\"{text}\""),
        },
    }
}
