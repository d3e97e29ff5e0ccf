//! The words of the scenario language, one step a line.

use super::{Break, Script};
use crate::faults::Planned;
use crate::faults::text::parse_us;
use crate::protocols;
use crate::rules::Rules;
use crate::run::trial::Trial;
use crate::world::disk::Harm;
use crate::world::options::{Kept, Options};
use crate::world::shape::Shape;
use crate::world::{Aim, Hold};
use ensue_node::TransactionStep;
use ensue_types::{DatacenterId, PartitionId, Rule, partition_of};
use std::collections::BTreeMap;

/// A step and where it stands.
#[derive(Clone, Debug)]
pub struct Line {
    pub number: usize,
    pub text: String,
    pub step: Step,
}

/// A core, or all cores, of a datacenter: `dc1`, `dc1.0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub datacenter: DatacenterId,
    pub core: Option<u16>,
}

/// A command of a named client.
#[derive(Clone, Debug)]
pub struct Say {
    pub place: Place,
    pub client: String,
    pub words: Vec<String>,
    pub wanted: Option<Wanted>,
}

/// What an answer must look like.
#[derive(Clone, Debug)]
pub enum Wanted {
    /// One of these texts, as `Answer` shows them.
    OneOf(Vec<String>),
    /// Anything; the text of the answer is kept under this name.
    Keep(String),
}

/// What a disk is to do wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskOrder {
    FailSync,
    /// After so many of a thousand of its bytes.
    FailWrite(u64),
    FailRead,
    Full {
        room: u64,
        crowded: bool,
    },
    Free,
    /// Flips a bit that this number chooses.
    Rot(u64),
    Restore,
    /// An operator takes files away, or parts of them.
    Harm(Harm),
    /// And puts them back.
    Mend,
}

/// What a line does.
#[derive(Clone, Debug)]
pub enum Step {
    /// Says it, and waits for the answer.
    Say(Say),
    /// Says it and goes on at once.
    Send(Say),
    /// Waits for the answer to what was sent.
    Await {
        client: String,
        wanted: Wanted,
    },
    /// What was sent has no answer yet.
    Silent {
        client: String,
    },
    /// Says it again and again until the answer is right, for so long.
    Eventually {
        within_us: u64,
        say: Say,
    },
    /// Says it again and again; the answer must be right every time.
    Always {
        for_us: u64,
        say: Say,
    },
    Run(u64),
    At(u64),
    Cut(Place, Place),
    Heal(Place, Place),
    Slow(Place, Place, u64),
    Delay(Place, Place, u64),
    Kill(Place),
    /// What was not synced may be gone, or all of it is.
    Power {
        place: Place,
        all: bool,
    },
    Restart(Place),
    /// Cleanly, as an operator does.
    Stop(Place),
    /// The data of the datacenter, whose processes have stopped, gets times that the others believe.
    Restamp(Place),
    /// The directories of the datacenter are lost, and it starts with empty ones.
    Wipe(Place),
    /// Its directories are copied, and the copy is put in their place later.
    Copy(Place),
    Restore(Place),
    /// It starts with directories of another cluster, and its own are put back later.
    Exchange(Place),
    PutBack(Place),
    /// The datacenter is gone for good.
    Lose(Place),
    Tear {
        place: Place,
        partition: PartitionId,
        bytes: usize,
    },
    Disk {
        place: Place,
        partition: PartitionId,
        order: DiskOrder,
    },
    /// From now on partitions of this datacenter may stop though no disk is at fault.
    Stops(Place),
    Hold(Hold),
    Release(Hold),
    /// A token like the one kept under a name, with a write that this place has not made; kept under another name.
    Forge {
        name: String,
        from: String,
        place: Place,
        partition: PartitionId,
    },
    Aim(Aim),
    Clock {
        place: Place,
        by_ms: i64,
    },
    /// The figure of all cores together is this.
    Figure {
        name: String,
        value: u64,
        within_us: u64,
    },
    /// All digests are equal within this time.
    Converge(u64),
}

