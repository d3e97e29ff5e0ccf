//! Which key an operation takes: uniform, Zipfian, scrambled, latest, one hot key, or groups around a client.
//!
//! A chooser gives numbers of keys, from 0 up to the number of keys that exist; names are given elsewhere. Zipf's law
//! is sampled exactly for every exponent from 0 on, by rejection-inversion (Hörmann and Derflinger, 1996), in constant
//! time and memory.

use crate::error::SpecError;
use crate::random::{Random, mix};
use std::str::FromStr;

/// How keys are chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Access {
    Uniform,
    /// Key 0 is the most frequent, then key 1.
    Zipf {
        theta: f64,
    },
    /// As YCSB has it: ranks of ten billion, hashed to the keys, so that the frequent ones lie anywhere.
    Scrambled {
        theta: f64,
    },
    /// As YCSB has it: Zipfian over the age of keys, the newest being the most frequent.
    Latest {
        theta: f64,
    },
    /// Always the same key.
    Hot,
    /// COPS, section 6.3: a group of keys for each client, chosen by a normal distribution around the client's own;
    /// then a key of the group, uniformly. Groups stand in a circle, so that clients at the ends are as others are.
    Groups {
        keys_per_group: u64,
        variance: f64,
    },
}

/// What YCSB scrambles.
const SCRAMBLED_RANKS: u64 = 10_000_000_000;
/// The exponent of YCSB, and of the papers that follow it.
pub const THETA: f64 = 0.99;

impl Access {
    /// How many keys there are, if it says so itself.
    pub fn keys(self, clients: u64) -> Option<u64> {
        match self {
            Access::Groups { keys_per_group, .. } => Some(keys_per_group * clients),
            _ => None,
        }
    }
}

impl FromStr for Access {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Access, SpecError> {
        let wrong = || SpecError::Access(text.into());
        let mut words = text.split(':');
        let name = words.next().unwrap_or_default();
        let mut number = |default: Option<f64>| match words.next() {
            Some(word) => word.parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0).ok_or_else(wrong),
            None => default.ok_or_else(wrong),
        };
        let access = match name {
            "uniform" => Access::Uniform,
            "hot" => Access::Hot,
            "zipf" => Access::Zipf { theta: number(Some(THETA))? },
            "scrambled" => Access::Scrambled { theta: number(Some(THETA))? },
            "latest" => Access::Latest { theta: number(Some(THETA))? },
            "groups" => {
                let keys_per_group = number(None)?;
                if !(1.0..=1e9).contains(&keys_per_group) || keys_per_group.fract() != 0.0 {
                    return Err(wrong());
                }
                Access::Groups { keys_per_group: keys_per_group as u64, variance: number(Some(1.0))? }
            }
            _ => return Err(wrong()),
        };
        if words.next().is_some() { Err(wrong()) } else { Ok(access) }
    }
}

/// Chooses keys for one client.
#[derive(Clone, Debug)]
pub struct KeyChooser {
    access: Access,
    client: u64,
    clients: u64,
    /// For the number of keys that it was made for.
    zipf: Option<Zipf>,
}

impl KeyChooser {
    pub fn new(access: Access, client: u64, clients: u64) -> KeyChooser {
        KeyChooser { access, client, clients, zipf: None }
    }

    /// A key below `keys`, of which there is at least one.
    pub fn draw(&mut self, keys: u64, random: &mut Random) -> u64 {
        match self.access {
            Access::Uniform => random.below(keys),
            Access::Hot => 0,
            Access::Zipf { theta } => self.rank(keys, theta, random) - 1,
            Access::Scrambled { theta } => {
                let ranks = SCRAMBLED_RANKS;
                mix(self.rank(ranks, theta, random)) % keys
            }
            Access::Latest { theta } => keys - self.rank(keys, theta, random),
            Access::Groups { keys_per_group, variance } => {
                let away = random.normal(variance.sqrt()).round();
                let group = (self.client as f64 + away).rem_euclid(self.clients as f64) as u64 % self.clients;
                (group * keys_per_group + random.below(keys_per_group)) % keys
            }
        }
    }

    fn rank(&mut self, ranks: u64, theta: f64, random: &mut Random) -> u64 {
        if self.zipf.as_ref().is_none_or(|zipf| zipf.ranks != ranks) {
            self.zipf = Some(Zipf::new(ranks, theta));
        }
        self.zipf.as_ref().map_or(1, |zipf| zipf.draw(random))
    }
}

/// Ranks from 1 on, rank k with a probability proportional to 1 / k^theta.
#[derive(Clone, Debug)]
struct Zipf {
    ranks: u64,
    theta: f64,
    /// The integral of the hat function up to the lower and the upper end.
    low: f64,
    high: f64,
    /// Points so near above their rank are accepted at once.
    near: f64,
}

impl Zipf {
    fn new(ranks: u64, theta: f64) -> Zipf {
        let mut zipf = Zipf { ranks, theta, low: 0.0, high: 0.0, near: 0.0 };
        zipf.low = zipf.integral(1.5) - 1.0;
        zipf.high = zipf.integral(ranks as f64 + 0.5);
        zipf.near = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.density(2.0));
        zipf
    }

    fn draw(&self, random: &mut Random) -> u64 {
        loop {
            let area = self.high + random.unit() * (self.low - self.high);
            let x = self.inverse(area);
            let rank = x.round().clamp(1.0, self.ranks as f64);
            if rank - x <= self.near || area >= self.integral(rank + 0.5) - self.density(rank) {
                return rank as u64;
            }
        }
    }

    fn density(&self, x: f64) -> f64 {
        (-self.theta * x.ln()).exp()
    }

    /// The integral of `density` from 1 to x, also where the exponent is 1 and the usual formula divides by zero.
    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        let t = (1.0 - self.theta) * log;
        let slope = if t.abs() > 1e-8 { t.exp_m1() / t } else { 1.0 + t / 2.0 };
        slope * log
    }

    fn inverse(&self, area: f64) -> f64 {
        let t = (area * (1.0 - self.theta)).max(-1.0);
        let slope = if t.abs() > 1e-8 { t.ln_1p() / t } else { 1.0 - t / 2.0 };
        (slope * area).exp()
    }
}

#[cfg(test)]
mod tests;
