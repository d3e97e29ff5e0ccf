//! Regions of the history table, for several sketchers beside each other (section 5).
//!
//! The sketches of requests are divided into 256 regions of equal size. At any time a region is *owned* by one
//! sketcher, or it *moves*: then several may serve it, each by replicated reads only.

use crate::sketch::Sketch;

/// How many regions there are: enough that a few sketchers get shares of about one size.
pub const REGIONS: usize = 256;

/// The number of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Region(pub u8);

impl Region {
    /// The region of a request.
    pub fn of<const BYTES: usize>(request: &Sketch<BYTES>) -> Region {
        // The history table places a request by the first eight bytes: by one of these, the regions of a sketcher would
        // all lie in a part of its table.
        Region(request.0[8])
    }
}

/// What a region is to one sketcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// Served by this sketcher alone, with fast reads.
    Owned,
    /// Served by several, with replicated reads.
    Moving,
    /// Not served.
    Foreign,
}

/// What each region is to one sketcher.
#[derive(Clone, Debug)]
pub struct Regions {
    regions: Vec<Ownership>,
}

impl Regions {
    /// Every region is this.
    pub fn all(ownership: Ownership) -> Regions {
        Regions { regions: vec![ownership; REGIONS] }
    }

    /// What this region is.
    pub fn ownership(&self, region: Region) -> Ownership {
        self.regions[usize::from(region.0)]
    }

    /// This region is this from now on.
    pub fn set(&mut self, region: Region, ownership: Ownership) {
        self.regions[usize::from(region.0)] = ownership;
    }
}
