//! Connections between cores of different processes: ordered and lossless while up, broken as connections break.
//!
//! A break loses what is in flight: each end still receives a prefix of what was sent to it, then learns that the
//! connection is down, each at its own time; what is sent after the break is lost silently. A connection comes back
//! only after both ends have seen it go. Cores of one process share memory and never lose a message.

use crate::random::Random;
use crate::world::options::LinkOptions;
use crate::world::shape::{Shape, Site};
use std::collections::BTreeMap;
use std::fmt;

/// When one end of a connection learns of a change, and of which life of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndNews {
    pub site: Site,
    pub peer: Site,
    pub at: u64,
    pub up: bool,
    pub epoch: u32,
}

/// How a connection breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Break {
    /// Both ends notice soon.
    Prompt,
    /// Messages vanish, and the ends notice after timeouts of their own.
    Silent,
    /// Both ends notice soon, and nothing that was on its way arrives.
    Reset,
}

impl Break {
    /// As the lines of faults say it.
    pub const NAMES: [(&str, Break); 3] =
        [("promptly", Break::Prompt), ("silently", Break::Silent), ("losing-all", Break::Reset)];

    pub fn draw(random: &mut Random) -> Break {
        random.pick(&Break::NAMES).1
    }
}

impl fmt::Display for Break {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Break::NAMES.iter().find(|(_, how)| how == self);
        f.write_str(name.map_or("", |(name, _)| name))
    }
}

#[derive(Debug)]
struct Direction {
    /// No later message may arrive before this.
    last_arrival: u64,
    /// After a break: what arrives until then still arrives.
    cutoff: u64,
    /// Extra delay while this direction is slow.
    lag: u64,
    /// Messages are this far apart at least: a narrow link.
    spacing: u64,
    /// Nothing arrives before this time; what is sent meanwhile waits.
    mute_until: u64,
    /// From then on a message may be late again.
    next_late: u64,
    /// Its own chance, so that a message more or less here changes no delay elsewhere.
    random: Random,
}

impl Direction {
    fn new(random: Random) -> Direction {
        Direction { last_arrival: 0, cutoff: 0, lag: 0, spacing: 0, mute_until: 0, next_late: 0, random }
    }
}

/// Late messages of one direction are at least this far apart.
const LATE_SPACING_US: u64 = 20_000;

#[derive(Debug)]
struct Line {
    up: bool,
    epoch: u32,
    /// When the lower and the higher site get their latest news of this connection.
    news_at: [u64; 2],
    /// The life of the connection that the lower and the higher site believe to be up; 0 if none.
    believed: [u32; 2],
    /// Reasons why it cannot be up.
    blocks: u32,
    /// From the lower site to the higher, and back.
    directions: [Direction; 2],
    /// What decides how it breaks and how it comes back.
    random: Random,
}

impl Line {
    fn new(seed: u64, (a, b): (Site, Site)) -> Line {
        let random = |what: &str, from: Site, to: Site| {
            Random::stream(seed, &format!("network {what} {} {}", from.0, to.0))
        };
        Line {
            up: false,
            epoch: 0,
            news_at: [0, 0],
            believed: [0, 0],
            blocks: 0,
            directions: [Direction::new(random("messages", a, b)), Direction::new(random("messages", b, a))],
            random: random("breaks", a, b),
        }
    }
}

/// All connections of the world.
pub struct Network {
    shape: Shape,
    options: LinkOptions,
    lines: BTreeMap<(Site, Site), Line>,
}

impl Network {
    pub fn new(shape: Shape, options: LinkOptions, seed: u64) -> Network {
        let sites = || (0..shape.sites()).map(Site);
        let lines = sites()
            .flat_map(|a| sites().map(move |b| (a, b)))
            .filter(|(a, b)| a < b)
            .map(|pair| (pair, Line::new(seed, pair)))
            .collect();
        Network { shape, options, lines }
    }

