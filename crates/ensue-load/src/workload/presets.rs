//! Workloads that others have described, by name, with their parameters and where those stand.
//!
//! Where a source leaves something open, the text says what was chosen.

use super::{Columns, Workload, mix};
use crate::error::SpecError;

/// A named workload, in the words of the command line.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    pub name: &'static str,
    pub source: &'static str,
    mix: &'static str,
    keys: &'static str,
    sizes: &'static str,
    /// Keys of a read, keys of a write, columns of a key.
    columns: [&'static str; 3],
}

const NO_COLUMNS: [&str; 3] = ["1", "1", "1"];

const fn ycsb(name: &'static str, source: &'static str, mix: &'static str, keys: &'static str) -> Preset {
    Preset { name, source, mix, keys, sizes: "100", columns: NO_COLUMNS }
}

/// Table 3 of Eiger gives the percentiles 50, 90 and 99 of each distribution alone. These have three values each, those
/// percentiles exactly, and the means that Table 4 implies: 94,502 / 23,657 = 3.99 keys an operation, and
/// 498,239 / 94,502 = 5.27 columns a key. Sizes of values have no mean there; theirs is the lightest tail that fits.
const FACEBOOK_COLUMNS: [&str; 3] = ["1:888,16:100,128:12", "1", "1:510,2:460,128:30"];
const FACEBOOK_SIZES: &str = "16:600,32:388,4096:12";
const FACEBOOK: &str = "Eiger, section 6.7 and Table 3 (Facebook): 0.2 % writes of one key; reads of 1/16/128 keys \
                        of 1/2/128 columns of 16/32/4096 bytes (percentiles 50/90/99), in three-valued distributions \
                        with the means of Table 4";

pub const PRESETS: [Preset; 11] = [
    ycsb("ycsb-a", "YCSB workload A: update heavy", "read=50,update=50", "scrambled"),
    ycsb("ycsb-b", "YCSB workload B: read mostly", "read=95,update=5", "scrambled"),
    ycsb("ycsb-c", "YCSB workload C: read only", "read", "scrambled"),
    ycsb("ycsb-d", "YCSB workload D: read latest", "read=95,insert=5", "latest"),
    ycsb("ycsb-e", "YCSB workload E: short ranges of 1 to 100 records", "scan=95,insert=5", "scrambled"),
    ycsb("ycsb-f", "YCSB workload F: read-modify-write", "read=50,rmw=50", "scrambled"),
    Preset {
        name: "cops",
        source: "COPS, section 6.3: put:get 1:1, values of one byte, 512 keys a keygroup, one keygroup a \
                 client, variance 1",
        mix: "set=1,get=1",
        keys: "groups:512:1",
        sizes: "1",
        columns: NO_COLUMNS,
    },
    Preset {
        name: "cops-1-4",
        source: "COPS, section 6.3: put:get 1:4, values of one byte, 512 keys a keygroup, one keygroup a \
                 client, variance 1",
        mix: "set=1,get=4",
        keys: "groups:512:1",
        sizes: "1",
        columns: NO_COLUMNS,
    },
    Preset {
        name: "eiger",
        source: "Eiger, section 6.6 and Table 3 (default): 10 % writes, half of them transactions, 5 keys of 5 \
                 columns of 128 bytes",
        mix: "columns-read=90,columns-write=5,columns-write-atomic=5",
        keys: "uniform",
        sizes: "128",
        columns: ["5", "5", "5"],
    },
    Preset {
        name: "facebook",
        source: FACEBOOK,
        mix: "columns-read=998,columns-write=2",
        keys: "uniform",
        sizes: FACEBOOK_SIZES,
        columns: FACEBOOK_COLUMNS,
    },
    Preset {
        name: "facebook-transactions",
        source: FACEBOOK,
        mix: "columns-read=998,columns-write-atomic=2",
        keys: "uniform",
        sizes: FACEBOOK_SIZES,
        columns: FACEBOOK_COLUMNS,
    },
];

impl Preset {
    pub(super) fn workload(&self) -> Result<Workload, SpecError> {
        let [keys_read, keys_written, per_key] = self.columns;
        Ok(Workload {
            name: self.name.into(),
            source: self.source.into(),
            mix: mix(self.mix)?,
            access: self.keys.parse()?,
            sizes: self.sizes.parse()?,
            columns: Columns {
                keys_read: keys_read.parse()?,
                keys_written: keys_written.parse()?,
                per_key: per_key.parse()?,
            },
        })
    }
}
