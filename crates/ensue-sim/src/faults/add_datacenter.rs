//! The last datacenter, which nobody knew at first, is started: before, while or after the others hear of it.

use super::text::Words;
use super::{Effect, Kind};
use crate::random::Random;
use crate::world::World;
use crate::world::options::Options;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddDatacenter;

impl Kind for AddDatacenter {
    const NAME: &'static str = "add-datacenter";
    const WEIGHT: u64 = 1;

    fn possible(options: &Options) -> bool {
        options.faults.joins
    }

    fn draw(_: &mut Random, _: &Options) -> AddDatacenter {
        AddDatacenter
    }

    fn parse(_: &mut Words) -> Result<AddDatacenter, String> {
        Ok(AddDatacenter)
    }

    fn strike(&self, world: &mut World) -> Effect {
        if world.add_joiner() { Effect::Done } else { Effect::Nothing }
    }
}

impl fmt::Display for AddDatacenter {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}
