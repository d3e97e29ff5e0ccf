//! When operations begin: as soon as there is room (closed loop), or at times of their own (open loop).

use crate::error::SpecError;
use crate::random::Random;
use std::str::FromStr;

/// How the arrivals of an open loop are spaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// Independent of each other, as from many users.
    Poisson,
    /// Evenly.
    Constant,
}

impl FromStr for Arrivals {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Arrivals, SpecError> {
        match text {
            "poisson" => Ok(Arrivals::Poisson),
            "constant" => Ok(Arrivals::Constant),
            _ => Err(SpecError::Arrivals(text.into())),
        }
    }
}

/// What drives clients.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// Each client has as many operations under way as its pipeline holds, always.
    Closed,
    /// So many operations a second of all clients, whether earlier ones have been answered or not.
    Open { rate: f64, arrivals: Arrivals },
}

/// The arrivals at one thread, in nanoseconds.
#[derive(Clone, Debug)]
pub struct Schedule {
    arrivals: Arrivals,
    mean_ns: f64,
    next_ns: f64,
    random: Random,
}

impl Schedule {
    /// The first arrival is one interval after the beginning.
    pub fn new(rate: f64, arrivals: Arrivals, begin_ns: u64, random: Random) -> Schedule {
        let mut schedule = Schedule { arrivals, mean_ns: 1e9 / rate, next_ns: begin_ns as f64, random };
        schedule.advance();
        schedule
    }

    pub fn next_ns(&self) -> u64 {
        self.next_ns as u64
    }

    /// Takes the next arrival.
    pub fn take(&mut self) -> u64 {
        let at = self.next_ns();
        self.advance();
        at
    }

    fn advance(&mut self) {
        self.next_ns += match self.arrivals {
            Arrivals::Poisson => self.random.exponential(self.mean_ns),
            Arrivals::Constant => self.mean_ns,
        };
    }
}
