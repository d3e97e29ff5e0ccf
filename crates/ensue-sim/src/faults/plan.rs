//! Which fault strikes when: drawn from a seed, shown as lines, read from lines.

use super::Fault;
use super::text::{Words, show_us};
use crate::random::Random;
use crate::world::options::Options;
use crate::world::shape::Shape;
use std::fmt;

/// A fault and when it strikes, in microseconds of virtual time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    pub at_us: u64,
    pub fault: Fault,
}

/// All faults of a run, in the order in which they strike.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    pub faults: Vec<Planned>,
}

impl Plan {
    /// The plan of a seed. A kind strikes again and again at intervals of its own, so that one kind more or less
    /// changes nothing about the others.
    pub fn draw(options: &Options) -> Plan {
        let mut faults = Vec::new();
        for &(name, interval_ms) in &options.faults.intervals_ms {
            let times = &mut Random::stream(options.seed, &format!("times of {name}"));
            let mut at_us = 0;
            for number in 0.. {
                at_us += times.between(1_000, 2_000 * interval_ms);
                if at_us > options.faults.until_us {
                    break;
                }
                let random = &mut Random::stream(options.seed, &format!("{name} {number}"));
                faults.extend(Fault::draw(name, random, options).map(|fault| Planned { at_us, fault }));
            }
        }
        faults.sort_by_key(|planned| planned.at_us);
        Plan { faults }
    }

    /// The faults that strike by this time.
    pub fn until(&self, time_us: u64) -> Plan {
        let faults = self.faults.iter().filter(|planned| planned.at_us <= time_us);
        Plan { faults: faults.cloned().collect() }
    }

    /// Reads what `Display` shows.
    pub fn parse(text: &str, shape: Shape) -> Result<Plan, String> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let mut faults = lines
            .map(|line| Planned::parse(line, shape).map_err(|why| format!("{why}: {line}")))
            .collect::<Result<Vec<_>, _>>()?;
        faults.sort_by_key(|planned| planned.at_us);
        Ok(Plan { faults })
    }
}

impl Planned {
    /// Reads one line.
    pub fn parse(line: &str, shape: Shape) -> Result<Planned, String> {
        let words = &mut Words::new(line, shape);
        words.expect("at")?;
        let at_us = words.time_us()?;
        let fault = Fault::parse(words)?;
        words.end()?;
        Ok(Planned { at_us, fault })
    }
}

impl fmt::Display for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {} {}", show_us(self.at_us), self.fault)
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.faults.iter().try_for_each(|planned| writeln!(f, "{planned}"))
    }
}
