//! A process restarts as a release that speaks other versions of the wire format, and after a while as the one before.

use super::text::{Place, Words, show_us};
use super::{Effect, Kind, duration_us};
use crate::random::Random;
use crate::world::options::Options;
use crate::world::World;
use crate::world::VERSIONS;
use ensue_wire::handshake::VersionRange;
use std::fmt;

/// It speaks this version and later ones: a peer that does not know any of them is refused, and dialled again later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireVersion {
    pub place: Place,
    pub min: u16,
    pub max: u16,
    pub lasts_us: u64,
}

impl Kind for WireVersion {
    const NAME: &'static str = "wire-version";
    const WEIGHT: u64 = 2;

    fn possible(options: &Options) -> bool {
        options.shape.processes() > 1
    }

    fn draw(random: &mut Random, options: &Options) -> WireVersion {
        // As old as none that this release knows, as new as none, or one that also knows this release's.
        let (min, max) = random.pick(&[
            (VERSIONS.min.saturating_sub(1), VERSIONS.min.saturating_sub(1)),
            (VERSIONS.max + 1, VERSIONS.max + 2),
            (VERSIONS.min, VERSIONS.max + 1),
        ]);
        let place = Place::draw(random, options.shape);
        WireVersion { place, min, max, lasts_us: duration_us(random, options) }
    }

    fn parse(words: &mut Words) -> Result<WireVersion, String> {
        let place = words.place()?;
        words.expect("speaks")?;
        let min = words.number()?;
        words.expect("to")?;
        Ok(WireVersion { place, min, max: words.number()?, lasts_us: words.duration_us()? })
    }

    fn strike(&self, world: &mut World) -> Effect {
        let process = self.place.process(world.options.shape);
        if !world.is_alive(process) {
            return Effect::Nothing;
        }
        world.restart_with(process, VersionRange { min: self.min, max: self.max });
        Effect::Lasts(self.lasts_us)
    }

    fn lift(&self, world: &mut World) {
        world.restart_with(self.place.process(world.options.shape), VERSIONS);
    }
}

impl fmt::Display for WireVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} speaks {} to {} for {}", self.place, self.min, self.max, show_us(self.lasts_us))
    }
}