pub(super) fn script(text: &str) -> Result<Script, String> {
    let shape = Shape { replicas: 1, datacenters: 2, cores: 2, partitions: 2, one_process: false };
    let options = Options::calm(shape, 20_000, Rules::default());
    let mut parser =
        Parser { options, names: BTreeMap::new(), protocols: Vec::new(), breaks: Vec::new(), trial: None };
    let mut lines = Vec::new();
    for (index, raw) in text.lines().enumerate() {
        let text = raw.split(" #").next().unwrap_or_default().trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        match parser.line(text) {
            Ok(Some(_)) if parser.trial.is_some() => {
                return Err(format!(
                    "line {}: the world of a seed has no steps of a script: {text}",
                    index + 1
                ));
            }
            Ok(Some(step)) => lines.push(Line { number: index + 1, text: text.to_owned(), step }),
            Ok(None) => {}
            Err(why) => return Err(format!("line {}: {why}: {text}", index + 1)),
        }
    }
    parser.finish(lines)
}

struct Parser {
    options: Options,
    /// Names of keys, and the keys that they stand for.
    names: BTreeMap<String, String>,
    protocols: Vec<String>,
    breaks: Vec<Break>,
    trial: Option<Trial>,
}

impl Parser {
    fn line(&mut self, text: &str) -> Result<Option<Step>, String> {
        let (first, rest) = text.split_once(' ').unwrap_or((text, ""));
        let words: Vec<&str> = rest.split_whitespace().collect();
        if self.world(text, first, &words)? {
            return Ok(None);
        }
        let step = match (first, words.as_slice()) {
            ("cluster", settings) => return self.cluster(settings).map(|()| None),
            ("name", [name, "partition", partition]) => return self.name(name, partition).map(|()| None),
            ("protocols", names) => return self.protocols(names).map(|()| None),
            ("break", [rule, protocols @ ..]) => return self.broken(rule, protocols).map(|()| None),
            ("send", _) => Step::Send(self.say(rest)?),
            ("expect", _) => Step::Say(self.say(rest)?),
            ("await", [client, "->", ..]) => {
                let wanted = rest.split_once("->").map_or("", |(_, wanted)| wanted);
                Step::Await { client: (*client).to_owned(), wanted: self.wanted(wanted)? }
            }
            ("silent", [client]) => Step::Silent { client: (*client).to_owned() },
            ("eventually" | "always", [time, ..]) => {
                let say = self.say(rest.trim_start().trim_start_matches(time))?;
                let time = micros(time)?;
                match first {
                    "eventually" => Step::Eventually { within_us: time, say },
                    _ => Step::Always { for_us: time, say },
                }
            }
            ("run", [time]) => Step::Run(micros(time)?),
            ("at", [time]) => Step::At(micros(time)?),
            ("cut", [a, b]) => Step::Cut(self.place(a)?, self.place(b)?),
            ("heal", [a, b]) => Step::Heal(self.place(a)?, self.place(b)?),
            ("slow", [a, b, time]) => Step::Slow(self.place(a)?, self.place(b)?, micros(time)?),
            ("delay", [a, b, time]) => Step::Delay(self.place(a)?, self.place(b)?, micros(time)?),
            ("kill", [place]) => Step::Kill(self.place(place)?),
            ("power", [place]) => Step::Power { place: self.place(place)?, all: false },
            ("power", [place, "loses", "everything"]) => Step::Power { place: self.place(place)?, all: true },
            ("lose", [place]) => Step::Lose(self.place(place)?),
            ("restart", [place]) => Step::Restart(self.place(place)?),
            ("stop", [place]) => Step::Stop(self.place(place)?),
            ("stops", [place]) => Step::Stops(self.place(place)?),
            ("restamp", [place]) => Step::Restamp(self.place(place)?),
            ("wipe" | "copy" | "restore" | "exchange" | "put-back", [place]) => {
                directories(first, self.place(place)?)
            }
            ("tear", [place, partition, bytes]) => Step::Tear {
                place: self.place(place)?,
                partition: self.partition(partition)?,
                bytes: bytes.parse().map_err(|_| "no number of bytes")?,
            },
            ("disk", [place, partition, words @ ..]) => Step::Disk {
                place: self.place(place)?,
                partition: self.partition(partition)?,
                order: disk_order(words)?,
            },
            ("hold", [partition, way]) => Step::Hold(self.hold(partition, way)?),
            ("release", [partition, way]) => Step::Release(self.hold(partition, way)?),
            ("forge", [name, "from", token, place, partition]) => {
                self.forge((name, token), place, partition)?
            }
            ("crash", words) => Step::Aim(aim(words)?),
            ("clock", [place, by]) => Step::Clock { place: self.place(place)?, by_ms: millis(by)? },
            ("figure", [name, value, "within", time]) => Step::Figure {
                name: (*name).to_owned(),
                value: value.parse().map_err(|_| "no number")?,
                within_us: micros(time)?,
            },
            ("converge", ["within", time]) => Step::Converge(micros(time)?),
            _ => Step::Say(self.say(text)?),
        };
        Ok(Some(step))
    }