    /// When a message sent now arrives, and the life of the connection it travels on; nothing if it is lost: the
    /// connection is down, or its sender still writes to the one before.
    pub fn send(&mut self, now: u64, from: Site, to: Site) -> Option<(u64, u32)> {
        if from == to {
            return Some((now + 1, 0));
        }
        let range = self.delay_range(from, to);
        let abroad = self.shape.datacenter(from) != self.shape.datacenter(to);
        let tail = if abroad { self.options.tail } else { 0 };
        let shared = self.shape.process(from) == self.shape.process(to);
        let (line, index) = self.line(from, to)?;
        if !shared && (!line.up || line.believed[index] != line.epoch) {
            return None;
        }
        let direction = &mut line.directions[index];
        let delay = direction.random.between(range.0, range.1);
        // A packet is lost now and then, not so many of a thousand messages however fast they follow each other.
        let late = now >= direction.next_late;
        let factor = if late { tail_factor(&mut direction.random, tail) } else { 1 };
        if late {
            direction.next_late = now + LATE_SPACING_US;
        }
        let delay = delay * factor;
        let soonest = direction.last_arrival + direction.spacing;
        let mut arrival = (now + delay + direction.lag).max(soonest);
        if now < direction.mute_until {
            // Behind what was on its way when the direction fell silent.
            arrival = arrival.max(direction.mute_until + 1);
        }
        direction.last_arrival = arrival;
        Some((arrival, line.epoch))
    }

    /// When a message may arrive that would arrive now.
    pub fn held_until(&self, now: u64, from: Site, to: Site) -> Option<u64> {
        let line = self.lines.get(&(from.min(to), from.max(to)))?;
        let until = line.directions[usize::from(from > to)].mute_until;
        (now < until).then_some(until)
    }

    /// Whether a message that reaches its end now is still received.
    pub fn receives(&mut self, now: u64, from: Site, to: Site, epoch: u32) -> bool {
        if self.shape.process(from) == self.shape.process(to) {
            return true;
        }
        match self.line(from, to) {
            Some((line, index)) => line.epoch == epoch && (line.up || now <= line.directions[index].cutoff),
            None => false,
        }
    }

    /// Breaks a connection, if it is up.
    pub fn sever(&mut self, now: u64, a: Site, b: Site, how: Break) -> Vec<EndNews> {
        let patience = match how {
            Break::Prompt | Break::Reset => 1_000,
            Break::Silent => 300_000,
        };
        let range = self.delay_range(a, b);
        let Some((line, index)) = self.line(a, b) else { return Vec::new() };
        if !line.up {
            return Vec::new();
        }
        let random = &mut line.random;
        let notice = [random.below(patience), random.below(patience)];
        let lossless = how != Break::Reset;
        let partly = [lossless && random.chance(500), lossless && random.chance(500)];
        let delay = random.between(range.0, range.1);
        line.up = false;
        let mut news = Vec::new();
        for (end, (site, peer, toward)) in [(a, b, 1 - index), (b, a, index)].into_iter().enumerate() {
            line.directions[toward].cutoff = if partly[end] { now + delay / 2 } else { now };
            let soonest = line.directions[toward].cutoff.max(line.news_at[usize::from(site > peer)]) + 1;
            let at = soonest + notice[end];
            line.news_at[usize::from(site > peer)] = at;
            news.push(EndNews { site, peer, at, up: false, epoch: line.epoch });
        }
        news
    }

    /// Connects, if nothing is in the way; otherwise says when to try again, if that is only a question of time. The
    /// lower site dials, once it has seen the last break; the other may still believe in the connection of before.
    pub fn connect(&mut self, now: u64, a: Site, b: Site) -> Result<Vec<EndNews>, Option<u64>> {
        let range = self.delay_range(a, b);
        let Some((line, index)) = self.line(a, b) else { return Err(None) };
        if line.up || line.blocks > 0 {
            return Err(None);
        }
        let again = line.news_at[0].max(line.directions[0].mute_until).max(line.directions[1].mute_until);
        if now <= again {
            return Err(Some(again + 1));
        }
        let late = line.random.between(0, range.1);
        line.up = true;
        line.epoch += 1;
        line.directions[index].last_arrival = now + late;
        line.directions[1 - index].last_arrival = now;
        line.news_at[index] = now;
        line.news_at[1 - index] = now + late;
        let epoch = line.epoch;
        Ok(vec![
            EndNews { site: a, peer: b, at: now, up: true, epoch },
            EndNews { site: b, peer: a, at: now + late, up: true, epoch },
        ])
    }

