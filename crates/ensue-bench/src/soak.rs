//! A long load on branches, with collection and without: what is kept stays bounded, or grows.

use crate::driver::{self, Clock, Run, Sample};
use crate::engine::{Control, Setting, Terms};
use crate::load::{Access, Keys, Mix};
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct Soak {
    pub keys: u32,
    pub clients: usize,
    pub round_trip: Duration,
    pub lasts: Duration,
    pub leaves_max: usize,
    /// Commits of a client between two of its ceilings; 0 collects nothing.
    pub ceiling_every: u64,
    pub seed: u64,
}

impl Soak {
    /// Runs it: write-heavy, Zipfian. One sample a second.
    pub fn run(&self, mut each: impl FnMut(Sample)) -> Vec<Sample> {
        let run = Run {
            setting: Setting {
                control: Control::Branching,
                clients: self.clients,
                keys: self.keys,
                leaves_max: self.leaves_max,
                ceiling_every: self.ceiling_every,
                terms: Terms::default(),
            },
            keys: Keys::new(self.keys, Access::Zipfian),
            mix: Mix::WriteHeavy,
            round_trip: self.round_trip,
            warm_up: Duration::ZERO,
            lasts: self.lasts,
            seed: self.seed,
            clock: Clock::Real,
            times_steps: false,
        };
        let mut samples = Vec::new();
        driver::run(&run, |sample| {
            each(sample);
            samples.push(sample);
        });
        samples
    }
}
