//! The connection of a client breaks: the server learns that the client is gone, the client that the server is.

use super::text::Words;
use super::{Effect, Kind};
use crate::random::Random;
use crate::world::options::Options;
use crate::world::World;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropClient {
    /// Counted among the open connections, from the start again when they are fewer.
    pub number: usize,
}

impl Kind for DropClient {
    const NAME: &'static str = "drop-client";
    const WEIGHT: u64 = 1;

    fn draw(random: &mut Random, options: &Options) -> DropClient {
        DropClient { number: random.index(options.workload.clients.max(1)) }
    }

    fn parse(words: &mut Words) -> Result<DropClient, String> {
        Ok(DropClient { number: words.number()? })
    }

    fn strike(&self, world: &mut World) -> Effect {
        if world.drop_client(self.number) { Effect::Done } else { Effect::Nothing }
    }
}

impl fmt::Display for DropClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.number)
    }
}
