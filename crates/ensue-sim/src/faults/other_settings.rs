//! A process restarts with a setting that the others do not have, and after a while with theirs: nodes of different
//! settings are not linked, and serve without each other.

use super::text::{Place, Words, show_us};
use super::{Effect, Kind, duration_us};
use crate::random::Random;
use crate::world::World;
use crate::world::options::Options;
use ensue_wire::handshake::{Scope, Settings};
use std::fmt;

/// What differs must be equal in the whole cluster, or only in a datacenter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherSettings {
    pub place: Place,
    pub scope: Scope,
    pub lasts_us: u64,
}

impl Kind for OtherSettings {
    const NAME: &'static str = "other-settings";
    const WEIGHT: u64 = 1;

    fn possible(options: &Options) -> bool {
        options.shape.processes() > 1
    }

    fn draw(random: &mut Random, options: &Options) -> OtherSettings {
        let place = Place::draw(random, options.shape);
        let scope = random.pick(&[Scope::Cluster, Scope::Cluster, Scope::Datacenter]);
        OtherSettings { place, scope, lasts_us: duration_us(random, options) }
    }

    fn parse(words: &mut Words) -> Result<OtherSettings, String> {
        let place = words.place()?;
        words.expect("of")?;
        let scope = match words.word()? {
            "cluster" => Scope::Cluster,
            "datacenter" => Scope::Datacenter,
            other => return Err(format!("a setting of the cluster or of the datacenter, not of the {other}")),
        };
        Ok(OtherSettings { place, scope, lasts_us: words.duration_us()? })
    }

    fn strike(&self, world: &mut World) -> Effect {
        let process = self.place.process(world.options.shape);
        if !world.is_alive(process) {
            return Effect::Nothing;
        }
        let mut settings = Settings::default();
        settings.add(self.scope, "setting", "another value");
        world.restart_configured(process, settings);
        Effect::Lasts(self.lasts_us)
    }

    fn lift(&self, world: &mut World) {
        world.restart_configured(self.place.process(world.options.shape), Settings::default());
    }
}

impl fmt::Display for OtherSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scope = match self.scope {
            Scope::Cluster => "cluster",
            Scope::Datacenter => "datacenter",
        };
        write!(f, "{} of {scope} for {}", self.place, show_us(self.lasts_us))
    }
}