    /// News of a connection has come to one of its ends: what that end is told, `true` for up. An end that still
    /// believes in an earlier life hears of that one's end first; news of a life in which it does not believe is none.
    pub fn news(&mut self, site: Site, peer: Site, up: bool, epoch: u32) -> &'static [bool] {
        let Some((line, index)) = self.line(site, peer) else { return &[] };
        let believed = line.believed[index];
        match up {
            // The news of a later life may have come first.
            true if epoch <= believed => return &[],
            true => line.believed[index] = epoch,
            false if believed == epoch => line.believed[index] = 0,
            false => return &[],
        }
        match (up, believed) {
            (true, 0) => &[true],
            (true, _) => &[false, true],
            (false, _) => &[false],
        }
    }

    /// A process has died: its end of every connection believes in nothing.
    pub fn forget(&mut self, site: Site) {
        for ((low, high), line) in &mut self.lines {
            if *low == site {
                line.believed[0] = 0;
            } else if *high == site {
                line.believed[1] = 0;
            }
        }
    }

    /// Adds or removes one reason why these two cannot be connected. True if none is left.
    pub fn block(&mut self, a: Site, b: Site, blocked: bool) -> bool {
        match self.line(a, b) {
            Some((line, _)) => {
                line.blocks = if blocked { line.blocks + 1 } else { line.blocks.saturating_sub(1) };
                line.blocks == 0
            }
            None => false,
        }
    }

    /// Makes one direction slower by so much; 0 makes it as fast as it was.
    pub fn lag(&mut self, from: Site, to: Site, extra: u64) {
        if let Some((line, index)) = self.line(from, to) {
            line.directions[index].lag = extra;
        }
    }

    /// Keeps messages of one direction this far apart; 0 takes that away.
    pub fn narrow(&mut self, from: Site, to: Site, spacing: u64) {
        if let Some((line, index)) = self.line(from, to) {
            line.directions[index].spacing = spacing;
        }
    }

    /// Lets nothing of one direction arrive until then. The connection stays up: what is sent waits.
    pub fn mute(&mut self, from: Site, to: Site, until: u64) {
        if let Some((line, index)) = self.line(from, to) {
            let direction = &mut line.directions[index];
            direction.mute_until = direction.mute_until.max(until);
        }
    }

    /// Sets the delay between two datacenters.
    pub fn set_delay(&mut self, a: usize, b: usize, delay_us: u64) {
        self.options.delay_us[a][b] = delay_us;
        self.options.delay_us[b][a] = delay_us;
    }

    /// Nothing is in the way of any connection, and nothing is slow, any more.
    pub fn heal_everything(&mut self) {
        for line in self.lines.values_mut() {
            line.blocks = 0;
            for direction in &mut line.directions {
                direction.lag = 0;
                direction.spacing = 0;
            }
        }
    }

    pub fn is_up(&self, a: Site, b: Site) -> bool {
        let line = self.lines.get(&(a.min(b), a.max(b)));
        self.shape.process(a) == self.shape.process(b) || line.is_some_and(|line| line.up)
    }

    /// Least and most delay of a direction.
    fn delay_range(&self, from: Site, to: Site) -> (u64, u64) {
        let (a, b) = (self.shape.datacenter(from), self.shape.datacenter(to));
        if a == b {
            return self.options.local_us;
        }
        let least = self.options.delay_us[usize::from(a.0)][usize::from(b.0)];
        (least, least + self.options.jitter_us)
    }

    fn line(&mut self, from: Site, to: Site) -> Option<(&mut Line, usize)> {
        let line = self.lines.get_mut(&(from.min(to), from.max(to)))?;
        Some((line, usize::from(from > to)))
    }
}

/// 1, and by so many chances in a thousand twice that, again and again, up to 64: the tail of a power law, in whole
/// numbers.
fn tail_factor(random: &mut Random, per_mille: u64) -> u64 {
    let mut factor = 1;
    while per_mille > 0 && factor < 64 && random.chance(per_mille) {
        factor *= 2;
    }
    factor
}

#[cfg(test)]
mod tests;
