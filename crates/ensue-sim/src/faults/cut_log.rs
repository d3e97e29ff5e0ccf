//! A careless operator: a process is killed or stopped, files of one of its partitions are deleted or shortened by
//! hand, and it is
//! started on the rest. The partition says what is missing and serves nothing, until the files are put back.

use super::text::{Home, Words, show_us};
use super::{Effect, Kind, duration_us};
use crate::world::disk::Harm;
use crate::random::Random;
use crate::world::options::Options;
use crate::world::World;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutLog {
    pub home: Home,
    pub harm: Harm,
    /// Whether the process is asked to stop; else it is killed.
    pub asked: bool,
    pub lasts_us: u64,
}

impl Kind for CutLog {
    const NAME: &'static str = "cut-log";
    const WEIGHT: u64 = 2;

    fn draw(random: &mut Random, options: &Options) -> CutLog {
        let home = Home::draw(random, options.shape);
        let harm = match random.weighted(&[4, 3, 4, 1, 1, 1]) {
            0 => Harm::DeleteNewest,
            1 => Harm::Delete(random.below(1_000)),
            2 => Harm::ShortenNewest(random.between(1, 1_000)),
            3 => Harm::DeleteSuperblock,
            4 => Harm::DeleteCheckpoint,
            _ => Harm::DeleteWitness,
        };
        CutLog { home, harm, asked: random.chance(300), lasts_us: duration_us(random, options) }
    }

    fn parse(words: &mut Words) -> Result<CutLog, String> {
        let home = words.home()?;
        let mut harm = vec![words.word()?, words.word()?];
        if Harm::has_number(&harm) {
            harm.push(words.word()?);
        }
        let harm = Harm::parse(&harm)?;
        let asked = words.choice(&[("stopped", true), ("killed", false)])?;
        Ok(CutLog { home, harm, asked, lasts_us: words.duration_us()? })
    }

    fn strike(&self, world: &mut World) -> Effect {
        let Home { datacenter, partition } = self.home;
        let process = world.process_of(datacenter, partition);
        if !world.is_alive(process) || world.is_stopping(process) {
            return Effect::Nothing;
        }
        if self.asked {
            world.harm_when_down((datacenter, partition), self.harm);
            world.shut_down(process);
            return Effect::Lasts(self.lasts_us);
        }
        world.kill(process);
        let is_harmed = world.disk(datacenter, partition).harm(self.harm);
        world.start(process);
        if is_harmed { Effect::Lasts(self.lasts_us) } else { Effect::Nothing }
    }

    fn lift(&self, world: &mut World) {
        world.mend((self.home.datacenter, self.home.partition));
    }
}

impl fmt::Display for CutLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = if self.asked { "stopped" } else { "killed" };
        write!(f, "{} {} {how} for {}", self.home, self.harm, show_us(self.lasts_us))
    }
}
