//! Every connection of clients to a core breaks at once.

use super::text::{Place, Words};
use super::{Effect, Kind};
use crate::random::Random;
use crate::world::options::Options;
use crate::world::World;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropClients {
    pub place: Place,
}

impl Kind for DropClients {
    const NAME: &'static str = "drop-clients";
    const WEIGHT: u64 = 1;

    fn draw(random: &mut Random, options: &Options) -> DropClients {
        DropClients { place: Place::draw(random, options.shape) }
    }

    fn parse(words: &mut Words) -> Result<DropClients, String> {
        Ok(DropClients { place: words.place()? })
    }

    fn strike(&self, world: &mut World) -> Effect {
        match world.drop_clients_of(self.place.site(world.options.shape)) {
            0 => Effect::Nothing,
            _ => Effect::Done,
        }
    }
}

impl fmt::Display for DropClients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.place)
    }
}
