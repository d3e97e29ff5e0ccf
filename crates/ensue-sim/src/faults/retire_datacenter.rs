//! The last datacenter is removed in good order: an operator says so at one of its nodes.

use super::text::Words;
use super::{Effect, Kind};
use crate::random::Random;
use crate::world::World;
use crate::world::options::Options;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetireDatacenter;

impl Kind for RetireDatacenter {
    const NAME: &'static str = "retire-datacenter";
    const WEIGHT: u64 = 1;

    fn possible(options: &Options) -> bool {
        options.faults.retires
    }

    fn draw(_: &mut Random, _: &Options) -> RetireDatacenter {
        RetireDatacenter
    }

    fn parse(_: &mut Words) -> Result<RetireDatacenter, String> {
        Ok(RetireDatacenter)
    }

    fn strike(&self, world: &mut World) -> Effect {
        if world.retire() { Effect::Done } else { Effect::Nothing }
    }
}

impl fmt::Display for RetireDatacenter {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}
