//! A replica of a partition moves from one core of its datacenter to another, for as long as an operator asks for it.

use super::text::{Home, Place, Words};
use super::{Effect, Kind};
use crate::random::Random;
use crate::world::World;
use crate::world::options::Options;
use ensue_types::CoreId;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MoveReplica {
    pub home: Home,
    pub from: CoreId,
    pub to: CoreId,
    /// The core that the operator asks.
    pub at: Place,
}

impl Kind for MoveReplica {
    const NAME: &'static str = "move-replica";
    const WEIGHT: u64 = 20;

    fn possible(options: &Options) -> bool {
        options.shape.cores > options.shape.replicas && options.shape.is_replicated()
    }

    fn draw(random: &mut Random, options: &Options) -> MoveReplica {
        let home = Home::draw(random, options.shape);
        let cores = u64::from(options.shape.cores);
        let mut core = || CoreId(random.below(cores) as u16);
        let (from, to, asked) = (core(), core(), core());
        MoveReplica { home, from, to, at: Place { datacenter: home.datacenter, core: asked } }
    }

    fn parse(words: &mut Words) -> Result<MoveReplica, String> {
        let home = words.home()?;
        words.expect("from")?;
        let from = CoreId(words.number()?);
        words.expect("to")?;
        let to = CoreId(words.number()?);
        words.expect("at")?;
        Ok(MoveReplica { home, from, to, at: words.place()? })
    }

    fn strike(&self, world: &mut World) -> Effect {
        let site = self.at.site(world.options.shape);
        if self.from == self.to || !world.is_alive(world.options.shape.process(site)) {
            return Effect::Nothing;
        }
        world.have_moved(site, self.home.partition, self.from, self.to);
        Effect::Done
    }
}

impl fmt::Display for MoveReplica {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} from {} to {} at {}", self.home, self.from.0, self.to.0, self.at)
    }
}
