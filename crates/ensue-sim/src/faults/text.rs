//! The words of a fault's line: places, times and numbers, shown and read.

use crate::random::Random;
use crate::world::World;
use crate::world::shape::{ProcessId, Shape, Site};
use ensue_types::{CoreId, DatacenterId, PartitionId};
use std::fmt;
use std::str::{FromStr, SplitWhitespace};

/// A core as a line names it: `dc1.0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub datacenter: DatacenterId,
    pub core: CoreId,
}

impl Place {
    pub fn of(shape: Shape, site: Site) -> Place {
        Place { datacenter: shape.datacenter(site), core: shape.core(site) }
    }

    pub fn draw(random: &mut Random, shape: Shape) -> Place {
        Place::of(shape, Site(random.index(shape.sites())))
    }

    /// Two cores that are not the same, if there are two.
    pub fn draw_two(random: &mut Random, shape: Shape) -> (Place, Place) {
        let a = random.index(shape.sites());
        let others = shape.sites().saturating_sub(1).max(1);
        let b = (a + 1 + random.index(others)) % shape.sites();
        (Place::of(shape, Site(a)), Place::of(shape, Site(b)))
    }

    pub fn site(self, shape: Shape) -> Site {
        shape.site(self.datacenter, self.core)
    }

    /// The process that this core belongs to.
    pub fn process(self, shape: Shape) -> ProcessId {
        shape.process(self.site(shape))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.datacenter, self.core.0)
    }
}

/// The disk of a partition in a datacenter: `dc1.p0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Home {
    pub datacenter: DatacenterId,
    pub partition: PartitionId,
}

impl Home {
    pub fn draw(random: &mut Random, shape: Shape) -> Home {
        let datacenter = DatacenterId(random.below(u64::from(shape.datacenters)) as u8);
        Home { datacenter, partition: PartitionId(random.below(u64::from(shape.partitions)) as u16) }
    }

    /// Starts the process again if the partition has stopped.
    pub fn revive(self, world: &mut World) {
        if world.has_stopped(self.datacenter, self.partition) {
            let process = world.process_of(self.datacenter, self.partition);
            world.kill(process);
            world.start(process);
        }
    }
}

impl fmt::Display for Home {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.p{}", self.datacenter, self.partition.0)
    }
}

/// Two datacenters that are not the same, if there are two.
pub fn draw_two_datacenters(random: &mut Random, shape: Shape) -> (DatacenterId, DatacenterId) {
    let count = u64::from(shape.datacenters);
    let a = random.below(count);
    let b = (a + random.between(1, count.saturating_sub(1).max(1))) % count;
    (DatacenterId(a as u8), DatacenterId(b as u8))
}

/// A time in the largest unit that shows all of it.
pub fn show_us(us: u64) -> String {
    match us {
        _ if us % 1_000_000 == 0 => format!("{}s", us / 1_000_000),
        _ if us % 1_000 == 0 => format!("{}ms", us / 1_000),
        _ => format!("{us}us"),
    }
}

/// Reads what `show_us` shows.
pub fn parse_us(word: &str) -> Option<u64> {
    let units = [("us", 1), ("ms", 1_000), ("s", 1_000_000)];
    units.into_iter().find_map(|(unit, factor)| {
        let number: u64 = word.strip_suffix(unit)?.parse().ok()?;
        number.checked_mul(factor)
    })
}

/// The words of a line, one after another.
pub struct Words<'a> {
    words: SplitWhitespace<'a>,
    shape: Shape,
}

impl<'a> Words<'a> {
    pub fn new(line: &'a str, shape: Shape) -> Words<'a> {
        Words { words: line.split_whitespace(), shape }
    }

    pub fn word(&mut self) -> Result<&'a str, String> {
        self.words.next().ok_or_else(|| "a word is missing".to_owned())
    }

    /// This very word must follow.
    pub fn expect(&mut self, wanted: &str) -> Result<(), String> {
        match self.word()? {
            word if word == wanted => Ok(()),
            word => Err(format!("`{wanted}` is missing before `{word}`")),
        }
    }

    /// One of these words, and what it stands for.
    pub fn choice<T: Copy>(&mut self, choices: &[(&str, T)]) -> Result<T, String> {
        let word = self.word()?;
        let found = choices.iter().find(|(name, _)| *name == word);
        found.map(|(_, value)| *value).ok_or_else(|| format!("unknown word `{word}`"))
    }

    pub fn number<T: FromStr>(&mut self) -> Result<T, String> {
        let word = self.word()?;
        word.parse().map_err(|_| format!("no number: `{word}`"))
    }

    /// `for 20ms`.
    pub fn duration_us(&mut self) -> Result<u64, String> {
        self.expect("for")?;
        self.time_us()
    }

    pub fn time_us(&mut self) -> Result<u64, String> {
        let word = self.word()?;
        parse_us(word).ok_or_else(|| format!("no time: `{word}`"))
    }

    /// A difference of clocks: `-400ms`.
    pub fn difference_ms(&mut self) -> Result<i64, String> {
        let word = self.word()?;
        let number = word.strip_suffix("ms").and_then(|number| number.parse().ok());
        number.ok_or_else(|| format!("no difference of times: `{word}`"))
    }

    pub fn datacenter(&mut self) -> Result<DatacenterId, String> {
        let word = self.word()?;
        datacenter(word, self.shape).ok_or_else(|| format!("no such datacenter: `{word}`"))
    }

    pub fn place(&mut self) -> Result<Place, String> {
        let word = self.word()?;
        place(word, self.shape).ok_or_else(|| format!("no such core: `{word}`"))
    }

    pub fn home(&mut self) -> Result<Home, String> {
        let word = self.word()?;
        home(word, self.shape).ok_or_else(|| format!("no such partition: `{word}`"))
    }

    /// Nothing may follow.
    pub fn end(&mut self) -> Result<(), String> {
        match self.words.next() {
            None => Ok(()),
            Some(word) => Err(format!("one word too many: `{word}`")),
        }
    }
}

fn datacenter(word: &str, shape: Shape) -> Option<DatacenterId> {
    let number: u8 = word.strip_prefix("dc")?.parse().ok()?;
    (1..=shape.datacenters).contains(&number).then(|| DatacenterId(number - 1))
}

fn place(word: &str, shape: Shape) -> Option<Place> {
    let (name, core) = word.split_once('.')?;
    let core = core.parse().ok().filter(|core| *core < shape.cores)?;
    Some(Place { datacenter: datacenter(name, shape)?, core: CoreId(core) })
}

fn home(word: &str, shape: Shape) -> Option<Home> {
    let (name, partition) = word.split_once(".p")?;
    let partition = partition.parse().ok().filter(|partition| *partition < shape.partitions)?;
    Some(Home { datacenter: datacenter(name, shape)?, partition: PartitionId(partition) })
}