    fn broken(&mut self, rule: &str, protocols: &[&str]) -> Result<(), String> {
        let found = Rule::ALL.into_iter().find(|one| one.name() == rule);
        let protocols = protocols.iter().map(|name| (*name).to_owned()).collect();
        self.breaks.push(Break { rule: found.ok_or("no such rule")?, protocols });
        Ok(())
    }

    fn forge(&self, (name, from): (&str, &str), place: &str, partition: &str) -> Result<Step, String> {
        let kept = |word: &str| word.trim_start_matches('$').to_owned();
        let (place, partition) = (self.place(place)?, self.partition(partition)?);
        Ok(Step::Forge { name: kept(name), from: kept(from), place, partition })
    }

    /// A line about the world of a seed. False if it is none.
    fn world(&mut self, text: &str, first: &str, words: &[&str]) -> Result<bool, String> {
        match (first, words, &mut self.trial) {
            ("world", [seed, settings @ ..], None) => {
                let seed = seed.strip_prefix("seed=").and_then(|seed| seed.parse().ok());
                let trial = self.trial.insert(Trial::new(seed.ok_or("the seed of the world is missing")?));
                settings.iter().try_for_each(|setting| trial.set(setting))?;
            }
            ("nobody", ["acts"], Some(trial)) => trial.kept = Some(Kept::new()),
            ("at", [time, "client", client, "step", step], Some(trial)) => {
                let client = client.parse().map_err(|_| "no number of a client")?;
                let step = step.parse().ok().filter(|&step| step > 0).ok_or("no number of a step")?;
                trial.kept.get_or_insert_default().insert((client, step), micros(time)?);
            }
            ("at", [_, _, ..], Some(trial)) => {
                let planned = Planned::parse(text, trial.shape())?;
                trial.plan.faults.push(planned);
                trial.plan.faults.sort_by_key(|planned| planned.at_us);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn protocols(&mut self, names: &[&str]) -> Result<(), String> {
        if names.is_empty() || !self.protocols.is_empty() {
            return Err("the protocols are named once".to_owned());
        }
        for name in names {
            self.protocols.push(protocols::find(name)?.name.to_owned());
        }
        Ok(())
    }

    /// The whole script. A script that names no protocols is for that of its world.
    fn finish(mut self, lines: Vec<Line>) -> Result<Script, String> {
        if let Some(trial) = &self.trial {
            if !self.protocols.is_empty() {
                return Err("the world of a seed has one protocol: `world seed=1 protocol=eiger`".to_owned());
            }
            self.options.protocol = trial.options(Rules::default()).protocol;
        }
        if self.protocols.is_empty() {
            self.protocols.push(self.options.protocol.name.to_owned());
        }
        let strangers = |name: &&String| !self.protocols.contains(name);
        if let Some(name) = self.breaks.iter().flat_map(|b| &b.protocols).find(strangers) {
            return Err(format!(
                "a rule is to be broken under {name}, which is not a protocol of the script"
            ));
        }
        Ok(Script {
            options: self.options,
            lines,
            trial: self.trial,
            protocols: self.protocols,
            breaks: self.breaks,
        })
    }

    fn cluster(&mut self, settings: &[&str]) -> Result<(), String> {
        for setting in settings {
            self.options.set(setting)?;
        }
        Ok(())
    }

    /// Finds a key that begins with the name and lies in the partition.
    fn name(&mut self, name: &str, partition: &str) -> Result<(), String> {
        let partition = self.partition(partition.trim_start_matches('p'))?;
        let partitions = self.options.shape.partitions;
        let key = (0..10_000)
            .map(|n| format!("{name}~{n}"))
            .find(|key| partition_of(key.as_bytes(), partitions) == partition)
            .ok_or("no key in this partition")?;
        self.names.insert(name.to_owned(), key);
        Ok(())
    }

    fn say(&self, text: &str) -> Result<Say, String> {
        let (who, rest) = text.split_once(':').ok_or("neither a step nor a client's command")?;
        let (command, wanted) = match rest.rsplit_once("->") {
            Some((command, wanted)) => (command, Some(self.wanted(wanted)?)),
            None => (rest, None),
        };
        let mut who = who.split_whitespace();
        let place = self.place(who.next().ok_or("no datacenter")?)?;
        let client = who.next().ok_or("no client")?.to_owned();
        let word = |word: &str| self.names.get(word).cloned().unwrap_or_else(|| word.to_owned());
        let words: Vec<String> = command.split_whitespace().map(word).collect();
        if words.is_empty() { Err("no command".to_owned()) } else { Ok(Say { place, client, words, wanted }) }
    }

    fn wanted(&self, text: &str) -> Result<Wanted, String> {
        let text = text.trim();
        match text.strip_prefix('$') {
            Some(name) => Ok(Wanted::Keep(name.to_owned())),
            None => Ok(Wanted::OneOf(text.split(" | ").map(|one| one.trim().to_owned()).collect())),
        }
    }

    fn place(&self, word: &str) -> Result<Place, String> {
        let (datacenter, core) = match word.split_once('.') {
            Some((datacenter, core)) => (datacenter, Some(core.parse().map_err(|_| "no core")?)),
            None => (word, None),
        };
        let number: u8 = datacenter.strip_prefix("dc").and_then(|n| n.parse().ok()).ok_or("no datacenter")?;
        let inside = (1..=self.options.shape.datacenters).contains(&number)
            && core.is_none_or(|core| core < self.options.shape.cores);
        if inside {
            Ok(Place { datacenter: DatacenterId(number - 1), core })
        } else {
            Err("no such place".to_owned())
        }
    }

    fn partition(&self, word: &str) -> Result<PartitionId, String> {
        let number = word.trim_start_matches('p').parse().map_err(|_| "no partition")?;
        if number < self.options.shape.partitions {
            Ok(PartitionId(number))
        } else {
            Err("no such partition".to_owned())
        }
    }

    fn hold(&self, partition: &str, way: &str) -> Result<Hold, String> {
        let (from, to) = way.split_once("->").ok_or("a way is dc1->dc2")?;
        Ok(Hold {
            partition: self.partition(partition)?,
            from: self.place(from)?.datacenter,
            to: self.place(to)?.datacenter,
        })
    }
}

/// `begun at origin kill`, `voted elsewhere power`, `decided at origin kill skip 3`.
fn aim(words: &[&str]) -> Result<Aim, String> {
    let step = match words.first() {
        Some(&"begun") => TransactionStep::Begun,
        Some(&"voted") => TransactionStep::Voted,
        Some(&"decided") => TransactionStep::Decided,
        Some(&"committed") => TransactionStep::Committed,
        Some(&"completed") => TransactionStep::Completed,
        _ => return Err("no step of a transaction".to_owned()),
    };
    let skip = match words.iter().position(|word| *word == "skip") {
        Some(at) => words.get(at + 1).and_then(|n| n.parse().ok()).ok_or("skip how many?")?,
        None => 0,
    };
    Ok(Aim {
        step,
        remote: words.contains(&"elsewhere"),
        skip,
        power: words.contains(&"power"),
        lasts_us: None,
    })
}

/// What becomes of all directories of a datacenter.
fn directories(word: &str, place: Place) -> Step {
    match word {
        "wipe" => Step::Wipe(place),
        "copy" => Step::Copy(place),
        "restore" => Step::Restore(place),
        "exchange" => Step::Exchange(place),
        _ => Step::PutBack(place),
    }
}

fn disk_order(words: &[&str]) -> Result<DiskOrder, String> {
    let number = |word: &str| word.parse().map_err(|_| format!("no number: {word}"));
    Ok(match words {
        ["fail-sync"] => DiskOrder::FailSync,
        ["fail-write", share] => DiskOrder::FailWrite(number(share)?),
        ["fail-read"] => DiskOrder::FailRead,
        ["full", room] => DiskOrder::Full { room: number(room)?, crowded: false },
        ["full", room, "crowded"] => DiskOrder::Full { room: number(room)?, crowded: true },
        ["free"] => DiskOrder::Free,
        ["rot", chance] => DiskOrder::Rot(number(chance)?),
        ["restore"] => DiskOrder::Restore,
        ["mend"] => DiskOrder::Mend,
        ["deletes" | "shortens", ..] => DiskOrder::Harm(Harm::parse(words)?),
        _ => return Err("no such thing can happen to a disk".to_owned()),
    })
}

fn micros(word: &str) -> Result<u64, String> {
    parse_us(word).ok_or_else(|| format!("no time: {word}"))
}

fn millis(word: &str) -> Result<i64, String> {
    word.trim_end_matches("ms").parse().map_err(|_| format!("no time: {word}"))
}
