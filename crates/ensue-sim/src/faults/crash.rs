//! A crash aimed at a step of a write transaction: whichever process takes that step next dies at that very output.

use super::text::{Words, show_us};
use super::{Effect, Kind, duration_us};
use crate::random::Random;
use crate::world::options::Options;
use crate::world::{Aim, World};
use ensue_node::TransactionStep;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crash {
    pub step: TransactionStep,
    /// Whether the transaction comes from another datacenter.
    pub remote: bool,
    /// So many such steps pass unharmed.
    pub skip: u32,
    pub power: bool,
    /// How long the process stays down.
    pub lasts_us: u64,
}

const STEPS: [(&str, TransactionStep); 5] = [
    ("begun", TransactionStep::Begun),
    ("voted", TransactionStep::Voted),
    ("decided", TransactionStep::Decided),
    ("committed", TransactionStep::Committed),
    ("completed", TransactionStep::Completed),
];

impl Kind for Crash {
    const NAME: &'static str = "crash-at";
    const WEIGHT: u64 = 6;

    /// Elsewhere no such step is ever taken, and the fault would take the place of others.
    fn possible(options: &Options) -> bool {
        options.promises().writes_together()
    }

    fn draw(random: &mut Random, options: &Options) -> Crash {
        Crash {
            step: random.pick(&STEPS).1,
            remote: random.chance(500),
            skip: random.below(20) as u32,
            power: options.power_may_fail() && random.chance(500),
            lasts_us: duration_us(random, options),
        }
    }

    fn parse(words: &mut Words) -> Result<Crash, String> {
        let step = words.choice(&STEPS)?;
        let remote = words.choice(&[("elsewhere", true), ("at-origin", false)])?;
        words.expect("skip")?;
        let skip = words.number()?;
        let power = words.choice(&[("power", true), ("kill", false)])?;
        Ok(Crash { step, remote, skip, power, lasts_us: words.duration_us()? })
    }

    fn strike(&self, world: &mut World) -> Effect {
        let Crash { step, remote, skip, power, lasts_us } = *self;
        world.aims.push(Aim { step, remote, skip, power, lasts_us: Some(lasts_us) });
        Effect::Aimed
    }
}

impl fmt::Display for Crash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let step = STEPS.iter().find(|(_, step)| *step == self.step).map_or("", |(name, _)| name);
        let place = if self.remote { "elsewhere" } else { "at-origin" };
        let how = if self.power { "power" } else { "kill" };
        write!(f, "{step} {place} skip {} {how} for {}", self.skip, show_us(self.lasts_us))
    }
}
